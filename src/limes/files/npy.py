"""NumPy's `.npy` and `.npz` files, read and written a block of rows at a time."""

import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import repeat
from math import prod
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray
from scipy import sparse

from limes.files.batches import MAX_FEATURES, Batch, RowWriter, batch_size, join_labels, list_names
from limes.files.streams import shorten

COPY_BYTES = 1 << 20
HEADERS: dict[tuple[int, int], Any] = {
    (1, 0): npy_format.read_array_header_1_0,
    (2, 0): npy_format.read_array_header_2_0,
}
# Size of the header, which is rewritten when the number of rows is known.
HEADER_BYTES = 128
# Largest single read: a stream may be far shorter than its header says.
MAX_READ_BYTES = 1 << 24
# Exceptions of the zip reader for damaged archives.
DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, EOFError, UnicodeError),
    *(NotImplementedError, RuntimeError, OSError),
)
# Largest array in Fortran order: its first row ends near the end of the file, so all is read.
MAX_TRANSPOSED_BYTES = 1 << 32


class ArrayReader:
    """An array in NumPy's format, read a block of rows at a time."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self.name = name
        self._stream = stream
        self.shape, self.is_fortran, self.dtype = self._read_header()
        self._check()

    def blocks(self, n_rows: int) -> Iterator[NDArray[Any]]:
        """Yield the array, at most so many rows at a time."""
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
        """Yield an array in Fortran order, after reading all of it."""
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
        """Raise an error if bytes follow the last row."""
        if self._read_some(1, self.shape[0]):
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
        """Raise an error unless the array can be rows or labels; objects could execute code."""
        if self.dtype.kind not in "biufU" or self.dtype.itemsize == 0:
            raise ValueError(f"{self.name}: expected numbers or text, found {self.dtype}.")
        # Rows without features would take no bytes, so any number of them could follow.
        if len(self.shape) not in (1, 2) or min(self.shape) < 0 or self.shape[1:] == (0,):
            raise ValueError(f"{self.name}: expected rows, found the shape {self.shape}.")
        if prod(self.shape[1:]) * self.dtype.itemsize > 8 * MAX_FEATURES:
            raise ValueError(
                f"{self.name}: expected at most {MAX_FEATURES} features, found {self.shape[1]}."
            )

    def _read(self, n_bytes: int, row: int) -> bytes:
        """Return so many bytes, or raise an error that names the last complete row."""
        pieces = []
        while n_bytes and (piece := self._read_some(min(n_bytes, MAX_READ_BYTES), row)):
            pieces.append(piece)
            n_bytes -= len(piece)
        if n_bytes:
            raise ValueError(
                f"{self.name}, after row {row}: expected {self.shape[0]} rows, found the end of "
                "the file (is it truncated?)."
            )
        return b"".join(pieces)

    def _read_some(self, n_bytes: int, row: int) -> bytes:
        """Return at most so many bytes; wrap errors of a damaged archive."""
        try:
            return self._stream.read(n_bytes)
        except DAMAGED as error:
            raise ValueError(
                f"{self.name}, after row {row}: damaged ({shorten(error)})."
            ) from error


@contextmanager
def open_npy(path: Path) -> Iterator[tuple[ArrayReader, None]]:
    """Open a ``.npy`` file of rows."""
    with path.open("rb") as stream:
        yield ArrayReader(stream, str(path)), None


@contextmanager
def open_npz(path: Path, part: str | None) -> Iterator[tuple[ArrayReader, ArrayReader | None]]:
    """Open the rows and, if there are any, the labels of a ``.npz`` file."""
    with ExitStack() as stack:
        archive = stack.enter_context(_open_archive(path))
        key = _choose_rows(archive, path, part)
        readers = [
            ArrayReader(stack.enter_context(_open_member(archive, path, name)), f"{path}, {name}")
            for name in (key, key.replace("X", "y", 1))
            if f"{name}.npy" in archive.namelist()
        ]
        yield readers[0], readers[1] if len(readers) == 2 else None


def _open_archive(path: Path) -> zipfile.ZipFile:
    """Open an archive, whose directory is at its end."""
    try:
        return zipfile.ZipFile(path)
    except FileNotFoundError:
        raise
    except DAMAGED as error:
        raise ValueError(
            f"{path}, byte {path.stat().st_size}: not a readable .npz archive, whose directory is "
            f"at its end ({shorten(error)})."
        ) from error


def _open_member(archive: zipfile.ZipFile, path: Path, name: str) -> IO[bytes]:
    """Open one array of an archive."""
    try:
        return archive.open(f"{name}.npy")
    except DAMAGED as error:
        start = archive.getinfo(f"{name}.npy").header_offset
        raise ValueError(
            f"{path}, {name}, byte {start}: not a readable .npz archive ({shorten(error)})."
        ) from error


def _choose_rows(archive: zipfile.ZipFile, path: Path, part: str | None) -> str:
    """Return the name of the array of rows."""
    names = [name.removesuffix(".npy") for name in archive.namelist()]
    expected = "X" if part is None else f"X_{part}"
    if expected in names:
        return expected
    parts = sorted(name[2:] for name in names if name.startswith("X_"))
    if parts:
        raise ValueError(
            f"{path}: expected an array {expected!r}, found parts {list_names(parts)}: choose one "
            "of them with --part."
        )
    shown = list_names(sorted(names)) or "nothing"
    raise ValueError(f"{path}: expected an array {expected!r}, found {shown}.")


def read_batches(
    rows: ArrayReader, labels: ArrayReader | None, label_column: int | None
) -> Iterator[Batch]:
    """Yield batches of rows with their labels, from a second array or a column of the first."""
    if labels is not None and labels.shape != rows.shape[:1]:
        raise ValueError(
            f"{labels.name}: expected a label for each of {rows.shape[0]} rows, found the shape "
            f"{labels.shape}."
        )
    size = batch_size(rows.shape[1], rows.dtype.itemsize)
    label_blocks = labels.blocks(size) if labels is not None else repeat(None)
    for block, label_block in zip(rows.blocks(size), label_blocks, strict=False):
        X, y = _split_label(block, label_column)
        yield Batch(_as_floats(X), label_block if y is None else y)


def _split_label(
    block: NDArray[Any], column: int | None
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return the features and the label column of a block."""
    if column is None:
        return block, None
    return np.delete(block, column, axis=1), block[:, column]


