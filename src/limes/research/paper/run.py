"""Run trials, one row each."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from limes._typing import Labels
from limes.classifier import accelerate
from limes.datasets import SampleClassesClassifier
from limes.plotting import border_points
from limes.research.paper.figures import FigurePoint
from limes.research.paper.methods import (
    METHODS,
    PAPER_MODE,
    MethodResult,
    PaperProblem,
    load_paper_problem,
)
from limes.research.paper.plan import SAMPLE_CLASSES, SAMPLE_TRAIN, Step, Trial, TrialRow
from limes.research.processor_time import limit_threads, time_alone
from limes.research.results import append_rows, check_writable, latest, read_rows
from limes.scores import accuracy_score, agreement, uncertainty_coefficient
from limes.versions import computer, package_versions

# As many rows as the paper shows, and "several hundred" border points.
N_ROWS = 300
N_BORDERS = 400


def run_plan(
    steps: Sequence[Step],
    path: Path,
    *,
    is_again: bool = False,
    log: Callable[[str], None] = print,
    advance: Callable[[int], None] = lambda seconds: None,
) -> list[str]:
    """Run all trials that a plan needs and a file does not have, and append their rows."""
    check_writable(path)
    rows = {row.trial: row for row in read_rows(path, TrialRow)}
    done: set[Trial] = set() if is_again else set(rows)
    failed: list[str] = []
    for step in steps:
        reported = 0
        for row in _attempt(step, rows, done, failed, log):
            # Outside of the attempt: a row that cannot be written ends the run.
            append_rows(path, [row])
            rows[row.trial] = row
            done.add(row.trial)
            log(_describe(row))
            reached = max(reported, int(step.seconds * _share_done(step, rows, done)))
            advance(reached - reported)
            reported = reached
        advance(step.seconds - reported)
    return failed


def pending_steps(steps: Sequence[Step], path: Path) -> list[Step]:
    """Leave out the steps whose trials are all in a file, so that the remaining time is known."""
    rows = latest(read_rows(path, TrialRow), key=lambda row: row.trial)
    done = {row.trial for row in rows}
    return [step for step in steps if not (needed := step.needed(rows)) or {*needed} - done]


def _attempt(
    step: Step,
    rows: dict[Trial, TrialRow],
    done: set[Trial],
    failed: list[str],
    log: Callable[[str], None],
) -> Iterator[TrialRow]:
    """Run the trials of one step, and record it if it fails."""
    try:
        yield from _run_step(step, rows, done)
    except Exception as error:  # such as a missing dataset: the other steps go on
        log(f"{step.title} failed: {type(error).__name__}: {error}")
        failed.append(step.title)


def _run_step(step: Step, rows: dict[Trial, TrialRow], done: set[Trial]) -> Iterator[TrialRow]:
    """Run the trials of one step, which may need others after each."""
    problems = _LastProblem()
    while remaining := [trial for trial in step.needed([*rows.values()]) if trial not in done]:
        yield run_trial(problems.load(remaining[0]), remaining[0])


class _LastProblem:
    """The problem of the trial before, which the next one mostly shares."""

    def __init__(self) -> None:
        self._key: tuple[str, int, int] | None = None
        self._problem: PaperProblem | None = None

    def load(self, trial: Trial) -> PaperProblem:
        """Return the problem of a trial."""
        n_train = SAMPLE_TRAIN
        if trial.experiment == "training" and trial.setting is not None:
            n_train = int(trial.setting)
        key = (trial.dataset, trial.split, n_train)
        if self._problem is None or key != self._key:
            self._problem = None  # frees its memory before the next one is loaded
            self._problem = load_paper_problem(trial.dataset, split=trial.split, n_train=n_train)
            self._key = key
        return self._problem


def _share_done(step: Step, rows: dict[Trial, TrialRow], done: set[Trial]) -> float:
    """Return the share of the trials that a step needs at present which are done."""
    needed = step.needed([*rows.values()])
    return sum(trial in done for trial in needed) / max(len(needed), 1)


def _describe(row: TrialRow) -> str:
    """Return the result of a trial in one line."""
    setting = "" if row.setting is None else f" {row.setting:.4g}"
    return (
        f"{row.dataset}, {row.method}{setting}, seed {row.seed}: U.C. "
        f"{row.uncertainty_coefficient:.3f}, trained in {row.train_seconds:.3g} s, "
        f"tested in {row.test_seconds:.3g} s"
    )


def run_trial(problem: PaperProblem, trial: Trial) -> TrialRow:
    """Train one method on a problem, and measure its skill and time with one thread.

    Examples
    --------
    >>> trial = Trial("results", "sample_classes", "svm", None, 0, 0)
    >>> run_trial(load_paper_problem("sample_classes", n_train=100), trial).n_train
    100
    """
    start = time.process_time()
    with limit_threads(1):
        result = METHODS[trial.method](problem, trial)
        labels = result.predict(result.rows) if result.labels is None else result.labels
        timing, timed_rows = time_alone(result.predict, result.rows)
        core = result.predict_in_core and time_alone(result.predict_in_core, result.rows)[0]
    return TrialRow(
        **trial._asdict(),
        **_size_columns(problem, result),
        **_skill_columns(problem, result, labels),
        train_seconds=result.train_seconds,
        test_seconds=timing.seconds,
        timed_rows=timed_rows,
        cpu_share=timing.cpu_share,
        core_seconds=core and core.seconds,
        model=result.model,
        versions=package_versions("scipy"),
        computer=computer(),
        timestamp=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        trial_seconds=time.process_time() - start,
    )


def _size_columns(problem: PaperProblem, result: MethodResult) -> dict[str, Any]:
    """Return the columns of sizes."""
    return {
        **problem.sizes,
        "n_train": result.n_train,
        "part": "part" if problem.is_partial else "whole",
        "n_support": result.n_support,
        "n_borders": result.n_borders,
    }


def _skill_columns(problem: PaperProblem, result: MethodResult, labels: Labels) -> dict[str, Any]:
    """Return the columns of skill."""
    truth, source_labels = problem.y_test, result.source_labels
    return {
        "accuracy": float(accuracy_score(truth, labels)),
        "uncertainty_coefficient": uncertainty_coefficient(truth, labels),
        "agreement": None if source_labels is None else agreement(source_labels, labels),
    }


def find_points(seed: int = 0) -> list[FigurePoint]:
    """Draw rows of the sample classes, train an SVM on them, and find both borders."""
    problem = load_paper_problem(SAMPLE_CLASSES, split=seed, n_train=N_ROWS)
    X, y, svm = problem.X_train, problem.y_train, problem.svm
    borders = {
        "true border": _border(SampleClassesClassifier(), X, y, seed),
        "SVM border": _border(svm.pipeline, X, y, seed),
    }
    rows = {f"class {label}": X[y == label] for label in np.unique(y)}
    groups = rows | {"support vector": X[svm.model.support_]} | borders
    return [FigurePoint(kind, *map(float, xy)) for kind, points in groups.items() for xy in points]


def _border(model: Any, X: Any, y: Any, seed: int) -> Any:
    """Return many border points of a classifier, placed as in the paper."""
    fast = accelerate(model, X, y, n_borders=N_BORDERS, random_state=seed, **PAPER_MODE)
    return border_points(fast)[0]
