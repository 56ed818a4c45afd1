"""Many files, one output each, that a later run completes: a manifest says what is complete."""

import hashlib
import json
import os
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import limes
from limes.atomic import atomic_write, refuse_inputs_as_outputs, remove_abandoned
from limes.cli.main import USER_ERRORS, explain
from limes.cli.terminal import Progress

try:
    import fcntl
except ImportError:  # Windows: runs at the same time do not see each other
    fcntl = None  # type: ignore[assignment]

MANIFEST = ".limes-manifest"
# Bytes beyond the end of the manifest that are locked: by each run, by whoever appends, and by
# whoever makes an output (this one and a 32-bit number).
RUN_BYTE = 1 << 40
APPEND_BYTE = RUN_BYTE + 1
OUTPUT_BYTE = 1 << 41
HASHED_BYTES = 1 << 20


@dataclass(frozen=True)
class FileTask:
    """One output, or several that belong together, made from one or several inputs."""

    inputs: tuple[Path, ...]
    # The first is its name in the manifest.
    outputs: tuple[Path, ...]
    run: Callable[[], Any]


@dataclass
class Outcome:
    """What became of the tasks."""

    n_done: int = 0
    n_complete: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)

    def text(self, folder: Path) -> str:
        """Return a line for the user."""
        parts = [f"{self.n_done} files written to {folder}"]
        if self.n_complete:
            parts.append(f"{self.n_complete} were complete already")
        if self.failures:
            parts.append(f"{len(self.failures)} failed")
        return ", ".join(parts)


def run_tasks(
    tasks: Sequence[FileTask],
    folder: Path,
    facts: dict[str, Any],
    *,
    inputs: Sequence[Path] = (),
    n_jobs: int = 1,
    overwrite: bool = False,
) -> Outcome:
    """Run the tasks whose outputs are not complete, several at once; go on after an error.

    `facts` are all that an output depends on besides its inputs: the hash of the model and the
    options; `inputs` the files that they come from. An output is complete if the manifest has it
    with the same facts and inputs.
    """
    name, count = Counter(task.outputs[0].name for task in tasks).most_common(1)[0]
    if count > 1:
        raise ValueError(f"expected inputs of different names, got {count} for {name!r}.")
    targets = [path for task in tasks for path in task.outputs]
    refuse_inputs_as_outputs(targets, [*inputs, *(path for task in tasks for path in task.inputs)])
    folder.mkdir(parents=True, exist_ok=True)
    outcome = Outcome()
    with (
        Manifest.open(folder / MANIFEST, targets) as manifest,
        Progress("files", len(tasks), unit="files") as progress,
        ThreadPoolExecutor(max_workers=n_jobs) as pool,
    ):
        settled = {**facts, "limes": limes.__version__}
        results = [pool.submit(_run_task, task, manifest, settled, overwrite) for task in tasks]
        try:
            for task, result in zip(tasks, results, strict=True):
                try:
                    was_complete = result.result()
                    outcome.n_complete += was_complete
                    outcome.n_done += not was_complete
                except USER_ERRORS as error:
                    outcome.failures.append((str(task.inputs[0]), explain(error)))
                progress.advance(1)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return outcome


def _run_task(task: FileTask, manifest: "Manifest", facts: dict[str, Any], overwrite: bool) -> bool:
    """Make the outputs of a task unless they are complete, and return whether they were."""
    name = task.outputs[0].name
    with manifest.claim(name):
        known = manifest.find(name)
        # A folder is an input whose files were not found: running the task says which.
        files = [path for path in task.inputs if not path.is_dir()]
        inputs = [_describe_input(path, known) for path in files]
        entry = {"output": name, "facts": facts, "inputs": inputs}
        if known and not overwrite and _is_complete(known, entry, task):
            if known["inputs"] != inputs:  # only their times changed
                manifest.append({**known, "inputs": inputs})
            return True
        if known:  # from here on the output may be another than the manifest says
            manifest.append({"output": name})
        task.run()
        manifest.append({**entry, "n_bytes": _sizes(task.outputs)})
        return False


def _is_complete(known: dict[str, Any], entry: dict[str, Any], task: FileTask) -> bool:
    """Return whether outputs are those of a manifest's entry, and this is what is wanted."""
    hashes = [[one["sha256"] for one in each["inputs"]] for each in (known, entry)]
    return (
        known["facts"] == entry["facts"]
        and hashes[0] == hashes[1]
        and known["n_bytes"] == _sizes(task.outputs)
    )


