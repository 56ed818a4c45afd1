"""Source beside fast model: skill, agreement, time, size."""

import pickle
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from limes._typing import Labels
from limes.scores import accuracy_score, agreement, uncertainty_coefficient
from limes.timing import time_in_turns

# Time at most this many rows of the slow model: it answers the same for more.
MAX_TIMED_ROWS = 2000
# Take turns this often, and at least this long; the quickest of each counts.
N_TURNS = 5
MIN_SECONDS = 0.002


@dataclass(frozen=True)
class ModelReport:
    """What one model reached.

    Parameters
    ----------
    name : str
        What it is.
    accuracy, uncertainty_coefficient : float or None
        Skill; None where the true labels are not known.
    microseconds_a_row : float
        Time of ``predict``, in a batch.
    n_bytes : int
        Size of the model.
    """

    name: str
    accuracy: float | None
    uncertainty_coefficient: float | None
    microseconds_a_row: float
    n_bytes: int


@dataclass(frozen=True)
class Report:
    """Source beside borders; printing it gives a table.

    Parameters
    ----------
    source, borders : ModelReport
        The slow model and the fast one.
    agreement : float
        Share of rows with the same label.
    n_rows : int
        Rows that the skill was measured on.
    """

    source: ModelReport
    borders: ModelReport
    agreement: float
    n_rows: int

    @property
    def speed_up(self) -> float:
        """How many times quicker the fast model is."""
        return self.source.microseconds_a_row / self.borders.microseconds_a_row

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain numbers, for machines."""
        return {**asdict(self), "speed_up": self.speed_up}

    def __str__(self) -> str:
        lines = [("", "source", "borders")]
        lines += [
            (label, form(getattr(self.source, name)), form(getattr(self.borders, name)))
            for name, label, form in _lines()
        ]
        widths = [max(len(line[place]) for line in lines) for place in range(3)]
        table = "\n".join(
            f"{line[0]:<{widths[0]}}  {line[1]:>{widths[1]}}  {line[2]:>{widths[2]}}"
            for line in lines
        )
        return (
            f"{table}\n"
            f"Same label on {self.agreement:.2%} of {self.n_rows} rows, "
            f"{_times(self.speed_up)} as fast."
        )


def compare(
    source: Callable[[Any], Labels],
    borders: Callable[[Any], Labels],
    X: Any,
    y: Labels | None,
    *,
    names: tuple[str, str],
    sizes: tuple[int, int],
) -> Report:
    """Ask two models about the same rows, and time them in turns.

    Parameters
    ----------
    source, borders : callable
        Rows to labels.
    X : ndarray or sparse matrix of shape (n_rows, n_features)
        Rows.
    y : ndarray of shape (n_rows,), or None
        True labels.
    names : tuple of str
        What the models are called.
    sizes : tuple of int
        Their sizes in bytes.

    Returns
    -------
    Report
        Skill, agreement, time and size.
    """
    answers = source(X), borders(X)
    some = X[:MAX_TIMED_ROWS]
    timings = time_in_turns(
        [lambda: source(some), lambda: borders(some)], n_turns=N_TURNS, turn_seconds=MIN_SECONDS
    )
    models = [
        ModelReport(
            name,
            None if y is None else float(accuracy_score(y, answer)),
            None if y is None else float(uncertainty_coefficient(y, answer)),
            1e6 * timing.seconds / some.shape[0],
            size,
        )
        for name, answer, timing, size in zip(names, answers, timings, sizes, strict=True)
    ]
    return Report(models[0], models[1], float(agreement(*answers)), X.shape[0])


def pickled_size(model: Any) -> int:
    """Return the size of a model in bytes, 0 where it cannot be pickled."""
    try:
        return len(pickle.dumps(model, protocol=pickle.HIGHEST_PROTOCOL))
    except (pickle.PicklingError, AttributeError, TypeError):
        return 0


def _lines() -> list[tuple[str, str, Callable[[Any], str]]]:
    """Return the lines of the table: field, label and how to write its value."""
    return [
        ("name", "model", str),
        ("accuracy", "accuracy", _share),
        ("uncertainty_coefficient", "uncertainty coefficient", _share),
        ("microseconds_a_row", "microseconds a row", lambda value: f"{value:.3g}"),
        ("n_bytes", "size in kB", lambda value: f"{value / 1e3:.1f}" if value else "-"),
    ]


def _share(value: float | None) -> str:
    """Write a share, or that it is not known."""
    return "-" if value is None else f"{value:.4f}"


def _times(ratio: float) -> str:
    """Write a ratio with two digits that count."""
    return f"{ratio:.0f} times" if ratio >= 10 else f"{ratio:.2g} times"
