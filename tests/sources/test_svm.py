"""Probabilities that a map learns: those of a machine of many pairs, as sharp as they should be."""

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
    return (
        model,
        as_source(model, SourceContext(X, y, False, np.random.default_rng(0))),
        X,
        X_test,
        y_test,
    )


def test_a_machine_of_many_pairs_is_sharpened_and_names_the_same_classes():
    model, source, _, X_test, y_test = digits_source()
    coupled, sharp = source.probabilities(X_test), source.calibrated_probabilities(X_test)
    assert source.inverse_temperature > 1.1
    assert_allclose(sharp.sum(axis=1), 1.0)
    assert_array_equal(np.argmax(sharp, axis=1), np.argmax(coupled, axis=1))
    scores = [brier_score(y_test, found, classes=model.classes_) for found in (coupled, sharp)]
    assert scores[1] < scores[0] - 0.003


def test_a_fast_classifier_is_no_worse_than_the_coupled_probabilities():
    model, source, X, X_test, y_test = digits_source()
    fast = limes.accelerate(model, X, random_state=0)
    found = brier_score(y_test, fast.predict_proba(X_test), classes=model.classes_)
    wanted = brier_score(y_test, source.probabilities(X_test), classes=model.classes_)
    assert found < wanted + 0.005


def test_two_classes_are_left_to_their_sigmoid():
    X, y = make_moons(300, noise=0.2, random_state=0)
    model = SVC().fit(X, y)
    source = as_source(model, SourceContext(X, y, False, np.random.default_rng(0)))
    assert source.inverse_temperature == 1.0
    assert_array_equal(source.calibrated_probabilities(X), source.probabilities(X))
