"""The sums of the source itself as a scheme, and maps that fall back to them.

Sources are SVMs, kernel densities and Gaussian processes of two classes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from limes._core import Classifier, ExactSums
from limes._typing import Array, Indices, Labels
from limes.model.affine import AffineMap
from limes.model.border_map import BorderMap
from limes.model.coupling import (
    class_pairs,
    count_votes,
    count_votes_like_libsvm,
    couple,
    couple_like_libsvm,
    sigmoid,
    softmax,
)
from limes.model.schemes import (
    MapScheme,
    PairwiseScheme,
    Scheme,
    SharedScheme,
    log_probabilities,
    with_largest_at,
)
from limes.model.svm import TrainedSvm

RULES = ("votes", "strict", "ties broken", "likeliest", "density")
DECISION_SHAPES = ("ovr", "ovo")
# Multiply-adds that take as long as the exponential of one kernel value in float32, fitted to the
# times of SVMs of two classes and 2 to 96 features, one thread: 7.7 on AVX-512, 12.0 on AVX2.
EXPONENTIAL_COST = 8
# Distances in a block of the densities in NumPy: 8 MB of float64.
BLOCK_DISTANCES = 1 << 20
# Probabilities below this are raised to it before the temperature is applied, as in the sources.
MIN_PROBABILITY = 1e-12


@dataclass(frozen=True, eq=False)
class ClassDensities:
    """Sums of Gaussian kernels, one for each class: log prior + log sum exp(-gamma |x - s|²).

    Examples
    --------
    >>> densities = ClassDensities([[0.0], [2.0], [4.0]], 0.5, [2, 1], [0.0, 0.0])
    >>> densities.log_densities(np.array([[1.0]])).round(4)
    array([[ 0.1931, -4.5   ]])
    """

    # Shape (n_vectors, n_features). Those of class 0 first, then those of class 1 and so on.
    vectors: Array
    # Factor of the squared distance.
    gamma: float
    # Shape (n_classes,). Number of vectors of each class.
    n_support: Indices
    # Shape (n_classes,). Added to the logarithm of each sum: log prior and normalisation.
    log_priors: Array

    def __post_init__(self) -> None:
        for name in ("vectors", "log_priors", "n_support"):
            dtype = np.intp if name == "n_support" else np.float64
            array = np.array(getattr(self, name), dtype=dtype, order="C")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        n_classes, shape = len(self.n_support), self.vectors.shape
        if n_classes < 2 or (self.n_support < 0).any():
            raise ValueError(f"n_support must be of 2 classes or more, got {self.n_support!r}.")
        if len(shape) != 2 or shape[0] != self.n_support.sum() or not shape[1]:
            raise ValueError(f"vectors must have {self.n_support.sum()} rows, got {shape!r}.")
        if self.log_priors.shape != (n_classes,):
            raise ValueError(
                f"log_priors must have shape ({n_classes},), got {self.log_priors.shape!r}."
            )
        if not (np.isfinite(self.gamma) and self.gamma >= 0):
            raise ValueError(f"gamma must be finite and 0 or more, got {self.gamma!r}.")

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.n_support)

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return int(self.vectors.shape[1])

    def log_densities(self, X: NDArray[Any]) -> Array:
        """Return log prior + log density of each class; -inf for a class without vectors."""
        rows = np.asarray(X, dtype=np.float64)
        logs = np.empty((len(rows), self.n_classes))
        ends = np.cumsum(self.n_support)
        size = max(1, BLOCK_DISTANCES // max(self.vectors.size, 1))
        for start in range(0, len(rows), size):
            block = slice(start, start + size)
            exponents = self._exponents(rows[block])
            for class_, (end, n) in enumerate(zip(ends, self.n_support, strict=True)):
                logs[block, class_] = _log_sum_exp(exponents[:, end - n : end])
        return logs + self.log_priors

    def _exponents(self, rows: Array) -> Array:
        """Return -gamma |x - s|², -inf where the distance overflows and gamma is above 0."""
        # Differences first: the expanded square loses the digits of small distances.
        with np.errstate(over="ignore", invalid="ignore"):
            differences = rows[:, None, :] - self.vectors
            exponents = -self.gamma * np.einsum("nmd,nmd->nm", differences, differences)
        # 0 times infinity: a kernel of gamma 0 is 1 everywhere.
        exponents[np.isnan(exponents)] = 0.0
        return exponents


@dataclass(frozen=True, eq=False)
class PairSigmoids:
    """Platt's sigmoids of all pairs of classes, and how their probabilities are coupled.

    P(second | pair) = 1 / (1 + exp(-(slope f + shift))), where a positive f means the second class.
    """

    # Shape (n_pairs,), both.
    slopes: Array
    shifts: Array
    # Whether pairs are coupled by LIBSVM's iteration, which stops early, instead of exactly.
    like_libsvm: bool = False
    # Exponent that calibrates coupled probabilities.
    inverse_temperature: float = 1.0
    # Whether LIBSVM's iteration is done for two classes as well, as in ``SVC(probability=True)``.
    iterate_two_classes: bool = False

    def __post_init__(self) -> None:
        for name in ("slopes", "shifts"):
            object.__setattr__(self, name, np.array(getattr(self, name), dtype=np.float64))
        if self.slopes.ndim != 1 or self.slopes.shape != self.shifts.shape:
            raise ValueError(
                "slopes and shifts must have one number for each pair, got the shapes "
                f"{self.slopes.shape!r} and {self.shifts.shape!r}."
            )
        if not (np.isfinite(self.inverse_temperature) and self.inverse_temperature > 0):
            raise ValueError(
                f"inverse_temperature must be finite and above 0, got {self.inverse_temperature!r}."
            )

    def apply(self, values: Array) -> Array:
        """Return the probabilities of all classes, from the decision values of all pairs."""
        logits = self.slopes * values + self.shifts
        if self.like_libsvm:
            coupled = couple_like_libsvm(
                sigmoid(logits),
                complements=sigmoid(-logits),
                iterate_two_classes=self.iterate_two_classes,
            )
        else:
            coupled = couple(sigmoid(logits))
        if self.inverse_temperature == 1.0:
            return coupled
        return softmax(self.inverse_temperature * np.log(np.maximum(coupled, MIN_PROBABILITY)))


@dataclass(frozen=True, eq=False)
class Calibrators:
    """The functions of ``CalibratedClassifierCV``, one for each column of the decision function.

    Two classes have one function, that of the second class. Those of more classes are normalised to
    a sum of 1 as scikit-learn does: equal probabilities where all are 0.
    """

    # Shape (n_columns, 2). Sigmoids 1 / (1 + exp(a f + b)); None for isotonic functions.
    sigmoids: Array | None = None
    # Thresholds of f, ascending, and the values there, between which is interpolated.
    isotonic: tuple[tuple[Array, Array], ...] = ()

    def __post_init__(self) -> None:
        if (self.sigmoids is None) == (not self.isotonic):
            raise ValueError("expected either sigmoids or isotonic functions, got both or none.")
        if self.sigmoids is not None:
            object.__setattr__(self, "sigmoids", np.array(self.sigmoids, dtype=np.float64))
            if np.ndim(self.sigmoids) != 2 or np.shape(self.sigmoids)[1] != 2:
                raise ValueError(
                    f"sigmoids must have the shape (n, 2), got {np.shape(self.sigmoids)!r}."
                )
        functions = tuple(
            (np.array(x, dtype=np.float64), np.array(y, dtype=np.float64)) for x, y in self.isotonic
        )
        object.__setattr__(self, "isotonic", functions)
        for x, y in functions:
            if x.ndim != 1 or x.shape != y.shape or not len(x) or (np.diff(x) < 0).any():
                raise ValueError(
                    "an isotonic function must have ascending thresholds and as many values, got "
                    f"the shapes {x.shape!r} and {y.shape!r}."
                )

    @property
    def n_columns(self) -> int:
        """Number of functions."""
        return len(self.isotonic) if self.sigmoids is None else len(self.sigmoids)

    def apply(self, decision: Array) -> Array:
        """Return the probabilities of all classes, from the source's decision function."""
        columns = decision[:, None] if decision.ndim == 1 else decision
        if self.sigmoids is not None:
            found = sigmoid(-(columns * self.sigmoids[:, 0] + self.sigmoids[:, 1]))
        else:
            pairs = zip(columns.T, self.isotonic, strict=True)
            found = np.column_stack([np.interp(column, x, y) for column, (x, y) in pairs])
        if self.n_columns == 1:
            return np.column_stack([1.0 - found[:, 0], found[:, 0]])
        sums = found.sum(axis=1, keepdims=True)
        uniform = np.full_like(found, 1.0 / self.n_columns)
        return np.divide(found, sums, out=uniform, where=sums != 0)


