"""Sources that give class probabilities: AGF, kernel density, calibrated and generic ones."""

from collections.abc import Callable

import numpy as np

from limes._typing import Array, Codes, Labels
from limes.sources.protocol import MulticlassSource, Source

# A probability below this counts as this: its logarithm stays finite, far from any border.
FLOOR = 1e-12


class ProbabilitySource(MulticlassSource):
    """Borders where two class probabilities are equal.

    The decision value is half the logarithm of the odds, so that its hyperbolic tangent is
    the difference in conditional probability.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Labels.
    n_features : int
        Number of features.
    probabilities : callable
        Rows to (n_rows, n_classes).
    gradient : callable
        Rows to (n_rows, n_classes, n_features).
    codes : callable, default=None
        Rows to class numbers; the most probable class where it is not given.
    """

    def __init__(
        self,
        classes: Labels,
        n_features: int,
        *,
        probabilities: Callable[[Array], Array],
        gradient: Callable[[Array], Array],
        codes: Callable[[Array], Codes] | None = None,
    ) -> None:
        self.classes = classes
        self.n_features = n_features
        self.own_probabilities = probabilities
        self.probability_gradient = gradient
        self.own_codes = codes

    def pair(self, first: int, second: int) -> "_Odds":
        """Return the border between two classes."""
        return _Odds(self, second, first)

    def one_vs_rest(self, one: int) -> "_Odds":
        """Return the border where a class has half the probability."""
        return _Odds(self, one, None)

    def probabilities(self, X: Array) -> Array:
        """Return the probability of each class."""
        return self.own_probabilities(X)

    def codes(self, X: Array) -> Codes:
        """Return the number of the class that the classifier names."""
        if self.own_codes is not None:
            return self.own_codes(X)
        return np.argmax(self.probabilities(X), axis=1)


class _Odds(Source):
    """Half the logarithm of the odds of one class against another, or against the rest."""

    def __init__(self, source: ProbabilitySource, above: int, below: int | None) -> None:
        self.source, self.above, self.below = source, above, below

    def decision(self, X: Array) -> Array:
        """Return half the logarithm of the odds."""
        return _half_log_odds(*self._two_probabilities(X))

    def linearize(self, X: Array) -> tuple[Array, Array]:
        """Return the same with gradients."""
        above, below = self._two_probabilities(X)
        slopes = self.source.probability_gradient(X)
        rest = -slopes[:, self.above] if self.below is None else slopes[:, self.below]
        gradient = 0.5 * (_log_slope(slopes[:, self.above], above) - _log_slope(rest, below))
        return _half_log_odds(above, below), gradient

    def _two_probabilities(self, X: Array) -> tuple[Array, Array]:
        """Return the probability on the upper side of the border, and on the lower."""
        probabilities = self.source.probabilities(X)
        above = probabilities[:, self.above]
        if self.below is not None:
            return above, probabilities[:, self.below]
        return above, np.delete(probabilities, self.above, axis=1).sum(axis=1)


def _half_log_odds(above: Array, below: Array) -> Array:
    """Return half the logarithm of the odds, finite whatever the probabilities."""
    return 0.5 * (np.log(np.maximum(above, FLOOR)) - np.log(np.maximum(below, FLOOR)))


def _log_slope(slopes: Array, probability: Array) -> Array:
    """Return the gradient of the logarithm of a probability, zero at the floor."""
    scale = np.where(probability > FLOOR, 1 / np.maximum(probability, FLOOR), 0.0)
    return slopes * scale[:, None]
