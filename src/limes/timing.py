"""Time calls in turns."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Call = Callable[[], Any]
# A turn goes on this long: short calls are tried often enough to meet an undisturbed moment.
TURN_SECONDS = 0.05
# The first guess at the time of a row is made on this many.
PROBE_ROWS = 100
# A call takes at least this, whatever the clock says.
CLOCK_SECONDS = 1e-9


class Timing(NamedTuple):
    """The quickest call of one competitor.

    ``cpu_share`` is the processor time of that call over its wall-clock time: about the number of
    threads that worked, and less than one where other programs were in the way.
    """

    seconds: float
    cpu_share: float


def time_in_turns(
    calls: Sequence[Call], *, n_turns: int = 7, turn_seconds: float = TURN_SECONDS
) -> list[Timing]:
    """Time several calls in turns, and return the quickest of each.

    Whatever disturbs the machine for a while then disturbs all of them alike.

    Parameters
    ----------
    calls : sequence of callable
        Without arguments, everything prepared.
    n_turns : int, default=7
        How often everybody has a turn.
    turn_seconds : float, default=0.05
        A call is repeated that long in each turn, and made once at least.

    Returns
    -------
    list of Timing
        One for each call.

    Examples
    --------
    >>> quick, slow = time_in_turns([lambda: None, lambda: sum(range(9999))], turn_seconds=1e-3)
    >>> quick.seconds < slow.seconds
    True
    """
    best = [Timing(np.inf, 0.0)] * len(calls)
    for _ in range(n_turns):
        for place, call in enumerate(calls):
            best[place] = min(best[place], _quickest(call, turn_seconds))
    return best


def affordable_rows(ask: Callable[[Any], Any], rows: NDArray[Any], *, seconds: float) -> int:
    """Return how many rows one call may have to stay below a time, after a first call."""
    probe = rows[:PROBE_ROWS]
    ask(probe)
    a_row = _quickest(lambda: ask(probe), 0.0).seconds / len(probe)
    return int(np.clip(seconds / a_row, min(PROBE_ROWS, len(rows)), len(rows)))


def _quickest(call: Call, turn_seconds: float) -> Timing:
    """Repeat a call for a while and return the quickest time."""
    best, end = Timing(np.inf, 0.0), time.perf_counter() + turn_seconds
    while True:
        start, start_cpu = time.perf_counter(), time.process_time()
        call()
        cpu = time.process_time() - start_cpu
        taken = max(time.perf_counter() - start, CLOCK_SECONDS)
        best = min(best, Timing(taken, cpu / taken))
        if time.perf_counter() >= end:
            return best
