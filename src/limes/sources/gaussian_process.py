"""A Gaussian-process classifier (Laplace approximation) as a source."""

from typing import Any

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import expit
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.multiclass import OneVsRestClassifier

from limes._typing import Array
from limes.sources.gp_kernels import diagonal_gradient, has_gradient, sum_gradient
from limes.sources.numeric import CentralDifferences
from limes.sources.probability import ProbabilitySource

# Enough nodes that the mean of a sigmoid under a Gaussian is right to about ten digits.
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()
# Rows at once, so that the kernel values of a block stay in some tens of MB.
BLOCK_VALUES = 4_000_000


def gaussian_process_source(model: GaussianProcessClassifier, rows: Array) -> ProbabilitySource:
    """Return the source of a fitted Gaussian-process classifier."""
    inner = model.base_estimator_
    if not isinstance(inner, OneVsRestClassifier):
        processes = [_LatentProcess(inner, rows)]
        return _source(model, rows, _BinaryProbabilities(processes[0]))
    processes = [_LatentProcess(estimator, rows) for estimator in inner.estimators_]
    return _source(model, rows, _NormalisedProbabilities(processes))


def _source(model: GaussianProcessClassifier, rows: Array, parts: Any) -> ProbabilitySource:
    """Wrap probabilities and their gradient."""
    n_trained = len(model.base_estimator_.X_train_) if len(model.classes_) == 2 else len(rows)
    return ProbabilitySource(
        model.classes_,
        rows.shape[1],
        probabilities=parts.values,
        gradient=parts.gradients,
        row_cost=float(len(model.classes_) * n_trained * (n_trained + 100)),
    )


class _LatentProcess:
    """One binary Laplace approximation: the mean and variance of its latent function."""

    def __init__(self, estimator: Any, rows: Array) -> None:
        self.kernel = estimator.kernel_
        self.vectors = np.asarray(estimator.X_train_, dtype=np.float64)
        self.pull = estimator.y_train_ - estimator.pi_
        self.root_noise = estimator.W_sr_
        self.cholesky = estimator.L_
        self.block = max(1, BLOCK_VALUES // len(self.vectors))
        self.numeric = None
        if not has_gradient(self.kernel):
            self.numeric = CentralDifferences(self.probability, rows)

    def probability(self, X: Array) -> Array:
        """Return the probability of the upper class."""
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
        """Cut rows into blocks of bounded memory."""
        return [X[i : i + self.block] for i in range(0, len(X), self.block)]

    def _latent(self, X: Array) -> tuple[Array, Array, Array]:
        """Return mean and variance of the latent function, and the scaled kernel values."""
        values = self.kernel(X, self.vectors)
        scaled = solve_triangular(self.cholesky, self.root_noise[:, None] * values.T, lower=True)
        variance = self.kernel.diag(X) - np.square(scaled).sum(axis=0)
        return values @ self.pull, np.maximum(variance, 0.0), values

    def _block_probability(self, X: Array) -> Array:
        """Average the sigmoid over the latent function."""
        mean, variance, _ = self._latent(X)
        return expit(mean[:, None] + np.sqrt(variance)[:, None] * NODES) @ NODE_WEIGHTS

    def _block_gradient(self, X: Array) -> Array:
        """Follow the mean and the variance through the average."""
        mean, variance, values = self._latent(X)
        spread = np.sqrt(variance)[:, None]
        sigmoid = expit(mean[:, None] + spread * NODES)
        slope = sigmoid * (1 - sigmoid)
        by_mean = slope @ NODE_WEIGHTS
        # Stein's lemma: the derivative in the variance is half the mean second derivative.
        by_variance = 0.5 * ((slope * (1 - 2 * sigmoid)) @ NODE_WEIGHTS)
        pull = np.broadcast_to(self.pull, values.shape)
        whitened = cho_solve((self.cholesky, True), self.root_noise[:, None] * values.T)
        reduction = 2 * (self.root_noise[:, None] * whitened).T
        mean_slope = sum_gradient(self.kernel, X, self.vectors, pull)
        variance_slope = diagonal_gradient(self.kernel, X)
        variance_slope = variance_slope - sum_gradient(self.kernel, X, self.vectors, reduction)
        return by_mean[:, None] * mean_slope + by_variance[:, None] * variance_slope


class _BinaryProbabilities:
    """The two probabilities of one latent process."""

    def __init__(self, process: _LatentProcess) -> None:
        self.process = process

    def values(self, X: Array) -> Array:
        """Return both probabilities."""
        upper = self.process.probability(X)
        return np.column_stack([1 - upper, upper])

    def gradients(self, X: Array) -> Array:
        """Return both gradients."""
        upper = self.process.gradient(X)
        return np.stack([-upper, upper], axis=1)


class _NormalisedProbabilities:
    """One process a class, each against the rest, divided by their sum."""

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
        """Return the probability that each process gives its own class."""
        return np.column_stack([process.probability(X) for process in self.processes])
