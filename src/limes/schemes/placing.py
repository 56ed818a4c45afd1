"""Between which rows to search: the placement whose maps agree best with the source."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from limes._typing import Array, Codes
from limes.border_map import BorderMap
from limes.coupling import class_pairs
from limes.placement import PLACEMENTS, place_pairs, split_sides
from limes.roots import find_borders
from limes.schemes.fitting import (
    DEFAULT_BORDERS,
    Ground,
    Settings,
    draw_rows,
    enough_judges,
    shift_border,
)
from limes.schemes.grouping import GroupBorder, group_classes, split_groups
from limes.schemes.judges import Judges
from limes.sources.protocol import MulticlassSource, Source

# So many maps of each placement are tried, of as many borders or, where there are fewer, of the
# same ones drawn again, and with so many points at most.
N_TRIED = 6
N_POINTS = 100
# A map is judged by so many rows at most.
MAX_JUDGES = 2000
# Trials draw from a child of the seed that no map draws from.
TRIAL_KEY = 2**31


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

    def parts(self, first: Codes, second: Codes) -> NDArray[np.bool_]:
        """Tell which pairs of classes it lies between."""
        is_below, is_above = np.isin(first, self.below), np.isin(first, self.above)
        return (is_below & np.isin(second, self.above)) | (is_above & np.isin(second, self.below))


def borders_of(scheme: str, source: MulticlassSource, ground: Ground) -> list[Border]:
    """Return the borders that the maps of a scheme are of."""
    n_classes = len(source.classes)
    if scheme == "one-vs-rest" and n_classes > 2:
        everyone = range(n_classes)
        return [
            Border(source.one_vs_rest(one), [other for other in everyone if other != one], [one])
            for one in everyone
        ]
    if scheme == "tree" and n_classes > 2:
        groups = split_groups(group_classes(ground.rows, ground.codes, n_classes))
        return [Border(GroupBorder(source, *both), *both) for both in groups]
    return [Border(source.pair(*pair), [pair[0]], [pair[1]]) for pair in class_pairs(n_classes)]


def choose_placement(
    borders: list[Border],
    source: MulticlassSource,
    ground: Ground,
    settings: Settings,
    *,
    seed: np.random.SeedSequence,
    verbose: int = 0,
) -> str:
    """Return the placement whose maps put most rows on the side where the source has them.

    A few borders are mapped with each, those that most of the doubtful rows lie about. Of those
    placements that are within the standard error of the best the simplest is taken.
    """
    rng = np.random.default_rng(
        np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, TRIAL_KEY))
    )
    judges, rows = enough_judges(source, ground)
    misses = np.zeros((len(PLACEMENTS), len(rows)))
    # As for the maps themselves: what is found must not depend on the number of threads.
    with threadpool_limits(limits=1, user_api="blas"):
        tried = _most_doubtful(borders, source, judges, rows)
        for border in tried:
            some = _draw_judges(judges, border, rng)
            n_draws = N_TRIED // len(tried)
            missed = _try_placements(border, ground, settings, rows[some], n_draws, rng)
            misses[:, some] += judges.weights[some] * missed
    chosen = simplest(misses)
    if verbose:
        _tell(misses, judges.weights, len(tried), chosen)
    return PLACEMENTS[chosen]


def simplest(misses: Array) -> int:
    """Return the first that misses no more than the least, by the error of the difference.

    Examples
    --------
    >>> simplest(np.array([[1, 1, 1, 1, 0], [0, 0, 0, 1, 0]]))
    1
    >>> simplest(np.array([[1, 0, 0, 1, 0], [0, 0, 0, 1, 0]]))
    0
    """
    more = misses - misses[misses.sum(axis=1).argmin()]
    errors = np.sqrt(np.square(more).sum(axis=1))
    # A single row is as much as its error, but for rounding.
    return int(np.argmax(more.sum(axis=1) <= errors * (1 + 1e-9)))


def _most_doubtful(
    borders: list[Border], source: MulticlassSource, judges: Judges, rows: Array
) -> list[Border]:
    """Return the borders between the two likeliest classes of most rows that are in doubt."""
    if len(borders) <= N_TRIED:
        return borders
    step = -(-len(rows) // MAX_JUDGES)
    scores = source.scores(rows[::step])
    order = np.argsort(scores, axis=1)
    best, next_best = order[:, -1], order[:, -2]
    lines = np.arange(len(scores))
    doubt = judges.weights[::step] * np.exp(scores[lines, next_best] - scores[lines, best])
    weights = np.array([doubt @ border.parts(best, next_best) for border in borders])
    return [borders[place] for place in np.argsort(-weights, kind="stable")[:N_TRIED]]


def _draw_judges(judges: Judges, border: Border, rng: np.random.Generator) -> Codes:
    """Return the rows of a border's classes, a random part of many."""
    own = np.flatnonzero(np.isin(judges.codes, border.classes))
    return own if len(own) <= MAX_JUDGES else rng.choice(own, MAX_JUDGES, replace=False)


def _try_placements(
    border: Border,
    ground: Ground,
    settings: Settings,
    judging: Array,
    n_draws: int,
    rng: np.random.Generator,
) -> Array:
    """Return how often maps of each placement put each row on the wrong side of a border."""
    source = shift_border(border.source, settings)
    sides = split_sides(source, ground.rows[draw_rows(ground.codes, border.classes, rng)])
    n_points = min(settings.n_borders or DEFAULT_BORDERS, N_POINTS)
    missed = np.zeros((len(PLACEMENTS), len(judging)))
    if not (len(sides.below) and len(sides.above) and len(judging)):
        return missed
    is_above = source.decision(judging) > 0
    tried = [place for place in range(len(PLACEMENTS)) for _ in range(n_draws)]
    pairs = [place_pairs(sides, n_points, placement=PLACEMENTS[one], rng=rng) for one in tried]
    below, above = np.concatenate(pairs).T
    # All lines at once: one call asks the source as often as several would, with less around it.
    points, normals = find_borders(
        source, sides.below[below], sides.above[above], tolerance=settings.tolerance
    )
    ends = np.cumsum([len(some) for some in pairs])[:-1]
    for place, own, across in zip(
        tried, np.split(points, ends), np.split(normals, ends), strict=True
    ):
        one = BorderMap.from_borders(points=own, normals=across, blend=settings.blend or 1)
        missed[place] += ((one.decide(judging)[:, 0] > 0) != is_above) / n_draws
    return missed


def _tell(misses: Array, weights: Array, n_tried: int, chosen: int) -> None:
    """Say how each placement did, and which is taken."""
    judged = max(float(n_tried * weights.sum()), np.finfo(float).tiny)
    for place, name in enumerate(PLACEMENTS):
        share, mark = misses[place].sum() / judged, ", chosen" if place == chosen else ""
        print(f"placement {name}: {share:.2%} of rows on the wrong side of a border{mark}")
