"""CSV, Parquet, Arrow (the one import of pyarrow)."""

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

# Read a column of Parquet in pieces of this size: without it whole files are held.
BUFFER_BYTES = 1 << 18
# Text of one piece, of which pyarrow reads many ahead; wide tables have longer ones, so that some
# lines fit in. No line may be longer than a piece.
BLOCK_BYTES = 1 << 20
MIN_BLOCK_LINES = 32
MAX_BLOCK_BYTES = 1 << 26
# The first two lines are in the first bytes.
FRONT_BYTES = 1 << 24
ROW = re.compile(r"(?:In CSV column #(?P<column>\d+): )?(?:CSV parse error: )?Row #(?P<row>\d+): ")
# A byte that no text of numbers holds: every line is one field.
NO_DELIMITER = "\x01"


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


@dataclass(frozen=True)
class CsvOptions:
    """How a CSV file is written."""

    # Between fields; None is a tab in ``.tsv`` files, else a comma.
    delimiter: str | None = None
    # Whether the first line has names. By "auto" it has where a column's first field is no number
    # and its second is.
    header: str = "auto"


@contextmanager
def open_csv(path: Path, options: CsvOptions) -> Iterator[tuple[list[str], "CsvTable"]]:
    """Open CSV text and find its columns."""
    delimiter = options.delimiter or ("\t" if plain_suffix(path) == ".tsv" else ",")
    with open_input(path) as stream:
        front = stream.read(FRONT_BYTES)
        first, second = _first_lines(front, path, delimiter)
        has_names = options.header == "yes" or (
            options.header == "auto" and _is_header(first, second)
        )
        names = first if has_names else [f"x{place + 1}" for place in range(len(first))]
        table = CsvTable(_Joined(front, stream), str(path), delimiter, has_names, names)
        wanted = MIN_BLOCK_LINES * len(front.partition(b"\n")[0])
        table.block_bytes = max(BLOCK_BYTES, min(wanted, MAX_BLOCK_BYTES))
        yield names, table


def _first_lines(front: bytes, path: Path, delimiter: str) -> tuple[list[str], list[str]]:
    """Return the fields of the first two lines, none where there is no second."""
    text = front.decode("utf-8-sig", "replace")
    lines = csv.reader(io.StringIO(text), delimiter=delimiter)
    try:
        first = next(lines, [])
    except csv.Error as error:
        raise ValueError(f"{path}, line 1: expected CSV ({error}).") from None
    if not first:
        raise ValueError(f"{path}, line 1: expected CSV, found an empty file or line.")
    if len(first) > MAX_FEATURES:
        raise ValueError(f"{path}, line 1: expected at most {MAX_FEATURES} fields.")
    # What is wrong with the second line is told when it is read.
    with suppress(csv.Error):
        return first, next(lines, [])
    return first, []


def _is_header(first: Sequence[str], second: Sequence[str]) -> bool:
    """Tell whether the first line has names: no number where the second has one."""
    if not second:
        return not any(map(_is_number, first))
    return any(
        not _is_number(name) and _is_number(field)
        for name, field in zip(first, second, strict=False)
    )


def _is_number(field: str) -> bool:
    """Tell whether a field is a number."""
    try:
        float(field)
    except ValueError:
        return False
    return True


class CsvTable:
    """The text after its columns are known."""

    def __init__(
        self, stream: "_Joined", name: str, delimiter: str, has_names: bool, names: list[str]
    ) -> None:
        self._stream = stream
        self._name = name
        self._delimiter = delimiter
        self.has_names = has_names
        self._names = names
        self.block_bytes = BLOCK_BYTES

    def batches(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Any]:
        """Give record batches with the columns asked for, some as numbers, some as text."""
        options = pyarrow.csv
        try:
            yield from options.open_csv(
                pyarrow.PythonFile(self._stream, mode="r"),
                read_options=options.ReadOptions(
                    use_threads=False,
                    block_size=self.block_bytes,
                    column_names=self._names,
                    skip_rows=int(self.has_names),
                ),
                parse_options=options.ParseOptions(delimiter=self._delimiter),
                convert_options=options.ConvertOptions(
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
        """Say which line is wrong."""
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
    """Put pyarrow's reason as ours: what was expected, what was found."""
    if match := re.match(r"Expected (\d+) columns, got (\d+)", reason):
        return f"{match[1]} fields, as in the first line, found {match[2]}."
    if match := re.match(r"double: invalid value '(.*)'", reason):
        return f"a number, found {match[1][:60]!r}."
    if "invalid UTF8" in reason:
        return "text in UTF-8, found other bytes."
    return reason[:200]


class _Joined:
    """Bytes that were read already, then the rest of their stream."""

    def __init__(self, front: bytes, rest: IO[bytes]) -> None:
        self._front = front
        self._rest = rest
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        """Return some bytes."""
        if not self._front:
            return self._rest.read(size)
        piece, self._front = self._front[:size], self._front[size:]
        return piece

    def readable(self) -> bool:
        """Say that there are bytes to read."""
        return True

    def close(self) -> None:
        """Leave the stream to its owner."""
        self.closed = True


def parse_numbers(text: bytes) -> NDArray[np.float64]:
    r"""Return the numbers of a text that has one on each line.

    Examples
    --------
    >>> parse_numbers(b"1\n-2.5e3\n")
    array([ 1.0e+00, -2.5e+03])
    """
    csv = pyarrow.csv
    table = csv.read_csv(
        pyarrow.BufferReader(text),
        read_options=csv.ReadOptions(use_threads=False, column_names=["number"]),
        parse_options=csv.ParseOptions(
            delimiter=NO_DELIMITER, quote_char=False, ignore_empty_lines=False
        ),
        convert_options=csv.ConvertOptions(
            column_types={"number": pyarrow.float64()}, null_values=[], check_utf8=False
        ),
    )
    return table.column(0).to_numpy()
