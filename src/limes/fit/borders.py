"""The paper: pairs of rows, roots on the lines between them, placement."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from limes._typing import Array, Indices
from limes.fit.config import DEFAULTS, FitOptions
from limes.fit.data import FitData
from limes.fit.validation import ValidationSet, augmented_validation_set
from limes.model.border_map import BorderMap
from limes.sources.base import MulticlassSource, Shifted, Source

# Comparisons of placements draw from a child of the seed that no map draws from.
PLACEMENT_SEED_KEY = 2**31
# The simplest first: of those that are equally good, the first is selected.
PLACEMENTS = ("random", "near", "mixed", "dense")
# Distances to the centres of clusters that are held at once. Bounds memory.
MAX_DISTANCES = 1 << 22
# One of this many steps of the root search halves the bracket.
HALVING_PERIOD = 3
# Guard: halving alone reaches the last bit of a double in 53 steps.
MAX_STEPS = 180
# Sums of misses that differ by this share are equal but for rounding.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Border:
    """A border of a scheme, and the classes on either side of it."""

    source: Source
    # Classes with negative and with positive decision values.
    negative: list[int]
    positive: list[int]

    @property
    def classes(self) -> list[int]:
        """All its classes."""
        return sorted(self.negative + self.positive)

    def separates(self, first: Indices, second: Indices) -> NDArray[np.bool_]:
        """Return which pairs of classes it lies between."""
        is_negative, is_positive = np.isin(first, self.negative), np.isin(first, self.positive)
        return (is_negative & np.isin(second, self.positive)) | (
            is_positive & np.isin(second, self.negative)
        )


def choose_placement(
    borders: list[Border],
    source: MulticlassSource,
    data: FitData,
    validation: ValidationSet,
    options: FitOptions,
    *,
    seed: np.random.SeedSequence,
    verbose: int = 0,
) -> str:
    """Return the placement whose maps put most rows on the same side as the source does.

    The borders with the most ambiguous rows are mapped with each placement. Of the placements
    within the standard error of the best, the simplest is selected.
    """
    rng = np.random.default_rng(
        np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, PLACEMENT_SEED_KEY))
    )
    validation, rows = augmented_validation_set(source, data, validation)
    misses = np.zeros((len(PLACEMENTS), len(rows)))
    # As for the maps of the scheme: the result must not depend on the number of threads.
    with threadpool_limits(limits=1, user_api="blas"):
        trial_borders = _most_ambiguous(borders, source, validation, rows)
        for border in trial_borders:
            places = _sample_trial_rows(validation, border, rng)
            n_draws = DEFAULTS.borders.n_trial_borders // len(trial_borders)
            missed = _try_placements(border, data, options, rows[places], n_draws, rng)
            misses[:, places] += validation.weights[places] * missed
    selected = first_within_error(misses)
    if verbose:
        total = max(float(len(trial_borders) * validation.weights.sum()), np.finfo(float).tiny)
        for place, name in enumerate(PLACEMENTS):
            share, mark = misses[place].sum() / total, ", selected" if place == selected else ""
            print(f"placement {name}: {share:.2%} of rows on the wrong side of a border{mark}")
    return PLACEMENTS[selected]


def _most_ambiguous(
    borders: list[Border], source: MulticlassSource, validation: ValidationSet, rows: Array
) -> list[Border]:
    """Return the borders between the two likeliest classes of the most ambiguous rows."""
    n_borders = DEFAULTS.borders.n_trial_borders
    if len(borders) <= n_borders:
        return borders
    step = -(-len(rows) // DEFAULTS.borders.max_trial_rows)
    logits = source.logits(rows[::step])
    order = np.argsort(logits, axis=1)
    best, second = order[:, -1], order[:, -2]
    lines = np.arange(len(logits))
    ambiguity = validation.weights[::step] * np.exp(logits[lines, second] - logits[lines, best])
    weights = np.array([ambiguity @ border.separates(best, second) for border in borders])
    return [borders[place] for place in np.argsort(-weights, kind="stable")[:n_borders]]


def _sample_trial_rows(
    validation: ValidationSet, border: Border, rng: np.random.Generator
) -> Indices:
    """Return the rows of a border's classes, a random part of many."""
    places = np.flatnonzero(np.isin(validation.class_index, border.classes))
    max_rows = DEFAULTS.borders.max_trial_rows
    return places if len(places) <= max_rows else rng.choice(places, max_rows, replace=False)


