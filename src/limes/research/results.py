"""Result rows: dataclasses in a CSV file, appended under a lock and read with checks."""

import csv
import io
import math
import os
import tempfile
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from types import NoneType
from typing import Any, BinaryIO, TypeVar, get_args, get_type_hints

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
