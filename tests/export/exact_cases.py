"""Exact schemes of every kind, and which of their labels a stated bound guarantees."""

import re
from functools import cache

import numpy as np
from sklearn.datasets import make_blobs, make_moons
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, OneClassSVM

from limes import BordersClassifier
from limes.model import Model
from limes.model.affine import AffineMap
from limes.model.coupling import class_pairs
from limes.model.exact import Calibrators, ClassDensities, ExactScheme, PairSigmoids
from limes.model.packed import pack_sums
from limes.model.svm import Kernel, TrainedSvm
from limes.sources.svm import svm_from_sklearn


def blobs(n_features=4, n_classes=4, n_rows=300):
    return make_blobs(
        n_rows, n_features, centers=n_classes, cluster_std=2.5, center_box=(-4, 4), random_state=3
    )


def scaler(X):
    step = StandardScaler().fit(X)
    return AffineMap.scaling(step.mean_, 1.0 / step.scale_)


def svm_scheme(X, y, preprocessing=None, *, options=None, **settings):
    """Return the scheme of an SVC, and its own predictions as a function."""
    rows = X if preprocessing is None else preprocessing.apply(X)
    svc = SVC(**{"gamma": 0.1, **(options or {})}).fit(rows, y)
    scheme = ExactScheme(svm_from_sklearn(svc), preprocessing, **settings)

    def predict(rows):
        raw = rows.astype(np.float64)
        return svc.predict(raw if preprocessing is None else preprocessing.apply(raw))

    return scheme, X, predict


def rbf_two():
    return svm_scheme(*make_moons(300, noise=0.2, random_state=0), options={"gamma": 2.0, "C": 10})


def rbf_votes():
    return svm_scheme(*blobs())


def rbf_far():
    """Rows far from zero, in units of their spread."""
    X, y = blobs(3, 3)
    X = X * [1, 50, 0.01] + [1e4, 0, -20]
    return svm_scheme(X, y, scaler(X))


def rbf_projected():
    X, y = blobs(12, 5)
    X = X + 100.0
    step, scaled = scaler(X), StandardScaler().fit_transform(X)
    pca = PCA(3).fit(scaled)
    return svm_scheme(X, y, step.then(AffineMap(pca.mean_, pca.components_.T)))


def rbf_selected():
    X, y = blobs(6, 3)
    step = AffineMap(np.zeros(6), columns=np.array([4, 0, 1]), scale=np.array([1.0, 0.5, -2.0]))
    return svm_scheme(X, y, step)


def ties_broken():
    return svm_scheme(*blobs(2, 5), rule="ties broken", options={"break_ties": True})


def polynomial():
    X, y = blobs(5, 3)
    return svm_scheme(X, y, scaler(X), options={"kernel": "poly", "gamma": 0.3, "coef0": 1.0})


def polynomial_two():
    options = {"kernel": "poly", "gamma": 1.0, "degree": 2}
    return svm_scheme(*make_moons(200, noise=0.2, random_state=1), options=options)


def sigmoid_kernel():
    X, y = blobs(4, 3)
    options = {"kernel": "sigmoid", "gamma": 0.02, "coef0": -0.5}
    return svm_scheme(X, y, scaler(X), options=options)


def linear():
    X, y = blobs(4, 4)
    return svm_scheme(X + 30.0, y, scaler(X + 30.0), options={"kernel": "linear"})


def linear_of_few_vectors():
    """More pairs of classes than vectors: the kernel is summed."""
    X, y = make_blobs(100, 30, centers=10, cluster_std=0.1, random_state=0)
    return svm_scheme(X, y, options={"kernel": "linear"})


def one_class():
    X = blobs()[0]
    svm = OneClassSVM(gamma=0.05, nu=0.3).fit(X)
    sums = TrainedSvm(
        Kernel("rbf", svm.gamma),
        svm.support_vectors_,
        -svm.dual_coef_,
        -svm.intercept_,
        [0, len(svm.support_)],
    )
    return ExactScheme(sums, rule="strict"), X, lambda rows: (svm.predict(rows) > 0).astype(int)


def densities():
    X, y = blobs(3, 4, 100)
    order = np.argsort(y, kind="stable")
    counts = np.bincount(y)
    sums = ClassDensities(X[order], 0.4, counts, np.log(counts / len(y)) - [0.0, 1.0, 2.0, 0.0])
    return ExactScheme(sums, rule="density"), X, None


def densities_with_an_empty_class():
    sums = ClassDensities([[0.0, 1.0], [2.0, 0.0]], 0.5, [1, 0, 1], [-1.0, 5.0, -1.0])
    return ExactScheme(sums, rule="density"), np.random.default_rng(0).normal(size=(50, 2)), None


def reordered():
    """Classes in another order than the labels, as in a LIBSVM file."""
    scheme, X, _ = rbf_votes()
    order = np.array([2, 0, 3, 1])
    sums = scheme.sums.reordered(order)
    sigmoids = PairSigmoids(np.linspace(1, 2, 6), np.linspace(-0.2, 0.2, 6))
    return ExactScheme(sums, class_order=order, probabilities=sigmoids), X, None


