"""Checks of the parameters of the estimators: sentences that say what to do."""

import math
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_n_neighbors(n_neighbors: Any, n_rows: int, *, unset: Any = None) -> int:
    """Return a number of neighbours that the training rows can give."""
    if not _is_a(n_neighbors, Integral):
        raise TypeError(f"n_neighbors must be a whole number or {unset!r}, got {n_neighbors!r}.")
    if not 1 <= n_neighbors <= n_rows:
        raise ValueError(
            f"n_neighbors must be from 1 to the number of training rows, n_samples={n_rows}, "
            f"got {n_neighbors!r}. Lower it or fit more rows."
        )
    return int(n_neighbors)


def check_total_weight(total_weight: Any, n_neighbors: int) -> float:
    """Return a sum of weights that the neighbours of a row can reach."""
    weight = check_positive("total_weight", total_weight)
    if weight >= n_neighbors:
        raise ValueError(
            f"total_weight must be below the number of neighbours, which is {n_neighbors}, got "
            f"{total_weight!r}: each weighs at most 1. Lower it or use more neighbours."
        )
    return weight


def check_positive(name: str, value: Any) -> float:
    """Return a positive, finite number."""
    if not _is_a(value, Real):
        raise TypeError(f"{name} must be a number or 'auto', got {value!r}.")
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {value!r}.")
    return float(value)


def check_enough_rows(n_rows: int) -> None:
    """Refuse a single training row: how wide its surroundings are cannot be told from it."""
    if n_rows < 2:
        raise ValueError(
            f"A bandwidth chosen by 'auto' needs at least 2 training rows, got n_samples={n_rows}. "
            "Fit more rows or give the bandwidth or weight as a number."
        )


def is_auto(value: Any) -> bool:
    """Tell whether a parameter asks for a value chosen from the training rows."""
    return isinstance(value, str) and value == "auto"


def _is_a(value: Any, kind: type) -> bool:
    """Tell whether a value is a number of this kind: True and False are not."""
    return isinstance(value, kind) and not isinstance(value, bool | np.bool_)
