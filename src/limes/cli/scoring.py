"""The answers of one or two models to a file of labelled rows, read in pieces."""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from limes.cli.models import OpenModel
from limes.cli.terminal import Progress
from limes.files import LabelParts, RowOptions, join_labels, open_rows
from limes.html_report import Answers, Comparison, Counted, Tally, ask, time_models
from limes.html_report.page import name_of

# Rows kept for timing and for the picture: the first ones, as many as this.
N_KEPT = 5000


class Scored(NamedTuple):
    """A comparison, and the first rows with their labels, for the picture."""

    comparison: Comparison
    rows: Any
    labels: NDArray[Any]


def score_file(models: list[OpenModel], path: Path, options: RowOptions) -> Scored:
    """Ask models about all rows of a file, and count what they answer."""
    truth = LabelParts()
    tallies = [Tally(models[0].classes) for _ in models]
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
                labels, probabilities = ask(models[place].model, X)
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


def _compare(models: list[OpenModel], counted: list[Counted], n_same: int, X: Any) -> Comparison:
    """Put answers and times together."""
    fast, source = models[0].model, models[1].model if len(models) == 2 else None
    is_taken = all(model.takes_sparse for model in models) or not sparse.issparse(X)
    times = time_models(fast, source, X if is_taken else X.toarray())
    answers = [
        Answers(name_of(model.model), own, *measured)
        for model, own, measured in zip(models, counted, times, strict=True)
    ]
    return Comparison(answers[0], answers[1] if source is not None else None, fast.classes_, n_same)
