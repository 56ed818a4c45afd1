"""Any fitted classifier to a source: what it is, and what stands before it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.model_selection._classification_threshold import BaseThresholdClassifier
from sklearn.model_selection._search import BaseSearchCV
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, NuSVC

from limes._typing import Array, Codes
from limes.affine import AffineMap, as_affine
from limes.coupling import class_pairs, count_votes_like_libsvm
from limes.libsvm import LibsvmClassifier
from limes.sources.calibrated import calibrated_source
from limes.sources.calibration import (
    DEFAULT_SLOPE,
    pair_sigmoid,
    pair_sigmoids,
    score_sigmoid,
    svm_sigmoids,
)
from limes.sources.gaussian_process import gaussian_process_source
from limes.sources.linear import LinearScores
from limes.sources.named import with_feature_names
from limes.sources.numeric import CentralDifferences
from limes.sources.probability import ProbabilitySource
from limes.sources.protocol import MulticlassSource
from limes.sources.scores import ScoreSource
from limes.sources.svm import SvmSource
from limes.svm_machine import SvmMachine


@dataclass(frozen=True, eq=False)
class Known:
    """The rows at hand and what is known of them."""

    # Shape (n_rows, n_features). Rows, in the space that the source works in.
    X: Array
    # Shape (n_rows,). True class numbers; -1 for a row whose class is not known, None where none
    # is.
    codes: Codes | None
    # Whether borders are asked for at equal probabilities instead of where ``predict`` changes.
    by_probability: bool
    # For the folds of a calibration.
    rng: np.random.Generator


def unwrap(model: Any) -> tuple[Any, AffineMap | None]:
    """Take a classifier out of its pipelines, as far as what stands before it is linear."""
    if isinstance(model, FrozenEstimator):
        return unwrap(model.estimator)
    if isinstance(model, BaseSearchCV) and hasattr(model, "best_estimator_"):
        return unwrap(model.best_estimator_)
    if not isinstance(model, Pipeline):
        return model, None
    return _unwrap_pipeline(model)


def _unwrap_pipeline(pipeline: Pipeline) -> tuple[Any, AffineMap | None]:
    """Fold the leading linear steps into one."""
    steps = [(name, step) for name, step in pipeline.steps if step not in (None, "passthrough")]
    before: AffineMap | None = None
    for place, (_, step) in enumerate(steps[:-1]):
        affine = as_affine(step)
        if affine is None:
            return Pipeline(steps[place:]), before
        before = affine if before is None else before.then(affine)
    model, inner = unwrap(steps[-1][1])
    if inner is None:
        return model, before
    return model, inner if before is None else before.then(inner)


@singledispatch
def as_source(model: Any, known: Known) -> MulticlassSource:
    """Return a fitted classifier, already taken out of its pipeline, as a source."""
    if hasattr(model, "proba_gradient"):
        return _differentiable(model, known)
    if hasattr(model, "predict_proba"):
        return _from_probabilities(model, known)
    if hasattr(model, "decision_function"):
        return _from_scores(model, known)
    if callable(model):
        return _from_function(model, known)
    raise TypeError(
        f"expected a classifier with predict_proba or decision_function, or a function of rows, "
        f"got {model!r}: it has no decision value whose border could be followed."
    )


@as_source.register(SVC)
@as_source.register(NuSVC)
def _(model: SVC | NuSVC, known: Known) -> SvmSource:
    machine = SvmMachine.from_sklearn(model)
    codes = np.argmax(count_votes_like_libsvm(machine.values(known.X)), axis=1)
    if known.codes is not None:
        codes = np.where(known.codes < 0, codes, known.codes)
    found = svm_sigmoids(model, machine, known.X, codes, rng=known.rng)
    by_vote = not known.by_probability
    classes = model.classes_
    return SvmSource(machine, classes, found.slopes, found.shifts, by_vote, found.sharpness)


@as_source.register
def _(model: LibsvmClassifier, known: Known) -> SvmSource:
    order = np.argsort(model.labels)
    machine = model.machine.reordered(order)
    slopes, shifts = _libsvm_sigmoids(model, machine, order, known)
    return SvmSource(machine, model.classes_, slopes, shifts, not known.by_probability)


@as_source.register
def _(model: GaussianProcessClassifier, known: Known) -> ProbabilitySource:
    if isinstance(getattr(model, "base_estimator_", None), OneVsOneClassifier):
        raise ValueError(
            f"multi_class must be 'one_vs_rest', got {model.multi_class!r}: a Gaussian-process "
            "classifier of pairs gives no probabilities. Refit the source."
        )
    return gaussian_process_source(model, known.X)


@as_source.register
def _(model: BaseThresholdClassifier, known: Known) -> MulticlassSource:
    raise ValueError(
        f"{type(model).__name__} moves the border away from equal probabilities: accelerate the "
        "classifier inside it (its estimator_), with threshold = 2 * p - 1 for a border at the "
        "probability p."
    )


@as_source.register
def _(model: CalibratedClassifierCV, known: Known) -> ProbabilitySource:
    analytic = calibrated_source(model, known.X.shape[1])
    return analytic if analytic is not None else _from_probabilities(model, known)


@as_source.register(LogisticRegression)
@as_source.register(LinearDiscriminantAnalysis)
def _(model: Any, known: Known) -> ScoreSource:
    """Take the scores as they are: they are logarithms of probabilities."""
    linear = LinearScores.from_sklearn(model)
    return ScoreSource(
        model.classes_,
        known.X.shape[1],
        scores=linear.values,
        gradient=linear.gradients,
        sharpness=1.0,
    )


@as_source.register
def _(model: LinearClassifierMixin, known: Known) -> ScoreSource:
    linear = LinearScores.from_sklearn(model)

    def scores(fitted: Any, X: Array) -> Array:
        return LinearScores.from_sklearn(fitted).values(X)

    sharpness, shift = _sigmoid_of_scores(model, scores, known)
    return ScoreSource(
        model.classes_,
        known.X.shape[1],
        scores=linear.values,
        gradient=linear.gradients,
        sharpness=sharpness,
        shift=shift if known.by_probability else 0.0,
    )


def _libsvm_sigmoids(
    model: LibsvmClassifier, machine: SvmMachine, order: Codes, known: Known
) -> tuple[Array, Array]:
    """Take the file's own sigmoids, else fit them to the rows if their classes are known."""
    n_classes = machine.n_classes
    if model.sigmoids is not None:
        slopes, shifts = -model.sigmoids[0], model.sigmoids[1]
        places = {pair: place for place, pair in enumerate(class_pairs(n_classes))}
        old = [(order[a], order[b]) for a, b in class_pairs(n_classes)]
        kept = [places[min(pair), max(pair)] for pair in old]
        # Turning a pair round turns its decision value, and with it the sign of the shift.
        turns = np.array([1.0 if i < j else -1.0 for i, j in old])
        return slopes[kept], turns * shifts[kept]
    if known.codes is None:
        n_pairs = len(machine.intercepts)
        return np.full(n_pairs, DEFAULT_SLOPE), np.zeros(n_pairs)
    return pair_sigmoids(machine.values(known.X), known.codes)


