"""Rows that a classifier keeps of those it was trained on, and rows made from them."""

from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, NuSVC

from limes._typing import Array
from limes.affine import to_dense
from limes.libsvm import LibsvmClassifier
from limes.queries import make_between, make_twins
from limes.sources.recognize import unwrap

# Rows made from each that is kept, within these bounds.
MADE_A_ROW = 4
MIN_MADE, MAX_MADE = 2000, 20_000


def rows_without_data(model: Any, rng: np.random.Generator) -> Array:
    """Make rows from what a classifier keeps of its training rows.

    Half are made beside the kept rows, by differences of neighbours, half between any two of them.
    """
    inner, before = unwrap(model)
    kept = kept_rows(inner)
    if kept is None:
        raise ValueError(
            f"X is needed for {type(inner).__name__}, which keeps none of its training rows: give "
            "rows like those to be predicted."
        )
    n_made = int(np.clip(MADE_A_ROW * len(kept), MIN_MADE, MAX_MADE))
    parts = [kept, make_between(kept, n_made // 2, rng)]
    if len(kept) > 2:
        parts.append(make_twins(kept, len(kept), n_made - n_made // 2, search=kept, rng=rng)[0])
    rows = np.concatenate(parts)
    return rows if before is None else before.undo(rows)


def kept_rows(model: Any) -> Array | None:
    """Return the training rows that a classifier keeps."""
    if isinstance(model, SVC | NuSVC):
        return to_dense(model.support_vectors_)
    if isinstance(model, LibsvmClassifier):
        return np.array(model.machine.vectors)
    if isinstance(model, KNeighborsClassifier):
        return to_dense(model._fit_X)
    if isinstance(model, GaussianProcessClassifier):
        # With more than two classes there is one process for each, all of the same rows.
        inner = model.base_estimator_
        return to_dense(getattr(inner, "estimators_", [inner])[0].X_train_)
    return None
