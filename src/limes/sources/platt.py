"""Platt's sigmoid and inverse temperature, by cross-validation."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit, logsumexp
from sklearn.base import clone

from limes._typing import Array, Indices
from limes.model.coupling import class_pairs, couple
from limes.model.svm import TrainedSvm
from limes.sources.base import FLOOR, SourceContext
from limes.subsample import rank_within_class

N_FOLDS = 5
# More rows would change the sigmoid little, and a support vector machine's training time a lot.
MAX_ROWS = 3000
# A margin classifier's decision value f, taken as half a logit: P = 0.88 on the margin, f = 1.
DEFAULT_SLOPE = 2.0
# Newton's method doubles its digits each time; the paper of Lin, Lin & Weng also allows 100 steps.
MAX_STEPS = 100
# Stop at a mean gradient that is rounding, and at a step so short that it changes nothing.
GRADIENT_TOLERANCE = 1e-14
SHORTEST_STEP = 1e-10
# The loss, about 0.1 to 1, is known to this; close to the minimum every step is within it.
ROUNDING = 1e-15
# Keeps the Hessian regular when all rows are far up the sigmoid.
RIDGE = 1e-12


@dataclass(frozen=True, eq=False)
class PairSigmoids:
    """What turns the decision values of all pairs into probabilities."""

    # Shape (n_pairs,). Platt's A and B for each pair.
    slopes: Array
    shifts: Array
    # The power at which coupled probabilities are likeliest, for rows that the machine has not
    # seen: coupling many pairs leaves too much to the classes that lose.
    inverse_temperature: float = 1.0


def svm_sigmoids(
    svc: Any, svm: TrainedSvm, X: Array, class_index: Indices, *, rng: np.random.Generator
) -> PairSigmoids:
    """Fit Platt's sigmoid for each pair of a support vector machine's classes.

    The machine is trained again on four fifths of the rows, five times, so that the sigmoid is
    fitted to decision values of rows that their machine has not seen (Lin, Lin & Weng, 2007).
    Where that cannot be (a class without rows, a nu that a fold makes infeasible), it is fitted to
    the machine's own values.
    """
    # Rows with few numbers are trained on much quicker as such.
    is_sparse = sparse.issparse(svc.support_vectors_)

    def values(train: Indices, test: Indices) -> Array:
        rows = sparse.csr_array(X[train]) if is_sparse else X[train]
        fitted = clone(svc).fit(rows, svc.classes_[class_index[train]])
        return TrainedSvm.from_sklearn(fitted).values(X[test])

    if len(np.unique(class_index)) == svm.n_classes:
        try:
            rows, decisions = _cross_validate(values, class_index, rng=rng)
        except ValueError:
            pass
        else:
            slopes, shifts = pair_sigmoids(decisions, class_index[rows])
            coupled = couple(expit(slopes * decisions + shifts))
            return PairSigmoids(slopes, shifts, _fit_power(coupled, class_index[rows]))
    kept = _draw_rows(class_index, rng)
    return PairSigmoids(*pair_sigmoids(svm.values(X[kept]), class_index[kept]))


def pair_sigmoids(decisions: Array, class_index: Indices) -> tuple[Array, Array]:
    """Fit the sigmoid of each pair to its column of decision values."""
    n_classes = (1 + isqrt(1 + 8 * decisions.shape[1])) // 2
    fitted = [
        pair_sigmoid(decisions[:, place], class_index, pair)
        for place, pair in enumerate(class_pairs(n_classes))
    ]
    slopes, shifts = np.array(fitted).T
    return slopes, shifts


def pair_sigmoid(
    decision: Array, class_index: Indices, pair: tuple[int, int]
) -> tuple[float, float]:
    """Fit the sigmoid of one pair to the rows of its two classes."""
    second = pair[1]
    is_own = np.isin(class_index, pair) & np.isfinite(decision)
    is_second = class_index[is_own] == second
    if is_second.all() or not is_second.any():
        return DEFAULT_SLOPE, 0.0
    slope, shift = fit_sigmoid(decision[is_own], is_second)
    # A sigmoid that falls would turn the classes round: the source is no better than chance there.
    return (slope, shift) if slope > 0 else (DEFAULT_SLOPE, 0.0)


def score_sigmoid(
    model: Any,
    scores: Callable[[Any, Array], Array],
    X: Array,
    class_index: Indices,
    *,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Fit what turns a score a class into logarithms of probabilities, by cross-validation."""

    def values(train: Indices, test: Indices) -> Array:
        return scores(clone(model).fit(X[train], model.classes_[class_index[train]]), X[test])

    try:
        rows, found = _cross_validate(values, class_index, rng=rng)
    except (ValueError, TypeError, AttributeError):
        # A class without rows, or a classifier that cannot be fitted again.
        rows = _draw_rows(class_index, rng)
        found = scores(model, X[rows])
    if found.shape[1] == 2:
        return pair_sigmoid(found[:, 1] - found[:, 0], class_index[rows], (0, 1))
    return _fit_inverse_temperature(found, class_index[rows]), 0.0


