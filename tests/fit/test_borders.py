"""Points on borders: pairs of rows, roots between them, and the choice of a placement."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import SVC

import limes
from limes.fit.borders import (
    PLACEMENTS,
    Border,
    Sides,
    choose_placement,
    find_borders,
    first_within_error,
    place_pairs,
    split_sides,
)
from limes.fit.config import DEFAULTS, FitOptions
from limes.fit.data import FitData
from limes.fit.schemes import borders_of
from limes.fit.validation import ValidationSet
from limes.sources.base import Source, SourceContext, as_source
from tests.fit.cases import accelerate_pairwise, points_of


def make_sides(n_negative, n_positive, seed=0):
    rng = np.random.default_rng(seed)
    negative, positive = rng.normal(-1, 1, (n_negative, 2)), rng.normal(1, 1, (n_positive, 2))
    return Sides(negative, positive, -np.abs(negative).sum(axis=1), np.abs(positive).sum(axis=1))


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("n_pairs", [1, 7, 250])
def test_no_pair_is_used_twice_and_all_are_in_range(placement, n_pairs):
    sides = make_sides(40, 30)
    pairs = place_pairs(sides, n_pairs, placement=placement, rng=np.random.default_rng(1))
    assert pairs.shape == (n_pairs, 2)
    assert len(np.unique(pairs, axis=0)) == n_pairs
    assert pairs.min() >= 0
    assert (pairs < [40, 30]).all()


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_exhausted_pairs_give_each_once(placement):
    pairs = place_pairs(make_sides(3, 2), 100, placement=placement, rng=np.random.default_rng(0))
    assert_array_equal(pairs, [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]])


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("sizes", [(0, 5), (5, 0), (0, 0)])
def test_one_empty_side_gives_no_pair(placement, sizes):
    pairs = place_pairs(make_sides(*sizes), 10, placement=placement, rng=np.random.default_rng(0))
    assert pairs.shape == (0, 2)


def test_two_and_a_half_thousand_million_pairs_do_not_overflow():
    huge = np.broadcast_to(np.zeros(2), (50_000, 2))
    sides = Sides(huge, huge, -np.ones(50_000), np.ones(50_000))
    pairs = place_pairs(sides, 1000, placement="random", rng=np.random.default_rng(0))
    assert len(np.unique(pairs, axis=0)) == 1000
    assert pairs.min() >= 0
    assert pairs.max() < 50_000
    assert pairs[:, 0].max() > 45_000


def test_near_pairs_are_nearer_than_random_ones():
    sides = make_sides(500, 500)

    def mean_length(placement):
        pairs = place_pairs(sides, 200, placement=placement, rng=np.random.default_rng(2))
        lines = sides.positive[pairs[:, 1]] - sides.negative[pairs[:, 0]]
        return np.linalg.norm(lines, axis=1).mean()

    assert mean_length("near") < 0.6 * mean_length("random")
    assert mean_length("near") < mean_length("mixed") < mean_length("random")


class Plane(Source):
    """The border where the first feature is zero."""

    def decision(self, X):
        return X[:, 0]

    def decision_and_gradient(self, X):
        return X[:, 0], np.eye(X.shape[1])[np.zeros(len(X), int)]


def crossings(placement, n_pairs=40):
    """Return rows, denser towards larger second features, and crossings of lines between them."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(0, 0.5, 4000), 10 * rng.beta(4, 1, 4000)])
    sides = split_sides(Plane(), rows)
    pairs = place_pairs(sides, n_pairs, placement=placement, rng=rng)
    negative, positive = sides.negative[pairs[:, 0]], sides.positive[pairs[:, 1]]
    share = negative[:, :1] / (negative[:, :1] - positive[:, :1])
    return rows, negative + share * (positive - negative)


@pytest.mark.parametrize("placement", ["random", "near"])
def test_dense_points_are_nearer_to_the_rows_near_the_border(placement):
    def distance(name):
        rows, points = crossings(name)
        rows = rows[np.abs(rows[:, 0]) < 0.1]
        return np.abs(rows[:, 1:] - points[:, 1]).min(axis=1).mean()

    assert distance("dense") < 0.95 * distance(placement)


