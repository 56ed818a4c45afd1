"""Change the bytes of valid files at random, and check that readers refuse them with an error."""

import os
import re
import resource
import sys
import tempfile
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# Numbers that are difficult for readers: beyond 31, 63 and 64 bits, beyond floats, no number.
NUMBERS = (
    b"0", b"1", b"-1", b"2", b"255", b"65536", b"2147483647", b"2147483648", b"4294967296",
    b"9223372036854775807", b"18446744073709551616", b"1e308", b"1e309", b"-1e999", b"1e-320",
    b"nan", b"inf", b"-Infinity", b"NaN", b"", b"0x10", b"1_0", b"1e", b"9" * 5000,
)  # fmt: skip
WORDS = (b"\0", b"\xff", b"\n", b"\r\n", b" ", b"null", b"true", b'"', b"{", b"[", b"]", b",")
# A reader that takes longer for a small file counts as hanging.
MAX_SECONDS = 10.0
MAX_BYTES = 6 << 30


@dataclass
class Counts:
    """Number of files that were read and refused, and the longest time."""

    n_read: int = 0
    n_refused: int = 0
    slowest: float = 0.0

    def __str__(self):
        counts = f"{self.n_read} read, {self.n_refused} refused"
        return f"{self.n_read + self.n_refused} files: {counts}, slowest {self.slowest:.3f} s"


def fuzz(read, seeds, n_files, *, seed=0, change=None, show=False):
    """Let a reader read changed files; it must return or raise a ValueError of one line.

    `read(data, name)` reads bytes; `change(data, seeds, rng)` changes them, by default `mutate`.
    The numbers in the name of a file reproduce it.
    """
    change = change or mutate
    counts = Counts()
    for number in range(n_files):
        rng = np.random.default_rng([seed, number])
        data = change(seeds[rng.integers(len(seeds))], seeds, rng)
        _read_changed(read, data, f"file-{seed}-{number}", counts)
        if show and (number + 1) % 10_000 == 0:
            print(counts, flush=True)
    return counts


def _read_changed(read, data, name, counts):
    # Of the processor: other programs may make it wait.
    start = time.process_time()
    message = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read(data, name)
    except ValueError as error:
        message = str(error)
    except BaseException:
        print(f"{name} of {len(data)} bytes: {data[:200]!r}", file=sys.stderr)
        raise
    seconds = time.process_time() - start
    counts.slowest = max(counts.slowest, seconds)
    assert seconds < MAX_SECONDS, f"{name} took {seconds:.1f} s"
    if message is None:
        counts.n_read += 1
        return
    counts.n_refused += 1
    assert message.startswith(name), f"{name}: {message!r} does not name the file"
    assert "\n" not in message, f"{name}: {message!r} is more than one line"
    assert len(message) < 500, f"{name}: {message!r} is long"


def mutate(data, seeds, rng):
    """Change a file in one to four places."""
    for _ in range(rng.integers(1, 5)):
        change = CHANGES[rng.integers(len(CHANGES))]
        data = change(data, seeds, rng)
    return data


def flip(data, seeds, rng):
    if not data:
        return data
    at = rng.integers(len(data))
    return data[:at] + bytes([data[at] ^ (1 << int(rng.integers(8)))]) + data[at + 1 :]


def put(data, seeds, rng):
    at = rng.integers(len(data) + 1)
    word = (WORDS + NUMBERS)[rng.integers(len(WORDS) + len(NUMBERS))]
    return data[:at] + word + data[at + int(rng.integers(len(word) + 1)) :]


def cut(data, seeds, rng):
    first, last = sorted(rng.integers(len(data) + 1, size=2).tolist())
    last = min(last, first + 40) if rng.integers(4) else last
    return data[:first] + data[last:]


def repeat(data, seeds, rng):
    first, last = sorted(rng.integers(len(data) + 1, size=2).tolist())
    last = min(last, first + 200)
    return data[:last] + data[first:last] * int(rng.integers(1, 4)) + data[last:]


def splice(data, seeds, rng):
    other = seeds[rng.integers(len(seeds))]
    at = rng.integers(len(other) + 1)
    return data[: rng.integers(len(data) + 1)] + other[at:]


def replace_number(data, seeds, rng):
    """Replace a number, such as a size or an index, by another."""
    matches = list(re.finditer(rb"-?\d[\d.e+-]*", data[: 1 << 14]))
    if not matches:
        return data
    match = matches[rng.integers(len(matches))]
    return data[: match.start()] + NUMBERS[rng.integers(len(NUMBERS))] + data[match.end() :]


CHANGES = (flip, put, cut, repeat, splice, replace_number, replace_number)


@contextmanager
def temporary_folder():
    """Work in a temporary folder, so that messages begin with the names of files."""
    previous = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(previous)


def main(run):
    """Run `python FILE [N] [SEED]`."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    n_files = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    print(run(n_files, seed=seed, show=True))
