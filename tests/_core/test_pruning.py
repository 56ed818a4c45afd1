"""The search of large maps by groups gives what the plain search gives, to the bit."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from limes._core import simd_levels
from limes._core.predict import MIN_POINTS, cluster_points
from tests._core.reference import Spec, normal, random_spec, small_integers

LEVELS = simd_levels()


def clustered(rng, n_rows, n_features):
    """Rows in many small clusters, where groups rule out nearly all points."""
    centers = 5 * rng.normal(size=(40, n_features))
    return centers[rng.integers(0, 40, n_rows)] + 0.3 * rng.normal(size=(n_rows, n_features))


def distance_spec(points, *, scale=1.0, center=0.0):
    """A map whose scores are half the squared distances of (row / scale)."""
    n_points, n_features = points.shape
    weights = (points - center) / scale**2
    biases = 0.5 * np.sum(((points - center) / scale) ** 2, axis=1)
    slopes, offsets = np.ones((n_points, 1, n_features)), np.zeros((n_points, 1))
    return Spec(np.full(n_features, float(center)), [(weights, biases, slopes, offsets)])


def assert_grouping_changes_nothing(spec, X, level, double):
    weights, biases, _, _ = spec.maps[0]
    assert cluster_points(weights, biases) is not None
    grouped = spec.build(level=level, double=double)
    plain = spec.build(level=level, double=double, grouped=False)
    assert_array_equal(grouped.nearest(X), plain.nearest(X))
    assert_array_equal(grouped.decide(X), plain.decide(X))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("n_features", [1, 2, 5, 22])
def test_groups_find_the_same_points(level, double, n_features):
    rng = np.random.default_rng(n_features)
    points = clustered(rng, 1500, n_features)
    X = np.vstack([clustered(rng, 1500, n_features), points + 0.01 * normal(rng, points.shape)])
    assert_grouping_changes_nothing(distance_spec(points), X, level, double)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("double", [False, True])
def test_groups_respect_ties_between_repeated_points(level, double):
    rng = np.random.default_rng(1)
    points = rng.integers(-8, 9, size=(2000, 3)).astype(float)
    X = rng.integers(-8, 9, size=(3000, 3)) + rng.choice([0.0, 0.5], size=(3000, 3))
    assert_grouping_changes_nothing(distance_spec(points), X, level, double)


@pytest.mark.parametrize("level", LEVELS)
def test_groups_respect_the_rounding_of_rows_far_away(level):
    rng = np.random.default_rng(2)
    points = clustered(rng, 1500, 4)
    spec = distance_spec(points + 1e6, center=1e6 + 0.3)
    X = np.vstack([1e6 + clustered(rng, 500, 4), 1e6 + 1e4 * normal(rng, (500, 4))])
    assert_grouping_changes_nothing(spec, X, level, double=False)
    assert_grouping_changes_nothing(spec, X.astype(np.float32), level, double=False)


@pytest.mark.parametrize("level", LEVELS)
def test_groups_know_features_of_other_scales_and_without_weight(level):
    rng = np.random.default_rng(3)
    scale = np.array([1e-3, 1.0, 50.0, 1.0])
    points = clustered(rng, 1500, 4) * scale
    points[:, 3] = 0.0
    X = clustered(rng, 1000, 4) * scale
    assert_grouping_changes_nothing(distance_spec(points, scale=scale), X, level, double=False)


def test_the_metric_of_scaled_features_is_found():
    rng = np.random.default_rng(4)
    scale = np.array([0.1, 1.0, 20.0])
    spec = distance_spec(rng.normal(size=(1200, 3)) * scale, scale=scale)
    _, origin, squares, constant = cluster_points(*spec.maps[0][:2])
    assert_allclose(squares, scale**2, rtol=1e-6)
    assert_allclose(origin / scale, 0.0, atol=1e-6)
    assert abs(constant) < 1e-6


@pytest.mark.parametrize("level", LEVELS)
def test_rows_that_are_nan_or_infinite_are_searched_as_without_groups(level):
    rng = np.random.default_rng(5)
    spec = distance_spec(clustered(rng, 1200, 3))
    X = clustered(rng, 600, 3)
    X[::50, 1] = rng.choice([np.nan, np.inf, -np.inf, 1e30], size=12)
    grouped, plain = spec.build(level=level), spec.build(level=level, grouped=False)
    assert_array_equal(grouped.nearest(X), plain.nearest(X))


def test_scores_that_are_no_distances_are_not_grouped():
    rng = np.random.default_rng(6)
    weights = rng.normal(size=(1500, 3))
    assert cluster_points(weights, rng.normal(size=1500)) is None
    assert cluster_points(weights, -0.5 * np.sum(weights**2, axis=1)) is None
    assert cluster_points(np.full((1500, 3), np.nan), np.zeros(1500)) is None


def test_small_maps_are_not_grouped():
    spec = random_spec(np.random.default_rng(7), MIN_POINTS - 1, 3)
    assert cluster_points(*spec.maps[0][:2]) is None


def test_a_blend_searches_plainly():
    rng = np.random.default_rng(8)
    spec = random_spec(rng, 1500, 3, draw=small_integers, blend=2)
    X = small_integers(rng, (100, 3))
    assert_array_equal(spec.build().decide(X), spec.build(grouped=False).decide(X))