def _sizes(paths: Sequence[Path]) -> list[int]:
    """Return the sizes of files, -1 for one that is missing."""
    return [path.stat().st_size if path.exists() else -1 for path in paths]


def _describe_input(path: Path, known: dict[str, Any] | None) -> dict[str, Any]:
    """Return name, size, time and hash of an input; it is read only if size or time changed."""
    status = path.stat()
    found = {"name": path.name, "n_bytes": status.st_size, "mtime_ns": status.st_mtime_ns}
    for old in known["inputs"] if known else ():
        if {key: old[key] for key in found} == found:
            return {**found, "sha256": old["sha256"]}
    return {**found, "sha256": hash_file(path)}


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while part := stream.read(HASHED_BYTES):
            digest.update(part)
    return digest.hexdigest()


class Manifest:
    """A file with one line of JSON for each complete output; the last line of an output counts.

    Runs at the same time share it: each appends whole lines, and locks an output while it makes it.
    The run that ends last sorts the lines, and removes temporary files that a crash left.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._entries: dict[str, dict[str, Any]] = {}
        self._n_read = 0
        self._mutex = threading.Lock()

    @classmethod
    @contextmanager
    def open(cls, path: Path, targets: Sequence[Path]) -> Iterator["Manifest"]:
        """Open a manifest, and tidy up at the end; `targets` are the outputs of the run."""
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            _lock(descriptor, RUN_BYTE, is_shared=True)
            # Another run may have replaced the file before it was locked.
            with suppress(FileNotFoundError):
                if os.stat(path).st_ino == os.fstat(descriptor).st_ino:
                    break
            os.close(descriptor)
        try:
            manifest = cls(path, descriptor)
            yield manifest
            manifest._tidy_up(targets)
        finally:
            os.close(descriptor)

    def find(self, name: str) -> dict[str, Any] | None:
        """Return the entry of an output that is complete, or None."""
        with self._mutex:
            self._read_on()
            entry = self._entries.get(name)
        return entry if entry is not None and "facts" in entry else None

    def append(self, entry: dict[str, Any]) -> None:
        """Add an entry, on the disk when this returns."""
        with self._mutex:
            _lock(self._descriptor, APPEND_BYTE)
            try:
                self._read_on()
                # A crash may have left part of a line.
                start = b"" if os.fstat(self._descriptor).st_size == self._n_read else b"\n"
                os.write(self._descriptor, start + _line(entry))
                os.fsync(self._descriptor)
            finally:
                _unlock(self._descriptor, APPEND_BYTE)

    @contextmanager
    def claim(self, name: str) -> Iterator[None]:
        """Lock an output against other runs, until the block is left."""
        byte = OUTPUT_BYTE + zlib.crc32(name.encode())
        _lock(self._descriptor, byte)
        try:
            yield
        finally:
            _unlock(self._descriptor, byte)

    def _read_on(self) -> None:
        """Read the lines that were added; part of a line and damaged ones are left out."""
        size = os.fstat(self._descriptor).st_size
        data = os.pread(self._descriptor, size - self._n_read, self._n_read)
        whole = data[: data.rfind(b"\n") + 1]
        for line in whole.splitlines():
            with suppress(ValueError, TypeError, KeyError):
                entry = json.loads(line)
                self._entries[entry["output"]] = entry
        self._n_read += len(whole)

    def _tidy_up(self, targets: Sequence[Path]) -> None:
        """Sort the lines and remove what crashes left, unless another run is active."""
        if not _try_lock(self._descriptor, RUN_BYTE):
            return
        self._read_on()
        lines = [_line(entry) for _, entry in sorted(self._entries.items()) if "facts" in entry]
        data = b"".join(lines)
        size = os.fstat(self._descriptor).st_size
        if data != os.pread(self._descriptor, size, 0):
            with atomic_write(self._path) as stream:
                stream.write(data)
        for folder in {self._path.parent, *(path.parent for path in targets)}:
            remove_abandoned(folder)


def _line(entry: dict[str, Any]) -> bytes:
    """Return an entry as a line."""
    return json.dumps(entry, sort_keys=True).encode() + b"\n"


def _lock(descriptor: int, byte: int, *, is_shared: bool = False) -> None:
    """Lock a byte of a file against other processes; wait until it is free."""
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks
            fcntl.lockf(descriptor, fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX, 1, byte)


def _try_lock(descriptor: int, byte: int) -> bool:
    """Lock a byte if no other process has a lock of it."""
    if fcntl is None:
        return True
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except OSError:
        return False
    return True


def _unlock(descriptor: int, byte: int) -> None:
    """Unlock a byte of a file."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, byte)
