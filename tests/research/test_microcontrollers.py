"""Rows and table of the page on microcontrollers."""

from pathlib import Path

from limes.research.microcontrollers import SizeRow, make_table
from limes.research.results import read_rows

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_shows_the_stored_rows():
    rows = read_rows(DOCS / "microcontrollers" / "sizes.csv", SizeRow)
    assert make_table(rows) in (DOCS / "microcontrollers.md").read_text()


def test_every_map_is_within_its_limit_and_agrees():
    rows = read_rows(DOCS / "microcontrollers" / "sizes.csv", SizeRow)
    assert all(row.table_bytes <= 16384 for row in rows)
    assert all(row.agreement >= 0.995 for row in rows if row.dtype == "int16")
    assert all(row.agreement == 1.0 for row in rows if row.dtype == "float32")


def test_what_does_not_fit_has_no_number():
    row = SizeRow("a", "int8", 2, "linear", 9, 8, 7, 1.0, 0.5, None, None, 4, 3, 2)
    assert make_table([row]).splitlines()[-1].count("| none |") == 1
    assert "| 50.00% | none | none | 4 | 3 | 2 |" in make_table([row])
