"""NumPy's ``.npy`` and ``.npz``, read and written some rows at a time."""

import shutil
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from limes.files.batch import Batch, batch_size, join_labels
from limes.files.columns import some_names
from limes.files.npy_stream import DAMAGED, ArrayReader, ArrayWriter
from limes.files.streams import shorten
from limes.files.writer import RowWriter

COPY_BYTES = 1 << 20


@contextmanager
def open_npy(path: Path) -> Iterator[tuple[ArrayReader, None]]:
    """Open a ``.npy`` file of rows."""
    with path.open("rb") as stream:
        yield ArrayReader(stream, str(path)), None


@contextmanager
def open_npz(path: Path, part: str | None) -> Iterator[tuple[ArrayReader, ArrayReader | None]]:
    """Open the rows and, where there are any, the labels of a ``.npz`` file."""
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
    """Open an archive by the list of arrays at its end."""
    try:
        return zipfile.ZipFile(path)
    except FileNotFoundError:
        raise
    except DAMAGED as error:
        raise ValueError(
            f"{path}, byte {path.stat().st_size}: not a readable .npz archive, whose arrays are "
            f"listed at its end ({shorten(error)})."
        ) from error


def _open_member(archive: zipfile.ZipFile, path: Path, name: str) -> IO[bytes]:
    """Open one array."""
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
    wanted = "X" if part is None else f"X_{part}"
    if wanted in names:
        return wanted
    parts = sorted(name[2:] for name in names if name.startswith("X_"))
    if parts:
        raise ValueError(
            f"{path}: expected an array {wanted!r}, found parts {some_names(parts)}: choose one "
            "of them with --part."
        )
    shown = some_names(sorted(names)) or "nothing"
    raise ValueError(f"{path}: expected an array {wanted!r}, found {shown}.")


def read_batches(
    rows: ArrayReader, labels: ArrayReader | None, label_place: int | None
) -> Iterator[Batch]:
    """Go through the pieces of arrays."""
    if labels is not None and labels.shape != rows.shape[:1]:
        raise ValueError(
            f"{labels.name}: expected a label for each of {rows.shape[0]} rows, found the shape "
            f"{labels.shape}."
        )
    size = batch_size(rows.shape[1], rows.dtype.itemsize)
    pieces = labels.blocks(size) if labels is not None else repeat(None)
    for block, piece in zip(rows.blocks(size), pieces, strict=False):
        X, y = _split_label(block, label_place)
        yield Batch(_as_floats(X), piece if y is None else y)


def _split_label(
    block: NDArray[Any], place: int | None
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Take the label's column out of the rows."""
    if place is None:
        return block, None
    return np.delete(block, place, axis=1), block[:, place]


def _as_floats(X: NDArray[Any]) -> NDArray[Any]:
    """Return rows in the smaller float that holds all their values."""
    if X.dtype in (np.float32, np.float64):
        return X.astype(X.dtype.newbyteorder("="), copy=False)
    return X.astype(np.float32 if np.can_cast(X.dtype, np.float32) else np.float64)


class NpyWriter(RowWriter):
    """Rows to a ``.npy`` file, with the labels, if there are any, as the last column."""

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
        """Finish the array."""
        self._writer.close()


class NpzWriter(RowWriter):
    """Rows and labels to a ``.npz`` file, as the arrays ``X`` and ``y``."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._arrays = ArchiveWriter(stream, path)
        self._labels: list[NDArray[Any]] = []

    def write(self, X: Any, y: NDArray[Any] | None) -> None:
        """Append rows; labels wait until all are known, and with them their type."""
        self._arrays.write("X", X.toarray() if sparse.issparse(X) else X)
        if y is not None:
            self._labels.append(y)

    def close(self) -> None:
        """Put both arrays into the archive."""
        if self._labels:
            self._arrays.write("y", join_labels(self._labels))
        self._arrays.close()

    def discard(self) -> None:
        """Give the archive up."""
        self._arrays.discard()


class ArchiveWriter:
    """Arrays to a ``.npz`` file, each a block of rows at a time."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream = stream
        self._folder = path.parent
        self._drafts: dict[str, tuple[IO[bytes], ArrayWriter]] = {}

    def write(self, name: str, block: NDArray[Any]) -> None:
        """Append to an array."""
        if name not in self._drafts:
            draft = TemporaryFile(dir=self._folder)  # noqa: SIM115  (closed with the archive)
            self._drafts[name] = draft, ArrayWriter(draft)
        self._drafts[name][1].write(block)

    def close(self) -> None:
        """Put the arrays into the archive."""
        with zipfile.ZipFile(self._stream, "w") as archive:
            for name, (draft, writer) in self._drafts.items():
                writer.close()
                draft.seek(0)
                with draft, archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    shutil.copyfileobj(draft, member, COPY_BYTES)

    def discard(self) -> None:
        """Close the drafts, which are gone then."""
        for draft, _ in self._drafts.values():
            draft.close()
