"""Contract of every source: gradients, borders, and the predictions of the classifier itself.

A new source is one more entry of CASES; all tests of the contract then run on it.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern, RationalQuadratic, WhiteKernel
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC
from threadpoolctl import threadpool_limits

from limes.agf import AGFClassifier, KernelDensityClassifier
from limes.datasets.sample_classes import SampleClassesClassifier, sample_classes
from limes.fit.borders import find_borders
from limes.sources.base import SourceContext, as_source
from limes.sources.pipelines import unwrap

CASES = {
    "svc-rbf": SVC(C=5, gamma=0.5),
    "svc-scale": SVC(gamma="scale"),
    "svc-auto": SVC(gamma="auto"),
    "svc-poly": SVC(kernel="poly", degree=3, coef0=1.0, gamma=0.5),
    "svc-sigmoid": SVC(kernel="sigmoid", gamma=0.1, coef0=0.2),
    "svc-linear": SVC(kernel="linear"),
    "nusvc": NuSVC(nu=0.2, gamma=0.5),
    "linear-svc": LinearSVC(),
    "logistic": LogisticRegression(),
    "discriminant": LinearDiscriminantAnalysis(),
    "ridge": RidgeClassifier(),
    "gp-rbf": GaussianProcessClassifier(2.0 * RBF(1.5), optimizer=None),
    "gp-matern": GaussianProcessClassifier(Matern(2.0, nu=1.5), optimizer=None),
    "gp-smooth-matern": GaussianProcessClassifier(Matern(2.0, nu=2.5), optimizer=None),
    "gp-quadratic": GaussianProcessClassifier(
        RationalQuadratic(1.5, 0.7) + WhiteKernel(0.1), optimizer=None
    ),
    "gp-product": GaussianProcessClassifier(
        RBF(2.0) * DotProduct(1.0) + DotProduct(0.5) ** 2, optimizer=None
    ),
    "gp-noise": GaussianProcessClassifier(
        WhiteKernel(0.5) * DotProduct(1.0) + RBF(1.0), optimizer=None
    ),
    "agf": AGFClassifier(),
    "kernel-density": KernelDensityClassifier(bandwidth=0.8),
    "calibrated": CalibratedClassifierCV(SVC(gamma=0.5), ensemble=True, cv=3),
    "calibrated-pipeline": CalibratedClassifierCV(
        make_pipeline(StandardScaler(), LinearSVC()), ensemble=False, cv=3
    ),
    "isotonic": CalibratedClassifierCV(LogisticRegression(), method="isotonic", cv=3),
    "frozen": FrozenEstimator(SVC(gamma=0.5)),
    "search": GridSearchCV(SVC(), {"gamma": [0.5]}, cv=2),
    "generic-probabilities": MLPClassifier((8,), "tanh", random_state=0, max_iter=2000),
    "pipeline": make_pipeline(StandardScaler(), SVC(gamma=0.5)),
    "curved-pipeline": make_pipeline(StandardScaler(), PolynomialFeatures(), LogisticRegression()),
    "neighbors": KNeighborsClassifier(15),
    "forest": RandomForestClassifier(30, max_depth=4, random_state=0),
}
# Step functions have no gradient to compare with.
PIECEWISE_CONSTANT = ["isotonic", "neighbors", "forest"]
# With many classes scikit-learn calibrates the votes of an SVM, which are a step function too.
VOTES = ["calibrated"]
# Gaussian processes with a large latent variance on four classes: our quadrature of the gradient
# and scikit-learn's approximation of the probability are both inexact.
LARGE_VARIANCE = ["gp-product", "gp-noise"]
SMOOTH = [name for name in CASES if name not in PIECEWISE_CONSTANT]
SMOOTH_MANY_CLASSES = [name for name in SMOOTH if name not in [*VOTES, *LARGE_VARIANCE]]
PROBABILISTIC = [
    name
    for name, model in CASES.items()
    if hasattr(model, "predict_proba") and name not in LARGE_VARIANCE
]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Run BLAS in one thread: several wait for each other on a busy computer."""
    with threadpool_limits(1):
        yield


def central_differences(function, rows, step=1e-3):
    """Return gradients to the fourth order in the step."""
    gradients = np.empty_like(rows)
    for j in range(rows.shape[1]):
        shift = np.zeros(rows.shape[1])
        shift[j] = step
        near = function(rows + shift) - function(rows - shift)
        far = function(rows + 2 * shift) - function(rows - 2 * shift)
        gradients[:, j] = (8 * near - far) / (12 * step)
    return gradients


def assert_gradients_agree(border, rows):
    """Compare on rows where no probability is so small that its logit is bounded."""
    inside = rows[np.abs(border.decision(rows)) < 5][:40]
    assert len(inside) > 20
    expected = central_differences(border.decision, inside)
    scale = np.linalg.norm(expected, axis=1, keepdims=True)
    # Where another class becomes the best of the others, one-vs-rest has a kink: differences across
    # it depend on their step.
    halved = central_differences(border.decision, inside, step=5e-4)
    is_smooth = (np.abs(halved - expected) < 1e-6 * scale).all(axis=1)
    assert is_smooth.mean() > 0.9
    actual = border.gradient(inside)
    assert_allclose((actual / scale)[is_smooth], (expected / scale)[is_smooth], atol=1e-5)


def fitted(model, X, y):
    """Fit a model, or the model inside a frozen one."""
    if isinstance(model, FrozenEstimator):
        return FrozenEstimator(model.estimator.fit(X, y))
    if not hasattr(model, "fit"):
        return model
    return model.fit(X, y)


