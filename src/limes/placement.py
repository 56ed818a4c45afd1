"""Where to look for the border: which rows, and between which two of them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from limes._typing import Array, Codes
from limes.sources.protocol import Source

PLACEMENTS = ("random", "near", "mixed")
# A row's partner is one of this many nearest rows across the border.
N_NEAR = 20
# Rows of one side that are searched for neighbours.
MAX_NEAR_ROWS = 5000


class Sides(NamedTuple):
    """Rows on either side of a border, and where they came from."""

    below: Array
    above: Array


def split_sides(source: Source, rows: Array) -> Sides:
    """Part rows by the sign of their decision value; a row on the border itself has no side.

    Parameters
    ----------
    source : Source
        Gives decision values.
    rows : ndarray of shape (n_rows, n_features)
        Rows of the classes on either side.

    Returns
    -------
    Sides
        Either may be empty.
    """
    values = source.decision(rows)
    if not np.isfinite(values).all():
        raise ValueError(
            f"the source gave the decision value {values[~np.isfinite(values)][0]} for a row: "
            "decision values must be finite."
        )
    return Sides(rows[values < 0], rows[values > 0])


def place_pairs(
    sides: Sides, n_pairs: int, *, placement: str, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Choose pairs of rows, one from each side, no pair twice.

    Parameters
    ----------
    sides : Sides
        Rows below and above the border.
    n_pairs : int
        Number of pairs wanted. Where there are fewer, each is taken once.
    placement : {'random', 'near', 'mixed'}
        Any two rows (the paper); a row and one of its near ones; half of each.
    rng : Generator
        Draws.

    Returns
    -------
    ndarray of shape (n_found, 2)
        Numbers of a row below and a row above.
    """
    n_below, n_above = len(sides.below), len(sides.above)
    n_all = n_below * n_above
    if n_all <= n_pairs:
        return _rows_of(np.arange(n_all), n_above)
    if placement == "random":
        return _rows_of(_draw_new(n_all, n_pairs, np.empty(0, np.int64), rng), n_above)
    n_near = n_pairs if placement == "near" else (n_pairs + 1) // 2
    near = _draw_near(sides, n_near, rng)
    rest = _draw_new(n_all, n_pairs - len(near), near, rng)
    return _rows_of(np.concatenate([near, rest]), n_above)


def _rows_of(pairs: NDArray[np.int64], n_above: int) -> NDArray[np.int64]:
    """Return the two row numbers of each pair's number."""
    return np.column_stack(np.divmod(pairs, max(n_above, 1))).astype(np.int64)


def _draw_new(
    n_all: int, n_wanted: int, taken: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw numbers below n_all, none twice and none that is taken, without listing them all."""
    found = rng.choice(n_all, size=min(n_all, n_wanted + len(taken)), replace=False)
    return found[~np.isin(found, taken)][:n_wanted].astype(np.int64)


def _draw_near(sides: Sides, n_wanted: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Pair random rows of either side with near ones of the other."""
    from_below = _near_pairs(sides.below, sides.above, n_wanted, rng)
    from_above = _near_pairs(sides.above, sides.below, n_wanted, rng)[:, ::-1]
    pairs = np.concatenate([from_below, from_above])
    numbers = np.unique(pairs[:, 0] * len(sides.above) + pairs[:, 1])
    return rng.permutation(numbers)[:n_wanted]


def _near_pairs(
    own: Array, other: Array, n_wanted: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Pair rows of one side, each with one of its near rows on the other side."""
    anchors = rng.choice(len(own), size=n_wanted, replace=n_wanted > len(own))
    searched = _some_rows(len(other), rng)
    n_near = min(N_NEAR, len(searched))
    index = NearestNeighbors(n_neighbors=n_near).fit(other[searched])
    near = index.kneighbors(own[anchors], return_distance=False)
    partner = near[np.arange(n_wanted), rng.integers(n_near, size=n_wanted)]
    return np.column_stack([anchors, searched[partner]]).astype(np.int64)


def _some_rows(n_rows: int, rng: np.random.Generator) -> Codes:
    """Return all row numbers, or a random part of many."""
    if n_rows <= MAX_NEAR_ROWS:
        return np.arange(n_rows)
    return rng.choice(n_rows, size=MAX_NEAR_ROWS, replace=False)
