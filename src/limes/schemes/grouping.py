"""A hierarchy of classes from the data, and the border between two groups of classes."""

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage

from limes._typing import Array, Codes
from limes.sources.protocol import MulticlassSource, Source


def group_classes(rows: Array, codes: Codes, n_classes: int) -> NDArray[np.int64]:
    """Build a tree of classes, those whose means are nearest being parted last.

    Two groups are joined where that adds least to the squared distances from their mean (Ward),
    which makes groups of similar size, and so short ways.

    Examples
    --------
    >>> group_classes(np.array([[0.0], [5.0], [1.0]]), np.array([0, 1, 2]), 3)
    array([[-2,  1],
           [-1, -3]])
    """
    means = np.tile(rows.mean(axis=0), (n_classes, 1))
    for one in np.unique(codes):
        means[one] = rows[codes == one].mean(axis=0)
    merged = linkage(means, method="ward")[:, :2].astype(np.int64)
    # The last merge is the root; merge k makes the group n_classes + k.
    forks = np.where(merged < n_classes, -1 - merged, 2 * n_classes - 2 - merged)
    return np.ascontiguousarray(forks[::-1])


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


class GroupBorder(Source):
    """The border between two groups: that of the best class of the one and of the other."""

    def __init__(self, source: MulticlassSource, first: list[int], second: list[int]) -> None:
        self.source, self.first, self.second = source, np.array(first), np.array(second)

    def decision(self, X: Array) -> Array:
        """Return the decision value of the two best classes."""
        values = np.empty(len(X))
        for some, pair, sign in self._pairs(X):
            values[some] = sign * self.source.pair(*pair).decision(X[some])
        return values

    def linearize(self, X: Array) -> tuple[Array, Array]:
        """Return the same with gradients."""
        values, gradients = np.empty(len(X)), np.empty(X.shape)
        for some, pair, sign in self._pairs(X):
            value, gradient = self.source.pair(*pair).linearize(X[some])
            values[some], gradients[some] = sign * value, sign * gradient
        return values, gradients

    def _pairs(self, X: Array) -> list[tuple[Codes, tuple[int, int], float]]:
        """Return the rows of each pair of best classes, the pair ascending, and its sign."""
        if not len(X):
            return []
        scores = self.source.scores(X)
        best = np.column_stack(
            [group[scores[:, group].argmax(axis=1)] for group in (self.first, self.second)]
        )
        return [
            (
                np.flatnonzero((best == pair).all(axis=1)),
                (int(pair.min()), int(pair.max())),
                1.0 if pair[0] < pair[1] else -1.0,
            )
            for pair in np.unique(best, axis=0)
        ]
