"""From pairs of classes to all: votes, and coupled probabilities (Wu, Lin & Weng)."""

from math import isqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limes._core import _native
from limes._typing import Array

# Numbers in one block of linear systems: 2 MB of float64 stay in the cache.
BLOCK_NUMBERS = 1 << 18
# LIBSVM keeps the probabilities of pairs this far from 0 and 1.
LIBSVM_MIN_PROBABILITY = 1e-7
# Its iteration stops at this error divided by the number of classes.
LIBSVM_TOLERANCE = 0.005


def class_pairs(n_classes: int) -> list[tuple[int, int]]:
    """Return the pairs of classes in the order that all modules use.

    Examples
    --------
    >>> class_pairs(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    return [(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]


def count_votes(values: ArrayLike) -> NDArray[np.intp]:
    """Count for each row how many pairs each class wins.

    Examples
    --------
    >>> count_votes([[-1.0, 0.0, 2.0]])
    array([[2, 0, 1]])
    """
    return _count(np.asarray(values) > 0)


def count_votes_like_libsvm(values: ArrayLike) -> NDArray[np.intp]:
    """Count votes as LIBSVM does, which gives a value of exactly zero to the second class.

    Examples
    --------
    >>> count_votes_like_libsvm([[-1.0, 0.0, 2.0]])
    array([[1, 0, 2]])
    """
    return _count(~(np.asarray(values) < 0))


def couple(pair_probabilities: ArrayLike) -> Array:
    """Couple the probabilities of pairs into those of all classes, exactly.

    With r_ij = P(i | i or j) the answer p minimises the sum over i and j ≠ i of
    (r_ji p_i - r_ij p_j)² subject to sum p = 1 (the second method of Wu, Lin & Weng, 2004).
    Probabilities of exactly 0 and 1 are welcome.

    Examples
    --------
    >>> couple([[0.75]])
    array([[0.25, 0.75]])
    >>> couple([[0.5, 0.75, 0.75]])  # p = (1, 1, 3) / 5
    array([[0.2, 0.2, 0.6]])
    """
    second = np.asarray(pair_probabilities, dtype=np.float64)
    n_classes = _count_classes(second)
    if n_classes == 2:
        return np.column_stack([1.0 - second, second])
    coupled = np.empty((len(second), n_classes))
    n_rows = max(1, BLOCK_NUMBERS // n_classes**2)
    for start in range(0, len(second), n_rows):
        block = second[start : start + n_rows]
        coupled[start : start + n_rows] = _solve(_quadratic_forms(1.0 - block, block))
    return coupled


def couple_like_libsvm(
    pair_probabilities: ArrayLike,
    *,
    complements: ArrayLike | None = None,
    iterate_two_classes: bool = False,
) -> Array:
    """Couple the probabilities of pairs by LIBSVM's iteration, stopping where it stops.

    LIBSVM solves the problem of ``couple`` only to 0.005 / K, so its numbers differ from the exact
    ones in the third digit. This is for those who want ``svm-predict -b 1`` to the last digits.
    Two classes need no iteration; the LIBSVM of scikit-learn does it nevertheless.

    Examples
    --------
    >>> couple_like_libsvm([[0.5, 0.75, 0.75]]).round(4)
    array([[0.2006, 0.1994, 0.6   ]])
    """
    if complements is None:
        complements = 1.0 - np.asarray(pair_probabilities, dtype=np.float64)
    bounds = LIBSVM_MIN_PROBABILITY, 1.0 - LIBSVM_MIN_PROBABILITY
    first = np.clip(np.asarray(complements, dtype=np.float64), *bounds)
    n_classes = _count_classes(first)
    if n_classes == 2 and not iterate_two_classes:
        return np.column_stack([first, 1.0 - first])
    coupled = np.empty((len(first), n_classes))
    n_rows = max(1, BLOCK_NUMBERS // n_classes**2)
    for start in range(0, len(first), n_rows):
        block = first[start : start + n_rows]
        coupled[start : start + n_rows] = _iterate(_quadratic_forms(block, 1.0 - block))
    return coupled


def log_odds_and_slopes(pair_probabilities: ArrayLike, class_: int) -> tuple[Array, Array]:
    """Return a class's coupled log odds against the best other, and their derivatives.

    With q the solution of (Q + ee') q = e, which is p up to a factor, the log odds are
    log q_class - log q_other, and their derivative is -a' dQ q, where a solves the same system for
    the gradient of the log odds in q.
    """
    second = np.asarray(pair_probabilities, dtype=np.float64)
    n_classes, rows = _count_classes(second), np.arange(len(second))
    system = _quadratic_forms(1.0 - second, second) + 1.0
    ones = np.ones((len(second), n_classes, 1))
    q = np.maximum(np.linalg.solve(system, ones)[..., 0], np.finfo(np.float64).tiny)
    others = q.copy()
    others[:, class_] = 0.0
    rival = others.argmax(axis=1)
    seed = np.zeros_like(q)
    seed[:, class_] = 1.0 / q[:, class_]
    seed[rows, rival] = -1.0 / q[rows, rival]
    a = np.linalg.solve(system, seed[..., None])[..., 0]
    slopes = np.empty_like(second)
    for place, (i, j) in enumerate(class_pairs(n_classes)):
        r_ji, r_ij = second[:, place], 1.0 - second[:, place]
        moved_i = 2.0 * r_ji * q[:, i] - (r_ij - r_ji) * q[:, j]
        moved_j = -2.0 * r_ij * q[:, j] - (r_ij - r_ji) * q[:, i]
        slopes[:, place] = -(a[:, i] * moved_i + a[:, j] * moved_j)
    return np.log(q[:, class_] / q[rows, rival]), slopes


def _count(is_second: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Count the votes of pairs, each for its second class or its first."""
    n_classes = _count_classes(is_second)
    votes = np.zeros((len(is_second), n_classes), dtype=np.intp)
    for place, (first, second) in enumerate(class_pairs(n_classes)):
        votes[:, first] += ~is_second[:, place]
        votes[:, second] += is_second[:, place]
    return votes


def _count_classes(pairs: NDArray[np.generic]) -> int:
    """Return the number of classes from the number of pairs, which is that of columns."""
    if pairs.ndim != 2:
        raise ValueError(f"expected an array of shape (n_rows, n_pairs), got {pairs.shape!r}.")
    n_pairs = pairs.shape[1]
    n_classes = (1 + isqrt(1 + 8 * n_pairs)) // 2
    if n_pairs == 0 or n_classes * (n_classes - 1) // 2 != n_pairs:
        raise ValueError(
            f"expected one column for each pair of classes (1, 3, 6, 10 ...), got {n_pairs!r}."
        )
    return n_classes


def _quadratic_forms(first: Array, second: Array) -> Array:
    """Return the matrices Q of the problem p'Qp → min, one for each row."""
    n_classes = _count_classes(first)
    # r[row, i, j] = P(i | i or j), 0 on the diagonal.
    r = np.zeros((len(first), n_classes, n_classes))
    start = 0
    for i in range(n_classes - 1):
        end = start + n_classes - 1 - i
        r[:, i, i + 1 :], r[:, i + 1 :, i] = first[:, start:end], second[:, start:end]
        start = end
    forms = r * r.transpose(0, 2, 1)
    np.negative(forms, out=forms)
    diagonal = np.arange(n_classes)
    forms[:, diagonal, diagonal] = np.einsum("nij,nij->nj", r, r)
    return forms


def _solve(forms: Array) -> Array:
    """Minimise p'Qp under sum p = 1.

    At the minimum Qp is a multiple of e = (1, ..., 1), hence (Q + ee') p is one too. That matrix is
    never near a singular one: of v_i > 0 > v_j, whatever r_ij + r_ji = 1 is,
    (r_ji v_i - r_ij v_j)² keeps v'Qv away from 0, and where all signs agree (e'v)² does.
    """
    n_classes = forms.shape[1]
    solved = np.linalg.solve(forms + 1.0, np.ones((len(forms), n_classes, 1)))[..., 0]
    np.maximum(solved, 0.0, out=solved)
    return solved / solved.sum(axis=1, keepdims=True)


def _iterate(forms: Array) -> Array:
    """Run LIBSVM's iteration on all rows at once; rows that meet its criterion stay as they are."""
    n_classes = forms.shape[1]
    coupled = np.full((len(forms), n_classes), 1.0 / n_classes)
    active = np.arange(len(forms))
    for _ in range(max(100, n_classes)):
        Q, p = forms[active], coupled[active]
        Qp = np.einsum("nij,nj->ni", Q, p)
        pQp = np.einsum("ni,ni->n", p, Qp)
        is_open = np.abs(Qp - pQp[:, None]).max(axis=1) >= LIBSVM_TOLERANCE / n_classes
        if not is_open.any():
            break
        active = active[is_open]
        coupled[active] = _sweep(Q[is_open], p[is_open], Qp[is_open], pQp[is_open])
    return coupled


def _sweep(Q: Array, p: Array, Qp: Array, pQp: Array) -> Array:
    """Solve each class's own equation in turn, and normalise."""
    for t in range(Q.shape[1]):
        q_tt = Q[:, t, t]
        step = (pQp - Qp[:, t]) / q_tt
        p[:, t] += step
        pQp = (pQp + step * (step * q_tt + 2.0 * Qp[:, t])) / (1.0 + step) / (1.0 + step)
        Qp = (Qp + step[:, None] * Q[:, t]) / (1.0 + step)[:, None]
        p /= (1.0 + step)[:, None]
    return p


def sigmoid(logits: ArrayLike) -> Array:
    """Return 1 / (1 + exp(-x)) of each number, without overflow."""
    numbers = np.array(logits, dtype=np.float64, order="C")
    _native.apply_sigmoid(numbers.reshape(-1))
    return numbers


def softmax(logits: Array) -> Array:
    """Return the probabilities of each row of logits."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))
