"""Classifiers and outlier detectors that skops wrote, loaded with its own check of types."""

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, NuSVC, OneClassSVM
from sklearn.utils.validation import check_is_fitted

from limes.files.streams import shorten
from limes.sources.exact import is_detector
from limes.sources.svm import one_class_from_sklearn, svm_from_sklearn

# Unpacked size of an archive: a small file can hold very much.
MAX_BYTES = 1 << 30
# Types that are named in a message.
MAX_LISTED = 5


def read_skops_model(path: str | os.PathLike[str]) -> Any:
    """Read a fitted model that ``skops.io.dump`` wrote, if skops trusts all its types.

    Parameters
    ----------
    path : path-like
        File of a classifier or outlier detector, or of a pipeline that ends with one.

    Returns
    -------
    estimator
        The classifier or detector.

    Examples
    --------
    >>> import tempfile
    >>> import skops.io
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> X, y = make_moons(100, noise=0.1, random_state=0)
    >>> path = tempfile.mkdtemp() + "/moons.skops"
    >>> skops.io.dump(SVC().fit(X, y), path)
    >>> read_skops_model(path).predict([[0.0, 1.0], [1.0, -0.5]])
    array([0, 1])
    """
    try:
        from skops.io import get_untrusted_types, load
    except ImportError as error:
        raise ImportError(
            f"{os.fspath(path)}: a model of skops needs skops: pip install limes[skops]."
        ) from error
    name = os.fspath(path)
    _check_size(Path(path), name)
    try:
        untrusted = sorted(get_untrusted_types(file=Path(path)))
    # Any error with the content of a file is an error of the file.
    except Exception as error:
        raise ValueError(f"{name}: expected a model of skops: {_reason(error)}.") from None
    if untrusted:
        more = ", ..." if len(untrusted) > MAX_LISTED else ""
        raise ValueError(
            f"{name}: expected types that skops trusts, found {', '.join(untrusted[:MAX_LISTED])}"
            f"{more}: load it with skops.io.load(trusted=...) if you trust them, and give it to "
            "limes.accelerate."[:400]
        )
    try:
        model = load(Path(path), trusted=[])
        is_wrong_kind = not is_classifier(model) and not is_detector(model)
        if not is_wrong_kind:
            _check_fitted(model)
    except Exception as error:
        raise ValueError(f"{name}: expected a fitted classifier: {_reason(error)}.") from None
    if is_wrong_kind:
        raise ValueError(
            f"{name}: expected a classifier, found a {type(model).__name__}: limes replaces "
            "classifiers and outlier detectors only."
        )
    return model


def _check_fitted(model: Any) -> None:
    """Raise an error unless a model is fitted, and the arrays of an SVM fit together.

    scikit-learn's compiled code would read beyond the ends of others.
    """
    check_is_fitted(model)
    last = model[-1] if isinstance(model, Pipeline) else model
    n_features = int(model.n_features_in_)
    if isinstance(last, SVC | NuSVC | OneClassSVM):
        is_one_class = isinstance(last, OneClassSVM)
        svm = one_class_from_sklearn(last) if is_one_class else svm_from_sklearn(last)
        n_classes = 2 if is_one_class else len(model.classes_)
        n_pairs = n_classes * (n_classes - 1) // 2
        n_vectors = len(svm.vectors)
        sizes = {
            "classes_": (n_classes, svm.n_classes),
            "support_": (len(last.support_), n_vectors),
            "_n_support": (len(last._n_support), n_classes),
            "n_support_": (int(np.sum(last.n_support_)), n_vectors),
            "_dual_coef_": (last._dual_coef_.shape, (n_classes - 1, n_vectors)),
            "_intercept_": (last._intercept_.shape, (n_pairs,)),
            "_probA": (last._probA.size, n_pairs if last._probA.size else 0),
            "_probB": (last._probB.size, last._probA.size),
            "shape_fit_": (int(last.shape_fit_[1]), svm.n_features),
        }
        wrong = [name for name, (found, expected) in sizes.items() if found != expected]
        if wrong:
            raise ValueError(f"{wrong[0]} does not fit the support vectors")
    model.predict(np.zeros((1, n_features)))


def _check_size(path: Path, name: str) -> None:
    """Raise an error if an archive is damaged or would take too much memory."""
    try:
        with zipfile.ZipFile(path) as archive:
            n_bytes = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError, UnicodeError) as error:
        raise ValueError(f"{name}: expected a model of skops: {_reason(error)}.") from None
    if n_bytes > MAX_BYTES:
        raise ValueError(
            f"{name}: expected at most {MAX_BYTES} bytes when unpacked, found {n_bytes}."
        )


def _reason(error: BaseException) -> str:
    """Return the message of another library as part of a sentence."""
    return shorten(error).rstrip(".")
