"""``limes paper`` from the shell: what it writes, and what it refuses."""

import json

import pytest

from limes.cli.main import main
from limes.cli.paper import METHODS
from limes.research.paper.plan import ALL_METHODS, TrialRow
from limes.research.results import append_rows, read_rows
from tests.research.paper.cases import BASE, borders, row

pytest.importorskip("matplotlib")


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a few rows."""
    append_rows(tmp_path / "out" / "rows.csv", [BASE, borders(), borders(seed=1)])
    return tmp_path / "out"


def refused(capsys, *words):
    assert main(["paper", *map(str, words)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_rows_are_drawn_without_running_anything(folder, capsys):
    before = (folder / "rows.csv").read_bytes()
    assert main(["paper", "--draw", "-o", str(folder), "--table", "results"]) == 0
    assert (folder / "rows.csv").read_bytes() == before
    assert "| sat | borders | 2 | 0.760" in capsys.readouterr().out
    assert {"results.md", "results.csv", "skill_time.png"} <= {
        path.name for path in folder.iterdir()
    }
    assert not list(folder.glob("*.tex"))
    assert "# The paper" in folder.with_name("out.md").read_text()


def test_json_has_the_papers_numbers_too(folder, capsys):
    assert main(["paper", "--draw", "-o", str(folder), "--table", "sizes", "--json"]) == 0
    (line,) = json.loads(capsys.readouterr().out)["tables"]["sizes"]
    assert line["support vectors"]["mean"] == 1447
    assert line["support vectors, paper"]["mean"] == 1447


def test_trials_with_rows_are_not_run_again(tmp_path, capsys):
    words = ["--dataset", "sample_classes", "--method", "linear", "--table", "results"]
    for _ in range(2):
        assert main(["paper", "--quick", *words, "-o", str(tmp_path / "out")]) == 0
    assert len(read_rows(tmp_path / "out" / "rows.csv", TrialRow)) == 2
    assert capsys.readouterr().err.count("sample_classes, linear") == 2


def test_a_failed_trial_sets_the_exit_status(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("LIMES_DATA", str(tmp_path))
    monkeypatch.setenv("LIMES_CACHE", str(tmp_path))
    monkeypatch.setattr("limes.datasets.loader.ORIGINS", {"heart": Unreachable()})
    words = ["--table", "results", "--dataset", "heart", "-o", str(tmp_path / "out")]
    assert main(["paper", *words]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert "put heart.npz into" in lines[0]
    assert lines[-1] == ("The tables are incomplete: results of heart failed (see above).")


class Unreachable:
    def fetch(self, entry, progress):
        raise OSError("no network")


def test_unknown_names_are_refused_with_the_known_ones(capsys, tmp_path):
    for word, known in (("--dataset", "heart"), ("--table", "results"), ("--method", "linear")):
        message = refused(capsys, word, "nothing", "-o", tmp_path)
        assert f"{word} must be one of" in message
        assert known in message
        assert "'nothing'" in message
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_rows_is_refused(capsys, tmp_path):
    assert "has no rows.csv to draw" in refused(capsys, "--draw", "-o", tmp_path / "none")


def test_a_file_of_other_rows_is_not_overwritten(capsys, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n")
    assert "must have the columns" in refused(capsys, "--quick", "-o", tmp_path)
    assert path.read_text() == "a,b\n1,2\n"


def test_later_rows_of_a_trial_are_those_shown(folder, capsys):
    append_rows(folder / "rows.csv", [row(uncertainty_coefficient=0.123)])
    main(["paper", "--draw", "-o", str(folder), "--table", "results"])
    assert "| sat | svm | 1 | 0.123 |" in capsys.readouterr().out


def test_a_folder_that_cannot_be_written_to_is_refused_before_anything_is_run(capsys, tmp_path):
    (tmp_path / "out").touch()
    assert "out: " in refused(capsys, "--quick", "-o", tmp_path / "out")


def test_the_help_names_all_methods():
    assert METHODS == ALL_METHODS
