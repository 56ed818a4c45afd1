"""Many borders of one source, each a small map that is fitted to some of the rows asked about."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from limes._core.training import TrainedMap, train
from limes._typing import Array, Codes
from limes.affine import AffineMap
from limes.border_map import BorderMap
from limes.refine import DECAY, MIN_RADIUS, N_BATCH, RATES

# Number of nearest points whose functions are averaged, unless another is given.
DEFAULT_BLEND = 4
# A map has at most one point for so many rows, or it learns the rows instead of the border.
ROWS_A_POINT = 20
# Rows for each point of k-means, its steps, and how likely a row far from the border is.
PLACED_A_POINT = 16
N_STEPS = 3
SURE_SHARE = 0.02


@dataclass(frozen=True, eq=False)
class Schoolroom:
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
    n_looks: int

    def fit(self, some: Codes, decisions: Array, rng: np.random.Generator) -> BorderMap:
        """Fit the map of one border."""
        rows = self.rows[some]
        chances = expit(2 * decisions)
        search = rows if self.components is None else rows @ self.components
        n_points = max(1, min(self.n_points, len(some) // ROWS_A_POINT))
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
            n_epochs=max(2, round(self.n_looks / len(rows))),
            n_batch=min(N_BATCH, len(rows)),
            rates=(*RATES[:3], 0.0),
            decay=DECAY,
            seed=int(rng.integers(2**62)),
        )


def _place(
    search: NDArray[np.floating], doubt: Array, n_points: int, rng: np.random.Generator
) -> tuple[Array, float]:
    """Spread points over rows by a few steps of k-means, more of them near the border."""
    if n_points == 1:
        return np.zeros((1, search.shape[1])), 1.0
    chance = (doubt + SURE_SHARE) / (doubt + SURE_SHARE).sum()
    n_placed = min(len(search), PLACED_A_POINT * n_points)
    rows = search[rng.choice(len(search), size=n_placed, replace=False, p=chance)].astype(float)
    points = rows[:n_points].copy()
    for _ in range(N_STEPS):
        nearest = _nearest(points, rows)
        members = np.eye(n_points)[nearest]
        counts = members.sum(axis=0)[:, None]
        points = np.where(counts > 0, members.T @ rows / np.maximum(counts, 1), points)
    spread = np.square(rows - points[_nearest(points, rows)]).mean()
    return points, max(MIN_RADIUS, float(np.sqrt(spread)))


def _nearest(points: Array, rows: Array) -> Codes:
    """Return the number of the point nearest to each row."""
    return np.argmin(0.5 * np.square(points).sum(axis=1) - rows @ points.T, axis=1)


def to_map(fitted: TrainedMap, blend: int) -> BorderMap:
    """Return a trained map as one that predicts; its values are logits."""
    slopes, offsets = fitted.functions()
    before = None
    if fitted.components is not None:
        components = fitted.components.T.astype(float)
        before = AffineMap(np.zeros(len(components)), components)
    points = fitted.points.astype(float)
    return BorderMap(points, slopes.transpose(0, 2, 1), offsets, before, blend)


def projected(one: BorderMap, before: AffineMap | None) -> BorderMap:
    """Return a map whose points are searched in few directions, as those of its scheme are."""
    if before is None:
        return one
    return BorderMap(before.apply(one.points), one.normals, one.offsets, before, one.blend)
