"""The validation set: agreement with its error, and weights by margins."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.svm import SVC

import limes
from limes.fit.validation import ValidationSet, importance_weights


def test_agreement_is_balanced_over_classes():
    class_index = np.repeat([0, 1], [90, 10])
    validation = ValidationSet.unweighted(np.zeros((100, 2)), class_index)
    agreement, error = validation.balanced_agreement(np.zeros(100, dtype=int))
    assert agreement == pytest.approx(0.5)
    assert error > validation.agreement(np.zeros(100, dtype=int))[1]
    assert validation.balanced_agreement(class_index)[0] == 1.0


def test_agreement_has_an_error_even_where_it_is_perfect():
    validation = ValidationSet.unweighted(np.zeros((100, 2)), np.zeros(100, dtype=int))
    agreement, error = validation.agreement(np.zeros(100, dtype=int))
    assert agreement == pytest.approx(1.0)
    assert 0 < error < 0.02
    empty = ValidationSet.unweighted(np.zeros((0, 2)), np.zeros(0, dtype=int))
    assert np.isnan(empty.agreement(np.zeros(0, dtype=int))[0])


def test_a_few_heavy_rows_have_a_larger_error_than_many():
    class_index = np.zeros(100, dtype=int)
    weights = np.where(np.arange(100) < 5, 1.0, 1e-6)
    few = ValidationSet(np.zeros((100, 2)), class_index, weights / weights.sum())
    assert (
        few.agreement(class_index)[1]
        > 3 * ValidationSet.unweighted(few.rows, class_index).agreement(class_index)[1]
    )


def test_a_class_without_weight_does_not_count():
    validation = ValidationSet(np.zeros((3, 1)), np.array([0, 0, 1]), np.array([0.5, 0.5, 0.0]))
    assert validation.balanced_agreement(np.array([0, 1, 0]))[0] == pytest.approx(0.5)
    assert validation.recall_by_class(np.array([0, 1, 0])).tolist() == [0.5]


def test_weights_give_rows_the_target_distribution_of_margins():
    rng = np.random.default_rng(0)
    margins, target = rng.uniform(1, 5, 3000), rng.uniform(0, 3, 2000)
    margins = np.concatenate([margins, rng.uniform(0, 5, 3000)])
    weights = importance_weights(margins, target)
    assert weights.sum() == pytest.approx(1.0)
    for edge in (0.5, 1.0, 2.0):
        assert weights @ (margins < edge) == pytest.approx(np.mean(target < edge), abs=0.03)


def test_margins_that_cannot_be_matched_count_alike():
    assert_array_equal(importance_weights(np.full(50, 1.01), np.full(50, 1.0)), np.full(50, 1 / 50))


def test_where_all_rows_are_support_vectors_agreement_is_that_of_other_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 40))
    y = X[:, 0] + np.abs(X[:, 1]) - 0.8 + 1.5 * rng.normal(size=20_000) > 0
    svc = SVC(C=1, gamma=0.05).fit(X[:700], y[:700])
    assert len(svc.support_) > 0.95 * 700
    fast = limes.accelerate(svc, X[:700], n_borders=16, random_state=0)
    measured = np.mean(fast.predict(X[700:]) == svc.predict(X[700:]))
    # Agreement on the support vectors is far lower: the border bends around each.
    assert fast.agreement_ == pytest.approx(measured, abs=0.05)
