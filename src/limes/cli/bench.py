"""``limes bench``: every method side by side."""

import argparse
from pathlib import Path
from typing import Any


def add_parser(jobs: Any) -> None:
    """Describe the job.

    Parameters
    ----------
    jobs : argparse subparsers
        Where to add it.
    """
    parser = jobs.add_parser(
        "bench",
        help="compare speed and skill with everything that could be used instead",
        description="Train and time all methods on the same rows, in turns; write results.csv, "
        "results.md and one picture a dataset. What results.csv has already is not measured again.",
    )
    parser.add_argument(
        "datasets",
        nargs="*",
        metavar="DATASET",
        help="name of a dataset (see limes datasets), or an .npz file with X and y, or with "
        "X_train, y_train, X_test and y_test; none draws the results again",
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("limes-bench"), metavar="FOLDER")
    parser.add_argument("--models", type=Path, metavar="FOLDER", help="keep trained models there")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--threads", nargs="+", default=["1", "all"], metavar="N")
    parser.add_argument("--turns", type=int, default=7, help="default: %(default)s")
    parser.add_argument("--rows", type=int, default=20_000, help="in a batch, default: %(default)s")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--C", type=float, help="of the SVC; the paper's by default")
    parser.add_argument("--gamma", type=float, help="of the SVC; the paper's by default")
    parser.add_argument("--again", action="store_true", help="measure also what is there already")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure what was asked for, then draw all there is.

    Parameters
    ----------
    args : Namespace
        What the parser made of the words.

    Returns
    -------
    int
        0, or 1 where a method failed.
    """
    from limes.bench.picture import save_pictures
    from limes.bench.results import read_rows
    from limes.bench.table import markdown

    failed = [name for dataset in args.datasets for name in _run_dataset(dataset, args)]
    rows = read_rows(args.output / "results.csv")
    if not rows:
        raise ValueError(f"{args.output} has no results.csv to draw: name a dataset to measure.")
    (args.output / "results.md").write_text(markdown(rows), encoding="utf-8")
    print(markdown(rows))
    for path in save_pictures(rows, args.output):
        print(path)
    return 1 if failed else 0


def _run_dataset(name: str, args: argparse.Namespace) -> list[str]:
    """Measure one dataset and return the methods that failed."""
    from limes.bench.peers import choose_peers
    from limes.bench.problem import load_problem
    from limes.bench.run import Effort, run_benchmark
    from limes.bench.store import Store
    from limes.bench.threads import n_threads_of

    return run_benchmark(
        load_problem(name, seed=args.seed, C=args.C, gamma=args.gamma),
        choose_peers(args.methods),
        threads=sorted({n_threads_of(word) for word in args.threads}),
        output=args.output / "results.csv",
        store=Store(args.models),
        effort=Effort(args.turns, args.rows),
        is_again=args.again,
    )
