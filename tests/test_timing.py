"""Times that can be compared."""

import numpy as np
import pytest

from limes import timing
from limes.timing import affordable_rows, time_in_turns


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that only the calls themselves move."""
    now = [0.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(timing.time, "process_time", lambda: now[0] / 2)

    def wait(seconds):
        now[0] += seconds

    return wait


def test_calls_take_turns():
    said = []
    calls = [lambda: said.append("a"), lambda: said.append("b")]
    time_in_turns(calls, n_turns=3, turn_seconds=0.0)
    assert "".join(said) == "ababab"


def test_the_quickest_of_all_turns_counts(clock):
    waits = iter([5.0, 2.0, 3.0])
    (found,) = time_in_turns([lambda: clock(next(waits))], n_turns=3, turn_seconds=0.0)
    assert found == (2.0, 0.5)


def test_a_short_call_is_repeated_through_its_turn(clock):
    made = []

    def call():
        made.append(1)
        clock(0.25)

    time_in_turns([call], n_turns=2, turn_seconds=1.0)
    assert len(made) == 8


def test_a_call_that_the_clock_does_not_see_takes_some_time(clock):
    (found,) = time_in_turns([lambda: None], n_turns=1, turn_seconds=0.0)
    assert 0 < found.seconds < 1e-6


def test_as_many_rows_are_affordable_as_a_time_allows(clock):
    rows = np.zeros((1000, 2))
    assert affordable_rows(lambda some: clock(1e-3 * len(some)), rows, seconds=0.5) == 500
    assert affordable_rows(lambda some: clock(1.0), rows, seconds=1e-9) == 100
    assert affordable_rows(lambda some: None, rows, seconds=10.0) == 1000
