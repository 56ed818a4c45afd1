"""Trials as rows of a file that survives whatever stops a run."""

import csv
import io
import math
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from limes.atomic import locked
from limes.research.bench.results import parse_value


class Candidate(NamedTuple):
    """What is tried: the name of a row."""

    experiment: str
    dataset: str
    method: str
    setting: float | None
    seed: int
    split: int


@dataclass(frozen=True)
class Row:
    """What came out of one trial.

    Parameters
    ----------
    experiment, dataset, method, setting, seed, split
        As in `Trial`.
    n_train, n_test, n_features, n_classes : int
        Rows that were trained on and tested on, their features and classes.
    part : str
        "whole", or "part" where only some rows of the dataset are at hand.
    accuracy, uncertainty_coefficient : float
        Skill on the test rows.
    agreement : float or None
        Share of the test rows with the source's label, where there is a source.
    train_seconds : float
        Processor time of the fit with one thread; that of the source is not in it.
    test_seconds : float
        Processor time of the quickest batch over its rows, times the test rows; one thread.
    timed_rows : int
        Rows of that batch.
    cpu_share : float
        Processor time of that batch over wall-clock time: below 1 on a busy machine.
    exact_seconds : float or None
        The same as `test_seconds` for a support vector machine that is summed in limes' core
        rather than by LIBSVM.
    n_support, n_borders : int or None
        Support vectors and border points in all.
    model : str
        More about the model, such as its scheme.
    versions, machine : str
        What it was measured with.
    moment : str
        When.
    trial_seconds : float or None
        Processor time of all that the trial did, answers and timing too; a source that several
        trials share is in the first of them. Rows of older versions have none.
    """

    experiment: str
    dataset: str
    method: str
    setting: float | None
    seed: int
    split: int
    n_train: int
    n_test: int
    n_features: int
    n_classes: int
    part: str
    accuracy: float
    uncertainty_coefficient: float
    agreement: float | None
    train_seconds: float
    test_seconds: float
    timed_rows: int
    cpu_share: float
    exact_seconds: float | None
    n_support: int | None
    n_borders: int | None
    model: str
    versions: str
    machine: str
    moment: str
    trial_seconds: float | None = None

    @property
    def trial(self) -> Candidate:
        """What was tried."""
        return Candidate(*(getattr(self, name) for name in Candidate._fields))


KINDS = {column.name: column.type for column in fields(Row)}
COLUMNS = list(KINDS)
# Files of older versions lack the last column; they are read, and go on without it.
HEADINGS = (COLUMNS, COLUMNS[:-1])


def append_row(path: Path, row: Row) -> None:
    """Add a row at the end of a file, and bring it to the disk.

    Several processes may do so at once: each waits until the one before has written its line.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as stream, locked(stream):
        _cut_half_line(stream)
        stream.seek(0)
        heading = stream.readline()
        n_columns = heading.count(b",") + 1
        stream.write(_write_line(row, is_first=not heading, n_columns=n_columns))
        stream.flush()
        os.fsync(stream.fileno())


def check_writable(path: Path) -> None:
    """Raise the ``OSError`` that adding a row would raise, before anything long begins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        path.open("ab").close()
    else:
        tempfile.TemporaryFile(dir=path.parent).close()


def read_rows(path: Path) -> list[Row]:
    """Read all rows of a file, none where there is no file.

    Parameters
    ----------
    path : Path
        Written by `append_row`. A last line without its end is what an interrupted run left of it,
        and is dropped.

    Returns
    -------
    list of Row
        In the order of the file.
    """
    if not path.is_file():
        return []
    lines = read_csv(path, HEADINGS)
    return [_parse(line, place) for place, line in lines]


def read_csv(
    path: Path, headings: Sequence[Sequence[str]]
) -> list[tuple[str, dict[str, str | None]]]:
    """Read a table of comma-separated values, and where each line stands."""
    content = path.read_bytes()
    try:
        text = content[: content.rfind(b"\n") + 1].decode()
        table = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        _check_heading(path, table.fieldnames, headings)
        return [(f"{path}:{table.line_num}", line) for line in table]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"{path} is no table of comma-separated values ({error}). Choose another folder."
        ) from error


def latest(rows: Iterable[Row]) -> list[Row]:
    """Keep the last row of each trial.

    Parameters
    ----------
    rows : iterable of Row
        The earliest first.

    Returns
    -------
    list of Row
        One for each trial.
    """
    return list({row.trial: row for row in rows}.values())


def select(rows: Sequence[Row], **wanted: object) -> list[Row]:
    """Return the rows with some values."""
    return [
        row for row in rows if all(getattr(row, name) == value for name, value in wanted.items())
    ]


def _write_line(row: Row, *, is_first: bool, n_columns: int) -> bytes:
    """Write a row as a line of so many columns, after the heading where it is the first."""
    columns = COLUMNS if is_first else COLUMNS[:n_columns]
    words = io.StringIO()
    writer = csv.DictWriter(words, columns, lineterminator="\n", extrasaction="ignore")
    if is_first:
        writer.writeheader()
    writer.writerow(asdict(row))
    return words.getvalue().encode()


def _cut_half_line(stream: BinaryIO) -> None:
    """Cut what stands after the last end of a line."""
    stream.seek(0)
    stream.truncate(stream.read().rfind(b"\n") + 1)


def _check_heading(path: Path, found: Any, headings: Sequence[Sequence[str]]) -> None:
    """Refuse a table with other columns; one without any line is empty."""
    if found is not None and list(found) not in [list(one) for one in headings]:
        raise ValueError(
            f"{path} must have the columns {list(headings[0])!r}, got {list(found)!r}: it is "
            "another file, or one of another version. Choose another folder."
        )


def _parse(line: dict[str, str | None], place: str) -> Row:
    """Turn the words of a line into numbers."""
    words = {name: line[name] for name in KINDS if name in line}
    if None in line or None in words.values():
        raise ValueError(f"{place} is not a trial: too many or too few values. Remove that line.")
    return Row(**{name: parse_cell(word or "", name, place) for name, word in words.items()})


def parse_cell(word: str, column: str, place: str, kind: Any = None) -> Any:
    """Turn one word into a value of its column's kind, or say where it is none."""
    kind = kind or KINDS[column]
    try:
        value = parse_value(word, kind)
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError
    except ValueError:
        what = "a whole number" if kind in (int, int | None) else "a finite number"
        raise ValueError(
            f"{place}: {column} must be {what}, got {word!r}. Remove that line."
        ) from None
    return value
