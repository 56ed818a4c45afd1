"""The class rules in the compiled core: their definition is ``class_index`` of each scheme."""

import datetime
from collections import UserDict
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from limes import BorderMap
from limes.model.affine import AffineMap
from limes.model.coupling import class_pairs
from limes.model.curved_base import CurvedBase
from limes.model.model import Model, scheme_index, scheme_labels, scheme_values
from limes.model.schemes import (
    OneVsRestScheme,
    PairwiseScheme,
    SharedScheme,
    ShortlistScheme,
    TreeScheme,
)

RULES = [
    "two",
    "vote",
    "coupled",
    "one-vs-rest",
    "shared",
    "shortlist",
    "long shortlist",
    "coupled shortlist",
    "tree",
]


def probabilities_of(scheme, rows):
    """Return class probabilities by the model of a scheme."""
    return Model(scheme, np.arange(scheme.n_classes), scheme.maps[0].n_features).predict_proba(rows)


def draw_maps(rng, n_maps, n_features, n_outputs=1, *, whole=False):
    """Random maps; of whole numbers, values are often equal, and often zero."""
    blend = int(rng.integers(1, 4))

    def draw(*shape):
        return rng.integers(-2, 3, size=shape) / 1.0 if whole else rng.normal(size=shape)

    return tuple(
        BorderMap(
            draw(n_points, n_features),
            draw(n_points, n_outputs, n_features),
            draw(n_points, n_outputs),
            blend=blend,
        )
        for n_points in rng.integers(1, 9, size=n_maps)
    )


def draw_tree(rng, n_classes):
    """A random tree: forks are opened at random, their classes numbered at random."""
    leaves, children = [(0, 0)], np.zeros((n_classes - 1, 2), dtype=np.int64)
    for fork in range(n_classes - 1):
        place = leaves.pop(rng.integers(len(leaves)))
        if fork:
            children[place] = fork
        leaves += [(fork, 0), (fork, 1)]
    children[tuple(np.transpose(leaves))] = -1 - rng.permutation(n_classes)
    return children


def draw_scheme(rule, rng, **options):
    double, whole = bool(rng.integers(2)), bool(rng.integers(2))
    n_classes, n_features = int(rng.integers(3, 8)), int(rng.integers(1, 12))
    n_pairs = len(class_pairs(n_classes))

    def maps(n_maps, n_outputs=1):
        return draw_maps(rng, n_maps, n_features, n_outputs, whole=whole)

    if rule == "two":
        return PairwiseScheme(maps(1), 2, double)
    if rule in ("vote", "coupled"):
        return PairwiseScheme(maps(n_pairs), n_classes, double, by_vote=rule == "vote")
    if rule == "one-vs-rest":
        return OneVsRestScheme(maps(n_classes), n_classes, double)
    if rule == "shared":
        return SharedScheme(maps(1, n_classes), n_classes, double)
    if rule == "tree":
        return TreeScheme(maps(n_classes - 1), n_classes, double, draw_tree(rng, n_classes))
    return ShortlistScheme(
        (*maps(1, n_classes), *maps(n_pairs)),
        n_classes,
        double,
        max_classes=n_classes if rule == "long shortlist" else int(rng.integers(1, 5)),
        logit_margin=float(rng.choice([0.0, 1.0, 3.5, 1e6])),
        pair_weight=float(rng.choice([0.0, 0.5, 0.65, 1.0])),
        by_vote="coupled" not in rule,
    )


def draw_rows(scheme, rng, n_rows):
    rows = rng.normal(scale=2.0, size=(n_rows, scheme.maps[0].n_features))
    if rng.integers(2):
        rows = np.round(rows)
    return rows.astype(rng.choice([np.float32, np.float64]))


