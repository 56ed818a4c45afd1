"""LIBSVM text: a label and `index:value` pairs on each line."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_matrix

from limes.files.batches import MAX_FEATURES, Batch, RowWriter
from limes.files.streams import open_input

# Text of one batch, and the longest line: a million features with all digits are shorter.
CHUNK_BYTES = 1 << 22
MAX_LINE_BYTES = 1 << 26
SPACE, COLON, NEWLINE = b" :\n"
EACH_ON_A_LINE = bytes.maketrans(b" :", b"\n\n")
BLANKS = bytes.maketrans(b"\t\r\v\f", b"    ")
COMMENT = re.compile(rb"#[^\n]*")
QUERY = re.compile(rb"(?<=[ \t])qid:\d+")
# Possessive quantifiers: there is no backtracking, so text that is no number fails in linear time.
NUMBER = rb"[-+]?(?:\d++\.?+\d*+|\.\d++)(?:[eE][-+]?\d{1,5}+)?+"
LABEL = re.compile(NUMBER)
ZERO = re.compile(rb"\S+\s+(?:qid:\d+\s+)?0+:")
PAIR = re.compile(rb"(\d{1,18}):(" + NUMBER + rb")")


@contextmanager
def open_libsvm(
    path: Path, n_features: int | None, first_index: int | None = None
) -> Iterator[Iterator[Batch]]:
    """Open LIBSVM text and yield its batches.

    `first_index` is the number of the first feature; None means 0 if the first batch has an index
    0, as GRASS GIS writes it, else 1.
    """
    with open_input(path) as stream:
        yield _read_batches(stream, str(path), n_features, first_index)


def _read_batches(
    stream: IO[bytes], name: str, n_features: int | None, first_index: int | None
) -> Iterator[Batch]:
    """Yield the batches of a text."""
    first_line = 1
    for text in _read_chunks(stream, name):
        lines = parse_lines(text, name=name, first_line=first_line)
        if first_index is None and len(lines.labels):
            first_index = min(1, int(lines.features.min(initial=1)))
        lines = lines._replace(features=lines.features + 1 - (first_index or 0))
        if len(lines.features) and not lines.features.min():
            _raise_index_zero(text, lines, name=name, first_line=first_line)
        if n_features is not None and lines.n_features > n_features:
            _raise_too_wide(text, lines, name=name, first_line=first_line, n_features=n_features)
        if len(lines.labels):
            width = lines.n_features if n_features is None else n_features
            yield Batch(lines.rows(width), lines.labels)
        first_line += text.count(b"\n")


def begins_with_zero(path: Path) -> bool:
    """Return whether a row in the first batch of LIBSVM text has a feature 0."""
    with open_input(path) as stream:
        text = next(_read_chunks(stream, str(path)), b"")
    return any(ZERO.match(line.strip()) for line in text.split(b"\n"))


def _read_chunks(stream: IO[bytes], name: str) -> Iterator[bytes]:
    """Yield a text in chunks of whole lines, the last line with an end even if it has none."""
    rest = b""
    while chunk := stream.read(CHUNK_BYTES):
        head, newline, tail = chunk.rpartition(b"\n")
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


class Lines(NamedTuple):
    """Parsed lines: labels, number of values of each row, their features, and the values."""

    labels: NDArray[np.float64]
    counts: NDArray[np.int64]
    features: NDArray[np.int64]
    values: NDArray[np.float64]

    def rows(self, n_features: int) -> csr_matrix:
        """Return the rows as a sparse matrix, if features are numbered from 1."""
        starts = np.concatenate([[0], np.cumsum(self.counts)])
        shape = (len(self.labels), n_features)
        return csr_matrix((self.values, self.features - 1, starts), shape=shape)

    @property
    def n_features(self) -> int:
        """The highest feature with a value."""
        return int(self.features.max(initial=0))


def parse_lines(text: bytes, *, name: str, first_line: int) -> Lines:
    """Parse whole lines of LIBSVM text.

    Numbers are parsed by pyarrow, which is faster than scikit-learn's loader; the latter is used
    if pyarrow is not installed.
    """
    clean = _clean(text)
    if not clean:
        return Lines(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    try:
        lines = _parse(clean)
    except (ValueError, OverflowError):
        _raise_invalid_line(text, name, first_line)
    if not _is_valid(lines):
        _raise_invalid_line(text, name, first_line)
    return lines


def _clean(text: bytes) -> bytes:
    """Remove comments, query numbers, blank lines and blanks that separate nothing."""
    if b"#" in text:
        text = COMMENT.sub(b"", text)
    if b"qid:" in text:
        text = QUERY.sub(b"", text)
    if any(blank in text for blank in (b"\t", b"\r", b"\v", b"\f")):
        text = text.translate(BLANKS)
    # LIBSVM's own files end each line with a space.
    text = text.replace(b" \n", b"\n")
    if any(odd in text for odd in (b"  ", b"\n ", b" \n", b"\n\n")) or text[:1] in (b" ", b"\n"):
        stripped = (b" ".join(line.split()) for line in text.split(b"\n"))
        text = b"".join(line + b"\n" for line in stripped if line)
    return text


def _parse(text: bytes) -> Lines:
    """Put each number on its own line, and parse all of them at once."""
    try:
        from limes.files.tables import parse_numbers
    except ImportError:
        return _parse_by_scikit_learn(text)
    separators = _find_separators(text)
    numbers = parse_numbers(text.translate(EACH_ON_A_LINE))
    if len(numbers) != len(separators):
        raise ValueError("a number is missing.")
    ends = np.flatnonzero(separators == NEWLINE)
    starts = np.concatenate([[0], ends[:-1] + 1])
    is_label = np.zeros(len(numbers), dtype=bool)
    is_label[starts] = True
    pairs = numbers[~is_label]
    return Lines(numbers[is_label], (ends - starts) // 2, _whole(pairs[::2]), pairs[1::2])


def _find_separators(text: bytes) -> NDArray[np.uint8]:
    """Return the separators in order: a space or line end after a label or value, else a colon."""
    characters = np.frombuffer(text, dtype=np.uint8)
    is_separator = (characters == SPACE) | (characters == COLON) | (characters == NEWLINE)
    separators = characters[is_separator]
    before = np.concatenate([[NEWLINE], separators[:-1]])
    if not np.array_equal(before == SPACE, separators == COLON):
        raise ValueError("pairs must be index:value.")
    return separators


def _whole(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return feature indices as integers."""
    if not (np.abs(numbers) < 2**53).all():
        raise ValueError("an index is too large.")
    whole = numbers.astype(np.int64)
    if not np.array_equal(whole, numbers):
        raise ValueError("an index is not whole.")
    return whole


