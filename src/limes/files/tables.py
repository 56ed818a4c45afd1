"""CSV, Parquet and Arrow files; the only module that imports pyarrow."""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from limes.files.batches import MAX_FEATURES, Batch, Columns, batch_size, quote
from limes.files.streams import open_input, plain_suffix, shorten

try:
    import pyarrow
    import pyarrow.csv
    import pyarrow.ipc
    import pyarrow.parquet
except ImportError as error:
    raise ImportError(
        "CSV, Parquet and Arrow files need pyarrow: install it with pip install 'limes[files]'."
    ) from error

# Read a column of Parquet in chunks of this size: otherwise whole files are buffered.
BUFFER_BYTES = 1 << 18
# Text of one block, of which pyarrow prefetches several; those of wide tables are longer, so that
# they hold 32 lines. No line may be longer than a block.
BLOCK_BYTES = 1 << 20
MIN_BLOCK_LINES = 32
MAX_BLOCK_BYTES = 1 << 26
# Bytes that are read for the first two lines.
PREAMBLE_BYTES = 1 << 24
ROW = re.compile(r"(?:In CSV column #(?P<column>\d+): )?(?:CSV parse error: )?Row #(?P<row>\d+): ")
# A byte that does not occur in numbers: each line is one field.
NO_DELIMITER = "\x01"


@dataclass(frozen=True)
class CsvOptions:
    """Dialect of a CSV file."""

    # None means a tab in ``.tsv`` files, else a comma.
    delimiter: str | None = None
    # Whether the first line has names: "yes", "no" or "auto". By "auto" it has if some column has a
    # number in the second line and none in the first.
    header: str = "auto"


@contextmanager
def open_csv(path: Path, options: CsvOptions) -> Iterator[tuple[list[str], "CsvTable"]]:
    """Open CSV text and yield its column names and its table."""
    delimiter = options.delimiter or ("\t" if plain_suffix(path) == ".tsv" else ",")
    with open_input(path) as stream:
        preamble = stream.read(PREAMBLE_BYTES)
        first, second = _first_lines(preamble, path, delimiter)
        has_names = options.header == "yes" or (
            options.header == "auto" and _is_header(first, second)
        )
        names = first if has_names else [f"x{number + 1}" for number in range(len(first))]
        table = CsvTable(_Rejoined(preamble, stream), str(path), delimiter, has_names, names)
        n_bytes = MIN_BLOCK_LINES * len(preamble.partition(b"\n")[0])
        table.block_bytes = max(BLOCK_BYTES, min(n_bytes, MAX_BLOCK_BYTES))
        yield names, table


def _first_lines(preamble: bytes, path: Path, delimiter: str) -> tuple[list[str], list[str]]:
    """Return the fields of the first two lines, none if there is no second line."""
    text = preamble.decode("utf-8-sig", "replace")
    lines = csv.reader(io.StringIO(text), delimiter=delimiter)
    try:
        first = next(lines, [])
    except csv.Error as error:
        raise ValueError(f"{path}, line 1: expected CSV ({error}).") from None
    if not first:
        raise ValueError(f"{path}, line 1: expected CSV, found an empty file or line.")
    if len(first) > MAX_FEATURES:
        raise ValueError(f"{path}, line 1: expected at most {MAX_FEATURES} fields.")
    # An error in the second line is raised when it is read.
    with suppress(csv.Error):
        return first, next(lines, [])
    return first, []


def _is_header(first: Sequence[str], second: Sequence[str]) -> bool:
    """Return whether the first line has names: text in a column where the second has a number."""
    if not second:
        return not any(map(_is_number, first))
    return any(
        not _is_number(name) and _is_number(field)
        for name, field in zip(first, second, strict=False)
    )


def _is_number(field: str) -> bool:
    """Return whether a field is a number."""
    try:
        float(field)
    except ValueError:
        return False
    return True


