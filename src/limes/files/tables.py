"""Tables of named columns: CSV, Parquet and Arrow files as rows, and rows as such files."""

import csv
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from limes.files.arrow import pyarrow
from limes.files.batch import Batch, batch_size
from limes.files.columns import Columns, quote
from limes.files.streams import shorten

# Read a column of Parquet in pieces of this size: without it whole files are held.
BUFFER_BYTES = 1 << 18


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Open a Parquet file."""
    try:
        table = pyarrow.parquet.ParquetFile(path, buffer_size=BUFFER_BYTES, pre_buffer=False)
    except (pyarrow.ArrowException, OSError) as error:
        raise _named(_end_of(path), error) from None
    with table:
        yield table


@contextmanager
def open_arrow(path: Path) -> Iterator[Any]:
    """Open an Arrow file (Feather is its other name)."""
    with pyarrow.OSFile(str(path)) as stream:
        try:
            table = pyarrow.ipc.open_file(stream)
        except (pyarrow.ArrowException, OSError) as error:
            raise _named(_end_of(path), error) from None
        yield table


def parquet_batches(table: Any, path: Path, columns: Columns, *, keep: bool) -> Iterator[Batch]:
    """Go through the pieces of a Parquet file."""
    names = None if keep else [*columns.features, *filter(None, [columns.label])]
    size = batch_size(len(columns.features), itemsize=4)
    batches = table.iter_batches(batch_size=size, columns=names, use_threads=False)
    metadata = table.metadata
    ends = np.cumsum([metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)])
    return as_batches(batches, path, columns, keep=keep, ends=ends)


def arrow_batches(table: Any, path: Path, columns: Columns, *, keep: bool) -> Iterator[Batch]:
    """Go through the pieces of an Arrow file, its own ones cut where they are long."""
    size = batch_size(len(columns.features), itemsize=4)
    pieces = (
        batch.slice(start, size)
        for batch in map(table.get_batch, range(table.num_record_batches))
        for start in range(0, batch.num_rows, size)
    )
    return as_batches(pieces, path, columns, keep=keep)


def as_batches(
    tables: Iterator[Any],
    path: Path,
    columns: Columns,
    *,
    keep: bool,
    ends: NDArray[Any] | None = None,
) -> Iterator[Batch]:
    """Turn record batches into rows."""
    n_before = 0
    try:
        for table in tables:
            if table.num_rows:
                yield _as_batch(table, path, columns, n_before, keep)
            n_before += table.num_rows
    except (pyarrow.ArrowException, OSError) as error:
        # A piece may reach over several row groups.
        group = "" if ends is None else f" (row group {np.sum(ends <= n_before) + 1} or later)"
        raise _named(f"{path}, after row {n_before}{group}", error) from None


def _as_batch(table: Any, path: Path, columns: Columns, n_before: int, keep: bool) -> Batch:
    """Return the features as one array, row by row."""
    features = [
        _as_numbers(table.column(name), f"{path}, column {quote(name)}", n_before)
        for name in columns.features
    ]
    if not features:
        raise ValueError(f"{path}: expected columns with features, found none.")
    is_small = all(feature.type == pyarrow.float32() for feature in features)
    target = pyarrow.float32() if is_small else pyarrow.float64()
    features = [feature.cast(target) for feature in features]
    names = list(map(str, range(len(features))))
    X = pyarrow.RecordBatch.from_arrays(features, names=names).to_tensor().to_numpy()
    y = None
    if columns.label is not None:
        name = f"{path}, column {quote(columns.label)}"
        y = _as_labels(table.column(columns.label), name, n_before)
    return Batch(X, y, table if keep else None)


def _as_numbers(column: Any, name: str, n_before: int) -> Any:
    """Return a column as float32 where that holds all values of its type, else as float64."""
    kinds = pyarrow.types
    _refuse_nulls(column, name, n_before)
    if column.type in (pyarrow.float32(), pyarrow.float64()):
        return column
    if kinds.is_boolean(column.type) or kinds.is_float16(column.type):
        return column.cast(pyarrow.float32())
    if kinds.is_integer(column.type):
        is_short = column.type.bit_width <= 16
        return column.cast(pyarrow.float32() if is_short else pyarrow.float64(), safe=False)
    raise ValueError(
        f"{name}: expected numbers, found {column.type}: name the features with --columns, or the "
        "label with --label."
    )


def _as_labels(column: Any, name: str, n_before: int) -> NDArray[Any]:
    """Return labels as NumPy has them."""
    _refuse_nulls(column, name, n_before)
    kinds = pyarrow.types
    if kinds.is_dictionary(column.type):
        column = column.dictionary_decode()
    if kinds.is_integer(column.type) or kinds.is_floating(column.type):
        return column.to_numpy(zero_copy_only=False)
    if kinds.is_boolean(column.type):
        return column.to_numpy(zero_copy_only=False).astype(np.int64)
    if kinds.is_string(column.type) or kinds.is_large_string(column.type):
        return np.array(column.to_pylist(), dtype=str)
    raise ValueError(f"{name}: expected labels as numbers or text, found {column.type}.")


def _refuse_nulls(column: Any, name: str, n_before: int) -> None:
    """Say which row has no value."""
    if column.null_count:
        row = n_before + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise ValueError(f"{name}, row {row + 1}: expected a value, found none.")


def _end_of(path: Path) -> str:
    """Name the end of a file, where a table says what it holds."""
    return f"{path}, byte {path.stat().st_size}" if path.is_file() else str(path)


def _named(place: str, error: Exception) -> Exception:
    """Say which file is wrong, and about where; the system's own errors say so themselves."""
    if isinstance(error, OSError) and error.errno is not None:
        return error
    return ValueError(f"{place}: {shorten(error)}")


