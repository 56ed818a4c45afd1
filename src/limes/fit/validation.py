"""Weighted validation set; agreement with standard error; out-of-fold margins."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from limes._typing import Array, Indices
from limes.fit.config import DEFAULTS
from limes.fit.data import FitData
from limes.fit.synthetic import crossover, jitter
from limes.model.affine import AffineMap, to_dense
from limes.sources.base import MulticlassSource


@dataclass(frozen=True, eq=False)
class ValidationSet:
    """Rows to compare a map with its source on."""

    # Shape (n_rows, n_features). Raw rows.
    rows: Array
    # Shape (n_rows,). The source's class numbers of them.
    class_index: Indices
    # Shape (n_rows,). What each stands for; they sum to 1.
    weights: Array
    # Shape (n_rows,). Rows of one number were made from the same row, and err together; None where
    # none were made.
    groups: Indices | None = None

    @classmethod
    def unweighted(cls, rows: Array, class_index: Indices) -> "ValidationSet":
        """Let every row count as much as any other."""
        return cls(rows, class_index, np.full(len(rows), 1.0 / max(len(rows), 1)))

    @property
    def n_real_rows(self) -> int:
        """How many real rows they are, or were made from."""
        return len(self.rows) if self.groups is None else len(np.unique(self.groups))

    def agreement(self, class_index: Indices) -> tuple[float, float]:
        """Return the share of equal class numbers, and its standard error."""
        agreement, error = self.agreement_assuming_independence(class_index)
        if self.groups is not None:
            effective_sample_size = 1.0 / float(
                np.square(np.bincount(self.groups, self.weights)).sum()
            )
            # A few misses tell little of their own spread.
            spread = self.standard_error((class_index != self.class_index).astype(float))
            error = float(
                np.hypot(spread, agreement_error(effective_sample_size, effective_sample_size))
            )
        return agreement, error

    def agreement_assuming_independence(self, class_index: Indices) -> tuple[float, float]:
        """Return the same with the error as if all rows were independent.

        That is nearer to the error of the difference of two maps on the same rows, which err
        together.
        """
        return _weighted_agreement(self.weights, class_index != self.class_index)

    def balanced_agreement(self, class_index: Indices) -> tuple[float, float]:
        """Return the same where every class counts as much as any other, however rare it is."""
        by_class = np.bincount(self.class_index, self.weights)
        n_classes = max(1, int(np.count_nonzero(by_class)))
        own = by_class[self.class_index]
        shares = np.divide(self.weights, n_classes * own, out=np.zeros(len(own)), where=own > 0)
        return _weighted_agreement(shares, class_index != self.class_index)

    def recall_by_class(self, class_index: Indices) -> Array:
        """Return how often each class that the source names is named where the source does."""
        named = np.bincount(self.class_index, self.weights)
        hits = np.bincount(self.class_index, self.weights * (class_index == self.class_index))
        return hits[named > 0] / named[named > 0]

    def standard_error(self, values: Array) -> float:
        """Return the standard error of the weighted mean of one value a row."""
        parts = self.weights * (values - self.weights @ values)
        sums = parts if self.groups is None else np.bincount(self.groups, parts)
        return float(np.sqrt(np.square(sums).sum()))


def _weighted_agreement(weights: Array, is_missed: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the share of hits, and its standard error; weights sum to 1."""
    if not len(weights):
        return float("nan"), agreement_error(0.0, 0.0)
    effective_sample_size = 1.0 / float(np.square(weights).sum())
    # Misses, not hits, are summed: where there is none, agreement is exactly 1.
    agreement = 1.0 - float(weights @ is_missed)
    return agreement, agreement_error(agreement * effective_sample_size, effective_sample_size)


def agreement_error(hits: float, n_rows: float) -> float:
    """Return the standard error of a share of hits."""
    a, b = hits + 0.5, max(n_rows - hits, 0.0) + 0.5
    return float(np.sqrt(a * b / (a + b + 1)) / (a + b))


