"""Shortlists and trees: only some maps are evaluated, with the same labels in core and NumPy."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.datasets import make_blobs
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

import limes
from limes import BorderMap, accelerate
from limes.export.libagf import to_libagf
from limes.fit.schemes import GroupBorder, group_classes
from limes.model.schemes import PairwiseScheme, ShortlistScheme, TreeScheme, split_groups
from limes.sources.base import SourceContext, as_source

TREE = np.array([[1, -3], [-1, 2], [-4, -2]])


def lines(rng, n_maps, n_outputs=1, n_points=6, n_features=2):
    """Random maps."""
    return tuple(
        BorderMap(
            rng.normal(size=(n_points, n_features)),
            rng.normal(size=(n_points, n_outputs, n_features)),
            rng.normal(size=(n_points, n_outputs)),
            blend=2,
        )
        for _ in range(n_maps)
    )


def shortlist(n_classes=4, **options):
    rng = np.random.default_rng(0)
    maps = (
        *lines(rng, 1, n_outputs=n_classes),
        *lines(rng, n_classes * (n_classes - 1) // 2),
    )
    return ShortlistScheme(maps, n_classes, **options)


def tree():
    return TreeScheme(lines(np.random.default_rng(1), 3), 4, children=TREE)


SCHEMES = {
    "vote": lambda: shortlist(max_classes=3, logit_margin=2.0),
    "couple": lambda: shortlist(max_classes=3, logit_margin=2.0, by_vote=False),
    "all": lambda: shortlist(max_classes=9, logit_margin=1e6, pair_weight=1.0),
    "none": lambda: shortlist(max_classes=1),
    "tree": tree,
}


def rows(n_rows=2000, scale=2.0):
    return np.random.default_rng(5).normal(scale=scale, size=(n_rows, 2))


@pytest.mark.parametrize("name", SCHEMES)
@settings(max_examples=100, deadline=None)
@given(X=arrays(np.float64, (8, 2), elements=st.floats(-50, 50)))
def test_labels_and_probabilities_never_disagree(name, X):
    scheme = SCHEMES[name]()
    values = scheme.values(X)
    probabilities = scheme.probabilities(values)
    assert_array_equal(probabilities.argmax(axis=1), scheme.class_index(values))
    assert_array_equal(scheme.classify(X), scheme.class_index(values))
    assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-9)
    assert probabilities.min() >= 0


@pytest.mark.parametrize("name", SCHEMES)
def test_a_row_without_a_number_gets_the_first_class(name):
    assert SCHEMES[name]().predictor(list("abcd"))([np.nan, 0.0]) == "a"


@pytest.mark.parametrize("name", SCHEMES)
def test_a_pickled_scheme_gives_the_same_labels(name):
    scheme, X = SCHEMES[name](), rows()
    scheme.classify(X)
    assert_array_equal(pickle.loads(pickle.dumps(scheme)).classify(X), scheme.classify(X))


def test_a_shortlist_of_all_classes_decides_as_all_pairs_do():
    scheme, X = SCHEMES["all"](), rows()
    pairwise = PairwiseScheme(scheme.maps[1:], 4)
    assert_array_equal(scheme.classify(X), pairwise.classify(X))
    probabilities = scheme.raw_probabilities(scheme.values(X))
    assert_allclose(probabilities, pairwise.raw_probabilities(pairwise.values(X)), atol=1e-6)


def test_only_pairs_of_classes_on_the_shortlist_are_evaluated():
    scheme = SCHEMES["vote"]()
    values = scheme.values(rows())
    logits, evaluated = values[:, :4], ~np.isnan(values[:, 4:])
    n_near = np.sum(logits >= logits.max(axis=1, keepdims=True) - np.float32(2.0), axis=1)
    n_listed = np.minimum(n_near, 3)
    assert_array_equal(evaluated.sum(axis=1), n_listed * (n_listed - 1) // 2)
    assert len(np.unique(n_listed)) == 3


def test_a_pair_has_the_value_of_its_own_map_and_of_the_shared_one():
    flat = BorderMap(np.zeros((1, 1)), np.zeros((1, 3, 1)), [[0.4, 1.0, -9.0]])
    pairs = [BorderMap.constant(np.zeros(1), value) for value in (-0.5, 7.0, 7.0)]
    scheme = ShortlistScheme((flat, *pairs), 3, max_classes=2, logit_margin=3.0, pair_weight=0.75)
    values = scheme.values(np.zeros((1, 1)))
    assert_array_equal(scheme.class_index(values), [0])
    value = 0.75 * -0.5 + 0.25 * 0.5 * (1.0 - 0.4)
    shared = softmax([0.4, 1.0, -9.0])
    second = (shared[0] + shared[1]) * (1 + np.tanh(value)) / 2
    expected = [shared[0] + shared[1] - second, second, shared[2]]
    assert_allclose(scheme.probabilities(values), [expected], rtol=1e-6)


def test_the_cost_of_a_shortlist_counts_the_evaluated_pairs():
    scheme = shortlist(mean_pairs=1.5)
    # Six points of two features, and two functions a class, or a pair, of two points each.
    assert scheme.cost == (6 * 2 + 2 * 4 * 2) + 1.5 * (6 * 2 + 2 * 2)


def test_a_row_descends_to_its_class():
    scheme = TreeScheme(tree().maps, 4, children=TREE)
    values = np.array([[1.0, 0.0, 0.0], [-1.0, -1.0, 5.0], [-1.0, 1.0, -1.0], [-1.0, 1.0, 1.0]])
    assert_array_equal(scheme.class_index(values), [2, 0, 3, 1])


def test_probabilities_multiply_along_the_path():
    values = np.arctanh([[0.2, -0.6, 0.5]])
    expected = [[0.4 * 0.8, 0.4 * 0.2 * 0.75, 0.6, 0.4 * 0.2 * 0.25]]
    assert_allclose(tree().raw_probabilities(values), expected)


def test_the_cost_of_a_tree_is_the_mean_over_its_paths():
    # Paths of one, two, three and three nodes; 16 multiply-adds for each, as above.
    assert tree().cost == (1 + 2 + 3 + 3) / 4 * 16


@pytest.mark.parametrize(
    "children",
    [
        [[1, -3], [-1, 2]],
        [[1, -3], [-1, 2], [-4, -4]],
        [[1, -3], [-1, 1], [-4, -2]],
        [[0, -3], [-1, 2], [-4, -2]],
        [[1.0, -3], [-1, 2], [-4, -2]],
        [[2, -3], [-4, -2], [-1, 1]],
    ],
)
def test_what_is_no_tree_is_refused(children):
    with pytest.raises(ValueError, match="children must"):
        TreeScheme(tree().maps, 4, children=np.array(children))


@pytest.mark.parametrize(
    "options",
    [{"max_classes": 0}, {"logit_margin": -1.0}, {"logit_margin": np.inf}, {"pair_weight": np.nan}],
)
def test_a_shortlist_of_impossible_numbers_is_refused(options):
    (name,) = options
    with pytest.raises(ValueError, match=f"{name} must be"):
        shortlist(**options)


def test_maps_that_do_not_fit_the_classes_are_refused():
    with pytest.raises(ValueError, match="a shortlist of 4 classes"):
        ShortlistScheme(shortlist().maps[:-1], 4)
    with pytest.raises(ValueError, match="a tree of 4 classes"):
        TreeScheme(shortlist().maps[:3], 4, children=TREE)


def test_near_classes_are_separated_last():
    means = np.array([[0.0], [10.0], [0.4], [11.0]])
    children = group_classes(means, np.arange(4), 4)
    groups = split_groups(children)
    assert {frozenset(map(tuple, groups[0]))} == {frozenset([(0, 2), (1, 3)])}


def test_the_border_of_two_groups_lies_where_the_label_changes_group():
    X, y = make_blobs(400, centers=5, cluster_std=2.0, random_state=0)
    model = SVC(gamma=0.1).fit(X, y)
    source = as_source(model, SourceContext(X, y, False, np.random.default_rng(0)))
    border = GroupBorder(source, [0, 3], [1, 2, 4])
    is_second = np.isin(model.predict(X), [1, 2, 4])
    assert np.mean((border.decision(X) > 0) == is_second) > 0.99


@pytest.mark.parametrize("scheme", ["shortlist", "tree"])
@pytest.mark.parametrize("refine", [True, False])
@pytest.mark.parametrize("model", [SVC(gamma=0.1), GaussianNB()], ids=["svc", "bayes"])
def test_many_classes_agree_with_the_source(scheme, refine, model, tmp_path):
    X, y = make_blobs(900, n_features=3, centers=8, cluster_std=1.5, random_state=1)
    model.fit(X, y)
    fast = accelerate(model, X, scheme=scheme, refine=refine, random_state=0)
    assert fast.scheme_.name == scheme
    assert np.mean(fast.predict(X) == model.predict(X)) > 0.93
    fast.save(tmp_path / "m.limes")
    again = limes.load(tmp_path / "m.limes")
    assert_array_equal(again.predict_proba(X), fast.predict_proba(X))
    assert (again.cost_, again.scheme_.cost) == (fast.cost_, fast.cost_)


@pytest.mark.parametrize("scheme", ["shortlist", "tree"])
@pytest.mark.parametrize("refine", [True, False])
def test_two_classes_have_one_border(scheme, refine):
    X, y = make_blobs(300, centers=2, cluster_std=3.0, random_state=0)
    fast = accelerate(SVC().fit(X, y), X, scheme=scheme, refine=refine, random_state=0)
    assert len(fast.scheme_.maps) == 1
    assert fast.scheme_.maps[0].n_outputs == 1


@pytest.mark.parametrize("scheme", ["shortlist", "tree"])
def test_a_threshold_moves_the_border(scheme):
    X, y = make_blobs(600, centers=2, cluster_std=4.0, random_state=0)
    model = GaussianNB().fit(X, y)
    fast = accelerate(model, X, scheme=scheme, threshold=0.8, random_state=0)
    expected = np.diff(model.predict_proba(X))[:, 0] > 0.8
    assert np.mean(fast.predict(X) == expected) > 0.97


@pytest.mark.parametrize("scheme", ["shortlist", "tree"])
def test_libagf_refuses_shortlists_and_trees(scheme):
    X, y = make_blobs(200, centers=3, random_state=0)
    fast = accelerate(SVC().fit(X, y), X, scheme=scheme, refine=False, random_state=0)
    with pytest.raises(ValueError, match=f"libAGF.* got scheme '{scheme}'"):
        to_libagf(fast)


@pytest.mark.parametrize("refine", [True, False])
@pytest.mark.parametrize("scheme", ["shortlist", "tree"])
def test_wide_rows_are_searched_in_few_directions(scheme, refine):
    X, y = make_blobs(400, n_features=100, centers=4, cluster_std=9.0, random_state=2)
    model = SVC(gamma=0.0005).fit(X, y)
    options = {"scheme": scheme, "refine": refine, "n_borders": 20, "random_state": 0}
    fast = accelerate(model, X, **options)
    assert len({id(map_.preprocessing) for map_ in fast.scheme_.maps}) == 1
    assert np.mean(fast.predict(X) == model.predict(X)) > 0.9
