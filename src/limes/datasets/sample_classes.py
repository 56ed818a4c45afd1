"""The paper's two synthetic classes."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline
from scipy.spatial.distance import cdist
from scipy.special import expit
from sklearn.utils import check_array, check_random_state, gen_batches

# Class 1: a Gaussian, longer along an axis at this angle than across it.
CENTRE = np.array([0.4, 0.5])
ANGLE = np.pi / 7
DEVIATIONS = np.array([0.13, 0.07])
AXES = np.array([[np.cos(ANGLE), np.sin(ANGLE)], [-np.sin(ANGLE), np.cos(ANGLE)]])
# Class 2: a round Gaussian around a random point of a curve through these knots.
SPINE = np.array(
    [
        [0.17, 0.79],
        [0.36, 0.70],
        [0.51, 0.84],
        [0.70, 0.86],
        [0.76, 0.68],
        [0.77, 0.48],
        [0.68, 0.32],
        [0.46, 0.28],
        [0.24, 0.26],
    ]
)
SPREAD = 0.1
N_NODES = 1000  # of the quadrature along the spine: a relative error below 1e-4 where rows are
PRIORS = np.array([1.0, 2.0]) / 3  # twice as many rows of class 2
BATCH = 1024  # rows at a time: 8 MB of distances to all nodes on the spine


def sample_classes(
    n_rows: int, random_state: int | np.random.RandomState | None = None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw rows of the two classes, twice as many of class 2 as of class 1.

    The problem has two features and a curved border.

    Parameters
    ----------
    n_rows : int
        Total number of rows. The number of each class is the nearest to its share.
    random_state : int, RandomState or None, default=None
        Seed of the rows.

    Returns
    -------
    X : ndarray of shape (n_rows, 2)
        The rows, in random order.
    y : ndarray of shape (n_rows,)
        Labels, 1 or 2.

    Examples
    --------
    >>> X, y = sample_classes(300, random_state=0)
    >>> X.shape, [int((y == label).sum()) for label in (1, 2)]
    ((300, 2), [100, 200])
    """
    if n_rows < 1:
        raise ValueError(f"n_rows must be 1 or more, got {n_rows!r}.")
    rng = check_random_state(random_state)
    y = np.where(np.arange(n_rows) < round(n_rows / 3), 1, 2)
    spine = _spine()
    noise = rng.standard_normal((n_rows, 2))
    positions = rng.uniform(spine.x[0], spine.x[-1], n_rows)
    first = CENTRE + (noise * DEVIATIONS) @ AXES
    second = spine(positions) + SPREAD * noise
    order = rng.permutation(n_rows)
    return np.where((y == 1)[:, None], first, second)[order], y[order]


def densities(X: ArrayLike) -> NDArray[np.float64]:
    """Return the density of each class at each row.

    Examples
    --------
    >>> densities([[0.4, 0.5]]).round(2)
    array([[17.49,  0.4 ]])
    """
    return np.exp(_log_densities(_check_rows(X))[0])


def density_gradients(X: ArrayLike) -> NDArray[np.float64]:
    """Return the gradient of each class's density at each row.

    Examples
    --------
    >>> density_gradients([[0.4, 0.5]])[0, 0]
    array([0., 0.])
    """
    values, slopes = _log_densities(_check_rows(X))
    return np.exp(values)[:, :, None] * slopes


class SampleClassesClassifier:
    """Bayes classifier of the sample classes, from their definition.

    It needs no fitting and is used like a fitted classifier; ``limes.accelerate`` accepts it as a
    source with an exact gradient.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels 1 and 2.
    n_features_in_ : int
        2.

    Examples
    --------
    >>> SampleClassesClassifier().predict([[0.4, 0.5], [0.7, 0.8]])
    array([1, 2])
    """

    def __init__(self) -> None:
        self.classes_ = np.array([1, 2])
        self.n_features_in_ = 2

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each class at each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, 2)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            Class 1, then class 2.

        Examples
        --------
        >>> SampleClassesClassifier().predict_proba([[0.4, 0.5]]).sum().round(6).item()
        1.0
        """
        values, _ = _log_densities(_check_rows(X))
        odds = _log_odds(values)
        return np.column_stack([expit(-odds), expit(odds)])

    def proba_gradient(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the gradient of each class's probability at each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, 2)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows, 2, 2)
            By row, class and feature.

        Examples
        --------
        >>> SampleClassesClassifier().proba_gradient([[0.4, 0.5]]).shape
        (1, 2, 2)
        """
        values, slopes = _log_densities(_check_rows(X))
        odds = _log_odds(values)
        rate = expit(odds) * expit(-odds)
        second = rate[:, None] * (slopes[:, 1] - slopes[:, 0])
        return np.stack([-second, second], axis=1)

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict the class of each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, 2)
            Rows to classify.

        Returns
        -------
        ndarray of shape (n_rows,)
            1 or 2.

        Examples
        --------
        >>> SampleClassesClassifier().predict([[0.4, 0.5], [0.7, 0.8]]).tolist()
        [1, 2]
        """
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]


def _check_rows(X: ArrayLike) -> NDArray[np.float64]:
    """Return rows of two finite features."""
    rows: NDArray[np.float64] = check_array(X, dtype=np.float64, input_name="X")
    if rows.shape[1] != 2:
        raise ValueError(f"X must have the 2 features of the sample classes, got {rows.shape[1]}.")
    return rows


def _log_densities(rows: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the log density of both classes at each row, and its gradient.

    Far from both classes the densities themselves would underflow.
    """
    values, slopes = np.empty((len(rows), 2)), np.empty((len(rows), 2, 2))
    for batch in gen_batches(len(rows), BATCH):
        values[batch, 0], slopes[batch, 0] = _log_first(rows[batch])
        values[batch, 1], slopes[batch, 1] = _log_second(rows[batch])
    return values, slopes


def _log_first(rows: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return log density and gradient of class 1."""
    scaled = (rows - CENTRE) @ AXES.T / DEVIATIONS
    value = -0.5 * (scaled**2).sum(axis=1) - np.log(2 * np.pi * DEVIATIONS.prod())
    return value, -(scaled / DEVIATIONS) @ AXES


def _log_second(rows: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return log density and gradient of class 2: the mean over nodes on the spine."""
    nodes = _nodes()
    exponents = cdist(rows, nodes, "sqeuclidean") / (-2 * SPREAD**2)
    peak = exponents.max(axis=1, keepdims=True)
    terms = np.exp(exponents - peak)
    total = terms.sum(axis=1)
    value = peak[:, 0] + np.log(total) - np.log(2 * np.pi * SPREAD**2 * len(nodes))
    return value, (terms @ nodes / total[:, None] - rows) / SPREAD**2


def _log_odds(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log of the odds of class 2 against class 1."""
    weighted = values + np.log(PRIORS)
    return weighted[:, 1] - weighted[:, 0]


@cache
def _spine() -> CubicSpline:
    """Return the curve that class 2 surrounds, by cumulated chord length."""
    chords = np.linalg.norm(np.diff(SPINE, axis=0), axis=1)
    return CubicSpline(np.append(0.0, np.cumsum(chords)), SPINE, bc_type="natural")


@cache
def _nodes() -> NDArray[np.float64]:
    """Return the midpoints of equal steps along the spine."""
    spine = _spine()
    steps = (np.arange(N_NODES) + 0.5) / N_NODES
    return spine(steps * spine.x[-1])
