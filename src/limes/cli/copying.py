"""Rows from one file to another, in pieces: all of them, or those that were chosen."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from limes.cli.terminal import Progress
from limes.files import LabelParts, RowOptions, create_rows, join_labels, open_rows


@dataclass(frozen=True, eq=False)
class Scan:
    """What a first reading of a file tells."""

    # Of the whole file.
    n_rows: int
    n_features: int
    # Shape (n_rows,). Of one type; None where the file has none.
    labels: NDArray[Any] | None


def scan_rows(path: Path, options: RowOptions) -> Scan:
    """Read a file for its labels and its width."""
    if str(path) == "-":
        raise ValueError("the rows are read twice, so they must be in a file, got '-'.")
    n_rows = n_features = 0
    labels = LabelParts()
    with open_rows(path, options) as rows, Progress(f"reading {path}", rows.n_rows) as progress:
        for batch in rows:
            n_rows += batch.n_rows
            n_features = max(n_features, batch.X.shape[1])
            labels.add(batch.y)
            progress.advance(batch.n_rows)
    return Scan(n_rows, n_features, labels.join())


def copy_rows(
    path: Path,
    output: Path,
    options: RowOptions,
    *,
    kind: str | None = None,
    scan: Scan | None = None,
    chosen: NDArray[np.intp] | None = None,
) -> int:
    """Copy rows."""
    n_before = n_copied = 0
    with (
        open_rows(path, options) as rows,
        create_rows(output, kind=kind, names=rows.names) as writer,
        Progress(f"writing {output}", scan.n_rows if scan else rows.n_rows) as progress,
    ):
        for batch in rows:
            X, y = _settle(batch, scan, n_before)
            if chosen is not None:
                own = slice(*np.searchsorted(chosen, [n_before, n_before + batch.n_rows]))
                kept = chosen[own] - n_before
                X, y = X[kept], None if y is None else y[kept]
            if X.shape[0]:
                writer.write(X, y)
            n_before += batch.n_rows
            n_copied += X.shape[0]
            progress.advance(batch.n_rows)
    if not n_copied:
        raise ValueError(f"{path}: expected rows, found none.")
    return n_copied


def _settle(batch: Any, scan: Scan | None, n_before: int) -> tuple[Any, Any]:
    """Give a piece the width and the type of label of the whole file."""
    X, y = batch.X, batch.y
    if scan is None:
        return X, None if y is None else join_labels([y])
    if sparse.issparse(X):
        X.resize(X.shape[0], scan.n_features)
    labels = scan.labels
    return X, None if labels is None else labels[n_before : n_before + batch.n_rows]
