"""Expected loss of skill and of Brier score; when a candidate is good enough."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from limes._typing import Array, Indices
from limes.fit.config import DEFAULTS
from limes.fit.validation import ValidationSet

# Below these, rounding is all that is left.
LEAST_SKILL, LEAST_ENTROPY = 1e-6, 1e-12


@dataclass(frozen=True, eq=False)
class SkillCriterion:
    """What is expected of answers on rows whose true classes nobody knows."""

    # Rows with the source's answers.
    validation: ValidationSet
    # Shape (n_rows, n_classes). How likely each class is, by the source.
    calibrated_probabilities: Array

    @cached_property
    def skill(self) -> float:
        """Uncertainty coefficient that the source's answers are expected to have."""
        return self._information(self.validation.class_index)[0] / self._entropy

    def lost(self, class_index: Indices) -> tuple[float, float]:
        """Return how much lower the uncertainty coefficient of other answers is, and its error."""
        own, own_worth = self._information(self.validation.class_index)
        other, other_worth = self._information(class_index)
        # What a row adds to the one beyond what it adds to the other.
        information = own_worth[:, self.validation.class_index].T - other_worth[:, class_index].T
        added = np.einsum("ij,ij->i", self.calibrated_probabilities, information) / self._entropy
        return (own - other) / self._entropy, self.validation.standard_error(added)

    def brier_increase(self, probabilities: Array) -> float:
        """Return how much larger the Brier score of other probabilities is expected to be."""
        distances = np.square(probabilities - self.calibrated_probabilities).sum(axis=1)
        return 0.5 * float(self.validation.weights @ distances)

    def is_good_enough(self, class_index: Indices, probabilities: Array) -> bool:
        """Tell whether the expected loss of skill is below the limits."""
        if (
            self.skill < LEAST_SKILL
            or self.validation.recall_by_class(class_index).min() < DEFAULTS.criterion.min_recall
        ):
            return False
        lost, error = self.lost(class_index)
        max_loss = min(
            DEFAULTS.criterion.max_skill_loss,
            DEFAULTS.criterion.max_relative_skill_loss * self.skill,
        )
        # What is much better than the source does not answer as the source does.
        is_same = lost + error <= max_loss and lost >= -2 * max_loss
        return (
            is_same and self.brier_increase(probabilities) <= DEFAULTS.criterion.max_brier_increase
        )

    @cached_property
    def _entropy(self) -> float:
        """Entropy of the true class, by the source; infinite where it knows of one class only."""
        shares = self.validation.weights @ self.calibrated_probabilities
        entropy = -float(np.sum(shares * _log(shares)))
        return entropy if entropy > LEAST_ENTROPY else np.inf

    def _information(self, class_index: Indices) -> tuple[float, Array]:
        """Return what answers tell of the true class, and that by [true class, answer]."""
        n_rows, n_classes = self.calibrated_probabilities.shape
        given = sparse.csr_array(
            (self.validation.weights, class_index, np.arange(n_rows + 1)), shape=(n_rows, n_classes)
        )
        joint = (given.T @ self.calibrated_probabilities).T
        information = _log(joint) - _log(joint.sum(axis=1))[:, None] - _log(joint.sum(axis=0))
        return float(np.sum(joint * information)), information


def _log(shares: Array) -> Array:
    """Return logarithms; what has no share counts nothing."""
    return np.log(np.where(shares > 0, shares, 1.0))
