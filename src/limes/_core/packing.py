"""Common slopes taken out of a map, points clustered for pruning."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from limes._core import _native

Array = NDArray[Any]
Factors = tuple[Array, Array]
# How far the parts may be from the whole, as a share of the largest slope: a little rounding of
# float64, so that they serve for both arithmetics.
CLOSE = 1e-12
# How much larger than the whole the parts may be: beyond this, rounding would show.
MOST_GROWTH = 16.0
Grouping = tuple[Array, Array, Array, float]
# Below this the plain search is as quick, whatever the data (measured on border points of seven
# datasets of the paper); above MOST_TERMS the metric takes long to find.
FEWEST_POINTS = 1000
MOST_TERMS = 64
# Two vectors of AVX2: fewer points a group make more centres to score.
GROUP_SIZE = 16
N_ITERATIONS = 6


def split_common_slopes(functions: Array, projection: Array, blend: int) -> Factors | None:
    """Split linear functions into one for all points and local ones of the projected row.

    A blend of k points then costs k times the few terms of the projection, and all features once.

    Examples
    --------
    >>> functions = np.array([[[1.0, 2.0, 3.0]], [[1.0, 2.0, 6.0]], [[1.0, 2.0, 3.0]]])
    >>> base, local = split_common_slopes(functions, np.array([[0.0], [0.0], [2.0]]), blend=2)
    >>> base, local.ravel()
    (array([[1., 2., 4.]]), array([-0.5,  1. , -0.5]))
    """
    n_points, n_values, n_features = functions.shape
    n_search = projection.shape[1]
    n_blended = min(blend, n_points - 1)
    if n_blended * (n_features - n_search) <= n_features or not np.isfinite(functions).all():
        return None
    base = functions.mean(axis=0)
    rest = (functions - base).reshape(-1, n_features)
    local = np.linalg.lstsq(projection, rest.T, rcond=None)[0].T
    largest = np.abs(functions).max()
    if np.abs(local @ projection.T - rest).max() > CLOSE * largest:
        return None
    if (np.abs(local) @ np.abs(projection).T).max() > MOST_GROWTH * largest:
        return None
    return base, np.ascontiguousarray(local).reshape(n_points, n_values, n_search)


def cluster_points(weights: Array, biases: Array) -> Grouping | None:
    """Group the points of a map that lie near one another.

    Any grouping gives the same answers; a good one rules out more points at once.
    """
    n_points, n_search = weights.shape
    if n_points < FEWEST_POINTS or n_search > MOST_TERMS:
        return None
    if not (np.isfinite(weights).all() and np.isfinite(biases).all()):
        return None
    metric = _fit_metric(weights, biases)
    if metric is None:
        return None
    groups = _cluster(weights * np.sqrt(metric[1]), n_points // GROUP_SIZE)
    return groups, *metric


def _fit_metric(weights: Array, biases: Array) -> tuple[Array, Array, float] | None:
    """Find origin, squares and constant: bias = constant - origin . w + sum squares w² / 2."""
    varies = np.ptp(weights, axis=0) > 0
    moving = weights[:, varies]
    columns = np.column_stack([np.ones(len(weights)), -moving, 0.5 * moving**2])
    sizes = np.linalg.norm(columns, axis=0)
    solution = np.linalg.lstsq(columns / sizes, biases, rcond=None)[0] / sizes
    residual = np.abs(columns @ solution - biases).max()
    n_moving = moving.shape[1]
    if np.any(solution[1 + n_moving :] <= 0) or residual > 1e-6 * np.abs(biases).max():
        return None
    origin, squares = np.zeros(len(varies)), (weights[0] != 0).astype(float)
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
    functions, offsets = np.zeros((n_means, 1, n_terms)), np.zeros((n_means, 1))
    parts = (means, 0.5 * np.sum(means**2, axis=1), functions, offsets, None, None)
    maps = _native.Maps(np.zeros(n_terms), [parts], None, 1, True, None, "")
    groups = np.empty(len(points), dtype=np.int32)
    maps.nearest(points, groups, 0, 1)
    return groups
