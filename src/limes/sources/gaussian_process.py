"""Gaussian-process classifiers, with gradients of their kernels."""

from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import expit
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier

from limes._typing import Array
from limes.model.affine import AffineMap, to_dense
from limes.model.exact import ExactScheme, PairSigmoids
from limes.model.svm import Kernel as SvmKernel
from limes.model.svm import TrainedSvm
from limes.sources.answers import ask
from limes.sources.base import (
    NoExactSumsError,
    SourceContext,
    as_source,
    exact_scheme,
    training_rows,
)
from limes.sources.generic import CentralDifferences
from limes.sources.logit_source import LogitSource
from limes.sources.platt import fit_slope

# With 48 nodes the mean of a sigmoid under a Gaussian has an error below 1e-9 for variances to 4,
# 2e-6 to 9 and 2e-4 to 25; at 200 it is 0.02.
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()
# Kernel values in a block: 32 MB of float64.
BLOCK_VALUES = 4_000_000
# Cost of a kernel value (distance and exponential) in multiply-adds.
KERNEL_COST = 100
# Orders of Matern kernels with a closed form and a gradient.
MATERN_ORDERS = (1.5, 2.5, np.inf)
# Rows that a sigmoid is fitted to: the process takes the square of its training rows for each.
MAX_SIGMOID_ROWS = 300


@as_source.register
def _(model: GaussianProcessClassifier, context: SourceContext) -> LogitSource:
    inner: Any = getattr(model, "base_estimator_", None)
    if isinstance(inner, OneVsOneClassifier):
        raise ValueError(
            f"multi_class must be 'one_vs_rest', got {model.multi_class!r}: a Gaussian-process "
            "classifier of pairs has no probabilities. Refit the source."
        )
    processes = [_LatentProcess(estimator, context.X) for estimator in _binary_processes(model)]
    is_binary = not isinstance(inner, OneVsRestClassifier)
    parts = _BinaryProbabilities(*processes) if is_binary else _NormalisedProbabilities(processes)
    n_trained = len(inner.X_train_) if is_binary else len(context.X)
    return LogitSource.from_probabilities(
        model.classes_,
        context.X.shape[1],
        probabilities=parts.values,
        gradient=parts.gradients,
        query_cost=float(len(model.classes_) * n_trained * (n_trained + KERNEL_COST)),
    )


