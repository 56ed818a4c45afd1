"""Rows with the source's probabilities; principal components of wide rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils.extmath import randomized_svd

from limes._typing import Array
from limes.fit.config import DEFAULTS
from limes.fit.synthetic import spread_rows
from limes.sources.base import MulticlassSource

MOST_SQUARE = 3000


@dataclass(frozen=True, eq=False)
class Lessons:
    """Rows, and what the source says of them."""

    # Shape (n_rows, n_features). Real rows first, then made ones; float32, in the space of the
    # source.
    rows: NDArray[np.float32]
    # Shape (n_rows, n_search). The same in the space where points are searched.
    search: NDArray[np.float32]
    # Shape (n_rows, n_outputs). Probabilities: of the second class alone where there are two.
    targets: NDArray[np.float32]
    # Shape (n_rows,). 1 where two classes are equally likely, 0 where the source is sure.
    doubt: Array
    # Shape (n_features, n_search). Principal components that rows are searched in; None for the
    # rows themselves.
    components: Array | None
    # How many are real rows.
    n_real: int

    @property
    def n_made(self) -> int:
        """How many rows were made."""
        return len(self.rows) - self.n_real


def prepare_lessons(source: MulticlassSource, rows: Array, *, rng: np.random.Generator) -> Lessons:
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
            min(wanted, DEFAULTS.transfer.max_query_cost / source.row_cost),
        )
    )
    n_new = min(n_new, DEFAULTS.transfer.max_values // rows.shape[1])
    return _ask_about(source, rows, n_new, near=rows, components=components, rng=rng)


def add_lessons(
    lessons: Lessons, source: MulticlassSource, rows: Array, *, rng: np.random.Generator
) -> Lessons:
    """Ask the source about further real rows too, and about as many made from each of them."""
    n_new = lessons.n_made * len(rows) // lessons.n_real
    # In the same precision, or a category would have two values.
    near = np.concatenate([rows.astype(np.float32), lessons.rows[: lessons.n_real]])
    more = _ask_about(source, rows, n_new, near=near, components=lessons.components, rng=rng)

    def join(before: Any, after: Any) -> Any:
        cut, added = lessons.n_real, more.n_real
        return np.concatenate([before[:cut], after[:added], before[cut:], after[added:]])

    rows32 = join(lessons.rows, more.rows)
    return Lessons(
        rows32,
        rows32 if lessons.components is None else join(lessons.search, more.search),
        join(lessons.targets, more.targets),
        join(lessons.doubt, more.doubt),
        lessons.components,
        lessons.n_real + more.n_real,
    )


def _ask_about(
    source: MulticlassSource,
    rows: Array,
    n_new: int,
    *,
    near: Array,
    components: Array | None,
    rng: np.random.Generator,
) -> Lessons:
    """Ask about real rows, and about new ones made from them and rows near to them."""
    asked = _ask(source, rows)
    search = near if components is None else near @ components
    new = spread_rows(near, find_doubt(asked), n_new, search=search, rng=rng)
    all_rows = np.concatenate([rows.astype(np.float32), new])
    targets = np.concatenate([asked, _ask(source, new)])
    return Lessons(
        all_rows,
        all_rows if components is None else (all_rows @ components).astype(np.float32),
        # Some sources answer column by column, which the core does not take.
        np.ascontiguousarray(targets[:, 1:] if targets.shape[1] == 2 else targets, np.float32),
        find_doubt(targets),
        components,
        len(rows),
    )


def find_doubt(probabilities: Array) -> Array:
    """Return how near the two likeliest classes of each row are, from 0 to 1.

    Examples
    --------
    >>> find_doubt(np.array([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]]))
    array([1. , 0.5])
    """
    best = np.partition(probabilities, -2, axis=1)[:, -2:]
    return 1.0 - (best[:, 1] - best[:, 0])


def _ask(source: MulticlassSource, rows: NDArray[np.floating]) -> Array:
    """Return the probabilities that the source's scores stand for, block by block."""
    starts = range(0, len(rows), DEFAULTS.transfer.query_block_rows)
    parts = [
        source.scores(rows[i : i + DEFAULTS.transfer.query_block_rows].astype(np.float64))
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
