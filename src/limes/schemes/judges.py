"""Rows to compare a map with its source on, what each stands for, and what they say of a map."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limes._typing import Array, Codes


@dataclass(frozen=True, eq=False)
class Judges:
    """Rows to compare a map with its source on."""

    # Shape (n_rows, n_features). Raw rows.
    rows: Array
    # Shape (n_rows,). The source's class numbers of them.
    codes: Codes
    # Shape (n_rows,). What each stands for; they sum to 1.
    weights: Array
    # Shape (n_rows,). Rows of one number were made from the same row, and err together; None where
    # none were made.
    groups: Codes | None = None

    @classmethod
    def evenly(cls, rows: Array, codes: Codes) -> "Judges":
        """Let every row count as much as any other."""
        return cls(rows, codes, np.full(len(rows), 1.0 / max(len(rows), 1)))

    @property
    def n_origins(self) -> int:
        """How many real rows they are, or were made from."""
        return len(self.rows) if self.groups is None else len(np.unique(self.groups))

    def agreement(self, codes: Codes) -> tuple[float, float]:
        """Return the share of equal class numbers, and its standard error."""
        agreement, error = self.plain_agreement(codes)
        if self.groups is not None:
            n_worth = 1.0 / float(np.square(np.bincount(self.groups, self.weights)).sum())
            # A few misses tell little of their own spread.
            spread = self.error_of_mean((codes != self.codes).astype(float))
            error = float(np.hypot(spread, agreement_error(n_worth, n_worth)))
        return agreement, error

    def plain_agreement(self, codes: Codes) -> tuple[float, float]:
        """Return the same with the error as if all rows were independent.

        That is nearer to the error of the difference of two maps on the same rows, which err
        together.
        """
        return _weighted_agreement(self.weights, codes != self.codes)

    def balanced_agreement(self, codes: Codes) -> tuple[float, float]:
        """Return the same where every class counts as much as any other, however rare it is."""
        by_class = np.bincount(self.codes, self.weights)
        n_classes = max(1, int(np.count_nonzero(by_class)))
        own = by_class[self.codes]
        shares = np.divide(self.weights, n_classes * own, out=np.zeros(len(own)), where=own > 0)
        return _weighted_agreement(shares, codes != self.codes)

    def recalls(self, codes: Codes) -> Array:
        """Return how often each class that the source names is named where the source does."""
        named = np.bincount(self.codes, self.weights)
        hits = np.bincount(self.codes, self.weights * (codes == self.codes))
        return hits[named > 0] / named[named > 0]

    def error_of_mean(self, values: Array) -> float:
        """Return the standard error of the weighted mean of one value a row."""
        parts = self.weights * (values - self.weights @ values)
        sums = parts if self.groups is None else np.bincount(self.groups, parts)
        return float(np.sqrt(np.square(sums).sum()))


def _weighted_agreement(weights: Array, is_missed: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the share of hits, and its standard error; weights sum to 1."""
    if not len(weights):
        return float("nan"), agreement_error(0.0, 0.0)
    n_worth = 1.0 / float(np.square(weights).sum())
    # Misses, not hits, are summed: where there is none, agreement is exactly 1.
    agreement = 1.0 - float(weights @ is_missed)
    return agreement, agreement_error(agreement * n_worth, n_worth)


def agreement_error(hits: float, n_rows: float) -> float:
    """Return the standard error of a share of hits."""
    a, b = hits + 0.5, max(n_rows - hits, 0.0) + 0.5
    return float(np.sqrt(a * b / (a + b + 1)) / (a + b))
