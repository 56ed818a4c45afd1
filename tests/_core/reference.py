"""What the core computes, in plain NumPy and float64: the definition it is tested against."""

import platform
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from limes._core import Maps


@dataclass
class Spec:
    """Maps as they are handed to the core."""

    center: np.ndarray
    maps: list[tuple[np.ndarray, ...]]
    options: dict[str, Any] = field(default_factory=dict)

    def build(self, **more):
        return Maps(self.center, self.maps, **(self.options | more))

    def project(self, rows, size=lambda part: part):
        """Rows in the directions of the search."""
        projection = self.options.get("projection")
        return rows if projection is None else rows @ size(projection)


def scores(spec, X, index=0):
    weights, biases, _, _ = spec.maps[index]
    return biases - spec.project(X.astype(float) - spec.center) @ weights.T


def nearest(spec, X, index=0):
    return np.argmin(scores(spec, X, index), axis=1)


def point_values(spec, X, index=0):
    """Values of the linear functions of every point: (n_rows, n_points, n_values)."""
    _, _, slopes, offsets = spec.maps[index]
    return np.einsum("nk,ick->nic", X.astype(float) - spec.center, slopes) + offsets


def blend_weights(all_scores, blend):
    """Weights of all points: an Epanechnikov kernel that reaches the next neighbour."""
    n_points = all_scores.shape[1]
    n_near = max(1, min(blend, n_points - 1))
    order = np.argsort(all_scores, axis=1, kind="stable")
    ranked = np.take_along_axis(all_scores, order, axis=1)
    radius = ranked[:, n_near : n_near + 1] if n_points > 1 else ranked + 1.0
    weights = radius - ranked[:, :n_near]
    weights[weights.sum(axis=1) == 0] = 1.0
    spread = np.zeros_like(all_scores)
    np.put_along_axis(spread, order[:, :n_near], weights, axis=1)
    return spread / spread.sum(axis=1, keepdims=True)


def values(spec, X, index=0):
    blend = spec.options.get("blend", 1)
    if blend == 1:
        chosen = nearest(spec, X, index)
        return point_values(spec, X, index)[np.arange(len(X)), chosen]
    weights = blend_weights(scores(spec, X, index), blend)
    return np.einsum("ni,nic->nc", weights, point_values(spec, X, index))


def decide(spec, X):
    return np.hstack([values(spec, X, index) for index in range(len(spec.maps))])


def rounding(spec, X, dtype, index=0):
    """Bound on the rounding error of each score: one unit for each operation on its terms.

    The centre is rounded too, and the rows move by that much, which the biases take up.
    """
    unit = np.finfo(dtype)
    weights, biases, _, _ = (np.abs(part) for part in spec.maps[index])
    rows = np.abs(X.astype(float) - spec.center) + 2 * unit.eps * np.abs(spec.center)
    projected = spec.project(rows, np.abs)
    n_terms = X.shape[1] + weights.shape[1] + 8
    size = biases + projected @ weights.T
    underflow = n_terms * unit.smallest_subnormal * (1 + projected.sum(1)[:, None] + weights.sum(1))
    return n_terms * unit.eps * size + underflow


def nearly_nearest(spec, X, dtype, index=0):
    """Which points are nearest, to within the rounding of the two scores compared."""
    every = scores(spec, X, index)
    bound = rounding(spec, X, dtype, index)
    best = np.argmin(every, axis=1)[:, None]
    limit = np.take_along_axis(every + bound, best, axis=1)
    return every - bound <= limit


def rounded_nearest(spec, X, dtype, level):
    """The nearest point by scores rounded as the core rounds them, operation by operation.

    The first of equal scores: where two points are as near as rounding can tell, this says which.
    """
    weights, biases, _, _ = spec.maps[0]
    center = spec.center.astype(dtype)
    # The biases take up what the rounding of the centre moves the rows by.
    shift, biases = center.astype(float) - spec.center, biases.copy()
    for k in range(len(center)):
        biases -= shift[k] * weights[:, k]
    rows = (X - center.astype(np.promote_types(X.dtype, dtype))).astype(dtype)
    subtract = (_subtract_fused if is_fused(level) else _subtract_plainly)[dtype]
    chain = np.repeat(biases.astype(dtype)[None], len(X), axis=0)
    for k, column in enumerate(weights.astype(dtype).T):
        chain = subtract(rows[:, k, None], column, chain)
    return np.argmin(chain, axis=1)


