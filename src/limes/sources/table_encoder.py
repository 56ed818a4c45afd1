"""First steps of a pipeline that stay before the maps: encoders, imputers, text, own functions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import _safe_indexing, check_array, get_tags

from limes._typing import Indices
from limes.model.affine import to_dense

# Rows that are searched for rare categories, and rows at which the columns of the table are
# exchanged to see which outputs change. Bound the time, as does the number of such columns.
SEARCHED_ROWS, EXCHANGED_ROWS, EXCHANGED_COLUMNS = 20_000, 400, 256
# Share of distinct values above which a column that is not numeric is text, not a category.
MAX_DISTINCT_SHARE = 0.5
# An output belongs to a column if no other changes it in more than this share of as many rows.
MAX_OTHER_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class TableEncoder:
    """The fitted steps that turn a table with text, categories or missing values into numbers.

    They are the source's own, and take the columns as the source does: by name in any order if the
    first step is a ``ColumnTransformer``.
    """

    # Fitted transformers, in their order.
    steps: tuple[Any, ...]
    # The table that the model was fitted to, without its rows: columns and types. None for rows
    # that are no table, such as texts.
    template: Any
    # Number of columns that the steps return.
    n_outputs: int

    def transform(self, X: Any) -> Any:
        """Return the rows of a table as numbers: a dense array, or a sparse one of CSR format."""
        if not count_rows(X):
            return np.empty((0, self.n_outputs))
        for step in self.steps:
            X = step.transform(X)
        return to_numbers(X)

    def get_feature_names_out(self) -> NDArray[Any] | None:
        """Return the names of the columns after the steps; None where a step does not know them."""
        names = None
        try:
            for step in self.steps:
                names = step.get_feature_names_out(names)
        except (AttributeError, TypeError, ValueError):
            return None
        return np.asarray(names, dtype=object)

    def one_row(self, row: Any) -> Any:
        """Return a table with one row, given as a sequence of values or a mapping from names."""
        template = self.template
        if template is None:
            return [row]
        if not hasattr(template, "columns"):
            return np.array([[*row]], dtype=object)
        names = list(template.columns)
        if isinstance(row, Mapping) or hasattr(row, "keys"):
            missing = [name for name in names if name not in row]
            if missing:
                raise ValueError(f"a row must have a value of {missing[0]!r}, got {row!r:.200}.")
            row = [row[name] for name in names]
        if np.ndim(row) != 1 or len(row) != len(names):
            raise ValueError(
                f"a row must have {len(names)} values, in the order of the columns {names!r:.200}, "
                f"got {row!r:.200}."
            )
        return _frame_like(template, [*row])

    def predictor(self, predict: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return a function of one row of the table, or of a table, from one of its numbers."""

        def predict_rows(row: Any) -> Any:
            if self.template is not None and np.ndim(row) == 2:
                return predict(to_dense(self.transform(row)))
            return predict(to_dense(self.transform(self.one_row(row)))[0])

        return predict_rows

    def __str__(self) -> str:
        return ", ".join(type(step).__name__ for step in self.steps)


def check_no_encoder(fast: Any, what: str) -> None:
    """Raise where a model has steps before its maps that something cannot hold."""
    encoder = getattr(fast, "encoder_", None)
    if encoder is not None:
        raise ValueError(
            f"{what} takes rows of numbers, but the model has steps of scikit-learn before its "
            f"maps: {encoder}. Keep the whole model with pickle or joblib, or give "
            "limes.BordersClassifier.from_model(fast.model_), which predicts the rows that "
            "fast.encoder_.transform(X) returns."
        )


def source_after(encoder: TableEncoder | None, model: Any) -> Any:
    """Return what follows the steps of an encoder in a fitted pipeline."""
    return model if encoder is None else _join(_flat_steps(model)[len(encoder.steps) :])


def has_encoder(model: Any) -> bool:
    """Return whether a pipeline, fitted or not, has steps that take categories or text."""
    return _count_encoding(_flat_steps(model)) > 0


