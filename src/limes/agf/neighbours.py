"""Distances to training rows, and their Gaussian weights in blocks."""

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
# Largest share of the weight that a truncation may omit: below rounding.
MAX_OMITTED = 1e-14
# A tree is faster for many rows of few features, where it visits a small share of the rows.
MIN_TREE_ROWS, MAX_TREE_FEATURES, MAX_TREE_SHARE = 2000, 4, 1 / 20
# Rows that the number of neighbours is estimated from, the quantile, and its safety factor.
N_PILOT_ROWS, PILOT_QUANTILE, PILOT_FACTOR = 64, 0.9, 1.2
# Rows with more features spend most of their time in matrix products, which then use all threads.
MAX_SINGLE_THREAD_FEATURES = 128
# Squared distances in a block: 2 MB, which stay in the cache between the passes over them.
BLOCK_SIZE = 2**18
# Farther away, all training rows have the same distance to the last bit; squares do not overflow.
MAX_COORDINATE = 1e150
# Below this share of the squared norms, a distance from a matrix product has too few digits.
NEAR_SHARE = 1e-4
# Above this share of such pairs, all distances are computed from differences.
MAX_NEAR_PAIRS = 1 / 64
# Beyond this many radii from the mean, no training row is near.
FAR_RADII = 4.0
# With more features a tree visits most of its leaves; the limit is scikit-learn's.
MAX_NEIGHBOUR_TREE_FEATURES = 15


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Training rows relative to their mean, divided by a power of two.

    In these coordinates squared distances neither overflow nor underflow in any unit, and a matrix
    product computes them with few digits lost.
    """

    rows: Array
    centre: Array
    scale: float

    @classmethod
    def from_rows(cls, X: Array) -> "TrainingRows":
        """Choose the coordinates and transform the rows."""
        centre = (X / len(X)).sum(axis=0)
        _, exponent = np.frexp(np.abs(X - centre).max())
        scale = float(np.ldexp(1.0, exponent))
        return cls(np.ascontiguousarray((X - centre) / scale), centre, scale)

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return len(self.rows)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.rows.shape[1])

    @cached_property
    def squared_norms(self) -> Array:
        """Squared norm of each training row."""
        return np.einsum("ij,ij->i", self.rows, self.rows)

    @cached_property
    def tree(self) -> KDTree:
        """Tree of the training rows."""
        return KDTree(self.rows)

    def place(self, X: Array) -> Array:
        """Transform other rows into the same coordinates."""
        with np.errstate(over="ignore"):
            placed = (X - self.centre) / self.scale
        return np.clip(placed, -MAX_COORDINATE, MAX_COORDINATE)

    def is_far(self, placed: Array) -> NDArray[np.bool_]:
        """Return which rows are far from all training rows."""
        radius = np.sqrt(self.squared_norms.max())
        return np.linalg.norm(placed, axis=1) > FAR_RADII * radius

    def squared_distances(self, placed: Array) -> Array:
        """Return the squared distance of each row from each training row, exact to rounding."""
        norms = np.einsum("ij,ij->i", placed, placed)[:, None] + self.squared_norms
        squared = (-2 * placed) @ self.rows.T
        squared += norms
        norms *= NEAR_SHARE
        is_near = squared < norms
        n_near = np.count_nonzero(is_near)
        if n_near > MAX_NEAR_PAIRS * is_near.size:
            return cdist(placed, self.rows, "sqeuclidean")
        if n_near:
            here, there = np.nonzero(is_near)
            differences = placed[here] - self.rows[there]
            squared[here, there] = np.einsum("ij,ij->i", differences, differences)
        return squared

    def shifted_distances(self, placed: Array) -> Array:
        """Return squared distances up to a constant for each row, exact also for far rows.

        Squared distances of a far row agree in their leading digits. Without the squared norm of
        the row, which is common to them, the digits that differ remain.
        """
        squared = self.squared_distances(placed)
        is_far = self.is_far(placed)
        squared[is_far] = self.squared_norms - 2 * (placed[is_far] @ self.rows.T)
        return squared

    @property
    def has_tree(self) -> bool:
        """Whether a tree finds the nearest rows, instead of all distances."""
        return self.n_features <= MAX_NEIGHBOUR_TREE_FEATURES

    def nearest(self, placed: Array, n_neighbors: int) -> tuple[Array, Array]:
        """Return squared distances and indices of the nearest training rows, in no order."""
        if self.has_tree:
            distances, index = self.tree.query(placed, k=n_neighbors)
            return distances * distances, index
        return _take_nearest(self.squared_distances(placed), n_neighbors)

    def split(self, n_rows: int, n_neighbors: int) -> Iterator[slice]:
        """Split rows into blocks whose distances to the nearest have a bounded size."""
        return split_rows(n_rows, n_neighbors if self.has_tree else self.n_rows)


@dataclass(frozen=True)
class AdaptiveWidth:
    """A bandwidth for each row, at which its weights have the sum ``total_weight``."""

    total_weight: float

    def distances(self, training: TrainingRows, placed: Array) -> Array:
        """Return the squared distances that the bandwidths are solved for."""
        return training.squared_distances(placed)

    def bandwidths(self, squared: Array) -> Array:
        """Return the bandwidth of each row, in the coordinates of the training rows."""
        return solve_bandwidths(squared, self.total_weight)


@dataclass(frozen=True)
class FixedWidth:
    """The same bandwidth for each row, in the coordinates of the training rows."""

    bandwidth: float

    def distances(self, training: TrainingRows, placed: Array) -> Array:
        """Return squared distances up to a constant for each row, which cancels in the weights."""
        return training.shifted_distances(placed)

    def bandwidths(self, squared: Array) -> Array:
        """Return the same bandwidth for each row."""
        return np.full(len(squared), self.bandwidth)


Width = AdaptiveWidth | FixedWidth


@dataclass(frozen=True)
class WeightScope:
    """The bandwidth of the weights, and how many of the nearest training rows have one.

    None means all. Unless ``is_cut``, the nearest are an approximation of all: where the omitted
    weight exceeds rounding, the weights of all training rows are computed.
    """

    width: Width
    n_nearest: int | None
    is_cut: bool


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Weights at a block of rows, of all training rows or of those in ``index``."""

    at: Array
    squared: Array
    bandwidths: Array
    weights: Array
    index: Array | None
    n_training: int

    def spread(self, values: Array) -> Any:
        """Return one value per neighbour as a matrix with a column for each training row."""
        if self.index is None:
            return values
        starts = np.arange(len(values) + 1) * values.shape[1]
        shape = (len(values), self.n_training)
        return csr_array((values.ravel(), self.index.ravel(), starts), shape=shape)


