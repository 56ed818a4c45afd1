"""A tree of classes: one border at each fork, and a row walks down."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from limes._core import Classifier
from limes._typing import Array, Codes
from limes.border_map import function_cost, is_projected, row_cost
from limes.schemes.protocol import Scheme


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

    def codes(self, values: NDArray[Any]) -> Codes:
        """Return the class number of each row."""
        place = np.zeros(len(values), dtype=np.intp)
        walking = np.arange(len(values))
        while len(walking):
            here = place[walking]
            place[walking] = self._step(here, values[walking, here])
            walking = walking[place[walking] >= 0]
        return -1 - place

    def own_probabilities(self, values: NDArray[Any]) -> Array:
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

    def _step(self, place: Codes, values: NDArray[Any]) -> Codes:
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
