"""Values, blending, votes and single rows, on every SIMD level, against the definition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from limes._core import Classifier, simd_levels
from tests._core import reference as definition
from tests._core.reference import normal, random_spec, small_integers

LEVELS = simd_levels()
ARITHMETIC = [(False, 2e-5), (True, 1e-12)]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("double", "tolerance"), ARITHMETIC)
@pytest.mark.parametrize("n_values", [1, 2, 3, 5, 26])
def test_values_are_those_of_the_nearest_point(level, double, tolerance, n_values):
    rng = np.random.default_rng(n_values)
    for n_features in (1, 3, 8, 16, 37, 260):
        spec = random_spec(rng, None, n_features, draw=small_integers, n_values=n_values)
        X = small_integers(rng, (55, n_features))
        values = spec.build(level=level, double=double).decide(X)
        assert values.dtype == (np.float64 if double else np.float32)
        assert_allclose(values, definition.decide(spec, X), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("double", "tolerance"), ARITHMETIC)
@pytest.mark.parametrize("blend", [2, 3, 4, 8, 9, 400])
def test_blended_values_with_ties_follow_the_definition(level, double, tolerance, blend):
    rng = np.random.default_rng(blend)
    for n_points in (1, 2, 3, 5, 30, 200):
        spec = random_spec(rng, n_points, 6, draw=small_integers, n_values=3, blend=blend)
        X = small_integers(rng, (77, 6))
        values = spec.build(level=level, double=double).decide(X)
        assert_allclose(values, definition.decide(spec, X), rtol=tolerance, atol=20 * tolerance)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("sizes", [(200, 96), (130, 97), (1000, 90), (40, 129)])
def test_a_small_map_blends_beside_a_large_one(level, double, sizes):
    rng = np.random.default_rng(13)
    spec = random_spec(rng, sizes[0], 5, draw=small_integers, blend=8)
    spec.maps += random_spec(rng, sizes[1], 5, draw=small_integers).maps
    X = small_integers(rng, (333, 5))
    values = spec.build(level=level, double=double).decide(X)
    assert_allclose(values, definition.decide(spec, X), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("level", LEVELS)
def test_blended_values_of_continuous_rows_follow_the_definition(level):
    rng = np.random.default_rng(12)
    for _ in range(30):
        spec = random_spec(rng, n_values=2, blend=int(rng.integers(2, 11)))
        X = spec.center + normal(rng, (40, len(spec.center)))
        values = spec.build(level=level, double=True).decide(X)
        assert_allclose(values, definition.decide(spec, X), rtol=1e-7, atol=1e-7)


def test_a_blend_is_continuous_where_the_nearest_point_changes():
    rng = np.random.default_rng(2)
    spec = random_spec(rng, 40, 2, blend=3)
    points = rng.normal(size=(40, 2))
    spec.maps[0] = (points, 0.5 * np.sum(points**2, axis=1), *spec.maps[0][2:])
    line = np.linspace(-2, 2, 200_001)[:, None] * [1.0, 0.3]
    assert len(np.unique(spec.build().nearest(line))) > 5
    values = spec.build(double=True).decide(line)[:, 0]
    assert np.abs(np.diff(values)).max() < 1e-3 * np.ptp(values)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("blend", [1, 3])
def test_several_maps_stand_side_by_side(level, blend):
    rng = np.random.default_rng(13)
    spec = random_spec(rng, 40, 9, draw=small_integers, n_maps=2, n_values=3, blend=blend)
    spec.maps += random_spec(rng, 7, 9, draw=small_integers, n_maps=3, n_values=1).maps
    X = small_integers(rng, (100, 9))
    values = spec.build(level=level).decide(X)
    assert values.shape == (100, 9)
    assert_allclose(values, definition.decide(spec, X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("level", LEVELS)
def test_values_with_a_projection_use_all_features(level):
    rng = np.random.default_rng(14)
    projection = small_integers(rng, (30, 4))
    spec = random_spec(rng, 50, 30, draw=small_integers, n_values=2, projection=projection)
    X = small_integers(rng, (100, 30))
    assert_allclose(spec.build(level=level).decide(X), definition.decide(spec, X), rtol=1e-5)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("options", [{}, {"blend": 3}, {"projection": np.eye(9)[:, :4]}])
def test_only_the_named_maps_are_evaluated(level, double, options):
    rng = np.random.default_rng(15)
    spec = random_spec(rng, 40, 9, n_maps=6, n_values=2, **options)
    maps = spec.build(level=level, double=double)
    X = rng.normal(size=(300, 9))
    map_numbers = rng.integers(-1, 6, size=(300, 4)).astype(np.int32)
    every = maps.decide(X).reshape(300, 6, 2)
    some = maps.decide_selected(X, map_numbers)
    assert some.shape == (300, 4, 2)
    expected = np.take_along_axis(every, np.maximum(map_numbers, 0)[:, :, None], axis=1)
    expected[map_numbers < 0] = np.nan
    assert_array_equal(some, expected)


@pytest.mark.parametrize("level", LEVELS)
def test_one_value_names_class_1_above_zero(level):
    rng = np.random.default_rng(16)
    maps = random_spec(rng, 30, 4).build(level=level)
    X = rng.normal(size=(200, 4))
    assert_array_equal(Classifier(maps).classify(X), maps.decide(X)[:, 0] > 0)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("blend", [1, 2])
def test_several_values_name_the_class_of_the_highest(level, blend):
    rng = np.random.default_rng(17)
    maps = random_spec(rng, 30, 4, n_values=5, blend=blend).build(level=level)
    X = rng.normal(size=(200, 4))
    assert_array_equal(Classifier(maps).classify(X), np.argmax(maps.decide(X), axis=1))


@pytest.mark.parametrize("level", LEVELS)
def test_pairs_vote_and_the_lowest_class_wins_a_tie(level):
    rng = np.random.default_rng(18)
    pairs = np.array([(i, j) for i in range(5) for j in range(i + 1, 5)])
    maps = random_spec(rng, 20, 6, n_maps=10, pairs=pairs).build(level=level)
    X = rng.normal(size=(500, 6))
    winners = np.where(maps.decide(X) > 0, pairs[:, 1], pairs[:, 0])
    votes = np.array([np.bincount(row, minlength=5) for row in winners])
    assert_array_equal(Classifier(maps).classify(X), np.argmax(votes, axis=1))
    assert np.any(np.sort(votes, axis=1)[:, -1] == np.sort(votes, axis=1)[:, -2])


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("options", [{}, {"blend": 3}, {"projection": np.eye(7)[:, :3]}])
def test_single_rows_are_classified_as_in_a_batch(double, options):
    rng = np.random.default_rng(19)
    maps = random_spec(rng, 70, 7, n_values=4, **options).build(double=double)
    predict = Classifier(maps).predictor("abcd")
    X = rng.normal(size=(60, 7)).astype(np.float32)
    expected = ["abcd"[number] for number in Classifier(maps).classify(X)]
    assert [predict(row) for row in X] == expected
    assert [predict(row.tolist()) for row in X] == expected
    assert predict(X) == expected
    assert predict(X[:, ::-1][:, ::-1].astype(np.float64)) == expected


def test_without_labels_the_number_of_the_class_comes_back():
    maps = random_spec(np.random.default_rng(20), 5, 3).build()
    classifier = Classifier(maps)
    assert classifier.predictor()(np.zeros(3)) == classifier.classify(np.zeros((1, 3)))[0]


def test_a_single_row_with_a_nan_is_class_0():
    pairs = np.array([[0, 1], [0, 2], [1, 2]])
    row = np.array([0.0, np.nan, 1.0])
    for spec in (
        random_spec(np.random.default_rng(1), 9, 3, n_values=4),
        random_spec(np.random.default_rng(1), 9, 3),
        random_spec(np.random.default_rng(1), 9, 3, n_maps=3, pairs=pairs),
    ):
        assert Classifier(spec.build()).predictor()(row) == 0
