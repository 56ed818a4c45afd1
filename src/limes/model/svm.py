"""A trained one-against-one SVM as plain arrays: kernels, sums and decision values.

NumPy and the compiled core alone: the source that is replaced and the exact sums use it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limes._core import RbfVectors, thread_count
from limes._typing import Array, Indices
from limes.model.affine import is_sparse, to_dense
from limes.model.coupling import class_pairs, count_votes_like_libsvm

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
        n_threads = self._n_threads(left)
        sums = self._core.sums(left, columns, n_threads=n_threads)
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


# Support vectors of a class and their coefficients, a column for each pair or of one pair alone.
WeightedVectors = tuple[KernelVectors | CompiledKernelVectors, Array]


@dataclass(frozen=True, eq=False)
class TrainedSvm:
    """A trained one-against-one SVM as plain arrays.

    Classes are numbered 0 to K - 1 and pairs come in the order (0, 1), (0, 2) ... (1, 2) ....
    **A positive decision value means the second class of the pair**, the one with the larger
    number. The arrays have LIBSVM's signs, whose decision values are positive for the first
    class, so that model files are read and written unchanged.

    Examples
    --------
    >>> svm = TrainedSvm(
    ...     kernel=Kernel("linear"),
    ...     vectors=[[0.0, 0.0], [2.0, 0.0]],
    ...     dual_coef=[[0.5, -0.5]],
    ...     intercepts=[1.0],
    ...     n_support=[1, 1],
    ... )
    >>> svm.decision([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0]], 0, 1)
    array([-1.,  0.,  1.])
    >>> svm.decision_and_gradient([[0.0, 5.0]], 0, 1)
    (array([-1.]), array([[1., 0.]]))
    """

    # Kernel with its constants.
    kernel: Kernel
    # Shape (n_vectors, n_features). Support vectors, those of class 0 first, then those of class 1
    # and so on.
    vectors: Array
    # Shape (n_classes - 1, n_vectors). LIBSVM's ``sv_coef``: for a vector of class i, the row j - 1
    # (j > i) or j (j < i) holds its coefficient in the pair of i and j.
    dual_coef: Array
    # Shape (n_pairs,). LIBSVM's ``-rho``.
    intercepts: Array
    # Shape (n_classes,). Number of support vectors of each class.
    n_support: NDArray[np.intp]

    def __post_init__(self) -> None:
        for name in ("vectors", "dual_coef", "intercepts", "n_support"):
            dtype = np.intp if name == "n_support" else np.float64
            array = np.array(getattr(self, name), dtype=dtype, order="C")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        self._check_shapes()

    def reordered(self, order: ArrayLike) -> Self:
        """Return the same SVM with its classes in another order."""
        order = np.asarray(order)
        ends = np.cumsum(self.n_support)
        places = [np.arange(ends[old] - self.n_support[old], ends[old]) for old in order]
        dual_coef = np.concatenate([self._reordered_coef(old, order) for old in order], axis=1)
        old_pairs = {pair: place for place, pair in enumerate(class_pairs(self.n_classes))}
        intercepts = [
            self.intercepts[old_pairs[i, j]] if i < j else -self.intercepts[old_pairs[j, i]]
            for i, j in ((order[a], order[b]) for a, b in class_pairs(self.n_classes))
        ]
        return replace(
            self,
            vectors=self.vectors[np.concatenate(places)],
            dual_coef=dual_coef,
            intercepts=np.array(intercepts),
            n_support=self.n_support[order],
        )

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.n_support)

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return int(self.vectors.shape[1])

    def predict_index(self, X: ArrayLike) -> Indices:
        """Return the class index with most votes, as LIBSVM predicts."""
        return np.argmax(count_votes_like_libsvm(self.pair_decisions(X)), axis=1)

    def pair_decisions(self, X: ArrayLike) -> Array:
        """Return the decision values of all pairs, each kernel value being computed once."""
        rows = self._check_rows(X)
        # Column by column in memory, since callers go through them pair by pair.
        values = np.empty((rows.shape[0], len(self.intercepts)), order="F")
        classes = self._vectors_by_class
        for block, left in self._augmented_blocks(rows, classes):
            sums = [vectors.sums_of_augmented(left, weights) for vectors, weights in classes]
            for pair, (first, second) in enumerate(class_pairs(self.n_classes)):
                np.add(sums[first][:, second - 1], sums[second][:, first], out=values[block, pair])
        values -= self.intercepts
        return values

    def decision(self, X: ArrayLike, first: int, second: int) -> Array:
        """Return the decision value of one pair, from the support vectors of its two classes."""
        rows = self._check_rows(X)
        intercept, classes = self._vectors_of_pair(first, second)
        values = np.full(rows.shape[0], -intercept)
        for block, left in self._augmented_blocks(rows, classes):
            for vectors, weights in classes:
                values[block] += vectors.sums_of_augmented(left, weights)
        return values

    def decision_and_gradient(self, X: ArrayLike, first: int, second: int) -> tuple[Array, Array]:
        """Return the decision value of one pair and its gradient, which share the kernel values."""
        rows = self._check_rows(X)
        intercept, classes = self._vectors_of_pair(first, second)
        values, gradients = np.full(rows.shape[0], -intercept), np.zeros(rows.shape)
        for block, left in self._augmented_blocks(rows, classes):
            for vectors, weights in classes:
                sums, slopes = vectors.sums_and_gradients_of_augmented(left, weights)
                values[block] += sums
                gradients[block] += slopes
        return values, gradients

    def _reordered_coef(self, old: int, order: NDArray[np.intp]) -> Array:
        """Return the coefficients of a class of this SVM, its partners in another order."""
        end = int(np.cumsum(self.n_support)[old])
        block = self.dual_coef[:, end - self.n_support[old] : end]
        rank = list(order).index(old)
        rows = []
        for partner_rank, partner in enumerate(order):
            if partner == old:
                continue
            is_turned = (old < partner) != (rank < partner_rank)
            coef = block[partner - 1 if partner > old else partner]
            rows.append((-1.0 if is_turned else 1.0) * coef)
        return np.array(rows).reshape(self.n_classes - 1, -1)

    @cached_property
    def _vectors_by_class(self) -> list[WeightedVectors]:
        """Vectors of each class with negated coefficients: larger sums mean the second class."""
        vectors = kernel_vectors(self.kernel, self.vectors)
        ends = np.cumsum(self.n_support)
        places = [slice(end - n, end) for end, n in zip(ends, self.n_support, strict=True)]
        return [(vectors.part(place), -self.dual_coef[:, place].T) for place in places]

    def _vectors_of_pair(self, first: int, second: int) -> tuple[float, list[WeightedVectors]]:
        """Return the intercept of a pair, and the vectors of both classes with their weights."""
        if not 0 <= first < second < self.n_classes:
            raise ValueError(
                f"first and second must be class indices below {self.n_classes}, the smaller "
                f"first, got {first!r} and {second!r}."
            )
        pair = first * self.n_classes - first * (first + 1) // 2 + second - first - 1
        left, left_weights = self._vectors_by_class[first]
        right, right_weights = self._vectors_by_class[second]
        classes = [(left, left_weights[:, second - 1]), (right, right_weights[:, first])]
        return float(self.intercepts[pair]), classes

    def _check_rows(self, X: Any) -> Any:
        """Return the rows as an array or a CSR matrix with the right number of features."""
        rows = X.tocsr() if is_sparse(X) else np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise ValueError(
                f"X must have shape (n_rows, {self.n_features}), as the support vectors have, "
                f"got {rows.shape!r}."
            )
        return rows

    def _augmented_blocks(
        self, rows: Any, classes: list[WeightedVectors]
    ) -> Iterator[tuple[slice, Array]]:
        """Yield blocks of rows, dense and augmented for the kernel."""
        vectors = classes[0][0]
        n_block = min(part.block_rows() for part, _ in classes)
        for start in range(0, rows.shape[0], n_block):
            block = slice(start, start + n_block)
            yield block, vectors.augment(to_dense(rows[block]))

    def _check_shapes(self) -> None:
        """Raise an error that names the array whose shape does not fit the others."""
        n_classes, n_vectors = len(self.n_support), int(self.n_support.sum())
        n_pairs = n_classes * (n_classes - 1) // 2
        if n_classes < 2:
            raise ValueError(f"n_support must have 2 classes or more, got {self.n_support!r}.")
        for name, expected in (
            ("vectors", (n_vectors, *self.vectors.shape[1:2])),
            ("dual_coef", (n_classes - 1, n_vectors)),
            ("intercepts", (n_pairs,)),
        ):
            shape = getattr(self, name).shape
            if shape != expected or (name == "vectors" and len(expected) != 2):
                raise ValueError(f"{name} must have shape {expected!r}, got {shape!r}.")
