"""A trained SVM as arrays, and as a source."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, NuSVC

from limes._typing import Array, Indices, Labels
from limes.model.affine import AffineMap, to_dense
from limes.model.coupling import class_pairs, count_votes_like_libsvm, couple, log_odds_and_slopes
from limes.model.svm import TrainedSvm
from limes.sources.base import (
    FLOOR,
    MulticlassSource,
    Source,
    SourceContext,
    as_source,
    best_of_others,
    training_classes,
    training_rows,
)
from limes.sources.platt import svm_sigmoids

# Slope of the sigmoids that scores are made with, on average: P = 0.98 on the margin. No pair's is
# more than so many times steeper or flatter.
SCORE_SLOPE = 4.0
MAX_STEEPER = 4.0


@dataclass(frozen=True, eq=False)
class SvmSource(MulticlassSource):
    """The borders of a support vector machine, with Platt's sigmoid for each pair."""

    # The machine, as arrays.
    svm: TrainedSvm
    # Shape (n_classes,). Labels in the machine's order.
    classes: Labels
    # Shape (n_pairs,). Platt's A and B: P(second) = 1 / (1 + exp(-(A f + B))).
    slopes: Array
    shifts: Array
    # True: a border lies where the machine's own ``predict`` changes, at f = 0, and the class with
    # most votes wins. False: it lies where the two probabilities are equal, at f = -B / A, and the
    # largest coupled probability wins (``svm-predict -b 1``).
    decides_by_vote: bool = True
    # The power of coupled probabilities that is nearer to the truth.
    inverse_temperature: float = 1.0
    # The classifier that the machine was taken from, if it can be trained again.
    model: Any = None

    @property
    def n_features(self) -> int:  # type: ignore[override]
        """Number of features."""
        return self.svm.n_features

    def pair(self, first: int, second: int) -> "_SvmPair":
        """Return the border between two classes."""
        place = class_pairs(len(self.classes)).index((first, second))
        shift = 0.0 if self.decides_by_vote else self.shifts[place]
        return _SvmPair(self.svm, (first, second), 0.5 * self.slopes[place], 0.5 * shift)

    def one_vs_rest(self, one: int) -> "_SvmAgainstRest":
        """Return the border where a class is as probable as the best of the others."""
        return _SvmAgainstRest(self, one)

    def pair_decisions(self, X: Array) -> Array:
        """Return the decision values of all pairs: (n_rows, n_pairs)."""
        shifts = np.zeros_like(self.shifts) if self.decides_by_vote else self.shifts
        return 0.5 * (self.slopes * self.svm.values(X) + shifts)

    def pair_decision(
        self, pair: tuple[int, int], X: Array, probabilities: NDArray[np.floating]
    ) -> Array:
        """Return the decision value of a pair, from its own kernel sums."""
        return self.pair(*pair).decision(X)

    def refit(self, X: Array, class_index: Indices) -> "SvmSource | None":
        """Train the machine again on other rows."""
        if self.model is None:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", FutureWarning)
            try:
                again = clone(self.model).fit(X, np.asarray(self.classes)[class_index])
            except ValueError:
                return None
        if len(again.classes_) < len(self.classes):
            return None
        return replace(self, svm=TrainedSvm.from_sklearn(again), model=again)

    def probabilities(self, X: Array) -> Array:
        """Return coupled probabilities."""
        return couple(expit(2 * self.pair_decisions(X)))

    def calibrated_probabilities(self, X: Array) -> Array:
        """Return coupled probabilities, as sharp as they should be."""
        if self.inverse_temperature == 1.0:
            return self.probabilities(X)
        logs = np.log(np.maximum(self.probabilities(X), FLOOR))
        return softmax(self.inverse_temperature * logs, axis=1)

    @property
    def query_cost(self) -> float:  # type: ignore[override]
        """Multiply-adds that asking about one row costs; an exponential is worth fifty."""
        return self.multiply_adds + 50.0 * len(self.svm.vectors)

    @property
    def multiply_adds(self) -> float:
        """Support vectors times features."""
        return float(len(self.svm.vectors) * self.svm.n_features)

    def scores(self, X: Array) -> Array:
        """Return how far each class is from losing a pair.

        The class that wins all its pairs is the one with a score above zero, and what it has over
        the next is the decision value of the pair of the two. Pairs that are hard to tell apart
        have flatter sigmoids than others, so that scores make probabilities like the coupled ones.
        """
        values = self.svm.values(X)
        if not self.decides_by_vote:
            values += self.shifts / self.slopes
        values *= 0.5 * self._score_slopes()
        scores = np.full((len(values), len(self.classes)), np.inf, order="F")
        for place, (first, second) in enumerate(class_pairs(len(self.classes))):
            np.minimum(scores[:, first], -values[:, place], out=scores[:, first])
            np.minimum(scores[:, second], values[:, place], out=scores[:, second])
        return scores

    def _score_slopes(self) -> Array:
        """Return the slopes of the pairs' sigmoids, brought to one average for all machines."""
        logs = np.log(np.maximum(np.abs(self.slopes), FLOOR))
        most = np.log(MAX_STEEPER)
        return SCORE_SLOPE * np.exp(np.clip(logs - np.median(logs), -most, most))

    def predict_index(self, X: Array) -> Indices:
        """Return the number of the class that wins."""
        if self.decides_by_vote:
            return np.argmax(count_votes_like_libsvm(self.svm.values(X)), axis=1)
        return np.argmax(self.probabilities(X), axis=1)