@exact_scheme.register
def _(model: GaussianProcessClassifier, context: SourceContext | None) -> ExactScheme:
    """Return the latent mean, whose sign is the class; its variance is not a sum of kernels."""
    if len(model.classes_) > 2:
        raise NoExactSumsError(
            "the labels of a Gaussian-process classifier are those of one sum of kernels for two "
            f"classes only, got {len(model.classes_)}"
        )
    process: Any = model.base_estimator_
    radial = _as_radial(process.kernel_)
    residuals = process.y_train_ - process.pi_
    scale = np.atleast_1d(radial.length_scale)
    vectors, preprocessing, gamma = np.asarray(process.X_train_, dtype=np.float64), None, 0.5
    if len(scale) > 1:
        preprocessing = AffineMap.scaling(np.zeros(len(scale)), 1 / scale)
        vectors = preprocessing.apply(vectors)
    else:
        gamma = 0.5 / float(scale[0]) ** 2
    is_second = process.y_train_ > 0
    order = np.argsort(is_second, kind="stable")
    svm = TrainedSvm(
        kernel=SvmKernel("rbf", gamma),
        vectors=vectors[order],
        dual_coef=-radial.factor * residuals[None, order],
        intercepts=np.array([-radial.constant * residuals.sum()]),
        n_support=np.bincount(is_second, minlength=2),
    )
    scheme = ExactScheme(svm, preprocessing, rule="strict")
    if context is None or not len(context.X):
        return scheme
    rows = context.X[:: -(-len(context.X) // MAX_SIGMOID_ROWS)]
    probabilities = ask(model, "predict_proba", n_columns=len(model.classes_))(rows)
    slope = fit_slope(scheme.decision(rows), probabilities[:, 1])
    return replace(scheme, probabilities=PairSigmoids(np.array([slope]), np.zeros(1)))


@dataclass(frozen=True)
class _RadialKernel:
    """A kernel between different rows: ``factor * RBF(length_scale) + constant``."""

    factor: float = 0.0
    length_scale: float | Array = 1.0
    constant: float = 0.0


def _as_radial(kernel: Kernel) -> _RadialKernel:
    """Return a kernel of constants, white noise and one RBF as such."""
    if type(kernel) is RBF:
        return _RadialKernel(1.0, kernel.length_scale)
    if type(kernel) is ConstantKernel:
        return _RadialKernel(constant=kernel.constant_value)
    if type(kernel) is WhiteKernel:
        return _RadialKernel()
    if type(kernel) in (Sum, Product):
        first, second = _as_radial(kernel.k1), _as_radial(kernel.k2)
        if second.factor:
            first, second = second, first
        if not second.factor:
            if type(kernel) is Sum:
                return replace(first, constant=first.constant + second.constant)
            factor, constant = (each * second.constant for each in (first.factor, first.constant))
            return replace(first, factor=factor, constant=constant)
    raise NoExactSumsError(
        f"the kernel {kernel} is not one RBF with constant factors, constants and white noise"
    )


@training_rows.register
def _(model: GaussianProcessClassifier) -> Array:
    # With more than two classes there is one process for each, all trained on the same rows.
    return to_dense(_binary_processes(model)[0].X_train_)


def _binary_processes(model: GaussianProcessClassifier) -> list[Any]:
    """Return the one binary process of two classes, or that of each class against the rest."""
    inner = model.base_estimator_
    return list(getattr(inner, "estimators_", [inner]))


class _LatentProcess:
    """One binary Laplace approximation: the mean and variance of its latent function."""

    def __init__(self, estimator: Any, rows: Array) -> None:
        self.kernel = estimator.kernel_
        self.vectors = np.asarray(estimator.X_train_, dtype=np.float64)
        self.residuals = estimator.y_train_ - estimator.pi_
        self.root_noise = estimator.W_sr_
        self.cholesky = estimator.L_
        self.block = max(1, BLOCK_VALUES // len(self.vectors))
        self.numeric = None
        if not has_gradient(self.kernel):
            self.numeric = CentralDifferences(self.probability, rows)

    def probability(self, X: Array) -> Array:
        """Return the probability of the second class."""
        return np.concatenate(
            [self._block_probability(part) for part in self._blocks(X)] or [np.empty(0)]
        )

    def gradient(self, X: Array) -> Array:
        """Return the gradient of the probability."""
        if self.numeric is not None:
            return self.numeric(X)
        return np.concatenate(
            [self._block_gradient(part) for part in self._blocks(X)] or [np.empty_like(X)]
        )

    def _blocks(self, X: Array) -> list[Array]:
        """Split rows into blocks of bounded memory."""
        return [X[i : i + self.block] for i in range(0, len(X), self.block)]

    def _latent(self, X: Array) -> tuple[Array, Array, Array]:
        """Return mean and variance of the latent function, and the scaled kernel values."""
        values = self.kernel(X, self.vectors)
        scaled = solve_triangular(self.cholesky, self.root_noise[:, None] * values.T, lower=True)
        variance = self.kernel.diag(X) - np.square(scaled).sum(axis=0)
        return values @ self.residuals, np.maximum(variance, 0.0), values

    def _block_probability(self, X: Array) -> Array:
        """Return the mean of the sigmoid over the latent function."""
        mean, variance, _ = self._latent(X)
        return expit(mean[:, None] + np.sqrt(variance)[:, None] * NODES) @ NODE_WEIGHTS

    def _block_gradient(self, X: Array) -> Array:
        """Return the gradient of that mean, through mean and variance of the latent function."""
        mean, variance, values = self._latent(X)
        spread = np.sqrt(variance)[:, None]
        sigmoid = expit(mean[:, None] + spread * NODES)
        slope = sigmoid * (1 - sigmoid)
        by_mean = slope @ NODE_WEIGHTS
        # Stein's lemma: the derivative by the variance is half the mean second derivative.
        by_variance = 0.5 * ((slope * (1 - 2 * sigmoid)) @ NODE_WEIGHTS)
        residuals = np.broadcast_to(self.residuals, values.shape)
        whitened = cho_solve((self.cholesky, True), self.root_noise[:, None] * values.T)
        reduction = 2 * (self.root_noise[:, None] * whitened).T
        mean_slope = sum_gradient(self.kernel, X, self.vectors, residuals)
        variance_slope = diagonal_gradient(self.kernel, X)
        variance_slope = variance_slope - sum_gradient(self.kernel, X, self.vectors, reduction)
        return by_mean[:, None] * mean_slope + by_variance[:, None] * variance_slope


class _BinaryProbabilities:
    """The two probabilities of one latent process."""

    def __init__(self, process: _LatentProcess) -> None:
        self.process = process

    def values(self, X: Array) -> Array:
        """Return both probabilities."""
        second = self.process.probability(X)
        return np.column_stack([1 - second, second])

    def gradients(self, X: Array) -> Array:
        """Return both gradients."""
        second = self.process.gradient(X)
        return np.stack([-second, second], axis=1)


class _NormalisedProbabilities:
    """The probabilities of one process per class, each against the rest, divided by their sum."""

    def __init__(self, processes: list[_LatentProcess]) -> None:
        self.processes = processes

    def values(self, X: Array) -> Array:
        """Return the probability of each class."""
        parts = self._parts(X)
        return parts / parts.sum(axis=1, keepdims=True)

    def gradients(self, X: Array) -> Array:
        """Return the gradient of each probability."""
        parts = self._parts(X)
        total = parts.sum(axis=1)[:, None, None]
        slopes = np.stack([process.gradient(X) for process in self.processes], axis=1)
        shares = (parts / parts.sum(axis=1, keepdims=True))[:, :, None]
        return (slopes - shares * slopes.sum(axis=1, keepdims=True)) / total

    def _parts(self, X: Array) -> Array:
        """Return the probability of each class by its process, before normalisation."""
        return np.column_stack([process.probability(X) for process in self.processes])


@singledispatch
def has_gradient(kernel: Kernel) -> bool:
    """Return whether ``sum_gradient`` has a formula for a kernel."""
    return type(kernel) in (RBF, RationalQuadratic, ConstantKernel, WhiteKernel, DotProduct)


@has_gradient.register
def _(kernel: Matern) -> bool:
    return kernel.nu in MATERN_ORDERS


@has_gradient.register
def _(kernel: Sum) -> bool:
    return has_gradient(kernel.k1) and has_gradient(kernel.k2)


@has_gradient.register
def _(kernel: Product) -> bool:
    # White noise is zero off the diagonal; a product would carry it into the gradient.
    parts = (kernel.k1, kernel.k2)
    return all(has_gradient(part) and not _has_noise(part) for part in parts)


@has_gradient.register
def _(kernel: Exponentiation) -> bool:
    return has_gradient(kernel.kernel) and not _has_noise(kernel.kernel)


@has_gradient.register
def _(kernel: CompoundKernel) -> bool:
    return False


@singledispatch
def sum_gradient(kernel: Kernel, X: Array, vectors: Array, weights: Array) -> Array:
    """Return the gradient of ``sum_i weights[n, i] * kernel(X[n], vectors[i])`` by ``X[n]``."""
    raise TypeError(
        f"expected a kernel with a known gradient, got {kernel!r}: use central differences."
    )


@sum_gradient.register
def _(kernel: RBF, X: Array, vectors: Array, weights: Array) -> Array:
    return _radial(X, vectors, -weights * kernel(X, vectors), kernel.length_scale)


@sum_gradient.register
def _(kernel: Matern, X: Array, vectors: Array, weights: Array) -> Array:
    """Differentiate the closed forms by the squared distance."""
    if kernel.nu == np.inf:
        slope = kernel(X, vectors)
    else:
        root = np.sqrt(2 * kernel.nu * _squared_distances(X, vectors, kernel.length_scale))
        slope = np.exp(-root) * (3.0 if kernel.nu == 1.5 else 5.0 / 3.0 * (1 + root))
    return _radial(X, vectors, -weights * slope, kernel.length_scale)


@sum_gradient.register
def _(kernel: RationalQuadratic, X: Array, vectors: Array, weights: Array) -> Array:
    squared = _squared_distances(X, vectors, kernel.length_scale)
    slope = (1 + squared / (2 * kernel.alpha)) ** (-kernel.alpha - 1)
    return _radial(X, vectors, -weights * slope, kernel.length_scale)


@sum_gradient.register
def _(kernel: DotProduct, X: Array, vectors: Array, weights: Array) -> Array:
    return weights @ vectors


@sum_gradient.register(ConstantKernel)
@sum_gradient.register(WhiteKernel)
def _(kernel: Kernel, X: Array, vectors: Array, weights: Array) -> Array:
    return np.zeros_like(X)


@sum_gradient.register
def _(kernel: Sum, X: Array, vectors: Array, weights: Array) -> Array:
    first = sum_gradient(kernel.k1, X, vectors, weights)
    return first + sum_gradient(kernel.k2, X, vectors, weights)


@sum_gradient.register
def _(kernel: Product, X: Array, vectors: Array, weights: Array) -> Array:
    first = sum_gradient(kernel.k1, X, vectors, weights * kernel.k2(X, vectors))
    return first + sum_gradient(kernel.k2, X, vectors, weights * kernel.k1(X, vectors))


@sum_gradient.register
def _(kernel: Exponentiation, X: Array, vectors: Array, weights: Array) -> Array:
    power = kernel.exponent
    outer = power * kernel.kernel(X, vectors) ** (power - 1)
    return sum_gradient(kernel.kernel, X, vectors, weights * outer)


def diagonal_gradient(kernel: Kernel, X: Array) -> Array:
    """Return the gradient of ``kernel(x, x)``: zero if stationary, else twice that of one side."""
    if kernel.is_stationary():
        return np.zeros_like(X)
    sides = [sum_gradient(kernel, row[None], row[None], np.ones((1, 1))) for row in X]
    return 2 * np.concatenate(sides)


def _has_noise(kernel: Kernel) -> bool:
    """Return whether any part of a kernel is white noise."""
    inner = [getattr(kernel, name) for name in ("k1", "k2", "kernel") if hasattr(kernel, name)]
    return isinstance(kernel, WhiteKernel) or any(_has_noise(part) for part in inner)


def _radial(X: Array, vectors: Array, weights: Array, length_scale: float | Array) -> Array:
    """Return ``sum_i weights[n, i] (X[n] - vectors[i]) / length_scale**2``."""
    return (X * weights.sum(axis=1)[:, None] - weights @ vectors) / np.square(length_scale)


def _squared_distances(X: Array, vectors: Array, length_scale: float | Array) -> Array:
    """Return squared distances in units of the length scale."""
    left, right = X / length_scale, vectors / length_scale
    squared = (
        np.square(left).sum(axis=1)[:, None] + np.square(right).sum(axis=1) - 2 * left @ right.T
    )
    return np.maximum(squared, 0.0)
