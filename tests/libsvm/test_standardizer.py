"""The paper's preprocessing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from limes.libsvm.training import standardizer


def test_test_rows_are_scaled_by_the_training_rows():
    train = np.random.default_rng(0).normal(5, 3, (50, 2))
    test = np.array([[1.0, 2.0]])
    expected = (test - train.mean(axis=0)) / train.std(axis=0)
    assert_allclose(standardizer().fit(train).transform(test), expected, rtol=1e-12)


def test_a_feature_constant_in_training_is_dropped_even_if_it_varies_later():
    step = standardizer().fit([[1.0, 7.0], [3.0, 7.0]])
    assert_allclose(step.transform([[5.0, -1.0]]), [[3.0]])


def test_a_constant_that_rounds_badly_is_still_dropped():
    rows = np.column_stack([np.arange(10.0), np.full(10, 0.1)])
    assert standardizer().fit_transform(rows).shape == (10, 1)


def test_rows_that_are_all_the_same_are_refused():
    with pytest.raises(ValueError, match="No feature"):
        standardizer().fit([[1.0, 2.0], [1.0, 2.0]])
