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
from limes.model.container import Container, read_container, write_container
from limes.model.kernels import Kernel
from limes.model.svm import TrainedSvm

Arrays = dict[str, NDArray[Any]]
Plain = dict[str, float | int | str | None]
MAX_BYTES = 1 << 32
# Of the format of a source file.
VERSION = 1


def write_source(
    model: Any, path: str | os.PathLike[str], *, names: tuple[str, ...] | None = None
) -> None:
    """Write a trained classifier as arrays, so that reading it cannot run anything.

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
        steps, model = _take_steps(model), model[-1]
    kind, plain, arrays = _take(model)
    arrays = {**arrays, **steps}
    if names is not None:
        arrays["names"] = np.array(names, dtype=str)
    header = {
        "limes": limes.__version__,
        "source": kind,
        "plain": plain,
        "names": list(arrays),
    }
    with atomic_write(path) as stream:
        write_container(stream, header, list(arrays.values()), version=VERSION)


def read_source(
    path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES
) -> tuple[Any, tuple[str, ...] | None]:
    """Read a classifier that ``write_source`` wrote, trusting nothing in the file."""
    container = read_container(path, max_bytes=max_bytes, versions=(VERSION,))
    kind, plain, arrays = _check_header(container)
    try:
        model = MAKERS[kind](plain, arrays)
        if "mean" in arrays:
            model = Pipeline([*_make_steps(arrays), ("model", model)])
        model.predict(np.zeros((1, model.n_features_in_)))
    # Whatever goes wrong with numbers from a file, it is the file that is wrong.
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        container.fail(f"a source of kind {kind!r}", reason)
    return model, _check_names(container, arrays, model.n_features_in_)


def is_source(path: str | os.PathLike[str]) -> bool:
    """Tell whether a model file holds a source, not borders."""
    return "source" in read_container(path, max_bytes=MAX_BYTES, versions=(1, 2)).header


def _take(model: Any) -> tuple[str, Plain, Arrays]:
    """Return the kind of a classifier, its constants and its arrays."""
    if isinstance(model, LibsvmClassifier):
        return _take_svm(model)
    if isinstance(model, AGFClassifier):
        plain: Plain = {
            "total_weight": float(model.total_weight_),
            "n_neighbors": model.n_neighbors,
        }
        return "agf", plain, _take_training(model)
    if isinstance(model, KernelDensityClassifier):
        return "kde", {"bandwidth": float(model.bandwidth_)}, _take_training(model)
    if isinstance(model, LinearSVC):
        return "linear", {}, _take_linear([model], model.classes_)
    if isinstance(model, OneVsRestClassifier):
        return "logistic", {}, _take_linear(model.estimators_, model.classes_)
    raise TypeError(f"a source file cannot hold a {type(model).__name__}.")


def _take_svm(model: LibsvmClassifier) -> tuple[str, Plain, Arrays]:
    """Return a support vector machine."""
    svm, kernel = model.svm, model.svm.kernel
    plain: Plain = {
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
    return "svm", plain, arrays


def _take_training(model: AGFClassifier | KernelDensityClassifier) -> Arrays:
    """Return the rows that a classifier remembers, and their labels."""
    training = model._training
    class_index = np.argmax(model._votes, axis=1)
    return {
        "rows": training.rows * training.scale + training.centre,
        "labels": model.classes_[class_index],
    }


def _take_linear(models: list[Any], classes: NDArray[Any]) -> Arrays:
    """Return linear functions."""
    return {
        "coef": np.vstack([model.coef_ for model in models]),
        "intercept": np.concatenate(
            [np.broadcast_to(model.intercept_, len(model.coef_)) for model in models]
        ).astype(np.float64),
        "classes": classes,
    }


def _take_steps(pipeline: Pipeline) -> Arrays:
    """Return what stands before the classifier: constant features dropped, the rest scaled."""
    steps = pipeline[:-1]
    inner = steps[-1] if len(steps) == 1 and isinstance(steps[-1], Pipeline) else steps
    if [type(step) for _, step in inner.steps] != [VarianceThreshold, StandardScaler]:
        raise TypeError(f"a source file can hold standardizer() before a model, got {inner!r}.")
    vary, scale = inner
    return {
        "is_kept": vary.get_support(),
        "mean": scale.mean_.astype(np.float64),
        "scale": scale.scale_.astype(np.float64),
    }


def _check_header(container: Container) -> tuple[str, Plain, Arrays]:
    """Return what a header says, if it says it of a source."""
    header = container.header
    kind, plain, names = (header.get(key) for key in ("source", "plain", "names"))
    if not isinstance(kind, str) or kind not in MAKERS:
        container.fail(f"a source of one of the kinds {sorted(MAKERS)}", kind)
    if not isinstance(plain, dict) or not all(isinstance(name, str) for name in plain):
        container.fail("constants of a source", plain)
    if not isinstance(names, list) or len(names) != len(container.arrays):
        container.fail(f"names of {len(container.arrays)} arrays", names)
    arrays = {str(name): array for name, array in zip(names, container.arrays, strict=True)}
    for number, (name, array) in enumerate(arrays.items()):
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            container.fail(f"finite numbers in {name!r}", "others", array=number)
    return kind, plain, arrays


def _check_names(container: Container, arrays: Arrays, n_features: int) -> tuple[str, ...] | None:
    """Return the names of the features, as many as there are."""
    if "names" not in arrays:
        return None
    if arrays["names"].shape != (n_features,):
        container.fail(f"{n_features} names of features", arrays["names"].shape)
    return tuple(map(str, arrays["names"]))


def _make_svm(plain: Plain, arrays: Arrays) -> LibsvmClassifier:
    """Return a support vector machine."""
    gamma, degree, coef0 = (_number(plain, key) for key in ("gamma", "degree", "coef0"))
    names = ("vectors", "dual_coef", "intercepts", "n_support")
    parts = {name: arrays[name] for name in names}
    svm = TrainedSvm(Kernel(str(plain["kernel"]), gamma, int(degree), coef0), **parts)
    labels = arrays["labels"].copy()
    n_classes = svm.n_classes
    sigmoids = arrays.get("sigmoids")
    if labels.shape != (n_classes,) or len(np.unique(labels)) < n_classes:
        raise ValueError(f"{n_classes} labels that differ, got the shape {labels.shape!r}")
    if sigmoids is not None and sigmoids.shape != (2, n_classes * (n_classes - 1) // 2):
        raise ValueError(f"sigmoids of the shape {sigmoids.shape!r}")
    svm_type = str(plain["svm_type"])
    return LibsvmClassifier(svm, labels, svm_type=svm_type, sigmoids=sigmoids)


def _make_agf(plain: Plain, arrays: Arrays) -> AGFClassifier:
    """Return a classifier by adaptive Gaussian filtering."""
    neighbours: Any = plain["n_neighbors"]
    model = AGFClassifier(total_weight=_number(plain, "total_weight"), n_neighbors=neighbours)
    return model.fit(arrays["rows"], arrays["labels"])


def _make_kde(plain: Plain, arrays: Arrays) -> KernelDensityClassifier:
    """Return a classifier by kernel densities."""
    model = KernelDensityClassifier(bandwidth=_number(plain, "bandwidth"))
    return model.fit(arrays["rows"], arrays["labels"])


def _number(plain: Plain, key: str) -> float:
    """Return a constant that must be a number: "auto" would start a search."""
    value = plain[key]
    if not isinstance(value, float):
        raise ValueError(f"{key} {value!r}")
    return value


def _make_linear(plain: Plain, arrays: Arrays) -> LinearSVC:
    """Return a linear support vector machine."""
    coef, intercept, classes = _check_linear(arrays)
    return _fill(LinearSVC(), coef_=coef, intercept_=intercept, classes_=classes)


def _make_logistic(plain: Plain, arrays: Arrays) -> OneVsRestClassifier:
    """Return logistic regressions, one a class against the rest."""
    coef, intercept, classes = _check_linear(arrays)
    parts = [
        _fill(LogisticRegression(), coef_=one[None], intercept_=shift[None], classes_=np.arange(2))
        for one, shift in zip(coef, intercept, strict=True)
    ]
    model = OneVsRestClassifier(LogisticRegression())
    model.estimators_ = parts
    model.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(classes)
    model.n_features_in_ = coef.shape[1]
    # A property of the class in some versions of scikit-learn, an attribute in others.
    vars(model)["classes_"] = classes
    return model


def _check_linear(arrays: Arrays) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return linear functions, as many as there are classes, or one for two."""
    coef, intercept, classes = (arrays[name].copy() for name in ("coef", "intercept", "classes"))
    n_functions = 1 if len(classes) == 2 else len(classes)
    if coef.ndim != 2 or len(coef) != n_functions or intercept.shape != (n_functions,):
        raise ValueError(f"functions of the shapes {coef.shape!r} and {intercept.shape!r}")
    if not np.array_equal(np.unique(classes), classes):
        raise ValueError("classes that are not in order")
    return coef.astype(np.float64), intercept.astype(np.float64), classes


