"""Rows with the source's probabilities; principal components of wide rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils.extmath import randomized_svd

from limes._typing import Array
from limes.fit.config import DEFAULTS
from limes.fit.synthetic import coverage_rows, sample_near_border
from limes.sources.base import MulticlassSource

# Features up to which principal components come from the covariance matrix: the choice of an
# algorithm, not of a result.
MAX_COVARIANCE_FEATURES = 3000


@dataclass(frozen=True, eq=False)
class TransferSet:
    """Real and synthetic rows with the source's probabilities, which maps are trained on."""

    # Shape (n_rows, n_features). Real rows first; float32, in the space of the source.
    rows: NDArray[np.float32]
    # Shape (n_rows, n_search). The same rows in the space where nearest points are searched.
    search_rows: NDArray[np.float32]
    # Shape (n_rows, n_outputs). Of the second class alone where there are two.
    probabilities: NDArray[np.float32]
    # Shape (n_rows,). 1 where two classes are equally likely, 0 where one is certain.
    ambiguity: Array
    # Shape (n_features, n_search). Principal components that rows are searched in; None where they
    # are searched as they are.
    components: Array | None
    # Number of real rows.
    n_real: int

    @property
    def n_synthetic(self) -> int:
        """Number of synthetic rows."""
        return len(self.rows) - self.n_real


def build_transfer_set(
    source: MulticlassSource, rows: Array, *, rng: np.random.Generator
) -> TransferSet:
    """Label real rows, and many synthetic ones made from them, with the source's probabilities."""
    config = DEFAULTS.transfer
    components = _principal_components(rows) if rows.shape[1] >= config.wide_features else None
    max_queries = config.query_seconds * config.multiply_adds_per_second / source.query_cost
    n_synthetic = min(
        config.max_synthetic_rows,
        max(config.default_synthetic_rows, config.synthetic_rows_per_row * len(rows)),
    )
    n_synthetic = int(max(config.min_synthetic_rows, min(n_synthetic, max_queries)))
    n_synthetic = min(n_synthetic, config.max_values // rows.shape[1])
    return _label_rows(source, rows, n_synthetic, neighbours=rows, components=components, rng=rng)


def _principal_components(rows: Array) -> Array:
    """Return the directions in which rows vary most."""
    sample = rows[:: max(1, len(rows) // DEFAULTS.transfer.component_rows)]
    centred = sample - sample.mean(axis=0)
    if centred.shape[1] > MAX_COVARIANCE_FEATURES:
        directions = randomized_svd(centred, DEFAULTS.transfer.n_components, random_state=0)[2]
        return np.ascontiguousarray(directions.T)
    _, directions = np.linalg.eigh(centred.T @ centred)
    return np.ascontiguousarray(directions[:, ::-1][:, : DEFAULTS.transfer.n_components])


def _label_rows(
    source: MulticlassSource,
    rows: Array,
    n_synthetic: int,
    *,
    neighbours: Array,
    components: Array | None,
    rng: np.random.Generator,
) -> TransferSet:
    """Label rows, and synthetic ones made from them and their neighbours, which start with them."""
    real_probabilities = _query_source(source, rows)
    search_rows = neighbours if components is None else neighbours @ components
    config = DEFAULTS.transfer
    share = config.coverage_share if components is None else config.wide_coverage_share
    n_coverage = int(share * n_synthetic)
    near_border = sample_near_border(
        neighbours,
        ambiguity_of(real_probabilities),
        n_synthetic - n_coverage,
        search_rows=search_rows,
        rng=rng,
    )
    coverage = coverage_rows(rows, n_coverage, rng)
    synthetic = np.concatenate([near_border, coverage.astype(np.float32)])
    all_rows = np.concatenate([rows.astype(np.float32), synthetic])
    probabilities = np.concatenate([real_probabilities, _query_source(source, synthetic)])
    return TransferSet(
        all_rows,
        all_rows if components is None else (all_rows @ components).astype(np.float32),
        # Some sources return arrays in Fortran order, which the core does not take.
        np.ascontiguousarray(
            probabilities[:, 1:] if probabilities.shape[1] == 2 else probabilities, np.float32
        ),
        ambiguity_of(probabilities),
        components,
        len(rows),
    )


def _query_source(source: MulticlassSource, rows: NDArray[np.floating]) -> Array:
    """Return the probabilities that the source's logits stand for, block by block."""
    n_block = DEFAULTS.transfer.query_block_rows
    logits = np.concatenate(
        [
            source.logits(rows[start : start + n_block].astype(np.float64))
            for start in range(0, len(rows), n_block)
        ]
    )
    if not np.isfinite(logits).all():
        raise ValueError(
            f"the source must give finite scores, got {logits[~np.isfinite(logits)][0]} for a row. "
            "Check the row's values and the source."
        )
    return softmax(logits, axis=1)


def ambiguity_of(probabilities: Array) -> Array:
    """Return 1 minus the difference of the two largest probabilities of each row.

    Examples
    --------
    >>> ambiguity_of(np.array([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]]))
    array([1. , 0.5])
    """
    largest = np.partition(probabilities, -2, axis=1)[:, -2:]
    return 1.0 - (largest[:, 1] - largest[:, 0])


def extend_transfer_set(
    transfer_set: TransferSet, source: MulticlassSource, rows: Array, *, rng: np.random.Generator
) -> TransferSet:
    """Add further real rows, and as many synthetic ones for each as there are already."""
    n_synthetic = transfer_set.n_synthetic * len(rows) // transfer_set.n_real
    # In the same precision, or a category would have two values.
    neighbours = np.concatenate([rows.astype(np.float32), transfer_set.rows[: transfer_set.n_real]])
    added = _label_rows(
        source,
        rows,
        n_synthetic,
        neighbours=neighbours,
        components=transfer_set.components,
        rng=rng,
    )

    def join(first: Any, second: Any) -> Any:
        n_first, n_second = transfer_set.n_real, added.n_real
        return np.concatenate(
            [first[:n_first], second[:n_second], first[n_first:], second[n_second:]]
        )

    all_rows = join(transfer_set.rows, added.rows)
    return TransferSet(
        all_rows,
        all_rows
        if transfer_set.components is None
        else join(transfer_set.search_rows, added.search_rows),
        join(transfer_set.probabilities, added.probabilities),
        join(transfer_set.ambiguity, added.ambiguity),
        transfer_set.components,
        transfer_set.n_real + added.n_real,
    )
