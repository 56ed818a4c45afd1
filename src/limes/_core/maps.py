"""Border maps packed for this processor: the typed face of the compiled core."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limes._core import _native
from limes._core.factors import factor_functions
from limes._core.groups import group_points
from limes._core.paths import cpu_path

Array = NDArray[Any]


class Maps:
    """Border maps that share rows, centre and projection, packed for this processor.

    With ``t = x - center`` and ``z = t @ projection`` (or ``z = t``), point i has the score
    ``biases[i] - z @ weights[i]``; the lowest score is the nearest point, the lowest index among
    equals. Its values are ``offsets[i, c] + functions[i, c] @ t``.

    Parameters
    ----------
    center : array-like of shape (n_features,)
        Taken from every row, in one exact operation: it keeps float32 accurate far from zero.
    maps : iterable of tuple
        ``(weights, biases, functions, offsets)`` of each map, of shapes
        (n_points, n_search), (n_points,), (n_points, n_values, n_features), (n_points, n_values).
    projection : array-like of shape (n_features, n_search), optional
        The search runs in these directions; the linear functions keep all features.
    blend : int, default=1
        How many of the nearest points share in a value, each by how much nearer it is than the
        next one after them. At most one less than there are points.
    double : bool, default=False
        Compute in float64 instead of float32.
    pairs : array-like of shape (n_maps, 2), optional
        The two class numbers that each map votes between in a `Classifier`, the second one where
        its value is above zero. Every map must have one value.
    grouped : bool, default=True
        Whether the search of a large map without blending may rule out groups of points by their
        distance. The answers are the same, to the bit.
    cpu : str, optional
        One of ``cpu_paths()``; by default ``cpu_path()``.

    Notes
    -----
    A row's answer does not depend on the other rows, on the number of threads or on the strides.
    A row with a NaN gets point 0, NaN values and class 0. Rows are float32 or float64 arrays of
    any strides and are never copied.

    Examples
    --------
    >>> line = Maps([0.0, 0.0], [([[0.0, 1.0]], [0.5], [[[0.0, 2.0]]], [[-2.0]])])
    >>> line.decide(np.array([[5.0, 1.0], [5.0, 2.0]]))
    array([[0.],
           [2.]], dtype=float32)
    """

    def __init__(
        self,
        center: ArrayLike,
        maps: Iterable[Sequence[ArrayLike]],
        *,
        projection: ArrayLike | None = None,
        blend: int = 1,
        double: bool = False,
        pairs: ArrayLike | None = None,
        grouped: bool = True,
        cpu: str | None = None,
    ) -> None:
        plain = None if projection is None else _plain(projection)
        self._native = _native.Maps(
            _plain(center),
            [_parts(parts, plain, blend, grouped=grouped) for parts in maps],
            plain,
            blend,
            double,
            None if pairs is None else np.ascontiguousarray(pairs, dtype=np.int32),
            cpu or cpu_path(),
        )

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return self._native.n_features

    @property
    def n_values(self) -> int:
        """Number of values of all maps together."""
        return self._native.n_values

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return np.dtype(np.float64 if self._native.is_double else np.float32)

    def nearest(
        self, X: Array, out: Array | None = None, *, index: int = 0, n_threads: int = 1
    ) -> Array:
        """Find the nearest point of each row in one of the maps.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Rows, float32 or float64.
        out : ndarray of shape (n_rows,), optional
            Where to write, int32 and contiguous.
        index : int, default=0
            Which map.
        n_threads : int, default=1
            See `thread_count`.

        Returns
        -------
        ndarray of shape (n_rows,)
            The index of the nearest point, the lowest among equals.
        """
        out = np.empty(_count(X), dtype=np.int32) if out is None else out
        self._native.nearest(X, out, index, n_threads)
        return out

    def decide(self, X: Array, out: Array | None = None, *, n_threads: int = 1) -> Array:
        """Evaluate all maps.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Rows, float32 or float64.
        out : ndarray of shape (n_rows, n_values), optional
            Where to write, of type `dtype` and contiguous.
        n_threads : int, default=1
            See `thread_count`.

        Returns
        -------
        ndarray of shape (n_rows, n_values)
            The values of all maps side by side.
        """
        out = np.empty((_count(X), self.n_values), dtype=self.dtype) if out is None else out
        self._native.decide(X, out, n_threads)
        return out

    def decide_some(
        self, X: Array, which: Array, out: Array | None = None, *, n_threads: int = 1
    ) -> Array:
        """Evaluate only the maps that each row names.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Rows, float32 or float64.
        which : ndarray of shape (n_rows, n_slots)
            Numbers of maps, int32 and contiguous; -1 for none.
        out : ndarray of shape (n_rows, n_slots, n_values of one map), optional
            Where to write, of type `dtype` and contiguous.
        n_threads : int, default=1
            See `thread_count`.

        Returns
        -------
        ndarray of shape (n_rows, n_slots, n_values of one map)
            The values; NaN where no map is named.
        """
        if out is None:
            n_each = self.n_values // self._native.n_maps
            out = np.empty((*np.shape(which), n_each), dtype=self.dtype)
        self._native.decide_some(X, which, out, n_threads)
        return out


def _parts(
    parts: Sequence[ArrayLike], projection: Array | None, blend: int, *, grouped: bool
) -> tuple[Any, ...]:
    """Return the parts of a map as the core reads them, with what makes it quicker if that pays."""
    plain = tuple(_plain(part) for part in parts)
    groups = factors = None
    # The core says what is wrong with anything that is no map.
    is_map = len(plain) == 4 and plain[0].ndim == 2 and plain[1].shape == plain[0].shape[:1]
    if is_map and grouped and blend == 1:
        groups = group_points(plain[0], plain[1])
    if is_map and projection is not None and blend > 1:
        is_fit = plain[2].ndim == 3 and plain[2].shape[2:] == projection.shape[:1]
        factors = factor_functions(plain[2], projection, blend) if is_fit else None
    return (*plain, groups, factors)


def _plain(values: ArrayLike) -> Array:
    """Return an array as the core reads it: float64, C-ordered."""
    return np.ascontiguousarray(values, dtype=np.float64)


def _count(X: Any) -> int:
    """Return the number of rows; the core says what is wrong with anything else."""
    shape = np.shape(X)
    return shape[0] if shape else 0
