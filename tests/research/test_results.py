"""Result rows: what is written is read, and no interruption loses more than a line."""

import csv
import io
import multiprocessing
from dataclasses import dataclass, fields
from pathlib import Path

import pytest

from limes.research.accuracy import AccuracyRow
from limes.research.bench.run import BenchmarkRow
from limes.research.paper.figures import FigurePoint
from limes.research.paper.plan import TrialRow
from limes.research.results import (
    OLD_COLUMNS,
    Column,
    Spread,
    Table,
    append_rows,
    check_writable,
    latest,
    read_rows,
    select,
    spread_of,
    write_rows,
)
from tests.research.paper.cases import BASE, borders, row

DOCS = Path(__file__).parents[2] / "docs"
CHECKED_IN = {
    "accuracy/rows.csv": AccuracyRow,
    "benchmarks/results.csv": BenchmarkRow,
    "paper/rows.csv": TrialRow,
    "paper/points.csv": FigurePoint,
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "rows.csv"


def read(path):
    return read_rows(path, TrialRow)


def test_rows_come_back_as_they_were(path):
    rows = [BASE, borders(setting=0.1 + 0.2, agreement=1 / 3), row(model='a "b", c\nd', seed=2)]
    append_rows(path, rows[:1])
    append_rows(path, rows[1:])
    assert read(path) == rows


def test_no_rows_make_no_file(path):
    append_rows(path, [])
    assert not path.exists()


def test_there_are_no_rows_without_a_file(path):
    assert read(path) == []


def test_an_empty_file_has_no_rows(path):
    path.parent.mkdir()
    path.touch()
    assert read(path) == []


def test_written_rows_replace_the_file(path):
    points = [FigurePoint("class 1", 0.1 + 0.2, 1 / 3)]
    for rows in (points * 2, points):
        write_rows(path, FigurePoint, rows)
    assert read_rows(path, FigurePoint) == points


@pytest.mark.parametrize("n_lost", [1, 5, 60])
def test_a_partial_line_is_dropped(path, n_lost):
    append_rows(path, [BASE, row(seed=1)])
    path.write_bytes(path.read_bytes()[:-n_lost])
    assert read(path) == [BASE]


@pytest.mark.parametrize("n_lost", [1, 5, 60])
def test_a_row_after_a_partial_line_is_whole(path, n_lost):
    append_rows(path, [BASE, row(seed=1)])
    path.write_bytes(path.read_bytes()[:-n_lost])
    append_rows(path, [row(seed=2)])
    assert [one.seed for one in read(path)] == [0, 2]


def test_a_partial_heading_is_written_again(path):
    path.parent.mkdir()
    path.write_text("experiment,data")
    append_rows(path, [BASE])
    assert read(path) == [BASE]


@pytest.mark.parametrize("row_type", CHECKED_IN.values(), ids=lambda kind: kind.__name__)
def test_a_file_of_other_rows_is_refused(path, row_type):
    path.parent.mkdir()
    path.write_text("name,age\nAda,36\n")
    with pytest.raises(ValueError, match=r"must have the columns.*got \['name', 'age'\]"):
        read_rows(path, row_type)


def test_nothing_is_appended_to_a_file_of_other_rows(path):
    path.parent.mkdir()
    path.write_text("name,age\nAda,36\n")
    with pytest.raises(ValueError, match=r"must have the columns.*got \['name', 'age'\]"):
        append_rows(path, [BASE])
    assert path.read_text() == "name,age\nAda,36\n"


@pytest.mark.parametrize("line", ["results,sat,svm", "," * 30])
def test_a_line_with_too_few_or_too_many_values_is_named(path, line):
    append_rows(path, [BASE])
    with path.open("a") as stream:
        stream.write(f"{line}\n")
    n_values = line.count(",") + 1
    with pytest.raises(ValueError, match=rf"rows\.csv:3 must have 26 values, got {n_values}"):
        read(path)


@pytest.mark.parametrize("word", ["nan", "inf", "much"])
def test_a_value_that_is_not_a_finite_number_is_named(path, word):
    append_rows(path, [row(accuracy=0.123456)])
    path.write_text(path.read_text().replace("0.123456", word))
    with pytest.raises(
        ValueError, match=rf"rows\.csv:2: accuracy must be a finite number, got '{word}'"
    ):
        read(path)


def test_a_count_that_is_not_a_whole_number_is_named(path):
    append_rows(path, [row(n_test=8642)])
    path.write_text(path.read_text().replace("8642", "86.5"))
    with pytest.raises(ValueError, match=r"rows\.csv:2: n_test must be a whole number"):
        read(path)


def test_an_empty_value_is_none_only_where_a_column_allows_it(path):
    @dataclass(frozen=True)
    class Pair:
        needed: float
        optional: float | None

    path.parent.mkdir()
    path.write_text("needed,optional\n1.5,\n")
    assert read_rows(path, Pair) == [Pair(1.5, None)]
    path.write_text("needed,optional\n,1.5\n")
    with pytest.raises(ValueError, match=r"rows\.csv:2: needed must be a finite number, got ''"):
        read_rows(path, Pair)


@pytest.mark.parametrize("content", [b"\xff\xfe\n", b'a"\n"b"c\n', b"PK\x03\x04\n\x80"])
def test_a_file_that_is_not_text_is_named(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"rows\.csv (is not a table|must have the columns)"):
        read(path)


def test_a_bad_number_of_the_points_is_named(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("kind,x,y\nclass 1,0.5,0.5\nclass 1,0.5,half\n")
    with pytest.raises(ValueError, match=r"points\.csv:3: y must be a finite number, got 'half'"):
        read_rows(path, FigurePoint)


def write_without_last_column(path):
    """Write a row as versions before the last column did."""
    append_rows(path, [BASE])
    lines = path.read_text().splitlines()
    path.write_text("".join(f"{line.rpartition(',')[0]}\n" for line in lines))


def test_rows_of_older_versions_are_read_and_continued_without_the_new_column(path):
    write_without_last_column(path)
    append_rows(path, [row(seed=1, trial_seconds=3.5)])
    assert read(path) == [BASE, row(seed=1)]
    assert path.read_text().count("trial_seconds") == 0


def test_the_cost_of_a_trial_comes_back(path):
    append_rows(path, [row(trial_seconds=3.5)])
    assert read(path)[0].trial_seconds == 3.5
    assert fields(TrialRow)[-1].name == "trial_seconds"


def test_columns_with_old_names_are_read_and_continued(path):
    append_rows(path, [BASE])
    current = path.read_text()
    heading = current.partition("\n")[0]
    for old, new in OLD_COLUMNS.items():
        if old in ("exact_seconds", "machine", "moment"):
            heading = heading.replace(new, old)
    assert all(f",{old}," in heading for old in ("exact_seconds", "machine", "moment"))
    path.write_text(f"{heading}\n{current.partition(chr(10))[2]}")
    append_rows(path, [row(seed=1)])
    assert read(path) == [BASE, row(seed=1)]
    assert path.read_text().startswith(f"{heading}\n")


def test_every_old_column_is_one_of_today():
    known = {field.name for row_type in CHECKED_IN.values() for field in fields(row_type)}
    assert set(OLD_COLUMNS.values()) <= known
    assert not set(OLD_COLUMNS) & known


N_FILES, N_EACH = 25, 3


def append_at_once(folder, seed, barrier):
    """Append rows to one file after another, at the same time as another process."""
    for number in range(N_FILES):
        barrier.wait()
        for split in range(N_EACH):
            append_rows(folder / f"{number}.csv", [row(seed=seed, split=split)])


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
    expected = {row(seed=seed, split=split).trial for seed in (0, 1) for split in range(N_EACH)}
    for number in range(N_FILES):
        rows = read(tmp_path / f"{number}.csv")
        assert {one.trial for one in rows} == expected
        assert len(rows) == len(expected)


def test_a_path_that_cannot_be_written_to_is_refused(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "rows.csv").mkdir()
    for path in (tmp_path / "file" / "rows.csv", tmp_path / "rows.csv"):
        with pytest.raises(OSError, match=r"file|rows\.csv"):
            check_writable(path)


def test_a_check_leaves_no_file_behind(path):
    check_writable(path)
    assert list(path.parent.iterdir()) == []


def test_the_last_row_of_a_key_is_kept():
    rows = [BASE, borders(), row(accuracy=0.5)]
    kept = latest(rows, key=lambda row: row.trial)
    assert sorted(one.accuracy for one in kept) == [0.5, borders().accuracy]


def test_rows_are_selected_by_all_values():
    rows = [BASE, borders(), borders(seed=1)]
    assert select(rows, method="borders", seed=1) == [borders(seed=1)]


@pytest.mark.parametrize("name", CHECKED_IN)
def test_the_rows_of_this_repository_are_readable(name):
    rows = read_rows(DOCS / name, CHECKED_IN[name])
    assert rows
    skills = [getattr(one, "uncertainty_coefficient", 0.5) for one in rows]
    assert all(0 <= skill <= 1 for skill in skills)


SMALL = Table(
    "small",
    "Times & skill",
    [Column("data_set"), Column("skill", "skill"), Column("s", "seconds"), Column("n", "count")],
    [["a", Spread(0.76432, 0.0071, 3), 0.5, 12], ["b", Spread(0.5), None, Spread(7.0, 0.0, 3)]],
    "50 % of it",
)


def test_markdown_rounds_to_the_spread():
    assert SMALL.markdown().splitlines()[2:4] == [
        "| a | 0.764 ± 0.007 | 0.500 | 12 |",
        "| b | 0.500 | - | 7 |",
    ]


def test_text_is_on_the_left_numbers_on_the_right_and_the_note_below():
    lines = SMALL.markdown().splitlines()
    assert lines[:2] == ["| data_set | skill | s | n |", "| --- | ---: | ---: | ---: |"]
    assert lines[4:] == ["", "50 % of it"]


def test_csv_has_all_digits():
    rows = list(csv.DictReader(io.StringIO(SMALL.csv())))
    assert rows[0] == {
        "data_set": "a",
        "skill": "0.76432",
        "skill std": "0.0071",
        "s": "0.5",
        "n": "12",
        "n std": "",
    }
    assert rows[1]["skill std"] == ""


def test_ratios_have_three_significant_digits():
    ratios = Table("ratios", "", [Column("ratio", "ratio")], [[1076.8], [4.0], [0.9271]])
    assert ratios.markdown().splitlines()[2:] == ["| 1080 |", "| 4.00 |", "| 0.927 |"]


@pytest.mark.parametrize(("kind", "text"), [(".4f", "0.1235"), (".2%", "12.35%"), ("g", "0.12346")])
def test_a_kind_may_be_a_format_specification(kind, text):
    table = Table("t", "", [Column("value", kind)], [[0.12346]])
    assert table.markdown().splitlines()[1:] == ["| ---: |", f"| {text} |"]


def test_a_spread_leaves_out_rows_without_a_value():
    rows = [row(core_seconds=seconds) for seconds in (1.0, None, 3.0)]
    assert spread_of(rows, "core_seconds") == Spread(2.0, pytest.approx(2**0.5), 2)
    assert spread_of(rows[1:2], "core_seconds") is None
