"""Sums of Gaussian kernels in the compiled core."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limes._core import _native
from limes._core.hardware import DEFAULT_LEVEL

Array = NDArray[Any]


class RbfVectors:
    """Vectors s_i, packed for sums of exp(-gamma |x - s_i|²) over many rows.

    The kernels of a few rows and vectors at a time stay in the processor: no array of rows by
    vectors is made, and the exponential is that of the core.

    Examples
    --------
    >>> ready = RbfVectors([[0.0], [2.0]], 0.5)
    >>> ready.sums(np.array([[1.0]]), [[1.0], [-1.0]])
    array([[0.]])
    """

    def __init__(self, vectors: ArrayLike, gamma: float, *, level: str | None = None) -> None:
        self._native = _native.RbfVectors(_plain(vectors), float(gamma), level or DEFAULT_LEVEL)

    def sums(self, X: Array, weights: ArrayLike, *, n_threads: int = 1) -> Array:
        """Return the weighted sums of the kernels of each row."""
        plain = _plain(weights)
        sums = np.empty((len(X), plain.shape[1] if plain.ndim == 2 else 0))
        self._native.sums(X, plain, sums, n_threads)
        return sums

    def sums_and_gradients(
        self, X: Array, weights: ArrayLike, *, n_threads: int = 1
    ) -> tuple[Array, Array]:
        """Return the weighted sum of the kernels of each row, and its gradient."""
        sums = np.empty((len(X), 1))
        gradients = np.empty((len(X), self._native.n_features))
        columns = _plain(weights)[..., None]
        self._native.sums_and_gradients(X, columns, sums, gradients, n_threads)
        return sums[:, 0], gradients


def _plain(values: ArrayLike) -> Array:
    """Return an array as the core reads it: float64, C-ordered."""
    return np.ascontiguousarray(values, dtype=np.float64)
