"""Means with spread; tables as Markdown and CSV."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from limes.research.paper.printed import PrintedRow, printed_number
from limes.research.paper.rows import Row

NONE = "-"
# Numbers with more decimals are written with an exponent.
MOST_PLACES = 5
# What LaTeX has other words for.
TEX = {"&": r"\&", "%": r"\%", "_": r"\_", "µ": r"$\mu$", "¹": "$^1$"}


class Spread(NamedTuple):
    """A mean and its standard deviation, None where there was one trial."""

    mean: float
    std: float | None = None
    n_trials: int = 1


class PowerLaw(NamedTuple):
    """y = factor x^exponent."""

    exponent: float
    factor: float


class Line(NamedTuple):
    """y = intercept + slope x."""

    slope: float
    intercept: float


def spread(values: Iterable[float]) -> Spread | None:
    """Return mean and standard deviation, None of no values.

    Examples
    --------
    >>> spread([1.0, 3.0])
    Spread(mean=2.0, std=1.4142135623730951, n_trials=2)
    """
    found = np.array(list(values), dtype=np.float64)
    if not len(found):
        return None
    std = float(found.std(ddof=1)) if len(found) > 1 else None
    return Spread(float(found.mean()), std, len(found))


def spread_of(rows: Sequence[Row], column: str) -> Spread | None:
    """Return mean and standard deviation of a column, None where no row has a value."""
    values = [getattr(row, column) for row in rows]
    return spread(value for value in values if value is not None)


def by_setting(rows: Sequence[Row], column: str) -> dict[float, Spread]:
    """Return mean and spread of a column for each setting, in rising order."""
    settings = sorted({row.setting for row in rows if row.setting is not None})
    found = {
        one: spread_of([row for row in rows if row.setting == one], column) for one in settings
    }
    return {setting: value for setting, value in found.items() if value is not None}


def fit_power_law(x: Sequence[float], y: Sequence[float]) -> PowerLaw:
    """Fit a power law, by least squares of the logarithms.

    Examples
    --------
    >>> law = fit_power_law([1, 2, 4], [3, 12, 48])
    >>> round(law.exponent, 6), round(law.factor, 6)
    (2.0, 3.0)
    """
    exponent, logarithm = np.polyfit(np.log(x), np.log(y), 1)
    return PowerLaw(float(exponent), float(np.exp(logarithm)))


def fit_line(x: Sequence[float], y: Sequence[float]) -> Line:
    """Fit a straight line by least squares.

    Each difference counts by its share of the value: times of large models would otherwise decide
    alone, and the intercept would be noise.

    Examples
    --------
    >>> line = fit_line([1, 2, 3], [5, 7, 9])
    >>> round(line.slope, 6), round(line.intercept, 6)
    (2.0, 3.0)
    """
    slope, intercept = np.polyfit(x, y, 1, w=1 / np.asarray(y, dtype=np.float64))
    return Line(float(slope), float(intercept))


def saturation(skills: dict[float, Spread], *, share: float = 0.98) -> float:
    """Return the first setting from which on the skill stays near its highest.

    Examples
    --------
    >>> saturation({1.0: Spread(0.2), 10.0: Spread(0.5), 100.0: Spread(0.5)})
    10.0
    """
    limit = share * max(one.mean for one in skills.values())
    low = [setting for setting, one in skills.items() if one.mean < limit]
    return min(setting for setting in skills if setting > max(low, default=-np.inf))


Cell = str | int | float | Spread | None


@dataclass(frozen=True)
class Column:
    """A column: its head, and what kind of numbers it holds."""

    # Different for each column of a table.
    head: str
    # How its numbers are written: whole, as a change in percent, with three decimals, with a sign
    # too, with three digits that count at least, or with just three.
    kind: str = "text"


@dataclass(frozen=True)
class Table:
    """One of the paper's tables, with ours beside it."""

    # Of its files.
    name: str
    # What it shows.
    title: str
    # What each column holds.
    columns: Sequence[Column]
    # None where there is no number.
    lines: Sequence[Sequence[Cell]]
    # What a reader must know.
    note: str = ""

    def markdown(self) -> str:
        """Write it for a page."""
        heads = [column.head for column in self.columns]
        rules = ["---" if column.kind == "text" else "---:" for column in self.columns]
        lines = [heads, rules, *self._words(plus_minus="±")]
        text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"{text}\n\n{self.note}\n" if self.note else f"{text}\n"

    def latex(self) -> str:
        """Write it for an article."""
        kinds = "".join("l" if column.kind == "text" else "r" for column in self.columns)
        heads = [_escape(column.head) for column in self.columns]
        body = [[_escape(word) for word in line] for line in self._words(plus_minus=r"$\pm$")]
        lines = [
            r"\begin{table}",
            rf"\caption{{{_escape(self.title)}. {_escape(self.note)}}}",
            rf"\begin{{tabular}}{{{kinds}}}",
            rf"{' & '.join(heads)} \\ \hline",
            *(rf"{' & '.join(line)} \\" for line in body),
            r"\end{tabular}",
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        """Return CSV: numbers with all digits, spreads in columns of their own."""
        has_spread = [
            any(isinstance(line[place], Spread) for line in self.lines)
            for place in range(len(self.columns))
        ]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        heads = zip([column.head for column in self.columns], has_spread, strict=True)
        writer.writerow(word for head, wide in heads for word in [head, f"{head} std"][: 1 + wide])
        for line in self.lines:
            cells = zip(line, has_spread, strict=True)
            writer.writerow(word for cell, wide in cells for word in _raw(cell)[: 1 + wide])
        return text.getvalue()

    def _words(self, *, plus_minus: str) -> list[list[str]]:
        """Write the numbers of all lines."""
        return [
            [
                _write(cell, column.kind, plus_minus)
                for cell, column in zip(line, self.columns, strict=True)
            ]
            for line in self.lines
        ]


def three_digits(value: float) -> str:
    """Write a number with three digits that count.

    Examples
    --------
    >>> three_digits(1234.5), three_digits(0.01234), three_digits(0.00001234)
    ('1234', '0.0123', '1.23e-05')
    """
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}" if abs(value) < 1e-4 else f"{value:#.3g}".rstrip(".")


def three_significant(value: float) -> str:
    """Write a ratio with three digits that count, and noughts after them.

    Examples
    --------
    >>> three_significant(4765.4), three_significant(22.678)
    ('4770', '22.7')
    """
    return three_digits(float(f"{value:.3g}"))


WRITERS: dict[str, Callable[[float], str]] = {
    "text": three_digits,
    "count": lambda value: f"{value:.0f}",
    "percent": lambda value: f"{value:+.1%}",
    "skill": lambda value: f"{value:.3f}",
    "change": lambda value: f"{value:+.3f}",
    "seconds": three_digits,
    "ratio": three_significant,
}


def _write(cell: Cell, kind: str, plus_minus: str) -> str:
    """Write one cell."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return NONE
    if isinstance(cell, str):
        return cell
    if not isinstance(cell, Spread):
        return WRITERS[kind](cell)
    if cell.std is None or (kind == "count" and cell.std == 0):
        return WRITERS[kind](cell.mean)
    places = _places(cell.std, kind)
    if places > MOST_PLACES:
        return f"{cell.mean:.2g} {plus_minus} {cell.std:.1g}"
    return f"{cell.mean:.{places}f} {plus_minus} {cell.std:.{places}f}"


def _places(std: float, kind: str) -> int:
    """Return the decimals of a spread: its first digit, and the next where the first is a 1."""
    least = 3 if kind == "skill" else 0
    if std == 0:
        return least
    exponent = math.floor(math.log10(std))
    return max(least, (std < 1.95 * 10.0**exponent) - exponent)


def _raw(cell: Cell) -> list[str]:
    """Return a cell and its spread as words with all digits."""
    if isinstance(cell, Spread):
        return [repr(cell.mean), "" if cell.std is None else repr(cell.std)]
    return ["" if cell is None else str(cell), ""]


def _escape(text: str) -> str:
    """Write words as LaTeX has them."""
    return "".join(TEX.get(letter, letter) for letter in text)


def printed_spread(line: PrintedRow, column: str, std: str) -> Spread | None:
    """Return a number of the paper with its spread."""
    mean = printed_number(line, column)
    return None if mean is None else Spread(mean, printed_number(line, std))
