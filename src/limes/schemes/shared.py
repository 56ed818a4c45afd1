"""One border map for all classes: each point carries a linear function for every class."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from limes._typing import Array, Codes
from limes.schemes.protocol import Scheme


@dataclass(frozen=True, eq=False)
class SharedScheme(Scheme):
    """The class whose function is the largest wins; the functions are logits.

    Its price does not grow with the number of pairs: one search, then one function a class.
    """

    name: ClassVar[str] = "shared"

    def codes(self, values: NDArray[Any]) -> Codes:
        """Return the class number of each row."""
        return np.argmax(values, axis=1)

    def own_probabilities(self, values: NDArray[Any]) -> Array:
        """Return class probabilities."""
        return softmax(values.astype(np.float64), axis=1)
