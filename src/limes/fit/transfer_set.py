"""Rows with the source's probabilities; principal components of wide rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils.extmath import randomized_svd

from limes._typing import Array
from limes.fit.config import DEFAULTS
from limes.fit.synthetic import sample_near_border
from limes.sources.base import MulticlassSource

MOST_SQUARE = 3000


@dataclass(frozen=True, eq=False)
class TransferSet:
    """Rows, and what the source says of them."""

    # Shape (n_rows, n_features). Real rows first, then made ones; float32, in the space of the
    # source.
    rows: NDArray[np.float32]
    # Shape (n_rows, n_search). The same in the space where points are searched.
    search: NDArray[np.float32]
    # Shape (n_rows, n_outputs). Probabilities: of the second class alone where there are two.
    probabilities: NDArray[np.float32]
    # Shape (n_rows,). 1 where two classes are equally likely, 0 where the source is sure.
    ambiguity: Array
    # Shape (n_features, n_search). Principal components that rows are searched in; None for the
    # rows themselves.
    components: Array | None
    # How many are real rows.
    n_real: int

    @property
    def n_synthetic(self) -> int:
        """How many rows were made."""
        return len(self.rows) - self.n_real


def build_transfer_set(
    source: MulticlassSource, rows: Array, *, rng: np.random.Generator
) -> TransferSet:
    """Ask the source about real rows and about many made from them."""
    components = (
        _principal_components(rows) if rows.shape[1] >= DEFAULTS.transfer.wide_features else None
    )
    wanted = min(
        DEFAULTS.transfer.max_synthetic_rows,
        max(
            DEFAULTS.transfer.default_synthetic_rows,
            DEFAULTS.transfer.synthetic_rows_per_row * len(rows),
        ),
    )
    n_new = int(
        max(
            DEFAULTS.transfer.min_synthetic_rows,
            min(wanted, DEFAULTS.transfer.max_query_cost / source.query_cost),
        )
    )
    n_new = min(n_new, DEFAULTS.transfer.max_values // rows.shape[1])
    return _label_rows(source, rows, n_new, near=rows, components=components, rng=rng)


def extend_transfer_set(
    transfer_set: TransferSet, source: MulticlassSource, rows: Array, *, rng: np.random.Generator
) -> TransferSet:
    """Ask the source about further real rows too, and about as many made from each of them."""
    n_new = transfer_set.n_synthetic * len(rows) // transfer_set.n_real
    # In the same precision, or a category would have two values.
    near = np.concatenate([rows.astype(np.float32), transfer_set.rows[: transfer_set.n_real]])
    more = _label_rows(source, rows, n_new, near=near, components=transfer_set.components, rng=rng)

    def join(before: Any, after: Any) -> Any:
        cut, added = transfer_set.n_real, more.n_real
        return np.concatenate([before[:cut], after[:added], before[cut:], after[added:]])

    rows32 = join(transfer_set.rows, more.rows)
    return TransferSet(
        rows32,
        rows32 if transfer_set.components is None else join(transfer_set.search, more.search),
        join(transfer_set.probabilities, more.probabilities),
        join(transfer_set.ambiguity, more.ambiguity),
        transfer_set.components,
        transfer_set.n_real + more.n_real,
    )


def _label_rows(
    source: MulticlassSource,
    rows: Array,
    n_new: int,
    *,
    near: Array,
    components: Array | None,
    rng: np.random.Generator,
) -> TransferSet:
    """Ask about real rows, and about new ones made from them and rows near to them."""
    asked = _ask(source, rows)
    search = near if components is None else near @ components
    new = sample_near_border(near, ambiguity_of(asked), n_new, search=search, rng=rng)
    all_rows = np.concatenate([rows.astype(np.float32), new])
    probabilities = np.concatenate([asked, _ask(source, new)])
    return TransferSet(
        all_rows,
        all_rows if components is None else (all_rows @ components).astype(np.float32),
        # Some sources answer column by column, which the core does not take.
        np.ascontiguousarray(
            probabilities[:, 1:] if probabilities.shape[1] == 2 else probabilities, np.float32
        ),
        ambiguity_of(probabilities),
        components,
        len(rows),
    )


def ambiguity_of(probabilities: Array) -> Array:
    """Return how near the two likeliest classes of each row are, from 0 to 1.

    Examples
    --------
    >>> ambiguity_of(np.array([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]]))
    array([1. , 0.5])
    """
    best = np.partition(probabilities, -2, axis=1)[:, -2:]
    return 1.0 - (best[:, 1] - best[:, 0])


def _ask(source: MulticlassSource, rows: NDArray[np.floating]) -> Array:
    """Return the probabilities that the source's scores stand for, block by block."""
    starts = range(0, len(rows), DEFAULTS.transfer.query_block_rows)
    parts = [
        source.logits(rows[i : i + DEFAULTS.transfer.query_block_rows].astype(np.float64))
        for i in starts
    ]
    scores = np.concatenate(parts)
    if not np.isfinite(scores).all():
        raise ValueError(
            f"the source gave the score {scores[~np.isfinite(scores)][0]} for a row: scores must "
            "be finite."
        )
    return softmax(scores, axis=1)


def _principal_components(rows: Array) -> Array:
    """Return the directions in which rows vary most."""
    some = rows[:: max(1, len(rows) // 5000)]
    centred = some - some.mean(axis=0)
    if centred.shape[1] > MOST_SQUARE:
        # No square matrix of so many features: a few directions need none.
        directions = randomized_svd(centred, DEFAULTS.transfer.n_components, random_state=0)[2]
        return np.ascontiguousarray(directions.T)
    _, directions = np.linalg.eigh(centred.T @ centred)
    return np.ascontiguousarray(directions[:, ::-1][:, : DEFAULTS.transfer.n_components])
