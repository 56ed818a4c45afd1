"""The numbers that the paper prints (CSV in `data/`)."""

import csv
from functools import cache
from importlib.resources import files

PrintedRow = dict[str, str]


@cache
def printed(table: str) -> tuple[PrintedRow, ...]:
    """Return the lines of one of the paper's tables.

    Examples
    --------
    >>> printed("datasets")[2]["train"]
    '4435'
    """
    text = files(__package__).joinpath("data", f"{table}.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def find_printed(table: str, **wanted: str) -> PrintedRow:
    """Return the one line with some words, an empty one where the paper has none.

    Examples
    --------
    >>> find_printed("sizes", dataset="sat")["support_vectors"]
    '1447'
    """
    lines = printed(table)
    found = (line for line in lines if all(line[key] == word for key, word in wanted.items()))
    return next(found, {})


def printed_number(line: PrintedRow, column: str) -> float | None:
    """Return a printed number, None where there is none.

    Examples
    --------
    >>> printed_number({"train": "4435", "test": "-"}, "train")
    4435.0
    """
    word = line.get(column, "")
    return None if word in ("", "-") else float(word)


DATASETS = tuple(line["dataset"] for line in printed("datasets"))


def printed_verdict(dataset: str) -> str:
    """Return the paper's verdict, with its star where a linear classifier is better.

    Examples
    --------
    >>> printed_verdict("dna")
    'fails*'
    """
    line = find_printed("verdicts", dataset=dataset)
    return f"{line['verdict']}{'*' if line['linear_is_better'] == 'yes' else ''}"
