"""Blends: small maps evaluate all their functions, wide ones share a part; the answers stay."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from limes._core import simd_levels, split_common_slopes
from tests._core import reference as definition
from tests._core.reference import factored_spec, normal, random_spec, small_integers

LEVELS = simd_levels()


# Small and dense, small but with too many functions for that, and large.
SHAPES = [(30, 60, 5, 1), (50, 120, 20, 11), (96, 40, 3, 2), (97, 40, 3, 2), (300, 50, 16, 3)]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("blend", [2, 8, 9])
def test_functions_that_share_a_part_follow_the_definition(level, shape, blend):
    n_points, n_features, n_search, n_values = shape
    rng = np.random.default_rng(n_points + blend)
    spec = factored_spec(rng, n_points, n_features, n_search, n_values=n_values, blend=blend)
    projection = spec.options["projection"]
    assert split_common_slopes(spec.maps[0][2], projection, blend) is not None
    X = spec.center + normal(rng, (150, n_features))
    expected = definition.decide(spec, X)
    assert_allclose(spec.build(level=level, double=True).decide(X), expected, rtol=1e-7, atol=1e-7)
    assert_allclose(spec.build(level=level).decide(X), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("double", [False, True])
def test_a_row_alone_has_the_values_that_it_has_among_others(level, shape, double):
    n_points, n_features, n_search, n_values = shape
    rng = np.random.default_rng(n_points)
    shared = factored_spec(rng, n_points, n_features, n_search, n_values=n_values)
    plain = random_spec(rng, n_points, n_features, n_values=n_values, blend=8)
    X = normal(rng, (60, n_features)).astype(np.float32)
    for spec in (shared, plain):
        maps = spec.build(level=level, double=double)
        alone = np.concatenate([maps.decide(row[None]) for row in X])
        assert_array_equal(alone, maps.decide(X))


@pytest.mark.parametrize("level", LEVELS)
def test_rows_that_name_their_maps_have_the_same_values(level):
    rng = np.random.default_rng(5)
    spec = factored_spec(rng, 40, 60, 6, n_maps=3)
    maps, X = spec.build(level=level), normal(rng, (200, 60))
    map_numbers = rng.integers(0, 3, size=(200, 1)).astype(np.int32)
    every = maps.decide(X)
    assert_array_equal(
        maps.decide_selected(X, map_numbers)[:, 0], np.take_along_axis(every, map_numbers, axis=1)
    )


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("n_points", [9, 10, 31, 96])
def test_points_equally_near_share_evenly_the_lowest_indices_first(level, double, n_points):
    rng = np.random.default_rng(6)
    spec = random_spec(rng, n_points, 3, draw=small_integers, n_values=2, blend=8)
    _, _, slopes, offsets = spec.maps[0]
    points = np.repeat(small_integers(rng, (1, 3)), n_points, axis=0)
    spec.maps[0] = (points, 0.5 * np.sum(points**2, axis=1), slopes, offsets)
    X = small_integers(rng, (70, 3))
    values = spec.build(level=level, double=double).decide(X)
    assert_allclose(values, definition.point_values(spec, X)[:, :8].mean(axis=1), atol=1e-4)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n_points", [20, 90, 200])
def test_one_row_with_a_nan_leaves_the_others_alone(level, n_points):
    rng = np.random.default_rng(7)
    spec = random_spec(rng, n_points, 4, n_values=2, blend=8)
    maps, X = spec.build(level=level), normal(rng, (50, 4))
    expected = maps.decide(X)
    X[13, 2] = np.nan
    values = maps.decide(X)
    assert np.isnan(values[13]).all()
    assert_array_equal(np.delete(values, 13, axis=0), np.delete(expected, 13, axis=0))


def test_functions_of_their_own_are_not_factored():
    rng = np.random.default_rng(8)
    projection = normal(rng, (40, 5))
    own = normal(rng, (10, 2, 40))
    shared = normal(rng, (2, 40)) + normal(rng, (10, 2, 5)) @ projection.T
    assert split_common_slopes(own, projection, 8) is None
    assert split_common_slopes(shared, projection, 1) is None
    base, local = split_common_slopes(shared, projection, 8)
    assert_allclose(base + local @ projection.T, shared, rtol=0, atol=1e-12)


def test_functions_are_not_factored_where_that_would_cost_digits():
    rng = np.random.default_rng(9)
    projection = np.column_stack([np.ones(40), np.ones(40) + 1e-9 * normal(rng, 40)])
    local = 1e6 * normal(rng, (10, 1, 2)) * [1.0, -1.0]
    slopes = local @ projection.T - local.sum(axis=2, keepdims=True)
    assert split_common_slopes(slopes, projection, 8) is None


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n_points", [16, 90, 200])
@pytest.mark.parametrize("size", [1e-25, 1e10, 1e20, 1e30])
def test_rows_far_out_have_the_values_of_float64(level, n_points, size):
    rng = np.random.default_rng(10)
    spec = random_spec(rng, n_points, 3, blend=4)
    points = normal(rng, (n_points, 3)) * min(size, 1.0)
    spec.maps[0] = (points, 0.5 * np.sum(points**2, axis=1), *spec.maps[0][2:])
    X = normal(rng, (50, 3)) * size
    values = spec.build(level=level).decide(X)
    assert_allclose(values, spec.build(level=level, double=True).decide(X), rtol=2e-3, atol=1e-3)


def test_slopes_whose_mean_is_infinite_are_not_split(capfd):
    slopes = np.full((4, 1, 5), 1.7e308)
    with np.errstate(over="ignore", invalid="ignore"):
        assert split_common_slopes(slopes, np.ones((5, 1)), 3) is None
    assert capfd.readouterr() == ("", "")
