"""Rows, support vectors and border points of the sample classes: what two figures show."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from limes.accelerating import accelerate
from limes.atomic import replacing
from limes.datasets import SampleClassesClassifier
from limes.paper.cases import SAMPLE_CLASSES, load_case
from limes.paper.methods import PAPER_MODE
from limes.paper.rows import parse_cell, read_csv
from limes.plotting import border_points

# As many rows as the paper shows, and "several hundred" border points.
N_ROWS = 300
N_BORDERS = 400
COLUMNS = ["kind", "x", "y"]


class Point(NamedTuple):
    """One point: a row of "class 1" or "class 2", a "support vector", or of a border.

    The border from the definition of the classes is called "true border", that from the support
    vector machine "SVM border".
    """

    kind: str
    x: float
    y: float


def find_points(seed: int = 0) -> list[Point]:
    """Draw rows of the sample classes, train a machine, and find both borders."""
    case = load_case(SAMPLE_CLASSES, split=seed, n_train=N_ROWS)
    X, y, machine = case.problem.X_train, case.problem.y_train, case.machine
    borders = {
        "true border": _border(SampleClassesClassifier(), X, y, seed),
        "SVM border": _border(machine.pipeline, X, y, seed),
    }
    rows = {f"class {label}": X[y == label] for label in np.unique(y)}
    groups = rows | {"support vector": X[machine.model.support_]} | borders
    return [Point(kind, *map(float, place)) for kind, places in groups.items() for place in places]


def write_points(path: Path, points: Iterable[Point]) -> None:
    """Write points as comma-separated values."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(points)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as stream:
        stream.write(text.getvalue().encode())


def read_points(path: Path) -> list[Point]:
    """Read points, none where there is no file."""
    if not path.is_file():
        return []
    return [
        Point(str(line["kind"]), *(parse_cell(line[key] or "", key, place, float) for key in "xy"))
        for place, line in read_csv(path, [COLUMNS])
    ]


def _border(model: Any, X: Any, y: Any, seed: int) -> Any:
    """Return many border points of a classifier, as the paper places them."""
    fast = accelerate(model, X, y, n_borders=N_BORDERS, random_state=seed, **PAPER_MODE)
    return border_points(fast)[0]
