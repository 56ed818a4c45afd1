"""How border maps make classes: pairwise, one-vs-rest, shared, shortlist and tree."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from limes._core import Classifier, Maps
from limes._typing import Array, Indices, Labels
from limes.model.border_map import (
    BorderMap,
    compile_maps,
    function_cost,
    is_projected,
    row_cost,
    shared_curve,
)
from limes.model.coupling import class_pairs, count_votes, couple, sigmoid, softmax

SCHEMES = ("pairwise", "one-vs-rest", "shared", "shortlist", "tree")
# What a scheme packs for this processor.
PACKED = ("compiled", "compiled_pairs", "classifier", "core_sums")
# Relative: added to the winner's probability where it equals others, against rounding.
WINNER_MARGIN = 1e-9


class Scheme(ABC):
    """What decides the class of a row: maps with a class rule, exact sums, or both."""

    name: ClassVar[str]
    # Border maps; none where the sums of the source are computed.
    maps: tuple[BorderMap, ...]
    # Number of classes.
    n_classes: int

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is packed for this processor; it is packed again on demand."""
        return {name: value for name, value in self.__dict__.items() if name not in PACKED}

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of features of a row."""

    @property
    def n_borders(self) -> int:
        """Number of border points in all."""
        return sum(map_.n_borders for map_ in self.maps)

    @property
    @abstractmethod
    def cost(self) -> int:
        """Multiply-adds per row."""

    @property
    @abstractmethod
    def n_bytes(self) -> int:
        """Size of the arrays that predict, in the precision of prediction."""

    @property
    def has_probabilities(self) -> bool:
        """Whether there is a probability of each class."""
        return True

    @abstractmethod
    def into_range(self, X: NDArray[Any]) -> tuple[NDArray[Any], int]:
        """Return rows as ``decision`` and ``predict_proba`` take them, and the first invalid one.

        Rows whose sums could overflow are scaled down where the scheme needs it. An invalid row has
        a NaN, an infinity or a number too large for the precision; -1 stands for none.
        """

    @abstractmethod
    def label(self, X: NDArray[Any], labels: Labels, *, n_threads: int = 1) -> tuple[Labels, int]:
        """Return the label of each row, and the first row without a label, or -1."""

    def classify(self, X: NDArray[np.floating[Any]], *, n_threads: int = 1) -> Indices:
        """Return the class index of each row."""
        return self.label(X, np.arange(self.n_classes), n_threads=n_threads)[0]

    @abstractmethod
    def predictor(self, labels: list[Any]) -> Callable[[Any], Any]:
        """Return a function from one row to its label, without input checks."""

    @abstractmethod
    def predict_proba(self, X: NDArray[Any], *, n_threads: int = 1) -> Array:
        """Return the probability of each class: (n_rows, n_classes)."""

    @property
    def core_probabilities(self) -> Classifier | None:
        """The classifier of the core that computes ``predict_proba``; None where NumPy does."""
        return None

    @abstractmethod
    def decision(self, X: NDArray[Any], *, n_threads: int = 1) -> Array:
        """Return decision values: (n_rows,) for two classes, else (n_rows, n_columns)."""


@dataclass(frozen=True, eq=False)
class MapScheme(Scheme):
    """Border maps, and how their values become classes and probabilities."""

    # All with the same preprocessing and blend.
    maps: tuple[BorderMap, ...]
    n_classes: int
    # Compute in float64 instead of float32.
    double: bool = False

    def __post_init__(self) -> None:
        shared_curve(self.maps)

    @cached_property
    def compiled(self) -> Maps:
        """The maps, packed for the compiled core."""
        return compile_maps(self.maps, double=self.double)

    @cached_property
    def classifier(self) -> Classifier:
        """The compiled maps with their class rule, which ``class_index`` defines."""
        return Classifier(self.compiled)

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return self.maps[0].n_features

    @property
    def cost(self) -> int:
        """Multiply-adds per row."""
        return row_cost(self.maps)

    @property
    def n_bytes(self) -> int:
        """Size of the points and functions, in the precision of prediction."""
        numbers = sum(map_.points.size + map_.slopes.size + map_.offsets.size for map_ in self.maps)
        numbers += sum(map_.curve.n_numbers for map_ in self.maps if map_.curve is not None)
        return numbers * (8 if self.double else 4)

    def into_range(self, X: NDArray[Any]) -> tuple[NDArray[Any], int]:
        """Return rows scaled down where sums could overflow, and the first invalid one, or -1."""
        first = self.classifier.first_out_of_range(X)
        if first < 0:
            return X, -1
        largest = np.finfo(np.float64 if self.double else np.float32).max
        # A comparison with NaN is false.
        is_valid = np.abs(X[first:]).max(axis=1) <= largest
        if not is_valid.all():
            return X, first + int(np.argmin(is_valid))
        return self.classifier.scale_into_range(X), -1

    def values(self, X: NDArray[np.floating[Any]], *, n_threads: int = 1) -> NDArray[Any]:
        """Return the values of all maps, side by side: (n_rows, n_outputs)."""
        return self.compiled.decide(X, n_threads=n_threads)

    def label(self, X: NDArray[Any], labels: Labels, *, n_threads: int = 1) -> tuple[Labels, int]:
        """Return the label of each row, and the first row without a label, or -1."""
        return self.classifier.label(X, labels, n_threads=n_threads)

    def classify(self, X: NDArray[np.floating[Any]], *, n_threads: int = 1) -> Indices:
        """Return the class index of each row, computed in the core as ``class_index`` defines."""
        return self.classifier.classify(X, n_threads=n_threads)

    def predictor(self, labels: list[Any]) -> Callable[[Any], Any]:
        """Return a function from one row to its label, without input checks."""
        return self.classifier.predictor(labels)

    def predict_proba(self, X: NDArray[Any], *, n_threads: int = 1) -> Array:
        """Return the probability of each class; the largest is that of the predicted class.

        Computed in the core, where it can, as ``probabilities`` defines.
        """
        if self.core_probabilities is not None:
            return self.core_probabilities.probabilities(X, n_threads=n_threads)[0]
        return self.probabilities(self.values(X, n_threads=n_threads))

    @property
    def core_probabilities(self) -> Classifier | None:
        """The classifier of the core that computes ``predict_proba``; None where NumPy does."""
        return self.classifier if self.classifier.has_probabilities else None

    def decision(self, X: NDArray[Any], *, n_threads: int = 1) -> Array:
        """Return the value of two classes, or the logarithms of the probabilities of more."""
        if self.n_classes > 2:
            return log_probabilities(self.predict_proba(X, n_threads=n_threads))
        return self.values(X, n_threads=n_threads)[:, 0].astype(np.float64)

    def exact_rule(self) -> Callable[[list[float]], int]:
        """Return the class rule of one row in NumPy, which the core calls to break ties."""
        # A copy without packed parts, since these keep a reference to the function.
        class_index, dtype = replace(self).class_index, np.float64 if self.double else np.float32
        return lambda values: int(class_index(np.array([values], dtype=dtype))[0])

    def margins(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the difference in log odds of the two likeliest classes, from one map's values.

        It is computed in the precision of the map.
        """
        if len(self.maps) > 1:
            raise ValueError(f"margins are those of one map, got {len(self.maps)!r} maps.")
        if values.shape[1] == 1:
            return np.abs(2 * values[:, 0])
        largest = np.partition(values, -2, axis=1)
        return largest[:, -1] - largest[:, -2]

    @abstractmethod
    def class_index(self, values: NDArray[Any]) -> Indices:
        """Return the class index of each row, from the values of the maps."""

    @abstractmethod
    def raw_probabilities(self, values: NDArray[Any]) -> Array:
        """Return class probabilities, from the values of the maps."""

    def probabilities(self, values: NDArray[Any]) -> Array:
        """Return class probabilities; the largest of a row is that of its ``class_index``."""
        return with_largest_at(self.raw_probabilities(values), self.class_index(values))


