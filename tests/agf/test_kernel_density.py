"""The kernel-density classifier: scikit-learn's densities, far rows, degenerate data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import KernelDensity, KNeighborsClassifier

from limes.agf import KernelDensityClassifier


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def problem(rng):
    """Three overlapping classes in four features, and rows among them."""
    y = rng.integers(3, size=120)
    X = rng.normal(size=(120, 4)) + y[:, None]
    return X, y, rng.normal(size=(30, 4)) + 1


@pytest.mark.parametrize("bandwidth", [0.3, 1.0, 4.0])
def test_probabilities_follow_from_the_densities_of_scikit_learn(problem, bandwidth):
    X, y, rows = problem
    logs = [
        KernelDensity(bandwidth=bandwidth).fit(X[y == label]).score_samples(rows)
        + np.log(np.mean(y == label))
        for label in range(3)
    ]
    joint = np.exp(np.transpose(logs))
    model = KernelDensityClassifier(bandwidth=bandwidth).fit(X, y)
    expected = joint / joint.sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba(rows), expected, rtol=1e-9)


def test_two_rows_have_a_logistic_border():
    model = KernelDensityClassifier(bandwidth=2.0).fit([[-1.0], [1.0]], [0, 1])
    rows = np.linspace(-9, 9, 7)
    expected = 1 / (1 + np.exp(-2 * rows / 4))
    assert_allclose(model.predict_proba(rows[:, None])[:, 1], expected, rtol=1e-12)


@pytest.mark.parametrize("distance", [1e2, 1e8, 1e20, 1e160, 1e308])
def test_far_rows_belong_to_the_nearest_class(distance):
    X = [[-1.0, 0.0], [-2.0, 1.0], [1.0, 0.0], [2.0, 1.0]]
    model = KernelDensityClassifier(bandwidth=0.1).fit(X, ["left", "left", "right", "right"])
    rows = np.array([[-distance, 0.0], [distance, 0.0]])
    assert_allclose(model.predict_proba(rows), np.eye(2), atol=1e-12)
    assert np.all(np.isfinite(model.proba_gradient(rows)))


def test_a_row_far_from_all_has_the_probability_of_the_formula():
    # Squared distances 1e16 and 1e16 + 4e8 agree in eight digits; h^2 makes them 1 apart.
    model = KernelDensityClassifier(bandwidth=np.sqrt(2e8)).fit([[-1.0], [1.0]], [0, 1])
    assert_allclose(model.predict_proba([[1e8]])[0, 0], 1 / (1 + np.e), rtol=1e-12)


@pytest.mark.parametrize("bandwidth", [1e-300, 1e-20, 1e-3])
def test_a_narrow_bandwidth_makes_it_the_nearest_neighbour(problem, bandwidth):
    X, y, rows = problem
    model = KernelDensityClassifier(bandwidth=bandwidth).fit(X, y)
    nearest = KNeighborsClassifier(1).fit(X, y)
    assert_array_equal(model.predict(rows), nearest.predict(rows))
    assert np.all(np.isfinite(model.proba_gradient(rows)))


def test_a_wide_bandwidth_gives_the_shares_of_the_classes(problem):
    X, y, rows = problem
    probabilities = KernelDensityClassifier(bandwidth=1e9).fit(X, y).predict_proba(rows)
    assert_allclose(probabilities, np.tile(np.bincount(y) / 120, (30, 1)), rtol=1e-9)


def test_the_bandwidth_is_in_the_units_of_the_features(problem):
    X, y, rows = problem
    plain = KernelDensityClassifier(bandwidth=0.5).fit(X, y)
    scaled = KernelDensityClassifier(bandwidth=0.5e-80).fit(X * 1e-80, y)
    assert_allclose(scaled.predict_proba(rows * 1e-80), plain.predict_proba(rows), rtol=1e-9)


def test_the_automatic_bandwidth_follows_the_units(problem):
    X, y, rows = problem
    plain, scaled = KernelDensityClassifier().fit(X, y), KernelDensityClassifier().fit(4 * X, y)
    assert_allclose(scaled.bandwidth_, 4 * plain.bandwidth_)
    assert_allclose(scaled.predict_proba(4 * rows), plain.predict_proba(rows), rtol=1e-9)


def test_the_automatic_bandwidth_is_narrow_for_a_fine_border(rng):
    X = rng.random((1500, 1))
    fine = KernelDensityClassifier().fit(X, np.floor(40 * X[:, 0]) % 2)
    coarse = KernelDensityClassifier().fit(X, X[:, 0] + 0.3 * rng.normal(size=1500) > 0.5)
    assert fine.bandwidth_ < 0.02
    assert coarse.bandwidth_ > 2 * fine.bandwidth_


@pytest.mark.parametrize(
    "X", [np.ones((6, 2)), np.repeat([[0.0], [1.0], [2.0]], 2, axis=0)], ids=["one", "doubles"]
)
def test_coincident_rows_have_a_bandwidth(X):
    model = KernelDensityClassifier().fit(X, [0, 0, 1, 1, 2, 2])
    assert model.bandwidth_ > 0
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_a_single_class_has_probability_one(problem):
    X, _, rows = problem
    model = KernelDensityClassifier().fit(X, np.full(120, "only"))
    assert_allclose(model.predict_proba(rows), np.ones((30, 1)), rtol=1e-12)


def test_classes_of_one_row_are_predicted():
    model = KernelDensityClassifier().fit([[0.0], [10.0], [20.0]], ["x", "y", "z"])
    assert model.predict([[1.0], [11.0], [19.0]]).tolist() == ["x", "y", "z"]


def test_float32_rows_give_what_float64_rows_give(problem):
    X, y, rows = (array.astype(np.float32) for array in problem)
    single = KernelDensityClassifier(0.7).fit(X, y)
    double = KernelDensityClassifier(0.7).fit(X.astype(float), y)
    assert_array_equal(single.predict_proba(rows), double.predict_proba(rows.astype(float)))


@pytest.mark.parametrize(
    ("bandwidth", "error", "message"),
    [
        (0, ValueError, r"bandwidth must be positive and finite, got 0"),
        (-1.5, ValueError, r"bandwidth must be positive and finite, got -1.5"),
        (np.inf, ValueError, r"bandwidth must be positive and finite, got inf"),
        ("scott", TypeError, r"bandwidth must be a number or 'auto', got 'scott'"),
        (None, TypeError, r"bandwidth must be a number or 'auto', got None"),
    ],
)
def test_bad_bandwidths_are_named(bandwidth, error, message):
    with pytest.raises(error, match=message):
        KernelDensityClassifier(bandwidth=bandwidth).fit([[0], [1], [2]], [0, 0, 1])
