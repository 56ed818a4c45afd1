"""Trained source classifiers as arrays in a file."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import VarianceThreshold
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import LabelBinarizer, StandardScaler
from sklearn.svm import LinearSVC

import limes
from limes.agf import AGFClassifier, KernelDensityClassifier
from limes.atomic import atomic_write
from limes.libsvm import LibsvmClassifier
from limes.model.file_layout import Container, read_container, write_container
from limes.model.svm import Kernel, TrainedSvm

Arrays = dict[str, NDArray[Any]]
Constants = dict[str, float | int | str | None]
MAX_BYTES = 1 << 32
# Version of the format of a source file.
VERSION = 1


def write_source(
    model: Any, path: str | os.PathLike[str], *, names: tuple[str, ...] | None = None
) -> None:
    """Write a trained classifier as arrays, so that reading it executes no code.

    Examples
    --------
    >>> import tempfile
    >>> model = KernelDensityClassifier(bandwidth=2.0).fit([[0.0], [9.0]], ["a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_source(model, f"{folder}/kde.source")
    ...     read_source(f"{folder}/kde.source")[0].predict([[1.0]])
    array(['a'], dtype='<U1')
    """
    steps: Arrays = {}
    if isinstance(model, Pipeline):
        steps, model = _steps_to_arrays(model), model[-1]
    kind, constants, arrays = _to_arrays(model)
    arrays = {**arrays, **steps}
    if names is not None:
        arrays["names"] = np.array(names, dtype=str)
    header = {
        "limes": limes.__version__,
        "source": kind,
        "plain": constants,
        "names": list(arrays),
    }
    with atomic_write(path) as stream:
        write_container(stream, header, list(arrays.values()), version=VERSION)


def read_source(
    path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES
) -> tuple[Any, tuple[str, ...] | None]:
    """Read a classifier that ``write_source`` wrote, with all values of the file checked."""
    container = read_container(path, max_bytes=max_bytes, versions=(VERSION,))
    kind, constants, arrays = _check_header(container)
    try:
        model = READERS[kind](constants, arrays)
        if "mean" in arrays:
            model = Pipeline([*_read_steps(arrays), ("model", model)])
        model.predict(np.zeros((1, model.n_features_in_)))
    # Any error with numbers from a file is an error of the file.
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        container.fail(f"a source of kind {kind!r}", reason)
    return model, _check_names(container, arrays, model.n_features_in_)


def is_source(path: str | os.PathLike[str]) -> bool:
    """Return whether a model file contains a source instead of a fast model."""
    return "source" in read_container(path, max_bytes=MAX_BYTES, versions=(1, 2)).header


def _to_arrays(model: Any) -> tuple[str, Constants, Arrays]:
    """Return the kind of a classifier, its constants and its arrays."""
    if isinstance(model, LibsvmClassifier):
        return _svm_to_arrays(model)
    if isinstance(model, AGFClassifier):
        constants: Constants = {
            "total_weight": float(model.total_weight_),
            "n_neighbors": model.n_neighbors,
        }
        return "agf", constants, _training_to_arrays(model)
    if isinstance(model, KernelDensityClassifier):
        return "kde", {"bandwidth": float(model.bandwidth_)}, _training_to_arrays(model)
    if isinstance(model, LinearSVC):
        return "linear", {}, _linear_to_arrays([model], model.classes_)
    if isinstance(model, OneVsRestClassifier):
        return "logistic", {}, _linear_to_arrays(model.estimators_, model.classes_)
    raise TypeError(
        "expected a LibsvmClassifier, AGFClassifier, KernelDensityClassifier, LinearSVC or "
        f"OneVsRestClassifier: a source file cannot hold a {type(model).__name__}."
    )


def _svm_to_arrays(model: LibsvmClassifier) -> tuple[str, Constants, Arrays]:
    """Return the constants and arrays of an SVM."""
    svm, kernel = model.svm, model.svm.kernel
    constants: Constants = {
        "svm_type": model.svm_type,
        "kernel": kernel.name,
        "gamma": float(kernel.gamma),
        "degree": float(kernel.degree),
        "coef0": float(kernel.coef0),
    }
    arrays = {
        "vectors": svm.vectors,
        "dual_coef": svm.dual_coef,
        "intercepts": svm.intercepts,
        "n_support": svm.n_support.astype(np.int64),
        "labels": model.labels,
    }
    if model.sigmoids is not None:
        arrays["sigmoids"] = model.sigmoids
    return "svm", constants, arrays


def _training_to_arrays(model: AGFClassifier | KernelDensityClassifier) -> Arrays:
    """Return the training rows that a classifier stores, and their labels."""
    training = model._training
    class_index = np.argmax(model._votes, axis=1)
    return {
        "rows": training.rows * training.scale + training.centre,
        "labels": model.classes_[class_index],
    }


def _linear_to_arrays(models: list[Any], classes: NDArray[Any]) -> Arrays:
    """Return the linear functions of classifiers."""
    return {
        "coef": np.vstack([model.coef_ for model in models]),
        "intercept": np.concatenate(
            [np.broadcast_to(model.intercept_, len(model.coef_)) for model in models]
        ).astype(np.float64),
        "classes": classes,
    }


def _steps_to_arrays(pipeline: Pipeline) -> Arrays:
    """Return the arrays of ``standardizer()``, the one step that a file can hold."""
    steps = pipeline[:-1]
    inner = steps[-1] if len(steps) == 1 and isinstance(steps[-1], Pipeline) else steps
    if [type(step) for _, step in inner.steps] != [VarianceThreshold, StandardScaler]:
        raise TypeError(
            f"a source file can hold standardizer() before a model, not other steps, got {inner!r}."
        )
    vary, scale = inner
    return {
        "is_kept": vary.get_support(),
        "mean": scale.mean_.astype(np.float64),
        "scale": scale.scale_.astype(np.float64),
    }


def _check_header(container: Container) -> tuple[str, Constants, Arrays]:
    """Return the kind, constants and arrays of a source, checked."""
    header = container.header
    kind, constants, names = (header.get(key) for key in ("source", "plain", "names"))
    if not isinstance(kind, str) or kind not in READERS:
        container.fail(f"a source of one of the kinds {sorted(READERS)}", kind)
    if not isinstance(constants, dict) or not all(isinstance(name, str) for name in constants):
        container.fail("constants of a source", constants)
    if not isinstance(names, list) or len(names) != len(container.arrays):
        container.fail(f"names of {len(container.arrays)} arrays", names)
    arrays = {str(name): array for name, array in zip(names, container.arrays, strict=True)}
    for number, (name, array) in enumerate(arrays.items()):
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            container.fail(f"finite numbers in {name!r}", "NaN or infinity", array=number)
    return kind, constants, arrays


def _check_names(container: Container, arrays: Arrays, n_features: int) -> tuple[str, ...] | None:
    """Return the names of the features, one for each."""
    if "names" not in arrays:
        return None
    if arrays["names"].shape != (n_features,):
        container.fail(f"{n_features} names of features", arrays["names"].shape)
    return tuple(map(str, arrays["names"]))


def _read_svm(constants: Constants, arrays: Arrays) -> LibsvmClassifier:
    """Return an SVM."""
    gamma, degree, coef0 = (_number(constants, key) for key in ("gamma", "degree", "coef0"))
    names = ("vectors", "dual_coef", "intercepts", "n_support")
    parts = {name: arrays[name] for name in names}
    svm = TrainedSvm(Kernel(str(constants["kernel"]), gamma, int(degree), coef0), **parts)
    labels = arrays["labels"].copy()
    n_classes = svm.n_classes
    sigmoids = arrays.get("sigmoids")
    if labels.shape != (n_classes,) or len(np.unique(labels)) < n_classes:
        raise ValueError(f"expected {n_classes} distinct labels, got the shape {labels.shape!r}")
    n_pairs = n_classes * (n_classes - 1) // 2
    if sigmoids is not None and sigmoids.shape != (2, n_pairs):
        raise ValueError(f"expected sigmoids of shape {(2, n_pairs)!r}, got {sigmoids.shape!r}")
    svm_type = str(constants["svm_type"])
    return LibsvmClassifier(svm, labels, svm_type=svm_type, sigmoids=sigmoids)


def _read_agf(constants: Constants, arrays: Arrays) -> AGFClassifier:
    """Return an AGF classifier."""
    n_neighbors: Any = constants["n_neighbors"]
    model = AGFClassifier(total_weight=_number(constants, "total_weight"), n_neighbors=n_neighbors)
    return model.fit(arrays["rows"], arrays["labels"])


def _read_kde(constants: Constants, arrays: Arrays) -> KernelDensityClassifier:
    """Return a kernel-density classifier."""
    model = KernelDensityClassifier(bandwidth=_number(constants, "bandwidth"))
    return model.fit(arrays["rows"], arrays["labels"])


def _number(constants: Constants, key: str) -> float:
    """Return a constant that must be a number: "auto" would start a search."""
    value = constants[key]
    if not isinstance(value, float):
        raise ValueError(f"expected a number as {key}, got {value!r}")
    return value


def _read_linear(constants: Constants, arrays: Arrays) -> LinearSVC:
    """Return a linear SVM."""
    coef, intercept, classes = _check_linear(arrays)
    return _fill(LinearSVC(), coef_=coef, intercept_=intercept, classes_=classes)


def _read_logistic(constants: Constants, arrays: Arrays) -> OneVsRestClassifier:
    """Return logistic regressions, one per class against the rest."""
    coef, intercept, classes = _check_linear(arrays)
    parts = [
        _fill(LogisticRegression(), coef_=slopes[None], intercept_=c[None], classes_=np.arange(2))
        for slopes, c in zip(coef, intercept, strict=True)
    ]
    model = OneVsRestClassifier(LogisticRegression())
    model.estimators_ = parts
    model.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(classes)
    model.n_features_in_ = coef.shape[1]
    # A property in some versions of scikit-learn, an attribute in others.
    vars(model)["classes_"] = classes
    return model


def _check_linear(arrays: Arrays) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return linear functions, one for each class, or one for two classes."""
    coef, intercept, classes = (arrays[name].copy() for name in ("coef", "intercept", "classes"))
    n_functions = 1 if len(classes) == 2 else len(classes)
    if coef.ndim != 2 or len(coef) != n_functions or intercept.shape != (n_functions,):
        raise ValueError(
            f"expected {n_functions} linear functions, got coefficients of shape {coef.shape!r} "
            f"and intercepts of shape {intercept.shape!r}"
        )
    if not np.array_equal(np.unique(classes), classes):
        raise ValueError(f"expected sorted classes, got {classes[:5].tolist()!r}")
    return coef.astype(np.float64), intercept.astype(np.float64), classes


def _fill(model: Any, **attributes: NDArray[Any]) -> Any:
    """Set the attributes that fitting would have set."""
    for name, value in attributes.items():
        setattr(model, name, value)
    model.n_features_in_ = attributes["coef_"].shape[1]
    return model


def _read_steps(arrays: Arrays) -> list[tuple[str, Any]]:
    """Return the steps before a classifier."""
    is_kept, mean, scale = arrays["is_kept"], arrays["mean"], arrays["scale"]
    if is_kept.ndim != 1 or is_kept.dtype != np.bool_:
        raise ValueError(f"expected is_kept to be flags, got {is_kept.dtype} {is_kept.shape!r}")
    # Rows divided by less would overflow.
    if not (scale >= np.finfo(np.float64).tiny).all():
        raise ValueError("expected scales that are normal floats above 0, got a smaller one")
    vary = VarianceThreshold()
    vary.variances_, vary.n_features_in_ = is_kept.astype(np.float64), len(is_kept)
    standard = StandardScaler()
    standard.mean_, standard.scale_, standard.var_ = mean, scale, scale**2
    standard.n_features_in_ = standard.n_samples_seen_ = len(mean)
    n_kept = int(is_kept.sum())
    if mean.shape != (n_kept,) or scale.shape != mean.shape:
        raise ValueError(
            f"expected {n_kept} means and scales, got shapes {mean.shape!r} and {scale.shape!r}"
        )
    return [("vary", vary), ("scale", standard)]


READERS: dict[str, Callable[[Constants, Arrays], Any]] = {
    "svm": _read_svm,
    "agf": _read_agf,
    "kde": _read_kde,
    "linear": _read_linear,
    "logistic": _read_logistic,
}
