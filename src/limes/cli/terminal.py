"""Colours, tables, progress, JSON."""

import json
import math
import os
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any, Self, TextIO

COLOURS = {"red": "31", "green": "32", "yellow": "33", "bold": "1", "dim": "2"}
# Nothing is shown of what takes less time; then the line is drawn anew this often.
PATIENCE_SECONDS = 2.0
REFRESH_SECONDS = 0.2
BAR_WIDTH = 30


def colour(text: str, name: str, stream: TextIO) -> str:
    """Return text in a colour, where the stream is a terminal and NO_COLOR is not set."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if is_plain or not stream.isatty():
        return text
    return f"\033[{COLOURS[name]}m{text}\033[0m"


def show(result: dict[str, Any], text: str, *, as_json: bool) -> None:
    """Print a result: words for a person, or JSON for a machine."""
    print(json.dumps(_plain(result), allow_nan=False) if as_json else text)


def table(rows: Sequence[Sequence[str]], *, n_left: int = 1) -> str:
    """Return rows as columns of equal width, the first row as their heads."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [_line(row, widths, n_left) for row in rows]
    lines[0] = colour(lines[0], "bold", sys.stdout)
    return "\n".join(lines)


def pairs(entries: Iterable[tuple[str, object]]) -> str:
    """Return names and values, one pair a line."""
    listed = [(name, str(value)) for name, value in entries]
    width = max(len(name) for name, _ in listed)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in listed)


class Progress:
    """How far a job is, drawn on a terminal's stderr once it takes longer than two seconds.

    Examples
    --------
    >>> with Progress("predicting", total=2) as progress:
    ...     progress.advance(2)
    """

    def __init__(self, job: str, total: int | None = None) -> None:
        self._job = job
        self._total = total
        self._n_done = 0
        self._start = time.monotonic()
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._thread = threading.Thread(target=self._draw, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        if self._thread is not None:
            self._thread.join()

    def advance(self, n_rows: int) -> None:
        """Say that so many rows more are done."""
        self._n_done += n_rows

    def _draw(self) -> None:
        """Draw the line now and then, and wipe it at the end."""
        if self._end.wait(PATIENCE_SECONDS):
            return
        while not self._end.wait(REFRESH_SECONDS):
            sys.stderr.write(f"\r\033[K{self._line()}")
            sys.stderr.flush()
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()

    def _line(self) -> str:
        """Return what the line says now."""
        seconds = time.monotonic() - self._start
        if not self._n_done:
            return f"{self._job} ... {seconds:.0f} s"
        if not self._total:
            return f"{self._job}: {self._n_done:,} rows, {seconds:.0f} s"
        share = min(self._n_done / self._total, 1.0)
        bar = "#" * round(BAR_WIDTH * share)
        left = seconds * (1 - share) / share
        return f"{self._job} [{bar:<{BAR_WIDTH}}] {share:4.0%}, {left:.0f} s left"


def _line(row: Sequence[str], widths: Sequence[int], n_left: int) -> str:
    """Return a line of a table."""
    cells = [
        f"{cell:<{width}}" if place < n_left else f"{cell:>{width}}"
        for place, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: NumPy's numbers as Python's, what is not finite as null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
