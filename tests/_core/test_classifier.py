"""The core's classifier, whatever Python hands it."""

import ctypes
import gc
import itertools
import weakref

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from limes._core import Classifier, _native, simd_levels
from tests._core.reference import random_spec

PAIRS = [[0, 1], [0, 2], [1, 2]]
TREE = np.array([[-1, 1], [-2, -3]], dtype=np.int32)


def build(n_maps=1, n_values=1, n_features=3, **options):
    spec = random_spec(
        np.random.default_rng(n_maps), 10, n_features, n_maps=n_maps, n_values=n_values
    )
    return spec.build(**options)


def shortlist(**options):
    pairs = build(3, **options)
    return Classifier(
        build(n_values=3, **options), "shortlist", pairs=pairs, shortlist=(2, 1.0, 0.5)
    )


RULES = {
    "two": lambda **options: Classifier(build(**options)),
    "vote": lambda **options: Classifier(build(3, pairs=PAIRS, **options)),
    "highest": lambda **options: Classifier(build(3, **options), "highest"),
    "coupled": lambda **options: Classifier(build(3, **options), "coupled"),
    "descend": lambda **options: Classifier(build(2, **options), "descend", children=TREE),
    "shortlist": shortlist,
}


@pytest.fixture(params=RULES)
def classifier(request):
    return RULES[request.param]()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("double", [False, True])
def test_every_level_names_the_same_classes(rule, double):
    X = np.random.default_rng(0).normal(size=(500, 3))
    answers = [RULES[rule](level=level, double=double).classify(X) for level in simd_levels()]
    for answer in answers[1:]:
        assert_array_equal(answer, answers[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_layout_of_rows_does_not_matter(classifier, dtype):
    X = np.random.default_rng(1).normal(size=(300, 3)).astype(dtype)
    expected = classifier.classify(X)
    spaced = np.zeros((600, 9), dtype=dtype)[::2, ::3]
    spaced[:] = X
    raw = np.frombuffer(b"x" + X.tobytes(), dtype=np.uint8)[1:]
    unaligned = raw.view(dtype).reshape(X.shape)
    backwards = np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]
    repeated = np.broadcast_to(X[:1], X.shape)
    for rows in (spaced, unaligned, backwards, np.asfortranarray(X)):
        assert_array_equal(classifier.classify(rows), expected)
    assert_array_equal(classifier.classify(repeated), np.full(300, expected[0]))
    bare = ((ctypes.c_double * 3) * 300)(*map(tuple, X.astype(float)))
    assert_array_equal(classifier.classify(bare), classifier.classify(X.astype(float)))
    rows = np.lib.stride_tricks.as_strided(X, shape=(1, 3), strides=(2**62, X.itemsize))
    assert_array_equal(classifier.classify(rows), expected[:1])


def test_no_rows_have_no_labels(classifier):
    assert classifier.classify(np.empty((0, 3))).shape == (0,)
    assert classifier.first_out_of_range(np.empty((0, 3))) == -1
    assert classifier.predictor()(np.empty((0, 3))) == []


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_first_row_beyond_the_range_is_found(classifier, layout, dtype):
    power = classifier._native.max_exponent
    for place, value in itertools.product(
        (0, 63, 64, 130, 199), (np.nan, -np.inf, 2.0**power * 1.5)
    ):
        X = layout(np.zeros((200, 3), dtype=dtype))
        X[place:, 2] = value
        assert classifier.first_out_of_range(X) == place
        assert classifier.first_out_of_range(X[:place]) == -1
    assert classifier.first_out_of_range(np.full((9, 3), 2.0**power, dtype=dtype)) == -1


def test_maps_of_numbers_that_leave_no_room_still_answer():
    spec = random_spec(np.random.default_rng(2), 3, 2, n_values=2)
    rows = np.array([[1.0, 2.0], [1e308, 0.0], [-1.0, 3.0], [-5.0, 1.0]])
    # No offsets: the class changes with the direction of a row, however near to zero it is moved.
    spec.center = 0 * spec.center
    *parts, offsets = spec.maps[0]
    spec.maps = [(*parts, 0 * offsets)]
    plain = Classifier(spec.build(double=True))
    spec.maps = [tuple(1e307 * part for part in spec.maps[0])]
    classifier = Classifier(spec.build(double=True))
    expected = plain.classify(classifier.scale_into_range(rows))
    assert set(expected) == {0, 1}
    assert_array_equal(classifier.classify(rows), expected)
    assert classifier.predictor()(rows) == classifier.classify(rows).tolist()


WRONG_ROWS = [
    (np.zeros((4, 3), dtype=np.float16), TypeError),
    (np.zeros((4, 3), dtype=">f8"), TypeError),
    (np.zeros((4, 3), dtype="datetime64[s]"), TypeError),
    (np.zeros((4, 3), dtype=object), TypeError),
    ([[0.0, 0.0, 0.0]], TypeError),
    (None, TypeError),
    (np.zeros((4, 2)), ValueError),
    (np.zeros(3), ValueError),
    (np.zeros((1, 4, 3)), ValueError),
]


@pytest.mark.parametrize(("X", "error"), WRONG_ROWS)
def test_wrong_rows_raise(classifier, X, error):
    with pytest.raises(error, match="X must"):
        classifier.classify(X)
    with pytest.raises(error, match="X must"):
        classifier.first_out_of_range(X)


def table(classifier):
    return np.zeros((classifier.n_classes, 4), dtype=np.uint8)


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (np.zeros((4, 4), dtype=np.int32), TypeError, "out must be bytes"),
        (np.zeros((4, 3), dtype=np.uint8), ValueError, "out must have shape"),
        (np.zeros((3, 4), dtype=np.uint8), ValueError, "out must have shape"),
        (np.zeros(16, dtype=np.uint8), ValueError, "out must have shape"),
        (np.zeros((4, 8), dtype=np.uint8)[:, ::2], ValueError, "C-contiguous"),
        (np.zeros((4, 4), dtype=np.uint8)[::-1], ValueError, "C-contiguous"),
        (np.frombuffer(bytes(16), dtype=np.uint8).reshape(4, 4), TypeError, "writable.*read-only"),
        ([1, 2, 3, 4], TypeError, "out must be a writable array, got list"),
    ],
)
def test_a_wrong_place_for_labels_raises(classifier, out, error, message):
    with pytest.raises(error, match=message):
        classifier._native.label(np.zeros((4, 3)), table(classifier), out, 1)


