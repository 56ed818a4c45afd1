"""Open, read, create and copy files of rows of any format."""

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
    column_index,
    join_labels,
    quote,
)
from limes.files.streams import find_format, find_input_format, open_output, plain_suffix

# Sparse rows with a larger share of values that are not zero take less memory as dense ones.
DENSE_SHARE = 0.3


@dataclass(frozen=True)
class RowOptions:
    """How to read a file of rows.

    Parameters
    ----------
    format : str or None, default=None
        One of ``FORMATS``; None means by content, else by the ending.
    label : str or None, default=None
        Column of the label in CSV, Parquet, Arrow and ``.npy`` files: its name or its number, 1 for
        the first and -1 for the last. None means the column "label", if there is one.
    columns : tuple of str or None, default=None
        Names of the features; None means all columns but the label.
    expected : tuple of str or None, default=None
        Names of the features that a model was trained on: selected by name in a file with column
        names, by position in one without.
    n_features : int or None, default=None
        Number of features in LIBSVM text, which stores only those that are not zero.
    first_index : {0, 1} or None, default=None
        Number of the first feature in LIBSVM text. None means 0 if a row among the first has a
        feature 0, else 1.
    part : str or None, default=None
        Part of a ``.npz`` file with ``X_train``, ``X_test`` and so on: the text after ``X_``.
    delimiter : str or None, default=None
        Delimiter of CSV; None means a comma, in ``.tsv`` files a tab.
    header : {"auto", "yes", "no"}, default="auto"
        Whether the first line of CSV has names.
    keep : bool, default=False
        Whether batches have all columns of a table.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "rows.svm")
    >>> _ = path.write_text(f"1 1:0.5 2:3{os.linesep}2 1:0.7")
    >>> rows, labels, _ = read_rows(path, RowOptions(n_features=4))
    >>> rows.shape
    (2, 4)
    """

    format: str | None = None
    label: str | None = None
    columns: tuple[str, ...] | None = None
    expected: tuple[str, ...] | None = None
    n_features: int | None = None
    first_index: int | None = None
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
        The file.
    format : str
        One of ``FORMATS``.
    names : tuple of str or None
        Names of the features; None if the file has none.
    n_features : int or None
        Number of features; None if it is not known before all rows are read.
    n_rows : int or None
        Number of rows; None if it is not known before all rows are read.
    batches : iterator of Batch
        The rows; they can be read once.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "rows.svm")
    >>> _ = path.write_text(f"1 1:0.5 2:3{os.linesep}2 1:0.7")
    >>> with open_rows(path) as rows:
    ...     print(rows.format, sum(batch.n_rows for batch in rows))
    libsvm 2
    """

    path: Path
    format: str
    names: tuple[str, ...] | None
    n_features: int | None
    n_rows: int | None
    batches: Iterator[Batch]

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches, after checking that their numbers are finite."""
        n_before = 0
        for batch in self.batches:
            self._check_finite(batch, n_before)
            yield batch
            n_before += batch.n_rows

    def _check_finite(self, batch: Batch, n_before: int) -> None:
        """Raise an error that names the first number that is not finite."""
        values = batch.X.data if sparse.issparse(batch.X) else batch.X
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum()):
                return
        rows = batch.X.toarray() if sparse.issparse(batch.X) else batch.X
        is_bad = ~np.isfinite(rows)
        if is_bad.any():
            row, index = np.argwhere(is_bad)[0]
            column = quote(self.names[index]) if self.names else index + 1
            raise ValueError(
                f"{self.path}, row {n_before + row + 1}, feature {column}: expected a finite "
                f"number, found {rows[row, index]}."
            )


@contextmanager
def open_rows(path: str | os.PathLike[str], options: RowOptions | None = None) -> Iterator[RowFile]:
    """Open a file of rows of any format, to be read in batches.

    Parameters
    ----------
    path : path-like
        File; ``-`` is standard input.
    options : RowOptions, default=None
        How to read it; None means the defaults.

    Yields
    ------
    RowFile
        Iterate over it for the batches.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "rows.svm")
    >>> _ = path.write_text(f"1 1:0.5 2:3{os.linesep}2 1:0.7")
    >>> with open_rows(path) as rows:
    ...     print([label for batch in rows for label in batch.y.tolist()])
    [1.0, 2.0]
    """
    options = options or RowOptions()
    path = Path(path)
    with ExitStack() as stack:
        yield OPENERS[find_input_format(path, options.format)](path, options, stack)


def _open_libsvm(path: Path, options: RowOptions, stack: ExitStack) -> RowFile:
    """Open LIBSVM text."""
    from limes.files.libsvm import open_libsvm

    batches = stack.enter_context(open_libsvm(path, options.n_features, options.first_index))
    return RowFile(path, "libsvm", None, options.n_features, None, batches)


