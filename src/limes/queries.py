"""Rows to ask the source about: near its border, and where the data live."""

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from limes._typing import Array, Codes

# A column with no more different values than this is a category: between two there is nothing.
MAX_CATEGORIES = 5
# Neighbours that a new row may take its differences from.
N_NEIGHBORS = 20
# Rows that new ones start from, and among which neighbours are sought.
MAX_STARTS = 8000
MAX_NEIGHBORS = 20_000
# How often a start is drawn from where the source is sure, beside where it is not.
SURE_SHARE = 0.05
# Kinds of new row, with their share: a step from a row by a part of the difference of two of its
# neighbours, or a place between a row and a neighbour.
STEPS = ((0.5, 0.5), (0.8, 0.25))
BETWEEN_SHARE = 0.25
# So few rows leave room that these do not reach: this share takes each feature from another
# neighbour.
FEW_ROWS, CROSS_SHARE = 5000, 0.3


def find_categories(rows: Array) -> NDArray[np.bool_]:
    """Tell which columns are binary or categorical.

    Examples
    --------
    >>> find_categories(np.array([[x % 2, x / 7] for x in range(20)]))
    array([ True, False])
    """
    some = rows[:: max(1, len(rows) // 2000)]
    return np.array([len(np.unique(column)) <= MAX_CATEGORIES for column in some.T])


def spread_rows(
    rows: Array,
    doubt: Array,
    n_wanted: int,
    *,
    search: Array,
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    """Make new rows about the given ones, more of them where the source is in doubt.

    Continuous features move along differences of neighbouring rows. Categories are exchanged with
    a neighbour's, up to half of them, so that a new row stays where rows can be. Where rows are
    few, others take every feature from one of the near rows, whichever, and are beside none.
    """
    starts = _draw_starts(doubt, rng)
    neighbors = _near_rows(search, starts, rng)
    chance = doubt[starts] + SURE_SHARE
    chance /= chance.sum()
    is_category = find_categories(rows)
    n_crossed = int(n_wanted * CROSS_SHARE) if len(rows) < FEW_ROWS else 0
    parts = [
        _step(
            rows,
            starts,
            neighbors,
            rng.choice(len(starts), size=int((n_wanted - n_crossed) * share), p=chance),
            length,
            is_category,
            rng,
        )
        for length, share in (*STEPS, (None, BETWEEN_SHARE))
    ]
    crossed = rng.choice(len(starts), size=n_crossed, p=chance)
    return np.concatenate([*parts, _cross(rows, neighbors[crossed], rng).astype(np.float32)])


def make_twins(
    rows: Array,
    n_starts: int,
    n_wanted: int,
    *,
    search: Array,
    rng: np.random.Generator,
    chance: Array | None = None,
) -> tuple[Array, Codes]:
    """Make rows as like the first ones as those are like each other."""
    starts = np.arange(n_starts)
    neighbors = _near_rows(search, starts, rng)
    is_category = find_categories(rows)
    picks = [rng.choice(n_starts, size=n_wanted // 2, p=chance) for _ in STEPS]
    parts = [
        _step(rows, starts, neighbors, picked, length, is_category, rng)
        for picked, (length, _) in zip(picks, STEPS, strict=True)
    ]
    return np.concatenate(parts).astype(np.float64), np.concatenate(picks)


def make_crosses(
    rows: Array,
    n_starts: int,
    n_wanted: int,
    *,
    search: Array,
    rng: np.random.Generator,
    chance: Array | None = None,
) -> tuple[Array, Codes]:
    """Make rows as far from all others as those are from each other: each feature from another row.

    Twins stay beside the row that they were made from. A cross takes every feature from one of the
    near rows of its start, whichever, and is beside none of them.
    """
    neighbors = _near_rows(search, np.arange(n_starts), rng)
    picked = rng.choice(n_starts, size=n_wanted, p=chance)
    return _cross(rows, neighbors[picked], rng), picked


def _cross(rows: Array, parents: Codes, rng: np.random.Generator) -> Array:
    """Make a row of each line of parents, every feature from one of them."""
    n_wanted, n_parents = parents.shape
    crosses = np.empty((n_wanted, rows.shape[1]), dtype=rows.dtype)
    # Column by column: rows can be wide.
    for place, column in enumerate(rows.T):
        chosen = rng.integers(n_parents, size=n_wanted)
        crosses[:, place] = column[parents[np.arange(n_wanted), chosen]]
    return crosses


def make_between(rows: Array, n_wanted: int, rng: np.random.Generator) -> Array:
    """Make rows between any two rows."""
    first, second = (rows[rng.integers(len(rows), size=n_wanted)] for _ in range(2))
    along = rng.random((n_wanted, 1))
    new = first + along * (second - first)
    is_category = find_categories(rows)
    is_second = rng.random((n_wanted, int(is_category.sum()))) < along
    new[:, is_category] = np.where(is_second, second[:, is_category], first[:, is_category])
    return new


def _draw_starts(doubt: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    """Choose the rows to start from."""
    n_rows = len(doubt)
    chance = (doubt + SURE_SHARE) / (doubt + SURE_SHARE).sum()
    return rng.choice(n_rows, size=min(MAX_STARTS, n_rows), replace=False, p=chance)


def _near_rows(
    search: Array, starts: NDArray[np.intp], rng: np.random.Generator
) -> NDArray[np.intp]:
    """Find the near rows of each start."""
    n_rows = len(search)
    among = rng.choice(n_rows, size=min(MAX_NEIGHBORS, n_rows), replace=False)
    n_near = min(N_NEIGHBORS, n_rows - 1) + 1
    index = NearestNeighbors(n_neighbors=n_near).fit(search[among].astype(np.float32))
    near = index.kneighbors(search[starts].astype(np.float32), return_distance=False)
    # The nearest row to a row is itself, or as good as itself.
    return among[near[:, 1:] if n_near > 1 else near]


def _step(
    rows: Array,
    starts: NDArray[np.intp],
    neighbors: NDArray[np.intp],
    picked: Codes,
    length: float | None,
    is_category: NDArray[np.bool_],
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    """Make a new row of one kind for each pick; without a length, on the way to a neighbour."""
    start = rows[starts[picked]]
    n_wanted, n_near = len(picked), neighbors.shape[1]
    near = rows[neighbors[picked, rng.integers(n_near, size=n_wanted)]]
    far = rows[neighbors[picked, rng.integers(n_near, size=n_wanted)]]
    along = rng.random((n_wanted, 1))
    new = start + along * (near - start) if length is None else start + length * (near - far)
    if is_category.any():
        is_exchanged = rng.random((n_wanted, int(is_category.sum()))) < 0.5 * along
        new[:, is_category] = np.where(is_exchanged, near[:, is_category], start[:, is_category])
    return new.astype(np.float32)
