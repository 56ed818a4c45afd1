"""The sample classes: densities that integrate to one, gradients, best scores."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.interpolate import CubicSpline
from sklearn.neighbors import KernelDensity

from limes import accelerate
from limes.datasets.sample_classes import (
    SPINE,
    SampleClassesClassifier,
    densities,
    density_gradients,
    sample_classes,
)
from limes.scores import accuracy_score, agreement, uncertainty_coefficient

STEP = 0.02  # fine enough for both classes: sums over a grid converge fast for Gaussians
GRID = np.arange(-0.5, 1.7, STEP)


def central_differences(function, rows, step=1e-5):
    """Return the slope of each output along each feature: (n_rows, n_outputs, n_features)."""
    steps = step * np.eye(rows.shape[1])
    return np.stack([(function(rows + s) - function(rows - s)) / (2 * step) for s in steps], axis=2)


@pytest.fixture(scope="module")
def rows():
    return sample_classes(200, random_state=5)[0]


@pytest.fixture(scope="module")
def plane():
    return np.stack(np.meshgrid(GRID, GRID), axis=-1).reshape(-1, 2)


@pytest.fixture(scope="module")
def masses(plane):
    """Return the share of each class in each cell of the plane."""
    return densities(plane) * STEP**2


def test_both_densities_integrate_to_one(masses):
    assert_allclose(masses.sum(axis=0), 1.0, atol=1e-6)


def test_moments_of_class_1_are_those_of_its_gaussian(plane, masses):
    weights = masses[:, 0]
    centre = weights @ plane
    away = plane - centre
    turn = np.array([np.cos(np.pi / 7), np.sin(np.pi / 7)])
    assert_allclose(centre, [0.4, 0.5], atol=1e-6)
    assert_allclose(weights @ (away @ turn) ** 2, 0.13**2, rtol=1e-4)
    assert_allclose(weights @ (away @ [-turn[1], turn[0]]) ** 2, 0.07**2, rtol=1e-4)
    assert_allclose(weights @ ((away @ turn) * (away @ [-turn[1], turn[0]])), 0, atol=1e-8)


@pytest.fixture(scope="module")
def shares():
    """Return the share of each class in each twelfth by twelfth of the unit square: (12, 12, 2)."""
    centers = (np.arange(120) + 0.5) / 120
    square = np.stack(np.meshgrid(centers, centers, indexing="ij"), axis=-1).reshape(-1, 2)
    fine = densities(square).reshape(12, 10, 12, 10, 2) / 120**2
    return fine.sum(axis=(1, 3))


@pytest.mark.parametrize("label", [1, 2])
def test_rows_are_drawn_from_the_density(shares, label):
    X, y = sample_classes(150_000, random_state=0)
    rows = X[y == label]
    drawn = np.histogram2d(*rows.T, bins=12, range=[[0, 1], [0, 1]])[0] / len(rows)
    expected = shares[:, :, label - 1]
    # Five standard deviations of a count, and one row.
    bound = 5 * np.sqrt(expected / len(rows)) + 1 / len(rows)
    assert (np.abs(drawn - expected) < bound).all()


def test_the_density_of_class_2_is_the_mean_along_its_spine(rows):
    chords = np.hypot(*np.diff(SPINE, axis=0).T)
    knots = np.append(0.0, np.cumsum(chords))
    spine = CubicSpline(knots, SPINE, bc_type="natural")

    def density(position, row):
        return np.exp(-((row - spine(position)) ** 2).sum() / 0.02) / (0.02 * np.pi)

    means = [quad(density, 0, knots[-1], (row,), points=knots)[0] / knots[-1] for row in rows[:5]]
    assert_allclose(densities(rows[:5])[:, 1], means, rtol=1e-4)


def test_class_2_lies_along_the_whole_spine():
    X, y = sample_classes(30_000, random_state=0)
    density = KernelDensity(bandwidth=0.05).fit(X[y == 2])
    assert np.exp(density.score_samples(SPINE)).min() > 0.5


def test_density_gradients_agree_with_central_differences(rows):
    expected = central_differences(densities, rows)
    assert_allclose(density_gradients(rows), expected, rtol=1e-6, atol=1e-6)


def test_probability_gradients_agree_with_central_differences(rows):
    model = SampleClassesClassifier()
    expected = central_differences(model.predict_proba, rows)
    assert model.proba_gradient(rows).shape == (200, 2, 2)
    assert_allclose(model.proba_gradient(rows), expected, rtol=1e-6, atol=1e-8)


def test_the_prior_of_class_2_is_twice_that_of_class_1(rows):
    weighted = densities(rows) * [1, 2]
    expected = weighted / weighted.sum(axis=1, keepdims=True)
    assert_allclose(SampleClassesClassifier().predict_proba(rows), expected, rtol=1e-10)


def test_the_best_accuracy_is_the_integral_of_the_larger_weighted_density(masses):
    best = (masses * [1 / 3, 2 / 3]).max(axis=1).sum()
    assert_allclose(best, 0.9067, atol=5e-4)


def test_the_scores_of_the_classifier_are_those_of_the_integrals():
    # On a grid of 1.4 million cells: accuracy .9067, U.C. .5331. Tolerances of four deviations
    # (of the U.C.: .0072, from twelve seeds).
    X, y = sample_classes(20_000, random_state=0)
    y_pred = SampleClassesClassifier().predict(X)
    assert abs(accuracy_score(y, y_pred) - 0.9067) < 4 * np.sqrt(0.9067 * 0.0933 / 20_000)
    assert abs(uncertainty_coefficient(y, y_pred) - 0.5331) < 4 * 0.0072


def test_far_rows_have_finite_probabilities():
    far = np.array([[1e3, -1e3], [-50.0, 40.0], [1e6, 1e6]])
    model = SampleClassesClassifier()
    assert_array_equal(model.predict_proba(far).sum(axis=1), 1.0)
    assert np.isfinite(model.proba_gradient(far)).all()
    assert_array_equal(densities(far), 0.0)


def test_labels_and_probabilities_agree(rows):
    model = SampleClassesClassifier()
    likeliest = model.classes_[model.predict_proba(rows).argmax(axis=1)]
    assert_array_equal(model.predict(rows), likeliest)


@pytest.mark.parametrize(("n_rows", "n_first"), [(300, 100), (301, 100), (2, 1), (1, 0)])
def test_one_row_in_three_is_of_class_1(n_rows, n_first):
    X, y = sample_classes(n_rows, random_state=0)
    assert X.shape == (n_rows, 2)
    assert (y == 1).sum() == n_first
    assert (y == 2).sum() == n_rows - n_first


def test_rows_come_in_random_order():
    _, y = sample_classes(300, random_state=0)
    assert 60 < (np.diff(y) != 0).sum() < 240


def test_a_seed_gives_the_same_rows():
    first, second = (sample_classes(50, random_state=4) for _ in range(2))
    assert_array_equal(first[0], second[0])
    assert_array_equal(first[1], second[1])
    assert not np.array_equal(first[0], sample_classes(50, random_state=5)[0])


def test_probabilities_do_not_depend_on_the_number_of_rows(rows):
    model = SampleClassesClassifier()
    many = np.tile(rows, (6, 1))  # more than one batch
    assert_array_equal(model.predict_proba(many)[-200:], model.predict_proba(rows))


def test_the_classifier_can_be_accelerated():
    X, _ = sample_classes(300, random_state=0)
    rows, _ = sample_classes(5000, random_state=1)
    source = SampleClassesClassifier()
    fast = accelerate(
        source,
        X,
        scheme="pairwise",
        placement="random",
        n_borders=100,
        blend=1,
        refine=False,
        random_state=0,
    )
    assert agreement(source.predict(rows), fast.predict(rows)) > 0.99


def test_the_classifier_can_be_pickled(rows):
    model = pickle.loads(pickle.dumps(SampleClassesClassifier()))
    assert_array_equal(model.predict(rows), SampleClassesClassifier().predict(rows))


@pytest.mark.parametrize("n_rows", [0, -1])
def test_fewer_than_one_row_is_refused(n_rows):
    with pytest.raises(ValueError, match=f"got {n_rows}"):
        sample_classes(n_rows)


@pytest.mark.parametrize(
    ("bad", "message"), [([[0.1, 0.2, 0.3]], "2 features.*got 3"), ([[np.nan, 0.0]], "NaN")]
)
def test_rows_of_another_kind_are_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        SampleClassesClassifier().predict(bad)
