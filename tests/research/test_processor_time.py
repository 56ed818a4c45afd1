"""Limits of threads."""

import pytest

from limes._core import thread_count
from limes.research.processor_time import TimingBudget, limit_threads, parse_threads


def test_a_limit_of_one_thread_holds_for_limes_too():
    with limit_threads(1):
        assert thread_count(-1) == 1


def test_threads_must_be_a_number_or_all():
    assert parse_threads("all") >= 1
    with pytest.raises(ValueError, match="got '0'"):
        parse_threads("0")


@pytest.mark.parametrize("name", ["n_turns", "batch_rows"])
def test_a_budget_of_nothing_is_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be 1 or more, got 0"):
        TimingBudget(**{name: 0})
