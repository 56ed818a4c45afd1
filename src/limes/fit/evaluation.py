"""Candidates on validation rows: agreement, expected loss, and the margin of fallback."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from limes._core.train import TrainedMap
from limes._typing import Array, Indices
from limes.fit.config import DEFAULTS, FitOptions, Limits
from limes.fit.data import FitData
from limes.fit.train import calibrate, to_border_map
from limes.fit.validation import ValidationSet, agreement_error, augmented_validation_set
from limes.model.border_map import BorderMap
from limes.model.exact import ExactScheme, FallbackScheme
from limes.model.model import Candidate
from limes.model.packed import table_sizes
from limes.model.schemes import MapScheme, PairwiseScheme, Scheme, SharedScheme
from limes.sources.base import MulticlassSource
from limes.timing import time_in_turns

# The largest threshold that a scheme takes: every row is handed over.
MAX_MARGIN = 1e30
# Numeric guards: below these, skill and entropy are rounding errors.
MIN_SKILL, MIN_ENTROPY = 1e-6, 1e-12
# Squares may be evaluated for an eighth, a quarter or half of the classes, where that is no less
# than some: the choice of an algorithm, not of labels.
LISTED_PARTS, MIN_LISTED = (8, 4, 2), 6


@dataclass(frozen=True, eq=False)
class SkillCriterion:
    """Expected scores of labels, the source's probabilities standing for the unknown classes."""

    # Rows with the source's labels.
    validation: ValidationSet
    # Shape (n_rows, n_classes). The source's probability of each class.
    calibrated_probabilities: Array

    @cached_property
    def skill(self) -> float:
        """Expected uncertainty coefficient of the source's labels."""
        return self._information(self.validation.class_index)[0] / self._entropy

    def keeps_skill(self, class_index: Indices) -> bool:
        """Return whether the expected loss of skill by labels, plus errors, is below its limit."""
        config = DEFAULTS.criterion
        if (
            self.skill < MIN_SKILL
            or self.validation.recall_by_class(class_index).min() < config.min_recall
        ):
            return False
        loss, error = self.skill_loss(class_index)
        max_loss = min(config.max_skill_loss, config.max_relative_skill_loss * self.skill)
        # A model that is better than the source by more than that predicts other labels.
        return loss + config.loss_errors * error <= max_loss and loss >= -max_loss

    def keeps_brier(self, probabilities: Array) -> bool:
        """Return whether the expected increase of the Brier score is below its limit."""
        return self.brier_increase(probabilities) <= DEFAULTS.criterion.max_skill_loss

    def skill_loss(self, class_index: Indices) -> tuple[float, float]:
        """Return the expected loss of uncertainty coefficient by labels, and its standard error."""
        source_index = self.validation.class_index
        source_total, source_information = self._information(source_index)
        total, information = self._information(class_index)
        # Pointwise information of the source's label less that of the other, by true class.
        difference = source_information[:, source_index].T - information[:, class_index].T
        row_loss = np.einsum("ij,ij->i", self.calibrated_probabilities, difference) / self._entropy
        loss = (source_total - total) / self._entropy
        return loss, self.validation.standard_error(row_loss)

    def brier_increase(self, probabilities: Array) -> float:
        """Return the expected increase of the Brier score by other probabilities."""
        distances = np.square(probabilities - self.calibrated_probabilities).sum(axis=1)
        return 0.5 * float(self.validation.weights @ distances)

    @cached_property
    def _entropy(self) -> float:
        """Entropy of the true class; infinite where there is but one class."""
        shares = self.validation.weights @ self.calibrated_probabilities
        entropy = -float(np.sum(shares * _log(shares)))
        return entropy if entropy > MIN_ENTROPY else np.inf

    def _information(self, class_index: Indices) -> tuple[float, Array]:
        """Return the mutual information of labels and true classes, and it pointwise.

        The pointwise information has the shape (n_classes, n_classes): true class, label.
        """
        n_rows, n_classes = self.calibrated_probabilities.shape
        label_weights = sparse.csr_array(
            (self.validation.weights, class_index, np.arange(n_rows + 1)), shape=(n_rows, n_classes)
        )
        joint = (label_weights.T @ self.calibrated_probabilities).T
        pointwise = _log(joint) - _log(joint.sum(axis=1))[:, None] - _log(joint.sum(axis=0))
        return float(np.sum(joint * pointwise)), pointwise


