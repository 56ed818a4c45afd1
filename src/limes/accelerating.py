"""A fitted classifier to a fast one, in one call."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from limes.checks import check_parameters, check_same_features
from limes.classifier import BordersClassifier
from limes.remembered import rows_without_data


def accelerate(
    model: Any,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    scheme: str = "auto",
    n_borders: int | str = "auto",
    placement: str = "auto",
    blend: int | str = "auto",
    refine: bool = True,
    border: str = "predict",
    threshold: float = 0.0,
    tolerance: float = 1e-5,
    dtype: str = "float32",
    min_agreement: float | None = None,
    max_cost: int | None = None,
    max_time_us: float | None = None,
    max_bytes: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> BordersClassifier:
    """Turn a fitted classifier into a fast one with the same answers.

    Parameters
    ----------
    model : classifier, or function of rows
        Fitted: a support vector machine, a kernel-density or Gaussian-process classifier, a LIBSVM
        model, anything with ``predict_proba`` or ``decision_function``, perhaps in a ``Pipeline``.
        A function gives decision values (n_rows,), positive for the second class, or scores
        (n_rows, n_classes).
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Rows like those to be predicted; the training rows are best. Without any, rows are made
        around those that the model keeps, such as support vectors, and a warning says what that
        costs: they lie about the border, and nobody knows where other rows will be.
    y : array-like of shape (n_rows,), default=None
        True labels. Not needed: the source labels the rows. They make probabilities better where
        the source has none of its own.
    scheme, n_borders, placement, blend, refine, border, threshold, tolerance, dtype
        As for ``BordersClassifier``.
    min_agreement, max_cost, max_time_us, max_bytes, random_state, n_jobs, verbose
        As for ``BordersClassifier``.

    Returns
    -------
    BordersClassifier
        Fitted.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> import limes
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> svc = SVC(gamma=2).fit(X, y)
    >>> fast = limes.accelerate(svc, X, random_state=0)
    >>> fast.predict([[0.0, 1.0], [1.0, -0.5]])
    array([0, 1])
    """
    fast = BordersClassifier(
        FrozenEstimator(model) if hasattr(model, "fit") else model,
        scheme=scheme,
        n_borders=n_borders,
        placement=placement,
        blend=blend,
        refine=refine,
        border=border,
        threshold=threshold,
        tolerance=tolerance,
        dtype=dtype,
        min_agreement=min_agreement,
        max_cost=max_cost,
        max_time_us=max_time_us,
        max_bytes=max_bytes,
        random_state=random_state,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    check_parameters(fast)
    if hasattr(model, "fit"):
        check_is_fitted(model)
    if X is None:
        X = _made_rows(model, y, random_state)
    check_same_features(model, X)
    options = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}
    if y is None:
        return fast._find_borders(model, validate_data(fast, X, **options), None)
    rows, labels = validate_data(fast, X, y, **options)
    return fast._find_borders(model, rows, labels)


def _made_rows(model: Any, y: ArrayLike | None, random_state: Any) -> ArrayLike:
    """Make rows from what the model keeps, and say what that costs."""
    if y is not None:
        raise ValueError("y has labels, but X has no rows that they belong to: give both, or none.")
    seed = check_random_state(random_state).randint(2**31)
    rows = rows_without_data(model, np.random.default_rng(seed))
    warnings.warn(
        f"without rows, {len(rows)} were made around those that the model keeps: agreement is "
        "measured on such rows, and may be lower on real ones. Give X, rows like those to be "
        "predicted, for a better map.",
        stacklevel=3,
    )
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return rows
    import pandas

    return pandas.DataFrame(rows, columns=names)
