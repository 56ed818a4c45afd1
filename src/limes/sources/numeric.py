"""Gradients by central differences, for a source that has no formula for its own."""

from collections.abc import Callable

import numpy as np

from limes._typing import Array

# Rows asked at once: a block of this many rows of a few hundred features is some tens of MB.
BLOCK_ROWS = 20_000
# Rows on which a source is tried for being piecewise constant.
TRIAL_ROWS = 40
# Halvings of the way between two rows, and the share of a difference that must remain for a jump.
N_HALVINGS = 45
JUMP_SHARE = 1e-3
# Half a deviation: wide enough to see over the flat steps of nearest neighbours and trees.
WIDE_STEP = 0.5


class CentralDifferences:
    """The gradient of a function of rows, one column of it for each output."""

    def __init__(self, function: Callable[[Array], Array], rows: Array) -> None:
        self.function = function
        trial = rows[:: max(1, len(rows) // TRIAL_ROWS)][:TRIAL_ROWS]
        scale = _feature_scales(rows)
        precision = np.finfo(np.result_type(function(trial[:1]), np.float32)).eps
        self.steps = scale * np.cbrt(precision)
        if is_stepped(function, trial):
            self.steps = scale * WIDE_STEP

    def __call__(self, X: Array) -> Array:
        """Return the gradients: (n_rows, [n_outputs,] n_features)."""
        n_features = X.shape[1]
        block = max(1, BLOCK_ROWS // (2 * n_features))
        parts = [self._differences(X[i : i + block]) for i in range(0, len(X), block)]
        return np.concatenate(parts) if parts else np.empty((0, n_features))

    def _differences(self, X: Array) -> Array:
        """Ask for all rows and all features at once."""
        n_rows, n_features = X.shape
        shifts = np.diag(self.steps)
        ahead = (X[:, None] + shifts).reshape(-1, n_features)
        behind = (X[:, None] - shifts).reshape(-1, n_features)
        values = np.asarray(self.function(np.concatenate([ahead, behind])), dtype=np.float64)
        rise = (values[: len(ahead)] - values[len(ahead) :]).reshape(n_rows, n_features, -1)
        slopes = np.moveaxis(rise / (2 * self.steps[:, None]), 1, 2)
        return slopes[:, 0] if values.ndim == 1 else slopes


def _feature_scales(rows: Array) -> Array:
    """Return a deviation for each feature, that of a constant one taken from its value."""
    deviation = rows.std(axis=0)
    fallback = np.maximum(np.abs(rows).max(axis=0), 1.0)
    return np.where(deviation > 0, deviation, fallback)


def is_stepped(function: Callable[[Array], Array], rows: Array) -> bool:
    """Tell whether a function jumps between rows instead of changing gradually."""

    def value(row: Array) -> float:
        return float(np.asarray(function(row[None]), dtype=np.float64).reshape(-1)[-1])

    values = np.array([value(row) for row in rows])
    low, high = rows[values.argmin()], rows[values.argmax()]
    bottom, top = values.min(), values.max()
    for _ in range(N_HALVINGS):
        middle = 0.5 * (low + high)
        if value(middle) - bottom < 0.5 * (top - bottom):
            low = middle
        else:
            high = middle
    return bool(abs(value(high) - value(low)) > JUMP_SHARE * (top - bottom))
