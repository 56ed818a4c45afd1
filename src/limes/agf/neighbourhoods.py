"""Which training rows have a say at a row, and how much: blocks of Gaussian weights."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from limes.agf.bandwidths import gaussian_weights, solve_bandwidths
from limes.agf.threads import calm_blas
from limes.agf.training_rows import TrainingRows, nearest_others, split_rows

Array = NDArray[Any]

# Weight left out by a truncation, as a share of the whole: below rounding.
LEFT_OUT = 1e-14
# A tree pays for many rows of few features: it is slower a row, but looks at a small share.
FEWEST_ROWS, MOST_FEATURES, LARGEST_SHARE = 2000, 4, 1 / 20
# Rows asked how many neighbours they need, the share of them to be met, and room to spare.
N_PILOT_ROWS, MET_SHARE, ROOM = 64, 0.9, 1.2


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
    with calm_blas(training.n_features):
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
