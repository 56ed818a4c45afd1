"""Calls are timed in turns, so that their times can be compared."""

import numpy as np
import pytest

from limes import timing
from limes.timing import affordable_rows, time_in_turns


@pytest.fixture
def clock(monkeypatch):
    """Return a function that advances a simulated clock."""
    now = [0.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(timing.time, "process_time", lambda: now[0] / 2)

    def wait(seconds):
        now[0] += seconds

    return wait


def test_calls_take_turns():
    order = []
    calls = [lambda: order.append("a"), lambda: order.append("b")]
    time_in_turns(calls, n_turns=3, turn_seconds=0.0)
    assert "".join(order) == "ababab"


def test_the_fastest_run_of_all_turns_is_returned(clock):
    waits = iter([5.0, 2.0, 3.0])
    (timing_,) = time_in_turns([lambda: clock(next(waits))], n_turns=3, turn_seconds=0.0)
    assert timing_ == (2.0, 0.5)


def test_a_short_call_is_repeated_through_its_turn(clock):
    runs = []

    def call():
        runs.append(1)
        clock(0.25)

    time_in_turns([call], n_turns=2, turn_seconds=1.0)
    assert len(runs) == 8


def test_a_call_shorter_than_the_resolution_of_the_clock_takes_some_time(clock):
    (timing_,) = time_in_turns([lambda: None], n_turns=1, turn_seconds=0.0)
    assert 0 < timing_.seconds < 1e-6


def test_as_many_rows_are_affordable_as_a_time_allows(clock):
    rows = np.zeros((1000, 2))
    assert affordable_rows(lambda batch: clock(1e-3 * len(batch)), rows, seconds=0.5) == 500
    assert affordable_rows(lambda batch: clock(1.0), rows, seconds=1e-9) == 100
    assert affordable_rows(lambda batch: None, rows, seconds=10.0) == 1000
    assert affordable_rows(lambda batch: clock(1.0), rows, seconds=1e-9, n_probe=8) == 8
