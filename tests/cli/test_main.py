"""The command as a whole: help, errors in one line, signals, a full disk."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import limes
from limes.cli.main import COMMANDS, main, make_parser
from tests.cli.commands import PROGRAM, error_of, run, wait_for

pytest.importorskip("pyarrow")

OUTPUTS = ("out.csv", "out.parquet", "out.svm.gz", "out.npz")


def test_help_does_not_import_what_takes_long():
    code = (
        "import sys\nfrom limes.cli.main import make_parser\nmake_parser().format_help()\n"
        "print(sorted({'numpy', 'scipy', 'sklearn', 'pyarrow', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_a_help_with_an_example(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert f"limes {command}" in text.partition("example:\n")[2]


@pytest.mark.parametrize("command", COMMANDS)
def test_each_example_can_be_parsed(command, capsys):
    parser = make_parser()
    with pytest.raises(SystemExit):
        parser.parse_args([command, "--help"])
    lines = capsys.readouterr().out.partition("example:\n")[2].splitlines()
    assert lines
    for line in lines:
        words = line.split()
        assert words[0] == "limes"
        assert parser.parse_args(words[1:]).run is not None


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"limes {limes.__version__}\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "the following arguments are required: COMMAND"),
        (("fly",), "invalid choice: 'fly'"),
        (("predict", "m"), "the following arguments are required"),
        (("predict", "m", "r", "-o", "o", "--prob"), "unrecognized arguments: --prob"),
        (("train", "no.svm"), "no.svm: No such file or directory"),
        (("train", "no.svm", "-t", "7"), "invalid choice: 7"),
        (("info", "no.limes"), "no.limes: No such file or directory"),
        (("convert", "no.csv", "o.svm"), "no.csv: No such file or directory"),
        (("datasets", "satt"), "did you mean 'sat'?"),
        (("datasets", "--train", "x.svm"), "need the NAME of a dataset"),
        (("subsample", "-", "0.5", "-o", "x"), "read twice"),
    ],
)
def test_an_error_is_one_line(words, expected, capsys):
    assert expected in error_of(capsys, *words)


@pytest.mark.parametrize("rows", ["train.svm", "test.csv", "test.csv.gz"])
def test_a_missing_folder_of_the_output_is_named(rows, folder, tmp_path, capsys):
    if rows.endswith(".gz"):
        run("convert", folder / "test.csv", folder / rows)
    out = tmp_path / "none" / "out.txt"
    message = error_of(capsys, "predict", folder / "fast.limes", folder / rows, "-o", out)
    assert message == f"limes: {out}: there is no folder '{out.parent}'.\n"


def test_an_internal_error_is_one_line_too(capsys, monkeypatch, folder):
    monkeypatch.setattr("limes.cli.info._describe_model", lambda path: 1 / 0)
    assert main(["info", str(folder / "fast.limes")]) == 1
    assert capsys.readouterr().err.startswith("limes: unexpected ZeroDivisionError")
    monkeypatch.setenv("LIMES_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["info", str(folder / "fast.limes")])


def test_too_little_memory_is_an_error_with_its_size(capsys, monkeypatch, folder):
    monkeypatch.setattr("limes.cli.info._describe_model", lambda path: np.empty((1 << 40, 1 << 10)))
    message = error_of(capsys, "info", folder / "fast.limes")
    assert "not enough memory (Unable to allocate" in message


def test_rows_without_labels_cannot_be_trained_on_or_scored(folder, tmp_path, capsys):
    (tmp_path / "rows.csv").write_text("a,b,c\n1,2,3\n4,5,6\n")
    for words in (
        ("train", tmp_path / "rows.csv", "-o", tmp_path / "m"),
        ("score", folder / "fast.limes", tmp_path / "rows.csv"),
        ("subsample", tmp_path / "rows.csv", "0.5", "-o", tmp_path / "o"),
    ):
        assert "name their column with --label" in error_of(capsys, *words)


@pytest.fixture(scope="module")
def full_disk(folder, tmp_path_factory):
    """Return the results of conversions in a process whose files have a limited size."""
    import resource

    path = tmp_path_factory.mktemp("full")
    for name in OUTPUTS:
        (path / name).mkdir()
        (path / name / name).write_bytes(b"old")
    code = (
        "import contextlib, io, json, sys\n"
        "from limes.cli.main import main\n"
        "results = {}\n"
        "for path in sys.argv[2:]:\n"
        "    with contextlib.redirect_stderr(io.StringIO()) as stderr:\n"
        "        status = main(['convert', sys.argv[1], path])\n"
        "    results[path] = [status, stderr.getvalue()]\n"
        "print(json.dumps(results))"
    )
    paths = [str(path / name / name) for name in OUTPUTS]
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder / "train.svm"), *paths],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)),
    )
    return {Path(name): result for name, result in json.loads(done.stdout).items()}


@pytest.mark.skipif(sys.platform == "win32", reason="limits on files are those of POSIX")
@pytest.mark.parametrize("name", OUTPUTS)
def test_a_full_disk_leaves_the_old_file(name, full_disk):
    path, (status, message) = next(item for item in full_disk.items() if item[0].name == name)
    assert status == 2
    assert message == f"limes: {path}: File too large\n"
    assert path.read_bytes() == b"old"
    assert len(list(path.parent.iterdir())) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_stopped_process_leaves_the_old_file(number, folder, tmp_path):
    (tmp_path / "out.csv").write_bytes(b"old")
    words = ("convert", "-", tmp_path / "out.csv", "--features", "3")
    process = subprocess.Popen(
        [*PROGRAM, *map(str, words)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A shell that starts tests in the background has them ignore SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    process.stdin.write((folder / "train.svm").read_bytes())
    process.stdin.flush()
    wait_for(lambda: len(list(tmp_path.iterdir())) == 2)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode != 0
    assert b"Traceback" not in error
    assert (tmp_path / "out.csv").read_bytes() == b"old"
    n_left = 2 if number == signal.SIGKILL else 1
    assert len(list(tmp_path.iterdir())) == n_left
