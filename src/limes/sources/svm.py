"""An SVM as a source: Platt's sigmoid for each pair, coupled probabilities."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, NuSVC, OneClassSVM
from sklearn.utils.validation import check_is_fitted

from limes._core import thread_count
from limes._typing import Array, Indices, Labels
from limes.model.affine import AffineMap, to_dense
from limes.model.coupling import (
    class_pairs,
    couple,
    log_odds_and_slopes,
)
from limes.model.exact import Calibrators, ExactScheme, PairSigmoids
from limes.model.svm import KERNELS, Kernel, TrainedSvm
from limes.sources.base import (
    MIN_PROBABILITY,
    DecisionAndGradient,
    MulticlassSource,
    NoExactSumsError,
    Source,
    SourceContext,
    as_source,
    best_other_class,
    binary_decision,
    exact_scheme,
    training_classes,
    training_rows,
)
from limes.sources.exact import calibrators_of, decided_by_probability
from limes.sources.pipelines import fit_source
from limes.sources.platt import (
    MAX_CALIBRATION_ROWS,
    N_FOLDS,
    calibration_rows,
    cross_validate,
    fit_pair_sigmoids,
    likeliest_inverse_temperature,
)

# Median slope of the sigmoids that give the logits: P = 0.98 on the margin.
LOGIT_SLOPE = 4.0
# Bound of the ratio between the slope of a pair and the median.
MAX_SLOPE_RATIO = 4.0
# Cost of an exponential in multiply-adds.
EXPONENTIAL_COST = 50.0
# Multiply-adds in which an SVM labels its training rows, above which training it again takes too
# long: training takes about as long.
MAX_TRAINING_COST = 1.2e10
# Out-of-fold rows that suffice for sigmoids and for the distribution of margins.
OUT_OF_FOLD_ROWS = 1500
# Numbers in a block of sparse rows that is made dense: 32 MB of float64.
BLOCK_NUMBERS = 1 << 22


@dataclass(frozen=True, eq=False)
class SvmSource(MulticlassSource):
    """The borders of an SVM, with Platt's sigmoid for each pair."""

    svm: TrainedSvm
    # Shape (n_classes,). Labels in the order of the SVM's classes.
    classes: Labels
    # Shape (n_pairs,). Platt's A and B: P(second) = 1 / (1 + exp(-(A f + B))).
    slopes: Array
    shifts: Array
    # True: a border lies where the SVM's own ``predict`` changes, at f = 0, and the class with most
    # votes wins. False: it lies where two probabilities are equal, at f = -B / A, and the largest
    # coupled probability wins (``svm-predict -b 1``).
    decides_by_vote: bool = True
    # Exponent that calibrates coupled probabilities.
    inverse_temperature: float = 1.0
    # Whether equal votes are decided by summed decision values (``SVC(break_ties=True)``).
    breaks_ties: bool = False
    # Shape (n_classes,). Of classes with equal votes, the first in this order wins; None: the
    # lowest class index.
    tie_order: Indices | None = None
    # Shape (n_out_of_fold,). Differences of the two largest logits of rows that an SVM was trained
    # without, on four fifths of all rows; None where it was not.
    out_of_fold_margins: Array | None = None

    @property
    def n_features(self) -> int:  # type: ignore[override]
        """Number of features."""
        return self.svm.n_features

    @property
    def query_cost(self) -> float:  # type: ignore[override]
        """Multiply-adds and exponentials for one row."""
        return _query_cost(self.svm)

    @property
    def gradient_cost(self) -> float:
        """Twice the products of a query."""
        return 2.0 * self.query_cost

    @property
    def multiply_adds(self) -> float:
        """Support vectors times features."""
        return float(len(self.svm.vectors) * self.svm.n_features)

    def pair_border(self, first: int, second: int) -> "_SvmPair":
        """Return the border between two classes."""
        place = class_pairs(len(self.classes)).index((first, second))
        shift = 0.0 if self.decides_by_vote else self.shifts[place]
        return _SvmPair(self.svm, (first, second), 0.5 * self.slopes[place], 0.5 * shift)

    def one_vs_rest(self, positive: int) -> "_SvmAgainstRest":
        """Return the border where a class is as probable as the best of the others."""
        return _SvmAgainstRest(self, positive)

    def pair_decisions(self, X: Array) -> Array:
        """Return the decision values of all pairs: (n_rows, n_pairs)."""
        shifts = np.zeros_like(self.shifts) if self.decides_by_vote else self.shifts
        return 0.5 * (self.slopes * self.svm.pair_decisions(X) + shifts)

    def pair_decision(
        self, pair: tuple[int, int], X: Array, probabilities: NDArray[np.floating]
    ) -> Array:
        """Return the decision value of a pair, from its own kernel sums."""
        return self.pair_border(*pair).decision(X)

    def probabilities(self, X: Array) -> Array:
        """Return coupled probabilities."""
        return couple(expit(2 * self.pair_decisions(X)))

    def calibrated_probabilities(self, X: Array) -> Array:
        """Return coupled probabilities, calibrated by the inverse temperature."""
        if self.inverse_temperature == 1.0:
            return self.probabilities(X)
        logits = np.log(np.maximum(self.probabilities(X), MIN_PROBABILITY))
        return softmax(self.inverse_temperature * logits, axis=1)

    def logits(self, X: Array) -> Array:
        """Return the least decision value of each class over its pairs.

        The logit of a class that wins all its pairs is above zero, and exceeds the next one by the
        decision value of the pair of the two. Pairs that overlap more have flatter sigmoids, so
        that the softmax of the logits resembles the coupled probabilities.
        """
        slopes, shifts = self._logit_scales()
        if self.tie_order is not None:
            places, signs = reordered_pairs(self.tie_order)
            slopes, shifts = slopes[places], signs * shifts[places]
        sums = self._exact.core_sums
        return _by_blocks(X, lambda rows: sums.logits(rows, slopes, shifts, n_threads=_threads()))

    def predict_index(self, X: Array) -> Indices:
        """Return the class index that wins by votes or by probability."""
        if not self.decides_by_vote:
            return np.argmax(self.probabilities(X), axis=1)
        return _by_blocks(X, lambda rows: self._exact.classify(rows, n_threads=_threads()))

    def margins_of_decisions(self, decisions: Array) -> Array:
        """Return the difference of the two largest logits, from the decision values of pairs."""
        slopes, shifts = self._logit_scales()
        logits = np.full((len(decisions), len(self.classes)), np.inf, order="F")
        for place, (first, second) in enumerate(class_pairs(len(self.classes))):
            values = slopes[place] * (decisions[:, place] + shifts[place])
            np.minimum(logits[:, first], -values, out=logits[:, first])
            np.minimum(logits[:, second], values, out=logits[:, second])
        largest = np.partition(logits, -2, axis=1)[:, -2:]
        return largest[:, 1] - largest[:, 0]

    def _logit_scales(self) -> tuple[Array, Array]:
        """Return slopes and shifts that turn the SVM's decision values into logits of pairs."""
        is_shifted = not self.decides_by_vote
        shifts = self.shifts / self.slopes if is_shifted else np.zeros_like(self.shifts)
        return 0.5 * self._logit_slopes(), shifts

    @cached_property
    def _exact(self) -> ExactScheme:
        """The sums of the SVM, packed for the core, its classes in the order that decides ties."""
        order = np.arange(len(self.classes)) if self.tie_order is None else self.tie_order
        return ExactScheme(
            sums=self.svm if self.tie_order is None else self.svm.reordered(order),
            rule="ties broken" if self.breaks_ties else "votes",
            class_order=order,
        )

    def _logit_slopes(self) -> Array:
        """Return the slopes of the pairs' sigmoids, scaled to the same median for every SVM."""
        logs = np.log(np.maximum(np.abs(self.slopes), MIN_PROBABILITY))
        bound = np.log(MAX_SLOPE_RATIO)
        return LOGIT_SLOPE * np.exp(np.clip(logs - np.median(logs), -bound, bound))


