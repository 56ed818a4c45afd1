"""Synthetic rows: jitter, interpolation, crossover; rows from a model's own training rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from limes._typing import Array, Indices
from limes.fit.config import DEFAULTS
from limes.sources.base import training_rows
from limes.sources.pipelines import unwrap

# Rows that are checked for categories, and that components are computed from. Bound the time.
CATEGORY_ROWS, COMPONENT_ROWS = 2000, 5000


@dataclass(frozen=True, eq=False)
class Categories:
    """The columns that a synthetic row takes from a real one, those of a group together."""

    # Shape (n_features,).
    is_category: NDArray[np.bool_]
    # Shape (n_categories,). Which draw decides for each of these columns.
    draw_of_column: Indices
    n_draws: int

    @classmethod
    def of(cls, rows: Array, groups: Indices | None) -> "Categories":
        """Return the columns of groups, and those with few values: see ``find_categories``."""
        is_category = find_categories(rows)
        if groups is None:
            return cls(is_category, np.arange(int(is_category.sum())), int(is_category.sum()))
        is_category |= groups >= 0
        # A column without a group is a group of its own.
        own = np.where(groups >= 0, groups, len(groups) + np.arange(len(groups)))
        numbers, draws = np.unique(own[is_category], return_inverse=True)
        return cls(is_category, draws, len(numbers))

    def draw(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Return random numbers from 0 to 1, the same for all columns of a group."""
        return rng.random((n_rows, self.n_draws))[:, self.draw_of_column]

    def exchange(
        self, synthetic: Array, is_exchanged: NDArray[np.bool_], first: Array, second: Array
    ) -> None:
        """Set the categories to those of the first rows where exchanged, else of the second."""
        columns = self.is_category
        synthetic[:, columns] = np.where(is_exchanged, first[:, columns], second[:, columns])


