"""How many points: more and more, until a map is as good as its source or gets no better."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from limes._typing import Array, Codes
from limes.affine import AffineMap
from limes.border_map import BorderMap
from limes.refine import (
    LAST_SECONDS,
    TRIAL_LOOKS,
    TRIAL_SECONDS,
    Lessons,
    fit_map,
    fit_sharpness,
    prepare_lessons,
)
from limes.schemes.choosing import Trial, choose, is_settled
from limes.schemes.fitting import MIN_JUDGES, Ground, Settings, enough_judges
from limes.schemes.pairwise import PairwiseScheme
from limes.schemes.protocol import Scheme
from limes.schemes.shared import SharedScheme
from limes.schemes.small_maps import to_map
from limes.schemes.stakes import Stakes
from limes.schemes.targets import sizes_within
from limes.sources.protocol import MulticlassSource

# Numbers of points that are tried, the cheapest first.
LADDER = (1, 4, 16, 64, 256, 1024)
# Where rows are projected before the search, points cost little beside that, and learn slowly.
WIDE_LADDER = (1, 32, 128)
WIDE_SECONDS = 2 * TRIAL_SECONDS
# The most maps that are tried: all rungs of a ladder, what lies between two, and a leaner blend.
N_TRIALS = len(LADDER) + 6
# Points that answer for a row together while numbers of points are tried (one less than a power of
# two is quickest), and then the fewer that may do with the number that was found.
RICH_BLEND, LEAN_BLEND = 7, 3
# A map that is not this many times cheaper than its source is not worth trying, and one of more
# than a few points must be cheaper by more, exponentials not counted.
MIN_GAIN, FAIR_GAIN = 3, 10
FEW_POINTS = 128
# Multiply-adds a row that nobody minds, however small the source.
FREE_COST = 5000
# Agreement that differs by less than this share of the rarest class is the same to everybody.
SAME_SHARE = 0.001
# A longer training is in vain where it agrees less by so many errors.
WORSE_ERRORS = 3.0


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
    lesson_seed, last_seed, *seeds = seed.spawn(2 + N_TRIALS)
    lessons = prepare_lessons(source, ground.rows, rng=np.random.default_rng(lesson_seed))
    workshop = _Workshop(source, ground, lessons, settings, verbose)
    if settings.n_borders is not None:
        made = workshop.make(settings.n_borders, workshop.blend, last_seed, seconds=LAST_SECONDS)
        return made.scheme, [replace(made.trial, is_chosen=True)]
    tried = workshop.climb(seeds)
    tried.sort(key=lambda one: one.trial.cost)
    trials = [one.trial for one in tried]
    chosen = workshop.choose(tried)
    last = workshop.train_at_length(tried[chosen], last_seed)
    trials[chosen] = replace(last.trial, is_chosen=True)
    _warn_if_short(last.trial, settings.targets.min_agreement)
    return last.scheme, trials


@dataclass(frozen=True, eq=False)
class _Made:
    """A scheme with its line of the trade-off, and what to choose it by."""

    scheme: Scheme
    trial: Trial
    # As if all rows were independent, and where all classes count alike.
    plain: tuple[float, float]
    balance: tuple[float, float]
    # Whether it keeps the source's skill, or agrees as well as is asked for.
    is_enough: bool


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
        self.stakes = Stakes(self.judges, source.forecasts(self.judging))
        # Rows made from a few real ones do not tell what skill is lost.
        self.is_told = ground.judges.n_origins >= MIN_JUDGES

    def climb(self, seeds: list[np.random.SeedSequence]) -> list[_Made]:
        """Try more and more points, until they stop to help; then see what can be spared."""
        tried: list[_Made] = []
        left = iter(seeds)
        for n_points in self.sizes():
            if self._is_settled(tried):
                break
            tried.append(self._try(n_points, self.blend, next(left)))
        tried.extend(self._halve(tried, left))
        found = tried[self.choose(tried)]
        is_rich = self.settings.blend is None and found.trial.blend > LEAN_BLEND
        # Beside a projection, a leaner blend saves little.
        if is_rich and found.is_enough and not self.is_wide:
            tried.append(self._try(found.trial.n_borders, LEAN_BLEND, next(left)))
        return tried

    def _is_settled(self, tried: list[_Made]) -> bool:
        """Tell whether the next rung is not needed."""
        is_enough = bool(tried) and tried[-1].is_enough
        return is_enough or is_settled([one.trial for one in tried])

    def _halve(
        self, tried: list[_Made], seeds: Iterator[np.random.SeedSequence]
    ) -> Iterator[_Made]:
        """Try half as many points while they are enough, down to the rung below the last."""
        below = tried[-2].trial.n_borders if len(tried) > 1 else 0
        last = tried[-1]
        while last.is_enough and last.trial.n_borders // 2 > below:
            last = self._try(last.trial.n_borders // 2, self.blend, next(seeds))
            yield last

    def choose(self, tried: list[_Made]) -> int:
        """Return which one to take."""
        plain = [replace(one.trial, error=one.plain[1]) for one in tried]
        balances = [one.balance for one in tried]
        rarest = np.bincount(self.judges.codes, self.judges.weights).min()
        return choose(
            plain,
            self.settings.targets.min_agreement,
            balances,
            fair_cost=self.fair_cost,
            same=SAME_SHARE * rarest,
            kept=[one.is_enough for one in tried],
        )

    def train_at_length(self, short: _Made, seed: np.random.SeedSequence) -> _Made:
        """Make the map of a trial once more, better; where it learns too much by heart, keep it."""
        trial = short.trial
        long = self.make(trial.n_borders, trial.blend, seed, seconds=LAST_SECONDS)
        is_worse = any(
            after[0] < before[0] - WORSE_ERRORS * before[1]
            for before, after in ((short.plain, long.plain), (short.balance, long.balance))
        )
        wanted = self.settings.targets.min_agreement or 0.0
        is_short = long.trial.agreement < min(wanted, trial.agreement)
        return short if is_worse or is_short else long

    def _try(self, n_points: int, blend: int, seed: np.random.SeedSequence) -> _Made:
        """Make a map in a short time, and tell what came out."""
        seconds = WIDE_SECONDS if self.is_wide else TRIAL_SECONDS
        made = self.make(n_points, blend, seed, seconds=seconds, most_looks=TRIAL_LOOKS)
        self._tell(made.trial)
        return made

    def sizes(self) -> list[int]:
        """Return the numbers of points worth trying, ascending."""
        ladder = WIDE_LADDER if self.is_wide else LADDER
        sizes = [n_points for n_points in ladder if n_points == 1 or self._is_worth(n_points)]
        above = [n_points for n_points in ladder if n_points > sizes[-1]]
        if above and not self.is_wide:
            sizes.extend(self._largest_fair(sizes[-1], above[0]))
        raw = self.judges.rows if self.ground.before is None else self.ground.judges.rows
        return sizes_within(self.settings.targets, sizes, self._blank, raw)

    def _largest_fair(self, low: int, high: int) -> list[int]:
        """Return the largest number of points between two rungs at a fair cost, if it is larger."""
        high = min(high, len(self.ground.rows) + 1)
        least = low + low // 4
        while high - low > 1:
            middle = (low + high) // 2
            is_fair = self._blank(middle).cost <= self.fair_cost
            low, high = (middle, high) if is_fair else (low, middle)
        return [low] if low >= least and self.settings.targets.min_agreement is None else []

    def _is_worth(self, n_points: int) -> bool:
        """Whether there are rows for so many points, and their map would be much cheaper."""
        if n_points > len(self.ground.rows):
            return False
        if self.settings.targets.min_agreement is not None:
            return True
        most = self.source.row_cost / MIN_GAIN if n_points <= FEW_POINTS else self.fair_cost
        return self._blank(n_points).cost <= max(most, FREE_COST)

    @property
    def fair_cost(self) -> float:
        """Multiply-adds that a map may cost without more ado."""
        return max(self.source.bare_cost / FAIR_GAIN, FREE_COST)

    @property
    def is_wide(self) -> bool:
        """Whether rows are projected before the search."""
        return self.lessons.components is not None

    @property
    def blend(self) -> int:
        """How many points answer for a row: as many as were asked for, or as many as do well."""
        return self.settings.blend or RICH_BLEND

    def _blank(self, n_points: int) -> Scheme:
        """Return a scheme of the shape of one with so many points."""
        rng = np.random.default_rng(0)
        n_features, n_search = self.lessons.rows.shape[1], self.lessons.search.shape[1]
        before = None
        if self.is_wide and n_points > 1:
            before = AffineMap(np.zeros(n_features), rng.normal(size=(n_features, n_search)))
        n_outputs = self.lessons.targets.shape[1]
        width = n_search if before else n_features
        slopes = rng.normal(size=(n_points, width, n_outputs))
        one = BorderMap(
            rng.normal(size=(n_points, width)),
            slopes if before is None else before.matrix @ slopes,
            np.zeros((n_points, n_outputs)),
            before,
            self.blend,
        )
        return self._join(one.after(self.ground.before))

    def _tell(self, trial: Trial) -> None:
        """Say how far it is, where that is asked for."""
        if self.verbose:
            print(
                f"{trial.n_borders} border points, {trial.blend} for a row: {trial.cost} "
                f"multiply-adds, {trial.agreement:.2%} as the source, {trial.lost:.4f} of its "
                "uncertainty coefficient lost"
            )

    def make(
        self,
        n_points: int,
        blend: int,
        seed: np.random.SeedSequence,
        *,
        seconds: float,
        most_looks: float = np.inf,
    ) -> _Made:
        """Fit a map, and measure its agreement with the source."""
        fitted = fit_map(
            self.lessons,
            n_points=n_points,
            blend=blend,
            rng=np.random.default_rng(seed),
            seconds=seconds,
            most_looks=most_looks,
        )
        one = self._sharpened(to_map(fitted, blend))
        inner = self._join(one)
        values = inner.values(self.judging)
        return self._judged(one, inner.codes(values), inner.probabilities(values))

    def _judged(self, one: BorderMap, codes: Codes, probabilities: Array) -> _Made:
        """Return a map with what its answers to the judges say of it."""
        scheme = self._join(one.after(self.ground.before))
        judges = self.judges
        trial = Trial(
            scheme.name,
            scheme.n_borders,
            min(one.blend, max(one.n_borders - 1, 1)),
            scheme.cost,
            *judges.agreement(codes),
            lost=self.stakes.lost(codes)[0],
        )
        return _Made(
            scheme,
            trial,
            judges.plain_agreement(codes),
            judges.balanced_agreement(codes),
            self._is_enough(trial, codes, probabilities),
        )

    def _is_enough(self, trial: Trial, codes: Codes, probabilities: Array) -> bool:
        """Tell whether a map is as good as is asked for, by default as good as its source."""
        wanted = self.settings.targets.min_agreement
        if wanted is not None:
            return trial.agreement >= wanted
        return self.is_told and self.stakes.is_kept(codes, probabilities)

    def _sharpened(self, one: BorderMap) -> BorderMap:
        """Return a fitted map with probabilities like the source's."""
        logits = one.decide(self.judging).astype(np.float64)
        sharpness = fit_sharpness(logits, self.stakes.forecasts, self.judges.weights)
        # The value of a single border is half a logit.
        return one.scaled(0.5 * sharpness if one.n_outputs == 1 else sharpness)

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
