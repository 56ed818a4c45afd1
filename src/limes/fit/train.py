"""Initial points (k-means), training budget, trainer call, temperature."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax
from sklearn.cluster import MiniBatchKMeans

from limes._core.train import TrainedMap, train
from limes._typing import Array, Indices
from limes.fit.config import DEFAULTS
from limes.fit.transfer_set import TransferSet
from limes.model.affine import AffineMap
from limes.model.border_map import BorderMap

# The unit of length of local functions, where all rows are one.
MIN_RADIUS = 1e-3


def fit_map(
    transfer_set: TransferSet,
    *,
    n_points: int,
    blend: int,
    rng: np.random.Generator,
    seconds: float = DEFAULTS.train.search_seconds,
    max_samples: float = np.inf,
) -> TrainedMap:
    """Fit points and their linear functions to the lessons."""
    points, radius = _place_points(transfer_set, n_points, rng)
    n_samples = min(max_samples, count_samples(transfer_set, n_points, blend, seconds))
    fitted = TrainedMap.start(
        points,
        n_features=transfer_set.rows.shape[1],
        n_outputs=transfer_set.probabilities.shape[1],
        radius=radius,
        components=None if transfer_set.components is None else transfer_set.components.T,
    )
    train(
        fitted,
        transfer_set.rows,
        transfer_set.probabilities,
        weights=np.ones(len(transfer_set.rows), dtype=np.float32),
        blend=blend,
        n_epochs=max(2, round(n_samples / len(transfer_set.rows))),
        n_batch=DEFAULTS.train.batch_size,
        rates=DEFAULTS.train.learning_rates,
        decay=DEFAULTS.train.weight_decay
        if transfer_set.components is None
        else DEFAULTS.train.wide_weight_decay,
        seed=int(rng.integers(2**62)),
    )
    return fitted


def count_samples(transfer_set: TransferSet, n_points: int, blend: int, seconds: float) -> float:
    """Return how many rows training should look at in all."""
    enough = min(DEFAULTS.train.max_epochs * len(transfer_set.rows), DEFAULTS.train.max_samples)
    if (
        n_points <= DEFAULTS.train.few_points
        and transfer_set.n_real >= DEFAULTS.train.rows_per_point_for_longer * n_points
    ):
        enough *= DEFAULTS.train.longer_factor
    few = min(DEFAULTS.train.min_samples, DEFAULTS.train.min_samples_per_second * seconds)
    return max(few, min(enough, seconds / seconds_per_sample(transfer_set, n_points, blend)))


def seconds_per_sample(transfer_set: TransferSet, n_points: int, blend: int) -> float:
    """Return about how long training looks at one row, as it was measured on one processor.

    It is a formula, not a clock, so that a fit does not depend on what else the machine does.
    """
    n_features, n_search = transfer_set.rows.shape[1], transfer_set.search.shape[1]
    n_outputs = transfer_set.probabilities.shape[1]
    projected = 0 if transfer_set.components is None else 2 * n_search * n_features
    products = n_points * n_search + projected + 2 * n_outputs * n_features
    # Outputs are computed by eights.
    local = n_search * (n_outputs if n_outputs == 1 else -(-n_outputs // 8) * 8)
    nanoseconds = 100 * blend + 1.2 * n_points + products / 15 + blend * local / 4
    return 1e-9 * (nanoseconds + 2 * n_points * local / DEFAULTS.train.batch_size)


def fit_inverse_temperature(logits: Array, probabilities: Array, weights: Array) -> float:
    """Return the factor by which logits come nearest to the source's own probabilities."""
    if logits.shape[1] == 1:
        logits = np.column_stack([np.zeros(len(logits)), logits])

    def loss(log_factor: float) -> float:
        expected = log_softmax(np.exp(log_factor) * logits, axis=1)
        return float(-weights @ np.sum(probabilities * expected, axis=1))

    found = minimize_scalar(loss, bounds=(np.log(0.02), np.log(50)), method="bounded")
    return float(np.exp(found.x))


def _place_points(
    transfer_set: TransferSet, n_points: int, rng: np.random.Generator
) -> tuple[Array, float]:
    """Spread points over the rows, more of them where the source is in doubt."""
    if n_points == 1:
        return np.zeros((1, transfer_set.search.shape[1])), 1.0
    chance = transfer_set.ambiguity + DEFAULTS.train.unambiguous_weight
    n_drawn = max(DEFAULTS.train.kmeans_rows_per_point * n_points, DEFAULTS.train.min_kmeans_rows)
    picked = rng.choice(len(transfer_set.rows), size=n_drawn, p=chance / chance.sum())
    rows = transfer_set.search[picked]
    means = MiniBatchKMeans(
        n_points,
        init="random",
        n_init=1,
        max_iter=10,
        batch_size=4096,
        random_state=int(rng.integers(2**31)),
    ).fit(rows)
    spread = np.square(rows - means.cluster_centers_[means.labels_]).mean()
    return means.cluster_centers_, max(MIN_RADIUS, float(np.sqrt(spread)))


