"""Calibrated probabilities of an SVM with many pairs."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits, make_moons
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import limes
from limes.libsvm.classifier import LibsvmClassifier
from limes.model.coupling import class_pairs
from limes.scores import brier_score
from limes.sources.base import SourceContext, as_source
from limes.sources.svm import svm_from_sklearn


def digits_source():
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y, train_size=0.5, random_state=0)
    model = SVC(C=10, gamma=0.5).fit(X, y)
    source = as_source(model, SourceContext(X, y, False, np.random.default_rng(0)))
    return model, source, X, X_test, y_test


def test_probabilities_of_many_pairs_are_calibrated_and_predict_the_same_classes():
    model, source, _, X_test, y_test = digits_source()
    coupled = source.probabilities(X_test)
    calibrated = source.calibrated_probabilities(X_test)
    assert source.inverse_temperature > 1.1
    assert_allclose(calibrated.sum(axis=1), 1.0)
    assert_array_equal(np.argmax(calibrated, axis=1), np.argmax(coupled, axis=1))
    coupled_score = brier_score(y_test, coupled, classes=model.classes_)
    assert brier_score(y_test, calibrated, classes=model.classes_) < coupled_score - 0.003


def test_a_fast_classifier_is_no_worse_than_the_coupled_probabilities():
    model, source, X, X_test, y_test = digits_source()
    fast = limes.accelerate(model, X, random_state=0)
    fast_score = brier_score(y_test, fast.predict_proba(X_test), classes=model.classes_)
    coupled_score = brier_score(y_test, source.probabilities(X_test), classes=model.classes_)
    assert fast_score < coupled_score + 0.005


def test_two_classes_are_calibrated_by_their_sigmoid_alone():
    X, y = make_moons(300, noise=0.2, random_state=0)
    model = SVC().fit(X, y)
    source = as_source(model, SourceContext(X, y, False, np.random.default_rng(0)))
    assert source.inverse_temperature == 1.0
    assert_array_equal(source.calibrated_probabilities(X), source.probabilities(X))


def numpy_logits(source, X):
    """Return the least decision value of each class over its pairs: the definition."""
    values = source.svm.pair_decisions(X)
    if not source.decides_by_vote:
        values = values + source.shifts / source.slopes
    values = 0.5 * source._logit_slopes() * values
    logits = np.full((len(values), len(source.classes)), np.inf)
    for place, (first, second) in enumerate(class_pairs(len(source.classes))):
        logits[:, first] = np.minimum(logits[:, first], -values[:, place])
        logits[:, second] = np.minimum(logits[:, second], values[:, place])
    return logits


def libsvm_source(X, y, by_probability):
    """Return the source of a LIBSVM file whose labels are out of order."""
    svc = SVC(C=10, gamma=0.1).fit(X, y)
    labels = np.array([3, 1, 4, 0, 5, 9, 2, 6, 8, 7])
    model = LibsvmClassifier(svm_from_sklearn(svc), labels)
    context = SourceContext(X, np.asarray(labels)[y], by_probability, np.random.default_rng(0))
    return as_source(model, context)


@pytest.mark.parametrize("by_probability", [False, True])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "libsvm"])
def test_logits_and_classes_are_those_of_the_definition(kernel, by_probability):
    X, y = load_digits(return_X_y=True)
    X = X / 16
    if kernel == "libsvm":
        source = libsvm_source(X[:500], y[:500], by_probability)
    else:
        model = SVC(C=10, kernel=kernel).fit(X[:500], y[:500])
        context = SourceContext(X[:500], y[:500], by_probability, np.random.default_rng(0))
        source = as_source(model, context)
    expected = numpy_logits(source, X)
    for rows in (X, X.astype(np.float32), sparse.csr_array(X)):
        found = source.logits(rows)
        assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
        assert_array_equal(found.argmax(axis=1), expected.argmax(axis=1))
        # Where one class wins all its pairs.
        if not by_probability:
            is_clear = expected.max(axis=1) > 0
            classes = source.predict_index(rows)[is_clear]
            assert_array_equal(classes, expected.argmax(axis=1)[is_clear])


def test_a_source_that_has_answered_can_be_pickled():
    _, source, X, _, _ = digits_source()
    expected = source.logits(X)
    copy = pickle.loads(pickle.dumps(source))
    assert_array_equal(copy.logits(X), expected)
    assert_array_equal(copy.predict_index(X), source.predict_index(X))
