"""Uncertainty coefficient, agreement, Brier score, confidence rating."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import accuracy_score, brier_score_loss, confusion_matrix
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import check_array, check_consistent_length, column_or_1d

__all__ = [
    "accuracy_score",
    "agreement",
    "brier_score",
    "confidence_rating",
    "confusion_matrix",
    "uncertainty_coefficient",
    "uncertainty_of_counts",
]


def uncertainty_coefficient(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Return the share of the class entropy that the predictions explain.

    A majority class does not flatter it, as it does accuracy: predicting that class
    everywhere scores 0. Nor does the naming of the classes matter: labels consistently
    exchanged score as well as the right ones.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        True and predicted labels, of any kind. A class that only one of the two has
        adds nothing.

    Returns
    -------
    float
        From 0 (the predictions tell nothing) to 1 (they tell everything). Truth of a single
        class has no entropy to explain: the answer is nan, with an ``UndefinedMetricWarning``,
        as scikit-learn's own scores do it.

    Notes
    -----
    The paper's U(i|j) = (H_i - H(i|j)) / H_i, where i is the true class and j the predicted one.

    Examples
    --------
    >>> uncertainty_coefficient([0, 0, 1, 1], ["b", "b", "a", "a"])
    1.0
    """
    true, predicted = _check_labels(y_true), _check_labels(y_pred)
    check_consistent_length(true, predicted)
    counts = contingency_matrix(true, predicted, sparse=True)
    if counts.shape[0] == 1:
        warnings.warn(
            f"y_true has the single class {str(true[0])!r}, so its uncertainty coefficient is not "
            "defined: score on rows of at least two classes.",
            UndefinedMetricWarning,
            stacklevel=2,
        )
        return float("nan")
    return uncertainty_of_counts(counts)


def uncertainty_of_counts(counts: Any) -> float:
    """Return the same from how many rows there are of each two labels.

    Rows of a file larger than memory are counted as they come.

    Parameters
    ----------
    counts : array-like or sparse matrix of shape (n_true, n_predicted)
        Rows of each true class (down) with each label (across), of two true classes or more.

    Returns
    -------
    float
        As ``uncertainty_coefficient``.

    Examples
    --------
    >>> uncertainty_of_counts([[0, 2], [2, 0]])
    1.0
    """
    found = sparse.coo_array(counts)
    is_empty = found.data == 0
    row, column, data = (part[~is_empty] for part in (found.row, found.col, found.data))
    prior = np.bincount(row, data)
    if np.count_nonzero(prior) < 2:
        raise ValueError(
            f"counts must have rows of at least two true classes, got {np.count_nonzero(prior)}: "
            "one class has no uncertainty to explain."
        )
    entropy = _entropy(prior[prior > 0], data.sum())
    left = _entropy(data, np.bincount(column, data)[column])
    return float(np.clip(1.0 - left / entropy, 0.0, 1.0))


def agreement(y_source: ArrayLike, y_other: ArrayLike) -> float:
    """Return the share of rows to which two models give the same label.

    The accuracy of a fast model with its source taken as the truth: it says how well the
    source is replaced, whatever the source itself is worth.

    Parameters
    ----------
    y_source, y_other : array-like of shape (n_rows,)
        Labels from the two models.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> agreement(["a", "b", "b", "a"], ["a", "b", "a", "a"])
    0.75
    """
    return float(accuracy_score(_check_labels(y_source), _check_labels(y_other)))


def brier_score(y_true: ArrayLike, probabilities: ArrayLike, *, classes: ArrayLike) -> float:
    """Return the mean squared error of the probabilities: the lower the better.

    It tells honest probabilities from boasting ones, which labels alone cannot.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        True labels.
    probabilities : array-like of shape (n_rows, n_classes)
        Probability of each class, as from ``predict_proba``.
    classes : array-like of shape (n_classes,)
        The class of each column, in any order, such as ``model.classes_``.

    Returns
    -------
    float
        From 0 to 1 for two classes, from 0 to 2 for more, as
        :func:`sklearn.metrics.brier_score_loss` scales it.

    Examples
    --------
    >>> brier_score(["no", "yes"], [[0.0, 1.0], [0.5, 0.5]], classes=["yes", "no"])
    0.125
    """
    shares, names = _check_probabilities(probabilities), _check_labels(classes)
    if len(np.unique(names)) != shares.shape[1] or len(names) != shares.shape[1]:
        raise ValueError(
            f"classes must name the {shares.shape[1]} columns of probabilities, one each, "
            f"got {names.tolist()!r}."
        )
    # scikit-learn takes the columns to be in sorted order, whatever the order of its labels.
    order = np.argsort(names)
    true = _check_labels(y_true)
    unknown = np.setdiff1d(true, names)
    if len(unknown):
        raise ValueError(
            f"y_true has labels {unknown.tolist()!r} that are not among the classes "
            f"{names.tolist()!r}: leave those rows out, or pass the model's own classes_."
        )
    return float(brier_score_loss(true, shares[:, order], labels=names[order]))


def confidence_rating(probabilities: ArrayLike) -> NDArray[Any]:
    """Rescale the winning probability of each row to run from 0 to 1.

    A winning probability of one half is a mere guess between two classes and a strong
    vote among twenty; the rating is comparable between them.

    Parameters
    ----------
    probabilities : array-like of shape (n_rows, n_classes)
        Probability of each class, as from ``predict_proba``.

    Returns
    -------
    ndarray of shape (n_rows,)
        0 when all classes are equally likely, 1 when one is certain.

    Notes
    -----
    (n_c p - 1) / (n_c - 1), where p is the winning probability and n_c the number of classes.

    Examples
    --------
    >>> confidence_rating([[0.5, 0.5], [1.0, 0.0]])
    array([0., 1.])
    """
    shares = _check_probabilities(probabilities)
    n_classes = shares.shape[1]
    rating = (n_classes * shares.max(axis=1) - 1) / (n_classes - 1)
    return np.clip(rating, 0.0, 1.0)


def _check_labels(y: ArrayLike) -> NDArray[Any]:
    """Return labels as a flat array, at least one of them."""
    labels = column_or_1d(y)
    if not len(labels):
        raise ValueError("Labels must have at least one row, got none: there is nothing to score.")
    return labels


def _entropy(counts: NDArray[Any], totals: NDArray[Any] | int) -> float:
    """Return minus the sum of each count times the log of its share of a total."""
    return float(-np.sum(counts * np.log(counts / totals)))


def _check_probabilities(probabilities: ArrayLike) -> NDArray[Any]:
    """Return probabilities of two classes or more as floats, each row summing to one."""
    shares = check_array(
        probabilities,
        dtype=[np.float64, np.float32],
        ensure_min_features=2,
        input_name="probabilities",
    )
    tolerance = np.sqrt(np.finfo(shares.dtype).eps)
    off = np.abs(shares.sum(axis=1) - 1)
    if shares.min() < 0 or off.max() > tolerance:
        worst = int(np.argmax(np.where((shares < 0).any(axis=1), np.inf, off)))
        raise ValueError(
            f"probabilities must be 0 or more and sum to 1 in each row, got {shares[worst]!r} in "
            f"row {worst}: pass the output of predict_proba, not decision values."
        )
    return shares
