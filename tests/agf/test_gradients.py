"""Gradients of both classifiers against central differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist

from limes.agf import AGFClassifier, KernelDensityClassifier

MODELS = [
    AGFClassifier(total_weight=5),
    AGFClassifier(total_weight=0.5),
    AGFClassifier(total_weight=1.0),
    AGFClassifier(total_weight=80),
    AGFClassifier(),
    AGFClassifier(total_weight=5, n_neighbors=30),
    AGFClassifier(total_weight=0.2, n_neighbors=10),
    KernelDensityClassifier(bandwidth=0.6),
    KernelDensityClassifier(bandwidth=5.0),
    KernelDensityClassifier(),
]


def central_differences(model, rows, steps):
    """Return differences of fourth order, of shape (n_rows, n_classes, n_features)."""

    def difference(shift):
        return model.predict_proba(rows + shift) - model.predict_proba(rows - shift)

    shifts = [steps[:, None] * axis for axis in np.eye(rows.shape[1])]
    sums = [8 * difference(shift) - difference(2 * shift) for shift in shifts]
    return np.stack(sums, axis=-1) / (12 * steps[:, None, None])


def make_problem(n_features, n_classes):
    rng = np.random.default_rng(n_features + 10 * n_classes)
    y = rng.integers(n_classes, size=150)
    X = rng.normal(size=(150, n_features)) + np.cos(y[:, None] + np.arange(n_features))
    return X, y, rng.normal(size=(25, n_features))


def has_fixed_neighbours(model, X, rows, reach):
    """Return which rows can move by their reach without a change of neighbours."""
    if getattr(model, "n_neighbors", None) is None:
        return np.ones(len(rows), dtype=bool)
    distances = np.sort(cdist(rows, X), axis=1)
    return distances[:, model.n_neighbors] - distances[:, model.n_neighbors - 1] > 2 * reach


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize(("n_features", "n_classes"), [(1, 2), (2, 3), (6, 2), (20, 5)])
def test_gradient_agrees_with_central_differences(model, n_features, n_classes):
    X, y, rows = make_problem(n_features, n_classes)
    # Bandwidths shrink near a training row, and steps with them; rounding is 1e-13 a step.
    steps = 2e-4 * cdist(rows, X).min(axis=1)
    is_fixed = has_fixed_neighbours(model, X, rows, reach=2 * steps)
    rows, steps = rows[is_fixed], steps[is_fixed]
    gradient = model.fit(X, y).proba_gradient(rows)
    expected = central_differences(model, rows, steps)
    scale, noise = np.abs(expected).max(axis=(1, 2)), 1e-13 / steps
    assert np.count_nonzero(1e-5 * scale > noise) >= 10
    errors = np.abs(gradient - expected).max(axis=(1, 2))
    assert np.all(errors <= 1e-5 * scale + noise)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_gradients_have_a_row_for_each_class_and_a_column_for_each_feature(model):
    X, y, rows = make_problem(4, 3)
    assert model.fit(X, y).proba_gradient(rows).shape == (25, 3, 4)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_gradients_of_the_classes_cancel(model):
    X, y, rows = make_problem(4, 3)
    gradient = model.fit(X, y).proba_gradient(rows)
    assert_allclose(gradient.sum(axis=1), 0, atol=1e-10 * (1 + np.abs(gradient).max()))


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_gradients_follow_the_units_of_the_features(model):
    X, y, rows = make_problem(3, 2)
    plain = model.fit(X, y).proba_gradient(rows)
    if isinstance(model, KernelDensityClassifier) and model.bandwidth != "auto":
        model = KernelDensityClassifier(bandwidth=8 * model.bandwidth)
    scaled = model.fit(8 * X, y).proba_gradient(8 * rows)
    assert_allclose(8 * scaled, plain, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("distance", [0.0, 1e3, 1e10, 1e200])
def test_gradients_are_finite_everywhere(model, distance):
    X, y, rows = make_problem(2, 3)
    model.fit(X, y)
    assert np.all(np.isfinite(model.proba_gradient(X)))
    assert np.all(np.isfinite(model.proba_gradient(rows * distance)))


def test_far_gradients_of_a_fixed_bandwidth_keep_their_digits():
    X = np.array([[0.0, -1.0], [0.0, 1.0]])
    model = KernelDensityClassifier(bandwidth=1e3).fit(X, [0, 1])
    # P(1) = 1 / (1 + exp(-2 x_2 / h^2)), however far out along the other axis.
    assert_allclose(model.predict_proba([[1e9, 0.0]]), [[0.5, 0.5]], rtol=1e-12)
    gradient = model.proba_gradient([[1e9, 0.0]])
    assert_allclose(gradient[0], [[0, -0.5e-6], [0, 0.5e-6]], rtol=1e-9, atol=1e-20)
