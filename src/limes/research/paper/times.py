"""Time of an SVM and of borders against their size, and the sizes at which both take as long."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from limes.classifier import accelerate
from limes.research.paper.plan import SAMPLE_CLASSES
from limes.research.paper.run import PAPER_MODE, PaperProblem, load_paper_problem
from limes.research.processor_time import limit_threads
from limes.research.results import append_rows, latest, read_rows, select
from limes.timing import time_in_turns
from limes.versions import computer, package_versions

N_SEEDS = 3
# Training rows of the SVMs, whose support vectors are counted.
TRAINING_ROWS = (50, 100, 200, 300, 500, 1000, 2000, 5000, 10_000, 20_000)
# Border points: up to maps that take longer than the largest SVM.
BORDER_POINTS = (10, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 700_000)
# Training rows of the SVM whose border is mapped, and rows that border points are searched between.
MAPPED_ROWS, PAIR_ROWS = 300, 20_000
BATCH_ROWS = 2000
N_TURNS = 5


@dataclass(frozen=True)
class TimeRow:
    """Processor time of one model of the sample classes.

    Parameters
    ----------
    method : str
        "svm", LIBSVM through scikit-learn, or "borders", in the paper's mode.
    seed : int
        Of rows and choices.
    n_train : int
        Training rows of the SVM, or of the SVM whose border is mapped.
    size : int
        Support vectors or border points.
    single_microseconds, batch_microseconds : float
        Of a call of ``predict`` with one row, and per row of a call with 2000.
    versions, computer, timestamp : str
        As of all results.
    """

    method: str
    seed: int
    n_train: int
    size: int
    single_microseconds: float
    batch_microseconds: float
    versions: str
    computer: str
    timestamp: str


class TimedModel(NamedTuple):
    """A model and the rows that it is timed on, in the form that it takes."""

    method: str
    n_train: int
    size: int
    predict: Callable[[Any], Any]
    rows: Any


def run_times(
    path: Path,
    *,
    n_seeds: int = N_SEEDS,
    is_again: bool = False,
    log: Callable[[str], None] = print,
) -> None:
    """Measure the seeds that a file does not have, and append their rows."""
    done = set() if is_again else {row.seed for row in read_rows(path, TimeRow)}
    for seed in range(n_seeds):
        if seed not in done:
            rows = measure_times(seed)
            append_rows(path, rows)
            log(f"times of {len(rows)} models, seed {seed}")


def read_times(path: Path) -> list[TimeRow]:
    """Read the latest time of each model."""
    rows = read_rows(path, TimeRow)
    return latest(rows, key=lambda row: (row.method, row.seed, row.n_train, row.size))


def measure_times(
    seed: int,
    *,
    training_rows: Sequence[int] = TRAINING_ROWS,
    border_points: Sequence[int] = BORDER_POINTS,
) -> list[TimeRow]:
    """Time SVMs and borders of all sizes in turns, with one thread."""
    models = [_svm(n_train, seed) for n_train in training_rows]
    mapped = load_paper_problem(SAMPLE_CLASSES, split=seed, n_train=MAPPED_ROWS)
    pairs = load_paper_problem(SAMPLE_CLASSES, split=seed, n_train=PAIR_ROWS)
    models += [_borders(mapped, pairs, n_points, seed) for n_points in border_points]
    calls = [
        partial(model.predict, model.rows[:n_rows]) for model in models for n_rows in (1, None)
    ]
    with limit_threads(1):
        timings = time_in_turns(calls, n_turns=N_TURNS)
    # Processor time, which other programs do not lengthen.
    seconds = [timing.seconds * min(timing.cpu_share, 1.0) for timing in timings]
    return [
        TimeRow(
            *model[:1],
            seed,
            model.n_train,
            model.size,
            single_microseconds=1e6 * single,
            batch_microseconds=1e6 * batch / len(model.rows),
            versions=package_versions("scipy"),
            computer=computer(),
            timestamp=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        )
        for model, single, batch in zip(models, seconds[::2], seconds[1::2], strict=True)
    ]


def _svm(n_train: int, seed: int) -> TimedModel:
    """Train an SVM."""
    problem = load_paper_problem(SAMPLE_CLASSES, split=seed, n_train=n_train)
    model = problem.svm.model
    rows = problem.test_rows(np.float64)[:BATCH_ROWS]
    return TimedModel("svm", n_train, len(model.support_), model.predict, rows)


def _borders(mapped: PaperProblem, pairs: PaperProblem, n_points: int, seed: int) -> TimedModel:
    """Find many border points of a small SVM."""
    fast = accelerate(
        mapped.svm.pipeline,
        pairs.X_train,
        pairs.y_train,
        n_borders=n_points,
        random_state=seed,
        **PAPER_MODE,
    )
    rows = pairs.X_test[:BATCH_ROWS].astype(np.float32)
    return TimedModel("borders", MAPPED_ROWS, fast.n_borders_, fast.predict, rows)


class Line(NamedTuple):
    """y = intercept + slope x."""

    slope: float
    intercept: float


def fit_line(x: Sequence[float], y: Sequence[float]) -> Line:
    """Fit a straight line by least squares of the relative differences.

    Otherwise the times of large models would determine the fit alone, and the intercept would be
    noise.

    Examples
    --------
    >>> line = fit_line([1, 2, 3], [5, 7, 9])
    >>> round(line.slope, 6), round(line.intercept, 6)
    (2.0, 3.0)
    """
    slope, intercept = np.polyfit(x, y, 1, w=1 / np.asarray(y, dtype=np.float64))
    return Line(float(slope), float(intercept))


class Times(NamedTuple):
    """Sizes of one method in ascending order, and the shortest time of each."""

    sizes: list[float]
    microseconds: list[float]

    @property
    def line(self) -> Line:
        """The straight line through them."""
        return fit_line(self.sizes, self.microseconds)

    @property
    def deviation(self) -> float:
        """The largest difference from that line, as a share of the time."""
        line, times = self.line, np.array(self.microseconds)
        fitted = line.intercept + line.slope * np.array(self.sizes)
        return float(np.max(np.abs(fitted - times) / times))


def shortest_times(rows: Sequence[TimeRow], method: str, column: str) -> Times:
    """Return mean sizes and shortest times over the seeds, in the order of size."""
    own = select(rows, method=method)
    key = "n_train" if method == "svm" else "size"
    groups = [select(own, **{key: value}) for value in sorted({getattr(row, key) for row in own})]
    sizes = [float(np.mean([row.size for row in group])) for group in groups]
    return Times(sizes, [min(getattr(row, column) for row in group) for group in groups])


class BreakEvenPoint(NamedTuple):
    """A number of support vectors, and the border points that take as long."""

    n_support: float
    n_borders: float


def measured_break_even(svm: Times, borders: Times) -> list[BreakEvenPoint]:
    """Return the break-even of each SVM that takes as long as borders between two measured sizes.

    Times of borders are interpolated in the logarithms between neighbouring sizes, never beyond
    the smallest and the largest.

    Examples
    --------
    >>> measured_break_even(Times([10, 50], [4.0, 9.0]), Times([100, 400], [2.0, 8.0]))
    [BreakEvenPoint(n_support=10, n_borders=200.0)]
    """
    # Shorter times of larger models are noise.
    times = np.maximum.accumulate(borders.microseconds)
    points = []
    for n_support, microseconds in zip(*svm, strict=True):
        if times[0] < microseconds < times[-1]:
            logarithm = np.interp(np.log(microseconds), np.log(times), np.log(borders.sizes))
            points.append(BreakEvenPoint(n_support, float(round(np.exp(logarithm), 6))))
    return points


def break_even_line(svm: Times, borders: Times) -> Line:
    """Return border points against support vectors from the two fitted lines, as in the paper."""
    slow, fast = svm.line, borders.line
    return Line(slow.slope / fast.slope, (slow.intercept - fast.intercept) / fast.slope)
