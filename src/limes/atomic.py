"""Write files atomically, and lock files."""

import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

# Errors of writing only: the disk is full, a quota or the largest size of a file is reached.
OUT_OF_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# The byte that is locked on Windows, beyond the end of the file, where it blocks no reader.
LOCKED_BYTE = 1 << 30
# What follows the name of the target in that of its temporary file, and of what GDAL writes beside.
TEMPORARY_END = re.compile(r"[0-9a-f]{16}\.tmp(\..+)?")

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name only when it is complete.

    The bytes are written to a temporary file in the same folder, synchronised to the disk, and
    renamed: ``path`` is always either the old file or the complete new one. After an error the
    temporary file is removed. A pipe or device, such as ``/dev/stdout``, is written directly.

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
    with _naming_full_disk(path):
        yield from _open_temporary(path)


def _open_temporary(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield the stream to write to, once; then rename the file."""
    if _is_special(Path(path)):
        with Path(path).open("wb") as stream:
            yield stream
        return
    target = Path(os.path.realpath(path))
    temporary = _temporary_name(target)
    try:
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


@contextmanager
def atomic_paths(*paths: str | os.PathLike[str]) -> Iterator[list[Path]]:
    """Yield the names of temporary files that are renamed to ``paths`` when all are complete.

    As ``atomic_write``, for libraries that open files themselves; renamed in the order given.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "note.txt")
    ...     with atomic_paths(path) as [temporary]:
    ...         _ = temporary.write_text("whole")
    ...     path.read_text(), len(os.listdir(folder))
    ('whole', 1)
    """
    targets = [Path(os.path.realpath(path)) for path in paths]
    temporaries = [_temporary_name(target) for target in targets]
    try:
        yield temporaries
        for temporary in temporaries:
            with temporary.open("rb+") as stream:
                os.fsync(stream.fileno())
        for temporary, target in zip(temporaries, targets, strict=True):
            temporary.replace(target)
    finally:
        for temporary in temporaries:
            temporary.unlink(missing_ok=True)
    for folder in {target.parent for target in targets}:
        _sync_folder(folder)


def is_temporary(name: str, target: str) -> bool:
    """Return whether a file's name is that of a temporary file for a target, left by a crash."""
    start = f".{target}."
    return name.startswith(start) and bool(TEMPORARY_END.fullmatch(name[len(start) :]))


def _temporary_name(target: Path) -> Path:
    """Return a new name beside a file."""
    return target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")


@contextmanager
def _naming_full_disk(path: str | os.PathLike[str]) -> Iterator[None]:
    """Add the name of the file to errors of a full disk, which come without one."""
    try:
        yield
    except OSError as error:
        if error.errno in OUT_OF_SPACE and error.filename is None:
            error.filename = os.fspath(path)
        raise


def _is_special(path: Path) -> bool:
    """Return whether a path is something other than a plain file."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def _sync_folder(folder: Path) -> None:
    """Synchronise the new name to the disk, on systems that support it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def locked(stream: BinaryIO) -> Iterator[None]:
    """Lock a file against other processes that lock it, until the block is left.

    The lock also ends with the process. On a file system without locks this does nothing.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryFile() as stream, locked(stream):
    ...     stream.write(b"locked")
    6
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
        position = stream.tell()
        stream.seek(LOCKED_BYTE)
        msvcrt.locking(stream.fileno(), msvcrt.LK_LOCK if is_locked else msvcrt.LK_UNLCK, 1)
        stream.seek(position)
    else:
        fcntl.flock(stream, fcntl.LOCK_EX if is_locked else fcntl.LOCK_UN)
