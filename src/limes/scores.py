"""Scores: uncertainty coefficient, agreement, Brier score, confidence rating."""

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

    Unlike accuracy, it is 0 if the majority class is predicted for all rows. It does not depend on
    the names of the classes: consistently exchanged labels have the same score.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        True and predicted labels, of any type. A class that only one of the two has
        adds nothing.

    Returns
    -------
    float
        From 0 (the predictions explain nothing) to 1 (they explain everything). If ``y_true`` has a
        single class, there is no entropy to explain: the score is nan, with an
        ``UndefinedMetricWarning``, as in scikit-learn.

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
    """Return the uncertainty coefficient from a table of counts.

    Rows of a file larger than memory can be counted in batches.

    Parameters
    ----------
    counts : array-like or sparse matrix of shape (n_true, n_predicted)
        Number of rows of each true class with each predicted label, of two true classes or more.

    Returns
    -------
    float
        As ``uncertainty_coefficient``.

    Examples
    --------
    >>> uncertainty_of_counts([[0, 2], [2, 0]])
    1.0
    """
    cells = sparse.coo_array(counts)
    is_empty = cells.data == 0
    row, column, data = (part[~is_empty] for part in (cells.row, cells.col, cells.data))
    prior = np.bincount(row, data)
    if np.count_nonzero(prior) < 2:
        raise ValueError(
            f"counts must have rows of at least two true classes, got {np.count_nonzero(prior)}: "
            "one class has no uncertainty to explain."
        )
    entropy = _entropy(prior[prior > 0], data.sum())
    remaining = _entropy(data, np.bincount(column, data)[column])
    return float(np.clip(1.0 - remaining / entropy, 0.0, 1.0))


def agreement(y_source: ArrayLike, y_other: ArrayLike) -> float:
    """Return the share of rows for which two models predict the same label.

    It is the accuracy of a fast model with the labels of its source as the truth: it measures how
    well the source is replaced, independently of the accuracy of the source.

    Parameters
    ----------
    y_source, y_other : array-like of shape (n_rows,)
        Labels of the two models.

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

    Unlike accuracy, it is worse for probabilities that are too close to 0 and 1.

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
    rows, names = _check_probabilities(probabilities), _check_labels(classes)
    if len(np.unique(names)) != rows.shape[1] or len(names) != rows.shape[1]:
        raise ValueError(
            f"classes must name the {rows.shape[1]} columns of probabilities, one each, "
            f"got {names.tolist()!r}."
        )
    # scikit-learn expects the columns in sorted order, whatever the order of its labels.
    order = np.argsort(names)
    true = _check_labels(y_true)
    unknown = np.setdiff1d(true, names)
    if len(unknown):
        raise ValueError(
            f"y_true has labels {unknown.tolist()!r} that are not among the classes "
            f"{names.tolist()!r}: omit those rows, or pass the model's classes_."
        )
    return float(brier_score_loss(true, rows[:, order], labels=names[order]))


def confidence_rating(probabilities: ArrayLike) -> NDArray[Any]:
    """Rescale the largest probability of each row to the range from 0 to 1.

    A largest probability of one half is the least possible for two classes, but high for twenty;
    ratings are comparable between numbers of classes.

    Parameters
    ----------
    probabilities : array-like of shape (n_rows, n_classes)
        Probability of each class, as from ``predict_proba``.

    Returns
    -------
    ndarray of shape (n_rows,)
        0 if all classes are equally likely, 1 if one is certain.

    Notes
    -----
    (n_c p - 1) / (n_c - 1), where p is the largest probability and n_c the number of classes.

    Examples
    --------
    >>> confidence_rating([[0.5, 0.5], [1.0, 0.0]])
    array([0., 1.])
    """
    rows = _check_probabilities(probabilities)
    n_classes = rows.shape[1]
    rating = (n_classes * rows.max(axis=1) - 1) / (n_classes - 1)
    return np.clip(rating, 0.0, 1.0)


def _check_labels(y: ArrayLike) -> NDArray[Any]:
    """Return labels as a one-dimensional array; raise an error if there are none."""
    labels = column_or_1d(y)
    if not len(labels):
        raise ValueError("Labels must have at least one row, got none: there is nothing to score.")
    return labels


def _entropy(counts: NDArray[Any], totals: NDArray[Any] | int) -> float:
    """Return minus the sum of each count times the log of its share of its total."""
    return float(-np.sum(counts * np.log(counts / totals)))


def _check_probabilities(probabilities: ArrayLike) -> NDArray[Any]:
    """Return probabilities of two classes or more as floats; check that each row sums to one."""
    rows = check_array(
        probabilities,
        dtype=[np.float64, np.float32],
        ensure_min_features=2,
        input_name="probabilities",
    )
    tolerance = np.sqrt(np.finfo(rows.dtype).eps)
    off = np.abs(rows.sum(axis=1) - 1)
    if rows.min() < 0 or off.max() > tolerance:
        worst = int(np.argmax(np.where((rows < 0).any(axis=1), np.inf, off)))
        raise ValueError(
            f"probabilities must be 0 or more and sum to 1 in each row, got {rows[worst]!r} in "
            f"row {worst}: pass the output of predict_proba, not decision values."
        )
    return rows
