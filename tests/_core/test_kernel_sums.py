"""Sums of Gaussian kernels, on every SIMD level, against the definition in NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from limes._core import RbfVectors, simd_levels

LEVELS = simd_levels()


def kernels(X, vectors, gamma):
    return np.exp(-gamma * cdist(X.astype(float), vectors, "sqeuclidean"))


def gradients(X, vectors, gamma, weights):
    weighted = kernels(X, vectors, gamma) * weights
    return 2 * gamma * (weighted @ vectors - weighted.sum(axis=1)[:, None] * X)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n_vectors", [1, 3, 64, 65, 500])
@pytest.mark.parametrize("n_features", [1, 2, 7, 40, 500])
def test_sums_and_gradients_follow_their_definition(level, n_vectors, n_features):
    rng = np.random.default_rng(n_vectors + n_features)
    X, vectors = rng.normal(size=(50, n_features)), rng.normal(size=(n_vectors, n_features))
    weights = rng.normal(size=(n_vectors, 5))
    ready = RbfVectors(vectors, 0.7 / n_features, level=level)
    expected = kernels(X, vectors, 0.7 / n_features)
    size = expected @ np.abs(weights)
    assert np.all(np.abs(ready.sums(X, weights) - expected @ weights) <= 1e-13 * size)
    sums, slopes = ready.sums_and_gradients(X, weights[:, 0])
    assert_array_equal(sums, ready.sums(X, weights[:, :1])[:, 0])
    exact = gradients(X, vectors, 0.7 / n_features, weights[:, 0])
    assert_allclose(slopes, exact, rtol=1e-10, atol=1e-12 * size.max())


@pytest.mark.parametrize("level", LEVELS)
def test_the_exponential_is_right_from_one_to_nothing(level):
    distances = np.concatenate([np.linspace(0, 40, 2001), np.linspace(40, 900, 997)])
    values = RbfVectors([[0.0]], 1.0, level=level).sums(np.sqrt(distances)[:, None], [[1.0]])[:, 0]
    expected = np.exp(-(np.sqrt(distances) ** 2))
    assert_allclose(values, np.where(expected < 1e-307, 0.0, expected), rtol=3e-13, atol=1e-307)
    near = np.sqrt(np.linspace(0, 1, 1001))[:, None]
    values = RbfVectors([[0.0]], 1.0, level=level).sums(near, [[1.0]])[:, 0]
    assert_allclose(values, np.exp(-(near[:, 0] ** 2)), rtol=4.5e-16)


@pytest.mark.parametrize("level", LEVELS)
def test_rows_far_from_zero_lose_no_digits(level):
    rng = np.random.default_rng(1)
    X, vectors = 1e6 + rng.normal(size=(30, 4)), 1e6 + rng.normal(size=(90, 4))
    values = RbfVectors(vectors, 0.5, level=level).sums(X, np.ones((90, 1)))[:, 0]
    assert_allclose(values, kernels(X, vectors, 0.5).sum(axis=1), rtol=1e-8)


def test_a_row_has_the_same_sums_in_any_batch_layout_and_thread():
    rng = np.random.default_rng(2)
    ready = RbfVectors(rng.normal(size=(700, 9)), 0.1)
    X, weights = rng.normal(size=(2003, 9)), rng.normal(size=(700, 3))
    sums = ready.sums(X, weights)
    assert_array_equal(ready.sums(X[500:511], weights), sums[500:511])
    assert_array_equal(ready.sums(np.asfortranarray(X), weights, n_threads=3), sums)
    slopes = ready.sums_and_gradients(X, weights[:, 1])[1]
    assert_array_equal(ready.sums_and_gradients(X, weights[:, 1], n_threads=2)[1], slopes)


def test_a_row_with_a_nan_has_nan_sums_and_leaves_the_others_alone():
    rng = np.random.default_rng(3)
    ready = RbfVectors(rng.normal(size=(30, 3)), 0.5)
    X, weights = rng.normal(size=(20, 3)), np.ones((30, 1))
    expected = ready.sums(X, weights)
    X[4, 1] = np.nan
    sums = ready.sums(X, weights)
    assert np.isnan(sums[4, 0])
    assert_array_equal(np.delete(sums, 4, axis=0), np.delete(expected, 4, axis=0))


def test_zero_rows_give_zero_sums():
    ready = RbfVectors(np.ones((3, 2)), 1.0)
    assert ready.sums(np.empty((0, 2)), np.ones((3, 4))).shape == (0, 4)
    assert ready.sums_and_gradients(np.empty((0, 2)), np.ones(3))[1].shape == (0, 2)


@pytest.mark.parametrize(
    ("vectors", "gamma", "message"),
    [
        (np.ones((0, 2)), 1.0, "not be empty"),
        (np.ones((2, 0)), 1.0, "not be empty"),
        (np.ones(2), 1.0, "two dimensions"),
        (np.ones((2, 2)), -1.0, "gamma must be"),
        (np.ones((2, 2)), np.nan, "gamma must be"),
    ],
)
def test_vectors_that_make_no_sense_raise(vectors, gamma, message):
    with pytest.raises(ValueError, match=message):
        RbfVectors(vectors, gamma)


@pytest.mark.parametrize(
    ("X", "weights", "error"),
    [
        (np.ones((4, 3)), np.ones((5, 1)), ValueError),
        (np.ones((4, 2)), np.ones((4, 1)), ValueError),
        (np.ones((4, 2)), np.ones((5, 0)), ValueError),
        (np.ones((4, 2)), np.ones(5), ValueError),
        (np.ones((4, 2), dtype=int), np.ones((5, 1)), TypeError),
    ],
)
def test_wrong_rows_and_weights_raise(X, weights, error):
    with pytest.raises(error):
        RbfVectors(np.ones((5, 2)), 1.0).sums(X, weights)


def test_weights_of_several_outputs_have_no_gradient():
    with pytest.raises(ValueError, match="weights must have shape"):
        RbfVectors(np.ones((5, 2)), 1.0).sums_and_gradients(np.ones((4, 2)), np.ones((5, 2)))
