"""Thread limits, batches and processor time."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import cpu_count
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from limes.timing import Timing, affordable_rows, time_in_turns

# Most seconds for one batch of a slow method, which gets fewer rows: where methods take turns,
# and where each is timed alone.
BATCH_SECONDS = 0.3
SOLO_BATCH_SECONDS = 0.1
# Fewest rows of a batch that is timed alone, so that the call itself does not count.
SOLO_BATCH_ROWS = 2000
SOLO_TURNS = 3


@dataclass(frozen=True)
class TimingBudget:
    """How often and on how many rows methods are timed.

    Parameters
    ----------
    n_turns : int, default=7
        Number of turns of each method.
    batch_rows : int, default=20000
        Rows of a batch: test rows, repeated where there are fewer.
    turn_seconds : float, default=0.05
        Shortest turn.
    """

    n_turns: int = 7
    batch_rows: int = 20_000
    turn_seconds: float = 0.05

    def __post_init__(self) -> None:
        for name in ("n_turns", "batch_rows"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, got {getattr(self, name)!r}.")


def parse_threads(word: str) -> int:
    """Return a number of threads from a number, or from 'all' for all processors.

    Examples
    --------
    >>> parse_threads("2")
    2
    """
    if word == "all":
        return int(cpu_count())
    if not word.isdigit() or int(word) < 1:
        raise ValueError(f"threads must be a number of 1 or more, or 'all', got {word!r}.")
    return int(word)


@contextmanager
def limit_threads(n_threads: int) -> Iterator[None]:
    """Limit the threads of every library that takes a common setting.

    OpenMP and the BLAS libraries obey threadpoolctl; limes and scikit-learn-intelex read the same
    limit. The latter also stores a number, which is set too, so that it need not read the limit at
    every call. LightGBM and onnxruntime get the number as an argument.
    """
    with threadpool_limits(n_threads), _limit_onedal(n_threads):
        yield


@contextmanager
def _limit_onedal(n_threads: int) -> Iterator[None]:
    """Set the number of threads of scikit-learn-intelex, if it is loaded."""
    if "daal4py" not in sys.modules:
        yield
        return
    from daal4py import daalinit, num_threads

    before = num_threads()
    daalinit(n_threads)
    try:
        yield
    finally:
        daalinit(before)


def time_alone(predict: Callable[[Any], Any], rows: NDArray[Any]) -> tuple[Timing, int]:
    """Return the shortest processor time for all rows, and the size of the batch it comes from.

    With one thread, processor time is what an idle computer takes, however many other programs are
    running.
    """
    batch = repeat_rows(rows, max(len(rows), SOLO_BATCH_ROWS))
    n_rows = affordable_rows(predict, batch, seconds=SOLO_BATCH_SECONDS)
    (best,) = time_in_turns([lambda: predict(batch[:n_rows])], n_turns=SOLO_TURNS)
    return best._replace(seconds=best.seconds * best.cpu_share * len(rows) / n_rows), n_rows


def repeat_rows(rows: NDArray[Any], n_rows: int) -> NDArray[Any]:
    """Return this many rows, the same ones again where there are fewer."""
    return rows[np.arange(n_rows) % len(rows)]
