"""Run a command again and again, each time ended at another write, fsync or rename.

    python crash_run.py LIMIT COMMAND... -o FOLDER

Prints the number of runs that were ended, and fails unless each time a second run completes the
folder with the bytes of an undisturbed run. The process forks itself, so that a run takes little.
"""

import io
import os
import pathlib
import shutil
import sys
from pathlib import Path

import limes.classifier
import limes.cli.folder
import limes.cli.predict
import limes.files
import limes.raster  # noqa: F401
from limes.cli.main import main
from limes.raster.geotiff import OutputFile

COUNTED = {"n": 0, "end": -1}


def step():
    """Count a step, and end the process without any clean-up if it is the last."""
    if COUNTED["n"] == COUNTED["end"]:
        os._exit(9)
    COUNTED["n"] += 1


def counted(function):
    def call(*args, **options):
        step()
        result = function(*args, **options)
        step()
        return result

    return call


def in_halves(write):
    """Make a write two steps: nothing is written before the first, half before the second."""

    def write_halves(self, data, *args, **options):
        step()
        view = memoryview(data).cast("B")
        half = len(view) // 2
        write(self, view[:half], *args, **options)
        step()
        write(self, view[half:], *args, **options)
        return len(view)

    return write_halves


class CountedFile(io.FileIO):
    """A file of which each write is two steps."""

    write = in_halves(io.FileIO.write)


def write_text(path, text, *, encoding):
    with CountedFile(path, "w") as stream:
        stream.write(text.encode(encoding))


def install():
    OutputFile.write = in_halves(OutputFile.write)
    pathlib.Path.write_text = write_text
    plain_open = pathlib.Path.open

    def open_counted(self, mode="r", *args, **options):
        if mode == "xb":
            return CountedFile(self, "x")
        return plain_open(self, mode, *args, **options)

    pathlib.Path.open = open_counted
    for name in ("fsync", "replace", "rename", "write"):
        setattr(os, name, counted(getattr(os, name)))
    pathlib.Path.replace = counted(pathlib.Path.replace)


def run_once(words, end):
    """Run the command in a child that ends at a step; return its status and its steps."""
    reader, writer = os.pipe()
    plain_write = os.write
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        install()
        COUNTED["end"] = end
        status = main(words)
        plain_write(writer, str(COUNTED["n"]).encode())
        os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), int(text or -1)


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def check(limit, words):
    folder = words[words.index("-o") + 1]
    status, n_steps = run_once(words, -1)
    assert status == 0, status
    expected = contents(folder)
    n_ended = 0
    stride = max(1, n_steps // limit)
    for end in range(0, n_steps, stride):
        shutil.rmtree(folder)
        status, _ = run_once(words, end)
        assert status == 9, (end, status)
        for name, data in contents(folder).items() if Path(folder).exists() else ():
            is_whole = name.startswith(".") or data == expected[name]
            assert is_whole, (end, name)
        status, _ = run_once(words, -1)
        assert status == 0, (end, status)
        assert contents(folder) == expected, (end, set(contents(folder)) ^ set(expected))
        n_ended += 1
    print(n_ended, n_steps)


if __name__ == "__main__":
    check(int(sys.argv[1]), sys.argv[2:])
