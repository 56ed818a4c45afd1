"""A plane to look at a classifier in: two features, or two principal components."""

from dataclasses import dataclass

import numpy as np
from sklearn.decomposition import PCA

from limes._typing import Array
from limes.classifier import BordersClassifier

# Border points that are drawn: the ones nearest to the plane; more would hide each other.
MAX_POINTS = 200


@dataclass(frozen=True, eq=False)
class Plane:
    """A plane through the middle of the rows, with features in units of their deviation."""

    # Shape (n_features,). Of each feature.
    middle: Array
    deviation: Array
    # Shape (2, n_features). Two directions of length 1 at right angles.
    axes: Array
    # What the two directions are.
    names: tuple[str, str]
    # Share of the rows' variance that the plane shows.
    share: float

    def project(self, X: Array) -> Array:
        """Return where rows lie in the plane."""
        return ((X - self.middle) / self.deviation) @ self.axes.T

    def lift(self, places: Array) -> Array:
        """Return places in the plane as rows."""
        return self.middle + (places @ self.axes) * self.deviation

    def distances(self, X: Array) -> Array:
        """Return how far rows are from the plane."""
        return np.linalg.norm((X - self.lift(self.project(X))) / self.deviation, axis=1)

    def project_gradients(self, gradients: Array) -> Array:
        """Return the part of gradients that lies in the plane."""
        return (gradients * self.deviation) @ self.axes.T


def find_plane(X: Array, names: tuple[str, ...] | None = None) -> Plane:
    """Return the plane of two features, or the one that shows most of the rows' variance.

    Examples
    --------
    >>> plane = find_plane(np.array([[0.0, 0.0], [2.0, 1.0]]))
    >>> plane.project(np.array([[3.0, 4.0]]))
    array([[3., 4.]])
    """
    if X.shape[1] == 2:
        given = names or ("first feature", "second feature")
        return Plane(np.zeros(2), np.ones(2), np.eye(2), (given[0], given[1]), 1.0)
    middle, deviation = X.mean(axis=0), X.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    found = PCA(2, random_state=0).fit((X - middle) / deviation)
    titles = ("first principal component", "second principal component")
    share = float(np.nan_to_num(found.explained_variance_ratio_.sum()))
    return Plane(middle, deviation, found.components_, titles, share)


def borders_near(fast: BordersClassifier, plane: Plane) -> tuple[Array, Array]:
    """Return border points near a plane, and the direction across the border at each."""
    points, normals = _border_points(fast)
    nearest = np.argsort(plane.distances(points), kind="stable")[:MAX_POINTS]
    directions = plane.project_gradients(normals[nearest])
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    return plane.project(points[nearest]), directions / np.where(lengths > 0, lengths, 1.0)


def _border_points(fast: BordersClassifier) -> tuple[Array, Array]:
    """Return the points of all maps as raw rows, and the gradient across the border at each."""
    points, normals = [], []
    for one in fast.scheme_.maps:
        rows = one.points if one.before is None else one.before.undo(one.points)
        points.append(rows)
        normals.append(_gradients(one.normals, one.offsets, rows))
    return np.concatenate(points), np.concatenate(normals)


def _gradients(normals: Array, offsets: Array, rows: Array) -> Array:
    """Return the gradient across the border: between the two highest of several functions."""
    if normals.shape[2] == 1:
        return normals[:, :, 0]
    values = np.einsum("ijk,ij->ik", normals, rows) + offsets
    order = np.argsort(values, axis=1)
    at = np.arange(len(rows))
    return normals[at, :, order[:, -1]] - normals[at, :, order[:, -2]]
