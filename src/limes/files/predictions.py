"""Predictions to a file of any format."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from limes.files.batches import LABEL, PredictionWriter, closing_or_discarding
from limes.files.npy import ArchiveWriter, ArrayWriter
from limes.files.streams import find_format, open_output, plain_suffix


@contextmanager
def create_predictions(
    path: str | os.PathLike[str], *, classes: Sequence[Any], kind: str | None = None
) -> Iterator[PredictionWriter]:
    """Open a file to write predictions to, in pieces.

    CSV, Parquet and Arrow have a column ``label`` and, with probabilities, one ``p_CLASS`` for each
    class. LIBSVM's text is that of ``svm-predict``: a label a line, with probabilities after
    it and the classes in the first line. ``.npy`` holds the labels or, with probabilities, only
    these; ``.npz`` both. libAGF's ``.cls`` holds labels, with confidence ratings in ``.con``.

    Parameters
    ----------
    path : path-like
        File; ``-`` is standard output.
    classes : sequence
        Labels, in the order of the probabilities.
    kind : str or None, default=None
        One of ``FORMATS``; None goes by the ending.

    Yields
    ------
    AnswerWriter
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
    found = find_format(path, kind)
    with (
        open_output(path.with_suffix(".cls") if found == "libagf" else path) as stream,
        closing_or_discarding(_make_writer(found, stream, path, classes)) as writer,
    ):
        yield writer


def _make_writer(
    kind: str, stream: IO[bytes], path: Path, classes: Sequence[Any]
) -> PredictionWriter:
    """Return what writes a format."""
    if kind in ("csv", "parquet", "arrow"):
        return _TableAnswers(stream, kind, plain_suffix(path), classes)
    if kind == "npy":
        return _NpyAnswers(stream)
    if kind == "npz":
        return _NpzAnswers(stream, path, classes)
    return _LibagfAnswers(stream, path) if kind == "libagf" else _TextAnswers(stream, classes)


class _TextAnswers(PredictionWriter):
    """The text of ``svm-predict``."""

    def __init__(self, stream: IO[bytes], classes: Sequence[Any]) -> None:
        self._stream = stream
        self._header = " ".join(["labels", *map(str, classes)])

    def write(
        self, labels: NDArray[Any], probabilities: NDArray[Any] | None, table: Any = None
    ) -> None:
        """Append a line for each label."""
        lines = list(map(str, labels.tolist()))
        if probabilities is not None:
            shares = (" ".join(map(repr, row)) for row in probabilities.tolist())
            lines = [f"{label} {share}" for label, share in zip(lines, shares, strict=True)]
            lines = [self._header, *lines] if self._header else lines
            self._header = ""
        self._stream.write("".join(f"{line}\n" for line in lines).encode())


class _TableAnswers(PredictionWriter):
    """Columns, beside those of the rows where these are kept."""

    def __init__(self, stream: IO[bytes], kind: str, suffix: str, classes: Sequence[Any]) -> None:
        from limes.files.tables import TableWriter

        self._writer = TableWriter(stream, kind, "\t" if suffix == ".tsv" else ",")
        self._classes = classes

    def write(
        self, labels: NDArray[Any], probabilities: NDArray[Any] | None, table: Any = None
    ) -> None:
        """Append a line for each label."""
        taken = set(table.schema.names) if table is not None else set()
        columns = {_free_name(LABEL, taken): labels}
        if probabilities is not None:
            for label, column in zip(self._classes, probabilities.T, strict=True):
                columns[_free_name(f"p_{label}", taken)] = column
        self._writer.write(columns, table)

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()

    def discard(self) -> None:
        """Give the file up."""
        self._writer.discard()


def _free_name(name: str, taken: set[str]) -> str:
    """Return a name for a prediction that no column of the rows has."""
    return name if name not in taken else f"predicted_{name}"


class _NpyAnswers(PredictionWriter):
    """One array: labels or, where they are asked for, probabilities."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._writer = ArrayWriter(stream)

    def write(
        self, labels: NDArray[Any], probabilities: NDArray[Any] | None, table: Any = None
    ) -> None:
        """Append to the array."""
        self._writer.write(labels if probabilities is None else probabilities)

    def close(self) -> None:
        """Finish the array."""
        self._writer.close()


class _NpzAnswers(PredictionWriter):
    """The arrays ``classes``, ``labels`` and, where they are asked for, ``probabilities``."""

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
        """Put the arrays into the archive."""
        self._arrays.close()

    def discard(self) -> None:
        """Give the archive up."""
        self._arrays.discard()


class _LibagfAnswers(PredictionWriter):
    """Labels and, where probabilities are asked for, confidence ratings in a file beside."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream = stream
        self._path = path.with_suffix(".con")
        self._ratings: list[NDArray[Any]] = []

    def write(
        self, labels: NDArray[Any], probabilities: NDArray[Any] | None, table: Any = None
    ) -> None:
        """Append labels."""
        from limes.files.libagf import VALUES, as_labels
        from limes.scores import confidence_rating

        self._stream.write(as_labels(labels).tobytes())
        if probabilities is not None:
            self._ratings.append(confidence_rating(probabilities).astype(VALUES))

    def close(self) -> None:
        """Write the ratings."""
        if self._ratings:
            with open_output(self._path) as stream:
                stream.writelines(ratings.tobytes() for ratings in self._ratings)
