"""Choose rows, labels to class indices, move to the source's space, hold out rows."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from limes._typing import Array, Indices, Labels
from limes.fit.config import DEFAULTS, FitOptions
from limes.model.affine import AffineMap, to_dense
from limes.sources.base import MulticlassSource
from limes.sources.platt import N_FOLDS
from limes.subsample import rank_within_class

# Values of all rows together: 512 MB of float64. Bounds memory.
MAX_VALUES = 1 << 26
# Root mean square of all values above which rows are rescaled, and inverse of the standard
# deviation below which they are: learning rates suit rows of unit size.
MAX_SIZE = 4.0


def class_index_of_labels(model: Any, y: Labels) -> Indices:
    """Return the class index of true labels, in the source's order of classes."""
    classes = np.asarray(getattr(model, "classes_", np.unique(y)))
    is_known = np.isin(y, classes)
    if not is_known.all():
        raise ValueError(
            f"y has the label {y[~is_known][:1].tolist()[0]!r}, which the source does not know: "
            f"its classes are {classes.tolist()!r}. Give the labels that it was fitted with, or "
            "none."
        )
    absent = classes[~np.isin(classes, y)]
    if len(absent):
        raise ValueError(
            f"y has no row of the class {absent.tolist()[0]!r}, which the source knows. Give rows "
            "of every class, or leave y out."
        )
    order = np.argsort(classes)
    return order[np.searchsorted(classes, y, sorter=order)]


@dataclass(frozen=True, eq=False)
class SampledRows:
    """The rows of a fit, raw and in the space of the source."""

    # All raw rows, as the user gave them.
    X: Any
    # Shape (n_rows,). Which of them were sampled.
    index: Indices
    # Shape (n_rows, n_features). The sampled rows in the space of the source.
    rows: Array
    # From raw rows to that space.
    preprocessing: AffineMap | None
    # Shape (n_raw_features,). Number of the group of columns that each raw column belongs to, such
    # as the one-hot columns of a category; -1 for none. None where rows have no groups.
    groups: Indices | None = None
    # Shape (n_rows,). How much each row counts for the source; None where all count the same.
    sample_weight: Array | None = None

    def with_table(self, groups: Indices | None, sample_weight: Array | None) -> "SampledRows":
        """Return the same with the groups of columns, and the weights of all rows, of a table."""
        weight = None if sample_weight is None else sample_weight[self.index]
        return replace(self, groups=groups, sample_weight=weight)

    @property
    def encoded(self) -> "EncodedRows | None":
        """The sampled rows of a table before the linear steps; None for other rows."""
        if self.groups is None:
            return None
        rows = np.asarray(to_dense(self.X[self.index]), dtype=np.float64)
        return EncodedRows(rows, self.groups, self.preprocessing)


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Rows of an encoded table before the linear steps: synthetic ones are made from them."""

    # Shape (n_rows, n_raw_features).
    rows: Array
    # Shape (n_raw_features,). As in `SampledRows`.
    groups: Indices
    # From these rows to the space of the source.
    preprocessing: AffineMap | None

    def __getitem__(self, places: Any) -> "EncodedRows":
        return replace(self, rows=self.rows[places])

    def followed_by(self, others: "EncodedRows") -> "EncodedRows":
        """Return these rows and then others."""
        return replace(self, rows=np.concatenate([self.rows, others.rows]))

    def to_source_space(self, rows: NDArray[np.floating]) -> Array:
        """Apply the linear steps before the source to rows like these."""
        wide = rows.astype(np.float64, copy=False)
        return wide if self.preprocessing is None else self.preprocessing.apply(wide)


def sample_rows(
    X: Any,
    preprocessing: AffineMap | None,
    *,
    class_index: Indices | None,
    rng: np.random.Generator,
) -> SampledRows:
    """Choose the rows of the fit, and apply the linear steps before the source to them."""
    index = _sample_index(*X.shape, class_index=class_index, rng=rng)
    rows = X if len(index) == X.shape[0] else X[index]
    if preprocessing is not None:
        rows = preprocessing.apply(rows)
    elif sparse.issparse(rows):
        rows = rows.toarray()
    rows = np.ascontiguousarray(rows, dtype=np.float64)
    return SampledRows(X, index, rows, preprocessing)


def _sample_index(
    n_rows: int, n_features: int, *, class_index: Indices | None, rng: np.random.Generator
) -> Indices:
    """Choose all rows, or a random sample of many."""
    max_rows = max(1, min(DEFAULTS.data.max_rows, MAX_VALUES // max(n_features, 1)))
    if n_rows <= max_rows:
        return np.arange(n_rows)
    order = rng.permutation(n_rows)
    if class_index is None:
        return np.sort(order[:max_rows])
    groups = np.unique(class_index, return_inverse=True)[1]
    counts = np.bincount(groups)
    min_class_rows = int(max_rows // len(counts) * DEFAULTS.data.min_class_share)
    n_sampled = np.maximum(min_class_rows, counts * max_rows // n_rows)
    return np.sort(order[rank_within_class(groups[order]) < n_sampled[groups[order]]])


def rescale(sampled: SampledRows) -> tuple[SampledRows, AffineMap | None]:
    """Return rows that suit the learning rates, and the map to them from the source's space."""
    rescaling = find_rescaling(sampled.rows)
    if rescaling is None:
        return sampled, None
    before = sampled.preprocessing
    preprocessing = rescaling if before is None else before.then(rescaling)
    rows = rescaling.apply(sampled.rows)
    return replace(sampled, rows=rows, preprocessing=preprocessing), rescaling


