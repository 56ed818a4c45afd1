"""The ``limes`` command: one parser, one function for each job."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, default=None
        Words after the command's name; None takes those of the process.

    Returns
    -------
    int
        0, or 2 where the user's words or files are at fault.
    """
    args = _parser().parse_args(argv)
    try:
        return int(args.run(args))
    except (ValueError, TypeError, OSError, ImportError) as error:
        print(f"limes: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    """Describe the jobs."""
    parser = argparse.ArgumentParser(
        prog="limes", description="Make a slow kernel classifier fast, with the same answers."
    )
    jobs = parser.add_subparsers(required=True, metavar="JOB")
    demo = jobs.add_parser("demo", help="accelerate a support vector machine and draw its borders")
    demo.add_argument("-o", "--output", type=Path, default=Path("limes-demo.png"))
    demo.add_argument("--rows", type=int, default=6000, help="training rows (default: %(default)s)")
    demo.set_defaults(run=_run_demo)
    return parser


def _run_demo(args: argparse.Namespace) -> int:
    """Show the whole job on the paper's two synthetic classes."""
    from limes.cli.demo import demonstrate

    demonstrate(args.rows, args.output)
    return 0
