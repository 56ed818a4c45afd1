"""Scheme base class; pairwise, one-vs-rest, shared, shortlist, tree."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from limes._core import Classifier, Maps
from limes._typing import Array, Indices
from limes.model.border_map import BorderMap, compile_maps, function_cost, is_projected, row_cost
from limes.model.coupling import class_pairs, count_votes, couple

SCHEMES = ("pairwise", "one-vs-rest", "shared", "shortlist", "tree")
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
        """The compiled maps with their class rule, which ``class_index`` defines."""
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

    def classify(self, X: NDArray[np.floating[Any]], *, n_threads: int = 1) -> Indices:
        """Return the class number of each row, found in the core: that of ``class_index``."""
        return self.classifier.classify(X, n_threads=n_threads)

    def predictor(self, labels: list[Any]) -> Callable[[Any], Any]:
        """Return a function from one row to its label, with as little around it as can be."""
        return self.classifier.predictor(labels)

    def referee(self) -> Callable[[list[float]], int]:
        """Return the definition of the class of one row, for the core to ask where it must."""
        # A copy that has nothing packed: what is packed keeps the function.
        class_index, dtype = replace(self).class_index, np.float64 if self.double else np.float32
        return lambda values: int(class_index(np.array([values], dtype=dtype))[0])

    @abstractmethod
    def class_index(self, values: NDArray[Any]) -> Indices:
        """Return the class number of each row, from the values of the maps."""

    @abstractmethod
    def raw_probabilities(self, values: NDArray[Any]) -> Array:
        """Return class probabilities, from the values of the maps."""

    def probabilities(self, values: NDArray[Any]) -> Array:
        """Return class probabilities; the largest of a row is that of its ``class_index``."""
        return with_largest_at(self.raw_probabilities(values), self.class_index(values))


def with_largest_at(probabilities: Array, winners: Indices) -> Array:
    """Move probabilities as little as it takes for the winner of each row to have the largest.

    The winner and the classes above it share what they have equally: the nearest point, in squared
    distance, of the set where the winner is first.

    Examples
    --------
    >>> with_largest_at(np.array([[0.5, 0.3, 0.2]]), np.array([1])).round(6)
    array([[0.4, 0.4, 0.2]])
    """
    moved = probabilities.copy()
    is_late = probabilities.argmax(axis=1) != winners
    moved[is_late] = _pool(probabilities[is_late], winners[is_late])
    return moved


def _pool(probabilities: Array, winners: Indices) -> Array:
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

    def class_index(self, values: NDArray[Any]) -> Indices:
        """Return the class number of each row."""
        if self.n_classes == 2:
            return (values[:, 0] > 0).astype(np.intp)
        if self.by_vote:
            return np.argmax(count_votes(values), axis=1)
        return np.argmax(self.raw_probabilities(values), axis=1)

    def raw_probabilities(self, values: NDArray[Any]) -> Array:
        """Return coupled probabilities."""
        return couple(expit(2 * values.astype(np.float64)))


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

    def class_index(self, values: NDArray[Any]) -> Indices:
        """Return the class number of each row."""
        return np.argmax(values, axis=1)

    def raw_probabilities(self, values: NDArray[Any]) -> Array:
        """Return probabilities in the ratios that the values say.

        A class that is not the best has half the logarithm of its odds against the best for its
        value, which is below zero; the best has a value above zero, and odds of one.
        """
        return softmax(2 * np.minimum(values.astype(np.float64), 0.0), axis=1)


@dataclass(frozen=True, eq=False)
class SharedScheme(Scheme):
    """The class whose function is the largest wins; the functions are logits.

    Its price does not grow with the number of pairs: one search, then one function a class.
    """

    name: ClassVar[str] = "shared"

    def class_index(self, values: NDArray[Any]) -> Indices:
        """Return the class number of each row."""
        return np.argmax(values, axis=1)

    def raw_probabilities(self, values: NDArray[Any]) -> Array:
        """Return class probabilities."""
        return softmax(values.astype(np.float64), axis=1)


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

    def find_pairs(self, scores: NDArray[Any]) -> tuple[Indices, NDArray[np.int32]]:
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

    def class_index(self, values: NDArray[Any]) -> Indices:
        """Return the class number of each row."""
        class_index = np.argmax(values[:, : self.n_classes], axis=1)
        for rows, named, chosen in self._join_pairs(values):
            scores = count_votes(chosen) if self.by_vote else couple(expit(2 * chosen))
            class_index[rows] = named[np.arange(len(rows)), scores.argmax(axis=1)]
        return class_index

    def raw_probabilities(self, values: NDArray[Any]) -> Array:
        """Return class probabilities: named classes share by pairs what the shared map gives."""
        probabilities = softmax(values[:, : self.n_classes].astype(np.float64), axis=1)
        for rows, named, chosen in self._join_pairs(values):
            own = probabilities[rows[:, None], named].sum(axis=1, keepdims=True)
            probabilities[rows[:, None], named] = own * couple(expit(2 * chosen))
        return probabilities

    def _join_pairs(self, values: NDArray[Any]) -> Iterator[tuple[Indices, Indices, Array]]:
        """Go through rows with equally many named classes: rows, classes, values of pairs."""
        # Classes are named in the precision in which their pairs were asked.
        for rows, named in self._name(values[:, : self.n_classes]):
            pairs = np.array(class_pairs(named.shape[1]))
            asked = values[rows, self.n_classes : self.n_classes + len(pairs)]
            own = values[rows[:, None], named].astype(np.float64)
            rough = 0.5 * (own[:, pairs[:, 1]] - own[:, pairs[:, 0]])
            # As in the core: the pair's own share in the precision of its value.
            yield rows, named, asked.dtype.type(self.trust) * asked + (1.0 - self.trust) * rough

    def _name(self, scores: NDArray[Any]) -> Iterator[tuple[Indices, Indices]]:
        """Go through rows with 2, 3 ... named classes: the rows, and their classes ascending."""
        n_near = self._count_near(scores)
        for n_named in range(2, min(self.n_named, self.n_classes) + 1):
            rows = np.flatnonzero(n_near == n_named)
            if len(rows):
                order = np.argsort(-scores[rows], axis=1, kind="stable")
                yield rows, np.sort(order[:, :n_named], axis=1)

    def _count_near(self, scores: NDArray[Any]) -> Indices:
        """Return how many classes are named for each row."""
        near = scores >= scores.max(axis=1, keepdims=True) - scores.dtype.type(self.reach)
        return np.minimum(near.sum(axis=1), self.n_named)


@dataclass(frozen=True, eq=False)
class TreeScheme(Scheme):
    """One map a node of a tree of classes; probabilities multiply along a path."""

    name: ClassVar[str] = "tree"
    # Shape (n_classes - 1, 2). Where the two branches of each fork lead: to a later fork, or to the
    # class c, written as ``-1 - c``. The root is fork 0.
    children: NDArray[np.int64] = field(default_factory=lambda: np.array([[-1, -2]]))

    def __post_init__(self) -> None:
        check_tree(self.children, self.n_classes)
        if len(self.maps) != self.n_classes - 1 or any(one.n_outputs != 1 for one in self.maps):
            raise ValueError(
                f"a tree of {self.n_classes!r} classes must have {self.n_classes - 1!r} maps of "
                f"one value, got {[one.n_outputs for one in self.maps]!r}."
            )

    @property
    def cost(self) -> int:
        """Multiply-adds that one row costs on average, every class being as frequent."""
        before, own = self.maps[0].before, []
        once = 0
        if before is not None and is_projected(self.maps):
            once = before.n_outputs * before.n_features
        for one in self.maps:
            width = before.n_outputs if before is not None and once else one.n_features
            own.append(one.n_borders * width + function_cost(one, projected=once > 0))
            if one.n_borders == 1:
                own[-1] = row_cost((one,))
        return once + round(float(self._share_of_classes() @ own))

    @cached_property
    def classifier(self) -> Classifier:
        """The maps and the rule that joins them, in the compiled core."""
        return Classifier(self.compiled, "walk", children=self.children)

    def class_index(self, values: NDArray[Any]) -> Indices:
        """Return the class number of each row."""
        place = np.zeros(len(values), dtype=np.intp)
        walking = np.arange(len(values))
        while len(walking):
            here = place[walking]
            place[walking] = self._step(here, values[walking, here])
            walking = walking[place[walking] >= 0]
        return -1 - place

    def raw_probabilities(self, values: NDArray[Any]) -> Array:
        """Return class probabilities: products of those of the branches on the way."""
        probabilities = np.zeros((len(values), self.n_classes))
        arriving = np.ones((len(values), len(self.children)))
        doubled = 2 * values.astype(np.float64)
        for fork, branches in enumerate(self.children):
            chances = expit(-doubled[:, fork]), expit(doubled[:, fork])
            for child, chance in zip(branches, chances, strict=True):
                if child < 0:
                    probabilities[:, -1 - child] = arriving[:, fork] * chance
                else:
                    arriving[:, child] = arriving[:, fork] * chance
        return probabilities

    def _step(self, place: Indices, values: NDArray[Any]) -> Indices:
        """Return where rows at a fork go; without a number, to the first class."""
        after = self.children[place, (values > 0).astype(np.intp)]
        return np.where(np.isnan(values), -1, after)

    def _share_of_classes(self) -> Array:
        """Return the share of classes that lie behind each fork."""
        counts = np.zeros(len(self.children))
        for fork in range(len(self.children) - 1, -1, -1):
            counts[fork] = sum(1 if child < 0 else counts[child] for child in self.children[fork])
        return counts / self.n_classes


def check_tree(children: Any, n_classes: int) -> None:
    """Refuse what is no tree with every class as a leaf.

    Examples
    --------
    >>> check_tree(np.array([[-1, 1], [-2, -3]]), 3)
    """
    array = np.asarray(children)
    if array.dtype.kind not in "iu" or array.shape != (n_classes - 1, 2):
        raise ValueError(
            f"children must be whole numbers of shape ({n_classes - 1}, 2), got {array.dtype.name} "
            f"of shape {array.shape!r}."
        )
    wanted = [*range(-n_classes, 0), *range(1, n_classes - 1)]
    is_later = (array < 0) | (array > np.arange(len(array))[:, None])
    if sorted(array.ravel().tolist()) != wanted or not is_later.all():
        raise ValueError(
            "children must name every class and every fork but the root once, each fork after its "
            f"parent, got {array.tolist()!r:.200}."
        )


def split_groups(children: NDArray[np.int64]) -> list[tuple[list[int], list[int]]]:
    """Return the classes behind the two branches of each fork.

    Examples
    --------
    >>> split_groups(np.array([[-2, 1], [-1, -3]]))
    [([1], [0, 2]), ([0], [2])]
    """
    groups: list[tuple[list[int], list[int]]] = [([], [])] * len(children)
    for fork in range(len(children) - 1, -1, -1):
        first, second = (
            [-1 - int(child)] if child < 0 else sorted(groups[child][0] + groups[child][1])
            for child in children[fork]
        )
        groups[fork] = first, second
    return groups
