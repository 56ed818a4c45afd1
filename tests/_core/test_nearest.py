"""The nearest point, on every SIMD level, against the definition in NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from limes._core import Maps, simd_levels
from tests._core import reference as definition
from tests._core.reference import (
    log_uniform,
    nearly_nearest,
    normal,
    random_spec,
    rounded_nearest,
    small_integers,
)

LEVELS = simd_levels()


def far_from_zero(rng, spec, X):
    """A million standard deviations away, in both the centre and the rows."""
    spec.center += 1e6
    return X + 1e6


def subnormal_rows(rng, spec, X):
    return X * 1e-40


def subnormal_weights(rng, spec, X):
    weights, biases, slopes, offsets = spec.maps[0]
    spec.maps[0] = (weights * 1e-39, biases * 1e-39, slopes, offsets)
    return X


def as_it_is(rng, spec, X):
    return X


def strided(rng, X):
    """The same rows in another layout: every layout of NumPy in turn."""
    spaced = np.zeros((2 * X.shape[0], 3 * X.shape[1]), dtype=X.dtype)[::2, ::3]
    spaced[:] = X
    backwards = np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]
    raw = np.frombuffer(b"x" + X.tobytes(), dtype=np.uint8)[1:]
    unaligned = raw.view(X.dtype).reshape(X.shape)
    return [X, np.asfortranarray(X), spaced, backwards, unaligned][rng.integers(5)]


CHANGES = [as_it_is, far_from_zero, subnormal_rows, subnormal_weights]


def random_case(number):
    """A map and rows; the kinds of numbers, types and changes come in turn."""
    rng = np.random.default_rng([3, number])
    draw = [normal, small_integers][number % 2]
    spec = random_spec(rng, draw=draw)
    X = spec.center + draw(rng, (rng.integers(0, 50), len(spec.center)))
    change = CHANGES[number // 2 % 4]
    X = change(rng, spec, X).astype([np.float32, np.float64][number // 8 % 2])
    is_exact = draw is small_integers and change is as_it_is
    return spec, X, strided(rng, X), is_exact


@pytest.mark.parametrize(("double", "n_maps"), [(False, 10_000), (True, 2_000)])
@pytest.mark.parametrize("quarter", range(4))
def test_random_maps_give_the_nearest_point_of_the_definition_on_every_path(
    double, n_maps, quarter
):
    dtype = np.float64 if double else np.float32
    for number in range(quarter * n_maps // 4, (quarter + 1) * n_maps // 4):
        spec, X, rows, is_exact = random_case(number)
        allowed = nearly_nearest(spec, X, dtype)
        expected = np.argmax(allowed, axis=1)
        is_close = allowed.sum(axis=1) > 1
        for level in LEVELS:
            # Where no rounding can matter the point is given; elsewhere every rounding counts.
            expected[is_close] = rounded_nearest(spec, X[is_close], dtype, level)
            assert np.all(allowed[np.arange(len(X)), expected])
            assert_array_equal(spec.build(level=level, double=double).nearest(rows), expected)
        if is_exact:
            assert_array_equal(expected, definition.nearest(spec, X))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("shape", [(700, 33), (1030, 3), (5, 1000), (300, 641), (2000, 2)])
def test_large_maps_of_integers_give_the_lowest_index(level, double, shape):
    rng = np.random.default_rng(sum(shape))
    spec = random_spec(rng, *shape, draw=small_integers)
    X = small_integers(rng, (61, shape[1])).astype(np.float32)
    chosen = spec.build(level=level, double=double).nearest(X)
    assert_array_equal(chosen, definition.nearest(spec, X))


@pytest.mark.parametrize("level", LEVELS)
def test_equal_points_give_the_lowest_index(level):
    weights = np.ones((40, 3))
    spec = definition.Spec(
        np.zeros(3), [(weights, np.full(40, 1.5), np.zeros((40, 1, 3)), np.zeros((40, 1)))]
    )
    assert_array_equal(spec.build(level=level).nearest(np.ones((50, 3))), np.zeros(50))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("double", [False, True])
def test_a_projection_moves_the_search_to_fewer_directions(level, double):
    rng = np.random.default_rng(8)
    for n_features, n_search in [(300, 7), (5, 5), (61, 32), (700, 400)]:
        projection = small_integers(rng, (n_features, n_search))
        spec = random_spec(
            rng, log_uniform(rng, 200), n_features, draw=small_integers, projection=projection
        )
        X = spec.center + small_integers(rng, (70, n_features))
        chosen = spec.build(level=level, double=double).nearest(X)
        assert_array_equal(chosen, definition.nearest(spec, X))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("double", [False, True])
def test_a_row_has_the_same_answer_alone_in_any_batch_and_layout(level, double):
    rng = np.random.default_rng(5)
    for _ in range(20):
        spec = random_spec(rng, n_values=2)
        maps = spec.build(level=level, double=double)
        X = spec.center + rng.normal(size=(67, len(spec.center)))
        together = maps.nearest(X)
        assert_array_equal([maps.nearest(row[None])[0] for row in X], together)
        assert_array_equal(maps.nearest(np.asfortranarray(X)[3:41]), together[3:41])


def test_float32_rows_and_the_same_numbers_in_float64_agree_to_the_bit():
    rng = np.random.default_rng(6)
    spec = random_spec(rng, 90, 11)
    X = (1000 * rng.normal(size=(500, 11))).astype(np.float32)
    maps = spec.build()
    assert_array_equal(maps.decide(X), maps.decide(X.astype(np.float64)))


def test_zero_rows_give_zero_answers():
    spec = random_spec(np.random.default_rng(0), 5, 3)
    maps = spec.build()
    assert maps.nearest(np.empty((0, 3))).shape == (0,)
    assert maps.decide(np.empty((0, 3))).shape == (0, 1)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("blend", [1, 3])
def test_a_row_with_a_nan_gets_point_0_and_nan_values(level, blend):
    rng = np.random.default_rng(7)
    spec = random_spec(rng, 30, 6, n_values=2, blend=blend)
    maps = spec.build(level=level)
    X = rng.normal(size=(60, 6))
    expected = maps.decide(X)
    X[::7, 2] = np.nan
    assert_array_equal(maps.nearest(X)[::7], 0)
    assert np.all(np.isnan(maps.decide(X)[::7]))
    kept = np.arange(60) % 7 != 0
    assert_array_equal(maps.decide(X)[kept], expected[kept])


@pytest.mark.parametrize("level", LEVELS)
def test_infinite_and_overflowing_rows_stay_in_bounds(level):
    rng = np.random.default_rng(9)
    for blend in (1, 4):
        maps = random_spec(rng, 30, 6, blend=blend).build(level=level)
        X = rng.choice([0.0, 1.0, np.inf, -np.inf, 1e308, np.nan], size=(200, 6))
        X[::9] = X[::9] == 0.0
        is_plain = np.all((X == 0) | (X == 1), axis=1)
        assert 0 < is_plain.sum() < 200
        assert np.all((maps.nearest(X) >= 0) & (maps.nearest(X) < 30))
        assert_array_equal(maps.decide(X)[is_plain], maps.decide(X[is_plain]))
        assert np.all(np.isnan(maps.decide(X)[np.isnan(X).any(axis=1)]))


def test_a_map_is_chosen_by_its_index():
    rng = np.random.default_rng(4)
    spec = random_spec(rng, 20, 5, draw=small_integers, n_maps=3)
    X = small_integers(rng, (50, 5))
    for index in range(3):
        assert_array_equal(spec.build().nearest(X, index=index), definition.nearest(spec, X, index))


def test_the_answer_goes_where_the_caller_wants_it():
    maps = Maps([0.0], [([[0.0], [1.0]], [0.0, 0.5], np.zeros((2, 1, 1)), np.zeros((2, 1)))])
    out = np.full(2, 9, dtype=np.int32)
    assert maps.nearest(np.array([[0.2], [0.9]]), out) is out
    assert_array_equal(out, [0, 1])