def _try_placements(
    border: Border,
    data: FitData,
    options: FitOptions,
    validation_rows: Array,
    n_draws: int,
    rng: np.random.Generator,
) -> Array:
    """Return how often maps of each placement put each row on the wrong side of a border."""
    source = _with_offset(border.source, options)
    sides = split_sides(source, data.rows[_sample_class_rows(data, border.classes, rng)])
    max_points = DEFAULTS.borders.n_points
    n_points = min(options.n_borders or max_points, max_points)
    missed = np.zeros((len(PLACEMENTS), len(validation_rows)))
    if not (len(sides.negative) and len(sides.positive) and len(validation_rows)):
        return missed
    is_positive = source.decision(validation_rows) > 0
    trials = [place for place in range(len(PLACEMENTS)) for _ in range(n_draws)]
    pairs = [place_pairs(sides, n_points, placement=PLACEMENTS[place], rng=rng) for place in trials]
    negative, positive = np.concatenate(pairs).T
    # All lines in one call, which evaluates as many rows with less overhead.
    points, normals = find_borders(
        source, sides.negative[negative], sides.positive[positive], tolerance=options.tolerance
    )
    ends = np.cumsum([len(trial_pairs) for trial_pairs in pairs])[:-1]
    parts = zip(trials, np.split(points, ends), np.split(normals, ends), strict=True)
    for place, trial_points, trial_normals in parts:
        map_ = BorderMap.from_borders(
            points=trial_points, normals=trial_normals, blend=options.blend or 1
        )
        missed[place] += ((map_.decide(validation_rows)[:, 0] > 0) != is_positive) / n_draws
    return missed


def first_within_error(misses: Array) -> int:
    """Return the first line with no more misses than the least, by the error of the difference.

    Examples
    --------
    >>> first_within_error(np.array([[1, 1, 1, 1, 0], [0, 0, 0, 1, 0]]))
    1
    >>> first_within_error(np.array([[1, 0, 0, 1, 0], [0, 0, 0, 1, 0]]))
    0
    """
    excess = misses - misses[misses.sum(axis=1).argmin()]
    errors = np.sqrt(np.square(excess).sum(axis=1))
    # The excess of a single row equals its error, but for rounding.
    return int(np.argmax(excess.sum(axis=1) <= errors * (1 + ROUNDING)))


def map_border(
    source: Source,
    classes: list[int],
    data: FitData,
    options: FitOptions,
    rng: np.random.Generator,
) -> BorderMap:
    """Find points on one border, between rows of the given classes.

    Where all rows are on one side there is no border, and the map is constant.
    """
    source = _with_offset(source, options)
    rows = data.rows[_sample_class_rows(data, classes, rng)]
    sides = split_sides(source, rows)
    n_borders = options.n_borders or DEFAULTS.borders.n_points
    pairs = place_pairs(sides, n_borders, placement=options.placement, rng=rng)
    if not len(pairs):
        rows = rows if len(rows) else data.rows
        value = float(np.median(source.decision(rows)))
        return BorderMap.constant(rows.mean(axis=0), value, data.preprocessing)
    points, normals = find_borders(
        source,
        sides.negative[pairs[:, 0]],
        sides.positive[pairs[:, 1]],
        tolerance=options.tolerance,
    )
    return BorderMap.from_borders(
        points=points, normals=normals, preprocessing=data.preprocessing, blend=options.blend or 1
    )


def _with_offset(source: Source, options: FitOptions) -> Source:
    """Return the border at the user's decision value."""
    return Shifted(source, options.decision_offset) if options.decision_offset else source


def _sample_class_rows(data: FitData, classes: list[int], rng: np.random.Generator) -> Indices:
    """Return the places of the rows of some classes, a random part of a large class."""
    max_rows = DEFAULTS.borders.max_rows_per_class
    by_class = [np.flatnonzero(data.class_index == index) for index in classes]
    return np.concatenate(
        [
            places if len(places) <= max_rows else rng.choice(places, max_rows, replace=False)
            for places in by_class
        ]
    )


class Sides(NamedTuple):
    """Rows on either side of a border, and their decision values."""

    negative: Array
    positive: Array
    negative_values: Array
    positive_values: Array


def split_sides(source: Source, rows: Array) -> Sides:
    """Split rows by the sign of their decision value; a row on the border itself has no side."""
    values = source.decision(rows)
    if not np.isfinite(values).all():
        raise ValueError(
            f"the source must give finite decision values, got {values[~np.isfinite(values)][0]} "
            "for a row. Check the row's values and the source."
        )
    is_negative, is_positive = values < 0, values > 0
    return Sides(rows[is_negative], rows[is_positive], values[is_negative], values[is_positive])


