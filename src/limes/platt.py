"""Platt's sigmoid: from decision values to probabilities."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

__all__ = ["fit_sigmoid"]

Array = NDArray[np.float64]

# Newton's method doubles its digits each time; the paper of Lin, Lin & Weng also allows 100 steps.
MAX_STEPS = 100

# Stop at a mean gradient that is rounding, and at a step so short that it changes nothing.
GRADIENT_TOLERANCE = 1e-14
SHORTEST_STEP = 1e-10

# The loss, about 0.1 to 1, is known to this; close to the minimum every step is within it.
ROUNDING = 1e-15

# Keeps the Hessian regular when all rows are far up the sigmoid.
RIDGE = 1e-12


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
