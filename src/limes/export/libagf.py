"""Fitted classifiers as text models for libAGF's programs, and back."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from limes._typing import Array
from limes.affine import AffineMap, to_dense
from limes.border_map import BorderMap
from limes.classifier import BordersClassifier
from limes.export.fitted import fitted_scheme
from limes.export.libagf_reader import read_libagf_model

__all__ = ["read_libagf_model", "to_libagf"]

# What svm_accelerate writes for every pair: above zero is the first class.
POLARITY = -1
# A border without two sides becomes a point so many times further away than all others: its value
# varies by a millionth, and the point still has digits in float32.
FAR = 1e6
# How well a normal's plane has to go through its point, relative to the terms of the sum.
PRECISION = 1e-9


def to_libagf(fast: BordersClassifier, *, scaled: bool = False) -> str:
    """Return a pairwise classifier as a text model, as libAGF's ``svm_accelerate`` writes it.

    libAGF asks the one nearest point, in the space of its rows, and its planes go through their
    points: ``blend`` must be 1 and ``refine`` False.

    Parameters
    ----------
    fast : BordersClassifier
        Fitted with ``scheme="pairwise"``, with whole numbers as labels.
    scaled : bool, default=False
        Write the model for rows that are scaled already, as by the steps before the source. libAGF
        knows no scaling: without this, a classifier whose steps change which point is nearest is
        refused.

    Returns
    -------
    str
        The text, every number with all its digits.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> import limes
    >>> X, y = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [3, 3, 7, 7]
    >>> options = {"scheme": "pairwise", "n_borders": 2, "blend": 1, "refine": False}
    >>> fast = limes.accelerate(SVC().fit(X, y), X, random_state=0, **options)
    >>> to_libagf(fast).splitlines()[:5]
    ['1v1', '2', '3 7', '-1', '2 2']
    """
    scheme = fitted_scheme(fast)
    if scheme.name != "pairwise":
        raise ValueError(
            f"libAGF's text models hold one border a pair of classes, got scheme {scheme.name!r}: "
            "fit with scheme='pairwise' (limes accelerate --scheme pairwise)."
        )
    if any(one.blend > 1 and one.n_borders > 1 for one in scheme.maps):
        raise ValueError(
            f"libAGF asks the nearest point alone, got blend={scheme.maps[0].blend!r}: fit with "
            "blend=1."
        )
    labels = whole_labels(fast.classes_)
    planes = [_scaled_planes(one) if scaled else _raw_planes(one) for one in scheme.maps]
    reach = max(float(np.abs(points).max()) for points, _, _ in planes) or 1.0
    lines = ["1v1", str(len(labels)), _join(labels), _join(np.full(len(planes), POLARITY))]
    for points, normals, offsets in planes:
        lines += _map_lines(*_through_points(points, normals, offsets, reach))
    return "\n".join(lines) + "\n"


def whole_labels(classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return labels as libAGF has them.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Labels.

    Returns
    -------
    ndarray of shape (n_classes,)
        Whole numbers of 32 bits.
    """
    if classes.dtype.kind in "biuf" and (np.abs(classes.astype(np.float64)) < 2**31).all():
        whole = classes.astype(np.int64)
        if (whole == classes).all():
            return whole
    raise ValueError(
        f"libAGF's labels are whole numbers below 2**31, got {classes[:5].tolist()!r}: refit the "
        "source on numbers, with LabelEncoder for instance."
    )


def _raw_planes(one: BorderMap) -> tuple[Array, Array, Array]:
    """Return points, normals and offsets in raw rows, if the same points are nearest there."""
    normals, offsets = one.normals[:, :, 0], one.offsets[:, 0]
    if one.before is None:
        return one.points, normals, offsets
    factor = _common_factor(one.before)
    if factor is None and one.n_borders > 1:
        raise ValueError(
            "libAGF measures distances in the rows that it is given, and the steps before the "
            "source change them. Scale the rows first and accelerate the classifier alone, or use "
            "scaled=True and give libAGF scaled rows."
        )
    if factor is None:
        return one.before.undo(one.points), normals, offsets
    points = one.points @ one.before.matrix.T / factor + one.before.shift
    return np.asarray(points), normals, offsets


def _common_factor(before: AffineMap) -> float | None:
    """Return the factor of all squared distances, or None where they have no common one."""
    products = before.matrix @ before.matrix.T
    diagonal = products.diagonal()
    rest = (
        products - sparse.diags_array(diagonal)
        if sparse.issparse(products)
        else (products - np.diag(diagonal))
    )
    factor = float(diagonal.mean())
    is_even = bool(np.abs(diagonal - factor).max() <= PRECISION * factor)
    return factor if is_even and factor > 0 and np.abs(rest).max() <= PRECISION * factor else None


def _scaled_planes(one: BorderMap) -> tuple[Array, Array, Array]:
    """Return points, normals and offsets in the space of the points."""
    normals, offsets = one.normals[:, :, 0], one.offsets[:, 0]
    if one.before is None:
        return one.points, normals, offsets
    inner = normals @ np.linalg.pinv(to_dense(one.before.matrix)).T
    return one.points, inner, offsets + normals @ one.before.shift


def _through_points(
    points: Array, normals: Array, offsets: Array, reach: float
) -> tuple[Array, Array]:
    """Return points and normals, whose planes must go through the points."""
    if len(points) == 1 and not normals.any():
        return _far_point(points, float(offsets[0]), reach)
    products = points * normals
    off = products.sum(axis=1) + offsets
    if len(points) == 1:
        # The only point is always the nearest: it may stand anywhere on its plane.
        return points - off[:, None] * normals / np.square(normals).sum(), normals
    if (np.abs(off) > PRECISION * (np.abs(products).sum(axis=1) + np.abs(offsets))).any():
        raise ValueError(
            "libAGF's planes go through their points, which those of a map fitted to its source do "
            "not: fit with refine=False."
        )
    return points, normals


def _far_point(points: Array, value: float, reach: float) -> tuple[Array, Array]:
    """Return a point so far away that its value hardly changes from row to row."""
    normals = np.zeros_like(points)
    # A value of exactly zero is the first class.
    value = value or -1.0 / FAR
    normals[0, 0] = value / (FAR * reach)
    moved = points.copy()
    moved[0, 0] -= FAR * reach
    return moved, normals


def _map_lines(points: Array, normals: Array) -> Iterator[str]:
    """Give the lines of one pair: points, then normals, each after their size."""
    for rows in (points, POLARITY * normals):
        yield f"{rows.shape[0]} {rows.shape[1]}"
        yield from map(_join, rows)


def _join(numbers: NDArray[Any]) -> str:
    """Return numbers with every bit, a space between them."""
    return " ".join(map(repr, numbers.tolist()))
