"""`limes accelerate`."""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from limes.cli.main import add_command, add_jobs, add_output, add_rows, row_options
from limes.cli.terminal import Progress, pairs, show, table

# The command's words and the parameters of `limes.accelerate` that they set.
SETTINGS = (
    "scheme",
    "n_borders",
    "placement",
    "blend",
    "refine",
    "border",
    "threshold",
    "tolerance",
    "dtype",
    "min_agreement",
    "max_cost",
    "max_time_us",
    "max_bytes",
)


def add_parser(jobs: Any) -> None:
    """Describe the job."""
    parser = add_command(
        jobs,
        "accelerate",
        help="turn a trained classifier into a fast one",
        description="Find the borders of a trained classifier and write them as a fast one with "
        "the same answers.\nThe model is one of svm-train or of limes train; the rows are best "
        "those that it was trained on.",
        example="limes accelerate sat.model sat.svm -o sat.limes",
    )
    parser.add_argument("model", metavar="MODEL", type=Path, help="trained classifier")
    add_rows(parser, help="file of rows like those to be predicted")
    add_output(parser, help="file to write, such as fast.limes")
    _add_settings(parser.add_argument_group("borders"))
    _add_targets(parser.add_argument_group("what the fast one must keep to"))
    add_jobs(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Find borders and write them."""
    from limes.classifier import accelerate

    source, X, y, names = _read(args)
    settings = {name: getattr(args, name) for name in SETTINGS if getattr(args, name) is not None}
    with Progress("finding borders"):
        fast = accelerate(source.model, X, y, random_state=args.seed, n_jobs=args.jobs, **settings)
    _set_names(fast, names)
    fast.save(args.output)
    result = {"model": str(args.output), **_describe(fast, args.output)}
    trials = [asdict(trial) for trial in getattr(fast, "tradeoff_", [])]
    text = "\n\n".join(filter(None, [pairs(result.items()), _trials_text(trials)]))
    show({**result, "tradeoff": trials}, text, as_json=args.json)
    return 0


def _add_settings(group: Any) -> None:
    """Add what decides the borders."""
    group.add_argument("--scheme", help="pairwise, one-vs-rest ...; chosen for you if not given")
    group.add_argument(
        "-n", "--borders", dest="n_borders", type=int, metavar="N", help="border points a map"
    )
    group.add_argument(
        "--placement", help="between which rows to search: random, near, mixed, dense; or measured"
    )
    group.add_argument("--blend", type=int, metavar="K", help="nearest points that are averaged")
    group.add_argument(
        "--no-refine", dest="refine", action="store_false", default=None, help="do not fit the map"
    )
    group.add_argument(
        "--border", help="predict: where labels change; probability: as svm-predict -b 1"
    )
    group.add_argument("--threshold", type=float, help="difference in probability at the border")
    group.add_argument("--tolerance", type=float, help="of a border point's decision value")
    group.add_argument("--dtype", help="precision of prediction: float32 or float64")
    group.add_argument("--seed", type=int, default=0, help="default: %(default)s")


def _add_targets(group: Any) -> None:
    """Add what is asked of a map whose number of points is left open."""
    group.add_argument(
        "--min-agreement", type=float, metavar="SHARE", help="of rows with the source's label"
    )
    group.add_argument("--max-cost", type=int, metavar="N", help="multiply-adds a row")
    group.add_argument("--max-time-us", type=float, metavar="US", help="microseconds a row")
    group.add_argument("--max-bytes", type=int, metavar="N", help="of points and functions")


def _read(args: argparse.Namespace) -> tuple[Any, Any, Any, tuple[str, ...] | None]:
    """Read the model and the rows."""
    from limes.cli.models import open_model
    from limes.files import read_rows

    source = open_model(args.model, n_features=args.features)
    if source.kind == "borders":
        raise ValueError(f"{source.path}: expected a slow classifier, found borders already.")
    width = source.width_of_rows(args.features)
    with Progress(f"reading {args.rows}"):
        X, y, names = read_rows(
            args.rows, row_options(args, n_features=width, expected=source.names)
        )
    source, X = source.take(X, args.rows)
    return source, X, _known_labels(y, source.classes), names or source.names


def _trials_text(trials: list[dict[str, Any]]) -> str:
    """Return what was tried as a table, the one chosen marked; nothing where that is all."""
    if len(trials) < 2:
        return ""
    heads = ("scheme", "", "border points", "blend", "cost", "agreement", "U.C. lost")
    lines = [
        (
            trial["scheme"],
            "chosen" if trial["is_chosen"] else "",
            *(str(trial[key]) for key in ("n_borders", "blend", "cost")),
            f"{trial['agreement']:.4f}",
            # No minus before a zero.
            f"{round(trial['lost'], 4) + 0.0:.4f}",
        )
        for trial in trials
    ]
    return table([heads, *lines], n_left=2)


def _known_labels(y: Any, classes: Any) -> Any:
    """Return the labels where all are classes of the source: they only help."""
    import numpy as np

    return y if y is not None and np.isin(y, classes).all() else None


def _set_names(fast: Any, names: tuple[str, ...] | None) -> None:
    """Keep the names of the columns, as a fit on a table would have done."""
    import numpy as np

    if names is not None:
        fast.feature_names_in_ = np.array(names, dtype=object)


def _describe(fast: Any, path: Path) -> dict[str, Any]:
    """Return what was found."""
    return {
        "scheme": fast.scheme_.name,
        **({"placement": fast.placement_} if fast.placement_ else {}),
        "n_classes": len(fast.classes_),
        "n_features": int(fast.n_features_in_),
        "n_borders": int(fast.n_borders_),
        "cost": int(fast.cost_),
        "agreement": float(fast.agreement_),
        "n_bytes": path.stat().st_size if path.is_file() else 0,
    }
