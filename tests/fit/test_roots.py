"""The search along lines: known answers, hard functions, and no way to diverge."""

import numpy as np
from hypothesis import given, options
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from limes.fit.borders import find_borders
from limes.sources.base import Source


class Function(Source):
    """A source made of a function of the first feature."""

    def __init__(self, value, slope):
        self.value, self.slope, self.mean_pairs = value, slope, 0

    def decision(self, X):
        self.mean_pairs += len(X)
        return self.value(X[:, 0])

    def decision_and_gradient(self, X):
        gradients = np.zeros_like(X)
        gradients[:, 0] = self.slope(X[:, 0])
        return self.decision(X), gradients


def ends(low, high, n_lines=3):
    below, above = np.zeros((n_lines, 2)), np.ones((n_lines, 2))
    below[:, 0], above[:, 0] = low, high
    return below, above


def test_a_flat_border_is_found_where_it_is():
    source = Function(lambda x: x - 0.3, np.ones_like)
    points, normals = find_borders(source, *ends(-1.0, 1.0), tolerance=1e-12)
    assert_allclose(points[:, 0], 0.3, atol=1e-12)
    assert_allclose(points[:, 1], 0.65, atol=1e-12)
    assert_allclose(normals, [[1.0, 0.0]] * 3)


def test_the_ends_may_run_against_the_gradient():
    source = Function(lambda x: 0.3 - x, lambda x: -np.ones_like(x))
    points, _ = find_borders(source, *ends(1.0, -1.0), tolerance=1e-12)
    assert_allclose(points[:, 0], 0.3, atol=1e-12)


def test_newton_is_quick_on_a_smooth_decision():
    source = Function(lambda x: np.tanh(x - 0.2), lambda x: 1 / np.cosh(x - 0.2) ** 2)
    find_borders(source, *ends(-3.0, 3.0, n_lines=1), tolerance=1e-10)
    assert source.mean_pairs <= 10


def test_a_flat_decision_with_a_cliff_is_still_found():
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


def test_a_gradient_that_lies_cannot_make_it_diverge():
    source = Function(lambda x: x - 0.3, lambda x: -1e-3 * np.ones_like(x))
    points, _ = find_borders(source, *ends(-1.0, 1.0), tolerance=1e-9)
    assert_allclose(points[:, 0], 0.3, atol=1e-9)


@options(max_examples=200, deadline=None)
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
