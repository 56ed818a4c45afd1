"""Ask a classifier or function for its answers: its input is protected, its answers are checked."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from limes._typing import Array, Indices, Labels
from limes.sources.base import MulticlassSource
from limes.sources.pipelines import fit_source

# Rows and numbers of one call: a copy of 32 MB at most.
BLOCK_ROWS = 20_000
BLOCK_NUMBERS = 1 << 22
# Rows that a source is asked for twice, and the largest difference of a probability that rounding
# explains: threads may add in another order.
REPEATED_ROWS = 200
MAX_ROUNDING = 1e-4
# Arrays of sparse matrices of any format.
SPARSE_PARTS = ("data", "indices", "indptr", "row", "col", "offsets")


class Asked:
    """A method of a classifier, or a function of rows, that is handed copies of blocks of rows.

    What it does to these leaves the rows of the caller as they are. Each answer is checked, and
    what is wrong with one raises a `ValueError` of one sentence.
    """

    def __init__(
        self, method: Callable[[Any], Any], owner: Any, *, n_columns: int | None = None
    ) -> None:
        # Columns of an answer; 0 for labels, None for decision values (n_rows,) or any number.
        self.method, self.n_columns = method, n_columns
        self.name = name_of(owner)
        self.feature_names = getattr(owner, "feature_names_in_", None)

    def __call__(self, X: Array) -> NDArray[Any]:
        """Return the answers for all rows."""
        answers = [self._ask(X[place]) for place in _blocks(X)]
        widths = {answer.shape[1:] for answer in answers}
        if len(widths) > 1:
            raise ValueError(
                f"the source {self.name} returned answers of different shapes, "
                f"{' and '.join(map(str, sorted(widths)))} per row: it must return the same for "
                "any rows."
            )
        return answers[0] if len(answers) == 1 else np.concatenate(answers)

    def _ask(self, rows: Array) -> NDArray[Any]:
        """Return the checked answers for a copy of a block of rows."""
        given = np.array(rows)
        with _named_failure(self.name, len(given)):
            answer = self.method(self._with_names(given))
        if not np.array_equal(given, rows):
            raise ValueError(
                f"the source {self.name} changes the rows that it is given: let it copy them first."
            )
        return self._checked(answer, len(given))

    def _with_names(self, rows: Array) -> Any:
        """Return rows as a data frame where the source was fitted on one."""
        if self.feature_names is None:
            return rows
        # scikit-learn stores names of data frames only, so that pandas is installed.
        from pandas import DataFrame

        return DataFrame(rows, columns=self.feature_names, copy=False)

    def _checked(self, answer: Any, n_rows: int) -> NDArray[Any]:
        """Return an answer as an array, or raise what is wrong with it."""
        if hasattr(answer, "__next__"):
            raise ValueError(
                f"the source {self.name} returned a {type(answer).__name__} for {n_rows} rows: it "
                "must return an array."
            )
        try:
            values = np.asarray(answer)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(
                f"the source {self.name} returned a {type(answer).__name__} for {n_rows} rows that "
                f"is not an array of numbers: {_in_one_line(error)}"
            ) from error
        is_label = self.n_columns == 0
        shapes = {0: f"({n_rows},)", None: f"({n_rows},) or ({n_rows}, n_classes)"}
        expected = shapes.get(self.n_columns, f"({n_rows}, {self.n_columns})")
        is_wide = values.ndim == 2 and self.n_columns != 0 and values.shape[1] > 0
        has_width = self.n_columns is None or values.shape[1:] == (self.n_columns,)
        is_flat = values.ndim == 1 and not self.n_columns
        if values.shape[:1] != (n_rows,) or not (is_flat or (is_wide and has_width)):
            found = f"an array of shape {values.shape}" if values.ndim else type(answer).__name__
            raise ValueError(
                f"the source {self.name} returned {found} for {n_rows} rows: expected an array of "
                f"shape {expected}."
            )
        if is_label:
            return values
        if values.dtype == object and all(isinstance(value, Real) for value in values.flat):
            values = values.astype(np.float64)
        if values.dtype.kind not in "fiub":
            raise ValueError(
                f"the source {self.name} returned {values.reshape(-1)[:1].tolist()[0]!r:.60} as a "
                "decision value or probability: expected numbers."
            )
        if np.isnan(values).any():
            n_missing = int(np.isnan(values).reshape(n_rows, -1).any(axis=1).sum())
            raise ValueError(
                f"the source {self.name} returned NaN for {n_missing} of {n_rows} rows: it must "
                "return a number for every row."
            )
        if self.n_columns and not -MAX_ROUNDING <= values.min() <= values.max() <= 1 + MAX_ROUNDING:
            worst = max(values.max(), 1 - values.min())
            found = worst if worst == values.max() else values.min()
            raise ValueError(
                f"the source {self.name} returned {float(found):.4g} as a probability: expected 0 "
                "to 1."
            )
        return values


def ask(model: Any, method: str, *, n_columns: int | None = None) -> Asked:
    """Return a method of a classifier that takes plain rows, with or without column names."""
    return Asked(getattr(model, method), model, n_columns=n_columns)


def answer_read_only(method: Callable[[Any], Any], rows: Any, name: str) -> Any:
    """Return the answer of a source for rows of any kind that it cannot write."""
    with _named_failure(name, len(rows) if hasattr(rows, "__len__") else rows.shape[0]):
        try:
            return method(read_only(rows))
        except (ValueError, TypeError) as error:
            # Compiled code may ask for writable rows without writing.
            if not _is_about_writing(error):
                raise
        return method(copy.deepcopy(rows))


@contextmanager
def _named_failure(name: str, n_rows: int) -> Iterator[None]:
    """Turn an error of a source into one that names it, of one line."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        raise ValueError(
            f"the source {name} failed on {n_rows} rows with {type(error).__name__}: "
            f"{_in_one_line(error)}"
        ) from error


