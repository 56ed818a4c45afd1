"""One border map for each class against all the others."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from limes._core import Classifier
from limes._typing import Array, Codes
from limes.schemes.protocol import Scheme


@dataclass(frozen=True, eq=False)
class OneVsRestScheme(Scheme):
    """A map a class; the class that is furthest inside its own border wins.

    The border of a class lies where it is as probable as the best of the others: where the source's
    own label changes. Half the probability, the paper's border, is reached by no class at all where
    three compete.
    """

    name: ClassVar[str] = "one-vs-rest"

    @cached_property
    def classifier(self) -> Classifier:
        """The maps and the rule that joins them, in the compiled core."""
        return Classifier(self.compiled, "highest")

    def codes(self, values: NDArray[Any]) -> Codes:
        """Return the class number of each row."""
        return np.argmax(values, axis=1)

    def own_probabilities(self, values: NDArray[Any]) -> Array:
        """Return probabilities in the ratios that the values say.

        A class that is not the best has half the logarithm of its odds against the best for its
        value, which is below zero; the best has a value above zero, and odds of one.
        """
        return softmax(2 * np.minimum(values.astype(np.float64), 0.0), axis=1)
