"""How many points: the cheapest map whose agreement with the source is as good as the best."""

from dataclasses import dataclass, replace

import numpy as np

from limes.border_map import BorderMap
from limes.refine import (
    LAST_SECONDS,
    TRIAL_SECONDS,
    Lessons,
    fit_map,
    fit_sharpness,
    prepare_lessons,
)
from limes.schemes.fitting import Ground, Settings, enough_judges
from limes.schemes.pairwise import PairwiseScheme
from limes.schemes.protocol import Scheme
from limes.schemes.shared import SharedScheme
from limes.schemes.small_maps import to_map
from limes.sources.protocol import MulticlassSource

# Numbers of points that are tried, the cheapest first.
LADDER = (1, 4, 16, 64, 256, 1024)
# Where rows are projected before the search, points cost little beside that, and learn slowly.
WIDE_LADDER = (1, 32, 128)
WIDE_SECONDS = 2 * TRIAL_SECONDS
# A map that is not this many times cheaper than its source is not worth trying.
MIN_GAIN = 10
DEFAULT_BLEND = 4
# Give up after this many steps up the ladder that bring no better agreement.
PATIENCE = 2


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

    Returns
    -------
    scheme : Scheme
        The chosen one.
    trials : list of Trial
        All that were tried, the cheapest first.
    """
    lesson_seed, last_seed, *seeds = seed.spawn(2 + len(LADDER))
    lessons = prepare_lessons(source, ground.rows, rng=np.random.default_rng(lesson_seed))
    workshop = _Workshop(source, ground, lessons, settings)
    if settings.n_borders is not None:
        scheme, trial = workshop.make(settings.n_borders, last_seed, seconds=LAST_SECONDS)
        return scheme, [replace(trial, is_chosen=True)]
    trials = workshop.climb(seeds)
    chosen = choose(trials)
    scheme, last = workshop.make(trials[chosen].n_borders, last_seed, seconds=LAST_SECONDS)
    trials[chosen] = replace(last, is_chosen=True)
    return scheme, trials


def choose(trials: list[Trial]) -> int:
    """Return the number of the cheapest trial within a standard error of the best.

    The error is that of a difference: the best of several is partly the luckiest.

    Parameters
    ----------
    trials : list of Trial
        At least one.

    Returns
    -------
    int
        Place in the list.
    """
    best = max(trials, key=lambda trial: trial.agreement)
    good = [
        place
        for place, trial in enumerate(trials)
        if trial.agreement >= best.agreement - np.sqrt(2) * best.error
    ]
    return min(good, key=lambda place: trials[place].cost)


def is_settled(trials: list[Trial]) -> bool:
    """Tell whether more points have stopped to help.

    Parameters
    ----------
    trials : list of Trial
        In the order in which they were made.

    Returns
    -------
    bool
        True where none of the last trials was better than one before them, or where there is
        nothing to gain.
    """
    if not trials:
        return False
    best = max(range(len(trials)), key=lambda place: trials[place].agreement)
    return trials[best].agreement == 1.0 or len(trials) - 1 - best >= PATIENCE


class _Workshop:
    """Makes maps of one source, and judges them on the same rows."""

    def __init__(
        self, source: MulticlassSource, ground: Ground, lessons: Lessons, settings: Settings
    ) -> None:
        self.source, self.ground, self.lessons, self.settings = source, ground, lessons, settings
        self.judges, self.judging = enough_judges(source, ground)
        self.probabilities = source.probabilities(self.judging)

    def climb(self, seeds: list[np.random.SeedSequence]) -> list[Trial]:
        """Try more and more points, until they stop to help."""
        trials: list[Trial] = []
        is_wide = self.lessons.components is not None
        seconds = WIDE_SECONDS if is_wide else TRIAL_SECONDS
        ladder = WIDE_LADDER if is_wide else LADDER
        for n_points, seed in zip(ladder, seeds, strict=False):
            is_dear = n_points * self.lessons.search.shape[1] * MIN_GAIN > self.source.row_cost
            if is_settled(trials) or n_points > len(self.ground.rows) or (trials and is_dear):
                break
            trials.append(self.make(n_points, seed, seconds=seconds)[1])
        return trials

    def make(
        self, n_points: int, seed: np.random.SeedSequence, *, seconds: float = TRIAL_SECONDS
    ) -> tuple[Scheme, Trial]:
        """Fit a map, and measure its agreement with the source."""
        one = self._fit(n_points, np.random.default_rng(seed), seconds)
        agreement, error = self.judges.agreement(self._join(one).classify(self.judging))
        scheme = self._join(one.after(self.ground.before))
        return scheme, Trial(
            scheme.name, scheme.n_borders, one.blend, scheme.cost, agreement, error
        )

    def _fit(self, n_points: int, rng: np.random.Generator, seconds: float) -> BorderMap:
        """Fit a map of a given number of points, and make its probabilities the source's."""
        blend = self.settings.blend or DEFAULT_BLEND
        fitted = fit_map(self.lessons, n_points=n_points, blend=blend, rng=rng, seconds=seconds)
        plain = to_map(fitted, blend)
        logits = plain.decide(self.judging).astype(np.float64)
        sharpness = fit_sharpness(logits, self.probabilities, self.judges.weights)
        # The value of a single border is half a logit.
        return plain.scaled(0.5 * sharpness if plain.n_outputs == 1 else sharpness)

    def _join(self, one: BorderMap) -> Scheme:
        """Return the scheme of one map for all classes."""
        n_classes = len(self.source.classes)
        if n_classes == 2:
            return PairwiseScheme((one,), 2, self.settings.double)
        return SharedScheme((one,), n_classes, self.settings.double)
