"""`AffineMap`: (x − shift) @ matrix, dense or one feature an output."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from limes._typing import Array


@dataclass(frozen=True)
class AffineMap:
    """The map ``(x - shift) @ matrix`` from raw rows to the space that a source works in."""

    # Shape (n_features,). Taken from each row first.
    shift: Array
    # Shape (n_features, n_outputs). Sparse where each output is one scaled feature.
    matrix: Any

    @classmethod
    def identity(cls, n_features: int) -> "AffineMap":
        """Return the map that changes nothing."""
        return cls(np.zeros(n_features), sparse.eye_array(n_features, format="csr"))

    @classmethod
    def scaling(cls, shift: Array, scale: Array) -> "AffineMap":
        """Return the map that multiplies each shifted feature by a number."""
        return cls(np.asarray(shift, float), sparse.diags_array(scale, format="csr"))

    @property
    def n_features(self) -> int:
        """Number of raw features."""
        return int(self.matrix.shape[0])

    @property
    def n_outputs(self) -> int:
        """Number of features after the map."""
        return int(self.matrix.shape[1])

    @property
    def is_dense(self) -> bool:
        """Whether an output mixes several features."""
        return not sparse.issparse(self.matrix)

    def apply(self, X: Any) -> Array:
        """Map raw rows, sparse or dense."""
        return np.ascontiguousarray((to_dense(X) - self.shift) @ self.matrix)

    def pull_back(self, directions: Array) -> Array:
        """Return gradients with respect to raw rows from those with respect to mapped ones."""
        flat = directions.reshape(-1, self.n_outputs) @ self.matrix.T
        return np.ascontiguousarray(flat).reshape(*directions.shape[:-1], self.n_features)

    def undo(self, rows: Array) -> Array:
        """Return raw rows that the map takes to these; a dropped feature gets its shift."""
        dense = to_dense(self.matrix)
        return np.asarray(rows @ np.linalg.pinv(dense) + self.shift, dtype=np.float64)

    def then(self, after: "AffineMap") -> "AffineMap":
        """Return this map followed by another.

        The second shift moves before the first matrix by least squares, which is exact here:
        a feature that the first map drops or scales by zero has nothing to move.
        """
        if not np.any(after.shift):
            return AffineMap(self.shift, self.matrix @ after.matrix)
        moved = _solve_row(self.matrix, after.shift)
        return AffineMap(self.shift + moved, self.matrix @ after.matrix)


def to_dense(X: Any) -> Array:
    """Return rows as a dense array of float64, without a copy where they are one."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def _solve_row(matrix: Any, target: Array) -> Array:
    """Return a raw row that the matrix maps to the target."""
    dense = to_dense(matrix)
    if not sparse.issparse(matrix):
        return np.asarray(np.linalg.lstsq(dense.T, target, rcond=None)[0], dtype=np.float64)
    squared = np.square(dense).sum(axis=0)
    weights = np.divide(target, squared, out=np.zeros_like(target), where=squared > 0)
    return dense @ weights
