"""What users may give, and one sentence where they give something else."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted, validate_data

from limes._core.threads import check_jobs
from limes.placement import PLACEMENTS
from limes.schemes.survey import SCHEMES

CHOICES = {
    "scheme": ("auto", *SCHEMES),
    "placement": ("auto", *PLACEMENTS),
    "border": ("predict", "probability"),
    "dtype": ("float32", "float64"),
}


def check_parameters(model: Any) -> None:
    """Say which parameter is wrong, before anything long begins."""
    for name, choices in CHOICES.items():
        value = getattr(model, name)
        if not isinstance(value, str) or value not in choices:
            raise ValueError(f"{name} must be one of {sorted(choices)}, got {value!r}.")
    for name in ("n_borders", "blend"):
        value = getattr(model, name)
        is_auto = isinstance(value, str) and value == "auto"
        if not is_auto and not (_is_integer(value) and int(value) >= 1):
            raise ValueError(f"{name} must be 'auto' or an integer of 1 or more, got {value!r}.")
    for name, low, high in (("threshold", -1.0, 1.0), ("tolerance", 0.0, np.inf)):
        value = getattr(model, name)
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not (is_number and low < float(value) < high):
            raise ValueError(f"{name} must be a number between {low} and {high}, got {value!r}.")
    if model.scheme == "shared" and model.threshold:
        raise ValueError(
            f"threshold must be 0 with scheme='shared', got {model.threshold!r}: its map is fitted "
            "to where labels change. Give scheme='auto' or 'pairwise'."
        )
    _check_switches(model)
    _check_targets(model)


def check_rows(model: Any, X: ArrayLike) -> Any:
    """Return rows as the core takes them; whether they are finite is seen there."""
    if not hasattr(model, "scheme_"):  # asking scikit-learn takes longer than a row
        check_is_fitted(model, "scheme_")
    if _is_plain(model, X):
        return X
    return validate_data(
        model,
        X,
        reset=False,
        accept_sparse="csr",
        dtype=(np.float64, np.float32),
        ensure_all_finite=False,
    )


def check_same_features(model: Any, X: ArrayLike) -> None:
    """Compare the columns of rows with those that a source was fitted on."""
    wanted, found = getattr(model, "n_features_in_", None), np.shape(X)[1:]
    if wanted is not None and len(found) == 1 and found[0] != wanted:
        raise ValueError(
            f"X must have {wanted} features, as the source {type(model).__name__} was fitted "
            f"with, got {found[0]!r}."
        )
    names, columns = getattr(model, "feature_names_in_", None), getattr(X, "columns", None)
    if names is not None and columns is not None and list(names) != list(columns):
        raise ValueError(
            f"X must have the columns {list(names)!r}, in the order in which the source "
            f"{type(model).__name__} was fitted with, got {list(columns)!r}."
        )


def _is_plain(model: Any, X: Any) -> bool:
    """Tell whether rows are what the core takes, so that one row need not wait for checks."""
    return (
        type(X) is np.ndarray
        and X.dtype in (np.float32, np.float64)
        and X.ndim == 2
        and X.shape[1] == model.n_features_in_
        and X.shape[0] > 0
        and not hasattr(model, "feature_names_in_")
    )


def _is_integer(value: Any) -> bool:
    """Tell whether a value is a whole number, which True is not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _check_switches(model: Any) -> None:
    """Check the parameters that say how to work rather than what to find."""
    if not isinstance(model.refine, bool | np.bool_):
        raise ValueError(f"refine must be True or False, got {model.refine!r}.")
    check_jobs(model.n_jobs)
    if not _is_integer(model.verbose) and not isinstance(model.verbose, bool):
        raise ValueError(f"verbose must be an integer, got {model.verbose!r}.")


def _check_targets(model: Any) -> None:
    """Check what is asked of a map, and that its size is left open."""
    given = {
        name: value
        for name in ("min_agreement", "max_cost", "max_time_us", "max_bytes")
        if (value := getattr(model, name)) is not None
    }
    for name, value in given.items():
        high = 1.0 if name == "min_agreement" else np.inf
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not (is_number and 0 < float(value) <= high):
            raise ValueError(f"{name} must be None or a number from 0 to {high}, got {value!r}.")
    is_open = model.scheme in ("auto", "shared") and model.n_borders == "auto"
    if given and not (is_open and model.refine and not model.threshold):
        raise ValueError(
            f"{next(iter(given))} chooses the number of points: give it with scheme='auto' or "
            f"'shared', n_borders='auto', refine=True and threshold=0, got {model.scheme!r}, "
            f"{model.n_borders!r}, {model.refine!r} and {model.threshold!r}."
        )
