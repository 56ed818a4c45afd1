"""Take a classifier out of pipelines and searches, linear steps before it as an `AffineMap`."""

from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.feature_selection import SelectorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.validation import has_fit_parameter

from limes._typing import Array
from limes.model.affine import AffineMap


def unwrap(model: Any) -> tuple[Any, AffineMap | None]:
    """Return a classifier without its leading linear steps, and these steps as one map.

    A pipeline whose first steps are not linear is returned as a pipeline.
    """
    if isinstance(model, FrozenEstimator):
        return unwrap(model.estimator)
    if isinstance(model, BaseSearchCV) and hasattr(model, "best_estimator_"):
        return unwrap(model.best_estimator_)
    if not isinstance(model, Pipeline):
        return model, None
    return _unwrap_pipeline(model)


def _unwrap_pipeline(pipeline: Pipeline) -> tuple[Any, AffineMap | None]:
    """Compose the leading linear steps of a pipeline into one map."""
    steps = [(name, step) for name, step in pipeline.steps if step not in (None, "passthrough")]
    preprocessing: AffineMap | None = None
    for place, (_, step) in enumerate(steps[:-1]):
        affine = as_affine(step)
        if affine is None:
            return Pipeline(steps[place:]), preprocessing
        preprocessing = affine if preprocessing is None else preprocessing.then(affine)
    model, inner = unwrap(steps[-1][1])
    if inner is None:
        return model, preprocessing
    return model, inner if preprocessing is None else preprocessing.then(inner)


def fit_source(
    model: Any, X: Any, y: Any, sample_weight: Array | None = None, **fit_parameters: Any
) -> Any:
    """Fit a classifier, or the one at the end of pipelines and searches, with weights of rows."""
    if sample_weight is None:
        return model.fit(X, y, **fit_parameters)
    if get_config()["enable_metadata_routing"]:
        return model.fit(X, y, sample_weight=sample_weight, **fit_parameters)
    inner, path = model, ""
    while isinstance(inner, Pipeline | BaseSearchCV):
        if isinstance(inner, Pipeline):
            path, inner = f"{path}{inner.steps[-1][0]}__", inner.steps[-1][1]
        else:
            inner = inner.estimator
    if not has_fit_parameter(inner, "sample_weight"):
        raise TypeError(
            f"sample_weight was given, but {type(inner).__name__} is fitted without weights: leave "
            "it out, or take a source that has them."
        )
    return model.fit(X, y, **{f"{path}sample_weight": sample_weight}, **fit_parameters)


@singledispatch
def as_affine(step: Any) -> AffineMap | None:
    """Return a fitted transformer as an affine map, or None where it is not one."""
    return None


@as_affine.register
def _(step: str) -> AffineMap | None:
    """Return None for ``"passthrough"``, which pipelines skip themselves."""
    return None


@as_affine.register
def _(step: StandardScaler) -> AffineMap:
    n_features = step.n_features_in_
    shift = np.zeros(n_features) if step.mean_ is None or not step.with_mean else step.mean_
    scale = np.ones(n_features) if step.scale_ is None else step.scale_
    return AffineMap.scaling(shift, 1 / scale)


@as_affine.register
def _(step: RobustScaler) -> AffineMap:
    n_features = step.n_features_in_
    shift = step.center_ if step.with_centering else np.zeros(n_features)
    scale = step.scale_ if step.with_scaling else np.ones(n_features)
    return AffineMap.scaling(shift, 1 / scale)


@as_affine.register
def _(step: MinMaxScaler) -> AffineMap | None:
    return None if step.clip else AffineMap.scaling(-step.min_ / step.scale_, step.scale_)


@as_affine.register
def _(step: MaxAbsScaler) -> AffineMap | None:
    if getattr(step, "clip", False):
        return None
    return AffineMap.scaling(np.zeros(step.n_features_in_), 1 / step.scale_)


@as_affine.register
def _(step: FunctionTransformer) -> AffineMap | None:
    is_identity = step.func is None and hasattr(step, "n_features_in_")
    return AffineMap.identity(step.n_features_in_) if is_identity else None


@as_affine.register
def _(step: SelectorMixin) -> AffineMap:
    return AffineMap.selection(step.n_features_in_, step.get_support(indices=True))


@as_affine.register(PCA)
@as_affine.register(IncrementalPCA)
def _(step: PCA | IncrementalPCA) -> AffineMap:
    # As in scikit-learn, so that a component without variance is not divided by zero.
    min_variance = np.finfo(step.explained_variance_.dtype).eps
    scale = 1 / np.sqrt(np.maximum(step.explained_variance_, min_variance)) if step.whiten else 1.0
    return AffineMap(step.mean_.astype(float), (step.components_.T * scale).astype(float))


@as_affine.register
def _(step: TruncatedSVD) -> AffineMap:
    matrix = step.components_.T.astype(float)
    return AffineMap(np.zeros(len(matrix)), matrix)


@as_affine.register
def _(step: ColumnTransformer) -> AffineMap | None:
    n_features = step.n_features_in_
    shift = np.zeros(n_features)
    parts: list[AffineMap] = []
    for name, inner, _ in step.transformers_:
        columns = step._transformer_to_input_indices.get(name, [])
        if (isinstance(inner, str) and inner == "drop") or not len(columns):
            continue
        is_plain = isinstance(inner, str) and inner == "passthrough"
        part = AffineMap.identity(len(columns)) if is_plain else as_affine(inner)
        # An affine map has one shift for each feature, and two parts may shift one differently.
        if part is None or np.any(shift[columns]):
            return None
        shift[columns] = part.shift
        selection = AffineMap.selection(n_features, columns)
        parts.append(selection.then(replace(part, shift=0 * part.shift)))
    return _concatenate_outputs(shift, parts) if parts else None


def _concatenate_outputs(shift: Array, parts: list[AffineMap]) -> AffineMap:
    """Return the map with the outputs of several maps, and one shift for all."""
    if any(part.is_dense for part in parts):
        return AffineMap(shift, np.hstack([part.to_matrix() for part in parts]))
    return AffineMap(
        shift,
        columns=np.concatenate([part.columns for part in parts]),
        scale=np.concatenate([part.scale for part in parts]),
    )


@as_affine.register
def _(step: Pipeline) -> AffineMap | None:
    total = None
    for _, inner in step.steps:
        if inner is None or inner == "passthrough":
            continue
        affine = as_affine(inner)
        if affine is None:
            return None
        total = affine if total is None else total.then(affine)
    return total