def neighbourhoods(
    training: TrainingRows, placed: Array, scope: WeightScope
) -> Iterator[Neighbourhood]:
    """Yield the weights in blocks of rows; a later block may replace the weights of a row."""
    everywhere = np.arange(len(placed))
    with single_blas_thread(training.n_features):
        if scope.n_nearest is None:
            yield from _weigh_all(training, placed, everywhere, scope.width)
        else:
            yield from _weigh_nearest(training, placed, scope, scope.n_nearest)


def adaptive_scope(
    training: TrainingRows, total_weight: float, n_neighbors: int | None
) -> WeightScope:
    """Return the scope of a total weight over the nearest rows, or over all for None."""
    width = AdaptiveWidth(total_weight)
    if n_neighbors is not None:
        return WeightScope(width, n_neighbors, is_cut=True)
    return whole_scope(training, width)


def whole_scope(training: TrainingRows, width: Width) -> WeightScope:
    """Return the scope of all training rows, approximated by the nearest where that is faster."""
    return WeightScope(width, _count_enough(training, width), is_cut=False)


def weigh(
    squared: Array, index: Array | None, at: Array, width: Width, n_training: int
) -> Neighbourhood:
    """Return the weights of squared distances."""
    bandwidths = width.bandwidths(squared)
    weights = gaussian_weights(squared, bandwidths)
    return Neighbourhood(at, squared, bandwidths, weights, index, n_training)


