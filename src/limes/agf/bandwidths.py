"""Bandwidths solved for a given sum of weights."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
# Halley's method cubes the error: after a step this small, the remaining error is rounding.
LAST_STEP = 1e-6
# Last step in single precision: the remaining error is about single precision.
COARSE_STEP = 0.02
# Steps before bisection alone, and in total: no bracket is wider than 2^10, or need be below 2^-50.
N_QUICK_STEPS, N_STEPS = 20, 80
# A bracket is widened by this margin, since the root may lie a rounding error outside.
ROUNDING_MARGIN = 1e-6
# Larger ratios of squared distances change no weight, and their squares would overflow.
MAX_RATIO = 1e150
MAX_SINGLE_RATIO = 1e18
# exp is several times slower where its result underflows; exp(-700) does not.
MIN_EXPONENT = -700.0
# Twice the square of the narrowest bandwidth: narrower ones give the same weights.
MIN_WIDTH = 1e-300


def solve_bandwidths(squared_distances: ArrayLike, total_weight: float) -> Array:
    """Solve for the bandwidth of each row at which its Gaussian weights have a given sum.

    The bandwidth adapts to the density: it is narrow where the density is high and wide where it
    is low. It is the only sigma with ``sum_i exp(-d_i^2 / (2 sigma^2)) = W``.

    Parameters
    ----------
    squared_distances : array-like of shape (n_rows, n_neighbors)
        Squared distance of each row from each of its neighbours, in any order.
    total_weight : float
        The sum W: above 0 and below the number of neighbours.

    Returns
    -------
    ndarray of shape (n_rows,)
        The bandwidths. Where W or more neighbours coincide with the row, the sum is never
        below W and the bandwidth is the limit 0: these neighbours have all the weight.

    Examples
    --------
    >>> solve_bandwidths([[1.0, 1.0], [4.0, 4.0]], 2 * np.exp(-0.5))
    array([1., 2.])
    >>> solve_bandwidths([[0.0, 0.0, 5.0]], 1.5)
    array([0.])
    """
    squared = _check_distances(squared_distances, total_weight)
    rank = math.ceil(total_weight) - 1
    unit = np.partition(squared, rank, axis=1)[:, rank]
    is_solvable = unit > 0
    bandwidths = np.zeros(len(squared))
    if is_solvable.any():
        unit = unit[is_solvable]
        scaled = _divide_rows(squared[is_solvable], unit)
        log_precisions = _solve_log_precisions(scaled, total_weight, rank)
        bandwidths[is_solvable] = np.sqrt(unit) * np.exp(-0.5 * log_precisions) / math.sqrt(2)
    return bandwidths


def gaussian_weights(squared_distances: Array, bandwidths: Array) -> Array:
    """Return the Gaussian weights of each row's neighbours, divided by their sum.

    Far from all neighbours the weights of the nearest are still finite. With a bandwidth of 0 the
    nearest have all the weight.
    """
    exponents = squared_distances - squared_distances.min(axis=1, keepdims=True)
    widths = np.maximum(2 * bandwidths * bandwidths, MIN_WIDTH)
    with np.errstate(over="ignore"):
        exponents /= -widths[:, None]
    weights = _exponentiate(exponents)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def _check_distances(squared_distances: ArrayLike, total_weight: float) -> Array:
    """Return the squared distances as a 2-D array of floats, checked to have a solution."""
    squared = np.asarray(squared_distances, dtype=np.float64)
    if squared.ndim != 2:
        raise ValueError(
            "squared_distances must have shape (n_rows, n_neighbors), "
            f"got an array of shape {squared.shape!r}."
        )
    if not 0 < total_weight < squared.shape[1]:
        raise ValueError(
            f"total_weight must be above 0 and below the {squared.shape[1]} neighbours of a "
            f"row, got {total_weight!r}: no bandwidth gives weights with this sum."
        )
    return squared


def _divide_rows(squared: Array, unit: Array) -> Array:
    """Divide the squared distances of each row by its own unit, in place."""
    with np.errstate(over="ignore"):
        squared /= unit[:, None]
    return np.minimum(squared, MAX_RATIO, out=squared)


def _solve_log_precisions(scaled: Array, total_weight: float, rank: int) -> Array:
    """Solve for log(1 / (2 sigma^2)), first in single precision, where exp is faster."""
    bracket = _bracket(scaled, total_weight, rank)
    least = scaled.min(axis=1)
    excess = np.subtract(scaled, least[:, None], out=scaled)
    coarse = np.minimum(excess, MAX_SINGLE_RATIO).astype(np.float32)
    log_weight = math.log(total_weight)
    guess = 0.5 * (bracket[0] + bracket[1])
    guess = _search(coarse, least, guess, bracket, log_weight=log_weight, last_step=COARSE_STEP)
    return _search(excess, least, guess, bracket, log_weight=log_weight, last_step=LAST_STEP)


def _search(
    excess: Array,
    least: Array,
    guess: Array,
    bracket: tuple[Array, Array],
    *,
    log_weight: float,
    last_step: float,
) -> Array:
    """Find the log precisions by Halley's method within brackets, until the steps are small.

    A step that leaves its bracket is replaced by a bisection, and so is every step after the
    first N_QUICK_STEPS, so that the search cannot diverge.
    """
    (lower, upper), solution, active = bracket, guess.copy(), np.arange(len(guess))
    buffer = np.empty_like(excess)
    for n_steps in range(N_STEPS):
        buffer = buffer[: len(excess)]
        residual, noise, step = _evaluate(excess, least, guess, log_weight, out=buffer)
        is_low = residual > 0
        lower, upper = np.where(is_low, guess, lower), np.where(is_low, upper, guess)
        next_guess = guess + step
        is_halved = ~((next_guess >= lower) & (next_guess <= upper)) | (n_steps >= N_QUICK_STEPS)
        next_guess = np.where(is_halved, 0.5 * (lower + upper), next_guess)
        next_guess = np.where(np.abs(residual) <= noise, guess, next_guess)
        solution[active] = next_guess
        is_open = np.abs(next_guess - guess) > np.where(is_halved, last_step**2, last_step)
        if not is_open.any():
            break
        if not is_open.all():
            excess, least, active = excess[is_open], least[is_open], active[is_open]
        lower, upper, guess = lower[is_open], upper[is_open], next_guess[is_open]
    return solution


def _bracket(scaled: Array, total_weight: float, rank: int) -> tuple[Array, Array]:
    """Return bounds of the log precision, where the distance of the given rank is 1.

    Lower bound: the mean weight is at least the weight at the mean squared distance (Jensen).
    Upper bound: ``rank`` neighbours weigh at most 1 each, the others at most that at distance 1.
    """
    n_neighbors = scaled.shape[1]
    lower = np.log(math.log(n_neighbors / total_weight) / scaled.mean(axis=1))
    upper = math.log(math.log((n_neighbors - rank) / (total_weight - rank)))
    return lower - ROUNDING_MARGIN, np.full(len(scaled), upper + ROUNDING_MARGIN)


def _evaluate(
    excess: Array, least: Array, log_precisions: Array, log_weight: float, *, out: Array
) -> tuple[Array, Array, Array]:
    """Return log(sum of weights / total weight), its rounding error, and Halley's step."""
    precisions = np.exp(log_precisions)
    exponents = np.multiply(excess, -precisions[:, None].astype(excess.dtype), out=out)
    weights = _exponentiate(exponents)
    total = weights.sum(axis=1)
    residual = np.log(total) - precisions * least - log_weight
    noise = 4e-16 * (1 + np.abs(log_weight) + precisions * least)
    weights *= excess
    mean = weights.sum(axis=1) / total
    variance = np.maximum(np.einsum("ij,ij->i", weights, excess) / total - mean * mean, 0)
    slope = -precisions * (mean + least)
    curvature = slope + precisions * precisions * variance
    with np.errstate(divide="ignore", invalid="ignore"):
        step = -2 * residual * slope / (2 * slope * slope - residual * curvature)
    return residual, noise, step


def _exponentiate(exponents: Array) -> Array:
    """Replace exponents by their exponentials in place, and return them."""
    np.maximum(exponents, MIN_EXPONENT, out=exponents)
    return np.exp(exponents, out=exponents)
