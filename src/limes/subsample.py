"""Choose a fraction of the rows of each class."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from sklearn.utils import check_random_state, column_or_1d

from limes._typing import Indices

__all__ = ["power_law_sizes", "proportional_sizes", "subsample_rows"]

# Rounding errors are smaller than this: a size of 28.999999999999996 is 29.
ROUNDING = 1e-9


def subsample_rows(
    y: ArrayLike,
    fraction: float,
    *,
    method: str = "proportional",
    random_state: int | np.random.RandomState | None = None,
) -> NDArray[np.intp]:
    """Choose a fraction of the rows at random, class by class.

    With the same integer ``random_state``, the rows of a smaller fraction are a subset of those of
    a larger one.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels, of any type.
    fraction : float
        Share of the rows to keep, above 0 and at most 1.
    method : {"proportional", "power"}, default="proportional"
        Keep the shares of the classes, or balance them by :func:`power_law_sizes` if the
        smallest classes would otherwise lose nearly all rows.
    random_state : int, RandomState or None, default=None
        Seed of the choice.

    Returns
    -------
    ndarray of shape (n_chosen,)
        Row numbers, in ascending order; at least one of each class.

    Examples
    --------
    >>> y = ["rare", "rare"] + ["common"] * 32
    >>> len(subsample_rows(y, 0.25, random_state=0))
    9
    >>> rows = subsample_rows(y, 10 / 34, method="power", random_state=0)
    >>> [y[row] for row in rows].count("rare")
    2
    """
    if method not in SIZES:
        raise ValueError(f"method must be one of {sorted(SIZES)}, got {method!r}.")
    _, class_index, class_sizes = np.unique(
        column_or_1d(y), return_inverse=True, return_counts=True
    )
    sizes = SIZES[method](class_sizes, fraction)
    rng = check_random_state(random_state)
    rows = [
        rng.permutation(np.flatnonzero(class_index == index))[:size]
        for index, size in enumerate(sizes)
    ]
    return np.sort(np.concatenate(rows))


def proportional_sizes(class_sizes: ArrayLike, fraction: float) -> NDArray[np.int64]:
    """Return how many rows of each class to keep if their shares do not change.

    Parameters
    ----------
    class_sizes : array-like of shape (n_classes,)
        Number of rows of each class, 1 or more.
    fraction : float
        Share of the rows to keep, above 0 and at most 1.

    Returns
    -------
    ndarray of shape (n_classes,)
        Number of rows to keep: rounded down, as in the paper, but at least 1.

    Examples
    --------
    >>> proportional_sizes([464, 485, 1051], 0.05)
    array([23, 24, 52])
    """
    sizes = _check_sizes(class_sizes, fraction)
    return _round_down(fraction * sizes)


def power_law_sizes(class_sizes: ArrayLike, fraction: float) -> NDArray[np.int64]:
    """Return how many rows of each class to keep by a power law of the class sizes.

    The smallest class keeps all rows and larger ones a smaller share; their order does not change.

    Parameters
    ----------
    class_sizes : array-like of shape (n_classes,)
        Number of rows of each class, 1 or more.
    fraction : float
        Share of the rows to keep, above 0 and at most 1. The result has at least as many rows of
        each class as the smallest class has, even if the fraction is smaller.

    Returns
    -------
    ndarray of shape (n_classes,)
        Number of rows to keep, rounded down, as in the paper.

    Notes
    -----
    n'_i = n_1^zeta n_i^(1 - zeta), where n_1 is the smallest class and zeta, between 0 and 1, is
    solved so that the sum is the requested fraction of all rows.

    Examples
    --------
    >>> power_law_sizes([2, 32], 10 / 34)
    array([2, 8])
    >>> power_law_sizes([2, 32], 0.01)
    array([2, 2])
    """
    sizes = _check_sizes(class_sizes, fraction)
    smallest, total = sizes.min(), fraction * sizes.sum()
    if len(sizes) * smallest >= total:
        return np.full(len(sizes), smallest, dtype=np.int64)

    def reduced(zeta: float) -> NDArray[np.float64]:
        return smallest**zeta * sizes ** (1 - zeta)

    return _round_down(reduced(brentq(lambda zeta: reduced(zeta).sum() - total, 0.0, 1.0)))


SIZES = {"proportional": proportional_sizes, "power": power_law_sizes}


def _check_sizes(class_sizes: ArrayLike, fraction: float) -> NDArray[np.float64]:
    """Return class sizes as floats; raise an error for invalid sizes or fractions."""
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction must be above 0 and at most 1, got {fraction!r}.")
    sizes: NDArray[Any] = column_or_1d(class_sizes)
    if not len(sizes) or sizes.min() < 1 or np.any(sizes != np.floor(sizes)):
        raise ValueError(
            f"class_sizes must be whole numbers of 1 or more, got {sizes.tolist()!r}: "
            "omit classes without rows."
        )
    return sizes.astype(np.float64)


def _round_down(sizes: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return sizes as integers of 1 or more."""
    return np.maximum(np.floor(sizes + ROUNDING), 1).astype(np.int64)


def rank_within_class(class_index: Indices) -> Indices:
    """Return how many earlier rows have the same class.

    Examples
    --------
    >>> rank_within_class(np.array([2, 0, 2, 2, 0]))
    array([0, 0, 1, 2, 1])
    """
    order = np.argsort(class_index, kind="stable")
    counts = np.bincount(class_index)
    starts = np.cumsum(counts) - counts
    rank = np.empty(len(class_index), dtype=np.intp)
    rank[order] = np.arange(len(class_index)) - starts[class_index[order]]
    return rank