def make_source(model, X, y, *, by_probability=False):
    """Return the source of a model fitted to rows, and the rows in its space."""
    inner, preprocessing = unwrap(fitted(model, X, y))
    rows = X if preprocessing is None else preprocessing.apply(X)
    class_index = np.unique(y, return_inverse=True)[1]
    rng = np.random.default_rng(0)
    return as_source(inner, SourceContext(rows, class_index, by_probability, rng)), rows


@pytest.mark.parametrize("by_probability", [False, True])
@pytest.mark.parametrize("name", SMOOTH)
def test_gradient_agrees_with_central_differences(name, by_probability, moons):
    source, rows = make_source(CASES[name], *moons, by_probability=by_probability)
    assert_gradients_agree(source.pair_border(0, 1), rows)


@pytest.mark.parametrize("border", ["pair", "one_vs_rest"])
@pytest.mark.parametrize("name", SMOOTH_MANY_CLASSES)
def test_gradient_of_many_classes_agrees_with_central_differences(name, border, blobs):
    X, y = blobs[0][::3], blobs[1][::3]
    source, rows = make_source(CASES[name], X, y)
    if border == "one_vs_rest":
        assert_gradients_agree(source.one_vs_rest(2), rows)
    else:
        assert_gradients_agree(source.pair_border(1, 3), rows[np.isin(y, source.classes[[1, 3]])])


def test_gradient_of_the_sample_classes_agrees_with_central_differences():
    X, y = sample_classes(100, random_state=0)
    source, rows = make_source(SampleClassesClassifier(), X, y)
    assert_gradients_agree(source.pair_border(0, 1), rows)


@pytest.mark.parametrize("name", SMOOTH)
def test_decision_is_below_tolerance_at_every_border_point(name, moons):
    source, rows = make_source(CASES[name], *moons)
    border = source.pair_border(0, 1)
    values = border.decision(rows)
    negative, positive = rows[values < 0][:100], rows[values > 0][:100]
    n_lines = min(len(negative), len(positive))
    points, normals = find_borders(border, negative[:n_lines], positive[:n_lines], tolerance=1e-5)
    assert np.abs(border.decision(points)).max() < 1e-5
    assert np.isfinite(normals).all()


@pytest.mark.parametrize("name", CASES)
def test_the_side_of_the_border_is_the_predicted_class(name, moons):
    X, y = moons
    source, rows = make_source(CASES[name], X, y)
    values = source.pair_border(0, 1).decision(rows)
    is_off_border = np.abs(values) > 1e-9
    labels = CASES[name].predict(X)
    assert_array_equal((values > 0)[is_off_border], labels[is_off_border] == 1)
    assert_array_equal(source.predict_index(rows), labels)


@pytest.mark.parametrize("name", CASES)
def test_predicted_indices_are_the_labels_of_many_classes(name, blobs):
    X, y = blobs
    source, rows = make_source(CASES[name], X, y)
    assert_array_equal(source.classes[source.predict_index(rows)], CASES[name].predict(X))


@pytest.mark.parametrize("name", PROBABILISTIC)
def test_probabilities_are_those_of_the_classifier(name, blobs):
    X, y = blobs
    is_two = np.isin(y, ["ash", "birch"])
    model = CASES[name]
    source, rows = make_source(model, X[is_two], y[is_two])
    # scikit-learn averages the sigmoid of a Gaussian process by an approximation.
    tolerance = 2e-4 if name.startswith("gp") else 1e-9
    assert_allclose(source.probabilities(rows), model.predict_proba(X[is_two]), atol=tolerance)


@pytest.mark.parametrize("name", PIECEWISE_CONSTANT)
def test_a_piecewise_constant_source_has_borders_with_a_direction(name, moons):
    source, rows = make_source(CASES[name], *moons)
    border = source.pair_border(0, 1)
    values = border.decision(rows)
    negative, positive = rows[values < 0][:50], rows[values > 0][:50]
    points, normals = find_borders(border, negative, positive, tolerance=1e-5)
    assert np.linalg.norm(normals, axis=1).min() > 0
    assert np.isfinite(points).all()


def test_probability_border_of_an_svm_is_where_platts_sigmoid_is_one_half(moons):
    X, y = moons
    svc = SVC(gamma=1.0, class_weight={0: 5.0, 1: 1.0}).fit(X, y)
    source = as_source(svc, SourceContext(X, y, True, np.random.default_rng(0)))
    decision = source.pair_border(0, 1).decision(X)
    expected = 0.5 * (source.slopes[0] * svc.decision_function(X) + source.shifts[0])
    assert_allclose(decision, expected, rtol=1e-9, atol=1e-12)
    assert abs(source.shifts[0]) > 0.1


def test_a_function_of_rows_is_a_source():
    rows = np.random.default_rng(0).normal(size=(50, 2))
    context = SourceContext(rows, None, False, np.random.default_rng(0))
    border = as_source(lambda X: X[:, 0] - 1, context).pair_border(0, 1)
    assert_allclose(border.gradient(rows), np.tile([1.0, 0.0], (50, 1)), atol=1e-8)
    assert_allclose(border.decision(rows), rows[:, 0] - 1)


def test_an_object_without_decision_values_is_refused():
    with pytest.raises(TypeError, match="got 42"):
        as_source(42, SourceContext(np.zeros((1, 1)), None, False, np.random.default_rng(0)))
