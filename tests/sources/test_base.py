"""Rescaled sources: rows in any unit give the same map and the same predictions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification, make_moons
from sklearn.svm import SVC

import limes
from limes.fit.data import find_rescaling
from limes.sources.base import RescaledSource, SourceContext, as_source


@pytest.mark.parametrize(("factor", "shift"), [(1e-12, 0.0), (1e-3, 0.0), (1e9, 0.0), (2.0, 1e4)])
def test_a_map_agrees_as_well_whatever_the_unit(factor, shift):
    X, y = make_moons(500, noise=0.2, random_state=0)
    X_test = make_moons(2000, noise=0.2, random_state=1)[0]
    model = SVC(C=5, gamma=2.0 / factor**2).fit(factor * X + shift, y)
    fast = limes.accelerate(model, factor * X + shift, n_borders=32, random_state=0)
    moved = factor * X_test + shift
    assert np.mean(fast.predict(moved) == model.predict(moved)) > 0.99


@pytest.mark.parametrize("scheme", ["pairwise", "one-vs-rest", "shared", "shortlist", "tree"])
def test_every_scheme_takes_rows_in_small_units(scheme):
    X, y = make_classification(600, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    model = SVC(C=2, gamma="scale").fit(1e-4 * X, y)
    fast = limes.accelerate(model, 1e-4 * X, scheme=scheme, n_borders=30, random_state=0)
    assert np.mean(fast.predict(1e-4 * X) == model.predict(1e-4 * X)) > 0.95


def test_a_rescaled_source_has_the_same_values_and_rescaled_gradients():
    X, y = make_classification(300, 4, n_informative=3, n_redundant=0, n_classes=3, random_state=1)
    X = 1000.0 * X + 5e4
    source = as_source(SVC().fit(X, y), SourceContext(X, y, False, np.random.default_rng(0)))
    rescaling = find_rescaling(X)
    rescaled, rows = RescaledSource(source, rescaling), rescaling.apply(X)
    assert_allclose(np.std(rows), 1.0, rtol=0.1)
    assert_array_equal(rescaled.predict_index(rows), source.predict_index(X))
    for name in ("probabilities", "calibrated_probabilities", "logits"):
        values = getattr(rescaled, name)(rows)
        assert_allclose(values, getattr(source, name)(X), rtol=1e-6, atol=1e-9)
    for border in (rescaled.pair_border(0, 2), rescaled.one_vs_rest(1)):
        values, gradients = border.decision_and_gradient(rows)
        assert_allclose(border.decision(rows), values)
        step = 1e-5 * np.eye(4)[2]
        slope = (border.decision(rows + step) - border.decision(rows - step)) / 2e-5
        assert_allclose(gradients[:, 2], slope, rtol=1e-3, atol=1e-5)


def test_standardised_rows_are_left_as_they_are():
    rows = np.random.default_rng(0).normal(size=(200, 6))
    assert find_rescaling(rows) is None
    assert find_rescaling(np.full((5, 2), 7.0)) is None
    assert find_rescaling(0.01 * rows) is not None
    assert find_rescaling(rows + 100.0) is not None
