"""Candidates of growing size, limits, selection, final training."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from limes._typing import Array, Indices
from limes.fit.config import (
    DEFAULTS,
    FINAL_BUDGET,
    SEARCH_BUDGET,
    WIDE_BUDGET,
    Budget,
    FitOptions,
    Limits,
)
from limes.fit.criterion import SkillCriterion
from limes.fit.data import FitData
from limes.fit.train import (
    count_samples,
    fit_inverse_temperature,
    fit_map,
    seconds_per_sample,
    to_map,
)
from limes.fit.transfer_set import TransferSet, build_transfer_set, extend_transfer_set
from limes.fit.validation import ValidationSet, augmented_validation_set
from limes.model.affine import AffineMap
from limes.model.border_map import BorderMap
from limes.model.model import Candidate
from limes.model.schemes import PairwiseScheme, Scheme, SharedScheme
from limes.sources.base import MulticlassSource
from limes.timing import time_in_turns


@dataclass(frozen=True, eq=False)
class Fitted:
    """Border maps, and how they came to be."""

    # The maps.
    scheme: Scheme
    # What was tried on the way.
    trials: list[Candidate] = field(default_factory=list)
    # The same, before they learnt from the rows kept aside too; None where they never did.
    earlier: Scheme | None = None

    @property
    def judged(self) -> Scheme:
        """The maps that the rows kept aside can judge."""
        return self.scheme if self.earlier is None else self.earlier


def fit_shared(
    source: MulticlassSource,
    data: FitData,
    validation: ValidationSet,
    options: FitOptions,
    *,
    seed: np.random.SeedSequence,
    verbose: int = 0,
) -> Fitted:
    """Fit one map for all classes, trying numbers of points unless one is given."""
    lesson_seed, last_seed, *seeds = seed.spawn(2 + DEFAULTS.search.max_candidates)
    trainer = CandidateTrainer(
        source, data, validation, options, np.random.default_rng(lesson_seed)
    )
    if options.n_borders is not None:
        last = trainer.make(options.n_borders, trainer.blend, last_seed, trainer.final_budget)
        trials = [replace(last.trial, is_selected=True)]
    else:
        ascent = SizeSearch(trainer, verbose)
        tried = ascent.run(seeds)
        tried.sort(key=lambda one: one.trial.cost)
        trials = [one.trial for one in tried]
        chosen = ascent.choose(tried)
        last = trainer.retrain_with_full_budget(tried[chosen], last_seed)
        trials[chosen] = replace(last.trial, is_selected=True)
        _warn_if_short(last.trial, options.limits.min_agreement)
    whole = trainer.retrain_on_all_rows(last, last_seed)
    return Fitted(whole.scheme, trials, earlier=None if whole is last else last.scheme)


@dataclass(frozen=True, eq=False)
class TrainedCandidate:
    """A scheme with its line of the trade-off, and what to choose it by."""

    scheme: Scheme
    trial: Candidate
    budget: Budget
    # As if all rows were independent, and where all classes count alike.
    plain: tuple[float, float]
    balance: tuple[float, float]
    # Whether it keeps the source's skill, or agrees as well as is asked for.
    is_good_enough: bool

    def is_worse_than(self, other: "TrainedCandidate") -> bool:
        """Tell whether it agrees less by more than chance."""
        both = (self.plain, other.plain), (self.balance, other.balance)
        return any(own[0] < its[0] - DEFAULTS.search.worse_errors * its[1] for own, its in both)


class CandidateTrainer:
    """Makes maps of one source, and judges them on the same rows."""

    def __init__(
        self,
        source: MulticlassSource,
        data: FitData,
        validation: ValidationSet,
        options: FitOptions,
        rng: np.random.Generator,
    ) -> None:
        self.source, self.data, self.options = source, data, options
        self.raw_rows = validation.rows
        self.transfer_set = build_transfer_set(source, data.rows, rng=rng)
        self.validation, self.validation_rows = augmented_validation_set(source, data, validation)
        self.criterion = SkillCriterion(
            self.validation, source.calibrated_probabilities(self.validation_rows)
        )
        # Rows made from a few real ones do not tell what skill is lost.
        self.has_enough_validation_rows = validation.n_real_rows >= DEFAULTS.validation.min_rows

    @property
    def is_wide(self) -> bool:
        """Whether rows are projected before the search."""
        return self.transfer_set.components is not None

    @property
    def blend(self) -> int:
        """How many points answer for a row: as many as were asked for, or as many as do well."""
        return self.options.blend or DEFAULTS.search.blend

    @property
    def search_budget(self) -> Budget:
        """How long a map is trained to see what it is worth."""
        return WIDE_BUDGET if self.is_wide else SEARCH_BUDGET

    @property
    def final_budget(self) -> Budget:
        """How long the last map is trained; behind a projection, longer is no better."""
        return WIDE_BUDGET if self.is_wide else FINAL_BUDGET

    def make(
        self,
        n_points: int,
        blend: int,
        seed: np.random.SeedSequence,
        budget: Budget,
        transfer_set: TransferSet | None = None,
    ) -> TrainedCandidate:
        """Fit a map, and measure its agreement with the source."""
        transfer_set = transfer_set or self.transfer_set
        fitted = fit_map(
            transfer_set,
            n_points=n_points,
            blend=blend,
            rng=np.random.default_rng(seed),
            seconds=budget.seconds,
            max_samples=min(budget.max_samples, budget.max_epochs * len(transfer_set.rows)),
        )
        one = self._calibrate(to_map(fitted, blend))
        inner = self._join(one)
        values = inner.values(self.validation_rows)
        return self._evaluate(one, inner.class_index(values), inner.probabilities(values), budget)

    def retrain_with_full_budget(
        self, short: TrainedCandidate, seed: np.random.SeedSequence
    ) -> TrainedCandidate:
        """Make the map of a trial once more, better; where it learns too much by heart, keep it."""
        if short.budget == self.final_budget:
            return short
        trial = short.trial
        return self._keep_better(
            short, self.make(trial.n_borders, trial.blend, seed, self.final_budget)
        )

    def retrain_on_all_rows(
        self, made: TrainedCandidate, seed: np.random.SeedSequence
    ) -> TrainedCandidate:
        """Make a map once more with the rows that were kept aside to judge it, if there is time."""
        if not self._fits_budget(made):
            return made
        rng = np.random.default_rng(seed.spawn(1)[0])
        transfer_set = extend_transfer_set(
            self.transfer_set, self.source, self.data.held_out_rows, rng=rng
        )
        trial = made.trial
        whole = self.make(trial.n_borders, trial.blend, seed, made.budget, transfer_set)
        # Having seen the judges it should do better on them; where it does worse, it is bad luck.
        return self._keep_better(made, whole)

    def _keep_better(self, first: TrainedCandidate, second: TrainedCandidate) -> TrainedCandidate:
        """Return the second map, unless it is worse, or only the first is what is asked for."""
        wanted = self.options.limits.min_agreement or 0.0
        is_short = second.trial.agreement < min(wanted, first.trial.agreement)
        return first if is_short or second.is_worse_than(first) else second

    def _fits_budget(self, made: TrainedCandidate) -> bool:
        """Tell whether there is time to make a map once more, with the rows kept aside."""
        transfer_set, held_out_rows = self.transfer_set, self.data.held_out_rows
        shape = made.trial.n_borders, self.blend
        n_samples = count_samples(transfer_set, *shape, made.budget.seconds)
        mean_pairs = len(transfer_set.rows) * len(held_out_rows) / transfer_set.n_real
        seconds = mean_pairs * self.source.query_cost / DEFAULTS.transfer.multiply_adds_per_second
        seconds += n_samples * seconds_per_sample(transfer_set, *shape)
        return (
            len(held_out_rows) >= DEFAULTS.search.min_held_out_share * transfer_set.n_real
            and seconds <= DEFAULTS.search.retrain_seconds
        )

    def untrained_scheme(self, n_points: int) -> Scheme:
        """Return a scheme of the shape of one with so many points."""
        rng = np.random.default_rng(0)
        n_features, n_search = self.transfer_set.rows.shape[1], self.transfer_set.search.shape[1]
        preprocessing = None
        if self.is_wide and n_points > 1:
            matrix = rng.normal(size=(n_features, n_search))
            preprocessing = AffineMap(np.zeros(n_features), matrix)
        n_outputs = self.transfer_set.probabilities.shape[1]
        width = n_search if preprocessing else n_features
        slopes = rng.normal(size=(n_points, width, n_outputs))
        one = BorderMap(
            rng.normal(size=(n_points, width)),
            (slopes if preprocessing is None else matrix @ slopes).transpose(0, 2, 1),
            np.zeros((n_points, n_outputs)),
            preprocessing,
            self.blend,
        )
        return self._join(one.with_preprocessing(self.data.preprocessing))

    def _evaluate(
        self, one: BorderMap, class_index: Indices, probabilities: Array, budget: Budget
    ) -> TrainedCandidate:
        """Return a map with what its answers to the judges say of it."""
        scheme = self._join(one.with_preprocessing(self.data.preprocessing))
        validation = self.validation
        trial = Candidate(
            scheme.name,
            scheme.n_borders,
            min(one.blend, max(one.n_borders - 1, 1)),
            scheme.cost,
            *validation.agreement(class_index),
            skill_loss=self.criterion.lost(class_index)[0],
        )
        return TrainedCandidate(
            scheme,
            trial,
            budget,
            validation.agreement_assuming_independence(class_index),
            validation.balanced_agreement(class_index),
            self._is_enough(trial, class_index, probabilities),
        )

    def _is_enough(self, trial: Candidate, class_index: Indices, probabilities: Array) -> bool:
        """Tell whether a map is as good as is asked for, by default as good as its source."""
        wanted = self.options.limits.min_agreement
        if wanted is not None:
            return trial.agreement >= wanted
        return self.has_enough_validation_rows and self.criterion.is_good_enough(
            class_index, probabilities
        )

    def _calibrate(self, one: BorderMap) -> BorderMap:
        """Return a fitted map with probabilities like the source's."""
        logits = one.decide(self.validation_rows).astype(np.float64)
        inverse_temperature = fit_inverse_temperature(
            logits, self.criterion.calibrated_probabilities, self.validation.weights
        )
        # The value of a single border is half a logit.
        return one.scaled(0.5 * inverse_temperature if one.n_outputs == 1 else inverse_temperature)

    def _join(self, one: BorderMap) -> Scheme:
        """Return the scheme of one map for all classes."""
        n_classes = len(self.source.classes)
        if n_classes == 2:
            return PairwiseScheme((one,), 2, self.options.double)
        return SharedScheme((one,), n_classes, self.options.double)


