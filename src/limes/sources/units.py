"""A source whose rows are measured in other units, so that a map learns alike in all of them."""

import numpy as np

from limes._typing import Array, Codes
from limes.affine import AffineMap
from limes.sources.protocol import MulticlassSource, Source

# Rows spread about as wide as 1, about as near to 0, are left as they are.
MIN_SPREAD, MAX_SPREAD = 0.25, 4.0
MAX_SHIFT = 10.0


def find_units(rows: Array) -> AffineMap | None:
    """Return the map to rows about 0 that spread about as wide as 1.

    All features are divided by one number: what is near for a source stays near.

    Examples
    --------
    >>> find_units(np.array([[-1.0, 0.5], [1.0, -0.5]])) is None
    True
    >>> units = find_units(np.array([[100.0, 50.0], [300.0, 50.0]]))
    >>> units.apply(np.array([[300.0, 50.0]])).round(2)
    array([[1.41, 0.  ]])
    """
    middle = rows.mean(axis=0)
    # In two steps: the square of a number may not be one.
    largest = float(np.abs(rows - middle).max(initial=0.0))
    if not 0 < largest < np.inf:
        return None
    spread = largest * float(np.sqrt(np.mean(np.square((rows - middle) / largest))))
    is_near = float(np.abs(middle).max()) <= MAX_SHIFT * spread
    if is_near and MIN_SPREAD <= spread <= MAX_SPREAD:
        return None
    return AffineMap.scaling(middle, np.full(rows.shape[1], 1.0 / spread))


class InUnits(MulticlassSource):
    """A source that takes rows in other units."""

    def __init__(self, source: MulticlassSource, units: AffineMap) -> None:
        self.source, self.units = source, units
        self.classes, self.n_features = source.classes, source.n_features
        self.decides_by_vote, self.row_cost = source.decides_by_vote, source.row_cost

    @property
    def bare_cost(self) -> float:
        """Multiply-adds of the source itself."""
        return self.source.bare_cost

    def pair(self, first: int, second: int) -> Source:
        """Return the border between two classes."""
        return _BorderInUnits(self.source.pair(first, second), self.units)

    def one_vs_rest(self, one: int) -> Source:
        """Return the border between a class and all the others."""
        return _BorderInUnits(self.source.one_vs_rest(one), self.units)

    def probabilities(self, X: Array) -> Array:
        """Return the probability of each class."""
        return self.source.probabilities(_undo(X, self.units))

    def forecasts(self, X: Array) -> Array:
        """Return probabilities as a map should give them."""
        return self.source.forecasts(_undo(X, self.units))

    def scores(self, X: Array) -> Array:
        """Return one score a class."""
        return self.source.scores(_undo(X, self.units))

    def codes(self, X: Array) -> Codes:
        """Return the number of the class that the classifier names."""
        return self.source.codes(_undo(X, self.units))


class _BorderInUnits(Source):
    """One border of such a source."""

    def __init__(self, source: Source, units: AffineMap) -> None:
        self.source, self.units = source, units

    def decision(self, X: Array) -> Array:
        """Return the decision value."""
        return self.source.decision(_undo(X, self.units))

    def linearize(self, X: Array) -> tuple[Array, Array]:
        """Return the same with gradients by the rows in these units."""
        values, gradients = self.source.linearize(_undo(X, self.units))
        return values, gradients / self.units.matrix.diagonal()


def _undo(X: Array, units: AffineMap) -> Array:
    """Return rows in the units of the source."""
    return X / units.matrix.diagonal() + units.shift
