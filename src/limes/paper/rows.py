"""Trials as rows of a file that survives whatever stops a run."""

import csv
import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import NamedTuple

from limes.bench.results import parse_value


class Trial(NamedTuple):
    """What is tried: the name of a row.

    Parameters
    ----------
    experiment : str
        "results", "subsampled", "borders" or "training": see ``limes.paper.plan``.
    dataset, method : str
        On what, and what.
    setting : float or None
        Fraction of the training rows, border points or training rows: what the experiment varies.
    seed : int
        Of all that is random in the method.
    split : int
        Of a random split into training and test rows.
    """

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

    @property
    def trial(self) -> Trial:
        """What was tried."""
        return Trial(*(getattr(self, name) for name in Trial._fields))


KINDS = {column.name: column.type for column in fields(Row)}
COLUMNS = list(KINDS)


def append_row(path: Path, row: Row) -> None:
    """Add a row at the end of a file, and bring it to the disk.

    Parameters
    ----------
    path : Path
        Made with its folder if it is not there. What an interrupted run left of a line is cut.
    row : Row
        What to add.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.is_file() or not _cut_half_line(path)
    words = io.StringIO()
    writer = csv.DictWriter(words, COLUMNS, lineterminator="\n")
    if is_new:
        writer.writeheader()
    writer.writerow(asdict(row))
    with path.open("ab") as stream:
        stream.write(words.getvalue().encode())
        stream.flush()
        os.fsync(stream.fileno())


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
    text = path.read_text(encoding="utf-8")
    table = csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1]))
    if table.fieldnames is not None and list(table.fieldnames) != COLUMNS:
        raise ValueError(
            f"{path} must have the columns {COLUMNS!r}, got {list(table.fieldnames)!r}: it is no "
            "file of trials, or one of another version. Choose another folder."
        )
    return [_parse(line, f"{path}:{table.line_num}") for line in table]


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
    """Return the rows with some values.

    Parameters
    ----------
    rows : sequence of Row
        From any trials.
    **wanted
        Values by column.

    Returns
    -------
    list of Row
        Those that have all of them.
    """
    return [
        row for row in rows if all(getattr(row, name) == value for name, value in wanted.items())
    ]


def _cut_half_line(path: Path) -> bool:
    """Cut what stands after the last end of a line, and tell whether anything is left."""
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    if end < len(content):
        os.truncate(path, end)
    return end > 0


def _parse(line: dict[str, str], place: str) -> Row:
    """Turn the words of a line into numbers."""
    try:
        if None in line or None in line.values():
            raise ValueError("too many or too few values")
        return Row(**{name: parse_value(line[name], kind) for name, kind in KINDS.items()})
    except ValueError as error:
        raise ValueError(f"{place} is not a trial: {error}. Remove that line.") from error
