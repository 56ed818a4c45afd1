"""CSV, read some lines at a time by pyarrow."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from limes.files.arrow import pyarrow
from limes.files.batch import MAX_FEATURES
from limes.files.columns import quote
from limes.files.formats import plain_suffix
from limes.files.streams import open_input

# Text of one piece, of which pyarrow reads many ahead; wide tables have longer ones, so that some
# lines fit in. No line may be longer than a piece.
BLOCK_BYTES = 1 << 20
MIN_BLOCK_LINES = 32
MAX_BLOCK_BYTES = 1 << 26
# The first two lines are in the first bytes.
FRONT_BYTES = 1 << 24
ROW = re.compile(r"(?:In CSV column #(?P<column>\d+): )?(?:CSV parse error: )?Row #(?P<row>\d+): ")


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
