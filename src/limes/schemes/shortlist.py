"""A map for all classes names the likeliest few, and the maps of their pairs decide."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from limes._core import Classifier, Maps
from limes._typing import Array, Codes
from limes.border_map import compile_maps, function_cost, is_projected, row_cost
from limes.coupling import class_pairs, count_votes, couple
from limes.schemes.protocol import Scheme


@dataclass(frozen=True, eq=False)
class ShortlistScheme(Scheme):
    """A shared map first, then the maps of all pairs, of which a row asks the few in question.

    A row that the shared map is sure of asks no pair at all.
    """

    name: ClassVar[str] = "shortlist"
    # The most classes that are named for a row.
    n_named: int = 4
    # How much smaller than the largest the value of a named class may be.
    reach: float = 3.5
    # The share of a pair's own map in its value; the rest is half the difference of the shared
    # map's values, whose errors are others.
    trust: float = 0.65
    # Pairs that a row asks on average: that of all rows of the fit, which are more doubtful than
    # rows to come.
    n_asked: float = 1.0
    # As in ``PairwiseScheme``, among the named classes.
    by_vote: bool = True

    def __post_init__(self) -> None:
        n_pairs = self.n_classes * (self.n_classes - 1) // 2
        wanted, found = [self.n_classes] + n_pairs * [1], [one.n_outputs for one in self.maps]
        if found != wanted:
            raise ValueError(
                f"a shortlist of {self.n_classes!r} classes must have a map of as many values, "
                f"then {n_pairs!r} of one, got {found!r:.100}."
            )
        numbers = {"reach": self.reach, "trust": self.trust, "n_asked": self.n_asked}
        if self.n_named < 1 or not all(0 <= one < np.inf for one in numbers.values()):
            raise ValueError(
                f"n_named must be at least 1 and {sorted(numbers)} finite and not below zero, got "
                f"{self.n_named!r} and {[numbers[name] for name in sorted(numbers)]!r}."
            )

    @cached_property
    def compiled(self) -> Maps:
        """The shared map, packed for the compiled core."""
        return compile_maps(self.maps[:1], double=self.double)

    @cached_property
    def compiled_pairs(self) -> Maps:
        """The maps of pairs, packed for the compiled core."""
        return compile_maps(self.maps[1:], double=self.double)

    @cached_property
    def classifier(self) -> Classifier:
        """The maps and the rule that joins them, in the compiled core."""
        return Classifier(
            self.compiled,
            "shortlist" if self.by_vote else "coupled shortlist",
            pairs=self.compiled_pairs,
            shortlist=(int(self.n_named), float(self.reach), float(self.trust)),
            referee=self.referee(),
        )

    @property
    def cost(self) -> int:
        """Multiply-adds that one row costs on average, every pair counted as the largest."""
        pairs = self.maps[1:]
        largest = max(pairs, key=lambda one: one.n_borders)
        once, each = 0, row_cost((largest,))
        if largest.before is not None and is_projected(pairs):
            n_search = largest.before.n_outputs
            once = n_search * largest.n_features
            each = n_search * largest.n_borders + function_cost(largest, projected=True)
        return row_cost(self.maps[:1]) + round(min(self.n_asked, 1.0) * once + self.n_asked * each)

    def values(self, X: NDArray[np.floating[Any]], *, n_threads: int = 1) -> NDArray[Any]:
        """Return the shared map's values, then those of the pairs that are asked.

        Named classes are taken in ascending order, their pairs in that of ``class_pairs``; NaN
        stands for a pair that is not asked.
        """
        pairs, scores = self.compiled_pairs, self.compiled.decide(X, n_threads=n_threads)
        asked = np.full((len(scores), self.n_slots), np.nan, dtype=scores.dtype)
        doubtful, which = self.find_pairs(scores)
        if len(doubtful):
            found = pairs.decide_some(X[doubtful], which, n_threads=n_threads)
            asked[doubtful] = found[:, :, 0]
        return np.hstack([scores, asked])

    @property
    def n_slots(self) -> int:
        """The most pairs that a row asks."""
        n_named = min(self.n_named, self.n_classes)
        return n_named * (n_named - 1) // 2

    def find_pairs(self, scores: NDArray[Any]) -> tuple[Codes, NDArray[np.int32]]:
        """Return the rows that ask any pair, and the numbers of the pairs, -1 for none."""
        doubtful = np.flatnonzero(self._count_near(scores) > 1)
        numbers = np.full((self.n_classes, self.n_classes), -1, dtype=np.int32)
        firsts, seconds = np.array(class_pairs(self.n_classes)).T
        numbers[firsts, seconds] = np.arange(len(firsts))
        which = np.full((len(doubtful), self.n_slots), -1, dtype=np.int32)
        for rows, named in self._name(scores[doubtful]):
            for slot, (i, j) in enumerate(class_pairs(named.shape[1])):
                which[rows, slot] = numbers[named[:, i], named[:, j]]
        return doubtful, which

    def codes(self, values: NDArray[Any]) -> Codes:
        """Return the class number of each row."""
        codes = np.argmax(values[:, : self.n_classes], axis=1)
        for rows, named, chosen in self._join_pairs(values):
            scores = count_votes(chosen) if self.by_vote else couple(expit(2 * chosen))
            codes[rows] = named[np.arange(len(rows)), scores.argmax(axis=1)]
        return codes

    def own_probabilities(self, values: NDArray[Any]) -> Array:
        """Return class probabilities: named classes share by pairs what the shared map gives."""
        probabilities = softmax(values[:, : self.n_classes].astype(np.float64), axis=1)
        for rows, named, chosen in self._join_pairs(values):
            own = probabilities[rows[:, None], named].sum(axis=1, keepdims=True)
            probabilities[rows[:, None], named] = own * couple(expit(2 * chosen))
        return probabilities

    def _join_pairs(self, values: NDArray[Any]) -> Iterator[tuple[Codes, Codes, Array]]:
        """Go through rows with equally many named classes: rows, classes, values of pairs."""
        # Classes are named in the precision in which their pairs were asked.
        for rows, named in self._name(values[:, : self.n_classes]):
            pairs = np.array(class_pairs(named.shape[1]))
            asked = values[rows, self.n_classes : self.n_classes + len(pairs)]
            own = values[rows[:, None], named].astype(np.float64)
            rough = 0.5 * (own[:, pairs[:, 1]] - own[:, pairs[:, 0]])
            # As in the core: the pair's own share in the precision of its value.
            yield rows, named, asked.dtype.type(self.trust) * asked + (1.0 - self.trust) * rough

    def _name(self, scores: NDArray[Any]) -> Iterator[tuple[Codes, Codes]]:
        """Go through rows with 2, 3 ... named classes: the rows, and their classes ascending."""
        n_near = self._count_near(scores)
        for n_named in range(2, min(self.n_named, self.n_classes) + 1):
            rows = np.flatnonzero(n_near == n_named)
            if len(rows):
                order = np.argsort(-scores[rows], axis=1, kind="stable")
                yield rows, np.sort(order[:, :n_named], axis=1)

    def _count_near(self, scores: NDArray[Any]) -> Codes:
        """Return how many classes are named for each row."""
        near = scores >= scores.max(axis=1, keepdims=True) - scores.dtype.type(self.reach)
        return np.minimum(near.sum(axis=1), self.n_named)
