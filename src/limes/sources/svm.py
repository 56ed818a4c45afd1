"""A one-against-one support vector machine as a source."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.svm import SVC, NuSVC

from limes._typing import Array, Codes, Labels
from limes.affine import AffineMap, to_dense
from limes.coupling import class_pairs, count_votes, couple
from limes.sources.protocol import MulticlassSource, Source
from limes.svm_machine import SvmMachine

# P(one) this close to 0 or 1 has no slope worth following.
EDGE = 1e-12


@dataclass(frozen=True, eq=False)
class SvmSource(MulticlassSource):
    """The borders of a support vector machine, with Platt's sigmoid for each pair.

    Parameters
    ----------
    machine : SvmMachine
        The machine, as arrays.
    classes : ndarray of shape (n_classes,)
        Labels in the machine's order.
    slopes, shifts : ndarray of shape (n_pairs,)
        Platt's A and B: P(second) = 1 / (1 + exp(-(A f + B))).
    decides_by_vote : bool
        True: a border lies where the machine's own ``predict`` changes, at f = 0, and the class
        with most votes wins. False: it lies where the two probabilities are equal, at
        f = -B / A, and the largest coupled probability wins (``svm-predict -b 1``).
    """

    machine: SvmMachine
    classes: Labels
    slopes: Array
    shifts: Array
    decides_by_vote: bool = True

    @property
    def n_features(self) -> int:  # type: ignore[override]
        """Number of features."""
        return self.machine.n_features

    def pair(self, first: int, second: int) -> "_SvmPair":
        """Return the border between two classes."""
        place = class_pairs(len(self.classes)).index((first, second))
        shift = 0.0 if self.decides_by_vote else self.shifts[place]
        return _SvmPair(self.machine, (first, second), 0.5 * self.slopes[place], 0.5 * shift)

    def one_vs_rest(self, one: int) -> "_SvmAgainstRest":
        """Return the border where a class has half the coupled probability."""
        return _SvmAgainstRest(self, one)

    def pair_decisions(self, X: Array) -> Array:
        """Return the decision values of all pairs: (n_rows, n_pairs)."""
        shifts = np.zeros_like(self.shifts) if self.decides_by_vote else self.shifts
        return 0.5 * (self.slopes * self.machine.values(X) + shifts)

    def probabilities(self, X: Array) -> Array:
        """Return coupled probabilities."""
        return couple(expit(2 * self.pair_decisions(X)))

    def codes(self, X: Array) -> Codes:
        """Return the number of the class that wins."""
        if self.decides_by_vote:
            return np.argmax(count_votes(self.machine.values(X)), axis=1)
        return np.argmax(self.probabilities(X), axis=1)


def support_codes(model: Any, before: AffineMap | None, X: Any) -> Codes | None:
    """Return what a support vector machine remembers of the labels of its training rows.

    A support vector's class is the group it stands in. Any other training row is on its own side
    of every border, so asking the machine about it recovers its label too.

    Parameters
    ----------
    model : object
        A fitted classifier of any kind.
    before : AffineMap or None
        From raw rows to the space of its support vectors.
    X : ndarray or sparse matrix of shape (n_rows, n_features)
        Raw rows.

    Returns
    -------
    ndarray of shape (n_rows,) or None
        Class numbers, -1 where they are not known; None where the model is no support vector
        machine, or was trained on other rows.
    """
    if not isinstance(model, SVC | NuSVC) or model.support_.max(initial=0) >= X.shape[0]:
        return None
    support = X[model.support_]
    support = before.apply(support) if before is not None else to_dense(support)
    if not np.allclose(support, to_dense(model.support_vectors_), rtol=1e-9, atol=1e-12):
        return None
    codes = np.full(X.shape[0], -1, dtype=np.intp)
    codes[model.support_] = np.repeat(np.arange(len(model.n_support_)), model.n_support_)
    return codes


class _SvmPair(Source):
    """Platt's sigmoid of one pair, as half its logit."""

    def __init__(
        self, machine: SvmMachine, pair: tuple[int, int], slope: float, shift: float
    ) -> None:
        self.machine, self.classes, self.slope, self.shift = machine, pair, slope, shift

    def decision(self, X: Array) -> Array:
        """Return the decision value."""
        return self.slope * self.machine.pair_values(X, *self.classes) + self.shift

    def linearize(self, X: Array) -> tuple[Array, Array]:
        """Return the same with gradients."""
        values, gradients = self.machine.pair_values_and_gradients(X, *self.classes)
        return self.slope * values + self.shift, self.slope * gradients


class _SvmAgainstRest(Source):
    """Half the logit of one class's coupled probability."""

    def __init__(self, source: SvmSource, one: int) -> None:
        self.source, self.one = source, one

    def decision(self, X: Array) -> Array:
        """Return half the logarithm of the odds."""
        return _half_logit(self.source.probabilities(X)[:, self.one])

    def linearize(self, X: Array) -> tuple[Array, Array]:
        """Return the same with gradients, through the coupling by its adjoint system."""
        pairs = class_pairs(len(self.source.classes))
        parts = [self.source.pair(*pair).linearize(X) for pair in pairs]
        chances = expit(2 * np.column_stack([values for values, _ in parts]))
        probability, by_chance = _coupled_and_slopes(chances, self.one)
        by_decision = by_chance * 2 * chances * (1 - chances)
        gradient = np.zeros_like(X)
        for place, (_, slope) in enumerate(parts):
            gradient += by_decision[:, place, None] * slope
        spread = np.maximum(2 * probability * (1 - probability), EDGE)
        return _half_logit(probability), gradient / spread[:, None]


def _half_logit(probability: Array) -> Array:
    """Return half the logit, finite at 0 and 1."""
    inside = np.clip(probability, EDGE, 1 - EDGE)
    return 0.5 * (np.log(inside) - np.log1p(-inside))


def _coupled_and_slopes(chances: Array, one: int) -> tuple[Array, Array]:
    """Return a class's coupled probability, and its derivative in each pair's P(second).

    The probabilities p minimise p'Qp under sum p = 1, hence (Q + ee') p = c e: with q the solution
    for c = 1, p = q / sum q. Its derivative is -(Q + ee')^-1 dQ q, taken from the left.
    """
    n_classes = (1 + int(np.sqrt(1 + 8 * chances.shape[1]))) // 2
    pairs = class_pairs(n_classes)
    system = np.ones((len(chances), n_classes, n_classes))
    for place, (i, j) in enumerate(pairs):
        second = chances[:, place]
        system[:, i, j] -= second * (1 - second)
        system[:, j, i] -= second * (1 - second)
        system[:, i, i] += np.square(second)
        system[:, j, j] += np.square(1 - second)
    solved = np.linalg.solve(system, np.ones((len(chances), n_classes, 1)))[..., 0]
    total = solved.sum(axis=1, keepdims=True)
    probability = solved[:, one] / total[:, 0]
    seed = (np.eye(n_classes)[one] - probability[:, None]) / total
    adjoint = np.linalg.solve(system, seed[..., None])[..., 0]
    slopes = np.empty_like(chances)
    for place, (i, j) in enumerate(pairs):
        second = chances[:, place]
        moved_i = 2 * second * solved[:, i] - (1 - 2 * second) * solved[:, j]
        moved_j = -2 * (1 - second) * solved[:, j] - (1 - 2 * second) * solved[:, i]
        slopes[:, place] = -(adjoint[:, i] * moved_i + adjoint[:, j] * moved_j)
    return probability, slopes
