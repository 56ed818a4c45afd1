"""What every way from border maps to classes can do."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from limes._core import Maps
from limes._typing import Array, Codes
from limes.border_map import BorderMap, compile_maps, row_cost


@dataclass(frozen=True, eq=False)
class Scheme(ABC):
    """Border maps, and how their values become labels and probabilities.

    Parameters
    ----------
    maps : tuple of BorderMap
        All with the same ``before`` and ``blend``.
    n_classes : int
        Number of classes.
    double : bool, default=False
        Compute in float64 instead of float32.
    """

    name: ClassVar[str]
    maps: tuple[BorderMap, ...]
    n_classes: int
    double: bool = False

    @cached_property
    def compiled(self) -> Maps:
        """The maps, packed for the compiled core."""
        return compile_maps(self.maps, double=self.double)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is packed for this processor: it is packed again when it is needed."""
        return {name: value for name, value in self.__dict__.items() if name != "compiled"}

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

    @abstractmethod
    def codes(self, values: NDArray[Any]) -> Codes:
        """Return the class number of each row, from the values of the maps."""

    @abstractmethod
    def probabilities(self, values: NDArray[Any]) -> Array:
        """Return class probabilities; the largest of a row is that of its ``codes``."""
