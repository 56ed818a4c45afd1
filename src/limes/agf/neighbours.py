"""Distances to training rows, blocks of Gaussian weights."""

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.neighbors import KDTree
from threadpoolctl import ThreadpoolController

from limes.agf.bandwidths import gaussian_weights, solve_bandwidths

Array = NDArray[Any]
# Weight left out by a truncation, as a share of the whole: below rounding.
LEFT_OUT = 1e-14
# A tree pays for many rows of few features: it is slower a row, but looks at a small share.
FEWEST_ROWS, MOST_FEATURES, LARGEST_SHARE = 2000, 4, 1 / 20
# Rows asked how many neighbours they need, the share of them to be met, and room to spare.
N_PILOT_ROWS, MET_SHARE, ROOM = 64, 0.9, 1.2
# Wider rows spend most of their time in matrix products, which then deserve all threads.
MOST_FEATURES_THREADED = 128
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


@dataclass(frozen=True)
class AdaptiveWidth:
    """A bandwidth for each row, solved so that its weights add up to ``total_weight``."""

    total_weight: float

    def distances(self, training: TrainingRows, placed: Array) -> Array:
        """Return what the bandwidths are solved from: squared distances."""
        return training.squared_distances(placed)

    def bandwidths(self, squared: Array) -> Array:
        """Return the bandwidth of each row, in the frame of the training rows."""
        return solve_bandwidths(squared, self.total_weight)


@dataclass(frozen=True)
class FixedWidth:
    """The same bandwidth for each row, in the frame of the training rows."""

    bandwidth: float

    def distances(self, training: TrainingRows, placed: Array) -> Array:
        """Return squared distances up to a number for each row, which cancels in the weights."""
        return training.shifted_distances(placed)

    def bandwidths(self, squared: Array) -> Array:
        """Return the one bandwidth for each row."""
        return np.full(len(squared), self.bandwidth)


Width = AdaptiveWidth | FixedWidth


@dataclass(frozen=True)
class Scope:
    """How wide the weights are, and how many nearest training rows are weighed: all for None.

    Unless ``is_cut``, the nearest only stand for all: rows where the others would matter are
    weighed again with all.
    """

    width: Width
    n_nearest: int | None
    is_cut: bool


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Weights of training rows at a block of rows: of all, or of those that ``index`` names."""

    at: Array
    squared: Array
    bandwidths: Array
    weights: Array
    index: Array | None
    n_training: int

    def spread(self, values: Array) -> Any:
        """Return one value a neighbour as a matrix with one column a training row."""
        if self.index is None:
            return values
        starts = np.arange(len(values) + 1) * values.shape[1]
        shape = (len(values), self.n_training)
        return csr_array((values.ravel(), self.index.ravel(), starts), shape=shape)


def neighbourhoods(training: TrainingRows, placed: Array, scope: Scope) -> Iterator[Neighbourhood]:
    """Weigh the training rows at each row, block by block; a later block may correct a row."""
    everywhere = np.arange(len(placed))
    with single_blas_thread(training.n_features):
        if scope.n_nearest is None:
            yield from _weigh_all(training, placed, everywhere, scope.width)
        else:
            yield from _weigh_nearest(training, placed, scope, scope.n_nearest)


def adaptive_scope(training: TrainingRows, total_weight: float, n_neighbors: int | None) -> Scope:
    """Let the nearest rows have a say, or all for None."""
    width = AdaptiveWidth(total_weight)
    if n_neighbors is not None:
        return Scope(width, n_neighbors, is_cut=True)
    return whole_scope(training, width)


def whole_scope(training: TrainingRows, width: Width) -> Scope:
    """Let all training rows have a say, by way of the nearest where a tree pays."""
    return Scope(width, _count_enough(training, width), is_cut=False)


def weigh(
    squared: Array, index: Array | None, at: Array, width: Width, n_training: int
) -> Neighbourhood:
    """Turn squared distances into weights."""
    bandwidths = width.bandwidths(squared)
    weights = gaussian_weights(squared, bandwidths)
    return Neighbourhood(at, squared, bandwidths, weights, index, n_training)


def _count_enough(training: TrainingRows, width: Width) -> int | None:
    """Return how many nearest rows stand for all to rounding, or None if a tree does not pay."""
    n_rows = training.n_rows
    if n_rows < FEWEST_ROWS or training.n_features > MOST_FEATURES:
        return None
    counts: list[int] = []
    pilots = np.linspace(0, n_rows - 1, N_PILOT_ROWS).astype(np.intp)
    for block in split_rows(len(pilots), n_rows):
        squared, index = nearest_others(training, pilots[block], n_rows - 1)
        part = weigh(squared, index, pilots[block], width, n_rows)
        counts.extend(np.count_nonzero(part.weights * n_rows > LEFT_OUT, axis=1))
    n_enough = math.ceil(ROOM * float(np.quantile(counts, MET_SHARE)))
    return n_enough if n_enough < LARGEST_SHARE * n_rows else None


def _weigh_nearest(
    training: TrainingRows, placed: Array, scope: Scope, n_nearest: int
) -> Iterator[Neighbourhood]:
    """Weigh the nearest training rows, then all where the nearest cannot stand for all."""
    is_short = training.is_far(placed) & (not scope.is_cut)
    at = np.flatnonzero(~is_short)
    for block in training.split(len(at), n_nearest):
        squared, index = training.nearest(placed[at[block]], n_nearest)
        part = weigh(squared, index, at[block], scope.width, training.n_rows)
        left_out = (training.n_rows - n_nearest) * part.weights.min(axis=1)
        is_short[part.at] = (left_out > LEFT_OUT) & (not scope.is_cut)
        yield part
    yield from _weigh_all(training, placed, np.flatnonzero(is_short), scope.width)


def _weigh_all(
    training: TrainingRows, placed: Array, at: Array, width: Width
) -> Iterator[Neighbourhood]:
    """Weigh all training rows at the rows named."""
    for block in split_rows(len(at), training.n_rows):
        squared = width.distances(training, placed[at[block]])
        yield weigh(squared, None, at[block], width, training.n_rows)


def single_blas_thread(n_features: int) -> AbstractContextManager[Any]:
    """Keep BLAS to one thread within a block of code, unless rows are wide.

    Between the short products of blocks its threads would only spin, which on a busy machine
    takes several times as long as the work itself.
    """
    if n_features > MOST_FEATURES_THREADED:
        return nullcontext()
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    """Find the libraries once: it takes a millisecond."""
    return ThreadpoolController()


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
