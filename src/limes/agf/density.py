"""Adaptive densities: `AGFDensity`, `NeighborsDensity`."""

import math
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from limes.agf.neighbours import TrainingRows, adaptive_scope, neighbourhoods
from limes.agf.tuning import check_enough_rows, check_n_neighbors, check_total_weight, is_auto

Array = NDArray[Any]


class LocalDensity(DensityMixin, BaseEstimator):
    """Base of densities that adapt to the training rows around a row."""

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Store the training rows and choose the parameters left open.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Training rows.
        y : object
            Ignored.

        Returns
        -------
        Self
            The fitted density.

        Examples
        --------
        >>> import numpy as np
        >>> import limes
        >>> model = limes.NeighborsDensity(n_neighbors=2).fit([[0.0], [1.0], [2.0], [3.0]])
        >>> model.n_features_in_
        1
        """
        self._training = TrainingRows.from_rows(validate_data(self, X, dtype=np.float64))
        self._choose_parameters()
        return self

    def score_samples(self, X: ArrayLike) -> Array:
        """Return the logarithm of the density at each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Log densities, infinite where the training rows that determine one coincide with a row.

        Examples
        --------
        >>> import numpy as np
        >>> import limes
        >>> model = limes.NeighborsDensity(n_neighbors=2).fit([[0.0], [1.0], [2.0], [3.0]])
        >>> np.exp(model.score_samples([[0.5]])).round(3)
        array([0.5])
        """
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        log_lengths = self._log_lengths(self._training.place(rows))
        log_lengths += math.log(self._training.scale)
        return self._log_share() - self._training.n_features * log_lengths

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Return the log likelihood of rows: the sum of their log densities.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows.
        y : object
            Ignored.

        Returns
        -------
        float
            The log likelihood.

        Examples
        --------
        >>> import numpy as np
        >>> import limes
        >>> model = limes.NeighborsDensity(n_neighbors=2).fit([[0.0], [1.0], [2.0], [3.0]])
        >>> bool(model.score([[0.5], [1.5]]) == model.score_samples([[0.5], [1.5]]).sum())
        True
        """
        return float(np.sum(self.score_samples(X)))

    def _default_neighbours(self) -> float:
        """Return the number of neighbours whose growth minimises the mean squared error."""
        power = min(0.5, 4 / (self._training.n_features + 4))
        return float(self._training.n_rows**power)

    def _choose_parameters(self) -> None:
        """Check the parameters and choose those given as "auto"."""
        raise NotImplementedError

    def _log_share(self) -> float:
        """Return the logarithm of the share of training rows in the volume around a row."""
        raise NotImplementedError

    def _log_lengths(self, placed: Array) -> Array:
        """Return the log edge lengths of cubes of that volume, in the training coordinates."""
        raise NotImplementedError


class AGFDensity(LocalDensity):
    r"""Estimate a density with a Gaussian kernel whose bandwidth is solved at each row.

    The bandwidth is narrow where the density is high and wide where it is low: the weights
    :math:`w_i = \exp(-d_i^2 / 2 \sigma^2)` of the n training rows have the sum W at every row. The
    density in D dimensions is :math:`W / (n (2 \pi \sigma^2)^{D/2})`.

    Parameters
    ----------
    total_weight : float or "auto", default="auto"
        The sum W of the weights, below the number of neighbours. A larger sum gives a smoother
        density. "auto" is the power min(1/2, 4/(D + 4)) of the number of training rows, which
        balances variance and bias, or half of ``n_neighbors`` if that is less.
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
    As with nearest neighbours, the density far away falls only with the inverse volume, so that
    its integral over all space is not 1, and W cannot be chosen by likelihood. Where at least W
    training rows coincide with a row, the bandwidth is 0 and the density infinite.

    Examples
    --------
    >>> model = AGFDensity(total_weight=10).fit([[i / 100] for i in range(100)])
    >>> model.score_samples([[0.5]]).round(6) + 0.0
    array([0.])
    """

    def __init__(
        self,
        total_weight: float | Literal["auto"] = "auto",
        n_neighbors: int | None = None,
    ) -> None:
        self.total_weight = total_weight
        self.n_neighbors = n_neighbors

    def _choose_parameters(self) -> None:
        """Check the parameters and choose those given as "auto"."""
        n_available = self._training.n_rows
        if self.n_neighbors is not None:
            n_available = check_n_neighbors(self.n_neighbors, self._training.n_rows)
        if is_auto(self.total_weight):
            check_enough_rows(self._training.n_rows)
            self.total_weight_ = min(self._default_neighbours(), n_available / 2)
        else:
            self.total_weight_ = check_total_weight(self.total_weight, n_available)
        self._scope = adaptive_scope(self._training, self.total_weight_, self.n_neighbors)

    def _log_share(self) -> float:
        """Return log(W / n)."""
        return math.log(self.total_weight_ / self._training.n_rows)

    def _log_lengths(self, placed: Array) -> Array:
        """Return log(sqrt(2 pi) sigma)."""
        bandwidths = np.empty(len(placed))
        for part in neighbourhoods(self._training, placed, self._scope):
            bandwidths[part.at] = part.bandwidths
        with np.errstate(divide="ignore"):
            return np.log(bandwidths) + 0.5 * math.log(2 * math.pi)


class NeighborsDensity(LocalDensity):
    r"""Estimate a density from the distance of the k-th nearest training row.

    The smallest ball around a row that contains k of the n training rows has the volume
    :math:`V_k`; the density is :math:`k / (n V_k)`.

    Parameters
    ----------
    n_neighbors : int or "auto", default="auto"
        Number k of neighbours. "auto" is the power min(1/2, 4/(D + 4)) of the number of
        training rows, rounded up.

    Attributes
    ----------
    n_neighbors_ : int
        Number of neighbours.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    A training row is its own first neighbour. Where k training rows coincide with a row, the
    density is infinite.

    Examples
    --------
    >>> model = NeighborsDensity(n_neighbors=2).fit([[0.0], [1.0], [2.0], [3.0]])
    >>> np.exp(model.score_samples([[0.5], [5.0]]))
    array([0.5       , 0.08333333])
    """

    def __init__(self, n_neighbors: int | Literal["auto"] = "auto") -> None:
        self.n_neighbors = n_neighbors

    def _choose_parameters(self) -> None:
        """Check the number of neighbours, or choose it."""
        n_rows = self._training.n_rows
        if is_auto(self.n_neighbors):
            self.n_neighbors_ = math.ceil(self._default_neighbours())
        else:
            self.n_neighbors_ = check_n_neighbors(self.n_neighbors, n_rows, unset="auto")

    def _log_share(self) -> float:
        """Return log(k / n)."""
        return math.log(self.n_neighbors_ / self._training.n_rows)

    def _log_lengths(self, placed: Array) -> Array:
        """Return the logarithm of the D-th root of the volume of the ball."""
        n_features = self._training.n_features
        radii = np.sqrt(self._farthest_neighbors(placed))
        log_unit_ball = 0.5 * n_features * math.log(math.pi) - gammaln(0.5 * n_features + 1)
        with np.errstate(divide="ignore"):
            return np.log(radii) + log_unit_ball / n_features

    def _farthest_neighbors(self, placed: Array) -> Array:
        """Return the squared distance of the k-th nearest training row."""
        squared = np.empty(len(placed))
        for block in self._training.split(len(placed), self.n_neighbors_):
            nearest, _ = self._training.nearest(placed[block], self.n_neighbors_)
            squared[block] = nearest.max(axis=1)
        return squared
