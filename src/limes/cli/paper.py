"""`limes paper`: repeat the trials, tables and figures of the paper."""

import argparse
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limes.cli.main import add_command
from limes.cli.terminal import Progress, show

if TYPE_CHECKING:
    from limes.research.paper.rows import Row
    from limes.research.paper.table import Table


# The experiments that a table needs; other tables need none.
EXPERIMENTS_OF_TABLE = {
    "results": ("results",),
    "sizes": ("results",),
    "subsampled": ("results", "subsampled"),
    "verdicts": ("results", "subsampled"),
    "agf": ("results",),
}
TABLES = ("datasets", "parameters", *EXPERIMENTS_OF_TABLE)
# A copy of ALL_METHODS in limes.research.paper.plan, which takes long to import; a test compares
# them.
METHODS = (
    *("linear", "svm", "svm-probability", "borders", "limes", "subsampled"),
    *("agf", "agf-borders", "agf-limes"),
)


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "paper",
        help="repeat the trials, tables and figures of the paper",
        description="Run the paper's trials, each a row of FOLDER/rows.csv, and draw its tables "
        "and figures from the\nrows, with the paper's numbers for comparison; FOLDER.md is a page "
        "with all of them. An interrupted\nrun continues where it stopped. All trials take about "
        "two hours on two cores.",
        example="limes paper --quick\nlimes paper --table results --dataset sat\n"
        "limes paper --draw -o docs/paper",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("limes-paper"),
        metavar="FOLDER",
        help="folder of rows, tables and figures, default: %(default)s",
    )
    _add_choices(parser)
    parser.set_defaults(run=run)


def _add_choices(parser: Any) -> None:
    """Add the options that select trials and tables."""
    parser.add_argument("--quick", action="store_true", help="a small subset, about two minutes")
    parser.add_argument("--draw", action="store_true", help="run no trials, only draw rows.csv")
    parser.add_argument(
        "--table", nargs="+", metavar="NAME", help=f"only the trials for these: {', '.join(TABLES)}"
    )
    parser.add_argument("--dataset", nargs="+", metavar="NAME", help="default: all")
    parser.add_argument(
        "--method",
        nargs="+",
        metavar="NAME",
        help=f"of {', '.join(METHODS)}, default: all; subsampled includes the methods it needs",
    )
    parser.add_argument("--again", action="store_true", help="run again what rows.csv has")


def run(args: argparse.Namespace) -> int:
    """Run the requested trials, then draw all rows."""
    from limes.research.paper.page import write_all
    from limes.research.paper.plan import ALL_METHODS, EVERYTHING, check_names
    from limes.research.paper.rows import latest, read_rows

    check_names("--table", args.table, TABLES)
    check_names("--dataset", args.dataset, EVERYTHING)
    check_names("--method", args.method, ALL_METHODS)
    failed = [] if args.draw else _run_trials(args)
    rows = latest(read_rows(args.output / "rows.csv"))
    if args.draw and not rows:
        raise ValueError(f"{args.output} has no rows.csv to draw: omit --draw to run trials.")
    paths = write_all(rows, args.output)
    tables = _chosen_tables(rows, args)
    result = {
        "tables": {table.name: _plain(table) for table in tables},
        "files": list(map(str, paths)),
    }
    text = [f"{table.title}\n\n{table.markdown()}" for table in tables]
    show(result, "\n".join([*text, f"{len(paths)} files: {paths[-1]}"]), as_json=args.json)
    if failed:
        _report(f"The tables are incomplete: {', '.join(failed)} failed (see above).")
    return 1 if failed else 0


def _run_trials(args: argparse.Namespace) -> list[str]:
    """Run the missing trials, and return those that failed."""
    from limes.research.paper.plan import EXPERIMENTS, make_plan
    from limes.research.paper.rows import check_writable
    from limes.research.paper.run import find_points, pending_steps, run_plan, write_points

    check_writable(args.output / "rows.csv")
    needed = [EXPERIMENTS_OF_TABLE.get(name, ()) for name in args.table or ()]
    experiments = tuple(dict.fromkeys(chain(*needed))) if args.table else EXPERIMENTS
    steps = make_plan(
        datasets=args.dataset, methods=args.method, experiments=experiments, is_quick=args.quick
    )
    if not args.again:
        steps = pending_steps(steps, args.output / "rows.csv")
    points = args.output / "points.csv"
    if not args.table and not points.is_file():
        write_points(points, find_points())
    with Progress("trials", total=sum(step.seconds for step in steps)) as progress:
        return run_plan(
            steps,
            args.output / "rows.csv",
            is_again=args.again,
            say=_report,
            advance=progress.advance,
        )


def _chosen_tables(rows: "Sequence[Row]", args: argparse.Namespace) -> "list[Table]":
    """Return the tables to print, with the requested datasets."""
    from limes.research.paper.plan import EVERYTHING
    from limes.research.paper.tables import make_tables

    tables = make_tables(rows, args.dataset or EVERYTHING)
    return [tables[name] for name in args.table or ("results", "verdicts")]


def _plain(table: "Table") -> list[dict[str, Any]]:
    """Return the lines of a table for JSON."""
    heads = [column.head for column in table.columns]
    lines = [
        [cell._asdict() if isinstance(cell, tuple) else cell for cell in line]
        for line in table.lines
    ]
    return [dict(zip(heads, line, strict=True)) for line in lines]


def _report(message: str) -> None:
    """Print a message on stderr, in place of the progress line."""
    start = "\r\033[K" if sys.stderr.isatty() else ""
    print(f"{start}{message}", file=sys.stderr, flush=True)
