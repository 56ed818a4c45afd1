"""Output to a terminal: colours, tables, progress, JSON."""

import json
import math
import os
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any, Self, TextIO

COLOURS = {"red": "31", "green": "32", "yellow": "33", "bold": "1", "dim": "2"}
# Nothing is drawn before the first; then the line is drawn at intervals of the second.
PATIENCE_SECONDS = 2.0
REFRESH_SECONDS = 0.2
BAR_WIDTH = 30


def colour(text: str, name: str, stream: TextIO) -> str:
    """Return text in a colour, if the stream is a terminal and NO_COLOR is not set."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if is_plain or not stream.isatty():
        return text
    return f"\033[{COLOURS[name]}m{text}\033[0m"


def show(result: dict[str, Any], text: str, *, as_json: bool) -> None:
    """Print a result as text or as JSON."""
    print(json.dumps(_plain(result), allow_nan=False) if as_json else text)


def table(rows: Sequence[Sequence[str]], *, n_left: int = 1) -> str:
    """Return a table with aligned columns; the first row is the header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [_line(row, widths, n_left) for row in rows]
    lines[0] = colour(lines[0], "bold", sys.stdout)
    return "\n".join(lines)


def pairs(entries: Iterable[tuple[str, object]]) -> str:
    """Return names and values, one pair per line."""
    listed = [(name, str(value)) for name, value in entries]
    width = max(len(name) for name, _ in listed)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in listed)


class Progress:
    """Progress of a step, drawn on stderr if that is a terminal and two seconds have passed.

    Examples
    --------
    >>> with Progress("predicting", total=2) as progress:
    ...     progress.advance(2)
    """

    def __init__(self, title: str, total: int | None = None, *, unit: str = "rows") -> None:
        self._title = title
        self._total = total
        self._unit = unit
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

    def advance(self, n_more: int) -> None:
        """Add to the number of units that are done."""
        self._n_done += n_more

    def update(self, title: str, n_done: int, total: int | None) -> None:
        """Set all of the display: the callback of a download."""
        if title != self._title:
            self._start = time.monotonic()
        self._title, self._n_done, self._total = title, n_done, total

    def _draw(self) -> None:
        """Draw the line at intervals, and clear it at the end."""
        if self._end.wait(PATIENCE_SECONDS):
            return
        while not self._end.wait(REFRESH_SECONDS):
            sys.stderr.write(f"\r\033[K{self._line()}")
            sys.stderr.flush()
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()

    def _line(self) -> str:
        """Return the text of the line."""
        seconds = time.monotonic() - self._start
        if not self._n_done:
            return f"{self._title} ... {seconds:.0f} s"
        if not self._total:
            return f"{self._title}: {self._n_done:,} {self._unit}, {seconds:.0f} s"
        share = min(self._n_done / self._total, 1.0)
        bar = "#" * round(BAR_WIDTH * share)
        remaining = seconds * (1 - share) / share
        return f"{self._title} [{bar:<{BAR_WIDTH}}] {share:4.0%}, {remaining:.0f} s left"


def _line(row: Sequence[str], widths: Sequence[int], n_left: int) -> str:
    """Return a line of a table."""
    cells = [
        f"{cell:<{width}}" if number < n_left else f"{cell:>{width}}"
        for number, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _plain(value: Any) -> Any:
    """Return a value for JSON: NumPy's numbers as Python's, and null for those not finite."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