@dataclass(frozen=True, eq=False)
class ExactScheme(Scheme):
    """The sums of the source, evaluated as they are.

    Examples
    --------
    >>> from limes.model.svm import Kernel
    >>> svm = TrainedSvm(Kernel("linear"), [[0.0], [2.0]], [[0.5, -0.5]], [1.0], [1, 1])
    >>> scheme = ExactScheme(svm)
    >>> rows = np.array([[0.0], [3.0]])
    >>> scheme.decision(rows), scheme.classify(rows)
    (array([-1.,  2.]), array([0, 1]))
    """

    name: ClassVar[str] = "exact"
    sums: TrainedSvm | ClassDensities
    # Linear steps before the source; None where it takes raw rows.
    preprocessing: AffineMap | None = None
    # "votes": most pairs, as LIBSVM counts them (0 is for the second class). "strict": two classes,
    # the second above 0 only (Gaussian processes, one-class SVMs). "ties broken": the largest of
    # scikit-learn's one-vs-rest decision function. "likeliest": the largest probability. "density":
    # the largest log density. The first class of `sums` among equals wins.
    rule: str = "votes"
    # Shape (n_classes,). Class index of each class of `sums`, whose order decides ties; empty for
    # the same order.
    class_order: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    # Columns of the decision function of three classes or more: "ovr", one a class, or "ovo", one a
    # pair, as in ``SVC``.
    decision_shape: str = "ovr"
    # None where the source has none; densities need none.
    probabilities: PairSigmoids | Calibrators | None = None
    maps: tuple[BorderMap, ...] = field(default=(), init=False, repr=False)
    n_classes: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        n_classes = self.sums.n_classes
        object.__setattr__(self, "n_classes", n_classes)
        order = np.array(self.class_order if len(self.class_order) else range(n_classes))
        if order.dtype.kind not in "iu" or sorted(order.tolist()) != list(range(n_classes)):
            raise ValueError(
                f"class_order must have each class index below {n_classes} once, got "
                f"{order.tolist()!r:.100}."
            )
        object.__setattr__(self, "class_order", order.astype(np.intp))
        self._check_rule()
        self._check_probabilities()
        step = self.preprocessing
        if step is not None and step.n_outputs != self.sums.n_features:
            raise ValueError(
                f"preprocessing must have {self.sums.n_features} outputs, got {step.n_outputs!r}."
            )

    def _check_rule(self) -> None:
        """Raise unless the rule exists and fits the sums."""
        is_density = isinstance(self.sums, ClassDensities)
        if self.rule not in RULES or (self.rule == "density") != is_density:
            known = ["density"] if is_density else [rule for rule in RULES if rule != "density"]
            raise ValueError(f"rule must be one of {known}, got {self.rule!r}.")
        if self.rule == "strict" and self.n_classes > 2:
            raise ValueError(f"the rule 'strict' needs two classes, got {self.n_classes!r}.")
        if self.rule == "likeliest" and self.probabilities is None:
            raise ValueError("the rule 'likeliest' needs probabilities, got None.")
        if self.decision_shape not in DECISION_SHAPES:
            raise ValueError(
                f"decision_shape must be one of {list(DECISION_SHAPES)}, got "
                f"{self.decision_shape!r}."
            )

    def _check_probabilities(self) -> None:
        """Raise unless there is a function for each pair or each column of decision values."""
        n_pairs = self.n_classes * (self.n_classes - 1) // 2
        found = self.probabilities
        if found is None:
            return
        if isinstance(self.sums, ClassDensities):
            raise ValueError(f"densities have their own probabilities, got {found!r:.60}.")
        if isinstance(found, PairSigmoids):
            expected, n_found = n_pairs, len(found.slopes)
        else:
            expected, n_found = self.n_classes if self.n_classes > 2 else 1, found.n_columns
            if self.n_classes > 3 and self.decision_shape == "ovo":
                raise ValueError("calibrators need the decision_shape 'ovr', got 'ovo'.")
        if n_found != expected:
            raise ValueError(f"probabilities must have {expected} functions, got {n_found!r}.")

    @property
    def has_core_rule(self) -> bool:
        """Whether the compiled core classifies; otherwise NumPy does, from the values."""
        return self.rule != "likeliest"

    @cached_property
    def core_sums(self) -> ExactSums:
        """The sums, packed for the compiled core."""
        sums, step = self.sums, self.preprocessing
        steps: tuple[Any, ...] | None = None
        if step is not None:
            is_dense = step.matrix is not None
            steps = (
                (step.shift, step.matrix) if is_dense else (step.shift, step.columns, step.scale)
            )
        # The core has no rule of probabilities; it computes the values.
        rule = "votes" if self.rule == "likeliest" else self.rule
        common: dict[str, Any] = {
            "rule": rule,
            "class_order": self.class_order,
            "preprocessing": steps,
        }
        if isinstance(sums, ClassDensities):
            return ExactSums(
                sums.vectors, sums.n_support, None, sums.log_priors, gamma=sums.gamma, **common
            )
        kernel = sums.kernel
        return ExactSums(
            sums.vectors,
            sums.n_support,
            sums.dual_coef,
            sums.intercepts,
            kernel=kernel.name,
            gamma=kernel.gamma,
            degree=kernel.degree,
            coef0=kernel.coef0,
            **common,
        )

    @cached_property
    def classifier(self) -> Classifier:
        """The compiled sums with their class rule, which ``class_index`` defines."""
        if not self.has_core_rule:
            raise ValueError(f"the core has no rule {self.rule!r}: use label and predictor.")
        return Classifier(self.core_sums)

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        step = self.preprocessing
        return self.sums.n_features if step is None else step.n_features

    @property
    def cost(self) -> int:
        """Multiply-adds per row, an exponential counted as ``EXPONENTIAL_COST`` of them."""
        step = self.preprocessing
        before = 0 if step is None or not step.is_dense else step.n_features * step.n_outputs
        n_vectors, n_features = self.sums.vectors.shape
        n_weights = 1
        if isinstance(self.sums, TrainedSvm):
            if self.sums.kernel.name == "linear":
                return before + len(self.sums.intercepts) * n_features
            n_weights = self.n_classes - 1
        return before + n_vectors * (n_features + n_weights + EXPONENTIAL_COST)

    @property
    def n_bytes(self) -> int:
        """Size of the vectors and weights, in float32 where most rows are decided in it."""
        if isinstance(self.sums, ClassDensities):
            return 4 * (self.sums.vectors.size + self.n_classes)
        sums = self.sums
        if sums.kernel.name == "linear":
            return 8 * len(sums.intercepts) * (sums.n_features + 1)
        numbers = sums.vectors.size + sums.dual_coef.size + sums.intercepts.size
        return (4 if sums.kernel.name == "rbf" else 8) * numbers

    @property
    def has_probabilities(self) -> bool:
        """Whether there is a probability of each class."""
        return self.probabilities is not None or isinstance(self.sums, ClassDensities)

    def into_range(self, X: NDArray[Any]) -> tuple[NDArray[Any], int]:
        """Return the rows as they are, and the first with a NaN or an infinity, or -1."""
        is_finite = np.isfinite(X).all(axis=1)
        return X, -1 if is_finite.all() else int(np.argmin(is_finite))

    def values(self, X: NDArray[Any], *, n_threads: int = 1) -> Array:
        """Return the decision values of all pairs of `sums`, or its log densities, in float64.

        A positive value means the second class of a pair.
        """
        return self.core_sums.values(X, n_threads=n_threads)

    def class_index(self, values: Array) -> Indices:
        """Return the class index of each row: the definition of the rules."""
        if self.rule == "strict":
            winners = (values[:, 0] > 0).astype(np.intp)
        elif self.rule == "votes":
            winners = np.argmax(count_votes_like_libsvm(values), axis=1)
        elif self.rule == "ties broken":
            winners = np.argmax(one_vs_rest(values), axis=1)
        elif self.rule == "density":
            winners = np.argmax(values, axis=1)
        else:
            winners = np.argmax(self._own_probabilities(values), axis=1)
        return self.class_order[winners]

    def label(self, X: NDArray[Any], labels: Labels, *, n_threads: int = 1) -> tuple[Labels, int]:
        """Return the label of each row, and the first row without a label, or -1."""
        if self.has_core_rule:
            return self.classifier.label(X, labels, n_threads=n_threads)
        if X.dtype.kind != "f":
            X = X.astype(np.float32)
        is_finite = np.isfinite(X).all(axis=1)
        index = np.zeros(len(X), dtype=np.intp)
        index[is_finite] = self.class_index(self.values(X[is_finite], n_threads=n_threads))
        return labels[index], -1 if is_finite.all() else int(np.argmin(is_finite))

    def predictor(self, labels: list[Any]) -> Callable[[Any], Any]:
        """Return a function from one row to its label, from several to a list of labels."""
        if self.has_core_rule:
            return self.classifier.predictor(labels)
        return numpy_predictor(self, labels)

    def predict_proba(self, X: NDArray[Any], *, n_threads: int = 1) -> Array:
        """Return the source's probability of each class."""
        if not self.has_probabilities:
            raise AttributeError("an exact scheme without probabilities has no predict_proba.")
        return self._in_class_order(self._own_probabilities(self.values(X, n_threads=n_threads)))

    def decision(self, X: NDArray[Any], *, n_threads: int = 1) -> Array:
        """Return the source's decision function.

        Where the class is that of the largest probability or density: half the log odds of two
        classes, or the logarithms of the probabilities of more.
        """
        values = self.values(X, n_threads=n_threads)
        if self.rule not in ("density", "likeliest"):
            return self._source_decision(values)
        if self.n_classes > 2:
            return self._in_class_order(log_probabilities(self._own_probabilities(values)))
        return (0.5 if self.class_order[1] == 1 else -0.5) * self._log_odds(values)

    def _source_decision(self, values: Array) -> Array:
        """Return what ``SVC.decision_function`` does, from the values of pairs."""
        if self.n_classes == 2:
            return values[:, 0] if self.class_order[1] == 1 else -values[:, 0]
        if self.decision_shape == "ovr":
            return self._in_class_order(one_vs_rest(values))
        # As LIBSVM's, positive for the first class of a pair.
        places = {pair: place for place, pair in enumerate(class_pairs(self.n_classes))}
        own_class = np.argsort(self.class_order).tolist()
        columns = []
        for first, second in class_pairs(self.n_classes):
            i, j = own_class[first], own_class[second]
            columns.append(-values[:, places[i, j]] if i < j else values[:, places[j, i]])
        return np.column_stack(columns)

    def _own_probabilities(self, values: Array) -> Array:
        """Return probabilities in the order of the classes of `sums`."""
        if self.probabilities is None:
            return _densities_to_probabilities(values)
        # Sums that overflow are infinite or NaN; that is defined, and no reason to warn.
        with np.errstate(over="ignore", invalid="ignore"):
            if isinstance(self.probabilities, PairSigmoids):
                return self.probabilities.apply(values)
            # Calibrators are in the order of the model's classes.
            return self.probabilities.apply(self._source_decision(values))[:, self.class_order]

    def _log_odds(self, values: Array) -> Array:
        """Return the log odds of the second of two classes of `sums`."""
        if isinstance(self.sums, ClassDensities):
            # Halved, so that the difference of two densities of 0 is finite.
            logs = np.maximum(values, 0.5 * np.finfo(np.float64).min)
            return logs[:, 1] - logs[:, 0]
        logs = log_probabilities(self._own_probabilities(values))
        return logs[:, 1] - logs[:, 0]

    def _in_class_order(self, columns: Array) -> Array:
        """Return columns of the classes of `sums` in the order of the model's classes."""
        return np.ascontiguousarray(columns[:, np.argsort(self.class_order)])


