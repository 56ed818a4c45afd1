"""What a source can do, the registry of sources, and sources that move or rescale others."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limes._typing import Array, Indices, Labels
from limes.model.affine import AffineMap

# A probability below this counts as this: its logarithm stays finite, far from any border.
FLOOR = 1e-12


class Source(ABC):
    """One border: a decision value, zero on the border, and its gradient.

    The decision value is scaled so that its hyperbolic tangent is the difference in
    conditional probability (the paper's r) between the two sides.
    """

    @abstractmethod
    def decision(self, X: Array) -> Array:
        """Return the decision value of each row: (n_rows,)."""

    @abstractmethod
    def decision_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return decision values and gradients, which often share most of their work."""

    def gradient(self, X: Array) -> Array:
        """Return the gradient of the decision value at each row: (n_rows, n_features)."""
        return self.decision_and_gradient(X)[1]


class MulticlassSource(ABC):
    """All the borders of one classifier, and its own answers.

    Classes are numbered as in ``classes``. Positive decision values mean the second class of
    a pair, or the one class against the rest.
    """

    classes: Labels
    n_features: int
    decides_by_vote: bool = False
    # Multiply-adds that asking about one row costs, roughly.
    query_cost: float = 1e5

    @property
    def multiply_adds(self) -> float:
        """The same without what is no multiply-add, such as exponentials."""
        return self.query_cost

    @abstractmethod
    def pair(self, first: int, second: int) -> Source:
        """Return the border between two classes."""

    @abstractmethod
    def one_vs_rest(self, one: int) -> Source:
        """Return the border between a class and all the others."""

    @abstractmethod
    def probabilities(self, X: Array) -> Array:
        """Return the probability of each class: (n_rows, n_classes)."""

    def calibrated_probabilities(self, X: Array) -> Array:
        """Return probabilities as a map should give them: better than the source's, if it can."""
        return self.probabilities(X)

    def pair_decision(
        self, pair: tuple[int, int], X: Array, probabilities: NDArray[np.floating]
    ) -> Array:
        """Return the decision value of a pair, from class probabilities that are known already."""
        both = np.maximum(probabilities[:, pair].astype(np.float64), FLOOR)
        return 0.5 * np.log(both[:, 1] / both[:, 0])

    def refit(self, X: Array, class_index: Indices) -> "MulticlassSource | None":
        """Return the same source trained on other rows; None where it cannot be."""
        return None

    @abstractmethod
    def scores(self, X: Array) -> Array:
        """Return one score a class, logits of how likely each is: (n_rows, n_classes).

        They are for learning labels from, so the largest should be that of ``class_index``.
        """

    @abstractmethod
    def predict_index(self, X: Array) -> Indices:
        """Return the number of the class that the classifier's own ``predict`` names."""


class Shifted(Source):
    """A border moved to another decision value."""

    def __init__(self, source: Source, level: float) -> None:
        self.source, self.level = source, level

    def decision(self, X: Array) -> Array:
        """Return the decision value relative to the level."""
        return self.source.decision(X) - self.level

    def decision_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the same with gradients."""
        values, gradients = self.source.decision_and_gradient(X)
        return values - self.level, gradients


@dataclass(frozen=True, eq=False)
class SourceContext:
    """The rows at hand and what is known of them."""

    # Shape (n_rows, n_features). Rows, in the space that the source works in.
    X: Array
    # Shape (n_rows,). True class numbers; -1 for a row whose class is not known, None where none
    # is.
    class_index: Indices | None
    # Whether borders are asked for at equal probabilities instead of where ``predict`` changes.
    by_probability: bool
    # For the folds of a calibration.
    rng: np.random.Generator


@singledispatch
def as_source(model: Any, context: SourceContext) -> MulticlassSource:
    """Return a fitted classifier, already taken out of its pipeline, as a source.

    A module of this package registers itself for the classes that it knows; ``generic`` for all
    others.
    """
    raise TypeError(f"no source is registered for {type(model).__name__}.")


@singledispatch
def training_rows(model: Any) -> Array | None:
    """Return the training rows that a fitted classifier keeps; None where it keeps none."""
    return None


@singledispatch
def training_classes(model: Any, preprocessing: AffineMap | None, X: Any) -> Indices | None:
    """Return the class numbers of the rows of X that the model keeps as training rows, else -1.

    None where the model keeps none, or was not trained on these rows.
    """
    return None


class RescaledSource(MulticlassSource):
    """A source that takes rows in other units."""

    def __init__(self, source: MulticlassSource, rescaling: AffineMap) -> None:
        self.source, self.rescaling = source, rescaling
        self.classes, self.n_features = source.classes, source.n_features
        self.decides_by_vote, self.query_cost = source.decides_by_vote, source.query_cost

    @property
    def multiply_adds(self) -> float:
        """Multiply-adds of the source itself."""
        return self.source.multiply_adds

    def pair(self, first: int, second: int) -> Source:
        """Return the border between two classes."""
        return _RescaledBorder(self.source.pair(first, second), self.rescaling)

    def one_vs_rest(self, one: int) -> Source:
        """Return the border between a class and all the others."""
        return _RescaledBorder(self.source.one_vs_rest(one), self.rescaling)

    def probabilities(self, X: Array) -> Array:
        """Return the probability of each class."""
        return self.source.probabilities(_undo(X, self.rescaling))

    def calibrated_probabilities(self, X: Array) -> Array:
        """Return probabilities as a map should give them."""
        return self.source.calibrated_probabilities(_undo(X, self.rescaling))

    def scores(self, X: Array) -> Array:
        """Return one score a class."""
        return self.source.scores(_undo(X, self.rescaling))

    def predict_index(self, X: Array) -> Indices:
        """Return the number of the class that the classifier names."""
        return self.source.predict_index(_undo(X, self.rescaling))


class _RescaledBorder(Source):
    """One border of such a source."""

    def __init__(self, source: Source, rescaling: AffineMap) -> None:
        self.source, self.rescaling = source, rescaling

    def decision(self, X: Array) -> Array:
        """Return the decision value."""
        return self.source.decision(_undo(X, self.rescaling))

    def decision_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the same with gradients by the rows in these units."""
        values, gradients = self.source.decision_and_gradient(_undo(X, self.rescaling))
        return values, gradients / self.rescaling.scale


def _undo(X: Array, rescaling: AffineMap) -> Array:
    """Return rows in the units of the source."""
    return X / rescaling.scale + rescaling.shift


def best_of_others(scores: Array, one: int) -> Indices:
    """Return the class with the largest score but for one."""
    others = scores.copy()
    others[:, one] = -np.inf
    return others.argmax(axis=1)
