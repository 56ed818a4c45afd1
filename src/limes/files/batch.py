"""Some rows of a file, and the labels of several such pieces as one array."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# One piece of a file: large enough to keep a core busy, small beside the interpreter.
BATCH_BYTES = 1 << 22
MAX_BATCH_ROWS = 1 << 16
# No dataset is wider; a file that says so is damaged, or not what it is taken for.
MAX_FEATURES = 1 << 25


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows that follow each other in a file.

    Parameters
    ----------
    X : ndarray or csr_matrix of shape (n_rows, n_features)
        Rows.
    y : ndarray of shape (n_rows,), or None
        Labels; None where the file has none. As text where the file is text.
    table : object, default=None
        All columns, for files that have names for them.
    """

    X: Any
    y: NDArray[Any] | None
    table: Any = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])


def batch_size(n_features: int, itemsize: int = 8) -> int:
    """Return how many rows make a piece."""
    return max(1, min(MAX_BATCH_ROWS, BATCH_BYTES // max(1, n_features * itemsize)))


def join_labels(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Make one array of the labels of several pieces.

    Whole numbers become integers, whatever they were in the file; what is not a number
    everywhere becomes text.

    Parameters
    ----------
    parts : sequence of ndarray
        Labels of each piece, as numbers or text.

    Returns
    -------
    ndarray of int64, float64 or str
        All labels.

    Examples
    --------
    >>> join_labels([np.array(["1", "2"]), np.array(["3"])])
    array([1, 2, 3])
    >>> join_labels([np.array([1.0, 2.0]), np.array([2.5])])
    array([1. , 2. , 2.5])
    >>> join_labels([np.array(["1"]), np.array(["one"])])
    array(['1', 'one'], dtype='<U3')
    """
    if not parts:
        return np.empty(0, dtype=np.int64)
    if all(part.dtype.kind in "biu" for part in parts):
        return np.concatenate(parts).astype(np.int64)
    if all(part.dtype.kind in "biuf" for part in parts):
        return _whole_where_possible(np.concatenate(parts).astype(np.float64))
    text = np.concatenate([np.asarray(part).astype(str) for part in parts])
    names, codes = np.unique(text, return_inverse=True)
    try:
        numbers = names.astype(np.float64)
    except ValueError:
        return text
    return _whole_where_possible(numbers)[codes] if np.isfinite(numbers).all() else text


def _whole_where_possible(labels: NDArray[np.float64]) -> NDArray[Any]:
    """Return integers where all labels are whole."""
    # Above 2**53 a float no longer tells neighbouring integers apart.
    if np.isfinite(labels).all() and (np.abs(labels) <= 2**53).all():
        whole = labels.astype(np.int64)
        if (whole == labels).all():
            return whole
    return labels
