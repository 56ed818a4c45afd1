"""Formats by file ending, compressed files, pipes, and text lines with their numbers."""

import bz2
import gzip
import io
import lzma
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path, PurePath
from typing import IO, Any, BinaryIO, NamedTuple

from limes.atomic import atomic_write

# Formats by file ending. LIBSVM's own files have all kinds of endings, or none.
ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".npy": "npy",
    ".npz": "npz",
    ".vec": "libagf",
    ".cls": "libagf",
}
FORMATS = ("libsvm", "csv", "parquet", "arrow", "npy", "npz", "libagf")
COMPRESSIONS = (".gz", ".bz2", ".xz")
# Formats that can be piped; the others need a seekable file.
TEXT_FORMATS = ("libsvm", "csv")
OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# Exceptions of the decompressors for damaged files.
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
# Characters of another library's message that are quoted.
MAX_REASON = 120
# No line of a model file is longer: a million numbers with all digits are shorter.
MAX_LINE_BYTES = 1 << 26


class Content(NamedTuple):
    """What a file is, by its first bytes."""

    name: str
    # With an article, for messages.
    title: str
    # What to do with it where rows or a model are expected.
    remedy: str


READ_ROWS = "read it as rows, with limes predict or --format"
# By the first bytes. The names of formats of rows are those of FORMATS.
SIGNATURES: tuple[tuple[tuple[bytes, ...], Content], ...] = (
    (
        (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
        Content("TIFF", "a TIFF raster", "use limes map, or limes accelerate MODEL SCENE.tif"),
    ),
    ((b"PAR1",), Content("parquet", "a Parquet table", READ_ROWS)),
    ((b"ARROW1",), Content("arrow", "an Arrow table", READ_ROWS)),
    ((b"\x93NUMPY",), Content("npy", "a NumPy array", READ_ROWS)),
    (
        (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"),
        Content(
            "pickle",
            "a pickle, which is not read because it could execute code",
            "load it in Python, and give it to limes.accelerate",
        ),
    ),
    (
        (b"\x78\x01", b"\x78\x9c", b"\x78\xda"),
        Content(
            "joblib",
            "compressed data, perhaps a joblib pickle, which is not read because it could execute "
            "code",
            "load it in Python, and give it to limes.accelerate",
        ),
    ),
    (
        (b"<?xml", b"\xef\xbb\xbf<?xml", b"<!DOCTYP"),
        Content(
            "XML",
            "XML without a model of OpenCV",
            "give image statistics with --imstat, and write rows as CSV",
        ),
    ),
    (
        (b"\x89HDF\r\n", b"CDF\x01", b"CDF\x02"),
        Content("HDF5", "an HDF5 or NetCDF file", "open it with xarray, and call fast.predict"),
    ),
)
SKOPS = Content("skops", "a model of skops", "use it as the model, in limes accelerate")
ZIP = Content("zip", "a zip archive", "unpack it first")
NPZ = Content("npz", "an archive of NumPy arrays", READ_ROWS)


def recognise_file(path: Path) -> Content | None:
    """Return what a file is, by its first bytes; None for text and what is not known."""
    with path.open("rb") as stream:
        head = stream.read(8)
        for starts, content in SIGNATURES:
            if head.startswith(starts):
                return content
        if not head.startswith(b"PK\x03\x04"):
            return None
        stream.seek(0)
        try:
            with zipfile.ZipFile(stream) as archive:
                names = archive.namelist()
        except (zipfile.BadZipFile, NotImplementedError, UnicodeError):
            # Damaged: an unknown version, or a name that is no UTF-8.
            return NPZ if plain_suffix(path) == ".npz" else ZIP
    if "schema.json" in names:
        return SKOPS
    return NPZ if names and all(name.endswith(".npy") for name in names) else ZIP


def find_input_format(path: Path, kind: str | None = None) -> str:
    """Return the format of a file of rows: as the user says, else by content, else by ending.

    Parameters
    ----------
    path : Path
        File of rows; ``-`` is standard input.
    kind : str, default=None
        One of ``FORMATS``, as the user says; None to find it out.

    Returns
    -------
    str
        One of ``FORMATS``.

    Examples
    --------
    >>> find_input_format(Path("rows.csv.gz"))
    'csv'
    """
    if kind is None and str(path) != "-" and path.is_file() and not compression_of(path):
        content = recognise_file(path)
        if content is not None and content.name in FORMATS:
            return content.name
        if content is not None:
            raise ValueError(f"{path}: expected rows, found {content.title}: {content.remedy}.")
    return find_format(path, kind)


def find_format(path: PurePath, kind: str | None = None) -> str:
    """Return the format of a file by its name.

    Parameters
    ----------
    path : PurePath
        File; ``-`` is a pipe.
    kind : str or None, default=None
        One of ``FORMATS``, if the user gave it; None means by the ending.

    Returns
    -------
    str
        One of ``FORMATS``; "libsvm" for an unknown ending.

    Examples
    --------
    >>> find_format(PurePath("rows.csv.gz")), find_format(PurePath("heart_scale"))
    ('csv', 'libsvm')
    """
    if kind is not None and kind not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {kind!r}.")
    kind = kind or ENDINGS.get(plain_suffix(path), "libsvm")
    compression = compression_of(path)
    if compression and kind not in TEXT_FORMATS:
        raise ValueError(
            f"{path}: only LIBSVM text and CSV are read and written compressed, not {kind!r}: "
            f"decompress the file first, or remove {compression!r} from its name."
        )
    if str(path) == "-" and kind not in TEXT_FORMATS:
        raise ValueError(f"a pipe can carry {' or '.join(TEXT_FORMATS)}, got {kind!r}: use a file.")
    return kind


def compression_of(path: PurePath) -> str:
    """Return the ending of a compressed file, or an empty string."""
    suffix = path.suffix.lower()
    return suffix if suffix in COMPRESSIONS else ""


def plain_suffix(path: PurePath) -> str:
    """Return the ending of a file's name before that of the compression."""
    return (path.with_suffix("") if compression_of(path) else path).suffix.lower()


@contextmanager
def open_input(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to read bytes from, decompressed; ``-`` is standard input."""
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    opener = OPENERS.get(compression_of(path))
    if opener is None:
        with path.open("rb") as stream:
            yield stream
        return
    with opener(path, "rb") as stream, io.BufferedReader(_Decompressed(stream, path)) as checked:
        yield checked


class _Decompressed(io.RawIOBase):
    """Decompressed bytes, with errors that name the file."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream = stream
        self._path = path
        self._n_read = 0

    def readable(self) -> bool:
        """Return that bytes can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as possible."""
        # One decompressed block at a time: the bytes before the damage are counted.
        with _naming_damage(f"{self._path}, after {self._n_read} bytes of what it holds"):
            n_more = int(self._stream.readinto1(buffer))  # type: ignore[attr-defined]
        self._n_read += n_more
        return n_more


@contextmanager
def _naming_damage(position: str) -> Iterator[None]:
    """Turn the errors of a decompressor into one that names the file and position."""
    try:
        yield
    except DAMAGED as error:
        raise ValueError(f"{position}: damaged or truncated ({shorten(error)}).") from error
    except OSError as error:
        if error.errno is None:  # not from the system, but bz2's "Invalid data stream"
            raise ValueError(f"{position}: damaged or truncated ({shorten(error)}).") from error
        raise


def shorten(error: BaseException) -> str:
    """Return the message of another library, shortened to part of a line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= MAX_REASON else f"{text[: MAX_REASON - 3]}..."


@contextmanager
def open_output(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to write bytes to, compressed; ``-`` is standard output.

    The file appears under its name when it is complete; an error leaves the previous file.
    """
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {str(path.parent)!r}.")
    with atomic_write(path) as plain:
        opener = OPENERS.get(compression_of(path))
        if opener is None:
            yield plain
            return
        with opener(plain, "wb") as stream:
            yield stream


class NumberedLines:
    """Lines of a text file, with the number of the last one for error messages."""

    def __init__(self, stream: BinaryIO, name: str, *, needs_newline: bool = False) -> None:
        self.name = name
        self.number = 0
        self._stream = stream
        # A last line without its end is that of a truncated file, if the format ends each line.
        self._needs_newline = needs_newline
        self._text = b""

    def next(self) -> bytes:
        """Return the next line with its end, or nothing at the end of the file."""
        self._text = self._stream.readline(MAX_LINE_BYTES)
        self.number += 1
        if len(self._text) == MAX_LINE_BYTES:
            raise self.error(f"a line of fewer than {MAX_LINE_BYTES} bytes")
        if self._needs_newline and self._text and not self._text.endswith(b"\n"):
            raise self.error("a line with its end (is the file truncated?)")
        return self._text

    def next_nonblank(self) -> bytes:
        """Return the next line that is not blank, or nothing at the end of the file."""
        while (text := self.next()) and not text.strip():
            pass
        return text

    def as_floats(self, words: list[bytes], expected: str = "numbers") -> list[float]:
        """Return words of the last line as finite numbers."""
        try:
            numbers = list(map(float, words))
        except ValueError:
            raise self.error(expected) from None
        if not all(map(isfinite, numbers)):
            raise self.error("finite numbers")
        return numbers

    def error(self, expected: str) -> ValueError:
        """Return the error that the last line is not what was expected."""
        found = repr(self._text[:60])[1:] if self._text else "the end of the file"
        return ValueError(f"{self.name}, line {self.number}: expected {expected}, found {found}.")
