"""An output that is one of the inputs is refused before anything is written."""

import os
import shutil
import subprocess

import numpy as np
import pytest

from limes.files import create_rows
from tests.cli.commands import PROGRAM, environment, error_of, run


@pytest.fixture
def files(folder, tmp_path, monkeypatch):
    """Work in a folder with a model and rows."""
    for name in ("fast.limes", "svm.model", "test.csv", "train.svm"):
        shutil.copy(folder / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(path):
    return {name: (path / name).read_bytes() for name in os.listdir(path)}


@pytest.mark.parametrize("output", ["test.csv", "./test.csv", "link", "hard", "{}/test.csv"])
def test_rows_are_not_overwritten_by_predictions(files, output, capsys):
    os.symlink("test.csv", "link")
    os.link("test.csv", "hard")
    before = contents(files)
    message = error_of(capsys, "predict", "fast.limes", "test.csv", "-o", output.format(files))
    assert "is an input as well as an output: choose another output" in message
    assert contents(files) == before


@pytest.mark.parametrize(
    "words",
    [
        ["predict", "fast.limes", "test.csv", "-o", "fast.limes"],
        ["train", "train.svm", "-o", "train.svm"],
        ["accelerate", "svm.model", "train.svm", "-o", "svm.model"],
        ["accelerate", "svm.model", "train.svm", "-o", "train.svm"],
        ["export", "fast.limes", "--to", "c", "-o", "fast.limes"],
        ["convert", "test.csv", "test.csv", "--to", "libsvm"],
        ["subsample", "train.svm", "0.5", "-o", "train.svm"],
        ["score", "fast.limes", "test.csv", "--html", "test.csv"],
    ],
    ids=lambda words: "-".join([words[0], words[-1]]),
)
def test_every_command_refuses_to_overwrite_what_it_reads(files, words, capsys):
    before = contents(files)
    assert "is an input as well as an output" in error_of(capsys, *words)
    assert contents(files) == before


def test_compressed_rows_are_not_overwritten(files, capsys):
    run("convert", "test.csv", "test.csv.gz")
    os.symlink("test.csv.gz", "out.gz")
    for output in ("./test.csv.gz", "out.gz"):
        message = error_of(capsys, "predict", "fast.limes", "test.csv.gz", "-o", output)
        assert "is an input as well as an output" in message


def test_labels_beside_libagf_rows_are_not_overwritten(files, capsys):
    X, y = np.zeros((3, 3), dtype=np.float32), np.array([1, 2, 3])
    with create_rows("rows.vec") as writer:
        writer.write(X, y)
    for output in ("rows.cls", "rows.vec"):
        message = error_of(capsys, "predict", "fast.limes", "rows.vec", "-o", output)
        assert "is an input as well as an output" in message
    os.remove("rows.cls")
    run("predict", "fast.limes", "rows.vec", "-o", "rows.cls")


def test_rows_that_standard_output_appends_to_are_refused(files):
    words = [*PROGRAM, "predict", "fast.limes", "test.csv", "-o", "-", "--to", "csv"]
    before = contents(files)
    with open("test.csv", "ab") as stream:
        done = subprocess.run(
            words, env=environment(), stdout=stream, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert "- is an input as well as an output" in done.stderr
    assert contents(files) == before


def test_files_of_a_folder_are_not_overwritten_through_links(files, capsys):
    os.mkdir("rows")
    shutil.copy("test.csv", "rows/a.csv")
    os.mkdir("out")
    os.symlink("../rows/a.csv", "out/a.csv")
    before = contents(files / "rows")
    message = error_of(capsys, "predict", "fast.limes", "rows", "-o", "out")
    assert "is an input as well as an output" in message
    assert contents(files / "rows") == before
