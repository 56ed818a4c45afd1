"""``limes score``: how good a model is on labelled rows, beside its source, and a page about it."""

import argparse
from pathlib import Path
from typing import Any

from limes.cli.options import add_job, add_jobs, add_rows, row_options
from limes.cli.terminal import show, table


def add_parser(jobs: Any) -> None:
    """Describe the job."""
    parser = add_job(
        jobs,
        "score",
        help="measure skill, agreement and speed on labelled rows",
        description="Predict a file of labelled rows, in pieces, and print accuracy, uncertainty "
        "coefficient, Brier score and\ntime; with --source also of the model that was replaced, "
        "and how often both agree. --html writes one page\nwith confusion matrices, reliability "
        "diagram and a picture of the borders (needs matplotlib, limes[plot]).",
        example="limes score sat.limes sat.t --source sat.model --html report.html",
    )
    parser.add_argument("model", metavar="MODEL", type=Path, help="classifier")
    add_rows(parser, help="file of rows with labels")
    parser.add_argument("--source", metavar="MODEL", type=Path, help="what the model replaced")
    parser.add_argument("--html", metavar="PAGE", type=Path, help="page to write")
    add_jobs(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Score a model."""
    from limes.cli.models import open_model
    from limes.cli.scoring import score_file
    from limes.html_report import compare_answers

    models = [open_model(path, n_features=args.features) for path in _paths(args)]
    models[0].use_threads(args.jobs)
    options = row_options(
        args, n_features=models[0].width_of_rows(args.features), expected=models[0].names
    )
    scored = score_file(models, args.rows, options)
    if args.html is not None:
        _write_page(args, models[0].model, scored)
    result = compare_answers(scored.comparison)
    show(result, _as_text(result), as_json=args.json)
    return 0


def _paths(args: argparse.Namespace) -> list[Path]:
    """Return the models to open."""
    return [args.model] if args.source is None else [args.model, args.source]


def _write_page(args: argparse.Namespace, model: Any, scored: Any) -> None:
    """Write the page, whole or not at all."""
    from limes.atomic import replacing
    from limes.html_report import render

    page = render(model, *scored, title=f"{args.model.name} on {args.rows.name}")
    with replacing(args.html) as stream:
        stream.write(page.encode())


def _as_text(result: dict[str, Any]) -> str:
    """Return the scores as a table, the source before the model."""
    models = [result[role] for role in ("source", "model") if role in result]
    lines = (
        ("accuracy", "accuracy", "{:.4f}"),
        ("uncertainty_coefficient", "uncertainty coefficient", "{:.4f}"),
        ("brier_score", "Brier score", "{:.4f}"),
        ("microseconds_a_row", "microseconds a row", "{:.3g}"),
        ("n_bytes", "size in bytes", "{:,}"),
    )
    rows = [["", *(one["name"] for one in models)]]
    for key, label, form in lines:
        cells = ["-" if one[key] is None else form.format(one[key]) for one in models]
        rows.append([label, *cells])
    text = table(rows)
    if result["agreement"] is None:
        return f"{text}\n{result['n_rows']} rows."
    return (
        f"{text}\nSame label on {result['agreement']:.2%} of {result['n_rows']} rows, "
        f"{result['speed_up']:.3g} times as fast."
    )
