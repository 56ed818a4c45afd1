"""Sources with a logit a class: probabilities, scores, linear classifiers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model._base import LinearClassifierMixin

from limes._typing import Array, Indices, Labels
from limes.sources.base import (
    FLOOR,
    MulticlassSource,
    Source,
    SourceContext,
    as_source,
    best_of_others,
)
from limes.sources.platt import _sigmoid_of_scores


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
        class_index: Callable[[Array], Indices] | None = None,
        query_cost: float = MulticlassSource.query_cost,
    ) -> None:
        self.classes = classes
        self.n_features = n_features
        self.raw_probabilities = probabilities
        self.probability_gradient = gradient
        self.own_predict = class_index
        self.query_cost = query_cost

    def pair(self, first: int, second: int) -> "_Odds":
        """Return the border between two classes."""
        return _Odds(self, second, first)

    def one_vs_rest(self, one: int) -> "_Odds":
        """Return the border where a class is as probable as the best of the others."""
        return _Odds(self, one, None)

    def probabilities(self, X: Array) -> Array:
        """Return the probability of each class."""
        return self.raw_probabilities(X)

    def scores(self, X: Array) -> Array:
        """Return the logarithm of each class's probability."""
        return np.log(np.maximum(self.probabilities(X), FLOOR))

    def predict_index(self, X: Array) -> Indices:
        """Return the number of the class that the classifier names."""
        if self.own_predict is not None:
            return self.own_predict(X)
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

    def decision_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the same with gradients."""
        probabilities = self.source.probabilities(X)
        slopes = self.source.probability_gradient(X)
        rival = self._below(probabilities)
        above, below = probabilities[:, self.above], _pick(probabilities, rival)
        rise = _log_slope(slopes[:, self.above], above) - _log_slope(_pick(slopes, rival), below)
        return _half_log_odds(above, below), 0.5 * rise

    def _below(self, probabilities: Array) -> Indices:
        """Return the class on the lower side of the border, for each row."""
        if self.below is not None:
            return np.full(len(probabilities), self.below)
        return best_of_others(probabilities, self.above)


def _pick(values: Array, class_index: Indices) -> Array:
    """Return the values of one class a row."""
    return values[np.arange(len(values)), class_index]


def _half_log_odds(above: Array, below: Array) -> Array:
    """Return half the logarithm of the odds, finite whatever the probabilities."""
    return 0.5 * (np.log(np.maximum(above, FLOOR)) - np.log(np.maximum(below, FLOOR)))


def _log_slope(slopes: Array, probability: Array) -> Array:
    """Return the gradient of the logarithm of a probability, zero at the floor."""
    scale = np.where(probability > FLOOR, 1 / np.maximum(probability, FLOOR), 0.0)
    return slopes * scale[:, None]


class ScoreSource(MulticlassSource):
    """Borders where two scores are equal; softmax(inverse_temperature * scores): probabilities.

    A binary classifier with one decision value is the same with the scores 0 and that value.
    """

    def __init__(
        self,
        classes: Labels,
        n_features: int,
        *,
        scores: Callable[[Array], Array],
        gradient: Callable[[Array], Array],
        inverse_temperature: float,
        shift: float = 0.0,
    ) -> None:
        self.classes = classes
        self.n_features = n_features
        self.raw_scores = scores
        self.raw_gradient = gradient
        self.inverse_temperature = inverse_temperature
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

    def predict_index(self, X: Array) -> Indices:
        """Return the number of the class with the largest score."""
        return np.argmax(self.logits(X), axis=1)

    def logits(self, X: Array) -> Array:
        """Return scores as logarithms of probabilities, up to a constant a row."""
        logits = self.inverse_temperature * self.raw_scores(X)
        if self.shift:
            logits[:, 1] += self.shift
        return logits

    def logit_gradient(self, X: Array) -> Array:
        """Return the gradients of the logits."""
        return self.inverse_temperature * self.raw_gradient(X)


class _ScoreDifference(Source):
    """Half the difference of two logits, or of one and the best of the others."""

    def __init__(self, source: ScoreSource, below: int | None, above: int) -> None:
        self.source, self.below, self.above = source, below, above

    def decision(self, X: Array) -> Array:
        """Return half the difference of the two logits."""
        return self._half_difference(self.source.logits(X))[0]

    def decision_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the same with gradients."""
        values, rival = self._half_difference(self.source.logits(X))
        slopes = self.source.logit_gradient(X)
        return values, 0.5 * (slopes[:, self.above] - slopes[np.arange(len(X)), rival])

    def _half_difference(self, logits: Array) -> tuple[Array, Indices]:
        """Return half the difference, and the class on the lower side of the border."""
        if self.below is not None:
            rival = np.full(len(logits), self.below)
        else:
            rival = best_of_others(logits, self.above)
        return 0.5 * (logits[:, self.above] - logits[np.arange(len(logits)), rival]), rival


@dataclass(frozen=True, eq=False)
class LinearScores:
    """One linear function a class; a binary classifier has the functions 0 and its own."""

    # Shape (n_classes, n_features). Slopes.
    coefficients: Array
    # Shape (n_classes,). Values at zero.
    intercepts: Array

    @classmethod
    def from_sklearn(cls, model: Any) -> "LinearScores":
        """Take ``coef_`` and ``intercept_`` out of a fitted model."""
        coefficients = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
        intercepts = np.broadcast_to(np.asarray(model.intercept_, float), len(coefficients))
        if len(model.classes_) == 2 and len(coefficients) == 1:
            coefficients = np.concatenate([np.zeros_like(coefficients), coefficients])
            intercepts = np.concatenate([[0.0], intercepts])
        return cls(coefficients, intercepts)

    def values(self, X: Array) -> Array:
        """Return the scores: (n_rows, n_classes)."""
        return X @ self.coefficients.T + self.intercepts

    def gradients(self, X: Array) -> Array:
        """Return the slopes, the same at every row: (n_rows, n_classes, n_features)."""
        return np.broadcast_to(self.coefficients, (len(X), *self.coefficients.shape))


@as_source.register(LogisticRegression)
@as_source.register(LinearDiscriminantAnalysis)
def _(model: Any, context: SourceContext) -> ScoreSource:
    """Take the scores as they are: they are logarithms of probabilities."""
    linear = LinearScores.from_sklearn(model)
    return ScoreSource(
        model.classes_,
        context.X.shape[1],
        scores=linear.values,
        gradient=linear.gradients,
        inverse_temperature=1.0,
    )


@as_source.register
def _(model: LinearClassifierMixin, context: SourceContext) -> ScoreSource:
    linear = LinearScores.from_sklearn(model)

    def scores(fitted: Any, X: Array) -> Array:
        return LinearScores.from_sklearn(fitted).values(X)

    inverse_temperature, shift = _sigmoid_of_scores(model, scores, context)
    return ScoreSource(
        model.classes_,
        context.X.shape[1],
        scores=linear.values,
        gradient=linear.gradients,
        inverse_temperature=inverse_temperature,
        shift=shift if context.by_probability else 0.0,
    )
