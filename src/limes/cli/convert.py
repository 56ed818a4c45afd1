"""`limes convert`: write a file of rows in another format."""

import argparse
from pathlib import Path
from typing import Any

from limes.cli.main import add_command, add_rows, row_options
from limes.cli.terminal import Progress, show


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "convert",
        help="write a file of rows in another format",
        description="Copy rows from one format to another, in batches: the file may be larger than "
        "memory.\nFormats: LIBSVM text and CSV (also .gz, .bz2, .xz), Parquet, Arrow or Feather, "
        ".npy, .npz, libAGF's .vec and .cls.",
        example="limes convert rows.csv rows.svm --label class\n"
        "limes convert sat.npz sat.vec --part train",
    )
    add_rows(parser)
    parser.add_argument(
        "output", metavar="OUT", type=Path, help="output file; - is standard output"
    )
    parser.add_argument("--to", metavar="FORMAT", help="of the output; default: by its ending")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Copy the rows."""
    from limes.files import find_format
    from limes.files.rows import copy_rows, scan_rows

    options = row_options(args)
    read, written = find_format(args.rows, args.format), find_format(args.output, args.to)
    scan = scan_rows(args.rows, options, Progress) if _needs_scan(args, read, written) else None
    n_rows = copy_rows(args.rows, args.output, options, kind=args.to, scan=scan, progress=Progress)
    if str(args.output) != "-":
        result = {"output": str(args.output), "format": written, "n_rows": n_rows}
        show(result, f"{n_rows} rows in {args.output}", as_json=args.json)
    return 0


def _needs_scan(args: argparse.Namespace, read: str, written: str) -> bool:
    """Return whether all rows must be read first, for their width or the type of their labels."""
    is_wide_enough = read != "libsvm" or written == "libsvm" or args.features is not None
    is_typed = read != "csv" or written not in ("parquet", "arrow") or str(args.rows) == "-"
    return not (is_wide_enough and is_typed)
