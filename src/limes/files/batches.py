"""Batches, labels of batches, columns, writer base class."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

# One piece of a file: large enough to keep a core busy, small beside the interpreter.
BATCH_BYTES = 1 << 22
MAX_BATCH_ROWS = 1 << 16
# No dataset is wider; a file that says so is damaged, or not what it is taken for.
MAX_FEATURES = 1 << 25
# The name that a label's column has where the user does not say, and that we give it.
LABEL = "label"
# Characters of a name that a message shows.
MAX_SHOWN = 40


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows that follow each other in a file.

    Parameters
    ----------
    X : ndarray or csr_matrix of shape (n_rows, n_features)
        Rows.
    y : ndarray of shape (n_rows,), or None
        Labels; None where the file has none. As text where the file is text.
    table : object, default=None
        All columns, for files that have names for them.
    """

    X: Any
    y: NDArray[Any] | None
    table: Any = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])


def batch_size(n_features: int, itemsize: int = 8) -> int:
    """Return how many rows make a piece."""
    return max(1, min(MAX_BATCH_ROWS, BATCH_BYTES // max(1, n_features * itemsize)))


class LabelCollector:
    """The labels of many pieces, held in little room until all are there.

    Examples
    --------
    >>> parts = LabelCollector()
    >>> parts.add(np.array(["b", "a"]))
    >>> parts.add(None)
    >>> parts.join()
    array(['b', 'a'], dtype='<U1')
    """

    def __init__(self) -> None:
        self._parts: list[NDArray[Any] | tuple[NDArray[Any], NDArray[np.int32]]] = []

    def add(self, y: NDArray[Any] | None) -> None:
        """Keep the labels of one more piece, if it has any; of text each word once."""
        if y is None:
            return
        if y.dtype.kind in "biuf":
            self._parts.append(y)
            return
        words, class_index = np.unique(y.astype(str), return_inverse=True)
        self._parts.append((words, class_index.astype(np.int32)))

    def join(self) -> NDArray[Any] | None:
        """Return all labels as one array of one type, or None where there are none."""
        if not self._parts:
            return None
        arrays = [one if isinstance(one, np.ndarray) else one[0] for one in self._parts]
        if all(array.dtype.kind in "biuf" for array in arrays):
            return join_labels(arrays)
        # The type is that of the words, each of them once.
        kept = join_labels(arrays)
        ends = np.cumsum([len(array) for array in arrays])
        pieces = [
            kept[end - len(array) : end]
            if isinstance(one, np.ndarray)
            else kept[end - len(array) : end][one[1]]
            for one, array, end in zip(self._parts, arrays, ends.tolist(), strict=True)
        ]
        return np.concatenate(pieces)


def join_labels(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Make one array of the labels of several pieces.

    Whole numbers become integers, whatever they were in the file; what is not a number
    everywhere becomes text.

    Parameters
    ----------
    parts : sequence of ndarray
        Labels of each piece, as numbers or text.

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
    """Return integers where all labels are whole."""
    # Above 2**53 a float no longer tells neighbouring integers apart.
    if np.isfinite(labels).all() and (np.abs(labels) <= 2**53).all():
        whole = labels.astype(np.int64)
        if (whole == labels).all():
            return whole
    return labels


@dataclass(frozen=True)
class Columns:
    """The columns of a table that are used."""

    # In the order of the model's features.
    features: tuple[str, ...]
    # None where there is none.
    label: str | None


def choose_columns(
    names: Sequence[str],
    *,
    file: str,
    label: str | None = None,
    features: Sequence[str] | None = None,
) -> Columns:
    """Tell the label from the features.

    Examples
    --------
    >>> choose_columns(["a", "b", "kind"], file="rows.csv", label="-1")
    Columns(features=('a', 'b'), label='kind')
    """
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise ValueError(f"{file}: expected columns that differ, found {quote(twice[0])} twice.")
    found = _find_label(names, file, label)
    if features is None:
        return Columns(tuple(name for name in names if name != found), found)
    missing = [name for name in features if name not in names]
    if missing:
        raise ValueError(
            f"{file}: expected a column {quote(missing[0])}, found {some_names(names)} "
            f"({len(names)} in all)."
        )
    return Columns(tuple(features), found)


def find_place(label: str, n_columns: int) -> int | None:
    """Return the place of a column, from 0, or None where the words are no place."""
    digits = label.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or not 1 <= int(digits[:12]) <= n_columns:
        return None
    return n_columns - int(digits) if label.startswith("-") else int(digits) - 1


def _find_label(names: Sequence[str], file: str, label: str | None) -> str | None:
    """Return the name of the label's column."""
    if label is None:
        return LABEL if LABEL in names else None
    if label in names:
        return label
    place = find_place(label, len(names))
    if place is None:
        raise ValueError(
            f"{file}: expected the label in a column {quote(label)}, found {some_names(names)}: "
            f"give a name, or a place from 1 to {len(names)} (-1 is the last)."
        )
    return names[place]


def quote(name: str) -> str:
    """Return a name for a message, cut where it is very long."""
    return repr(name if len(name) <= MAX_SHOWN else f"{name[: MAX_SHOWN - 3]}...")


def some_names(names: Sequence[str]) -> str:
    """Write a few names."""
    shown = ", ".join(quote(name)[1:-1] for name in names[:8])
    return f"{shown} ..." if len(names) > 8 else shown


class PieceWriter:
    """The end of a file: reached, or given up."""

    def close(self) -> None:
        """Finish the file; by default the last piece has finished it."""

    def discard(self) -> None:
        """Let go of everything after an error; by default there is nothing to let go of."""


class RowWriter(PieceWriter, ABC):
    """What writes rows."""

    @abstractmethod
    def write(self, X: Any, y: NDArray[Any] | None) -> None:
        """Append rows and their labels."""


class PredictionWriter(PieceWriter, ABC):
    """What writes predictions."""

    @abstractmethod
    def write(
        self, labels: NDArray[Any], probabilities: NDArray[Any] | None, table: Any = None
    ) -> None:
        """Append labels, their probabilities, and the columns of the rows that they are for."""


Writer = TypeVar("Writer", bound=PieceWriter)


@contextmanager
def closing_or_discarding(writer: Writer) -> Iterator[Writer]:
    """Close a writer at the end, or discard it after an error."""
    try:
        yield writer
        writer.close()
    except BaseException:
        writer.discard()
        raise