@dataclass(frozen=True, eq=False)
class Lot:
    """The rows at hand, raw and in the space of the source, that judges are drawn from."""

    # All raw rows.
    X: Any
    # Which of them are at hand.
    chosen: Indices
    # Shape (n_chosen, n_features). Those in the space of the source.
    rows: Array
    # From raw rows to that space.
    preprocessing: AffineMap | None
    # The source's class numbers of rows in its space.
    predict_index: Callable[[Array], Indices]

    def validation(self, places: Indices) -> ValidationSet:
        """Return some of the rows as judges, one worth as much as another."""
        return ValidationSet.unweighted(self._raw(places), self.predict_index(self.rows[places]))

    def importance_weighted(
        self,
        source: MulticlassSource,
        is_held_out: NDArray[np.bool_],
        is_remembered: NDArray[np.bool_],
        unseen: Array | None,
        rng: np.random.Generator,
    ) -> ValidationSet:
        """Return judges that stand for rows which the source was not trained on.

        It was trained on all the rows at hand, and has moved its border away from them: few are
        left where a map goes wrong. So rows are made beside them, and all are weighted so that the
        source is as sure of them as it is of rows unseen. Support vectors take no part: the border
        bends round them as it does nowhere else.
        """
        free = np.flatnonzero(is_held_out & ~is_remembered)
        # Where nearly all are support vectors, only rows far from every one of them will do; those
        # of few features are never far.
        is_free = len(free) >= DEFAULTS.validation.min_start_rows
        starts = free if is_free else np.flatnonzero(is_held_out)
        is_narrow = self.rows.shape[1] < DEFAULTS.validation.min_features_for_crossover
        if (
            unseen is None
            or len(starts) < DEFAULTS.validation.min_start_rows
            or (is_narrow and not is_free)
        ):
            return self.validation(np.flatnonzero(is_held_out))
        n_real, make = (len(starts), jitter) if is_free else (0, crossover)
        mates = rng.permutation(np.flatnonzero(~is_held_out))[
            : DEFAULTS.validation.max_neighbor_rows
        ]
        places = np.concatenate([starts, mates])
        margins = logit_margins(source, self.rows[starts])
        # Half of the chance is for rows that the source is in doubt about: it is in doubt about
        # few, and those are the ones that maps differ on.
        ambiguity = expit(-margins)
        chance = 0.5 / len(starts) + 0.5 * ambiguity / ambiguity.sum()
        n_synthetic = int(
            np.clip(
                DEFAULTS.validation.max_query_cost / source.query_cost,
                DEFAULTS.validation.min_synthetic_rows,
                DEFAULTS.validation.max_synthetic_rows,
            )
        )
        made, origins = make(
            self._raw(places),
            len(starts),
            2 * n_synthetic,
            search=self.rows[places],
            rng=rng,
            chance=chance,
        )
        moved = made if self.preprocessing is None else self.preprocessing.apply(made)
        margins = np.concatenate([margins[:n_real], logit_margins(source, moved)])
        kept = _draw_by_weight(importance_weights(margins, unseen), n_real, n_synthetic, rng)
        picked = kept[n_real:] - n_real
        real = self.validation(starts[:n_real])
        return ValidationSet(
            np.concatenate([real.rows, made[picked]]),
            np.concatenate([real.class_index, self.predict_index(moved[picked])]),
            importance_weights(margins[kept], unseen),
            np.concatenate([np.arange(n_real), origins[picked]]),
        )

    def _raw(self, places: Indices) -> Array:
        """Return raw rows, dense."""
        if self.preprocessing is None:
            return self.rows[places]
        return np.asarray(to_dense(self.X[self.chosen[places]]), dtype=np.float64)


def _draw_by_weight(
    weights: Array, n_real: int, n_others: int, rng: np.random.Generator
) -> Indices:
    """Return the real rows, which come first, and some of the others, the heavier the likelier."""
    others = weights[n_real:] + 1e-9
    drawn = rng.choice(len(others), n_others, replace=False, p=others / others.sum())
    return np.concatenate([np.arange(n_real), n_real + np.sort(drawn)])


def importance_weights(margins: Array, wanted: Array) -> Array:
    """Return weights that give margins the distribution of others.

    Examples
    --------
    >>> even = np.linspace(0, 1, 1000)
    >>> weights = importance_weights(even, even**3)
    >>> float(weights[even < 0.5].sum().round(1)), float(np.mean(even**3 < 0.5).round(1))
    (0.8, 0.8)
    """
    n_kinds = int(
        np.clip(
            min(len(wanted), len(margins)) // DEFAULTS.validation.min_rows_per_bin,
            1,
            DEFAULTS.validation.n_margin_bins,
        )
    )
    # Finer where the source is in doubt: that is where maps differ.
    shares = np.linspace(0, 1, n_kinds + 1)[1:-1] ** 2
    edges = np.unique(np.quantile(wanted, shares))
    kinds, wanted_kinds = np.searchsorted(edges, margins), np.searchsorted(edges, wanted)
    counts = np.bincount(kinds, minlength=len(edges) + 1)
    wanted_counts = np.bincount(wanted_kinds, minlength=len(edges) + 1)
    weights = (wanted_counts / np.maximum(counts, 1))[kinds]
    # Where no kind has both, nothing can be matched.
    return weights / weights.sum() if weights.any() else np.full(len(margins), 1 / len(margins))


def logit_margins(source: MulticlassSource, rows: Array) -> Array:
    """Return by how much the likeliest class leads."""
    best = np.partition(source.logits(rows), -2, axis=1)[:, -2:]
    return best[:, 1] - best[:, 0]


def out_of_fold_margins(
    source: MulticlassSource, rows: Array, class_index: Indices, rng: np.random.Generator
) -> Array | None:
    """Return how sure a machine is of rows that it was not trained on.

    None where training again would take too long, or fails.
    """
    enough = -(-DEFAULTS.validation.out_of_fold_rows * DEFAULTS.validation.n_folds // len(rows))
    n_folds = int(
        min(
            DEFAULTS.validation.n_folds,
            enough,
            DEFAULTS.validation.max_refit_cost // (len(rows) * source.query_cost),
        )
    )
    folds = rng.integers(DEFAULTS.validation.n_folds, size=len(rows))
    parts = []
    for fold in range(n_folds):
        is_out = folds == fold
        again = source.refit(rows[~is_out], class_index[~is_out])
        if again is None or not is_out.any():
            return None
        parts.append(logit_margins(again, rows[is_out]))
    return np.concatenate(parts) if parts else None


def augmented_validation_set(
    source: MulticlassSource, data: FitData, validation: ValidationSet
) -> tuple[ValidationSet, Array]:
    """Return whom to compare maps by while they are made, and their rows in the source's space.

    Where those kept aside are few, all real rows and others made beside them. A map has seen the
    real ones among many that were made from them, which is a small advantage to all maps alike;
    too few rows would be a large error.
    """
    moved = (
        validation.rows if data.preprocessing is None else data.preprocessing.apply(validation.rows)
    )
    if len(validation.rows) >= DEFAULTS.validation.min_rows:
        return validation, moved
    rows = np.concatenate([moved, data.rows])
    synthetic, _ = jitter(
        rows,
        len(rows),
        DEFAULTS.validation.min_synthetic_rows,
        search=rows,
        rng=np.random.default_rng(0),
    )
    rows = np.concatenate([rows, synthetic])
    return ValidationSet.unweighted(rows, source.predict_index(rows)), rows
