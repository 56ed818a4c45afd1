"""The commands one after the other, as a new user would try them, in a shell and in one process."""

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands import PROGRAM, QUICK, environment, error_of, run

pytest.importorskip("pyarrow")

# A command that fails ends the script. Each start of Python with scikit-learn takes two seconds of
# processor time, so that the script has only what depends on the shell: exit status, redirection,
# pipes, and standard error.
SCRIPT = r"""
set -eu
limes() { "$PYTHON" -m limes "$@"; }

limes --help > help.txt
limes convert "$ROWS" rows.csv
limes convert - piped.csv --features 3 < "$ROWS"
cmp rows.csv piped.csv
limes convert rows.csv - | cmp - "$ROWS"

limes train "$ROWS" svm.model 2> usage.txt && exit 9  # -o is missing
limes train -c 2 -g 0.1 "$ROWS" -o svm.model > train.txt
limes accelerate svm.model "$ROWS" -o fast.limes $QUICK > accelerate.txt
limes predict fast.limes rows.csv -o - > labels.txt
test "$(wc -l < labels.txt)" -eq "$(wc -l < "$ROWS")"

limes info no.svm 2> error.txt && exit 9
test "$(wc -l < error.txt)" -eq 1
echo done
"""


def test_commands_work_from_a_shell_script(folder, tmp_path):
    (tmp_path / "all.sh").write_text(SCRIPT)
    names = {"PYTHON": sys.executable, "ROWS": str(folder / "train.svm"), "QUICK": " ".join(QUICK)}
    done = subprocess.run(
        ["sh", "all.sh"],
        cwd=tmp_path,
        env={**environment(), **names},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("done\n")
    assert "unrecognized arguments: svm.model" in (tmp_path / "usage.txt").read_text()
    assert "no.svm: No such file or directory" in (tmp_path / "error.txt").read_text()
    assert "agreement" in (tmp_path / "accelerate.txt").read_text()


@pytest.fixture
def work(tmp_path, monkeypatch):
    """Return an empty folder, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.data
def test_the_steps_of_libsvm_and_libagf_have_their_commands(work, capsys):
    pytest.importorskip("matplotlib")
    run("datasets", "heart", "--train", "heart.svm", "--test", "heart.t", "--scale")
    # As svm-train and svm-predict.
    run("train", "-c", "0.5", "-g", "0.01", "-b", "1", "heart.svm", "-o", "heart.model")
    run("predict", "heart.model", "heart.t", "-o", "slow.txt")
    # As svm_accelerate and classify_m.
    run("accelerate", "heart.model", "heart.svm", "-o", "heart.limes")
    run("predict", "heart.limes", "heart.t", "-o", "fast.txt", "--proba")
    with gzip.open("heart.t.gz", "wb") as stream:
        stream.write(Path("heart.t").read_bytes())
    words = ("heart.limes", "heart.t.gz", "-o", "fast.gz.txt", "--proba", "--format", "libsvm")
    run("predict", *words)
    assert Path("fast.txt").read_text() == Path("fast.gz.txt").read_text()
    # The labels are those of the replaced model: without --proba, and with it, where the likeliest
    # class counts and an SVM may have another label.
    run("predict", "heart.model", "heart.t", "-o", "slow.proba.txt", "--proba")
    assert labels_in("fast.txt") == labels_in("slow.proba.txt")
    labels = Path("slow.txt").read_text().split()
    for ending in ("csv", "parquet", "vec"):
        run("convert", "heart.t", f"rows.{ending}")
        run("predict", "heart.limes", f"rows.{ending}", "-o", "out.txt")
        predicted = Path("out.txt").read_text().split()
        # libAGF's rows have single precision.
        assert len(predicted) == len(labels) if ending == "vec" else predicted == labels
    capsys.readouterr()
    words = ("score", "heart.limes", "heart.t", "--source", "heart.model")
    run(*words, "--html", "report.html", "--json")
    score = json.loads(capsys.readouterr().out)
    assert score["source"]["accuracy"] > 0.75
    assert score["agreement"] > 0.9
    assert Path("report.html").read_text().startswith("<!doctype html>")
    run("info", "heart.limes")
    run("export", "heart.limes", "--to", "c", "-o", "heart.h")
    run("subsample", "heart.svm", "0.5", "-o", "half.svm")
    assert "no.svm: No such file" in error_of(capsys, *words[:1], "heart.limes", "no.svm")


def labels_in(path):
    """Return the labels in a file of labels with probabilities."""
    return [line.split()[0] for line in Path(path).read_text().splitlines()[1:]]


@pytest.mark.data
def test_another_source_is_trained_from_a_table_and_accelerated(work):
    run("datasets", "heart", "--train", "heart.csv")
    run("train", "--model", "agf", "heart.csv", "--scale", "-o", "agf.model")
    run("accelerate", "agf.model", "heart.csv", "-o", "agf.limes", "-n", "8")
    run("predict", "agf.limes", "heart.csv", "-o", "agf.parquet", "--keep", "--proba")
    assert Path("agf.parquet").stat().st_size


def test_the_command_is_installed_beside_python():
    command = shutil.which("limes", path=Path(sys.executable).parent)
    if command is None:
        pytest.skip("limes is not installed in this environment")
    text = subprocess.run([command, "--help"], capture_output=True, text=True, check=True).stdout
    assert "Replace slow kernel classifiers" in text


def test_the_package_can_be_run_as_a_module():
    text = subprocess.run(
        [*PROGRAM, "--version"], capture_output=True, text=True, check=True, env=environment()
    ).stdout
    assert text.startswith("limes ")
