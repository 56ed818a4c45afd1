"""Candidates of growing size, limits, selection, final training."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

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
from limes.fit.fallback import (
    MAX_MARGIN,
    CoverageGoal,
    MarginCurve,
    TrainedCandidate,
    margin_of_agreement,
)
from limes.fit.train import calibrate, fit_map, n_training_samples, seconds_per_sample
from limes.fit.transfer_set import TransferSet, build_transfer_set, extend_transfer_set
from limes.fit.validation import ValidationSet, augmented_validation_set
from limes.model.affine import AffineMap
from limes.model.border_map import BorderMap
from limes.model.exact import ExactScheme, FallbackScheme
from limes.model.model import Candidate
from limes.model.schemes import MapScheme, PairwiseScheme, Scheme, SharedScheme
from limes.report import QualityWarning
from limes.sources.base import MulticlassSource
from limes.timing import time_in_turns


@dataclass(frozen=True, eq=False)
class FittedScheme:
    """A scheme, and how it was selected."""

    scheme: Scheme
    # The scheme before a last training that also uses the held-out rows; the same where there was
    # none.
    validated_scheme: Scheme
    # What was compared to select the number of points.
    candidates: list[Candidate] = field(default_factory=list)
    # Between which rows borders were searched; None where maps were trained.
    placement: str | None = None


def fit_shared(
    source: MulticlassSource,
    data: FitData,
    validation: ValidationSet,
    coverage: ValidationSet,
    options: FitOptions,
    *,
    exact: ExactScheme | None = None,
    can_be_exact: bool = False,
    seed: np.random.SeedSequence,
    verbose: int = 0,
) -> FittedScheme:
    """Fit one map for all classes, with the best number of points unless one is given.

    A map may hand rows to the exact sums. With ``can_be_exact``, these alone are a candidate too.
    """
    transfer_seed, final_seed = seed.spawn(2)
    rng = np.random.default_rng(transfer_seed)
    trainer = CandidateTrainer(source, data, validation, coverage, options, rng, exact)
    if options.n_borders is not None:
        final = trainer.train(options.n_borders, trainer.blend, final_seed, trainer.final_budget)
        candidates = [replace(final.candidate, is_selected=True)]
    else:
        search = SizeSearch(trainer, verbose)
        goal, trained, selected = search.cover(search.run(seed))
        candidates = [item.candidate for item in trained]
        final = trained[selected]
        if not (can_be_exact and trainer.is_slow_beside_exact(final)):
            final = trainer.retrain_with_full_budget(final, final_seed)
            final = trainer.with_coverage(final, goal)
            candidates[selected] = final.candidate
        if exact is not None and can_be_exact:
            is_exact = trainer.is_slow_beside_exact(final)
            candidates.append(exact_candidate(exact, is_selected=is_exact))
            if is_exact:
                return FittedScheme(exact, exact, _by_cost(candidates))
        candidates[selected] = replace(final.candidate, is_selected=True)
        _warn_if_below(final.candidate, options.limits.min_agreement)
    last = trainer.retrain_on_all_rows(final, final_seed)
    schemes = trainer.scheme_of(last), trainer.scheme_of(final)
    return FittedScheme(*schemes, _by_cost(candidates))


def _by_cost(candidates: list[Candidate]) -> list[Candidate]:
    """Return candidates with their costs ascending."""
    return sorted(candidates, key=lambda candidate: candidate.cost)


def exact_candidate(exact: ExactScheme, *, is_selected: bool = False) -> Candidate:
    """Return the exact sums as a candidate, whose labels are those of the source."""
    return Candidate(
        exact.name,
        n_borders=0,
        blend=0,
        cost=exact.cost,
        agreement=1.0,
        agreement_error=0.0,
        is_selected=is_selected,
        skill_loss=0.0,
        coverage_agreement=1.0,
    )


class CandidateTrainer:
    """Trains candidates for one source, and evaluates all on the same rows."""

    def __init__(
        self,
        source: MulticlassSource,
        data: FitData,
        validation: ValidationSet,
        coverage: ValidationSet,
        options: FitOptions,
        rng: np.random.Generator,
        exact: ExactScheme | None = None,
    ) -> None:
        self.source, self.data, self.options = source, data, options
        self.raw_rows = validation.rows
        self.coverage, self.coverage_rows = coverage, data.to_source_space(coverage.rows)
        self.exact = exact
        scheme_class = PairwiseScheme if len(source.classes) == 2 else SharedScheme
        # Makes the scheme of a tuple of one map for all classes.
        self.as_scheme: Callable[[tuple[BorderMap]], MapScheme] = partial(
            scheme_class, n_classes=len(source.classes), double=options.double
        )
        self.transfer_set = build_transfer_set(source, data.rows, rng=rng)
        self.is_wide = self.transfer_set.components is not None
        self.blend = options.blend or DEFAULTS.search.blend
        # Behind a projection, longer training is no better.
        self.search_budget = WIDE_BUDGET if self.is_wide else SEARCH_BUDGET
        self.final_budget = WIDE_BUDGET if self.is_wide else FINAL_BUDGET
        self.validation, self.validation_rows = augmented_validation_set(source, data, validation)
        # Synthetic rows made from a few real ones do not show how much skill is lost.
        self.has_enough_validation_rows = validation.n_real_rows >= DEFAULTS.validation.min_rows
        self.criterion = SkillCriterion(
            self.validation, source.calibrated_probabilities(self.validation_rows)
        )

    def train(
        self,
        n_points: int,
        blend: int,
        seed: np.random.SeedSequence,
        budget: Budget,
        transfer_set: TransferSet | None = None,
    ) -> TrainedCandidate:
        """Train a map, and evaluate it on the validation rows."""
        map_ = fit_map(
            transfer_set or self.transfer_set,
            n_points=n_points,
            blend=blend,
            budget=budget,
            rng=np.random.default_rng(seed),
        )
        map_ = calibrate(
            map_,
            self.validation_rows,
            self.criterion.calibrated_probabilities,
            self.validation.weights,
        )
        return self._evaluate(map_, min(blend, max(map_.n_borders - 1, 1)), budget)

    def _evaluate(self, map_: BorderMap, blend: int, budget: Budget) -> TrainedCandidate:
        """Evaluate a map on the validation rows, with the fallback that skill or user ask for."""
        inner = self.as_scheme((map_,))
        values = inner.values(self.validation_rows)
        curve = MarginCurve(self.validation, inner.class_index(values), inner.margins(values))
        coverage = MarginCurve.of_scheme(inner, self.coverage, self.coverage_rows)
        scheme = self.as_scheme((map_.with_preprocessing(self.data.preprocessing),))
        margin, probabilities = (
            self._needed_margin(curve, coverage, scheme),
            inner.probabilities(values),
        )
        candidate = self._candidate(scheme, blend, curve, coverage, margin)
        return TrainedCandidate(
            scheme,
            candidate,
            budget,
            curve,
            coverage,
            margin,
            self.validation.agreement_assuming_independence(curve.class_index),
            self.validation.balanced_agreement(curve.class_index),
            self._is_good_enough(candidate, curve.with_fallback(margin), probabilities),
            margin == 0 and self._is_good_enough(candidate, curve.class_index, probabilities),
        )

    def _candidate(
        self,
        scheme: MapScheme,
        blend: int,
        curve: MarginCurve,
        coverage: MarginCurve,
        margin: float,
    ) -> Candidate:
        """Return the size, expected cost and agreement of a map with a margin."""
        class_index, share = curve.with_fallback(margin), curve.share(margin)
        return Candidate(
            scheme.name,
            scheme.n_borders,
            blend,
            self._with_fallback(scheme, margin, share).cost,
            *self.validation.agreement(class_index),
            skill_loss=self.criterion.skill_loss(class_index)[0],
            fallback_share=share,
            coverage_agreement=coverage.agreement(margin),
        )

    def _needed_margin(self, curve: MarginCurve, coverage: MarginCurve, scheme: MapScheme) -> float:
        """Return the margin that keeps the skill, or reaches min_agreement, within the limits."""
        if self.exact is None:
            return 0.0
        min_agreement = self.options.limits.min_agreement
        if min_agreement is not None:
            margin = margin_of_agreement(curve, coverage, min_agreement)
        else:
            margin = curve.threshold_of_skill(self._keeps_skill)
        return margin if self._is_within_limits(scheme, margin, curve) else 0.0

    def with_coverage(self, trained: TrainedCandidate, goal: CoverageGoal) -> TrainedCandidate:
        """Raise the margin until coverage rows agree, and lower it to the cost that is allowed."""
        if self.exact is None or self.options.limits.min_agreement is not None:
            return trained
        scheme, curve, coverage = trained.map_scheme, trained.curve, trained.coverage
        max_share = (goal.max_cost - scheme.cost) / self.exact.cost
        margin = min(
            MAX_MARGIN,
            max(trained.margin, coverage.threshold_of_agreement(goal.agreement)),
            curve.threshold_of_share(max_share) if max_share > 0 else 0.0,
        )
        if margin == trained.margin or not self._is_within_limits(scheme, margin, curve):
            return trained
        candidate = self._candidate(scheme, trained.candidate.blend, curve, coverage, margin)
        is_good_enough = trained.is_good_enough and margin >= trained.margin
        return replace(trained, candidate=candidate, margin=margin, is_good_enough=is_good_enough)

    def _is_within_limits(self, scheme: MapScheme, margin: float, curve: MarginCurve) -> bool:
        """Return whether a map may carry the exact sums."""
        limits, carrying = (
            self.options.limits,
            self._with_fallback(scheme, margin, curve.share(margin)),
        )
        return not (limits.has_any and exceeded_limit(limits, carrying, self.raw_rows))

    def _with_fallback(self, scheme: MapScheme, margin: float, share: float) -> Scheme:
        """Return a scheme that carries the exact sums, if it needs them."""
        is_needed = margin > 0 or self.options.fallback is True
        if self.exact is None or not is_needed:
            return scheme
        return FallbackScheme(scheme, self.exact, margin, share)

    def scheme_of(self, trained: TrainedCandidate) -> Scheme:
        """Return the scheme of a candidate, with its fallback."""
        share = trained.candidate.fallback_share
        return self._with_fallback(trained.map_scheme, trained.margin, share)

    def is_slow_beside_exact(self, trained: TrainedCandidate) -> bool:
        """Return whether a candidate is not fast enough to be taken instead of the exact sums."""
        if self.exact is None:
            return False
        max_cost = DEFAULTS.search.max_share_of_exact_cost * self.exact.cost
        min_agreement = self.options.limits.min_agreement or 0.0
        return trained.candidate.cost > max_cost or trained.candidate.agreement < min_agreement

    def _is_good_enough(
        self, candidate: Candidate, class_index: Indices, probabilities: Array
    ) -> bool:
        """Return whether a candidate reaches min_agreement, or else meets the skill criterion."""
        min_agreement = self.options.limits.min_agreement
        if min_agreement is not None:
            return candidate.agreement >= min_agreement
        if not (self.has_enough_validation_rows and self.criterion.keeps_brier(probabilities)):
            return False
        return self._keeps_skill(class_index)

    def _keeps_skill(self, class_index: Indices) -> bool:
        """Return whether labels keep the skill; less certainty is needed beside exact sums."""
        config = DEFAULTS.criterion
        n_errors = config.loss_errors if self.exact is None else config.loss_errors_beside_exact
        return self.criterion.keeps_skill(class_index, n_errors=n_errors)

    def retrain_with_full_budget(
        self, short: TrainedCandidate, seed: np.random.SeedSequence
    ) -> TrainedCandidate:
        """Train a candidate again with the full budget; keep the first where that overfits."""
        if short.budget == self.final_budget:
            return short
        n_points, blend = short.candidate.n_borders, short.candidate.blend
        return self._keep_better(short, self.train(n_points, blend, seed, self.final_budget))

    def retrain_on_all_rows(
        self, first: TrainedCandidate, seed: np.random.SeedSequence
    ) -> TrainedCandidate:
        """Train a candidate again with the held-out rows as well, if there is time.

        The fallback stays as it is, since these rows no longer show how many are needed.
        """
        if not self._fits_budget(first):
            return first
        rng = np.random.default_rng(seed.spawn(1)[0])
        transfer_set = extend_transfer_set(
            self.transfer_set, self.source, self.data.held_out_rows, rng=rng
        )
        n_points, blend = first.candidate.n_borders, first.candidate.blend
        # Trained on the validation rows, it should agree better on them; if it is worse, the
        # optimiser failed.
        last = self._keep_better(
            first, self.train(n_points, blend, seed, first.budget, transfer_set)
        )
        return first if last is first else replace(first, map_scheme=last.map_scheme)

    def _keep_better(self, first: TrainedCandidate, second: TrainedCandidate) -> TrainedCandidate:
        """Return the second candidate, unless it is worse or falls below min_agreement."""
        min_agreement = self.options.limits.min_agreement or 0.0
        agreement = first.candidate.agreement
        is_below = second.candidate.agreement < min(min_agreement, agreement)
        return first if is_below or second.is_worse_than(first) else second

    def _fits_budget(self, trained: TrainedCandidate) -> bool:
        """Return whether held-out rows are worth a further training, and there is time for it."""
        transfer_set, held_out_rows = self.transfer_set, self.data.held_out_rows
        shape = trained.candidate.n_borders, self.blend
        n_samples = n_training_samples(transfer_set, *shape, trained.budget.seconds)
        n_queries = len(transfer_set.rows) * len(held_out_rows) / transfer_set.n_real
        seconds = n_queries * self.source.query_cost / DEFAULTS.transfer.multiply_adds_per_second
        seconds += n_samples * seconds_per_sample(transfer_set, *shape)
        return (
            len(held_out_rows) >= DEFAULTS.search.min_held_out_share * transfer_set.n_real
            and seconds <= DEFAULTS.search.retrain_seconds
        )

    def untrained_scheme(self, n_points: int) -> MapScheme:
        """Return a scheme of random maps that costs as much as a trained one."""
        rng = np.random.default_rng(0)
        n_features = self.transfer_set.rows.shape[1]
        n_search = self.transfer_set.search_rows.shape[1]
        n_outputs = self.transfer_set.probabilities.shape[1]
        projection = None
        if self.is_wide and n_points > 1:
            matrix = rng.normal(size=(n_features, n_search))
            projection = AffineMap(np.zeros(n_features), matrix)
        width = n_features if projection is None else n_search
        slopes = rng.normal(size=(n_points, width, n_outputs))
        map_ = BorderMap(
            rng.normal(size=(n_points, width)),
            (slopes if projection is None else matrix @ slopes).transpose(0, 2, 1),
            np.zeros((n_points, n_outputs)),
            projection,
            self.blend,
        )
        return self.as_scheme((map_.with_preprocessing(self.data.preprocessing),))


class SizeSearch:
    """Trains candidates of growing size, and selects one."""

    def __init__(self, trainer: CandidateTrainer, verbose: int) -> None:
        self.trainer, self.verbose = trainer, verbose
        self.source, self.data, self.options = trainer.source, trainer.data, trainer.options

    def run(self, seed: np.random.SeedSequence) -> list[TrainedCandidate]:
        """Train more and more points until they stop helping; then fewer, and a smaller blend."""
        trained: list[TrainedCandidate] = []
        for n_points in self.sizes():
            if self._cannot_be_cheaper(n_points, trained) or self._should_stop(trained):
                break
            trained.append(self._train_and_log(n_points, self.trainer.blend, seed))
        trained.extend(self._smaller_sizes(trained, seed))
        trained.extend(self._larger_sizes(trained, seed))
        selected = trained[self.select(trained)]
        small_blend = DEFAULTS.search.small_blend
        # Behind a projection, a smaller blend saves little.
        can_shrink = self.options.blend is None and not self.trainer.is_wide
        if can_shrink and selected.is_good_enough and selected.candidate.blend > small_blend:
            n_points = selected.candidate.n_borders
            trained.append(self._train_and_log(n_points, small_blend, seed))
        return trained

    def _cannot_be_cheaper(self, n_points: int, trained: list[TrainedCandidate]) -> bool:
        """Return whether a good candidate costs no more than a map of so many points alone."""
        costs = [item.candidate.cost for item in trained if item.is_good_enough]
        return bool(costs) and min(costs) <= self.trainer.untrained_scheme(n_points).cost

    def _should_stop(self, trained: list[TrainedCandidate]) -> bool:
        """Return whether the last sizes improved neither cost nor agreement."""
        good = [place for place, item in enumerate(trained) if item.is_good_enough]
        if not good:
            return should_stop([item.agreement[0] for item in trained])
        best = min(good, key=lambda place: trained[place].candidate.cost)
        return len(trained) - 1 - best >= DEFAULTS.search.patience

    def cover(
        self, trained: list[TrainedCandidate]
    ) -> tuple[CoverageGoal, list[TrainedCandidate], int]:
        """Raise margins until coverage rows agree; return the goal, candidates and best place.

        The first goal that a candidate reaches counts. Where none is reached, no time is spent: the
        candidate is the one that would be selected without fallback, or a cheaper one, unless that
        loses much skill.
        """
        config = DEFAULTS.fallback
        if self.trainer.exact is None or self.options.limits.min_agreement is not None:
            return CoverageGoal(0.0, np.inf, 0.0), trained, self.select(trained)
        for agreement in config.coverage_agreements:
            goal = self._goal(agreement, trained, config.max_time_factor)
            covered = [self.trainer.with_coverage(item, goal) for item in trained]
            reached = [place for place, item in enumerate(covered) if goal.is_reached_by(item)]
            if reached:
                return goal, covered, min(reached, key=lambda place: covered[place].candidate.cost)
        goal, selected = self._goal(agreement, trained, 1.0), self.select(trained)
        if self._loses_much_alone(trained):
            return replace(goal, agreement=0.0, max_cost=np.inf), trained, selected
        if trained[selected].candidate.cost > goal.max_cost:
            selected = self._select_alone(trained)
        covered = list(trained)
        covered[selected] = self.trainer.with_coverage(trained[selected], goal)
        return goal, covered, selected

    def _loses_much_alone(self, trained: list[TrainedCandidate]) -> bool:
        """Return whether the skill asks for fallback whatever it costs."""
        alone = trained[self._select_alone(trained)]
        loss, _ = self.trainer.criterion.skill_loss(alone.curve.class_index)
        return loss > DEFAULTS.fallback.max_loss_alone

    def _select_alone(self, trained: list[TrainedCandidate]) -> int:
        """Return the place of the candidate that would be selected without fallback."""
        return self.select(
            [
                replace(
                    item,
                    candidate=replace(item.candidate, cost=item.map_scheme.cost),
                    is_good_enough=item.is_good_alone,
                )
                for item in trained
            ]
        )

    def _goal(
        self, agreement: float, trained: list[TrainedCandidate], time_factor: float
    ) -> CoverageGoal:
        """Return a goal whose rows take so many times as long as those of the best model.

        That is the model that would be selected without fallback, or a cheaper one with fallback.
        """
        assert self.trainer.exact is not None
        best_cost = min(
            trained[self._select_alone(trained)].map_scheme.cost,
            trained[self.select(trained)].candidate.cost,
        )
        row_cost = DEFAULTS.search.row_cost
        max_cost = time_factor * (best_cost + row_cost) - row_cost
        return CoverageGoal(agreement, max_cost, self.trainer.exact.cost)

    def sizes(self) -> list[int]:
        """Return the numbers of points of the candidates, ascending."""
        is_wide = self.trainer.is_wide
        all_sizes = DEFAULTS.search.wide_sizes if is_wide else DEFAULTS.search.sizes
        sizes = [size for size in all_sizes if size == 1 or self._is_affordable(size)]
        larger = [size for size in all_sizes if size > sizes[-1]]
        if larger and not is_wide:
            sizes.extend(self._largest_affordable(sizes[-1], larger[0]))
        limits = self.options.limits
        if not limits.has_any:
            return sizes
        has_raw = self.data.preprocessing is not None
        rows = self.trainer.raw_rows if has_raw else self.trainer.validation.rows
        return sizes_within_limits(limits, sizes, self.trainer.untrained_scheme, rows)

    def _is_affordable(self, n_points: int) -> bool:
        """Return whether there are rows for so many points, and their map is fast enough."""
        if n_points > self._max_points:
            return False
        cost = self.trainer.untrained_scheme(n_points).cost
        if not self._is_cheaper_than_exact(cost):
            return False
        if self.options.limits.min_agreement is not None:
            return True
        is_small = n_points <= DEFAULTS.search.few_points
        max_cost = self.source.query_cost if is_small else self.max_cost_without_proof
        max_cost = max(max_cost, DEFAULTS.search.negligible_cost)
        return cost <= max_cost

    def _is_cheaper_than_exact(self, cost: float) -> bool:
        """Return whether a map of some cost may be taken instead of the exact sums, if any."""
        exact = self.trainer.exact
        return exact is None or cost <= DEFAULTS.search.max_share_of_exact_cost * exact.cost

    @property
    def _max_points(self) -> int:
        """Largest number of points that there are rows for."""
        return max(len(self.data.rows), DEFAULTS.search.points_for_any_rows)

    @property
    def max_cost_without_proof(self) -> float:
        """Multiply-adds per row above which a candidate must be better by more."""
        config = DEFAULTS.search
        return max(self.source.multiply_adds / config.min_speed_up, config.negligible_cost)

    def _largest_affordable(self, low: int, high: int) -> list[int]:
        """Return the largest affordable number of points between two sizes, if it is worth it."""
        high = min(high, self._max_points + 1)
        min_agreement = self.options.limits.min_agreement
        min_size = low + int(low * DEFAULTS.search.min_size_step)
        while high - low > 1:
            middle = (low + high) // 2
            cost = self.trainer.untrained_scheme(middle).cost
            is_affordable = self._is_cheaper_than_exact(cost) and (
                min_agreement is not None or cost <= self.max_cost_without_proof
            )
            low, high = (middle, high) if is_affordable else (low, middle)
        return [low] if low >= min_size else []

    def _train_and_log(
        self, n_points: int, blend: int, seed: np.random.SeedSequence
    ) -> TrainedCandidate:
        """Train a candidate with the budget of the search, and report it."""
        trained = self.trainer.train(n_points, blend, seed.spawn(1)[0], self.trainer.search_budget)
        candidate = trained.candidate
        if self.verbose:
            print(
                f"{candidate.n_borders} point{'s' * (candidate.n_borders > 1)}, blend "
                f"{candidate.blend}: cost {candidate.cost} multiply-adds per row, agreement "
                f"{candidate.agreement:.2%}, expected skill loss {candidate.skill_loss:.4f}"
            )
        return trained

    def _smaller_sizes(
        self, trained: list[TrainedCandidate], seed: np.random.SeedSequence
    ) -> Iterator[TrainedCandidate]:
        """Train half as many points while they are good enough, down to the size before."""
        size_before = trained[-2].candidate.n_borders if len(trained) > 1 else 0
        last = trained[-1]
        best_cost = np.inf
        while (
            last.is_good_enough
            and last.candidate.cost < best_cost
            and last.candidate.n_borders // 2 > size_before
        ):
            best_cost = last.candidate.cost
            n_points = last.candidate.n_borders // 2
            last = self._train_and_log(n_points, self.trainer.blend, seed)
            yield last

    def _larger_sizes(
        self, trained: list[TrainedCandidate], seed: np.random.SeedSequence
    ) -> Iterator[TrainedCandidate]:
        """Train more points where no candidate agrees on coverage rows at the cost allowed."""
        if self.trainer.exact is None or self.options.limits.min_agreement is not None:
            return
        config = DEFAULTS.fallback
        goal = self._goal(config.coverage_agreements[0], trained, config.max_time_factor)
        n_points = 2 * max(item.candidate.n_borders for item in trained)
        max_points = max(self.sizes()) if self.options.limits.has_any else self._max_points
        is_reached = any(
            goal.is_reached_by(self.trainer.with_coverage(item, goal)) for item in trained
        )
        while (
            not is_reached
            and n_points <= max_points
            and self.trainer.untrained_scheme(n_points).cost <= goal.max_cost
        ):
            larger = self._train_and_log(n_points, self.trainer.blend, seed)
            is_reached = goal.is_reached_by(self.trainer.with_coverage(larger, goal))
            n_points *= 2
            yield larger

    def select(self, trained: list[TrainedCandidate]) -> int:
        """Return the place of the best candidate."""
        validation = self.trainer.validation
        rarest_class = np.bincount(validation.class_index, validation.weights).min()
        return select(
            [self._for_selection(item) for item in trained],
            self.options.limits.min_agreement,
            [item.balanced_agreement for item in trained],
            max_cost_without_proof=self.max_cost_without_proof,
            min_difference=DEFAULTS.search.min_difference * rarest_class,
            good_enough=[item.is_good_enough for item in trained],
        )

    def _for_selection(self, trained: TrainedCandidate) -> Candidate:
        """Return a candidate with the agreement that it is selected by."""
        candidate, (agreement, error) = trained.candidate, trained.agreement
        if self.options.limits.min_agreement is not None:
            return replace(candidate, agreement_error=error)
        return replace(candidate, agreement=agreement, agreement_error=error)


def should_stop(agreements: Sequence[float]) -> bool:
    """Return whether agreement is complete, or the last sizes did not improve it."""
    if not agreements:
        return False
    best = max(range(len(agreements)), key=agreements.__getitem__)
    n_since = len(agreements) - 1 - best
    return agreements[best] >= 1.0 or n_since >= DEFAULTS.search.patience


def select(
    candidates: list[Candidate],
    min_agreement: float | None = None,
    balanced_agreements: Sequence[tuple[float, float]] | None = None,
    max_cost_without_proof: float = np.inf,
    min_difference: float = 0.0,
    good_enough: Sequence[bool] = (),
) -> int:
    """Return the place of the cheapest candidate that is good enough, or as good as the best."""
    if min_agreement is not None:
        reachable = min(min_agreement, max(item.agreement for item in candidates))
        places = {place for place, item in enumerate(candidates) if item.agreement >= reachable}
        return _cheapest(candidates, places)
    if any(good_enough):
        return _cheapest(candidates, set(np.flatnonzero(good_enough).tolist()))
    agreements = [
        (item.agreement, max(item.agreement_error, min_difference)) for item in candidates
    ]
    balanced = balanced_agreements or []
    n_errors = DEFAULTS.search.select_errors
    place = _cheapest(candidates, _near_best(agreements, balanced, n_errors))
    if candidates[place].cost <= max_cost_without_proof:
        return place
    n_errors = DEFAULTS.search.costly_select_errors
    return _cheapest(candidates, _near_best(agreements, balanced, n_errors))


def _near_best(
    agreements: Sequence[tuple[float, float]],
    balanced_agreements: Sequence[tuple[float, float]],
    n_errors: float,
) -> set[int]:
    """Return the places of the candidates whose agreements are near the best."""
    near, near_balanced = (
        _within(results, n_errors) for results in (agreements, balanced_agreements)
    )
    # Where no candidate is near in both, the rare classes decide.
    return near & near_balanced or near_balanced or near


def _within(results: Sequence[tuple[float, float]], n_errors: float) -> set[int]:
    """Return the places of the results within so many standard errors of the best."""
    if not results:
        return set()
    best, error = max(results)
    return {place for place, (value, _) in enumerate(results) if value >= best - n_errors * error}


def _cheapest(candidates: list[Candidate], places: set[int]) -> int:
    """Return the place of the cheapest of some candidates."""
    return min(places, key=lambda place: candidates[place].cost)


def _warn_if_below(candidate: Candidate, min_agreement: float | None) -> None:
    """Warn where min_agreement is not reached."""
    if min_agreement is not None and candidate.agreement < min_agreement:
        warnings.warn(
            f"min_agreement={min_agreement!r} is not reached: {candidate.n_borders} border points "
            f"agree with the source on {candidate.agreement:.2%} of rows "
            f"(± {candidate.agreement_error:.2%}). Give more rows, or a source with exact sums and "
            "fallback='auto'.",
            QualityWarning,
            stacklevel=2,
        )


def sizes_within_limits(
    limits: Limits,
    sizes: Sequence[int],
    untrained_scheme: Callable[[int], Scheme],
    rows: NDArray[np.floating],
) -> list[int]:
    """Return the sizes that limits allow, and the largest number of points that they do."""
    exceeded = exceeded_limit(limits, untrained_scheme(1), rows)
    if exceeded:
        raise ValueError(
            f"{exceeded} with a single linear function per class. Raise the limit, or give the "
            "source fewer features."
        )
    low, high = 1, DEFAULTS.search.max_points + 1
    while high - low > 1:
        middle = (low + high) // 2
        is_within = not exceeded_limit(limits, untrained_scheme(middle), rows)
        low, high = (middle, high) if is_within else (low, middle)
    return sorted({*(size for size in sizes if size < low), min(low, max(sizes))})


def exceeded_limit(limits: Limits, scheme: Scheme, rows: NDArray[np.floating]) -> str:
    """Return the limit that a scheme exceeds and by what; an empty string where there is none."""
    if limits.max_cost is not None and scheme.cost > limits.max_cost:
        return f"max_cost={limits.max_cost!r}: a row costs {scheme.cost} multiply-adds"
    if limits.max_bytes is not None and scheme.n_bytes > limits.max_bytes:
        return f"max_bytes={limits.max_bytes!r}: the model takes {scheme.n_bytes} bytes"
    if limits.max_time_us is not None:
        microseconds = microseconds_per_row(scheme, rows)
        if microseconds > limits.max_time_us:
            return f"max_time_us={limits.max_time_us!r}: a row takes {microseconds:.2g} µs"
    return ""


def microseconds_per_row(scheme: Scheme, rows: NDArray[np.floating]) -> float:
    """Return the microseconds that a scheme takes per row of a batch, on one thread."""
    batch = np.resize(rows, (DEFAULTS.search.timed_rows, rows.shape[1])).astype(np.float32)
    scheme.classify(batch[:100])
    (best,) = time_in_turns(
        [lambda: scheme.classify(batch)], n_turns=DEFAULTS.search.timing_turns, turn_seconds=0.0
    )
    return 1e6 * best.seconds / DEFAULTS.search.timed_rows
