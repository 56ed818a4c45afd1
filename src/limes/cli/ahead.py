"""Read the next piece of a file while the present one is worked on."""

import queue
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Piece = TypeVar("Piece")

# Pieces that wait: one is enough to keep both sides busy, more would only take memory.
N_WAITING = 1
END: Any = object()
# A thread that waits for a pipe may wait for ever; nobody needs what it reads.
MAX_WAIT_SECONDS = 5.0


@contextmanager
def read_ahead(pieces: Iterable[Piece]) -> Iterator[Iterator[Piece]]:
    """Go through pieces that a thread fetches ahead."""
    waiting: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(N_WAITING)
    is_over = threading.Event()
    thread = threading.Thread(target=_fetch, args=(pieces, waiting, is_over), daemon=True)
    thread.start()
    try:
        yield _hand_out(waiting)
    finally:
        is_over.set()
        deadline = time.monotonic() + MAX_WAIT_SECONDS
        while thread.is_alive() and time.monotonic() < deadline:
            _empty(waiting)
            thread.join(0.01)


def _fetch(
    pieces: Iterable[Any],
    waiting: "queue.Queue[tuple[Any, BaseException | None]]",
    is_over: threading.Event,
) -> None:
    """Put pieces into the queue, then the end or the error."""
    try:
        for piece in pieces:
            waiting.put((piece, None))
            if is_over.is_set():
                return
        waiting.put((END, None))
    except BaseException as error:
        waiting.put((END, error))


def _hand_out(waiting: "queue.Queue[tuple[Any, BaseException | None]]") -> Iterator[Any]:
    """Give what the thread has fetched."""
    while True:
        piece, error = waiting.get()
        if error is not None:
            raise error
        if piece is END:
            return
        yield piece


def _empty(waiting: "queue.Queue[tuple[Any, BaseException | None]]") -> None:
    """Make room, so that the thread need not wait."""
    while not waiting.empty():
        waiting.get_nowait()
