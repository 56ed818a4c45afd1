"""What every way from border maps to classes can do."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from limes._core import Classifier, Maps
from limes._typing import Array, Codes
from limes.border_map import BorderMap, compile_maps, row_cost

# What a scheme packs for this processor.
PACKED = ("compiled", "compiled_pairs", "classifier")
# Added to the winner's probability where it only just wins, so that rounding cannot hide it.
MARGIN = 1e-9


@dataclass(frozen=True, eq=False)
class Scheme(ABC):
    """Border maps, and how their values become labels and probabilities."""

    name: ClassVar[str]
    # All with the same ``before`` and ``blend``.
    maps: tuple[BorderMap, ...]
    # Number of classes.
    n_classes: int
    # Compute in float64 instead of float32.
    double: bool = False

    @cached_property
    def compiled(self) -> Maps:
        """The maps, packed for the compiled core."""
        return compile_maps(self.maps, double=self.double)

    @cached_property
    def classifier(self) -> Classifier:
        """The maps and the rule that joins them, in the compiled core; ``codes`` defines it."""
        return Classifier(self.compiled)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is packed for this processor: it is packed again when it is needed."""
        return {name: value for name, value in self.__dict__.items() if name not in PACKED}

    @property
    def n_borders(self) -> int:
        """Number of border points in all."""
        return sum(one.n_borders for one in self.maps)

    @property
    def cost(self) -> int:
        """Multiply-adds that one row costs."""
        return row_cost(self.maps)

    @property
    def n_bytes(self) -> int:
        """Size of the points and functions, in the precision of prediction."""
        numbers = sum(one.points.size + one.normals.size + one.offsets.size for one in self.maps)
        return numbers * (8 if self.double else 4)

    def values(self, X: NDArray[np.floating[Any]], *, n_threads: int = 1) -> NDArray[Any]:
        """Return the values of all maps, side by side: (n_rows, n_outputs)."""
        return self.compiled.decide(X, n_threads=n_threads)

    def classify(self, X: NDArray[np.floating[Any]], *, n_threads: int = 1) -> Codes:
        """Return the class number of each row, found in the core: that of ``codes``."""
        return self.classifier.classify(X, n_threads=n_threads)

    def predictor(self, labels: list[Any]) -> Callable[[Any], Any]:
        """Return a function from one row to its label, with as little around it as can be."""
        return self.classifier.predictor(labels)

    def referee(self) -> Callable[[list[float]], int]:
        """Return the definition of the class of one row, for the core to ask where it must."""
        # A copy that has nothing packed: what is packed keeps the function.
        codes, dtype = replace(self).codes, np.float64 if self.double else np.float32
        return lambda values: int(codes(np.array([values], dtype=dtype))[0])

    @abstractmethod
    def codes(self, values: NDArray[Any]) -> Codes:
        """Return the class number of each row, from the values of the maps."""

    @abstractmethod
    def own_probabilities(self, values: NDArray[Any]) -> Array:
        """Return class probabilities, from the values of the maps."""

    def probabilities(self, values: NDArray[Any]) -> Array:
        """Return class probabilities; the largest of a row is that of its ``codes``."""
        return put_first(self.own_probabilities(values), self.codes(values))


def put_first(probabilities: Array, winners: Codes) -> Array:
    """Move probabilities as little as it takes for the winner of each row to have the largest.

    The winner and the classes above it share what they have equally: the nearest point, in squared
    distance, of the set where the winner is first.

    Examples
    --------
    >>> put_first(np.array([[0.5, 0.3, 0.2]]), np.array([1])).round(6)
    array([[0.4, 0.4, 0.2]])
    """
    moved = probabilities.copy()
    is_late = probabilities.argmax(axis=1) != winners
    moved[is_late] = _pool(probabilities[is_late], winners[is_late])
    return moved


def _pool(probabilities: Array, winners: Codes) -> Array:
    """Average the winner of each row with the classes above the average, largest first."""
    rows = np.arange(len(probabilities))
    others = probabilities.copy()
    others[rows, winners] = -1.0
    order = np.argsort(-others, axis=1, kind="stable")[:, :-1]
    sizes = np.arange(1, order.shape[1] + 2)
    pooled = np.column_stack([probabilities[rows, winners], np.take_along_axis(others, order, 1)])
    levels = pooled.cumsum(axis=1) / sizes
    n_above = (pooled[:, 1:] > levels[:, :-1]).cumprod(axis=1).sum(axis=1)
    level = levels[rows, n_above][:, None]
    moved = probabilities.copy()
    is_pooled = np.arange(order.shape[1]) < n_above[:, None]
    np.put_along_axis(
        moved, order, np.where(is_pooled, level, np.take_along_axis(others, order, 1)), 1
    )
    moved[rows, winners] = level[:, 0] * (1 + MARGIN)
    return moved / moved.sum(axis=1, keepdims=True)
