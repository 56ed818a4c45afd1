"""Scores: uncertainty coefficient, agreement, Brier score, ROC curves, confidence rating."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import accuracy_score, brier_score_loss, confusion_matrix
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import check_array, check_consistent_length, column_or_1d

# Bins of the log odds of a class, from minus to plus the limit: ties within a bin count half.
ROC_BINS = 2048
ROC_LIMIT = 32.0
# Shares of false positives at which the curves of several classes are averaged.
ROC_SHARES = 201

__all__ = [
    "RocCounter",
    "RocCurves",
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


@dataclass(frozen=True, eq=False)
class RocCurves:
    """ROC curves of each class against the rest, from counts of rows by log odds.

    A threshold lies between two bins, so that the curves are exact at the thresholds between bins
    and straight in between.

    Parameters
    ----------
    positives : ndarray of int of shape (n_classes, n_bins)
        Rows of a class by the log odds that the model gives it, in ascending order.
    negatives : ndarray of int of shape (n_classes, n_bins)
        Rows of the other classes by the same log odds.

    Examples
    --------
    >>> curves = RocCurves(np.array([[0, 1, 3]]), np.array([[4, 0, 0]]))
    >>> curves.area
    1.0
    """

    positives: NDArray[np.int64]
    negatives: NDArray[np.int64]

    @property
    def is_defined(self) -> NDArray[np.bool_]:
        """Which classes have both rows of their own and others; of shape (n_classes,)."""
        own, others = self.positives.sum(axis=1), self.negatives.sum(axis=1)
        return np.asarray((own > 0) & (others > 0))

    @property
    def areas(self) -> NDArray[np.float64]:
        """Area under the curve of each class, nan where it is not defined.

        The share of pairs of a row of the class and another in which the former has the larger
        log odds; pairs in one bin count half.
        """
        pairs = np.maximum(self.positives.sum(axis=1) * self.negatives.sum(axis=1).astype(float), 1)
        below = np.cumsum(self.negatives, axis=1) - 0.5 * self.negatives
        areas = np.sum(self.positives * below, axis=1) / pairs
        return np.where(self.is_defined, areas, np.nan)

    @property
    def area(self) -> float | None:
        """Mean area over the classes with a curve; None if there is none."""
        areas = self.areas[self.is_defined]
        return float(areas.mean()) if len(areas) else None

    @property
    def error(self) -> float:
        """Largest difference of the mean area from that without bins: half the pairs in one bin."""
        is_defined = self.is_defined
        own, others = self.positives[is_defined], self.negatives[is_defined]
        if not len(own):
            return 0.0
        pairs = own.sum(axis=1) * others.sum(axis=1).astype(float)
        return float(np.mean(0.5 * np.sum(own * others.astype(float), axis=1) / pairs))

    def mean_curve(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return shares of false positives, and the mean share of true positives at each.

        Returns
        -------
        false_positives : ndarray of shape (ROC_SHARES,)
            From 0 to 1.
        true_positives : ndarray of shape (ROC_SHARES,)
            Means over the classes with a curve, of which there must be one.

        Examples
        --------
        >>> curves = RocCurves(np.array([[0, 1, 3]]), np.array([[4, 0, 0]]))
        >>> false_positives, true_positives = curves.mean_curve()
        >>> true_positives[0].item()
        1.0
        """
        shares = np.linspace(0, 1, ROC_SHARES)
        curves = []
        for own, others in zip(
            self.positives[self.is_defined], self.negatives[self.is_defined], strict=True
        ):
            # From the highest threshold to the lowest.
            found, wrong = (
                np.concatenate([[0.0], np.cumsum(part[::-1]) / part.sum()])
                for part in (own, others)
            )
            curves.append(np.interp(shares, wrong, found))
        return shares, np.mean(curves, axis=0)


class RocCounter:
    """Counts rows by the log odds of each class, block by block, for ROC curves.

    Memory depends on the number of classes, not on that of the rows.

    Parameters
    ----------
    n_classes : int
        Columns of the probabilities.

    Examples
    --------
    >>> counter = RocCounter(2)
    >>> counter.add(np.array([0, 1]), np.array([[0.9, 0.1], [0.2, 0.8]]))
    >>> counter.add(np.array([1]), np.array([[0.95, 0.05]]))
    >>> counter.curves().area
    0.5
    """

    def __init__(self, n_classes: int) -> None:
        self._positives = np.zeros((n_classes, ROC_BINS), dtype=np.int64)
        self._all = np.zeros((n_classes, ROC_BINS), dtype=np.int64)

    def add(self, class_index: NDArray[np.intp], probabilities: NDArray[Any]) -> None:
        """Count a block of rows.

        Parameters
        ----------
        class_index : ndarray of int of shape (n_rows,)
            Column of the true class; -1 for a class that the model lacks.
        probabilities : ndarray of shape (n_rows, n_classes)
            Probability of each class.

        Examples
        --------
        >>> counter = RocCounter(2)
        >>> counter.add(np.array([0, 1]), np.array([[0.9, 0.1], [0.2, 0.8]]))
        >>> counter.curves().areas
        array([1., 1.])
        """
        for column, share in enumerate(probabilities.T.astype(np.float64)):
            with np.errstate(divide="ignore"):
                log_odds = np.log(share) - np.log1p(-share)
            place = (log_odds + ROC_LIMIT) * (ROC_BINS / (2 * ROC_LIMIT))
            bins = np.clip(place, 0, ROC_BINS - 1).astype(np.intp)
            self._all[column] += np.bincount(bins, minlength=ROC_BINS)
            own = bins[class_index == column]
            self._positives[column] += np.bincount(own, minlength=ROC_BINS)

    def curves(self) -> RocCurves:
        """Return the curves of all blocks.

        Returns
        -------
        RocCurves
            One for each class.

        Examples
        --------
        >>> RocCounter(2).curves().area is None  # no rows, no curve
        True
        """
        return RocCurves(self._positives.copy(), self._all - self._positives)


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
