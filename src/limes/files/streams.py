"""Bytes in and out: compressed or plain, a file or a pipe."""

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from limes.atomic import replacing
from limes.files.formats import compression_of

OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# What the decompressors raise on damaged files.
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
# Characters of what another library says that go into a message.
MAX_REASON = 120


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
    with replacing(path) as plain:
        opener = OPENERS.get(compression_of(path))
        if opener is None:
            yield plain
            return
        with opener(plain, "wb") as stream:
            yield stream
