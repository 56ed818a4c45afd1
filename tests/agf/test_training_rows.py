"""Distances in the coordinates of the training rows: exact near, far, and in blocks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from limes.agf import neighbours
from limes.agf.neighbours import TrainingRows, nearest_others, split_rows


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def squared_in_units(training, X):
    return training.squared_distances(training.place(X)) * training.scale**2


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("unit", [1e-150, 1.0, 1e150])
def test_squared_distances_are_those_of_the_definition(rng, offset, unit):
    X, rows = rng.normal(size=(50, 7)) + offset, rng.normal(size=(20, 7)) + offset
    training = TrainingRows.from_rows(X * unit)
    placed = training.squared_distances(training.place(rows * unit))
    expected = cdist(rows, X, "sqeuclidean")
    assert_allclose(placed * (training.scale / unit) ** 2, expected, rtol=1e-9)


def test_rows_close_together_keep_their_digits(rng):
    X = rng.normal(size=(300, 5))
    rows = X[:40] + 1e-9 * rng.normal(size=(40, 5))
    expected = cdist(rows, X, "sqeuclidean")
    squared = squared_in_units(TrainingRows.from_rows(X), rows)
    assert_allclose(np.diag(squared[:, :40]), np.diag(expected[:, :40]), rtol=1e-6)
    assert_allclose(squared, expected, rtol=1e-6)


def test_coincident_rows_have_distance_zero(rng):
    X = 1e3 + rng.normal(size=(200, 30))
    squared = squared_in_units(TrainingRows.from_rows(X), X)
    assert_array_equal(squared == 0, np.eye(200, dtype=bool))


def test_two_tight_clusters_far_apart_keep_their_digits(rng):
    X = 1e-6 * rng.normal(size=(60, 3)) + np.repeat([[0.0], [1.0]], 30, axis=0)
    squared = squared_in_units(TrainingRows.from_rows(X), X)
    assert_allclose(squared, cdist(X, X, "sqeuclidean"), rtol=1e-8)


@pytest.mark.parametrize("n_features", [2, 30])
def test_nearest_rows_are_those_of_a_full_sort(rng, n_features):
    X, rows = rng.normal(size=(100, n_features)), rng.normal(size=(30, n_features))
    training = TrainingRows.from_rows(X)
    assert training.has_tree == (n_features == 2)
    squared, index = training.nearest(training.place(rows), 7)
    expected = np.sort(cdist(rows, X, "sqeuclidean"), axis=1)[:, :7]
    assert_allclose(np.sort(squared, axis=1) * training.scale**2, expected, rtol=1e-12)
    assert_allclose(
        squared * training.scale**2, np.square(rows[:, None] - X[index]).sum(-1), rtol=1e-12
    )


def test_a_row_is_not_its_own_neighbour_but_a_duplicate_is():
    training = TrainingRows.from_rows(np.array([[0.0], [0.0], [1.0], [3.0]]))
    squared, index = nearest_others(training, np.array([0, 2]), 1)
    assert_allclose(squared * training.scale**2, [[0.0], [1.0]])
    assert index[0, 0] == 1
    assert index[1, 0] in {0, 1}


def test_shifted_distances_compare_far_rows_exactly():
    training = TrainingRows.from_rows(np.array([[-1.0], [1.0]]))
    shifted = training.shifted_distances(training.place(np.array([[1e12], [0.5]])))
    differences = (shifted[:, 0] - shifted[:, 1]) * training.scale**2
    assert_array_equal(differences, [4e12, 2.0])


def test_rows_of_any_size_have_finite_distances(rng):
    training = TrainingRows.from_rows(1e-200 * rng.normal(size=(10, 2)))
    placed = training.place(np.array([[1e308, -1e308], [0.0, 1e-320]]))
    assert np.all(np.isfinite(training.squared_distances(placed)))


def test_one_repeated_row_has_coordinates():
    training = TrainingRows.from_rows(np.full((5, 2), 3.0))
    assert training.scale == 1.0
    assert_array_equal(squared_in_units(training, np.full((1, 2), 4.0)), np.full((1, 5), 2.0))


def test_blocks_cover_all_rows_once_and_stay_small(monkeypatch):
    monkeypatch.setattr(neighbours, "BLOCK_SIZE", 100)
    blocks = list(split_rows(25, 30))
    assert_array_equal(np.concatenate([np.arange(25)[block] for block in blocks]), np.arange(25))
    assert max(len(np.arange(25)[block]) for block in blocks) * 30 <= 100


def test_a_row_wider_than_a_block_is_a_block():
    assert list(split_rows(2, 10 * neighbours.BLOCK_SIZE)) == [slice(0, 1), slice(1, 2)]