def _fill(model: Any, **attributes: NDArray[Any]) -> Any:
    """Give an estimator what a fit would have given it."""
    for name, value in attributes.items():
        setattr(model, name, value)
    model.n_features_in_ = attributes["coef_"].shape[1]
    return model


def _make_steps(arrays: Arrays) -> list[tuple[str, Any]]:
    """Return the steps before a classifier."""
    is_good_enough, mean, scale = arrays["is_kept"], arrays["mean"], arrays["scale"]
    # A row divided by less than this is beyond floats, whatever it is.
    least = np.finfo(np.float64).tiny
    if is_good_enough.ndim != 1 or is_good_enough.dtype != np.bool_ or not (scale >= least).all():
        raise ValueError("steps that do not scale")
    vary = VarianceThreshold()
    vary.variances_, vary.n_features_in_ = is_good_enough.astype(np.float64), len(is_good_enough)
    standard = StandardScaler()
    standard.mean_, standard.scale_, standard.var_ = mean, scale, scale**2
    standard.n_features_in_ = standard.n_samples_seen_ = len(mean)
    if mean.shape != (int(is_good_enough.sum()),) or scale.shape != mean.shape:
        raise ValueError(f"scales of the shapes {mean.shape!r} and {scale.shape!r}")
    return [("vary", vary), ("scale", standard)]


MAKERS: dict[str, Callable[[Plain, Arrays], Any]] = {
    "svm": _make_svm,
    "agf": _make_agf,
    "kde": _make_kde,
    "linear": _make_linear,
    "logistic": _make_logistic,
}
