"""LIBSVM text, read and written some lines at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from limes.files.batch import Batch
from limes.files.libsvm_lines import Lines, parse_lines
from limes.files.streams import open_input
from limes.files.writer import RowWriter

# Text of one piece, and the longest line: a million features with all digits are shorter.
CHUNK_BYTES = 1 << 22
MAX_LINE_BYTES = 1 << 26


@contextmanager
def open_libsvm(path: Path, n_features: int | None) -> Iterator[Iterator[Batch]]:
    """Open LIBSVM text and give its pieces."""
    with open_input(path) as stream:
        yield _read_batches(stream, str(path), n_features)


def _read_batches(stream: IO[bytes], name: str, n_features: int | None) -> Iterator[Batch]:
    """Go through the pieces of a text."""
    first_line = 1
    for text in _read_chunks(stream, name):
        lines = parse_lines(text, name=name, first_line=first_line)
        if n_features is not None and lines.n_features > n_features:
            _refuse_width(text, lines, name=name, first_line=first_line, n_features=n_features)
        if len(lines.labels):
            width = lines.n_features if n_features is None else n_features
            yield Batch(lines.rows(width), lines.labels)
        first_line += text.count(b"\n")


def _read_chunks(stream: IO[bytes], name: str) -> Iterator[bytes]:
    """Cut a text into pieces of whole lines; the last line is given an end if it has none."""
    rest = b""
    while piece := stream.read(CHUNK_BYTES):
        head, newline, tail = piece.rpartition(b"\n")
        if newline:
            yield rest + head + newline
            rest = tail
        else:
            rest += tail
        if len(rest) > MAX_LINE_BYTES:
            raise ValueError(
                f"{name}: expected lines of at most {MAX_LINE_BYTES} bytes, found a longer one: "
                "is it LIBSVM text?"
            )
    if rest:
        yield rest + b"\n"


def _refuse_width(
    text: bytes, lines: Lines, *, name: str, first_line: int, n_features: int
) -> None:
    """Say which line names a feature that there should not be."""
    ends = np.cumsum(lines.counts)
    row = int(np.searchsorted(ends, np.argmax(lines.features > n_features), side="right"))
    contents = [place for place, line in enumerate(text.split(b"\n")) if _has_content(line)]
    raise ValueError(
        f"{name}, line {first_line + contents[row]}: expected features up to {n_features}, "
        f"found {lines.features[: ends[row]][-1]}."
    )


def _has_content(line: bytes) -> bool:
    """Tell whether a line is a row, not blank or a comment."""
    return bool(line.partition(b"#")[0].strip())


class LibsvmWriter(RowWriter):
    """Rows to LIBSVM text, every bit of every number kept."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, X: Any, y: NDArray[Any] | None) -> None:
        """Append rows; the label of a row without one is 0, as in LIBSVM's own test files."""
        rows = sparse.csr_matrix(X)
        rows.sort_indices()
        labels = np.zeros(rows.shape[0], dtype=np.int64) if y is None else y
        labels = labels.astype(np.int64) if labels.dtype.kind == "b" else labels
        if labels.dtype.kind not in "biuf":
            raise ValueError(
                f"LIBSVM text has numbers as labels, got {labels[0]!r}: choose another format, "
                "such as CSV."
            )
        features, values = (rows.indices + 1).tolist(), rows.data.tolist()
        starts = rows.indptr.tolist()
        for label, start, end in zip(labels.tolist(), starts[:-1], starts[1:], strict=True):
            pairs = zip(features[start:end], values[start:end], strict=True)
            words = [repr(label), *(f"{place}:{_short(value)}" for place, value in pairs)]
            self._stream.write(" ".join(words).encode("ascii") + b"\n")


def _short(value: float) -> str:
    """Write a number with every bit, without the point of a whole one."""
    text = repr(value)
    return text[:-2] if text.endswith(".0") else text
