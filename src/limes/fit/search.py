"""Candidates of growing size and shape, limits, selection, last training."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np

from limes._core import thread_count
from limes._core.train import TrainedMap
from limes._typing import Array
from limes.fit.config import DEFAULTS, FitOptions
from limes.fit.data import FitData
from limes.fit.evaluation import CoverageGoal, Evaluator, TrainedCandidate, exceeded_limit
from limes.fit.train import continue_training, fit_base, with_points
from limes.fit.transfer_set import TransferSet, build_transfer_set, extend_transfer_set
from limes.fit.validation import ValidationSet
from limes.model.affine import AffineMap
from limes.model.border_map import BorderMap
from limes.model.curved_base import SHAPES, CurvedBase
from limes.model.exact import ExactScheme
from limes.model.model import Candidate
from limes.model.schemes import MapScheme, Scheme
from limes.sources.base import MulticlassSource


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


@dataclass(frozen=True)
class Design:
    """What a candidate is trained with."""

    n_points: int
    shape: str
    blend: int


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
    n_jobs: int | None = None,
    verbose: int = 0,
) -> FittedScheme:
    """Fit one map for all classes, with the best number of points unless one is given.

    A map may hand rows to the exact sums. With ``can_be_exact``, these alone are a candidate too.
    """
    transfer_seed, final_seed = seed.spawn(2)
    rng = np.random.default_rng(transfer_seed)
    transfer_set = build_transfer_set(source, data.rows, rng=rng, encoded=data.encoded)
    evaluator = Evaluator(source, data, validation, coverage, options, exact)
    search = Search(source, data, transfer_set, evaluator, options, seed, n_jobs, verbose)
    trained = search.run()
    goal, trained, selected = search.cover(trained)
    candidates = [evaluator.on_held_out_rows(item) for item in trained]
    final = trained[selected]
    if not (can_be_exact and evaluator.is_slow_beside_exact(final)):
        final = evaluator.with_coverage(search.finish(final, final_seed), goal)
        candidates[selected] = evaluator.on_held_out_rows(final)
    if exact is not None and can_be_exact:
        is_exact = evaluator.is_slow_beside_exact(final)
        candidates.append(exact_candidate(exact, is_selected=is_exact))
        if is_exact:
            return FittedScheme(exact, exact, _by_cost(candidates))
    candidates[selected] = replace(candidates[selected], is_selected=True)
    last = search.train_on_all_rows(final, final_seed)
    schemes = evaluator.scheme_of(last), evaluator.scheme_of(final)
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
        skill_loss_error=0.0,
        coverage_agreement=1.0,
        score_correlation=1.0,
    )


class Search:
    """Trains candidates of several shapes and of growing size, and selects one."""

    def __init__(
        self,
        source: MulticlassSource,
        data: FitData,
        transfer_set: TransferSet,
        evaluator: Evaluator,
        options: FitOptions,
        seed: np.random.SeedSequence,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.source, self.data, self.transfer_set = source, data, transfer_set
        self.evaluator, self.options, self.seed = evaluator, options, seed
        self.n_threads, self.verbose = thread_count(n_jobs), verbose
        self.is_wide = transfer_set.components is not None
        self.blend = options.blend or DEFAULTS.search.blend
        # By shape: base functions, which every candidate starts from, and their cross-entropies.
        self.bases: dict[str, TrainedMap] = {}
        self.losses: dict[str, float] = {}

    def run(self) -> list[TrainedCandidate]:
        """Compare shapes alone and with a few points, then grow or shrink the best one."""
        trained = self._fit_bases()
        if self.options.n_borders is not None:
            sizes = [self.options.n_borders]
            if sizes == [1]:
                return [trained[self.select(trained)]]
        shapes = self._promising_shapes()
        if self.options.n_borders is not None:
            designs = [Design(self.options.n_borders, shape, self.blend) for shape in shapes]
            return list(self._train_in_order(designs))
        first = [
            Design(size, shape, self.blend)
            for shape in shapes
            for size in self._sizes_with_points(shape)[:1]
            if not self._cannot_be_cheaper(size, shape, trained)
        ]
        with_points = list(self._train_in_order(first))
        if not with_points:
            return trained
        shape = with_points[self.select(with_points)].candidate.shape
        trained.extend(with_points)
        path = [item for item in trained if item.candidate.shape == shape]
        path.extend(self._grow(path, trained))
        path.extend(self._shrink(path))
        trained.extend(item for item in path if item not in trained)
        trained.extend(self._without_curve(trained))
        trained.extend(self._larger_sizes(trained))
        trained.extend(self._smaller_blend(trained))
        return trained

    def _fit_bases(self) -> list[TrainedCandidate]:
        """Fit the base function of each shape by itself, a candidate of one point."""
        limits, rows = self.options.limits, self._timed_rows()
        exceeded = exceeded_limit(limits, self.untrained_scheme(1, "linear"), rows)
        if exceeded:
            raise ValueError(
                f"{exceeded} with a single linear function per class. Raise the limit, or give the "
                "source fewer features."
            )
        candidates = []
        for shape in self._possible_shapes():
            base, loss = fit_base(self.transfer_set, shape)
            self.bases[shape], self.losses[shape] = base, loss
            if not limits.has_any or not exceeded_limit(
                limits, self.untrained_scheme(1, shape), rows
            ):
                candidates.append(self.evaluator.evaluate(base, 1))
                self._log(candidates[-1])
        return candidates

    def _possible_shapes(self) -> tuple[str, ...]:
        """Return the shapes that a base function may have."""
        if not self.options.curved:
            return SHAPES[:1]
        if not self.is_wide:
            return SHAPES
        return ("linear", "quadratic") if self.transfer_set.directions is not None else SHAPES[:1]

    def _promising_shapes(self) -> list[str]:
        """Return the linear shape, and those with a lower cross-entropy than all cheaper ones."""
        shapes, lowest = ["linear"], self.losses["linear"]
        for shape in [name for name in self.losses if name != "linear"]:
            if self.losses[shape] < (1 - DEFAULTS.search.min_loss_decrease) * lowest:
                shapes.append(shape)
                lowest = self.losses[shape]
        return shapes

    def _grow(
        self, path: list[TrainedCandidate], trained: list[TrainedCandidate]
    ) -> Iterator[TrainedCandidate]:
        """Train more and more points of one shape until they stop helping."""
        path, shape = list(path), path[-1].candidate.shape
        largest = path[-1].candidate.n_borders
        sizes = [size for size in self._sizes_with_points(shape) if size > largest]
        designs = [Design(size, shape, self.blend) for size in sizes]
        results = self._train_in_order(designs)
        for size in sizes:
            if self._cannot_be_cheaper(size, shape, trained) or self._should_stop(path):
                break
            path.append(next(results))
            yield path[-1]

    def _shrink(self, path: list[TrainedCandidate]) -> Iterator[TrainedCandidate]:
        """Train half as many points while they are good enough, down to the size before."""
        last, size_before = path[-1], path[-2].candidate.n_borders if len(path) > 1 else 1
        best_cost = np.inf
        while (
            last.is_good_enough
            and last.candidate.cost < best_cost
            and last.candidate.n_borders // 2 > size_before
        ):
            best_cost = last.candidate.cost
            n_points = last.candidate.n_borders // 2
            last = self._train(Design(n_points, last.candidate.shape, self.blend))
            yield last

    def _without_curve(self, trained: list[TrainedCandidate]) -> Iterator[TrainedCandidate]:
        """Train as many points as the selected candidate has on a linear base function.

        The more points there are, the less a curved base helps on rows like those given, and away
        from these it may not.
        """
        selected = trained[self.select(trained)].candidate
        design = Design(selected.n_borders, "linear", self.blend)
        is_trained = any(
            (item.candidate.n_borders, item.candidate.shape) == (design.n_points, design.shape)
            for item in trained
        )
        if not is_trained:
            yield self._train(design)

    def _smaller_blend(self, trained: list[TrainedCandidate]) -> Iterator[TrainedCandidate]:
        """Continue the selected candidate with a smaller blend."""
        selected = trained[self.select(trained)]
        blend = DEFAULTS.search.small_blend
        # Behind a projection, a smaller blend saves little.
        can_shrink = self.options.blend is None and not self.is_wide
        if can_shrink and selected.is_good_enough and selected.candidate.blend > blend:
            candidate = selected.candidate
            design = Design(candidate.n_borders, candidate.shape, blend)
            n_samples = self.options.effort * DEFAULTS.train.blend_samples
            yield self._continue(selected.trained, design, n_samples)

    def _train_in_order(self, designs: Sequence[Design]) -> Iterator[TrainedCandidate]:
        """Yield trained candidates in order; with several threads, some are trained in advance."""
        if self.n_threads == 1:
            yield from map(self._train, designs)
            return
        with ThreadPoolExecutor(self.n_threads) as pool:
            waiting: list[Future[TrainedCandidate]] = []
            rest = iter(designs)
            try:
                for _ in designs:
                    for design in rest:
                        waiting.append(pool.submit(self._train, design))
                        if len(waiting) == self.n_threads:
                            break
                    yield waiting.pop(0).result()
            finally:
                for future in waiting:
                    future.cancel()

    def _train(self, design: Design) -> TrainedCandidate:
        """Train a candidate from its base function, and evaluate it."""
        rng = self._rng(design, 0)
        start = with_points(self.bases[design.shape], self.transfer_set, design.n_points, rng)
        n_samples = self.options.effort * DEFAULTS.train.search_samples
        return self._continue(start, design, n_samples)

    def _continue(self, start: TrainedMap, design: Design, n_samples: float) -> TrainedCandidate:
        """Train a map further, and evaluate it."""
        trained = continue_training(
            start,
            self.transfer_set,
            blend=design.blend,
            n_samples=n_samples,
            rng=self._rng(design, 1),
        )
        candidate = self.evaluator.evaluate(trained, design.blend)
        self._log(candidate)
        return candidate

    def _rng(self, design: Design, stage: int) -> np.random.Generator:
        """Return random numbers that depend on the candidate, not on those trained before it."""
        key = (design.n_points, SHAPES.index(design.shape), design.blend, stage)
        words = self.seed.generate_state(4)
        return np.random.default_rng(np.random.SeedSequence([*map(int, words), *key]))

    def finish(self, short: TrainedCandidate, seed: np.random.SeedSequence) -> TrainedCandidate:
        """Continue the training of the selected candidate; keep the first where that is worse."""
        config, candidate = DEFAULTS.train, short.candidate
        n_samples = min(config.final_samples, config.final_epochs * len(self.transfer_set.rows))
        design = Design(candidate.n_borders, candidate.shape, candidate.blend)
        longer = self._continue(short.trained, design, self.options.effort * n_samples)
        return self.evaluator.keep_better(short, longer)

    def train_on_all_rows(
        self, first: TrainedCandidate, seed: np.random.SeedSequence
    ) -> TrainedCandidate:
        """Continue with the held-out rows as well, where these are a large part of all.

        The fallback stays as it is, since these rows no longer show how many are needed.
        """
        held_out, config = self.data.held_out_rows, DEFAULTS.train
        if len(held_out) < DEFAULTS.search.min_held_out_share * self.transfer_set.n_real:
            return first
        rng = np.random.default_rng(seed)
        transfer_set = extend_transfer_set(
            self.transfer_set, self.source, held_out, rng=rng, encoded=self.data.held_out_encoded
        )
        n_samples = min(config.final_samples, config.final_epochs * len(transfer_set.rows))
        trained = continue_training(
            first.trained,
            transfer_set,
            blend=first.candidate.blend,
            n_samples=self.options.effort * config.held_out_samples_share * n_samples,
            rng=rng,
        )
        # Trained on the validation rows, it should agree better on them; if it is worse, the
        # optimiser failed.
        last = self.evaluator.evaluate(trained, first.candidate.blend)
        kept = self.evaluator.keep_better(first, last)
        return first if kept is first else replace(first, map_scheme=last.map_scheme)

    def _cannot_be_cheaper(
        self, n_points: int, shape: str, trained: list[TrainedCandidate]
    ) -> bool:
        """Return whether a good candidate costs no more than a map of so many points alone."""
        costs = [item.candidate.cost for item in trained if item.is_good_enough]
        return bool(costs) and min(costs) <= self.untrained_scheme(n_points, shape).cost

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
        if not self.evaluator.can_fall_back or self.options.limits.min_agreement is not None:
            return CoverageGoal(0.0, np.inf, 0.0), trained, self.select(trained)
        for agreement in config.coverage_agreements:
            goal = self._goal(agreement, trained, config.max_time_factor)
            covered = [self.evaluator.with_coverage(item, goal) for item in trained]
            reached = [place for place, item in enumerate(covered) if goal.is_reached_by(item)]
            if reached:
                return goal, covered, min(reached, key=lambda place: covered[place].candidate.cost)
        goal, selected = self._goal(agreement, trained, 1.0), self.select(trained)
        if self._loses_much_alone(trained):
            return replace(goal, agreement=0.0, max_cost=np.inf), trained, selected
        if trained[selected].candidate.cost > goal.max_cost:
            selected = self._select_alone(trained)
        covered = list(trained)
        covered[selected] = self.evaluator.with_coverage(trained[selected], goal)
        return goal, covered, selected

    def _loses_much_alone(self, trained: list[TrainedCandidate]) -> bool:
        """Return whether the skill asks for fallback whatever it costs."""
        alone = trained[self._select_alone(trained)]
        loss, _ = self.evaluator.criterion.skill_loss(alone.curve.class_index)
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
        assert self.evaluator.exact is not None
        best_cost = min(
            trained[self._select_alone(trained)].map_scheme.cost,
            trained[self.select(trained)].candidate.cost,
        )
        row_cost = DEFAULTS.search.row_cost
        max_cost = time_factor * (best_cost + row_cost) - row_cost
        return CoverageGoal(agreement, max_cost, self.evaluator.exact.cost)

    def _sizes_with_points(self, shape: str) -> list[int]:
        """Return the numbers of points, above one, that a candidate of a shape may have."""
        config = DEFAULTS.search
        all_sizes = (config.wide_sizes if self.is_wide else config.sizes)[1:]
        sizes = [size for size in all_sizes if self._is_affordable(size, shape)]
        low, larger = max(sizes, default=1), [size for size in all_sizes if size not in sizes]
        if larger and not self.is_wide:
            sizes.extend(self._largest_affordable(low, larger[0], shape))
        if self.options.limits.has_any:
            return self._within_limits(sizes, shape)
        return sizes

    def _within_limits(self, sizes: list[int], shape: str) -> list[int]:
        """Return the sizes that the user's limits allow, and the largest number of points."""
        limits, rows = self.options.limits, self._timed_rows()
        low, high = 1, DEFAULTS.search.max_points + 1
        while high - low > 1:
            middle = (low + high) // 2
            is_within = not exceeded_limit(limits, self.untrained_scheme(middle, shape), rows)
            low, high = (middle, high) if is_within else (low, middle)
        largest = min(low, max(sizes, default=1))
        return sorted({*(size for size in sizes if size < low), largest} - {1})

    def _timed_rows(self) -> Array:
        """Return raw rows that a limit of time is measured with."""
        has_raw = self.data.preprocessing is not None
        return self.evaluator.raw_rows if has_raw else self.evaluator.validation.rows

    def _is_affordable(self, n_points: int, shape: str) -> bool:
        """Return whether there are rows for so many points, and their map is fast enough."""
        if n_points > self._max_points:
            return False
        cost = self.untrained_scheme(n_points, shape).cost
        if not self._is_cheaper_than_exact(cost):
            return False
        if self.options.limits.min_agreement is not None:
            return True
        is_small = n_points <= DEFAULTS.search.few_points
        max_cost = self.source.query_cost if is_small else self._max_cost
        return cost <= max(max_cost, DEFAULTS.search.negligible_cost)

    def _is_cheaper_than_exact(self, cost: float) -> bool:
        """Return whether a map of some cost may be taken instead of the exact sums, if any."""
        exact = self.evaluator.exact
        return exact is None or cost <= DEFAULTS.search.max_share_of_exact_cost * exact.cost

    @property
    def _max_points(self) -> int:
        """Largest number of points that there are rows for."""
        return len(self.transfer_set.rows) // DEFAULTS.train.rows_per_initial_point

    @property
    def _max_cost(self) -> float:
        """Multiply-adds per row that a candidate of many points may cost."""
        config = DEFAULTS.search
        return max(self.source.multiply_adds / config.min_speed_up, config.negligible_cost)

    def _largest_affordable(self, low: int, high: int, shape: str) -> list[int]:
        """Return the largest affordable number of points between two sizes, if at least twice."""
        high = min(high, self._max_points + 1)
        min_agreement = self.options.limits.min_agreement
        min_size = 2 * low
        while high - low > 1:
            middle = (low + high) // 2
            cost = self.untrained_scheme(middle, shape).cost
            is_affordable = self._is_cheaper_than_exact(cost) and (
                min_agreement is not None or cost <= self._max_cost
            )
            low, high = (middle, high) if is_affordable else (low, middle)
        return [low] if low >= min_size else []

    def untrained_scheme(self, n_points: int, shape: str) -> MapScheme:
        """Return a scheme of random maps that costs as much as a trained one."""
        rng = np.random.default_rng(0)
        n_features = self.transfer_set.rows.shape[1]
        n_outputs = self.transfer_set.probabilities.shape[1]
        projection = None
        width = n_features
        if self.is_wide and n_points > 1:
            width = self.transfer_set.search_rows.shape[1]
            matrix = rng.normal(size=(n_features, width))
            projection = AffineMap(np.zeros(n_features), matrix)
        slopes = rng.normal(size=(n_points, width, n_outputs))
        map_ = BorderMap(
            rng.normal(size=(n_points, width)),
            (slopes if projection is None else matrix @ slopes).transpose(0, 2, 1),
            np.zeros((n_points, n_outputs)),
            projection,
            self.blend,
            self._untrained_curve(shape, n_outputs),
        )
        return self.evaluator.as_scheme((map_.with_preprocessing(self.data.preprocessing),))

    def _untrained_curve(self, shape: str, n_outputs: int) -> CurvedBase | None:
        """Return a curved base of zeros, with all the tables that a trained one may have."""
        if shape == "linear":
            return None
        n_features, directions = self.transfer_set.rows.shape[1], self.transfer_set.directions
        rng = np.random.default_rng(0)
        shift, scale = rng.uniform(0.1, 0.9, size=(2, n_features))
        step = AffineMap.scaling(shift, scale)
        if directions is not None:
            step = AffineMap(shift, np.ascontiguousarray(directions.T))
        n_terms = step.n_outputs
        n_squares = {"envelope": 0, "diagonal": n_terms, "quadratic": n_terms * (n_terms + 1) // 2}
        squares = np.zeros((n_outputs, n_squares[shape])) if n_squares[shape] else None
        return CurvedBase(step, np.zeros(n_outputs), np.zeros((n_outputs, n_terms)), squares)

    def _log(self, trained: TrainedCandidate) -> None:
        """Report a candidate."""
        candidate = trained.candidate
        if self.verbose:
            print(
                f"{candidate.n_borders} point{'s' * (candidate.n_borders > 1)}, "
                f"{candidate.shape} base, blend {candidate.blend}: cost {candidate.cost} "
                f"multiply-adds per row, agreement {candidate.agreement:.2%}, expected skill loss "
                f"{candidate.skill_loss:.4f}"
            )

    def _larger_sizes(self, trained: list[TrainedCandidate]) -> Iterator[TrainedCandidate]:
        """Train more points where no candidate agrees on coverage rows at the cost allowed."""
        if not self.evaluator.can_fall_back or self.options.limits.min_agreement is not None:
            return
        config = DEFAULTS.fallback
        goal = self._goal(config.coverage_agreements[0], trained, config.max_time_factor)
        largest = max(trained, key=lambda item: item.candidate.n_borders).candidate
        n_points, shape = 2 * max(largest.n_borders, 2), largest.shape
        sizes = self._sizes_with_points(shape)
        max_points = max(sizes, default=1) if self.options.limits.has_any else self._max_points
        is_reached = any(
            goal.is_reached_by(self.evaluator.with_coverage(item, goal)) for item in trained
        )
        while (
            not is_reached
            and n_points <= max_points
            and self.untrained_scheme(n_points, shape).cost <= goal.max_cost
        ):
            larger = self._train(Design(n_points, shape, self.blend))
            is_reached = goal.is_reached_by(self.evaluator.with_coverage(larger, goal))
            n_points *= 2
            yield larger

    def select(self, trained: list[TrainedCandidate]) -> int:
        """Return the place of the best candidate."""
        return select(
            [self._for_selection(item) for item in trained],
            self.options.limits.min_agreement,
            [item.balanced_agreement for item in trained],
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
    good_enough: Sequence[bool] = (),
) -> int:
    """Return the place of the cheapest candidate that is good enough, or as good as the best."""
    if min_agreement is not None:
        reachable = min(min_agreement, max(item.agreement for item in candidates))
        places = {place for place, item in enumerate(candidates) if item.agreement >= reachable}
        return _cheapest(candidates, places)
    if any(good_enough):
        return _cheapest(candidates, set(np.flatnonzero(good_enough).tolist()))
    agreements = [(item.agreement, item.agreement_error) for item in candidates]
    return _cheapest(candidates, _near_best(agreements, balanced_agreements or []))


def _near_best(
    agreements: Sequence[tuple[float, float]],
    balanced_agreements: Sequence[tuple[float, float]],
) -> set[int]:
    """Return the places of the candidates whose agreements are near the best."""
    n_errors = DEFAULTS.search.select_errors
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
