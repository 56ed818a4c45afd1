"""Sources with a logit per class: probabilities, scores, linear classifiers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model._base import LinearClassifierMixin

from limes._typing import Array, Indices, Labels
from limes.sources.base import (
    MIN_PROBABILITY,
    DecisionAndGradient,
    MulticlassSource,
    Source,
    SourceContext,
    as_source,
    best_other_class,
    binary_decision,
)
from limes.sources.platt import calibrate_scores


class LogitSource(MulticlassSource):
    """Borders where the logits of two classes are equal.

    The decision value is half the difference of two logits, so that its hyperbolic tangent is the
    difference in conditional probability. Logits have shape (n_rows, n_classes), their gradients
    (n_rows, n_classes, n_features).
    """

    def __init__(
        self,
        classes: Labels,
        n_features: int,
        *,
        logits: Callable[[Array], Array],
        logits_and_gradient: DecisionAndGradient,
        probabilities: Callable[[Array], Array] | None = None,
        predict: Callable[[Array], Indices] | None = None,
        query_cost: float = MulticlassSource.query_cost,
    ) -> None:
        self.classes = classes
        self.n_features = n_features
        self.logits_and_gradient = logits_and_gradient
        self.query_cost = query_cost
        self._logits = logits
        self._probabilities = probabilities
        self._predict = predict

    @classmethod
    def from_probabilities(
        cls,
        classes: Labels,
        n_features: int,
        *,
        probabilities: Callable[[Array], Array],
        gradient: Callable[[Array], Array],
        **options: Any,
    ) -> Self:
        """Take the logarithms of probabilities, given with their gradient, as logits."""

        def logits(X: Array) -> Array:
            return np.log(np.maximum(probabilities(X), MIN_PROBABILITY))

        def logits_and_gradient(X: Array) -> tuple[Array, Array]:
            values = probabilities(X)
            bounded = np.maximum(values, MIN_PROBABILITY)
            # At the bound a logit is constant.
            slopes = np.where(values > MIN_PROBABILITY, 1 / bounded, 0.0)
            return np.log(bounded), gradient(X) * slopes[:, :, None]

        return cls(
            classes,
            n_features,
            logits=logits,
            logits_and_gradient=logits_and_gradient,
            probabilities=probabilities,
            **options,
        )

    @classmethod
    def from_scores(
        cls,
        classes: Labels,
        n_features: int,
        *,
        scores: Callable[[Array], Array],
        gradient: Callable[[Array], Array],
        inverse_temperature: float = 1.0,
        shift: float = 0.0,
    ) -> Self:
        """Take scores, given with their gradient, times an inverse temperature as logits.

        A two-class decision value f has the scores 0 and f; the shift is added to the second logit.
        """

        def logits(X: Array) -> Array:
            values = inverse_temperature * scores(X)
            if shift:
                values[:, 1] += shift
            return values

        def logits_and_gradient(X: Array) -> tuple[Array, Array]:
            return logits(X), inverse_temperature * gradient(X)

        return cls(classes, n_features, logits=logits, logits_and_gradient=logits_and_gradient)

    def pair_border(self, first: int, second: int) -> "_LogitBorder":
        """Return the border between two classes."""
        return _LogitBorder(self, second, first)

    def one_vs_rest(self, positive: int) -> "_LogitBorder":
        """Return the border where a class is as probable as the best of the others."""
        return _LogitBorder(self, positive, None)

    def probabilities(self, X: Array) -> Array:
        """Return the probability of each class."""
        if self._probabilities is not None:
            return self._probabilities(X)
        return softmax(self.logits(X), axis=1)

    def logits(self, X: Array) -> Array:
        """Return one logit per class."""
        return self._logits(X)

    def predict_index(self, X: Array) -> Indices:
        """Return the class index that the classifier predicts."""
        if self._predict is not None:
            return self._predict(X)
        # Probabilities that differ may round to the same logit.
        values = self.logits(X) if self._probabilities is None else self._probabilities(X)
        return np.argmax(values, axis=1)


@dataclass(frozen=True, eq=False)
class _LogitBorder(Source):
    """Half the logit of one class less that of another, or of the best other one for None."""

    source: LogitSource
    positive: int
    negative: int | None

    def decision(self, X: Array) -> Array:
        """Return half the difference of the two logits."""
        return self._half_difference(self.source.logits(X))[0]

    def decision_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the same with gradients."""
        logits, gradients = self.source.logits_and_gradient(X)
        values, negative = self._half_difference(logits)
        others = gradients[np.arange(len(X)), negative]
        return values, 0.5 * (gradients[:, self.positive] - others)

    def _half_difference(self, logits: Array) -> tuple[Array, Indices]:
        """Return half the difference, and the class on the negative side at each row."""
        if self.negative is None:
            negative = best_other_class(logits, self.positive)
        else:
            negative = np.full(len(logits), self.negative)
        others = logits[np.arange(len(logits)), negative]
        return 0.5 * (logits[:, self.positive] - others), negative


@dataclass(frozen=True, eq=False)
class LinearScores:
    """One linear function per class; that of the first of two classes is 0."""

    # Shape (n_classes, n_features).
    coefficients: Array
    # Shape (n_classes,).
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
        """Return the coefficients, the same for every row: (n_rows, n_classes, n_features)."""
        return np.broadcast_to(self.coefficients, (len(X), *self.coefficients.shape))


@as_source.register(LogisticRegression)
@as_source.register(LinearDiscriminantAnalysis)
def _(model: Any, context: SourceContext) -> LogitSource:
    """Take the scores as they are: they are logits."""
    linear = LinearScores.from_sklearn(model)
    return LogitSource.from_scores(
        model.classes_, context.X.shape[1], scores=linear.values, gradient=linear.gradients
    )


@as_source.register
def _(model: LinearClassifierMixin, context: SourceContext) -> LogitSource:
    linear = LinearScores.from_sklearn(model)

    def scores(fitted: Any, X: Array) -> Array:
        return LinearScores.from_sklearn(fitted).values(X)

    inverse_temperature, shift = calibrate_scores(model, scores, context)
    return LogitSource.from_scores(
        model.classes_,
        context.X.shape[1],
        scores=linear.values,
        gradient=linear.gradients,
        inverse_temperature=inverse_temperature,
        shift=shift if context.by_probability else 0.0,
    )


@binary_decision.register
def _(model: LinearClassifierMixin) -> DecisionAndGradient:
    linear = LinearScores.from_sklearn(model)
    return lambda X: (linear.values(X)[:, 1], linear.gradients(X)[:, 1])
