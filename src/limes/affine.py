"""Preprocessing that is a linear map, so that it can be folded into a border map."""

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)

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


@singledispatch
def as_affine(step: Any) -> AffineMap | None:
    """Return a fitted transformer as an affine map, or None where it is not one."""
    return None


@as_affine.register
def _(step: str) -> AffineMap | None:
    """Leave ``"passthrough"`` to the pipeline, which skips it."""
    return None


@as_affine.register
def _(step: StandardScaler) -> AffineMap:
    n_features = step.n_features_in_
    shift = np.zeros(n_features) if step.mean_ is None or not step.with_mean else step.mean_
    scale = np.ones(n_features) if step.scale_ is None else step.scale_
    return AffineMap.scaling(shift, 1 / scale)


@as_affine.register
def _(step: RobustScaler) -> AffineMap:
    n_features = step.n_features_in_
    shift = step.center_ if step.with_centering else np.zeros(n_features)
    scale = step.scale_ if step.with_scaling else np.ones(n_features)
    return AffineMap.scaling(shift, 1 / scale)


@as_affine.register
def _(step: MinMaxScaler) -> AffineMap | None:
    return None if step.clip else AffineMap.scaling(-step.min_ / step.scale_, step.scale_)


@as_affine.register
def _(step: MaxAbsScaler) -> AffineMap | None:
    if getattr(step, "clip", False):
        return None
    return AffineMap.scaling(np.zeros(step.n_features_in_), 1 / step.scale_)


@as_affine.register
def _(step: FunctionTransformer) -> AffineMap | None:
    is_identity = step.func is None and hasattr(step, "n_features_in_")
    return AffineMap.identity(step.n_features_in_) if is_identity else None


@as_affine.register
def _(step: SelectorMixin) -> AffineMap:
    kept = step.get_support(indices=True)
    n_features = step.n_features_in_
    picks = sparse.eye_array(n_features, format="csc")[:, kept]
    return AffineMap(np.zeros(n_features), picks.tocsr())


@as_affine.register(PCA)
@as_affine.register(IncrementalPCA)
def _(step: PCA | IncrementalPCA) -> AffineMap:
    # As scikit-learn: a component without variance is divided by next to nothing, not by nothing.
    least = np.finfo(step.explained_variance_.dtype).eps
    scale = 1 / np.sqrt(np.maximum(step.explained_variance_, least)) if step.whiten else 1.0
    return AffineMap(step.mean_.astype(float), (step.components_.T * scale).astype(float))


@as_affine.register
def _(step: TruncatedSVD) -> AffineMap:
    matrix = step.components_.T.astype(float)
    return AffineMap(np.zeros(len(matrix)), matrix)


@as_affine.register
def _(step: ColumnTransformer) -> AffineMap | None:
    n_features = step.n_features_in_
    shift = np.zeros(n_features)
    blocks = []
    for name, inner, _ in step.transformers_:
        columns = step._transformer_to_input_indices.get(name, [])
        if (isinstance(inner, str) and inner == "drop") or not len(columns):
            continue
        is_plain = isinstance(inner, str) and inner == "passthrough"
        part = AffineMap.identity(len(columns)) if is_plain else as_affine(inner)
        # A feature that two parts shift differently has no one shift.
        if part is None or np.any(shift[columns]):
            return None
        shift[columns] = part.shift
        picks = sparse.eye_array(n_features, format="csc")[:, columns]
        blocks.append(sparse.csr_array(picks @ part.matrix))
    return AffineMap(shift, sparse.hstack(blocks, format="csr")) if blocks else None


@as_affine.register
def _(step: Pipeline) -> AffineMap | None:
    total = None
    for _, inner in step.steps:
        if inner is None or inner == "passthrough":
            continue
        affine = as_affine(inner)
        if affine is None:
            return None
        total = affine if total is None else total.then(affine)
    return total
