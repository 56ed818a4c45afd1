"""``limes bench`` from the shell: what it writes, and what it refuses."""

import argparse

import numpy as np
import pytest
from sklearn.datasets import make_moons

from limes.cli.bench import add_parser


@pytest.fixture
def data(tmp_path):
    """Return a file of rows with labels."""
    X, y = make_moons(200, noise=0.2, random_state=0)
    path = tmp_path / "mine.npz"
    np.savez(path, X=X, y=y)
    return path


def command(*words):
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    args = parser.parse_args(["bench", *map(str, words)])
    return args.run(args)


def test_the_command_measures_a_file_and_draws_it_again(data, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    out = tmp_path / "out"
    words = ("--methods", "linear", "limes", "--threads", "1", "--turns", "1", "--rows", "200")
    assert command(data, "-o", out, *words) == 0
    for name in ("mine.png", "results.md"):
        (out / name).unlink()
    assert command("-o", out) == 0
    assert sorted(path.name for path in out.iterdir()) == ["mine.png", "results.csv", "results.md"]
    assert "120 training rows, 80 test rows, 2 features, 2 classes." in capsys.readouterr().out


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(ValueError, match="give a dataset to measure"):
        command("-o", tmp_path)


def test_a_wrong_name_is_refused_before_anything_is_measured(data, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file '.*other\.npz'"):
        command(data, tmp_path / "other.npz", "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()
