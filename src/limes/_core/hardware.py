"""The SIMD level of the compiled core, and how many threads to use."""

import os
import sys
import threading
from numbers import Integral
from typing import Any

from limes._core import _native

VARIABLE = "LIMES_SIMD"
OLD_VARIABLE = "LIMES_CPU"


def simd_levels() -> list[str]:
    """List the SIMD levels that this processor can run, the fastest first.

    Examples
    --------
    >>> simd_levels()[-1]
    'generic'
    """
    return _native.simd_levels()


def simd_level() -> str:
    """Return the SIMD level in use.

    The environment variable ``LIMES_SIMD`` forces one of ``simd_levels()``. It is read when the
    core is first imported; any other value raises an ``ImportError`` there.

    Examples
    --------
    >>> simd_level() in simd_levels()
    True
    """
    return DEFAULT_LEVEL


def _choose_level() -> str:
    """Return the level that the environment gives, or the fastest one."""
    levels, level = simd_levels(), os.environ.get(VARIABLE, "")
    if os.environ.get(OLD_VARIABLE) and not level:
        raise ImportError(f"the environment variable {OLD_VARIABLE} is now called {VARIABLE}.")
    if level and level not in levels:
        raise ImportError(
            f"{VARIABLE} must be one of {levels} on this processor, got {level!r}. "
            "Unset it to take the fastest."
        )
    return level or levels[0]


DEFAULT_LEVEL = _choose_level()


def thread_count(n_jobs: int | None = None) -> int:
    """Return how many threads to run for a given `n_jobs`.

    The count stays within the processors that the process may use (affinity, container quotas,
    ``LOKY_MAX_CPU_COUNT``), within ``OMP_NUM_THREADS`` and threadpoolctl's limits, and is 1 inside
    a joblib or Dask worker that has no processor to spare.

    Examples
    --------
    >>> thread_count()
    1
    >>> thread_count(1000) <= thread_count(-1)
    True
    """
    check_jobs(n_jobs)
    if n_jobs == 1:
        return 1
    # Counting processors reads files, so it comes last.
    limit = _openmp_limit()
    if limit == 1 or _inside_worker():
        return 1
    return max(1, min(limit, _requested_threads(n_jobs)))


def _requested_threads(n_jobs: int | None) -> int:
    """Return the threads for n_jobs, at most the processors of this process."""
    try:
        from joblib import cpu_count, effective_n_jobs
    except ImportError:
        if hasattr(os, "sched_getaffinity"):
            n_processors = len(os.sched_getaffinity(0))
        else:
            n_processors = os.cpu_count() or 1
        if n_jobs is None:
            return 1
        return min(n_jobs, n_processors) if n_jobs > 0 else n_processors + 1 + n_jobs
    return int(min(effective_n_jobs(n_jobs), cpu_count()))


def check_jobs(n_jobs: Any) -> None:
    """Raise unless the number of jobs is valid.

    Examples
    --------
    >>> check_jobs(0)
    Traceback (most recent call last):
    ValueError: n_jobs must be None or an integer other than 0, such as -1 for all, got 0.
    """
    is_number = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and not (is_number and n_jobs != 0):
        raise ValueError(
            f"n_jobs must be None or an integer other than 0, such as -1 for all, got {n_jobs!r}."
        )


def _inside_worker() -> bool:
    """Return whether a joblib worker runs this and no share of the processors was left to it.

    Processes of loky get their share as ``OMP_NUM_THREADS``; threads get none.
    """
    try:
        from joblib.parallel import get_active_backend
    except ImportError:
        return False
    is_nested = (get_active_backend()[0].nesting_level or 0) > 0
    has_share = (
        threading.current_thread() is threading.main_thread() and "OMP_NUM_THREADS" in os.environ
    )
    return is_nested and not has_share


def _openmp_limit() -> int:
    """Return how many OpenMP threads may run, which is where threadpoolctl sets its limits."""
    try:
        from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
    except ImportError:  # without scikit-learn, or where its private function is gone
        first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
        return max(1, int(first)) if first.isdigit() else sys.maxsize
    return int(_openmp_effective_n_threads())