def test_dense_pairs_lie_near_the_border_and_more_of_them_where_rows_are():
    rows, points = crossings("dense")
    assert_allclose(points[:, 0], 0, atol=1e-12)
    assert np.median(points[:, 1]) > 6
    assert abs(np.median(points[:, 1]) - np.median(rows[:, 1])) < 1


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_the_same_draws_give_the_same_pairs(placement):
    sides = make_sides(300, 200)
    results = [
        place_pairs(sides, 50, placement=placement, rng=np.random.default_rng(3)) for _ in range(2)
    ]
    assert_array_equal(*results)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_rows_that_are_all_the_same_give_as_many_pairs(placement):
    sides = Sides(np.zeros((30, 3)), np.zeros((30, 3)), np.full(30, -0.5), np.full(30, 0.5))
    pairs = place_pairs(sides, 20, placement=placement, rng=np.random.default_rng(0))
    assert len(np.unique(pairs, axis=0)) == 20


def test_clusters_are_the_same_in_blocks_and_at_once(monkeypatch):
    sides = make_sides(300, 200)
    whole = place_pairs(sides, 50, placement="dense", rng=np.random.default_rng(3))
    monkeypatch.setattr("limes.fit.borders.MAX_DISTANCES", 500)
    blocks = place_pairs(sides, 50, placement="dense", rng=np.random.default_rng(3))
    assert_array_equal(blocks, whole)


class Function(Source):
    """A source made of a function of the first feature."""

    def __init__(self, value, slope):
        self.value, self.slope, self.n_queried = value, slope, 0

    def decision(self, X):
        self.n_queried += len(X)
        return self.value(X[:, 0])

    def decision_and_gradient(self, X):
        gradients = np.zeros_like(X)
        gradients[:, 0] = self.slope(X[:, 0])
        return self.decision(X), gradients


def ends(low, high, n_lines=3):
    negative, positive = np.zeros((n_lines, 2)), np.ones((n_lines, 2))
    negative[:, 0], positive[:, 0] = low, high
    return negative, positive


def test_a_flat_border_is_found_where_it_is():
    source = Function(lambda x: x - 0.3, np.ones_like)
    points, normals = find_borders(source, *ends(-1.0, 1.0), tolerance=1e-12)
    assert_allclose(points[:, 0], 0.3, atol=1e-12)
    assert_allclose(points[:, 1], 0.65, atol=1e-12)
    assert_allclose(normals, [[1.0, 0.0]] * 3)


def test_the_ends_may_lie_against_the_gradient():
    source = Function(lambda x: 0.3 - x, lambda x: -np.ones_like(x))
    points, _ = find_borders(source, *ends(1.0, -1.0), tolerance=1e-12)
    assert_allclose(points[:, 0], 0.3, atol=1e-12)


def test_a_smooth_decision_needs_at_most_ten_evaluations():
    source = Function(lambda x: np.tanh(x - 0.2), lambda x: 1 / np.cosh(x - 0.2) ** 2)
    find_borders(source, *ends(-3.0, 3.0, n_lines=1), tolerance=1e-10)
    assert source.n_queried <= 10


def test_the_root_of_a_flat_decision_with_a_steep_step_is_found():
    source = Function(
        lambda x: np.tanh(200 * (x - 0.9)), lambda x: 200 / np.cosh(200 * (x - 0.9)) ** 2
    )
    points, _ = find_borders(source, *ends(-1.0, 1.0), tolerance=1e-8)
    assert_allclose(points[:, 0], 0.9, atol=1e-9)


def test_a_jump_is_bracketed_to_the_last_bit_and_gets_the_direction_of_its_line():
    source = Function(lambda x: np.where(x > 0.1, 1.0, -1.0), np.zeros_like)
    points, normals = find_borders(source, *ends(0.0, 1.0), tolerance=1e-8)
    assert_allclose(points[:, 0], 0.1, atol=1e-12)
    assert_allclose(normals, [[1.0, 1.0]] * 3)


def test_a_wrong_gradient_cannot_make_the_search_diverge():
    source = Function(lambda x: x - 0.3, lambda x: -1e-3 * np.ones_like(x))
    points, _ = find_borders(source, *ends(-1.0, 1.0), tolerance=1e-9)
    assert_allclose(points[:, 0], 0.3, atol=1e-9)


