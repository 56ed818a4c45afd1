"""`CalibratedClassifierCV` around two-class SVMs."""

from collections.abc import Callable
from functools import singledispatch
from typing import Any, TypeAlias

import numpy as np
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, NuSVC

from limes._typing import Array
from limes.model.svm import TrainedSvm
from limes.sources.base import SourceContext, as_source
from limes.sources.generic import _from_probabilities
from limes.sources.logits import LinearScores, ProbabilitySource
from limes.sources.pipelines import as_affine

Linearize: TypeAlias = Callable[[Array], tuple[Array, Array]]


def calibrated_source(model: CalibratedClassifierCV, n_features: int) -> ProbabilitySource | None:
    """Return the source of a calibrated two-class machine, with its analytic gradient."""
    if len(model.classes_) != 2 or model.method != "sigmoid":
        return None
    parts = [(binary_decision(part.estimator), part) for part in model.calibrated_classifiers_]
    if any(decision_and_gradient is None for decision_and_gradient, _ in parts):
        return None
    sigmoids = [
        _Sigmoid(decision_and_gradient, part.calibrators[0])
        for decision_and_gradient, part in parts
        if decision_and_gradient
    ]
    mean = _MeanOfSigmoids(sigmoids)
    return ProbabilitySource(
        model.classes_, n_features, probabilities=mean.values, gradient=mean.gradients
    )


@singledispatch
def binary_decision(model: Any) -> Linearize | None:
    """Return a two-class machine's ``decision_function`` with its gradient, or None."""
    return None


@binary_decision.register(SVC)
@binary_decision.register(NuSVC)
def _(model: SVC | NuSVC) -> Linearize:
    svm = TrainedSvm.from_sklearn(model)
    return lambda X: svm.pair_values_and_gradients(X, 0, 1)


@binary_decision.register
def _(model: LinearClassifierMixin) -> Linearize:
    scores = LinearScores.from_sklearn(model)
    return lambda X: (scores.values(X)[:, 1], scores.gradients(X)[:, 1])


@binary_decision.register
def _(model: FrozenEstimator) -> Linearize | None:
    return binary_decision(model.estimator)


@binary_decision.register
def _(model: Pipeline) -> Linearize | None:
    inner = binary_decision(model.steps[-1][1])
    preprocessing = as_affine(model[:-1]) if len(model.steps) > 1 else None
    if inner is None or preprocessing is None:
        return inner if len(model.steps) == 1 else None

    def decision_and_gradient(X: Array) -> tuple[Array, Array]:
        values, gradients = inner(preprocessing.apply(X))
        return values, preprocessing.pull_back(gradients)

    return decision_and_gradient


class _Sigmoid:
    """One machine and its sigmoid, P = 1 / (1 + exp(a f + b))."""

    def __init__(self, decision_and_gradient: Linearize, calibrator: Any) -> None:
        self.decision_and_gradient, self.a, self.b = (
            decision_and_gradient,
            calibrator.a_,
            calibrator.b_,
        )

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the probability of the second class, and its gradient."""
        values, gradients = self.decision_and_gradient(X)
        probability = expit(-(self.a * values + self.b))
        slope = -self.a * probability * (1 - probability)
        return probability, slope[:, None] * gradients


class _MeanOfSigmoids:
    """The two probabilities that an ensemble of calibrated machines gives."""

    def __init__(self, sigmoids: list[_Sigmoid]) -> None:
        self.sigmoids = sigmoids

    def values(self, X: Array) -> Array:
        """Return both probabilities."""
        second = np.mean([part.value_and_gradient(X)[0] for part in self.sigmoids], axis=0)
        return np.column_stack([1 - second, second])

    def gradients(self, X: Array) -> Array:
        """Return both gradients."""
        second = np.mean([part.value_and_gradient(X)[1] for part in self.sigmoids], axis=0)
        return np.stack([-second, second], axis=1)


@as_source.register
def _(model: CalibratedClassifierCV, context: SourceContext) -> ProbabilitySource:
    analytic = calibrated_source(model, context.X.shape[1])
    return analytic if analytic is not None else _from_probabilities(model, context)
