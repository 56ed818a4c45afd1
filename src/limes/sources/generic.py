"""Any classifier with `predict_proba` or `decision_function`, or a function of rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection._classification_threshold import BaseThresholdClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.validation import _check_feature_names

from limes._typing import Array, Indices, Labels
from limes.model.affine import to_dense
from limes.sources.answers import Asked, answer_read_only, ask, index_of_labels, name_of
from limes.sources.base import MulticlassSource, SourceContext, as_source, training_rows
from limes.sources.logit_source import LogitSource
from limes.sources.platt import DEFAULT_SLOPE, calibrate_scores, fit_pair_sigmoid

# Rows evaluated at once: 20 000 rows of a few hundred features are some tens of MB.
BLOCK_ROWS = 20_000
# Rows on which a source is checked for being piecewise constant.
TRIAL_ROWS = 40
# Halvings of the segment between two rows, and the share of the difference in value that remains at
# a jump.
N_HALVINGS = 45
MIN_JUMP = 1e-3
# Step of the differences of a piecewise constant source, in standard deviations: wider than the
# constant pieces of nearest neighbours and trees.
WIDE_STEP = 0.5
# Sizes of scores that need no other slope, and rows that a function's size is measured on. Below
# 1e-6, agreement fell from .99 to .84.
USUAL_SIZES = 1e-2, 1e6
SIZE_ROWS = 500
# Cost of a density at one row, in multiply-adds for each row of the context.
DENSITY_COST = 100.0


@as_source.register(object)
def _(model: Any, context: SourceContext) -> MulticlassSource:
    if hasattr(model, "proba_gradient"):
        return _from_probabilities_and_gradient(model, context)
    if hasattr(model, "predict_proba"):
        return from_probabilities(model, context)
    if hasattr(model, "decision_function"):
        return _from_decision_function(model, context)
    if callable(model):
        return _from_function(model, context)
    raise TypeError(
        f"expected a classifier with predict_proba or decision_function, or a function of rows, "
        f"got {model!r}: it has no decision value whose border could be found."
    )


@as_source.register
def _(model: BaseThresholdClassifier, context: SourceContext) -> MulticlassSource:
    raise ValueError(
        f"{type(model).__name__} moves the border away from equal probabilities: accelerate the "
        "classifier inside it (its estimator_), with threshold = 2 * p - 1 for a border at the "
        "probability p."
    )


@training_rows.register
def _(model: KNeighborsClassifier) -> Array:
    return to_dense(model._fit_X)


def from_probabilities(model: Any, context: SourceContext) -> LogitSource:
    """Take probabilities, and their gradient by central differences."""
    probabilities = ask(model, "predict_proba", n_columns=len(model.classes_))
    return LogitSource.from_probabilities(
        model.classes_,
        context.X.shape[1],
        probabilities=probabilities,
        gradient=CentralDifferences(probabilities, context.X),
        predict=_index_predictor(model),
    )


def _from_probabilities_and_gradient(model: Any, context: SourceContext) -> LogitSource:
    """Take probabilities and their gradient from a classifier that has both."""
    return LogitSource.from_probabilities(
        model.classes_,
        context.X.shape[1],
        probabilities=ask(model, "predict_proba", n_columns=len(model.classes_)),
        gradient=model.proba_gradient,
        predict=_index_predictor(model),
        query_cost=DENSITY_COST * len(context.X),
    )


def _from_decision_function(model: Any, context: SourceContext) -> LogitSource:
    """Take decision values, and their gradient by central differences."""

    def scores_of(fitted: Any, X: Array) -> Array:
        return _one_score_per_class(ask(fitted, "decision_function")(X))

    def scores(X: Array) -> Array:
        return scores_of(model, X)

    inverse_temperature, shift = calibrate_scores(model, scores_of, context)
    return LogitSource.from_scores(
        model.classes_,
        context.X.shape[1],
        scores=scores,
        gradient=CentralDifferences(scores, context.X),
        inverse_temperature=inverse_temperature,
        shift=shift if context.by_probability else 0.0,
    )


def _from_function(function: Callable[[Array], Array], context: SourceContext) -> LogitSource:
    """Take a function of rows: decision values of two classes, or one score per class."""
    asked = Asked(function, function)

    def scores(X: Array) -> Array:
        values = asked(X)
        # Truth values are labels, of which False is as sure as True.
        is_label = values.dtype == bool and values.ndim == 1
        return _one_score_per_class(2.0 * values - 1.0 if is_label else values.astype(np.float64))

    n_classes = scores(context.X[:1]).shape[1]
    classes = getattr(function, "classes_", np.arange(n_classes))
    if context.class_index is not None and n_classes == 2:
        decision = scores(context.X)[:, 1]
        inverse_temperature, shift = fit_pair_sigmoid(decision, context.class_index, (0, 1))
    else:
        n_step = max(1, -(-len(context.X) // SIZE_ROWS))
        inverse_temperature, shift = _slope_by_size(scores(context.X[::n_step])), 0.0
    return LogitSource.from_scores(
        classes,
        context.X.shape[1],
        scores=scores,
        gradient=CentralDifferences(scores, context.X),
        inverse_temperature=inverse_temperature,
        shift=shift if context.by_probability else 0.0,
    )


def _slope_by_size(scores: Array) -> float:
    """Return the slope for scores of unknown scale, which is smaller or larger for odd sizes."""
    if scores.shape[1] < 2 or not np.isfinite(scores).all():
        return DEFAULT_SLOPE
    largest = np.partition(scores, -2, axis=1)
    size = float(np.median(largest[:, -1] - largest[:, -2]))
    return DEFAULT_SLOPE * float(np.clip(size, *USUAL_SIZES)) / size if size > 0 else DEFAULT_SLOPE


def _one_score_per_class(values: Array) -> Array:
    """Return the scores 0 and f for a two-class decision value f."""
    if values.ndim == 1 or values.shape[1] == 1:
        return np.column_stack([np.zeros(len(values)), values.reshape(-1)])
    return values


def _index_predictor(model: Any) -> Callable[[Array], Indices]:
    """Return a function from rows to the class indices that a classifier predicts."""
    predict, classes = ask(model, "predict", n_columns=0), np.asarray(model.classes_)
    return lambda X: index_of_labels(predict(X), classes, model)


class CentralDifferences:
    """The gradient of a function of rows, by central differences for each of its outputs."""

    def __init__(self, function: Callable[[Array], Array], rows: Array) -> None:
        self.function = function
        trial = rows[:: max(1, len(rows) // TRIAL_ROWS)][:TRIAL_ROWS]
        scale = _feature_scales(rows)
        precision = np.finfo(np.result_type(function(trial[:1]), np.float32)).eps
        self.steps = scale * np.cbrt(precision)
        if is_piecewise_constant(function, trial):
            self.steps = scale * WIDE_STEP

    def __call__(self, X: Array) -> Array:
        """Return the gradients: (n_rows, [n_outputs,] n_features)."""
        n_features = X.shape[1]
        block = max(1, BLOCK_ROWS // (2 * n_features))
        parts = [self._differences(X[i : i + block]) for i in range(0, len(X), block)]
        return np.concatenate(parts) if parts else np.empty((0, n_features))

    def _differences(self, X: Array) -> Array:
        """Evaluate the function once for all rows and all features."""
        n_rows, n_features = X.shape
        shifts = np.diag(self.steps)
        above = (X[:, None] + shifts).reshape(-1, n_features)
        below = (X[:, None] - shifts).reshape(-1, n_features)
        values = np.asarray(self.function(np.concatenate([above, below])), dtype=np.float64)
        rise = (values[: len(above)] - values[len(above) :]).reshape(n_rows, n_features, -1)
        slopes = np.moveaxis(rise / (2 * self.steps[:, None]), 1, 2)
        return slopes[:, 0] if values.ndim == 1 else slopes


def _feature_scales(rows: Array) -> Array:
    """Return the deviation of each feature; of a constant one its magnitude, at least 1."""
    deviation = rows.std(axis=0)
    fallback = np.maximum(np.abs(rows).max(axis=0), 1.0)
    return np.where(deviation > 0, deviation, fallback)


def is_piecewise_constant(function: Callable[[Array], Array], rows: Array) -> bool:
    """Return whether a function jumps between rows instead of changing gradually."""

    def value(row: Array) -> float:
        return float(np.asarray(function(row[None]), dtype=np.float64).reshape(-1)[-1])

    values = np.array([value(row) for row in rows])
    low, high = rows[values.argmin()], rows[values.argmax()]
    bottom, top = values.min(), values.max()
    for _ in range(N_HALVINGS):
        middle = 0.5 * (low + high)
        if value(middle) - bottom < 0.5 * (top - bottom):
            low = middle
        else:
            high = middle
    return bool(abs(value(high) - value(low)) > MIN_JUMP * (top - bottom))


def label_by(model: Any, classes: Labels) -> Callable[[Any], Labels]:
    """Return a function from rows to the labels of a classifier, or of a function of rows."""
    if hasattr(model, "predict"):
        return lambda rows: np.asarray(
            answer_read_only(lambda X: model.predict(_with_names(model, X)), rows, name_of(model))
        )

    def label(rows: Any) -> Labels:
        values = np.asarray(answer_read_only(model, rows, name_of(model)))
        class_index = values > 0 if values.ndim == 1 else values.argmax(axis=1)
        return classes[class_index.astype(np.intp)]

    return label


def _with_names(model: Any, rows: Any) -> Any:
    """Return rows as a data frame where a model was fitted on one."""
    names = getattr(model, "feature_names_in_", None)
    if names is None or hasattr(rows, "columns"):
        return rows
    from pandas import DataFrame

    return DataFrame(rows, columns=names, copy=False)


def check_same_features(model: Any, X: ArrayLike) -> None:
    """Raise unless rows have the columns that a source was fitted on."""
    n_features, shape = getattr(model, "n_features_in_", None), np.shape(X)[1:]
    if n_features is not None and len(shape) == 1 and shape[0] != n_features:
        raise ValueError(
            f"X must have {n_features} features, as the source {type(model).__name__} was fitted "
            f"with, got {shape[0]!r}."
        )
    # scikit-learn's own error.
    if hasattr(model, "feature_names_in_") and getattr(X, "columns", None) is not None:
        _check_feature_names(model, X, reset=False)