def _sigmoid_of_scores(
    model: Any, scores: Callable[[Any, Array], Array], known: Known
) -> tuple[float, float]:
    """Fit how sure a score is, if the classes of the rows are known."""
    if known.codes is None:
        return DEFAULT_SLOPE, 0.0
    return score_sigmoid(model, scores, known.X, known.codes, rng=known.rng)


def _differentiable(model: Any, known: Known) -> ProbabilitySource:
    """Take probabilities and their gradient from a classifier that has both."""
    return ProbabilitySource(
        model.classes_,
        known.X.shape[1],
        probabilities=model.predict_proba,
        gradient=model.proba_gradient,
        codes=_codes_of(model, model.predict),
        row_cost=100.0 * len(known.X),
    )


def _from_probabilities(model: Any, known: Known) -> ProbabilitySource:
    """Take probabilities, and their gradient by central differences."""
    probabilities = with_feature_names(model, model.predict_proba)
    return ProbabilitySource(
        model.classes_,
        known.X.shape[1],
        probabilities=probabilities,
        gradient=CentralDifferences(probabilities, known.X),
        codes=_codes_of(model, with_feature_names(model, model.predict)),
    )


def _from_scores(model: Any, known: Known) -> ScoreSource:
    """Take decision values, and their gradient by central differences."""

    def scores_of(fitted: Any, X: Array) -> Array:
        return _one_score_a_class(with_feature_names(fitted, fitted.decision_function)(X))

    def scores(X: Array) -> Array:
        return scores_of(model, X)

    sharpness, shift = _sigmoid_of_scores(model, scores_of, known)
    return ScoreSource(
        model.classes_,
        known.X.shape[1],
        scores=scores,
        gradient=CentralDifferences(scores, known.X),
        sharpness=sharpness,
        shift=shift if known.by_probability else 0.0,
    )


def _from_function(function: Callable[[Array], Array], known: Known) -> ScoreSource:
    """Take a function of rows: decision values of two classes, or one score a class."""

    def scores(X: Array) -> Array:
        return _one_score_a_class(np.asarray(function(X), dtype=np.float64))

    found = scores(known.X[:1])
    classes = getattr(function, "classes_", np.arange(found.shape[1]))
    sharpness, shift = DEFAULT_SLOPE, 0.0
    if known.codes is not None and found.shape[1] == 2:
        values = scores(known.X)
        sharpness, shift = pair_sigmoid(values[:, 1], known.codes, (0, 1))
    return ScoreSource(
        classes,
        known.X.shape[1],
        scores=scores,
        gradient=CentralDifferences(scores, known.X),
        sharpness=sharpness,
        shift=shift if known.by_probability else 0.0,
    )


def _one_score_a_class(values: Array) -> Array:
    """Give two classes the scores 0 and their decision value."""
    if values.ndim == 1 or values.shape[1] == 1:
        return np.column_stack([np.zeros(len(values)), values.reshape(-1)])
    return values


def _codes_of(model: Any, predict: Callable[[Array], Any]) -> Callable[[Array], Codes]:
    """Return a function from rows to class numbers."""
    order = np.argsort(model.classes_)
    return lambda X: order[np.searchsorted(model.classes_, predict(X), sorter=order)]
