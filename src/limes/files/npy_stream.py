"""NumPy's array files, read and written some rows at a time, and never unpickled."""

import zipfile
import zlib
from collections.abc import Iterator
from math import prod
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from limes.files.batch import MAX_FEATURES
from limes.files.streams import shorten

HEADERS: dict[tuple[int, int], Any] = {
    (1, 0): npy_format.read_array_header_1_0,
    (2, 0): npy_format.read_array_header_2_0,
}
# Room for the header of a file whose number of rows is known only at its end.
HEADER_BYTES = 128
# Most to ask of a stream at once: it may have far less than it promises.
MAX_READ_BYTES = 1 << 24
# What the zip reader raises on damaged archives.
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError)
# Most to hold at once of an array that lies by columns, whose first row ends near its end.
MAX_TRANSPOSED_BYTES = 1 << 32


class ArrayReader:
    """An array in NumPy's format, read a block of rows at a time."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self.name = name
        self._stream = stream
        self.shape, self.is_fortran, self.dtype = self._read_header()
        self._check()

    def blocks(self, n_rows: int) -> Iterator[NDArray[Any]]:
        """Give the array, at most so many rows at a time."""
        if self.is_fortran and len(self.shape) == 2:
            yield from self._transposed_blocks(n_rows)
            return
        for start in range(0, self.shape[0], n_rows):
            size = min(n_rows, self.shape[0] - start)
            shape = (size, *self.shape[1:])
            data = self._read(prod(shape) * self.dtype.itemsize, start)
            yield np.frombuffer(data, dtype=self.dtype).reshape(shape)
        self._check_end()

    def _transposed_blocks(self, n_rows: int) -> Iterator[NDArray[Any]]:
        """Give an array that lies there by columns, once all of it is read."""
        n_bytes = prod(self.shape) * self.dtype.itemsize
        if n_bytes > MAX_TRANSPOSED_BYTES:
            raise ValueError(
                f"{self.name}: expected rows one after the other, found {n_bytes} bytes by "
                "columns (Fortran order): save np.ascontiguousarray(X) instead."
            )
        data = np.frombuffer(self._read(n_bytes, 0), dtype=self.dtype)
        self._check_end()
        X = data.reshape(self.shape, order="F")
        for start in range(0, len(X), n_rows):
            yield np.ascontiguousarray(X[start : start + n_rows])

    def _check_end(self) -> None:
        """Refuse bytes after the last row."""
        if self._take(1, self.shape[0]):
            raise ValueError(f"{self.name}: expected the end after {self.shape[0]} rows.")

    def _read_header(self) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
        """Return shape, order and type."""
        try:
            version = npy_format.read_magic(self._stream)
            if version not in HEADERS:
                raise ValueError(f"version {version} is not known")
            shape, is_fortran, dtype = HEADERS[version](self._stream)
        except OSError:
            raise
        # NumPy's reader of headers raises whatever its parts raise on other text.
        except Exception as error:
            raise ValueError(
                f"{self.name}, byte 0: expected a NumPy array ({shorten(error)})."
            ) from None
        return shape, is_fortran, dtype

    def _check(self) -> None:
        """Refuse what are no rows or labels, above all objects, which could run code."""
        if self.dtype.kind not in "biufU" or self.dtype.itemsize == 0:
            raise ValueError(f"{self.name}: expected numbers or text, found {self.dtype}.")
        if len(self.shape) not in (1, 2) or min(self.shape) < 0:
            raise ValueError(f"{self.name}: expected rows, found the shape {self.shape}.")
        if prod(self.shape[1:]) * self.dtype.itemsize > 8 * MAX_FEATURES:
            raise ValueError(
                f"{self.name}: expected at most {MAX_FEATURES} features, found {self.shape[1]}."
            )

    def _read(self, n_bytes: int, row: int) -> bytes:
        """Return so many bytes, or say where they ended."""
        pieces = []
        while n_bytes and (piece := self._take(min(n_bytes, MAX_READ_BYTES), row)):
            pieces.append(piece)
            n_bytes -= len(piece)
        if n_bytes:
            raise ValueError(
                f"{self.name}, after row {row}: expected {self.shape[0]} rows, found the end of "
                "the file (is it cut short?)."
            )
        return b"".join(pieces)

    def _take(self, n_bytes: int, row: int) -> bytes:
        """Read at most so many bytes, or say where the file is damaged."""
        try:
            return self._stream.read(n_bytes)
        except DAMAGED as error:
            raise ValueError(
                f"{self.name}, after row {row}: damaged ({shorten(error)})."
            ) from error


class ArrayWriter:
    """An array in NumPy's format, written a block of rows at a time."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._start = stream.tell()
        self._n_rows = 0
        self._width: tuple[int, ...] = ()
        self._dtype: np.dtype[Any] | None = None

    def write(self, block: NDArray[Any]) -> None:
        """Append a block; its type and width must be those of the first."""
        if self._dtype is None:
            self._dtype, self._width = block.dtype, block.shape[1:]
            self._write_header()
        if block.shape[1:] != self._width:
            raise ValueError(f"rows must have the shape {self._width!r}, got {block.shape[1:]!r}.")
        self._stream.write(np.ascontiguousarray(block, dtype=self._dtype).tobytes())
        self._n_rows += len(block)

    def close(self) -> None:
        """Write the number of rows into the header."""
        if self._dtype is None:
            self._dtype = np.dtype(np.float64)
        end = self._stream.tell()
        self._write_header()
        self._stream.seek(max(end, self._stream.tell()))

    def _write_header(self) -> None:
        """Write a header of fixed size at the beginning."""
        assert self._dtype is not None
        text = repr(
            {
                "descr": npy_format.dtype_to_descr(self._dtype),
                "fortran_order": False,
                "shape": (self._n_rows, *self._width),
            }
        )
        front = npy_format.magic(1, 0) + (HEADER_BYTES - 10).to_bytes(2, "little")
        self._stream.seek(self._start)
        self._stream.write(front + text.ljust(HEADER_BYTES - 11).encode("ascii") + b"\n")