def index_of_labels(labels: Labels, classes: Labels, owner: Any) -> Indices:
    """Return the class index of labels that a source predicted."""
    order = np.argsort(classes)
    places = np.minimum(np.searchsorted(classes, labels, sorter=order), len(classes) - 1)
    index: Indices = order[places]
    is_unknown = classes[index] != labels
    if np.any(is_unknown):
        unknown = labels[np.asarray(is_unknown)].tolist()[0]
        raise ValueError(
            f"the source {name_of(owner)} predicted the label {unknown!r:.60}, which is not one of "
            f"its classes_ {np.asarray(classes).tolist()!r:.100}."
        )
    return index


def fit_protected(
    estimator: Any, X: Any, y: Any, sample_weight: Array | None = None, **fit_parameters: Any
) -> Any:
    """Return a fitted clone of an estimator, which cannot change the rows and labels."""
    try:
        return fit_source(
            clone(estimator), read_only(X), read_only(y), sample_weight, **fit_parameters
        )
    except (ValueError, TypeError) as error:
        # Compiled code may ask for writable rows without writing.
        if not _is_about_writing(error):
            raise
    rows, labels = copy.deepcopy(X), copy.deepcopy(y)
    fitted = fit_source(clone(estimator), rows, labels, sample_weight, **fit_parameters)
    if not (_is_equal(rows, X) and _is_equal(labels, y)):
        raise ValueError(
            f"the source {name_of(estimator)} changes the rows that it is given: let it copy them "
            "first."
        )
    return fitted


def read_only(X: Any) -> Any:
    """Return rows that share their memory with others but cannot be written.

    Arrays, sparse matrices and data frames of numbers; text and categories of a data frame are
    copied. Anything else is returned as it is.
    """
    if isinstance(X, np.ndarray):
        return _read_only_array(X)
    if sparse.issparse(X):
        return _read_only_sparse(X)
    package = type(X).__module__.partition(".")[0]
    if package == "polars":
        return X.clone()
    is_frame = package == "pandas" and getattr(X, "ndim", 0) == 2
    if is_frame:
        columns = {place: _read_only_column(X.iloc[:, place]) for place in range(X.shape[1])}
        frame = type(X)(columns, index=X.index, copy=False)
        frame.columns = X.columns
        return frame
    return X.copy() if package == "pandas" else X