def one_vs_rest(values: Array) -> Array:
    """Return scikit-learn's one-vs-rest decision function, from the values of pairs.

    The votes of each class, plus its summed values mapped into (-1/3, 1/3), which order equal
    votes. A value of 0 counts for the first class.

    Examples
    --------
    >>> one_vs_rest(np.array([[-1.0, 0.0, 2.0]])).round(4)
    array([[ 2.1667, -0.25  ,  1.2222]])
    """
    votes = count_votes(values)
    sums = np.zeros(votes.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        for place, (first, second) in enumerate(class_pairs(votes.shape[1])):
            sums[:, first] -= values[:, place]
            sums[:, second] += values[:, place]
    # Infinite sums are mapped to the ends of the interval.
    largest = np.finfo(np.float64).max / 4.0
    sums = np.clip(sums, -largest, largest)
    return np.asarray(votes + sums / (3.0 * (np.abs(sums) + 1.0)))


def numpy_predictor(scheme: Scheme, labels: list[Any]) -> Callable[[Any], Any]:
    """Return a function from one row to its label, for schemes that the core does not know."""
    numbers = np.arange(scheme.n_classes)

    def predict(row: Any) -> Any:
        rows = np.asarray(row, dtype=np.float64)
        if rows.ndim not in (1, 2) or rows.shape[-1] != scheme.n_features:
            raise ValueError(
                f"a row must have {scheme.n_features} numbers, got the shape {rows.shape!r}."
            )
        found, _ = scheme.label(np.atleast_2d(rows), numbers)
        named = [labels[class_] for class_ in found]
        return named if rows.ndim == 2 else named[0]

    return predict


def _log_sum_exp(exponents: Array) -> Array:
    """Return the logarithm of the sum of exponentials of each row; -inf where all are."""
    if not exponents.shape[1]:
        return np.full(len(exponents), -np.inf)
    largest = exponents.max(axis=1)
    finite = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(exponents - finite[:, None]).sum(axis=1)) + finite)


