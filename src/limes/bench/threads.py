"""How many threads everybody may use."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from joblib import cpu_count
from threadpoolctl import threadpool_limits


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
