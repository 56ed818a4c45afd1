"""Write a file whole or not at all; lock a file."""

import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

# What only writing raises: the disk is full, or the user's share of it, or a file's largest size.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
FAR_BYTE = 1 << 30


if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name only when it is complete.

    The bytes go to another file beside it, reach the disk, and are then renamed: whatever happens,
    ``path`` is either the old file or the whole new one. An error leaves nothing behind. What is no
    plain file, such as ``/dev/stdout`` or a pipe, is written to as it is.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "note.txt")
    ...     with atomic_write(path) as stream:
    ...         _ = stream.write(b"whole")
    ...     path.read_bytes(), len(os.listdir(folder))
    (b'whole', 1)
    """
    with _full_named(path):
        yield from _opened(path)


@contextmanager
def locked(stream: BinaryIO) -> Iterator[None]:
    """Keep other processes that ask for the same from a file, until the block is left.

    Whatever ends the process ends that too. A file system that knows no locks has none.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryFile() as stream, locked(stream):
    ...     stream.write(b"alone")
    5
    """
    with suppress(OSError):
        _lock(stream, is_locked=True)
    try:
        yield
        stream.flush()
    finally:
        with suppress(OSError):
            _lock(stream, is_locked=False)


def _lock(stream: BinaryIO, *, is_locked: bool) -> None:
    """Lock a file, or unlock it."""
    if sys.platform == "win32":
        # A byte far beyond the end: there readers are not in the way.
        place = stream.tell()
        stream.seek(FAR_BYTE)
        msvcrt.locking(stream.fileno(), msvcrt.LK_LOCK if is_locked else msvcrt.LK_UNLCK, 1)
        stream.seek(place)
    else:
        fcntl.flock(stream, fcntl.LOCK_EX if is_locked else fcntl.LOCK_UN)


def _opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Give the stream to write to, once; then let the file appear."""
    if _is_special(Path(path)):
        with Path(path).open("wb") as stream:
            yield stream
        return
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        with beside.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
    _sync_folder(target.parent)


@contextmanager
def _full_named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say which file there was no room for: the system does not."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL and error.filename is None:
            error.filename = os.fspath(path)
        raise


def _is_special(path: Path) -> bool:
    """Tell whether a path names something other than a plain file."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def _sync_folder(folder: Path) -> None:
    """Bring the new name to the disk, on systems that can do so: the file itself is there."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