@settings(max_examples=200, deadline=None)
@given(
    root=st.floats(-0.99, 0.99),
    power=st.integers(0, 6),
    scale=st.floats(1e-6, 1e6),
)
def test_odd_powers_are_solved_within_their_bracket(root, power, scale):
    n = 2 * power + 1
    source = Function(
        lambda x: scale * (x - root) ** n, lambda x: n * scale * (x - root) ** (n - 1)
    )
    points, _ = find_borders(source, *ends(-1.0, 1.0, n_lines=1), tolerance=1e-9)
    assert np.abs(source.decision(points)).max() < 1e-9
    assert -1 <= points[0, 0] <= 1


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_the_default_has_the_points_of_the_placement_it_selects(
    placement, eight_blobs_svm, eight_blobs, monkeypatch
):
    def prefer(misses):
        return PLACEMENTS.index(placement)

    monkeypatch.setattr("limes.fit.borders.first_within_error", prefer)
    selected = accelerate_pairwise(eight_blobs_svm, eight_blobs[0])
    assert selected.placement_ == placement
    assert selected.placement == "auto"
    given = accelerate_pairwise(eight_blobs_svm, eight_blobs[0], placement=placement)
    assert given.placement_ == placement
    assert_array_equal(points_of(selected), points_of(given))


def test_with_few_rows_the_simplest_placement_is_selected():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    fast = accelerate_pairwise(SVC().fit(X, [0, 0, 1, 1]), X)
    assert fast.placement_ == "random"


def test_the_first_placement_within_the_error_of_the_best_is_selected():
    equal = np.eye(4, 50)
    assert first_within_error(equal) == 0
    worse = np.zeros((4, 50))
    worse[0, :5] = 1
    assert first_within_error(worse) == 1
    worse[1, :4] = 1
    worse[2, 0] = 1
    assert first_within_error(worse) == 2


def test_without_misses_the_simplest_placement_is_selected():
    assert first_within_error(np.zeros((4, 10))) == 0
    assert first_within_error(np.zeros((4, 0))) == 0


class Curve:
    """A border with many bends near most rows; few rows are far from it."""

    def __call__(self, X):
        return 2 * (X[:, 1] - 0.5 * np.sin(4 * X[:, 0]))


def test_the_default_placement_beats_random_pairs_on_a_curved_border():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-3, 3, 3000), 0.5 * rng.normal(size=3000)])
    X = np.vstack([X, np.column_stack([rng.uniform(-3, 3, 600), 40 * rng.normal(size=600)])])
    fast = limes.accelerate(Curve(), X, scheme="pairwise", n_borders=30, random_state=0)
    plain = limes.accelerate(
        Curve(), X, scheme="pairwise", n_borders=30, random_state=0, placement="random"
    )
    assert fast.placement_ != "random"
    truth = (Curve()(X) > 0).astype(int)
    assert (fast.predict(X) == truth).mean() > (plain.predict(X) == truth).mean()


def test_placements_are_compared_on_the_most_ambiguous_borders(
    eight_blobs_svm, eight_blobs, monkeypatch
):
    X, _ = eight_blobs
    tried = []

    def record(border, *rest):
        tried.append(border.classes)
        return np.zeros((len(PLACEMENTS), len(rest[2])))

    monkeypatch.setattr("limes.fit.borders._try_placements", record)
    source = as_source(eight_blobs_svm, SourceContext(X, None, False, np.random.default_rng(0)))
    class_index = source.predict_index(X)
    data, validation = (
        FitData(X, class_index, None, X[:0]),
        ValidationSet.unweighted(X, class_index),
    )
    options = FitOptions(10, "auto", None, 1e-5)
    borders = borders_of("pairwise", source, data)
    seed = np.random.SeedSequence(0)
    assert choose_placement(borders, source, data, validation, options, seed=seed) == "random"
    assert seed.n_children_spawned == 0
    centers = np.array([X[class_index == index].mean(axis=0) for index in range(8)])
    lengths = [np.linalg.norm(centers[first] - centers[second]) for first, second in tried]
    rest = [
        np.linalg.norm(centers[first] - centers[second])
        for first in range(8)
        for second in range(first)
    ]
    assert len(tried) == DEFAULTS.borders.n_trial_borders
    assert np.median(lengths) < 0.7 * np.median(rest)


def test_a_border_lies_between_the_classes_of_its_sides():
    border = Border(None, [0, 2], [1])
    assert border.classes == [0, 1, 2]
    first, second = np.array([0, 1, 0, 3]), np.array([1, 2, 2, 1])
    assert_array_equal(border.separates(first, second), [True, True, False, False])
