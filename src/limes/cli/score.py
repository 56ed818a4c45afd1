"""`limes score`."""

import argparse
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from limes.cli.main import add_command, add_jobs, add_rows, row_options
from limes.cli.models import OpenModel
from limes.cli.terminal import Progress, show, table
from limes.files import LabelCollector, RowOptions, join_labels, open_rows
from limes.report import (
    Comparison,
    ModelScores,
    PredictionCounter,
    PredictionCounts,
    model_bytes,
    model_name,
    predict_all,
    time_models,
)

# Rows kept for timing and for the picture: the first ones, as many as this.
N_KEPT = 5000


def add_parser(jobs: Any) -> None:
    """Describe the job."""
    parser = add_command(
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

    models = [open_model(path, n_features=args.features) for path in _paths(args)]
    models[0].use_threads(args.jobs)
    options = row_options(
        args, n_features=models[0].width_of_rows(args.features), expected=models[0].names
    )
    scored = score_file(models, args.rows, options)
    if args.html is not None:
        _write_page(args, models[0].model, scored)
    comparison = scored.comparison
    result = comparison.to_dict()
    result["model"] = result.pop("fast")
    show(result, f"{table(comparison.table())}\n{comparison.summary()}", as_json=args.json)
    return 0


def _paths(args: argparse.Namespace) -> list[Path]:
    """Return the models to open."""
    return [args.model] if args.source is None else [args.model, args.source]


def _write_page(args: argparse.Namespace, model: Any, scored: Any) -> None:
    """Write the page, whole or not at all."""
    from limes.atomic import atomic_write
    from limes.html_report import render

    page = render(model, *scored, title=f"{args.model.name} on {args.rows.name}")
    with atomic_write(args.html) as stream:
        stream.write(page.encode())


class Scored(NamedTuple):
    """A comparison, and the first rows with their labels, for the picture."""

    comparison: Comparison
    rows: Any
    labels: NDArray[Any]


def score_file(models: list[OpenModel], path: Path, options: RowOptions) -> Scored:
    """Ask models about all rows of a file, and count what they answer."""
    truth = LabelCollector()
    tallies = [PredictionCounter(models[0].classes) for _ in models]
    kept: list[Any] = []
    n_same = n_kept = 0
    with open_rows(path, options) as rows, Progress("scoring", rows.n_rows) as progress:
        for batch in rows:
            if batch.y is None:
                raise ValueError(
                    f"{path}: expected labels, found none: name their column with --label."
                )
            given = []
            for place, model in enumerate(models):
                models[place], X = model.take(batch.X, path)
                labels, probabilities = predict_all(models[place].model, X)
                tallies[place].add(batch.y, labels, probabilities)
                given.append(labels)
            n_same += int(np.sum(given[0] == given[-1]))
            if n_kept < N_KEPT:
                kept.append(batch.X)
                truth.add(batch.y)
                n_kept += batch.n_rows
            progress.advance(batch.n_rows)
    shown = truth.join()
    if shown is None:
        raise ValueError(f"{path}: expected rows, found none.")
    X = _first_rows(kept, models[0].n_features)
    counted = [tally.sum_up(partial(_as_labels, model=models[0], path=path)) for tally in tallies]
    return Scored(_compare(models, counted, n_same, X), X, _like(shown, models[0]))


def _first_rows(parts: list[Any], n_features: int) -> Any:
    """Put the first pieces together, dense where that is small."""
    if not sparse.issparse(parts[0]):
        return np.concatenate(parts)[:N_KEPT]
    for part in parts:
        part.resize(part.shape[0], n_features)
    rows = sparse.vstack(parts, format="csr")[:N_KEPT]
    return rows.toarray() if rows.shape[0] * n_features < 1 << 24 else rows


def _as_labels(truths: NDArray[Any], *, model: OpenModel, path: Path) -> NDArray[Any]:
    """Return true labels of the same kind as the model's: numbers, or text."""
    y = _like(join_labels([truths]), model)
    if y.dtype.kind == "U" and model.classes.dtype.kind not in "UO":
        raise ValueError(
            f"{path}: expected labels such as {model.classes[0]!r}, found {str(y[0])!r}."
        )
    return y


def _like(y: NDArray[Any], model: OpenModel) -> NDArray[Any]:
    """Return labels as text where the model's are."""
    is_text = model.classes.dtype.kind in "UO"
    return y.astype(str) if is_text and y.dtype.kind != "U" else y


def _compare(
    models: list[OpenModel], counted: list[PredictionCounts], n_same: int, X: Any
) -> Comparison:
    """Put answers and times together."""
    is_taken = all(model.takes_sparse for model in models) or not sparse.issparse(X)
    fitted = [model.model for model in models]
    times = time_models([model.predict for model in fitted], X if is_taken else X.toarray())
    scores = [
        ModelScores(model_name(model), counts, microseconds, model_bytes(model))
        for model, counts, microseconds in zip(fitted, counted, times, strict=True)
    ]
    return Comparison(scores[0], scores[1] if len(scores) == 2 else None, n_same)
