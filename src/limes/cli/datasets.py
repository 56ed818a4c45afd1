"""`limes datasets`."""

import argparse
from pathlib import Path
from typing import Any

from limes.cli.main import add_command
from limes.cli.terminal import show, table


def add_parser(jobs: Any) -> None:
    """Describe the job."""
    parser = add_command(
        jobs,
        "datasets",
        help="list the paper's datasets, or write one to files",
        description="List the paper's seventeen datasets with shape, kind, source and licence. "
        "With a name, write its rows to\nfiles in any of the formats. Data are looked for in the "
        "folder that LIMES_DATA names and in a cache, else fetched.",
        example="limes datasets\nlimes datasets sat --train sat.svm --test sat.t.svm",
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="of a dataset; all if not given")
    parser.add_argument("--train", metavar="OUT", type=Path, help="file for the training rows")
    parser.add_argument("--test", metavar="OUT", type=Path, help="file for the test rows")
    parser.add_argument("--scale", action="store_true", help="standardise by the training rows")
    parser.add_argument("--offline", action="store_true", help="fetch nothing")
    parser.add_argument("--seed", type=int, default=0, help="of a random split")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """List datasets or write one."""
    if args.name is None and (args.train or args.test):
        raise ValueError("--train and --test need the NAME of a dataset.")
    if args.train or args.test:
        return _write(args)
    return _list(args)


def _list(args: argparse.Namespace) -> int:
    """Print one line a dataset, or all that is known of one."""
    from limes.datasets import list_datasets
    from limes.datasets.catalogue import find_entry

    wanted = None if args.name is None else find_entry(args.name).name
    found = [one for one in list_datasets() if wanted in (None, one.name)]
    lines = [_line(one) for one in found]
    heads = ("name", "kind", "source", "licence", "here", "train", "test", "features", "classes")
    text = table([heads, *lines], n_left=5)
    notes = [f"{one.name}: {one.note}" for one in found if one.note]
    result = [{**one._asdict(), "path": one.path and str(one.path)} for one in found]
    show({"datasets": result}, "\n".join([text, "", *notes]).rstrip(), as_json=args.json)
    return 0


def _line(one: Any) -> tuple[str, ...]:
    """Return the cells of one dataset."""
    here = "part" if one.is_partial else "yes" if one.is_present else "no"
    numbers = (one.n_train, one.n_test, one.n_features, one.n_classes)
    return (one.name, one.kind, one.source, one.licence, here, *map(str, numbers))


def _write(args: argparse.Namespace) -> int:
    """Write the rows of one dataset."""
    from limes.datasets import load
    from limes.files import create_rows

    data = load(args.name, random_state=args.seed, can_download=not args.offline)
    X_train, X_test = data.X_train, data.X_test
    if args.scale:
        from limes.libsvm.training import standardizer

        steps = standardizer().fit(X_train)
        X_train, X_test = steps.transform(X_train), steps.transform(X_test)
    parts = ((args.train, X_train, data.y_train), (args.test, X_test, data.y_test))
    written = {}
    for path, X, y in parts:
        if path is not None:
            with create_rows(path) as writer:
                writer.write(X, y)
            written[str(path)] = len(y)
    text = "\n".join(f"{n_rows} rows in {path}" for path, n_rows in written.items())
    show({"name": data.name, "written": written}, text, as_json=args.json)
    return 0