class TableWriter:
    """Columns to a CSV, Parquet or Arrow file."""

    def __init__(self, stream: IO[bytes], kind: str, delimiter: str = ",") -> None:
        self._stream = stream
        self._kind = kind
        self._delimiter = delimiter
        self._writer: Any = None
        self._schema: Any = None

    def write(self, columns: Mapping[str, Any], table: Any = None) -> None:
        """Append columns, after those of a record batch if there is one."""
        names = [*(table.schema.names if table is not None else ()), *columns]
        arrays = [*(table.columns if table is not None else ()), *columns.values()]
        batch = pyarrow.RecordBatch.from_arrays([*map(_as_arrow, arrays)], names=names)
        if self._writer is None:
            self._schema = batch.schema
            self._writer = self._open()
        self._writer.write(pyarrow.Table.from_batches([batch.cast(self._schema)]))

    def close(self) -> None:
        """Finish the file."""
        if self._writer is None:
            self._schema = pyarrow.schema([])
            self._writer = self._open()
        self._writer.close()

    def discard(self) -> None:
        """Close a file that nobody will read, before its stream goes."""
        if self._writer is not None:
            with suppress(pyarrow.ArrowException, OSError, ValueError):
                self._writer.close()

    def _open(self) -> Any:
        """Begin the file."""
        if self._kind == "parquet":
            return pyarrow.parquet.ParquetWriter(self._stream, self._schema)
        if self._kind == "arrow":
            return pyarrow.ipc.new_file(self._stream, self._schema)
        self._stream.write(self._header())
        options = pyarrow.csv.WriteOptions(include_header=False, delimiter=self._delimiter)
        return pyarrow.csv.CSVWriter(self._stream, self._schema, write_options=options)

    def _header(self) -> bytes:
        """Return the names, quoted only where they must be: pyarrow would quote all."""
        text = io.StringIO()
        csv.writer(text, delimiter=self._delimiter, lineterminator="\n").writerow(
            self._schema.names
        )
        return text.getvalue().encode()


def _as_arrow(array: Any) -> Any:
    """Return a column as pyarrow has it."""
    return array if isinstance(array, pyarrow.Array) else pyarrow.array(np.ascontiguousarray(array))
