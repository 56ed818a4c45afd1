"""TrainedSvm: the decision values of scikit-learn, gradients, blocks."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC, SVR, NuSVC

from limes.model import svm as svm_module
from limes.model.coupling import class_pairs, count_votes_like_libsvm
from limes.model.svm import Kernel, TrainedSvm
from limes.sources.svm import svm_from_sklearn

KERNELS = [
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 3, "coef0": 0.5},
    {"kernel": "rbf", "gamma": 0.3},
    {"kernel": "sigmoid", "gamma": 0.02, "coef0": 0.1},
    {"kernel": "rbf", "gamma": "scale"},
    {"kernel": "rbf", "gamma": "auto"},
]


def blobs(n_classes, n_rows=240):
    X, y = make_blobs(
        n_rows, n_features=4, centers=n_classes, cluster_std=3.0, random_state=n_classes
    )
    return X - X.mean(axis=0), np.array(["pear", "apple", "fig", "nut", "sloe", "plum", "date"])[y]


def fitted(n_classes, model=SVC, **parameters):
    X, y = blobs(n_classes)
    return model(**parameters).fit(X, y), X


def second_is_positive(svc, X):
    values = svc.decision_function(X)
    return values[:, None] if values.ndim == 1 else -values


@pytest.mark.parametrize("model", [SVC, NuSVC])
@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("parameters", KERNELS, ids=str)
def test_decision_values_are_those_of_scikit_learn(model, n_classes, parameters):
    extra = {"nu": 0.2} if model is NuSVC else {}
    svc, X = fitted(n_classes, model, decision_function_shape="ovo", **parameters, **extra)
    expected = second_is_positive(svc, X)
    assert_allclose(svm_from_sklearn(svc).pair_decisions(X), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_an_svm_of_sparse_rows_has_the_same_decision_values(n_classes):
    X, y = blobs(n_classes)
    X[np.abs(X) < 1.0] = 0.0
    svc = SVC(gamma=0.3, decision_function_shape="ovo").fit(sparse.csr_matrix(X), y)
    svm = svm_from_sklearn(svc)
    expected = second_is_positive(svc, sparse.csr_matrix(X))
    assert_allclose(svm.pair_decisions(X), expected, rtol=1e-9, atol=1e-11)
    assert_array_equal(svm.pair_decisions(sparse.csc_matrix(X)), svm.pair_decisions(X))


@pytest.mark.parametrize("parameters", KERNELS[:4], ids=str)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_each_pair_alone_has_the_decision_values_of_all_pairs(parameters, n_classes):
    svc, X = fitted(n_classes, **parameters)
    svm = svm_from_sklearn(svc)
    values = svm.pair_decisions(X)
    for place, (first, second) in enumerate(class_pairs(n_classes)):
        alone = svm.decision(X, first, second)
        assert_allclose(alone, values[:, place], rtol=1e-10, atol=1e-11)
        with_gradient, _ = svm.decision_and_gradient(X, first, second)
        assert_allclose(with_gradient, values[:, place], rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("parameters", KERNELS[:4], ids=str)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_gradients_agree_with_central_differences(parameters, n_classes):
    svc, X = fitted(n_classes, **parameters)
    svm, rows = svm_from_sklearn(svc), X[:10]
    for pair in class_pairs(n_classes):
        steps = 1e-5 * np.eye(4)
        above = [svm.decision(rows + step, *pair) for step in steps]
        below = [svm.decision(rows - step, *pair) for step in steps]
        expected = (np.array(above) - np.array(below)).T / 2e-5
        assert_allclose(svm.decision_and_gradient(rows, *pair)[1], expected, rtol=1e-5, atol=1e-7)


def test_an_svm_needs_numpy_alone():
    code = "import sys, limes.model.svm; print({'scipy', 'sklearn', 'joblib'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_votes_are_the_labels_of_scikit_learn():
    svc, X = fitted(7, gamma=0.3)
    votes = count_votes_like_libsvm(svm_from_sklearn(svc).pair_decisions(X))
    assert_array_equal(svc.classes_[votes.argmax(axis=1)], svc.predict(X))


@pytest.mark.parametrize("max_features", [0, 256])
def test_blocks_do_not_change_decision_values(monkeypatch, max_features):
    monkeypatch.setattr(svm_module, "MAX_COMPILED_FEATURES", max_features)
    svc, X = fitted(4, gamma=0.3)
    svm = svm_from_sklearn(svc)
    whole = svm.pair_decisions(X), *svm.decision_and_gradient(X, 1, 3)
    monkeypatch.setattr(svm_module, "BLOCK_KERNELS", 1)
    monkeypatch.setattr(svm_module, "MIN_BLOCK_ROWS", 7)
    monkeypatch.setattr(svm_module, "COMPILED_BLOCK_ROWS", 7)
    pieces = svm.pair_decisions(X), *svm.decision_and_gradient(X, 1, 3)
    for expected, values in zip(whole, pieces, strict=True):
        assert_allclose(values, expected, rtol=1e-10, atol=1e-12)


def test_no_rows_give_no_decision_values():
    svc, X = fitted(3)
    svm = svm_from_sklearn(svc)
    assert svm.pair_decisions(X[:0]).shape == (0, 3)
    assert svm.decision(X[:0], 0, 1).shape == (0,)
    assert svm.decision_and_gradient(X[:0], 0, 1)[1].shape == (0, 4)


def test_a_class_without_support_vectors_has_zero_weight():
    svm = TrainedSvm(
        kernel=Kernel("rbf"),
        vectors=[[0.0], [1.0]],
        dual_coef=[[1.0, -1.0], [0.0, 0.0]],
        intercepts=[0.0, 0.5, -0.5],
        n_support=[1, 1, 0],
    )
    assert_allclose(svm.pair_decisions([[0.5]]), [[0.0, -0.5, 0.5]], atol=1e-15)
    assert_allclose(svm.decision([[0.5]], 0, 2), [-0.5])


def test_arrays_cannot_be_changed():
    svc, _ = fitted(2)
    svm = svm_from_sklearn(svc)
    with pytest.raises(ValueError, match="read-only"):
        svm.vectors[0] = 0.0


@pytest.mark.parametrize("pair", [(0, 0), (1, 0), (-1, 1), (1, 3)])
def test_a_pair_is_two_classes_the_smaller_first(pair):
    svc, X = fitted(3)
    with pytest.raises(ValueError, match="the smaller first"):
        svm_from_sklearn(svc).decision(X, *pair)


@pytest.mark.parametrize("shape", [(3, 5), (3,), (3, 4, 1)])
def test_rows_with_other_features_are_refused(shape):
    svc, _ = fitted(3)
    with pytest.raises(ValueError, match=r"shape \(n_rows, 4\)"):
        svm_from_sklearn(svc).pair_decisions(np.zeros(shape))


def test_a_precomputed_kernel_is_refused():
    X, y = blobs(2)
    svc = SVC(kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match="got 'precomputed'"):
        svm_from_sklearn(svc)


def test_an_unfitted_svm_is_refused():
    with pytest.raises(NotFittedError):
        svm_from_sklearn(SVC())


def test_a_regression_is_refused():
    X, y = blobs(2)
    with pytest.raises(TypeError, match="SVC or NuSVC"):
        svm_from_sklearn(SVR().fit(X, y == "pear"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vectors", [[0.0]]),
        ("vectors", [0.0, 1.0]),
        ("dual_coef", [[1.0]]),
        ("intercepts", []),
        ("n_support", [2]),
    ],
)
def test_arrays_that_do_not_fit_are_named(name, value):
    arrays = {
        "vectors": [[0.0], [1.0]],
        "dual_coef": [[1.0, -1.0]],
        "intercepts": [0.0],
        "n_support": [1, 1],
    }
    with pytest.raises(ValueError, match=name):
        TrainedSvm(kernel=Kernel("rbf"), **(arrays | {name: value}))


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_an_svm_with_reordered_classes_has_the_same_decision_values(n_classes):
    svc, X = fitted(n_classes, gamma=0.3)
    svm = svm_from_sklearn(svc)
    order = np.random.default_rng(0).permutation(n_classes)
    reordered = svm.reordered(order)
    for place, (a, b) in enumerate(class_pairs(n_classes)):
        i, j = order[a], order[b]
        pair = min(i, j), max(i, j)
        expected = svm.decision(X, *pair) * (1 if i < j else -1)
        assert_allclose(reordered.pair_decisions(X)[:, place], expected, rtol=1e-12, atol=1e-12)
