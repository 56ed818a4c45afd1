"""The numbers that the paper prints (CSV in `data/`)."""

import csv
from functools import cache
from importlib.resources import files

from limes.research.table import Spread

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


DATASETS = tuple(line["dataset"] for line in printed("datasets"))


def find_printed(table: str, **values: str) -> PrintedRow:
    """Return the first line with these values, an empty one if the paper has none.

    Examples
    --------
    >>> find_printed("sizes", dataset="sat")["support_vectors"]
    '1447'
    """
    lines = printed(table)
    matching = (line for line in lines if all(line[key] == word for key, word in values.items()))
    return next(matching, {})


def printed_number(line: PrintedRow, column: str) -> float | None:
    """Return a printed number, None if there is none.

    Examples
    --------
    >>> printed_number({"train": "4435", "test": "-"}, "train")
    4435.0
    """
    word = line.get(column, "")
    return None if word in ("", "-") else float(word)


def printed_spread(line: PrintedRow, column: str, std_column: str) -> Spread | None:
    """Return a printed mean with its standard deviation, None if there is none.

    Examples
    --------
    >>> printed_spread({"mean": "0.764", "std": "0.007"}, "mean", "std")
    Spread(mean=0.764, std=0.007, n_trials=1)
    """
    mean = printed_number(line, column)
    return None if mean is None else Spread(mean, printed_number(line, std_column))


def printed_verdict(dataset: str) -> str:
    """Return the paper's verdict, with its star where a linear classifier is better.

    Examples
    --------
    >>> printed_verdict("dna")
    'fails*'
    """
    line = find_printed("verdicts", dataset=dataset)
    return f"{line['verdict']}{'*' if line['linear_is_better'] == 'yes' else ''}"
