"""The sums of a trained classifier, taken out of pipelines, as a scheme of the model."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin, is_outlier_detector
from sklearn.pipeline import Pipeline

from limes._typing import Labels
from limes.model.exact import Calibrators, ExactScheme, FallbackScheme, PairSigmoids
from limes.model.model import scheme_labels
from limes.model.svm import TrainedSvm
from limes.sources.base import NoExactSumsError, SourceContext, exact_scheme
from limes.sources.pipelines import unwrap
from limes.sources.table_encoder import source_after


def exact_scheme_of(model: Any, context: SourceContext | None = None) -> ExactScheme | None:
    """Return the sums of a fitted classifier, or of a pipeline that ends with it, for raw rows.

    None where it has none: `no_exact_sums_reason` says why. The rows of the context are those that
    linear steps of the pipeline return. Without a context nothing is fitted.
    """
    inner, preprocessing = unwrap(model)
    try:
        scheme = exact_scheme(inner, context)
    except NoExactSumsError:
        return None
    if preprocessing is None:
        return scheme
    if scheme.preprocessing is not None:
        preprocessing = preprocessing.then(scheme.preprocessing)
    return replace(scheme, preprocessing=preprocessing)


def no_exact_sums_reason(model: Any, context: SourceContext | None = None) -> str:
    """Return in words why a classifier has no exact sums; empty where it has them."""
    try:
        exact_scheme(unwrap(model)[0], context)
    except NoExactSumsError as reason:
        return str(reason)
    return ""


def exact_predict(fast: Any, source: Any = None) -> Callable[[Any], Labels] | None:
    """Return ``predict`` of the exact sums that a model is an alternative to, on one thread.

    None where the source has none or is not known, and where the model is the exact sums.
    """
    scheme = getattr(fast, "scheme_", None)
    if scheme is None or isinstance(scheme, ExactScheme):
        return None
    exact = scheme.exact if isinstance(scheme, FallbackScheme) else None
    encoder = getattr(fast, "encoder_", None)
    if exact is None and source is not None:
        exact = exact_scheme_of(source_after(encoder, source))
    if exact is None:
        return None

    def predict(X: Any) -> Labels:
        rows = X if encoder is None else encoder.transform(X)
        return scheme_labels(exact, rows, fast.model_.classes, n_jobs=1)

    return predict


def is_detector(model: Any) -> bool:
    """Return whether a model is an outlier detector, alone or at the end of a pipeline."""
    return hasattr(model, "__sklearn_tags__") and bool(is_outlier_detector(model))


def labels_of(model: Any) -> Labels:
    """Return the labels of a classifier's classes; those of an outlier detector are -1 and 1."""
    inner = unwrap(model)[0]
    if isinstance(inner, OutlierMixin):
        return np.array([-1, 1])
    return np.asarray(inner.classes_)


def decided_by_probability(scheme: ExactScheme) -> ExactScheme:
    """Return the scheme of an SVM that predicts the likeliest class instead of counting votes.

    With two classes and one sigmoid, the decision value becomes the log odds, so that the core
    predicts the class.
    """
    sums, sigmoids = scheme.sums, scheme.probabilities
    assert isinstance(sums, TrainedSvm)
    if sigmoids is None:
        raise NoExactSumsError(
            "borders at equal probabilities need an SVM with probabilities, or rows to fit them to"
        )
    if not isinstance(sigmoids, PairSigmoids) or sums.n_classes > 2:
        return replace(scheme, rule="likeliest")
    slope, shift = float(sigmoids.slopes[0]), float(sigmoids.shifts[0])
    log_odds = replace(sigmoids, slopes=np.ones(1), shifts=np.zeros(1))
    moved = rescaled_decision(sums, slope, shift)
    return replace(scheme, sums=moved, rule="strict", probabilities=log_odds)


def rescaled_decision(svm: TrainedSvm, slope: float, shift: float) -> TrainedSvm:
    """Return a two-class SVM with the decision value ``slope * f + shift``."""
    intercepts = slope * svm.intercepts - shift
    return replace(svm, dual_coef=slope * svm.dual_coef, intercepts=intercepts)


def calibrators_of(part: Any) -> Calibrators:
    """Return the functions of one calibrated classifier of ``CalibratedClassifierCV``."""
    if part.method == "sigmoid":
        return Calibrators(sigmoids=np.array([(each.a_, each.b_) for each in part.calibrators]))
    thresholds = [(each.X_thresholds_, each.y_thresholds_) for each in part.calibrators]
    return Calibrators(isotonic=tuple(thresholds))


@exact_scheme.register
def _(model: Pipeline, context: SourceContext | None) -> ExactScheme:
    """Refuse a pipeline: `unwrap` returns one only if its first step is not linear."""
    step = model.steps[0][1]
    raise NoExactSumsError(
        f"the step {type(step).__name__} before the classifier is not linear: accelerate the "
        "classifier on the rows that it returns"
    )
