"""One border map for each pair of classes: the paper's scheme, and that of two classes."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from limes._typing import Array, Codes
from limes.coupling import count_votes, couple
from limes.schemes.protocol import Scheme

# Added to the winner's probability where it only just wins, so that rounding cannot hide it.
MARGIN = 1e-9


@dataclass(frozen=True, eq=False)
class PairwiseScheme(Scheme):
    """Maps of all pairs in the order of ``class_pairs``, joined by votes or by coupling.

    Parameters
    ----------
    maps, n_classes, double
        As in every scheme.
    by_vote : bool, default=True
        True: the class that wins most pairs, the lowest of equals (as LIBSVM decides). Coupled
        probabilities are then moved as little as it takes to put that class first. False: the
        class with the largest coupled probability.
    """

    name: ClassVar[str] = "pairwise"
    by_vote: bool = True

    def codes(self, values: NDArray[Any]) -> Codes:
        """Return the class number of each row."""
        if self.n_classes == 2:
            return (values[:, 0] > 0).astype(np.intp)
        if self.by_vote:
            return np.argmax(count_votes(values), axis=1)
        return np.argmax(self.probabilities(values), axis=1)

    def probabilities(self, values: NDArray[Any]) -> Array:
        """Return class probabilities."""
        coupled = couple(expit(2 * values.astype(np.float64)))
        if self.n_classes == 2 or not self.by_vote:
            return coupled
        return put_first(coupled, self.codes(values))


def put_first(probabilities: Array, winners: Codes) -> Array:
    """Move probabilities as little as it takes for the winner of each row to have the largest.

    The winner and the classes above it share what they have equally: the nearest point, in squared
    distance, of the set where the winner is first.

    Parameters
    ----------
    probabilities : ndarray of shape (n_rows, n_classes)
        Each row summing to 1.
    winners : ndarray of shape (n_rows,)
        Class numbers.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        Each row summing to 1, its largest at the winner's place.

    Examples
    --------
    >>> put_first(np.array([[0.5, 0.3, 0.2]]), np.array([1])).round(6)
    array([[0.4, 0.4, 0.2]])
    """
    moved = probabilities.copy()
    is_late = probabilities.argmax(axis=1) != winners
    moved[is_late] = _pool(probabilities[is_late], winners[is_late])
    return moved


def _pool(probabilities: Array, winners: Codes) -> Array:
    """Average the winner of each row with the classes above the average, largest first."""
    rows = np.arange(len(probabilities))
    others = probabilities.copy()
    others[rows, winners] = -1.0
    order = np.argsort(-others, axis=1, kind="stable")[:, :-1]
    sizes = np.arange(1, order.shape[1] + 2)
    pooled = np.column_stack([probabilities[rows, winners], np.take_along_axis(others, order, 1)])
    levels = pooled.cumsum(axis=1) / sizes
    n_above = (pooled[:, 1:] > levels[:, :-1]).cumprod(axis=1).sum(axis=1)
    level = levels[rows, n_above][:, None]
    moved = probabilities.copy()
    is_pooled = np.arange(order.shape[1]) < n_above[:, None]
    np.put_along_axis(
        moved, order, np.where(is_pooled, level, np.take_along_axis(others, order, 1)), 1
    )
    moved[rows, winners] = level[:, 0] * (1 + MARGIN)
    return moved / moved.sum(axis=1, keepdims=True)