def _densities_to_probabilities(logs: Array) -> Array:
    """Return probabilities from log densities; equal ones where every density is 0."""
    return softmax(np.where(np.isfinite(logs.max(axis=1, keepdims=True)), logs, 0.0))


@dataclass(frozen=True, eq=False)
class FallbackScheme(Scheme):
    """A map that hands the rows it is least certain of to the exact sums of the source.

    A row goes to the exact sums where ``MapScheme.margins`` is below `margin`, or where a number is
    so large that the sums of the map could overflow.

    Examples
    --------
    >>> from limes.model.schemes import PairwiseScheme
    >>> from limes.model.svm import Kernel
    >>> line = BorderMap.from_borders(points=[[1.5]], normals=[[1.0]])
    >>> svm = TrainedSvm(Kernel("linear"), [[0.0], [2.0]], [[0.5, -0.5]], [1.0], [1, 1])
    >>> scheme = FallbackScheme(PairwiseScheme((line,), 2), ExactScheme(svm), margin=1.0)
    >>> scheme.classify(np.array([[0.5], [1.25], [2.5]]))
    array([0, 1, 1])
    """

    # One map: a ``SharedScheme``, or a ``PairwiseScheme`` of two classes.
    base: MapScheme
    # With a rule of the core: any but "likeliest".
    exact: ExactScheme
    # Difference in log odds of the two likeliest classes.
    margin: float
    # Expected share of rows that go to the exact sums.
    share: float = 0.0
    maps: tuple[BorderMap, ...] = field(default=(), init=False, repr=False)
    n_classes: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        base, exact = self.base, self.exact
        object.__setattr__(self, "maps", base.maps)
        object.__setattr__(self, "n_classes", base.n_classes)
        is_pair = isinstance(base, PairwiseScheme) and base.n_classes == 2
        if len(base.maps) != 1 or not (is_pair or isinstance(base, SharedScheme)):
            raise ValueError(
                "base must be a shared scheme, or a pairwise scheme of two classes, got "
                f"{base.name!r} with {len(base.maps)} maps."
            )
        if not exact.has_core_rule:
            raise ValueError(
                f"exact must have a rule of the core, got {exact.rule!r}, which needs NumPy."
            )
        sizes = (base.n_classes, base.n_features), (exact.n_classes, exact.n_features)
        if sizes[0] != sizes[1]:
            raise ValueError(
                "base and exact must have the same classes and features, got "
                f"(n_classes, n_features) = {sizes[0]!r} and {sizes[1]!r}."
            )
        # Within float32, which the core compares in.
        for name, limit in (("margin", 1e30), ("share", 1.0)):
            if not 0 <= getattr(self, name) <= limit:
                raise ValueError(
                    f"{name} must be from 0 to {limit:g}, got {getattr(self, name)!r}."
                )

    @cached_property
    def classifier(self) -> Classifier:
        """The compiled map with its fallback, which ``falls_back`` defines."""
        sums = self.exact.core_sums
        return Classifier(self.base.compiled, exact=sums, fallback_margin=float(self.margin))

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the scheme of the map."""
        return self.base.name

    @property
    def double(self) -> bool:
        """Whether the map is computed in float64."""
        return self.base.double

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return self.base.n_features

    @property
    def cost(self) -> int:
        """Expected multiply-adds per row."""
        return self.base.cost + round(self.share * self.exact.cost)

    @property
    def n_bytes(self) -> int:
        """Size of the map and of the exact sums."""
        return self.base.n_bytes + self.exact.n_bytes

    def without_fallback(self) -> MapScheme:
        """Return the map alone."""
        return self.base

    def into_range(self, X: NDArray[Any]) -> tuple[NDArray[Any], int]:
        """Return the rows as they are, and the first with a NaN or an infinity, or -1."""
        return self.exact.into_range(X)

    def label(self, X: NDArray[Any], labels: Labels, *, n_threads: int = 1) -> tuple[Labels, int]:
        """Return the label of each row, and the first row without a label, or -1."""
        return self.classifier.label(X, labels, n_threads=n_threads)

    def predictor(self, labels: list[Any]) -> Callable[[Any], Any]:
        """Return a function from one row to its label, from several to a list of labels."""
        return self.classifier.predictor(labels)

    def falls_back(self, X: NDArray[Any], *, n_threads: int = 1) -> NDArray[np.bool_]:
        """Return which rows go to the exact sums."""
        return self.values_and_fallback(X, n_threads)[1]

    def predict_proba(self, X: NDArray[Any], *, n_threads: int = 1) -> Array:
        """Return the map's probabilities; the largest is that of the predicted class.

        Computed in the core; ``with_largest_at`` defines how the exact sums change them.
        """
        return self.classifier.probabilities(X, n_threads=n_threads)[0]

    @property
    def core_probabilities(self) -> Classifier | None:
        """The classifier of the core that computes ``predict_proba``."""
        return self.classifier

    def decision(self, X: NDArray[Any], *, n_threads: int = 1) -> Array:
        """Return the value of two classes, or the logarithms of the probabilities of more.

        Two classes: half the log odds where the exact sums changed the class, so that the sign
        always is that of the predicted class.
        """
        if self.n_classes > 2:
            return log_probabilities(self.predict_proba(X, n_threads=n_threads))
        values, winners = self._values_and_classes(X, n_threads)
        logs = log_probabilities(with_largest_at(self.base.raw_probabilities(values), winners))
        is_changed = winners != self.base.class_index(values)
        own = values[:, 0] if values.shape[1] == 1 else 0.5 * (values[:, 1] - values[:, 0])
        return np.where(is_changed, 0.5 * (logs[:, 1] - logs[:, 0]), own.astype(np.float64))

    def _values_and_classes(self, X: NDArray[Any], n_threads: int) -> tuple[NDArray[Any], Indices]:
        """Return the values of the map, and the class index of each row."""
        values, is_exact = self.values_and_fallback(X, n_threads)
        winners = self.base.class_index(values)
        if is_exact.any():
            winners[is_exact] = self.exact.classify(X[is_exact], n_threads=n_threads)
        return values, winners

    def values_and_fallback(
        self, X: NDArray[Any], n_threads: int
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return the values of the map, and which rows go to the exact sums."""
        rows = self.base.classifier.scale_into_range(X)
        values = self.base.values(rows, n_threads=n_threads)
        is_exact = self.base.margins(values) < values.dtype.type(self.margin)
        if rows is not X:
            is_exact |= (rows != X).any(axis=1)
        return values, is_exact
