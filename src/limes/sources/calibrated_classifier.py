"""`CalibratedClassifierCV` around SVMs and linear classifiers."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from limes._typing import Array
from limes.model.exact import Calibrators, ExactScheme, PairSigmoids
from limes.model.svm import TrainedSvm
from limes.sources.base import (
    DecisionAndGradient,
    NoExactSumsError,
    SourceContext,
    as_source,
    binary_decision,
    exact_scheme,
)
from limes.sources.exact import (
    calibrators_of,
    decided_by_probability,
    exact_scheme_of,
    no_exact_sums_reason,
    rescaled_decision,
)
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


@exact_scheme.register
def _(model: CalibratedClassifierCV, context: SourceContext | None) -> ExactScheme:
    if len(model.calibrated_classifiers_) > 1:
        raise NoExactSumsError(
            f"it averages {len(model.calibrated_classifiers_)} classifiers: fit "
            "CalibratedClassifierCV with ensemble=False"
        )
    (part,) = model.calibrated_classifiers_
    if part.method not in ("sigmoid", "isotonic"):
        raise NoExactSumsError(f"the calibration must be sigmoid or isotonic, got {part.method!r}")
    scheme = exact_scheme_of(part.estimator)
    if scheme is None:
        raise NoExactSumsError(no_exact_sums_reason(part.estimator))
    if not hasattr(part.estimator, "decision_function"):
        raise NoExactSumsError("the classifier that is calibrated has no decision_function")
    if scheme.n_classes > 3 and scheme.decision_shape == "ovo":
        raise NoExactSumsError(
            "decision_function_shape must be 'ovr', got 'ovo': scikit-learn calibrates the first "
            "pairs of classes only"
        )
    if scheme.n_classes == 2:
        return _calibrated_pair(scheme, part.calibrators[0], part.method)
    return replace(scheme, rule="likeliest", probabilities=calibrators_of(part))


def _calibrated_pair(scheme: ExactScheme, calibrator: Any, method: str) -> ExactScheme:
    """Return the sum of two classes, moved so that it is 0 where both are equally probable."""
    svm = scheme.sums
    assert isinstance(svm, TrainedSvm)
    if scheme.class_order[0] == 1:
        svm = svm.reordered([1, 0])
    if method == "sigmoid":
        sigmoids = PairSigmoids(np.array([-calibrator.a_]), np.array([-calibrator.b_]))
        scheme = replace(scheme, sums=svm, class_order=np.arange(2), probabilities=sigmoids)
        return decided_by_probability(scheme)
    x, y = calibrator.X_thresholds_, calibrator.y_thresholds_
    border = _last_at_most_half(x, y)
    rule = "likeliest" if border is None else "strict"
    border = border or 0.0
    return replace(
        scheme,
        sums=rescaled_decision(svm, 1.0, -border),
        rule=rule,
        class_order=np.arange(2),
        probabilities=Calibrators(isotonic=((x - border, y),)),
    )


def _last_at_most_half(x: Array, y: Array) -> float | None:
    """Return where a rising function leaves one half; None if it is nowhere on both sides."""
    last = int(np.searchsorted(y, 0.5, side="right")) - 1
    if last < 0 or last == len(y) - 1:
        return None
    share = (0.5 - y[last]) / (y[last + 1] - y[last])
    return float(x[last] + share * (x[last + 1] - x[last]))


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