@pytest.mark.parametrize("rule", RULES)
def test_the_core_names_the_class_of_the_definition(rule):
    for number in range(60):
        rng = np.random.default_rng([1, number])
        scheme = draw_scheme(rule, rng)
        rows = draw_rows(scheme, rng, int(rng.integers(0, 200)))
        expected = scheme.class_index(scheme.values(rows))
        assert_array_equal(scheme.classify(rows), expected)
        assert_array_equal(scheme.classify(np.asfortranarray(rows)[::-1]), expected[::-1])
        predict_one = scheme.predictor(list(range(scheme.n_classes)))
        assert [predict_one(row) for row in rows[:20]] == expected[:20].tolist()
        assert [predict_one(row.tolist()) for row in rows[:20]] == expected[:20].tolist()
        assert predict_one(rows) == expected.tolist()


@pytest.mark.parametrize("rule", RULES)
def test_the_core_has_the_probabilities_of_the_definition(rule):
    for number in range(60):
        rng = np.random.default_rng([2, number])
        scheme = draw_scheme(rule, rng)
        rows = draw_rows(scheme, rng, int(rng.integers(0, 200)))
        values = scheme.values(rows)
        found = probabilities_of(scheme, rows)
        assert found.dtype == np.float64
        assert found.shape == (len(rows), scheme.n_classes)
        assert_allclose(found, scheme.probabilities(values), atol=1e-12)
        assert_array_equal(found.argmax(axis=1), scheme.class_index(values))
        assert_array_equal(
            probabilities_of(scheme, np.asfortranarray(rows)[::-1]), found[::-1], strict=True
        )


@pytest.mark.parametrize("rule", ["two", "one-vs-rest", "shared"])
def test_probabilities_of_maps_that_share_rows_are_computed_in_the_core(rule):
    scheme = draw_scheme(rule, np.random.default_rng(0))
    assert scheme.core_probabilities is scheme.classifier


@pytest.mark.parametrize("rule", RULES)
def test_neither_threads_nor_other_rows_change_a_probability(rule):
    rng = np.random.default_rng(3)
    scheme = draw_scheme(rule, rng)
    rows = draw_rows(scheme, rng, 100_000 if rule in ("two", "shared") else 5000)
    expected = scheme.predict_proba(rows)
    assert_array_equal(scheme.predict_proba(rows, n_threads=3), expected)
    assert_array_equal(scheme.predict_proba(rows[1000:1077]), expected[1000:1077])


