"""Exact sums: labels, decision values and probabilities are those of the classifier itself."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC, OneClassSVM
from threadpoolctl import threadpool_limits

from limes.agf import AGFClassifier, KernelDensityClassifier
from limes.libsvm.classifier import LibsvmClassifier
from limes.sources import (
    SourceContext,
    as_source,
    exact_scheme_of,
    labels_of,
    no_exact_sums_reason,
)
from limes.sources.svm import svm_from_sklearn

KERNELS = {
    "rbf": {"gamma": 0.3},
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 3, "coef0": 1.0, "gamma": 0.2},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.05, "coef0": 0.3},
}
SVMS = {
    **{f"svc-{name}": SVC(**options) for name, options in KERNELS.items()},
    **{f"nusvc-{name}": NuSVC(nu=0.3, **options) for name, options in KERNELS.items()},
    "ties-broken": SVC(gamma=0.3, break_ties=True),
    "nusvc-ties-broken": NuSVC(nu=0.3, gamma=0.3, break_ties=True),
    "one-vs-one": SVC(gamma=0.3, decision_function_shape="ovo"),
    "weighted": SVC(class_weight="balanced", C=0.1),
}
STEPS = {
    "raw": lambda model: model,
    "scaled": lambda model: make_pipeline(StandardScaler(), model),
    "components": lambda model: make_pipeline(StandardScaler(), PCA(4, whiten=True), model),
}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Run BLAS in one thread: several wait for each other on a busy computer."""
    with threadpool_limits(1):
        yield


def problem(n_classes, n_rows=300):
    """Return rows with labels that are words, and more rows, some of them far away."""
    X, y = make_classification(
        n_rows, 6, n_informative=5, n_redundant=0, n_classes=n_classes, flip_y=0.1, random_state=3
    )
    rng = np.random.default_rng(0)
    more = np.concatenate([X, 2 * rng.normal(size=(500, 6)), 30 * rng.normal(size=(50, 6))])
    return X, np.array(["c", "a", "e", "b", "f", "d"])[y], more


