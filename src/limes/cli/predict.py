"""`limes predict`: label the rows of a file; batches are read ahead by a thread."""

import argparse
import queue
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from limes.cli.main import add_command, add_output, add_rows, add_scaling, add_threads, row_options
from limes.cli.terminal import Progress, show

if TYPE_CHECKING:
    from limes.cli.models import OpenModel
    from limes.files import RowFile

Item = TypeVar("Item")
# Items that are read ahead: one keeps both threads busy, more would only take memory.
QUEUE_LENGTH = 1
END: Any = object()
# A thread that reads from a pipe may never return; it is abandoned after this time.
MAX_WAIT_SECONDS = 5.0
TABLE_FORMATS = ("csv", "parquet", "arrow")


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "predict",
        help="label a file of rows",
        description="Predict the class of each row of a file, in batches: the file may be larger "
        "than memory.\nOf a folder, each file is predicted into a file of the output folder; run "
        "again, it skips what is complete.\nThe model may be a fast classifier, one of svm-train "
        "or libAGF, or one of limes train.",
        example="limes predict sat.limes rows.parquet -o out.parquet --proba\n"
        "limes predict sat.limes sat.t -o -\n"
        "limes predict sat.limes parts -o predicted",
    )
    parser.add_argument("model", metavar="MODEL", type=Path, help="classifier")
    add_rows(parser, help="file of rows, or folder of such files")
    add_output(parser, help="output file, of any format, or folder; - is standard output")
    parser.add_argument("--to", metavar="FORMAT", help="of the output; default: by its ending")
    parser.add_argument("--proba", action="store_true", help="with the probability of each class")
    parser.add_argument(
        "--keep", action="store_true", help="copy the columns of CSV, Parquet or Arrow rows too"
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="predict all files of a folder; default: those whose outputs are not complete",
    )
    add_scaling(parser)
    add_threads(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Predict and write, one batch at a time."""
    from limes.cli.models import open_model

    model = open_model(args.model, n_features=args.features, scaling=args.scaling)
    model.use_threads(args.jobs)
    if args.proba and not model.has_probabilities:
        remedy = (
            "accelerate its source with rows, or train that with -b 1"
            if model.kind == "borders"
            else "train it with -b 1, or accelerate it"
        )
        if model.is_detector:
            remedy = "an outlier detector has labels and scores only"
        raise ValueError(f"{args.model} has no probabilities: {remedy}.")
    options = row_options(
        args,
        n_features=model.n_features_of_text(args.features),
        first_index=model.first_index,
        expected=model.names,
        keep=args.keep,
    )
    if args.rows.is_dir():
        return _predict_folder(args, model, options)
    n_rows = _predict_to(args, model, options, args.rows, args.output)
    if str(args.output) != "-":
        show(
            {"output": str(args.output), "n_rows": n_rows},
            f"{n_rows} rows labelled in {args.output}",
            as_json=args.json,
        )
    return 0


def _predict_to(
    args: argparse.Namespace, model: "OpenModel", options: Any, path: Path, output: Path
) -> int:
    """Predict the rows of one file, and return their number."""
    from limes.files import create_predictions, find_format, find_input_format, open_rows

    _check_keep(args, find_input_format(path, args.format), find_format(output, args.to))
    with (
        open_rows(path, options) as rows,
        create_predictions(output, classes=model.label_order.tolist(), kind=args.to) as writer,
        Progress("predicting", rows.n_rows) as progress,
    ):
        return predict_file(model, rows, writer=writer, progress=progress, with_proba=args.proba)


def _predict_folder(args: argparse.Namespace, model: "OpenModel", options: Any) -> int:
    """Predict each file of a folder, those whose outputs are not complete."""
    from limes._core import thread_count
    from limes.cli.folder import FileTask, hash_file, run_tasks
    from limes.cli.map import report_outcome
    from limes.files import FORMATS

    if args.to is not None and args.to not in FORMATS:
        raise ValueError(f"--to must be one of {', '.join(FORMATS)}, got {args.to!r}.")
    if args.output.resolve() == args.rows.resolve() or args.output.is_file():
        raise ValueError(f"-o must be another folder than {args.rows}, got {str(args.output)!r}.")
    paths = sorted(
        path for path in args.rows.iterdir() if path.is_file() and not path.name.startswith(".")
    )
    if not paths:
        raise ValueError(f"{args.rows}: expected files of rows, found none.")
    n_jobs = min(thread_count(args.jobs), len(paths))
    model.use_threads(max(1, thread_count(args.jobs) // n_jobs))
    tasks = []
    for path in paths:
        output = args.output / _output_name(path, args.to)

        def work(path: Path = path, output: Path = output) -> None:
            _predict_to(args, model, options, path, output)

        tasks.append(FileTask((path,), (output,), work))
    names = ("format", "label", "columns", "features", "part", "delimiter", "header", "to")
    stated = {name: getattr(args, name) for name in (*names, "proba", "keep")}
    facts = {"model": hash_file(args.model), "options": stated}
    if args.scaling is not None:
        facts["scaling"] = hash_file(args.scaling)
    outcome = run_tasks(
        tasks, args.output, facts, inputs=[args.model], n_jobs=n_jobs, overwrite=args.overwrite
    )
    return report_outcome(outcome, args.output, as_json=args.json)


def _output_name(path: Path, kind: str | None) -> str:
    """Return the name of the output for a file: its own, or with the ending of a format."""
    from limes.files.streams import ENDINGS, compression_of, find_format

    if kind is None or kind == find_format(path):
        return path.with_suffix(".cls").name if find_format(path) == "libagf" else path.name
    plain = path.with_suffix("") if compression_of(path) else path
    stem = plain.stem if plain.suffix.lower() in ENDINGS else plain.name
    ending = next((end for end, format_ in ENDINGS.items() if format_ == kind), ".txt")
    return f"{stem}{'.cls' if kind == 'libagf' else ending}"


def _check_keep(args: argparse.Namespace, rows_format: str, output_format: str) -> None:
    """Raise an error if columns are to be copied from or to a format without names."""
    if args.keep and not (rows_format in TABLE_FORMATS and output_format in TABLE_FORMATS):
        raise ValueError(
            f"--keep needs rows and output in {', '.join(TABLE_FORMATS)}, got {rows_format!r} and "
            f"{output_format!r}."
        )


def predict_file(
    model: "OpenModel", rows: "RowFile", *, writer: Any, progress: Progress, with_proba: bool
) -> int:
    """Write the predictions for all batches of a file, and return the number of rows."""
    import numpy as np

    n_rows = 0
    # A thread that waits for standard input could not be ended.
    source = nullcontext(iter(rows)) if str(rows.path) == "-" else prefetch(rows)
    with source as batches:
        for batch in batches:
            model, X = model.align(batch.X, rows.path)
            writer.write(*predict_rows(model, X, with_proba=with_proba), batch.table)
            progress.advance(batch.n_rows)
            n_rows += batch.n_rows
    if not n_rows:  # a file of no labels still has its header and types
        classes = model.classes
        writer.write(classes[:0], np.empty((0, len(classes))) if with_proba else None)
    return n_rows


def predict_rows(model: "OpenModel", X: Any, *, with_proba: bool) -> tuple[Any, Any]:
    """Return labels and None, or the labels with the largest probabilities and these.

    Probabilities have the order of the model's own labels.
    """
    import numpy as np

    if not with_proba:
        return model.model.predict(X), None
    labels = model.label_order
    probabilities = model.model.predict_proba(X)[:, np.searchsorted(model.classes, labels)]
    return labels[probabilities.argmax(axis=1)], probabilities


@contextmanager
def prefetch(items: Iterable[Item]) -> Iterator[Iterator[Item]]:
    """Yield an iterator over items that a thread fetches ahead."""
    fetched: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(QUEUE_LENGTH)
    is_over = threading.Event()
    thread = threading.Thread(target=_fetch, args=(items, fetched, is_over), daemon=True)
    thread.start()
    try:
        yield _items_of(fetched)
    finally:
        is_over.set()
        deadline = time.monotonic() + MAX_WAIT_SECONDS
        while thread.is_alive() and time.monotonic() < deadline:
            _empty(fetched)
            thread.join(0.01)


def _fetch(
    items: Iterable[Any],
    fetched: "queue.Queue[tuple[Any, BaseException | None]]",
    is_over: threading.Event,
) -> None:
    """Put items into the queue, then the end or the error."""
    try:
        for item in items:
            fetched.put((item, None))
            if is_over.is_set():
                return
        fetched.put((END, None))
    except BaseException as error:
        fetched.put((END, error))


def _items_of(fetched: "queue.Queue[tuple[Any, BaseException | None]]") -> Iterator[Any]:
    """Yield the items of the queue; raise the error of the thread."""
    while True:
        item, error = fetched.get()
        if error is not None:
            raise error
        if item is END:
            return
        yield item


def _empty(fetched: "queue.Queue[tuple[Any, BaseException | None]]") -> None:
    """Empty the queue, so that the thread is not blocked."""
    while not fetched.empty():
        fetched.get_nowait()