def place_pairs(
    sides: Sides, n_pairs: int, *, placement: str, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Choose pairs of rows, one from each side, no pair twice: (n_pairs, 2)."""
    n_positive = len(sides.positive)
    n_all = len(sides.negative) * n_positive
    if n_all <= n_pairs:
        return _rows_of_pairs(np.arange(n_all), n_positive)
    if placement == "random":
        return _rows_of_pairs(_draw_new(n_all, n_pairs, np.empty(0, np.int64), rng), n_positive)
    if placement == "dense":
        n_drawn = DEFAULTS.borders.pairs_drawn_per_pair * n_pairs
        drawn = _draw_near(sides, n_drawn, rng, by_ambiguity=True)
        near = _one_pair_per_cluster(sides, drawn, n_pairs)
    else:
        n_near = n_pairs if placement == "near" else (n_pairs + 1) // 2
        near = _draw_near(sides, n_near, rng)[:n_near]
    rest = _draw_new(n_all, n_pairs - len(near), near, rng)
    return _rows_of_pairs(np.concatenate([near, rest]), n_positive)


def _rows_of_pairs(pairs: NDArray[np.int64], n_positive: int) -> NDArray[np.int64]:
    """Return the two row numbers of each pair's number."""
    return np.column_stack(np.divmod(pairs, max(n_positive, 1))).astype(np.int64)


def _draw_new(
    n_all: int, n_new: int, taken: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw numbers below n_all, none twice and none that is taken, without listing them all."""
    drawn = rng.choice(n_all, size=min(n_all, n_new + len(taken)), replace=False)
    return drawn[~np.isin(drawn, taken)][:n_new].astype(np.int64)


def _draw_near(
    sides: Sides, n_drawn: int, rng: np.random.Generator, *, by_ambiguity: bool = False
) -> NDArray[np.int64]:
    """Pair n_drawn rows of either side with near rows of the other, in random order.

    Rows are drawn evenly, or with more weight on ambiguous ones.
    """
    values = sides.negative_values, sides.positive_values
    negative_probability, positive_probability = (
        map(_ambiguity, values) if by_ambiguity else (None, None)
    )
    negative_first = _near_pairs(sides.negative, sides.positive, n_drawn, rng, negative_probability)
    positive_first = _near_pairs(sides.positive, sides.negative, n_drawn, rng, positive_probability)
    pairs = np.concatenate([negative_first, positive_first[:, ::-1]])
    numbers = np.unique(pairs[:, 0] * len(sides.positive) + pairs[:, 1])
    return rng.permutation(numbers)


def _ambiguity(values: Array) -> Array:
    """Return the probability to draw each row, higher for smaller decision values."""
    ambiguity = 1.0 - np.abs(np.tanh(values)) + DEFAULTS.borders.unambiguous_weight
    return ambiguity / ambiguity.sum()


def _near_pairs(
    rows: Array,
    other_rows: Array,
    n_pairs: int,
    rng: np.random.Generator,
    probability: Array | None,
) -> NDArray[np.int64]:
    """Pair rows of one side, each with one of its near rows on the other side."""
    replace = probability is not None or n_pairs > len(rows)
    drawn = rng.choice(len(rows), size=n_pairs, replace=replace, p=probability)
    searched = np.arange(len(other_rows))
    if len(searched) > DEFAULTS.borders.max_neighbor_rows:
        n_searched = DEFAULTS.borders.max_neighbor_rows
        searched = rng.choice(len(other_rows), size=n_searched, replace=False)
    n_near = min(DEFAULTS.borders.n_neighbors, len(searched))
    index = NearestNeighbors(n_neighbors=n_near).fit(other_rows[searched])
    # Rows near the border are drawn many times, but searched for once.
    unique, places = np.unique(drawn, return_inverse=True)
    near = index.kneighbors(rows[unique], return_distance=False)[places]
    partners = near[np.arange(n_pairs), rng.integers(n_near, size=n_pairs)]
    return np.column_stack([drawn, searched[partners]]).astype(np.int64)


def _one_pair_per_cluster(
    sides: Sides, pairs: NDArray[np.int64], n_clusters: int
) -> NDArray[np.int64]:
    """Return the pair nearest to the centre of each cluster that k-means finds.

    Cells with equal numbers of pairs, by repeated halving, agree less with the source where points
    are few.
    """
    crossings = _linear_crossings(sides, _rows_of_pairs(pairs, len(sides.positive)))
    centers = crossings[:n_clusters].copy()
    for _ in range(DEFAULTS.borders.kmeans_steps):
        clusters, _ = _nearest(centers, crossings)
        counts = np.bincount(clusters, minlength=len(centers))[:, None]
        sums = np.zeros_like(centers)
        np.add.at(sums, clusters, crossings)
        centers = np.where(counts > 0, sums / np.maximum(counts, 1), centers)
    clusters, distances = _nearest(centers, crossings)
    order = np.lexsort((distances, clusters))
    return pairs[order[np.unique(clusters[order], return_index=True)[1]]]


def _linear_crossings(sides: Sides, pairs: NDArray[np.int64]) -> Array:
    """Return where the line of each pair would cross the border if decision values were linear."""
    negative, positive = pairs.T
    start, end = sides.negative_values[negative], sides.positive_values[positive]
    fraction = (start / (start - end))[:, None]
    return (1 - fraction) * sides.negative[negative] + fraction * sides.positive[positive]


def _nearest(centers: Array, rows: Array) -> tuple[Indices, Array]:
    """Return the index of the centre nearest to each row, and half its squared distance."""
    clusters, distances = np.empty(len(rows), dtype=np.intp), 0.5 * np.square(rows).sum(axis=1)
    half_squares = 0.5 * np.square(centers).sum(axis=1)
    n_block = max(1, MAX_DISTANCES // len(centers))
    for start in range(0, len(rows), n_block):
        block = slice(start, start + n_block)
        block_distances = half_squares - rows[block] @ centers.T
        clusters[block] = np.argmin(block_distances, axis=1)
        distances[block] += block_distances.min(axis=1)
    return clusters, distances


class Borders(NamedTuple):
    """Border points and the gradient of the decision value at each."""

    points: Array
    normals: Array


def find_borders(source: Source, negative: Array, positive: Array, *, tolerance: float) -> Borders:
    """Find a border point on the line between each two rows.

    Newton's method, with halving where it leaves its bracket and in every third step: fast for a
    smooth decision value, and never divergent. A line ends when its decision value is below the
    tolerance, or, where the source jumps across zero, when the bracket cannot shrink any more.
    """
    span = positive - negative
    low, high = np.zeros(len(span)), np.ones(len(span))
    place = np.full(len(span), 0.5)
    normals = np.empty_like(span)
    open_lines = np.arange(len(span))
    for step in range(MAX_STEPS):
        rows = negative[open_lines] + place[open_lines, None] * span[open_lines]
        value, gradient = source.decision_and_gradient(rows)
        normals[open_lines] = gradient
        is_positive = value > 0
        high[open_lines[is_positive]] = place[open_lines[is_positive]]
        low[open_lines[~is_positive]] = place[open_lines[~is_positive]]
        is_open = (np.abs(value) >= tolerance) & _can_shrink(low[open_lines], high[open_lines])
        slope = np.einsum("ij,ij->i", gradient, span[open_lines])
        open_lines, value, slope = open_lines[is_open], value[is_open], slope[is_open]
        if not len(open_lines):
            break
        place[open_lines] = _next_place(
            place[open_lines], low[open_lines], high[open_lines], value, slope, step
        )
    points = negative + place[:, None] * span
    is_discontinuous = ~_can_shrink(low, high)
    return Borders(
        points, _replace_invalid_gradients(source, normals, is_discontinuous, negative, positive)
    )


def _can_shrink(low: Array, high: Array) -> NDArray[np.bool_]:
    """Return which brackets still have a number strictly between their ends."""
    middle = 0.5 * (low + high)
    return (low < middle) & (middle < high)


def _next_place(
    place: Array, low: Array, high: Array, value: Array, slope: Array, step: int
) -> Array:
    """Return Newton's step where it stays inside the bracket, else the middle."""
    middle = 0.5 * (low + high)
    if step % HALVING_PERIOD == HALVING_PERIOD - 1:
        return middle
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        newton = place - value / slope
    return np.where((newton > low) & (newton < high), newton, middle)


def _replace_invalid_gradients(
    source: Source,
    normals: Array,
    is_discontinuous: NDArray[np.bool_],
    negative: Array,
    positive: Array,
) -> Array:
    """Replace zero, infinite and backward gradients by the slope of the line between the rows.

    A piecewise-constant source (nearest neighbours, trees) has no gradient where it jumps, or one
    over so wide a step that it may point back across the border.
    """
    span = positive - negative
    is_backward = is_discontinuous & (np.einsum("ij,ij->i", normals, span) <= 0)
    is_invalid = is_backward | ~np.any(normals, axis=1) | ~np.all(np.isfinite(normals), axis=1)
    if not is_invalid.any():
        return normals
    rise = source.decision(positive[is_invalid]) - source.decision(negative[is_invalid])
    replaced = normals.copy()
    lengths = np.einsum("ij,ij->i", span[is_invalid], span[is_invalid])
    replaced[is_invalid] = span[is_invalid] * (rise / lengths)[:, None]
    return replaced
