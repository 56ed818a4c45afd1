"""Tables of means with their spread, as Markdown and CSV."""

import csv
import io

import pytest

from limes.research.table import Column, Spread, Table, spread_of
from tests.research.paper.cases import row

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