def _log(shares: Array) -> Array:
    """Return logarithms, 0 for a share of 0: it is multiplied by that share."""
    return np.log(np.where(shares > 0, shares, 1.0))


@dataclass(frozen=True, eq=False)
class MarginCurve:
    """The labels and margins of a map on a validation set, for any threshold of the margin."""

    validation: ValidationSet
    # Shape (n_rows,). The map's class index and margin of each row.
    class_index: Indices
    margins: Array

    @classmethod
    def of_scheme(cls, scheme: MapScheme, validation: ValidationSet, rows: Array) -> "MarginCurve":
        """Evaluate a scheme of one map on the rows of a validation set."""
        values = scheme.values(rows)
        return cls(validation, scheme.class_index(values), scheme.margins(values))

    @cached_property
    def thresholds(self) -> Array:
        """Thresholds that change the agreement, ascending: 0, and just above each wrong margin."""
        wrong = self.margins[self.class_index != self.validation.class_index]
        return np.concatenate([[0.0], np.nextafter(np.unique(wrong), np.inf)])

    def with_fallback(self, threshold: float) -> Indices:
        """Return the class index of each row, the source's below a threshold of the margin."""
        return np.where(self.margins < threshold, self.validation.class_index, self.class_index)

    def share(self, threshold: float) -> float:
        """Return the weighted share of rows with a margin below a threshold."""
        return min(1.0, float(self.validation.weights @ (self.margins < threshold)))

    def agreement(self, threshold: float) -> float:
        """Return the agreement with fallback below a threshold."""
        return self.validation.agreement_assuming_independence(self.with_fallback(threshold))[0]

    def smallest_threshold(self, is_enough: Callable[[float], bool]) -> float:
        """Return the smallest threshold that is enough; infinity where none is.

        A larger threshold is never worse, so that a bisection finds it.
        """
        thresholds = self.thresholds
        if not is_enough(float(thresholds[-1])):
            return float("inf")
        low, high = -1, len(thresholds) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if is_enough(float(thresholds[middle])):
                high = middle
            else:
                low = middle
        return float(thresholds[high])

    def threshold_of_agreement(self, agreement: float, n_errors: float = 0.0) -> float:
        """Return the smallest threshold at which the agreement exceeds a number.

        With ``n_errors``, by so many standard errors.
        """
        effective_size = 1.0 / float(np.square(self.validation.weights).sum())

        def is_enough(threshold: float) -> bool:
            estimate = self.agreement(threshold)
            error = agreement_error(estimate * effective_size, effective_size)
            return estimate - n_errors * error >= agreement

        return self.smallest_threshold(is_enough)

    def threshold_of_share(self, share: float) -> float:
        """Return the largest threshold that hands over at most a share of the rows."""
        if share >= 1.0:
            return float("inf")
        order = np.argsort(self.margins)
        handed_over = np.cumsum(self.validation.weights[order])
        n_within = int(np.searchsorted(handed_over, share, side="right"))
        return float(self.margins[order][n_within]) if n_within < len(order) else float("inf")

    def threshold_of_skill(self, keeps_skill: Callable[[Indices], bool]) -> float:
        """Return the smallest threshold at which labels keep the source's skill."""
        threshold = self.smallest_threshold(lambda margin: keeps_skill(self.with_fallback(margin)))
        # Where even the source's own labels have no skill, there is none to keep.
        return threshold if np.isfinite(threshold) else 0.0


def margin_of_agreement(curve: MarginCurve, coverage: MarginCurve, min_agreement: float) -> float:
    """Return the smallest margin that reaches an agreement safely, on coverage rows as well."""
    config = DEFAULTS.fallback
    goal = 1.0 - config.disagreement_share * (1.0 - min_agreement)
    return min(
        MAX_MARGIN,
        max(
            curve.threshold_of_agreement(goal, config.agreement_errors),
            coverage.threshold_of_agreement(goal),
        ),
    )


