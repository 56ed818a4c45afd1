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
    """

    def __init__(
        self,
        classes: Labels,
        n_features: int,
        *,
        probabilities: Callable[[Array], Array],
        gradient: Callable[[Array], Array],
        codes: Callable[[Array], Codes] | None = None,
        row_cost: float = MulticlassSource.row_cost,
    ) -> None:
        self.classes = classes
        self.n_features = n_features
        self.own_probabilities = probabilities
        self.probability_gradient = gradient
        self.own_codes = codes
        self.row_cost = row_cost

    def pair(self, first: int, second: int) -> "_Odds":
        """Return the border between two classes."""
        return _Odds(self, second, first)

    def one_vs_rest(self, one: int) -> "_Odds":
        """Return the border where a class is as probable as the best of the others."""
        return _Odds(self, one, None)

    def probabilities(self, X: Array) -> Array:
        """Return the probability of each class."""
        return self.own_probabilities(X)

    def scores(self, X: Array) -> Array:
        """Return the logarithm of each class's probability."""
        return np.log(np.maximum(self.probabilities(X), FLOOR))

    def codes(self, X: Array) -> Codes:
        """Return the number of the class that the classifier names."""
        if self.own_codes is not None:
            return self.own_codes(X)
        return np.argmax(self.probabilities(X), axis=1)


class _Odds(Source):
    """Half the logarithm of the odds of one class against another, or the best of the others."""

    def __init__(self, source: ProbabilitySource, above: int, below: int | None) -> None:
        self.source, self.above, self.below = source, above, below

    def decision(self, X: Array) -> Array:
        """Return half the logarithm of the odds."""
        probabilities = self.source.probabilities(X)
        below = self._below(probabilities)
        return _half_log_odds(probabilities[:, self.above], _pick(probabilities, below))

    def linearize(self, X: Array) -> tuple[Array, Array]:
        """Return the same with gradients."""
        probabilities = self.source.probabilities(X)
        slopes = self.source.probability_gradient(X)
        rival = self._below(probabilities)
        above, below = probabilities[:, self.above], _pick(probabilities, rival)
        rise = _log_slope(slopes[:, self.above], above) - _log_slope(_pick(slopes, rival), below)
        return _half_log_odds(above, below), 0.5 * rise

    def _below(self, probabilities: Array) -> Codes:
        """Return the class on the lower side of the border, for each row."""
        if self.below is not None:
            return np.full(len(probabilities), self.below)
        return best_of_others(probabilities, self.above)


def best_of_others(scores: Array, one: int) -> Codes:
    """Return the class with the largest score but for one."""
    others = scores.copy()
    others[:, one] = -np.inf
    return others.argmax(axis=1)


def _pick(values: Array, codes: Codes) -> Array:
    """Return the values of one class a row."""
    return values[np.arange(len(values)), codes]


def _half_log_odds(above: Array, below: Array) -> Array:
    """Return half the logarithm of the odds, finite whatever the probabilities."""
    return 0.5 * (np.log(np.maximum(above, FLOOR)) - np.log(np.maximum(below, FLOOR)))


def _log_slope(slopes: Array, probability: Array) -> Array:
    """Return the gradient of the logarithm of a probability, zero at the floor."""
    scale = np.where(probability > FLOOR, 1 / np.maximum(probability, FLOOR), 0.0)
    return slopes * scale[:, None]
