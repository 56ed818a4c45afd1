"""The AGF regressor: known solutions, limits, several targets, bad parameters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import KNeighborsRegressor

from limes.agf import AGFClassifier, AGFRegressor


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_predictions_are_weighted_means(rng):
    # With targets 0 and 1 the mean is the probability of class 1.
    X, y, rows = rng.normal(size=(70, 3)), rng.integers(2, size=70), rng.normal(size=(20, 3))
    for n_neighbors in (None, 12):
        model = AGFRegressor(total_weight=4, n_neighbors=n_neighbors).fit(X, y)
        expected = AGFClassifier(total_weight=4, n_neighbors=n_neighbors).fit(X, y)
        assert_allclose(model.predict(rows), expected.predict_proba(rows)[:, 1], atol=1e-12)


def test_a_line_is_reproduced_in_the_middle_of_its_rows():
    X = np.arange(-50.0, 51.0)[:, None]
    model = AGFRegressor(total_weight=5).fit(X, 3 * X[:, 0] + 1)
    assert_allclose(model.predict([[0.0], [0.5], [3.0]]), [1.0, 2.5, 10.0], rtol=1e-9)


def test_a_constant_is_reproduced_everywhere(rng):
    model = AGFRegressor().fit(rng.normal(size=(30, 2)), np.full(30, 7.0))
    assert_allclose(model.predict([[0, 0], [1e9, 1], [1e200, -1e200]]), 7.0, rtol=1e-12)


def test_a_small_weight_makes_it_the_nearest_neighbour(rng):
    X, y, rows = rng.normal(size=(70, 3)), rng.normal(size=70), rng.normal(size=(20, 3))
    nearest = KNeighborsRegressor(1).fit(X, y)
    distances, _ = nearest.kneighbors(rows, n_neighbors=2)
    rows = rows[distances[:, 1] > 1.1 * distances[:, 0]]
    assert len(rows) > 10
    assert_allclose(AGFRegressor(1e-300).fit(X, y).predict(rows), nearest.predict(rows), rtol=1e-12)


def test_far_away_the_mean_is_predicted(rng):
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    assert_allclose(AGFRegressor(3).fit(X, y).predict([[1e9, 0]]), y.mean(), atol=1e-6)


def test_coincident_rows_that_weigh_enough_are_averaged():
    model = AGFRegressor(total_weight=1.5).fit([[0], [0], [0], [4]], [1, 2, 6, 100])
    assert_allclose(model.predict([[0]]), [3.0])


def test_several_targets_are_predicted_at_once(rng):
    X, Y, rows = rng.normal(size=(50, 2)), rng.normal(size=(50, 3)), rng.normal(size=(8, 2))
    together = AGFRegressor(total_weight=3).fit(X, Y).predict(rows)
    apart = [AGFRegressor(total_weight=3).fit(X, y).predict(rows) for y in Y.T]
    assert_allclose(together, np.transpose(apart), rtol=1e-12)


def test_the_automatic_weight_follows_the_noise(rng):
    X = rng.random((500, 1))
    smooth = AGFRegressor().fit(X, np.sin(40 * X[:, 0]))
    noise = AGFRegressor().fit(X, rng.normal(size=500))
    assert smooth.total_weight_ < 8 <= noise.total_weight_
    rows = np.linspace(0.05, 0.95, 50)
    assert smooth.score(rows[:, None], np.sin(40 * rows)) > 0.99


def test_float32_rows_give_what_float64_rows_give(rng):
    X, y = rng.normal(size=(50, 3)).astype(np.float32), rng.normal(size=50)
    single, double = AGFRegressor(3).fit(X, y), AGFRegressor(3).fit(X.astype(float), y)
    assert_array_equal(single.predict(X), double.predict(X.astype(float)))


def test_bad_parameters_are_named():
    with pytest.raises(ValueError, match=r"which is 3, got 5"):
        AGFRegressor(total_weight=5).fit([[0], [1], [2]], [0, 1, 2])
    with pytest.raises(TypeError, match=r"n_neighbors must be a whole number or None, got 'two'"):
        AGFRegressor(n_neighbors="two").fit([[0], [1], [2]], [0, 1, 2])
