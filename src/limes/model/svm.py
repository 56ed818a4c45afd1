"""A trained one-against-one SVM as plain arrays, with NumPy alone."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limes.model.affine import is_sparse, to_dense
from limes.model.coupling import class_pairs
from limes.model.kernels import CompiledKernelVectors, Kernel, KernelVectors, kernel_vectors

Array = NDArray[np.float64]
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