def _cross_validate(
    values: Callable[[Indices, Indices], Array], class_index: Indices, *, rng: np.random.Generator
) -> tuple[Indices, Array]:
    """Return rows and their decision values from machines that have not seen them."""
    kept = _draw_rows(class_index, rng)
    tested = [(test, values(train, test)) for train, test in _folds(class_index, kept) if len(test)]
    if not tested:
        raise ValueError("every class has a single row, so none can be kept aside.")
    rows, decisions = zip(*tested, strict=True)
    return np.concatenate(rows), np.concatenate(decisions)


def _draw_rows(class_index: Indices, rng: np.random.Generator) -> Indices:
    """Return at most about MAX_ROWS rows in random order, rows of rare classes all among them."""
    order = rng.permutation(len(class_index))
    if len(order) <= MAX_ROWS:
        return order
    counts = np.bincount(class_index)
    share = np.maximum(2 * N_FOLDS, np.ceil(counts * MAX_ROWS / len(class_index))).astype(int)
    return order[rank_within_class(class_index[order]) < share[class_index[order]]]


def _folds(class_index: Indices, kept: Indices) -> Iterator[tuple[Indices, Indices]]:
    """Deal each class's rows round the folds; a class of one row is always trained on."""
    place = rank_within_class(class_index[kept])
    is_alone = (
        np.bincount(class_index[kept], minlength=class_index.max() + 1)[class_index[kept]] < 2
    )
    for fold in range(N_FOLDS):
        is_test = (place % N_FOLDS == fold) & ~is_alone
        yield kept[~is_test], kept[is_test]


def _fit_power(coupled: Array, class_index: Indices) -> float:
    """Return the power at which coupled probabilities are likeliest; two classes need none."""
    if coupled.shape[1] == 2:
        return 1.0
    return _fit_inverse_temperature(np.log(np.maximum(coupled, FLOOR)), class_index)


def _fit_inverse_temperature(scores: Array, class_index: Indices) -> float:
    """Return the factor at which the softmax of the scores is likeliest."""

    def loss(log_sharpness: float) -> float:
        logits = np.exp(log_sharpness) * scores
        return float(
            np.mean(logsumexp(logits, axis=1) - logits[np.arange(len(class_index)), class_index])
        )

    scale = max(float(np.abs(scores).max(initial=0.0)), np.finfo(float).tiny)
    bounds = np.log(1e-3 / scale), np.log(1e3 / scale)
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))


def _sigmoid_of_scores(
    model: Any, scores: Callable[[Any, Array], Array], context: SourceContext
) -> tuple[float, float]:
    """Fit how sure a score is, if the classes of the rows are known."""
    if context.class_index is None:
        return DEFAULT_SLOPE, 0.0
    return score_sigmoid(model, scores, context.X, context.class_index, rng=context.rng)


