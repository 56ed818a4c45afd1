"""Base functions by logistic regression, initial points, training, temperature."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, solve_triangular
from scipy.optimize import minimize
from scipy.special import expit, log_softmax

from limes._core.train import TrainedMap, train
from limes._typing import Array, Indices
from limes.fit.config import DEFAULTS
from limes.fit.transfer_set import TransferSet, one_blas_thread
from limes.model.affine import AffineMap
from limes.model.border_map import BorderMap
from limes.model.curved_base import CurvedBase
from limes.sources.platt import minimise_over_factor

# Smallest unit of length of local functions. Guards rows that are all equal.
MIN_RADIUS = 1e-3
# Inputs up to which the regression of a base function is preconditioned by their covariance, and
# relative ridge of that: the choice of an algorithm, not of a result.
MAX_COVARIANCE_INPUTS = 1500
COVARIANCE_RIDGE = 1e-6
# Rows with extreme values, and others, that the covariance is computed from.
COVARIANCE_ROWS = 2500
# Smallest and largest factor on logits. Guards against a loss without a minimum.
TEMPERATURE_BOUNDS = 0.02, 50.0


@one_blas_thread
def fit_base(transfer_set: TransferSet, shape: str) -> tuple[TrainedMap, float]:
    """Fit a base function alone, a map of one point; return its cross-entropy too."""
    rows = transfer_set.rows
    curved = transfer_set.curved_inputs(shape)
    drawn = slice(None, None, max(1, len(rows) // DEFAULTS.train.base_rows))
    inputs = rows[drawn]
    if curved is not None:
        further = (curved.raw(inputs) - curved.means) * curved.inverse_deviations
        inputs = np.concatenate([inputs, further], axis=1)
    targets = transfer_set.probabilities[drawn]
    slopes, offsets, loss = _fit_logistic(inputs, targets)
    components = transfer_set.components
    start = TrainedMap.start(
        np.zeros((1, rows.shape[1] if components is None else components.shape[1])),
        n_features=rows.shape[1],
        n_outputs=targets.shape[1],
        radius=1.0,
        components=None if components is None else components.T,
        curved=curved,
    )
    return replace(start, base_slopes=slopes, base_offsets=offsets), loss


def _fit_logistic(
    inputs: NDArray[np.float32], targets: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32], float]:
    """Fit probabilities by linear logits, by L-BFGS; return slopes, offsets and cross-entropy.

    Parameters are whitened: the inputs of a curved base are far from independent, and the
    regression would take many more steps. The penalty is on the whitened parameters.
    """
    # Centred: a column that is constant but for rare rows would serve as an intercept, with a slope
    # that is wrong by far for those rows.
    means = inputs.mean(axis=0, dtype=np.float64)
    ones = np.ones((len(inputs), 1), dtype=np.float32)
    columns = np.concatenate([(inputs - means).astype(np.float32), ones], axis=1)
    n_outputs, n_columns = targets.shape[1], columns.shape[1]
    from_whitened = _whitening(columns)
    penalty = DEFAULTS.train.base_penalty

    def loss_and_gradient(flat: Array) -> tuple[float, Array]:
        whitened = flat.reshape(n_columns, n_outputs)
        logits = columns @ from_whitened(whitened, False).astype(np.float32)
        loss, errors = _cross_entropy(logits, targets)
        by_parameters = (columns.T @ errors).astype(np.float64) / len(columns)
        gradient = from_whitened(by_parameters, True) + penalty * whitened
        return loss + 0.5 * penalty * float(np.square(flat).sum()), gradient.ravel()

    result = minimize(
        loss_and_gradient,
        np.zeros(n_columns * n_outputs),
        jac=True,
        method="L-BFGS-B",
        options={"ftol": DEFAULTS.train.base_tolerance},
    )
    parameters = from_whitened(result.x.reshape(n_columns, n_outputs), False).astype(np.float32)
    slopes = np.ascontiguousarray(parameters[:-1].T)
    offsets = parameters[-1] - (slopes @ means).astype(np.float32)
    return slopes, offsets, float(result.fun)


def _whitening(columns: NDArray[np.float32]) -> Callable[[Array, bool], Array]:
    """Return the linear map from whitened parameters to those of columns, and its transpose."""
    squares = np.einsum("ij,ij->j", columns, columns, dtype=np.float64) / len(columns)
    if columns.shape[1] > MAX_COVARIANCE_INPUTS:
        scale = np.sqrt(np.where(squares > 0, squares, 1.0))[:, None]
        return lambda parameters, _: parameters / scale
    covariance = _second_moments(columns, squares)
    ridge = COVARIANCE_RIDGE * max(float(np.trace(covariance)) / len(covariance), MIN_RADIUS)
    factor, _ = cho_factor(covariance + ridge * np.eye(len(covariance)), lower=True)

    def apply(parameters: Array, is_transposed: bool) -> Array:
        trans = 0 if is_transposed else 1
        return solve_triangular(factor, parameters, lower=True, trans=trans, check_finite=False)

    return apply


def _second_moments(columns: NDArray[np.float32], squares: Array) -> Array:
    """Return the mean products of columns, of the rows with extreme values and of some others.

    A column that differs from 0 in a few rows, and not in those drawn, would count as constant.
    """
    n_rows = len(columns)
    if n_rows <= 2 * COVARIANCE_ROWS:
        parts = [(1.0, columns)]
    else:
        scale = np.sqrt(np.where(squares > 0, squares, 1.0)).astype(np.float32)
        extremes = np.abs(columns / scale).max(axis=1)
        order = np.argpartition(extremes, n_rows - COVARIANCE_ROWS)
        others = np.sort(order[:-COVARIANCE_ROWS])
        drawn = others[:: len(others) // COVARIANCE_ROWS]
        parts = [
            (1.0, columns[order[-COVARIANCE_ROWS:]]),
            (len(others) / len(drawn), columns[drawn]),
        ]
    moments = np.zeros((columns.shape[1], columns.shape[1]))
    for weight, rows in parts:
        # In float32, rounding errors would exceed the ridge.
        rows = rows.astype(np.float64)
        moments += weight * (rows.T @ rows)
    return moments / n_rows


def _cross_entropy(
    logits: NDArray[np.float32], targets: NDArray[np.float32]
) -> tuple[float, NDArray[np.float32]]:
    """Return the mean cross-entropy, and its derivative by the logits times the rows."""
    if logits.shape[1] == 1:
        loss = np.logaddexp(0, logits) - targets * logits
        return float(loss.mean(dtype=np.float64)), expit(logits) - targets
    logits = logits - logits.max(axis=1, keepdims=True)
    exponentials = np.exp(logits)
    totals = exponentials.sum(axis=1, keepdims=True)
    losses = np.log(totals[:, 0]) - np.einsum("ij,ij->i", targets, logits)
    return float(losses.mean(dtype=np.float64)), exponentials / totals - targets


def with_points(
    base: TrainedMap, transfer_set: TransferSet, n_points: int, rng: np.random.Generator
) -> TrainedMap:
    """Return a map with initial points, denser near the border, on a base function."""
    points, radius = place_points(transfer_set.search_rows, transfer_set.ambiguity, n_points, rng)
    start = TrainedMap.start(
        points,
        n_features=transfer_set.rows.shape[1],
        n_outputs=transfer_set.probabilities.shape[1],
        radius=radius,
        components=base.components,
        curved=base.curved,
    )
    return replace(
        start, base_slopes=base.base_slopes.copy(), base_offsets=base.base_offsets.copy()
    )


def place_points(
    search_rows: NDArray[np.float32], ambiguity: Array, n_points: int, rng: np.random.Generator
) -> tuple[Array, float]:
    """Return initial points, by one step of Lloyd's algorithm, and the spread around them."""
    config = DEFAULTS.train
    weights = ambiguity + DEFAULTS.synthetic.unambiguous_weight
    n_drawn = min(len(search_rows), config.rows_per_initial_point * n_points)
    drawn = rng.choice(len(search_rows), size=n_drawn, replace=False, p=weights / weights.sum())
    rows = search_rows[drawn].astype(np.float64)
    points = rows[: min(n_points, n_drawn)]
    nearest = _nearest(points, rows)
    counts = np.maximum(np.bincount(nearest, minlength=len(points)), 1)
    sums = np.column_stack([np.bincount(nearest, column, len(points)) for column in rows.T])
    points = sums / counts[:, None]
    spread = np.sqrt(np.mean(np.square(rows - points[nearest])))
    return points, max(MIN_RADIUS, float(spread))