def rows_from_training_rows(model: Any, rng: np.random.Generator) -> Array:
    """Return the training rows that a classifier keeps, and synthetic rows made from them.

    Half of the synthetic rows are jittered, half are interpolated between any two rows.
    """
    config = DEFAULTS.synthetic
    inner, preprocessing = unwrap(model)
    real = training_rows(inner)
    if real is None:
        raise ValueError(
            f"X is needed for {type(inner).__name__}, which keeps none of its training rows: give "
            "rows like those to be predicted."
        )
    n_synthetic = int(
        np.clip(config.rows_per_training_row * len(real), config.min_rows, config.max_rows)
    )
    parts = [real, interpolate(real, n_synthetic // 2, rng)]
    if len(real) > 2:
        n_jittered = n_synthetic - n_synthetic // 2
        parts.append(jitter(real, len(real), n_jittered, search_rows=real, rng=rng)[0])
    rows = np.concatenate(parts)
    return rows if preprocessing is None else preprocessing.undo(rows)


def interpolate(
    rows: Array,
    n_synthetic: int,
    rng: np.random.Generator,
    *,
    groups: Indices | None = None,
    extrapolation: float = 0.0,
) -> Array:
    """Make rows between any two rows, and up to a share of their distance beyond them.

    Categories are taken from one of the two, never mixed.
    """
    first, second = (rows[rng.integers(len(rows), size=n_synthetic)] for _ in range(2))
    fraction = rng.uniform(-extrapolation, 1.0 + extrapolation, (n_synthetic, 1))
    synthetic = first + fraction * (second - first)
    categories = Categories.of(rows, groups)
    is_second = categories.draw(n_synthetic, rng) < fraction
    categories.exchange(synthetic, is_second, second, first)
    return synthetic


def coverage_rows(
    rows: Array, n_synthetic: int, rng: np.random.Generator, *, groups: Indices | None = None
) -> Array:
    """Make rows between and around the given ones, where a model may be used as well."""
    extrapolation = DEFAULTS.synthetic.coverage_extrapolation
    return interpolate(rows, n_synthetic, rng, groups=groups, extrapolation=extrapolation)


def mix_components(
    rows: Array, n_synthetic: int, rng: np.random.Generator, *, groups: Indices | None = None
) -> Array:
    """Make rows from any two rows, with a fraction of their difference for each component.

    The principal components of the rows keep the correlation of their features. Fractions that do
    not depend on each other reach combinations that no line between two rows has. Categories are
    taken from one of the two.
    """
    extrapolation = DEFAULTS.synthetic.coverage_extrapolation
    first, second = (rows[rng.integers(len(rows), size=n_synthetic)] for _ in range(2))
    categories = Categories.of(rows, groups)
    columns = np.flatnonzero(~categories.is_category)
    synthetic = first.copy()
    if len(columns):
        scale, components = _scaled_components(rows[:, columns])
        difference = ((second - first)[:, columns] / scale) @ components
        fractions = rng.uniform(-extrapolation, 1.0 + extrapolation, difference.shape)
        synthetic[:, columns] += ((fractions * difference) @ components.T) * scale
    is_second = categories.draw(n_synthetic, rng) < rng.random((n_synthetic, 1))
    categories.exchange(synthetic, is_second, second, first)
    return synthetic


def _scaled_components(rows: Array) -> tuple[Array, Array]:
    """Return the standard deviations of the features, and the components of scaled rows."""
    sample = rows[:: max(1, len(rows) // COMPONENT_ROWS)]
    scale = sample.std(axis=0)
    scale[scale == 0] = 1.0
    centred = (sample - sample.mean(axis=0)) / scale
    return scale, np.linalg.eigh(centred.T @ centred)[1]


def jitter(
    rows: Array,
    n_starts: int,
    n_synthetic: int,
    *,
    search_rows: Array,
    rng: np.random.Generator,
    probability: Array | None = None,
    groups: Indices | None = None,
) -> tuple[Array, Indices]:
    """Make rows near the first ones, by differences of their neighbours; return their starts too.

    Starts are the first rows, drawn with the given probabilities.
    """
    steps = DEFAULTS.synthetic.jitter_steps
    starts = np.arange(n_starts)
    neighbours = _neighbours(search_rows, starts, rng)
    categories = Categories.of(rows, groups)
    drawn = [rng.choice(n_starts, size=n_synthetic // len(steps), p=probability) for _ in steps]
    parts = [
        _jitter_or_interpolate(rows, starts, neighbours, chosen, length, categories, rng)
        for chosen, (length, _) in zip(drawn, steps, strict=True)
    ]
    return np.concatenate(parts).astype(np.float64), np.concatenate(drawn)


def crossover(
    rows: Array,
    n_starts: int,
    n_synthetic: int,
    *,
    search_rows: Array,
    rng: np.random.Generator,
    probability: Array | None = None,
    groups: Indices | None = None,
) -> tuple[Array, Indices]:
    """Make rows with each feature from another neighbour of a start; return their starts too.

    A jittered row is near its start; one made by crossover is as far from all rows as those are
    from each other.
    """
    neighbours = _neighbours(search_rows, np.arange(n_starts), rng)
    drawn = rng.choice(n_starts, size=n_synthetic, p=probability)
    return _recombine(rows, neighbours[drawn], rng, groups), drawn


def sample_near_border(
    rows: Array,
    ambiguity: Array,
    n_synthetic: int,
    *,
    search_rows: Array,
    correlated_share: float = 1.0,
    rng: np.random.Generator,
    groups: Indices | None = None,
) -> NDArray[np.float32]:
    """Make rows near the given ones, more of them where the source is ambiguous.

    Continuous features move along differences of neighbouring rows; up to half of the categories
    are exchanged with a neighbour's, so that a synthetic row keeps values that occur. Where rows
    are few, a share is made by crossover. So is a larger share of wide rows, the less of their
    variance lies in common directions: a jittered row of many independent features is nearer to its
    start than rows are to each other. The ambiguous rows are the first ones.
    """
    config = DEFAULTS.synthetic
    starts = _sample_starts(ambiguity, rng)
    neighbours = _neighbours(search_rows, starts, rng)
    probability = ambiguity[starts] + config.unambiguous_weight
    probability /= probability.sum()
    categories = Categories.of(rows, groups)
    crossed_share = config.crossover_share if len(rows) < config.few_rows else 0.0
    n_crossed = int(n_synthetic * max(crossed_share, 1.0 - correlated_share**2))
    jittered_share = sum(share for _, share in config.jitter_steps)
    total = max(1.0, jittered_share)
    parts = [
        _jitter_or_interpolate(
            rows,
            starts,
            neighbours,
            rng.choice(
                len(starts), size=int((n_synthetic - n_crossed) * share / total), p=probability
            ),
            length,
            categories,
            rng,
        )
        for length, share in (*config.jitter_steps, (None, total - jittered_share))
    ]
    drawn = rng.choice(len(starts), size=n_crossed, p=probability)
    crossed = _recombine(rows, neighbours[drawn], rng, groups).astype(np.float32)
    return np.concatenate([*parts, crossed])


def _sample_starts(ambiguity: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    """Choose the rows to start from."""
    n_rows = len(ambiguity)
    weights = ambiguity + DEFAULTS.synthetic.unambiguous_weight
    n_starts = min(DEFAULTS.synthetic.max_start_rows, n_rows)
    return rng.choice(n_rows, size=n_starts, replace=False, p=weights / weights.sum())


def _neighbours(
    search_rows: Array, starts: NDArray[np.intp], rng: np.random.Generator
) -> NDArray[np.intp]:
    """Find the nearest rows of each start, among a random part of many."""
    n_rows = len(search_rows)
    n_searched = min(DEFAULTS.synthetic.max_neighbor_rows, n_rows)
    searched = rng.choice(n_rows, size=n_searched, replace=False)
    n_near = min(DEFAULTS.synthetic.n_neighbors, n_rows - 1) + 1
    index = NearestNeighbors(n_neighbors=n_near).fit(search_rows[searched].astype(np.float32))
    near = index.kneighbors(search_rows[starts].astype(np.float32), return_distance=False)
    # The nearest row to a row is itself, or one equal to it.
    return searched[near[:, 1:] if n_near > 1 else near]


def find_categories(rows: Array) -> NDArray[np.bool_]:
    """Return which columns are binary or categorical.

    Examples
    --------
    >>> find_categories(np.array([[x % 2, x / 7] for x in range(20)]))
    array([ True, False])
    """
    sample = rows[:: max(1, len(rows) // CATEGORY_ROWS)]
    return np.array(
        [len(np.unique(column)) <= DEFAULTS.synthetic.max_category_values for column in sample.T]
    )


def _jitter_or_interpolate(
    rows: Array,
    starts: NDArray[np.intp],
    neighbours: NDArray[np.intp],
    drawn: Indices,
    length: float | None,
    categories: Categories,
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    """Move each drawn start by part of a difference of two neighbours; without a length, to one."""
    start = rows[starts[drawn]]
    n_synthetic, n_near = len(drawn), neighbours.shape[1]
    first = rows[neighbours[drawn, rng.integers(n_near, size=n_synthetic)]]
    second = rows[neighbours[drawn, rng.integers(n_near, size=n_synthetic)]]
    fraction = rng.random((n_synthetic, 1))
    if length is None:
        synthetic = start + fraction * (first - start)
    else:
        synthetic = start + length * (first - second)
    if categories.n_draws:
        max_share = DEFAULTS.synthetic.max_exchanged_share
        is_exchanged = categories.draw(n_synthetic, rng) < max_share * fraction
        categories.exchange(synthetic, is_exchanged, first, start)
    return synthetic.astype(np.float32)


def _recombine(
    rows: Array, parents: Indices, rng: np.random.Generator, groups: Indices | None
) -> Array:
    """Make a row from each line of parents, every feature or group from a random one of them."""
    n_synthetic, n_parents = parents.shape
    synthetic = np.empty((n_synthetic, rows.shape[1]), dtype=rows.dtype)
    chosen_by_group: dict[int, Any] = {}
    # Column by column, since rows can be wide.
    for place, column in enumerate(rows.T):
        group = -1 if groups is None else int(groups[place])
        if group not in chosen_by_group or group < 0:
            chosen_by_group[group] = rng.integers(n_parents, size=n_synthetic)
        chosen = chosen_by_group[group]
        synthetic[:, place] = column[parents[np.arange(n_synthetic), chosen]]
    return synthetic
