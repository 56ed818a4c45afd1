"""Results as rows: one for each dataset, method and number of threads."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from limes.atomic import atomic_write


@dataclass(frozen=True)
class Row:
    """What one method reached on one dataset with one number of threads.

    Parameters
    ----------
    dataset, method : str
        What was measured.
    threads : int
        Threads that a prediction might use.
    n_train, n_test, n_features, n_classes : int
        Sizes of the dataset.
    seed : int
        Of splits and fits.
    accuracy, uncertainty_coefficient : float
        Skill on the test rows.
    agreement : float
        Share of the test rows with the label that the support vector machine gives.
    microseconds_a_row : float or None
        The least time of a batch over its rows; None for a method that takes single rows only.
    batch_rows : int or None
        Rows of that batch.
    cpu_share : float or None
        Processor time of that batch over wall-clock time: well below the number of threads where
        other programs were in the way.
    microseconds_one_row : float
        The least mean time of a row asked alone.
    model_bytes : int
        Size of the trained model.
    fit_seconds : float
        Time of the fit, with one thread.
    source_seconds : float
        Time of the support vector machine's fit before it, where the method starts from that.
    detail : str
        How large the model came out.
    turns : int
        How often everybody had a turn.
    versions, machine : str
        What it was measured with.
    run : str
        When this round of turns began: times of one run may be compared.
    """

    dataset: str
    method: str
    threads: int
    n_train: int
    n_test: int
    n_features: int
    n_classes: int
    seed: int
    accuracy: float
    uncertainty_coefficient: float
    agreement: float
    microseconds_a_row: float | None
    batch_rows: int | None
    cpu_share: float | None
    microseconds_one_row: float
    model_bytes: int
    fit_seconds: float
    source_seconds: float
    detail: str
    turns: int
    versions: str
    machine: str
    run: str

    @property
    def whole_fit_seconds(self) -> float:
        """Time from the training rows to the model."""
        return self.fit_seconds + self.source_seconds


COLUMNS = [column.name for column in fields(Row)]
READERS = {column.name: column.type for column in fields(Row)}


def append_rows(path: Path, rows: Iterable[Row]) -> None:
    """Add rows to a file of comma-separated values, which is whole at any moment.

    Parameters
    ----------
    path : Path
        The file; made if it is not there.
    rows : iterable of Row
        What to add.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in [*read_rows(path), *rows]:
        writer.writerow(asdict(row))
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as stream:
        stream.write(text.getvalue().encode())


def read_rows(path: Path) -> list[Row]:
    """Read all rows of a file, none where there is no file.

    Parameters
    ----------
    path : Path
        Written by `append_rows`.

    Returns
    -------
    list of Row
        In the order of the file.
    """
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        table = csv.DictReader(stream)
        if table.fieldnames is not None and list(table.fieldnames) != COLUMNS:
            raise ValueError(
                f"{path} must have the columns {COLUMNS!r}, got {table.fieldnames!r}. Another "
                "version wrote it: choose another folder."
            )
        return [_parse(line, path) for line in table]


def latest(rows: Sequence[Row]) -> list[Row]:
    """Keep the last run of each dataset and number of threads.

    Parameters
    ----------
    rows : sequence of Row
        Of any number of runs, the earliest first.

    Returns
    -------
    list of Row
        Those whose times may be compared.
    """
    last = {(row.dataset, row.threads): row.run for row in rows}
    return [row for row in rows if row.run == last[row.dataset, row.threads]]


def is_measured(rows: Sequence[Row], wanted: Iterable[dict[str, Any]]) -> bool:
    """Tell whether one run has rows with all the wanted values."""
    kept = latest(rows)
    return all(
        any(all(getattr(row, name) == value for name, value in one.items()) for row in kept)
        for one in wanted
    )


def _parse(line: dict[str, str], path: Path) -> Row:
    """Turn the words of a line into numbers."""
    try:
        if None in line or None in line.values():
            raise ValueError("too many or too few values")
        return Row(**{name: parse_value(line[name], READERS[name]) for name in COLUMNS})
    except ValueError as error:
        raise ValueError(f"{path} has a line that is not a result: {line!r} ({error}).") from error


def parse_value(word: str, kind: Any) -> Any:
    """Turn one word of a row into a value of its column's kind.

    Examples
    --------
    >>> parse_value("", int | None), parse_value("3", int)
    (None, 3)
    """
    if kind is str:
        return word
    if word == "" and kind in (float | None, int | None):
        return None
    return int(word) if kind in (int, int | None) else float(word)
