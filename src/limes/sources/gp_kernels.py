"""Gradients of scikit-learn's Gaussian-process kernels with respect to rows."""

from functools import singledispatch

import numpy as np
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

from limes._typing import Array

# Matern kernels of these orders are smooth functions with a closed form.
MATERN_ORDERS = (1.5, 2.5, np.inf)


@singledispatch
def has_gradient(kernel: Kernel) -> bool:
    """Tell whether ``sum_gradient`` has a formula for a kernel."""
    return type(kernel) in (RBF, RationalQuadratic, ConstantKernel, WhiteKernel, DotProduct)


@has_gradient.register
def _(kernel: Matern) -> bool:
    return kernel.nu in MATERN_ORDERS


@has_gradient.register
def _(kernel: Sum) -> bool:
    return has_gradient(kernel.k1) and has_gradient(kernel.k2)


@has_gradient.register
def _(kernel: Product) -> bool:
    # White noise is there on the diagonal alone, where a product would carry it into the gradient.
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
    """Return the gradient of ``sum_i weights[n, i] * kernel(X[n], vectors[i])`` in ``X[n]``."""
    raise TypeError(f"no gradient is known for the kernel {kernel!r}; use central differences.")


@sum_gradient.register
def _(kernel: RBF, X: Array, vectors: Array, weights: Array) -> Array:
    return _radial(X, vectors, -weights * kernel(X, vectors), kernel.length_scale)


@sum_gradient.register
def _(kernel: Matern, X: Array, vectors: Array, weights: Array) -> Array:
    """Differentiate the closed forms: the factor that a squared distance gets."""
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
    """Return the gradient of ``kernel(x, x)``: zero for a stationary one, else twice one side's."""
    if kernel.is_stationary():
        return np.zeros_like(X)
    own = [sum_gradient(kernel, row[None], row[None], np.ones((1, 1))) for row in X]
    return 2 * np.concatenate(own)


def _has_noise(kernel: Kernel) -> bool:
    """Tell whether white noise is anywhere in a kernel."""
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