def takes_table(model: Any, X: Any) -> bool:
    """Return whether a pipeline, fitted or not, has first steps that its rows need."""
    steps = _flat_steps(model)
    return len(steps) > 1 and (_count_encoding(steps) > 0 or not _is_numeric(X))


def split_encoder(model: Any, X: Any) -> tuple[TableEncoder, Any, Any]:
    """Return the first steps of a fitted pipeline, the rest of it, and the rows between them.

    Encoders and text stay before the map, with all before them; so does what comes before the rows
    are numbers without a missing value. Without rows, those of None are returned.
    """
    steps = _flat_steps(model)
    n_kept = _count_encoding(steps)
    table = X
    for place, step in enumerate(steps[:-1] if X is not None else (), start=1):
        table = step.transform(table)
        if place >= n_kept and _is_numeric(table):
            n_kept = place
            break
    else:
        if X is not None:
            _raise_no_numbers(steps[-1], table)
    rest = steps[n_kept:]
    rows = None if X is None else to_numbers(table)
    n_outputs = rest[0].n_features_in_ if rows is None else rows.shape[1]
    encoder = TableEncoder(tuple(steps[:n_kept]), _without_rows(model, X), n_outputs)
    return encoder, _join(rest), rows


def split_without_rows(model: Any) -> tuple[Any, TableEncoder | None]:
    """Return what follows the encoding steps of a fitted pipeline, and these, where it has any."""
    if not has_encoder(model):
        return model, None
    encoder, inner, _ = split_encoder(model, None)
    return inner, encoder


def to_numbers(X: Any) -> Any:
    """Return rows of any kind as an array of float32 or float64; a missing value is NaN."""
    return check_array(
        X,
        accept_sparse="csr",
        dtype=(np.float64, np.float32),
        ensure_all_finite=False,
        ensure_min_samples=0,
    )


def takes_columns_by_name(model: Any) -> bool:
    """Return whether the first step of a source selects columns by name, whatever their order."""
    first = _flat_steps(model)[0]
    return isinstance(first, ColumnTransformer) and hasattr(first, "feature_names_in_")


def in_source_order(model: Any, X: Any) -> Any:
    """Return a table with its columns in the order of the source, if that selects them by name."""
    names = getattr(model, "feature_names_in_", None)
    columns = getattr(X, "columns", None)
    if names is None or columns is None or not takes_columns_by_name(model):
        return X
    is_ordered = list(columns) == list(names)
    return X if is_ordered or not set(names) <= set(columns) else X[list(names)]


