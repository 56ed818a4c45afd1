"""`CalibratedClassifierCV` around two-class SVMs and linear classifiers."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from limes._typing import Array
from limes.sources.base import DecisionAndGradient, SourceContext, as_source, binary_decision
from limes.sources.generic import from_probabilities
from limes.sources.logit_source import LogitSource
from limes.sources.pipelines import as_affine


@as_source.register
def _(model: CalibratedClassifierCV, context: SourceContext) -> LogitSource:
    sigmoids = _sigmoids(model)
    if sigmoids is None:
        return from_probabilities(model, context)
    return LogitSource.from_probabilities(
        model.classes_,
        context.X.shape[1],
        probabilities=sigmoids.probabilities,
        gradient=sigmoids.gradients,
    )


def _sigmoids(model: CalibratedClassifierCV) -> "_MeanOfSigmoids | None":
    """Return the sigmoids of the model's two-class parts; None if one has no known gradient."""
    if len(model.classes_) != 2 or model.method != "sigmoid":
        return None
    sigmoids = []
    for part in model.calibrated_classifiers_:
        decision_and_gradient = binary_decision(part.estimator)
        if decision_and_gradient is None:
            return None
        calibrator = part.calibrators[0]
        sigmoids.append(_Sigmoid(decision_and_gradient, calibrator.a_, calibrator.b_))
    return _MeanOfSigmoids(sigmoids)


@dataclass(frozen=True, eq=False)
class _Sigmoid:
    """A two-class model and its sigmoid, P = 1 / (1 + exp(a f + b))."""

    decision_and_gradient: DecisionAndGradient
    a: float
    b: float

    def probability_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the probability of the second class, and its gradient."""
        values, gradients = self.decision_and_gradient(X)
        probability = expit(-(self.a * values + self.b))
        slope = -self.a * probability * (1 - probability)
        return probability, slope[:, None] * gradients


@dataclass(frozen=True, eq=False)
class _MeanOfSigmoids:
    """The mean probabilities of an ensemble of calibrated two-class models."""

    sigmoids: list[_Sigmoid]

    def probabilities(self, X: Array) -> Array:
        """Return both probabilities."""
        second = np.mean([part.probability_and_gradient(X)[0] for part in self.sigmoids], axis=0)
        return np.column_stack([1 - second, second])

    def gradients(self, X: Array) -> Array:
        """Return both gradients."""
        second = np.mean([part.probability_and_gradient(X)[1] for part in self.sigmoids], axis=0)
        return np.stack([-second, second], axis=1)


@binary_decision.register
def _(model: FrozenEstimator) -> DecisionAndGradient | None:
    return binary_decision(model.estimator)


@binary_decision.register
def _(model: Pipeline) -> DecisionAndGradient | None:
    decide = binary_decision(model.steps[-1][1])
    if decide is None or len(model.steps) == 1:
        return decide
    preprocessing = as_affine(model[:-1])
    if preprocessing is None:
        return None

    def decision_and_gradient(X: Array) -> tuple[Array, Array]:
        values, gradients = decide(preprocessing.apply(X))
        return values, preprocessing.pull_back(gradients)

    return decision_and_gradient
