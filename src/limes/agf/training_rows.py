"""The rows of a fit in a frame of their own, and the distances of other rows from them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.neighbors import KDTree

Array = NDArray[Any]

# Squared distances of a block: 2 MB, small enough for the passes over it to stay in cache.
BLOCK_SIZE = 2**18
# Farther away, every training row is equally far to the last bit, and squares still fit.
FARTHEST = 1e150
# Below this share of the squared norms, a distance from a matrix product has lost digits.
NEAR = 1e-4
# Where more pairs than this share are near, all distances are taken from differences.
CROWDED = 1 / 64
# Outside of this many radii no training row is near.
OUTSIDE = 4.0
# A tree visits most of its leaves in wider data, as scikit-learn's own choice assumes.
WIDEST_TREE = 15


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Training rows moved to their mean and divided by a power of two.

    In this frame squared distances neither overflow nor underflow, whatever the units, and a
    matrix product gives them with few digits lost.
    """

    rows: Array
    centre: Array
    scale: float

    @classmethod
    def from_rows(cls, X: Array) -> "TrainingRows":
        """Choose the frame and place the rows in it."""
        centre = (X / len(X)).sum(axis=0)
        _, exponent = np.frexp(np.abs(X - centre).max())
        scale = float(np.ldexp(1.0, exponent))
        return cls(np.ascontiguousarray((X - centre) / scale), centre, scale)

    @property
    def n_rows(self) -> int:
        """The number of training rows."""
        return len(self.rows)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return int(self.rows.shape[1])

    @cached_property
    def squared_norms(self) -> Array:
        """The squared norm of each training row."""
        return np.einsum("ij,ij->i", self.rows, self.rows)

    @cached_property
    def tree(self) -> KDTree:
        """A tree of the training rows."""
        return KDTree(self.rows)

    def place(self, X: Array) -> Array:
        """Move other rows into the frame."""
        with np.errstate(over="ignore"):
            placed = (X - self.centre) / self.scale
        return np.clip(placed, -FARTHEST, FARTHEST)

    def is_far(self, placed: Array) -> NDArray[np.bool_]:
        """Tell which rows lie well outside of all the training rows."""
        radius = np.sqrt(self.squared_norms.max())
        return np.linalg.norm(placed, axis=1) > OUTSIDE * radius

    def squared_distances(self, placed: Array) -> Array:
        """Return the squared distance of each row from each training row, exact to rounding."""
        norms = np.einsum("ij,ij->i", placed, placed)[:, None] + self.squared_norms
        squared = (-2 * placed) @ self.rows.T
        squared += norms
        norms *= NEAR
        is_near = squared < norms
        n_near = np.count_nonzero(is_near)
        if n_near > CROWDED * is_near.size:
            return cdist(placed, self.rows, "sqeuclidean")
        if n_near:
            here, there = np.nonzero(is_near)
            differences = placed[here] - self.rows[there]
            squared[here, there] = np.einsum("ij,ij->i", differences, differences)
        return squared

    def shifted_distances(self, placed: Array) -> Array:
        """Return squared distances less a number for each row that keeps far rows exact.

        Far away the squared distances agree in all their leading digits; without the squared
        norm of the row itself, which they share, the digits that differ remain.
        """
        squared = self.squared_distances(placed)
        is_far = self.is_far(placed)
        squared[is_far] = self.squared_norms - 2 * (placed[is_far] @ self.rows.T)
        return squared

    @property
    def has_tree(self) -> bool:
        """Whether the nearest rows are found by a tree instead of from all distances."""
        return self.n_features <= WIDEST_TREE

    def nearest(self, placed: Array, n_neighbors: int) -> tuple[Array, Array]:
        """Return squared distances and indices of the nearest training rows, in no order."""
        if self.has_tree:
            distances, index = self.tree.query(placed, k=n_neighbors)
            return distances * distances, index
        return _take_nearest(self.squared_distances(placed), n_neighbors)

    def split(self, n_rows: int, n_neighbors: int) -> Iterator[slice]:
        """Cut rows into blocks for which distances of the nearest can be held."""
        return split_rows(n_rows, n_neighbors if self.has_tree else self.n_rows)


def nearest_others(training: TrainingRows, which: Array, n_neighbors: int) -> tuple[Array, Array]:
    """Return squared distances and indices of the training rows nearest to some of them.

    A row is not its own neighbour; rows that coincide with it are.
    """
    squared = training.squared_distances(training.rows[which])
    squared[np.arange(len(which)), which] = np.inf
    return _take_nearest(squared, n_neighbors)


def split_rows(n_rows: int, width: int) -> Iterator[slice]:
    """Cut rows of the given width into blocks of bounded size."""
    n_block = max(1, BLOCK_SIZE // width)
    for start in range(0, n_rows, n_block):
        yield slice(start, min(start + n_block, n_rows))


def _take_nearest(squared: Array, n_neighbors: int) -> tuple[Array, Array]:
    """Return the smallest squared distances of each row and where they stand, in no order."""
    index = np.argpartition(squared, n_neighbors - 1, axis=1)[:, :n_neighbors]
    return np.take_along_axis(squared, index, axis=1), index
