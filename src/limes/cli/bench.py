"""`limes bench`: compare speed and skill with other methods."""

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
        help="compare speed and skill with other methods",
        description="Train all methods on the same rows and time them in turns. Writes results.csv,"
        "\nresults.md and one picture per dataset; results in results.csv are not measured again.",
        example="limes bench sat pendigits -o results --models models\n"
        "limes bench mine.csv --C 10 --gamma 0.1 --methods svc lightgbm limes --threads 1",
    )
    parser.add_argument(
        "datasets",
        nargs="*",
        metavar="DATASET",
        help="name of a dataset (see limes datasets) or file of rows with labels; default: none, "
        "results.csv is only drawn",
    )
    _add_files(parser)
    _add_settings(parser)
    parser.set_defaults(run=run)


def _add_files(parser: Any) -> None:
    """Add the options for folders."""
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("limes-bench"),
        metavar="FOLDER",
        help="folder of the results, default: %(default)s",
    )
    parser.add_argument(
        "--models",
        type=Path,
        metavar="FOLDER",
        help="folder to store trained models for later runs",
    )


def _add_settings(parser: Any) -> None:
    """Add the options for measuring."""
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="default: all")
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
        parser.add_argument(name, type=float, help="of the SVC, default: the paper's")
    parser.add_argument("--again", action="store_true", help="measure again what results.csv has")


def run(args: argparse.Namespace) -> int:
    """Measure the datasets, then draw all results."""
    from dataclasses import asdict

    from limes.research.bench.report import markdown, save_pictures
    from limes.research.bench.results import latest, read_rows
    from limes.research.problems import check_name

    for name in args.datasets:
        check_name(name)
    failed = [name for dataset in args.datasets for name in _run_dataset(dataset, args)]
    rows = read_rows(args.output / "results.csv")
    if not rows:
        raise ValueError(f"{args.output} has no results.csv to draw: name a dataset to measure.")
    (args.output / "results.md").write_text(markdown(rows), encoding="utf-8")
    pictures = [str(path) for path in save_pictures(rows, args.output)]
    result = {"rows": [asdict(row) for row in latest(rows)], "pictures": pictures}
    show(result, "\n".join([markdown(rows), *pictures]), as_json=args.json)
    return 1 if failed else 0


def _run_dataset(name: str, args: argparse.Namespace) -> list[str]:
    """Measure one dataset and return the methods that failed."""
    from limes.research.bench.methods import choose_peers
    from limes.research.bench.run import Store, run_benchmark
    from limes.research.measure import Effort, n_threads_of
    from limes.research.problems import load_problem

    peers = choose_peers(args.methods)
    threads = sorted({n_threads_of(word) for word in args.threads})
    effort = Effort(args.turns, args.rows)
    return run_benchmark(
        load_problem(name, seed=args.seed, C=args.C, gamma=args.gamma),
        peers,
        threads=threads,
        output=args.output / "results.csv",
        store=Store(args.models),
        effort=effort,
        is_again=args.again,
        say=_report,
    )


def _report(message: str) -> None:
    """Print progress on stderr."""
    print(message, file=sys.stderr, flush=True)
