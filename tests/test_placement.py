"""Which pairs of rows are searched between."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from limes.placement import PLACEMENTS, Sides, place_pairs


def make_sides(n_below, n_above, seed=0):
    rng = np.random.default_rng(seed)
    return Sides(rng.normal(-1, 1, (n_below, 2)), rng.normal(1, 1, (n_above, 2)))


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
    pairs = place_pairs(Sides(huge, huge), 1000, placement="random", rng=np.random.default_rng(0))
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
