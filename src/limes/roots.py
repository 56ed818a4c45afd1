"""Brackets to border points: where the decision value is zero, on all lines at once."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limes._typing import Array
from limes.sources.protocol import Source

# Halving alone reaches the last bit of a double in 53 steps, and at least every third step halves.
MAX_STEPS = 180


class Borders(NamedTuple):
    """Border points and the gradient of the decision value at each."""

    points: Array
    normals: Array


def find_borders(source: Source, below: Array, above: Array, *, tolerance: float) -> Borders:
    """Find a border point on the line between each two rows.

    Newton's method where it stays inside its bracket and gains on it, halving where not, so
    that it is quick on a smooth decision and cannot diverge on any. A line ends when its
    decision value is below the tolerance; a source that jumps across zero never gets there,
    and its line ends when the bracket has shrunk to nothing.
    """
    span = above - below
    low, high = np.zeros(len(span)), np.ones(len(span))
    place = np.full(len(span), 0.5)
    normals = np.empty_like(span)
    open_lines = np.arange(len(span))
    for step in range(MAX_STEPS):
        rows = below[open_lines] + place[open_lines, None] * span[open_lines]
        value, gradient = source.linearize(rows)
        normals[open_lines] = gradient
        is_above = value > 0
        high[open_lines[is_above]] = place[open_lines[is_above]]
        low[open_lines[~is_above]] = place[open_lines[~is_above]]
        is_open = (np.abs(value) >= tolerance) & _can_shrink(low[open_lines], high[open_lines])
        slope = np.einsum("ij,ij->i", gradient, span[open_lines])
        open_lines, value, slope = open_lines[is_open], value[is_open], slope[is_open]
        if not len(open_lines):
            break
        place[open_lines] = _next_place(
            place[open_lines], low[open_lines], high[open_lines], value, slope, step
        )
    points = below + place[:, None] * span
    is_jump = ~_can_shrink(low, high)
    return Borders(points, _mend_normals(source, normals, is_jump, below, above))


def _can_shrink(low: Array, high: Array) -> NDArray[np.bool_]:
    """Tell which brackets still have a number strictly between their ends."""
    middle = 0.5 * (low + high)
    return (low < middle) & (middle < high)


def _next_place(
    place: Array, low: Array, high: Array, value: Array, slope: Array, step: int
) -> Array:
    """Take Newton's step where it stays inside the bracket, every third time the middle."""
    middle = 0.5 * (low + high)
    if step % 3 == 2:
        return middle
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        newton = place - value / slope
    return np.where((newton > low) & (newton < high), newton, middle)


def _mend_normals(
    source: Source, normals: Array, is_jump: NDArray[np.bool_], below: Array, above: Array
) -> Array:
    """Give a border point without a gradient to trust the direction and the rise of its own line.

    A piecewise-constant source (nearest neighbours, trees) has no gradient where it jumps, or one
    taken so widely that it may point back across the border.
    """
    span = above - below
    is_backward = is_jump & (np.einsum("ij,ij->i", normals, span) <= 0)
    is_bad = is_backward | ~np.any(normals, axis=1) | ~np.all(np.isfinite(normals), axis=1)
    if not is_bad.any():
        return normals
    rise = source.decision(above[is_bad]) - source.decision(below[is_bad])
    mended = normals.copy()
    lengths = np.einsum("ij,ij->i", span[is_bad], span[is_bad])
    mended[is_bad] = span[is_bad] * (rise / lengths)[:, None]
    return mended
