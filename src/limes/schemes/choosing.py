"""How many points: the cheapest map whose agreement with the source is as good as the best."""

from dataclasses import dataclass

import numpy as np

from limes._typing import Array, Codes
from limes.affine import AffineMap
from limes.border_map import BorderMap
from limes.refine import Lessons, fit_map, fit_sharpness, prepare_lessons
from limes.schemes.fitting import Ground, Settings
from limes.schemes.pairwise import PairwiseScheme
from limes.schemes.protocol import Scheme
from limes.schemes.shared import SharedScheme
from limes.sources.protocol import MulticlassSource

# Numbers of points that are tried, the cheapest first.
LADDER = (1, 8, 32, 128, 512)
DEFAULT_BLEND = 4
# Give up after this many steps up the ladder that bring no better agreement.
PATIENCE = 2
# Rows on which probabilities are compared with the source's.
MIN_ASIDE = 500


@dataclass(frozen=True)
class Trial:
    """One line of the trade-off: what a map costs, and how well it agrees with the source.

    Parameters
    ----------
    scheme : str
        How the maps are joined.
    n_borders : int
        Points in all.
    blend : int
        Number of nearest points whose functions are averaged.
    cost : int
        Multiply-adds a row.
    agreement : float
        Share of rows kept aside that get the source's label.
    error : float
        Standard error of the agreement.
    is_chosen : bool
        Whether this is the one.
    """

    scheme: str
    n_borders: int
    blend: int
    cost: int
    agreement: float
    error: float
    is_chosen: bool = False


def fit_shared(
    source: MulticlassSource,
    ground: Ground,
    settings: Settings,
    *,
    seed: np.random.SeedSequence,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> tuple[Scheme, list[Trial]]:
    """Fit one map for all classes, trying numbers of points unless one is given.

    Parameters
    ----------
    source : MulticlassSource
        The classifier being replaced.
    ground : Ground
        Rows to learn from, and rows kept aside.
    settings : Settings
        Number of points and blend, where they are given.
    seed : SeedSequence
        All draws come from it.
    n_jobs : int or None, default=None
        Not used: fitting is quick, and the same whatever it is.
    verbose : int, default=0
        Above zero, tell each trial.

    Returns
    -------
    scheme : Scheme
        The chosen one.
    trials : list of Trial
        All that were tried, the cheapest first.
    """
    lesson_seed, *fit_seeds = seed.spawn(1 + len(LADDER))
    lessons = prepare_lessons(source, ground.rows, rng=np.random.default_rng(lesson_seed))
    judges, wanted = _judges(source, ground)
    n_classes = len(source.classes)
    sizes = LADDER if settings.n_borders is None else (settings.n_borders,)
    tried: list[tuple[Scheme, Trial]] = []
    for n_points, child in zip(sizes, fit_seeds, strict=False):
        if n_points > len(ground.rows):
            break
        blend = settings.blend or DEFAULT_BLEND
        one = _fit_one(source, ground, lessons, n_points, blend, child)
        codes = _join(one, n_classes, double=settings.double).classify(judges)
        scheme = _join(one.after(ground.before), n_classes, double=settings.double)
        tried.append((scheme, judge(scheme, codes, wanted)))
        if verbose:
            print(tried[-1][1])
        if is_settled([trial for _, trial in tried]):
            break
    chosen = choose([trial for _, trial in tried])
    trials = [
        Trial(**{**vars(trial), "is_chosen": place == chosen})
        for place, (_, trial) in enumerate(tried)
    ]
    return tried[chosen][0], trials


def _judges(source: MulticlassSource, ground: Ground) -> tuple[Array, Codes]:
    """Return rows to compare trials on: those kept aside, and where they are few all real rows.

    A trial has seen those among many rows that were made from them, which is a small advantage to
    all trials alike; too few rows would be a large error.
    """
    if len(ground.aside) >= MIN_ASIDE:
        return ground.aside, ground.aside_codes
    rows = np.concatenate([ground.aside, ground.rows])
    return rows, source.codes(rows)


def judge(scheme: Scheme, codes: Codes, wanted: Codes) -> Trial:
    """Measure a scheme's agreement with the source on the rows kept aside."""
    agreement, error = agreement_of(codes, wanted)
    blend = scheme.maps[0].blend
    return Trial(scheme.name, scheme.n_borders, blend, scheme.cost, agreement, error)


def agreement_of(codes: Codes, wanted: Codes) -> tuple[float, float]:
    """Return the share of equal class numbers, and its standard error.

    Parameters
    ----------
    codes, wanted : ndarray of shape (n_rows,)
        Class numbers of the fast model and of the source.

    Returns
    -------
    agreement : float
        nan where there are no rows.
    error : float
        The deviation of a share after hits and misses, with half of each known beforehand.
    """
    n_rows, hits = len(wanted), int(np.sum(codes == wanted))
    a, b = hits + 0.5, n_rows - hits + 0.5
    error = float(np.sqrt(a * b / (a + b + 1)) / (a + b))
    return (hits / n_rows if n_rows else float("nan")), error


def is_settled(trials: list[Trial]) -> bool:
    """Tell whether more points have stopped to help."""
    if trials[-1].agreement == 1.0:
        return True
    best = max(range(len(trials)), key=lambda place: trials[place].agreement)
    return len(trials) - 1 - best >= PATIENCE


def choose(trials: list[Trial]) -> int:
    """Return the number of the cheapest trial within a standard error of the best."""
    best = max(trials, key=lambda trial: np.nan_to_num(trial.agreement))
    good = [
        place
        for place, trial in enumerate(trials)
        if not trial.agreement < best.agreement - best.error
    ]
    return min(good, key=lambda place: trials[place].cost)


def _fit_one(
    source: MulticlassSource,
    ground: Ground,
    lessons: Lessons,
    n_points: int,
    blend: int,
    seed: np.random.SeedSequence,
) -> BorderMap:
    """Fit a map of a given number of points, and make its probabilities the source's."""
    fitted = fit_map(lessons, n_points=n_points, blend=blend, rng=np.random.default_rng(seed))
    slopes, offsets = fitted.functions()
    components = lessons.components
    before = None if components is None else AffineMap(np.zeros(len(components)), components)
    plain = BorderMap(fitted.points, slopes.transpose(0, 2, 1), offsets, before, blend)
    some = ground.aside if len(ground.aside) >= MIN_ASIDE else ground.rows[:MIN_ASIDE]
    sharpness = fit_sharpness(plain.decide(some).astype(float), source.probabilities(some))
    # The value of a single border is half a logit.
    return plain.scaled(0.5 * sharpness if plain.n_outputs == 1 else sharpness)


def _join(one: BorderMap, n_classes: int, *, double: bool) -> Scheme:
    """Return the scheme of one map for all classes."""
    if n_classes == 2:
        return PairwiseScheme((one,), 2, double)
    return SharedScheme((one,), n_classes, double)