def platt_two():
    scheme, X, predict = rbf_two()
    return ExactScheme(scheme.sums, probabilities=PairSigmoids([1.7], [0.2])), X, predict


def platt_like_libsvm():
    scheme, X, predict = rbf_votes()
    sigmoids = PairSigmoids(np.linspace(1, 2, 6), np.linspace(-0.2, 0.2, 6), like_libsvm=True)
    return ExactScheme(scheme.sums, probabilities=sigmoids), X, predict


def platt_with_temperature():
    scheme, X, predict = rbf_votes()
    sigmoids = PairSigmoids(np.linspace(1, 2, 6), np.zeros(6), inverse_temperature=1.4)
    return ExactScheme(scheme.sums, probabilities=sigmoids), X, predict


def calibrated():
    scheme, X, _ = rbf_votes()
    sigmoids = Calibrators(sigmoids=[[-1.0, 0.5], [-2.0, 1.0], [-1.5, 0.1], [-1.2, 0.4]])
    order = np.array([2, 0, 3, 1])
    sums = scheme.sums.reordered(order)
    found = ExactScheme(sums, rule="likeliest", class_order=order, probabilities=sigmoids)
    return found, X, None


def calibrated_isotonic():
    scheme, X, _ = rbf_votes()
    steps = np.array([-0.3, 0.1, 0.8, 1.9, 2.7, 3.2])
    levels = np.array([0.01, 0.02, 0.1, 0.4, 0.8, 0.97])
    found = Calibrators(isotonic=tuple((steps + 0.1 * c, levels) for c in range(4)))
    return ExactScheme(scheme.sums, rule="likeliest", probabilities=found), X, None


def calibrated_two():
    scheme, X, _ = rbf_two()
    found = Calibrators(isotonic=(([-1.0, 0.1, 1.5], [0.1, 0.6, 0.9]),))
    sums = scheme.sums.reordered([1, 0])
    return ExactScheme(sums, rule="likeliest", class_order=[1, 0], probabilities=found), X, None


def huge_weights():
    scheme, X, predict = rbf_votes()
    old = scheme.sums
    sums = TrainedSvm(
        old.kernel, old.vectors, 1e60 * old.dual_coef, 1e60 * old.intercepts, old.n_support
    )
    sigmoids = PairSigmoids(np.full(6, 2e-60), np.zeros(6))
    return ExactScheme(sums, probabilities=sigmoids), X, predict


CASES = (
    rbf_two,
    rbf_votes,
    rbf_far,
    rbf_projected,
    rbf_selected,
    ties_broken,
    polynomial,
    polynomial_two,
    sigmoid_kernel,
    linear,
    linear_of_few_vectors,
    one_class,
    densities,
    densities_with_an_empty_class,
    reordered,
    platt_two,
    platt_like_libsvm,
    platt_with_temperature,
    calibrated,
    calibrated_isotonic,
    calibrated_two,
    huge_weights,
)
# Also in float64: one of each kernel, rule and kind of probabilities.
DOUBLE_CASES = (
    rbf_far,
    rbf_projected,
    ties_broken,
    polynomial,
    sigmoid_kernel,
    linear,
    densities,
    platt_like_libsvm,
    calibrated_isotonic,
)
made = cache(lambda case: case())


def classifier(scheme):
    """Return a classifier of an exact scheme, whose labels are its class indices."""
    model = Model(scheme, np.arange(scheme.n_classes), scheme.n_features)
    return BordersClassifier.from_model(model)


