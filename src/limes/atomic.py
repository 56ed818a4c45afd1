"""Write files atomically, lock files, and refuse outputs that are inputs."""

import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

# Errors of writing only: the disk is full, a quota or the largest size of a file is reached.
OUT_OF_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# The byte that is locked on Windows, beyond the end of the file, where it blocks no reader.
LOCKED_BYTE = 1 << 30
# The name of a temporary file, and the ends of those of its lock and of what GDAL writes beside.
TEMPORARY = re.compile(r"(\..+\.[0-9a-f]{16}\.tmp)(\..+)?")
LOCK_END = ".lock"
# Folders in which this process has looked for temporary files of killed ones.
_tidied: set[Path] = set()

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name only when it is complete.

    The bytes are written to a temporary file in the same folder, synchronised to the disk, and
    renamed: ``path`` is always either the old file or the complete new one. After an error the
    temporary file is removed; one that a killed process left, by the next process that writes into
    the folder. A pipe or device, such as ``/dev/stdout``, is written directly.

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
        with Path(path).open("wb") as direct:
            yield direct
        return
    target = Path(os.path.realpath(path))
    _tidy_folder(target.parent)
    temporary = _temporary_name(target)
    try:
        with _create_locked(temporary) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            # Renamed while it is locked, except on Windows, which cannot rename open files.
            if sys.platform != "win32":
                temporary.replace(target)
        if sys.platform == "win32":
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
    with ExitStack() as stack, _naming_full_disk(paths[-1]):
        temporaries = [stack.enter_context(_reserve(target)) for target in targets]
        yield temporaries
        _sync_files(temporaries)
        for temporary, target in zip(temporaries, targets, strict=True):
            temporary.replace(target)
    for folder in {target.parent for target in targets}:
        _sync_folder(folder)


def _sync_files(paths: list[Path]) -> None:
    """Synchronise files to the disk, at the same time: each waits for the disk."""
    if len(paths) == 1:
        _sync_file(paths[0])
        return
    with ThreadPoolExecutor(len(paths) - 1) as pool:
        others = pool.map(_sync_file, paths[:-1])
        _sync_file(paths[-1])
        list(others)


def _sync_file(path: Path) -> None:
    """Synchronise a file to the disk."""
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())


@contextmanager
def _reserve(target: Path) -> Iterator[Path]:
    """Yield the name of a temporary file; a locked file beside it says that it is in use."""
    _tidy_folder(target.parent)
    temporary = _temporary_name(target)
    lock = temporary.with_name(temporary.name + LOCK_END)
    try:
        with _create_locked(lock):
            yield temporary
    finally:
        temporary.unlink(missing_ok=True)
        lock.unlink(missing_ok=True)


def _temporary_name(target: Path) -> Path:
    """Return a new name beside a file."""
    return target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")


def _create_locked(path: Path) -> BinaryIO:
    """Create and lock a file."""
    while True:
        stream = path.open("xb")
        with suppress(OSError):
            _lock(stream, is_locked=True)
        # Another process may have removed it between the two steps.
        with suppress(FileNotFoundError):
            if os.path.samestat(path.stat(), os.fstat(stream.fileno())):
                return stream
        stream.close()


def _tidy_folder(folder: Path) -> None:
    """Remove what killed processes left in a folder, once in a process."""
    if folder not in _tidied:
        _tidied.add(folder)
        with suppress(OSError):
            remove_abandoned(folder)


def remove_abandoned(folder: Path) -> None:
    """Remove the temporary files of a folder that no process has locked.

    Without locks, on some network drives, nothing is removed.
    """
    found: dict[str, list[str]] = {}
    for name in os.listdir(folder):
        if match := TEMPORARY.fullmatch(name):
            found.setdefault(match[1], []).append(name)
    for start, names in found.items():
        lock = start + LOCK_END if start + LOCK_END in names else start
        with suppress(OSError):
            if lock not in names:
                _remove(folder, names)
                continue
            with Path(folder, lock).open("rb+") as stream:
                _lock(stream, is_locked=True, waits=False)
                # Windows removes no open file.
                if sys.platform != "win32":
                    _remove(folder, names)
            _remove(folder, names)


def _remove(folder: Path, names: list[str]) -> None:
    """Remove files that may be missing."""
    for name in names:
        Path(folder, name).unlink(missing_ok=True)


def refuse_inputs_as_outputs(
    outputs: Iterable[str | os.PathLike[str]], inputs: Iterable[str | os.PathLike[str]]
) -> None:
    """Raise an error if an output is the same file as an input or as another output.

    Links and other spellings of a name are recognised. Pipes, devices and folders are not compared;
    ``-`` is standard output, if that is a file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "rows.csv")
    ...     _ = path.write_text("1,2")
    ...     refuse_inputs_as_outputs([f"{folder}/./rows.csv"], [path])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: ...rows.csv is an input as well as an output: choose another output.
    """
    read = {_identity(path) for path in inputs if os.fspath(path) != "-"} - {None}
    written: set[object] = set()
    for path in outputs:
        identity = _identity(path)
        if identity in read:
            raise ValueError(
                f"{os.fspath(path)} is an input as well as an output: choose another output."
            )
        if identity in written:
            raise ValueError(f"{os.fspath(path)} is named for two outputs: choose another.")
        if identity is not None:
            written.add(identity)


def _identity(path: str | os.PathLike[str]) -> object:
    """Return what is equal for all names of a file; None for what is no plain file."""
    try:
        status = os.fstat(1) if os.fspath(path) == "-" else os.stat(path)
    except OSError:
        return None if os.fspath(path) == "-" else os.path.realpath(path)
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


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


def _lock(stream: BinaryIO, *, is_locked: bool, waits: bool = True) -> None:
    """Lock a file, or unlock it; raise an OSError if another process has locked it."""
    if sys.platform == "win32":
        mode = msvcrt.LK_UNLCK if not is_locked else msvcrt.LK_LOCK if waits else msvcrt.LK_NBLCK
        position = stream.tell()
        stream.seek(LOCKED_BYTE)
        msvcrt.locking(stream.fileno(), mode, 1)
        stream.seek(position)
    else:
        mode = fcntl.LOCK_EX if is_locked else fcntl.LOCK_UN
        fcntl.flock(stream, mode if waits else mode | fcntl.LOCK_NB)