def test_wrong_labels_raise(classifier):
    out, rows = np.zeros((4, 4), dtype=np.uint8), np.zeros((4, 3))
    for wrong in (table(classifier)[1:], table(classifier)[:, ::2], table(classifier)[:, 1:]):
        with pytest.raises(ValueError, match="must"):
            classifier._native.label(rows, wrong, out, 1)
    for wrong in (table(classifier).astype(np.int32), np.zeros(4, dtype=np.uint8), "text", None):
        with pytest.raises(TypeError, match="table must"):
            classifier._native.label(rows, wrong, out, 1)
    with pytest.raises(TypeError, match="labels must not be objects"):
        classifier.label(rows, np.array(["a", None, 1], dtype=object))
    with pytest.raises(ValueError, match="n_threads must be at least 1"):
        classifier.classify(rows, n_threads=0)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            ("a", "own", None, None, None, None),
            TypeError,
            "maps must be a Maps of the core, got str",
        ),
        ((None, "own", None, None, None, None), TypeError, "maps must be a Maps"),
        ((3, "best", None, None, None, None), ValueError, "rule must be one of .* got 'best'"),
        ((3, "own", None, None, None, None), ValueError, "use decide"),
        ((2, "coupled", None, None, None, None), ValueError, "all pairs of classes"),
        ((3, "highest", 3, None, None, None), ValueError, "pairs are for a shortlist"),
        ((2, "descend", None, None, None, None), TypeError, "children must be an array"),
        ((3, "descend", None, TREE, None, None), ValueError, "children must have shape"),
        (
            (2, "descend", None, TREE.astype(np.int64), None, None),
            TypeError,
            "children must be int32",
        ),
        (
            (2, "descend", None, TREE - 1, None, None),
            ValueError,
            "children must lead to later maps",
        ),
        (
            (2, "descend", None, TREE + 2, None, None),
            ValueError,
            "children must lead to later maps",
        ),
        (
            (2, "descend", None, np.array([[0, -1], [-2, -3]], np.int32), None, None),
            ValueError,
            "later",
        ),
        ((1, "shortlist", None, None, (2, 1.0, 0.5), None), TypeError, "maps of pairs"),
        ((1, "shortlist", 3, None, None, None), TypeError, "must be a tuple"),
        ((1, "shortlist", 3, None, (2, "a", 0.5), None), TypeError, r"got \(2, 'a', 0.5\)"),
        ((1, "shortlist", 3, None, (0, 1.0, 0.5), None), ValueError, "at least 1 class"),
        ((1, "shortlist", 3, None, (2, np.nan, 0.5), None), ValueError, "finite margin"),
        ((1, "shortlist", 3, None, (2, 1.0, 0.5), None), ValueError, "pairs must be 0 maps"),
        ((3, "shortlist", 3, None, (2, 1.0, 0.5), None), ValueError, "one map for all classes"),
    ],
)
def test_rules_that_do_not_fit_their_maps_raise(arguments, error, message):
    made = [build(one)._native if isinstance(one, int) else one for one in arguments]
    with pytest.raises(error, match=message):
        _native.Classifier(*made)


def test_pairs_of_other_rows_or_another_arithmetic_raise():
    shared = build(n_values=3)
    for pairs in (build(3, n_features=4), build(3, double=True)):
        with pytest.raises(ValueError, match="pairs must take the rows"):
            Classifier(shared, "shortlist", pairs=pairs, shortlist=(2, 1.0, 0.5))


def test_a_predictor_is_made_of_a_classifier(classifier):
    for wrong in ("a", None, build()._native):
        with pytest.raises(TypeError, match="classifier must be a Classifier of the core"):
            _native.Predictor(wrong, None)
    with pytest.raises(TypeError, match="labels must be a tuple"):
        _native.Predictor(classifier._native, ["a", "b", "c"])


def test_a_tie_breaker_that_fails_leaves_the_first_class():
    flat = [np.zeros((1, 3)), np.zeros(1), np.zeros((1, 1, 3)), np.zeros((1, 1))]
    spec = random_spec(np.random.default_rng(0), 1, 3, n_maps=3)
    spec.maps = 3 * [flat]
    asked = []

    def tie_breaker(values):
        asked.append(values)
        return [2, "no", 7, -1][(len(asked) - 1) % 4]

    classifier = Classifier(spec.build(), "coupled", tie_breaker=tie_breaker)
    assert_array_equal(classifier.classify(np.zeros((4, 3))), [2, 0, 0, 0])
    assert classifier.predictor()([0.0, 0.0, 0.0]) == 2
    assert asked == 5 * [[0.0, 0.0, 0.0]]


def test_a_classifier_without_references_is_deleted():
    from limes import BorderMap
    from limes.model.schemes import PairwiseScheme

    line = BorderMap.from_borders(points=[[0.0]], normals=[[1.0]])
    scheme = PairwiseScheme((line, line, line), 3, by_vote=False)
    scheme.classify(np.zeros((3, 1)))
    gone = weakref.ref(scheme)
    del scheme
    gc.collect()
    assert gone() is None
