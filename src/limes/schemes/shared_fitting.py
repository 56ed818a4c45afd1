"""How many points: more and more, until a map is as good as its source or gets no better."""

import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from limes.schemes.choosing import Trial, choose, is_settled
from limes.schemes.fitting import Fitted, Ground, Settings
from limes.schemes.targets import sizes_within
from limes.schemes.workshop import Made, Workshop
from limes.sources.protocol import MulticlassSource

# Numbers of points that are tried, the cheapest first.
LADDER = (1, 4, 16, 64, 256, 1024)
# Where rows are projected before the search, points cost little beside that.
WIDE_LADDER = (1, 32, 128)
# The most maps that are tried: all rungs of a ladder, what lies between two, and a leaner blend.
N_TRIALS = len(LADDER) + 6
# The fewer points that may answer for a row together, once their number is found.
LEAN_BLEND = 3
# A map of a few points that is no cheaper than its source is not worth trying, and one of more must
# be this many times cheaper, exponentials not counted.
FAIR_GAIN = 10
FEW_POINTS = 128
# So many points may be tried however few rows there are: many are made from each.
ANY_POINTS = 64
# Multiply-adds a row that nobody minds, however small the source.
FREE_COST = 5000
# Agreement that differs by less than this share of the rarest class is the same to everybody.
SAME_SHARE = 0.001


def fit_shared(
    source: MulticlassSource,
    ground: Ground,
    settings: Settings,
    *,
    seed: np.random.SeedSequence,
    verbose: int = 0,
) -> Fitted:
    """Fit one map for all classes, trying numbers of points unless one is given."""
    lesson_seed, last_seed, *seeds = seed.spawn(2 + N_TRIALS)
    workshop = Workshop(source, ground, settings, np.random.default_rng(lesson_seed))
    if settings.n_borders is not None:
        last = workshop.make(settings.n_borders, workshop.blend, last_seed, workshop.most)
        trials = [replace(last.trial, is_chosen=True)]
    else:
        ascent = _Ascent(workshop, verbose)
        tried = ascent.climb(seeds)
        tried.sort(key=lambda one: one.trial.cost)
        trials = [one.trial for one in tried]
        chosen = ascent.choose(tried)
        last = workshop.train_at_length(tried[chosen], last_seed)
        trials[chosen] = replace(last.trial, is_chosen=True)
        _warn_if_short(last.trial, settings.targets.min_agreement)
    whole = workshop.make_of_all(last, last_seed)
    return Fitted(whole.scheme, trials, earlier=None if whole is last else last.scheme)


