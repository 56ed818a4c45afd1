"""Probabilities of classes, on every SIMD level, against their definition in NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from limes._core import Classifier, Maps, simd_levels
from limes.model.schemes import with_largest_at

LEVELS = simd_levels()


def maps_of_values(n_values, *, n_maps=1, **options):
    """Return maps whose values are the features of a row, all of one map or one each."""
    slopes = np.eye(n_values).reshape(n_maps, 1, -1, n_values)
    point = (np.zeros((1, n_values)), np.zeros(1))
    offsets = np.zeros((1, n_values // n_maps))
    return Maps(np.zeros(n_values), [(*point, slope, offsets) for slope in slopes], **options)


def definition(values, *, is_one_vs_rest=False):
    logits = values.astype(np.float64)
    winners = logits.argmax(axis=1)
    if logits.shape[1] == 1:
        logits, winners = np.hstack([0 * logits, 2 * logits]), (logits[:, 0] > 0).astype(int)
    if is_one_vs_rest:
        logits = 2 * np.minimum(logits, 0.0)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return with_largest_at(powers / powers.sum(axis=1, keepdims=True), winners)


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n_values", [1, 2, 3, 8, 26, 150])
def test_probabilities_are_those_of_the_definition(n_values, level, double):
    rng = np.random.default_rng(n_values)
    classifier = Classifier(maps_of_values(n_values, level=level, double=double))
    for n_rows in (0, 1, 7, 8, 9, 500):
        values = rng.normal(scale=rng.choice([0.1, 5.0, 200.0]), size=(n_rows, n_values))
        values = values.astype(np.float32)
        found, invalid = classifier.probabilities(values)
        expected = definition(values)
        assert invalid == -1
        assert_allclose(found, expected, atol=1e-15 if double else 1e-12)
        assert_array_equal(found.argmax(axis=1), classifier.classify(values))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n_values", [2, 5, 26])
def test_odds_against_the_best_count_where_they_are_below_one(n_values, level):
    maps = maps_of_values(n_values, n_maps=n_values, level=level)
    values = np.random.default_rng(1).normal(size=(300, n_values)).astype(np.float32)
    found, _ = Classifier(maps, "highest").probabilities(values)
    assert_allclose(found, definition(values, is_one_vs_rest=True), atol=1e-12)
    assert_array_equal(found.argmax(axis=1), values.argmax(axis=1))


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("level", LEVELS)
def test_the_largest_probability_is_that_of_the_class_where_rounding_makes_a_tie(level, double):
    tiny = 1e-30
    values = np.array([[0.0, tiny, 0.0], [0.0, 0.0, 0.0], [tiny, 0.0, tiny], [-tiny, 0.0, tiny]])
    classifier = Classifier(maps_of_values(3, level=level, double=double))
    found, _ = classifier.probabilities(values)
    assert_array_equal(found.argmax(axis=1), [1, 0, 0, 2])
    assert_allclose(found, definition(values), rtol=1e-12)
    pair = Classifier(maps_of_values(1, level=level, double=double))
    found, _ = pair.probabilities(np.array([[tiny], [0.0], [-tiny]]))
    assert_array_equal(found.argmax(axis=1), [1, 0, 0])


@pytest.mark.parametrize("level", LEVELS)
def test_extreme_values_have_finite_probabilities(level):
    values = np.array([[1e30, -1e30, 0.0], [-800.0, 0.0, -710.0]])
    found, _ = Classifier(maps_of_values(3, level=level)).probabilities(values)
    assert_allclose(found, [[1, 0, 0], [0, 1, 0]], atol=1e-300)
    found, _ = Classifier(maps_of_values(1, level=level)).probabilities(values[:, :1])
    assert_allclose(found, [[0, 1], [1, 0]], atol=1e-300)


@pytest.mark.parametrize("level", LEVELS)
def test_a_row_without_probabilities_is_named(level):
    classifier = Classifier(maps_of_values(3, level=level))
    rows = np.zeros((5000, 3))
    rows[4321, 1] = np.nan
    rows[4567, 2] = np.inf
    found, invalid = classifier.probabilities(rows, n_threads=2)
    assert invalid == 4321
    assert_array_equal(np.isnan(found).any(axis=1).nonzero()[0], [4321, 4567])


def test_rules_without_probabilities_are_refused():
    votes = maps_of_values(3, n_maps=3, pairs=[[0, 1], [0, 2], [1, 2]])
    for classifier in (
        Classifier(votes),
        Classifier(maps_of_values(3, n_maps=3), "coupled"),
        Classifier(maps_of_values(1), "highest"),
        Classifier(maps_of_values(1, pairs=[[1, 0]])),
    ):
        assert not classifier.has_probabilities
        with pytest.raises(ValueError, match="need a single map"):
            classifier.probabilities(np.zeros((2, classifier._native.n_features)))


def test_probabilities_are_written_into_a_given_array():
    classifier, rows = Classifier(maps_of_values(3)), np.zeros((4, 3))
    out = np.empty((4, 3))
    assert classifier.probabilities(rows, out)[0] is out
    assert_allclose(out, 1 / 3)
    with pytest.raises(TypeError, match="out must be float64"):
        classifier.probabilities(rows, out.astype(np.float32))
    with pytest.raises(ValueError, match="out must have shape"):
        classifier.probabilities(rows, np.empty((4, 2)))
