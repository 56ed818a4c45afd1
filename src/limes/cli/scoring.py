"""The answers of one or two models to a file of labelled rows, read in pieces."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from limes.cli.models import OpenModel
from limes.cli.terminal import Progress
from limes.files import RowOptions, join_labels, open_rows
from limes.html_report import Answers, Comparison, ask, time_models
from limes.html_report.page import name_of

# Rows kept for timing and for the picture: the first ones, as many as this.
N_KEPT = 5000


def score_file(models: list[OpenModel], path: Path, options: RowOptions) -> tuple[Comparison, Any]:
    """Ask models about all rows of a file.

    Parameters
    ----------
    models : list of OpenModel
        The one to score and, perhaps, its source.
    path : Path
        Rows with labels.
    options : RowOptions
        What the user said about them.

    Returns
    -------
    comparison : Comparison
        All answers, and the true labels.
    X : ndarray or csr_matrix
        The first rows.
    """
    truth: list[NDArray[Any]] = []
    found: list[list[tuple[Any, Any]]] = [[] for _ in models]
    kept: list[Any] = []
    with open_rows(path, options) as rows, Progress("scoring", rows.n_rows) as progress:
        for batch in rows:
            if batch.y is None:
                raise ValueError(
                    f"{path}: expected labels, found none: name their column with --label."
                )
            truth.append(batch.y)
            for place, model in enumerate(models):
                models[place], X = model.take(batch.X, path)
                found[place].append(ask(models[place].model, X))
            if sum(one.shape[0] for one in kept) < N_KEPT:
                kept.append(batch.X)
            progress.advance(batch.n_rows)
    if not truth:
        raise ValueError(f"{path}: expected rows, found none.")
    X = _first_rows(kept, models[0].n_features)
    return _compare(models, found, _check_labels(join_labels(truth), models[0], path), X), X


def _first_rows(parts: list[Any], n_features: int) -> Any:
    """Put the first pieces together, dense where that is small."""
    if not sparse.issparse(parts[0]):
        return np.concatenate(parts)[:N_KEPT]
    for part in parts:
        part.resize(part.shape[0], n_features)
    rows = sparse.vstack(parts, format="csr")[:N_KEPT]
    return rows.toarray() if rows.shape[0] * n_features < 1 << 24 else rows


def _check_labels(y: NDArray[Any], model: OpenModel, path: Path) -> NDArray[Any]:
    """Return true labels of the same kind as the model's: numbers, or text."""
    is_text = model.classes.dtype.kind in "UO"
    if is_text and y.dtype.kind != "U":
        return y.astype(str)
    if not is_text and y.dtype.kind == "U":
        raise ValueError(
            f"{path}: expected labels such as {model.classes[0]!r}, found {str(y[0])!r}."
        )
    return y


def _compare(
    models: list[OpenModel], found: list[list[tuple[Any, Any]]], y: NDArray[Any], X: Any
) -> Comparison:
    """Put answers, times and truth together."""
    fast, source = models[0].model, models[1].model if len(models) == 2 else None
    is_taken = all(model.takes_sparse for model in models) or not sparse.issparse(X)
    times = time_models(fast, source, X if is_taken else X.toarray())
    answers = [
        Answers(
            name_of(model.model),
            np.concatenate([labels for labels, _ in parts]),
            _join([probabilities for _, probabilities in parts]),
            *measured,
        )
        for model, parts, measured in zip(models, found, times, strict=True)
    ]
    return Comparison(answers[0], answers[1] if source is not None else None, y, fast.classes_)


def _join(parts: list[Any]) -> Any:
    """Put probabilities together, where there are any."""
    return None if parts[0] is None else np.concatenate(parts)
