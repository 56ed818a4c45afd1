"""`limes datasets`: list the paper's datasets, or write one to files."""

import argparse
from pathlib import Path
from typing import Any

from limes.cli.main import add_command
from limes.cli.terminal import Progress, show, table


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "datasets",
        help="list the paper's datasets, or write one to files",
        description="List the paper's seventeen datasets with shape, type, source and licence. "
        "With a name, write its rows to\nfiles of any format. Data are searched in the folder "
        "LIMES_DATA and in a cache, else downloaded.",
        example="limes datasets\nlimes datasets sat --train sat.svm --test sat.t.svm",
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="of a dataset, default: all")
    parser.add_argument("--train", metavar="OUT", type=Path, help="file for the training rows")
    parser.add_argument("--test", metavar="OUT", type=Path, help="file for the test rows")
    parser.add_argument("--scale", action="store_true", help="standardise by the training rows")
    parser.add_argument("--offline", action="store_true", help="do not download")
    parser.add_argument(
        "--seed", type=int, default=0, help="of a random split, default: %(default)s"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """List datasets or write one."""
    if args.name is None and (args.train or args.test):
        raise ValueError("--train and --test need the NAME of a dataset.")
    if args.train or args.test:
        return _write(args)
    return _list(args)


def _list(args: argparse.Namespace) -> int:
    """Print one line per dataset, or only that of one."""
    from limes.datasets import list_datasets
    from limes.datasets.catalogue import find_entry

    name = None if args.name is None else find_entry(args.name).name
    listings = [listing for listing in list_datasets() if name in (None, listing.name)]
    header = ("name", "type", "source", "licence", "here", "train", "test", "features", "classes")
    text = table([header, *map(_line, listings)], n_left=5)
    notes = [f"{listing.name}: {listing.note}" for listing in listings if listing.note]
    result = [
        {**listing._asdict(), "path": listing.path and str(listing.path)} for listing in listings
    ]
    show({"datasets": result}, "\n".join([text, "", *notes]).rstrip(), as_json=args.json)
    return 0


def _line(listing: Any) -> tuple[str, ...]:
    """Return the cells of one dataset."""
    here = "part" if listing.is_partial else "yes" if listing.is_present else "no"
    numbers = (listing.n_train, listing.n_test, listing.n_features, listing.n_classes)
    return (listing.name, listing.kind, listing.source, listing.licence, here, *map(str, numbers))


def _write(args: argparse.Namespace) -> int:
    """Write the rows of one dataset."""
    from limes.datasets import load
    from limes.files import create_rows

    with Progress(f"loading {args.name}", unit="bytes") as progress:
        data = load(
            args.name,
            random_state=args.seed,
            can_download=not args.offline,
            progress=progress.update,
        )
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
