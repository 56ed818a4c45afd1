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

# Trials draw from a child of the seed that no map draws from.
PLACEMENT_SEED_KEY = 2**31
# The simplest first: of those that do equally well, the first is taken.
PLACEMENTS = ("random", "near", "mixed", "dense")
# Distances to the middles of cells that are held at once.
MAX_DISTANCES = 1 << 22
# Halving alone reaches the last bit of a double in 53 steps, and at least every third step halves.
MAX_STEPS = 180


def map_border(
    source: Source,
    classes: list[int],
    data: FitData,
    options: FitOptions,
    rng: np.random.Generator,
) -> BorderMap:
    """Search for the points of one border.

    Rows that are all on one side have no border between them: its map is then the same everywhere.
    """
    source = shift_border(source, options)
    rows = data.rows[draw_rows(data.class_index, classes, rng)]
    sides = split_sides(source, rows)
    n_borders = options.n_borders or DEFAULTS.borders.n_points
    pairs = place_pairs(sides, n_borders, placement=options.placement, rng=rng)
    if not len(pairs):
        return _one_sided(source, rows, data)
    points, normals = find_borders(
        source, sides.below[pairs[:, 0]], sides.above[pairs[:, 1]], tolerance=options.tolerance
    )
    return BorderMap.from_borders(
        points=points, normals=normals, preprocessing=data.preprocessing, blend=options.blend or 1
    )


def shift_border(source: Source, options: FitOptions) -> Source:
    """Return the border at the decision value that is asked for."""
    return Shifted(source, options.decision_offset) if options.decision_offset else source


def draw_rows(class_index: Indices, classes: list[int], rng: np.random.Generator) -> Indices:
    """Return the rows of some classes, a random part of a large class."""
    own = [np.flatnonzero(class_index == one) for one in classes]
    kept = [
        rows
        if len(rows) <= DEFAULTS.borders.max_rows_per_class
        else rng.choice(rows, DEFAULTS.borders.max_rows_per_class, replace=False)
        for rows in own
    ]
    return np.concatenate(kept)


def _one_sided(source: Source, rows: Array, data: FitData) -> BorderMap:
    """Return the map of a border that no two rows lie across: the middle row's value everywhere."""
    if not len(rows):
        rows = data.rows
    middle = rows.mean(axis=0)
    value = float(np.median(source.decision(rows)))
    return BorderMap.constant(middle, value, data.preprocessing)


@dataclass(frozen=True, eq=False)
class Border:
    """A border of a scheme, and the classes on either side of it."""

    # The border.
    source: Source
    # Classes whose rows have decision values below zero, and above.
    below: list[int]
    above: list[int]

    @property
    def classes(self) -> list[int]:
        """All its classes."""
        return sorted(self.below + self.above)

    def parts(self, first: Indices, second: Indices) -> NDArray[np.bool_]:
        """Tell which pairs of classes it lies between."""
        is_below, is_above = np.isin(first, self.below), np.isin(first, self.above)
        return (is_below & np.isin(second, self.above)) | (is_above & np.isin(second, self.below))


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
    """Return the placement whose maps put most rows on the side where the source has them.

    A few borders are mapped with each, those that most of the doubtful rows lie about. Of those
    placements that are within the standard error of the best the simplest is taken.
    """
    rng = np.random.default_rng(
        np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, PLACEMENT_SEED_KEY))
    )
    validation, rows = augmented_validation_set(source, data, validation)
    misses = np.zeros((len(PLACEMENTS), len(rows)))
    # As for the maps themselves: what is found must not depend on the number of threads.
    with threadpool_limits(limits=1, user_api="blas"):
        tried = _most_ambiguous(borders, source, validation, rows)
        for border in tried:
            some = _draw_judges(validation, border, rng)
            n_draws = DEFAULTS.borders.n_trial_borders // len(tried)
            missed = _try_placements(border, data, options, rows[some], n_draws, rng)
            misses[:, some] += validation.weights[some] * missed
    chosen = first_within_error(misses)
    if verbose:
        _log(misses, validation.weights, len(tried), chosen)
    return PLACEMENTS[chosen]


def first_within_error(misses: Array) -> int:
    """Return the first that misses no more than the least, by the error of the difference.

    Examples
    --------
    >>> first_within_error(np.array([[1, 1, 1, 1, 0], [0, 0, 0, 1, 0]]))
    1
    >>> first_within_error(np.array([[1, 0, 0, 1, 0], [0, 0, 0, 1, 0]]))
    0
    """
    more = misses - misses[misses.sum(axis=1).argmin()]
    errors = np.sqrt(np.square(more).sum(axis=1))
    # A single row is as much as its error, but for rounding.
    return int(np.argmax(more.sum(axis=1) <= errors * (1 + 1e-9)))


