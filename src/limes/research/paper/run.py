"""Run trials, one row each."""

import csv
import io
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from limes.atomic import atomic_write
from limes.classifier import accelerate
from limes.datasets import SampleClassesClassifier
from limes.plotting import border_points
from limes.research.measure import _time, limit_threads
from limes.research.paper.figures import COLUMNS, Point
from limes.research.paper.methods import METHODS, PAPER_MODE, Answer, Case, load_case
from limes.research.paper.plan import SAMPLE_CLASSES, SAMPLE_TRAIN, Step
from limes.research.paper.rows import Candidate, Row, append_row, check_writable, latest, read_rows
from limes.scores import accuracy_score, agreement, uncertainty_coefficient
from limes.versions import machine, package_versions

# As many rows as the paper shows, and "several hundred" border points.
N_ROWS = 300
N_BORDERS = 400


def find_points(seed: int = 0) -> list[Point]:
    """Draw rows of the sample classes, train a machine, and find both borders."""
    case = load_case(SAMPLE_CLASSES, split=seed, n_train=N_ROWS)
    X, y, svm = case.problem.X_train, case.problem.y_train, case.svm
    borders = {
        "true border": _border(SampleClassesClassifier(), X, y, seed),
        "SVM border": _border(svm.pipeline, X, y, seed),
    }
    rows = {f"class {label}": X[y == label] for label in np.unique(y)}
    groups = rows | {"support vector": X[svm.model.support_]} | borders
    return [Point(kind, *map(float, place)) for kind, places in groups.items() for place in places]


def write_points(path: Path, points: Iterable[Point]) -> None:
    """Write points as comma-separated values."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(points)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as stream:
        stream.write(text.getvalue().encode())


def _border(model: Any, X: Any, y: Any, seed: int) -> Any:
    """Return many border points of a classifier, as the paper places them."""
    fast = accelerate(model, X, y, n_borders=N_BORDERS, random_state=seed, **PAPER_MODE)
    return border_points(fast)[0]


def run_plan(
    steps: Sequence[Step],
    path: Path,
    *,
    is_again: bool = False,
    say: Callable[[str], None] = print,
    advance: Callable[[int], None] = lambda seconds: None,
) -> list[str]:
    """Run all trials that are wanted and not there yet, and add their rows to a file."""
    check_writable(path)
    rows = {row.trial: row for row in latest(read_rows(path))}
    done: set[Candidate] = set() if is_again else set(rows)
    failed: list[str] = []
    for step in steps:
        told = 0
        for row in _attempt(step, rows, done, failed, say):
            # Outside of the attempt: a row that cannot be kept ends the run.
            append_row(path, row)
            rows[row.trial] = row
            done.add(row.trial)
            say(_describe(row))
            reached = max(told, int(step.seconds * _share_done(step, rows, done)))
            advance(reached - told)
            told = reached
        advance(step.seconds - told)
    return failed


def pending_steps(steps: Sequence[Step], path: Path) -> list[Step]:
    """Leave out the steps whose trials are all in a file, so that the time left can be told."""
    rows = latest(read_rows(path))
    done = {row.trial for row in rows}
    return [step for step in steps if not (wanted := step.wanted(rows)) or {*wanted} - done]


def _attempt(
    step: Step,
    rows: dict[Candidate, Row],
    done: set[Candidate],
    failed: list[str],
    say: Callable[[str], None],
) -> Iterator[Row]:
    """Run the trials of one step, and note it where it fails."""
    try:
        yield from _run_step(step, rows, done)
    except Exception as error:  # a dataset that is not there, or a fault: the others go on
        say(f"{step.title} failed: {type(error).__name__}: {error}")
        failed.append(step.title)


def _run_step(step: Step, rows: dict[Candidate, Row], done: set[Candidate]) -> Iterator[Row]:
    """Run the trials of one step, which may want others after each."""
    cases = _LastCase()
    while trial := next((one for one in step.wanted([*rows.values()]) if one not in done), None):
        yield run_trial(cases.load(trial), trial)


def _share_done(step: Step, rows: dict[Candidate, Row], done: set[Candidate]) -> float:
    """Return how much of what a step wants at the moment is there."""
    wanted = step.wanted([*rows.values()])
    return sum(trial in done for trial in wanted) / max(len(wanted), 1)


class _LastCase:
    """The case of the trial before, which the next one mostly shares."""

    def __init__(self) -> None:
        self._key: tuple[str, int, int] | None = None
        self._case: Case | None = None

    def load(self, trial: Candidate) -> Case:
        """Return the case of a trial."""
        n_train = SAMPLE_TRAIN
        if trial.experiment == "training" and trial.setting is not None:
            n_train = int(trial.setting)
        key = (trial.dataset, trial.split, n_train)
        if self._case is None or key != self._key:
            self._case = None  # two large ones need not be in memory
            self._case = load_case(trial.dataset, split=trial.split, n_train=n_train)
            self._key = key
        return self._case


def _describe(row: Row) -> str:
    """Tell in a line what came out."""
    setting = "" if row.setting is None else f" {row.setting:.4g}"
    return (
        f"{row.dataset}, {row.method}{setting}, seed {row.seed}: U.C. "
        f"{row.uncertainty_coefficient:.3f}, trained in {row.train_seconds:.3g} s, "
        f"tests in {row.test_seconds:.3g} s"
    )


def run_trial(case: Case, trial: Candidate) -> Row:
    """Train one method on a case, and measure its skill and time with one thread.

    Examples
    --------
    >>> from limes.paper.cases import load_case
    >>> trial = Candidate("results", "sample_classes", "svm", None, 0, 0)
    >>> run_trial(load_case("sample_classes", n_train=100), trial).n_train
    100
    """
    start = time.process_time()
    with limit_threads(1):
        answer = METHODS[trial.method](case, trial)
        labels = answer.ask(answer.rows) if answer.labels is None else answer.labels
        timing, timed_rows = _time(answer.ask, answer.rows)
        exact = answer.ask_exactly and _time(answer.ask_exactly, answer.rows)[0]
    return Row(
        **trial._asdict(),
        **_sizes(case, answer),
        **_skill(case, answer, labels),
        train_seconds=answer.train_seconds,
        test_seconds=timing.seconds,
        timed_rows=timed_rows,
        cpu_share=timing.cpu_share,
        exact_seconds=exact and exact.seconds,
        model=answer.model,
        versions=package_versions("scipy"),
        machine=machine(),
        moment=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        trial_seconds=time.process_time() - start,
    )


def _sizes(case: Case, answer: Answer) -> dict[str, Any]:
    """Return the columns that tell how large everything is."""
    return {
        **case.problem.sizes,
        "n_train": answer.n_train,
        "part": "part" if case.is_partial else "whole",
        "n_support": answer.n_support,
        "n_borders": answer.n_borders,
    }


def _skill(case: Case, answer: Answer, labels: Any) -> dict[str, Any]:
    """Return the columns that tell how good the answers are."""
    truth, source = case.problem.y_test, answer.source_labels
    return {
        "accuracy": float(accuracy_score(truth, labels)),
        "uncertainty_coefficient": uncertainty_coefficient(truth, labels),
        "agreement": None if source is None else agreement(source, labels),
    }
