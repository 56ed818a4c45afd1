"""One border map for each pair of classes: the paper's scheme, and that of two classes."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from limes._core import Classifier, Maps
from limes._typing import Array, Codes
from limes.border_map import compile_maps
from limes.coupling import class_pairs, count_votes, couple
from limes.schemes.protocol import Scheme


@dataclass(frozen=True, eq=False)
class PairwiseScheme(Scheme):
    """Maps of all pairs in the order of ``class_pairs``, joined by votes or by coupling."""

    name: ClassVar[str] = "pairwise"
    # True: the class that wins most pairs, the lowest of equals (as LIBSVM decides). Coupled
    # probabilities are then moved as little as it takes to put that class first. False: the class
    # with the largest coupled probability.
    by_vote: bool = True

    @cached_property
    def compiled(self) -> Maps:
        """The maps, packed for the compiled core, which counts their votes."""
        pairs = class_pairs(self.n_classes) if self.by_vote and self.n_classes > 2 else None
        return compile_maps(self.maps, double=self.double, pairs=pairs)

    @cached_property
    def classifier(self) -> Classifier:
        """The maps and the rule that joins them, in the compiled core."""
        if self.by_vote or self.n_classes == 2:
            return Classifier(self.compiled)
        return Classifier(self.compiled, "coupled", referee=self.referee())

    def codes(self, values: NDArray[Any]) -> Codes:
        """Return the class number of each row."""
        if self.n_classes == 2:
            return (values[:, 0] > 0).astype(np.intp)
        if self.by_vote:
            return np.argmax(count_votes(values), axis=1)
        return np.argmax(self.own_probabilities(values), axis=1)

    def own_probabilities(self, values: NDArray[Any]) -> Array:
        """Return coupled probabilities."""
        return couple(expit(2 * values.astype(np.float64)))
