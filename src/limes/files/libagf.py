"""libAGF's binary files of rows (`.vec`) and of labels (`.cls`)."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from limes.files.batches import MAX_FEATURES, Batch, RowWriter, as_int32_labels, batch_size
from limes.files.streams import open_output

VALUES, LABELS = np.dtype("<f4"), np.dtype("<i4")


@contextmanager
def open_libagf(path: Path) -> Iterator[tuple[int, int, Iterator[Batch]]]:
    """Open a ``.vec`` file and the ``.cls`` file beside it, if there is one.

    Yields the number of features, the number of rows, and the batches.
    """
    with ExitStack() as stack:
        rows = stack.enter_context(path.with_suffix(".vec").open("rb"))
        n_features, n_rows = _read_preamble(rows, path.with_suffix(".vec"))
        labels = None
        if path.with_suffix(".cls").exists():
            labels = stack.enter_context(path.with_suffix(".cls").open("rb"))
            _check_size(path.with_suffix(".cls"), n_rows)
        yield n_features, n_rows, _read_batches(rows, labels, (n_rows, n_features))


def _read_preamble(stream: IO[bytes], path: Path) -> tuple[int, int]:
    """Return the number of features and of rows."""
    preamble = stream.read(VALUES.itemsize)
    n_features = int.from_bytes(preamble, "little", signed=True)
    if len(preamble) < VALUES.itemsize or not 0 < n_features <= MAX_FEATURES:
        found = n_features if len(preamble) == VALUES.itemsize else "the end of the file"
        raise ValueError(
            f"{path}, byte 0: expected the number of features, from 1 to {MAX_FEATURES}, found "
            f"{found}."
        )
    n_rows, rest = divmod(path.stat().st_size - len(preamble), n_features * VALUES.itemsize)
    if rest:
        raise ValueError(
            f"{path}, byte {path.stat().st_size - rest}: expected rows of {n_features} float32, "
            f"found {rest} bytes over (is it truncated?)."
        )
    return n_features, n_rows


def read_vectors(path: Path) -> NDArray[np.float32]:
    """Return all rows of a file in the format of ``.vec``, which libAGF's borders have as well."""
    with path.open("rb") as stream:
        n_features, n_rows = _read_preamble(stream, path)
        return np.frombuffer(stream.read(), VALUES).reshape(n_rows, n_features)


def _check_size(path: Path, n_rows: int) -> None:
    """Raise an error unless there is one label for each row."""
    if path.stat().st_size != n_rows * LABELS.itemsize:
        raise ValueError(
            f"{path}: expected {n_rows * LABELS.itemsize} bytes, a label for each of {n_rows} "
            f"rows, found {path.stat().st_size}."
        )


def _read_batches(
    rows: IO[bytes], labels: IO[bytes] | None, shape: tuple[int, int]
) -> Iterator[Batch]:
    """Yield the batches of both files."""
    n_rows, n_features = shape
    size = batch_size(n_features, VALUES.itemsize)
    for start in range(0, n_rows, size):
        n = min(size, n_rows - start)
        X = np.frombuffer(rows.read(n * n_features * VALUES.itemsize), VALUES)
        y = None if labels is None else np.frombuffer(labels.read(n * LABELS.itemsize), LABELS)
        yield Batch(X.reshape(n, n_features), y)


class LibagfWriter(RowWriter):
    """Writer of rows to a ``.vec`` file, and of labels to the ``.cls`` file beside it."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream = stream
        self._path = path.with_suffix(".cls")
        self._width = 0
        self._labels: list[NDArray[Any]] = []

    def write(self, X: Any, y: NDArray[Any] | None) -> None:
        """Append rows in float32; labels are stored until the file is closed."""
        rows = (X.toarray() if sparse.issparse(X) else X).astype(VALUES)
        if not self._width:
            self._width = rows.shape[1]
            self._stream.write(self._width.to_bytes(4, "little", signed=True))
        if rows.shape[1] != self._width:
            raise ValueError(f"rows must have {self._width} features, got {rows.shape[1]}.")
        self._stream.write(rows.tobytes())
        if y is not None:
            self._labels.append(as_int32_labels(y, program="libAGF").astype(LABELS))

    def close(self) -> None:
        """Write the labels."""
        if self._labels:
            with open_output(self._path) as stream:
                stream.writelines(labels.tobytes() for labels in self._labels)
