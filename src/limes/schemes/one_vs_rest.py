"""One border map for each class against all the others."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, softmax

from limes._typing import Array, Codes
from limes.schemes.protocol import Scheme


@dataclass(frozen=True, eq=False)
class OneVsRestScheme(Scheme):
    """A map a class; the class that is furthest inside its own border wins."""

    name: ClassVar[str] = "one-vs-rest"

    def codes(self, values: NDArray[Any]) -> Codes:
        """Return the class number of each row."""
        return np.argmax(values, axis=1)

    def probabilities(self, values: NDArray[Any]) -> Array:
        """Return each class's own probability, divided by their sum."""
        return softmax(log_expit(2 * values.astype(np.float64)), axis=1)