def _parse_by_scikit_learn(text: bytes) -> Lines:
    """Parse without pyarrow."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(BytesIO(text), dtype=np.float64, zero_based=True)
    return Lines(y, np.diff(X.indptr).astype(np.int64), X.indices.astype(np.int64), X.data)


def _is_valid(lines: Lines) -> bool:
    """Return whether numbers are finite and features rise to at most `MAX_FEATURES`."""
    if not (np.isfinite(lines.labels).all() and np.isfinite(lines.values).all()):
        return False
    if not len(lines.features):
        return True
    is_rising = np.diff(lines.features) > 0
    starts = np.cumsum(lines.counts)[:-1]
    is_rising[starts[(starts > 0) & (starts < len(lines.features))] - 1] = True
    low, high = lines.features.min(), lines.features.max()
    return bool(is_rising.all() and low >= 0 and high <= MAX_FEATURES)


def _raise_invalid_line(text: bytes, name: str, first_line: int) -> NoReturn:
    """Raise an error that names the first invalid line."""
    _check_lines(text, name, first_line)
    raise ValueError(f"{name}, from line {first_line}: not LIBSVM text.")


def _check_lines(text: bytes, name: str, first_line: int) -> None:
    """Raise an error unless each line is a label and index:value pairs."""
    for offset, line in enumerate(text.split(b"\n")):
        words = _clean(line + b"\n").split()
        expected = _unmet_expectation(words) if words else ""
        if expected:
            content = line.decode("ascii", "replace").strip()
            shown = content if len(content) <= 60 else f"{content[:57]}..."
            raise ValueError(
                f"{name}, line {first_line + offset}: expected {expected}, found {shown!r}."
            )


def _unmet_expectation(words: list[bytes]) -> str:
    """Return what was expected of an invalid line, or nothing if it is valid."""
    if not LABEL.fullmatch(words[0]):
        return "a number as the label"
    pairs = [PAIR.fullmatch(word) for word in words[1:]]
    if not all(pairs):
        return "index:value pairs after the label"
    features = [int(pair[1]) for pair in pairs if pair]
    if any(right <= left for left, right in pairwise(features)):
        return "feature indices, each above the one before"
    if features and features[-1] > MAX_FEATURES:
        return f"features up to {MAX_FEATURES}"
    numbers = [words[0], *(pair[2] for pair in pairs if pair)]
    if not np.isfinite([float(number) for number in numbers]).all():
        return "finite numbers"
    return ""


def _raise_index_zero(text: bytes, lines: Lines, *, name: str, first_line: int) -> NoReturn:
    """Raise an error that names the first line with an index 0 in a file that begins with 1."""
    place = _line_offset(text, lines, int(np.argmin(lines.features)))
    raise ValueError(
        f"{name}, line {first_line + place}: expected feature indices from 1, as before, found 0: "
        "number the features of all files from 0 or all from 1."
    )


def _line_offset(text: bytes, lines: Lines, place: int) -> int:
    """Return the number of the line, from 0, of a value."""
    row = int(np.searchsorted(np.cumsum(lines.counts), place, side="right"))
    return [offset for offset, line in enumerate(text.split(b"\n")) if _has_content(line)][row]


def _raise_too_wide(
    text: bytes, lines: Lines, *, name: str, first_line: int, n_features: int
) -> NoReturn:
    """Raise an error that names the first line with too high a feature."""
    ends = np.cumsum(lines.counts)
    row = int(np.searchsorted(ends, np.argmax(lines.features > n_features), side="right"))
    offsets = [offset for offset, line in enumerate(text.split(b"\n")) if _has_content(line)]
    raise ValueError(
        f"{name}, line {first_line + offsets[row]}: expected features up to {n_features}, "
        f"found {lines.features[: ends[row]][-1]}."
    )


def _has_content(line: bytes) -> bool:
    """Return whether a line is a row, neither blank nor a comment."""
    return bool(line.partition(b"#")[0].strip())


class LibsvmWriter(RowWriter):
    """Writer of rows to LIBSVM text, numbers with all their digits."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, X: Any, y: NDArray[Any] | None) -> None:
        """Append rows; without labels these are 0, as in LIBSVM's own test files."""
        rows = sparse.csr_matrix(X)
        rows.sort_indices()
        labels = np.zeros(rows.shape[0], dtype=np.int64) if y is None else y
        labels = labels.astype(np.int64) if labels.dtype.kind == "b" else labels
        if labels.dtype.kind not in "biuf":
            raise ValueError(
                f"labels must be numbers in LIBSVM text, got {labels[0]!r}: choose another format, "
                "such as CSV."
            )
        features, values = (rows.indices + 1).tolist(), rows.data.tolist()
        starts = rows.indptr.tolist()
        for label, start, end in zip(labels.tolist(), starts[:-1], starts[1:], strict=True):
            pairs = zip(features[start:end], values[start:end], strict=True)
            words = [repr(label), *(f"{feature}:{_short(value)}" for feature, value in pairs)]
            self._stream.write(" ".join(words).encode("ascii") + b"\n")


def _short(value: float) -> str:
    """Return a number with all its digits, a whole one without the point."""
    text = repr(value)
    return text[:-2] if text.endswith(".0") else text