class CsvTable:
    """CSV text whose columns are known."""

    def __init__(
        self, stream: "_Rejoined", name: str, delimiter: str, has_names: bool, names: list[str]
    ) -> None:
        self._stream = stream
        self._name = name
        self._delimiter = delimiter
        self.has_names = has_names
        self._names = names
        self.block_bytes = BLOCK_BYTES

    def batches(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Any]:
        """Yield record batches of the given columns, as numbers and as text."""
        try:
            yield from pyarrow.csv.open_csv(
                pyarrow.PythonFile(self._stream, mode="r"),
                read_options=pyarrow.csv.ReadOptions(
                    use_threads=False,
                    block_size=self.block_bytes,
                    column_names=self._names,
                    skip_rows=int(self.has_names),
                ),
                parse_options=pyarrow.csv.ParseOptions(delimiter=self._delimiter),
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types={
                        **dict.fromkeys(numbers, pyarrow.float64()),
                        **dict.fromkeys(texts, pyarrow.string()),
                    },
                    include_columns=[*numbers, *texts],
                    null_values=[],
                ),
            )
        except pyarrow.ArrowInvalid as error:
            raise ValueError(self._explain(str(error))) from None

    def _explain(self, message: str) -> str:
        """Return the message of an error, with file, line and column."""
        message = message.splitlines()[0]
        match = ROW.match(message)
        if match is None:
            if "straddling" in message:
                message = f"expected lines of at most {self.block_bytes} bytes, found a longer one."
            return f"{self._name}: {message}"
        column = match["column"] and f", column {quote(self._names[int(match['column'])])}"
        reason = message[match.end() :].removeprefix("CSV conversion error to ")
        return f"{self._name}, line {match['row']}{column or ''}: expected {_reword(reason)}"


def _reword(reason: str) -> str:
    """Return pyarrow's reason in the form of our messages: what was expected, what was found."""
    if match := re.match(r"Expected (\d+) columns, got (\d+)", reason):
        return f"{match[1]} fields, as in the first line, found {match[2]}."
    if match := re.match(r"double: invalid value '(.*)'", reason):
        return f"a number, found {match[1][:60]!r}."
    if "invalid UTF8" in reason:
        return "text in UTF-8, found other bytes."
    return reason[:200]


