"""Calibrated probabilities of an SVM with many pairs."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits, make_classification, make_moons
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import limes
from limes.libsvm.classifier import LibsvmClassifier
from limes.model.affine import AffineMap
from limes.model.coupling import class_pairs
from limes.scores import brier_score
from limes.sources import svm as svm_module
from limes.sources.base import RescaledSource, SourceContext, as_source
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


def two_classes(n_rows, seed=0):
    return make_classification(
        n_rows, 6, n_informative=4, class_sep=0.7, flip_y=0.1, random_state=seed
    )


def source_of(X, y, **options):
    model = SVC(C=100, **options).fit(X, y)
    class_index = np.searchsorted(model.classes_, y)
    return as_source(model, SourceContext(X, class_index, False, np.random.default_rng(0)))


def margins(source, X):
    two = np.sort(source.logits(X), axis=1)[:, -2:]
    return two[:, 1] - two[:, 0]


def test_out_of_fold_margins_are_those_of_new_rows_not_of_training_rows():
    X, y = two_classes(3000)
    source = source_of(X[:1000], y[:1000])
    assert source.out_of_fold_margins.shape == (1000,)
    new, trained = margins(source, X[1000:]), margins(source, X[:1000])
    found = np.quantile(source.out_of_fold_margins, [0.1, 0.25, 0.5])
    assert_allclose(found, np.quantile(new, [0.1, 0.25, 0.5]), rtol=0.15)
    assert (found[:2] < 0.85 * np.quantile(trained, [0.1, 0.25])).all()


@pytest.mark.parametrize(("n_rows", "n_folds"), [(900, 5), (2500, 3), (7500, 1)])
def test_as_many_folds_are_trained_as_leave_out_enough_rows(monkeypatch, n_rows, n_folds):
    X, y = two_classes(n_rows)
    model = SVC(C=0.1, max_iter=300)
    with pytest.warns(UserWarning, match="terminated early"):
        model.fit(X, y)
    sizes, fit = [], SVC.fit

    def count(self, X, y):
        sizes.append(len(y))
        return fit(self, X, y)

    monkeypatch.setattr(SVC, "fit", count)
    source = as_source(model, SourceContext(X, y, False, np.random.default_rng(0)))
    assert_allclose(sizes, [0.8 * n_rows] * n_folds, atol=2)
    assert len(source.out_of_fold_margins) == n_folds * n_rows - sum(sizes)


def test_where_training_takes_long_a_sample_gives_sigmoids_and_no_margins(monkeypatch):
    monkeypatch.setattr(svm_module, "MAX_TRAINING_COST", 1.0)
    X, y = two_classes(3500)
    source = source_of(X, y)
    assert source.out_of_fold_margins is None
    assert source.slopes[0] != svm_module.LOGIT_SLOPE
    # All rows of a small problem are a sample of nothing.
    assert source_of(X[:300], y[:300]).out_of_fold_margins is not None


@pytest.mark.parametrize("n_rare", [1, 2, 3])
def test_a_rare_class_is_always_trained_on(n_rare):
    X, y = load_digits(return_X_y=True)
    is_kept = (y < 3) & ~((y == 2) & (np.cumsum(y == 2) > n_rare))
    source = source_of(X[is_kept] / 16, y[is_kept])
    assert np.isfinite(source.out_of_fold_margins).all()
    assert len(source.out_of_fold_margins) == is_kept.sum() - (n_rare == 1)
    assert (source.slopes > 0).all()


def test_rows_without_a_class_give_no_margins():
    X, y = load_digits(return_X_y=True)
    model = SVC().fit(X / 16, y)
    is_kept = y > 0
    context = SourceContext(X[is_kept] / 16, y[is_kept], False, np.random.default_rng(0))
    source = as_source(model, context)
    assert source.out_of_fold_margins is None
    assert np.isfinite(source.slopes).all()


def test_a_rescaled_source_has_the_margins_of_its_source():
    source = source_of(*two_classes(200))
    rescaling = AffineMap(np.zeros(6), np.arange(6), np.full(6, 2.0))
    rescaled = RescaledSource(source, rescaling)
    assert_array_equal(rescaled.out_of_fold_margins, source.out_of_fold_margins)