@cache
def rows_of(case, n_rows=10_000):
    """Return rows like those of the case in float32, half of them next to a border."""
    scheme, X, _ = made(case)
    rng = np.random.default_rng(0)
    spread = X.std(axis=0)
    rows = X[rng.integers(len(X), size=n_rows)] + rng.normal(size=(n_rows, X.shape[1])) * spread
    below, above = rows[: n_rows // 4], rows[n_rows // 4 : n_rows // 2]
    index = scheme.classify(below)
    for _ in range(24):
        middle = 0.5 * (below + above)
        is_same = (scheme.classify(middle) == index)[:, None]
        below, above = np.where(is_same, middle, below), np.where(is_same, above, middle)
    jitter = rng.normal(size=above.shape) * 10.0 ** rng.uniform(-7, -2, size=(len(above), 1))
    rows[n_rows // 4 : n_rows // 2] = above + jitter * spread
    return rows.astype(np.float32)


@cache
def expected(case):
    """Return the decision values of the rows of a case, and the labels of the source."""
    scheme, _, predict = made(case)
    values = scheme.values(rows_of(case))
    own = scheme.class_index(values)
    labels = own if predict is None else predict(rows_of(case))
    return values, labels


def is_guaranteed(scheme, rows, values, dtype, text):
    """Return which labels the bound stated in a text guarantees."""
    bound = stated_bound(scheme, rows, dtype, text)
    if scheme.rule == "density":
        two = np.sort(values, axis=1)[:, -2:]
        return two[:, 1] - two[:, 0] > 2 * bound
    radius = bound[:, None] * term_sizes(scheme, rows, dtype, text)
    pairs = class_pairs(scheme.n_classes)
    certain, possible = np.zeros((2, len(rows), scheme.n_classes))
    for place, pair in enumerate(pairs):
        for side, sign in zip(pair, (-1, 1), strict=True):
            certain[:, side] += sign * values[:, place] > radius[:, place]
            possible[:, side] += sign * values[:, place] > -radius[:, place]
    if scheme.rule == "likeliest":
        two = np.sort(scheme._own_probabilities(values), axis=1)[:, -2:]
        return (certain == possible).all(axis=1) & (two[:, 1] - two[:, 0] > 1e-4)
    winner = np.argsort(scheme.class_order)[scheme.class_index(values)]
    others = possible.copy()
    others[np.arange(len(rows)), winner] = -1
    own, best = certain[np.arange(len(rows)), winner], others.max(axis=1)
    if scheme.rule != "ties broken":
        # The first of equals wins.
        return (own > best) | ((own == best) & (others.argmax(axis=1) > winner))
    return (own > best) | _is_tie_certain(values, radius, certain, possible, winner)


def _is_tie_certain(values, radius, certain, possible, winner):
    """Return where all votes are certain, and the winner's sum leads by more than the bounds."""
    sums, bounds = np.zeros((2, *certain.shape))
    for place, (first, second) in enumerate(class_pairs(certain.shape[1])):
        sums[:, first] -= values[:, place]
        sums[:, second] += values[:, place]
        bounds[:, [first, second]] += radius[:, [place]]
    rows = np.arange(len(winner))
    gap = sums[rows, winner][:, None] - sums
    is_rival = certain == certain[rows, winner][:, None]
    is_rival[rows, winner] = False
    leads = ~is_rival | (gap > bounds + bounds[rows, winner][:, None])
    return (certain == possible).all(axis=1) & leads.all(axis=1)


def stated_bound(scheme, rows, dtype, text):
    """Return B of each row, from the numbers in the text."""
    number = r"([\d.e+-]+)"
    found = re.search(
        rf"B = {number}(?: \+ {number} q)?(?: \+ {number} \(q \+ {number}\)\^2)?", text
    )
    constant, linear, square, radius = (float(part or 0) for part in found.groups())
    q = np.linalg.norm(_magnitudes(scheme, rows, dtype), axis=1)
    bound = constant + linear * q + square * (q + radius) ** 2
    return np.where(bound <= 0.01, bound, np.inf)


def _magnitudes(scheme, rows, dtype):
    """Return prepared rows with the magnitudes of the terms of their sums."""
    packed, step = pack_sums(scheme, np.dtype(dtype)), scheme.preprocessing
    shifted = np.abs(rows.astype(float) - (0.0 if packed.center is None else packed.center))
    if step is None:
        return shifted
    offsets = 0.0 if packed.offsets is None else np.abs(packed.offsets)
    return shifted @ np.abs(step.to_matrix()) + offsets


def term_sizes(scheme, rows, dtype, text):
    """Return the size S of the terms of each pair."""
    sums, kernel = scheme.sums, scheme.sums.kernel
    magnitudes = _magnitudes(scheme, rows, dtype)
    products = np.abs(magnitudes) @ np.abs(sums.vectors).T
    prepared = rows if scheme.preprocessing is None else scheme.preprocessing.apply(rows)
    base = kernel.gamma * products + abs(kernel.coef0)
    if kernel.name == "rbf":
        least = float(re.search(r"max\(K, ([\d.e+-]+)\)", text)[1])
        terms = np.maximum(kernel.values(prepared, sums.vectors), least)
    else:
        terms = {"poly": base**kernel.degree, "sigmoid": 1 + base, "linear": products}[kernel.name]
    if "the slopes of the pair" in text:
        return _linear_sizes(scheme, rows, dtype)
    ends = np.cumsum(sums.n_support)
    sizes = []
    for place, (i, j) in enumerate(class_pairs(sums.n_classes)):
        first, second = slice(ends[i] - sums.n_support[i], ends[i]), slice(ends[j - 1], ends[j])
        sizes.append(
            terms[:, first] @ np.abs(sums.dual_coef[j - 1, first])
            + terms[:, second] @ np.abs(sums.dual_coef[i, second])
            + abs(sums.intercepts[place])
        )
    return np.column_stack(sizes)


def _linear_sizes(scheme, rows, dtype):
    packed = pack_sums(scheme, np.dtype(dtype))
    center = 0.0 if packed.center is None else packed.center
    return np.abs(rows - center) @ np.abs(packed.slopes).T + np.abs(packed.intercepts)
