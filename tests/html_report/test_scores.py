"""Answers that are counted in pieces have the scores of all of them at once."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from limes.files import join_labels
from limes.html_report import Comparison, ModelScores, PredictionCounter, compare_answers
from limes.html_report.figures import reliability
from limes.scores import (
    accuracy_score,
    brier_score,
    confusion_matrix,
    uncertainty_coefficient,
    uncertainty_of_counts,
)

NAMES = {
    "numbers": np.array([0, 1, 2]),
    "not in order": np.array([2, 0, 1]),
    "words": np.array(["ash", "birch", "cedar"]),
    "two": np.array([-1, 1]),
}


def make_answers(classes, seed=0, n_rows=1000):
    """Return true labels, labels given and probabilities."""
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.ones(len(classes)), n_rows)
    y = classes[(rng.random((n_rows, 1)) < chances.cumsum(axis=1)).argmax(axis=1)]
    return y, classes[chances.argmax(axis=1)], chances


def count(classes, y, labels, chances, n_pieces=7):
    tally = PredictionCounter(classes)
    for some in np.array_split(np.arange(len(labels)), n_pieces):
        tally.add(
            None if y is None else y[some], labels[some], None if chances is None else chances[some]
        )
    return tally.sum_up()


def scores(classes, counted):
    return compare_answers(Comparison(ModelScores("m", counted, 1.0, 1), None, classes))["model"]


@pytest.mark.parametrize("name", NAMES)
def test_scores_of_pieces_are_those_of_the_whole(name):
    classes = NAMES[name]
    y, labels, chances = make_answers(classes)
    found = scores(classes, count(classes, y, labels, chances))
    assert found["accuracy"] == accuracy_score(y, labels)
    assert found["uncertainty_coefficient"] == uncertainty_coefficient(y, labels)
    assert_allclose(found["brier_score"], brier_score(y, chances, classes=classes), rtol=1e-12)
    assert_array_equal(found["confusion"], confusion_matrix(y, labels, labels=np.sort(classes)))


@pytest.mark.parametrize("name", ["numbers", "two"])
def test_the_reliability_of_pieces_is_that_of_the_whole(name):
    classes = NAMES[name]
    y, labels, chances = make_answers(classes, n_rows=5000)
    answers = ModelScores("m", count(classes, y, labels, chances), 1.0, 1)
    forecast, observed, counts = reliability(answers, Comparison(answers, None, classes))
    is_two = name == "two"
    said = chances[:, 1] if is_two else chances.max(axis=1)
    is_right = y == classes[1] if is_two else y == labels
    own = np.minimum((10 * said).astype(int), 9)
    bins = [tenth for tenth in range(10) if np.sum(own == tenth) >= 10]
    assert_array_equal(counts, [np.sum(own == tenth) for tenth in bins])
    assert_allclose(forecast, [said[own == tenth].mean() for tenth in bins])
    assert_allclose(observed, [is_right[own == tenth].mean() for tenth in bins])


def test_labels_that_the_model_does_not_know_are_counted_and_have_no_brier_score():
    classes = np.array([0, 1])
    y, labels, chances = make_answers(classes, n_rows=50)
    y[::10] = 7
    found = scores(classes, count(classes, y, labels, chances))
    assert found["brier_score"] is None
    assert_array_equal(found["confusion"], confusion_matrix(y, labels, labels=[0, 1, 7]))
    assert found["accuracy"] == np.mean(y == labels)


def test_words_become_numbers_once_all_are_known():
    tally = PredictionCounter([1, 2])
    tally.add(np.array(["1", "2"]), np.array([1, 1]), None)
    tally.add(np.array(["1.0"]), np.array([2]), None)
    found = tally.sum_up(lambda truths: join_labels([truths]))
    assert_array_equal(found.confusion(np.array([1, 2])), [[1, 1], [1, 0]])


def test_without_truth_there_are_rows_alone():
    classes = np.array([0, 1])
    _, labels, chances = make_answers(classes, n_rows=50)
    counted = count(classes, None, labels, chances)
    assert counted.truths is None
    assert counted.n_rows == 50
    assert scores(classes, counted)["accuracy"] is None


def test_what_is_held_does_not_grow_with_the_rows():
    classes = np.arange(3)
    small, large = (
        count(classes, *make_answers(classes, n_rows=n_rows)) for n_rows in (200, 20_000)
    )
    assert len(large.rows) == len(small.rows) == 9


def test_counts_have_the_uncertainty_coefficient_of_their_labels():
    y, labels, _ = make_answers(NAMES["numbers"])
    counts = confusion_matrix(y, labels, labels=[0, 1, 2, 3])
    assert_allclose(uncertainty_of_counts(counts), uncertainty_coefficient(y, labels), rtol=1e-14)
    with pytest.raises(ValueError, match="at least two true classes, got 1"):
        uncertainty_of_counts([[3, 2], [0, 0]])
