"""Formats by ending, compression, pipes, numbered text lines."""

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import IO, Any

from limes.atomic import atomic_write

# What each format's files end with. LIBSVM's own have all kinds of endings, or none.
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
# Text that a pipe can carry; the others need a file that can be searched.
TEXT_FORMATS = ("libsvm", "csv")
OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# What the decompressors raise on damaged files.
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
# Characters of what another library says that go into a message.
MAX_REASON = 120


def find_format(path: PurePath, kind: str | None = None) -> str:
    """Return the format of a file.

    Parameters
    ----------
    path : PurePath
        File; ``-`` stands for a pipe.
    kind : str, default=None
        The format's name where the user gives it; None goes by the ending.

    Returns
    -------
    str
        One of ``FORMATS``; LIBSVM text where the ending says nothing.

    Examples
    --------
    >>> find_format(PurePath("rows.csv.gz")), find_format(PurePath("heart_scale"))
    ('csv', 'libsvm')
    """
    if kind is not None and kind not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {kind!r}.")
    found = kind or ENDINGS.get(plain_suffix(path), "libsvm")
    compression = compression_of(path)
    if compression and found not in TEXT_FORMATS:
        raise ValueError(
            f"{path}: only LIBSVM text and CSV are read and written compressed, not {found!r}: "
            f"decompress the file first, or leave {compression!r} out of its name."
        )
    if str(path) == "-" and found not in TEXT_FORMATS:
        raise ValueError(f"a pipe can carry {' or '.join(TEXT_FORMATS)}, not {found!r}.")
    return found


def compression_of(path: PurePath) -> str:
    """Return the ending of a compressed file, or nothing."""
    suffix = path.suffix.lower()
    return suffix if suffix in COMPRESSIONS else ""


def plain_suffix(path: PurePath) -> str:
    """Return the ending of a file's name, without that of a compression."""
    return (path.with_suffix("") if compression_of(path) else path).suffix.lower()


@contextmanager
def open_input(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to read bytes from, decompressed on the way; ``-`` is standard input."""
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
    """What a decompressor gives; where it gives up, the file is at fault and is named."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream = stream
        self._path = path
        self._n_read = 0

    def readable(self) -> bool:
        """Tell that one can read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, as far as it goes."""
        # As much as there is: what comes before the damage is counted.
        with _damage_named(f"{self._path}, after {self._n_read} bytes of what it holds"):
            n_more = int(self._stream.readinto1(buffer))  # type: ignore[attr-defined]
        self._n_read += n_more
        return n_more


def shorten(error: BaseException) -> str:
    """Return what another library says, in part of a line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= MAX_REASON else f"{text[: MAX_REASON - 3]}..."


@contextmanager
def _damage_named(place: str) -> Iterator[None]:
    """Say which file is damaged, and about where, when a decompressor gives up."""
    try:
        yield
    except DAMAGED as error:
        raise ValueError(f"{place}: damaged or cut short ({shorten(error)}).") from error
    except OSError as error:
        if error.errno is None:  # not the system's, but bz2's "Invalid data stream"
            raise ValueError(f"{place}: damaged or cut short ({shorten(error)}).") from error
        raise


@contextmanager
def open_output(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to write bytes to, compressed on the way; ``-`` is standard output.

    The file appears under its name when all is written; an error leaves what was there before.
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
