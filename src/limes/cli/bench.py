"""`limes bench`."""

import argparse
import sys
from pathlib import Path
from typing import Any

from limes.cli.main import add_command
from limes.cli.terminal import show


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "bench",
        help="compare speed and skill with the methods that could be used instead",
        description="Train all methods on the same rows and time them in turns. Writes results.csv,"
        "\nresults.md and one figure per dataset; what results.csv has is not measured again.",
        example="limes bench sat pendigits -o results --models models\n"
        "limes bench mine.csv --C 10 --gamma 0.1 --methods svc lightgbm limes --threads 1",
    )
    parser.add_argument(
        "datasets",
        nargs="*",
        metavar="DATASET",
        help="name of a dataset (see limes datasets) or file of rows with labels; without any, "
        "tables and figures are written again from results.csv",
    )
    _add_files(parser)
    _add_settings(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure the given datasets, then write tables and figures of all rows."""
    from dataclasses import asdict

    from limes.research.bench.report import markdown, save_figures
    from limes.research.bench.run import BenchmarkRow, latest_runs
    from limes.research.problems import check_name
    from limes.research.results import read_rows

    for name in args.datasets:
        check_name(name)
    failed = [name for dataset in args.datasets for name in _run_dataset(dataset, args)]
    rows = read_rows(args.output / "results.csv", BenchmarkRow)
    if not rows:
        raise ValueError(f"{args.output} has no results.csv to draw: give a dataset to measure.")
    (args.output / "results.md").write_text(markdown(rows), encoding="utf-8")
    figures = [str(path) for path in save_figures(rows, args.output)]
    result = {"rows": [asdict(row) for row in latest_runs(rows)], "figures": figures}
    show(result, "\n".join([markdown(rows), *figures]), as_json=args.json)
    return 1 if failed else 0


def _add_files(parser: Any) -> None:
    """Add the options for folders."""
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("limes-bench"),
        metavar="FOLDER",
        help="for the results, default: %(default)s",
    )
    parser.add_argument(
        "--models", type=Path, metavar="FOLDER", help="cache trained models there for the next run"
    )


def _add_settings(parser: Any) -> None:
    """Add the options for methods and timing."""
    parser.add_argument(
        "--methods", nargs="+", metavar="NAME", help="only these methods or families"
    )
    parser.add_argument(
        "--threads", nargs="+", default=["1", "all"], metavar="N", help="default: 1 all"
    )
    parser.add_argument("--turns", type=int, default=7, metavar="N", help="default: %(default)s")
    parser.add_argument(
        "--rows",
        type=int,
        default=20_000,
        metavar="N",
        help="rows of a batch, default: %(default)s",
    )
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    for name in ("--C", "--gamma"):
        parser.add_argument(name, type=float, help="of the SVC; the paper's if not given")
    parser.add_argument("--again", action="store_true", help="measure again what results.csv has")


def _run_dataset(name: str, args: argparse.Namespace) -> list[str]:
    """Measure one dataset and return the methods that failed."""
    from limes.research.bench.methods import choose_methods
    from limes.research.bench.run import ModelCache, run_benchmark
    from limes.research.problems import load_problem
    from limes.research.processor_time import TimingBudget, parse_threads

    methods = choose_methods(args.methods)
    threads = sorted({parse_threads(word) for word in args.threads})
    return run_benchmark(
        load_problem(name, seed=args.seed, C=args.C, gamma=args.gamma),
        methods,
        threads=threads,
        output=args.output / "results.csv",
        cache=ModelCache(args.models),
        budget=TimingBudget(args.turns, args.rows),
        is_again=args.again,
        log=_log,
    )


def _log(message: str) -> None:
    """Print progress to stderr."""
    print(message, file=sys.stderr, flush=True)
