"""Sources that give one score a class, the largest of which decides."""

from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp, softmax

from limes._typing import Array, Codes, Labels
from limes.sources.protocol import MulticlassSource, Source


class ScoreSource(MulticlassSource):
    """Borders where two scores are equal; ``softmax(sharpness * scores)`` are probabilities.

    A binary classifier with one decision value is the same with the scores 0 and that value.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Labels.
    n_features : int
        Number of features.
    scores : callable
        Rows to (n_rows, n_classes).
    gradient : callable
        Rows to (n_rows, n_classes, n_features).
    sharpness : float
        Turns scores into logarithms of probabilities (Platt's A).
    shift : float, default=0.0
        Added to the second score of a binary source (Platt's B), where the border is asked for
        at equal probabilities instead of at a decision value of zero.
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

    def one_vs_rest(self, one: int) -> "_ScoreAgainstRest":
        """Return the border where a class has half the probability."""
        return _ScoreAgainstRest(self, one)

    def probabilities(self, X: Array) -> Array:
        """Return the probability of each class."""
        return softmax(self.logits(X), axis=1)

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
    """Half the difference of two logits."""

    def __init__(self, source: ScoreSource, first: int, second: int) -> None:
        self.source, self.first, self.second = source, first, second

    def decision(self, X: Array) -> Array:
        """Return half the difference of the two logits."""
        logits = self.source.logits(X)
        return 0.5 * (logits[:, self.second] - logits[:, self.first])

    def linearize(self, X: Array) -> tuple[Array, Array]:
        """Return the same with gradients."""
        slopes = self.source.logit_gradient(X)
        return self.decision(X), 0.5 * (slopes[:, self.second] - slopes[:, self.first])


class _ScoreAgainstRest(Source):
    """Half the logarithm of the odds of one class against all the others."""

    def __init__(self, source: ScoreSource, one: int) -> None:
        self.source, self.one = source, one

    def decision(self, X: Array) -> Array:
        """Return half the logarithm of the odds."""
        logits = self.source.logits(X)
        rest = np.delete(logits, self.one, axis=1)
        return 0.5 * (logits[:, self.one] - logsumexp(rest, axis=1))

    def linearize(self, X: Array) -> tuple[Array, Array]:
        """Return the same with gradients."""
        slopes = self.source.logit_gradient(X)
        share = softmax(np.delete(self.source.logits(X), self.one, axis=1), axis=1)
        rest = np.einsum("nk,nkd->nd", share, np.delete(slopes, self.one, axis=1))
        return self.decision(X), 0.5 * (slopes[:, self.one] - rest)
