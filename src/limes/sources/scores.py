"""Sources that give one score a class, the largest of which decides."""

from collections.abc import Callable

import numpy as np
from scipy.special import softmax

from limes._typing import Array, Codes, Labels
from limes.sources.probability import best_of_others
from limes.sources.protocol import MulticlassSource, Source


class ScoreSource(MulticlassSource):
    """Borders where two scores are equal; ``softmax(sharpness * scores)`` are probabilities.

    A binary classifier with one decision value is the same with the scores 0 and that value.
    """

    def __init__(
        self,
        classes: Labels,
        n_features: int,
        *,
        scores: Callable[[Array], Array],
        gradient: Callable[[Array], Array],
        sharpness: float,
        shift: float = 0.0,
    ) -> None:
        self.classes = classes
        self.n_features = n_features
        self.raw_scores = scores
        self.raw_gradient = gradient
        self.sharpness = sharpness
        self.shift = shift

    def pair(self, first: int, second: int) -> "_ScoreDifference":
        """Return the border between two classes."""
        return _ScoreDifference(self, first, second)

    def one_vs_rest(self, one: int) -> "_ScoreDifference":
        """Return the border where a class's score is that of the best of the others."""
        return _ScoreDifference(self, None, one)

    def probabilities(self, X: Array) -> Array:
        """Return the probability of each class."""
        return softmax(self.logits(X), axis=1)

    def scores(self, X: Array) -> Array:
        """Return the logits."""
        return self.logits(X)

    def codes(self, X: Array) -> Codes:
        """Return the number of the class with the largest score."""
        return np.argmax(self.logits(X), axis=1)

    def logits(self, X: Array) -> Array:
        """Return scores as logarithms of probabilities, up to a constant a row."""
        logits = self.sharpness * self.raw_scores(X)
        if self.shift:
            logits[:, 1] += self.shift
        return logits

    def logit_gradient(self, X: Array) -> Array:
        """Return the gradients of the logits."""
        return self.sharpness * self.raw_gradient(X)


class _ScoreDifference(Source):
    """Half the difference of two logits, or of one and the best of the others."""

    def __init__(self, source: ScoreSource, below: int | None, above: int) -> None:
        self.source, self.below, self.above = source, below, above

    def decision(self, X: Array) -> Array:
        """Return half the difference of the two logits."""
        return self._half_difference(self.source.logits(X))[0]

    def linearize(self, X: Array) -> tuple[Array, Array]:
        """Return the same with gradients."""
        values, rival = self._half_difference(self.source.logits(X))
        slopes = self.source.logit_gradient(X)
        return values, 0.5 * (slopes[:, self.above] - slopes[np.arange(len(X)), rival])

    def _half_difference(self, logits: Array) -> tuple[Array, Codes]:
        """Return half the difference, and the class on the lower side of the border."""
        if self.below is not None:
            rival = np.full(len(logits), self.below)
        else:
            rival = best_of_others(logits, self.above)
        return 0.5 * (logits[:, self.above] - logits[np.arange(len(logits)), rival]), rival