def fit_sigmoid(decision: ArrayLike, is_second: ArrayLike) -> tuple[float, float]:
    """Fit P(second | f) = 1 / (1 + exp(-(A f + B))) to decision values and classes.

    Platt's targets, (n₊ + 1) / (n₊ + 2) and 1 / (n₋ + 2) in place of 1 and 0, keep A and B finite
    however well the classes are separated. The cross-entropy is minimised by Newton's method with
    backtracking (Lin, Lin & Weng, 2007); note that their A and B have the opposite sign.

    Decision values that are all equal, or rows of one class only, tell nothing of the slope: then
    A is 0 and B alone gives the mean of the targets. A is below 0 where larger decision values
    go with the first class.

    Examples
    --------
    >>> A, B = fit_sigmoid([-1.0, -1.0, 1.0, 1.0], [False, False, True, True])
    >>> bool(np.isclose(A, np.log(3.0))), bool(np.isclose(B, 0.0))  # targets 1/4 and 3/4
    (True, True)
    >>> fit_sigmoid([5.0, 5.0, 5.0, 5.0], [True, False, True, False])
    (0.0, 0.0)
    """
    values, is_second = _check(decision, is_second)
    n_second = int(is_second.sum())
    n_first = len(values) - n_second
    targets = np.where(is_second, (n_second + 1.0) / (n_second + 2.0), 1.0 / (n_first + 2.0))
    flat = float(logit(targets.mean()))
    centre = float(0.5 * values.min() + 0.5 * values.max())
    scale = float(np.abs(values - centre).max())
    if scale == 0.0 or n_first == 0 or n_second == 0:
        return 0.0, flat
    # Scaled, the steps and their tolerances do not depend on the unit of the decision values.
    A, B = _minimise((values - centre) / scale, targets, np.array([0.0, flat]))
    return A / scale, B - A / scale * centre


def _check(decision: ArrayLike, is_second: ArrayLike) -> tuple[Array, NDArray[np.bool_]]:
    """Return both as arrays of one length, or say what is wrong."""
    values = np.asarray(decision, dtype=np.float64)
    claims = np.asarray(is_second, dtype=bool)
    if values.ndim != 1 or values.shape != claims.shape or len(values) == 0:
        raise ValueError(
            "decision and is_second must be one-dimensional, of one length and not empty, got "
            f"shapes {values.shape!r} and {claims.shape!r}."
        )
    if not np.isfinite(values).all():
        raise ValueError("decision must be finite: it contains NaN or infinity.")
    return values, claims


def _minimise(values: Array, targets: Array, start: Array) -> tuple[float, float]:
    """Take Newton steps, each halved until the loss falls enough."""
    line = start
    loss = _mean_loss(line, values, targets)
    for _ in range(MAX_STEPS):
        gradient, step = _newton_step(line, values, targets)
        if np.abs(gradient).max() < GRADIENT_TOLERANCE:
            break
        length = 1.0
        while length >= SHORTEST_STEP:
            trial = line + length * step
            trial_loss = _mean_loss(trial, values, targets)
            if trial_loss <= loss + 1e-4 * length * float(gradient @ step) + ROUNDING:
                line, loss = trial, trial_loss
                break
            length *= 0.5
        else:
            break
    return float(line[0]), float(line[1])


def _mean_loss(line: Array, values: Array, targets: Array) -> float:
    """Return the mean cross-entropy, without overflow for any decision value."""
    z = line[0] * values + line[1]
    return float(np.mean(np.logaddexp(0.0, z) - targets * z))


def _newton_step(line: Array, values: Array, targets: Array) -> tuple[Array, Array]:
    """Return the gradient of the mean loss, and the step to where a parabola has its minimum."""
    probabilities = expit(line[0] * values + line[1])
    misses = probabilities - targets
    spreads = probabilities * (1.0 - probabilities)
    gradient = np.array([np.mean(misses * values), np.mean(misses)])
    mixed = np.mean(spreads * values)
    hessian = np.array([[np.mean(spreads * values**2), mixed], [mixed, np.mean(spreads)]])
    return gradient, -np.linalg.solve(hessian + RIDGE * np.eye(2), gradient)
