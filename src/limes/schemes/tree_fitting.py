"""From a source and rows to a tree of classes with a border map at each fork."""

from dataclasses import replace

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from threadpoolctl import threadpool_limits

from limes._typing import Array, Codes
from limes.border_map import BorderMap
from limes.refine import Lessons, prepare_lessons
from limes.schemes.fitting import Ground, Settings, enough_judges, map_border
from limes.schemes.grouping import GroupBorder, group_classes, split_groups
from limes.schemes.protocol import Scheme
from limes.schemes.shortlist_fitting import fit_shortlist
from limes.schemes.small_maps import DEFAULT_BLEND, Schoolroom
from limes.schemes.tree import TreeScheme
from limes.sources.probability import FLOOR
from limes.sources.protocol import MulticlassSource

# Points of a fork's map that is fitted.
N_FORK_POINTS = 128
# The fit of a fork looks at each of its rows so often, and at least at so many rows.
LOOKS_A_ROW = 15
MIN_LOOKS = 80_000


def fit_tree(
    source: MulticlassSource,
    ground: Ground,
    settings: Settings,
    *,
    refine: bool = True,
    seed: np.random.SeedSequence,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Scheme:
    """Group the classes, and map the border between the two groups at each fork."""
    n_classes = len(source.classes)
    if n_classes == 2:
        return fit_shortlist(
            source, ground, settings, refine=refine, seed=seed, n_jobs=n_jobs, verbose=verbose
        )
    children = group_classes(ground.rows, ground.codes, n_classes)
    find = _fit_forks if refine else _map_forks
    maps = find(source, ground, settings, children, seed, n_jobs, verbose)
    scheme = TreeScheme(tuple(maps), n_classes, settings.double, children)
    if refine:
        scheme = _sharpen(source, ground, scheme)
    first = scheme.maps[0].after(ground.before)
    # The same step for all maps, not one that is equal.
    moved = [replace(one.after(ground.before), before=first.before) for one in scheme.maps]
    return replace(scheme, maps=tuple(moved))


def _map_forks(
    source: MulticlassSource,
    ground: Ground,
    settings: Settings,
    children: NDArray[np.int64],
    seed: np.random.SeedSequence,
    n_jobs: int | None,
    verbose: int,
) -> list[BorderMap]:
    """Search for points on the border of each fork, in the space of the source."""
    groups, inner = split_groups(children), replace(ground, before=None)
    with threadpool_limits(limits=1, user_api="blas"):
        found = Parallel(n_jobs=n_jobs, prefer="threads", verbose=verbose)(
            delayed(map_border)(
                GroupBorder(source, *both),
                both[0] + both[1],
                inner,
                settings,
                np.random.default_rng(child),
            )
            for both, child in zip(groups, seed.spawn(len(groups)), strict=True)
        )
    return list(found)


def _fit_forks(
    source: MulticlassSource,
    ground: Ground,
    settings: Settings,
    children: NDArray[np.int64],
    seed: np.random.SeedSequence,
    n_jobs: int | None,
    verbose: int,
) -> list[BorderMap]:
    """Fit a map to each fork, on the rows that come there."""
    lesson_seed, *seeds = seed.spawn(1 + len(children))
    lessons = prepare_lessons(source, ground.rows, rng=np.random.default_rng(lesson_seed))
    n_points = settings.n_borders or N_FORK_POINTS
    blend = settings.blend or DEFAULT_BLEND
    room = Schoolroom(lessons.rows, lessons.components, n_points, blend, MIN_LOOKS)

    def fit_one(both: tuple[list[int], list[int]], child: np.random.SeedSequence) -> BorderMap:
        some, decisions = _lesson_of(lessons, *both)
        own = replace(room, n_looks=max(MIN_LOOKS, LOOKS_A_ROW * len(some)))
        return own.fit(some, decisions, np.random.default_rng(child))

    # One thread of BLAS a fork: they would fight over the same processors.
    with threadpool_limits(limits=1, user_api="blas"):
        fitted = Parallel(n_jobs=n_jobs, prefer="threads", verbose=verbose)(
            delayed(fit_one)(both, child)
            for both, child in zip(split_groups(children), seeds, strict=True)
        )
    return list(fitted)


def _lesson_of(lessons: Lessons, first: list[int], second: list[int]) -> tuple[Codes, Array]:
    """Return the rows that come to a fork, and half the logarithm of the odds of its branches."""
    some = np.flatnonzero(np.isin(lessons.targets.argmax(axis=1), first + second))
    if not len(some):
        some = np.arange(len(lessons.targets))
    targets = np.maximum(lessons.targets[some].astype(np.float64), FLOOR)
    odds = targets[:, second].max(axis=1) / targets[:, first].max(axis=1)
    return some, 0.5 * np.log(odds)


def _sharpen(source: MulticlassSource, ground: Ground, scheme: TreeScheme) -> TreeScheme:
    """Scale all values by the factor that brings probabilities nearest to the source's."""
    judges, rows = enough_judges(source, ground)
    wanted, values = source.forecasts(rows), scheme.values(rows)

    def loss(log_factor: float) -> float:
        found = scheme.own_probabilities(np.exp(log_factor) * values)
        return float(-judges.weights @ np.sum(wanted * np.log(np.maximum(found, FLOOR)), axis=1))

    found = minimize_scalar(loss, bounds=(np.log(0.02), np.log(50)), method="bounded")
    factor = float(np.exp(found.x))
    return replace(scheme, maps=tuple(one.scaled(factor) for one in scheme.maps))
