"""The AGF classifier: known solutions, limits, degenerate data and bad parameters."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import KNeighborsClassifier

from limes.agf import AGFClassifier, solve_bandwidths


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def problem(rng):
    """Three overlapping classes in four features, and rows among them."""
    y = rng.integers(3, size=120)
    X = rng.normal(size=(120, 4)) + y[:, None]
    return X, y, rng.normal(size=(30, 4)) + 1


def test_probabilities_are_shares_of_the_weights(problem):
    X, y, rows = problem
    squared = np.square(rows[:, None] - X).sum(axis=-1)
    weights = np.exp(-squared / (2 * solve_bandwidths(squared, 6.5)[:, None] ** 2))
    expected = np.stack([weights[:, y == label].sum(axis=1) / 6.5 for label in range(3)], axis=1)
    model = AGFClassifier(total_weight=6.5).fit(X, y)
    assert_allclose(model.predict_proba(rows), expected, rtol=1e-11)


def test_with_nearest_neighbours_only_those_have_weights(problem):
    X, y, rows = problem
    squared = np.square(rows[:, None] - X).sum(axis=-1)
    nearest = np.argsort(squared, axis=1)[:, :15]
    squared = np.take_along_axis(squared, nearest, axis=1)
    weights = np.exp(-squared / (2 * solve_bandwidths(squared, 6.5)[:, None] ** 2))
    expected = np.stack([(weights * (y[nearest] == c)).sum(1) / 6.5 for c in range(3)], axis=1)
    model = AGFClassifier(total_weight=6.5, n_neighbors=15).fit(X, y)
    assert_allclose(model.predict_proba(rows), expected, rtol=1e-11)


def test_as_many_neighbours_as_rows_are_all_rows(problem):
    X, y, rows = problem
    counted, every = AGFClassifier(5, n_neighbors=120).fit(X, y), AGFClassifier(5).fit(X, y)
    assert_allclose(counted.predict_proba(rows), every.predict_proba(rows), rtol=1e-11)


@pytest.mark.parametrize("weight", [0.3, 1.0, 1.7, 3.9])
def test_symmetric_classes_meet_half_way(weight):
    model = AGFClassifier(weight).fit([[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1])
    assert_allclose(model.predict_proba([[0.0]]), [[0.5, 0.5]], rtol=1e-12)
    left, right = model.predict_proba([[-0.3], [0.3]])
    assert_allclose(left, right[::-1], rtol=1e-12)
    assert left[0] > 0.5


def test_a_small_weight_makes_it_the_nearest_neighbour(problem):
    X, y, rows = problem
    model = AGFClassifier(total_weight=1e-30).fit(X, y)
    nearest = KNeighborsClassifier(1).fit(X, y)
    assert_array_equal(model.predict(rows), nearest.predict(rows))


def test_a_weight_near_the_number_of_rows_gives_the_shares_of_the_classes(problem):
    X, y, rows = problem
    probabilities = AGFClassifier(total_weight=119.9999).fit(X, y).predict_proba(rows)
    assert_allclose(probabilities, np.tile(np.bincount(y) / 120, (30, 1)), rtol=1e-3)


@pytest.mark.parametrize("distance", [1e2, 1e8, 1e20, 1e160, 1e308])
@pytest.mark.parametrize("n_neighbors", [None, 40])
def test_far_away_probabilities_are_finite_and_add_up(problem, distance, n_neighbors):
    X, y, _ = problem
    model = AGFClassifier(total_weight=2, n_neighbors=n_neighbors).fit(X, y)
    rows = distance * np.array([[1.0, 0, 0, 0], [-1, -1, -1, -1], [0, 0.5, 0, -1]])
    probabilities = model.predict_proba(rows)
    assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    assert np.all(probabilities >= 0)
    assert np.all(np.isfinite(model.proba_gradient(rows)))


def test_far_away_probabilities_tend_to_the_shares_of_the_classes(problem):
    X, y, _ = problem
    probabilities = AGFClassifier(total_weight=2).fit(X, y).predict_proba(np.full((1, 4), 1e8))
    assert_allclose(probabilities[0], np.bincount(y) / 120, rtol=1e-6)


@given(st.integers(-300, 300), st.floats(-1e3, 1e3))
@settings(max_examples=30, deadline=None)
def test_probabilities_do_not_depend_on_units_and_origin(power, offset):
    rng = np.random.default_rng(3)
    X, rows, y = rng.normal(size=(40, 3)), rng.normal(size=(10, 3)), rng.integers(2, size=40)
    plain = AGFClassifier(total_weight=3).fit(X, y).predict_proba(rows)
    unit = 2.0**power
    moved = AGFClassifier(total_weight=3).fit((X + offset) * unit, y)
    assert_allclose(moved.predict_proba((rows + offset) * unit), plain, atol=1e-10)


def test_probabilities_do_not_change_under_rotation(problem, rng):
    X, y, rows = problem
    turn, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    plain, turned = AGFClassifier(4).fit(X, y), AGFClassifier(4).fit(X @ turn, y)
    assert_allclose(turned.predict_proba(rows @ turn), plain.predict_proba(rows), atol=1e-12)


def test_probabilities_do_not_depend_on_the_order_of_training_rows(problem, rng):
    X, y, rows = problem
    order = rng.permutation(120)
    plain, mixed = AGFClassifier(4).fit(X, y), AGFClassifier(4).fit(X[order], y[order])
    assert_allclose(mixed.predict_proba(rows), plain.predict_proba(rows), atol=1e-12)


def test_coincident_rows_that_weigh_enough_have_all_the_weight():
    X = np.array([[0.0], [0.0], [0.0], [5.0], [6.0]])
    model = AGFClassifier(total_weight=2.5).fit(X, ["a", "a", "b", "b", "b"])
    assert_allclose(model.predict_proba([[0.0]]), [[2 / 3, 1 / 3]], rtol=1e-14)
    assert_array_equal(model.proba_gradient([[0.0]]), np.zeros((1, 2, 1)))


def test_probabilities_are_continuous_at_coincident_rows():
    X = np.array([[0.0], [0.0], [0.0], [5.0], [6.0]])
    model = AGFClassifier(total_weight=2.5).fit(X, ["a", "a", "b", "b", "b"])
    assert_allclose(model.predict_proba([[1e-9]]), model.predict_proba([[0.0]]), atol=1e-12)


def test_one_repeated_row_gives_the_shares_of_the_classes():
    model = AGFClassifier().fit(np.ones((6, 2)), [0, 0, 0, 0, 1, 1])
    assert_allclose(model.predict_proba([[1, 1], [7, -2]]), [[2 / 3, 1 / 3]] * 2, rtol=1e-12)


def test_a_single_class_has_probability_one(problem):
    X, _, rows = problem
    model = AGFClassifier().fit(X, np.full(120, "only"))
    assert_allclose(model.predict_proba(rows), np.ones((30, 1)), rtol=1e-12)
    assert set(model.predict(rows)) == {"only"}
    assert_allclose(model.proba_gradient(rows), 0, atol=1e-10)


def test_classes_of_one_row_are_predicted():
    model = AGFClassifier().fit([[0.0], [10.0], [20.0]], ["x", "y", "z"])
    assert model.predict([[1.0], [11.0], [19.0]]).tolist() == ["x", "y", "z"]


def test_float32_rows_give_what_float64_rows_give(problem):
    X, y, rows = (array.astype(np.float32) for array in problem)
    single, double = AGFClassifier(3).fit(X, y), AGFClassifier(3).fit(X.astype(float), y)
    assert_array_equal(single.predict_proba(rows), double.predict_proba(rows.astype(float)))


def test_labels_of_any_kind_come_back_in_order():
    model = AGFClassifier(1.5).fit([[0], [1], [8], [9]], ["two", "two", "one", "one"])
    assert model.classes_.tolist() == ["one", "two"]
    assert model.predict([[0.5], [8.5]]).tolist() == ["two", "one"]


def test_the_automatic_weight_is_chosen_by_leaving_one_out(rng):
    # Noisy labels need a mean over many rows, a fine chequerboard needs the nearest neighbour.
    noisy = rng.normal(size=(300, 1))
    labels = rng.random(300) < 0.8
    board = np.stack(np.meshgrid(np.arange(20), np.arange(20)), -1).reshape(-1, 2) / 1.0
    pairs = np.repeat(board, 2, axis=0) + 0.01 * rng.normal(size=(800, 2))
    colours = np.repeat(board.sum(axis=1) % 2, 2)
    assert AGFClassifier().fit(noisy, labels).total_weight_ >= 16
    assert AGFClassifier().fit(pairs, colours).total_weight_ <= 2


@pytest.mark.parametrize("n_rows", [2, 3, 5])
def test_a_few_rows_can_be_fitted(n_rows):
    X = np.arange(float(n_rows))[:, None]
    model = AGFClassifier().fit(X, np.arange(n_rows) % 2)
    assert model.total_weight_ < n_rows - 1 or n_rows == 2
    assert_allclose(model.predict_proba(X + 0.3).sum(axis=1), 1)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"total_weight": 4}, ValueError, r"below the number of neighbours, which is 4, got 4"),
        ({"total_weight": 3, "n_neighbors": 3}, ValueError, r"which is 3, got 3"),
        ({"total_weight": 0}, ValueError, r"total_weight must be positive and finite, got 0"),
        ({"total_weight": np.nan}, ValueError, r"total_weight must be positive .* got nan"),
        ({"total_weight": np.inf}, ValueError, r"total_weight must be positive .* got inf"),
        ({"total_weight": "big"}, TypeError, r"total_weight must be a number or 'auto', got 'big'"),
        ({"total_weight": True}, TypeError, r"total_weight must be a number or 'auto', got True"),
        ({"n_neighbors": 5}, ValueError, r"n_neighbors must be from 1 to .*n_samples=4, got 5"),
        ({"n_neighbors": 0}, ValueError, r"n_neighbors must be from 1 to .* got 0"),
        ({"n_neighbors": 2.0}, TypeError, r"n_neighbors must be a whole number or None, got 2.0"),
        (
            {"n_neighbors": "all"},
            TypeError,
            r"n_neighbors must be a whole number or None, got 'all'",
        ),
    ],
)
def test_bad_parameters_are_named(parameters, error, message):
    with pytest.raises(error, match=message):
        AGFClassifier(**parameters).fit([[0], [1], [2], [3]], [0, 0, 1, 1])


def test_one_neighbour_with_an_automatic_weight_is_the_nearest_neighbour(problem):
    X, y, rows = problem
    model = AGFClassifier(n_neighbors=1).fit(X, y)
    assert_array_equal(model.predict(rows), KNeighborsClassifier(1).fit(X, y).predict(rows))