def find_rescaling(rows: Array) -> AffineMap | None:
    """Return the map to rows of mean 0 and spread 1; None for rows that are near that.

    All features are divided by the same number, which keeps the order of distances.

    Examples
    --------
    >>> find_rescaling(np.array([[-1.0, 0.5], [1.0, -0.5]])) is None
    True
    >>> rescaling = find_rescaling(np.array([[100.0, 50.0], [300.0, 50.0]]))
    >>> rescaling.apply(np.array([[300.0, 50.0]])).round(2)
    array([[1.41, 0.  ]])
    """
    mean = rows.mean(axis=0)
    # Divided before it is squared: the square of a large value is infinite.
    largest = float(np.abs(rows - mean).max(initial=0.0))
    if not 0 < largest < np.inf:
        return None
    spread = largest * float(np.sqrt(np.mean(np.square((rows - mean) / largest))))
    size = float(np.hypot(spread, np.sqrt(np.mean(np.square(mean / largest))) * largest))
    if spread >= 1 / MAX_SIZE and size <= MAX_SIZE:
        return None
    return AffineMap.scaling(mean, np.full(rows.shape[1], 1.0 / spread))


def check_two_classes(labels: Labels) -> None:
    """Raise an error unless labels have two classes or more."""
    if len(np.unique(labels)) < 2:
        raise ValueError(
            f"y must have at least two classes, got one class only: {labels[0]!r}. There is "
            "no border to find."
        )


def check_classes(source: MulticlassSource, y: Labels | None, options: FitOptions) -> None:
    """Raise an error where the classes have no border, or more than one for a threshold."""
    n_classes = len(source.classes)
    if n_classes < 2:
        raise ValueError(
            f"the source must know at least two classes, got {list(source.classes)!r}. There is "
            "no border to find."
        )
    if options.decision_offset and n_classes > 2:
        raise ValueError(
            f"threshold must be 0 with more than two classes, got another value and {n_classes!r} "
            "classes. It moves the border of two classes only: leave it out."
        )
    if y is not None and len(np.unique(y)) != n_classes:
        raise ValueError(
            f"y must have the {n_classes} classes of the source, got {len(np.unique(y))!r}. Give "
            "the labels that it was fitted with, or none."
        )


def predict_index(source: MulticlassSource, rows: Array, options: FitOptions) -> Indices:
    """Return the source's class index of each row, by the border at the user's threshold."""
    if options.decision_offset:
        return (source.pair_border(0, 1).decision(rows) > options.decision_offset).astype(np.intp)
    return source.predict_index(rows)


def hold_out(class_index: Indices, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Choose rows that no map is trained on, so that agreement can be measured on them."""
    config = DEFAULTS.data
    counts = np.bincount(class_index)
    n_held_out = np.floor(
        counts * min(config.held_out_share, config.max_held_out_rows / len(class_index))
    )
    # The calibration of a source needs a row of each class in every fold.
    n_held_out[counts < 2 * N_FOLDS] = 0
    order = rng.permutation(len(class_index))
    is_held_out = np.empty(len(class_index), dtype=bool)
    is_held_out[order] = rank_within_class(class_index[order]) < n_held_out[class_index[order]]
    return is_held_out


@dataclass(frozen=True, eq=False)
class FitData:
    """The rows that maps are fitted to, and those held out, in the space of the source."""

    # Shape (n_rows, n_features).
    rows: Array
    # Shape (n_rows,). True class index where it is known, else the source's.
    class_index: Indices
    # From raw rows to the space of the source.
    preprocessing: AffineMap | None
    # Shape (n_held_out, n_features).
    held_out_rows: Array
    # Of a table: the rows and the held-out ones before the linear steps.
    encoded: EncodedRows | None = None
    held_out_encoded: EncodedRows | None = None

    def to_source_space(self, raw_rows: Array) -> Array:
        """Apply the linear steps before the source to raw rows."""
        return raw_rows if self.preprocessing is None else self.preprocessing.apply(raw_rows)
