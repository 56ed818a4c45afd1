"""A classifier by kernel densities of one fixed bandwidth."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from limes.agf.classification import GaussianVote
from limes.agf.neighbourhoods import FixedWidth, Scope, whole_scope
from limes.agf.parameters import check_enough_rows, check_positive, is_auto
from limes.agf.training_rows import TrainingRows
from limes.agf.tuning import leave_one_out_errors

Array = NDArray[Any]

__all__ = ["KernelDensityClassifier"]

# Scott's rule smooths densities; borders like less. The widest of equals wins.
FACTORS = 2.0 ** (0.5 * np.arange(2, -11, -1))


class KernelDensityClassifier(GaussianVote):
    r"""Classify by the Gaussian kernel density of each class, all with the same bandwidth.

    The probability of a class is its density :math:`\frac{1}{n_c} \sum_{i \in c} K_h(x - x_i)`
    times its share :math:`n_c / n` of the training rows, divided by the sum over the classes.

    Parameters
    ----------
    bandwidth : float or "auto", default="auto"
        The standard deviation of the kernel, in the units of the features. "auto" takes the
        multiple, from 2 to 1/32, of Scott's rule for the spread within the classes that has
        the least leave-one-out Brier score.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes in order.
    bandwidth_ : float
        The bandwidth in use.
    n_features_in_ : int
        The number of features of the training rows.

    Notes
    -----
    Sums of exponentials are taken relative to the largest: far from all rows, where each
    density is zero in floating point, the class of the nearest row still has probability 1.
    Training on one class gives that class with probability 1. Scale the features first.

    Examples
    --------
    >>> model = KernelDensityClassifier(bandwidth=2)
    >>> model = model.fit([[0], [1], [9], [10]], ["a", "a", "b", "b"])
    >>> model.predict_proba([[5], [1000]]).round(3)
    array([[0.5, 0.5],
           [0. , 1. ]])
    """

    def __init__(self, bandwidth: float | Literal["auto"] = "auto") -> None:
        self.bandwidth = bandwidth

    def _choose_scope(self) -> Scope:
        """Return that all training rows have a say, and the bandwidth."""
        if is_auto(self.bandwidth):
            check_enough_rows(self._training.n_rows)
            width = _choose_bandwidth(self._training, self._votes)
        else:
            bandwidth = check_positive("bandwidth", self.bandwidth)
            width = FixedWidth(bandwidth / self._training.scale)
        self.bandwidth_ = width.bandwidth * self._training.scale
        return whole_scope(self._training, width)


def _choose_bandwidth(training: TrainingRows, votes: Array) -> FixedWidth:
    """Return the bandwidth with the least leave-one-out error."""
    exponent = -1 / (training.n_features + 4)
    rule = _spread_within(training.rows, votes) * training.n_rows**exponent
    widths = [FixedWidth(float(rule * factor)) for factor in FACTORS]
    n_others = training.n_rows - 1
    errors = leave_one_out_errors(training, votes, widths=widths, n_others=n_others)
    return widths[int(np.argmin(errors))]


def _spread_within(rows: Array, votes: Array) -> float:
    """Return the deviation of a feature from its class mean, or of any length if that is 0."""
    means = (votes.T @ rows) / votes.sum(axis=0)[:, None]
    within = float(np.sqrt(np.mean(np.square(rows - votes @ means))))
    return within or float(np.sqrt(np.mean(np.square(rows)))) or 1.0
