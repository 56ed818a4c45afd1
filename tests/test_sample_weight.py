"""Weights of rows: where a source is trained, and where it is trained again."""

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
from sklearn.svm import SVC, LinearSVC

import limes
from limes.datasets import load
from limes.sources.base import SourceContext, as_source
from limes.sources.pipelines import fit_source


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


def test_sigmoids_are_those_of_the_weighted_svm_for_rows_of_equal_weight(weighted):
    X, y, weights = weighted
    svc = SVC(C=10).fit(X, y, weights)
    context = SourceContext(X, y, False, np.random.default_rng(0), sample_weight=weights)
    source = as_source(svc, context)
    # The weighted SVM prefers the second class; its sigmoid takes that back.
    assert np.mean(svc.predict(X) == 1) > 0.6
    own = 1 / (1 + np.exp(-(source.slopes * source.svm.pair_decisions(X) + source.shifts)))
    assert_allclose(own.mean(), y.mean(), atol=0.05)


@pytest.mark.parametrize("model", [RidgeClassifier(), LinearSVC()], ids=["ridge", "linear-svm"])
def test_other_classifiers_are_trained_again_with_weights_too(model, weighted, monkeypatch):
    X, y, weights = weighted
    model.fit(X, y, weights)
    recorded, fit = [], type(model).fit

    def recording(self, X, y, sample_weight=None):
        recorded.append((sample_weight.min(), sample_weight.max()))
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(type(model), "fit", recording)
    as_source(model, SourceContext(X, y, True, np.random.default_rng(0), sample_weight=weights))
    assert recorded == [(1.0, 5.0)] * 5


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
@pytest.mark.parametrize("name", ["pendigits", "letter", "usps"])
def test_a_weighted_svm_is_followed_as_well_as_without_weights(name):
    data = load(name)
    X, y, X_test = data.X_train[:5000], data.y_train[:5000], data.X_test[:5000]
    weights = np.exp(np.random.default_rng(0).normal(0, 1.2, len(X)))
    agreement = []
    for given in (None, weights):
        source = fit_source(make_pipeline(StandardScaler(), SVC(C=5)), X, y, given)
        fast = limes.accelerate(source, X, sample_weight=given)
        agreement.append(np.mean(fast.predict(X_test) == source.predict(X_test)))
    error = np.sqrt(sum(share * (1 - share) for share in agreement) / len(X_test))
    print(f"{name}: agreement {agreement[0]:.4f} without weights, {agreement[1]:.4f} with weights")
    assert agreement[1] >= agreement[0] - 2 * error
