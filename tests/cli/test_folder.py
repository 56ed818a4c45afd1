"""Folders of files: complete outputs are skipped, crashes are survived, errors are listed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from limes.cli.folder import MANIFEST, FileTask, run_tasks
from limes.cli.main import main
from tests.cli.commands import PROGRAM, environment, output_of, run


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def words(folder, tmp_path, blobs):
    """The command for a folder of npy files, which have no label to be told from features."""
    parts = tmp_path / "parts"
    parts.mkdir()
    for number in range(8):
        np.save(parts / f"part{number}.npy", blobs[0][number : number + 40])
    return ["predict", str(folder / "fast.limes"), str(parts), "-o", str(tmp_path / "out")]


def test_a_second_run_skips_what_is_complete(words, tmp_path, capsys):
    assert "8 files written" in output_of(capsys, *words)
    before = contents(tmp_path / "out")
    times = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "out").glob("*.npy")}
    assert "0 files written to" in (text := output_of(capsys, *words))
    assert "8 were complete already" in text
    assert contents(tmp_path / "out") == before
    assert {p.name: p.stat().st_mtime_ns for p in (tmp_path / "out").glob("*.npy")} == times


def test_what_changes_the_output_is_done_again(words, tmp_path, capsys, folder):
    run(*words)
    assert "8 files written" in output_of(capsys, *words, "--proba")
    assert "8 files written" in output_of(capsys, *words)
    assert "8 files written" in output_of(capsys, *words, "--overwrite")
    np.save(tmp_path / "parts" / "part3.npy", np.zeros((5, 3)))
    os.unlink(tmp_path / "out" / "part5.npy")
    assert "2 files written" in output_of(capsys, *words)
    assert len(np.load(tmp_path / "out" / "part3.npy")) == 5


def test_an_input_is_hashed_only_if_its_size_or_time_changed(words, tmp_path, capsys, monkeypatch):
    run(*words)
    hashed = []
    plain = __import__("limes.cli.folder", fromlist=["hash_file"]).hash_file
    monkeypatch.setattr(
        "limes.cli.folder.hash_file", lambda path: hashed.append(path.name) or plain(path)
    )
    os.utime(tmp_path / "parts" / "part2.npy")
    assert "0 files written" in output_of(capsys, *words)
    assert hashed.count("part2.npy") == 1
    assert not [name for name in hashed if name.startswith("part") and name != "part2.npy"]


def test_a_wrong_file_is_listed_and_the_others_are_done(words, tmp_path, capsys):
    (tmp_path / "parts" / "broken.npy").write_bytes(b"\x93NUMPY broken")
    (tmp_path / "parts" / "wide.npy").write_bytes(b"")
    capsys.readouterr()
    assert main(words) == 1
    captured = capsys.readouterr()
    assert "8 files written" in captured.out
    assert "2 failed" in captured.out
    assert captured.err.count("\n") == 2
    assert "broken.npy" in captured.err
    assert len(list((tmp_path / "out").glob("*.npy"))) == 8


def test_the_manifest_says_what_an_output_depends_on(words, tmp_path):
    run(*words)
    lines = (tmp_path / "out" / MANIFEST).read_text().splitlines()
    entry = json.loads(lines[0])
    assert len(lines) == 8
    assert entry["output"] == "part0.npy"
    assert set(entry["facts"]) == {"model", "options", "limes"}
    assert set(entry["inputs"][0]) == {"name", "n_bytes", "mtime_ns", "sha256"}


def test_a_damaged_manifest_costs_only_time(words, tmp_path, capsys):
    run(*words)
    before = contents(tmp_path / "out")
    manifest = tmp_path / "out" / MANIFEST
    data = manifest.read_bytes()
    manifest.write_bytes(data[:-40])
    assert "1 files written" in output_of(capsys, *words)
    manifest.write_bytes(b"\xff\n{}\n[]\n" + data)
    assert "0 files written" in output_of(capsys, *words)
    assert contents(tmp_path / "out") == before


def test_an_interrupted_change_of_options_is_not_taken_for_complete(tmp_path):
    """The output is new but the manifest still has the old facts: a crash between the two."""
    source, output = tmp_path / "in", tmp_path / "out" / "a"
    source.write_text("x")

    def write(text):
        output.write_text(text)

    def stop():
        output.write_text("new")
        raise KeyboardInterrupt

    run_tasks([FileTask((source,), (output,), lambda: write("old"))], output.parent, {"k": 1})
    with pytest.raises(KeyboardInterrupt):
        run_tasks([FileTask((source,), (output,), stop)], output.parent, {"k": 2})
    again = [FileTask((source,), (output,), lambda: write("old"))]
    assert run_tasks(again, output.parent, {"k": 1}).n_done == 1
    assert output.read_text() == "old"


def test_outputs_with_one_name_are_refused(tmp_path):
    task = FileTask((tmp_path,), (tmp_path / "a",), print)
    with pytest.raises(ValueError, match="different names, got 2 for 'a'"):
        run_tasks([task, task], tmp_path, {})


def test_several_formats_are_predicted_into_one(folder, tmp_path, capsys):
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "a.svm").write_text("0 1:1 2:2 3:3\n")
    (parts / "b.csv").write_text("x,y,z\n1,2,3\n")
    run("predict", folder / "fast.limes", parts, "-o", tmp_path / "out", "--to", "npy")
    assert sorted(p.name for p in (tmp_path / "out").glob("*.npy")) == ["a.svm.npy", "b.npy"]


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_crash_at_some_steps_is_repaired_by_the_next_run(words):
    """Every write, fsync and rename: `make test-slow`."""
    run_crashes(words, 12)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_crash_at_any_step_of_forty_files_is_repaired(make_many, folder, tmp_path):
    words = ["predict", str(folder / "fast.limes"), str(make_many), "-o", str(tmp_path / "out")]
    run_crashes([*words, "--jobs", "1"], 10**9)


def run_crashes(words, limit):
    script = Path(__file__).with_name("crash_run.py")
    run = subprocess.run(
        [sys.executable, str(script), str(limit), *words, "--jobs", "1"],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    n_ended, n_steps = map(int, run.stdout.split())
    print(f"{n_ended} of {n_steps} steps")
    assert n_ended >= min(limit, n_steps)


@pytest.fixture
def make_many(tmp_path, blobs):
    """Forty files of three formats."""
    from limes.files import create_rows

    parts = tmp_path / "forty"
    parts.mkdir()
    for number in range(40):
        rows = np.roll(blobs[0], number, axis=0)[:50]
        kind = ("npy", "csv", "svm")[number % 3]
        if kind == "csv":
            text = "\n".join(",".join(map(repr, row)) for row in rows.tolist())
            (parts / f"part{number:02}.csv").write_text(f"a,b,c\n{text}\n")
        elif kind == "npy":
            np.save(parts / f"part{number:02}.npy", rows)
        else:
            with create_rows(parts / f"part{number:02}.svm") as writer:
                writer.write(rows, None)
    return parts


def killed_at_random(words, output, n_kills):
    """Kill runs at random moments, and compare the folder after one more run."""
    expected = contents(output)
    rng = random.Random(0)
    for _ in range(n_kills):
        for path in output.iterdir():
            path.unlink()
        process = subprocess.Popen([*PROGRAM, *words], env=environment(), stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not (output / MANIFEST).exists() and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(rng.random() * 0.25)
        process.send_signal(signal.SIGKILL)
        process.wait()
        for name, data in contents(output).items():
            assert name.startswith(".") or data == expected[name]
        run(*words)
        assert contents(output) == expected


@pytest.mark.slow
def test_kills_at_random_moments_are_repaired(make_many, folder, tmp_path):
    output = tmp_path / "out"
    words = ["predict", str(folder / "fast.limes"), str(make_many), "-o", str(output)]
    run(*words)
    killed_at_random(words, output, 20)


def test_two_runs_at_once_do_not_disturb_each_other(words, tmp_path):
    runs = [
        subprocess.Popen([*PROGRAM, *words], env=environment(), stdout=subprocess.DEVNULL)
        for _ in range(2)
    ]
    assert [process.wait() for process in runs] == [0, 0]
    first = contents(tmp_path / "out")
    assert len(first) == 9
    run(*words, "--overwrite")
    assert contents(tmp_path / "out") == first
