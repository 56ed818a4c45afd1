"""Functions of many features that differ in few directions only: the part they share, taken out."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Factors = tuple[Array, Array]

# How far the parts may be from the whole, as a share of the largest slope: a little rounding of
# float64, so that they serve for both arithmetics.
CLOSE = 1e-12
# How much larger than the whole the parts may be: beyond this, rounding would show.
MOST_GROWTH = 16.0


def factor_functions(functions: Array, projection: Array, blend: int) -> Factors | None:
    """Split linear functions into one for all points and local ones of the projected row.

    A blend of k points then costs k times the few terms of the projection, and all features once.

    Examples
    --------
    >>> functions = np.array([[[1.0, 2.0, 3.0]], [[1.0, 2.0, 6.0]], [[1.0, 2.0, 3.0]]])
    >>> base, local = factor_functions(functions, np.array([[0.0], [0.0], [2.0]]), blend=2)
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
