"""Skill scores against their definitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import roc_auc_score, roc_curve

from limes.scores import (
    RocCounter,
    accuracy_score,
    agreement,
    brier_score,
    confidence_rating,
    confusion_matrix,
    uncertainty_coefficient,
)


def paper_uncertainty(confusion):
    """The paper's formulae with the corrected prior entropy, term by term in plain Python."""
    n_rows = sum(map(sum, confusion))
    per_true = [sum(row) for row in confusion]
    per_predicted = [sum(column) for column in zip(*confusion, strict=True)]

    def n_log_n(counts):
        return sum(count * np.log(count) for count in counts if count)

    prior = -(n_log_n(per_true) - n_rows * np.log(n_rows)) / n_rows
    cells = [count for row in confusion for count in row]
    posterior = -(n_log_n(cells) - n_log_n(per_predicted)) / n_rows
    return (prior - posterior) / prior


def labels_of(confusion):
    """Labels that give a confusion matrix."""
    cells = [
        (true, predicted)
        for true, row in enumerate(confusion)
        for predicted, count in enumerate(row)
        for _ in range(count)
    ]
    return np.array(cells).T


@pytest.mark.parametrize(
    "confusion",
    [
        [[50, 10], [5, 35]],
        [[9, 0, 1], [0, 0, 4], [2, 0, 7]],  # a class that is never predicted
        [[9, 3, 1], [0, 0, 0], [2, 5, 7]],  # a class that is never true
        [[1, 2, 3], [4, 5, 6], [7, 8, 9]],
    ],
)
def test_uncertainty_coefficient_is_the_papers_formula(confusion):
    y_true, y_pred = labels_of(confusion)
    expected = paper_uncertainty(confusion)
    assert_allclose(uncertainty_coefficient(y_true, y_pred), expected, rtol=1e-12)


def test_uncertainty_coefficient_of_one_known_table():
    # Half of each class is predicted exactly, the rest at random: H = log 2, H(i|j) = log(2)/2.
    y_true, y_pred = labels_of([[2, 0, 2], [0, 2, 2]])
    assert_allclose(uncertainty_coefficient(y_true, y_pred), 0.5, rtol=1e-15)


def test_perfect_predictions_score_one_for_any_names():
    y_true = np.repeat(["x", "y", "z"], [3, 5, 7])
    y_pred = np.repeat([12, -1, 4], [3, 5, 7])
    assert uncertainty_coefficient(y_true, y_pred) == 1.0


def test_one_label_for_all_rows_scores_zero():
    assert uncertainty_coefficient([0] * 90 + [1] * 10, [0] * 100) == 0.0


def test_predictions_independent_of_the_truth_never_score_below_zero():
    y_true, y_pred = labels_of([[6, 12, 18], [10, 20, 30], [14, 28, 42]])
    assert 0 <= uncertainty_coefficient(y_true, y_pred) < 1e-12


def test_truth_of_one_class_warns_and_gives_nan():
    with pytest.warns(UndefinedMetricWarning, match="single class 'a'"):
        assert np.isnan(uncertainty_coefficient(["a", "a"], ["a", "b"]))


def test_labels_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match=r"\[2, 3\]"):
        uncertainty_coefficient([0, 1], [0, 1, 1])


@pytest.mark.parametrize("score", [uncertainty_coefficient, agreement])
def test_no_rows_are_refused(score):
    with pytest.raises(ValueError, match="nothing to score"):
        score([], [])


def test_agreement_counts_equal_labels():
    assert agreement(["a", "b", "b"], ["a", "b", "a"]) == 2 / 3


def test_scores_of_scikit_learn_are_available():
    assert accuracy_score([0, 1, 1], [0, 1, 0]) == 2 / 3
    assert confusion_matrix(["a", "b", "b"], ["a", "b", "a"]).tolist() == [[1, 0], [1, 1]]


def test_brier_score_of_three_classes_is_the_mean_squared_distance():
    probabilities = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]])
    # Rows: (.3² + .2² + .1²) and (.1² + .8² + .9²).
    expected = (0.14 + 1.46) / 2
    assert_allclose(brier_score([0, 2], probabilities, classes=[0, 1, 2]), expected, rtol=1e-12)


def test_brier_score_of_two_classes_is_the_squared_error_of_one():
    score = brier_score(["b", "a"], [[0.4, 0.6], [0.7, 0.3]], classes=["a", "b"])
    assert_allclose(score, (0.4**2 + 0.3**2) / 2, rtol=1e-12)


@pytest.mark.parametrize("order", [[2, 0, 1], [1, 0, 2], [2, 1, 0]])
def test_brier_score_takes_columns_in_any_order(order):
    rng = np.random.default_rng(0)
    classes = np.array(["a", "b", "c"])
    y_true = rng.choice(classes, 20)
    probabilities = rng.dirichlet(np.ones(3), 20)
    assert_allclose(
        brier_score(y_true, probabilities[:, order], classes=classes[order]),
        brier_score(y_true, probabilities, classes=classes),
        rtol=1e-12,
    )