@dataclass(frozen=True, eq=False)
class TrainedCandidate:
    """A map with its agreement, and the margin below which it hands rows to the exact sums."""

    # Before calibration, so that its training can go on.
    trained: TrainedMap
    map_scheme: MapScheme
    candidate: Candidate
    # Labels and margins on the validation rows and on the coverage rows.
    curve: MarginCurve
    coverage: MarginCurve
    # Rows with a smaller margin are handed to the exact sums.
    margin: float
    # Of the map without fallback, each with its standard error: assuming that rows are independent,
    # and as the mean over classes.
    agreement: tuple[float, float]
    balanced_agreement: tuple[float, float]
    # Whether it meets the criterion of skill and Brier score, or the user's min_agreement; with its
    # fallback, and without.
    is_good_enough: bool
    is_good_alone: bool

    def is_worse_than(self, other: "TrainedCandidate") -> bool:
        """Return whether an agreement is lower by more than its standard error explains."""
        pairs = (
            (self.agreement, other.agreement),
            (self.balanced_agreement, other.balanced_agreement),
        )
        n_errors = DEFAULTS.search.select_errors
        return any(first[0] < second[0] - n_errors * second[1] for first, second in pairs)


@dataclass(frozen=True)
class CoverageGoal:
    """An agreement on coverage rows, and the expected cost of a row that may be spent on it."""

    agreement: float
    max_cost: float
    # Cost of the exact sums.
    exact_cost: float

    def is_reached_by(self, trained: TrainedCandidate) -> bool:
        """Return whether a candidate keeps the skill and agrees, at that cost.

        Rows in use may lie between those given and coverage rows, of which more are handed over:
        the mean of both shares counts. By the share of rows like those given, usps took 4.6 times
        as long as its map, not twice.
        """
        shares = [curve.share(trained.margin) for curve in (trained.curve, trained.coverage)]
        cost = trained.map_scheme.cost + self.exact_cost * sum(shares) / 2
        is_covering = trained.candidate.coverage_agreement >= self.agreement
        return trained.is_good_enough and is_covering and cost <= self.max_cost


