"""Time several calls in turns."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

Call = Callable[[], Any]
# Length of a turn: short calls are repeated often enough that some run undisturbed.
TURN_SECONDS = 0.05
# Rows of the first estimate of the time per row.
PROBE_ROWS = 100
# Least time of a call, should the clock not advance.
CLOCK_SECONDS = 1e-9


class Timing(NamedTuple):
    """The fastest run of a call.

    ``cpu_share`` is the processor time of that run divided by its wall-clock time: about the number
    of threads, and less than one if other programs used the processor.
    """

    seconds: float
    cpu_share: float


def time_in_turns(
    calls: Sequence[Call], *, n_turns: int = 7, turn_seconds: float = TURN_SECONDS
) -> list[Timing]:
    """Time several calls in turns, and return the fastest run of each.

    In turns, a temporary disturbance of the computer affects all calls alike.

    Parameters
    ----------
    calls : sequence of callable
        Functions without arguments.
    n_turns : int, default=7
        Number of turns of each call.
    turn_seconds : float, default=0.05
        Time for which a call is repeated in each turn; it runs at least once.

    Returns
    -------
    list of Timing
        One for each call.

    Examples
    --------
    >>> fast, slow = time_in_turns([lambda: None, lambda: sum(range(9999))], turn_seconds=1e-3)
    >>> fast.seconds < slow.seconds
    True
    """
    best = [Timing(np.inf, 0.0)] * len(calls)
    for _ in range(n_turns):
        for number, call in enumerate(calls):
            best[number] = min(best[number], _fastest_run(call, turn_seconds))
    return best


def affordable_rows(
    predict: Callable[[Any], Any], rows: Any, *, seconds: float, n_probe: int = PROBE_ROWS
) -> int:
    """Return how many rows one call can take within a time, by the time of a few rows."""
    n_rows = rows.shape[0]
    n_probe = min(n_probe, n_rows)
    probe = rows[:n_probe]
    predict(probe)
    seconds_per_row = _fastest_run(lambda: predict(probe), 0.0).seconds / n_probe
    return int(np.clip(seconds / seconds_per_row, n_probe, n_rows))


def _fastest_run(call: Call, turn_seconds: float) -> Timing:
    """Repeat a call for the length of a turn and return the fastest run."""
    best, end = Timing(np.inf, 0.0), time.perf_counter() + turn_seconds
    while True:
        start, start_cpu = time.perf_counter(), time.process_time()
        call()
        cpu = time.process_time() - start_cpu
        seconds = max(time.perf_counter() - start, CLOCK_SECONDS)
        best = min(best, Timing(seconds, cpu / seconds))
        if time.perf_counter() >= end:
            return best