def fitted(model, X, y):
    """Fit a copy of a model, without the warning that probabilities of an SVC are deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return clone(model).fit(X, y)


def assert_same_labels(scheme, model, X):
    """Compare the labels of rows that are not within rounding of a border."""
    values = scheme.values(X)
    is_clear = np.abs(values).min(axis=1) > 1e-9
    assert is_clear.mean() > 0.95
    labels = labels_of(model)[scheme.class_index(values)]
    assert_array_equal(labels[is_clear], model.predict(X)[is_clear])


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("name", SVMS)
def test_labels_and_decision_values_of_an_svm_are_its_own(name, n_classes, steps):
    X, y, more = problem(n_classes)
    model = fitted(STEPS[steps](SVMS[name]), X, y)
    scheme = exact_scheme_of(model)
    assert_same_labels(scheme, model, more)
    assert_allclose(scheme.decision(more), model.decision_function(more), rtol=1e-7, atol=1e-9)
    assert not scheme.has_probabilities


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_one_class_svm_gives_its_sum_and_its_sign(kernel, steps):
    X, _, more = problem(2)
    model = STEPS[steps](OneClassSVM(nu=0.2, **KERNELS[kernel])).fit(X)
    scheme = exact_scheme_of(model)
    assert_same_labels(scheme, model, more)
    assert_allclose(scheme.decision(more), model.decision_function(more), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("svc", [SVC, NuSVC])
def test_probabilities_of_an_svm_are_its_own_if_it_has_them(svc, n_classes):
    X, y, more = problem(n_classes)
    options = {"nu": 0.3} if svc is NuSVC else {}
    model = fitted(make_pipeline(StandardScaler(), svc(probability=True, **options)), X, y)
    scheme = exact_scheme_of(model)
    assert_same_labels(scheme, model, more)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        assert_allclose(scheme.predict_proba(more), model.predict_proba(more), atol=1e-9)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_a_calibrated_svm_predicts_its_likeliest_class(method, n_classes, frozen):
    X, y, more = problem(n_classes)
    inner = make_pipeline(StandardScaler(), SVC(gamma=0.2, class_weight="balanced"))
    inner = FrozenEstimator(inner.fit(X[::2], y[::2])) if frozen else inner
    calibrated = CalibratedClassifierCV(inner, method=method, ensemble=False, cv=3)
    model = make_pipeline(StandardScaler(), PCA(5), calibrated) if not frozen else calibrated
    model = model.fit(X, y)
    scheme = exact_scheme_of(model)
    assert scheme.rule == ("strict" if n_classes == 2 else "likeliest")
    expected = model.predict_proba(more)
    assert_allclose(scheme.predict_proba(more), expected, atol=1e-9)
    two = np.sort(expected, axis=1)[:, -2:]
    is_clear = two[:, 1] - two[:, 0] > 1e-9
    assert is_clear.mean() > 0.8
    labels = model.classes_[scheme.class_index(scheme.values(more))]
    assert_array_equal(labels[is_clear], model.predict(more)[is_clear])


def test_a_calibration_that_never_prefers_one_class_has_a_defined_answer():
    X, y, more = problem(2)
    y[: len(y) - 10] = "a"
    inner = FrozenEstimator(SVC(gamma=0.2, C=0.01).fit(X, problem(2)[1]))
    model = CalibratedClassifierCV(inner, method="isotonic", ensemble=False).fit(X, y)
    scheme = exact_scheme_of(model)
    assert_allclose(scheme.predict_proba(more), model.predict_proba(more), atol=1e-9)
    assert_array_equal(model.classes_[scheme.class_index(scheme.values(more))], model.predict(more))


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize(
    "kernel",
    [
        1.0 * RBF(1.5),
        RBF([1.0, 2.0, 0.7, 3.0, 1.0, 1.0]),
        2.5 * RBF([1.0, 2.0, 0.7, 3.0, 1.0, 1.0]) + WhiteKernel(0.3),
        0.5 * (RBF(2.0) * 3.0 + 0.2 * WhiteKernel(1.0)) + 0.7,
    ],
    ids=str,
)
def test_labels_of_a_binary_gaussian_process_are_its_own(kernel, steps):
    X, y, more = problem(2, n_rows=150)
    if steps == "components" and np.size(kernel.get_params().get("length_scale", 1.0)) > 1:
        kernel = RBF([1.0, 2.0, 0.7, 3.0])
    if steps == "components" and "k1__k2__length_scale" in kernel.get_params():
        kernel = kernel.set_params(k1__k2__length_scale=np.array([1.0, 2.0, 0.7, 3.0]))
    model = STEPS[steps](GaussianProcessClassifier(kernel, optimizer=None)).fit(X, y)
    scheme = exact_scheme_of(model)
    assert scheme.rule == "strict"
    rows = model[:-1].transform(more) if steps != "raw" else more
    process = model[-1] if steps != "raw" else model
    latent = process.latent_mean_and_variance(rows)[0]
    assert_allclose(scheme.decision(more), latent, rtol=1e-9, atol=1e-9)
    is_clear = np.abs(latent) > 1e-9
    labels = model.classes_[scheme.class_index(scheme.values(more))]
    assert_array_equal(labels[is_clear], model.predict(more)[is_clear])


def test_rows_give_a_gaussian_process_a_sigmoid_of_its_own_probabilities():
    X, y, _ = problem(2, n_rows=150)
    model = GaussianProcessClassifier(2.0 * RBF(1.5), optimizer=None).fit(X, y)
    scheme = exact_scheme_of(model, SourceContext(X, None, False, np.random.default_rng(0)))
    found, expected = scheme.predict_proba(X)[:, 1], model.predict_proba(X)[:, 1]
    assert np.abs(found - expected).mean() < 0.03
    assert_array_equal(found > 0.5, expected > 0.5)
    assert not exact_scheme_of(model).has_probabilities


def test_a_gaussian_process_of_named_columns_is_asked_by_name():
    pandas = pytest.importorskip("pandas")
    X, y, _ = problem(2, n_rows=100)
    table = pandas.DataFrame(X, columns=list("abcdef"))
    model = GaussianProcessClassifier(RBF(1.5), optimizer=None).fit(table, y)
    scheme = exact_scheme_of(model, SourceContext(X, None, False, np.random.default_rng(0)))
    assert scheme.has_probabilities


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_kernel_densities_are_the_classifiers_own_where_every_density_underflows(n_classes, steps):
    X, y, more = problem(n_classes)
    more = np.concatenate([more, 1e3 * more[:100]])
    model = STEPS[steps](KernelDensityClassifier(bandwidth=0.3)).fit(X * 10 + 500, y)
    scheme = exact_scheme_of(model)
    rows = more * 10 + 500
    expected = model.predict_proba(rows)
    assert_allclose(scheme.predict_proba(rows), expected, atol=1e-6)
    two = np.sort(expected, axis=1)[:, -2:]
    is_clear = two[:, 1] - two[:, 0] > 1e-6
    labels = model.classes_[scheme.class_index(scheme.values(rows))]
    assert_array_equal(labels[is_clear], model.predict(rows)[is_clear])
    assert (scheme.values(rows).max(axis=1) < -800).any()


def libsvm_model(n_classes, *, with_sigmoids):
    """Return a LIBSVM model with its labels out of order, and rows."""
    X, y, more = problem(n_classes)
    svc = fitted(SVC(gamma=0.3, probability=with_sigmoids, C=0.5), X, y)
    labels = np.array([30, 10, 50, 20, 60, 40])[:n_classes]
    sigmoids = np.array([svc._probA, svc._probB]) if with_sigmoids else None
    model = LibsvmClassifier(svm_from_sklearn(svc), labels, sigmoids=sigmoids)
    return model, X, labels[np.searchsorted(svc.classes_, y)], more


@pytest.mark.parametrize("with_sigmoids", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_a_libsvm_model_keeps_the_order_of_its_file(n_classes, with_sigmoids):
    model, _, _, more = libsvm_model(n_classes, with_sigmoids=with_sigmoids)
    scheme = exact_scheme_of(model)
    assert_same_labels(scheme, model, more)
    assert_allclose(scheme.decision(more), model.decision_function(more), rtol=1e-9, atol=1e-9)
    assert scheme.has_probabilities == with_sigmoids
    if with_sigmoids:
        assert_allclose(scheme.predict_proba(more), model.predict_proba(more), atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 6])
def test_a_libsvm_model_can_be_decided_by_probability(n_classes):
    model, X, _, more = libsvm_model(n_classes, with_sigmoids=True)
    context = SourceContext(X[:0], None, True, np.random.default_rng(0))
    scheme = exact_scheme_of(model, context)
    assert scheme.rule == ("strict" if n_classes == 2 else "likeliest")
    labels = model.classes_[scheme.class_index(scheme.values(more))]
    assert_array_equal(labels, model.predict_likeliest(more))
    assert_allclose(scheme.predict_proba(more), model.predict_proba(more), atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_libsvm_source_gives_equal_votes_to_the_first_label_of_the_file(n_classes):
    model, X, _, more = libsvm_model(n_classes, with_sigmoids=False)
    source = as_source(model, SourceContext(X, None, False, np.random.default_rng(0)))
    assert_array_equal(source.classes[source.predict_index(more)], model.predict(more))


def test_a_source_breaks_ties_as_its_svm_does():
    X, y, more = problem(6)
    model = fitted(SVC(gamma=0.3, break_ties=True), X, y)
    context = SourceContext(X, None, False, np.random.default_rng(0))
    source = as_source(model, context)
    labels = source.classes[source.predict_index(more)]
    assert_array_equal(labels, model.predict(more))
    assert (labels != model.set_params(break_ties=False).predict(more)).any()


@pytest.mark.parametrize("by_probability", [False, True])
@pytest.mark.parametrize("has_labels", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_rows_give_an_svm_the_probabilities_of_its_source(n_classes, has_labels, by_probability):
    X, y, more = problem(n_classes)
    model = fitted(SVC(gamma=0.2, class_weight="balanced"), X, y)
    class_index = np.searchsorted(model.classes_, y) if has_labels else None

    def context(source=None):
        rng = np.random.default_rng(0)
        return SourceContext(X, class_index, by_probability, rng, source)

    source = as_source(model, context())
    for scheme in (exact_scheme_of(model, context()), exact_scheme_of(model, context(source))):
        expected = source.calibrated_probabilities(more)
        assert_allclose(scheme.predict_proba(more), expected, atol=1e-9)
        found = scheme.class_index(scheme.values(more))
        assert_array_equal(found, source.predict_index(more))


def test_a_source_that_was_built_before_is_not_cross_validated_again(monkeypatch):
    X, y, _ = problem(3)
    model = fitted(SVC(), X, y)
    rng = np.random.default_rng(0)
    source = as_source(model, SourceContext(X, None, False, rng))
    monkeypatch.setattr(SVC, "fit", None)
    scheme = exact_scheme_of(model, SourceContext(X, None, False, rng, source))
    assert_allclose(scheme.probabilities.slopes, source.slopes)
    assert exact_scheme_of(model).probabilities is None


def test_a_search_is_taken_out():
    X, y, more = problem(3)
    model = GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [1, 10]}, cv=2)
    assert_same_labels(exact_scheme_of(model.fit(X, y)), model, more)


def test_sparse_support_vectors_are_taken():
    from scipy.sparse import csr_array

    X, y, more = problem(3)
    model = SVC(gamma=0.3).fit(csr_array(X), y)
    scheme = exact_scheme_of(model)
    expected = model.decision_function(csr_array(more))
    assert_allclose(scheme.decision(more), expected, rtol=1e-7, atol=1e-9)


X_TWO, Y_TWO, _ = problem(2, n_rows=60)
WITHOUT_SUMS = {
    "precomputed": (SVC(kernel="precomputed").fit(X_TWO @ X_TWO.T, Y_TWO), "'precomputed'"),
    "callable": (SVC(kernel=lambda a, b: a @ b.T).fit(X_TWO, Y_TWO), "kernel"),
    "one-class": (OneClassSVM(kernel="precomputed").fit(X_TWO @ X_TWO.T), "'precomputed'"),
    "forest": (RandomForestClassifier(2).fit(X_TWO, Y_TWO), "RandomForestClassifier"),
    "adaptive": (AGFClassifier().fit(X_TWO, Y_TWO), "AGFClassifier"),
    "matern": (
        GaussianProcessClassifier(Matern(), optimizer=None).fit(X_TWO, Y_TWO),
        "Matern",
    ),
    "two-radial": (
        GaussianProcessClassifier(RBF(1.0) + RBF(3.0), optimizer=None).fit(X_TWO, Y_TWO),
        "RBF",
    ),
    "process-of-three": (
        GaussianProcessClassifier(RBF(), optimizer=None).fit(X_TWO, np.arange(60) % 3),
        "two classes",
    ),
    "curved-step": (
        make_pipeline(StandardScaler(), PolynomialFeatures(), SVC()).fit(X_TWO, Y_TWO),
        "PolynomialFeatures",
    ),
    "ensemble": (
        CalibratedClassifierCV(SVC(), ensemble=True, cv=2).fit(X_TWO, Y_TWO),
        "ensemble=False",
    ),
    "temperature": (
        CalibratedClassifierCV(SVC(), method="temperature", ensemble=False, cv=2).fit(X_TWO, Y_TWO),
        "'temperature'",
    ),
    "calibrated-linear": (
        CalibratedClassifierCV(LinearSVC(), ensemble=False, cv=2).fit(X_TWO, Y_TWO),
        "LinearSVC",
    ),
    "calibrated-process": (
        CalibratedClassifierCV(
            GaussianProcessClassifier(RBF(), optimizer=None), ensemble=False, cv=2
        ).fit(X_TWO, Y_TWO),
        "decision_function",
    ),
    "one-density": (KernelDensityClassifier(1.0).fit(X_TWO, np.zeros(60)), "one class"),
    "logistic": (LogisticRegression().fit(X_TWO, Y_TWO), "LogisticRegression"),
    "function": (len, "builtin_function_or_method"),
}


@pytest.mark.parametrize("name", WITHOUT_SUMS)
def test_a_classifier_without_sums_says_why(name):
    model, reason = WITHOUT_SUMS[name]
    assert exact_scheme_of(model) is None
    assert reason in no_exact_sums_reason(model)


def test_borders_at_equal_probabilities_need_probabilities():
    model = SVC().fit(X_TWO, Y_TWO)
    context = SourceContext(X_TWO[:0], None, True, np.random.default_rng(0))
    assert exact_scheme_of(model, context) is None
    assert "rows to fit them to" in no_exact_sums_reason(model, context)


def test_a_classifier_with_sums_gives_no_reason():
    assert no_exact_sums_reason(SVC().fit(X_TWO, Y_TWO)) == ""


def test_an_svm_with_probabilities_is_cross_validated_without_them():
    X, y, more = problem(3)
    model = fitted(SVC(gamma=0.3, probability=True), X, y)
    plain = fitted(SVC(gamma=0.3), X, y)
    sources = [
        as_source(each, SourceContext(X, None, False, np.random.default_rng(0)))
        for each in (model, plain)
    ]
    assert_array_equal(sources[0].probabilities(more), sources[1].probabilities(more))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_probabilities_of_scikit_learn_intelex_are_calibrated_decision_values(n_classes):
    X, y, more = problem(n_classes)
    model = SVC(gamma=0.2).fit(X, y)
    # As scikit-learn-intelex stores them.
    model.clf_prob = CalibratedClassifierCV(FrozenEstimator(SVC(gamma=0.2).fit(X, y)))
    model.clf_prob.set_params(ensemble=False).fit(X, y)
    scheme = exact_scheme_of(model)
    assert_same_labels(scheme, model, more)
    assert_allclose(scheme.predict_proba(more), model.clf_prob.predict_proba(more), atol=1e-9)
