"""Rows to a file of any format, in pieces; the file appears when all are written."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray
from scipy import sparse

from limes.files.columns import LABEL
from limes.files.formats import find_format, plain_suffix
from limes.files.streams import open_output
from limes.files.writer import RowWriter, finishing


@contextmanager
def create_rows(
    path: str | os.PathLike[str],
    *,
    kind: str | None = None,
    names: Sequence[str] | None = None,
) -> Iterator[RowWriter]:
    r"""Open a file to write rows to, in pieces.

    The file appears under its name when all is written; an error leaves what was there before.

    Parameters
    ----------
    path : path-like
        File; ``-`` is standard output.
    kind : str or None, default=None
        One of ``FORMATS``; None goes by the ending.
    names : sequence of str or None, default=None
        Names of the features, for formats that have them; None makes ``x1``, ``x2`` ...

    Yields
    ------
    RowWriter
        With ``write(X, y)``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with create_rows(Path(folder, "two.svm")) as writer:
    ...         writer.write([[0.5, 2.0], [0.0, 3.0]], None)
    ...     Path(folder, "two.svm").read_text()
    '0 1:0.5 2:2\n0 2:3\n'
    """
    path = Path(path)
    found = find_format(path, kind)
    if found == "libagf":
        path = path.with_suffix(".vec")
    with (
        open_output(path) as stream,
        finishing(_make_writer(found, stream, path, names)) as writer,
    ):
        yield writer


def _make_writer(
    kind: str, stream: IO[bytes], path: Path, names: Sequence[str] | None
) -> RowWriter:
    """Return what writes a format."""
    if kind == "libsvm":
        from limes.files.libsvm_text import LibsvmWriter

        return LibsvmWriter(stream)
    if kind in ("npy", "npz"):
        from limes.files.numpy_files import NpyWriter, NpzWriter

        return NpyWriter(stream) if kind == "npy" else NpzWriter(stream, path)
    if kind == "libagf":
        from limes.files.libagf import LibagfWriter

        return LibagfWriter(stream, path)
    return _TableRows(stream, kind, plain_suffix(path), names)


class _TableRows(RowWriter):
    """Rows as a table: the label first, then the features."""

    def __init__(
        self, stream: IO[bytes], kind: str, suffix: str, names: Sequence[str] | None
    ) -> None:
        from limes.files.tables import TableWriter

        self._writer = TableWriter(stream, kind, "\t" if suffix == ".tsv" else ",")
        self._names = names

    def write(self, X: Any, y: NDArray[Any] | None) -> None:
        """Append rows and their labels."""
        rows = X.toarray() if sparse.issparse(X) else X
        names = self._names or [f"x{place + 1}" for place in range(rows.shape[1])]
        features = dict(zip(names, rows.T, strict=True))
        self._writer.write(features if y is None else {LABEL: y, **features})

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()

    def discard(self) -> None:
        """Give the file up."""
        self._writer.discard()
