"""BLAS uses one thread for narrow rows, and all its threads afterwards."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from limes.agf import AGFClassifier
from limes.agf.neighbours import MAX_SINGLE_THREAD_FEATURES, single_blas_thread


def blas_threads():
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_blas_threads():
    with threadpool_limits(limits=2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("this BLAS has no second thread")
        yield


def test_one_thread_within_and_all_afterwards():
    with single_blas_thread(MAX_SINGLE_THREAD_FEATURES):
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_wide_rows_use_all_threads():
    with single_blas_thread(MAX_SINGLE_THREAD_FEATURES + 1):
        assert blas_threads() == {2}


def test_threads_are_restored_after_an_error():
    with pytest.raises(RuntimeError), single_blas_thread(3):
        raise RuntimeError
    assert blas_threads() == {2}


def test_threads_are_restored_after_a_prediction():
    model = AGFClassifier().fit(np.arange(10.0)[:, None], np.arange(10) > 4)
    model.predict(np.arange(10.0)[:, None])
    assert blas_threads() == {2}
