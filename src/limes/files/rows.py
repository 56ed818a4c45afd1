"""Open, read, create, copy files of rows of any format."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from limes.files.batches import (
    LABEL,
    Batch,
    Columns,
    LabelCollector,
    RowWriter,
    choose_columns,
    closing_or_discarding,
    find_place,
    join_labels,
    quote,
)
from limes.files.streams import find_format, open_output, plain_suffix

# Sparse rows with more than this share of values that are not zero take less room dense.
DENSE_SHARE = 0.3


@dataclass(frozen=True)
class RowOptions:
    """What a user may have to say about a file of rows.

    Parameters
    ----------
    format : str or None, default=None
        One of ``FORMATS``; None goes by the ending.
    label : str or None, default=None
        Column of the label in CSV, Parquet, Arrow and ``.npy`` files: its name, or its place, 1 for
        the first and -1 for the last. None takes the column called "label", if there is one.
    columns : tuple of str or None, default=None
        Names of the features, where not all other columns are.
    expected : tuple of str or None, default=None
        Names of the features that a model was trained on: found by name in a file that has
        names, by place in one that has none.
    n_features : int or None, default=None
        Features of a row of LIBSVM text, which names only those that are not zero.
    part : str or None, default=None
        Of a ``.npz`` file with ``X_train``, ``X_test`` and the like: what follows ``X_``.
    delimiter : str or None, default=None
        Of CSV; None is a comma, a tab in ``.tsv`` files.
    header : {"auto", "yes", "no"}, default="auto"
        Whether the first line of CSV has names.
    keep : bool, default=False
        Hand on all columns of a table beside the rows.
    """

    format: str | None = None
    label: str | None = None
    columns: tuple[str, ...] | None = None
    expected: tuple[str, ...] | None = None
    n_features: int | None = None
    part: str | None = None
    delimiter: str | None = None
    header: str = "auto"
    keep: bool = False


@dataclass(frozen=True, eq=False)
class RowFile:
    """An open file of rows.

    Parameters
    ----------
    path : Path
        Its name.
    format : str
        Its format.
    names : tuple of str or None
        Names of the features, where the file has any.
    n_features : int or None
        Features of a row; None where only the rows tell.
    n_rows : int or None
        Number of rows; None where only reading them tells.
    pieces : iterator of Batch
        The rows; to be read once.
    """

    path: Path
    format: str
    names: tuple[str, ...] | None
    n_features: int | None
    n_rows: int | None
    pieces: Iterator[Batch]

    def __iter__(self) -> Iterator[Batch]:
        """Go through the rows, all of them finite numbers."""
        n_before = 0
        for batch in self.pieces:
            self._check_finite(batch, n_before)
            yield batch
            n_before += batch.n_rows

    def _check_finite(self, batch: Batch, n_before: int) -> None:
        """Say which row holds something else than finite numbers."""
        values = batch.X.data if sparse.issparse(batch.X) else batch.X
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum()):
                return
        rows = batch.X.toarray() if sparse.issparse(batch.X) else batch.X
        is_bad = ~np.isfinite(rows)
        if is_bad.any():
            row, place = np.argwhere(is_bad)[0]
            column = quote(self.names[place]) if self.names else place + 1
            raise ValueError(
                f"{self.path}, row {n_before + row + 1}, feature {column}: expected a finite "
                f"number, found {rows[row, place]}."
            )


@contextmanager
def open_rows(path: str | os.PathLike[str], options: RowOptions | None = None) -> Iterator[RowFile]:
    """Open a file of rows of any format, to be read in pieces.

    Parameters
    ----------
    path : path-like
        File; ``-`` is standard input.
    options : RowOptions, default=None
        What the user said about it; None for nothing.

    Yields
    ------
    RowFile
        Iterate over it for the pieces.
    """
    options = options or RowOptions()
    path = Path(path)
    with ExitStack() as stack:
        yield OPENERS[find_format(path, options.format)](path, options, stack)


def read_rows(
    path: str | os.PathLike[str],
    options: RowOptions | None = None,
    *,
    max_bytes: int | None = None,
) -> tuple[Any, NDArray[Any] | None, tuple[str, ...] | None]:
    r"""Read all rows of a file.

    Parameters
    ----------
    path : path-like
        File; ``-`` is standard input.
    options : RowOptions, default=None
        What the user said about it; None for nothing.
    max_bytes : int or None, default=None
        Refuse more than this; None is three quarters of the machine's memory.

    Returns
    -------
    X : ndarray or csr_matrix of shape (n_rows, n_features)
        Rows, sparse where the file is and it is worth it.
    y : ndarray of shape (n_rows,), or None
        Labels.
    names : tuple of str or None
        Names of the features.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "two.svm")
    ...     _ = file.write_text("+1 1:0.5 2:2\n-1 2:3\n")
    ...     X, y, _ = read_rows(file)
    >>> X, y
    (array([[0.5, 2. ],
           [0. , 3. ]]), array([ 1, -1]))
    """
    limit = max_bytes or _memory() * 3 // 4
    parts: list[Any] = []
    labels = LabelCollector()
    with open_rows(path, options) as rows:
        n_bytes = 0
        for batch in rows:
            n_bytes += _size(batch.X)
            if n_bytes > limit:
                raise ValueError(
                    f"{path}: more than {limit} bytes of rows, too many to hold at once: choose "
                    "fewer with limes subsample."
                )
            parts.append(batch.X)
            labels.add(batch.y)
        names = rows.names
    if not parts:
        raise ValueError(f"{path}: expected rows, found none.")
    return _join(parts, limit), labels.join(), names


def _open_libsvm(path: Path, options: RowOptions, stack: ExitStack) -> RowFile:
    """Open LIBSVM text."""
    from limes.files.libsvm import open_libsvm

    width = options.n_features
    pieces = stack.enter_context(open_libsvm(path, width))
    return RowFile(path, "libsvm", None, width, None, pieces)


def _open_csv(path: Path, options: RowOptions, stack: ExitStack) -> RowFile:
    """Open CSV text."""
    from limes.files.tables import CsvOptions, as_batches, open_csv

    style = CsvOptions(options.delimiter, options.header)
    names, table = stack.enter_context(open_csv(path, style))
    columns = _choose(names, path, options, has_names=table.has_names)
    others = [name for name in names if name not in columns.features]
    texts = others if options.keep else [name for name in others if name == columns.label]
    pieces = as_batches(table.batches(columns.features, texts), path, columns, keep=options.keep)
    given = columns.features if table.has_names else None
    return RowFile(path, "csv", given, len(columns.features), None, pieces)


def _choose(
    names: Sequence[str], path: Path, options: RowOptions, *, has_names: bool = True
) -> Columns:
    """Choose the columns of a table: those asked for, else those that the model knows."""
    wanted = options.columns or (options.expected if has_names else None)
    return choose_columns(names, file=str(path), label=options.label, features=wanted)


def _open_parquet(path: Path, options: RowOptions, stack: ExitStack) -> RowFile:
    """Open a Parquet file."""
    from limes.files.tables import open_parquet, parquet_batches

    table = stack.enter_context(open_parquet(path))
    columns = _choose(table.schema_arrow.names, path, options)
    pieces = parquet_batches(table, path, columns, keep=options.keep)
    n_rows = table.metadata.num_rows
    return RowFile(path, "parquet", columns.features, len(columns.features), n_rows, pieces)


def _open_arrow(path: Path, options: RowOptions, stack: ExitStack) -> RowFile:
    """Open an Arrow file."""
    from limes.files.tables import arrow_batches, open_arrow

    table = stack.enter_context(open_arrow(path))
    columns = _choose(table.schema.names, path, options)
    pieces = arrow_batches(table, path, columns, keep=options.keep)
    return RowFile(path, "arrow", columns.features, len(columns.features), None, pieces)


def _open_numpy(path: Path, options: RowOptions, stack: ExitStack) -> RowFile:
    """Open a NumPy array, or an archive of them."""
    from limes.files.npy import open_npy, open_npz, read_batches

    kind = find_format(path, options.format)
    opened = open_npy(path) if kind == "npy" else open_npz(path, options.part)
    rows, labels = stack.enter_context(opened)
    if len(rows.shape) != 2:
        raise ValueError(f"{rows.name}: expected rows of features, found the shape {rows.shape}.")
    place = None
    if options.label is not None:
        place = find_place(options.label, rows.shape[1])
        if place is None:
            raise ValueError(
                f"{path}: expected the label in column {options.label!r}, found columns 1 to "
                f"{rows.shape[1]} (-1 is the last)."
            )
    n_features = rows.shape[1] - (place is not None)
    pieces = read_batches(rows, labels, place)
    return RowFile(path, kind, None, n_features, rows.shape[0], pieces)


def _open_libagf(path: Path, options: RowOptions, stack: ExitStack) -> RowFile:
    """Open libAGF's rows and labels."""
    from limes.files.libagf import open_libagf

    n_features, n_rows, pieces = stack.enter_context(open_libagf(path))
    return RowFile(path, "libagf", None, n_features, n_rows, pieces)


