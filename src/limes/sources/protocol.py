"""What every classifier that is being replaced must be able to say."""

from abc import ABC, abstractmethod

from limes._typing import Array, Codes, Labels


class Source(ABC):
    """One border: a decision value, zero on the border, and its gradient.

    The decision value is scaled so that its hyperbolic tangent is the difference in
    conditional probability (the paper's r) between the two sides.
    """

    @abstractmethod
    def decision(self, X: Array) -> Array:
        """Return the decision value of each row: (n_rows,)."""

    @abstractmethod
    def linearize(self, X: Array) -> tuple[Array, Array]:
        """Return decision values and gradients, which often share most of their work."""

    def gradient(self, X: Array) -> Array:
        """Return the gradient of the decision value at each row: (n_rows, n_features)."""
        return self.linearize(X)[1]


class MulticlassSource(ABC):
    """All the borders of one classifier, and its own answers.

    Classes are numbered as in ``classes``. Positive decision values mean the second class of
    a pair, or the one class against the rest.
    """

    classes: Labels
    n_features: int
    decides_by_vote: bool = False
    # Multiply-adds that asking about one row costs, roughly.
    row_cost: float = 1e5

    @property
    def bare_cost(self) -> float:
        """The same without what is no multiply-add, such as exponentials."""
        return self.row_cost

    @abstractmethod
    def pair(self, first: int, second: int) -> Source:
        """Return the border between two classes."""

    @abstractmethod
    def one_vs_rest(self, one: int) -> Source:
        """Return the border between a class and all the others."""

    @abstractmethod
    def probabilities(self, X: Array) -> Array:
        """Return the probability of each class: (n_rows, n_classes)."""

    def forecasts(self, X: Array) -> Array:
        """Return probabilities as a map should give them: better than the source's, if it can."""
        return self.probabilities(X)

    @abstractmethod
    def scores(self, X: Array) -> Array:
        """Return one score a class, logits of how likely each is: (n_rows, n_classes).

        They are for learning labels from, so the largest should be that of ``codes``.
        """

    @abstractmethod
    def codes(self, X: Array) -> Codes:
        """Return the number of the class that the classifier's own ``predict`` names."""


class Shifted(Source):
    """A border moved to another decision value."""

    def __init__(self, source: Source, level: float) -> None:
        self.source, self.level = source, level

    def decision(self, X: Array) -> Array:
        """Return the decision value relative to the level."""
        return self.source.decision(X) - self.level

    def linearize(self, X: Array) -> tuple[Array, Array]:
        """Return the same with gradients."""
        values, gradients = self.source.linearize(X)
        return values - self.level, gradients