def _as_floats(X: NDArray[Any]) -> NDArray[Any]:
    """Return rows in float32 if that holds all values of their type, else in float64."""
    if X.dtype in (np.float32, np.float64):
        return X.astype(X.dtype.newbyteorder("="), copy=False)
    return X.astype(np.float32 if np.can_cast(X.dtype, np.float32) else np.float64)


class NpyWriter(RowWriter):
    """Writer of rows to a ``.npy`` file, with the labels, if there are any, as last column."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._writer = ArrayWriter(stream)

    def write(self, X: Any, y: NDArray[Any] | None) -> None:
        """Append rows."""
        rows = X.toarray() if sparse.issparse(X) else X
        if y is not None and y.dtype.kind not in "biuf":
            raise ValueError(
                f"labels must be numbers in a .npy file, got {y[0]!r}: choose .npz instead."
            )
        self._writer.write(rows if y is None else np.column_stack([rows, y.astype(np.float64)]))

    def close(self) -> None:
        """Complete the array."""
        self._writer.close()


class NpzWriter(RowWriter):
    """Writer of rows and labels to a ``.npz`` file, as the arrays ``X`` and ``y``."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._arrays = ArchiveWriter(stream, path)
        self._labels: list[NDArray[Any]] = []

    def write(self, X: Any, y: NDArray[Any] | None) -> None:
        """Append rows; labels are stored until all are known, and with them their type."""
        self._arrays.write("X", X.toarray() if sparse.issparse(X) else X)
        if y is not None:
            self._labels.append(y)

    def close(self) -> None:
        """Write both arrays to the archive."""
        if self._labels:
            self._arrays.write("y", join_labels(self._labels))
        self._arrays.close()

    def discard(self) -> None:
        """Abandon the archive."""
        self._arrays.discard()


class ArchiveWriter:
    """Writer of arrays to a ``.npz`` file, each a block of rows at a time."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream = stream
        self._folder = path.parent
        self._drafts: dict[str, tuple[IO[bytes], ArrayWriter]] = {}

    def write(self, name: str, block: NDArray[Any]) -> None:
        """Append a block to an array."""
        if name not in self._drafts:
            draft = TemporaryFile(dir=self._folder)  # noqa: SIM115  (closed with the archive)
            self._drafts[name] = draft, ArrayWriter(draft)
        self._drafts[name][1].write(block)

    def close(self) -> None:
        """Write the arrays to the archive."""
        with zipfile.ZipFile(self._stream, "w") as archive:
            for name, (draft, writer) in self._drafts.items():
                writer.close()
                draft.seek(0)
                with draft, archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    shutil.copyfileobj(draft, member, COPY_BYTES)

    def discard(self) -> None:
        """Close the temporary files, which removes them."""
        for draft, _ in self._drafts.values():
            draft.close()


class ArrayWriter:
    """Writer of an array in NumPy's format, a block of rows at a time."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._start = stream.tell()
        self._n_rows = 0
        self._width: tuple[int, ...] = ()
        self._dtype: np.dtype[Any] | None = None

    def write(self, block: NDArray[Any]) -> None:
        """Append a block of the type and width of the first."""
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
        """Write a header of fixed size at the start."""
        assert self._dtype is not None
        text = repr(
            {
                "descr": npy_format.dtype_to_descr(self._dtype),
                "fortran_order": False,
                "shape": (self._n_rows, *self._width),
            }
        )
        preamble = npy_format.magic(1, 0) + (HEADER_BYTES - 10).to_bytes(2, "little")
        self._stream.seek(self._start)
        self._stream.write(preamble + text.ljust(HEADER_BYTES - 11).encode("ascii") + b"\n")