def _open_csv(path: Path, options: RowOptions, stack: ExitStack) -> RowFile:
    """Open CSV text."""
    from limes.files.tables import CsvOptions, as_batches, open_csv

    csv_options = CsvOptions(options.delimiter, options.header)
    names, table = stack.enter_context(open_csv(path, csv_options))
    columns = _choose_columns(names, path, options, has_names=table.has_names)
    features = set(columns.features)
    others = [name for name in names if name not in features]
    texts = others if options.keep else [name for name in others if name == columns.label]
    batches = as_batches(table.batches(columns.features, texts), path, columns, keep=options.keep)
    feature_names = columns.features if table.has_names else None
    return RowFile(path, "csv", feature_names, len(columns.features), None, batches)


def _choose_columns(
    names: Sequence[str], path: Path, options: RowOptions, *, has_names: bool = True
) -> Columns:
    """Return the columns given by the user, else those of the model, else all."""
    features = options.columns or (options.expected if has_names else None)
    return choose_columns(names, file=str(path), label=options.label, features=features)


def _open_parquet(path: Path, options: RowOptions, stack: ExitStack) -> RowFile:
    """Open a Parquet file."""
    from limes.files.tables import open_parquet, parquet_batches

    table = stack.enter_context(open_parquet(path))
    columns = _choose_columns(table.schema_arrow.names, path, options)
    batches = parquet_batches(table, path, columns, keep=options.keep)
    n_rows = table.metadata.num_rows
    return RowFile(path, "parquet", columns.features, len(columns.features), n_rows, batches)


def _open_arrow(path: Path, options: RowOptions, stack: ExitStack) -> RowFile:
    """Open an Arrow file."""
    from limes.files.tables import arrow_batches, open_arrow

    table = stack.enter_context(open_arrow(path))
    columns = _choose_columns(table.schema.names, path, options)
    batches = arrow_batches(table, path, columns, keep=options.keep)
    return RowFile(path, "arrow", columns.features, len(columns.features), None, batches)


def _open_numpy(path: Path, options: RowOptions, stack: ExitStack) -> RowFile:
    """Open a NumPy array, or an archive of arrays."""
    from limes.files.npy import open_npy, open_npz, read_batches

    kind = find_input_format(path, options.format)
    opened = open_npy(path) if kind == "npy" else open_npz(path, options.part)
    rows, labels = stack.enter_context(opened)
    if len(rows.shape) != 2:
        raise ValueError(f"{rows.name}: expected rows of features, found the shape {rows.shape}.")
    label_column = None
    if options.label is not None:
        label_column = column_index(options.label, rows.shape[1])
        if label_column is None:
            raise ValueError(
                f"{path}: expected the label in column {options.label!r}, found columns 1 to "
                f"{rows.shape[1]} (-1 is the last)."
            )
    n_features = rows.shape[1] - (label_column is not None)
    batches = read_batches(rows, labels, label_column)
    return RowFile(path, kind, None, n_features, rows.shape[0], batches)


def _open_libagf(path: Path, options: RowOptions, stack: ExitStack) -> RowFile:
    """Open libAGF's rows and labels."""
    from limes.files.libagf import open_libagf

    n_features, n_rows, batches = stack.enter_context(open_libagf(path))
    return RowFile(path, "libagf", None, n_features, n_rows, batches)


OPENERS = {
    "libsvm": _open_libsvm,
    "csv": _open_csv,
    "parquet": _open_parquet,
    "arrow": _open_arrow,
    "npy": _open_numpy,
    "npz": _open_numpy,
    "libagf": _open_libagf,
}


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
        How to read it; None means the defaults.
    max_bytes : int or None, default=None
        Largest size of the rows; None means three quarters of the computer's memory.

    Returns
    -------
    X : ndarray or csr_matrix of shape (n_rows, n_features)
        Rows, sparse if the file is and that takes less memory.
    y : ndarray of shape (n_rows,), or None
        Labels; None if the file has none.
    names : tuple of str or None
        Names of the features; None if the file has none.

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
    limit = max_bytes or _memory_bytes() * 3 // 4
    parts: list[Any] = []
    labels = LabelCollector()
    with open_rows(path, options) as rows:
        n_bytes = 0
        for batch in rows:
            n_bytes += _n_bytes(batch.X)
            if n_bytes > limit:
                raise ValueError(
                    f"{path}: expected rows of at most {limit} bytes, found more: select fewer "
                    "with limes subsample."
                )
            parts.append(batch.X)
            labels.add(batch.y)
        names = rows.names
    if not parts:
        raise ValueError(f"{path}: expected rows, found none.")
    return _join(parts, limit), labels.join(), names


