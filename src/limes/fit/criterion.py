"""Expected loss of skill and of Brier score; when a candidate is good enough."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from limes._typing import Array, Indices
from limes.fit.config import DEFAULTS
from limes.fit.validation import ValidationSet

# Numeric guards: below these, skill and entropy are rounding errors.
MIN_SKILL, MIN_ENTROPY = 1e-6, 1e-12


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

    def keeps_skill(self, class_index: Indices, *, n_errors: float) -> bool:
        """Return whether the expected loss of skill by labels, plus errors, is below its limit."""
        config = DEFAULTS.criterion
        if (
            self.skill < MIN_SKILL
            or self.validation.recall_by_class(class_index).min() < config.min_recall
        ):
            return False
        loss, error = self.skill_loss(class_index)
        max_loss = min(config.max_skill_loss, config.max_relative_skill_loss * self.skill)
        # A model that is much better than the source predicts other labels.
        return loss + n_errors * error <= max_loss and loss >= -config.max_gain_ratio * max_loss

    def keeps_brier(self, probabilities: Array) -> bool:
        """Return whether the expected increase of the Brier score is below its limit."""
        return self.brier_increase(probabilities) <= DEFAULTS.criterion.max_brier_increase

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