class _Ascent:
    """Climbs a ladder of numbers of points."""

    def __init__(self, workshop: Workshop, verbose: int) -> None:
        self.workshop, self.verbose = workshop, verbose
        self.source, self.ground = workshop.source, workshop.ground
        self.settings, self.is_wide = workshop.settings, workshop.is_wide

    def climb(self, seeds: list[np.random.SeedSequence]) -> list[Made]:
        """Try more and more points, until they stop to help; then see what can be spared."""
        tried: list[Made] = []
        left = iter(seeds)
        for n_points in self.sizes():
            if self._is_settled(tried):
                break
            tried.append(self._try(n_points, self.workshop.blend, next(left)))
        tried.extend(self._halve(tried, left))
        found = tried[self.choose(tried)]
        is_rich = self.settings.blend is None and found.trial.blend > LEAN_BLEND
        # Beside a projection, a leaner blend saves little.
        if is_rich and found.is_enough and not self.is_wide:
            tried.append(self._try(found.trial.n_borders, LEAN_BLEND, next(left)))
        return tried

    def _is_settled(self, tried: list[Made]) -> bool:
        """Tell whether the next rung is not needed."""
        is_enough = bool(tried) and tried[-1].is_enough
        return is_enough or is_settled([one.trial for one in tried])

    def _halve(self, tried: list[Made], seeds: Iterator[np.random.SeedSequence]) -> Iterator[Made]:
        """Try half as many points while they are enough, down to the rung below the last."""
        below = tried[-2].trial.n_borders if len(tried) > 1 else 0
        last = tried[-1]
        while last.is_enough and last.trial.n_borders // 2 > below:
            last = self._try(last.trial.n_borders // 2, self.workshop.blend, next(seeds))
            yield last

    def choose(self, tried: list[Made]) -> int:
        """Return which one to take."""
        plain = [replace(one.trial, error=one.plain[1]) for one in tried]
        balances = [one.balance for one in tried]
        rarest = np.bincount(self.workshop.judges.codes, self.workshop.judges.weights).min()
        return choose(
            plain,
            self.settings.targets.min_agreement,
            balances,
            fair_cost=self.fair_cost,
            same=SAME_SHARE * rarest,
            kept=[one.is_enough for one in tried],
        )

    def _try(self, n_points: int, blend: int, seed: np.random.SeedSequence) -> Made:
        """Make a map in a short time, and tell what came out."""
        made = self.workshop.make(n_points, blend, seed, self.workshop.least)
        self._tell(made.trial)
        return made

    def sizes(self) -> list[int]:
        """Return the numbers of points worth trying, ascending."""
        ladder = WIDE_LADDER if self.is_wide else LADDER
        sizes = [n_points for n_points in ladder if n_points == 1 or self._is_worth(n_points)]
        above = [n_points for n_points in ladder if n_points > sizes[-1]]
        if above and not self.is_wide:
            sizes.extend(self._largest_fair(sizes[-1], above[0]))
        raw = self.workshop.judges.rows if self.ground.before is None else self.ground.judges.rows
        return sizes_within(self.settings.targets, sizes, self.workshop.blank, raw)

    def _largest_fair(self, low: int, high: int) -> list[int]:
        """Return the largest number of points below a rung that may be tried, if it is larger."""
        high = min(high, self._most_points + 1)
        wanted = self.settings.targets.min_agreement
        least = low + low // 4
        while high - low > 1:
            middle = (low + high) // 2
            is_fair = wanted is not None or self.workshop.blank(middle).cost <= self.fair_cost
            low, high = (middle, high) if is_fair else (low, middle)
        return [low] if low >= least else []

    def _is_worth(self, n_points: int) -> bool:
        """Whether there are rows for so many points, and their map is cheap enough."""
        if n_points > self._most_points:
            return False
        if self.settings.targets.min_agreement is not None:
            return True
        most = self.source.row_cost if n_points <= FEW_POINTS else self.fair_cost
        return self.workshop.blank(n_points).cost <= max(most, FREE_COST)

    @property
    def _most_points(self) -> int:
        """The most points that there are rows for."""
        return max(len(self.ground.rows), ANY_POINTS)

    @property
    def fair_cost(self) -> float:
        """Multiply-adds that a map may cost without more ado."""
        return max(self.source.bare_cost / FAIR_GAIN, FREE_COST)

    def _tell(self, trial: Trial) -> None:
        """Say how far it is, where that is asked for."""
        if self.verbose:
            print(
                f"{trial.n_borders} border point{'s' * (trial.n_borders > 1)}, "
                f"{trial.blend} for a row: {trial.cost} "
                f"multiply-adds, {trial.agreement:.2%} as the source, {trial.lost:.4f} of its "
                "uncertainty coefficient lost"
            )


def _warn_if_short(trial: Trial, min_agreement: float | None) -> None:
    """Say so where the agreement that was asked for is not reached."""
    if min_agreement is not None and trial.agreement < min_agreement:
        warnings.warn(
            f"min_agreement={min_agreement!r} is not reached: {trial.n_borders} border points "
            f"agree with the source on {trial.agreement:.2%} of rows (± {trial.error:.2%}).",
            stacklevel=2,
        )
