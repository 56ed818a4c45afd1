"""Thread limits, batches, processor time."""

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

# A batch has so many rows at least, so that the call itself does not count; test rows are
# repeated where there are fewer.
BATCH_ROWS = 2000
# One batch of a slow method may take this long; it gets fewer rows then.
PAPER_BATCH_SECONDS = 0.1
N_TURNS = 3
# One batch of a slow method may take this long; it gets fewer rows then.
BATCH_SECONDS = 0.3


def n_threads_of(word: str) -> int:
    """Return a number of threads from a word: a number, or 'all' for all processors.

    Examples
    --------
    >>> n_threads_of("2")
    2
    """
    if word == "all":
        return int(cpu_count())
    if not word.isdigit() or int(word) < 1:
        raise ValueError(f"threads must be a number of 1 or more, or 'all', got {word!r}.")
    return int(word)


@contextmanager
def limit_threads(n_threads: int) -> Iterator[None]:
    """Let every library use this many threads, where it takes a common setting.

    OpenMP and the BLAS libraries obey threadpoolctl, limes and scikit-learn-intelex look at the
    same limit; the latter also keeps a count of its own, which is set too so that it need not do
    so at every call. LightGBM and onnxruntime are told by their peers.
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


def _time(ask: Callable[[Any], Any], rows: NDArray[Any]) -> tuple[Timing, int]:
    """Return the least time for all rows, and how many were asked at once to find it.

    It is processor time: with one thread that is what an idle machine takes, however many
    programs are running beside this one.
    """
    batch = rows[np.arange(max(len(rows), BATCH_ROWS)) % len(rows)]
    n_asked = affordable_rows(ask, batch, seconds=PAPER_BATCH_SECONDS)
    (best,) = time_in_turns([lambda: ask(batch[:n_asked])], n_turns=N_TURNS)
    return best._replace(seconds=best.seconds * best.cpu_share * len(rows) / n_asked), n_asked


@dataclass(frozen=True)
class Effort:
    """How hard to measure.

    Parameters
    ----------
    n_turns : int, default=7
        How often everybody has a turn.
    batch_rows : int, default=20000
        Rows of a batch: test rows, repeated where there are fewer.
    turn_seconds : float, default=0.05
        How long a turn is at least.
    """

    n_turns: int = 7
    batch_rows: int = 20_000
    turn_seconds: float = 0.05

    def __post_init__(self) -> None:
        for name in ("n_turns", "batch_rows"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, got {getattr(self, name)!r}.")


def _repeated(rows: NDArray[Any], n_rows: int) -> NDArray[Any]:
    """Return so many rows, the same ones again where there are fewer."""
    return rows[np.arange(n_rows) % len(rows)]