@dataclass(frozen=True, eq=False)
class PairMapTrainer:
    """Rows that several borders are learnt from, and how their maps are to be."""

    # Shape (n_rows, n_features). Float32, in the space of the source.
    rows: NDArray[np.float32]
    # Shape (n_features, n_search). Directions in which all maps are searched; None for the rows
    # themselves.
    components: Array | None
    # The most points of a map.
    n_points: int
    # Number of nearest points whose functions are averaged.
    blend: int
    # Rows that the fit of a map looks at in all.
    n_samples: int

    def fit(self, some: Indices, decisions: Array, rng: np.random.Generator) -> BorderMap:
        """Fit the map of one border."""
        rows = self.rows[some]
        chances = expit(2 * decisions)
        search = rows if self.components is None else rows @ self.components
        n_points = max(1, min(self.n_points, len(some) // DEFAULTS.train.min_rows_per_point))
        points, radius = _place(search, 1 - np.abs(2 * chances - 1), n_points, rng)
        fitted = TrainedMap.start(
            points,
            n_features=rows.shape[1],
            n_outputs=1,
            radius=radius,
            components=None if self.components is None else self.components.T,
        )
        self._train(fitted, rows, chances, rng)
        # A decision value is half a logit.
        return to_map(fitted, self.blend).scaled(0.5)

    def _train(
        self,
        fitted: TrainedMap,
        rows: NDArray[np.float32],
        chances: Array,
        rng: np.random.Generator,
    ) -> None:
        """Train a map; its components stay, since all maps of a scheme are searched in the same."""
        train(
            fitted,
            rows,
            chances[:, None].astype(np.float32),
            weights=np.ones(len(rows), dtype=np.float32),
            blend=self.blend,
            n_epochs=max(2, round(self.n_samples / len(rows))),
            n_batch=min(DEFAULTS.train.batch_size, len(rows)),
            rates=(*DEFAULTS.train.learning_rates[:3], 0.0),
            decay=DEFAULTS.train.weight_decay,
            seed=int(rng.integers(2**62)),
        )


def _place(
    search: NDArray[np.floating], ambiguity: Array, n_points: int, rng: np.random.Generator
) -> tuple[Array, float]:
    """Spread points over rows by a few steps of k-means, more of them near the border."""
    if n_points == 1:
        return np.zeros((1, search.shape[1])), 1.0
    chance = (ambiguity + DEFAULTS.train.unambiguous_weight) / (
        ambiguity + DEFAULTS.train.unambiguous_weight
    ).sum()
    n_placed = min(len(search), DEFAULTS.train.pair_kmeans_rows_per_point * n_points)
    rows = search[rng.choice(len(search), size=n_placed, replace=False, p=chance)].astype(float)
    points = rows[:n_points].copy()
    for _ in range(DEFAULTS.train.pair_kmeans_steps):
        nearest = _nearest(points, rows)
        members = np.eye(n_points)[nearest]
        counts = members.sum(axis=0)[:, None]
        points = np.where(counts > 0, members.T @ rows / np.maximum(counts, 1), points)
    spread = np.square(rows - points[_nearest(points, rows)]).mean()
    return points, max(MIN_RADIUS, float(np.sqrt(spread)))


def _nearest(points: Array, rows: Array) -> Indices:
    """Return the number of the point nearest to each row."""
    return np.argmin(0.5 * np.square(points).sum(axis=1) - rows @ points.T, axis=1)


def to_map(fitted: TrainedMap, blend: int) -> BorderMap:
    """Return a trained map as one that predicts; its values are logits."""
    slopes, offsets = fitted.linear_functions()
    preprocessing = None
    if fitted.components is not None:
        components = fitted.components.T.astype(float)
        preprocessing = AffineMap(np.zeros(len(components)), components)
    points = fitted.points.astype(float)
    return BorderMap(points, slopes, offsets, preprocessing, blend)


def projected(one: BorderMap, preprocessing: AffineMap | None) -> BorderMap:
    """Return a map whose points are searched in few directions, as those of its scheme are."""
    if preprocessing is None:
        return one
    return BorderMap(
        preprocessing.apply(one.points), one.slopes, one.offsets, preprocessing, one.blend
    )
