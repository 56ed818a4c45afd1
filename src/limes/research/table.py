"""Means with their spread, and tables of them as Markdown and CSV."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

MISSING_NUMBER = "-"
# Numbers with more decimals are written with an exponent.
MAX_DECIMALS = 5


class Spread(NamedTuple):
    """A mean and its standard deviation, which is None for a single trial."""

    mean: float
    std: float | None = None
    n_trials: int = 1


Cell = str | int | float | Spread | None


@dataclass(frozen=True)
class Column:
    """A column: its head, and how its numbers are written."""

    # Different for each column of a table.
    head: str
    # "text", one of FORMATS, or a format specification such as ".4f".
    kind: str = "text"


@dataclass(frozen=True)
class Table:
    """Lines of numbers with a head for each column."""

    # Of its files.
    name: str
    title: str
    columns: Sequence[Column]
    # None where there is no number.
    lines: Sequence[Sequence[Cell]]
    # Printed below the table.
    note: str = ""

    def markdown(self) -> str:
        """Return Markdown: numbers rounded to their spread, text to the left."""
        heads = [column.head for column in self.columns]
        rules = ["---" if column.kind == "text" else "---:" for column in self.columns]
        lines = [heads, rules, *map(self._format_line, self.lines)]
        text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"{text}\n\n{self.note}\n" if self.note else f"{text}\n"

    def csv(self) -> str:
        """Return CSV: numbers with all digits, standard deviations in columns of their own."""
        has_spread = [
            any(isinstance(line[column], Spread) for line in self.lines)
            for column in range(len(self.columns))
        ]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        heads = zip([column.head for column in self.columns], has_spread, strict=True)
        writer.writerow(word for head, wide in heads for word in [head, f"{head} std"][: 1 + wide])
        for line in self.lines:
            cells = zip(line, has_spread, strict=True)
            writer.writerow(word for cell, wide in cells for word in _all_digits(cell)[: 1 + wide])
        return text.getvalue()

    def _format_line(self, line: Sequence[Cell]) -> list[str]:
        """Format the cells of one line."""
        return [
            _format_cell(cell, column.kind) for cell, column in zip(line, self.columns, strict=True)
        ]


def three_digits(value: float) -> str:
    """Format a number with three significant digits.

    Examples
    --------
    >>> three_digits(1234.5), three_digits(0.01234), three_digits(0.00001234)
    ('1234', '0.0123', '1.23e-05')
    """
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}" if abs(value) < 1e-4 else f"{value:#.3g}".rstrip(".")


def rounded_to_three_digits(value: float) -> str:
    """Format a ratio with three significant digits, zeros after them.

    Examples
    --------
    >>> rounded_to_three_digits(4765.4), rounded_to_three_digits(22.678)
    ('4770', '22.7')
    """
    return three_digits(float(f"{value:.3g}"))


FORMATS: dict[str, Callable[[float], str]] = {
    "text": three_digits,
    "count": lambda value: f"{value:.0f}",
    "percent": lambda value: f"{value:+.1%}",
    "skill": lambda value: f"{value:.3f}",
    "change": lambda value: f"{value:+.3f}",
    "seconds": three_digits,
    "ratio": rounded_to_three_digits,
}


def spread(values: Iterable[float]) -> Spread | None:
    """Return mean and standard deviation, None of no values.

    Examples
    --------
    >>> spread([1.0, 3.0])
    Spread(mean=2.0, std=1.4142135623730951, n_trials=2)
    """
    numbers = np.array(list(values), dtype=np.float64)
    if not len(numbers):
        return None
    std = float(numbers.std(ddof=1)) if len(numbers) > 1 else None
    return Spread(float(numbers.mean()), std, len(numbers))


def spread_of(rows: Sequence[Any], column: str) -> Spread | None:
    """Return mean and standard deviation of a column, None where no row has a value."""
    values = [getattr(row, column) for row in rows]
    return spread(value for value in values if value is not None)


def mean_of(rows: Sequence[Any], column: str) -> float:
    """Return the mean of a column."""
    return float(np.mean([getattr(row, column) for row in rows]))


def goal_line(goal: str, cases: Iterable[tuple[str, bool]]) -> str:
    """Return a goal, how many of the named cases meet it and which do not, as a line.

    Examples
    --------
    >>> goal_line("At most 1 s", [("heart", True), ("sat", False)])
    '- At most 1 s: 1 of 2; not sat.'
    """
    met = list(cases)
    missed = [name for name, is_met in met if not is_met]
    exceptions = f"; not {', '.join(missed)}" if missed else ""
    return f"- {goal}: {len(met) - len(missed)} of {len(met)}{exceptions}."


class Goal(NamedTuple):
    """What was asked for, whether it is so, and the numbers that show it."""

    asked: str
    is_met: bool
    measured: str
    # Whether all that it is about was measured.
    is_complete: bool = True

    @property
    def line(self) -> str:
        """One line of a list.

        Examples
        --------
        >>> Goal("At most 80 s", True, "57.1 s").line
        '- At most 80 s: **yes**, 57.1 s.'
        """
        verdict = f"**{yes_or_no(self.is_met)}**" if self.is_complete else "not all measured yet"
        return f"- {self.asked}: {verdict}, {self.measured}."


def yes_or_no(is_met: bool) -> str:
    """Return a word for a goal that is met or not."""
    return "yes" if is_met else "no"


def _format_cell(cell: Cell, kind: str) -> str:
    """Format one cell."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return MISSING_NUMBER
    if isinstance(cell, str):
        return cell
    if not isinstance(cell, Spread):
        return _format_number(cell, kind)
    if cell.std is None or (kind == "count" and cell.std == 0):
        return _format_number(cell.mean, kind)
    n_decimals = _decimals(cell.std, kind)
    if n_decimals > MAX_DECIMALS:
        return f"{cell.mean:.2g} ± {cell.std:.1g}"
    return f"{cell.mean:.{n_decimals}f} ± {cell.std:.{n_decimals}f}"


def _format_number(value: float, kind: str) -> str:
    """Format a number by the kind of its column."""
    return FORMATS[kind](value) if kind in FORMATS else format(value, kind)


def _decimals(std: float, kind: str) -> int:
    """Return the decimals of a spread: up to its first digit, one more if that is a 1."""
    least = 3 if kind == "skill" else 0
    if std == 0:
        return least
    exponent = math.floor(math.log10(std))
    return max(least, (std < 1.95 * 10.0**exponent) - exponent)


def _all_digits(cell: Cell) -> list[str]:
    """Return a cell and its standard deviation with all digits."""
    if isinstance(cell, Spread):
        return [repr(cell.mean), "" if cell.std is None else repr(cell.std)]
    return ["" if cell is None else str(cell), ""]
