"""From rows to labels in one call: the typed face of the core's classifier."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limes._core import _native
from limes._core.maps import Maps

Array = NDArray[Any]


class Classifier:
    """Maps and the rule that joins their values, which names the class of a row.

    Notes
    -----
    Far from zero, where a sum could overflow, only the direction of a row matters: a row with a
    number above ``2.0 ** range`` is multiplied by the power of two that brings it within. A row
    with a number that is NaN or infinite is class 0.

    Examples
    --------
    >>> line = Maps([0.0], [([[0.0]], [0.0], [[[1.0]]], [[0.0]])])
    >>> Classifier(line).label(np.array([[3.0], [-1.0]]), np.array(["below", "above"]))
    (array(['above', 'below'], dtype='<U5'), -1)
    """

    def __init__(
        self,
        maps: Maps,
        rule: str = "own",
        *,
        pairs: Maps | None = None,
        children: ArrayLike | None = None,
        shortlist: tuple[int, float, float] | None = None,
        referee: Callable[[list[float]], int] | None = None,
    ) -> None:
        self._native = _native.Classifier(
            maps._native,
            rule,
            None if pairs is None else pairs._native,
            None if children is None else np.ascontiguousarray(children, dtype=np.int32),
            shortlist,
            referee,
        )
        self._numbers = np.arange(self._native.n_classes)

    @property
    def n_classes(self) -> int:
        """How many classes can be named."""
        return self._native.n_classes

    def classify(self, X: Array, *, n_threads: int = 1) -> NDArray[np.intp]:
        """Name the class of each row."""
        return self.label(X, self._numbers, n_threads=n_threads)[0]

    def label(self, X: Array, labels: Array, *, n_threads: int = 1) -> tuple[Array, int]:
        """Label each row, and look for rows that have no label."""
        if labels.dtype.hasobject:
            raise TypeError("labels must not be objects: label rows with their numbers instead.")
        shape = np.shape(X)
        out = np.empty(shape[0] if shape else 0, dtype=labels.dtype)
        return out, self._native.label(X, _as_bytes(labels), _as_bytes(out), n_threads)

    def first_beyond(self, X: Array) -> int:
        """Return the first row with a number that is too large or none at all, or -1."""
        return self._native.first_beyond(X)

    def within(self, X: Array) -> Array:
        """Return the rows as the rule reads them: those beyond the range are moved towards zero.

        Examples
        --------
        >>> line = Maps([0.0], [([[0.0]], [0.0], [[[1.0]]], [[0.0]])])
        >>> Classifier(line).within(np.array([[3.0], [2.0**127]])) == [[3.0], [2.0**122]]
        array([[ True],
               [ True]])
        """
        if self.first_beyond(X) < 0:
            return X
        most, power = np.abs(X).max(axis=1), self._native.range
        steps = np.where(most > 2.0**power, power - np.frexp(most)[1], 0)
        return np.ldexp(X, steps[:, None])

    def predictor(self, labels: Iterable[Any] | None = None) -> _native.Predictor:
        """Return a function that classifies one row, for real-time use.

        It takes a float32 or float64 array of one dimension, or a sequence of numbers, and
        returns a label; a two-dimensional array gives a list of labels. A wrong shape or type
        raises; a row with a NaN or an infinity is class 0.

        Examples
        --------
        >>> line = Maps([0.0], [([[0.0]], [0.0], [[[1.0]]], [[0.0]])])
        >>> Classifier(line).predictor(["below", "above"])([3.0])
        'above'
        """
        return _native.Predictor(self._native, None if labels is None else tuple(labels))


def _as_bytes(array: Array) -> NDArray[np.uint8]:
    """Return the bytes of an array of one dimension, a line for each element."""
    plain = np.ascontiguousarray(array)
    return plain.view(np.uint8).reshape(len(plain), plain.dtype.itemsize)