class Evaluator:
    """Evaluates maps on the same rows, with the fallback that the skill or the user asks for."""

    def __init__(
        self,
        source: MulticlassSource,
        data: FitData,
        validation: ValidationSet,
        coverage: ValidationSet,
        options: FitOptions,
        exact: ExactScheme | None = None,
    ) -> None:
        self.source, self.held_out = source, validation
        self.data, self.options, self.exact = data, options, exact
        self.raw_rows = validation.rows
        self.coverage, self.coverage_rows = coverage, data.to_source_space(coverage.rows)
        scheme_class = PairwiseScheme if len(source.classes) == 2 else SharedScheme
        # Makes the scheme of a tuple of one map for all classes.
        self.as_scheme: Callable[[tuple[BorderMap]], MapScheme] = partial(
            scheme_class, n_classes=len(source.classes), double=options.double
        )
        self.validation, self.validation_rows = augmented_validation_set(source, data, validation)
        self.criterion = SkillCriterion(
            self.validation, source.calibrated_probabilities(self.validation_rows)
        )

    def evaluate(self, trained: TrainedMap, blend: int) -> TrainedCandidate:
        """Calibrate a map in training, and evaluate it on the validation rows."""
        map_ = calibrate(
            to_border_map(trained, blend),
            self.validation_rows,
            self.criterion.calibrated_probabilities,
            self.validation.weights,
        )
        map_ = self._with_shortlist(map_)
        inner = self.as_scheme((map_,))
        values = inner.values(self.validation_rows)
        curve = MarginCurve(self.validation, inner.class_index(values), inner.margins(values))
        coverage = MarginCurve.of_scheme(inner, self.coverage, self.coverage_rows)
        scheme = self.as_scheme((map_.with_preprocessing(self.data.preprocessing),))
        margin = self._needed_margin(curve, coverage, scheme)
        probabilities = inner.probabilities(values)
        blend = min(blend, max(map_.n_borders - 1, 1))
        candidate = self._candidate(scheme, blend, curve, coverage, margin)
        return TrainedCandidate(
            trained,
            scheme,
            candidate,
            curve,
            coverage,
            margin,
            self.validation.agreement_assuming_independence(curve.class_index),
            self.validation.balanced_agreement(curve.class_index),
            self._is_good_enough(candidate, curve.with_fallback(margin), probabilities),
            margin == 0 and self._is_good_enough(candidate, curve.class_index, probabilities),
        )

    def _with_shortlist(self, map_: BorderMap) -> BorderMap:
        """Evaluate squares for the likeliest classes alone, where that changes no label."""
        curve = map_.curve
        parts = [map_.n_outputs // part for part in LISTED_PARTS]
        n_listed = [number for number in parts if number >= MIN_LISTED]
        if curve is None or curve.squares is None or not n_listed:
            return map_
        labels = map_.decide(self.validation_rows).argmax(axis=1)
        for number in n_listed:
            listed = replace(map_, curve=replace(curve, n_listed=number))
            if np.array_equal(listed.decide(self.validation_rows).argmax(axis=1), labels):
                return listed
        return map_

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
        base = scheme.maps[0].curve
        loss, error = self.criterion.skill_loss(class_index)
        return Candidate(
            scheme.name,
            scheme.n_borders,
            blend,
            self._with_fallback(scheme, margin, share).cost,
            *self.validation.agreement(class_index),
            skill_loss=loss,
            skill_loss_error=error,
            fallback_share=share,
            coverage_agreement=coverage.agreement(margin),
            shape="linear" if base is None else base.shape,
        )

    def on_held_out_rows(self, trained: TrainedCandidate) -> Candidate:
        """Return a candidate with its numbers on held-out rows alone, as users are told them.

        Candidates are compared on more rows where these are few.
        """
        candidate, held_out = trained.candidate, self.held_out
        if held_out is self.validation:
            return candidate
        if not len(held_out.rows):
            unknown = float("nan")
            return replace(
                candidate,
                agreement=unknown,
                agreement_error=agreement_error(0.0, 0.0),
                skill_loss=unknown,
                skill_loss_error=unknown,
            )
        curve = MarginCurve.of_scheme(trained.map_scheme, held_out, held_out.rows)
        class_index = curve.with_fallback(trained.margin)
        rows = self.data.to_source_space(held_out.rows)
        criterion = SkillCriterion(held_out, self.source.calibrated_probabilities(rows))
        agreement, error = held_out.agreement(class_index)
        loss, loss_error = criterion.skill_loss(class_index)
        return replace(
            candidate,
            agreement=agreement,
            agreement_error=error,
            skill_loss=loss,
            skill_loss_error=loss_error,
        )

    @property
    def can_fall_back(self) -> bool:
        """Whether a map may hand rows to the exact sums."""
        return self.exact is not None and self.options.fallback is not False

    def _needed_margin(self, curve: MarginCurve, coverage: MarginCurve, scheme: MapScheme) -> float:
        """Return the margin that keeps the skill, or reaches min_agreement, within the limits."""
        if not self.can_fall_back:
            return 0.0
        min_agreement = self.options.limits.min_agreement
        if min_agreement is not None:
            margin = margin_of_agreement(curve, coverage, min_agreement)
        else:
            margin = curve.threshold_of_skill(self.criterion.keeps_skill)
        return margin if self._is_within_limits(scheme, margin, curve) else 0.0

    def with_coverage(self, trained: TrainedCandidate, goal: CoverageGoal) -> TrainedCandidate:
        """Raise the margin until coverage rows agree, and lower it to the cost that is allowed."""
        if not self.can_fall_back or self.options.limits.min_agreement is not None:
            return trained
        assert self.exact is not None
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
        is_calibrated = self.criterion.keeps_brier(probabilities)
        return is_calibrated and self.criterion.keeps_skill(class_index)

    def keep_better(self, first: TrainedCandidate, second: TrainedCandidate) -> TrainedCandidate:
        """Return the second candidate, unless it is worse or falls below min_agreement."""
        min_agreement = self.options.limits.min_agreement or 0.0
        agreement = first.candidate.agreement
        is_below = second.candidate.agreement < min(min_agreement, agreement)
        return first if is_below or second.is_worse_than(first) else second


def exceeded_limit(limits: Limits, scheme: Scheme, rows: NDArray[np.floating]) -> str:
    """Return the limit that a scheme exceeds and by what; an empty string where there is none."""
    if limits.max_cost is not None and scheme.cost > limits.max_cost:
        return f"max_cost={limits.max_cost!r}: a row costs {scheme.cost} multiply-adds"
    if limits.max_bytes is not None:
        n_bytes = table_sizes(scheme, None, np.float32).total + limits.label_bytes
        if n_bytes > limits.max_bytes:
            return f"max_bytes={limits.max_bytes!r}: the tables take {n_bytes} bytes"
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
