"""Training in the compiled core: a map in training, and Adam on its cross-entropy."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limes._core import _native
from limes._core.hardware import DEFAULT_LEVEL

Array32 = NDArray[np.float32]
Array64 = NDArray[np.float64]

# Rows whose curved inputs are held at a time: a few megabytes.
BLOCK_ROWS = 2048


@dataclass(frozen=True, eq=False)
class CurvedInputs:
    """Further inputs of a base function: terms of second degree with an envelope.

    With ``v = scale (x - center)``, or ``v = directions @ (x - center)``, and the envelope
    ``u = 1 / (1 + decay mean(v²))²``, they are u and u v_i for the shape 'envelope'; also u v_i²
    for 'diagonal', or also u v_i v_j with i <= j, in the order of np.triu_indices, for
    'quadratic'; none for 'linear'. The trainer standardises them.
    """

    # One of 'linear', 'envelope', 'diagonal' and 'quadratic'.
    shape: str
    # Shape (n_features,).
    center: Array32
    # Unused with directions.
    scale: float
    # Shape (n_terms, n_features); None: every feature is a term.
    directions: Array32 | None
    # How fast the envelope falls with the mean square of v.
    decay: float
    # Shape (n_inputs,): of the inputs over some rows. An input that is constant there has the
    # inverse deviation 0, and so no effect.
    means: Array32
    inverse_deviations: Array32

    @classmethod
    def from_rows(
        cls,
        shape: str,
        rows: NDArray[Any],
        *,
        center: NDArray[Any],
        scale: float,
        directions: NDArray[Any] | None = None,
        decay: float = 0.3,
    ) -> "CurvedInputs":
        """Return inputs that are standardised over the given rows."""
        none = np.zeros(0, dtype=np.float32)
        if directions is not None:
            directions = np.array(directions, dtype=np.float32, order="C")
        center = np.array(center, dtype=np.float32, order="C")
        raw = cls(shape, center, float(scale), directions, float(decay), none, none)
        total, squares, n_rows = np.zeros(raw.n_inputs), np.zeros(raw.n_inputs), len(rows)
        # Deviations from a first mean, so that no digits cancel in the sum of squares.
        guess = raw.raw(rows[:BLOCK_ROWS]).mean(axis=0, dtype=np.float64)
        for first in range(0, n_rows, BLOCK_ROWS):
            block = raw.raw(rows[first : first + BLOCK_ROWS]) - guess
            total += block.sum(axis=0)
            squares += np.square(block).sum(axis=0)
        means, variances = total / n_rows, squares / n_rows - np.square(total / n_rows)
        # Rounding leaves a little variance to a constant.
        is_varying = variances > 1e-12 * (np.square(guess) + 1e-12)
        inverse = np.where(is_varying, 1 / np.sqrt(np.where(is_varying, variances, 1.0)), 0.0)
        means32, inverse32 = (guess + means).astype(np.float32), inverse.astype(np.float32)
        return cls(shape, center, float(scale), directions, float(decay), means32, inverse32)

    @property
    def n_terms(self) -> int:
        """Number of components of v."""
        return len(self.center) if self.directions is None else len(self.directions)

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        n = self.n_terms
        sizes = {
            "linear": 0,
            "envelope": 1 + n,
            "diagonal": 1 + 2 * n,
            "quadratic": 1 + n + n * (n + 1) // 2,
        }
        if self.shape not in sizes:
            raise ValueError(f"shape must be one of {list(sizes)}, got {self.shape!r}.")
        return sizes[self.shape]

    def raw(self, rows: NDArray[Any]) -> Array32:
        """Return the inputs of rows before they are standardised: shape (n_rows, n_inputs)."""
        centred = np.asarray(rows, dtype=np.float32) - self.center
        v = self.scale * centred if self.directions is None else centred @ self.directions.T
        u = 1 / np.square(1 + self.decay * np.mean(np.square(v), axis=1, keepdims=True))
        if self.n_inputs == 0:
            parts = [u[:, :0]]
        elif self.shape == "envelope":
            parts = [u, u * v]
        elif self.shape == "diagonal":
            parts = [u, u * v, u * np.square(v)]
        else:
            first, second = np.triu_indices(self.n_terms)
            parts = [u, u * v, u * v[:, first] * v[:, second]]
        return np.hstack(parts).astype(np.float32, copy=False)


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
    # Shape (n_outputs, n_features + n_curved_inputs). Of the base function.
    base_slopes: Array32
    # Shape (n_outputs,). Its value where all inputs are zero.
    base_offsets: Array32
    # Shape (n_search, n_features). Directions of the search; None where rows are searched as they
    # are. Trained.
    components: Array32 | None = None
    # Inputs of the base function beside the features.
    curved: CurvedInputs | None = None

    @classmethod
    def start(
        cls,
        points: NDArray[Any],
        *,
        n_features: int,
        n_outputs: int,
        radius: float,
        components: NDArray[Any] | None = None,
        curved: CurvedInputs | None = None,
    ) -> "TrainedMap":
        """Return a map that is zero everywhere."""
        n_points, n_search = points.shape
        n_inputs = n_features + (0 if curved is None else curved.n_inputs)
        return cls(
            np.array(points, dtype=np.float32, order="C"),
            np.array(points, dtype=np.float32, order="C"),
            radius,
            np.zeros((n_points, n_outputs, n_search), dtype=np.float32),
            np.zeros((n_points, n_outputs), dtype=np.float32),
            np.zeros((n_outputs, n_inputs), dtype=np.float32),
            np.zeros(n_outputs, dtype=np.float32),
            None if components is None else np.array(components, dtype=np.float32, order="C"),
            curved,
        )

    def linear_functions(self) -> tuple[Array64, Array64]:
        """Return the functions of each point: slopes (m, q, D), and values at zero (m, q).

        The means of the curved inputs are in the values at zero.
        """
        local = self.slopes.astype(np.float64) / self.radius
        offsets = self.offsets - np.einsum("mqr,mr->mq", local, self.anchors)
        wide = local if self.components is None else local @ self.components.astype(np.float64)
        base_offsets = self.base_offsets.astype(np.float64)
        if self.curved is not None:
            base_offsets -= self._curved_slopes() @ self.curved.means
        n_features = self._n_features
        return wide + self.base_slopes[:, :n_features], offsets + base_offsets

    def curve_coefficients(self) -> tuple[Array64, Array64, Array64 | None] | None:
        """Return constants (q,), slopes (q, r) and squares of the terms v, or None if linear.

        Squares are those of a ``limes.model.curved_base.CurvedBase`` whose preprocessing is v:
        shape (q, r) or (q, r (r + 1) / 2), None for the shape 'envelope'. The coefficients belong
        to inputs that are not standardised.
        """
        if self.curved is None or self.curved.n_inputs == 0:
            return None
        coefficients, n_terms = self._curved_slopes(), self.curved.n_terms
        squares = coefficients[:, 1 + n_terms :] if self.curved.shape != "envelope" else None
        return coefficients[:, 0], coefficients[:, 1 : 1 + n_terms], squares

    @property
    def _n_features(self) -> int:
        return self.base_slopes.shape[1] - (0 if self.curved is None else self.curved.n_inputs)

    def _curved_slopes(self) -> Array64:
        """Return the slopes by the curved inputs before they are standardised."""
        assert self.curved is not None
        slopes = self.base_slopes[:, self._n_features :].astype(np.float64)
        return slopes * self.curved.inverse_deviations


def train(
    start: TrainedMap,
    rows: Array32,
    targets: Array32,
    *,
    blend: int,
    n_samples: int,
    n_batch: int,
    rates: tuple[float, float, float, float],
    decay: float,
    seed: int,
) -> float:
    """Fit a map in place, by Adam on the cross-entropy against probabilities.

    ``n_samples`` counts the rows of all batches; it is rounded up to whole batches. ``rates`` are
    the learning rates of local functions, points, base function and components. Calling it again
    continues the training, with new averages of Adam. The mean loss over the last tenth of the
    batches is returned.
    """
    n_points = len(start.points)
    curved = start.curved
    return _native.train(
        rows,
        targets,
        start.anchors,
        start.components,
        start.points,
        start.slopes,
        start.offsets,
        start.base_slopes,
        start.base_offsets,
        None if curved is None else _as_tuple(curved),
        max(1, min(blend, n_points - 1)),
        start.radius,
        n_samples,
        n_batch,
        rates,
        decay,
        seed,
        DEFAULT_LEVEL,
    )


def _as_tuple(curved: CurvedInputs) -> tuple[Any, ...]:
    """Return curved inputs as the core takes them."""
    return (
        curved.shape,
        curved.center,
        curved.scale,
        curved.directions,
        curved.decay,
        curved.means,
        curved.inverse_deviations,
    )