def _nearest(points: Array, rows: Array) -> Indices:
    """Return the index of the point nearest to each row."""
    zeros = np.zeros((len(points), 1))
    map_ = BorderMap(points, np.zeros((len(points), 1, points.shape[1])), zeros)
    return map_.nearest(rows)


def continue_training(
    trained: TrainedMap,
    transfer_set: TransferSet,
    *,
    blend: int,
    n_samples: float,
    rng: np.random.Generator,
) -> TrainedMap:
    """Return a map after further training on the transfer set; the given one stays as it is."""
    is_wide = transfer_set.components is not None
    config = DEFAULTS.train
    copy = replace(
        trained,
        **{
            name: getattr(trained, name).copy()
            for name in ("points", "slopes", "offsets", "base_slopes", "base_offsets", "components")
            if getattr(trained, name) is not None
        },
    )
    train(
        copy,
        transfer_set.rows,
        transfer_set.probabilities,
        blend=blend,
        n_samples=int(n_samples),
        n_batch=min(config.batch_size, len(transfer_set.rows)),
        rates=config.learning_rates,
        decay=config.wide_weight_decay if is_wide else config.weight_decay,
        seed=int(rng.integers(2**62)),
    )
    return copy


def to_border_map(trained: TrainedMap, blend: int) -> BorderMap:
    """Return a map in training as one that predicts logits."""
    slopes, offsets = trained.linear_functions()
    curve = projection = None
    coefficients = trained.curve_coefficients()
    if trained.curved is not None and coefficients is not None:
        curve = CurvedBase(_to_terms(trained), *coefficients, decay=trained.curved.decay)
    if trained.components is not None:
        matrix = trained.components.T.astype(np.float64)
        projection = AffineMap(np.zeros(len(matrix)), matrix)
    points = trained.points.astype(np.float64)
    return BorderMap(points, slopes, offsets, projection, blend, curve)


