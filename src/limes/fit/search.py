"""Candidates of growing size, limits, selection, final training."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from limes._typing import Array, Codes
from limes.fit.config import DEFAULTS, LAST, TRIAL, WIDE_TRIAL, Effort, Settings, Targets
from limes.fit.criterion import Stakes
from limes.fit.data import Ground
from limes.fit.train import count_looks, fit_map, fit_sharpness, look_seconds, to_map
from limes.fit.transfer_set import Lessons, add_lessons, prepare_lessons
from limes.fit.validation import Judges, enough_judges
from limes.model.affine import AffineMap
from limes.model.border_map import BorderMap
from limes.model.model import Trial
from limes.model.schemes import PairwiseScheme, Scheme, SharedScheme
from limes.sources.base import MulticlassSource
from limes.timing import time_in_turns


@dataclass(frozen=True, eq=False)
class Fitted:
    """Border maps, and how they came to be."""

    # The maps.
    scheme: Scheme
    # What was tried on the way.
    trials: list[Trial] = field(default_factory=list)
    # The same, before they learnt from the rows kept aside too; None where they never did.
    earlier: Scheme | None = None

    @property
    def judged(self) -> Scheme:
        """The maps that the rows kept aside can judge."""
        return self.scheme if self.earlier is None else self.earlier


def fit_shared(
    source: MulticlassSource,
    ground: Ground,
    judges: Judges,
    settings: Settings,
    *,
    seed: np.random.SeedSequence,
    verbose: int = 0,
) -> Fitted:
    """Fit one map for all classes, trying numbers of points unless one is given."""
    lesson_seed, last_seed, *seeds = seed.spawn(2 + DEFAULTS.search.max_candidates)
    workshop = Workshop(source, ground, judges, settings, np.random.default_rng(lesson_seed))
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


@dataclass(frozen=True, eq=False)
class Made:
    """A scheme with its line of the trade-off, and what to choose it by."""

    scheme: Scheme
    trial: Trial
    effort: Effort
    # As if all rows were independent, and where all classes count alike.
    plain: tuple[float, float]
    balance: tuple[float, float]
    # Whether it keeps the source's skill, or agrees as well as is asked for.
    is_enough: bool

    def is_worse_than(self, other: "Made") -> bool:
        """Tell whether it agrees less by more than chance."""
        both = (self.plain, other.plain), (self.balance, other.balance)
        return any(own[0] < its[0] - DEFAULTS.search.worse_errors * its[1] for own, its in both)


class Workshop:
    """Makes maps of one source, and judges them on the same rows."""

    def __init__(
        self,
        source: MulticlassSource,
        ground: Ground,
        judges: Judges,
        settings: Settings,
        rng: np.random.Generator,
    ) -> None:
        self.source, self.ground, self.settings = source, ground, settings
        self.raw_rows = judges.rows
        self.lessons = prepare_lessons(source, ground.rows, rng=rng)
        self.judges, self.judging = enough_judges(source, ground, judges)
        self.stakes = Stakes(self.judges, source.forecasts(self.judging))
        # Rows made from a few real ones do not tell what skill is lost.
        self.is_told = judges.n_origins >= DEFAULTS.validation.min_rows

    @property
    def is_wide(self) -> bool:
        """Whether rows are projected before the search."""
        return self.lessons.components is not None

    @property
    def blend(self) -> int:
        """How many points answer for a row: as many as were asked for, or as many as do well."""
        return self.settings.blend or DEFAULTS.search.blend

    @property
    def least(self) -> Effort:
        """How long a map is trained to see what it is worth."""
        return WIDE_TRIAL if self.is_wide else TRIAL

    @property
    def most(self) -> Effort:
        """How long the last map is trained; behind a projection, longer is no better."""
        return WIDE_TRIAL if self.is_wide else LAST

    def make(
        self,
        n_points: int,
        blend: int,
        seed: np.random.SeedSequence,
        effort: Effort,
        lessons: Lessons | None = None,
    ) -> Made:
        """Fit a map, and measure its agreement with the source."""
        lessons = lessons or self.lessons
        fitted = fit_map(
            lessons,
            n_points=n_points,
            blend=blend,
            rng=np.random.default_rng(seed),
            seconds=effort.seconds,
            most_looks=min(effort.most_looks, effort.most_epochs * len(lessons.rows)),
        )
        one = self._sharpened(to_map(fitted, blend))
        inner = self._join(one)
        values = inner.values(self.judging)
        return self._judged(one, inner.codes(values), inner.probabilities(values), effort)

    def train_at_length(self, short: Made, seed: np.random.SeedSequence) -> Made:
        """Make the map of a trial once more, better; where it learns too much by heart, keep it."""
        if short.effort == self.most:
            return short
        trial = short.trial
        return self._unless_worse(short, self.make(trial.n_borders, trial.blend, seed, self.most))

    def make_of_all(self, made: Made, seed: np.random.SeedSequence) -> Made:
        """Make a map once more with the rows that were kept aside to judge it, if there is time."""
        if not self._can_spare(made):
            return made
        rng = np.random.default_rng(seed.spawn(1)[0])
        lessons = add_lessons(self.lessons, self.source, self.ground.aside, rng=rng)
        trial = made.trial
        whole = self.make(trial.n_borders, trial.blend, seed, made.effort, lessons)
        # Having seen the judges it should do better on them; where it does worse, it is bad luck.
        return self._unless_worse(made, whole)

    def _unless_worse(self, first: Made, second: Made) -> Made:
        """Return the second map, unless it is worse, or only the first is what is asked for."""
        wanted = self.settings.targets.min_agreement or 0.0
        is_short = second.trial.agreement < min(wanted, first.trial.agreement)
        return first if is_short or second.is_worse_than(first) else second

    def _can_spare(self, made: Made) -> bool:
        """Tell whether there is time to make a map once more, with the rows kept aside."""
        lessons, aside = self.lessons, self.ground.aside
        shape = made.trial.n_borders, self.blend
        n_looks = count_looks(lessons, *shape, made.effort.seconds)
        n_asked = len(lessons.rows) * len(aside) / lessons.n_real
        seconds = n_asked * self.source.row_cost / DEFAULTS.transfer.multiply_adds_per_second
        seconds += n_looks * look_seconds(lessons, *shape)
        return (
            len(aside) >= DEFAULTS.search.min_held_out_share * lessons.n_real
            and seconds <= DEFAULTS.search.retrain_seconds
        )

    def blank(self, n_points: int) -> Scheme:
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

    def _judged(self, one: BorderMap, codes: Codes, probabilities: Array, effort: Effort) -> Made:
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
        return Made(
            scheme,
            trial,
            effort,
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
        is_rich = self.settings.blend is None and found.trial.blend > DEFAULTS.search.small_blend
        # Beside a projection, a leaner blend saves little.
        if is_rich and found.is_enough and not self.is_wide:
            tried.append(self._try(found.trial.n_borders, DEFAULTS.search.small_blend, next(left)))
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
            same=DEFAULTS.search.min_difference * rarest,
            kept=[one.is_enough for one in tried],
        )

    def _try(self, n_points: int, blend: int, seed: np.random.SeedSequence) -> Made:
        """Make a map in a short time, and tell what came out."""
        made = self.workshop.make(n_points, blend, seed, self.workshop.least)
        self._tell(made.trial)
        return made

    def sizes(self) -> list[int]:
        """Return the numbers of points worth trying, ascending."""
        ladder = DEFAULTS.search.wide_sizes if self.is_wide else DEFAULTS.search.sizes
        sizes = [n_points for n_points in ladder if n_points == 1 or self._is_worth(n_points)]
        above = [n_points for n_points in ladder if n_points > sizes[-1]]
        if above and not self.is_wide:
            sizes.extend(self._largest_fair(sizes[-1], above[0]))
        raw = self.workshop.judges.rows if self.ground.before is None else self.workshop.raw_rows
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
        most = self.source.row_cost if n_points <= DEFAULTS.search.few_points else self.fair_cost
        return self.workshop.blank(n_points).cost <= max(most, DEFAULTS.search.negligible_cost)

    @property
    def _most_points(self) -> int:
        """The most points that there are rows for."""
        return max(len(self.ground.rows), DEFAULTS.search.points_for_any_rows)

    @property
    def fair_cost(self) -> float:
        """Multiply-adds that a map may cost without more ado."""
        return max(
            self.source.bare_cost / DEFAULTS.search.min_speed_up, DEFAULTS.search.negligible_cost
        )

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


def choose(
    trials: list[Trial],
    min_agreement: float | None = None,
    balances: Sequence[tuple[float, float]] | None = None,
    fair_cost: float = np.inf,
    same: float = 0.0,
    kept: Sequence[bool] = (),
) -> int:
    """Return the number of the cheapest trial that is good enough, or else as good as the best."""
    if min_agreement is not None:
        wanted = min(min_agreement, max(trial.agreement for trial in trials))
        good = {place for place, trial in enumerate(trials) if trial.agreement >= wanted}
        return _cheapest(trials, good)
    if any(kept):
        return _cheapest(trials, set(np.flatnonzero(kept).tolist()))
    plain = [(trial.agreement, max(trial.error, same)) for trial in trials]
    place = _cheapest(trials, _near_best(plain, balances or [], n_errors=1.0))
    if trials[place].cost <= fair_cost:
        return place
    return _cheapest(trials, _near_best(plain, balances or [], n_errors=2.0))


def _cheapest(trials: list[Trial], places: set[int]) -> int:
    """Return the place of the cheapest of some trials."""
    return min(places, key=lambda place: trials[place].cost)


def _near_best(
    plain: Sequence[tuple[float, float]],
    balances: Sequence[tuple[float, float]],
    n_errors: float,
) -> set[int]:
    """Return the places of the trials near the best."""
    good, balanced = (_within(results, n_errors) for results in (plain, balances))
    # Where no trial is good in both, the rare class decides.
    return good & balanced or balanced or good


def _within(results: Sequence[tuple[float, float]], n_errors: float) -> set[int]:
    """Return the places of the results within so many errors of the best."""
    if not results:
        return set()
    best, error = max(results)
    return {place for place, one in enumerate(results) if one[0] >= best - n_errors * error}


def is_settled(trials: list[Trial]) -> bool:
    """Tell whether more points have stopped to help."""
    if not trials:
        return False
    best = max(range(len(trials)), key=lambda place: trials[place].agreement)
    return trials[best].agreement >= 1.0 or len(trials) - 1 - best >= DEFAULTS.search.patience


def time_row(scheme: Scheme, rows: NDArray[np.floating]) -> float:
    """Return the microseconds that a scheme takes for a row of a batch, on one thread."""
    batch = np.resize(rows, (DEFAULTS.search.timed_rows, rows.shape[1])).astype(np.float32)
    scheme.classify(batch[:100])
    (best,) = time_in_turns(
        [lambda: scheme.classify(batch)], n_turns=DEFAULTS.search.timing_turns, turn_seconds=0.0
    )
    return 1e6 * best.seconds / DEFAULTS.search.timed_rows


def sizes_within(
    targets: Targets,
    sizes: Sequence[int],
    shape: Callable[[int], Scheme],
    rows: NDArray[np.floating],
) -> list[int]:
    """Return the numbers of points that limits allow: some of those given, and the largest."""
    if not targets.is_limited:
        return list(sizes)
    excess = find_excess(targets, shape(1), rows)
    if excess:
        raise ValueError(
            f"even a single linear function for each class goes beyond {excess}. Allow more, or "
            "give the source fewer features."
        )
    low, high = 1, DEFAULTS.search.max_points + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (middle, high) if not find_excess(targets, shape(middle), rows) else (low, middle)
        )
    return sorted({*(size for size in sizes if size < low), min(low, max(sizes))})


def find_excess(targets: Targets, scheme: Scheme, rows: NDArray[np.floating]) -> str:
    """Return which limit a scheme goes beyond, in words; nothing where it keeps all."""
    if targets.max_cost is not None and scheme.cost > targets.max_cost:
        return f"max_cost={targets.max_cost!r}: it costs {scheme.cost} multiply-adds a row"
    if targets.max_bytes is not None and scheme.n_bytes > targets.max_bytes:
        return f"max_bytes={targets.max_bytes!r}: it takes {scheme.n_bytes} bytes"
    if targets.max_time_us is not None:
        taken = time_row(scheme, rows)
        if taken > targets.max_time_us:
            return f"max_time_us={targets.max_time_us!r}: it takes {taken:.2g} µs a row"
    return ""
