"""Scores that are linear in the row: LinearSVC, LogisticRegression and their like."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._typing import Array


@dataclass(frozen=True, eq=False)
class LinearScores:
    """One linear function a class; a binary classifier has the functions 0 and its own."""

    # Shape (n_classes, n_features). Slopes.
    coefficients: Array
    # Shape (n_classes,). Values at zero.
    intercepts: Array

    @classmethod
    def from_sklearn(cls, model: Any) -> "LinearScores":
        """Take ``coef_`` and ``intercept_`` out of a fitted model."""
        coefficients = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
        intercepts = np.broadcast_to(np.asarray(model.intercept_, float), len(coefficients))
        if len(model.classes_) == 2 and len(coefficients) == 1:
            coefficients = np.concatenate([np.zeros_like(coefficients), coefficients])
            intercepts = np.concatenate([[0.0], intercepts])
        return cls(coefficients, intercepts)

    def values(self, X: Array) -> Array:
        """Return the scores: (n_rows, n_classes)."""
        return X @ self.coefficients.T + self.intercepts

    def gradients(self, X: Array) -> Array:
        """Return the slopes, the same at every row: (n_rows, n_classes, n_features)."""
        return np.broadcast_to(self.coefficients, (len(X), *self.coefficients.shape))
