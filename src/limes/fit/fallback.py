"""Which rows a trained map hands to the exact sums: those with a margin below a threshold."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from limes._typing import Array, Indices
from limes.fit.config import DEFAULTS, Budget
from limes.fit.validation import ValidationSet, agreement_error
from limes.model.model import Candidate
from limes.model.schemes import MapScheme

# The largest threshold that a scheme takes: every row is handed over.
MAX_MARGIN = 1e30


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

    map_scheme: MapScheme
    candidate: Candidate
    budget: Budget
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
        n_errors = DEFAULTS.search.worse_errors
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
