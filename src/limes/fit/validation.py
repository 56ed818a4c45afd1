"""Weighted validation set; agreement with standard error."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from limes._typing import Array, Indices
from limes.fit.config import DEFAULTS, FitOptions
from limes.fit.data import FitData, SampledRows, predict_index
from limes.fit.synthetic import coverage_rows, crossover, jitter
from limes.model.affine import to_dense
from limes.sources.base import MulticlassSource

# Added to the weight of every row that is drawn by weight. Guards against too few rows with any.
MIN_WEIGHT = 1e-9
# Values of all synthetic rows together. Bounds memory.
MAX_VALUES = 1 << 24


@dataclass(frozen=True, eq=False)
class ValidationSet:
    """Weighted rows with the source's labels, to measure the agreement of a model on."""

    # Shape (n_rows, n_features). Raw rows.
    rows: Array
    # Shape (n_rows,). The source's class index of each row.
    class_index: Indices
    # Shape (n_rows,). They sum to 1.
    weights: Array
    # Shape (n_rows,). Number of the real row that each row is, or was made from: the errors of rows
    # of the same origin are correlated. None where all rows are real.
    origin: Indices | None = None

    @classmethod
    def unweighted(cls, rows: Array, class_index: Indices) -> "ValidationSet":
        """Return a set with equal weights."""
        return cls(rows, class_index, np.full(len(rows), 1.0 / max(len(rows), 1)))

    @property
    def n_real_rows(self) -> int:
        """Number of real rows that are in the set or that its rows were made from."""
        return len(self.rows) if self.origin is None else len(np.unique(self.origin))

    @property
    def largest_class_share(self) -> float:
        """Weighted share of the source's most frequent class."""
        return float(np.bincount(self.class_index, self.weights, 1).max())

    @property
    def description(self) -> str:
        """The rows in words."""
        if self.origin is None:
            return f"{len(self.rows):,} held-out rows like those given"
        return (
            f"{len(self.rows):,} rows that are, or were made from, {self.n_real_rows:,} held-out "
            "rows, weighted like unseen ones"
        )

    def agreement(self, class_index: Indices) -> tuple[float, float]:
        """Return the weighted share of rows with the source's label, and its standard error."""
        agreement, error = self.agreement_assuming_independence(class_index)
        if self.origin is not None:
            effective_sample_size = 1.0 / float(
                np.square(np.bincount(self.origin, self.weights)).sum()
            )
            # The spread of a few disagreements is too uncertain: the error of a perfect agreement
            # on as many rows is added.
            spread = self.standard_error((class_index != self.class_index).astype(float))
            error = float(
                np.hypot(spread, agreement_error(effective_sample_size, effective_sample_size))
            )
        return agreement, error

    def agreement_assuming_independence(self, class_index: Indices) -> tuple[float, float]:
        """Return the agreement with its standard error as if all rows were independent.

        That is nearer to the error of the difference of two models on the same rows, whose errors
        are correlated.
        """
        return _weighted_agreement(self.weights, class_index != self.class_index)

    def balanced_agreement(self, class_index: Indices) -> tuple[float, float]:
        """Return the mean agreement over the classes of the source, and its standard error."""
        class_weight = np.bincount(self.class_index, self.weights)
        n_classes = max(1, int(np.count_nonzero(class_weight)))
        row_class_weight = class_weight[self.class_index]
        weights = np.divide(
            self.weights,
            n_classes * row_class_weight,
            out=np.zeros(len(row_class_weight)),
            where=row_class_weight > 0,
        )
        return _weighted_agreement(weights, class_index != self.class_index)

    def recall_by_class(self, class_index: Indices) -> Array:
        """Return the agreement on the rows of each class that the source predicts."""
        class_weight = np.bincount(self.class_index, self.weights)
        hits = np.bincount(self.class_index, self.weights * (class_index == self.class_index))
        return hits[class_weight > 0] / class_weight[class_weight > 0]

    def standard_error(self, values: Array) -> float:
        """Return the standard error of the weighted mean of one value per row."""
        deviations = self.weights * (values - self.weights @ values)
        sums = deviations if self.origin is None else np.bincount(self.origin, deviations)
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
    """Return the standard error of a share of hits: of the posterior under Jeffreys' prior."""
    a, b = hits + 0.5, max(n_rows - hits, 0.0) + 0.5
    return float(np.sqrt(a * b / (a + b + 1)) / (a + b))


