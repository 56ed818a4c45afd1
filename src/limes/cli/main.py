"""Parser, shared options, errors, signals."""

import argparse
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import limes
from limes.cli.terminal import colour

if TYPE_CHECKING:
    from limes.files.rows import RowOptions


# Each is a module beside this one, with ``add_parser(jobs)``. What takes long to import is
# imported in the functions that need it, so that `limes --help` starts at once.
COMMANDS = (
    "train",
    "accelerate",
    "predict",
    "score",
    "info",
    "export",
    "subsample",
    "convert",
    "datasets",
    "bench",
    "paper",
    "demo",
)
# What a wrong file or word may raise, and a machine that is too small for the job.
USER_ERRORS = (ValueError, TypeError, OSError, ImportError, OverflowError, MemoryError)
# A message longer than this is cut: it quotes a file that is not what it should be.
MAX_MESSAGE = 600
FORMATS = "libsvm, csv, parquet, arrow, npy, npz or libagf"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    args = make_parser().parse_args(_expand_class_weights(sys.argv[1:] if argv is None else argv))
    try:
        with _command_context():
            return int(args.run(args) or 0)
    except BrokenPipeError:
        # The reader of our output has gone: what is left unwritten must not be tried again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        return _fail("interrupted", 128 + signal.SIGINT)
    except USER_ERRORS as error:
        return _fail(_explain(error), 2)
    except Exception as error:
        if os.environ.get("LIMES_DEBUG"):
            raise
        return _fail(
            f"unexpected {type(error).__name__}: {_explain(error)} (a fault in limes: set "
            "LIMES_DEBUG=1 to see where)",
            1,
        )


def make_parser() -> argparse.ArgumentParser:
    """Describe all jobs."""
    parser = OneLineParser(
        prog="limes",
        description="Make a slow kernel classifier fast, with the same answers.",
        epilog="limes JOB --help tells more about a job, with an example.",
    )
    parser.add_argument("--version", action="version", version=f"limes {limes.__version__}")
    jobs = parser.add_subparsers(required=True, metavar="JOB")
    for job in COMMANDS:
        import_module(f"limes.cli.{job}").add_parser(jobs)
    return parser


class OneLineParser(argparse.ArgumentParser):
    """A parser whose complaints take one line, and whose examples keep their lines."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        options.setdefault("allow_abbrev", False)
        super().__init__(*args, **options)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the words, and where to read more."""
        _fail(f"{message} (see {self.prog} --help)", 2, prog=self.prog)
        raise SystemExit(2)


@contextmanager
def _command_context() -> Iterator[None]:
    """Clean up when we are told to stop, and put warnings in one line."""
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, _stop) if is_main else None
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            # Files have no names for features where the model was fitted on a table.
            warnings.filterwarnings("ignore", message="X (does not have valid|has) feature names")
            yield
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, before)


def _expand_class_weights(words: Sequence[str]) -> list[str]:
    """Put LIBSVM's ``-w1 5`` as ``--weight 1=5``, which a parser can have."""
    if words[:1] != ["train"]:
        return list(words)
    known: list[str] = []
    waiting = ""
    for word in words:
        label = word[2:] if word.startswith("-w") else ""
        if waiting:
            known += ["--weight", f"{waiting}={word}"]
            waiting = ""
        elif label.removeprefix("-").isdigit():
            waiting = label
        else:
            known.append(word)
    return [*known, "--weight", f"{waiting}="] if waiting else known


def _stop(signum: int, frame: Any) -> NoReturn:
    """End as after an error, so that drafts are removed."""
    raise SystemExit(128 + signum)


def _fail(message: str, status: int, *, prog: str = "limes") -> int:
    """Print an error in one line and return the status."""
    print(f"{colour(f'{prog}:', 'red', sys.stderr)} {message}", file=sys.stderr)
    return status


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning in one line."""
    print(f"{colour('limes: note:', 'yellow', sys.stderr)} {_shorten(message)}", file=sys.stderr)


def _explain(error: BaseException) -> str:
    """Return what an error says, in one line that names the file."""
    if isinstance(error, OSError) and error.strerror:
        is_named = error.filename is not None
        return f"{os.fsdecode(error.filename)}: {error.strerror}" if is_named else error.strerror
    if isinstance(error, MemoryError):
        what = f" ({_shorten(error)})" if str(error) else ""
        return (
            f"not enough memory{what}: choose fewer rows with limes subsample, or fewer features."
        )
    return _shorten(error) or type(error).__name__


def _shorten(message: object) -> str:
    """Return a message in one line, cut where it is very long."""
    text = " ".join(str(message).split())
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE - 3]}..."


def add_command(jobs: Any, name: str, *, help: str, description: str, example: str) -> Any:  # noqa: A002
    """Add a job with an example at the end of its help."""
    lines = "\n".join(f"  {line}" for line in example.splitlines())
    parser = jobs.add_parser(name, help=help, description=description, epilog=f"example:\n{lines}")
    parser.add_argument("--json", action="store_true", help="print the result for machines")
    return parser


def add_rows(parser: Any, *, help: str = "file of rows", metavar: str = "ROWS") -> None:  # noqa: A002
    """Add a file of rows, and what may have to be said about it."""
    parser.add_argument("rows", metavar=metavar, type=Path, help=f"{help}; - is standard input")
    group = parser.add_argument_group("rows")
    group.add_argument("--format", help=f"{FORMATS}; by the ending if not given, else LIBSVM text")
    group.add_argument(
        "--label",
        metavar="COLUMN",
        help="column of the label, by name or place (1 is the first, -1 the last); the one called "
        "'label' if not given",
    )
    group.add_argument(
        "--columns", metavar="NAMES", help="features, by name with commas between; all if not given"
    )
    group.add_argument("--features", type=int, metavar="N", help="features of a row of LIBSVM text")
    group.add_argument("--part", help="of a .npz file with X_train, X_test ...: train, test ...")
    group.add_argument("--delimiter", help="of CSV; a comma if not given, in .tsv files a tab")
    group.add_argument(
        "--header",
        choices=("auto", "yes", "no"),
        default="auto",
        help="whether the first line of CSV has names",
    )


def row_options(args: argparse.Namespace, **more: Any) -> "RowOptions":
    """Return what the user said about a file of rows."""
    from limes.files import RowOptions

    if args.features is not None and args.features < 1:
        raise ValueError(f"--features must be 1 or more, got {args.features}.")
    said = {
        "format": args.format,
        "label": args.label,
        "columns": None if args.columns is None else tuple(args.columns.split(",")),
        "n_features": args.features,
        "part": args.part,
        "delimiter": args.delimiter,
        "header": args.header,
    }
    return RowOptions(**{**said, **more})


def add_output(parser: Any, *, help: str, required: bool = True) -> None:  # noqa: A002
    """Add the file to write."""
    parser.add_argument("-o", "--output", metavar="OUT", type=Path, required=required, help=help)


def add_jobs(parser: Any) -> None:
    """Add the number of threads."""
    parser.add_argument(
        "--jobs", type=int, default=-1, metavar="N", help="threads; all if not given"
    )
