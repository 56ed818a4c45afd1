"""Batches of rows and their labels, the choice of columns, and the base classes of writers."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

# Size of one batch: large enough to keep a core busy, small compared with the interpreter.
BATCH_BYTES = 1 << 22
MAX_BATCH_ROWS = 1 << 16
# No dataset is wider: a file with a larger width is damaged, or of another format.
MAX_FEATURES = 1 << 25
# Default name of the label column, in reading and in writing.
LABEL = "label"
# Characters of a name that are shown in a message.
MAX_SHOWN = 40


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive rows of a file.

    Parameters
    ----------
    X : ndarray or csr_matrix of shape (n_rows, n_features)
        Rows.
    y : ndarray of shape (n_rows,), or None
        Labels, as text if the file is text; None if the file has none.
    table : object, default=None
        All columns as a record batch, if they were requested.

    Examples
    --------
    >>> batch = Batch(np.zeros((3, 2)), np.array(["a", "b", "a"]))
    >>> batch.n_rows
    3
    """

    X: Any
    y: NDArray[Any] | None
    table: Any = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])


def batch_size(n_features: int, itemsize: int = 8) -> int:
    """Return the number of rows in a batch."""
    return max(1, min(MAX_BATCH_ROWS, BATCH_BYTES // max(1, n_features * itemsize)))


class LabelCollector:
    """Labels of many batches, stored compactly until all of them are read.

    Examples
    --------
    >>> labels = LabelCollector()
    >>> labels.add(np.array(["b", "a"]))
    >>> labels.add(None)
    >>> labels.join()
    array(['b', 'a'], dtype='<U1')
    """

    def __init__(self) -> None:
        self._parts: list[NDArray[Any] | tuple[NDArray[Any], NDArray[np.int32]]] = []

    def add(self, y: NDArray[Any] | None) -> None:
        """Store the labels of one more batch, text as distinct words and indices.

        Parameters
        ----------
        y : ndarray of shape (n_rows,), or None
            Labels, as numbers or text; None adds nothing.

        Examples
        --------
        >>> labels = LabelCollector()
        >>> labels.add(np.array([2.0, 1.0]))
        >>> labels.join()
        array([2, 1])
        """
        if y is None:
            return
        if y.dtype.kind in "biuf":
            self._parts.append(y)
            return
        words, class_index = np.unique(y.astype(str), return_inverse=True)
        self._parts.append((words, class_index.astype(np.int32)))

    def join(self) -> NDArray[Any] | None:
        """Return all labels as one array of one type.

        Returns
        -------
        ndarray of shape (n_rows,), or None
            As ``join_labels`` returns it; None if no batch had labels.

        Examples
        --------
        >>> LabelCollector().join() is None
        True
        """
        if not self._parts:
            return None
        arrays = [part if isinstance(part, np.ndarray) else part[0] for part in self._parts]
        # The type depends only on the distinct words.
        joined = join_labels(arrays)
        if all(isinstance(part, np.ndarray) for part in self._parts):
            return joined
        pieces = np.split(joined, np.cumsum([len(array) for array in arrays])[:-1])
        return np.concatenate(
            [
                piece if isinstance(part, np.ndarray) else piece[part[1]]
                for part, piece in zip(self._parts, pieces, strict=True)
            ]
        )


def join_labels(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Concatenate the labels of several batches into one array of one type.

    Whole numbers become integers, whatever their type in the file; labels of which at least one
    is not a number become text.

    Parameters
    ----------
    parts : sequence of ndarray
        Labels of each batch, as numbers or text.

    Returns
    -------
    ndarray of int64, float64 or str
        All labels.

    Examples
    --------
    >>> join_labels([np.array(["1", "2"]), np.array(["3"])])
    array([1, 2, 3])
    >>> join_labels([np.array([1.0, 2.0]), np.array([2.5])])
    array([1. , 2. , 2.5])
    >>> join_labels([np.array(["1"]), np.array(["one"])])
    array(['1', 'one'], dtype='<U3')
    """
    if not parts:
        return np.empty(0, dtype=np.int64)
    if all(part.dtype.kind in "biu" for part in parts):
        return np.concatenate(parts).astype(np.int64)
    if all(part.dtype.kind in "biuf" for part in parts):
        return _whole_where_possible(np.concatenate(parts).astype(np.float64))
    text = np.concatenate([np.asarray(part).astype(str) for part in parts])
    names, class_index = np.unique(text, return_inverse=True)
    try:
        numbers = names.astype(np.float64)
    except ValueError:
        return text
    return _whole_where_possible(numbers)[class_index] if np.isfinite(numbers).all() else text


def _whole_where_possible(labels: NDArray[np.float64]) -> NDArray[Any]:
    """Return integers if all labels are whole numbers."""
    # Above 2**53 neighbouring integers have the same float.
    if np.isfinite(labels).all() and (np.abs(labels) <= 2**53).all():
        whole = labels.astype(np.int64)
        if (whole == labels).all():
            return whole
    return labels


def as_int32_labels(labels: NDArray[Any], *, program: str) -> NDArray[np.int32]:
    """Return labels as 32-bit integers, the only ones that LIBSVM and libAGF know.

    Examples
    --------
    >>> as_int32_labels(np.array([1.0, -7.0]), program="libAGF")
    array([ 1, -7], dtype=int32)
    """
    # The comparison is also false for nan.
    if labels.dtype.kind in "biuf" and (np.abs(labels.astype(np.float64)) < 2**31).all():
        whole = labels.astype(np.int32)
        if (whole == labels).all():
            return whole
    raise ValueError(
        f"labels must be whole numbers of 32 bits for {program}, got {labels[:5].tolist()!r}: "
        "encode them with sklearn's LabelEncoder, for instance."
    )


@dataclass(frozen=True)
class Columns:
    """Columns of a table to read."""

    # In the order of the model's features.
    features: tuple[str, ...]
    # None if there is none.
    label: str | None


def choose_columns(
    names: Sequence[str],
    *,
    file: str,
    label: str | None = None,
    features: Sequence[str] | None = None,
) -> Columns:
    """Return the columns of the label and of the features.

    Examples
    --------
    >>> choose_columns(["a", "b", "kind"], file="rows.csv", label="-1")
    Columns(features=('a', 'b'), label='kind')
    """
    known = Counter(names)
    repeated = sorted(name for name, count in known.items() if count > 1)
    if repeated:
        raise ValueError(f"{file}: expected columns that differ, found {quote(repeated[0])} twice.")
    label_column = _find_label(names, file, label)
    if features is None:
        return Columns(tuple(name for name in names if name != label_column), label_column)
    missing = [name for name in features if name not in known]
    if missing:
        raise ValueError(
            f"{file}: expected a column {quote(missing[0])}, found {list_names(names)} "
            f"({len(names)} in all)."
        )
    return Columns(tuple(features), label_column)


def column_index(label: str, n_columns: int) -> int | None:
    """Return the index of a column given as "1", "2" ... or "-1", or None if it is neither."""
    digits = label.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or not 1 <= int(digits[:12]) <= n_columns:
        return None
    return n_columns - int(digits) if label.startswith("-") else int(digits) - 1


def _find_label(names: Sequence[str], file: str, label: str | None) -> str | None:
    """Return the name of the label column, or None if there is none."""
    if label is None:
        return LABEL if LABEL in names else None
    if label in names:
        return label
    index = column_index(label, len(names))
    if index is None:
        raise ValueError(
            f"{file}: expected the label in a column {quote(label)}, found {list_names(names)}: "
            f"give a name, or a number from 1 to {len(names)} (-1 is the last)."
        )
    return names[index]


def quote(name: str) -> str:
    """Return a name in quotes for a message, cut if it is very long."""
    return repr(name if len(name) <= MAX_SHOWN else f"{name[: MAX_SHOWN - 3]}...")


def list_names(names: Sequence[str]) -> str:
    """Return the first eight names for a message."""
    shown = ", ".join(quote(name)[1:-1] for name in names[:8])
    return f"{shown} ..." if len(names) > 8 else shown


class BatchWriter:
    """Base class of writers: how a file is completed or abandoned."""

    def close(self) -> None:
        """Complete the file; by default it is complete after the last batch."""

    def discard(self) -> None:
        """Release all resources after an error; by default there are none."""


class RowWriter(BatchWriter, ABC):
    """Base class of writers of rows."""

    @abstractmethod
    def write(self, X: Any, y: NDArray[Any] | None) -> None:
        """Append rows and their labels."""


class PredictionWriter(BatchWriter, ABC):
    """Base class of writers of predictions."""

    @abstractmethod
    def write(
        self, labels: NDArray[Any], probabilities: NDArray[Any] | None, table: Any = None
    ) -> None:
        """Append labels and probabilities, beside the columns of their rows if these are given."""


Writer = TypeVar("Writer", bound=BatchWriter)


@contextmanager
def closing_or_discarding(writer: Writer) -> Iterator[Writer]:
    """Close a writer at the end, or discard it after an error."""
    try:
        yield writer
        writer.close()
    except BaseException:
        writer.discard()
        raise