def _query_cost(svm: TrainedSvm) -> float:
    """Return the multiply-adds of an SVM for one row, its exponentials counted as such."""
    return len(svm.vectors) * (svm.n_features + EXPONENTIAL_COST)


def reordered_pairs(order: Indices) -> tuple[Indices, Array]:
    """Return the places of the pairs of reordered classes, and -1 for each that is turned."""
    n_classes = len(order)
    places = {pair: place for place, pair in enumerate(class_pairs(n_classes))}
    pairs = [(order[i], order[j]) for i, j in class_pairs(n_classes)]
    signs = np.array([1.0 if i < j else -1.0 for i, j in pairs])
    return np.array([places[min(pair), max(pair)] for pair in pairs]), signs


def _by_blocks(X: Any, function: Callable[[Array], NDArray[Any]]) -> NDArray[Any]:
    """Apply a function to dense rows of float32 or float64; to sparse ones, block by block."""
    if not sparse.issparse(X):
        rows = np.asarray(X)
        return function(rows if rows.dtype in (np.float32, np.float64) else to_dense(rows))
    rows = X.tocsr()
    n_block = max(1, BLOCK_NUMBERS // max(rows.shape[1], 1))
    starts = range(0, max(rows.shape[0], 1), n_block)
    return np.concatenate([function(to_dense(rows[start : start + n_block])) for start in starts])


def _threads() -> int:
    """Return the number of threads available, of which the core uses as many as pay."""
    return thread_count(-1)


@dataclass(frozen=True, eq=False)
class _SvmPair(Source):
    """Half the logit of the sigmoid of one pair."""

    svm: TrainedSvm
    classes: tuple[int, int]
    slope: float
    shift: float

    def decision(self, X: Array) -> Array:
        """Return the decision value."""
        return self.slope * self.svm.decision(X, *self.classes) + self.shift

    def decision_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the same with gradients."""
        values, gradients = self.svm.decision_and_gradient(X, *self.classes)
        return self.slope * values + self.shift, self.slope * gradients


@dataclass(frozen=True, eq=False)
class _SvmAgainstRest(Source):
    """Half the coupled log odds of one class against the best of the others."""

    source: SvmSource
    positive: int

    def decision(self, X: Array) -> Array:
        """Return half the log odds."""
        coupled = np.maximum(self.source.probabilities(X), MIN_PROBABILITY)
        other = best_other_class(coupled, self.positive)
        return 0.5 * np.log(coupled[:, self.positive] / coupled[np.arange(len(X)), other])

    def decision_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the same with gradients, through the coupling by its adjoint system."""
        pairs = class_pairs(len(self.source.classes))
        borders = [self.source.pair_border(*pair).decision_and_gradient(X) for pair in pairs]
        probabilities = expit(2 * np.column_stack([values for values, _ in borders]))
        values, by_probability = log_odds_and_slopes(probabilities, self.positive)
        by_decision = by_probability * probabilities * (1 - probabilities)
        gradient = np.zeros_like(X)
        for place, (_, pair_gradient) in enumerate(borders):
            gradient += by_decision[:, place, None] * pair_gradient
        return 0.5 * values, gradient


@as_source.register(SVC)
@as_source.register(NuSVC)
def _(model: SVC | NuSVC, context: SourceContext) -> SvmSource:
    svm = svm_from_sklearn(model)
    sigmoids, decisions = _fit_sigmoids(model, svm, context)
    source = SvmSource(
        svm,
        model.classes_,
        sigmoids.slopes,
        sigmoids.shifts,
        decides_by_vote=not context.by_probability,
        inverse_temperature=sigmoids.inverse_temperature,
        breaks_ties=_breaks_ties(model),
    )
    if decisions is None:
        return source
    return replace(source, out_of_fold_margins=source.margins_of_decisions(decisions))


@exact_scheme.register(SVC)
@exact_scheme.register(NuSVC)
def _(model: SVC | NuSVC, context: SourceContext | None) -> ExactScheme:
    _check_kernel(model)
    svm = svm_from_sklearn(model)
    probabilities = _own_probabilities(model, svm)
    if probabilities is None and context is not None and len(context.X):
        probabilities = _fit_sigmoids(model, svm, context)[0]
        if not context.by_probability:
            # As `SvmSource` has them: equal probabilities where the vote of the pair changes.
            probabilities = replace(probabilities, shifts=np.zeros_like(probabilities.shifts))
    scheme = ExactScheme(
        sums=svm,
        rule="ties broken" if _breaks_ties(model) else "votes",
        class_order=np.arange(svm.n_classes),
        decision_shape=model.decision_function_shape,
        probabilities=probabilities,
    )
    is_by_probability = context is not None and context.by_probability
    return decided_by_probability(scheme) if is_by_probability else scheme


@exact_scheme.register
def _(model: OneClassSVM, context: SourceContext | None) -> ExactScheme:
    _check_kernel(model)
    return ExactScheme(sums=one_class_from_sklearn(model), rule="strict", class_order=np.arange(2))


@training_rows.register
def _(model: OneClassSVM) -> Array:
    return to_dense(model.support_vectors_)


@training_rows.register(SVC)
@training_rows.register(NuSVC)
def _(model: SVC | NuSVC) -> Array:
    return to_dense(model.support_vectors_)


@training_classes.register(SVC)
@training_classes.register(NuSVC)
def _(model: SVC | NuSVC, preprocessing: AffineMap | None, X: Any) -> Indices | None:
    """Return the classes of the support vectors, which are sorted by class.

    Every other training row is on the correct side of each border, so that the SVM's prediction is
    its true class.
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


@binary_decision.register(SVC)
@binary_decision.register(NuSVC)
def _(model: SVC | NuSVC) -> DecisionAndGradient:
    svm = svm_from_sklearn(model)
    return lambda X: svm.decision_and_gradient(X, 0, 1)


def svm_from_sklearn(svc: Any) -> TrainedSvm:
    """Return the arrays of a fitted ``SVC`` or ``NuSVC``."""
    if not isinstance(svc, SVC | NuSVC):
        raise TypeError(f"expected a fitted SVC or NuSVC, got {svc!r}.")
    check_is_fitted(svc)
    # With two classes scikit-learn negates LIBSVM's coefficients, with more it does not.
    sign = -1.0 if len(svc.classes_) == 2 else 1.0
    return TrainedSvm(
        kernel=_kernel_of(svc),
        vectors=to_dense(svc.support_vectors_),
        dual_coef=sign * to_dense(svc.dual_coef_),
        intercepts=sign * svc.intercept_,
        n_support=svc.n_support_,
    )


def one_class_from_sklearn(model: OneClassSVM) -> TrainedSvm:
    """Return the one sum as that of two classes: outliers, which have no vectors, and inliers."""
    check_is_fitted(model)
    vectors = to_dense(model.support_vectors_)
    return TrainedSvm(
        kernel=_kernel_of(model),
        vectors=vectors,
        dual_coef=-to_dense(model.dual_coef_),
        intercepts=-model.intercept_,
        n_support=np.array([0, len(vectors)]),
    )


def _kernel_of(svc: Any) -> Kernel:
    """Return the kernel of a fitted SVM."""
    return Kernel(svc.kernel, float(svc._gamma), svc.degree, float(svc.coef0))


def _check_kernel(svc: Any) -> None:
    """Raise an error if the kernel of an SVM is not one of those that the core knows."""
    if not isinstance(svc.kernel, str) or svc.kernel not in KERNELS:
        raise NoExactSumsError(
            f"the kernel {svc.kernel!r} of {type(svc).__name__} is not one of {list(KERNELS)}"
        )


def _breaks_ties(svc: SVC | NuSVC) -> bool:
    """Return whether an SVM predicts the class with the largest one-vs-rest decision value."""
    has_one_per_class = svc.decision_function_shape == "ovr" and len(svc.classes_) > 2
    return bool(svc.break_ties) and has_one_per_class


def _own_probabilities(svc: Any, svm: TrainedSvm) -> PairSigmoids | Calibrators | None:
    """Return the probabilities of an SVM that was fitted with ``probability=True``, else None."""
    calibrated = getattr(svc, "clf_prob", None)
    if calibrated is not None:
        # scikit-learn-intelex calibrates the one-vs-rest decision function instead.
        is_calibrated = svc.decision_function_shape == "ovr" or svm.n_classes == 2
        return calibrators_of(calibrated.calibrated_classifiers_[0]) if is_calibrated else None
    # The public name is deprecated, and warns.
    slopes = getattr(svc, "_probA", None)
    if slopes is None or np.size(slopes) != len(svm.intercepts):
        return None
    return PairSigmoids(-slopes, svc._probB, like_libsvm=True, iterate_two_classes=True)


def _fit_sigmoids(
    svc: Any, svm: TrainedSvm, context: SourceContext
) -> tuple[PairSigmoids, Array | None]:
    """Fit sigmoids to the rows of a context; see ``cross_validated_sigmoids``.

    Rows of unknown class have the class that the SVM predicts.
    """
    if isinstance(context.source, SvmSource):
        source = context.source
        exponent = source.inverse_temperature
        return PairSigmoids(source.slopes, source.shifts, inverse_temperature=exponent), None
    class_index = np.full(len(context.X), -1, dtype=np.intp)
    if context.class_index is not None:
        class_index[:] = context.class_index
    is_unknown = class_index < 0
    if is_unknown.any():
        unknown = context.X[is_unknown]
        class_index[is_unknown] = ExactScheme(sums=svm).classify(unknown, n_threads=_threads())
    return cross_validated_sigmoids(
        svc, svm, context.X, class_index, rng=context.rng, sample_weight=context.sample_weight
    )


def cross_validated_sigmoids(
    svc: Any,
    svm: TrainedSvm,
    X: Array,
    class_index: Indices,
    *,
    rng: np.random.Generator,
    sample_weight: Array | None = None,
) -> tuple[PairSigmoids, Array | None]:
    """Fit Platt's sigmoid for each pair of an SVM's classes.

    The SVM is trained on four fifths of the rows, so that the sigmoids are fitted to out-of-fold
    decision values (Lin, Lin & Weng, 2007), which are returned too: None where only a sample of the
    rows was used, since an SVM of fewer rows has other margins. Where training is not possible (a
    class without rows, a nu that is infeasible in a fold), sigmoids are fitted to the decision
    values of training rows. As in LIBSVM, weights count in the training, not in the sigmoids.
    """
    # Training on rows with many zeros is much faster in sparse form.
    is_sparse = sparse.issparse(svc.support_vectors_)

    def decisions_of_fold(train: Indices, test: Indices) -> Array:
        rows = sparse.csr_array(X[train]) if is_sparse else X[train]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", FutureWarning)
            labels = svc.classes_[class_index[train]]
            weights = None if sample_weight is None else sample_weight[train]
            fold_svc = fit_source(_untrained(svc), rows, labels, weights)
        return svm_from_sklearn(fold_svc).pair_decisions(X[test])

    rows, n_folds = _rows_and_folds(svm, class_index, rng)
    if len(np.unique(class_index)) == svm.n_classes:
        try:
            tested, decisions = cross_validate(
                decisions_of_fold, class_index, rows=rows, n_folds=n_folds
            )
        except ValueError:
            pass
        else:
            slopes, shifts = fit_pair_sigmoids(decisions, class_index[tested])
            coupled = couple(expit(slopes * decisions + shifts))
            exponent = _fit_exponent(coupled, class_index[tested])
            sigmoids = PairSigmoids(slopes, shifts, inverse_temperature=exponent)
            return sigmoids, decisions if len(rows) == len(class_index) else None
    rows = calibration_rows(class_index, rng)
    return PairSigmoids(*fit_pair_sigmoids(svm.pair_decisions(X[rows]), class_index[rows])), None


def _rows_and_folds(
    svm: TrainedSvm, class_index: Indices, rng: np.random.Generator
) -> tuple[Indices, int]:
    """Return the rows of a cross-validation in random order, and its number of folds.

    All rows, and as many folds as leave out ``OUT_OF_FOLD_ROWS``; where training takes too long,
    five folds of a sample.
    """
    n_rows = len(class_index)
    if n_rows > MAX_CALIBRATION_ROWS and n_rows * _query_cost(svm) > MAX_TRAINING_COST:
        return calibration_rows(class_index, rng), N_FOLDS
    return rng.permutation(n_rows), min(N_FOLDS, -(-OUT_OF_FOLD_ROWS * N_FOLDS // max(n_rows, 1)))


def _untrained(svc: Any) -> Any:
    """Return an unfitted copy without probabilities, for which it would be trained five times."""
    copy = clone(svc)
    # The default is False in older versions of scikit-learn, and a word in newer ones.
    return copy.set_params(probability=type(svc)().probability)


def _fit_exponent(coupled: Array, class_index: Indices) -> float:
    """Return the exponent at which coupled probabilities are likeliest; 1 for two classes."""
    if coupled.shape[1] == 2:
        return 1.0
    return likeliest_inverse_temperature(np.log(np.maximum(coupled, MIN_PROBABILITY)), class_index)