class _SvmPair(Source):
    """Platt's sigmoid of one pair, as half its logit."""

    def __init__(self, svm: TrainedSvm, pair: tuple[int, int], slope: float, shift: float) -> None:
        self.svm, self.classes, self.slope, self.shift = svm, pair, slope, shift

    def decision(self, X: Array) -> Array:
        """Return the decision value."""
        return self.slope * self.svm.pair_values(X, *self.classes) + self.shift

    def decision_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the same with gradients."""
        values, gradients = self.svm.pair_values_and_gradients(X, *self.classes)
        return self.slope * values + self.shift, self.slope * gradients


class _SvmAgainstRest(Source):
    """Half the logarithm of the odds of one class against the best of the others, coupled."""

    def __init__(self, source: SvmSource, one: int) -> None:
        self.source, self.one = source, one

    def decision(self, X: Array) -> Array:
        """Return half the logarithm of the odds."""
        coupled = np.maximum(self.source.probabilities(X), FLOOR)
        rival = best_of_others(coupled, self.one)
        return 0.5 * np.log(coupled[:, self.one] / coupled[np.arange(len(X)), rival])

    def decision_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the same with gradients, through the coupling by its adjoint system."""
        pairs = class_pairs(len(self.source.classes))
        parts = [self.source.pair(*pair).decision_and_gradient(X) for pair in pairs]
        chances = expit(2 * np.column_stack([values for values, _ in parts]))
        values, by_chance = log_odds_and_slopes(chances, self.one)
        by_decision = by_chance * chances * (1 - chances)
        gradient = np.zeros_like(X)
        for place, (_, slope) in enumerate(parts):
            gradient += by_decision[:, place, None] * slope
        return 0.5 * values, gradient


@training_rows.register(SVC)
@training_rows.register(NuSVC)
def _(model: SVC | NuSVC) -> Array:
    return to_dense(model.support_vectors_)


@training_classes.register(SVC)
@training_classes.register(NuSVC)
def _(model: SVC | NuSVC, preprocessing: AffineMap | None, X: Any) -> Indices | None:
    """Return the classes of the support vectors: each stands in the group of its class.

    Any other training row is on its own side of every border, so the SVM's own label of it is the
    true one.
    """
    if not np.shape(model.support_vectors_)[0]:
        return None
    if model.support_.max() >= X.shape[0]:
        return None
    support = X[model.support_]
    support = preprocessing.apply(support) if preprocessing is not None else to_dense(support)
    if not np.allclose(support, to_dense(model.support_vectors_), rtol=1e-9, atol=1e-12):
        return None
    class_index = np.full(X.shape[0], -1, dtype=np.intp)
    class_index[model.support_] = np.repeat(np.arange(len(model.n_support_)), model.n_support_)
    return class_index


@as_source.register(SVC)
@as_source.register(NuSVC)
def _(model: SVC | NuSVC, context: SourceContext) -> SvmSource:
    svm = TrainedSvm.from_sklearn(model)
    class_index = np.argmax(count_votes_like_libsvm(svm.values(context.X)), axis=1)
    if context.class_index is not None:
        class_index = np.where(context.class_index < 0, class_index, context.class_index)
    found = svm_sigmoids(model, svm, context.X, class_index, rng=context.rng)
    by_vote = not context.by_probability
    classes = model.classes_
    return SvmSource(
        svm, classes, found.slopes, found.shifts, by_vote, found.inverse_temperature, model
    )