def _memory_bytes() -> int:
    """Return the computer's memory in bytes, or 16 GiB if it is not known."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 1 << 34


def _n_bytes(X: Any) -> int:
    """Return the size of rows in bytes."""
    if not sparse.issparse(X):
        return int(X.nbytes)
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)


def _join(parts: list[Any], limit: int) -> Any:
    """Concatenate batches, sparse ones with a common width and as dense rows if that is smaller."""
    if not sparse.issparse(parts[0]):
        return np.concatenate(parts)
    width = max(part.shape[1] for part in parts)
    for part in parts:
        part.resize(part.shape[0], width)
    X = sparse.vstack(parts, format="csr")
    is_dense = X.nnz > DENSE_SHARE * X.shape[0] * width
    return X.toarray() if is_dense and 8 * X.shape[0] * width < limit else X


@contextmanager
def create_rows(
    path: str | os.PathLike[str],
    *,
    kind: str | None = None,
    names: Sequence[str] | None = None,
) -> Iterator[RowWriter]:
    r"""Open a file to write rows to, in batches.

    The file appears under its name when it is complete; an error leaves the previous file.

    Parameters
    ----------
    path : path-like
        File; ``-`` is standard output.
    kind : str or None, default=None
        One of ``FORMATS``; None means by the ending.
    names : sequence of str or None, default=None
        Names of the features, for formats that have them; None means ``x1``, ``x2`` ...

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
    kind = find_format(path, kind)
    if kind == "libagf":
        path = path.with_suffix(".vec")
    with (
        open_output(path) as stream,
        closing_or_discarding(_make_writer(kind, stream, path, names)) as writer,
    ):
        yield writer


def _make_writer(
    kind: str, stream: IO[bytes], path: Path, names: Sequence[str] | None
) -> RowWriter:
    """Return the writer of a format."""
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
    """Writer of rows as a table: the label first, then the features."""

    def __init__(
        self, stream: IO[bytes], kind: str, suffix: str, names: Sequence[str] | None
    ) -> None:
        from limes.files.tables import TableWriter

        self._writer = TableWriter(stream, kind, "\t" if suffix == ".tsv" else ",")
        self._names = names

    def write(self, X: Any, y: NDArray[Any] | None) -> None:
        """Append rows and their labels."""
        rows = X.toarray() if sparse.issparse(X) else X
        names = self._names or [f"x{number + 1}" for number in range(rows.shape[1])]
        features = dict(zip(names, rows.T, strict=True))
        self._writer.write(features if y is None else {LABEL: y, **features})

    def close(self) -> None:
        """Complete the file."""
        self._writer.close()

    def discard(self) -> None:
        """Abandon the file."""
        self._writer.discard()


@dataclass(frozen=True, eq=False)
class Scan:
    """Facts about a file that are known only after reading all of it."""

    n_rows: int
    n_features: int
    # Shape (n_rows,), of one type; None if the file has none.
    labels: NDArray[Any] | None


class Progress(Protocol):
    """Display of the number of rows processed."""

    def advance(self, n_rows: int) -> None:
        """Add to the number of rows processed."""


# Opens a display for a title and a number of rows, if known.
ShowProgress: TypeAlias = Callable[[str, int | None], AbstractContextManager[Progress]]


class _NoProgress(nullcontext[Progress]):
    """Display that shows nothing."""

    def __init__(self, title: str, n_rows: int | None) -> None:
        super().__init__(self)

    def advance(self, n_rows: int) -> None:
        """Do nothing."""


def scan_rows(path: Path, options: RowOptions, progress: ShowProgress = _NoProgress) -> Scan:
    """Read a file for its number of rows and features, and its labels."""
    if str(path) == "-":
        raise ValueError(
            "the rows are read twice, so they must be in a file, got '-': write them to one first."
        )
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
    """Copy all rows, or the chosen ones, to another file; return how many."""
    n_before = n_copied = 0
    with (
        open_rows(path, options) as rows,
        create_rows(output, kind=kind, names=rows.names) as writer,
        progress(f"writing {output}", scan.n_rows if scan else rows.n_rows) as bar,
    ):
        for batch in rows:
            X, y = _unify(batch, scan, n_before)
            if chosen is not None:
                first, last = np.searchsorted(chosen, [n_before, n_before + batch.n_rows])
                row_index = chosen[first:last] - n_before
                X, y = X[row_index], None if y is None else y[row_index]
            if X.shape[0]:
                writer.write(X, y)
            n_before += batch.n_rows
            n_copied += X.shape[0]
            bar.advance(batch.n_rows)
    if not n_copied:
        raise ValueError(f"{path}: expected rows, found none.")
    return n_copied


def _unify(batch: Batch, scan: Scan | None, n_before: int) -> tuple[Any, NDArray[Any] | None]:
    """Return the rows with the width, and the labels with the type, of the whole file."""
    X, y = batch.X, batch.y
    if scan is None:
        return X, None if y is None else join_labels([y])
    if sparse.issparse(X):
        X.resize(X.shape[0], scan.n_features)
    labels = scan.labels
    return X, None if labels is None else labels[n_before : n_before + batch.n_rows]
