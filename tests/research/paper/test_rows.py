"""Trials as rows: what is written is read, and no interruption loses more than a line."""

import multiprocessing
from pathlib import Path

import pytest

from limes.research.paper.figures import read_points
from limes.research.paper.rows import (
    COLUMNS,
    Row,
    append_row,
    check_writable,
    latest,
    read_rows,
    select,
)
from tests.research.paper.cases import BASE, borders, row


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


@pytest.mark.parametrize("word", ["nan", "inf", "much"])
def test_a_number_that_is_none_is_named(path, word):
    append_row(path, row(accuracy=0.123456))
    path.write_text(path.read_text().replace("0.123456", word))
    with pytest.raises(
        ValueError, match=rf"rows\.csv:2: accuracy must be a finite number, got '{word}'"
    ):
        read_rows(path)


def test_a_count_that_is_no_whole_number_is_named(path):
    append_row(path, row(n_test=8642))
    path.write_text(path.read_text().replace("8642", "86.5"))
    with pytest.raises(ValueError, match=r"rows\.csv:2: n_test must be a whole number"):
        read_rows(path)


@pytest.mark.parametrize("content", [b"\xff\xfe\n", b'a"\n"b"c\n', b"PK\x03\x04\n\x80"])
def test_a_file_that_is_no_text_is_named(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"rows\.csv (is no table|must have the columns)"):
        read_rows(path)


def test_a_bad_number_of_the_points_is_named(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("kind,x,y\nclass 1,0.5,0.5\nclass 1,0.5,half\n")
    with pytest.raises(ValueError, match=r"points\.csv:3: y must be a finite number, got 'half'"):
        read_points(path)


def write_older(path):
    """Write a row as versions before the last column did."""
    append_row(path, BASE)
    lines = path.read_text().splitlines()
    path.write_text("".join(f"{line.rpartition(',')[0]}\n" for line in lines))


def test_rows_of_older_versions_are_read_and_gone_on_with(path):
    write_older(path)
    append_row(path, row(seed=1, trial_seconds=3.5))
    assert read_rows(path) == [BASE, row(seed=1)]
    assert path.read_text().count("trial_seconds") == 0


def test_the_cost_of_a_trial_comes_back(path):
    append_row(path, row(trial_seconds=3.5))
    assert read_rows(path)[0].trial_seconds == 3.5
    assert COLUMNS[-1] == "trial_seconds"


N_FILES, N_EACH = 25, 3


def append_at_once(folder, seed, barrier):
    """Add rows to one file after another, at the same moment as somebody else."""
    for place in range(N_FILES):
        barrier.wait()
        for number in range(N_EACH):
            append_row(folder / f"{place}.csv", row(seed=seed, split=number))


def test_processes_that_start_together_lose_no_row(tmp_path):
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    others = [
        context.Process(target=append_at_once, args=(tmp_path, seed, barrier)) for seed in (0, 1)
    ]
    for process in others:
        process.start()
    for process in others:
        process.join()
    assert [process.exitcode for process in others] == [0, 0]
    wanted = {row(seed=seed, split=number).trial for seed in (0, 1) for number in range(N_EACH)}
    for place in range(N_FILES):
        rows = read_rows(tmp_path / f"{place}.csv")
        assert {one.trial for one in rows} == wanted
        assert len(rows) == len(wanted)


def test_a_place_that_cannot_be_written_to_is_refused(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "rows.csv").mkdir()
    for path in (tmp_path / "file" / "rows.csv", tmp_path / "rows.csv"):
        with pytest.raises(OSError, match=r"file|rows\.csv"):
            check_writable(path)


def test_a_check_leaves_no_file_behind(path):
    check_writable(path)
    assert list(path.parent.iterdir()) == []


def test_the_last_row_of_a_trial_counts():
    rows = [BASE, borders(), row(accuracy=0.5)]
    assert sorted(one.accuracy for one in latest(rows)) == [0.5, borders().accuracy]


def test_rows_are_selected_by_all_values():
    rows = [BASE, borders(), borders(seed=1)]
    assert select(rows, method="borders", seed=1) == [borders(seed=1)]


def test_rows_of_this_repository_are_readable():
    path = Path(__file__).parents[3] / "docs" / "paper" / "rows.csv"
    rows = read_rows(path)
    assert rows
    assert all(isinstance(one, Row) and 0 <= one.uncertainty_coefficient <= 1 for one in rows)