class _Rejoined:
    """Bytes that were read already, followed by the rest of their stream."""

    def __init__(self, preamble: bytes, rest: IO[bytes]) -> None:
        self._preamble = preamble
        self._rest = rest
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        """Return at most so many bytes."""
        if not self._preamble:
            return self._rest.read(size)
        piece, self._preamble = self._preamble[:size], self._preamble[size:]
        return piece

    def readable(self) -> bool:
        """Return that bytes can be read."""
        return True

    def close(self) -> None:
        """Leave the stream to its owner."""
        self.closed = True


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Open a Parquet file."""
    try:
        table = pyarrow.parquet.ParquetFile(path, buffer_size=BUFFER_BYTES, pre_buffer=False)
    except (pyarrow.ArrowException, OSError) as error:
        raise _located(_end_of(path), error) from None
    with table:
        yield table


def parquet_batches(table: Any, path: Path, columns: Columns, *, keep: bool) -> Iterator[Batch]:
    """Yield the batches of a Parquet file."""
    names = None if keep else [*columns.features, *filter(None, [columns.label])]
    size = batch_size(len(columns.features), itemsize=4)
    batches = table.iter_batches(batch_size=size, columns=names, use_threads=False)
    metadata = table.metadata
    ends = np.cumsum([metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)])
    return as_batches(batches, path, columns, keep=keep, ends=ends)


@contextmanager
def open_arrow(path: Path) -> Iterator[Any]:
    """Open an Arrow file, also called Feather."""
    with pyarrow.OSFile(str(path)) as stream:
        try:
            table = pyarrow.ipc.open_file(stream)
        except (pyarrow.ArrowException, OSError) as error:
            raise _located(_end_of(path), error) from None
        yield table


def arrow_batches(table: Any, path: Path, columns: Columns, *, keep: bool) -> Iterator[Batch]:
    """Yield the batches of an Arrow file, long ones divided."""
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
    """Convert record batches to batches of rows."""
    n_before = 0
    try:
        for table in tables:
            if table.num_rows:
                yield _as_batch(table, path, columns, n_before, keep)
            n_before += table.num_rows
    except (pyarrow.ArrowException, OSError) as error:
        # A batch may extend over several row groups.
        group = "" if ends is None else f" (row group {np.sum(ends <= n_before) + 1} or later)"
        raise _located(f"{path}, after row {n_before}{group}", error) from None


def _as_batch(table: Any, path: Path, columns: Columns, n_before: int, keep: bool) -> Batch:
    """Return the features as one array in C order, with the labels."""
    # Not by name one after the other: pyarrow compares all names each time.
    arrays = dict(zip(table.schema.names, table.columns, strict=True))
    features = [_as_numbers(arrays[name], path, name, n_before) for name in columns.features]
    if not features:
        raise ValueError(f"{path}: expected columns with features, found none.")
    is_float32 = all(feature.type == pyarrow.float32() for feature in features)
    common_type = pyarrow.float32() if is_float32 else pyarrow.float64()
    features = [
        feature if feature.type == common_type else feature.cast(common_type)
        for feature in features
    ]
    names = list(map(str, range(len(features))))
    X = pyarrow.RecordBatch.from_arrays(features, names=names).to_tensor().to_numpy()
    y = None
    if columns.label is not None:
        y = _as_labels(arrays[columns.label], path, columns.label, n_before)
    return Batch(X, y, table if keep else None)


def _as_numbers(column: Any, path: Path, name: str, n_before: int) -> Any:
    """Return a column as float32 if that holds all values of its type, else as float64."""
    kinds = pyarrow.types
    _check_no_nulls(column, path, name, n_before)
    if column.type in (pyarrow.float32(), pyarrow.float64()):
        return column
    if kinds.is_boolean(column.type) or kinds.is_float16(column.type):
        return column.cast(pyarrow.float32())
    if kinds.is_integer(column.type):
        is_short = column.type.bit_width <= 16
        return column.cast(pyarrow.float32() if is_short else pyarrow.float64(), safe=False)
    raise ValueError(
        f"{path}, column {quote(name)}: expected numbers, found {column.type}: name the features "
        "with --columns, or the label with --label."
    )


def _as_labels(column: Any, path: Path, name: str, n_before: int) -> NDArray[Any]:
    """Return a column of labels as a NumPy array."""
    _check_no_nulls(column, path, name, n_before)
    kinds = pyarrow.types
    if kinds.is_dictionary(column.type):
        column = column.dictionary_decode()
    if kinds.is_integer(column.type) or kinds.is_floating(column.type):
        return column.to_numpy(zero_copy_only=False)
    if kinds.is_boolean(column.type):
        return column.to_numpy(zero_copy_only=False).astype(np.int64)
    if kinds.is_string(column.type) or kinds.is_large_string(column.type):
        return np.array(column.to_pylist(), dtype=str)
    raise ValueError(
        f"{path}, column {quote(name)}: expected labels as numbers or text, found {column.type}."
    )


def _check_no_nulls(column: Any, path: Path, name: str, n_before: int) -> None:
    """Raise an error that names the first row without a value."""
    if column.null_count:
        row = n_before + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise ValueError(
            f"{path}, column {quote(name)}, row {row + 1}: expected a value, found none."
        )


def _end_of(path: Path) -> str:
    """Return the position of the end of a file, where tables have their metadata."""
    return f"{path}, byte {path.stat().st_size}" if path.is_file() else str(path)


def _located(position: str, error: Exception) -> Exception:
    """Return an error that names file and position; those of the system do already."""
    if isinstance(error, OSError) and error.errno is not None:
        return error
    return ValueError(f"{position}: {shorten(error)}")


class TableWriter:
    """Writer of columns to a CSV, Parquet or Arrow file."""

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
        """Complete the file."""
        if self._writer is None:
            self._schema = pyarrow.schema([])
            self._writer = self._open()
        self._writer.close()

    def discard(self) -> None:
        """Close an abandoned file, before its stream is closed."""
        if self._writer is not None:
            with suppress(pyarrow.ArrowException, OSError, ValueError):
                self._writer.close()

    def _open(self) -> Any:
        """Start the file."""
        if self._kind == "parquet":
            return pyarrow.parquet.ParquetWriter(self._stream, self._schema)
        if self._kind == "arrow":
            return pyarrow.ipc.new_file(self._stream, self._schema)
        self._stream.write(self._header())
        options = pyarrow.csv.WriteOptions(include_header=False, delimiter=self._delimiter)
        return pyarrow.csv.CSVWriter(self._stream, self._schema, write_options=options)

    def _header(self) -> bytes:
        """Return the names, quoted only if necessary: pyarrow would quote all."""
        text = io.StringIO()
        csv.writer(text, delimiter=self._delimiter, lineterminator="\n").writerow(
            self._schema.names
        )
        return text.getvalue().encode()


def _as_arrow(array: Any) -> Any:
    """Return a column as an array of pyarrow."""
    return array if isinstance(array, pyarrow.Array) else pyarrow.array(np.ascontiguousarray(array))


def parse_numbers(text: bytes) -> NDArray[np.float64]:
    r"""Return the numbers of a text with one number per line.

    Examples
    --------
    >>> parse_numbers(b"1\n-2.5e3\n")
    array([ 1.0e+00, -2.5e+03])
    """
    table = pyarrow.csv.read_csv(
        pyarrow.BufferReader(text),
        read_options=pyarrow.csv.ReadOptions(use_threads=False, column_names=["number"]),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=NO_DELIMITER, quote_char=False, ignore_empty_lines=False
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types={"number": pyarrow.float64()}, null_values=[], check_utf8=False
        ),
    )
    return table.column(0).to_numpy()
