"""`limes score`: measure skill, agreement and speed on labelled rows."""

import argparse
import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from limes.cli.main import add_command, add_rows, add_scaling, add_threads, row_options
from limes.cli.terminal import Progress, show, table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limes.cli.models import OpenModel
    from limes.files import RowOptions
    from limes.report import Comparison, PredictionCounts

# Number of rows, from the first on, for timing and for the picture.
N_SAMPLE = 5000
# Sparse rows of the sample with fewer values become dense.
MAX_DENSE_VALUES = 1 << 24


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "score",
        help="measure skill, agreement and speed on labelled rows",
        description="Predict a file of labelled rows, in batches, and print accuracy, uncertainty "
        "coefficient, area under the ROC\ncurve (one class against the rest, mean over the "
        "classes), Brier score and time; with --source also those of\nthe replaced model, and "
        "the share of rows with the same label. --html writes a page with confusion\nmatrices, "
        "ROC curves, reliability diagram and a picture of the borders (needs matplotlib, "
        "limes[plot]).",
        example="limes score sat.limes sat.t --source sat.model --html report.html",
    )
    parser.add_argument("model", metavar="MODEL", type=Path, help="classifier")
    add_rows(parser, help="file of rows with labels")
    parser.add_argument("--source", metavar="MODEL", type=Path, help="the replaced classifier")
    parser.add_argument("--html", metavar="PAGE", type=Path, help="page to write")
    add_scaling(parser, model="the source")
    add_threads(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Score a model."""
    from limes.cli.models import open_model

    paths = [args.model] if args.source is None else [args.model, args.source]
    models = [open_model(path, n_features=args.features) for path in paths[:-1]]
    models.append(open_model(paths[-1], n_features=args.features, scaling=args.scaling))
    models[0].use_threads(args.jobs)
    options = row_options(
        args,
        n_features=models[0].n_features_of_text(args.features),
        first_index=models[0].first_index,
        expected=models[0].names,
    )
    scored = score_file(models, args.rows, options)
    if args.html is not None:
        _write_page(args, models[0].model, scored)
    comparison = scored.comparison
    result = comparison.to_dict()
    result["model"] = result.pop("fast")
    text = "\n".join([table(comparison.table()), *comparison.sentences()])
    show(result, text, as_json=args.json)
    return 0


class Scored(NamedTuple):
    """A comparison, and the first rows with their labels, for the picture."""

    comparison: "Comparison"
    rows: Any
    labels: "NDArray[Any]"


def score_file(models: "list[OpenModel]", path: Path, options: "RowOptions") -> Scored:
    """Predict all rows of a file with each model, and count the predictions."""
    from limes.files import LabelCollector, open_rows
    from limes.report import PredictionCounter, predict_all

    convert = partial(_as_labels, model=models[0], path=path)
    counters = [PredictionCounter(models[0].classes, convert) for _ in models]
    sample: list[Any] = []
    sample_labels = LabelCollector()
    n_same = n_sample = 0
    with open_rows(path, options) as rows, Progress("scoring", rows.n_rows) as progress:
        for batch in rows:
            if batch.y is None:
                raise ValueError(
                    f"{path}: expected labels, found none: name their column with --label."
                )
            predicted = []
            for number, model in enumerate(models):
                models[number], X = model.align(batch.X, path)
                labels, probabilities = predict_all(models[number].model, X)
                counters[number].add(batch.y, labels, probabilities)
                predicted.append(labels)
            n_same += int((predicted[0] == predicted[-1]).sum())
            if n_sample < N_SAMPLE:
                sample.append(batch.X)
                sample_labels.add(batch.y)
                n_sample += batch.n_rows
            progress.advance(batch.n_rows)
    y = sample_labels.join()
    if y is None:
        raise ValueError(f"{path}: expected rows, found none.")
    X = _join_sample(sample, models[0].n_features)
    counts = [counter.sum_up() for counter in counters]
    return Scored(_compare(models, counts, n_same, X), X, _like_classes(y, models[0]))


def _join_sample(batches: list[Any], n_features: int) -> Any:
    """Return the first rows of the batches, as dense ones if that is small."""
    import numpy as np
    from scipy import sparse

    if not sparse.issparse(batches[0]):
        return np.concatenate(batches)[:N_SAMPLE]
    for batch in batches:
        batch.resize(batch.shape[0], n_features)
    rows = sparse.vstack(batches, format="csr")[:N_SAMPLE]
    return rows.toarray() if rows.shape[0] * n_features < MAX_DENSE_VALUES else rows


def _as_labels(truths: "NDArray[Any]", *, model: "OpenModel", path: Path) -> "NDArray[Any]":
    """Return true labels of the type of the model's classes."""
    from limes.files import join_labels

    y = _like_classes(join_labels([truths]), model)
    if y.dtype.kind == "U" and model.classes.dtype.kind not in "UO":
        raise ValueError(
            f"{path}: expected labels such as {model.classes[0]!r}, found {str(y[0])!r}."
        )
    return y


def _like_classes(y: "NDArray[Any]", model: "OpenModel") -> "NDArray[Any]":
    """Return labels as text if the classes of the model are text."""
    is_text = model.classes.dtype.kind in "UO"
    return y.astype(str) if is_text and y.dtype.kind != "U" else y


def _compare(
    models: "list[OpenModel]", counts: "list[PredictionCounts]", n_same: int, X: Any
) -> "Comparison":
    """Time the models and return their scores."""
    from scipy import sparse

    from limes.report import (
        Comparison,
        ModelScores,
        model_bytes,
        model_name,
        time_models,
        with_fit_notes,
    )
    from limes.sources.exact import exact_predict

    is_accepted = all(model.takes_sparse for model in models) or not sparse.issparse(X)
    fitted = [model.model for model in models]
    exact = exact_predict(fitted[0], fitted[1] if len(fitted) == 2 else None)
    predicts = [*(model.predict for model in fitted), *([] if exact is None else [exact])]
    times = time_models(predicts, X if is_accepted else X.toarray())
    scores = [
        ModelScores(model_name(model), model_counts, microseconds, model_bytes(model))
        for model, model_counts, microseconds in zip(fitted, counts, times, strict=False)
    ]
    comparison = Comparison(
        scores[0],
        scores[1] if len(scores) == 2 else None,
        n_same,
        getattr(fitted[0], "fit_seconds_", math.nan),
        None if exact is None else times[-1],
    )
    return with_fit_notes(comparison, fitted[0])


def _write_page(args: argparse.Namespace, model: Any, scored: Scored) -> None:
    """Write the page."""
    from limes.atomic import atomic_write
    from limes.html_report import render

    page = render(model, *scored, title=f"{args.model.name} on {args.rows.name}")
    with atomic_write(args.html) as stream:
        stream.write(page.encode())
