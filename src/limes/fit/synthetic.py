"""Synthetic rows: jitter, interpolation, crossover; rows from a model's own training rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from limes._typing import Array, Indices
from limes.fit.config import DEFAULTS
from limes.sources.base import training_rows
from limes.sources.pipelines import unwrap


def find_categories(rows: Array) -> NDArray[np.bool_]:
    """Tell which columns are binary or categorical.

    Examples
    --------
    >>> find_categories(np.array([[x % 2, x / 7] for x in range(20)]))
    array([ True, False])
    """
    some = rows[:: max(1, len(rows) // 2000)]
    return np.array(
        [len(np.unique(column)) <= DEFAULTS.synthetic.max_category_values for column in some.T]
    )


def sample_near_border(
    rows: Array,
    ambiguity: Array,
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
    starts = _sample_starts(ambiguity, rng)
    neighbors = _neighbours(search, starts, rng)
    chance = ambiguity[starts] + DEFAULTS.synthetic.unambiguous_weight
    chance /= chance.sum()
    is_category = find_categories(rows)
    n_crossed = (
        int(n_wanted * DEFAULTS.synthetic.crossover_share)
        if len(rows) < DEFAULTS.synthetic.few_rows
        else 0
    )
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
        for length, share in (
            *DEFAULTS.synthetic.jitter_steps,
            (None, DEFAULTS.synthetic.interpolated_share),
        )
    ]
    crossed = rng.choice(len(starts), size=n_crossed, p=chance)
    return np.concatenate([*parts, _cross(rows, neighbors[crossed], rng).astype(np.float32)])


def jitter(
    rows: Array,
    n_starts: int,
    n_wanted: int,
    *,
    search: Array,
    rng: np.random.Generator,
    chance: Array | None = None,
) -> tuple[Array, Indices]:
    """Make rows as like the first ones as those are like each other."""
    starts = np.arange(n_starts)
    neighbors = _neighbours(search, starts, rng)
    is_category = find_categories(rows)
    picks = [
        rng.choice(n_starts, size=n_wanted // 2, p=chance) for _ in DEFAULTS.synthetic.jitter_steps
    ]
    parts = [
        _step(rows, starts, neighbors, picked, length, is_category, rng)
        for picked, (length, _) in zip(picks, DEFAULTS.synthetic.jitter_steps, strict=True)
    ]
    return np.concatenate(parts).astype(np.float64), np.concatenate(picks)


def crossover(
    rows: Array,
    n_starts: int,
    n_wanted: int,
    *,
    search: Array,
    rng: np.random.Generator,
    chance: Array | None = None,
) -> tuple[Array, Indices]:
    """Make rows as far from all others as those are from each other: each feature from another row.

    Twins stay beside the row that they were made from. A cross takes every feature from one of the
    near rows of its start, whichever, and is beside none of them.
    """
    neighbors = _neighbours(search, np.arange(n_starts), rng)
    picked = rng.choice(n_starts, size=n_wanted, p=chance)
    return _cross(rows, neighbors[picked], rng), picked


def _cross(rows: Array, parents: Indices, rng: np.random.Generator) -> Array:
    """Make a row of each line of parents, every feature from one of them."""
    n_wanted, n_parents = parents.shape
    crosses = np.empty((n_wanted, rows.shape[1]), dtype=rows.dtype)
    # Column by column: rows can be wide.
    for place, column in enumerate(rows.T):
        chosen = rng.integers(n_parents, size=n_wanted)
        crosses[:, place] = column[parents[np.arange(n_wanted), chosen]]
    return crosses


def interpolate(rows: Array, n_wanted: int, rng: np.random.Generator) -> Array:
    """Make rows between any two rows."""
    first, second = (rows[rng.integers(len(rows), size=n_wanted)] for _ in range(2))
    along = rng.random((n_wanted, 1))
    new = first + along * (second - first)
    is_category = find_categories(rows)
    is_second = rng.random((n_wanted, int(is_category.sum()))) < along
    new[:, is_category] = np.where(is_second, second[:, is_category], first[:, is_category])
    return new


def _sample_starts(ambiguity: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    """Choose the rows to start from."""
    n_rows = len(ambiguity)
    chance = (ambiguity + DEFAULTS.synthetic.unambiguous_weight) / (
        ambiguity + DEFAULTS.synthetic.unambiguous_weight
    ).sum()
    return rng.choice(
        n_rows, size=min(DEFAULTS.synthetic.max_start_rows, n_rows), replace=False, p=chance
    )


def _neighbours(
    search: Array, starts: NDArray[np.intp], rng: np.random.Generator
) -> NDArray[np.intp]:
    """Find the near rows of each start."""
    n_rows = len(search)
    among = rng.choice(
        n_rows, size=min(DEFAULTS.synthetic.max_neighbor_rows, n_rows), replace=False
    )
    n_near = min(DEFAULTS.synthetic.n_neighbors, n_rows - 1) + 1
    index = NearestNeighbors(n_neighbors=n_near).fit(search[among].astype(np.float32))
    near = index.kneighbors(search[starts].astype(np.float32), return_distance=False)
    # The nearest row to a row is itself, or as good as itself.
    return among[near[:, 1:] if n_near > 1 else near]


def _step(
    rows: Array,
    starts: NDArray[np.intp],
    neighbors: NDArray[np.intp],
    picked: Indices,
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


def rows_from_training_rows(model: Any, rng: np.random.Generator) -> Array:
    """Make rows from what a classifier keeps of its training rows.

    Half are made beside the kept rows, by differences of neighbours, half between any two of them.
    """
    inner, preprocessing = unwrap(model)
    kept = training_rows(inner)
    if kept is None:
        raise ValueError(
            f"X is needed for {type(inner).__name__}, which keeps none of its training rows: give "
            "rows like those to be predicted."
        )
    n_synthetic = int(
        np.clip(
            DEFAULTS.synthetic.rows_per_training_row * len(kept),
            DEFAULTS.synthetic.min_rows,
            DEFAULTS.synthetic.max_rows,
        )
    )
    parts = [kept, interpolate(kept, n_synthetic // 2, rng)]
    if len(kept) > 2:
        parts.append(
            jitter(kept, len(kept), n_synthetic - n_synthetic // 2, search=kept, rng=rng)[0]
        )
    rows = np.concatenate(parts)
    return rows if preprocessing is None else preprocessing.undo(rows)
