"""Training in the compiled core: a map in training, and Adam on its cross-entropy."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limes._core import _native
from limes._core.hardware import DEFAULT_LEVEL

Array32 = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class TrainedMap:
    """A map in training: a base function for all rows, and a local one around each point."""

    # Shape (n_points, n_search). For the search; trained.
    points: Array32
    # Shape (n_points, n_search). Centres of the local functions; fixed.
    anchors: Array32
    # Unit of length of the local functions.
    radius: float
    # Shape (n_points, n_outputs, n_search). Of the local functions, per radius.
    slopes: Array32
    # Shape (n_points, n_outputs). Of the local functions, at their anchors.
    offsets: Array32
    # Shape (n_outputs, n_features). Of the base function.
    base_slopes: Array32
    # Shape (n_outputs,). Its value at zero.
    base_offsets: Array32
    # Shape (n_search, n_features). Directions of the search; None where rows are searched as they
    # are. Trained.
    components: Array32 | None = None

    @classmethod
    def start(
        cls,
        points: NDArray[Any],
        *,
        n_features: int,
        n_outputs: int,
        radius: float,
        components: NDArray[Any] | None = None,
    ) -> "TrainedMap":
        """Return a map that is zero everywhere."""
        n_points, n_search = points.shape
        return cls(
            np.array(points, dtype=np.float32, order="C"),
            np.array(points, dtype=np.float32, order="C"),
            radius,
            np.zeros((n_points, n_outputs, n_search), dtype=np.float32),
            np.zeros((n_points, n_outputs), dtype=np.float32),
            np.zeros((n_outputs, n_features), dtype=np.float32),
            np.zeros(n_outputs, dtype=np.float32),
            None if components is None else np.array(components, dtype=np.float32, order="C"),
        )

    def linear_functions(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the functions of each point: slopes (m, q, D), and values at zero (m, q)."""
        local = self.slopes.astype(np.float64) / self.radius
        offsets = self.offsets - np.einsum("mqr,mr->mq", local, self.anchors)
        wide = local if self.components is None else local @ self.components.astype(np.float64)
        return wide + self.base_slopes, offsets + self.base_offsets


def train(
    start: TrainedMap,
    rows: Array32,
    targets: Array32,
    *,
    weights: Array32,
    blend: int,
    n_epochs: int,
    n_batch: int,
    rates: tuple[float, float, float, float],
    decay: float,
    seed: int,
) -> float:
    """Fit a map in place, by Adam on the cross-entropy against probabilities."""
    n_points = len(start.points)
    return _native.train(
        rows,
        targets,
        weights,
        start.anchors,
        start.components,
        start.points,
        start.slopes,
        start.offsets,
        start.base_slopes,
        start.base_offsets,
        max(1, min(blend, n_points - 1)),
        start.radius,
        n_epochs,
        n_batch,
        rates,
        decay,
        seed,
        DEFAULT_LEVEL,
    )
