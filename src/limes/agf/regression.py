"""Regression with weights of adaptive bandwidth: `AGFRegressor`."""

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from limes.agf.neighbours import TrainingRows, adaptive_scope, neighbourhoods
from limes.agf.tuning import choose_total_weight

Array = NDArray[Any]


class AGFRegressor(RegressorMixin, BaseEstimator):
    r"""Predict the weighted mean of the training targets, with weights of adaptive bandwidth.

    Each training row weighs :math:`w_i = \exp(-d_i^2 / 2 \sigma^2)`, the bandwidth being solved at
    each row so that :math:`\sum_i w_i = W`; the prediction is :math:`\sum_i w_i y_i / W`.

    Parameters
    ----------
    total_weight : float or "auto", default="auto"
        The sum W of the weights, below the number of neighbours. A larger sum gives smoother
        predictions; towards 0 they become those of the nearest neighbour. "auto" takes the one,
        from 32 to 1/2048, with the smallest leave-one-out squared error.
    n_neighbors : int or None, default=None
        Number of nearest training rows that have a weight; None means all of them.

    Attributes
    ----------
    total_weight_ : float
        Sum of the weights.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    Far from all rows the predictions tend to the mean of the training targets. Where at least W
    training rows coincide with a row, the unweighted mean of their targets is predicted.

    Examples
    --------
    >>> model = AGFRegressor(total_weight=1.5).fit([[0], [1], [2], [3]], [0, 1, 2, 3])
    >>> model.predict([[1.5]])
    array([1.5])
    """

    def __init__(
        self,
        total_weight: float | Literal["auto"] = "auto",
        n_neighbors: int | None = None,
    ) -> None:
        self.total_weight = total_weight
        self.n_neighbors = n_neighbors

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Store the training rows and choose the sum of weights.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Training rows.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            Targets.

        Returns
        -------
        Self
            The fitted regressor.

        Examples
        --------
        >>> import limes
        >>> X = [[i / 10] for i in range(50)]
        >>> model = limes.AGFRegressor(total_weight=3).fit(X, [2 * row[0] for row in X])
        >>> model.n_features_in_
        1
        """
        rows, values = validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, multi_output=True
        )
        self._targets = np.asarray(values, dtype=np.float64)
        self._training = TrainingRows.from_rows(rows)
        targets = self._targets.reshape(len(rows), -1)
        self.total_weight_ = choose_total_weight(
            self._training,
            targets,
            total_weight=self.total_weight,
            n_neighbors=self.n_neighbors,
        )
        self._scope = adaptive_scope(self._training, self.total_weight_, self.n_neighbors)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Predict the value of each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_targets)
            Weighted means of the training targets.

        Examples
        --------
        >>> import limes
        >>> X = [[i / 10] for i in range(50)]
        >>> model = limes.AGFRegressor(total_weight=3).fit(X, [2 * row[0] for row in X])
        >>> model.predict([[2.0]]).round(1)
        array([4.])
        """
        check_is_fitted(self)
        placed = self._training.place(validate_data(self, X, dtype=np.float64, reset=False))
        predictions = np.empty((len(placed), *self._targets.shape[1:]))
        for part in neighbourhoods(self._training, placed, self._scope):
            predictions[part.at] = part.spread(part.weights) @ self._targets
        return predictions

    def __sklearn_tags__(self) -> Any:
        """Declare that several targets are supported."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
