"""Linear steps before a border map: (x - shift) @ matrix, or one scaled feature per output."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limes._typing import Array, Indices


@dataclass(frozen=True, eq=False)
class AffineMap:
    """The map from raw rows to the space that a source works in, in one of two forms.

    Dense: ``(x - shift) @ matrix``. Selecting: output j is ``(x - shift)[columns[j]] * scale[j]``,
    which is what scalers and feature selection do.
    """

    # Shape (n_features,).
    shift: Array
    # Shape (n_features, n_outputs); None in the selecting form.
    matrix: Array | None = None
    # Shape (n_outputs,), both; empty in the dense form.
    columns: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    scale: Array = field(default_factory=lambda: np.empty(0))

    @classmethod
    def identity(cls, n_features: int) -> "AffineMap":
        """Return the map that changes nothing."""
        return cls.scaling(np.zeros(n_features), np.ones(n_features))

    @classmethod
    def scaling(cls, shift: ArrayLike, scale: ArrayLike) -> "AffineMap":
        """Return the map that multiplies each shifted feature by a number."""
        shift, scale = np.asarray(shift, dtype=float), np.asarray(scale, dtype=float)
        return cls(shift, columns=np.arange(len(shift)), scale=scale)

    @classmethod
    def selection(cls, n_features: int, columns: ArrayLike) -> "AffineMap":
        """Return the map that keeps some features."""
        columns = np.asarray(columns, dtype=np.intp)
        return cls(np.zeros(n_features), columns=columns, scale=np.ones(len(columns)))

    @property
    def n_features(self) -> int:
        """Number of raw features."""
        return len(self.shift)

    @property
    def n_outputs(self) -> int:
        """Number of features after the map."""
        return len(self.columns) if self.matrix is None else int(self.matrix.shape[1])

    @property
    def is_dense(self) -> bool:
        """Whether an output may mix several features."""
        return self.matrix is not None

    def to_matrix(self) -> Array:
        """Return the matrix of either form."""
        if self.matrix is not None:
            return self.matrix
        matrix = np.zeros((self.n_features, self.n_outputs))
        matrix[self.columns, np.arange(self.n_outputs)] = self.scale
        return matrix

    def apply(self, X: Any) -> Array:
        """Map raw rows, sparse or dense."""
        shifted = to_dense(X) - self.shift
        if self.matrix is not None:
            return np.ascontiguousarray(shifted @ self.matrix)
        # Adding zero turns -0.0 into 0.0, as the sum of a product with a matrix does.
        return np.ascontiguousarray(shifted[:, self.columns] * self.scale + 0.0)

    def pull_back(self, directions: Array) -> Array:
        """Return gradients with respect to raw rows from those with respect to mapped ones."""
        flat = directions.reshape(-1, self.n_outputs)
        if self.matrix is not None:
            raw = np.ascontiguousarray(flat @ self.matrix.T)
        else:
            transposed = np.zeros((self.n_features, len(flat)))
            np.add.at(transposed, self.columns, (flat * self.scale).T)
            raw = np.ascontiguousarray(transposed.T)
        return raw.reshape(*directions.shape[:-1], self.n_features)

    def undo(self, rows: Array) -> Array:
        """Return raw rows that the map takes to these; a dropped feature gets its shift."""
        return np.asarray(rows @ np.linalg.pinv(self.to_matrix()) + self.shift, dtype=np.float64)

    def then(self, after: "AffineMap") -> "AffineMap":
        """Return this map followed by another.

        The second shift moves before the first matrix by least squares, which is exact here:
        a feature that the first map drops or scales by zero has nothing to move.
        """
        shift = self.shift + self._solve(after.shift) if np.any(after.shift) else self.shift
        if after.matrix is None and self.matrix is None:
            columns = self.columns[after.columns]
            return AffineMap(shift, columns=columns, scale=self.scale[after.columns] * after.scale)
        if after.matrix is None:
            return AffineMap(shift, self.to_matrix()[:, after.columns] * after.scale)
        if self.matrix is not None:
            return AffineMap(shift, self.matrix @ after.matrix)
        matrix = np.zeros((self.n_features, after.n_outputs))
        np.add.at(matrix, self.columns, self.scale[:, None] * after.matrix)
        return AffineMap(shift, matrix)

    def _solve(self, target: Array) -> Array:
        """Return a raw row, relative to the shift, that is mapped to the target."""
        if self.matrix is not None:
            return np.asarray(np.linalg.lstsq(self.matrix.T, target, rcond=None)[0])
        squared = np.square(self.scale)
        weights = np.divide(target, squared, out=np.zeros_like(target), where=squared > 0)
        row = np.zeros(self.n_features)
        np.add.at(row, self.columns, self.scale * weights)
        return row


def is_sparse(X: Any) -> bool:
    """Return whether rows are one of SciPy's sparse matrices, without importing SciPy."""
    return hasattr(X, "toarray")


def to_dense(X: Any) -> NDArray[np.float64]:
    """Return rows as a dense array of float64, without a copy where they are one."""
    return np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)
