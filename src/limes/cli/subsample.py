"""`limes subsample`: choose a fraction of the rows of each class."""

import argparse
from typing import Any

from limes.cli.main import add_command, add_output, add_rows, row_options
from limes.cli.terminal import Progress, show


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "subsample",
        help="choose a fraction of the rows of each class",
        description="Choose rows at random, class by class, at least one of each. The file is read "
        "twice, in batches: first\nfor the labels, then for the chosen rows.",
        example="limes subsample codrna.svm 0.1 -o small.svm",
    )
    add_rows(parser, help="file of rows with labels")
    parser.add_argument("fraction", metavar="FRACTION", type=float, help="share of rows to keep")
    add_output(parser, help="output file, of any format")
    parser.add_argument("--to", metavar="FORMAT", help="of the output; default: by its ending")
    parser.add_argument(
        "--method",
        choices=("proportional", "power"),
        default="proportional",
        help="keep the shares of the classes, or balance them (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Choose rows and write them."""
    from limes.files.rows import copy_rows, scan_rows
    from limes.subsample import subsample_rows

    options = row_options(args)
    scan = scan_rows(args.rows, options, Progress)
    if scan.labels is None:
        raise ValueError(
            f"{args.rows}: expected labels, found none: name their column with --label."
        )
    chosen = subsample_rows(scan.labels, args.fraction, method=args.method, random_state=args.seed)
    copy_rows(
        args.rows,
        args.output,
        options,
        kind=args.to,
        scan=scan,
        chosen=chosen,
        progress=Progress,
    )
    result = {"output": str(args.output), "n_rows": len(chosen), "of": scan.n_rows}
    show(result, f"{len(chosen)} of {scan.n_rows} rows in {args.output}", as_json=args.json)
    return 0
