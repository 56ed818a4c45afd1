"""Initial points (k-means), training budget, trainer call, temperature."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax
from sklearn.cluster import MiniBatchKMeans

from limes._core.train import TrainedMap, train
from limes._typing import Array, Indices
from limes.fit.config import DEFAULTS, Budget
from limes.fit.transfer_set import TransferSet
from limes.model.affine import AffineMap
from limes.model.border_map import BorderMap
from limes.sources.platt import minimise_over_factor

# Smallest unit of length of local functions. Guards rows that are all equal.
MIN_RADIUS = 1e-3


def fit_map(
    transfer_set: TransferSet,
    *,
    n_points: int,
    blend: int,
    budget: Budget,
    rng: np.random.Generator,
) -> BorderMap:
    """Train a map of all classes on the transfer set; its values are logits."""
    points, radius = _place_points(transfer_set, n_points, rng)
    n_rows = len(transfer_set.rows)
    n_samples = min(
        budget.max_samples,
        budget.max_epochs * n_rows,
        n_training_samples(transfer_set, n_points, blend, budget.seconds),
    )
    return _train_map(
        points,
        radius,
        transfer_set.rows,
        transfer_set.probabilities,
        components=transfer_set.components,
        blend=blend,
        n_samples=n_samples,
        batch_size=DEFAULTS.train.batch_size,
        learning_rates=DEFAULTS.train.learning_rates,
        weight_decay=DEFAULTS.train.weight_decay
        if transfer_set.components is None
        else DEFAULTS.train.wide_weight_decay,
        rng=rng,
    )


def _place_points(
    transfer_set: TransferSet, n_points: int, rng: np.random.Generator
) -> tuple[Array, float]:
    """Return initial points, denser where the source is ambiguous, and the spread around them."""
    if n_points == 1:
        return np.zeros((1, transfer_set.search_rows.shape[1])), 1.0
    config = DEFAULTS.train
    weights = transfer_set.ambiguity + config.unambiguous_weight
    n_drawn = max(config.kmeans_rows_per_point * n_points, config.min_kmeans_rows)
    drawn = rng.choice(len(transfer_set.rows), size=n_drawn, p=weights / weights.sum())
    rows = transfer_set.search_rows[drawn]
    kmeans = MiniBatchKMeans(
        n_points,
        init="random",
        n_init=1,
        max_iter=config.kmeans_steps,
        batch_size=config.kmeans_batch,
        random_state=int(rng.integers(2**31)),
    ).fit(rows)
    variance = np.square(rows - kmeans.cluster_centers_[kmeans.labels_]).mean()
    return kmeans.cluster_centers_, max(MIN_RADIUS, float(np.sqrt(variance)))


def n_training_samples(
    transfer_set: TransferSet, n_points: int, blend: int, seconds: float
) -> float:
    """Return the number of samples in the training of a map that takes so many seconds."""
    config = DEFAULTS.train
    max_samples = min(config.max_epochs * len(transfer_set.rows), config.max_samples)
    if (
        n_points <= config.few_points
        and transfer_set.n_real >= config.rows_per_point_for_longer * n_points
    ):
        max_samples *= config.longer_factor
    min_samples = min(config.min_samples, config.min_samples_per_second * seconds)
    affordable = seconds / seconds_per_sample(transfer_set, n_points, blend)
    return max(min_samples, min(max_samples, affordable))


def seconds_per_sample(transfer_set: TransferSet, n_points: int, blend: int) -> float:
    """Return the time of one sample in training, by a cost model.

    It is a formula, not a clock, so that a fit does not depend on the load of the computer.
    """
    config = DEFAULTS.train
    n_features, n_search = transfer_set.rows.shape[1], transfer_set.search_rows.shape[1]
    n_outputs = transfer_set.probabilities.shape[1]
    projection = 0 if transfer_set.components is None else 2 * n_search * n_features
    products = n_points * n_search + projection + 2 * n_outputs * n_features
    # Several outputs are computed in vectors of eight.
    local = n_search * (n_outputs if n_outputs == 1 else -(-n_outputs // 8) * 8)
    nanoseconds = (
        config.blended_point_ns * blend
        + config.point_ns * n_points
        + products / config.products_per_ns
        + blend * local / config.local_products_per_ns
    )
    return 1e-9 * (nanoseconds + config.update_ns * n_points * local / config.batch_size)


def _train_map(
    points: Array,
    radius: float,
    rows: NDArray[np.float32],
    probabilities: NDArray[np.float32],
    *,
    components: Array | None,
    blend: int,
    n_samples: float,
    batch_size: int,
    learning_rates: tuple[float, float, float, float],
    weight_decay: float,
    rng: np.random.Generator,
) -> BorderMap:
    """Train a map from its initial points, and return it as one that predicts logits."""
    trained = TrainedMap.start(
        points,
        n_features=rows.shape[1],
        n_outputs=probabilities.shape[1],
        radius=radius,
        components=None if components is None else components.T,
    )
    train(
        trained,
        rows,
        probabilities,
        blend=blend,
        n_samples=round(max(DEFAULTS.train.min_epochs * len(rows), n_samples)),
        n_batch=batch_size,
        rates=learning_rates,
        decay=weight_decay,
        seed=int(rng.integers(2**62)),
    )
    slopes, offsets = trained.linear_functions()
    projection = None
    if trained.components is not None:
        matrix = trained.components.T.astype(float)
        projection = AffineMap(np.zeros(len(matrix)), matrix)
    points = trained.points.astype(float)
    return BorderMap(points, slopes, offsets, projection, blend)


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
    low, high = DEFAULTS.train.temperature_bounds
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
        search_rows = rows if self.components is None else rows @ self.components
        n_points = max(1, min(self.n_points, len(rows) // DEFAULTS.train.min_rows_per_point))
        ambiguity = 1 - np.abs(2 * probabilities - 1)
        points, radius = _place_pair_points(search_rows, ambiguity, n_points, rng)
        map_ = _train_map(
            points,
            radius,
            rows,
            probabilities[:, None].astype(np.float32),
            components=self.components,
            blend=self.blend,
            n_samples=n_samples,
            batch_size=min(DEFAULTS.train.batch_size, len(rows)),
            # Components stay, since all maps of a scheme are searched in the same.
            learning_rates=(*DEFAULTS.train.learning_rates[:3], 0.0),
            weight_decay=DEFAULTS.train.weight_decay,
            rng=rng,
        )
        # A decision value is half a logit.
        return map_.scaled(0.5)


def _place_pair_points(
    search_rows: NDArray[np.floating], ambiguity: Array, n_points: int, rng: np.random.Generator
) -> tuple[Array, float]:
    """Return initial points, denser near the border, and the spread around them."""
    if n_points == 1:
        return np.zeros((1, search_rows.shape[1])), 1.0
    config = DEFAULTS.train
    weights = ambiguity + config.unambiguous_weight
    n_drawn = min(len(search_rows), config.pair_kmeans_rows_per_point * n_points)
    drawn = rng.choice(len(search_rows), size=n_drawn, replace=False, p=weights / weights.sum())
    rows = search_rows[drawn].astype(float)
    points = rows[:n_points].copy()
    for _ in range(config.pair_kmeans_steps):
        is_nearest = np.eye(n_points)[_nearest(points, rows)]
        counts = is_nearest.sum(axis=0)[:, None]
        points = np.where(counts > 0, is_nearest.T @ rows / np.maximum(counts, 1), points)
    variance = np.square(rows - points[_nearest(points, rows)]).mean()
    return points, max(MIN_RADIUS, float(np.sqrt(variance)))


def _nearest(points: Array, rows: Array) -> Indices:
    """Return the index of the point nearest to each row."""
    return np.argmin(0.5 * np.square(points).sum(axis=1) - rows @ points.T, axis=1)


def with_projection(map_: BorderMap, projection: AffineMap | None) -> BorderMap:
    """Return a map whose points are searched behind the projection of its scheme."""
    if projection is None:
        return map_
    return BorderMap(
        projection.apply(map_.points), map_.slopes, map_.offsets, projection, map_.blend
    )
