"""LIBLINEAR's solver types, each against the problem that it solves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_blobs
from sklearn.pipeline import make_pipeline

from limes.datasets import load, parameters
from limes.libsvm.training import liblinear_classifier, standardizer
from limes.scores import accuracy_score, uncertainty_coefficient

TYPES = range(6)
COST = 0.01  # small enough for the regulariser to matter


def squared_hinge(margins):
    return np.maximum(0, 1 - margins) ** 2


# Regulariser and loss of the solver types with one problem per class.
OBJECTIVES = {
    0: (lambda w: w @ w / 2, lambda margins: np.logaddexp(0, -margins)),
    1: (lambda w: w @ w / 2, squared_hinge),
    2: (lambda w: w @ w / 2, squared_hinge),
    3: (lambda w: w @ w / 2, lambda margins: np.maximum(0, 1 - margins)),
    5: (lambda w: np.abs(w).sum(), squared_hinge),
}


def overlapping_classes():
    """Return two classes that no line separates, standardised, one twice as large as the other."""
    X, y = make_blobs([80, 160], n_features=4, cluster_std=4.0, random_state=0)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.mark.parametrize("solver_type", OBJECTIVES)
def test_the_solution_is_at_the_minimum_of_its_own_objective(solver_type):
    X, y = overlapping_classes()
    signs = np.where(y == 1, 1, -1)
    regulariser, loss = OBJECTIVES[solver_type]

    def cost(w):
        return regulariser(w) + COST * loss(signs * (X @ w)).sum()

    model = liblinear_classifier(solver_type, C=COST, random_state=0).fit(X, y)
    w = model.decision_function(np.eye(4)).ravel()
    minimum = minimize(cost, w, method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-6}).fun
    # LIBLINEAR stops early by default: within a few thousandths of the minimum.
    assert cost(w) < 1.005 * minimum


@pytest.mark.parametrize("solver_type", TYPES)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_every_type_is_a_classifier_that_learns(solver_type, n_classes):
    X, y = make_blobs(150, n_features=3, centers=n_classes, random_state=1)
    names = np.array(["a", "b", "c", "d"])[y]
    model = clone(liblinear_classifier(solver_type, random_state=0)).fit(X, names)
    assert is_classifier(model)
    assert model.score(X, names) > 0.8


@pytest.mark.parametrize("solver_type", TYPES)
def test_there_is_no_intercept_unless_fitted(solver_type):
    X, y = overlapping_classes()
    at_zero = {
        fit_intercept: liblinear_classifier(
            solver_type, fit_intercept=fit_intercept, random_state=0
        )
        .fit(X, y)
        .decision_function(np.zeros((1, 4)))
        for fit_intercept in (False, True)
    }
    assert_allclose(at_zero[False], 0, atol=1e-12)
    assert np.abs(at_zero[True]).max() > 1e-6


def test_cost_reaches_the_solver():
    X, y = overlapping_classes()
    weak, strong = (
        np.linalg.norm(liblinear_classifier(2, C=C).fit(X, y).coef_) for C in (1.0, 1e-4)
    )
    assert strong < weak


@pytest.mark.parametrize("solver_type", [-1, 6, "0", None])
def test_other_types_are_refused(solver_type):
    with pytest.raises(ValueError, match=r"0 to 5, got"):
        liblinear_classifier(solver_type)


# Accuracy and uncertainty coefficient that the paper prints for a published split.
@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "accuracy", "uncertainty"),
    [
        ("ijcnn1", 0.632, 0.199),
        ("codrna", 0.930, 0.676),
        ("dna", 0.900, 0.684),
        ("pendigits", 0.908, 0.831),
        ("sat", 0.827, 0.679),
    ],
)
def test_the_papers_linear_scores_are_reproduced(name, accuracy, uncertainty):
    data = load(name, can_download=False)
    linear = liblinear_classifier(parameters(name).linear_type, random_state=0)
    y_pred = (
        make_pipeline(standardizer(), linear).fit(data.X_train, data.y_train).predict(data.X_test)
    )
    assert abs(accuracy_score(data.y_test, y_pred) - accuracy) < 0.006
    assert abs(uncertainty_coefficient(data.y_test, y_pred) - uncertainty) < 0.006
