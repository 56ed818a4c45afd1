"""A table of numbers with their spread, as Markdown, LaTeX and comma-separated values."""

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from limes.paper.statistics import Spread

Cell = str | int | float | Spread | None

NONE = "-"
# Numbers with more decimals are written with an exponent.
MOST_PLACES = 5
# What LaTeX has other words for.
TEX = {"&": r"\&", "%": r"\%", "_": r"\_", "µ": r"$\mu$", "¹": "$^1$"}


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
