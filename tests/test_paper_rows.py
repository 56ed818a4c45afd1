"""Trials as rows: what is written is read, and no interruption loses more than a line."""

from pathlib import Path

import pytest

from limes.paper.rows import Row, append_row, latest, read_rows, select
from paper_cases import BASE, borders, row


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "rows.csv"


def test_rows_come_back_as_they_were(path):
    rows = [BASE, borders(setting=0.1 + 0.2, agreement=1 / 3), row(model='a "b", c\nd', seed=2)]
    for one in rows:
        append_row(path, one)
    assert read_rows(path) == rows


def test_there_are_no_rows_without_a_file(path):
    assert read_rows(path) == []


@pytest.mark.parametrize("n_lost", [1, 5, 60])
def test_half_a_line_is_dropped(path, n_lost):
    append_row(path, BASE)
    append_row(path, row(seed=1))
    path.write_bytes(path.read_bytes()[:-n_lost])
    assert read_rows(path) == [BASE]


@pytest.mark.parametrize("n_lost", [1, 5, 60])
def test_a_row_after_half_a_line_is_whole(path, n_lost):
    append_row(path, BASE)
    append_row(path, row(seed=1))
    path.write_bytes(path.read_bytes()[:-n_lost])
    append_row(path, row(seed=2))
    assert [one.seed for one in read_rows(path)] == [0, 2]


def test_half_a_heading_is_written_anew(path):
    path.parent.mkdir()
    path.write_text("experiment,data")
    append_row(path, BASE)
    assert read_rows(path) == [BASE]


def test_a_file_of_something_else_is_refused(path):
    path.parent.mkdir()
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"must have the columns.*got \['a', 'b'\]"):
        read_rows(path)


def test_a_line_that_is_no_trial_is_named(path):
    append_row(path, BASE)
    with path.open("a") as stream:
        stream.write("results,sat,svm\n")
    with pytest.raises(ValueError, match=r"rows\.csv:3 is not a trial"):
        read_rows(path)


def test_the_last_row_of_a_trial_counts():
    rows = [BASE, borders(), row(accuracy=0.5)]
    assert sorted(one.accuracy for one in latest(rows)) == [0.5, borders().accuracy]


def test_rows_are_selected_by_all_values():
    rows = [BASE, borders(), borders(seed=1)]
    assert select(rows, method="borders", seed=1) == [borders(seed=1)]


def test_rows_of_this_repository_are_readable():
    path = Path(__file__).parents[1] / "docs" / "paper" / "rows.csv"
    rows = read_rows(path)
    assert rows
    assert all(isinstance(one, Row) and 0 <= one.uncertainty_coefficient <= 1 for one in rows)
