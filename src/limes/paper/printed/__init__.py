"""The numbers that the paper prints, table by table, as data."""

import csv
from functools import cache
from importlib.resources import files

__all__ = ["DATASETS", "find_printed", "printed"]

Line = dict[str, str]


@cache
def printed(table: str) -> tuple[Line, ...]:
    """Return the lines of one of the paper's tables.

    Examples
    --------
    >>> printed("datasets")[2]["train"]
    '4435'
    """
    text = files(__package__).joinpath(f"{table}.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def find_printed(table: str, **wanted: str) -> Line:
    """Return the one line with some words, an empty one where the paper has none.

    Examples
    --------
    >>> find_printed("sizes", dataset="sat")["support_vectors"]
    '1447'
    """
    lines = printed(table)
    found = (line for line in lines if all(line[key] == word for key, word in wanted.items()))
    return next(found, {})


def printed_number(line: Line, column: str) -> float | None:
    """Return a printed number, None where there is none.

    Examples
    --------
    >>> printed_number({"train": "4435", "test": "-"}, "train")
    4435.0
    """
    word = line.get(column, "")
    return None if word in ("", "-") else float(word)


DATASETS = tuple(line["dataset"] for line in printed("datasets"))
