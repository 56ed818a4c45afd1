"""Interface of a source, the registry of sources, and sources shifted or rescaled."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limes._typing import Array, Indices, Labels
from limes.model.affine import AffineMap
from limes.model.exact import ExactScheme

# Smaller probabilities are raised to this one, so that logits are finite: no border is near.
MIN_PROBABILITY = 1e-12

# A function of rows that returns values and their gradients.
DecisionAndGradient: TypeAlias = Callable[[Array], tuple[Array, Array]]


class Source(ABC):
    """One border: a decision value, zero on the border, and its gradient.

    The decision value is half a logit: its hyperbolic tangent is the difference in conditional
    probability (the paper's r) between the two sides.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from limes.sources import SourceContext, as_source
    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
    >>> context = SourceContext(X, y, by_probability=False, rng=np.random.default_rng(0))
    >>> source = as_source(LogisticRegression().fit(X, y), context)
    >>> border = source.pair_border(0, 1)
    >>> border.decision(X) > 0
    array([False, False,  True,  True])
    """

    @abstractmethod
    def decision(self, X: Array) -> Array:
        """Return the decision value of each row: (n_rows,).

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Positive on the side of the second class.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> from limes.sources import SourceContext, as_source
        >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
        >>> context = SourceContext(X, y, by_probability=False, rng=np.random.default_rng(0))
        >>> source = as_source(LogisticRegression().fit(X, y), context)
        >>> border = source.pair_border(0, 1)
        >>> abs(border.decision(np.array([[2.0]])).item()) < 1e-3
        True
        """

    @abstractmethod
    def decision_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return decision values and gradients, which often share most of their work.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_rows,)
            As ``decision`` returns them.
        gradients : ndarray of shape (n_rows, n_features)
            As ``gradient`` returns them.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> from limes.sources import SourceContext, as_source
        >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
        >>> context = SourceContext(X, y, by_probability=False, rng=np.random.default_rng(0))
        >>> source = as_source(LogisticRegression().fit(X, y), context)
        >>> border = source.pair_border(0, 1)
        >>> values, gradients = border.decision_and_gradient(X)
        >>> values.shape, gradients.shape
        ((4,), (4, 1))
        """

    def gradient(self, X: Array) -> Array:
        """Return the gradient of the decision value at each row: (n_rows, n_features).

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            Derivatives of the decision value.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> from limes.sources import SourceContext, as_source
        >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
        >>> context = SourceContext(X, y, by_probability=False, rng=np.random.default_rng(0))
        >>> source = as_source(LogisticRegression().fit(X, y), context)
        >>> border = source.pair_border(0, 1)
        >>> bool((border.gradient(X) > 0).all())
        True
        """
        return self.decision_and_gradient(X)[1]


class MulticlassSource(ABC):
    """All borders of one classifier, its probabilities and its predictions.

    A class index refers to ``classes``. Positive decision values mean the second class of a pair,
    or the one class against the rest.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from limes.sources import SourceContext, as_source
    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
    >>> context = SourceContext(X, y, by_probability=False, rng=np.random.default_rng(0))
    >>> source = as_source(LogisticRegression().fit(X, y), context)
    >>> source.n_features, source.predict_index(X).tolist()
    (1, [0, 0, 1, 1])
    """

    classes: Labels
    n_features: int
    decides_by_vote: bool = False
    # Approximate cost of evaluating the source at one row, in multiply-adds.
    query_cost: float = 1e5
    # Differences of the two largest logits of rows that the classifier was trained without; None
    # where it was not trained again.
    out_of_fold_margins: Array | None = None

    @property
    def multiply_adds(self) -> float:
        """The query cost without other operations, such as exponentials."""
        return self.query_cost

    @property
    def gradient_cost(self) -> float:
        """Approximate cost of a gradient at one row: here, of central differences."""
        return 2.0 * self.n_features * self.query_cost

    @abstractmethod
    def pair_border(self, first: int, second: int) -> Source:
        """Return the border between two classes.

        Parameters
        ----------
        first, second : int
            Class indices.

        Returns
        -------
        Source
            Its decision value is positive for the second class.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> from limes.sources import SourceContext, as_source
        >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
        >>> context = SourceContext(X, y, by_probability=False, rng=np.random.default_rng(0))
        >>> source = as_source(LogisticRegression().fit(X, y), context)
        >>> source.pair_border(0, 1).decision(X[:1]).item() < 0
        True
        """

    @abstractmethod
    def one_vs_rest(self, positive: int) -> Source:
        """Return the border between a class and all others.

        Parameters
        ----------
        positive : int
            Class index.

        Returns
        -------
        Source
            Its decision value is positive for the class.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> from limes.sources import SourceContext, as_source
        >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
        >>> context = SourceContext(X, y, by_probability=False, rng=np.random.default_rng(0))
        >>> source = as_source(LogisticRegression().fit(X, y), context)
        >>> source.one_vs_rest(0).decision(X[:1]).item() > 0
        True
        """

    @abstractmethod
    def probabilities(self, X: Array) -> Array:
        """Return the probability of each class: (n_rows, n_classes).

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            In the order of ``classes``.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> from limes.sources import SourceContext, as_source
        >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
        >>> context = SourceContext(X, y, by_probability=False, rng=np.random.default_rng(0))
        >>> source = as_source(LogisticRegression().fit(X, y), context)
        >>> source.probabilities(np.array([[2.0]])).round(2)
        array([[0.5, 0.5]])
        """

    def calibrated_probabilities(self, X: Array) -> Array:
        """Return the probabilities to train on: recalibrated where the source can do so.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            In the order of ``classes``.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> from limes.sources import SourceContext, as_source
        >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
        >>> context = SourceContext(X, y, by_probability=False, rng=np.random.default_rng(0))
        >>> source = as_source(LogisticRegression().fit(X, y), context)
        >>> bool((source.calibrated_probabilities(X) == source.probabilities(X)).all())
        True
        """
        return self.probabilities(X)

    def pair_decision(
        self, pair: tuple[int, int], X: Array, probabilities: NDArray[np.floating]
    ) -> Array:
        """Return the decision value of a pair, from class probabilities computed before.

        Parameters
        ----------
        pair : tuple of two int
            Class indices.
        X : ndarray of shape (n_rows, n_features)
            Rows.
        probabilities : ndarray of shape (n_rows, n_classes)
            Theirs, as ``probabilities`` returns them.

        Returns
        -------
        ndarray of shape (n_rows,)
            Half the log odds of the second class.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> from limes.sources import SourceContext, as_source
        >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
        >>> context = SourceContext(X, y, by_probability=False, rng=np.random.default_rng(0))
        >>> source = as_source(LogisticRegression().fit(X, y), context)
        >>> source.pair_decision((0, 1), X, source.probabilities(X)) > 0
        array([False, False,  True,  True])
        """
        both = np.maximum(probabilities[:, pair].astype(np.float64), MIN_PROBABILITY)
        return 0.5 * np.log(both[:, 1] / both[:, 0])

    @abstractmethod
    def logits(self, X: Array) -> Array:
        """Return one logit per class: (n_rows, n_classes).

        A model is trained on them, so the largest should be that of ``predict_index``.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            In the order of ``classes``.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> from limes.sources import SourceContext, as_source
        >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
        >>> context = SourceContext(X, y, by_probability=False, rng=np.random.default_rng(0))
        >>> source = as_source(LogisticRegression().fit(X, y), context)
        >>> source.logits(X).shape
        (4, 2)
        """

    @abstractmethod
    def predict_index(self, X: Array) -> Indices:
        """Return the class index that the classifier's own ``predict`` gives.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of int of shape (n_rows,)
            Indices into ``classes``.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> from limes.sources import SourceContext, as_source
        >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
        >>> context = SourceContext(X, y, by_probability=False, rng=np.random.default_rng(0))
        >>> source = as_source(LogisticRegression().fit(X, y), context)
        >>> source.predict_index(X)
        array([0, 0, 1, 1])
        """


class Shifted(Source):
    """A border where the decision value of another source is not zero but a given offset."""

    def __init__(self, source: Source, offset: float) -> None:
        self.source, self.offset = source, offset

    def decision(self, X: Array) -> Array:
        """Return the decision value less the offset."""
        return self.source.decision(X) - self.offset

    def decision_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the same with gradients."""
        values, gradients = self.source.decision_and_gradient(X)
        return values - self.offset, gradients


class RescaledSource(MulticlassSource):
    """A source of rescaled rows."""

    def __init__(self, source: MulticlassSource, rescaling: AffineMap) -> None:
        self.source, self.rescaling = source, rescaling
        self.classes, self.n_features = source.classes, source.n_features
        self.decides_by_vote, self.query_cost = source.decides_by_vote, source.query_cost
        self.out_of_fold_margins = source.out_of_fold_margins

    @property
    def multiply_adds(self) -> float:
        """Multiply-adds of the inner source."""
        return self.source.multiply_adds

    @property
    def gradient_cost(self) -> float:
        """Cost of a gradient of the inner source."""
        return self.source.gradient_cost

    def pair_border(self, first: int, second: int) -> Source:
        """Return the border between two classes."""
        return _RescaledBorder(self.source.pair_border(first, second), self.rescaling)

    def one_vs_rest(self, positive: int) -> Source:
        """Return the border between a class and all others."""
        return _RescaledBorder(self.source.one_vs_rest(positive), self.rescaling)

    def probabilities(self, X: Array) -> Array:
        """Return the probability of each class."""
        return self.source.probabilities(_undo(X, self.rescaling))

    def calibrated_probabilities(self, X: Array) -> Array:
        """Return the probabilities to train on."""
        return self.source.calibrated_probabilities(_undo(X, self.rescaling))

    def logits(self, X: Array) -> Array:
        """Return one logit per class."""
        return self.source.logits(_undo(X, self.rescaling))

    def predict_index(self, X: Array) -> Indices:
        """Return the class index that the classifier predicts."""
        return self.source.predict_index(_undo(X, self.rescaling))


class _RescaledBorder(Source):
    """One border of a rescaled source."""

    def __init__(self, source: Source, rescaling: AffineMap) -> None:
        self.source, self.rescaling = source, rescaling

    def decision(self, X: Array) -> Array:
        """Return the decision value."""
        return self.source.decision(_undo(X, self.rescaling))

    def decision_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the same with gradients by the rescaled rows."""
        values, gradients = self.source.decision_and_gradient(_undo(X, self.rescaling))
        return values, gradients / self.rescaling.scale


def _undo(X: Array, rescaling: AffineMap) -> Array:
    """Return rows as they were before rescaling."""
    return X / rescaling.scale + rescaling.shift


@dataclass(frozen=True, eq=False)
class SourceContext:
    """The rows that a source is built for, with their classes where known.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Rows, in the space that the source works in.
    class_index : ndarray of shape (n_rows,) or None
        True class indices, -1 where the class of a row is unknown; None if all are.
    by_probability : bool
        Whether borders lie at equal probabilities instead of where ``predict`` changes.
    rng : numpy.random.Generator
        For the folds of a calibration.
    source : MulticlassSource or None, default=None
        The source that was built from these rows, so that its sigmoids are not fitted again.
    sample_weight : ndarray of shape (n_rows,) or None, default=None
        The weights that the classifier was trained with; None for equal ones.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> context = SourceContext(np.zeros((3, 2)), None, by_probability=False, rng=rng)
    >>> context.X.shape
    (3, 2)
    """

    X: Array
    class_index: Indices | None
    by_probability: bool
    rng: np.random.Generator
    source: MulticlassSource | None = None
    sample_weight: Array | None = None


@singledispatch
def as_source(model: Any, context: SourceContext) -> MulticlassSource:
    """Return a fitted classifier, already taken out of its pipeline, as a source.

    Each module of this package registers the classifiers that it handles; ``generic`` handles all
    others.

    Parameters
    ----------
    model : classifier
        Fitted.
    context : SourceContext
        The rows of the fit.

    Returns
    -------
    MulticlassSource
        Its borders, probabilities and predictions.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from limes.sources import SourceContext, as_source
    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
    >>> context = SourceContext(X, y, by_probability=False, rng=np.random.default_rng(0))
    >>> source = as_source(LogisticRegression().fit(X, y), context)
    >>> type(source).__name__
    'LogitSource'
    """
    raise TypeError(f"no source is registered for {type(model).__name__}.")


@singledispatch
def training_rows(model: Any) -> Array | None:
    """Return the training rows that a fitted classifier stores; None where it stores none."""
    return None


@singledispatch
def training_classes(model: Any, preprocessing: AffineMap | None, X: Any) -> Indices | None:
    """Return the class indices of those rows of X that the model stores as training rows, else -1.

    None where the model stores none, or was not trained on these rows.
    """
    return None


class NoExactSumsError(ValueError):
    """A classifier has no sums of kernels that the core can compute; the message says why."""


@singledispatch
def exact_scheme(model: Any, context: SourceContext | None) -> ExactScheme:
    """Return a fitted classifier's own sums, already taken out of its pipeline, as a scheme.

    With rows in the context, probabilities are fitted where the classifier has none, and borders at
    equal probabilities are those of these. Raise `NoExactSumsError` where there are no such sums.
    """
    raise NoExactSumsError(
        f"{type(model).__name__} is not a sum of kernels: an SVM, a kernel density classifier or a "
        "Gaussian-process classifier is"
    )


@singledispatch
def binary_decision(model: Any) -> DecisionAndGradient | None:
    """Return a two-class model's ``decision_function`` with its gradient; None if unknown."""
    return None


def best_other_class(scores: Array, excluded: int) -> Indices:
    """Return the class with the largest score, one class being excluded."""
    others = scores.copy()
    others[:, excluded] = -np.inf
    return others.argmax(axis=1)