class SizeSearch:
    """Climbs a ladder of numbers of points."""

    def __init__(self, trainer: CandidateTrainer, verbose: int) -> None:
        self.trainer, self.verbose = trainer, verbose
        self.source, self.data = trainer.source, trainer.data
        self.options, self.is_wide = trainer.options, trainer.is_wide

    def run(self, seeds: list[np.random.SeedSequence]) -> list[TrainedCandidate]:
        """Try more and more points, until they stop to help; then see what can be spared."""
        tried: list[TrainedCandidate] = []
        left = iter(seeds)
        for n_points in self.sizes():
            if self._should_stop(tried):
                break
            tried.append(self._train_and_log(n_points, self.trainer.blend, next(left)))
        tried.extend(self._smaller_sizes(tried, left))
        found = tried[self.choose(tried)]
        is_rich = self.options.blend is None and found.trial.blend > DEFAULTS.search.small_blend
        # Beside a projection, a leaner blend saves little.
        if is_rich and found.is_good_enough and not self.is_wide:
            tried.append(
                self._train_and_log(found.trial.n_borders, DEFAULTS.search.small_blend, next(left))
            )
        return tried

    def _should_stop(self, tried: list[TrainedCandidate]) -> bool:
        """Tell whether the next rung is not needed."""
        is_good_enough = bool(tried) and tried[-1].is_good_enough
        return is_good_enough or should_stop([one.trial for one in tried])

    def _smaller_sizes(
        self, tried: list[TrainedCandidate], seeds: Iterator[np.random.SeedSequence]
    ) -> Iterator[TrainedCandidate]:
        """Try half as many points while they are enough, down to the rung below the last."""
        below = tried[-2].trial.n_borders if len(tried) > 1 else 0
        last = tried[-1]
        while last.is_good_enough and last.trial.n_borders // 2 > below:
            last = self._train_and_log(last.trial.n_borders // 2, self.trainer.blend, next(seeds))
            yield last

    def choose(self, tried: list[TrainedCandidate]) -> int:
        """Return which one to take."""
        plain = [replace(one.trial, agreement_error=one.plain[1]) for one in tried]
        balances = [one.balance for one in tried]
        rarest = np.bincount(
            self.trainer.validation.class_index, self.trainer.validation.weights
        ).min()
        return choose(
            plain,
            self.options.limits.min_agreement,
            balances,
            fair_cost=self.fair_cost,
            same=DEFAULTS.search.min_difference * rarest,
            kept=[one.is_good_enough for one in tried],
        )

    def _train_and_log(
        self, n_points: int, blend: int, seed: np.random.SeedSequence
    ) -> TrainedCandidate:
        """Make a map in a short time, and tell what came out."""
        made = self.trainer.make(n_points, blend, seed, self.trainer.search_budget)
        self._log(made.trial)
        return made

    def sizes(self) -> list[int]:
        """Return the numbers of points worth trying, ascending."""
        ladder = DEFAULTS.search.wide_sizes if self.is_wide else DEFAULTS.search.sizes
        sizes = [n_points for n_points in ladder if n_points == 1 or self._is_worth(n_points)]
        above = [n_points for n_points in ladder if n_points > sizes[-1]]
        if above and not self.is_wide:
            sizes.extend(self._largest_fair(sizes[-1], above[0]))
        raw = (
            self.trainer.validation.rows
            if self.data.preprocessing is None
            else self.trainer.raw_rows
        )
        return sizes_within_limits(self.options.limits, sizes, self.trainer.untrained_scheme, raw)

    def _largest_fair(self, low: int, high: int) -> list[int]:
        """Return the largest number of points below a rung that may be tried, if it is larger."""
        high = min(high, self._most_points + 1)
        wanted = self.options.limits.min_agreement
        min_size = low + low // 4
        while high - low > 1:
            middle = (low + high) // 2
            is_fair = (
                wanted is not None or self.trainer.untrained_scheme(middle).cost <= self.fair_cost
            )
            low, high = (middle, high) if is_fair else (low, middle)
        return [low] if low >= min_size else []

    def _is_worth(self, n_points: int) -> bool:
        """Whether there are rows for so many points, and their map is cheap enough."""
        if n_points > self._most_points:
            return False
        if self.options.limits.min_agreement is not None:
            return True
        max_cost = (
            self.source.query_cost if n_points <= DEFAULTS.search.few_points else self.fair_cost
        )
        return self.trainer.untrained_scheme(n_points).cost <= max(
            max_cost, DEFAULTS.search.negligible_cost
        )

    @property
    def _most_points(self) -> int:
        """The most points that there are rows for."""
        return max(len(self.data.rows), DEFAULTS.search.points_for_any_rows)

    @property
    def fair_cost(self) -> float:
        """Multiply-adds that a map may cost without more ado."""
        return max(
            self.source.multiply_adds / DEFAULTS.search.min_speed_up,
            DEFAULTS.search.negligible_cost,
        )

    def _log(self, trial: Candidate) -> None:
        """Say how far it is, where that is asked for."""
        if self.verbose:
            print(
                f"{trial.n_borders} border point{'s' * (trial.n_borders > 1)}, "
                f"{trial.blend} for a row: {trial.cost} "
                f"multiply-adds, {trial.agreement:.2%} as the source, "
                f"{trial.skill_loss:.4f} of its uncertainty coefficient lost"
            )


def _warn_if_short(trial: Candidate, min_agreement: float | None) -> None:
    """Say so where the agreement that was asked for is not reached."""
    if min_agreement is not None and trial.agreement < min_agreement:
        warnings.warn(
            f"min_agreement={min_agreement!r} is not reached: {trial.n_borders} border points "
            f"agree with the source on {trial.agreement:.2%} of rows "
            f"(± {trial.agreement_error:.2%}).",
            stacklevel=2,
        )


def choose(
    trials: list[Candidate],
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
    plain = [(trial.agreement, max(trial.agreement_error, same)) for trial in trials]
    place = _cheapest(trials, _near_best(plain, balances or [], n_errors=1.0))
    if trials[place].cost <= fair_cost:
        return place
    return _cheapest(trials, _near_best(plain, balances or [], n_errors=2.0))


def _cheapest(trials: list[Candidate], places: set[int]) -> int:
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


def should_stop(trials: list[Candidate]) -> bool:
    """Tell whether more points have stopped to help."""
    if not trials:
        return False
    best = max(range(len(trials)), key=lambda place: trials[place].agreement)
    return trials[best].agreement >= 1.0 or len(trials) - 1 - best >= DEFAULTS.search.patience


def microseconds_per_row(scheme: Scheme, rows: NDArray[np.floating]) -> float:
    """Return the microseconds that a scheme takes for a row of a batch, on one thread."""
    batch = np.resize(rows, (DEFAULTS.search.timed_rows, rows.shape[1])).astype(np.float32)
    scheme.classify(batch[:100])
    (best,) = time_in_turns(
        [lambda: scheme.classify(batch)], n_turns=DEFAULTS.search.timing_turns, turn_seconds=0.0
    )
    return 1e6 * best.seconds / DEFAULTS.search.timed_rows


def sizes_within_limits(
    limits: Limits,
    sizes: Sequence[int],
    shape: Callable[[int], Scheme],
    rows: NDArray[np.floating],
) -> list[int]:
    """Return the numbers of points that limits allow: some of those given, and the largest."""
    if not limits.is_limited:
        return list(sizes)
    exceeded = exceeded_limit(limits, shape(1), rows)
    if exceeded:
        raise ValueError(
            f"even a single linear function for each class goes beyond {exceeded}. Allow more, or "
            "give the source fewer features."
        )
    low, high = 1, DEFAULTS.search.max_points + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (middle, high) if not exceeded_limit(limits, shape(middle), rows) else (low, middle)
        )
    return sorted({*(size for size in sizes if size < low), min(low, max(sizes))})


def exceeded_limit(limits: Limits, scheme: Scheme, rows: NDArray[np.floating]) -> str:
    """Return which limit a scheme goes beyond, in words; nothing where it keeps all."""
    if limits.max_cost is not None and scheme.cost > limits.max_cost:
        return f"max_cost={limits.max_cost!r}: it costs {scheme.cost} multiply-adds a row"
    if limits.max_bytes is not None and scheme.n_bytes > limits.max_bytes:
        return f"max_bytes={limits.max_bytes!r}: it takes {scheme.n_bytes} bytes"
    if limits.max_time_us is not None:
        taken = microseconds_per_row(scheme, rows)
        if taken > limits.max_time_us:
            return f"max_time_us={limits.max_time_us!r}: it takes {taken:.2g} µs a row"
    return ""
