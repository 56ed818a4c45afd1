"""Platt's sigmoid and inverse temperature, by cross-validation."""

from collections.abc import Callable, Iterator
from itertools import islice
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit, logsumexp
from sklearn.base import clone

from limes._typing import Array, Indices
from limes.model.coupling import class_pairs
from limes.sources.base import SourceContext
from limes.sources.pipelines import fit_source
from limes.subsample import rank_within_class

N_FOLDS = 5
# More rows would change the sigmoid little, and the training time of an SVM much.
MAX_CALIBRATION_ROWS = 3000
# Slope of the sigmoid of a margin classifier without labels: P = 0.88 on the margin, f = 1.
DEFAULT_SLOPE = 2.0
# Bounds of an inverse temperature times the largest logit: from nearly even to nearly certain.
MIN_LARGEST_LOGIT, MAX_LARGEST_LOGIT = 1e-3, 1e3
# Newton's method doubles its digits with each step; Lin, Lin & Weng (2007) also allow 100.
MAX_STEPS = 100
# Stop at a mean gradient that is rounding, and at a step too short to change anything.
GRADIENT_TOLERANCE = 1e-14
MIN_STEP = 1e-10
# Rounding error of the loss, which is about 0.1 to 1: close to the minimum every step is within it.
ROUNDING = 1e-15
# Keeps the Hessian regular when the sigmoid is saturated at all rows.
RIDGE = 1e-12


def calibrate_scores(
    model: Any, scores: Callable[[Any, Array], Array], context: SourceContext
) -> tuple[float, float]:
    """Return the inverse temperature, and the shift of two classes, that turn scores into logits.

    Both are fitted by cross-validation where the classes of the rows are known. As in LIBSVM, the
    weights of rows count where the classifier is trained, and not in the fit of both.
    """
    X, class_index, weight = context.X, context.class_index, context.sample_weight
    if class_index is None:
        return DEFAULT_SLOPE, 0.0

    def values(train: Indices, test: Indices) -> Array:
        weights = None if weight is None else weight[train]
        labels = model.classes_[class_index[train]]
        return scores(fit_source(clone(model), X[train], labels, weights), X[test])

    rows = calibration_rows(class_index, context.rng)
    try:
        rows, row_scores = cross_validate(values, class_index, rows=rows)
    except (ValueError, TypeError, AttributeError):
        # A class without rows, or a classifier that cannot be fitted again.
        row_scores = scores(model, X[rows])
    if row_scores.shape[1] == 2:
        return fit_pair_sigmoid(row_scores[:, 1] - row_scores[:, 0], class_index[rows], (0, 1))
    return likeliest_inverse_temperature(row_scores, class_index[rows]), 0.0


def fit_pair_sigmoids(decisions: Array, class_index: Indices) -> tuple[Array, Array]:
    """Return slopes and shifts of the sigmoids of all pairs, a column of decision values each."""
    n_classes = (1 + isqrt(1 + 8 * decisions.shape[1])) // 2
    sigmoids = [
        fit_pair_sigmoid(decisions[:, place], class_index, pair)
        for place, pair in enumerate(class_pairs(n_classes))
    ]
    slopes, shifts = np.array(sigmoids).T
    return slopes, shifts


def fit_pair_sigmoid(
    decision: Array, class_index: Indices, pair: tuple[int, int]
) -> tuple[float, float]:
    """Fit the sigmoid of one pair to the rows of its two classes."""
    is_used = np.isin(class_index, pair) & np.isfinite(decision)
    is_second = class_index[is_used] == pair[1]
    if is_second.all() or not is_second.any():
        return DEFAULT_SLOPE, 0.0
    slope, shift = fit_sigmoid(decision[is_used], is_second)
    # A falling sigmoid would swap the classes: the source is no better than random guessing here.
    return (slope, shift) if slope > 0 else (DEFAULT_SLOPE, 0.0)


def likeliest_inverse_temperature(logits: Array, class_index: Indices) -> float:
    """Return the factor of the logits at which the classes are likeliest."""

    def loss(factor: float) -> float:
        scaled = factor * logits
        true = scaled[np.arange(len(class_index)), class_index]
        return float(np.mean(logsumexp(scaled, axis=1) - true))

    largest = max(float(np.abs(logits).max(initial=0.0)), np.finfo(float).tiny)
    return minimise_over_factor(loss, MIN_LARGEST_LOGIT / largest, MAX_LARGEST_LOGIT / largest)


def fit_slope(decision: Array, probabilities: Array) -> float:
    """Return the slope A at which 1 / (1 + exp(-A f)) is nearest to probabilities of f > 0."""

    def loss(slope: float) -> float:
        logits = slope * decision
        return float(np.mean(np.logaddexp(0.0, logits) - probabilities * logits))

    largest = max(float(np.abs(decision).max(initial=0.0)), np.finfo(float).tiny)
    return minimise_over_factor(loss, MIN_LARGEST_LOGIT / largest, MAX_LARGEST_LOGIT / largest)


