"""Expected loss of skill and of Brier score; when a candidate is good enough."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from limes._typing import Array, Codes
from limes.fit.config import DEFAULTS
from limes.fit.validation import Judges

# Below these, rounding is all that is left.
LEAST_SKILL, LEAST_ENTROPY = 1e-6, 1e-12


@dataclass(frozen=True, eq=False)
class Stakes:
    """What is expected of answers on rows whose true classes nobody knows."""

    # Rows with the source's answers.
    judges: Judges
    # Shape (n_rows, n_classes). How likely each class is, by the source.
    forecasts: Array

    @cached_property
    def skill(self) -> float:
        """Uncertainty coefficient that the source's answers are expected to have."""
        return self._information(self.judges.codes)[0] / self._entropy

    def lost(self, codes: Codes) -> tuple[float, float]:
        """Return how much lower the uncertainty coefficient of other answers is, and its error."""
        own, own_worth = self._information(self.judges.codes)
        other, other_worth = self._information(codes)
        # What a row adds to the one beyond what it adds to the other.
        worth = own_worth[:, self.judges.codes].T - other_worth[:, codes].T
        added = np.einsum("ij,ij->i", self.forecasts, worth) / self._entropy
        return (own - other) / self._entropy, self.judges.error_of_mean(added)

    def blur(self, probabilities: Array) -> float:
        """Return how much larger the Brier score of other probabilities is expected to be."""
        distances = np.square(probabilities - self.forecasts).sum(axis=1)
        return 0.5 * float(self.judges.weights @ distances)

    def is_kept(self, codes: Codes, probabilities: Array) -> bool:
        """Tell whether the expected loss of skill is below the limits."""
        if (
            self.skill < LEAST_SKILL
            or self.judges.recalls(codes).min() < DEFAULTS.criterion.min_recall
        ):
            return False
        lost, error = self.lost(codes)
        most = min(
            DEFAULTS.criterion.max_skill_loss,
            DEFAULTS.criterion.max_relative_skill_loss * self.skill,
        )
        # What is much better than the source does not answer as the source does.
        is_same = lost + error <= most and lost >= -2 * most
        return is_same and self.blur(probabilities) <= DEFAULTS.criterion.max_brier_increase

    @cached_property
    def _entropy(self) -> float:
        """Entropy of the true class, by the source; infinite where it knows of one class only."""
        shares = self.judges.weights @ self.forecasts
        entropy = -float(np.sum(shares * _log(shares)))
        return entropy if entropy > LEAST_ENTROPY else np.inf

    def _information(self, codes: Codes) -> tuple[float, Array]:
        """Return what answers tell of the true class, and that by [true class, answer]."""
        n_rows, n_classes = self.forecasts.shape
        given = sparse.csr_array(
            (self.judges.weights, codes, np.arange(n_rows + 1)), shape=(n_rows, n_classes)
        )
        joint = (given.T @ self.forecasts).T
        worth = _log(joint) - _log(joint.sum(axis=1))[:, None] - _log(joint.sum(axis=0))
        return float(np.sum(joint * worth)), worth


def _log(shares: Array) -> Array:
    """Return logarithms; what has no share counts nothing."""
    return np.log(np.where(shares > 0, shares, 1.0))