def log_probabilities(probabilities: Array) -> Array:
    """Return the logarithm of each probability, finite where one is 0."""
    return np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))


def with_largest_at(probabilities: Array, winners: Indices) -> Array:
    """Change probabilities as little as possible so that the winner of each row has the largest.

    The winner and the classes above it get their mean: the nearest point, in squared distance, of
    the set where the winner is first.

    Examples
    --------
    >>> with_largest_at(np.array([[0.5, 0.3, 0.2]]), np.array([1])).round(6)
    array([[0.4, 0.4, 0.2]])
    """
    moved = probabilities.copy()
    is_not_largest = probabilities.argmax(axis=1) != winners
    moved[is_not_largest] = _average_with_larger(
        probabilities[is_not_largest], winners[is_not_largest]
    )
    return moved


def _average_with_larger(probabilities: Array, winners: Indices) -> Array:
    """Average the winner of each row with the classes above the average, largest first."""
    rows = np.arange(len(probabilities))
    others = probabilities.copy()
    others[rows, winners] = -1.0
    order = np.argsort(-others, axis=1, kind="stable")[:, :-1]
    sizes = np.arange(1, order.shape[1] + 2)
    averaged = np.column_stack([probabilities[rows, winners], np.take_along_axis(others, order, 1)])
    levels = averaged.cumsum(axis=1) / sizes
    n_above = (averaged[:, 1:] > levels[:, :-1]).cumprod(axis=1).sum(axis=1)
    level = levels[rows, n_above][:, None]
    moved = probabilities.copy()
    is_averaged = np.arange(order.shape[1]) < n_above[:, None]
    np.put_along_axis(
        moved, order, np.where(is_averaged, level, np.take_along_axis(others, order, 1)), 1
    )
    moved[rows, winners] = level[:, 0] * (1 + WINNER_MARGIN)
    return moved / moved.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class PairwiseScheme(MapScheme):
    """Maps of all pairs in the order of ``class_pairs``, combined by votes or by coupling."""

    name: ClassVar[str] = "pairwise"
    # True: the class that wins most pairs, the lowest of equals (as LIBSVM decides); coupled
    # probabilities are then changed by ``with_largest_at``. False: the class with the largest
    # coupled probability.
    by_vote: bool = True

    @cached_property
    def compiled(self) -> Maps:
        """The maps, packed for the compiled core, which counts votes."""
        pairs = class_pairs(self.n_classes) if self.by_vote and self.n_classes > 2 else None
        return compile_maps(self.maps, double=self.double, pairs=pairs)

    @cached_property
    def classifier(self) -> Classifier:
        """The compiled maps with their class rule."""
        if self.by_vote or self.n_classes == 2:
            return Classifier(self.compiled)
        return Classifier(self.compiled, "coupled", tie_breaker=self.exact_rule())

    def class_index(self, values: NDArray[Any]) -> Indices:
        """Return the class index of each row."""
        if self.n_classes == 2:
            return (values[:, 0] > 0).astype(np.intp)
        if self.by_vote:
            return np.argmax(count_votes(values), axis=1)
        return np.argmax(self.raw_probabilities(values), axis=1)

    def raw_probabilities(self, values: NDArray[Any]) -> Array:
        """Return coupled probabilities."""
        return couple(sigmoid(2 * values.astype(np.float64)))