def count_rows(X: Any) -> int:
    """Return the number of rows of an array, a table or a sequence."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _flat_steps(model: Any) -> list[Any]:
    """Return the transformers of nested pipelines, and the classifier after them."""
    if isinstance(model, FrozenEstimator):
        return _flat_steps(model.estimator)
    if isinstance(model, BaseSearchCV):
        return _flat_steps(getattr(model, "best_estimator_", model.estimator))
    if not isinstance(model, Pipeline):
        return [model]
    *steps, last = [step for _, step in model.steps if step not in (None, "passthrough")]
    flat = [inner for step in steps for inner in _flat_transformers(step)]
    return [*flat, *_flat_steps(last)]


def _join(steps: Sequence[Any]) -> Any:
    """Return a classifier, in a pipeline if there are steps before it."""
    names = map(str, range(len(steps)))
    return steps[0] if len(steps) == 1 else Pipeline(list(zip(names, steps, strict=True)))


def _flat_transformers(step: Any) -> list[Any]:
    """Return the transformers of nested pipelines."""
    if not isinstance(step, Pipeline):
        return [step]
    steps = [inner for _, inner in step.steps if inner not in (None, "passthrough")]
    return [inner for each in steps for inner in _flat_transformers(each)]


def _count_encoding(steps: Sequence[Any]) -> int:
    """Return the number of first steps up to the last that takes categories or text."""
    return max((place for place, step in enumerate(steps[:-1], 1) if _is_encoding(step)), default=0)


def _is_encoding(step: Any) -> bool:
    """Return whether a transformer, or one inside it, takes categories or text."""
    if isinstance(step, str) or step is None:
        return False
    if isinstance(step, ColumnTransformer):
        parts = getattr(step, "transformers_", step.transformers)
        return any(_is_encoding(inner) for _, inner, _ in parts)
    if isinstance(step, FeatureUnion):
        return any(_is_encoding(inner) for _, inner in step.transformer_list)
    if isinstance(step, Pipeline):
        return any(_is_encoding(inner) for _, inner in step.steps)
    if not hasattr(step, "__sklearn_tags__"):
        return False
    tags = get_tags(step).input_tags
    return bool(tags.categorical or tags.string or tags.dict or not tags.two_d_array)


def _is_numeric(X: Any) -> bool:
    """Return whether rows are numbers without a missing value."""
    try:
        check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32), ensure_min_samples=0)
    except (ValueError, TypeError):
        return False
    return True


def _raise_no_numbers(classifier: Any, table: Any) -> None:
    """Raise the reason why the rows before a classifier are no numbers."""
    try:
        check_array(table, accept_sparse="csr", dtype=(np.float64, np.float32))
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{type(classifier).__name__} gets rows that are not all numbers ({error!s:.200}): put "
            "steps that encode categories and fill in missing values before it in the Pipeline."
        ) from None


def _without_rows(model: Any, X: Any) -> Any:
    """Return the columns and types of a table, without types if it is None; None for no table."""
    if X is None and hasattr(model, "feature_names_in_"):
        from pandas import DataFrame

        return DataFrame(columns=model.feature_names_in_, dtype=object)
    if X is None and hasattr(model, "n_features_in_"):
        return np.empty((0, model.n_features_in_), dtype=object)
    if X is None or np.ndim(X) != 2 or sparse.issparse(X):
        return None
    return _safe_indexing(X, slice(0, 0))


def _frame_like(template: Any, row: list[Any]) -> Any:
    """Return a data frame with one row and the columns of another."""
    if not hasattr(template, "dtypes") or not hasattr(template, "iloc"):
        return type(template)([row], schema=template.schema, orient="row")
    frame = type(template)([row], columns=template.columns, dtype=object)
    for place, dtype in enumerate(template.dtypes):
        name = template.columns[place]
        if isinstance(dtype, np.dtype) and dtype.kind in "biufc":
            frame[name] = frame[name].infer_objects()
        elif getattr(dtype, "kind", "O") in "biufc":
            frame[name] = frame[name].astype(dtype)
    return frame


def column_groups(encoder: TableEncoder, X: Any, rng: np.random.Generator) -> Indices:
    """Return for each output of the steps the number of its group, -1 for none.

    A synthetic row takes all outputs of a group from one real row. The outputs of a column that is
    not numeric, such as its one-hot columns, its code or its target encodings, are a group, and so
    are binary outputs of one number, such as intervals. Words of a text are no group. Which outputs
    belong to a column is found by exchanging its values between rows.
    """
    groups = np.full(encoder.n_outputs, -1, dtype=np.intp)
    if encoder.template is None:
        return groups
    n_rows = count_rows(X)
    searched = rng.permutation(n_rows)[:SEARCHED_ROWS]
    table = _safe_indexing(X, searched)
    columns = [_values(table, place) for place in range(encoder.template.shape[1])]
    is_nominal = np.array([_is_nominal(values) for values in columns])
    is_nominal |= _encoded_columns(encoder.steps[0], len(columns))
    tested = np.argsort(~is_nominal, kind="stable")[:EXCHANGED_COLUMNS]
    nominal = [columns[place] for place in np.flatnonzero(is_nominal)]
    sample = _safe_indexing(table, _rows_with_all_values(nominal, len(searched)))
    before = encoder.transform(sample)
    exchanged = (encoder.transform(_rotated(sample, int(place))) for place in tested)
    n_changed = np.array([_count_changes(before, after) for after in exchanged])
    owner = n_changed.argmax(axis=0)
    lines = np.arange(encoder.n_outputs)
    most = n_changed[owner, lines]
    n_changed[owner, lines] = 0
    is_owned = (most > 0) & (n_changed.max(axis=0) <= MAX_OTHER_SHARE * most)
    is_binary = _is_binary(before)
    for number, place in enumerate(tested):
        is_text = not is_nominal[place] and not _is_number(columns[place])
        if not is_text:
            groups[is_owned & (owner == number) & (is_nominal[place] | is_binary)] = number
    return groups


def _values(table: Any, place: int) -> list[Any]:
    """Return the values of one column."""
    if hasattr(table, "iloc"):
        return list(table.iloc[:, place])
    return list(table[:, place])


def _is_number(values: list[Any]) -> bool:
    """Return whether all values of a column that are not missing are numbers."""
    kinds = {type(value) for value in values}
    kinds = {kind for kind in kinds if kind.__name__ not in ("NoneType", "NAType")}
    return bool not in kinds and all(issubclass(kind, int | float | np.number) for kind in kinds)


def _is_nominal(values: list[Any]) -> bool:
    """Return whether a column is no number and its values occur several times."""
    return not _is_number(values) and len(set(map(str, values))) <= MAX_DISTINCT_SHARE * len(values)


def _encoded_columns(step: Any, n_columns: int) -> NDArray[np.bool_]:
    """Return which columns a fitted step takes as categories, whatever their type."""
    if not isinstance(step, ColumnTransformer):
        return np.full(n_columns, _takes_categories(step))
    is_encoded = np.zeros(n_columns, dtype=bool)
    if step.n_features_in_ == n_columns:
        for name, inner, _ in step.transformers_:
            if _takes_categories(inner):
                is_encoded[step._transformer_to_input_indices[name]] = True
    return is_encoded


def _takes_categories(step: Any) -> bool:
    """Return whether a transformer, or one in a pipeline, takes categories."""
    if isinstance(step, Pipeline):
        return any(_takes_categories(inner) for _, inner in step.steps)
    return hasattr(step, "__sklearn_tags__") and bool(get_tags(step).input_tags.categorical)


def _rows_with_all_values(columns: list[list[Any]], n_rows: int) -> Indices:
    """Return places of some rows, among them one of each value of some columns."""
    places = set(range(min(EXCHANGED_ROWS, n_rows)))
    for values in columns:
        places |= set({str(value): place for place, value in enumerate(values)}.values())
    return np.array(sorted(places), dtype=np.intp)


def _rotated(table: Any, place: int) -> Any:
    """Return a table with the values of one column moved by one row."""
    order = np.roll(np.arange(count_rows(table)), 1)
    if hasattr(table, "iloc"):
        moved = table.copy()
        name = table.columns[place]
        moved[name] = table[name].iloc[order].array
        return moved
    if hasattr(table, "columns"):
        return table.with_columns(table[:, place].gather(order))
    moved = table.copy()
    moved[:, place] = table[order, place]
    return moved


def _count_changes(before: Any, after: Any) -> Indices:
    """Return in how many rows each output differs."""
    return np.asarray((before != after).sum(axis=0), dtype=np.intp).ravel()


def _is_binary(rows: Any) -> NDArray[np.bool_]:
    """Return which columns have at most two values; of a sparse array, one beside 0."""
    if not sparse.issparse(rows):
        return ((rows == rows.min(axis=0)) | (rows == rows.max(axis=0))).all(axis=0)
    by_column = sparse.csc_array(rows)
    columns = np.repeat(np.arange(rows.shape[1]), np.diff(by_column.indptr))
    largest = np.zeros(rows.shape[1])
    largest[columns] = by_column.data
    is_other = (by_column.data != largest[columns]) & (by_column.data != 0)
    return np.bincount(columns[is_other], minlength=rows.shape[1]) == 0
