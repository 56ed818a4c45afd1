"""How sure a source is: Platt's sigmoid by cross-validation, where it does not say itself."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp
from sklearn.base import clone

from limes._typing import Array, Codes
from limes.coupling import class_pairs, couple
from limes.platt import fit_sigmoid
from limes.rows import place_in_class
from limes.sources.probability import FLOOR
from limes.svm_machine import SvmMachine

N_FOLDS = 5
# More rows would change the sigmoid little, and a support vector machine's training time a lot.
MAX_ROWS = 3000
# A margin classifier's decision value f, taken as half a logit: P = 0.88 on the margin, f = 1.
DEFAULT_SLOPE = 2.0


@dataclass(frozen=True, eq=False)
class PairSigmoids:
    """What turns the decision values of all pairs into probabilities."""

    # Shape (n_pairs,). Platt's A and B for each pair.
    slopes: Array
    shifts: Array
    # The power at which coupled probabilities are likeliest, for rows that the machine has not
    # seen: coupling many pairs leaves too much to the classes that lose.
    sharpness: float = 1.0


def svm_sigmoids(
    svc: Any, machine: SvmMachine, X: Array, codes: Codes, *, rng: np.random.Generator
) -> PairSigmoids:
    """Fit Platt's sigmoid for each pair of a support vector machine's classes.

    The machine is trained again on four fifths of the rows, five times, so that the sigmoid is
    fitted to decision values of rows that their machine has not seen (Lin, Lin & Weng, 2007).
    Where that cannot be (a class without rows, a nu that a fold makes infeasible), it is fitted to
    the machine's own values.
    """
    # Rows with few numbers are trained on much quicker as such.
    is_sparse = sparse.issparse(svc.support_vectors_)

    def values(train: Codes, test: Codes) -> Array:
        rows = sparse.csr_array(X[train]) if is_sparse else X[train]
        fitted = clone(svc).fit(rows, svc.classes_[codes[train]])
        return SvmMachine.from_sklearn(fitted).values(X[test])

    if len(np.unique(codes)) == machine.n_classes:
        try:
            rows, decisions = _cross_validate(values, codes, rng=rng)
        except ValueError:
            pass
        else:
            slopes, shifts = pair_sigmoids(decisions, codes[rows])
            coupled = couple(expit(slopes * decisions + shifts))
            return PairSigmoids(slopes, shifts, _fit_power(coupled, codes[rows]))
    kept = _draw_rows(codes, rng)
    return PairSigmoids(*pair_sigmoids(machine.values(X[kept]), codes[kept]))


def pair_sigmoids(decisions: Array, codes: Codes) -> tuple[Array, Array]:
    """Fit the sigmoid of each pair to its column of decision values."""
    n_classes = (1 + isqrt(1 + 8 * decisions.shape[1])) // 2
    fitted = [
        pair_sigmoid(decisions[:, place], codes, pair)
        for place, pair in enumerate(class_pairs(n_classes))
    ]
    slopes, shifts = np.array(fitted).T
    return slopes, shifts


def pair_sigmoid(decision: Array, codes: Codes, pair: tuple[int, int]) -> tuple[float, float]:
    """Fit the sigmoid of one pair to the rows of its two classes."""
    second = pair[1]
    is_own = np.isin(codes, pair) & np.isfinite(decision)
    is_second = codes[is_own] == second
    if is_second.all() or not is_second.any():
        return DEFAULT_SLOPE, 0.0
    slope, shift = fit_sigmoid(decision[is_own], is_second)
    # A sigmoid that falls would turn the classes round: the source is no better than chance there.
    return (slope, shift) if slope > 0 else (DEFAULT_SLOPE, 0.0)


def score_sigmoid(
    model: Any,
    scores: Callable[[Any, Array], Array],
    X: Array,
    codes: Codes,
    *,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Fit what turns a score a class into logarithms of probabilities, by cross-validation."""

    def values(train: Codes, test: Codes) -> Array:
        return scores(clone(model).fit(X[train], model.classes_[codes[train]]), X[test])

    try:
        rows, found = _cross_validate(values, codes, rng=rng)
    except (ValueError, TypeError, AttributeError):
        # A class without rows, or a classifier that cannot be fitted again.
        rows = _draw_rows(codes, rng)
        found = scores(model, X[rows])
    if found.shape[1] == 2:
        return pair_sigmoid(found[:, 1] - found[:, 0], codes[rows], (0, 1))
    return _fit_sharpness(found, codes[rows]), 0.0


def _cross_validate(
    values: Callable[[Codes, Codes], Array], codes: Codes, *, rng: np.random.Generator
) -> tuple[Codes, Array]:
    """Return rows and their decision values from machines that have not seen them."""
    kept = _draw_rows(codes, rng)
    tested = [(test, values(train, test)) for train, test in _folds(codes, kept) if len(test)]
    if not tested:
        raise ValueError("every class has a single row, so none can be kept aside.")
    rows, decisions = zip(*tested, strict=True)
    return np.concatenate(rows), np.concatenate(decisions)


def _draw_rows(codes: Codes, rng: np.random.Generator) -> Codes:
    """Return at most about MAX_ROWS rows in random order, rows of rare classes all among them."""
    order = rng.permutation(len(codes))
    if len(order) <= MAX_ROWS:
        return order
    counts = np.bincount(codes)
    share = np.maximum(2 * N_FOLDS, np.ceil(counts * MAX_ROWS / len(codes))).astype(int)
    return order[place_in_class(codes[order]) < share[codes[order]]]


def _folds(codes: Codes, kept: Codes) -> Iterator[tuple[Codes, Codes]]:
    """Deal each class's rows round the folds; a class of one row is always trained on."""
    place = place_in_class(codes[kept])
    is_alone = np.bincount(codes[kept], minlength=codes.max() + 1)[codes[kept]] < 2
    for fold in range(N_FOLDS):
        is_test = (place % N_FOLDS == fold) & ~is_alone
        yield kept[~is_test], kept[is_test]


def _fit_power(coupled: Array, codes: Codes) -> float:
    """Return the power at which coupled probabilities are likeliest; two classes need none."""
    if coupled.shape[1] == 2:
        return 1.0
    return _fit_sharpness(np.log(np.maximum(coupled, FLOOR)), codes)


def _fit_sharpness(scores: Array, codes: Codes) -> float:
    """Return the factor at which the softmax of the scores is likeliest."""

    def loss(log_sharpness: float) -> float:
        logits = np.exp(log_sharpness) * scores
        return float(np.mean(logsumexp(logits, axis=1) - logits[np.arange(len(codes)), codes]))

    scale = max(float(np.abs(scores).max(initial=0.0)), np.finfo(float).tiny)
    bounds = np.log(1e-3 / scale), np.log(1e3 / scale)
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))