@pytest.mark.parametrize("n_outputs", [1, 2, 5])
@pytest.mark.parametrize("shape", ["envelope", "diagonal", "quadratic"])
def test_probabilities_of_a_curved_map_are_those_of_the_definition(shape, n_outputs):
    rng = np.random.default_rng(8)
    squares = {"envelope": None, "diagonal": (n_outputs, 3), "quadratic": (n_outputs, 6)}[shape]
    curve = CurvedBase(
        AffineMap.identity(3),
        rng.normal(size=n_outputs),
        rng.normal(size=(n_outputs, 3)),
        None if squares is None else rng.normal(size=squares),
    )
    (flat,) = draw_maps(rng, 1, 3, n_outputs)
    curved = (replace(flat, curve=curve),)
    scheme = PairwiseScheme(curved, 2) if n_outputs == 1 else SharedScheme(curved, n_outputs)
    rows = draw_rows(scheme, rng, 100)
    expected = scheme.probabilities(scheme.values(rows))
    assert_allclose(probabilities_of(scheme, rows), expected, atol=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_the_definition_is_met_where_everything_ties(rule):
    rng = np.random.default_rng(0)
    scheme = draw_scheme(rule, rng)
    flat = tuple(
        BorderMap(one.points, 0.0 * one.slopes, 0.0 * one.offsets, blend=one.blend)
        for one in scheme.maps
    )
    object.__setattr__(scheme, "maps", flat)
    rows = draw_rows(scheme, rng, 100)
    values = scheme.values(rows)
    assert_array_equal(scheme.classify(rows), scheme.class_index(values))
    assert_allclose(scheme.predict_proba(rows), scheme.probabilities(values), rtol=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_neither_threads_nor_other_rows_change_a_class(rule):
    rng = np.random.default_rng(3)
    scheme = draw_scheme(rule, rng)
    rows = draw_rows(scheme, rng, 300_000 if rule == "two" else 50_000)
    expected = scheme.classify(rows)
    assert_array_equal(scheme.classify(rows, n_threads=3), expected)
    assert_array_equal(scheme.classify(rows[1000:1077]), expected[1000:1077])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("double", [False, True])
def test_rows_far_beyond_the_points_have_finite_answers(rule, double):
    rng = np.random.default_rng(4)
    scheme = draw_scheme(rule, rng)
    object.__setattr__(scheme, "double", double)
    n_features = scheme.maps[0].n_features
    ways = rng.normal(size=(60, n_features))
    ways /= np.abs(ways).max(axis=1, keepdims=True)
    largest = float(np.finfo(np.float64 if double else np.float32).max)
    for size in (1e30, 1e36, 1e37, 3.4e38, largest) + (1e300, 1e305) * double:
        rows = (size * ways).astype(np.float64 if size > 3.5e38 else np.float32)
        class_index, probabilities = (
            scheme_index(scheme, rows),
            probabilities_of(scheme, rows),
        )
        assert np.isfinite(probabilities).all()
        assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-9)
        assert_array_equal(probabilities.argmax(axis=1), class_index)
        predict_one = scheme.predictor(list(range(scheme.n_classes)))
        assert [predict_one(row) for row in rows] == class_index.tolist()
        if rule != "shortlist" and rule != "coupled shortlist":  # which name fewer, the surer
            assert_array_equal(class_index, scheme_index(scheme, (1e20 * ways).astype(np.float32)))


def test_a_single_border_has_the_sign_of_its_side_however_far():
    scheme = PairwiseScheme((BorderMap.from_borders(points=[[0.0]], normals=[[3.0]]),), 2)
    rows = np.array([[1e30], [3e38], [-3e38], [-1e37]], dtype=np.float32)
    values = np.concatenate([values for _, values in scheme_values(scheme, rows)])
    assert np.isfinite(values).all()
    assert_array_equal(np.sign(values[:, 0]), [1, 1, -1, -1])


@pytest.mark.parametrize("rule", RULES)
def test_many_rows_beyond_the_range_stand_among_others(rule):
    rng = np.random.default_rng(5)
    scheme = draw_scheme(rule, rng)
    rows = draw_rows(scheme, rng, 3000).astype(np.float32)
    is_far = rng.random(len(rows)) < 0.3
    rows[is_far] = np.where(rows[is_far] == 0, 0, 3e38 * np.sign(rows[is_far]))
    expected = scheme.class_index(scheme.values(scheme.classifier.scale_into_range(rows)))
    assert_array_equal(scheme.classify(rows, n_threads=2), expected)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "contains NaN, in row 70003"),
        (np.inf, "contains infinity, in row 70003"),
        (-np.inf, "contains infinity, in row 70003"),
        (-1e39, "too large for float32 in row 70003, -1e[+]39"),
    ],
)
def test_the_first_row_without_an_answer_is_named(rule, value, message):
    rng = np.random.default_rng(6)
    scheme = draw_scheme(rule, rng)
    object.__setattr__(scheme, "double", False)
    rows = draw_rows(scheme, rng, 70_010).astype(np.float64)
    rows[70_003:, -1] = value
    for n_threads in (1, 3):
        with pytest.raises(ValueError, match=message):
            scheme_index(scheme, rows, n_jobs=n_threads)
    with pytest.raises(ValueError, match=message):
        probabilities_of(scheme, rows)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, 9], dtype=np.int8),
        np.array([False, True]),
        np.array([3, 900], dtype=np.uint16),
        np.array([0.5, -1.5], dtype=np.float32),
        np.array([1 << 60, -7]),
        np.array(["no", "certainly"]),
        np.array([b"a", b"bcd"]),
        np.array(["2020-01-01", "2021-02-03"], dtype="datetime64[D]"),
        np.array([1 + 2j, 3.0]),
        np.array(["a", datetime.date(2020, 1, 1)], dtype=object),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_of_any_type_come_back_as_they_are(labels):
    scheme = PairwiseScheme((BorderMap.from_borders(points=[[0.0]], normals=[[1.0]]),), 2)
    rows = np.random.default_rng(0).normal(size=(70_000, 1))
    found = scheme_labels(scheme, rows, labels)
    assert found.dtype == labels.dtype
    assert_array_equal(found, labels[(rows[:, 0] > 0).astype(int)])


