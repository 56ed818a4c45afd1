"""Write predictions to a file of any format."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from limes.files.batches import LABEL, PredictionWriter, as_int32_labels, closing_or_discarding
from limes.files.npy import ArchiveWriter, ArrayWriter
from limes.files.streams import find_format, open_output, plain_suffix


@contextmanager
def create_predictions(
    path: str | os.PathLike[str], *, classes: Sequence[Any], kind: str | None = None
) -> Iterator[PredictionWriter]:
    """Open a file to write predictions to, in batches.

    CSV, Parquet and Arrow have a column ``label`` and, with probabilities, one ``p_CLASS`` for each
    class. LIBSVM text is that of ``svm-predict``: one label per line, with probabilities after
    it and the classes in the first line. ``.npy`` holds the labels or, with probabilities, only
    these; ``.npz`` both. libAGF's ``.cls`` holds labels, ``.con`` confidence ratings.

    Parameters
    ----------
    path : path-like
        File; ``-`` is standard output.
    classes : sequence
        Labels, in the order of the probabilities.
    kind : str or None, default=None
        One of ``FORMATS``; None means by the ending.

    Yields
    ------
    PredictionWriter
        With ``write(labels, probabilities)``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with create_predictions(Path(folder, "out.txt"), classes=[1, 2]) as writer:
    ...         writer.write(np.array([2]), np.array([[0.25, 0.75]]))
    ...     print(Path(folder, "out.txt").read_text(), end="")
    labels 1 2
    2 0.25 0.75
    """
    path = Path(path)
    kind = find_format(path, kind)
    with (
        open_output(path.with_suffix(".cls") if kind == "libagf" else path) as stream,
        closing_or_discarding(_make_writer(kind, stream, path, classes)) as writer,
    ):
        yield writer


def _make_writer(
    kind: str, stream: IO[bytes], path: Path, classes: Sequence[Any]
) -> PredictionWriter:
    """Return the writer of a format."""
    if kind in ("csv", "parquet", "arrow"):
        return _TablePredictions(stream, kind, plain_suffix(path), classes)
    if kind == "npy":
        return _NpyPredictions(stream)
    if kind == "npz":
        return _NpzPredictions(stream, path, classes)
    if kind == "libagf":
        return _LibagfPredictions(stream, path)
    return _TextPredictions(stream, classes)


class _TextPredictions(PredictionWriter):
    """Writer of the text of ``svm-predict``."""

    def __init__(self, stream: IO[bytes], classes: Sequence[Any]) -> None:
        self._stream = stream
        self._header = " ".join(["labels", *map(str, classes)])

    def write(
        self, labels: NDArray[Any], probabilities: NDArray[Any] | None, table: Any = None
    ) -> None:
        """Append one line per row."""
        lines = list(map(str, labels.tolist()))
        if probabilities is not None:
            numbers = (" ".join(map(repr, row)) for row in probabilities.tolist())
            lines = [f"{label} {row}" for label, row in zip(lines, numbers, strict=True)]
            lines = [self._header, *lines] if self._header else lines
            self._header = ""
        self._stream.write("".join(f"{line}\n" for line in lines).encode())


class _TablePredictions(PredictionWriter):
    """Writer of a table, with the columns of the rows if these are copied."""

    def __init__(self, stream: IO[bytes], kind: str, suffix: str, classes: Sequence[Any]) -> None:
        from limes.files.tables import TableWriter

        self._writer = TableWriter(stream, kind, "\t" if suffix == ".tsv" else ",")
        self._classes = classes

    def write(
        self, labels: NDArray[Any], probabilities: NDArray[Any] | None, table: Any = None
    ) -> None:
        """Append one line per row."""
        used = set(table.schema.names) if table is not None else set()
        columns = {_unused_name(LABEL, used): labels}
        if probabilities is not None:
            for label, column in zip(self._classes, probabilities.T, strict=True):
                columns[_unused_name(f"p_{label}", used)] = column
        self._writer.write(columns, table)

    def close(self) -> None:
        """Complete the file."""
        self._writer.close()

    def discard(self) -> None:
        """Abandon the file."""
        self._writer.discard()


def _unused_name(name: str, used: set[str]) -> str:
    """Return a column name that the rows do not have."""
    return name if name not in used else f"predicted_{name}"


class _NpyPredictions(PredictionWriter):
    """Writer of one array: labels or, if requested, probabilities."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._writer = ArrayWriter(stream)

    def write(
        self, labels: NDArray[Any], probabilities: NDArray[Any] | None, table: Any = None
    ) -> None:
        """Append to the array."""
        self._writer.write(labels if probabilities is None else probabilities)

    def close(self) -> None:
        """Complete the array."""
        self._writer.close()


class _NpzPredictions(PredictionWriter):
    """Writer of the arrays ``classes``, ``labels`` and, if requested, ``probabilities``."""

    def __init__(self, stream: IO[bytes], path: Path, classes: Sequence[Any]) -> None:
        self._arrays = ArchiveWriter(stream, path)
        self._arrays.write("classes", np.asarray(classes))

    def write(
        self, labels: NDArray[Any], probabilities: NDArray[Any] | None, table: Any = None
    ) -> None:
        """Append to the arrays."""
        self._arrays.write("labels", labels)
        if probabilities is not None:
            self._arrays.write("probabilities", probabilities)

    def close(self) -> None:
        """Write the arrays to the archive."""
        self._arrays.close()

    def discard(self) -> None:
        """Abandon the archive."""
        self._arrays.discard()


class _LibagfPredictions(PredictionWriter):
    """Writer of labels and, with probabilities, of confidence ratings in a second file."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream = stream
        self._path = path.with_suffix(".con")
        self._ratings: list[NDArray[Any]] = []

    def write(
        self, labels: NDArray[Any], probabilities: NDArray[Any] | None, table: Any = None
    ) -> None:
        """Append labels."""
        from limes.files.libagf import LABELS, VALUES
        from limes.scores import confidence_rating

        whole = as_int32_labels(labels, program="libAGF")
        self._stream.write(whole.astype(LABELS).tobytes())
        if probabilities is not None:
            self._ratings.append(confidence_rating(probabilities).astype(VALUES))

    def close(self) -> None:
        """Write the ratings."""
        if self._ratings:
            with open_output(self._path) as stream:
                stream.writelines(ratings.tobytes() for ratings in self._ratings)