def _count_enough(training: TrainingRows, width: Width) -> int | None:
    """Return how many nearest rows have all the weight up to rounding; None for too many."""
    n_rows = training.n_rows
    if n_rows < MIN_TREE_ROWS or training.n_features > MAX_TREE_FEATURES:
        return None
    counts: list[int] = []
    pilots = np.linspace(0, n_rows - 1, N_PILOT_ROWS).astype(np.intp)
    for block in split_rows(len(pilots), n_rows):
        squared, index = nearest_others(training, pilots[block], n_rows - 1)
        part = weigh(squared, index, pilots[block], width, n_rows)
        counts.extend(np.count_nonzero(part.weights * n_rows > MAX_OMITTED, axis=1))
    n_enough = math.ceil(PILOT_FACTOR * float(np.quantile(counts, PILOT_QUANTILE)))
    return n_enough if n_enough < MAX_TREE_SHARE * n_rows else None


def _weigh_nearest(
    training: TrainingRows, placed: Array, scope: WeightScope, n_nearest: int
) -> Iterator[Neighbourhood]:
    """Yield the weights of the nearest training rows, then of all where they do not suffice."""
    is_short = training.is_far(placed) & (not scope.is_cut)
    at = np.flatnonzero(~is_short)
    for block in training.split(len(at), n_nearest):
        squared, index = training.nearest(placed[at[block]], n_nearest)
        part = weigh(squared, index, at[block], scope.width, training.n_rows)
        omitted = (training.n_rows - n_nearest) * part.weights.min(axis=1)
        is_short[part.at] = (omitted > MAX_OMITTED) & (not scope.is_cut)
        yield part
    yield from _weigh_all(training, placed, np.flatnonzero(is_short), scope.width)


def _weigh_all(
    training: TrainingRows, placed: Array, at: Array, width: Width
) -> Iterator[Neighbourhood]:
    """Yield the weights of all training rows at given rows."""
    for block in split_rows(len(at), training.n_rows):
        squared = width.distances(training, placed[at[block]])
        yield weigh(squared, None, at[block], width, training.n_rows)


def single_blas_thread(n_features: int) -> AbstractContextManager[Any]:
    """Limit BLAS to one thread within a block of code, unless rows are wide.

    Between the short products of blocks its threads spin, which on a busy computer takes several
    times as long as the work.
    """
    if n_features > MAX_SINGLE_THREAD_FEATURES:
        return nullcontext()
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    """Return the thread controller; finding the libraries takes a millisecond."""
    return ThreadpoolController()


def nearest_others(
    training: TrainingRows, row_index: Array, n_neighbors: int
) -> tuple[Array, Array]:
    """Return squared distances and indices of the nearest neighbours of training rows.

    A row is not its own neighbour; rows that coincide with it are.
    """
    squared = training.squared_distances(training.rows[row_index])
    squared[np.arange(len(row_index)), row_index] = np.inf
    return _take_nearest(squared, n_neighbors)


def split_rows(n_rows: int, width: int) -> Iterator[slice]:
    """Split rows of the given width into blocks of bounded size."""
    n_block = max(1, BLOCK_SIZE // width)
    for start in range(0, n_rows, n_block):
        yield slice(start, min(start + n_block, n_rows))


def _take_nearest(squared: Array, n_neighbors: int) -> tuple[Array, Array]:
    """Return the smallest squared distances of each row and their indices, in no order."""
    index = np.argpartition(squared, n_neighbors - 1, axis=1)[:, :n_neighbors]
    return np.take_along_axis(squared, index, axis=1), index
