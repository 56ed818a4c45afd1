"""Prediction in the compiled core: maps, maps with a class rule, and what makes them fast."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limes._core import _native
from limes._core.hardware import DEFAULT_LEVEL
from limes._core.kernel_sums import ExactSums

Array = NDArray[Any]
Factors = tuple[Array, Array]
# Largest error of the split, relative to the largest slope: rounding of float64.
MAX_ERROR = 1e-12
# Largest ratio of the parts to the slopes: above it, cancellation would lose digits.
MAX_GROWTH = 16.0
Grouping = tuple[Array, Array, Array, float]
# Below this the plain search is as fast (measured on border points of seven datasets of the paper);
# above MAX_FEATURES the metric takes long to find.
MIN_POINTS = 1000
MAX_FEATURES = 64
# Two vectors of AVX2: smaller groups make more centres to score.
GROUP_SIZE = 16
N_ITERATIONS = 6


class Curve(NamedTuple):
    """The curved part of a single map, as ``limes.model.curved_base.CurvedBase`` defines it."""

    # Shape (n_features,). Subtracted from ``t = x - center``.
    shift: ArrayLike
    # Shape (n_terms,): the feature of each term; None with a matrix.
    columns: ArrayLike | None
    # Shape (n_terms,), or (n_features, n_terms) without columns.
    factors: ArrayLike
    constants: ArrayLike
    slopes: ArrayLike
    squares: ArrayLike | None
    decay: float
    n_listed: int


class Maps:
    """Border maps that share rows, centre and projection, packed for this processor.

    Each map is ``(points, biases, slopes, offsets)``. With ``t = x - center`` and
    ``z = t @ projection`` (or ``z = t``), point i has the score ``biases[i] - z @ points[i]``; the
    lowest score is that of the nearest point, the lowest index among equals. Its values are
    ``offsets[i, c] + slopes[i, c] @ t``. ``blend`` nearest points are averaged, ``pairs`` are the
    two classes that each map votes between, ``grouped=False`` searches all points of large maps.
    ``curve`` is added to the values of a single map.

    Notes
    -----
    The values of a row do not depend on the other rows, on the number of threads or on strides.
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
        curve: Curve | None = None,
        level: str | None = None,
    ) -> None:
        plain = None if projection is None else _plain(projection)
        self._native = _native.Maps(
            _plain(center),
            [_parts(parts, plain, blend, grouped=grouped) for parts in maps],
            plain,
            blend,
            double,
            None if pairs is None else np.ascontiguousarray(pairs, dtype=np.int32),
            None if curve is None else _curve_parts(curve),
            level or DEFAULT_LEVEL,
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
        """Find the nearest point of each row in one of the maps."""
        out = np.empty(_count(X), dtype=np.int32) if out is None else out
        self._native.nearest(X, out, index, n_threads)
        return out

    def decide(self, X: Array, out: Array | None = None, *, n_threads: int = 1) -> Array:
        """Evaluate all maps."""
        out = np.empty((_count(X), self.n_values), dtype=self.dtype) if out is None else out
        self._native.decide(X, out, n_threads)
        return out

    def decide_selected(
        self, X: Array, map_numbers: Array, out: Array | None = None, *, n_threads: int = 1
    ) -> Array:
        """Evaluate only the maps whose numbers are given for each row (-1: none)."""
        if out is None:
            n_each = self.n_values // self._native.n_maps
            out = np.empty((*np.shape(map_numbers), n_each), dtype=self.dtype)
        self._native.decide_selected(X, map_numbers, out, n_threads)
        return out


class Classifier:
    """Maps with a class rule, exact sums, or a map that leaves ambiguous rows to exact sums.

    Rules: "own", the largest value of a single map (with one value, class 1 where it is above
    zero) or the most votes of maps with pairs; "highest", the largest of all values; "coupled",
    the most probable class from maps of all pairs; "descend", the leaf of a tree with a map at each
    node; "shortlist" and "coupled shortlist", where a map of all classes selects a few, and their
    pairs vote or are coupled. The lowest class among equals wins.

    ``Classifier(sums)`` classifies by exact sums alone. A single map with the rule "own" may have
    exact sums as its fallback: they classify the rows whose margin, the difference between the two
    largest values (twice the magnitude of a single value), is below `fallback_margin`, compared in
    the precision of the map, and the rows that are out of range.

    Notes
    -----
    A row with a number above ``2.0 ** max_exponent``, whose sums could overflow, is multiplied by
    the power of two that brings it into range; exact sums take it as it is. A row with a NaN or an
    infinity is class 0.

    Examples
    --------
    >>> line = Maps([0.0], [([[0.0]], [0.0], [[[1.0]]], [[0.0]])])
    >>> Classifier(line).label(np.array([[3.0], [-1.0]]), np.array(["below", "above"]))
    (array(['above', 'below'], dtype='<U5'), -1)
    """

    def __init__(
        self,
        maps: Maps | ExactSums,
        rule: str = "own",
        *,
        pairs: Maps | None = None,
        children: ArrayLike | None = None,
        shortlist: tuple[int, float, float] | None = None,
        tie_breaker: Callable[[list[float]], int] | None = None,
        exact: ExactSums | None = None,
        fallback_margin: float = 0.0,
    ) -> None:
        if isinstance(maps, ExactSums):
            exact = maps
        self._native = _native.Classifier(
            None if isinstance(maps, ExactSums) else maps._native,
            rule,
            None if pairs is None else pairs._native,
            None if children is None else np.ascontiguousarray(children, dtype=np.int32),
            shortlist,
            tie_breaker,
            None if exact is None else exact._native,
            float(fallback_margin),
        )
        self._numbers = np.arange(self._native.n_classes)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self._native.n_classes

    def classify(self, X: Array, *, n_threads: int = 1) -> NDArray[np.intp]:
        """Return the class index of each row."""
        return self.label(X, self._numbers, n_threads=n_threads)[0]

    def label(self, X: Array, labels: Array, *, n_threads: int = 1) -> tuple[Array, int]:
        """Return the label of each row, and the first row without a label, or -1."""
        if labels.dtype.hasobject:
            raise TypeError("labels must not be objects: label rows with their numbers instead.")
        shape = np.shape(X)
        out = np.empty(shape[0] if shape else 0, dtype=labels.dtype)
        return out, self._native.label(X, _as_bytes(labels), _as_bytes(out), n_threads)

    @property
    def has_probabilities(self) -> bool:
        """Whether the core has probabilities: of a single map, and of the rule "highest"."""
        return self._native.has_probabilities

    def probabilities(
        self, X: Array, out: Array | None = None, *, n_threads: int = 1
    ) -> tuple[Array, int]:
        """Return the probability of each class, and the first row without any, or -1.

        A single value is half the logarithm of the odds of the second class; the values of a map
        of several are logits. With the rule "highest", values are as ``OneVsRestScheme`` defines.

        Examples
        --------
        >>> line = Maps([0.0], [([[0.0]], [0.0], [[[1.0]]], [[0.0]])])
        >>> Classifier(line).probabilities(np.array([[0.0], [0.5 * np.log(3.0)]]))[0].round(6)
        array([[0.5 , 0.5 ],
               [0.25, 0.75]])
        """
        out = np.empty((_count(X), self.n_classes)) if out is None else out
        return out, self._native.probabilities(X, out, n_threads)

    def first_out_of_range(self, X: Array) -> int:
        """Return the first row with a NaN or a number out of range, or -1."""
        return self._native.first_out_of_range(X)

    def scale_into_range(self, X: Array) -> Array:
        """Return the rows as the rule reads them: those out of range scaled down.

        Examples
        --------
        >>> line = Maps([0.0], [([[0.0]], [0.0], [[[1.0]]], [[0.0]])])
        >>> Classifier(line).scale_into_range(np.array([[3.0], [2.0**127]])) == [[3.0], [2.0**122]]
        array([[ True],
               [ True]])
        """
        if self.first_out_of_range(X) < 0:
            return X
        most, power = np.abs(X).max(axis=1), self._native.max_exponent
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


def _parts(
    parts: Sequence[ArrayLike], projection: Array | None, blend: int, *, grouped: bool
) -> tuple[Any, ...]:
    """Return the arrays of a map with clusters or common slopes, where these make it faster."""
    plain = tuple(_plain(part) for part in parts)
    groups = factors = None
    # The core raises for anything that is no map.
    is_map = len(plain) == 4 and plain[0].ndim == 2 and plain[1].shape == plain[0].shape[:1]
    if is_map and grouped and blend == 1:
        groups = cluster_points(plain[0], plain[1])
    if is_map and projection is not None and blend > 1:
        is_fit = plain[2].ndim == 3 and plain[2].shape[2:] == projection.shape[:1]
        factors = split_common_slopes(plain[2], projection, blend) if is_fit else None
    return (*plain, groups, factors)


def _curve_parts(curve: Curve) -> tuple[Any, ...]:
    """Return the arrays of a curved part as the core reads them."""
    columns, squares = curve.columns, curve.squares
    return (
        _plain(curve.shift),
        None if columns is None else np.ascontiguousarray(columns, dtype=np.int32),
        *(_plain(part) for part in (curve.factors, curve.constants, curve.slopes)),
        None if squares is None else _plain(squares),
        float(curve.decay),
        int(curve.n_listed),
    )


def _plain(values: ArrayLike) -> Array:
    """Return an array as the core reads it: float64, C-ordered."""
    return np.ascontiguousarray(values, dtype=np.float64)


def _count(X: Any) -> int:
    """Return the number of rows; the core raises for anything else."""
    shape = np.shape(X)
    return shape[0] if shape else 0


def split_common_slopes(slopes: Array, projection: Array, blend: int) -> Factors | None:
    """Split linear functions into one for all points and local ones of the projected row.

    A blend of k points then costs k times the projected features, and all features once.

    Examples
    --------
    >>> slopes = np.array([[[1.0, 2.0, 3.0]], [[1.0, 2.0, 6.0]], [[1.0, 2.0, 3.0]]])
    >>> base, local = split_common_slopes(slopes, np.array([[0.0], [0.0], [2.0]]), blend=2)
    >>> base, local.ravel()
    (array([[1., 2., 4.]]), array([-0.5,  1. , -0.5]))
    """
    n_points, n_values, n_features = slopes.shape
    n_search = projection.shape[1]
    n_blended = min(blend, n_points - 1)
    if n_blended * (n_features - n_search) <= n_features or not np.isfinite(slopes).all():
        return None
    base = slopes.mean(axis=0)
    rest = (slopes - base).reshape(-1, n_features)
    # The mean of slopes near the largest float is infinite, and LAPACK prints of such values.
    if not (np.isfinite(rest).all() and np.isfinite(projection).all()):
        return None
    local = np.linalg.lstsq(projection, rest.T, rcond=None)[0].T
    largest = np.abs(slopes).max()
    if np.abs(local @ projection.T - rest).max() > MAX_ERROR * largest:
        return None
    if (np.abs(local) @ np.abs(projection).T).max() > MAX_GROWTH * largest:
        return None
    return base, np.ascontiguousarray(local).reshape(n_points, n_values, n_search)


def cluster_points(points: Array, biases: Array) -> Grouping | None:
    """Group the points of a map that lie near one another.

    Any grouping gives the same values; a good one rules out more points at once.
    """
    n_points, n_search = points.shape
    if n_points < MIN_POINTS or n_search > MAX_FEATURES:
        return None
    if not (np.isfinite(points).all() and np.isfinite(biases).all()):
        return None
    metric = _fit_metric(points, biases)
    if metric is None:
        return None
    groups = _cluster(points * np.sqrt(metric[1]), n_points // GROUP_SIZE)
    return groups, *metric


def _fit_metric(points: Array, biases: Array) -> tuple[Array, Array, float] | None:
    """Find origin, squares and constant: bias = constant - origin . w + sum squares w² / 2."""
    varies = np.ptp(points, axis=0) > 0
    moving = points[:, varies]
    columns = np.column_stack([np.ones(len(points)), -moving, 0.5 * moving**2])
    sizes = np.linalg.norm(columns, axis=0)
    solution = np.linalg.lstsq(columns / sizes, biases, rcond=None)[0] / sizes
    residual = np.abs(columns @ solution - biases).max()
    n_moving = moving.shape[1]
    if np.any(solution[1 + n_moving :] <= 0) or residual > 1e-6 * np.abs(biases).max():
        return None
    origin, squares = np.zeros(len(varies)), (points[0] != 0).astype(float)
    origin[varies] = solution[1 : 1 + n_moving]
    squares[varies] = solution[1 + n_moving :]
    return origin, squares, float(solution[0])


def _cluster(points: Array, n_groups: int) -> Array:
    """Return the nearest of `n_groups` means for each point (Lloyd's iteration)."""
    rng = np.random.default_rng(0)
    means = points[rng.choice(len(points), n_groups, replace=False)]
    groups = _nearest(means, points)
    for _ in range(N_ITERATIONS):
        counts = np.bincount(groups, minlength=len(means))
        sums = np.zeros_like(means)
        np.add.at(sums, groups, points)
        means = (sums / np.maximum(counts, 1)[:, None])[counts > 0]
        groups = _nearest(means, points)
    return np.unique(groups, return_inverse=True)[1].astype(np.int32)


def _nearest(means: Array, points: Array) -> Array:
    """Return the nearest mean of each point, found by the core itself."""
    n_means, n_terms = means.shape
    slopes, offsets = np.zeros((n_means, 1, n_terms)), np.zeros((n_means, 1))
    parts = (means, 0.5 * np.sum(means**2, axis=1), slopes, offsets, None, None)
    maps = _native.Maps(np.zeros(n_terms), [parts], None, 1, True, None, None, "")
    groups = np.empty(len(points), dtype=np.int32)
    maps.nearest(points, groups, 0, 1)
    return groups
