"""Calibrated probabilities of an SVM with many pairs."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, make_moons
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import limes
from limes.scores import brier_score
from limes.sources.base import SourceContext, as_source


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
