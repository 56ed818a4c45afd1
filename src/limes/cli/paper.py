"""`limes paper`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limes.cli.main import add_command
from limes.cli.terminal import Progress, show

if TYPE_CHECKING:
    from limes.research.paper.plan import TrialRow
    from limes.research.results import Table


# The experiments that a table is made from; tables that are not here need none.
EXPERIMENTS_OF_TABLE = {
    "results": ("results",),
    "sizes": ("results",),
    "subsampled": ("results", "subsampled"),
    "verdicts": ("results", "subsampled"),
    "agf": ("results",),
    "vectors": ("results", "vectors"),
}
# Tables that are made from files of their own.
LAWS = ("break_even", "scaling_law")
TABLES = ("datasets", "parameters", *EXPERIMENTS_OF_TABLE, *LAWS)
# Those of limes.research.paper.plan, which takes long to import; a test compares the two.
METHODS = (
    *("linear", "svm", "svm-probability", "borders", "limes", "subsampled"),
    *("kept-vectors", "rescaled-vectors", "fewer-rows"),
    *("agf", "agf-borders", "agf-limes"),
)


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "paper",
        help="reproduce the paper: its trials, tables and figures",
        description="Run the paper's trials, each a row of FOLDER/rows.csv, and write its tables "
        "and figures from the\nrows, compared with the paper's numbers; FOLDER.md is a page with "
        "all of it. An interrupted run\ncontinues where it stopped. All trials take about two "
        "hours on two cores.",
        example="limes paper --quick\nlimes paper --table results --dataset sat\n"
        "limes paper --draw -o docs/paper",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("limes-paper"),
        metavar="FOLDER",
        help="for rows, tables and figures, default: %(default)s",
    )
    _add_choices(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the chosen trials, then write tables and figures of all rows."""
    from limes.research.paper.page import write_all
    from limes.research.paper.plan import ALL_METHODS, EVERYTHING, TrialRow, check_names
    from limes.research.results import latest, read_rows

    check_names("--table", args.table, TABLES)
    check_names("--dataset", args.dataset, EVERYTHING)
    check_names("--method", args.method, ALL_METHODS)
    failed = [] if args.draw else _run_trials(args)
    rows = latest(read_rows(args.output / "rows.csv", TrialRow), key=lambda row: row.trial)
    if args.draw and not rows:
        raise ValueError(f"{args.output} has no rows.csv to draw: leave --draw out to run trials.")
    paths = write_all(rows, args.output)
    tables = _chosen_tables(rows, args)
    result = {
        "tables": {table.name: _to_json(table) for table in tables},
        "files": list(map(str, paths)),
    }
    text = [f"{table.title}\n\n{table.markdown()}" for table in tables]
    show(result, "\n".join([*text, f"{len(paths)} files: {paths[-1]}"]), as_json=args.json)
    if failed:
        _log(f"The tables are incomplete: {', '.join(failed)} failed (see above).")
    return 1 if failed else 0


def _add_choices(parser: Any) -> None:
    """Add the options for what is run and written."""
    parser.add_argument("--quick", action="store_true", help="a small subset, about two minutes")
    parser.add_argument(
        "--draw", action="store_true", help="run nothing, write tables and figures of the rows"
    )
    parser.add_argument(
        "--table", nargs="+", metavar="NAME", help=f"only the trials of these: {', '.join(TABLES)}"
    )
    parser.add_argument("--dataset", nargs="+", metavar="NAME", help="only these datasets")
    parser.add_argument(
        "--method",
        nargs="+",
        metavar="NAME",
        help=f"only these: {', '.join(METHODS)}; subsampled includes what it depends on",
    )
    parser.add_argument("--again", action="store_true", help="run again what rows.csv has")


def _run_trials(args: argparse.Namespace) -> list[str]:
    """Run the missing trials, and return the steps that failed."""
    from limes.research.paper.plan import EXPERIMENTS, FigurePoint, make_plan
    from limes.research.paper.run import find_points, pending_steps, run_plan
    from limes.research.results import check_writable, write_rows

    check_writable(args.output / "rows.csv")
    needed = [name for table in args.table or () for name in EXPERIMENTS_OF_TABLE.get(table, ())]
    experiments = tuple(dict.fromkeys(needed)) if args.table else EXPERIMENTS
    steps = make_plan(
        datasets=args.dataset, methods=args.method, experiments=experiments, is_quick=args.quick
    )
    if not args.again:
        steps = pending_steps(steps, args.output / "rows.csv")
    points = args.output / "points.csv"
    if not args.table and not points.is_file():
        write_rows(points, FigurePoint, find_points())
    with Progress("trials", total=sum(step.seconds for step in steps)) as progress:
        failed = run_plan(
            steps,
            args.output / "rows.csv",
            is_again=args.again,
            log=_log,
            advance=progress.advance,
        )
    _run_laws(args)
    return failed


def _run_laws(args: argparse.Namespace) -> None:
    """Measure times and the scaling law, unless a choice of other things was made."""
    from limes.research.paper.scaling import run_scaling
    from limes.research.paper.times import run_times

    is_all = not (args.table or args.dataset or args.method or args.quick)
    runs = {"break_even": (run_times, "times.csv"), "scaling_law": (run_scaling, "scaling.csv")}
    for table, (run_law, file) in runs.items():
        if is_all or table in (args.table or ()):
            run_law(args.output / file, is_again=args.again, log=_log)


def _chosen_tables(rows: "Sequence[TrialRow]", args: argparse.Namespace) -> "list[Table]":
    """Return the tables to print, with the lines of the chosen datasets."""
    from limes.research.paper.page import law_tables, make_tables
    from limes.research.paper.plan import EVERYTHING
    from limes.research.paper.scaling import read_scaling
    from limes.research.paper.times import read_times

    tables = make_tables(rows, args.dataset or EVERYTHING)
    tables |= law_tables(
        read_times(args.output / "times.csv"), read_scaling(args.output / "scaling.csv")
    )
    return [tables[name] for name in args.table or ("results", "verdicts")]


def _to_json(table: "Table") -> list[dict[str, Any]]:
    """Return the lines of a table as dictionaries."""
    heads = [column.head for column in table.columns]
    lines = [
        [cell._asdict() if isinstance(cell, tuple) else cell for cell in line]
        for line in table.lines
    ]
    return [dict(zip(heads, line, strict=True)) for line in lines]


def _log(message: str) -> None:
    """Print progress to stderr, in place of the line with the remaining time."""
    start = "\r\033[K" if sys.stderr.isatty() else ""
    print(f"{start}{message}", file=sys.stderr, flush=True)
