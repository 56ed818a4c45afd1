"""Platt's sigmoid: known solutions, scikit-learn's on the same numbers, degenerate rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.calibration import _SigmoidCalibration

from limes.sources.platt import fit_sigmoid


def sample(n_rows, A, B, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(scale=2.0, size=n_rows)
    return values, rng.uniform(size=n_rows) < expit(A * values + B)


def mean_gradient(A, B, values, is_second):
    n_second = is_second.sum()
    n_first = len(values) - n_second
    targets = np.where(is_second, (n_second + 1) / (n_second + 2), 1 / (n_first + 2))
    errors = expit(A * values + B) - targets
    return np.array([np.mean(errors * values), np.mean(errors)])


def test_the_sigmoid_that_rows_were_sampled_from_is_found():
    A, B = fit_sigmoid(*sample(200_000, 1.5, -0.7))
    assert_allclose([A, B], [1.5, -0.7], atol=0.02)


@pytest.mark.parametrize("seed", range(5))
def test_the_gradient_vanishes_at_the_solution(seed):
    values, is_second = sample(300, 0.4, 1.0, seed)
    A, B = fit_sigmoid(values, is_second)
    assert_allclose(mean_gradient(A, B, values, is_second), 0.0, atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 50.0])
def test_the_solution_is_that_of_scikit_learn(scale):
    values, is_second = sample(500, 1.2, 0.3)
    values *= scale
    A, B = fit_sigmoid(values, is_second)
    reference = _SigmoidCalibration().fit(values, is_second.astype(float))
    rows = scale * np.linspace(-5, 5, 50)
    assert_allclose(expit(A * rows + B), reference.predict(rows), atol=1e-7)


def test_two_values_have_their_targets_as_probabilities():
    A, B = fit_sigmoid([-3.0] * 8 + [2.0] * 4, [False] * 8 + [True] * 4)
    assert_allclose(expit(A * np.array([-3.0, 2.0]) + B), [1 / 10, 5 / 6], rtol=1e-12)


def test_separated_classes_have_a_finite_slope():
    values = np.r_[np.linspace(-1e6, -1e5, 500), np.linspace(1e5, 1e6, 500)]
    A, B = fit_sigmoid(values, values > 0)
    assert 0 < A < 1e-3
    assert_allclose(mean_gradient(A, B, values, values > 0), 0.0, atol=1e-7)


@pytest.mark.parametrize("factor", [1e-150, 1e150])
def test_the_unit_of_the_decision_values_does_not_matter(factor):
    values, is_second = sample(300, 0.4, 1.0)
    A, B = fit_sigmoid(values, is_second)
    assert_allclose(fit_sigmoid(values * factor, is_second), [A / factor, B], rtol=1e-9)


def test_an_offset_moves_only_the_constant():
    values, is_second = sample(300, 0.4, 1.0)
    A, B = fit_sigmoid(values, is_second)
    assert_allclose(fit_sigmoid(values + 1000.0, is_second), [A, B - 1000.0 * A], rtol=1e-9)


def test_swapped_classes_negate_slope_and_shift():
    values, is_second = sample(300, 0.4, 1.0)
    A, B = fit_sigmoid(values, is_second)
    assert_allclose(fit_sigmoid(values, ~is_second), [-A, -B], rtol=1e-9)


def test_one_class_alone_gives_its_target_everywhere():
    A, B = fit_sigmoid([1.0, -2.0, 3.0], [True, True, True])
    assert A == 0.0
    assert_allclose(expit(B), 4 / 5)


def test_constant_values_give_the_mean_target():
    A, B = fit_sigmoid([7.0] * 5, [True, True, True, False, False])
    assert A == 0.0
    assert_allclose(expit(B), (3 * 4 / 5 + 2 * 1 / 4) / 5)


def test_two_rows_are_enough():
    A, B = fit_sigmoid([0.0, 1.0], [False, True])
    assert_allclose(expit([B, A + B]), [1 / 3, 2 / 3], rtol=1e-12)


@pytest.mark.parametrize(
    ("values", "is_second"),
    [([], []), ([1.0, 2.0], [True]), ([[1.0]], [[True]]), ([np.nan], [True]), ([np.inf], [True])],
)
def test_impossible_rows_are_refused(values, is_second):
    with pytest.raises(ValueError, match="decision"):
        fit_sigmoid(values, is_second)