@dataclass(frozen=True, eq=False)
class OneVsRestScheme(MapScheme):
    """One map per class; the class with the largest value wins.

    The border of a class lies where it is as probable as the best of the others, since that is
    where the source's label changes. The paper's border, a probability of one half, may be reached
    by no class where three compete.
    """

    name: ClassVar[str] = "one-vs-rest"

    @cached_property
    def classifier(self) -> Classifier:
        """The compiled maps with their class rule."""
        return Classifier(self.compiled, "highest")

    def class_index(self, values: NDArray[Any]) -> Indices:
        """Return the class index of each row."""
        return np.argmax(values, axis=1)

    def raw_probabilities(self, values: NDArray[Any]) -> Array:
        """Return probabilities from the odds of each class against the best.

        The value of a class that is not the best is half the logarithm of its odds against the
        best, which is below zero; the best has a value above zero, and odds of one.
        """
        return softmax(2 * np.minimum(values.astype(np.float64), 0.0))


@dataclass(frozen=True, eq=False)
class SharedScheme(MapScheme):
    """One map with a logit per class; the largest wins.

    Cost: one search, then one linear function per class.
    """

    name: ClassVar[str] = "shared"

    def class_index(self, values: NDArray[Any]) -> Indices:
        """Return the class index of each row."""
        return np.argmax(values, axis=1)

    def raw_probabilities(self, values: NDArray[Any]) -> Array:
        """Return class probabilities."""
        return softmax(values.astype(np.float64))