WRONG_ROWS = {
    "dict": ({0.0: 1, 1.0: 2}, TypeError, "array or a sequence of real numbers, got dict"),
    "keys": (
        UserDict({0: 5.0, 1: 6.0}),
        TypeError,
        "array or a sequence of real numbers, got .*UserDict",
    ),
    "frame": (
        pd.DataFrame([[5.0, 6.0]]),
        TypeError,
        "array or a sequence of real numbers, got .*DataFrame",
    ),
    "set": ({0.0, 1.0}, TypeError, "array or a sequence of real numbers, got set"),
    "text": ("ab", TypeError, "array or a sequence of real numbers, got str"),
    "bytes": (b"ab", TypeError, "float32 or float64"),
    "words": (["a", "b"], TypeError, "real numbers, got str at place 0"),
    "nested": ([[0.0, 1.0]] * 2, TypeError, "real numbers, got list at place 0"),
    "mask": (np.ma.masked_array([0.0, 1.0], [0, 1]), TypeError, "without a mask"),
    "date": (
        np.zeros(2, dtype="datetime64[s]"),
        TypeError,
        "must be an array of numbers.*dtype 'M'",
    ),
    "integers": (np.zeros(2, dtype=int), TypeError, "float32 or float64"),
    "objects": (np.zeros(2, dtype=object), TypeError, "float32 or float64"),
    "long": (np.zeros(3), ValueError, "must have 2 features, got 3"),
    "short": ([1.0], ValueError, "must have 2 features, got 1"),
    "wide": (np.zeros((4, 3)), ValueError, "must have shape"),
    "number": (1.0, TypeError, "array or a sequence of real numbers, got float"),
    "none": (None, TypeError, "array or a sequence of real numbers, got NoneType"),
    "huge": ([10**400, 0], OverflowError, "too large"),
}


@pytest.fixture(scope="module")
def predictors():
    """One for each rule, of two features."""
    made = {}
    for rule in RULES:
        seeds = (np.random.default_rng(seed) for seed in range(1000))
        scheme = next(s for s in (draw_scheme(rule, rng) for rng in seeds) if n_features(s) == 2)
        made[rule] = scheme.predictor(list(range(scheme.n_classes)))
    return made


def n_features(scheme):
    return scheme.maps[0].n_features


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", WRONG_ROWS)
def test_a_wrong_row_is_refused_by_every_rule(rule, kind, predictors):
    row, error, message = WRONG_ROWS[kind]
    with pytest.raises(error, match=message):
        predictors[rule](row)
    assert isinstance(predictors[rule]([0.0, 1.0]), int)  # and is none the worse


@pytest.mark.parametrize("rule", RULES)
def test_a_row_of_a_data_frame_is_a_row(rule, predictors):
    row = pd.DataFrame([[0.5, -1.5]], columns=["b", "a"]).iloc[0]
    assert predictors[rule](row) == predictors[rule]([0.5, -1.5])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_row_without_a_number_is_of_the_first_class(rule, value, predictors):
    assert predictors[rule]([0.0, value]) == 0
    assert predictors[rule](np.array([[0.0, value]], dtype=np.float32)) == [0]