def minimise_over_factor(loss: Callable[[float], float], low: float, high: float) -> float:
    """Return the factor between two bounds that minimises a loss, by Brent's method on its log."""
    result = minimize_scalar(
        lambda log_factor: loss(np.exp(log_factor)),
        bounds=(np.log(low), np.log(high)),
        method="bounded",
    )
    return float(np.exp(result.x))


def cross_validate(
    values: Callable[[Indices, Indices], Array],
    class_index: Indices,
    *,
    rows: Indices,
    n_folds: int = N_FOLDS,
) -> tuple[Indices, Array]:
    """Return rows and their ``values(train, test)``, each fifth of the rows being a test fold.

    With fewer than ``N_FOLDS`` folds, the rows of the first ones.
    """
    parts = islice(_folds(class_index, rows), n_folds)
    folds = [(test, values(train, test)) for train, test in parts if len(test)]
    if not folds:
        raise ValueError("expected a class with two rows or more, got one row in each class.")
    tested, tested_values = zip(*folds, strict=True)
    return np.concatenate(tested), np.concatenate(tested_values)


def calibration_rows(class_index: Indices, rng: np.random.Generator) -> Indices:
    """Sample about MAX_CALIBRATION_ROWS rows at most, in random order, with all of rare classes."""
    order = rng.permutation(len(class_index))
    if len(order) <= MAX_CALIBRATION_ROWS:
        return order
    counts = np.bincount(class_index)
    share = np.ceil(counts * MAX_CALIBRATION_ROWS / len(class_index))
    limits = np.maximum(2 * N_FOLDS, share).astype(int)
    return order[rank_within_class(class_index[order]) < limits[class_index[order]]]


def _folds(class_index: Indices, rows: Indices) -> Iterator[tuple[Indices, Indices]]:
    """Yield training and test rows, stratified; the only row of a class is always trained on."""
    classes = class_index[rows]
    rank = rank_within_class(classes)
    is_alone = np.bincount(classes, minlength=class_index.max() + 1)[classes] < 2
    for fold in range(N_FOLDS):
        is_test = (rank % N_FOLDS == fold) & ~is_alone
        yield rows[~is_test], rows[is_test]


def fit_sigmoid(decision: ArrayLike, is_second: ArrayLike) -> tuple[float, float]:
    """Fit P(second | f) = 1 / (1 + exp(-(A f + B))) to decision values and classes.

    Platt's targets, (n₊ + 1) / (n₊ + 2) and 1 / (n₋ + 2) in place of 1 and 0, keep A and B finite
    however well the classes are separated. The cross-entropy is minimised by Newton's method with
    backtracking (Lin, Lin & Weng, 2007); note that their A and B have the opposite sign.

    Decision values that are all equal, or rows of one class only, leave the slope undetermined:
    then A is 0 and B gives the mean of the targets. A is below 0 where larger decision values mean
    the first class.

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
    # After scaling, the tolerances do not depend on the unit of the decision values.
    A, B = _minimise((values - centre) / scale, targets, np.array([0.0, flat]))
    return A / scale, B - A / scale * centre


def _check(decision: ArrayLike, is_second: ArrayLike) -> tuple[Array, NDArray[np.bool_]]:
    """Return both as arrays, checked."""
    values = np.asarray(decision, dtype=np.float64)
    flags = np.asarray(is_second, dtype=bool)
    if values.ndim != 1 or values.shape != flags.shape or len(values) == 0:
        raise ValueError(
            "decision and is_second must be one-dimensional, of one length and not empty, got "
            f"shapes {values.shape!r} and {flags.shape!r}."
        )
    if not np.isfinite(values).all():
        raise ValueError("decision must be finite, got NaN or infinity: leave these rows out.")
    return values, flags


def _minimise(values: Array, targets: Array, start: Array) -> tuple[float, float]:
    """Return A and B after Newton steps, each halved until the loss falls enough."""
    line = start
    loss = _mean_loss(line, values, targets)
    for _ in range(MAX_STEPS):
        gradient, step = _newton_step(line, values, targets)
        if np.abs(gradient).max() < GRADIENT_TOLERANCE:
            break
        length = 1.0
        while length >= MIN_STEP:
            moved = line + length * step
            moved_loss = _mean_loss(moved, values, targets)
            if moved_loss <= loss + 1e-4 * length * float(gradient @ step) + ROUNDING:
                line, loss = moved, moved_loss
                break
            length *= 0.5
        else:
            break
    return float(line[0]), float(line[1])


def _mean_loss(line: Array, values: Array, targets: Array) -> float:
    """Return the mean cross-entropy, which overflows for no decision value."""
    z = line[0] * values + line[1]
    return float(np.mean(np.logaddexp(0.0, z) - targets * z))


def _newton_step(line: Array, values: Array, targets: Array) -> tuple[Array, Array]:
    """Return the gradient of the mean loss, and the Newton step."""
    probabilities = expit(line[0] * values + line[1])
    errors = probabilities - targets
    variances = probabilities * (1.0 - probabilities)
    gradient = np.array([np.mean(errors * values), np.mean(errors)])
    mixed = np.mean(variances * values)
    hessian = np.array([[np.mean(variances * values**2), mixed], [mixed, np.mean(variances)]])
    return gradient, -np.linalg.solve(hessian + RIDGE * np.eye(2), gradient)