@dataclass(frozen=True, eq=False)
class ShortlistScheme(MapScheme):
    """A shared map selects the likeliest classes of a row; the maps of their pairs decide.

    Where only one class is within the margin of logits, no pair is evaluated.
    """

    name: ClassVar[str] = "shortlist"
    # Classes on the shortlist of a row, at most.
    max_classes: int = 4
    # Difference to the largest logit within which a class is on the shortlist.
    logit_margin: float = 3.5
    # Weight of a pair's own map in its decision value; the rest is half the difference of the
    # shared map's logits, whose errors are independent of it.
    pair_weight: float = 0.65
    # Mean number of pairs evaluated per row, on the transfer set, whose rows are more ambiguous
    # than others.
    mean_pairs: float = 1.0
    # As in ``PairwiseScheme``, among the classes on the shortlist.
    by_vote: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        n_pairs = self.n_classes * (self.n_classes - 1) // 2
        wanted, found = [self.n_classes] + n_pairs * [1], [map_.n_outputs for map_ in self.maps]
        if found != wanted:
            raise ValueError(
                f"a shortlist of {self.n_classes!r} classes must have a map of as many values, "
                f"then {n_pairs!r} of one, got {found!r:.100}."
            )
        if self.max_classes < 1:
            raise ValueError(f"max_classes must be at least 1, got {self.max_classes!r}.")
        # Within float32, which the core computes in.
        largest = {"logit_margin": 1e30, "pair_weight": 1.0, "mean_pairs": 1e30}
        for name, limit in largest.items():
            if not 0 <= getattr(self, name) <= limit:
                raise ValueError(
                    f"{name} must be from 0 to {limit:g}, got {getattr(self, name)!r}."
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
        """The compiled maps with their class rule."""
        return Classifier(
            self.compiled,
            "shortlist" if self.by_vote else "coupled shortlist",
            pairs=self.compiled_pairs,
            shortlist=(int(self.max_classes), float(self.logit_margin), float(self.pair_weight)),
            tie_breaker=self.exact_rule(),
        )

    @property
    def cost(self) -> int:
        """Mean multiply-adds per row, every pair counted as the largest."""
        pairs = self.maps[1:]
        largest = max(pairs, key=lambda map_: map_.n_borders)
        once, each = 0, row_cost((largest,))
        if largest.preprocessing is not None and is_projected(pairs):
            n_search = largest.preprocessing.n_outputs
            once = n_search * largest.n_features
            each = n_search * largest.n_borders + function_cost(largest, projected=True)
        return row_cost(self.maps[:1]) + round(
            min(self.mean_pairs, 1.0) * once + self.mean_pairs * each
        )

    def values(self, X: NDArray[np.floating[Any]], *, n_threads: int = 1) -> NDArray[Any]:
        """Return the shared map's logits, then the values of the pairs that are evaluated.

        Selected classes are in ascending order, their pairs in that of ``class_pairs``; NaN stands
        for a pair that is not evaluated.
        """
        pairs, logits = self.compiled_pairs, self.compiled.decide(X, n_threads=n_threads)
        pair_values = np.full((len(logits), self.max_pairs), np.nan, dtype=logits.dtype)
        ambiguous, pair_numbers = self.find_pairs(logits)
        if len(ambiguous):
            found = pairs.decide_selected(X[ambiguous], pair_numbers, n_threads=n_threads)
            pair_values[ambiguous] = found[:, :, 0]
        return np.hstack([logits, pair_values])

    @property
    def max_pairs(self) -> int:
        """Pairs evaluated for a row, at most."""
        n_selected = min(self.max_classes, self.n_classes)
        return n_selected * (n_selected - 1) // 2

    def find_pairs(self, logits: NDArray[Any]) -> tuple[Indices, NDArray[np.int32]]:
        """Return the rows with a shortlist of several classes, and their pairs (-1: none)."""
        ambiguous = np.flatnonzero(self._count_close(logits) > 1)
        numbers = np.full((self.n_classes, self.n_classes), -1, dtype=np.int32)
        firsts, seconds = np.array(class_pairs(self.n_classes)).T
        numbers[firsts, seconds] = np.arange(len(firsts))
        pair_numbers = np.full((len(ambiguous), self.max_pairs), -1, dtype=np.int32)
        for rows, selected in self._select(logits[ambiguous]):
            for slot, (i, j) in enumerate(class_pairs(selected.shape[1])):
                pair_numbers[rows, slot] = numbers[selected[:, i], selected[:, j]]
        return ambiguous, pair_numbers

    def class_index(self, values: NDArray[Any]) -> Indices:
        """Return the class index of each row."""
        class_index = np.argmax(values[:, : self.n_classes], axis=1)
        for rows, selected, decisions in self._pair_decisions(values):
            scores = count_votes(decisions) if self.by_vote else couple(sigmoid(2 * decisions))
            class_index[rows] = selected[np.arange(len(rows)), scores.argmax(axis=1)]
        return class_index

    def raw_probabilities(self, values: NDArray[Any]) -> Array:
        """Return probabilities: pairs divide the shared map's probability of the shortlist."""
        probabilities = softmax(values[:, : self.n_classes].astype(np.float64))
        for rows, selected, decisions in self._pair_decisions(values):
            own = probabilities[rows[:, None], selected].sum(axis=1, keepdims=True)
            probabilities[rows[:, None], selected] = own * couple(sigmoid(2 * decisions))
        return probabilities

    def _pair_decisions(self, values: NDArray[Any]) -> Iterator[tuple[Indices, Indices, Array]]:
        """Yield rows with equally long shortlists: rows, classes, decision values of pairs."""
        # Selected in the same precision as when the pairs were evaluated.
        for rows, selected in self._select(values[:, : self.n_classes]):
            pairs = np.array(class_pairs(selected.shape[1]))
            pair_values = values[rows, self.n_classes : self.n_classes + len(pairs)]
            own = values[rows[:, None], selected].astype(np.float64)
            shared_values = 0.5 * (own[:, pairs[:, 1]] - own[:, pairs[:, 0]])
            # As in the core: the weighted value of the pair in its own precision.
            yield (
                rows,
                selected,
                pair_values.dtype.type(self.pair_weight) * pair_values
                + (1.0 - self.pair_weight) * shared_values,
            )

    def _select(self, logits: NDArray[Any]) -> Iterator[tuple[Indices, Indices]]:
        """Yield the rows with shortlists of 2, 3 ... classes, and their classes ascending."""
        n_close = self._count_close(logits)
        for n_selected in range(2, min(self.max_classes, self.n_classes) + 1):
            rows = np.flatnonzero(n_close == n_selected)
            if len(rows):
                order = np.argsort(-logits[rows], axis=1, kind="stable")
                yield rows, np.sort(order[:, :n_selected], axis=1)

    def _count_close(self, logits: NDArray[Any]) -> Indices:
        """Return the length of each row's shortlist."""
        is_close = logits >= logits.max(axis=1, keepdims=True) - logits.dtype.type(
            self.logit_margin
        )
        return np.minimum(is_close.sum(axis=1), self.max_classes)


@dataclass(frozen=True, eq=False)
class TreeScheme(MapScheme):
    """One map per node of a tree of classes; probabilities multiply along a path."""

    name: ClassVar[str] = "tree"
    # Shape (n_classes - 1, 2). The two children of each node: a later node, or the class c, written
    # as ``-1 - c``. The root is node 0.
    children: NDArray[np.int64] = field(default_factory=lambda: np.array([[-1, -2]]))

    def __post_init__(self) -> None:
        super().__post_init__()
        check_tree(self.children, self.n_classes)
        if len(self.maps) != self.n_classes - 1 or any(map_.n_outputs != 1 for map_ in self.maps):
            raise ValueError(
                f"a tree of {self.n_classes!r} classes must have {self.n_classes - 1!r} maps of "
                f"one value, got {[map_.n_outputs for map_ in self.maps]!r}."
            )

    @property
    def cost(self) -> int:
        """Mean multiply-adds per row, all classes being equally frequent."""
        preprocessing, own = self.maps[0].preprocessing, []
        once = 0
        if preprocessing is not None and is_projected(self.maps):
            once = preprocessing.n_outputs * preprocessing.n_features
        for map_ in self.maps:
            width = (
                preprocessing.n_outputs if preprocessing is not None and once else map_.n_features
            )
            own.append(map_.n_borders * width + function_cost(map_, projected=once > 0))
            if map_.n_borders == 1:
                own[-1] = row_cost((map_,))
        return once + round(float(self._share_of_classes() @ own))

    @cached_property
    def classifier(self) -> Classifier:
        """The compiled maps with their class rule."""
        return Classifier(self.compiled, "descend", children=self.children)

    def class_index(self, values: NDArray[Any]) -> Indices:
        """Return the class index of each row."""
        place = np.zeros(len(values), dtype=np.intp)
        active = np.arange(len(values))
        while len(active):
            here = place[active]
            place[active] = self._next_node(here, values[active, here])
            active = active[place[active] >= 0]
        return -1 - place

    def raw_probabilities(self, values: NDArray[Any]) -> Array:
        """Return class probabilities: products along the path from the root."""
        probabilities = np.zeros((len(values), self.n_classes))
        reach_probability = np.ones((len(values), len(self.children)))
        doubled = 2 * values.astype(np.float64)
        for node, branches in enumerate(self.children):
            branch_probabilities = sigmoid(-doubled[:, node]), sigmoid(doubled[:, node])
            for child, probability in zip(branches, branch_probabilities, strict=True):
                if child < 0:
                    probabilities[:, -1 - child] = reach_probability[:, node] * probability
                else:
                    reach_probability[:, child] = reach_probability[:, node] * probability
        return probabilities

    def _next_node(self, place: Indices, values: NDArray[Any]) -> Indices:
        """Return the next node of rows; NaN leads to the first class."""
        after = self.children[place, (values > 0).astype(np.intp)]
        return np.where(np.isnan(values), -1, after)

    def _share_of_classes(self) -> Array:
        """Return the share of classes below each node."""
        counts = np.zeros(len(self.children))
        for node in range(len(self.children) - 1, -1, -1):
            counts[node] = sum(1 if child < 0 else counts[child] for child in self.children[node])
        return counts / self.n_classes


def check_tree(children: Any, n_classes: int) -> None:
    """Raise unless the children are a tree with every class as a leaf.

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
            "children must have every class and every node but the root once, each node after its "
            f"parent, got {array.tolist()!r:.200}."
        )


def split_groups(children: NDArray[np.int64]) -> list[tuple[list[int], list[int]]]:
    """Return the classes below the two children of each node.

    Examples
    --------
    >>> split_groups(np.array([[-2, 1], [-1, -3]]))
    [([1], [0, 2]), ([0], [2])]
    """
    groups: list[tuple[list[int], list[int]]] = [([], [])] * len(children)
    for node in range(len(children) - 1, -1, -1):
        first, second = (
            [-1 - int(child)] if child < 0 else sorted(groups[child][0] + groups[child][1])
            for child in children[node]
        )
        groups[node] = first, second
    return groups