def is_fused(level):
    """Whether a path rounds a product and its sum once: all but plain x86-64 can."""
    return level != "generic" or platform.machine() in ("aarch64", "arm64")


def _subtract_twice(a, b, c):
    """c - a * b, the product rounded before the difference is."""
    return c - a * b


def _subtract_once_float32(a, b, c):
    """c - a * b, rounded once: the product is exact in float64, its difference rounded to odd."""
    high, low = _two_sum(c.astype(float), -(a.astype(float) * b.astype(float)))
    return _round_to_odd(high, low).astype(np.float32)


def _subtract_once_float64(a, b, c):
    """c - a * b, rounded once (Boldo & Melquiond, 2008); nothing may underflow."""
    product, rest = _two_product(-a, b)
    low, lowest = _two_sum(c, rest)
    high, lower = _two_sum(product, low)
    return high + _round_to_odd(*_two_sum(lowest, lower))


_subtract_plainly = {np.float32: _subtract_twice, np.float64: _subtract_twice}
_subtract_fused = {np.float32: _subtract_once_float32, np.float64: _subtract_once_float64}


def _two_sum(a, b):
    """a + b, and what its rounding leaves."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a, b):
    """a * b, and what its rounding leaves (Dekker)."""

    def split(x):
        spread = 134217729.0 * x
        high = spread - (spread - x)
        return high, x - high

    product, (a_high, a_low), (b_high, b_low) = a * b, split(a), split(b)
    rest = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, rest


def _round_to_odd(total, rest):
    """The sum as if rounded to the neighbour whose last bit is set, unless it is exact."""
    is_even = total.view(np.int64) % 2 == 0
    return np.where((rest != 0) & is_even, np.nextafter(total, np.copysign(np.inf, rest)), total)


def random_map(rng, n_points, n_search, n_features, n_values, draw):
    """A map of drawn numbers, some of its points repeated: those tie exactly."""
    weights = draw(rng, (n_points, n_search))
    repeated = rng.integers(0, n_points, size=n_points // 4)
    weights[rng.integers(0, n_points, size=len(repeated))] = weights[repeated]
    return (
        weights,
        0.5 * np.sum(weights**2, axis=1),
        draw(rng, (n_points, n_values, n_features)),
        draw(rng, (n_points, n_values)),
    )


def normal(rng, shape):
    return rng.normal(size=shape)


def small_integers(rng, shape):
    """Numbers whose sums of products are exact in float32, so that ties are exact."""
    return rng.integers(-3, 4, size=shape).astype(float)


def random_spec(
    rng, n_points=None, n_features=None, *, draw=normal, n_maps=1, n_values=1, **options
):
    n_points = n_points or log_uniform(rng, 300)
    n_features = n_features or log_uniform(rng, 300)
    projection = options.get("projection")
    n_search = n_features if projection is None else projection.shape[1]
    maps = [random_map(rng, n_points, n_search, n_features, n_values, draw) for _ in range(n_maps)]
    return Spec(draw(rng, n_features), maps, options)


def factored_spec(rng, n_points, n_features, n_search, *, n_values=1, n_maps=1, blend=8):
    """Maps whose functions differ in the directions of the search only."""
    projection = normal(rng, (n_features, n_search)) / np.sqrt(n_features)
    options = {"n_values": n_values, "n_maps": n_maps, "blend": blend, "projection": projection}
    spec = random_spec(rng, n_points, n_features, **options)
    spec.maps = [
        (
            weights,
            biases,
            normal(rng, (n_values, n_features))
            + normal(rng, (n_points, n_values, n_search)) @ projection.T,
            offsets,
        )
        for weights, biases, _, offsets in spec.maps
    ]
    return spec


def log_uniform(rng, most):
    return int(np.exp(rng.uniform(0, np.log(most + 1))))
