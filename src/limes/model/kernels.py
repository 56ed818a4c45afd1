"""SVM kernels: values, weighted sums and their gradients, with NumPy and the compiled core."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limes._core import RbfVectors, thread_count

Array = NDArray[np.float64]
KERNELS = ("linear", "poly", "rbf", "sigmoid")
# Kernel values in a block: 2 MB of float64 stay in the cache from the product to the exponential.
BLOCK_KERNELS = 1 << 18
# With fewer rows a matrix product is slow, however many support vectors there are.
MIN_BLOCK_ROWS = 64
# Rows in a block of the compiled sums, which store no kernel values: enough for several threads.
COMPILED_BLOCK_ROWS = 4096
# Below this number of multiply-adds, starting threads takes longer than the work itself.
MIN_THREADED_WORK = 1 << 22
# Up to this width the compiled sums are faster than products and NumPy's exponential: 4 times for
# 2 to 8 features, 2 times for 100, 1.3 times for 256 (`benchmarks/kernel_sums.py`).
MAX_COMPILED_FEATURES = 256


@dataclass(frozen=True)
class Kernel:
    """A kernel K(x, s) with its constants, which have the same meaning as in LIBSVM.

    ``linear`` is x·s, ``poly`` is (gamma x·s + coef0)^degree, ``rbf`` is
    exp(-gamma |x - s|²) and ``sigmoid`` is tanh(gamma x·s + coef0).

    Examples
    --------
    >>> Kernel("poly", gamma=1.0, degree=2, coef0=1.0).values([[1.0, 2.0]], [[3.0, 0.5]])
    array([[25.]])
    """

    # One of KERNELS.
    name: str
    # Factor of the inner product or of the squared distance.
    gamma: float = 1.0
    # Exponent of ``poly``; the other kernels ignore it.
    degree: int = 3
    # Constant in ``poly`` and ``sigmoid``; the other kernels ignore it.
    coef0: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or self.name not in KERNELS:
            raise ValueError(
                f"kernel must be one of {list(KERNELS)}, got {self.name!r}. A precomputed or "
                "callable kernel has no gradient: refit the source on the features."
            )
        if self.degree < 0 or self.degree != int(self.degree):
            raise ValueError(f"degree must be a whole number, 0 or more, got {self.degree!r}.")
        if not np.isfinite([self.gamma, self.coef0]).all():
            raise ValueError(
                f"gamma and coef0 must be finite, got {self.gamma!r} and {self.coef0!r}."
            )
        if self.gamma < 0 and self.name != "linear":
            raise ValueError(f"gamma must be 0 or more, got {self.gamma!r}.")

    def values(self, X: ArrayLike, vectors: ArrayLike) -> Array:
        """Return the kernel of every row with every vector."""
        return KernelVectors(self, vectors).values(X)

    def gradients(self, X: ArrayLike, vectors: ArrayLike, weights: ArrayLike) -> Array:
        """Return the gradient of a weighted sum of kernel values at each row."""
        return KernelVectors(self, vectors).sums_and_gradients(X, weights)[1]


class KernelVectors:
    """Vectors prepared for many rows: a block of kernel values is one matrix product.

    Every kernel is a function of one product u = l(x)·r(s) of an augmented row and an augmented
    vector: exp(u), u^degree, tanh(u) or u itself. For ``rbf``, l = (x, 1, -gamma |x|²) and
    r = (2 gamma s, -gamma |s|², 1), where the mean of the vectors is subtracted from x and s:
    their distance stays the same, and a large common offset costs no digits.

    Examples
    --------
    >>> vectors = KernelVectors(Kernel("rbf", gamma=0.5), [[0.0], [2.0]])
    >>> vectors.values([[0.0], [1.0]]).round(4)
    array([[1.    , 0.1353],
           [0.6065, 0.6065]])
    >>> vectors.sums([[1.0]], [[1.0], [-1.0]])
    array([[0.]])
    """

    def __init__(self, kernel: Kernel, vectors: ArrayLike) -> None:
        self.kernel = kernel
        self.n_features: int = np.shape(vectors)[1]
        self._right, self._shift = _augment_vectors(kernel, np.asarray(vectors, dtype=np.float64))

    def part(self, places: slice) -> Self:
        """Return a range of the vectors, sharing memory and the result of ``augment``."""
        part = object.__new__(type(self))
        part.kernel, part.n_features = self.kernel, self.n_features
        part._right, part._shift = self._right[places], self._shift
        return part

    def block_rows(self) -> int:
        """Return the number of rows whose kernel values stay in the cache."""
        return max(MIN_BLOCK_ROWS, BLOCK_KERNELS // max(len(self._right), 1))

    def augment(self, X: ArrayLike) -> Array:
        """Return the augmented rows l(x), for the methods whose names end with ``augmented``."""
        rows = np.asarray(X, dtype=np.float64)
        if self.kernel.name == "linear":
            return rows
        left = np.empty((len(rows), self._right.shape[1]))
        inner = left[:, : self.n_features]
        np.subtract(rows, self._shift, out=inner)
        left[:, self.n_features] = 1.0
        if self.kernel.name == "rbf":
            left[:, -1] = -self.kernel.gamma * np.einsum("ij,ij->i", inner, inner)
        return left

    def values(self, X: ArrayLike) -> Array:
        """Return K(x, s_i) as an array of shape (n_rows, n_vectors)."""
        return self._values_in_place(self.augment(X) @ self._right.T)

    def sums(self, X: ArrayLike, weights: ArrayLike) -> Array:
        """Return sum_i c_iq K(x, s_i) for weights (n_vectors, q): shape (n_rows, q)."""
        return self.sums_of_augmented(self.augment(X), np.asarray(weights, dtype=np.float64))

    def sums_and_gradients(self, X: ArrayLike, weights: ArrayLike) -> tuple[Array, Array]:
        """Return sum_i c_i K(x, s_i), (n_rows,), and its gradient by x, (n_rows, n_features)."""
        left = self.augment(X)
        return self.sums_and_gradients_of_augmented(left, np.asarray(weights, dtype=np.float64))

    def sums_of_augmented(self, left: Array, weights: Array) -> Array:
        """Return the same as ``sums``, from augmented rows."""
        if self.kernel.name == "linear":
            return left @ (self._right.T @ weights)
        return self._values_in_place(left @ self._right.T) @ weights

    def sums_and_gradients_of_augmented(self, left: Array, weights: Array) -> tuple[Array, Array]:
        """Return the same as ``sums_and_gradients``, from augmented rows."""
        if self.kernel.name == "linear":
            slope = self._right.T @ weights
            return left @ slope, np.tile(slope, (len(left), 1))
        sums, slopes = self._sums_and_slopes(left @ self._right.T, weights)
        slopes = slopes @ (weights[:, None] * self._right)
        gradients = slopes[:, : self.n_features]
        if self.kernel.name == "rbf":
            # ∇u = 2 gamma (s - x); the last column of r is 1, so that of the product is the factor
            # of x.
            gradients -= 2.0 * self.kernel.gamma * slopes[:, -1:] * left[:, : self.n_features]
        return sums, np.ascontiguousarray(gradients)

    def _values_in_place(self, products: Array) -> Array:
        """Replace the products u by kernel values."""
        if self.kernel.name == "rbf":
            # A product above 0, that is a squared distance below 0, is a rounding error.
            return np.exp(np.minimum(products, 0.0, out=products), out=products)
        if self.kernel.name == "poly":
            return _power(products, int(self.kernel.degree))
        return np.tanh(products, out=products) if self.kernel.name == "sigmoid" else products

    def _sums_and_slopes(self, products: Array, weights: Array) -> tuple[Array, Array]:
        """Return the sums, and the derivative of each kernel value by its product u."""
        if self.kernel.name == "poly":
            degree = int(self.kernel.degree)
            slopes = _power(products, max(degree - 1, 0))
            sums = (slopes * products if degree else slopes) @ weights
            return sums, np.multiply(slopes, degree, out=slopes)
        kernels = self._values_in_place(products)
        sums = kernels @ weights
        if self.kernel.name == "sigmoid":
            np.subtract(1.0, np.square(kernels, out=kernels), out=kernels)
        return sums, kernels


class CompiledKernelVectors:
    """Vectors of an ``rbf`` kernel, summed in the compiled core, which stores no kernel values.

    Results are those of `KernelVectors` up to rounding.

    Examples
    --------
    >>> vectors = CompiledKernelVectors(Kernel("rbf", gamma=0.5), [[0.0], [2.0]])
    >>> rows = vectors.augment([[1.0]])
    >>> vectors.sums_of_augmented(rows, np.array([1.0, -1.0]))
    array([0.])
    """

    def __init__(self, kernel: Kernel, vectors: ArrayLike) -> None:
        self.kernel = kernel
        self._vectors = np.asarray(vectors, dtype=np.float64)

    def __getstate__(self) -> dict[str, object]:
        # The packed vectors are a compiled object, which cannot be pickled: they are packed again.
        return {name: value for name, value in vars(self).items() if name != "_core"}

    @cached_property
    def _core(self) -> RbfVectors:
        """The vectors, packed for the core."""
        return RbfVectors(self._vectors, self.kernel.gamma)

    def part(self, places: slice) -> Self:
        """Return a range of the vectors."""
        return type(self)(self.kernel, self._vectors[places])

    def block_rows(self) -> int:
        """Return the number of rows to sum at once."""
        return COMPILED_BLOCK_ROWS

    def augment(self, X: ArrayLike) -> Array:
        """Return the rows as they are: the core needs no augmented ones."""
        return np.asarray(X, dtype=np.float64)

    def sums_of_augmented(self, left: Array, weights: Array) -> Array:
        """Return sum_i c_iq K(x, s_i), (n_rows, q), or (n_rows,) for weights (n_vectors,)."""
        if not len(self._vectors):
            return np.zeros((len(left), *weights.shape[1:]))
        columns = weights if weights.ndim == 2 else weights[:, None]
        sums = self._core.sums(left, columns, n_threads=self._n_threads(left))
        return sums if weights.ndim == 2 else sums[:, 0]

    def sums_and_gradients_of_augmented(self, left: Array, weights: Array) -> tuple[Array, Array]:
        """Return sum_i c_i K(x, s_i), (n_rows,), and its gradient by x, (n_rows, n_features)."""
        if not len(self._vectors):
            return np.zeros(len(left)), np.zeros_like(left)
        return self._core.sums_and_gradients(left, weights, n_threads=self._n_threads(left))

    def _n_threads(self, left: Array) -> int:
        """Return 1 for little work, else the number of threads available."""
        is_small = len(left) * self._vectors.size < MIN_THREADED_WORK
        return 1 if is_small else thread_count(-1)


def kernel_vectors(kernel: Kernel, vectors: ArrayLike) -> KernelVectors | CompiledKernelVectors:
    """Prepare vectors for many rows, in the faster of the two forms."""
    is_compiled = kernel.name == "rbf" and np.shape(vectors)[1] <= MAX_COMPILED_FEATURES
    return (CompiledKernelVectors if is_compiled else KernelVectors)(kernel, vectors)


def _augment_vectors(kernel: Kernel, vectors: Array) -> tuple[Array, Array | float]:
    """Return the augmented vectors r(s), and the shift to subtract from rows."""
    if kernel.name == "linear":
        return vectors, 0.0
    n_vectors, n_features = vectors.shape
    if kernel.name != "rbf":
        right = np.empty((n_vectors, n_features + 1))
        np.multiply(vectors, kernel.gamma, out=right[:, :-1])
        right[:, -1] = kernel.coef0
        return right, 0.0
    shift = vectors.mean(axis=0) if n_vectors else 0.0
    right = np.ones((n_vectors, n_features + 2))
    inner = np.subtract(vectors, shift, out=right[:, :-2])
    right[:, -2] = -kernel.gamma * np.einsum("ij,ij->i", inner, inner)
    inner *= 2.0 * kernel.gamma
    return right, shift


def _power(base: Array, exponent: int) -> Array:
    """Raise to an integer power by repeated squaring, several times faster than ``**``."""
    result = np.ones_like(base)
    square = base
    while exponent:
        if exponent % 2:
            result *= square
        exponent //= 2
        if exponent:
            square = square * square
    return result
