"""`limes predict` (reads ahead)."""

import argparse
import queue
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

from limes.cli.main import add_command, add_jobs, add_output, add_rows, row_options
from limes.cli.terminal import Progress, show

Piece = TypeVar("Piece")
# Pieces that wait: one is enough to keep both sides busy, more would only take memory.
N_WAITING = 1
END: Any = object()
# A thread that waits for a pipe may wait for ever; nobody needs what it reads.
MAX_WAIT_SECONDS = 5.0


@contextmanager
def prefetch(pieces: Iterable[Piece]) -> Iterator[Iterator[Piece]]:
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


def add_parser(jobs: Any) -> None:
    """Describe the job."""
    parser = add_command(
        jobs,
        "predict",
        help="label a file of rows",
        description="Predict the class of each row of a file, in pieces: the file may be larger "
        "than memory.\nThe model may be a fast one, one of svm-train or libAGF, or what limes "
        "train wrote.",
        example="limes predict sat.limes rows.parquet -o out.parquet --proba\n"
        "limes predict sat.limes sat.t -o -",
    )
    parser.add_argument("model", metavar="MODEL", type=Path, help="classifier")
    add_rows(parser, help="file of rows")
    add_output(parser, help="file to write, in any of the formats; - is standard output")
    parser.add_argument(
        "--to", metavar="FORMAT", help="format of the output; by its ending if not given"
    )
    parser.add_argument("--proba", action="store_true", help="with the probability of each class")
    parser.add_argument(
        "--keep", action="store_true", help="copy the columns of CSV, Parquet or Arrow rows too"
    )
    add_jobs(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Predict and write, a piece at a time."""
    from limes.cli.models import open_model
    from limes.files import create_predictions, find_format, open_rows

    model = open_model(args.model, n_features=args.features)
    model.use_threads(args.jobs)
    if args.proba and not model.has_probabilities:
        raise ValueError(
            f"{args.model} has no probabilities: train it with -b 1, or accelerate it."
        )
    options = row_options(
        args,
        n_features=model.width_of_rows(args.features),
        expected=model.names,
        keep=args.keep,
    )
    _check_keep(args, find_format(args.rows, args.format), find_format(args.output, args.to))
    with (
        open_rows(args.rows, options) as rows,
        create_predictions(args.output, classes=model.classes.tolist(), kind=args.to) as answers,
        Progress("predicting", rows.n_rows) as progress,
    ):
        n_rows = predict_file(
            model, rows, answers=answers, progress=progress, with_proba=args.proba
        )
    if str(args.output) != "-":
        show(
            {"output": str(args.output), "n_rows": n_rows},
            f"{n_rows} rows labelled in {args.output}",
            as_json=args.json,
        )
    return 0


def predict_file(
    model: Any, rows: Any, *, answers: Any, progress: Progress, with_proba: bool
) -> int:
    """Label all pieces of a file."""
    n_rows = 0
    # Nobody can end a thread that waits for standard input.
    ahead = nullcontext(iter(rows)) if str(rows.path) == "-" else prefetch(rows)
    with ahead as pieces:
        for batch in pieces:
            model, X = model.take(batch.X, rows.path)
            answers.write(*predict_rows(model, X, with_proba=with_proba), batch.table)
            progress.advance(batch.n_rows)
            n_rows += batch.n_rows
    return n_rows


def predict_rows(model: Any, X: Any, *, with_proba: bool) -> tuple[Any, Any]:
    """Return labels and, where they are asked for, probabilities: the label has the largest."""
    if not with_proba:
        return model.model.predict(X), None
    probabilities = model.model.predict_proba(X)
    return model.classes[probabilities.argmax(axis=1)], probabilities


def _check_keep(args: argparse.Namespace, read: str, written: str) -> None:
    """See that columns that are to be kept have names, and a place to go."""
    tables = ("csv", "parquet", "arrow")
    if args.keep and not (read in tables and written in tables):
        raise ValueError(
            f"--keep needs rows and output in {', '.join(tables)}, got {read!r} and {written!r}."
        )
