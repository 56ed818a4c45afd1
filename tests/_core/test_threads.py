"""Threads: the same bits whatever their number, and never more than the caller's share."""

import os
import subprocess
import sys

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_limits

from limes._core import Classifier, hardware, thread_count
from tests._core.reference import random_spec


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("options", [{}, {"blend": 3}])
def test_threads_do_not_change_a_bit(double, options):
    rng = np.random.default_rng(0)
    maps = random_spec(rng, 150, 9, n_maps=2, n_values=2, **options).build(double=double)
    X = rng.normal(size=(20_011, 9))
    map_numbers = rng.integers(0, 2, size=(len(X), 1)).astype(np.int32)
    for n_threads in (2, 3, 8):
        assert_array_equal(maps.nearest(X, n_threads=n_threads), maps.nearest(X))
        assert_array_equal(maps.decide(X, n_threads=n_threads), maps.decide(X))
        some = maps.decide_selected(X, map_numbers, n_threads=n_threads)
        assert_array_equal(some, maps.decide_selected(X, map_numbers))


def test_votes_do_not_depend_on_threads():
    rng = np.random.default_rng(1)
    pairs = [[0, 1], [0, 2], [1, 2]]
    classifier = Classifier(random_spec(rng, 150, 9, n_maps=3, pairs=pairs).build())
    X = rng.normal(size=(20_011, 9))
    assert_array_equal(classifier.classify(X, n_threads=4), classifier.classify(X))


def test_more_threads_than_rows_are_fine():
    rng = np.random.default_rng(2)
    maps = random_spec(rng, 3000, 300).build()
    # Work for sixty threads, and rows for a few.
    X = rng.normal(size=(300, 300))
    assert_array_equal(maps.nearest(X, n_threads=10**9), maps.nearest(X))
    assert_array_equal(Classifier(maps).classify(X, n_threads=10**9), maps.decide(X)[:, 0] > 0)


def test_without_n_jobs_there_is_one_thread():
    assert thread_count() == 1
    assert thread_count(None) == 1
    assert thread_count(1) == 1


def test_the_count_stays_within_the_processors():
    assert 1 <= thread_count(-1) <= joblib.cpu_count()
    assert thread_count(10_000) <= joblib.cpu_count()
    assert thread_count(-10_000) == 1


@pytest.mark.parametrize("n_jobs", [0, 1.5, 1.0, "a", True, [2]])
def test_what_is_no_number_of_jobs_raises(n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be None or an integer other than 0"):
        thread_count(n_jobs)


def test_a_whole_number_of_numpy_is_a_number_of_jobs():
    assert thread_count(np.int64(1)) == 1
    assert type(thread_count(np.int16(2))) is int


def test_threadpoolctl_limits_the_count():
    with threadpool_limits(1):
        assert thread_count(-1) == 1


def test_a_joblib_configuration_sets_the_count():
    with joblib.parallel_config(n_jobs=2):
        assert thread_count(None) == min(2, thread_count(-1))


def test_a_thread_of_joblib_has_no_processor_to_spare():
    counts = joblib.Parallel(n_jobs=2, backend="threading")(
        joblib.delayed(thread_count)(-1) for _ in range(2)
    )
    assert counts == [1, 1]


@pytest.mark.parametrize("variable", ["OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT"])
def test_the_environment_limits_the_count(variable):
    code = "from limes._core import Classifier, thread_count; print(thread_count(-1))"
    answer = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {variable: "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.strip() == "1"


@pytest.fixture
def without_joblib(monkeypatch):
    """An environment with NumPy alone."""
    for name in ("joblib", "joblib.parallel", "sklearn.utils._openmp_helpers"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


@pytest.mark.parametrize(("n_jobs", "expected"), [(None, 1), (1, 1), (-1, None), (10_000, None)])
def test_threads_are_counted_without_joblib_too(without_joblib, n_jobs, expected):
    n_processors = len(os.sched_getaffinity(0))
    assert thread_count(n_jobs) == (n_processors if expected is None else expected)


def test_the_limit_of_openmp_holds_without_joblib_too(without_joblib, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert thread_count(-1) == 1


def test_a_level_that_does_not_exist_is_refused(monkeypatch):
    monkeypatch.setenv(hardware.VARIABLE, "abacus")
    with pytest.raises(ImportError, match=r"LIMES_SIMD must be one of .* got 'abacus'"):
        hardware._choose_level()
