"""How many points: the cheapest map whose agreement with the source is as good as the best."""

from dataclasses import dataclass, replace

import numpy as np

from limes._typing import Array, Codes
from limes.affine import AffineMap
from limes.border_map import BorderMap
from limes.refine import N_LOOKS, Lessons, fit_map, fit_sharpness, prepare_lessons
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
# Rows that the chosen map looks at while it is fitted: more than a trial, which is only compared.
LAST_LOOKS = 1_500_000
# Rows on which trials are compared, and probabilities with the source's.
MIN_ASIDE = 200


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
        scheme, trial = workshop.make(settings.n_borders, last_seed, n_looks=LAST_LOOKS)
        return scheme, [replace(trial, is_chosen=True)]
    trials = workshop.climb(seeds)
    chosen = choose(trials)
    scheme, last = workshop.make(trials[chosen].n_borders, last_seed, n_looks=LAST_LOOKS)
    trials[chosen] = replace(last, is_chosen=True)
    return scheme, trials


def choose(trials: list[Trial]) -> int:
    """Return the number of the cheapest trial within a standard error of the best.

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
        if trial.agreement >= best.agreement - best.error
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


class _Workshop:
    """Makes maps of one source, and judges them on the same rows."""

    def __init__(
        self, source: MulticlassSource, ground: Ground, lessons: Lessons, settings: Settings
    ) -> None:
        self.source, self.ground, self.lessons, self.settings = source, ground, lessons, settings
        self.judges, self.wanted = _judges(source, ground)
        self.probabilities = source.probabilities(self.judges)

    def climb(self, seeds: list[np.random.SeedSequence]) -> list[Trial]:
        """Try more and more points, until they stop to help."""
        trials: list[Trial] = []
        for n_points, seed in zip(LADDER, seeds, strict=True):
            if is_settled(trials) or n_points > len(self.ground.rows):
                break
            trials.append(self.make(n_points, seed)[1])
        return trials

    def make(
        self, n_points: int, seed: np.random.SeedSequence, *, n_looks: int = N_LOOKS
    ) -> tuple[Scheme, Trial]:
        """Fit a map, and measure its agreement with the source."""
        one = self._fit(n_points, np.random.default_rng(seed), n_looks)
        agreement, error = agreement_of(self._join(one).classify(self.judges), self.wanted)
        scheme = self._join(one.after(self.ground.before))
        return scheme, Trial(
            scheme.name, scheme.n_borders, one.blend, scheme.cost, agreement, error
        )

    def _fit(self, n_points: int, rng: np.random.Generator, n_looks: int) -> BorderMap:
        """Fit a map of a given number of points, and make its probabilities the source's."""
        blend = self.settings.blend or DEFAULT_BLEND
        fitted = fit_map(self.lessons, n_points=n_points, blend=blend, rng=rng, n_looks=n_looks)
        slopes, offsets = fitted.functions()
        before = None
        if fitted.components is not None:
            components = fitted.components.T.astype(float)
            before = AffineMap(np.zeros(len(components)), components)
        plain = BorderMap(
            fitted.points.astype(float), slopes.transpose(0, 2, 1), offsets, before, blend
        )
        logits = plain.decide(self.judges).astype(np.float64)
        sharpness = fit_sharpness(logits, self.probabilities)
        # The value of a single border is half a logit.
        return plain.scaled(0.5 * sharpness if plain.n_outputs == 1 else sharpness)

    def _join(self, one: BorderMap) -> Scheme:
        """Return the scheme of one map for all classes."""
        n_classes = len(self.source.classes)
        if n_classes == 2:
            return PairwiseScheme((one,), 2, self.settings.double)
        return SharedScheme((one,), n_classes, self.settings.double)


def _judges(source: MulticlassSource, ground: Ground) -> tuple[Array, Codes]:
    """Return rows to compare trials on: those kept aside, and where they are few all real rows.

    A trial has seen those among many rows that were made from them, which is a small advantage to
    all trials alike; too few rows would be a large error.
    """
    if len(ground.aside) >= MIN_ASIDE:
        return ground.aside, ground.aside_codes
    rows = np.concatenate([ground.aside, ground.rows])
    return rows, source.codes(rows)
