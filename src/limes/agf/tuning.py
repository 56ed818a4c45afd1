"""Bandwidths chosen from the training rows: each predicted from all the others."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limes.agf.neighbourhoods import AdaptiveWidth, Width, weigh
from limes.agf.parameters import (
    check_enough_rows,
    check_n_neighbors,
    check_total_weight,
    is_auto,
)
from limes.agf.threads import calm_blas
from limes.agf.training_rows import TrainingRows, nearest_others, split_rows

Array = NDArray[Any]

# A few hundred rows tell the candidates apart; fewer of many training rows, to bound the fit.
MOST_PILOT_ROWS, FEWEST_PILOT_ROWS, N_PILOT_DISTANCES = 256, 64, 2**22
# From a wide mean (few features) to nearest neighbour (many); the widest wins a tie.
TOTAL_WEIGHTS = tuple(32 * 4.0**-power for power in range(9))


def settle_total_weight(
    training: TrainingRows, targets: Array, *, total_weight: Any, n_neighbors: Any
) -> float:
    """Return the sum of weights asked for, or that with the least error for "auto"."""
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
    """Return the summed squared error of each width at rows that do not see themselves.

    With one column a class, 1 for the rows of that class, it is the Brier score.
    """
    pilots = _pilot_rows(training.n_rows)
    errors = np.zeros(len(widths))
    with calm_blas(training.n_features):
        for block in split_rows(len(pilots), training.n_rows):
            squared, index = nearest_others(training, pilots[block], n_others)
            for place, width in enumerate(widths):
                part = weigh(squared, index, pilots[block], width, training.n_rows)
                means = part.spread(part.weights) @ targets
                errors[place] += np.square(means - targets[part.at]).sum()
    return errors


def _choose_total_weight(training: TrainingRows, targets: Array, n_neighbors: int) -> float:
    """Return the sum of weights with the least leave-one-out error."""
    n_others = min(n_neighbors, training.n_rows - 1)
    widths = [AdaptiveWidth(weight) for weight in TOTAL_WEIGHTS if weight < n_others]
    errors = leave_one_out_errors(training, targets, widths=widths, n_others=n_others)
    return widths[int(np.argmin(errors))].total_weight


def _pilot_rows(n_rows: int) -> NDArray[np.intp]:
    """Return evenly spaced rows: of rows in order of class, some of each large class."""
    n_pilots = max(FEWEST_PILOT_ROWS, min(MOST_PILOT_ROWS, N_PILOT_DISTANCES // n_rows))
    return np.linspace(0, n_rows - 1, min(n_rows, n_pilots)).astype(np.intp)
