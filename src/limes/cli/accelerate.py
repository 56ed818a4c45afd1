"""`limes accelerate`: replace a trained classifier by a fast one."""

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from limes.cli.info import describe_agreement, facts_text
from limes.cli.main import add_command, add_output, add_rows, add_scaling, add_threads, row_options
from limes.cli.terminal import Progress, show, table

# Values of --fallback as `limes.accelerate` takes them.
FALLBACK = {"auto": "auto", "yes": True, "no": False}
# Attributes of a candidate that are shares, with their titles in the table.
CANDIDATE_SHARES = {
    "agreement": "agreement",
    "coverage_agreement": "coverage agreement",
    "fallback_share": "fallback share",
    "skill_loss": "skill loss",
}
# The options that set a parameter of `limes.accelerate`: by the parameter, the flags and the
# settings of the parser. Options that are not given leave the parameter at its default.
MODEL_OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "scheme": (
        "--scheme",
        {
            "help": "exact (the sums of the classifier itself, with its labels), shared, pairwise, "
            "one-vs-rest ...; default: chosen automatically"
        },
    ),
    "n_borders": (
        "-n --borders",
        {"type": int, "metavar": "N", "help": "number of border points of each map"},
    ),
    "placement": (
        "--placement",
        {"help": "pairs of rows to search between: random, near, mixed, dense; default: measured"},
    ),
    "blend": (
        "--blend",
        {"type": int, "metavar": "K", "help": "number of nearest points to average"},
    ),
    "refine": (
        "--no-refine",
        {"action": "store_false", "default": None, "help": "do not train the points"},
    ),
    "border": (
        "--border",
        {"help": "predict: where labels change; probability: as svm-predict -b 1"},
    ),
    "threshold": (
        "--threshold",
        {"type": float, "help": "difference in probability at the border"},
    ),
    "tolerance": (
        "--tolerance",
        {"type": float, "help": "largest decision value of a border point"},
    ),
    "dtype": ("--dtype", {"help": "precision of prediction: float32 or float64"}),
    "fallback": (
        "--fallback",
        {
            "choices": tuple(FALLBACK),
            "help": "whether rows that the fast model is uncertain of are predicted by the exact "
            "sums; default: where that is needed",
        },
    ),
}
LIMIT_OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "min_agreement": (
        "--min-agreement",
        {"type": float, "metavar": "SHARE", "help": "share of rows with the source's label"},
    ),
    "max_cost": ("--max-cost", {"type": int, "metavar": "N", "help": "multiply-adds per row"}),
    "max_time_us": (
        "--max-time-us",
        {"type": float, "metavar": "US", "help": "microseconds per row"},
    ),
    "max_bytes": (
        "--max-bytes",
        {"type": int, "metavar": "N", "help": "size of the tables of the float32 C export"},
    ),
}


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "accelerate",
        help="turn a trained classifier into a fast one",
        description="Fit a fast classifier that predicts the labels of a trained one, which "
        "svm-train or limes train wrote.\nGive rows as they occur in use; labels are not needed. "
        "The fast model is fitted to them, and the agreement\nthat is printed stands for rows like "
        "them.",
        example="limes accelerate sat.model sat.svm -o sat.limes\n"
        "limes accelerate sat.model sat.svm -o sat.limes --min-agreement 0.999\n"
        "limes accelerate sat.model scene.tif -o sat.limes --nodata 0\n"
        "limes accelerate sat.model B2.tif B3.tif B4.tif -o sat.limes\n"
        "limes accelerate sat.model sat.svm --range sat.range -o sat.limes\n"
        "limes accelerate sat.model --scheme exact -o sat.limes",
    )
    parser.add_argument("model", metavar="MODEL", type=Path, help="trained classifier")
    add_rows(
        parser,
        help="file of rows like those to be predicted, or the raster of a scene; not needed with "
        "--scheme exact",
        is_optional=True,
    )
    parser.add_argument(
        "bands_of_stack",
        metavar="BAND",
        type=Path,
        nargs="*",
        help="further rasters, if the scene is a stack of files",
    )
    add_output(parser, help="output file, such as fast.limes")
    parser.add_argument(
        "--nodata",
        metavar="VALUES",
        help="value of invalid pixels where ROWS is a raster; default: that of the file",
    )
    add_scaling(parser)
    parser.add_argument(
        "--no-training-rows",
        action="store_true",
        help="fit a model that holds no training rows: neither exact sums nor fallback to them",
    )
    for title, options in (("model", MODEL_OPTIONS), ("limits of the model", LIMIT_OPTIONS)):
        group = parser.add_argument_group(title)
        for name, (flags, settings) in options.items():
            group.add_argument(*flags.split(), dest=name, **settings)
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    add_threads(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Fit the fast classifier and write it."""
    from limes.classifier import accelerate

    given = parameters(args)
    if args.rows is None and given.get("scheme") != "exact":
        raise ValueError(
            "ROWS are needed, a file of rows as they occur in use (without labels if you like): "
            "only --scheme exact needs none."
        )
    source, X, y, names = _read(args)
    with Progress("fitting"):
        fast = accelerate(source.model, X, y, random_state=args.seed, n_jobs=args.jobs, **given)
    break_even = _break_even(fast, source.model, X)
    fast = _with_names(fast, names)
    fast.save(args.output)
    result = {"model": str(args.output), **_describe(fast, args.output)}
    candidates = [asdict(candidate) for candidate in fast.candidates_]
    parts = [facts_text(result), _candidates_text(candidates)]
    text = "\n\n".join(filter(None, [*parts, "" if break_even is None else str(break_even)]))
    if break_even is not None:
        result |= break_even.to_dict()
    show({**result, "candidates": candidates}, text, as_json=args.json)
    return 0


def parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of the fit that options set."""
    values = {name: getattr(args, name) for name in (*MODEL_OPTIONS, *LIMIT_OPTIONS)}
    given = {name: value for name, value in values.items() if value is not None}
    if "fallback" in given:
        given["fallback"] = FALLBACK[given["fallback"]]
    if not args.no_training_rows:
        return given
    if given.get("scheme") == "exact" or given.get("fallback") is True:
        raise ValueError(
            "--no-training-rows excludes --scheme exact and --fallback yes: the exact sums are "
            "over training rows."
        )
    if given.get("scheme", "auto") == "auto":
        # What 'auto' stands for, but for the exact sums.
        has_borders = given.get("refine") is False or given.get("threshold")
        given["scheme"] = "pairwise" if has_borders else "shared"
    return {**given, "fallback": False}


def _read(args: argparse.Namespace) -> tuple[Any, Any, Any, tuple[str, ...] | None]:
    """Return the source, the rows, their labels and the names of their features."""
    from limes.cli.models import open_model
    from limes.files import read_rows

    source = open_model(args.model, n_features=args.features, scaling=args.scaling)
    if source.kind == "borders":
        raise ValueError(f"{source.path}: expected a slow classifier, found a fast one.")
    if args.rows is None:
        return source, None, None, source.names
    files = [args.rows, *args.bands_of_stack]
    if _is_scene(args.rows):
        return source, _sample_scene(args, source, files), None, source.names
    if args.bands_of_stack:
        raise ValueError(
            f"{args.rows}: expected the first raster of a stack, found rows: give one file of rows."
        )
    if args.nodata is not None:
        raise ValueError(f"--nodata is for the raster of a scene, got rows in {args.rows}.")
    n_features = source.n_features_of_text(args.features)
    with Progress(f"reading {args.rows}"):
        X, y, names = read_rows(
            args.rows,
            row_options(
                args, n_features=n_features, first_index=source.first_index, expected=source.names
            ),
        )
    source, X = source.align(X, args.rows)
    return source, X, _labels_of_source(y, source.classes), names or source.names


def _is_scene(path: Path) -> bool:
    """Return whether a file is a raster, by its first bytes or its ending."""
    from limes.cli.map import ENDINGS
    from limes.files.streams import recognise_file

    if not path.is_file():
        return False
    content = recognise_file(path)
    return content.name == "TIFF" if content else path.suffix.lower() in ENDINGS


def _sample_scene(args: argparse.Namespace, source: Any, files: list[Path]) -> Any:
    """Return a sample of the valid pixels of a scene."""
    import numpy as np

    from limes.cli.map import check_rasters, parse_nodata
    from limes.fast_estimator import SAMPLED_ROWS
    from limes.raster import sample_rows

    nodata = ... if args.nodata is None else parse_nodata(args.nodata)
    seed = np.random.SeedSequence(args.seed)
    check_rasters(files)
    with Progress(f"reading {args.rows}"):
        rows = sample_rows(files, SAMPLED_ROWS, seed, names=source.names, nodata=nodata)
    return np.asarray(rows, dtype=np.float64)


def _labels_of_source(y: Any, classes: Any) -> Any:
    """Return the labels if they are the classes of the source, else None: they are optional."""
    import numpy as np

    if y is None or not (np.isin(y, classes).all() and np.isin(classes, y).all()):
        return None
    return y


def _with_names(fast: Any, names: tuple[str, ...] | None) -> Any:
    """Return the classifier with the names of its features, as after a fit on a table."""
    import numpy as np

    if names is None or fast.encoder_ is not None:
        return fast
    model = replace(fast.model_, feature_names=np.array(names, dtype=object))
    return type(fast).from_model(model).set_params(**fast.get_params(deep=False))


def _describe(fast: Any, path: Path) -> dict[str, Any]:
    """Return facts about the fast classifier and its file."""
    return {
        "scheme": fast.scheme_.name,
        **({"placement": fast.placement_} if fast.placement_ else {}),
        "n_classes": len(fast.model_.classes),
        "n_features": int(fast.n_features_in_),
        **({"n_borders": int(fast.n_borders_)} if fast.n_borders_ else {}),
        "cost": int(fast.cost_),
        "agreement": float(fast.agreement_),
        **describe_agreement(fast),
        "n_bytes": path.stat().st_size if path.is_file() else 0,
    }


def _break_even(fast: Any, source: Any, X: Any) -> Any:
    """Return when the time of the fit is earned back; None without rows to time."""
    from limes.report import measure_break_even
    from limes.sources.exact import exact_predict

    if X is None:
        return None
    predicts = fast.model_.predict, source.predict, exact_predict(fast, source)
    return measure_break_even(fast.fit_seconds_, X, *predicts)


def _candidates_text(candidates: list[dict[str, Any]]) -> str:
    """Return the candidates as a table, the selected one marked; nothing if there is only one."""
    if len(candidates) < 2:
        return ""
    header = ("scheme", "", "border points", "blend", "cost", *CANDIDATE_SHARES.values())
    lines = [
        (
            candidate["scheme"],
            "selected" if candidate["is_selected"] else "",
            # Exact sums have neither points nor blend.
            *(str(candidate[key] or "-") for key in ("n_borders", "blend", "cost")),
            # Adding zero turns -0.0 into 0.0.
            *(f"{round(candidate[key], 4) + 0.0:.4f}" for key in CANDIDATE_SHARES),
        )
        for candidate in candidates
    ]
    return table([header, *lines], n_left=2)