def _margins(logits: Array) -> Array:
    """Return the difference of the two largest logits of each row."""
    largest = np.partition(logits, -2, axis=1)[:, -2:]
    return largest[:, 1] - largest[:, 0]


def held_out_validation_set(
    source: MulticlassSource, sampled: SampledRows, places: Indices, options: FitOptions
) -> ValidationSet:
    """Return some of the sampled rows as a validation set, with equal weights."""
    class_index = predict_index(source, sampled.rows[places], options)
    return ValidationSet.unweighted(_raw_rows(sampled, places), class_index)


def coverage_validation_set(
    source: MulticlassSource,
    sampled: SampledRows,
    is_held_out: NDArray[np.bool_],
    options: FitOptions,
    rng: np.random.Generator,
) -> ValidationSet:
    """Return rows between and around the held-out rows, to measure agreement away from all rows."""
    config = DEFAULTS.fallback
    n_coverage = min(config.coverage_rows, MAX_VALUES // sampled.X.shape[1])
    held_out = np.flatnonzero(is_held_out)
    places = (
        held_out if len(held_out) >= DEFAULTS.validation.min_rows else np.arange(len(is_held_out))
    )
    raw = coverage_rows(_raw_rows(sampled, places), max(1, n_coverage), rng, groups=sampled.groups)
    rows = raw if sampled.preprocessing is None else sampled.preprocessing.apply(raw)
    return ValidationSet.unweighted(raw, predict_index(source, rows, options))


def _raw_rows(sampled: SampledRows, places: Indices) -> Array:
    """Return some of the sampled rows as the user gave them, dense."""
    if sampled.preprocessing is None:
        return sampled.rows[places]
    return np.asarray(to_dense(sampled.X[sampled.index[places]]), dtype=np.float64)


def importance_weighted_validation_set(
    source: MulticlassSource,
    sampled: SampledRows,
    is_held_out: NDArray[np.bool_],
    is_training_row: NDArray[np.bool_],
    options: FitOptions,
    rng: np.random.Generator,
) -> ValidationSet:
    """Return held-out and synthetic rows whose margins are distributed as those of unseen rows.

    A source that was trained on the held-out rows has moved its border away from them, so that few
    are left where labels may differ. Rows are made near them, and all are weighted to the
    out-of-fold margins. Rows that the source keeps (support vectors) are left out, since the border
    bends around them more than elsewhere.
    """
    config = DEFAULTS.validation
    held_out = np.flatnonzero(is_held_out)
    others = np.flatnonzero(is_held_out & ~is_training_row)
    n_features = sampled.rows.shape[1]
    is_wide = n_features >= DEFAULTS.transfer.wide_features
    can_cross = n_features >= config.min_features_for_crossover
    min_starts = DEFAULTS.synthetic.n_neighbors
    has_others = len(others) >= min_starts
    # Where most rows are support vectors, the others may lie elsewhere: a shell in 30 dimensions
    # had none in its outer parts.
    is_like_all = is_wide or not can_cross or 2 * len(others) >= len(held_out)
    starts = others if has_others and is_like_all else held_out
    has_starts = len(starts) >= min_starts and (has_others or can_cross)
    target_margins = source.out_of_fold_margins
    if target_margins is None or not has_starts:
        return held_out_validation_set(source, sampled, held_out, options)
    n_real = len(others) if starts is others else 0
    real = held_out_validation_set(source, sampled, starts[:n_real], options)
    start_margins = _margins(source.logits(sampled.rows[starts]))
    n_synthetic = config.synthetic_rows
    n_synthetic = min(n_synthetic, MAX_VALUES // (config.oversampling * n_features))
    n_synthetic = max(n_synthetic, 1)
    neighbours = rng.permutation(np.flatnonzero(~is_held_out))[
        : DEFAULTS.synthetic.max_neighbor_rows
    ]
    places = np.concatenate([starts, neighbours])
    # A jittered row of many features, or of a support vector, is nearer to a row that the source
    # has memorised than unseen rows are; crossover breaks correlations of features. Half of each
    # estimates well. With few features no crossed row is far from all.
    makers = [jitter, crossover] if is_wide or starts is held_out else [jitter]
    makers = makers if has_others else [crossover]
    made = [
        make(
            _raw_rows(sampled, places),
            len(starts),
            config.oversampling * n_synthetic // len(makers),
            search_rows=sampled.rows[places],
            rng=rng,
            probability=_start_probability(start_margins),
            groups=sampled.groups,
        )
        for make in makers
    ]
    raw, origin = (np.concatenate(parts) for parts in zip(*made, strict=True))
    rows = raw if sampled.preprocessing is None else sampled.preprocessing.apply(raw)
    real_margins, margins = start_margins[:n_real], _margins(source.logits(rows))
    weights = importance_weights(np.concatenate([real_margins, margins]), target_margins)
    drawn = _draw_by_weight(weights[n_real:], n_synthetic, rng)
    return ValidationSet(
        np.concatenate([real.rows, raw[drawn]]),
        np.concatenate([real.class_index, predict_index(source, rows[drawn], options)]),
        importance_weights(np.concatenate([real_margins, margins[drawn]]), target_margins),
        np.concatenate([np.arange(n_real), origin[drawn]]),
    )


def _start_probability(margins: Array) -> Array:
    """Return how likely each row is drawn as a start: evenly, and in proportion to its ambiguity.

    Most rows are unambiguous, and models differ on the others.
    """
    share, ambiguity = DEFAULTS.validation.ambiguous_share, expit(-margins)
    return (1 - share) / len(margins) + share * ambiguity / ambiguity.sum()


def importance_weights(margins: Array, target_margins: Array) -> Array:
    """Return weights that give margins the distribution of target margins, by bins.

    Examples
    --------
    >>> even = np.linspace(0, 1, 1000)
    >>> weights = importance_weights(even, even**3)
    >>> float(weights[even < 0.5].sum().round(1)), float(np.mean(even**3 < 0.5).round(1))
    (0.8, 0.8)
    """
    max_bins = min(len(target_margins), len(margins)) // DEFAULTS.validation.min_rows_per_bin
    n_bins = int(np.clip(max_bins, 1, DEFAULTS.validation.n_margin_bins))
    # Squared quantiles: finer bins at small margins, where the labels of models differ.
    quantiles = np.linspace(0, 1, n_bins + 1)[1:-1] ** 2
    edges = np.unique(np.quantile(target_margins, quantiles))
    bins, target_bins = np.searchsorted(edges, margins), np.searchsorted(edges, target_margins)
    counts = np.bincount(bins, minlength=len(edges) + 1)
    target_counts = np.bincount(target_bins, minlength=len(edges) + 1)
    weights = (target_counts / np.maximum(counts, 1))[bins]
    # Without a bin that has both, there is nothing to match.
    return weights / weights.sum() if weights.any() else np.full(len(margins), 1 / len(margins))


def _draw_by_weight(weights: Array, n_drawn: int, rng: np.random.Generator) -> Indices:
    """Return the places of rows drawn in proportion to their weights, ascending."""
    weights = weights + MIN_WEIGHT
    drawn = rng.choice(len(weights), n_drawn, replace=False, p=weights / weights.sum())
    return np.sort(drawn)


def augmented_validation_set(
    source: MulticlassSource, data: FitData, validation: ValidationSet
) -> tuple[ValidationSet, Array]:
    """Return the set that candidates are compared on, and its rows in the source's space.

    Where held-out rows are few, it has all real rows and synthetic ones made from them. Candidates
    were trained on the real rows, among many synthetic ones, which favours all of them a little;
    the error of a few held-out rows would be larger.
    """
    rows = data.to_source_space(validation.rows)
    if len(rows) >= DEFAULTS.validation.min_rows:
        return validation, rows
    real = np.concatenate([rows, data.rows])
    encoded = data.encoded
    synthetic, _ = jitter(
        real if encoded is None else np.concatenate([validation.rows, encoded.rows]),
        len(real),
        DEFAULTS.validation.synthetic_rows,
        search_rows=real,
        rng=np.random.default_rng(0),
        groups=None if encoded is None else encoded.groups,
    )
    synthetic = synthetic if encoded is None else encoded.to_source_space(synthetic)
    rows = np.concatenate([real, synthetic])
    return ValidationSet.unweighted(rows, source.predict_index(rows)), rows
