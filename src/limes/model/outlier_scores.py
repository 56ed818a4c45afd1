"""The scores of an outlier detector: values of a scheme on the scale of its source."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limes._typing import Array
from limes.model.exact import ExactScheme, FallbackScheme
from limes.model.schemes import MapScheme, Scheme

# Largest value of a map that counts: its score is far above and below those of all rows.
MAX_VALUE = 300.0


@dataclass(frozen=True)
class OutlierScores:
    """How the values of a scheme of the classes outlier and inlier become decision values.

    Examples
    --------
    >>> from limes.model import BorderMap, PairwiseScheme
    >>> map_ = BorderMap.from_borders(points=[[1.0]], normals=[[1.0]])
    >>> scores = OutlierScores(offset=2.0, is_gaussian=True)
    >>> scores.decision(PairwiseScheme((map_,), 2), np.array([[1.0], [-99.0]])).round(6)
    array([ 0., -2.])
    """

    # The score of a row less its decision value; ``offset_`` of scikit-learn.
    offset: float
    # Whether the score is a sum of Gaussian kernels, which falls to 0 far from all vectors: its
    # logarithm falls with the squared distance. A value of a map is the logarithm of the score
    # divided by the offset, q; below 0 it is 1 - sqrt(1 - 2 q), which falls with the distance.
    is_gaussian: bool = False

    def __post_init__(self) -> None:
        if not math.isfinite(self.offset) or (self.is_gaussian and self.offset <= 0):
            raise ValueError(
                "the offset must be a finite number, and above 0 for Gaussian kernels, got "
                f"{self.offset!r}."
            )

    def decision(self, scheme: Scheme, X: NDArray[Any], *, n_threads: int = 1) -> Array:
        """Return the decision value of each row, above 0 for inliers.

        Rows that a map hands to the exact sums have the value of these.
        """
        if isinstance(scheme, MapScheme):
            return self.from_values(scheme.values(X, n_threads=n_threads))
        if isinstance(scheme, FallbackScheme):
            values, is_exact = scheme.values_and_fallback(X, n_threads)
            found = self.from_values(values)
            if is_exact.any():
                found[is_exact] = scheme.exact.decision(X[is_exact], n_threads=n_threads)
            return found
        assert isinstance(scheme, ExactScheme)
        return scheme.decision(X, n_threads=n_threads)

    def from_values(self, values: NDArray[Any]) -> Array:
        """Return decision values from the values of a map."""
        column = values[:, 0].astype(np.float64)
        if not self.is_gaussian:
            return column
        bounded = np.clip(column, -MAX_VALUE, MAX_VALUE)
        logarithms = np.where(bounded < 0, bounded - 0.5 * np.square(bounded), bounded)
        return self.offset * np.expm1(logarithms)

    def to_values(self, decision: Array) -> Array:
        """Return the values that a map should have, from decision values; the inverse."""
        if not self.is_gaussian:
            return decision
        # Smaller scores are 0 in the decision value of the source too, by rounding.
        scores = np.maximum(decision / self.offset + 1.0, np.finfo(np.float64).eps)
        logarithms = np.log(scores)
        roots = np.sqrt(1.0 - 2.0 * np.minimum(logarithms, 0.0))
        return np.where(logarithms < 0, 1.0 - roots, logarithms)
