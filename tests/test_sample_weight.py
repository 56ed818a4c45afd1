"""Weights of rows: in the source, in what is trained again, in calibration and in agreement."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_moons
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import limes
from limes.fit.config import FitOptions
from limes.fit.data import sample_rows
from limes.fit.validation import held_out_validation_set, importance_weights
from limes.sources.base import SourceContext, as_source
from limes.sources.pipelines import fit_source
from limes.sources.platt import fit_sigmoid


@pytest.fixture(scope="module")
def weighted():
    """Rows of two classes, the second of which counts five times as much, and their weights."""
    X, y = make_moons(400, noise=0.4, random_state=0)
    return X, y, np.where(y == 1, 5.0, 1.0)


@pytest.fixture
def weights_of_fits(monkeypatch):
    """Record the weights of every SVM that is fitted: the smallest and the largest, or None."""
    recorded = []
    fit = SVC.fit

    def recording(self, X, y, sample_weight=None):
        given = None if sample_weight is None else (sample_weight.min(), sample_weight.max())
        recorded.append(given)
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(SVC, "fit", recording)
    return recorded


def test_the_source_is_fitted_with_the_weights(weighted, quick_fit):
    X, y, weights = weighted
    svc = SVC().fit(X, y, weights)
    sources = {
        "svc": SVC(),
        "pipeline": make_pipeline(make_pipeline("passthrough"), make_pipeline(SVC())),
        "search": GridSearchCV(make_pipeline(SVC()), {"svc__C": [1.0]}, cv=2),
    }
    for source in sources.values():
        fast = limes.BordersClassifier(source).fit(X, y, sample_weight=weights.tolist())
        assert_array_equal(fast.estimator_.decision_function(X), svc.decision_function(X))
        assert np.mean(fast.predict(X) == svc.predict(X)) > 0.98
    assert np.any(SVC().fit(X, y).predict(X) != svc.predict(X))


def test_weights_are_routed_where_routing_is_on(weighted):
    X, y, weights = weighted
    with sklearn.config_context(enable_metadata_routing=True):
        svc = SVC().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        source = fit_source(make_pipeline(scaler, svc), X, y, weights)
    expected = make_pipeline(StandardScaler(), SVC()).fit(X, y, svc__sample_weight=weights)
    assert_array_equal(source.decision_function(X), expected.decision_function(X))


@pytest.mark.parametrize("has_labels", [False, True])
def test_an_svm_is_trained_again_with_its_weights(has_labels, weighted, weights_of_fits, quick_fit):
    X, y, weights = weighted
    svc = SVC(C=10).fit(X, y, weights)
    weights_of_fits.clear()
    limes.accelerate(svc, X, y if has_labels else None, sample_weight=weights, scheme="shared")
    assert len(weights_of_fits) == 5
    assert set(weights_of_fits) == {(1.0, 5.0)}


def test_out_of_fold_margins_are_those_of_the_weighted_svm(weighted):
    X, y, weights = weighted
    svc = SVC(C=10).fit(X, y, weights)
    context = SourceContext(X, y, False, np.random.default_rng(0), sample_weight=weights)
    source = as_source(svc, context)
    assert source.out_of_fold_margins.shape == source.out_of_fold_weights.shape
    assert set(source.out_of_fold_weights) == {1.0, 5.0}
    # With the weights, the second class is five times as likely where both are equally frequent.
    unweighted = as_source(SVC(C=10).fit(X, y), SourceContext(X, y, False, context.rng))
    log_odds = source.shifts - unweighted.shifts
    assert_allclose(log_odds, np.log(5), atol=1.0)


def test_scores_are_calibrated_with_weights(weighted):
    X, y, weights = weighted
    model = RidgeClassifier().fit(X, y, weights)
    rng = np.random.default_rng(0)
    context = SourceContext(X, y, True, rng, sample_weight=weights)
    probabilities = as_source(model, context).probabilities(X)
    expected = np.average(y, weights=weights)
    assert_allclose(np.average(probabilities[:, 1], weights=weights), expected, atol=0.02)


def test_a_weighted_sigmoid_is_that_of_repeated_rows():
    rng = np.random.default_rng(0)
    values = rng.normal(size=20_000)
    is_second = rng.random(len(values)) < 1 / (1 + np.exp(-2 * values))
    weights = rng.integers(0, 4, len(values))
    repeated = np.repeat(np.arange(len(values)), weights)
    expected = fit_sigmoid(values[repeated], is_second[repeated])
    is_used = weights > 0
    found = fit_sigmoid(values[is_used], is_second[is_used], weights[is_used].astype(float))
    assert_allclose(found, expected, atol=2e-3)
    assert_allclose(
        fit_sigmoid(values[is_used], is_second[is_used], 1e-6 * weights[is_used]), found, rtol=1e-6
    )


def test_agreement_counts_rows_by_their_weight(weighted):
    X, y, weights = weighted
    svc = SVC(C=10).fit(X, y, weights)
    source = as_source(svc, SourceContext(X, y, False, np.random.default_rng(0)))
    sampled = sample_rows(X, None, class_index=y, rng=np.random.default_rng(0))
    places = np.arange(50)
    validation = held_out_validation_set(
        source, sampled.with_table(None, weights), places, FitOptions(None, "random", 1, 1e-5)
    )
    assert_allclose(validation.weights, weights[:50] / weights[:50].sum())
    other = validation.class_index.copy()
    other[0] = 1 - other[0]
    assert_allclose(validation.agreement(other)[0], 1 - weights[0] / weights[:50].sum())


def test_margins_are_weighted_to_weighted_targets():
    margins = np.linspace(0, 1, 1000)
    weights = importance_weights(margins, margins, np.where(margins < 0.5, 3.0, 1.0))
    # Three quarters, but for the bin around the middle.
    assert_allclose(weights[margins < 0.5].sum(), 0.75, atol=0.05)
    assert_allclose(importance_weights(margins, margins)[margins < 0.5].sum(), 0.5, atol=0.001)


def test_weights_that_cannot_be_used_are_refused(weighted):
    X, y, weights = weighted
    with pytest.raises(TypeError, match="KNeighborsClassifier is fitted without weights"):
        limes.BordersClassifier(KNeighborsClassifier()).fit(X, y, sample_weight=weights)
    svc = SVC().fit(X, y)
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(3,\)"):
        limes.accelerate(svc, X, sample_weight=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        limes.BordersClassifier().fit(X, y, sample_weight=-weights)


def test_a_table_has_weights_too(quick_fit):
    from tests.tables import census_columns, census_table

    table, y = census_table(400)
    weights = np.where(y == "high", 4.0, 1.0)
    fast = limes.BordersClassifier(make_pipeline(census_columns(), SVC()))
    fast.fit(table, y, sample_weight=weights)
    expected = make_pipeline(census_columns(), SVC()).fit(table, y, svc__sample_weight=weights)
    assert_array_equal(fast.estimator_.predict(table), expected.predict(table))
    assert np.mean(fast.predict(table) == expected.predict(table)) > 0.9


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("name", ["pendigits", "sat", "segment"])
def test_a_weighted_svm_is_followed_as_well_as_without_weights(name):
    data = limes.datasets.load(name)
    X, y, X_test = data.X_train[:3000], data.y_train[:3000], data.X_test[:5000]
    weights = np.exp(np.random.default_rng(0).normal(0, 1.2, len(X)))
    agreement = []
    for given in (None, weights):
        source = fit_source(make_pipeline(StandardScaler(), SVC(C=5)), X, y, given)
        fast = limes.accelerate(source, X, sample_weight=given)
        agreement.append(np.mean(fast.predict(X_test) == source.predict(X_test)))
    error = np.sqrt(2 * 0.01 / len(X_test))
    assert agreement[1] > agreement[0] - 2 * error