def _to_terms(trained: TrainedMap) -> AffineMap:
    """Return the step from rows to the terms of a curved base."""
    curved = trained.curved
    assert curved is not None
    center = curved.center.astype(np.float64)
    if curved.directions is None:
        return AffineMap.scaling(center, np.full(len(center), float(curved.scale)))
    return AffineMap(center, curved.directions.T.astype(np.float64))


def calibrate(map_: BorderMap, rows: Array, probabilities: Array, weights: Array) -> BorderMap:
    """Return a map of logits as decision values, scaled to the given probabilities of rows."""
    logits = map_.decide(rows).astype(np.float64)
    if logits.shape[1] == 1:
        logits = np.column_stack([np.zeros(len(logits)), logits])

    def cross_entropy(factor: float) -> float:
        predicted = log_softmax(factor * logits, axis=1)
        return float(-weights @ np.sum(probabilities * predicted, axis=1))

    factor = fit_inverse_temperature(cross_entropy)
    # The decision value of a single border is half a logit.
    return map_.scaled(0.5 * factor if map_.n_outputs == 1 else factor)


def fit_inverse_temperature(loss: Callable[[float], float]) -> float:
    """Return the factor on logits at which a loss is smallest."""
    low, high = TEMPERATURE_BOUNDS
    return minimise_over_factor(loss, low, high)


@dataclass(frozen=True, eq=False)
class PairMapTrainer:
    """Trains the maps of several borders on parts of the same rows."""

    # Shape (n_rows, n_features). Float32, in the space of the source.
    rows: NDArray[np.float32]
    # Shape (n_features, n_search). Directions in which all maps are searched; None where rows are
    # searched as they are.
    components: Array | None
    # Largest number of points of a map.
    n_points: int
    # Number of nearest points whose functions are averaged.
    blend: int

    def train(
        self, row_index: Indices, decisions: Array, n_samples: int, rng: np.random.Generator
    ) -> BorderMap:
        """Train the map of one border on some of the rows and their decision values."""
        rows = self.rows[row_index]
        probabilities = expit(2 * decisions)
        search_rows = rows if self.components is None else rows @ self.components.astype(np.float32)
        n_points = max(1, min(self.n_points, len(rows) // DEFAULTS.train.min_rows_per_point))
        ambiguity = 1 - np.abs(2 * probabilities - 1)
        points, radius = place_points(search_rows, ambiguity, n_points, rng)
        trained = TrainedMap.start(
            points,
            n_features=rows.shape[1],
            n_outputs=1,
            radius=radius,
            components=None if self.components is None else self.components.T,
        )
        train(
            trained,
            rows,
            probabilities[:, None].astype(np.float32),
            blend=self.blend,
            n_samples=max(n_samples, DEFAULTS.train.min_pair_epochs * len(rows)),
            n_batch=min(DEFAULTS.train.batch_size, len(rows)),
            # Components stay, since all maps of a scheme are searched in the same.
            rates=(*DEFAULTS.train.learning_rates[:3], 0.0),
            decay=DEFAULTS.train.weight_decay,
            seed=int(rng.integers(2**62)),
        )
        # A decision value is half a logit.
        return to_border_map(trained, self.blend).scaled(0.5)


def with_projection(map_: BorderMap, projection: AffineMap | None) -> BorderMap:
    """Return a map whose points are searched behind the projection of its scheme."""
    if projection is None:
        return map_
    return BorderMap(
        projection.apply(map_.points), map_.slopes, map_.offsets, projection, map_.blend
    )
