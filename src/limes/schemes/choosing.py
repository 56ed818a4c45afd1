"""How many points: the cheapest map whose agreement with the source is as good as the best."""

import warnings
from dataclasses import dataclass, replace

import numpy as np

from limes.affine import AffineMap
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
from limes.schemes.small_maps import DEFAULT_BLEND, to_map
from limes.schemes.targets import sizes_within
from limes.sources.protocol import MulticlassSource

# Numbers of points that are tried, the cheapest first.
LADDER = (1, 4, 16, 64, 256, 1024)
# Where rows are projected before the search, points cost little beside that, and learn slowly.
WIDE_LADDER = (1, 32, 128)
WIDE_BLEND = 8
WIDE_SECONDS = 2 * TRIAL_SECONDS
# A map that is not this many times cheaper than its source is not worth trying.
MIN_GAIN = 10
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
    verbose : int, default=0
        Above zero, tell what is tried.

    Returns
    -------
    scheme : Scheme
        The chosen one.
    trials : list of Trial
        All that were tried, the cheapest first.
    """
    lesson_seed, last_seed, *seeds = seed.spawn(2 + len(LADDER))
    lessons = prepare_lessons(source, ground.rows, rng=np.random.default_rng(lesson_seed))
    workshop = _Workshop(source, ground, lessons, settings, verbose)
    if settings.n_borders is not None:
        scheme, trial = workshop.make(settings.n_borders, last_seed, seconds=LAST_SECONDS)
        return scheme, [replace(trial, is_chosen=True)]
    trials = workshop.climb(seeds)
    chosen = choose(trials, settings.targets.min_agreement)
    scheme, last = workshop.make(trials[chosen].n_borders, last_seed, seconds=LAST_SECONDS)
    trials[chosen] = replace(last, is_chosen=True)
    _warn_if_short(last, settings.targets.min_agreement)
    return scheme, trials


def choose(trials: list[Trial], min_agreement: float | None = None) -> int:
    """Return the number of the cheapest trial within a standard error of the best.

    The error is that of a difference: the best of several is partly the luckiest.

    Parameters
    ----------
    trials : list of Trial
        At least one.
    min_agreement : float or None, default=None
        Take the cheapest that agrees so well instead, or else the best.

    Returns
    -------
    int
        Place in the list.
    """
    best = max(trials, key=lambda trial: trial.agreement)
    wanted = best.agreement - np.sqrt(2) * best.error
    if min_agreement is not None:
        wanted = min(min_agreement, best.agreement)
    good = [place for place, trial in enumerate(trials) if trial.agreement >= wanted]
    return min(good, key=lambda place: trials[place].cost)


def is_settled(trials: list[Trial], min_agreement: float | None = None) -> bool:
    """Tell whether more points have stopped to help.

    Parameters
    ----------
    trials : list of Trial
        In the order in which they were made.
    min_agreement : float or None, default=None
        What would be enough.

    Returns
    -------
    bool
        True where none of the last trials was better than one before them, or where there is
        nothing to gain.
    """
    if not trials:
        return False
    best = max(range(len(trials)), key=lambda place: trials[place].agreement)
    enough = 1.0 if min_agreement is None else min_agreement
    return trials[best].agreement >= enough or len(trials) - 1 - best >= PATIENCE


class _Workshop:
    """Makes maps of one source, and judges them on the same rows."""

    def __init__(
        self,
        source: MulticlassSource,
        ground: Ground,
        lessons: Lessons,
        settings: Settings,
        verbose: int,
    ) -> None:
        self.source, self.ground, self.lessons, self.settings = source, ground, lessons, settings
        self.verbose = verbose
        self.judges, self.judging = enough_judges(source, ground)
        self.probabilities = source.probabilities(self.judging)

    def climb(self, seeds: list[np.random.SeedSequence]) -> list[Trial]:
        """Try more and more points, until they stop to help."""
        trials: list[Trial] = []
        targets = self.settings.targets
        seconds = WIDE_SECONDS if self.is_wide else TRIAL_SECONDS
        for n_points, seed in zip(self.sizes(), seeds, strict=False):
            if is_settled(trials, targets.min_agreement):
                break
            trials.append(self.make(n_points, seed, seconds=seconds)[1])
            self._tell(trials[-1])
        return trials

    def sizes(self) -> list[int]:
        """Return the numbers of points worth trying, ascending."""
        n_search, most = self.lessons.search.shape[1], len(self.ground.rows)
        if self.settings.targets.min_agreement is None:
            most = min(most, int(self.source.row_cost / (MIN_GAIN * n_search)))
        ladder = WIDE_LADDER if self.is_wide else LADDER
        sizes = [n_points for n_points in ladder if n_points <= max(most, 1)]
        raw = self.judges.rows if self.ground.before is None else self.ground.judges.rows
        return sizes_within(self.settings.targets, sizes, self._blank, raw)

    @property
    def is_wide(self) -> bool:
        """Whether rows are projected before the search."""
        return self.lessons.components is not None

    @property
    def blend(self) -> int:
        """How many points answer for a row: as many as were asked for, or as many as do well."""
        return self.settings.blend or (WIDE_BLEND if self.is_wide else DEFAULT_BLEND)

    def _blank(self, n_points: int) -> Scheme:
        """Return a scheme of the shape of one with so many points."""
        rng = np.random.default_rng(0)
        n_features, n_search = self.lessons.rows.shape[1], self.lessons.search.shape[1]
        before = None
        if self.is_wide and n_points > 1:
            before = AffineMap(np.zeros(n_features), rng.normal(size=(n_features, n_search)))
        n_outputs = self.lessons.targets.shape[1]
        one = BorderMap(
            rng.normal(size=(n_points, n_search if before else n_features)),
            rng.normal(size=(n_points, n_features, n_outputs)),
            np.zeros((n_points, n_outputs)),
            before,
            self.blend,
        )
        return self._join(one.after(self.ground.before))

    def _tell(self, trial: Trial) -> None:
        """Say how far it is, where that is asked for."""
        if self.verbose:
            print(
                f"{trial.n_borders} border points: {trial.cost} multiply-adds a row, "
                f"{trial.agreement:.2%} as the source"
            )

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
        fitted = fit_map(
            self.lessons, n_points=n_points, blend=self.blend, rng=rng, seconds=seconds
        )
        plain = to_map(fitted, self.blend)
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


def _warn_if_short(trial: Trial, min_agreement: float | None) -> None:
    """Say so where the agreement that was asked for is not reached."""
    if min_agreement is not None and trial.agreement < min_agreement:
        warnings.warn(
            f"min_agreement={min_agreement!r} is not reached: {trial.n_borders} border points "
            f"agree with the source on {trial.agreement:.2%} of rows (± {trial.error:.2%}).",
            stacklevel=2,
        )