def test_brier_score_of_truth_with_one_of_the_classes_is_defined():
    assert brier_score([1, 1], [[0.0, 1.0], [1.0, 0.0]], classes=[0, 1]) == 0.5


def test_brier_score_names_labels_that_are_not_classes():
    with pytest.raises(ValueError, match=r"\['c'\]"):
        brier_score(["a", "c"], [[1.0, 0.0], [0.0, 1.0]], classes=["a", "b"])


@pytest.mark.parametrize("classes", [["a"], ["a", "a"], ["a", "b", "c"]])
def test_brier_score_needs_one_class_a_column(classes):
    with pytest.raises(ValueError, match="2 columns"):
        brier_score(["a", "a"], [[1.0, 0.0], [0.0, 1.0]], classes=classes)


def test_confidence_rating_of_equal_probabilities_is_zero_and_of_certainty_one():
    probabilities = [[0.25] * 4, [1.0, 0.0, 0.0, 0.0], [0.625, 0.125, 0.125, 0.125]]
    assert_allclose(confidence_rating(probabilities), [0.0, 1.0, 0.5], atol=1e-15)


def test_confidence_rating_keeps_float32():
    rating = confidence_rating(np.array([[0.5, 0.5], [0.75, 0.25]], dtype=np.float32))
    assert rating.dtype == np.float32
    assert_allclose(rating, [0.0, 0.5])


@pytest.mark.parametrize(
    "score", [confidence_rating, lambda p: brier_score([0, 1], p, classes=[0, 1])]
)
@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ([[np.nan, 0.5], [0.5, 0.5]], "NaN"),
        ([[0.5, 0.5], [2.0, -1.0]], "row 1"),
        ([[0.5, 0.2], [0.5, 0.5]], "row 0"),
        ([[1.0], [1.0]], "minimum of 2"),
    ],
)
def test_what_is_not_a_probability_is_refused(score, probabilities, message):
    with pytest.raises(ValueError, match=message):
        score(probabilities)


def scored_rows(n_classes, n_rows=3000, seed=0):
    """Return true class indices, and probabilities that know something of them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_rows)
    logits = 2.0 * rng.normal(size=(n_rows, n_classes)) + 1.5 * np.eye(n_classes)[y]
    probabilities = np.exp(logits)
    return y, probabilities / probabilities.sum(axis=1, keepdims=True)


def count_roc(y, probabilities, n_blocks=7):
    counter = RocCounter(probabilities.shape[1])
    for block in np.array_split(np.arange(len(y)), n_blocks):
        counter.add(y[block], probabilities[block])
    return counter.curves()


@pytest.mark.parametrize("n_classes", [2, 5])
def test_roc_areas_of_blocks_are_those_of_all_rows(n_classes):
    y, probabilities = scored_rows(n_classes)
    curves = count_roc(y, probabilities)
    expected = [roc_auc_score(y == k, probabilities[:, k]) for k in range(n_classes)]
    assert_allclose(curves.areas, expected, atol=2 * curves.error)
    assert abs(curves.area - np.mean(expected)) <= curves.error < 0.003


def test_the_mean_roc_curve_is_scikit_learns_at_each_share():
    y, probabilities = scored_rows(3)
    curves = count_roc(y, probabilities)
    shares, found = curves.mean_curve()
    expected = []
    for k in range(3):
        wrong, right, _ = roc_curve(y == k, probabilities[:, k], drop_intermediate=False)
        expected.append(np.interp(shares, wrong, right))
    assert_allclose(found, np.mean(expected, axis=0), atol=0.01)
    assert np.all(np.diff(found) >= 0)
    assert found[-1] == 1


def test_equal_probabilities_have_half_the_area():
    curves = count_roc(np.array([0, 1] * 10), np.full((20, 2), 0.5))
    assert curves.area == 0.5
    assert_allclose(curves.mean_curve()[1], np.linspace(0, 1, 201))


def test_probabilities_of_zero_and_one_are_ranked():
    y = np.array([0, 0, 1, 1])
    curves = count_roc(y, np.array([[1.0, 0.0], [0.999, 0.001], [1e-7, 1 - 1e-7], [0.0, 1.0]]))
    assert curves.area == 1.0
    assert curves.error == 0.0


def test_a_class_without_rows_has_no_curve():
    y, probabilities = scored_rows(3)
    is_kept = y != 2
    curves = count_roc(y[is_kept], probabilities[is_kept])
    assert np.isnan(curves.areas[2])
    assert_allclose(curves.area, np.mean(curves.areas[:2]))
    assert count_roc(np.zeros(5, dtype=int), np.full((5, 2), 0.5)).area is None