def _most_ambiguous(
    borders: list[Border], source: MulticlassSource, validation: ValidationSet, rows: Array
) -> list[Border]:
    """Return the borders between the two likeliest classes of most rows that are in doubt."""
    if len(borders) <= DEFAULTS.borders.n_trial_borders:
        return borders
    step = -(-len(rows) // DEFAULTS.borders.max_trial_rows)
    scores = source.logits(rows[::step])
    order = np.argsort(scores, axis=1)
    best, next_best = order[:, -1], order[:, -2]
    lines = np.arange(len(scores))
    ambiguity = validation.weights[::step] * np.exp(scores[lines, next_best] - scores[lines, best])
    weights = np.array([ambiguity @ border.parts(best, next_best) for border in borders])
    return [
        borders[place]
        for place in np.argsort(-weights, kind="stable")[: DEFAULTS.borders.n_trial_borders]
    ]


def _draw_judges(validation: ValidationSet, border: Border, rng: np.random.Generator) -> Indices:
    """Return the rows of a border's classes, a random part of many."""
    own = np.flatnonzero(np.isin(validation.class_index, border.classes))
    return (
        own
        if len(own) <= DEFAULTS.borders.max_trial_rows
        else rng.choice(own, DEFAULTS.borders.max_trial_rows, replace=False)
    )


def _try_placements(
    border: Border,
    data: FitData,
    options: FitOptions,
    validation_rows: Array,
    n_draws: int,
    rng: np.random.Generator,
) -> Array:
    """Return how often maps of each placement put each row on the wrong side of a border."""
    source = shift_border(border.source, options)
    sides = split_sides(source, data.rows[draw_rows(data.class_index, border.classes, rng)])
    n_points = min(options.n_borders or DEFAULTS.borders.n_points, DEFAULTS.borders.n_trial_points)
    missed = np.zeros((len(PLACEMENTS), len(validation_rows)))
    if not (len(sides.below) and len(sides.above) and len(validation_rows)):
        return missed
    is_above = source.decision(validation_rows) > 0
    tried = [place for place in range(len(PLACEMENTS)) for _ in range(n_draws)]
    pairs = [place_pairs(sides, n_points, placement=PLACEMENTS[one], rng=rng) for one in tried]
    below, above = np.concatenate(pairs).T
    # All lines at once: one call asks the source as often as several would, with less around it.
    points, normals = find_borders(
        source, sides.below[below], sides.above[above], tolerance=options.tolerance
    )
    ends = np.cumsum([len(some) for some in pairs])[:-1]
    for place, own, across in zip(
        tried, np.split(points, ends), np.split(normals, ends), strict=True
    ):
        one = BorderMap.from_borders(points=own, normals=across, blend=options.blend or 1)
        missed[place] += ((one.decide(validation_rows)[:, 0] > 0) != is_above) / n_draws
    return missed


def _log(misses: Array, weights: Array, n_tried: int, chosen: int) -> None:
    """Say how each placement did, and which is taken."""
    judged = max(float(n_tried * weights.sum()), np.finfo(float).tiny)
    for place, name in enumerate(PLACEMENTS):
        share, mark = misses[place].sum() / judged, ", chosen" if place == chosen else ""
        print(f"placement {name}: {share:.2%} of rows on the wrong side of a border{mark}")


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
        found = _spread(
            sides,
            _draw_near(
                sides, DEFAULTS.borders.pairs_drawn_per_pair * n_pairs, rng, by_ambiguity=True
            ),
            n_pairs,
        )
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
    sides: Sides, n_drawn: int, rng: np.random.Generator, *, by_ambiguity: bool = False
) -> NDArray[np.int64]:
    """Pair so many rows of either side with near ones of the other, in random order.

    They are any rows, or more of those near the border.
    """
    values = sides.below_values, sides.above_values
    below, above = map(_doubt, values) if by_ambiguity else (None, None)
    from_below = _near_pairs(sides.below, sides.above, n_drawn, rng, below)
    from_above = _near_pairs(sides.above, sides.below, n_drawn, rng, above)[:, ::-1]
    pairs = np.concatenate([from_below, from_above])
    numbers = np.unique(pairs[:, 0] * len(sides.above) + pairs[:, 1])
    return rng.permutation(numbers)


def _doubt(values: Array) -> Array:
    """Return how likely each row is drawn: the smaller its decision value, the likelier."""
    ambiguity = 1.0 - np.abs(np.tanh(values)) + DEFAULTS.borders.unambiguous_weight
    return ambiguity / ambiguity.sum()


def _near_pairs(
    own: Array, other: Array, n_wanted: int, rng: np.random.Generator, chances: Array | None
) -> NDArray[np.int64]:
    """Pair rows of one side, each with one of its near rows on the other side."""
    is_repeated = chances is not None or n_wanted > len(own)
    anchors = rng.choice(len(own), size=n_wanted, replace=is_repeated, p=chances)
    searched = _some_rows(len(other), rng)
    n_near = min(DEFAULTS.borders.n_neighbors, len(searched))
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
    crossings = _linear_crossings(sides, _rows_of(pairs, len(sides.above)))
    centers = crossings[:n_wanted].copy()
    for _ in range(DEFAULTS.borders.kmeans_steps):
        cells, _ = _nearest(centers, crossings)
        counts = np.bincount(cells, minlength=len(centers))[:, None]
        sums = np.zeros_like(centers)
        np.add.at(sums, cells, crossings)
        centers = np.where(counts > 0, sums / np.maximum(counts, 1), centers)
    cells, distances = _nearest(centers, crossings)
    order = np.lexsort((distances, cells))
    return pairs[order[np.unique(cells[order], return_index=True)[1]]]


