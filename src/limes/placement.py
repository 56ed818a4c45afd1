"""Where to look for the border: which rows, and between which two of them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from limes._typing import Array, Codes
from limes.sources.protocol import Source

# The simplest first: of those that do equally well, the first is taken.
PLACEMENTS = ("random", "near", "mixed", "dense")
# A row's partner is one of this many nearest rows across the border.
N_NEAR = 20
# Rows of one side that are searched for neighbours.
MAX_NEAR_ROWS = 5000
# Dense: pairs drawn from either side for each one that is kept, how likely a row is drawn that the
# source is sure of, where one on the border has 1, and the steps of k-means.
N_DRAWN = 4
SURE_SHARE = 0.05
N_STEPS = 4
# Distances to the middles of cells that are held at once.
MAX_DISTANCES = 1 << 22


class Sides(NamedTuple):
    """Rows on either side of a border, and their decision values."""

    below: Array
    above: Array
    below_values: Array
    above_values: Array


def split_sides(source: Source, rows: Array) -> Sides:
    """Part rows by the sign of their decision value; a row on the border itself has no side."""
    values = source.decision(rows)
    if not np.isfinite(values).all():
        raise ValueError(
            f"the source gave the decision value {values[~np.isfinite(values)][0]} for a row: "
            "decision values must be finite."
        )
    is_below, is_above = values < 0, values > 0
    return Sides(rows[is_below], rows[is_above], values[is_below], values[is_above])


def place_pairs(
    sides: Sides, n_pairs: int, *, placement: str, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Choose pairs of rows, one from each side, no pair twice."""
    n_below, n_above = len(sides.below), len(sides.above)
    n_all = n_below * n_above
    if n_all <= n_pairs:
        return _rows_of(np.arange(n_all), n_above)
    if placement == "random":
        return _rows_of(_draw_new(n_all, n_pairs, np.empty(0, np.int64), rng), n_above)
    if placement == "dense":
        found = _spread(sides, _draw_near(sides, N_DRAWN * n_pairs, rng, by_doubt=True), n_pairs)
    else:
        n_near = n_pairs if placement == "near" else (n_pairs + 1) // 2
        found = _draw_near(sides, n_near, rng)[:n_near]
    rest = _draw_new(n_all, n_pairs - len(found), found, rng)
    return _rows_of(np.concatenate([found, rest]), n_above)


def _rows_of(pairs: NDArray[np.int64], n_above: int) -> NDArray[np.int64]:
    """Return the two row numbers of each pair's number."""
    return np.column_stack(np.divmod(pairs, max(n_above, 1))).astype(np.int64)


def _draw_new(
    n_all: int, n_wanted: int, taken: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw numbers below n_all, none twice and none that is taken, without listing them all."""
    found = rng.choice(n_all, size=min(n_all, n_wanted + len(taken)), replace=False)
    return found[~np.isin(found, taken)][:n_wanted].astype(np.int64)


def _draw_near(
    sides: Sides, n_drawn: int, rng: np.random.Generator, *, by_doubt: bool = False
) -> NDArray[np.int64]:
    """Pair so many rows of either side with near ones of the other, in random order.

    They are any rows, or more of those near the border.
    """
    values = sides.below_values, sides.above_values
    below, above = map(_doubt, values) if by_doubt else (None, None)
    from_below = _near_pairs(sides.below, sides.above, n_drawn, rng, below)
    from_above = _near_pairs(sides.above, sides.below, n_drawn, rng, above)[:, ::-1]
    pairs = np.concatenate([from_below, from_above])
    numbers = np.unique(pairs[:, 0] * len(sides.above) + pairs[:, 1])
    return rng.permutation(numbers)


def _doubt(values: Array) -> Array:
    """Return how likely each row is drawn: the smaller its decision value, the likelier."""
    doubt = 1.0 - np.abs(np.tanh(values)) + SURE_SHARE
    return doubt / doubt.sum()


def _near_pairs(
    own: Array, other: Array, n_wanted: int, rng: np.random.Generator, chances: Array | None
) -> NDArray[np.int64]:
    """Pair rows of one side, each with one of its near rows on the other side."""
    is_repeated = chances is not None or n_wanted > len(own)
    anchors = rng.choice(len(own), size=n_wanted, replace=is_repeated, p=chances)
    searched = _some_rows(len(other), rng)
    n_near = min(N_NEAR, len(searched))
    index = NearestNeighbors(n_neighbors=n_near).fit(other[searched])
    # Rows near the border are drawn again and again.
    once, places = np.unique(anchors, return_inverse=True)
    near = index.kneighbors(own[once], return_distance=False)[places]
    partner = near[np.arange(n_wanted), rng.integers(n_near, size=n_wanted)]
    return np.column_stack([anchors, searched[partner]]).astype(np.int64)


def _spread(sides: Sides, pairs: NDArray[np.int64], n_wanted: int) -> NDArray[np.int64]:
    """Keep of many pairs the middle ones of so many cells of k-means.

    Cells of equally many pairs, by halving again and again, agree less with the source where
    points are few.
    """
    crossings = _crossings(sides, _rows_of(pairs, len(sides.above)))
    middles = crossings[:n_wanted].copy()
    for _ in range(N_STEPS):
        cells, _ = _nearest(middles, crossings)
        counts = np.bincount(cells, minlength=len(middles))[:, None]
        sums = np.zeros_like(middles)
        np.add.at(sums, cells, crossings)
        middles = np.where(counts > 0, sums / np.maximum(counts, 1), middles)
    cells, distances = _nearest(middles, crossings)
    order = np.lexsort((distances, cells))
    return pairs[order[np.unique(cells[order], return_index=True)[1]]]


def _crossings(sides: Sides, pairs: NDArray[np.int64]) -> Array:
    """Return about where the line of each pair crosses the border, were its values linear."""
    below, above = pairs.T
    start, end = sides.below_values[below], sides.above_values[above]
    share = (start / (start - end))[:, None]
    return (1 - share) * sides.below[below] + share * sides.above[above]


def _nearest(middles: Array, rows: Array) -> tuple[Codes, Array]:
    """Return the number of the middle nearest to each row, and half its squared distance."""
    cells, distances = np.empty(len(rows), dtype=np.intp), 0.5 * np.square(rows).sum(axis=1)
    halves = 0.5 * np.square(middles).sum(axis=1)
    n_block = max(1, MAX_DISTANCES // len(middles))
    for start in range(0, len(rows), n_block):
        some = slice(start, start + n_block)
        lengths = halves - rows[some] @ middles.T
        cells[some] = np.argmin(lengths, axis=1)
        distances[some] += lengths.min(axis=1)
    return cells, distances


def _some_rows(n_rows: int, rng: np.random.Generator) -> Codes:
    """Return all row numbers, or a random part of many."""
    if n_rows <= MAX_NEAR_ROWS:
        return np.arange(n_rows)
    return rng.choice(n_rows, size=MAX_NEAR_ROWS, replace=False)
