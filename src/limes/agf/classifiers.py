"""Classifiers by Gaussian weights: `AGFClassifier`, `KernelDensityClassifier`."""

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from limes.agf.neighbours import (
    AdaptiveWidth,
    FixedWidth,
    Neighbourhood,
    TrainingRows,
    WeightScope,
    adaptive_scope,
    neighbourhoods,
    whole_scope,
)
from limes.agf.tuning import (
    check_enough_rows,
    check_positive,
    choose_total_weight,
    is_auto,
    leave_one_out_errors,
)
from limes.model.affine import AffineMap
from limes.model.exact import ClassDensities, ExactScheme
from limes.sources.base import NoExactSumsError, SourceContext, exact_scheme

Array = NDArray[Any]
# Smaller bandwidths count as 0: their inverse square would overflow.
MIN_BANDWIDTH = 1e-150
# Multiples of Scott's rule, which is too wide for borders; the widest of equal ones is chosen.
SCOTT_FACTORS = 2.0 ** (0.5 * np.arange(2, -11, -1))


class GaussianKernelClassifier(ClassifierMixin, BaseEstimator):
    """Base of classifiers by Gaussian weights; subclasses choose the bandwidth."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Store the training rows and choose the bandwidth.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Training rows.
        y : array-like of shape (n_rows,)
            Their labels.

        Returns
        -------
        Self
            The fitted classifier.

        Examples
        --------
        >>> import limes
        >>> X, y = [[0], [1], [9], [10]], ["a", "a", "b", "b"]
        >>> model = limes.KernelDensityClassifier(bandwidth=2).fit(X, y)
        >>> model.classes_.tolist()
        ['a', 'b']
        """
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.classes_, class_index = np.unique(labels, return_inverse=True)
        order = np.argsort(class_index, kind="stable")
        self._training = TrainingRows.from_rows(rows[order])
        self._votes = np.eye(len(self.classes_))[class_index[order]]
        self._edges = np.searchsorted(class_index[order], np.arange(len(self.classes_) + 1))
        self._scope = self._choose_scope()
        return self

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of each class at each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            One column for each of ``classes_``.

        Examples
        --------
        >>> import limes
        >>> X, y = [[0], [1], [9], [10]], ["a", "a", "b", "b"]
        >>> model = limes.KernelDensityClassifier(bandwidth=2).fit(X, y)
        >>> model.predict_proba([[5]])
        array([[0.5, 0.5]])
        """
        placed = self._place(X)
        probabilities = np.empty((len(placed), len(self.classes_)))
        for part in neighbourhoods(self._training, placed, self._scope):
            probabilities[part.at] = part.spread(part.weights) @ self._votes
        return probabilities

    def predict(self, X: ArrayLike) -> Array:
        """Predict the class of each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows to classify.

        Returns
        -------
        ndarray of shape (n_rows,)
            The most probable of ``classes_`` for each row.

        Examples
        --------
        >>> import limes
        >>> X, y = [[0], [1], [9], [10]], ["a", "a", "b", "b"]
        >>> model = limes.KernelDensityClassifier(bandwidth=2).fit(X, y)
        >>> model.predict([[3], [8]]).tolist()
        ['a', 'b']
        """
        probabilities = self.predict_proba(X)
        return self.classes_[np.argmax(probabilities, axis=1)]

    def proba_gradient(self, X: ArrayLike) -> Array:
        """Return the gradient of the probability of each class at each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes, n_features)
            Derivatives by each feature.

        Examples
        --------
        >>> import limes
        >>> X, y = [[0], [1], [9], [10]], ["a", "a", "b", "b"]
        >>> model = limes.KernelDensityClassifier(bandwidth=2).fit(X, y)
        >>> model.proba_gradient([[5]]).shape  # rows, classes, features
        (1, 2, 1)
        """
        placed = self._place(X)
        gradients = np.empty((len(placed), len(self.classes_), placed.shape[1]))
        for part in neighbourhoods(self._training, placed, self._scope):
            gradients[part.at] = self._differentiate(part, placed[part.at])
        return gradients / self._training.scale

    def _choose_scope(self) -> WeightScope:
        """Return which training rows have a weight, and its bandwidth."""
        raise NotImplementedError

    def _place(self, X: ArrayLike) -> Array:
        """Check rows and transform them into the coordinates of the training rows."""
        check_is_fitted(self)
        return self._training.place(validate_data(self, X, dtype=np.float64, reset=False))

    def _differentiate(self, part: Neighbourhood, placed: Array) -> Array:
        """Return the gradients at a block of rows, in the coordinates of the training rows."""
        weights = part.spread(part.weights)
        sums = self._sum_by_class(weights)
        means = sums.sum(axis=1, keepdims=True)
        gradients = sums - (weights @ self._votes)[:, :, None] * means
        if isinstance(self._scope.width, AdaptiveWidth):
            gradients -= self._bandwidth_effect(part)[:, :, None] * (means - placed[:, None, :])
        bandwidths = np.maximum(part.bandwidths, MIN_BANDWIDTH)
        is_smooth = part.bandwidths >= MIN_BANDWIDTH
        return gradients * (is_smooth / bandwidths**2)[:, None, None]

    def _sum_by_class(self, weights: Any) -> Array:
        """Return the weighted sum of the training rows of each class."""
        slices = [slice(*edge) for edge in zip(self._edges[:-1], self._edges[1:], strict=True)]
        sums = [weights[:, block] @ self._training.rows[block] for block in slices]
        return np.stack(sums, axis=1)

    def _bandwidth_effect(self, part: Neighbourhood) -> Array:
        """Return the relative excess of squared distances by class, which a wider kernel adds."""
        means = np.einsum("ij,ij->i", part.weights, part.squared)[:, None]
        excess = part.squared / np.where(means > 0, means, 1) - 1
        return part.spread(part.weights * excess) @ self._votes


class AGFClassifier(GaussianKernelClassifier):
    r"""Classify by adaptive Gaussian filtering: a kernel whose bandwidth follows the density.

    Each training row weighs :math:`w_i = \exp(-d_i^2 / 2 \sigma^2)`, and the bandwidth is
    solved at each row so that :math:`\sum_i w_i = W`. The probability of a class is its
    share of the weights. Unlike a k-nearest-neighbour vote it has a gradient, for two
    classes, with :math:`y_i = \pm 1`,

    .. math::

        \frac{\partial R}{\partial x_j} = \frac{1}{W \sigma^2} \sum_i w_i y_i \left[ x_{ij} -
        x_j - d_i^2 \frac{\sum_k w_k (x_{kj} - x_j)}{\sum_k d_k^2 w_k} \right]

    Parameters
    ----------
    total_weight : float or "auto", default="auto"
        The sum W of the weights, below the number of neighbours. A larger sum gives smoother
        probabilities; towards 0 the classifier becomes the nearest neighbour. The best sum falls
        with the number of features. "auto" takes the one, from 32 to 1/2048, with the smallest
        leave-one-out Brier score.
    n_neighbors : int or None, default=None
        Number of nearest training rows that have a weight. None means all of them, for which the
        probabilities are continuous.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    total_weight_ : float
        Sum of the weights.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    Far from all rows the bandwidth grows with the distance, and the probabilities tend to the
    shares of the classes in the training rows. Where at least W training rows coincide with a row,
    the bandwidth is 0, these rows have all the weight, and the gradient is 0. With one class in
    training its probability is 1. Scale the features first.

    Examples
    --------
    >>> model = AGFClassifier(total_weight=1.5).fit([[0], [1], [4], [5]], ["a", "a", "b", "b"])
    >>> model.predict([[0.5], [3.9]]).tolist()
    ['a', 'b']
    >>> model.predict_proba([[2.5]])
    array([[0.5, 0.5]])
    """

    def __init__(
        self,
        total_weight: float | Literal["auto"] = "auto",
        n_neighbors: int | None = None,
    ) -> None:
        self.total_weight = total_weight
        self.n_neighbors = n_neighbors

    def _choose_scope(self) -> WeightScope:
        """Return which training rows have a weight, and the sum of the weights."""
        self.total_weight_ = choose_total_weight(
            self._training,
            self._votes,
            total_weight=self.total_weight,
            n_neighbors=self.n_neighbors,
        )
        return adaptive_scope(self._training, self.total_weight_, self.n_neighbors)


class KernelDensityClassifier(GaussianKernelClassifier):
    r"""Classify by the Gaussian kernel density of each class, all with the same bandwidth.

    The probability of a class is its density :math:`\frac{1}{n_c} \sum_{i \in c} K_h(x - x_i)`
    times its share :math:`n_c / n` of the training rows, divided by the sum over the classes.

    Parameters
    ----------
    bandwidth : float or "auto", default="auto"
        Standard deviation of the kernel, in the units of the features. "auto" takes the multiple,
        from 2 to 1/32, of Scott's rule for the deviation within the classes that has the smallest
        leave-one-out Brier score.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    bandwidth_ : float
        Bandwidth.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    Sums of exponentials are computed relative to the largest: far from all rows, where each density
    is zero in floating point, the class of the nearest row has probability 1. With one class in
    training its probability is 1. Scale the features first.

    Examples
    --------
    >>> model = KernelDensityClassifier(bandwidth=2)
    >>> model = model.fit([[0], [1], [9], [10]], ["a", "a", "b", "b"])
    >>> model.predict_proba([[5], [1000]]).round(3)
    array([[0.5, 0.5],
           [0. , 1. ]])
    """

    def __init__(self, bandwidth: float | Literal["auto"] = "auto") -> None:
        self.bandwidth = bandwidth

    def _choose_scope(self) -> WeightScope:
        """Return the scope of all training rows with the bandwidth."""
        if is_auto(self.bandwidth):
            check_enough_rows(self._training.n_rows)
            width = _choose_bandwidth(self._training, self._votes)
        else:
            bandwidth = check_positive("bandwidth", self.bandwidth)
            width = FixedWidth(bandwidth / self._training.scale)
        self.bandwidth_ = width.bandwidth * self._training.scale
        return whole_scope(self._training, width)


@exact_scheme.register
def _(model: KernelDensityClassifier, context: SourceContext | None) -> ExactScheme:
    if len(model.classes_) < 2:
        raise NoExactSumsError("a kernel density classifier of one class has no border")
    training, width = model._training, model._scope.width
    assert isinstance(width, FixedWidth)
    # Divided twice: the square of a large bandwidth overflows.
    is_normal = width.bandwidth >= MIN_BANDWIDTH
    gamma = 0.5 / width.bandwidth / width.bandwidth if is_normal else np.inf
    if not np.isfinite(gamma):
        raise NoExactSumsError(f"the bandwidth {model.bandwidth_!r} is below the range of float64")
    # The share of a class in the training rows and the number that its density is divided by
    # cancel.
    densities = ClassDensities(
        training.rows, gamma, np.diff(model._edges), np.zeros(len(model.classes_))
    )
    scale = np.full(training.n_features, 1 / training.scale)
    return ExactScheme(densities, AffineMap.scaling(training.centre, scale), rule="density")


def _choose_bandwidth(training: TrainingRows, votes: Array) -> FixedWidth:
    """Return the bandwidth with the smallest leave-one-out error."""
    exponent = -1 / (training.n_features + 4)
    scott = _deviation_within(training.rows, votes) * training.n_rows**exponent
    widths = [FixedWidth(float(scott * factor)) for factor in SCOTT_FACTORS]
    n_others = training.n_rows - 1
    errors = leave_one_out_errors(training, votes, widths=widths, n_others=n_others)
    return widths[int(np.argmin(errors))]


def _deviation_within(rows: Array, votes: Array) -> float:
    """Return the deviation from the class means; if it is 0 that from the mean, or else 1."""
    means = (votes.T @ rows) / votes.sum(axis=0)[:, None]
    within = float(np.sqrt(np.mean(np.square(rows - votes @ means))))
    return within or float(np.sqrt(np.mean(np.square(rows)))) or 1.0
