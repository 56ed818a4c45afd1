"""A LIBSVM model file as a source, labels out of order, with LIBSVM's own probabilities."""

import numpy as np
import pytest
from libsvm.svmutil import svm_save_model, svm_train
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs

from limes import accelerate, read_libsvm_model
from limes.sources.base import SourceContext, as_source


@pytest.fixture(scope="module", params=["", "-b 1"])
def trained(request, tmp_path_factory):
    X, y = make_blobs(300, n_features=3, centers=4, cluster_std=2.0, random_state=3)
    labels = np.array([7, -2, 30, 4])[y]
    order = np.argsort(labels == 30, kind="stable")[::-1]
    X, labels = X[order], labels[order]
    model = svm_train(labels.tolist(), X.tolist(), f"-c 5 -g 0.1 -q {request.param}")
    path = tmp_path_factory.mktemp("models") / "blobs.model"
    svm_save_model(str(path), model)
    return read_libsvm_model(path), X, labels


def test_the_source_has_the_predictions_of_the_model(trained):
    model, X, labels = trained
    class_index = np.searchsorted(np.unique(labels), labels)
    source = as_source(model, SourceContext(X, class_index, False, np.random.default_rng(0)))
    assert_array_equal(source.classes, [-2, 4, 7, 30])
    votes = source.classes[source.predict_index(X)]
    assert np.mean(votes == model.predict(X)) > 0.99


def test_the_models_own_sigmoids_are_used(trained):
    model, X, _ = trained
    if model.sigmoids is None:
        pytest.skip("trained without probabilities")
    source = as_source(model, SourceContext(X, None, True, np.random.default_rng(0)))
    # LIBSVM stops its coupling at 0.005 / 4, ours is exact.
    assert_allclose(source.probabilities(X), model.predict_proba(X), atol=0.01)


def test_the_fast_model_agrees_with_the_model_file(trained):
    model, X, _ = trained
    fast = accelerate(model, X, scheme="pairwise", random_state=0)
    assert_array_equal(fast.classes_, [-2, 4, 7, 30])
    assert np.mean(fast.predict(X) == model.predict(X)) > 0.95
