"""Check or choose total weight and number of neighbours."""

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limes.agf.neighbours import (
    AdaptiveWidth,
    TrainingRows,
    Width,
    nearest_others,
    single_blas_thread,
    split_rows,
    weigh,
)

Array = NDArray[Any]
# Rows that leave-one-out errors are computed on: fewer of many training rows, to limit the time.
MAX_PILOT_ROWS, MIN_PILOT_ROWS, N_PILOT_DISTANCES = 256, 64, 2**22
# From a wide mean (best for few features) to the nearest neighbour (many); the widest wins a tie.
TOTAL_WEIGHTS = tuple(32 * 4.0**-power for power in range(9))


def check_n_neighbors(n_neighbors: Any, n_rows: int, *, unset: Any = None) -> int:
    """Return a number of neighbours, checked against the number of training rows."""
    if not _is_a(n_neighbors, Integral):
        raise TypeError(f"n_neighbors must be a whole number or {unset!r}, got {n_neighbors!r}.")
    if not 1 <= n_neighbors <= n_rows:
        raise ValueError(
            f"n_neighbors must be from 1 to the number of training rows, n_samples={n_rows}, "
            f"got {n_neighbors!r}. Lower it or fit more rows."
        )
    return int(n_neighbors)


def check_total_weight(total_weight: Any, n_neighbors: int) -> float:
    """Return a sum of weights, checked against the number of neighbours."""
    weight = check_positive("total_weight", total_weight)
    if weight >= n_neighbors:
        raise ValueError(
            f"total_weight must be below the number of neighbours, which is {n_neighbors}, got "
            f"{total_weight!r}: each weighs at most 1. Lower it or use more neighbours."
        )
    return weight


def check_positive(name: str, value: Any) -> float:
    """Return a parameter as a positive, finite number."""
    if not _is_a(value, Real):
        raise TypeError(f"{name} must be a number or 'auto', got {value!r}.")
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {value!r}.")
    return float(value)


def check_enough_rows(n_rows: int) -> None:
    """Raise an error for a single training row, which determines no bandwidth."""
    if n_rows < 2:
        raise ValueError(
            f"A bandwidth chosen by 'auto' needs at least 2 training rows, got n_samples={n_rows}. "
            "Fit more rows or give the bandwidth or weight as a number."
        )


def is_auto(value: Any) -> bool:
    """Return whether a parameter is to be chosen from the training rows."""
    return isinstance(value, str) and value == "auto"


def _is_a(value: Any, kind: type) -> bool:
    """Return whether a value is a number of this kind, True and False excluded."""
    return isinstance(value, kind) and not isinstance(value, bool | np.bool_)


def choose_total_weight(
    training: TrainingRows, targets: Array, *, total_weight: Any, n_neighbors: Any
) -> float:
    """Return the given sum of weights, or for "auto" that with the smallest error."""
    n_available = training.n_rows
    if n_neighbors is not None:
        n_available = check_n_neighbors(n_neighbors, training.n_rows)
    if not is_auto(total_weight):
        return check_total_weight(total_weight, n_available)
    check_enough_rows(training.n_rows)
    return _choose_total_weight(training, targets, n_available)


def leave_one_out_errors(
    training: TrainingRows, targets: Array, *, widths: Sequence[Width], n_others: int
) -> Array:
    """Return the leave-one-out sum of squared errors of each width.

    For one-hot targets, a column for each class, it is the Brier score up to a factor.
    """
    pilots = _pilot_rows(training.n_rows)
    errors = np.zeros(len(widths))
    with single_blas_thread(training.n_features):
        for block in split_rows(len(pilots), training.n_rows):
            squared, index = nearest_others(training, pilots[block], n_others)
            for place, width in enumerate(widths):
                part = weigh(squared, index, pilots[block], width, training.n_rows)
                means = part.spread(part.weights) @ targets
                errors[place] += np.square(means - targets[part.at]).sum()
    return errors


def _choose_total_weight(training: TrainingRows, targets: Array, n_neighbors: int) -> float:
    """Return the sum of weights with the smallest leave-one-out error."""
    n_others = min(n_neighbors, training.n_rows - 1)
    widths = [AdaptiveWidth(weight) for weight in TOTAL_WEIGHTS if weight < n_others]
    errors = leave_one_out_errors(training, targets, widths=widths, n_others=n_others)
    return widths[int(np.argmin(errors))].total_weight


def _pilot_rows(n_rows: int) -> NDArray[np.intp]:
    """Return evenly spaced rows; if rows are sorted by class, each large class is included."""
    n_pilots = max(MIN_PILOT_ROWS, min(MAX_PILOT_ROWS, N_PILOT_DISTANCES // n_rows))
    return np.linspace(0, n_rows - 1, min(n_rows, n_pilots)).astype(np.intp)
