"""Words that several jobs share: rows, output, JSON."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limes.files import RowOptions

FORMATS = "libsvm, csv, parquet, arrow, npy, npz or libagf"


def add_job(jobs: Any, name: str, *, help: str, description: str, example: str) -> Any:  # noqa: A002
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
