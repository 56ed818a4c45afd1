"""Which pairs of rows are searched between."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from limes.fit.borders import PLACEMENTS, Sides, place_pairs, split_sides
from limes.sources.base import Source


def make_sides(n_below, n_above, seed=0):
    rng = np.random.default_rng(seed)
    below, above = rng.normal(-1, 1, (n_below, 2)), rng.normal(1, 1, (n_above, 2))
    return Sides(below, above, -np.abs(below).sum(axis=1), np.abs(above).sum(axis=1))


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
        lines = sides.above[pairs[:, 1]] - sides.below[pairs[:, 0]]
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
    """Return where lines between rows, of which there are more and more to the right, cross."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(0, 0.5, 4000), 10 * rng.beta(4, 1, 4000)])
    sides = split_sides(Plane(), rows)
    pairs = place_pairs(sides, n_pairs, placement=placement, rng=rng)
    below, above = sides.below[pairs[:, 0]], sides.above[pairs[:, 1]]
    share = below[:, :1] / (below[:, :1] - above[:, :1])
    return rows, below + share * (above - below)


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
    found = [
        place_pairs(sides, 50, placement=placement, rng=np.random.default_rng(3)) for _ in range(2)
    ]
    assert_array_equal(*found)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_rows_that_are_all_the_same_give_as_many_pairs(placement):
    sides = Sides(np.zeros((30, 3)), np.zeros((30, 3)), np.full(30, -0.5), np.full(30, 0.5))
    pairs = place_pairs(sides, 20, placement=placement, rng=np.random.default_rng(0))
    assert len(np.unique(pairs, axis=0)) == 20


def test_middles_of_cells_are_found_in_blocks_as_at_once(monkeypatch):
    sides = make_sides(300, 200)
    whole = place_pairs(sides, 50, placement="dense", rng=np.random.default_rng(3))
    monkeypatch.setattr("limes.fit.borders.MAX_DISTANCES", 500)
    blocks = place_pairs(sides, 50, placement="dense", rng=np.random.default_rng(3))
    assert_array_equal(blocks, whole)
