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

    Parameters
    ----------
    maps : Maps
        What is asked first.
    rule : str, default="own"
        ``"own"``: the class of the highest value of a single map (with one value, class 1 where it
        is above zero), or of the most votes of maps with pairs, the lowest among equals;
        ``"highest"``: the class of the highest of all
        values; ``"coupled"``: the most probable class, from maps of all pairs; ``"walk"``: the leaf
        of a tree with a map at each fork; ``"shortlist"``, ``"coupled shortlist"``: a map of all
        classes names a few, and the pairs of these vote or are coupled.
    pairs : Maps, optional
        Of a shortlist: one map a pair.
    children : array-like of shape (n_maps, 2), optional
        Of a tree: where the sides of each fork lead, to a later map or to the class c, as -1 - c.
    shortlist : tuple of (n_named, reach, trust), optional
        Of a shortlist: how many classes it may name, how far below the highest they may be, and
        the share of a pair's own map in its value.
    referee : callable, optional
        From the list of all values of a row to its class: asked by the coupled rules where two
        classes are as probable as rounding can tell.

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
        """Name the class of each row.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Rows, float32 or float64.
        n_threads : int, default=1
            See `thread_count`.

        Returns
        -------
        ndarray of shape (n_rows,)
            The number of the class.
        """
        return self.label(X, self._numbers, n_threads=n_threads)[0]

    def label(self, X: Array, labels: Array, *, n_threads: int = 1) -> tuple[Array, int]:
        """Label each row, and look for rows that have no label.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Rows, float32 or float64.
        labels : ndarray of shape (n_classes,)
            One a class, of any type but objects.
        n_threads : int, default=1
            See `thread_count`.

        Returns
        -------
        labels : ndarray of shape (n_rows,)
            Labels.
        refused : int
            The first row with a number that is not finite in the arithmetic of the maps, or -1.
        """
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

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Rows of finite numbers.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            ``X`` itself where all are within.

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

        Parameters
        ----------
        labels : iterable, optional
            One label a class; by default the number of the class.

        Returns
        -------
        callable
            From a row to its label.

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
