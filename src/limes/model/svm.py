"""A trained one-against-one support vector machine as plain arrays."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.svm import SVC, NuSVC
from sklearn.utils.validation import check_is_fitted

from limes.model.coupling import class_pairs
from limes.model.kernels import CompiledKernelVectors, Kernel, KernelVectors, kernel_vectors

Array = NDArray[np.float64]
# Some support vectors and their weights.
Side = tuple[KernelVectors | CompiledKernelVectors, Array]


@dataclass(frozen=True, eq=False)
class TrainedSvm:
    """A trained one-against-one support vector machine as plain arrays.

    Classes are numbered 0 to K - 1 and pairs come in the order (0, 1), (0, 2) ... (1, 2) ....
    **A positive decision value means the second class of the pair**, the one with the larger
    number. The arrays themselves keep LIBSVM's signs, whose own decision values are positive for
    the first class, so that model files pass through unchanged.

    Examples
    --------
    >>> svm = TrainedSvm(
    ...     kernel=Kernel("linear"),
    ...     vectors=[[0.0, 0.0], [2.0, 0.0]],
    ...     dual_coef=[[0.5, -0.5]],
    ...     intercepts=[1.0],
    ...     n_support=[1, 1],
    ... )
    >>> svm.pair_values([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0]], 0, 1)
    array([-1.,  0.,  1.])
    >>> svm.pair_gradients([[0.0, 5.0]], 0, 1)
    array([[1., 0.]])
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

    @classmethod
    def from_sklearn(cls, svc: Any) -> Self:
        """Take the arrays out of a fitted ``SVC`` or ``NuSVC``."""
        if not isinstance(svc, SVC | NuSVC):
            raise TypeError(f"expected a fitted SVC or NuSVC, got {svc!r}.")
        check_is_fitted(svc)
        kernel = Kernel(svc.kernel, float(svc._gamma), svc.degree, float(svc.coef0))
        # With two classes scikit-learn turns LIBSVM's signs, with more it keeps them.
        sign = -1.0 if len(svc.classes_) == 2 else 1.0
        return cls(
            kernel=kernel,
            vectors=_to_dense(svc.support_vectors_),
            dual_coef=sign * _to_dense(svc.dual_coef_),
            intercepts=sign * svc.intercept_,
            n_support=svc.n_support_,
        )

    def reordered(self, order: ArrayLike) -> Self:
        """Return the same machine with its classes numbered otherwise."""
        order = np.asarray(order)
        ends = np.cumsum(self.n_support)
        places = [np.arange(ends[old] - self.n_support[old], ends[old]) for old in order]
        dual_coef = np.concatenate([self._moved_coef(old, order) for old in order], axis=1)
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

    def values(self, X: ArrayLike) -> Array:
        """Return the decision values of all pairs; each kernel is computed once."""
        rows = self._check_rows(X)
        # Pair by pair in memory, as everybody goes through them.
        values = np.empty((rows.shape[0], len(self.intercepts)), order="F")
        for block, left in self._extended_blocks(rows, self._class_sides):
            sums = [part.sums_of_augmented(left, weights) for part, weights in self._class_sides]
            for pair, (first, second) in enumerate(class_pairs(self.n_classes)):
                np.add(sums[first][:, second - 1], sums[second][:, first], out=values[block, pair])
        values -= self.intercepts
        return values

    def pair_values(self, X: ArrayLike, first: int, second: int) -> Array:
        """Return the decision values of one pair, from its own support vectors alone."""
        rows = self._check_rows(X)
        intercept, sides = self._pair_sides(first, second)
        values = np.full(rows.shape[0], -intercept)
        for block, left in self._extended_blocks(rows, sides):
            for part, weights in sides:
                values[block] += part.sums_of_augmented(left, weights)
        return values

    def pair_gradients(self, X: ArrayLike, first: int, second: int) -> Array:
        """Return the gradient of one pair's decision value at each row."""
        return self.pair_values_and_gradients(X, first, second)[1]

    def pair_values_and_gradients(
        self, X: ArrayLike, first: int, second: int
    ) -> tuple[Array, Array]:
        """Return both for one pair, at little more than the price of the values."""
        rows = self._check_rows(X)
        intercept, sides = self._pair_sides(first, second)
        values, gradients = np.full(rows.shape[0], -intercept), np.zeros(rows.shape)
        for block, left in self._extended_blocks(rows, sides):
            for part, weights in sides:
                part_values, part_gradients = part.extended_sums_and_gradients(left, weights)
                values[block] += part_values
                gradients[block] += part_gradients
        return values, gradients

    def _moved_coef(self, own: int, order: NDArray[np.intp]) -> Array:
        """Return one class's coefficients, its partners in another order."""
        end = int(np.cumsum(self.n_support)[own])
        block = self.dual_coef[:, end - self.n_support[own] : end]
        rank = list(order).index(own)
        rows = []
        for other_rank, other in enumerate(order):
            if other == own:
                continue
            is_turned = (own < other) != (rank < other_rank)
            rows.append((-1.0 if is_turned else 1.0) * block[other - 1 if other > own else other])
        return np.array(rows).reshape(self.n_classes - 1, -1)

    @cached_property
    def _class_sides(self) -> list[Side]:
        """Each class's vectors with their negated coefficients: larger means the second class."""
        ready = kernel_vectors(self.kernel, self.vectors)
        ends = np.cumsum(self.n_support)
        places = [slice(end - n, end) for end, n in zip(ends, self.n_support, strict=True)]
        return [(ready.part(place), -self.dual_coef[:, place].T) for place in places]

    def _pair_sides(self, first: int, second: int) -> tuple[float, list[Side]]:
        """Return the intercept of a pair, and the vectors of either class with their weights."""
        if not 0 <= first < second < self.n_classes:
            raise ValueError(
                f"a pair is two class numbers, the smaller first, below {self.n_classes}, "
                f"got {first!r} and {second!r}."
            )
        pair = first * self.n_classes - first * (first + 1) // 2 + second - first - 1
        (left, left_weights), (right, right_weights) = (
            self._class_sides[first],
            self._class_sides[second],
        )
        sides = [(left, left_weights[:, second - 1]), (right, right_weights[:, first])]
        return float(self.intercepts[pair]), sides

    def _check_rows(self, X: Any) -> Any:
        """Return the rows as an array or a CSR matrix with the right number of features."""
        rows = X.tocsr() if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise ValueError(
                f"X must have shape (n_rows, {self.n_features}), as the support vectors have, "
                f"got {rows.shape!r}."
            )
        return rows

    def _extended_blocks(self, rows: Any, sides: list[Side]) -> Iterator[tuple[slice, Array]]:
        """Go through the rows, a block at a time, dense and extended for the kernel."""
        ready = sides[0][0]
        n_block = min(part.block_rows() for part, _ in sides)
        for start in range(0, rows.shape[0], n_block):
            block = slice(start, start + n_block)
            yield block, ready.augment(_to_dense(rows[block]))

    def _check_shapes(self) -> None:
        """Say which array does not fit the others."""
        n_classes, n_vectors = len(self.n_support), int(self.n_support.sum())
        n_pairs = n_classes * (n_classes - 1) // 2
        if n_classes < 2:
            raise ValueError(f"n_support must name two classes or more, got {self.n_support!r}.")
        for name, shape in (
            ("vectors", (n_vectors, *self.vectors.shape[1:2])),
            ("dual_coef", (n_classes - 1, n_vectors)),
            ("intercepts", (n_pairs,)),
        ):
            found = getattr(self, name).shape
            if found != shape or (name == "vectors" and len(shape) != 2):
                raise ValueError(f"{name} must have shape {shape!r}, got {found!r}.")


def _to_dense(array: Any) -> Array:
    """Return an array, of a sparse matrix too."""
    return np.asarray(array.toarray() if sparse.issparse(array) else array, dtype=np.float64)
