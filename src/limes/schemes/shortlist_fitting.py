"""From a source and rows to a shortlist: one map that names classes, and one for each pair."""

from dataclasses import replace

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from limes._typing import Array, Codes
from limes.affine import to_dense
from limes.border_map import BorderMap
from limes.coupling import class_pairs
from limes.refine import Lessons, fit_map, fit_sharpness, prepare_lessons
from limes.schemes.fitting import Ground, Settings, enough_judges, fit_pairwise
from limes.schemes.pairwise import PairwiseScheme
from limes.schemes.protocol import Scheme
from limes.schemes.shortlist import ShortlistScheme
from limes.schemes.small_maps import DEFAULT_BLEND, Schoolroom, projected, to_map
from limes.sources.probability import FLOOR
from limes.sources.protocol import MulticlassSource
from limes.sources.svm import SvmSource

# Points of the map that names classes, and of a pair's map that is fitted.
N_SHARED = 128
N_PAIR_POINTS = 32
# The rows nearest to being asked teach a pair, and its fit looks at so many in all.
PAIR_ROWS = 4000
PAIR_LOOKS = 80_000
# Of the rows asked about, this share has the source's own class among those near enough to be
# named: they are more doubtful than rows to come.
NEAR_SHARE = 0.9995
# A class at least a third as likely as the best is always near enough.
MIN_REACH = 1.0


def fit_shortlist(
    source: MulticlassSource,
    ground: Ground,
    settings: Settings,
    *,
    refine: bool = True,
    seed: np.random.SeedSequence,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Scheme:
    """Fit one map for all classes, and map the border of each pair; two classes have one border."""
    if len(source.classes) == 2 and (not refine or settings.level):
        return fit_pairwise(source, ground, settings, seed=seed, n_jobs=n_jobs, verbose=verbose)
    lesson_seed, shared_seed, pair_seed = seed.spawn(3)
    settings = replace(settings, blend=settings.blend or DEFAULT_BLEND)
    lessons = prepare_lessons(source, ground.rows, rng=np.random.default_rng(lesson_seed))
    shared = _fit_shared(source, ground, lessons, settings, np.random.default_rng(shared_seed))
    if len(source.classes) == 2:
        return PairwiseScheme((shared.after(ground.before),), 2, settings.double)
    if refine:
        pairs = _fit_pairs(source, lessons, shared, settings, pair_seed, n_jobs, verbose)
    else:
        inner = replace(ground, before=None)
        found = fit_pairwise(
            source, inner, settings, seed=pair_seed, n_jobs=n_jobs, verbose=verbose
        )
        pairs = [projected(one, shared.before) for one in found.maps]
    return _join(source, ground, lessons, (shared, *pairs), settings)


def _fit_shared(
    source: MulticlassSource,
    ground: Ground,
    lessons: Lessons,
    settings: Settings,
    rng: np.random.Generator,
) -> BorderMap:
    """Fit one map to all classes, and make its probabilities the source's."""
    n_points = settings.n_borders if lessons.targets.shape[1] == 1 else N_SHARED
    n_points = min(n_points or N_SHARED, len(ground.rows))
    blend = settings.blend or DEFAULT_BLEND
    fitted = to_map(fit_map(lessons, n_points=n_points, blend=blend, rng=rng), blend)
    judges, rows = enough_judges(source, ground)
    logits = fitted.decide(rows).astype(np.float64)
    sharpness = fit_sharpness(logits, source.forecasts(rows), judges.weights)
    # The value of a single border is half a logit.
    return fitted.scaled(0.5 * sharpness if fitted.n_outputs == 1 else sharpness)


def _fit_pairs(
    source: MulticlassSource,
    lessons: Lessons,
    shared: BorderMap,
    settings: Settings,
    seed: np.random.SeedSequence,
    n_jobs: int | None,
    verbose: int,
) -> list[BorderMap]:
    """Fit a map to each pair, on the rows that are nearest to asking it."""
    room = Schoolroom(
        lessons.rows,
        None if shared.before is None else to_dense(shared.before.matrix),
        settings.n_borders or N_PAIR_POINTS,
        settings.blend or DEFAULT_BLEND,
        PAIR_LOOKS,
    )
    scores = shared.decide(lessons.rows).astype(np.float64)
    behind = scores.max(axis=1, keepdims=True) - scores

    def fit_one(pair: tuple[int, int], child: np.random.SeedSequence) -> BorderMap:
        some = _nearest_rows(np.maximum(behind[:, pair[0]], behind[:, pair[1]]))
        decisions = _pair_decisions(source, lessons, some, pair)
        return room.fit(some, decisions, np.random.default_rng(child))

    pairs = class_pairs(len(source.classes))
    # One thread of BLAS a pair: they would fight over the same processors.
    with threadpool_limits(limits=1, user_api="blas"):
        return list(
            Parallel(n_jobs=n_jobs, prefer="threads", verbose=verbose)(
                delayed(fit_one)(pair, child)
                for pair, child in zip(pairs, seed.spawn(len(pairs)), strict=True)
            )
        )


def _nearest_rows(behind: Array) -> Codes:
    """Return the rows of which both classes of a pair are least behind the best."""
    if len(behind) <= PAIR_ROWS:
        return np.arange(len(behind))
    return np.sort(np.argpartition(behind, PAIR_ROWS)[:PAIR_ROWS])


def _pair_decisions(
    source: MulticlassSource, lessons: Lessons, some: Codes, pair: tuple[int, int]
) -> Array:
    """Return decision values of a pair; but for machines they are in the scores already."""
    if isinstance(source, SvmSource):
        return source.pair(*pair).decision(lessons.rows[some].astype(np.float64))
    chances = np.maximum(lessons.targets[some][:, pair].astype(np.float64), FLOOR)
    return 0.5 * np.log(chances[:, 1] / chances[:, 0])


def _join(
    source: MulticlassSource,
    ground: Ground,
    lessons: Lessons,
    maps: tuple[BorderMap, ...],
    settings: Settings,
) -> ShortlistScheme:
    """Return the scheme, with as many classes named as the rows asked about say."""
    scores = maps[0].decide(lessons.rows)
    own = scores[np.arange(len(scores)), lessons.targets.argmax(axis=1)]
    reach = max(MIN_REACH, float(np.quantile(scores.max(axis=1) - own, NEAR_SHARE)))
    first = maps[0].after(ground.before)
    # The same step for all maps, not one that is equal.
    moved = [replace(one.after(ground.before), before=first.before) for one in maps[1:]]
    scheme = ShortlistScheme(
        (first, *moved),
        len(source.classes),
        settings.double,
        reach=reach,
        by_vote=source.decides_by_vote,
    )
    return replace(scheme, n_asked=_count_asked(scheme, scores))


def _count_asked(scheme: ShortlistScheme, scores: NDArray[np.floating]) -> float:
    """Return how many pairs rows ask on average."""
    return float(np.sum(scheme.find_pairs(scores)[1] >= 0) / len(scores))