OPENERS = {
    "libsvm": _open_libsvm,
    "csv": _open_csv,
    "parquet": _open_parquet,
    "arrow": _open_arrow,
    "npy": _open_numpy,
    "npz": _open_numpy,
    "libagf": _open_libagf,
}


def _memory() -> int:
    """Return the machine's memory in bytes, or much where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 1 << 34


def _size(X: Any) -> int:
    """Return the bytes of some rows."""
    if not sparse.issparse(X):
        return int(X.nbytes)
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)


def _join(parts: list[Any], limit: int) -> Any:
    """Put pieces together, sparse ones with one width, and dense where that is smaller."""
    if not sparse.issparse(parts[0]):
        return np.concatenate(parts)
    width = max(part.shape[1] for part in parts)
    for part in parts:
        part.resize(part.shape[0], width)
    X = sparse.vstack(parts, format="csr")
    is_full = X.nnz > DENSE_SHARE * X.shape[0] * width
    return X.toarray() if is_full and 8 * X.shape[0] * width < limit else X


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
        closing_or_discarding(_make_writer(found, stream, path, names)) as writer,
    ):
        yield writer


def _make_writer(
    kind: str, stream: IO[bytes], path: Path, names: Sequence[str] | None
) -> RowWriter:
    """Return what writes a format."""
    if kind == "libsvm":
        from limes.files.libsvm import LibsvmWriter

        return LibsvmWriter(stream)
    if kind in ("npy", "npz"):
        from limes.files.npy import NpyWriter, NpzWriter

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


@dataclass(frozen=True, eq=False)
class Scan:
    """What a first reading of a file tells."""

    # Of the whole file.
    n_rows: int
    n_features: int
    # Shape (n_rows,). Of one type; None where the file has none.
    labels: NDArray[Any] | None


class Progress(Protocol):
    """Shows how many rows are done."""

    def advance(self, n_rows: int) -> None:
        """Count further rows as done."""


# From a title and a number of rows, which may be unknown, to a progress display.
ShowProgress: TypeAlias = Callable[[str, int | None], AbstractContextManager[Progress]]


class _NoProgress(nullcontext[Progress]):
    """Shows nothing."""

    def __init__(self, title: str, n_rows: int | None) -> None:
        super().__init__(self)

    def advance(self, n_rows: int) -> None:
        """Count nothing."""


def scan_rows(path: Path, options: RowOptions, progress: ShowProgress = _NoProgress) -> Scan:
    """Read a file for its labels and its width."""
    if str(path) == "-":
        raise ValueError("the rows are read twice, so they must be in a file, got '-'.")
    n_rows = n_features = 0
    labels = LabelCollector()
    with open_rows(path, options) as rows, progress(f"reading {path}", rows.n_rows) as bar:
        for batch in rows:
            n_rows += batch.n_rows
            n_features = max(n_features, batch.X.shape[1])
            labels.add(batch.y)
            bar.advance(batch.n_rows)
    return Scan(n_rows, n_features, labels.join())


def copy_rows(
    path: Path,
    output: Path,
    options: RowOptions,
    *,
    kind: str | None = None,
    scan: Scan | None = None,
    chosen: NDArray[np.intp] | None = None,
    progress: ShowProgress = _NoProgress,
) -> int:
    """Copy rows."""
    n_before = n_copied = 0
    with (
        open_rows(path, options) as rows,
        create_rows(output, kind=kind, names=rows.names) as writer,
        progress(f"writing {output}", scan.n_rows if scan else rows.n_rows) as bar,
    ):
        for batch in rows:
            X, y = _settle(batch, scan, n_before)
            if chosen is not None:
                own = slice(*np.searchsorted(chosen, [n_before, n_before + batch.n_rows]))
                kept = chosen[own] - n_before
                X, y = X[kept], None if y is None else y[kept]
            if X.shape[0]:
                writer.write(X, y)
            n_before += batch.n_rows
            n_copied += X.shape[0]
            bar.advance(batch.n_rows)
    if not n_copied:
        raise ValueError(f"{path}: expected rows, found none.")
    return n_copied


def _settle(batch: Any, scan: Scan | None, n_before: int) -> tuple[Any, Any]:
    """Give a piece the width and the type of label of the whole file."""
    X, y = batch.X, batch.y
    if scan is None:
        return X, None if y is None else join_labels([y])
    if sparse.issparse(X):
        X.resize(X.shape[0], scan.n_features)
    labels = scan.labels
    return X, None if labels is None else labels[n_before : n_before + batch.n_rows]