def check_repeatable(source: MulticlassSource, rows: Array, name: str) -> None:
    """Raise an error where a source gives other answers when it is asked for the same rows again.

    The second time, the rows come in the opposite order and without the last one: an answer may
    depend on its own row alone.

    Examples
    --------
    >>> from limes.sources.base import SourceContext, as_source
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(50, 2))
    >>> context = SourceContext(rows, None, False, rng)
    >>> check_repeatable(as_source(lambda X: X[:, 0], context), rows, "f")
    >>> noisy = as_source(lambda X: X[:, 0] + rng.normal(size=len(X)), context)
    >>> check_repeatable(noisy, rows, "f")
    Traceback (most recent call last):
        ...
    ValueError: the source f gives other answers when it is asked again, ...
    """
    asked = rows[:: max(1, -(-len(rows) // REPEATED_ROWS))]
    others = asked[-2::-1] if len(asked) > 1 else asked
    first, labels = source.probabilities(asked), source.predict_index(asked)
    first, labels = first[len(others) - 1 :: -1], labels[len(others) - 1 :: -1]
    second, again = source.probabilities(others), source.predict_index(others)
    change = np.abs(first - second).max(axis=1)
    # A label of two classes that are equally likely may change by rounding.
    largest = np.partition(first, -2, axis=1)
    is_tied = largest[:, -1] - largest[:, -2] <= MAX_ROUNDING
    is_other = (change > MAX_ROUNDING) | ((labels != again) & ~is_tied)
    if is_other.any():
        raise ValueError(
            f"the source {name} gives other answers when it is asked again, for "
            f"{int(is_other.sum())} of {len(others)} rows: fix its random numbers, and let each "
            "answer depend on its own row alone."
        )


def name_of(owner: Any) -> str:
    """Return the name of a classifier's class, or of a function."""
    return str(getattr(owner, "__name__", type(owner).__name__))


def _blocks(X: Array) -> Iterator[slice]:
    """Yield the places of blocks of rows, one at least."""
    size = max(1, min(BLOCK_ROWS, BLOCK_NUMBERS // max(X.shape[1], 1)))
    for start in range(0, max(len(X), 1), size):
        yield slice(start, start + size)


def _read_only_array(X: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be made writable again, where its type allows that."""
    if type(X) is np.ndarray and X.dtype.kind in "fiub" and X.dtype.isnative:
        return np.asarray(memoryview(X.data).toreadonly())
    view = X.view()
    view.flags.writeable = False
    return view


def _read_only_sparse(X: Any) -> Any:
    """Return a sparse matrix with the same arrays, which cannot be written; others are copied."""
    if X.format not in ("csr", "csc", "coo", "bsr", "dia"):
        return X.copy()
    shared = copy.copy(X)
    for name in SPARSE_PARTS:
        part = vars(shared).get(name)
        if part is not None:
            setattr(shared, name, _read_only_array(part))
    return shared


def _read_only_column(column: Any) -> Any:
    """Return a column of numbers that cannot be written; a copy of any other."""
    if not isinstance(column.dtype, np.dtype) or column.dtype.kind not in "fiub":
        return column.copy()
    values = _read_only_array(column.to_numpy(copy=False))
    return type(column)(values, index=column.index, copy=False)


def _is_equal(first: Any, second: Any) -> bool:
    """Return whether rows or labels are equal, NaN to NaN."""
    if sparse.issparse(first):
        return first.nnz == second.nnz and not (first != second).count_nonzero()
    if hasattr(first, "equals"):
        return bool(first.equals(second))
    first, second = np.asarray(first), np.asarray(second)
    return np.array_equal(first, second, equal_nan=first.dtype.kind == "f")


def _is_about_writing(error: BaseException | None) -> bool:
    """Return whether an error, or one that it stems from, is about rows that cannot be written."""
    if error is None:
        return False
    is_about = "read-only" in str(error) or "WRITEABLE" in str(error)
    return is_about or _is_about_writing(error.__cause__ or error.__context__)


def _in_one_line(error: Exception) -> str:
    """Return the message of an error, shortened."""
    return f"{' '.join(str(error).split()) or 'no message'!s:.200}"
