"""Result rows in CSV files, appended under a lock and read with checks; tables of their means."""

import csv
import io
import math
import os
import tempfile
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from types import NoneType
from typing import Any, BinaryIO, NamedTuple, TypeVar, get_args, get_type_hints

import numpy as np

from limes.atomic import atomic_write, locked

Row = TypeVar("Row")
# Columns of earlier versions, and what they are called now.
OLD_COLUMNS = {
    "agreement_said": "agreement_estimated",
    "brier": "brier_score",
    "exact_seconds": "core_seconds",
    "machine": "computer",
    "microseconds_a_row": "microseconds_per_row",
    "microseconds_one_row": "microseconds_single_row",
    "moment": "timestamp",
    "seconds": "fit_seconds",
    "source_brier": "source_brier_score",
    "source_uc": "source_uncertainty_coefficient",
    "uc": "uncertainty_coefficient",
}


def append_rows(path: Path, rows: Sequence[Any]) -> None:
    """Append rows of one dataclass to a CSV file, and flush them to the disk.

    Several processes may append at once: each waits for the lock. Values are written in the order
    of the heading that the file has; columns that an earlier version did not write are left out.

    Parameters
    ----------
    path : Path
        The file; created with its heading if it does not exist.
    rows : sequence of dataclass instances
        Rows to append, all of one class.
    """
    if not rows:
        return
    row_type = type(rows[0])
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as stream, locked(stream):
        _cut_partial_line(stream)
        stream.seek(0)
        heading = next(csv.reader([stream.readline().decode()]), [])
        columns = _current_names(heading, row_type)
        _check_columns(path, heading, columns, row_type)
        stream.write(_to_csv(row_type, rows, columns).encode())
        stream.flush()
        os.fsync(stream.fileno())


def write_rows(path: Path, row_type: type[Row], rows: Iterable[Row]) -> None:
    """Write rows to a CSV file, which replaces the one there in a single step.

    Parameters
    ----------
    path : Path
        The file.
    row_type : type
        The dataclass of the rows.
    rows : iterable of dataclass instances
        All rows of the file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as stream:
        stream.write(_to_csv(row_type, rows, []).encode())


def read_rows(path: Path, row_type: type[Row]) -> list[Row]:
    """Read all rows of a CSV file; a missing file has none.

    Columns may have the names of earlier versions, and those with a default value may be missing.
    A last line without a line end was left by an interrupted run and is dropped.

    Parameters
    ----------
    path : Path
        Written by `append_rows` or `write_rows`.
    row_type : type
        The dataclass of the rows.

    Returns
    -------
    list of dataclass instances
        In the order of the file.
    """
    if not path.is_file():
        return []
    content = path.read_bytes()
    try:
        text = content[: content.rfind(b"\n") + 1].decode()
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        heading = next(reader, [])
        columns = _current_names(heading, row_type)
        _check_columns(path, heading, columns, row_type)
        types = get_type_hints(row_type)
        return [
            row_type(**_parse_line(words, columns, types, f"{path}:{reader.line_num}"))
            for words in reader
        ]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"{path} is not a table of comma-separated values ({error}). Choose another folder."
        ) from error


def check_writable(path: Path) -> None:
    """Raise the ``OSError`` that appending a row would raise, before anything long begins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        path.open("ab").close()
    else:
        tempfile.TemporaryFile(dir=path.parent).close()


def latest(rows: Iterable[Row], key: Callable[[Row], Hashable]) -> list[Row]:
    """Keep the last row of each key.

    Parameters
    ----------
    rows : iterable of dataclass instances
        The earliest first.
    key : callable
        From a row to what identifies its measurement.

    Returns
    -------
    list of dataclass instances
        One for each key, in the order in which the keys first occur.

    Examples
    --------
    >>> latest(["sat 1", "dna 1", "sat 2"], key=lambda row: row[:3])
    ['sat 2', 'dna 1']
    """
    return list({key(row): row for row in rows}.values())


def select(rows: Sequence[Row], **values: object) -> list[Row]:
    """Return the rows whose columns have the given values."""
    return [
        row for row in rows if all(getattr(row, name) == value for name, value in values.items())
    ]


def _column_names(row_type: type[Any]) -> list[str]:
    """Return the columns of a dataclass of rows."""
    return [field.name for field in fields(row_type)]


def _current_names(heading: Sequence[str], row_type: type[Any]) -> list[str]:
    """Translate a heading that an earlier version may have written."""
    known = _column_names(row_type)
    return [name if name in known else OLD_COLUMNS.get(name, name) for name in heading]


def _to_csv(row_type: type[Any], rows: Iterable[Any], columns: Sequence[str]) -> str:
    """Write rows as lines with these columns; without any, with all and the heading before."""
    text = io.StringIO()
    names = columns or _column_names(row_type)
    writer = csv.DictWriter(text, names, lineterminator="\n", extrasaction="ignore")
    if not columns:
        writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return text.getvalue()


def _cut_partial_line(stream: BinaryIO) -> None:
    """Cut what follows the last line end."""
    stream.seek(0)
    stream.truncate(stream.read().rfind(b"\n") + 1)


def _check_columns(
    path: Path, heading: Sequence[str], columns: Sequence[str], row_type: type[Any]
) -> None:
    """Raise an error if a file has the columns of other rows; one without a line is empty."""
    optional = {field.name for field in fields(row_type) if field.default is not MISSING}
    known = _column_names(row_type)
    expected = [name for name in known if name in columns or name not in optional]
    if heading and list(columns) != expected:
        raise ValueError(
            f"{path} must have the columns {known!r}, got {list(heading)!r}: it holds other rows, "
            "or rows of another version. Choose another folder."
        )


def _parse_line(
    words: Sequence[str], columns: Sequence[str], types: dict[str, Any], position: str
) -> dict[str, Any]:
    """Turn the words of a line into values by column."""
    if len(words) != len(columns):
        raise ValueError(
            f"{position} must have {len(columns)} values, got {len(words)}. Remove that line."
        )
    return {
        name: _parse_value(word, types[name], f"{position}: {name}")
        for name, word in zip(columns, words, strict=True)
    }


def _parse_value(word: str, value_type: Any, position: str) -> Any:
    """Turn a word into a value of its column's type."""
    types = get_args(value_type) or (value_type,)
    if str in types:
        return word
    if word == "" and NoneType in types:
        return None
    try:
        value = int(word) if int in types else float(word)
        if not math.isfinite(value):
            raise ValueError
    except ValueError:
        expected = "a whole number" if int in types else "a finite number"
        raise ValueError(
            f"{position} must be {expected}, got {word!r}. Remove that line."
        ) from None
    return value


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
