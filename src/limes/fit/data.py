"""Choose rows, labels to class indices, move to the source's space, hold out rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from limes._typing import Array, Indices, Labels
from limes.fit.config import DEFAULTS
from limes.model.affine import AffineMap
from limes.subsample import rank_within_class


def sample_rows(
    n_rows: int, n_features: int, *, class_index: Indices | None, rng: np.random.Generator
) -> Indices:
    """Choose the rows to learn from: all, or a random part of many."""
    limit = max(1, min(DEFAULTS.data.max_rows, DEFAULTS.data.max_values // max(n_features, 1)))
    if n_rows <= limit:
        return np.arange(n_rows)
    order = rng.permutation(n_rows)
    if class_index is None:
        return np.sort(order[:limit])
    groups = np.unique(class_index, return_inverse=True)[1]
    counts = np.bincount(groups)
    share = np.maximum(limit // len(counts) // 4, counts * limit // n_rows)
    return np.sort(order[rank_within_class(groups[order]) < share[groups[order]]])


def hold_out(class_index: Indices, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Choose rows that the search must not see, so that agreement can be measured on them."""
    counts = np.bincount(class_index)
    share = np.floor(
        counts
        * min(DEFAULTS.data.held_out_share, DEFAULTS.data.max_held_out_rows / len(class_index))
    )
    share[counts < DEFAULTS.data.min_class_rows] = 0
    order = rng.permutation(len(class_index))
    is_held_out = np.empty(len(class_index), dtype=bool)
    is_held_out[order] = rank_within_class(class_index[order]) < share[class_index[order]]
    return is_held_out


@dataclass(frozen=True, eq=False)
class FitData:
    """Rows that borders are searched between, in the space of the source."""

    # Shape (n_rows, n_features). Rows.
    rows: Array
    # Shape (n_rows,). Their class numbers.
    class_index: Indices
    # From raw rows to that space.
    preprocessing: AffineMap | None
    # Shape (n_aside, n_features). Rows that were kept aside, in the space of the source.
    held_out_rows: Array


def to_source_space(X: Any, chosen: Indices, preprocessing: AffineMap | None) -> Array:
    """Return the chosen rows dense, in float64, after the linear steps before the source."""
    part = X if len(chosen) == X.shape[0] else X[chosen]
    if preprocessing is not None:
        return preprocessing.apply(part)
    if sparse.issparse(part):
        part = part.toarray()
    return np.ascontiguousarray(part, dtype=np.float64)


def class_index_of_labels(model: Any, y: Labels) -> Indices:
    """Return the class numbers of true labels, by the source's own order of classes."""
    classes = np.asarray(getattr(model, "classes_", np.unique(y)))
    known = np.isin(y, classes)
    if not known.all():
        raise ValueError(
            f"y has the label {y[~known][:1].tolist()[0]!r}, which the source does not know: its "
            f"classes are {classes.tolist()!r}. Give the labels that it was fitted with, or none."
        )
    absent = classes[~np.isin(classes, y)]
    if len(absent):
        raise ValueError(
            f"y has no row of the class {absent.tolist()[0]!r}, which the source knows. Give rows "
            "of every class, or leave y out."
        )
    order = np.argsort(classes)
    return order[np.searchsorted(classes, y, sorter=order)]


def find_rescaling(rows: Array) -> AffineMap | None:
    """Return the map to rows about 0 that spread about as wide as 1.

    All features are divided by one number: what is near for a source stays near.

    Examples
    --------
    >>> find_rescaling(np.array([[-1.0, 0.5], [1.0, -0.5]])) is None
    True
    >>> rescaling = find_rescaling(np.array([[100.0, 50.0], [300.0, 50.0]]))
    >>> rescaling.apply(np.array([[300.0, 50.0]])).round(2)
    array([[1.41, 0.  ]])
    """
    middle = rows.mean(axis=0)
    # In two steps: the square of a number may not be one.
    largest = float(np.abs(rows - middle).max(initial=0.0))
    if not 0 < largest < np.inf:
        return None
    spread = largest * float(np.sqrt(np.mean(np.square((rows - middle) / largest))))
    is_near = float(np.abs(middle).max()) <= DEFAULTS.data.max_mean_in_spreads * spread
    if is_near and DEFAULTS.data.min_spread <= spread <= DEFAULTS.data.max_spread:
        return None
    return AffineMap.scaling(middle, np.full(rows.shape[1], 1.0 / spread))
