"""The parser of the command, options that several commands share, errors and signals."""

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


# Each is a module of this package with ``add_parser(commands)``. Packages that take long to import
# are imported in the functions that need them, so that `limes --help` is quick.
COMMANDS = (
    "train",
    "accelerate",
    "predict",
    "map",
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
# Commands of `svm_programs`, which parse their own arguments as LIBSVM does.
LIBSVM_PROGRAMS = ("svm-scale", "svm-train", "svm-predict")
# Exceptions for wrong files or arguments, and for too little memory.
USER_ERRORS = (ValueError, TypeError, OSError, ImportError, OverflowError, MemoryError)
# Longer messages are shortened: they quote a file of the wrong format.
MAX_MESSAGE = 600
FORMATS = "libsvm, csv, parquet, arrow, npy, npz or libagf"
# Arguments that name files to write; all others that are paths name files to read.
OUTPUTS = ("output", "html", "proba", "confidence", "train", "test")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    words = sys.argv[1:] if argv is None else argv
    is_program = words[:1] and words[0] in LIBSVM_PROGRAMS
    args = None if is_program else _parse(_expand_class_weights(words))
    try:
        with _command_context():
            if args is None:
                return _run_libsvm_program(words)
            _refuse_inputs_as_outputs(args)
            return int(args.run(args) or 0)
    except BrokenPipeError:
        # The reader of the output is closed: Python must not flush the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        return _fail("interrupted", 128 + signal.SIGINT)
    except USER_ERRORS as error:
        return _fail(explain(error), 2)
    except Exception as error:
        if os.environ.get("LIMES_DEBUG"):
            raise
        return _fail(
            f"unexpected {type(error).__name__}: {explain(error)} (a bug in limes: set "
            "LIMES_DEBUG=1 for a traceback)",
            1,
        )


def _run_libsvm_program(words: Sequence[str]) -> int:
    """Run one of LIBSVM's programs."""
    return int(import_module("limes.cli.svm_programs").run_program(words[0], words[1:]))


def _refuse_inputs_as_outputs(args: argparse.Namespace) -> None:
    """Raise an error if a file to write is one to read, before anything is written."""
    from limes.atomic import refuse_inputs_as_outputs

    inputs: list[tuple[Path, bool]] = []
    outputs: list[tuple[Path, bool]] = []
    for name, value in vars(args).items():
        kind = getattr(args, "to" if name in OUTPUTS else "format", None)
        for path in value if isinstance(value, list) else [value]:
            if isinstance(path, Path):
                is_libagf = kind == "libagf" or path.suffix.lower() in (".vec", ".cls")
                (outputs if name in OUTPUTS else inputs).append((path, is_libagf))
    # libAGF's rows are two files, and its predictions may be.
    written = [
        path
        for one, is_libagf in outputs
        for path in dict.fromkeys([one, *_beside(one, (".cls", ".con") if is_libagf else ())])
    ]
    read = [
        path
        for one, is_libagf in inputs
        for path in [one, *_beside(one, (".vec", ".cls") if is_libagf else ())]
        if path.exists()
    ]
    refuse_inputs_as_outputs(written, read)


def _beside(path: Path, endings: Sequence[str]) -> list[Path]:
    """Return a file's name with other endings."""
    return [path.with_suffix(ending) for ending in endings] if path.name else []


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = OneLineParser(
        prog="limes",
        description="Replace slow kernel classifiers by fast ones that predict the same labels.",
        epilog="Run limes COMMAND --help for options and an example.",
    )
    parser.add_argument("--version", action="version", version=f"limes {limes.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in COMMANDS:
        import_module(f"limes.cli.{name}").add_parser(commands)
    import_module("limes.cli.svm_programs").add_parser(commands)
    return parser


class OneLineParser(argparse.ArgumentParser):
    """Parser with error messages of one line, and examples as they are written."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        options.setdefault("allow_abbrev", False)
        super().__init__(*args, **options)

    def error(self, message: str) -> NoReturn:
        """Print what is wrong with the arguments, and exit."""
        _fail(f"{message} (see {self.prog} --help)", 2, prog=self.prog)
        raise SystemExit(2)


@contextmanager
def _command_context() -> Iterator[None]:
    """Turn SIGTERM into an exception, and print warnings on one line."""
    is_main = threading.current_thread() is threading.main_thread()
    previous = signal.signal(signal.SIGTERM, _stop) if is_main else None
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            # The model may have been fitted on a table, and the rows come without column names.
            warnings.filterwarnings("ignore", message="X (does not have valid|has) feature names")
            yield
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, previous)


def _parse(words: Sequence[str]) -> argparse.Namespace:
    """Return the parsed arguments; files of rows that are optional may follow options.

    argparse takes such files only directly behind the argument before them, and leaves them over
    elsewhere.
    """
    parser = make_parser()
    args, left = parser.parse_known_args(words)
    if left and (left[0] == "-" or not left[0].startswith("-")):
        if getattr(args, "rows", args) is None:
            args.rows = Path(left.pop(0))
        if hasattr(args, "bands_of_stack") and not any(word.startswith("-") for word in left):
            args.bands_of_stack += [Path(word) for word in left]
            left = []
    if left:
        parser.error(f"unrecognized arguments: {' '.join(left)}")
    return args


def _expand_class_weights(words: Sequence[str]) -> list[str]:
    """Replace LIBSVM's ``-w1 5`` by ``--weight 1=5``, which argparse can parse."""
    if words[:1] != ["train"]:
        return list(words)
    expanded: list[str] = []
    pending = ""
    for word in words:
        label = word[2:] if word.startswith("-w") else ""
        if pending:
            expanded += ["--weight", f"{pending}={word}"]
            pending = ""
        elif label.removeprefix("-").isdigit():
            pending = label
        else:
            expanded.append(word)
    return [*expanded, "--weight", f"{pending}="] if pending else expanded


def _stop(signum: int, frame: Any) -> NoReturn:
    """Exit by an exception, so that temporary files are removed."""
    raise SystemExit(128 + signum)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning on one line."""
    prefix = colour("limes: warning:", "yellow", sys.stderr)
    print(f"{prefix} {_shorten(message)}", file=sys.stderr)


def _fail(message: str, status: int, *, prog: str = "limes") -> int:
    """Print an error on one line and return the exit status."""
    print(f"{colour(f'{prog}:', 'red', sys.stderr)} {message}", file=sys.stderr)
    return status


def explain(error: BaseException) -> str:
    """Return the message of an error on one line, with the file."""
    if isinstance(error, OSError) and error.strerror:
        is_named = error.filename is not None
        return f"{os.fsdecode(error.filename)}: {error.strerror}" if is_named else error.strerror
    if isinstance(error, MemoryError):
        detail = f" ({_shorten(error)})" if str(error) else ""
        return (
            f"not enough memory{detail}: select fewer rows with limes subsample, or fewer features."
        )
    return _shorten(error) or type(error).__name__


def _shorten(message: object) -> str:
    """Return a message on one line, shortened if it is very long."""
    text = " ".join(str(message).split())
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE - 3]}..."


def add_command(commands: Any, name: str, *, help: str, description: str, example: str) -> Any:  # noqa: A002
    """Add a command with an example at the end of its help, and return its parser."""
    lines = "\n".join(f"  {line}" for line in example.splitlines())
    parser = commands.add_parser(
        name, help=help, description=description, epilog=f"example:\n{lines}"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser


def add_rows(
    parser: Any,
    *,
    help: str = "file of rows",  # noqa: A002
    metavar: str = "ROWS",
    is_optional: bool = False,
) -> None:
    """Add a file of rows, and the options for reading it."""
    parser.add_argument(
        "rows",
        metavar=metavar,
        type=Path,
        nargs="?" if is_optional else None,
        help=f"{help}; - is standard input",
    )
    add_row_format(parser)


def add_row_format(parser: Any) -> None:
    """Add the options for reading a file of rows."""
    group = parser.add_argument_group("rows")
    group.add_argument(
        "--format", help=f"{FORMATS}; default: by content or ending, else LIBSVM text"
    )
    group.add_argument(
        "--label",
        metavar="COLUMN",
        help="column of the label, by name or number (1 is the first, -1 the last); default: the "
        "column 'label', if there is one",
    )
    group.add_argument(
        "--columns",
        metavar="NAMES",
        help="names of the features, separated by commas; default: all other columns",
    )
    group.add_argument(
        "--features", type=int, metavar="N", help="number of features in LIBSVM text"
    )
    group.add_argument(
        "--part", help="part of a .npz file with X_train, X_test ...: train, test ..."
    )
    group.add_argument(
        "--delimiter", help="delimiter of CSV; default: a comma, in .tsv files a tab"
    )
    group.add_argument(
        "--header",
        choices=("auto", "yes", "no"),
        default="auto",
        help="whether the first line of CSV has column names, default: %(default)s",
    )


def row_options(args: argparse.Namespace, **more: Any) -> "RowOptions":
    """Return the options for reading a file of rows."""
    from limes.files import RowOptions

    if args.features is not None and args.features < 1:
        raise ValueError(f"--features must be 1 or more, got {args.features}.")
    given = {
        "format": args.format,
        "label": args.label,
        "columns": None if args.columns is None else tuple(args.columns.split(",")),
        "n_features": args.features,
        "part": args.part,
        "delimiter": args.delimiter,
        "header": args.header,
    }
    return RowOptions(**{**given, **more})


def add_output(parser: Any, *, help: str, required: bool = True) -> None:  # noqa: A002
    """Add the output file."""
    parser.add_argument("-o", "--output", metavar="OUT", type=Path, required=required, help=help)


def add_scaling(parser: Any, *, model: str = "MODEL") -> None:
    """Add the file with the scaling that belongs to a LIBSVM model."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--range",
        dest="scaling",
        metavar="FILE",
        type=Path,
        help=f"scaling of {model}, a LIBSVM model: the file of svm-scale -s, or the scale file of "
        "R's write.svm; ROWS are then raw",
    )
    group.add_argument(
        "--imstat",
        dest="scaling",
        metavar="FILE",
        type=Path,
        help=f"the same for {model} of Orfeo ToolBox: its statistics in XML",
    )


def add_threads(parser: Any) -> None:
    """Add the number of threads."""
    parser.add_argument(
        "--jobs", type=int, default=-1, metavar="N", help="number of threads, default: all"
    )