def _linear_crossings(sides: Sides, pairs: NDArray[np.int64]) -> Array:
    """Return about where the line of each pair crosses the border, were its values linear."""
    below, above = pairs.T
    start, end = sides.below_values[below], sides.above_values[above]
    share = (start / (start - end))[:, None]
    return (1 - share) * sides.below[below] + share * sides.above[above]


def _nearest(centers: Array, rows: Array) -> tuple[Indices, Array]:
    """Return the number of the middle nearest to each row, and half its squared distance."""
    cells, distances = np.empty(len(rows), dtype=np.intp), 0.5 * np.square(rows).sum(axis=1)
    halves = 0.5 * np.square(centers).sum(axis=1)
    n_block = max(1, MAX_DISTANCES // len(centers))
    for start in range(0, len(rows), n_block):
        some = slice(start, start + n_block)
        lengths = halves - rows[some] @ centers.T
        cells[some] = np.argmin(lengths, axis=1)
        distances[some] += lengths.min(axis=1)
    return cells, distances


def _some_rows(n_rows: int, rng: np.random.Generator) -> Indices:
    """Return all row numbers, or a random part of many."""
    if n_rows <= DEFAULTS.borders.max_neighbor_rows:
        return np.arange(n_rows)
    return rng.choice(n_rows, size=DEFAULTS.borders.max_neighbor_rows, replace=False)


class Borders(NamedTuple):
    """Border points and the gradient of the decision value at each."""

    points: Array
    normals: Array


def find_borders(source: Source, below: Array, above: Array, *, tolerance: float) -> Borders:
    """Find a border point on the line between each two rows.

    Newton's method where it stays inside its bracket and gains on it, halving where not, so
    that it is quick on a smooth decision and cannot diverge on any. A line ends when its
    decision value is below the tolerance; a source that jumps across zero never gets there,
    and its line ends when the bracket has shrunk to nothing.
    """
    span = above - below
    low, high = np.zeros(len(span)), np.ones(len(span))
    place = np.full(len(span), 0.5)
    normals = np.empty_like(span)
    open_lines = np.arange(len(span))
    for step in range(MAX_STEPS):
        rows = below[open_lines] + place[open_lines, None] * span[open_lines]
        value, gradient = source.decision_and_gradient(rows)
        normals[open_lines] = gradient
        is_above = value > 0
        high[open_lines[is_above]] = place[open_lines[is_above]]
        low[open_lines[~is_above]] = place[open_lines[~is_above]]
        is_open = (np.abs(value) >= tolerance) & _can_shrink(low[open_lines], high[open_lines])
        slope = np.einsum("ij,ij->i", gradient, span[open_lines])
        open_lines, value, slope = open_lines[is_open], value[is_open], slope[is_open]
        if not len(open_lines):
            break
        place[open_lines] = _next_place(
            place[open_lines], low[open_lines], high[open_lines], value, slope, step
        )
    points = below + place[:, None] * span
    is_discontinuous = ~_can_shrink(low, high)
    return Borders(
        points, _replace_invalid_gradients(source, normals, is_discontinuous, below, above)
    )


def _can_shrink(low: Array, high: Array) -> NDArray[np.bool_]:
    """Tell which brackets still have a number strictly between their ends."""
    middle = 0.5 * (low + high)
    return (low < middle) & (middle < high)


def _next_place(
    place: Array, low: Array, high: Array, value: Array, slope: Array, step: int
) -> Array:
    """Take Newton's step where it stays inside the bracket, every third time the middle."""
    middle = 0.5 * (low + high)
    if step % 3 == 2:
        return middle
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        newton = place - value / slope
    return np.where((newton > low) & (newton < high), newton, middle)


def _replace_invalid_gradients(
    source: Source, normals: Array, is_discontinuous: NDArray[np.bool_], below: Array, above: Array
) -> Array:
    """Give a border point without a gradient to trust the direction and the rise of its own line.

    A piecewise-constant source (nearest neighbours, trees) has no gradient where it jumps, or one
    taken so widely that it may point back across the border.
    """
    span = above - below
    is_backward = is_discontinuous & (np.einsum("ij,ij->i", normals, span) <= 0)
    is_bad = is_backward | ~np.any(normals, axis=1) | ~np.all(np.isfinite(normals), axis=1)
    if not is_bad.any():
        return normals
    rise = source.decision(above[is_bad]) - source.decision(below[is_bad])
    mended = normals.copy()
    lengths = np.einsum("ij,ij->i", span[is_bad], span[is_bad])
    mended[is_bad] = span[is_bad] * (rise / lengths)[:, None]
    return mended
