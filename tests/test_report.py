"""Comparisons of a model with its source; scores of predictions that are counted in blocks."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC

from limes import BordersClassifier, accelerate, timing
from limes.files import join_labels
from limes.report import (
    BreakEven,
    Comparison,
    ModelScores,
    PredictionCounter,
    measure_break_even,
    model_name,
)
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


@pytest.fixture(scope="module")
def fast(moons):
    X, y = moons
    return accelerate(SVC(gamma=2).fit(X, y), X, scheme="pairwise", random_state=0)


def test_a_report_has_the_skill_of_both(fast, moons):
    X, y = moons
    report = fast.report(X, y)
    assert report.source.accuracy == fast.estimator_.score(X, y)
    assert report.fast.accuracy == fast.score(X, y)
    assert report.agreement == np.mean(fast.predict(X) == fast.estimator_.predict(X))
    assert report.speed_up > 1
    assert report.fast.n_bytes == 4 * fast.n_borders_ * (2 + 2 + 1)


def test_a_report_without_labels_has_agreement_alone(fast, moons):
    report = fast.report(moons[0])
    assert report.source.accuracy is None
    assert "Same label on" in str(report)
    assert str(report).splitlines()[1].split() == ["accuracy", "-", "-"]


def test_a_report_names_source_and_model_in_its_head(fast, moons):
    lines = str(fast.report(*moons)).splitlines()
    assert lines[0].split(maxsplit=1) == ["SVC", "borders (pairwise)"]
    assert len({len(line) for line in lines[:-3]}) == 1
    assert lines[-3].startswith("Same label on")
    assert lines[-3].endswith("times as fast.")
    assert lines[-2] == fast.model_.info.agreement_sentence()
    assert lines[-1].startswith("The fit took")


def test_a_report_can_be_written_as_plain_numbers(fast, moons):
    result = fast.report(*moons).to_dict()
    assert set(result) == {
        *("source", "fast", "agreement", "n_rows", "classes", "speed_up", "warnings"),
        *("fit_seconds", "break_even_rows", "exact_break_even_rows", "exact_microseconds_per_row"),
    }
    assert result["n_rows"] == len(moons[0])


def test_a_fit_is_earned_back_after_its_time_over_the_time_that_a_row_saves():
    break_even = BreakEven(3.0, 0.5, source_microseconds=20.5, exact_microseconds=1.5)
    assert (break_even.rows, break_even.exact_rows) == (150_000, 3_000_000)
    assert str(break_even) == (
        "The fit took 3 s, earned back after about 150,000 rows against the source, 3,000,000 rows "
        "against the source's exact sums."
    )
    assert break_even.to_dict() == {
        "fit_seconds": 3.0,
        "break_even_rows": 150_000,
        "exact_break_even_rows": 3_000_000,
    }


@pytest.mark.parametrize(
    ("source", "exact", "expected"),
    [
        (
            2.0,
            None,
            "The fit took 1,234 s, earned back after about 1,200,000,000 rows against the source.",
        ),
        (
            1.0,
            None,
            "The fit took 1,234 s, which are not earned back. The model is not faster than the "
            "source.",
        ),
        (
            2.0,
            0.5,
            "The fit took 1,234 s, earned back after about 1,200,000,000 rows against the source. "
            "The model is not faster than the source's exact sums.",
        ),
        (
            1.0,
            0.5,
            "The fit took 1,234 s, which are not earned back. The model is not faster than the "
            "source or the source's exact sums.",
        ),
        (
            None,
            2e9,
            "The fit took 1,234 s, earned back after about 1 row against the source's exact sums.",
        ),
        (None, None, "The fit took 1,234 s."),
    ],
)
def test_a_sentence_says_when_a_fit_is_earned_back_or_that_it_is_not(source, exact, expected):
    assert str(BreakEven(1234.0, 1.0, source, exact)) == expected


def test_a_break_even_is_measured_in_a_fraction_of_a_second_on_few_rows_of_a_slow_source(
    monkeypatch,
):
    now, n_source_rows = [0.0], []
    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])

    def predict_slowly(rows):
        n_source_rows.append(len(rows))
        now[0] += 4e-3 * len(rows)

    def predict_fast(rows):
        now[0] += 1e-6 * len(rows)

    def predict_exactly(rows):
        now[0] += 3e-6 * len(rows)

    found = measure_break_even(
        8.0, np.zeros((5000, 2)), predict_fast, predict_slowly, predict_exactly
    )
    assert now[0] < 0.3
    assert max(n_source_rows) <= 10
    times = found.microseconds_per_row, found.source_microseconds, found.exact_microseconds
    assert_allclose(times, (1.0, 4000.0, 3.0))
    assert found.exact_rows == pytest.approx(4_000_000)


def test_a_report_says_when_the_fit_is_earned_back(fast, moons):
    report = fast.report(*moons)
    assert 0 < fast.fit_seconds_ == report.fit_seconds < 60
    saved = report.source.microseconds_per_row - report.fast.microseconds_per_row
    assert report.break_even.rows == np.ceil(1e6 * fast.fit_seconds_ / saved)
    assert report.exact_microseconds_per_row > 0
    assert "against the source" in str(report)


def test_exact_sums_are_not_compared_with_themselves(moons):
    X, y = moons
    exact = accelerate(SVC(gamma=2).fit(X, y), X, scheme="exact")
    report = exact.report(X, y)
    assert report.exact_microseconds_per_row is None
    assert "exact sums." not in str(report.break_even)


def test_a_model_that_is_not_faster_says_so(moons):
    fast = accelerate(lambda rows: rows[:, 1] - 0.2, moons[0], scheme="pairwise")
    report = fast.report(moons[0])
    assert report.break_even.rows is None
    assert str(report).endswith("not earned back. The model is not faster than the source.")


def test_without_the_time_of_the_fit_nothing_is_said_of_it(fast, moons):
    report = replace(fast.report(moons[0]), fit_seconds=math.nan)
    assert report.break_even is None
    assert "The fit took" not in str(report)


def test_a_verbose_fit_ends_with_its_break_even(moons, capsys):
    X, y = moons
    quick = {"scheme": "pairwise", "n_borders": 10, "refine": False, "verbose": 1}
    BordersClassifier(SVC(gamma=2), **quick).fit(X, y)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("The fit took")
    assert "against the source" in last


def test_a_function_of_rows_is_compared_too(moons):
    X, _ = moons
    fast = accelerate(lambda rows: rows[:, 1] - 0.2, X, random_state=0)
    assert fast.report(X).agreement > 0.99


def test_attributes_that_were_renamed_name_the_new_one(fast, moons):
    report = fast.report(moons[0])
    with pytest.raises(AttributeError, match="'borders': it is now called 'fast'"):
        report.borders  # noqa: B018
    with pytest.raises(AttributeError, match="now called 'microseconds_per_row'"):
        report.fast.microseconds_a_row  # noqa: B018
    assert not hasattr(report, "other")


def test_a_model_has_a_name_for_readers(fast):
    assert model_name(fast) == "borders (pairwise)"
    assert model_name(SVC()) == "SVC"


def test_scores_are_plain_numbers(moons):
    _, y = moons
    classes = np.arange(2)
    right = ModelScores("right", count(classes, y, y, np.eye(2)[y]), 2.0, 100)
    wrong = ModelScores("wrong", count(classes, y, 1 - y, None), 1.0, 50)
    result = Comparison(wrong, right).to_dict()
    assert (result["agreement"], result["speed_up"]) == (0.0, 2.0)
    assert (result["source"]["accuracy"], result["source"]["brier_score"]) == (1.0, 0.0)
    assert (result["fast"]["accuracy"], result["fast"]["brier_score"]) == (0.0, None)


def test_one_true_class_has_no_uncertainty_coefficient():
    counts = count(np.arange(2), np.zeros(5, int), np.zeros(5, int), None)
    assert ModelScores("m", counts, 1.0, 1).uncertainty_coefficient is None


def make_predictions(classes, seed=0, n_rows=1000):
    """Return true labels, predicted labels and probabilities."""
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.ones(len(classes)), n_rows)
    y = classes[(rng.random((n_rows, 1)) < probabilities.cumsum(axis=1)).argmax(axis=1)]
    return y, classes[probabilities.argmax(axis=1)], probabilities


def count(classes, y, labels, probabilities, n_blocks=7):
    counter = PredictionCounter(classes)
    for rows in filter(len, np.array_split(np.arange(len(labels)), n_blocks)):
        counter.add(
            None if y is None else y[rows],
            labels[rows],
            None if probabilities is None else probabilities[rows],
        )
    return counter.sum_up()


def scores(counts):
    return Comparison(ModelScores("m", counts, 1.0, 1), None).to_dict()["fast"]


@pytest.mark.parametrize("name", NAMES)
def test_scores_of_blocks_are_those_of_the_whole(name):
    classes = NAMES[name]
    y, labels, probabilities = make_predictions(classes)
    result = scores(count(classes, y, labels, probabilities))
    assert result["accuracy"] == accuracy_score(y, labels)
    assert result["uncertainty_coefficient"] == uncertainty_coefficient(y, labels)
    assert_allclose(
        result["brier_score"], brier_score(y, probabilities, classes=classes), rtol=1e-12
    )
    assert_array_equal(result["confusion"], confusion_matrix(y, labels, labels=np.sort(classes)))


@pytest.mark.parametrize("name", NAMES)
def test_the_roc_area_of_blocks_is_the_mean_over_the_classes(name):
    classes = NAMES[name]
    y, labels, probabilities = make_predictions(classes)
    result = scores(count(classes, y, labels, probabilities))
    areas = [roc_auc_score(y == label, probabilities[:, k]) for k, label in enumerate(classes)]
    assert_allclose(result["roc_area"], np.mean(areas), atol=0.003)
    assert list(result["roc_areas"]) == [str(label) for label in classes]
    assert_allclose(list(result["roc_areas"].values()), areas, atol=0.005)
    curve = result["roc_curve"]
    true, wrong = np.array(curve["true_positives"]), np.array(curve["false_positives"])
    area = np.sum(np.diff(wrong) * (true[1:] + true[:-1]) / 2)
    assert_allclose(area, np.mean(areas), atol=0.005)


def test_without_probabilities_there_is_no_roc_curve():
    classes = np.arange(2)
    y, labels, _ = make_predictions(classes, n_rows=50)
    result = scores(count(classes, y, labels, None))
    assert result["roc_area"] is None
    assert result["roc_areas"] is None


def test_labels_that_the_model_lacks_are_counted_and_have_no_brier_score():
    classes = np.array([0, 1])
    y, labels, probabilities = make_predictions(classes, n_rows=50)
    y[::10] = 7
    result = scores(count(classes, y, labels, probabilities))
    assert result["brier_score"] is None
    assert_array_equal(result["confusion"], confusion_matrix(y, labels, labels=[0, 1, 7]))
    assert result["accuracy"] == np.mean(y == labels)


def test_words_become_numbers_after_the_last_block():
    counter = PredictionCounter([1, 2], lambda truths: join_labels([truths]))
    counter.add(np.array(["1", "2"]), np.array([1, 1]), None)
    counter.add(np.array(["1.0"]), np.array([2]), None)
    counts = counter.sum_up()
    assert_array_equal(counts.confusion(np.array([1, 2])), [[1, 1], [1, 0]])


def test_without_true_labels_only_rows_are_counted():
    classes = np.array([0, 1])
    _, labels, probabilities = make_predictions(classes, n_rows=50)
    counts = count(classes, None, labels, probabilities)
    assert counts.truths is None
    assert counts.n_rows == 50
    assert scores(counts)["accuracy"] is None


def test_memory_does_not_grow_with_the_rows():
    classes = np.arange(3)
    small, large = (
        count(classes, *make_predictions(classes, n_rows=n_rows)) for n_rows in (200, 20_000)
    )
    assert len(large.rows) == len(small.rows) == 9


def test_counts_have_the_uncertainty_coefficient_of_their_labels():
    y, labels, _ = make_predictions(NAMES["numbers"])
    counts = confusion_matrix(y, labels, labels=[0, 1, 2, 3])
    assert_allclose(uncertainty_of_counts(counts), uncertainty_coefficient(y, labels), rtol=1e-14)
    with pytest.raises(ValueError, match="at least two true classes, got 1"):
        uncertainty_of_counts([[3, 2], [0, 0]])
