"""A LIBSVM model file as a source, labels out of order, with LIBSVM's own probabilities."""

import numpy as np
import pytest
from libsvm.svmutil import svm_load_model, svm_predict, svm_save_model, svm_train
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs

from limes import accelerate, read_libsvm_model
from limes.sources import SourceContext, as_source, exact_scheme_of


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
    assert_array_equal(votes, model.predict(X))


def test_the_models_own_sigmoids_are_used(trained):
    model, X, _ = trained
    if model.sigmoids is None:
        pytest.skip("trained without probabilities")
    source = as_source(model, SourceContext(X, None, True, np.random.default_rng(0)))
    # LIBSVM stops its coupling at 0.005 / 4, ours is exact.
    assert_allclose(source.probabilities(X), model.predict_proba(X), atol=0.01)


@pytest.mark.parametrize("has_probabilities", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kernel", ["-t 0", "-t 1 -g 0.1 -r 1", "-t 2 -g 0.1", "-t 3 -g 0.01"])
def test_exact_sums_have_the_results_of_libsvm(kernel, n_classes, has_probabilities, tmp_path):
    X, y = make_blobs(200, n_features=3, centers=4, cluster_std=3.0, random_state=3)
    # The labels of the file have the order of their first rows.
    first = [np.flatnonzero(y == class_)[0] for class_ in (3, 0, 2, 1)]
    order = np.concatenate([first, np.arange(len(y))])
    X, y = X[order], np.array([7, -2, 30, 4])[y[order]]
    is_used = np.isin(y, np.unique(y)[:n_classes])
    X, y = X[is_used], y[is_used]
    option = "-b 1" if has_probabilities else "-b 0"
    path = tmp_path / "blobs.model"
    svm_save_model(str(path), svm_train(y.tolist(), X.tolist(), f"-s 0 -q {kernel} {option}"))
    # The file has fewer digits than the model that was trained.
    trained, model = svm_load_model(str(path)), read_libsvm_model(path)
    assert not np.array_equal(model.labels, model.classes_)
    rows = np.concatenate([X, 5 * np.random.default_rng(0).normal(size=(300, 3))])
    scheme = exact_scheme_of(model)
    labels, _, _ = svm_predict([], rows.tolist(), trained, "-q")
    assert_array_equal(model.classes_[scheme.class_index(scheme.values(rows))], labels)
    assert scheme.has_probabilities == has_probabilities
    if has_probabilities:
        _, _, expected = svm_predict([], rows.tolist(), trained, "-q -b 1")
        expected = np.array(expected)[:, np.argsort(model.labels)]
        assert_allclose(scheme.predict_proba(rows), expected, atol=1e-9)


def test_the_fast_model_agrees_with_the_model_file(trained):
    model, X, _ = trained
    fast = accelerate(model, X, scheme="pairwise", random_state=0)
    assert_array_equal(fast.classes_, [-2, 4, 7, 30])
    assert np.mean(fast.predict(X) == model.predict(X)) > 0.95
