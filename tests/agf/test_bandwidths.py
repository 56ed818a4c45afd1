"""Solved bandwidths: known solutions, properties over many scales, degenerate rows."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq

from limes.agf import solve_bandwidths
from limes.agf.bandwidths import gaussian_weights


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def total_weights(squared, bandwidths):
    return np.exp(-squared / (2 * bandwidths[:, None] ** 2)).sum(axis=1)


@st.composite
def problems(draw):
    """Rows of positive squared distances over many scales, and a sum that they can reach."""
    n_neighbors = draw(st.integers(2, 30))
    logs = st.lists(st.floats(-40, 40), min_size=n_neighbors, max_size=n_neighbors)
    rows = draw(st.lists(logs, min_size=1, max_size=5))
    share = draw(st.floats(1e-6, 0.999))
    return np.exp(np.array(rows)), share * n_neighbors


def test_equal_distances_have_the_bandwidth_of_the_formula():
    squared = np.full((3, 8), [[1.0], [4.0], [1e-12]])
    expected = np.sqrt(squared[:, 0] / (2 * math.log(8 / 2.5)))
    assert_allclose(solve_bandwidths(squared, 2.5), expected, rtol=1e-14)


def test_rows_on_a_line_have_a_bandwidth_proportional_to_the_weight():
    # The sum over a lattice of step h is the integral sqrt(2 pi) sigma / h, to rounding.
    squared = (0.1 * np.arange(-2000, 2001))[None, :] ** 2
    for weight in [4.0, 10.0, 31.5]:
        expected = 0.1 * weight / math.sqrt(2 * math.pi)
        assert_allclose(solve_bandwidths(squared, weight), [expected], rtol=1e-13)


@given(problems())
@settings(max_examples=200, deadline=None)
def test_weights_have_the_given_sum(problem):
    squared, weight = problem
    bandwidths = solve_bandwidths(squared, weight)
    assert np.all(bandwidths > 0)
    assert_allclose(total_weights(squared, bandwidths), weight, rtol=1e-11)


@given(problems(), st.integers(-60, 60))
@settings(deadline=None)
def test_bandwidths_scale_with_the_distances(problem, power):
    squared, weight = problem
    scaled = solve_bandwidths(squared * 4.0**power, weight)
    assert_allclose(scaled, solve_bandwidths(squared, weight) * 2.0**power, rtol=1e-12)


@given(problems(), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_bandwidths_do_not_depend_on_the_order_of_neighbours(problem, random):
    squared, weight = problem
    order = random.sample(range(squared.shape[1]), squared.shape[1])
    weights = total_weights(squared, solve_bandwidths(squared[:, order], weight))
    assert_allclose(weights, weight, rtol=1e-11)


def test_a_row_is_solved_alike_alone_and_among_others(rng):
    squared = rng.chisquare(3, size=(40, 200)) * 10.0 ** rng.uniform(-9, 9, size=(40, 1))
    alone = [solve_bandwidths(row[None, :], 7.0)[0] for row in squared]
    assert_allclose(solve_bandwidths(squared, 7.0), alone, rtol=1e-13)


@pytest.mark.parametrize("weight", [1e-300, 1e-3, 0.5, 1.0, 2.0, 3.7, 150.0, 199.5])
def test_bandwidths_agree_with_a_root_finder_of_scipy(rng, weight):
    squared = rng.chisquare(4, size=(5, 200))

    def residual(log_bandwidth, row):
        exponents = -row / (2 * math.exp(2 * log_bandwidth))
        return float(np.logaddexp.reduce(exponents)) - math.log(weight)

    expected = [math.exp(brentq(residual, -10, 20, args=(row,), xtol=1e-14)) for row in squared]
    assert_allclose(solve_bandwidths(squared, weight), expected, rtol=1e-9)


def test_a_sum_just_below_the_number_of_neighbours_is_met(rng):
    squared = rng.chisquare(4, size=(5, 200))
    weights = total_weights(squared, solve_bandwidths(squared, 199.999999))
    assert_allclose(weights, 199.999999, rtol=1e-14)


def test_a_larger_sum_takes_a_wider_bandwidth(rng):
    squared = rng.chisquare(5, size=(20, 50))
    bandwidths = [solve_bandwidths(squared, weight) for weight in np.linspace(0.1, 49.9, 30)]
    assert np.all(np.diff(bandwidths, axis=0) > 0)


@pytest.mark.parametrize("weight", [0.2, 1.0, 1.5, 3.0])
def test_coincident_rows_that_weigh_enough_have_bandwidth_zero(weight):
    assert_array_equal(solve_bandwidths([[0.0, 2.0, 0.0, 0.0, 5.0]], weight), [0.0])


@pytest.mark.parametrize("weight", [3.0001, 3.5, 4.0, 4.9])
def test_coincident_rows_that_weigh_too_little_leave_a_bandwidth(weight):
    squared = np.array([[0.0, 2.0, 0.0, 0.0, 5.0]])
    bandwidths = solve_bandwidths(squared, weight)
    assert_allclose(total_weights(squared, bandwidths), [weight], rtol=1e-13)


def test_solvable_and_coincident_rows_mix():
    bandwidths = solve_bandwidths([[0.0, 0.0, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]], 1.5)
    assert_allclose(bandwidths, [0.0, 1 / math.sqrt(2 * math.log(2)), 0.0])


def test_the_most_uneven_distances_have_finite_bandwidths():
    squared = np.array([[5e-324, 1e-300, 1.0, 1e300], [1e300, 1e300, 1e308, 1e308]])
    for weight in [0.5, 1.0, 1.5, 2.0, 3.5]:
        bandwidths = solve_bandwidths(squared, weight)
        assert np.all(np.isfinite(bandwidths))
        assert np.all(bandwidths > 0)


def test_distances_are_left_as_they_were(rng):
    squared = rng.chisquare(3, size=(4, 6))
    before = squared.copy()
    solve_bandwidths(squared, 2.0)
    assert_array_equal(squared, before)


def test_no_rows_have_no_bandwidths():
    assert solve_bandwidths(np.empty((0, 4)), 2.0).shape == (0,)


@pytest.mark.parametrize("weight", [0.0, -1.0, 3.0, 4.0, math.nan, math.inf])
def test_a_sum_out_of_reach_is_refused(weight):
    with pytest.raises(ValueError, match=r"above 0 and below the 3 neighbours .* got"):
        solve_bandwidths(np.ones((2, 3)), weight)


def test_distances_must_be_two_dimensional():
    with pytest.raises(ValueError, match=r"shape \(n_rows, n_neighbors\), got .* \(3,\)"):
        solve_bandwidths([1.0, 2.0, 3.0], 1.0)


def test_weights_of_bandwidth_zero_are_shared_by_the_coincident_rows():
    weights = gaussian_weights(np.array([[0.0, 3.0, 0.0, 1e-9]]), np.array([0.0]))
    assert_allclose(weights, [[0.5, 0.0, 0.5, 0.0]], atol=1e-300)


def test_weights_far_from_all_rows_belong_to_the_nearest():
    weights = gaussian_weights(np.array([[1e12, 1e12 + 1, 2e12]]), np.array([1.0]))
    assert_allclose(weights, [[1 / (1 + math.exp(-0.5)), 1 / (1 + math.exp(0.5)), 0]], atol=1e-300)
