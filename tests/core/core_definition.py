"""What the core computes, in plain NumPy and float64: the definition it is tested against."""

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
    _, _, functions, offsets = spec.maps[index]
    return np.einsum("nk,ick->nic", X.astype(float) - spec.center, functions) + offsets


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


def log_uniform(rng, most):
    return int(np.exp(rng.uniform(0, np.log(most + 1))))
