"""What a fit is given: rows or a table, labels, weights and randomness, checked."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.validation import _check_sample_weight, validate_data

from limes._typing import Array, Indices, Labels
from limes.fit.data import check_two_classes
from limes.fit.synthetic import rows_from_training_rows
from limes.sources.table_encoder import (
    TableEncoder,
    column_groups,
    has_encoder,
    in_source_order,
    split_encoder,
    takes_table,
)


@dataclass(frozen=True, eq=False)
class FitInput:
    """Rows with labels and weights, where there are any."""

    # Numbers; None for a table, which is encoded when the source is fitted.
    rows: Any
    labels: Labels | None
    sample_weight: Array | None
    # Rows with text, categories or missing values; None for numbers.
    table: Any

    def encode(
        self, source: Any, random_state: Any
    ) -> tuple[Any, Any, TableEncoder | None, Indices | None]:
        """Return what follows the encoding steps of a fitted source, its rows, these steps, groups.

        Of rows of numbers: the source, the rows, and twice None.
        """
        if self.table is None:
            return source, self.rows, None, None
        table = in_source_order(source, self.table)
        encoder, inner, rows = split_encoder(source, table)
        rng = np.random.default_rng(seed_of(random_state))
        return inner, rows, encoder, column_groups(encoder, table, rng)


def check_input(
    estimator: Any, source: Any, X: Any, y: Any, sample_weight: ArrayLike | None
) -> FitInput:
    """Check what an estimator is fitted to; it gets the names of the columns, unless of a table."""
    types: Any = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}
    rows, labels, table = None, None, None
    if takes_table(source, X):
        table = X
        if y is not None:
            labels = column_or_1d(y, warn=True)
            check_consistent_length(table, labels)
    elif y is None:
        rows = validate_data(estimator, X, **types)
    else:
        rows, labels = validate_data(estimator, X, y, **types)
    if labels is not None:
        check_two_classes(labels)
    weight = None
    if sample_weight is not None:
        counted = rows if table is None else table
        options: Any = {"dtype": np.float64, "ensure_non_negative": True}
        weight = _check_sample_weight(sample_weight, counted, **options)
    return FitInput(rows, labels, weight, table)


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Leave an estimator as it was before a fit that fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        estimator.__dict__ = before
        raise


def take_columns(estimator: Any, source: Any) -> None:
    """Give an estimator the names and the number of the columns that a source takes."""
    estimator.__dict__.pop("feature_names_in_", None)
    for name in ("feature_names_in_", "n_features_in_"):
        if hasattr(source, name):
            setattr(estimator, name, getattr(source, name))


def seed_of(random_state: Any) -> np.random.SeedSequence:
    """Return a seed for generators from any of scikit-learn's forms of randomness."""
    words = check_random_state(random_state).randint(2**31, size=4)
    return np.random.SeedSequence([int(word) for word in words])


def make_rows(model: Any, y: ArrayLike | None, random_state: Any) -> ArrayLike:
    """Make rows from the training rows that the model keeps, with a warning."""
    if y is not None:
        raise ValueError("y has labels, but X has no rows that they belong to: give both, or none.")
    if has_encoder(model):
        raise ValueError("X is needed for a source that encodes a table: give rows as it has them.")
    seed = check_random_state(random_state).randint(2**31)
    rows = rows_from_training_rows(model, np.random.default_rng(seed))
    warnings.warn(
        f"no X given: fitted on {len(rows)} synthetic rows made from the model's own training "
        "rows; agreement_ refers to these, and may be lower on real ones. Give X, rows like those "
        "to be predicted.",
        stacklevel=3,
    )
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return rows
    import pandas

    return pandas.DataFrame(rows, columns=names)
