"""Rows with the source's probabilities, and the inputs of base functions of these rows."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import ThreadpoolController

from limes._core.train import CurvedInputs
from limes._typing import Array, Indices
from limes.fit.config import DEFAULTS
from limes.fit.data import EncodedRows
from limes.fit.synthetic import coverage_rows, mix_components, sample_near_border
from limes.sources.base import MulticlassSource

Function = TypeVar("Function", bound=Callable[..., Any])
# For results that do not depend on the number of threads of BLAS.
one_blas_thread: Callable[[Function], Function] = ThreadpoolController().wrap(
    limits=1, user_api="blas"
)

# Features up to which principal components come from the covariance matrix: the choice of an
# algorithm, not of a result.
MAX_COVARIANCE_FEATURES = 3000
# Smallest mean square of the terms of a curved base. Guards rows that are all equal.
MIN_MEAN_SQUARE = 1e-30
# Values of the synthetic rows together: 100 MB of float32. Rows in one call of the source. Bound
# memory.
MAX_VALUES = 2.4e7
QUERY_BLOCK_ROWS = 4096
# Rows that principal components, and the exponent of the probabilities, are computed from: bound
# the time.
COMPONENT_ROWS, SHARPENING_ROWS = 5000, 5000
# Largest exponent of the probabilities, and its precision.
MAX_SHARPENING, SHARPENING_TOLERANCE = 16.0, 0.01


@dataclass(frozen=True, eq=False)
class TransferSet:
    """Real and synthetic rows with the source's probabilities, which maps are trained on."""

    # Shape (n_rows, n_features). Real rows first; float32, in the space of the source.
    rows: NDArray[np.float32]
    # Shape (n_rows, n_outputs). Of the second class alone where there are two.
    probabilities: NDArray[np.float32]
    # Shape (n_rows,). 1 where two classes are equally likely, 0 where one is certain.
    ambiguity: Array
    # Shape (n_features, n_search). Principal components that rows are searched in; None where they
    # are searched as they are.
    components: Array | None
    # Share of the variance of the real rows along the components.
    explained_share: float
    # Shape (n_directions, n_features). Directions of a curved base; None for all features.
    directions: Array | None
    # Number of real rows.
    n_real: int
    # Exponent of the probabilities: that of the first set where others are added.
    sharpening: float
    # Of a table: the real rows before the linear steps.
    encoded: EncodedRows | None = None

    @cached_property
    @one_blas_thread
    def search_rows(self) -> NDArray[np.float32]:
        """The rows in the space where nearest points are searched."""
        if self.components is None:
            return self.rows
        return self.rows @ self.components.astype(np.float32)

    @cached_property
    def center(self) -> Array:
        """Mean of the real rows."""
        return self.rows[: self.n_real].mean(axis=0, dtype=np.float64)

    @one_blas_thread
    def curved_inputs(self, shape: str) -> CurvedInputs | None:
        """Return the inputs of a base function of some shape beside the features."""
        if shape == "linear":
            return None
        centred = self.rows[: self.n_real] - self.center
        directions = self.directions
        if directions is not None:
            centred = centred @ directions.T
        # Of the mean square of the terms, the median over the real rows becomes 1.
        mean_square = float(np.median(np.mean(np.square(centred), axis=1)))
        scale = 1.0 / np.sqrt(max(mean_square, MIN_MEAN_SQUARE))
        return CurvedInputs.from_rows(
            shape,
            self.rows[:: max(1, len(self.rows) // DEFAULTS.train.base_rows)],
            center=self.center,
            scale=scale if directions is None else 1.0,
            directions=None if directions is None else scale * directions,
            decay=DEFAULTS.train.envelope_decay,
        )


def build_transfer_set(
    source: MulticlassSource,
    rows: Array,
    *,
    rng: np.random.Generator,
    encoded: EncodedRows | None = None,
) -> TransferSet:
    """Label real rows, and many synthetic ones made from them, with the source's probabilities.

    Those of a table are made from its encoded rows, so that categories are not mixed.
    """
    config = DEFAULTS.transfer
    n_features = rows.shape[1]
    n_synthetic = min(
        config.max_synthetic_rows,
        max(config.default_synthetic_rows, config.synthetic_rows_per_row * len(rows)),
        config.max_query_cost / source.query_cost,
    )
    n_synthetic = min(max(n_synthetic, config.min_synthetic_rows), MAX_VALUES / n_features)
    is_wide = n_features >= config.wide_features
    components, explained_share = _principal_components(rows) if is_wide else (None, 1.0)
    labelled, logits = _label_rows(
        source, rows, len(rows), int(n_synthetic), components, explained_share, rng, encoded
    )
    sharpening = find_sharpening(logits[:: max(1, len(logits) // SHARPENING_ROWS)])
    return TransferSet(
        labelled,
        *_targets(logits, sharpening),
        components,
        explained_share,
        _gradient_directions(source, rows, logits, rng) if is_wide else None,
        len(rows),
        sharpening,
        encoded,
    )


def extend_transfer_set(
    transfer_set: TransferSet,
    source: MulticlassSource,
    rows: Array,
    *,
    rng: np.random.Generator,
    encoded: EncodedRows | None = None,
) -> TransferSet:
    """Add further real rows, and as many synthetic ones for each as there are already."""
    n_real, n_synthetic = transfer_set.n_real, len(transfer_set.rows) - transfer_set.n_real
    # In the same precision, or a category would have two values.
    added = rows.astype(np.float32)
    if encoded is not None and transfer_set.encoded is not None:
        encoded = encoded.followed_by(transfer_set.encoded)
    labelled, logits = _label_rows(
        source,
        np.concatenate([added, transfer_set.rows[:n_real]]).astype(np.float64),
        len(rows),
        n_synthetic * len(rows) // n_real,
        transfer_set.components,
        transfer_set.explained_share,
        rng,
        encoded,
    )
    probabilities, ambiguity = _targets(logits, transfer_set.sharpening)

    def join(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
        """Return the values of both sets, those of real rows first."""
        return np.concatenate([old[:n_real], new[: len(rows)], old[n_real:], new[len(rows) :]])

    return TransferSet(
        join(transfer_set.rows, labelled),
        join(transfer_set.probabilities, probabilities),
        join(transfer_set.ambiguity, ambiguity),
        transfer_set.components,
        transfer_set.explained_share,
        transfer_set.directions,
        n_real + len(rows),
        transfer_set.sharpening,
    )


def _label_rows(
    source: MulticlassSource,
    rows: Array,
    n_starts: int,
    n_more: int,
    components: Array | None,
    explained_share: float,
    rng: np.random.Generator,
    encoded: EncodedRows | None,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the first rows, and more that are made from them or repeat them, with their logits.

    The rows after the first are neighbours alone.
    """
    starts = rows[:n_starts]
    logits = query_source(source, starts)
    # Not of wide rows of independent features, which the source has memorised.
    real_share = DEFAULTS.transfer.real_share * explained_share**2
    n_repeats = int(real_share * n_more / n_starts)
    synthetic = _synthetic_rows(
        rows, logits, n_more - n_repeats * n_starts, components, explained_share, rng, encoded
    )
    real = [starts.astype(np.float32)] * (n_repeats + 1)
    all_logits = [logits, query_source(source, synthetic), *[logits] * n_repeats]
    return np.concatenate([real[0], synthetic, *real[1:]]), np.concatenate(all_logits)


@one_blas_thread
def _synthetic_rows(
    rows: Array,
    logits: NDArray[np.float32],
    n_synthetic: int,
    components: Array | None,
    explained_share: float,
    rng: np.random.Generator,
    encoded: EncodedRows | None,
) -> NDArray[np.float32]:
    """Make rows near real ones, more where the source is ambiguous, and between any two.

    The logits are those of the first rows, which synthetic ones start from; the others are
    neighbours alone.
    """
    config = DEFAULTS.transfer
    is_wide = components is not None
    share = config.wide_coverage_share if is_wide else config.coverage_share
    n_coverage = int(share * n_synthetic)
    parents, groups = (rows, None) if encoded is None else (encoded.rows, encoded.groups)
    near_border = sample_near_border(
        parents,
        ambiguity_of(logits),
        n_synthetic - n_coverage,
        search_rows=rows if components is None else rows @ components,
        correlated_share=explained_share,
        rng=rng,
        groups=groups,
    )
    # Components of as many features as there are rows would be those of single rows.
    make_coverage = coverage_rows if is_wide else mix_components
    coverage = make_coverage(parents[: len(logits)], n_coverage, rng, groups=groups)
    synthetic = np.concatenate([near_border, coverage.astype(np.float32)])
    return synthetic if encoded is None else encoded.to_source_space(synthetic).astype(np.float32)


def query_source(source: MulticlassSource, rows: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return the source's logits, block by block."""
    n_block = QUERY_BLOCK_ROWS
    logits = np.concatenate(
        [
            np.asarray(source.logits(rows[start : start + n_block].astype(np.float64)), np.float32)
            for start in range(0, len(rows), n_block)
        ]
    )
    if not np.isfinite(logits).all():
        raise ValueError(
            f"the source must give finite scores, got {logits[~np.isfinite(logits)][0]} for a row. "
            "Check the row's values and the source."
        )
    return logits


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the probabilities that logits stand for."""
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def ambiguity_of(logits: NDArray[np.float32]) -> Array:
    """Return 1 minus the difference of the two largest probabilities of each row.

    Examples
    --------
    >>> ambiguity_of(np.log([[0.25, 0.75], [0.5, 0.5]])).round(3)
    array([0.5, 1. ])
    """
    largest = np.partition(softmax(logits), -2, axis=1)[:, -2:]
    return 1.0 - (largest[:, 1] - largest[:, 0]).astype(np.float64)


def find_sharpening(logits: NDArray[np.float32]) -> float:
    """Return the smallest exponent of probabilities, at least 1, that makes many classes distinct.

    The softmax of the scores of many classes is too flat to learn from: the mean probability of all
    but the two likeliest classes is brought below a bound.

    Examples
    --------
    >>> find_sharpening(np.zeros((1, 2), dtype=np.float32))
    1.0
    """
    config = DEFAULTS.transfer
    n_classes = logits.shape[1]
    low, high = 1.0, MAX_SHARPENING

    def rest(exponent: float) -> float:
        probabilities = np.partition(softmax(np.float32(exponent) * logits), -2, axis=1)
        return float(np.mean(probabilities[:, : n_classes - 2].sum(axis=1)))

    if n_classes == 2 or rest(low) <= config.max_rest_probability:
        return low
    while high - low > SHARPENING_TOLERANCE:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if rest(middle) > config.max_rest_probability else (low, middle)
    return high


def _targets(logits: NDArray[np.float32], sharpening: float) -> tuple[NDArray[np.float32], Array]:
    """Return the probabilities to train on, and the ambiguity of each row."""
    probabilities = softmax(np.float32(sharpening) * logits)
    is_binary = probabilities.shape[1] == 2
    return np.ascontiguousarray(probabilities[:, 1:] if is_binary else probabilities), ambiguity_of(
        logits
    )


@one_blas_thread
def _principal_components(rows: Array) -> tuple[Array, float]:
    """Return the directions in which rows vary most, and their share of the variance."""
    n_components = DEFAULTS.transfer.n_components
    sample = rows[:: max(1, len(rows) // COMPONENT_ROWS)]
    centred = sample - sample.mean(axis=0)
    if centred.shape[1] > MAX_COVARIANCE_FEATURES:
        directions = randomized_svd(centred, n_components, random_state=0)[2].T
    else:
        _, directions = np.linalg.eigh(centred.T @ centred)
        directions = directions[:, ::-1][:, :n_components]
    directions = np.ascontiguousarray(directions)
    total = float(np.square(centred).sum())
    explained = float(np.square(centred @ directions).sum())
    return directions, min(1.0, explained / total) if total > 0 else 1.0


@one_blas_thread
def _gradient_directions(
    source: MulticlassSource,
    rows: Array,
    logits: NDArray[np.float32],
    rng: np.random.Generator,
) -> Array | None:
    """Return the directions in which the source's decision values change most.

    They are the first singular vectors of gradients, each of the pair of likeliest classes of a
    row. None where the gradients of enough rows take longer than all logits, those of the synthetic
    rows included.
    """
    config, logits_cost = DEFAULTS.transfer, len(logits) * source.query_cost
    n_rows = int(min(config.gradient_rows, logits_cost / source.gradient_cost))
    if min(n_rows, len(rows)) < config.n_directions:
        return None
    logits = logits[: len(rows)]
    weights = ambiguity_of(logits) + DEFAULTS.synthetic.unambiguous_weight
    drawn = rng.choice(len(rows), min(n_rows, len(rows)), replace=False, p=weights / weights.sum())
    gradients = _pair_gradients(source, rows[drawn], logits[drawn])
    return np.linalg.svd(gradients, full_matrices=False)[2][: config.n_directions]


def _pair_gradients(source: MulticlassSource, rows: Array, logits: NDArray[np.float32]) -> Array:
    """Return the gradient of the decision value between the two likeliest classes of each row."""
    pairs = np.sort(np.argsort(logits, axis=1)[:, -2:], axis=1)
    gradients = np.empty(rows.shape)
    for first, second in np.unique(pairs, axis=0):
        places: Indices = np.flatnonzero((pairs == (first, second)).all(axis=1))
        border = source.pair_border(int(first), int(second))
        gradients[places] = border.gradient(rows[places])
    return gradients
