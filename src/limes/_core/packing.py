"""What makes maps faster: slopes common to all points, and clusters of points."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from limes._core import _native

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
    maps = _native.Maps(np.zeros(n_terms), [parts], None, 1, True, None, "")
    groups = np.empty(len(points), dtype=np.int32)
    maps.nearest(points, groups, 0, 1)
    return groups
