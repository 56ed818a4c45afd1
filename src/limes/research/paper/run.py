"""The paper's methods on a dataset, run as trials, one row each."""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC

from limes._typing import Labels
from limes.agf import AGFClassifier
from limes.classifier import BordersClassifier, accelerate
from limes.datasets import SampleClassesClassifier, list_datasets, parameters, sample_classes
from limes.libsvm.training import liblinear_classifier
from limes.plotting import border_points
from limes.research.bench.methods import svc
from limes.research.paper.plan import (
    SAMPLE_CLASSES,
    SAMPLE_TEST,
    SAMPLE_TRAIN,
    UNFINISHED,
    FigurePoint,
    Step,
    Trial,
    TrialRow,
)
from limes.research.problems import Problem, load_problem
from limes.research.processor_time import limit_threads, time_alone
from limes.research.results import append_rows, check_writable, latest, read_rows
from limes.scores import accuracy_score, agreement, uncertainty_coefficient
from limes.sources.base import SourceContext, as_source
from limes.sources.svm import svm_from_sklearn
from limes.subsample import subsample_rows
from limes.versions import computer, package_versions

# The paper does not print how its SVM for the sample classes was trained. With these, on
# standardised rows, it has the printed number of support vectors.
SAMPLE_C, SAMPLE_GAMMA = 20.0, 0.2
SAMPLE_BORDERS = 100
SAMPLE_LINEAR_TYPE = 2
# Test rows are drawn with seeds that no training rows have.
TEST_SEED = 1_000_000
# Nearest training rows that count in AGF: all of them take minutes on humidity, and give the same
# labels but for a few.
AGF_NEIGHBORS = 100
# Everything as in the paper: a map for each pair of classes, points between random rows of the
# two, only the nearest one evaluated, the border where the probabilities are equal.
PAPER_MODE: dict[str, Any] = {
    "scheme": "pairwise",
    "placement": "random",
    "blend": 1,
    "refine": False,
    "border": "probability",
}
# Datasets whose smallest class would vanish from a small fraction.
UNEVEN = ("shuttle",)


@dataclass(frozen=True, eq=False)
class PaperProblem(Problem):
    """Rows and labels, with the sources that several methods share, trained when first used."""

    # Whether only some rows of the dataset are available.
    is_partial: bool = False

    @cached_property
    def svm(self) -> "TrainedSource":
        """The SVM on all training rows."""
        return train_svm(self, np.arange(len(self.y_train)))

    @cached_property
    def agf(self) -> "TrainedSource":
        """The AGF classifier on standardised rows."""
        start = time.process_time()
        model = AGFClassifier(n_neighbors=min(AGF_NEIGHBORS, len(self.y_train)))
        model.fit(self.train_rows(np.float64), self.y_train)
        seconds = time.process_time() - start
        return TrainedSource(model, model.predict(self.test_rows(np.float64)), seconds, self.scaler)


@dataclass(frozen=True, eq=False)
class TrainedSource:
    """A source, its predictions for the test rows, and the seconds of its training."""

    model: Any
    labels: Labels
    seconds: float
    scaler: Pipeline

    @property
    def pipeline(self) -> Pipeline:
        """The same for raw rows."""
        return make_pipeline(self.scaler, self.model)


@dataclass(frozen=True, eq=False)
class MethodResult:
    """What a method returns."""

    # From rows to labels: this is timed.
    predict: Callable[[Any], Any]
    # Shape (n_test, n_features). The test rows in the form that the method takes.
    rows: NDArray[Any]
    # Time of the fit.
    train_seconds: float
    # Training rows.
    n_train: int
    # Shape (n_test,). Its predictions, if they are not those of `predict`.
    labels: Labels | None = None
    # Shape (n_test,). Predictions of the source, if there is one.
    source_labels: Labels | None = None
    # The same SVM summed in limes' core.
    predict_in_core: Callable[[Any], Any] | None = None
    n_support: int | None = None
    n_borders: int | None = None
    # Description of the model.
    model: str = ""


Method = Callable[[PaperProblem, Trial], MethodResult]


def load_paper_problem(
    dataset: str, *, split: int = 0, n_train: int = SAMPLE_TRAIN
) -> PaperProblem:
    """Load a dataset, or draw the sample classes.

    Examples
    --------
    >>> load_paper_problem("sample_classes", n_train=300).X_train.shape
    (300, 2)
    """
    if dataset != SAMPLE_CLASSES:
        problem = load_problem(dataset, seed=split)
        values = {field.name: getattr(problem, field.name) for field in fields(problem)}
        return PaperProblem(**values, is_partial=_is_partial(dataset))
    X, y = sample_classes(n_train, random_state=split)
    X_test, y_test = sample_classes(SAMPLE_TEST, random_state=split + TEST_SEED)
    return PaperProblem(dataset, X, y, X_test, y_test, SAMPLE_C, SAMPLE_GAMMA, split)


@cache
def _is_partial(dataset: str) -> bool:
    """Return whether only a part of a dataset is available on this computer."""
    return any(entry.is_partial for entry in list_datasets() if entry.name == dataset)


def train_svm(problem: Problem, row_index: NDArray[np.intp]) -> TrainedSource:
    """Train an SVM on the chosen training rows."""
    rows, labels = problem.train_rows(np.float64)[row_index], problem.y_train[row_index]
    start = time.process_time()
    model = svc(problem).fit(rows, labels)
    seconds = time.process_time() - start
    # Summed in the core, LIBSVM's model gives the same labels in a fraction of the time.
    test_labels = core_predictor(model)(problem.test_rows(np.float64))
    return TrainedSource(model, test_labels, seconds, problem.scaler)


def core_predictor(model: SVC) -> Callable[[NDArray[np.float64]], Labels]:
    """Return a function that gives the labels of an SVM, summed in limes' core."""
    trained_svm = svm_from_sklearn(model)

    def predict(X: NDArray[np.float64]) -> Labels:
        return model.classes_[trained_svm.predict_index(X)]

    return predict


def label_by_probability(
    model: SVC, problem: Problem, row_index: NDArray[np.intp], *, seed: int
) -> Labels:
    """Give each test row the most probable class, as ``svm-predict -b 1`` does.

    The sigmoids are fitted on five folds of the SVM's training rows, which are given by index.
    """
    class_index = np.searchsorted(model.classes_, problem.y_train[row_index])
    rows = problem.train_rows(np.float64)[row_index]
    source = as_source(model, SourceContext(rows, class_index, True, np.random.default_rng(seed)))
    return model.classes_[source.predict_index(problem.test_rows(np.float64))]


def linear(problem: PaperProblem, trial: Trial) -> MethodResult:
    """Train the linear classifier of the paper's table 2."""
    linear_type = SAMPLE_LINEAR_TYPE
    if problem.name != SAMPLE_CLASSES:
        linear_type = parameters(problem.name).linear_type
    rows = problem.train_rows(np.float64)
    model = liblinear_classifier(linear_type, random_state=trial.seed)
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(rows, problem.y_train)
    seconds = time.process_time() - start
    # LIBLINEAR's program stops there too: the row records it.
    detail = f"LIBLINEAR type {linear_type}{UNFINISHED if caught else ''}"
    test_rows = problem.test_rows(np.float64)
    return MethodResult(model.predict, test_rows, seconds, len(rows), model=detail)


def svm(problem: PaperProblem, trial: Trial) -> MethodResult:
    """Return the SVM on all training rows."""
    return _svm_result(problem, problem.svm, len(problem.y_train))


def svm_probability(problem: PaperProblem, trial: Trial) -> MethodResult:
    """Return the same SVM, predicting by its probabilities, as the paper seems to have done."""
    every_row = np.arange(len(problem.y_train))
    labels = label_by_probability(problem.svm.model, problem, every_row, seed=trial.seed)
    return replace(svm(problem, trial), labels=labels, source_labels=problem.svm.labels)


def subsampled(problem: PaperProblem, trial: Trial) -> MethodResult:
    """Train an SVM on a fraction of the rows, the trial's setting.

    It predicts by its probabilities: on few rows of uneven classes that is far better. LIBSVM's
    votes are timed, which are less work.
    """
    row_index = _fewer_rows(problem, trial)
    trained = train_svm(problem, row_index)
    labels = label_by_probability(trained.model, problem, row_index, seed=trial.seed)
    return replace(_svm_result(problem, trained, len(row_index)), labels=labels)


def kept_vectors(problem: PaperProblem, trial: Trial) -> MethodResult:
    """Leave support vectors out of the trained SVM, and keep the coefficients of the others."""
    return _kept_vectors(problem, trial, factor=1.0)


def rescaled_vectors(problem: PaperProblem, trial: Trial) -> MethodResult:
    """Do the same, and divide the coefficients by the fraction kept.

    So the expected decision value of a row over all choices is that of the SVM.
    """
    assert trial.setting is not None
    return _kept_vectors(problem, trial, factor=1.0 / trial.setting)


def fewer_rows(problem: PaperProblem, trial: Trial) -> MethodResult:
    """Train an SVM on a fraction of the rows, the trial's setting; it predicts by votes."""
    row_index = _fewer_rows(problem, trial)
    return _svm_result(problem, train_svm(problem, row_index), len(row_index))


def borders(problem: PaperProblem, trial: Trial) -> MethodResult:
    """Find the borders of the SVM as the paper does."""
    return _accelerated(problem, problem.svm, trial, **_paper_mode(problem, trial))


def limes(problem: PaperProblem, trial: Trial) -> MethodResult:
    """Accelerate the SVM with limes' default settings."""
    return _accelerated(problem, problem.svm, trial)


def true_borders(problem: PaperProblem, trial: Trial) -> MethodResult:
    """Find the borders of the sample classes from their definition, as the paper does."""
    model = SampleClassesClassifier()
    labels = model.predict(problem.X_test)
    return _borders_of(problem, trial, model, labels, **_paper_mode(problem, trial))


def agf(problem: PaperProblem, trial: Trial) -> MethodResult:
    """Return the AGF classifier."""
    trained = problem.agf
    return MethodResult(
        trained.model.predict,
        problem.test_rows(np.float64),
        trained.seconds,
        len(problem.y_train),
        trained.labels,
        model=f"W = {trained.model.total_weight_:g}, {trained.model.n_neighbors} neighbours",
    )


def agf_borders(problem: PaperProblem, trial: Trial) -> MethodResult:
    """Find the borders of the AGF classifier as the paper does."""
    return _accelerated(problem, problem.agf, trial, **_paper_mode(problem, trial))


def agf_limes(problem: PaperProblem, trial: Trial) -> MethodResult:
    """Accelerate the AGF classifier with limes' default settings."""
    return _accelerated(problem, problem.agf, trial)


METHODS: dict[str, Method] = {
    "linear": linear,
    "svm": svm,
    "svm-probability": svm_probability,
    "borders": borders,
    "limes": limes,
    "subsampled": subsampled,
    "kept-vectors": kept_vectors,
    "rescaled-vectors": rescaled_vectors,
    "fewer-rows": fewer_rows,
    "true-borders": true_borders,
    "agf": agf,
    "agf-borders": agf_borders,
    "agf-limes": agf_limes,
}


def _fewer_rows(problem: PaperProblem, trial: Trial) -> NDArray[np.intp]:
    """Choose a fraction of the training rows, the trial's setting."""
    assert trial.setting is not None
    how = "power" if problem.name in UNEVEN else "proportional"
    return subsample_rows(problem.y_train, trial.setting, method=how, random_state=trial.seed)


def _kept_vectors(problem: PaperProblem, trial: Trial, *, factor: float) -> MethodResult:
    """Return the SVM with a fraction of its support vectors, chosen at random in each class."""
    assert trial.setting is not None
    model = problem.svm.model
    svm = svm_from_sklearn(model)
    class_index = np.repeat(np.arange(svm.n_classes), svm.n_support)
    kept = subsample_rows(class_index, trial.setting, random_state=trial.seed)
    fewer = replace(
        svm,
        vectors=svm.vectors[kept],
        dual_coef=factor * svm.dual_coef[:, kept],
        n_support=np.bincount(class_index[kept], minlength=svm.n_classes),
    )
    return MethodResult(
        lambda X: model.classes_[fewer.predict_index(X)],
        problem.test_rows(np.float64),
        problem.svm.seconds,
        len(problem.y_train),
        source_labels=problem.svm.labels,
        n_support=len(kept),
    )


def _svm_result(problem: PaperProblem, trained: TrainedSource, n_train: int) -> MethodResult:
    """Return the result of an SVM: LIBSVM's own predictions are timed."""
    return MethodResult(
        trained.model.predict,
        problem.test_rows(np.float64),
        trained.seconds,
        n_train,
        trained.labels,
        predict_in_core=core_predictor(trained.model),
        n_support=len(trained.model.support_),
    )


def _paper_mode(problem: PaperProblem, trial: Trial) -> dict[str, Any]:
    """Return the paper's settings, with its number of points unless the trial varies it."""
    if trial.setting is not None:
        return {**PAPER_MODE, "n_borders": int(trial.setting)}
    if problem.name == SAMPLE_CLASSES:
        return {**PAPER_MODE, "n_borders": SAMPLE_BORDERS}
    return {**PAPER_MODE, "n_borders": parameters(problem.name).n_borders}


def _accelerated(
    problem: PaperProblem, source: TrainedSource, trial: Trial, **options: Any
) -> MethodResult:
    """Accelerate a trained source."""
    return _borders_of(problem, trial, source.pipeline, source.labels, **options)


def _borders_of(
    problem: PaperProblem, trial: Trial, source: Any, source_labels: Labels, **options: Any
) -> MethodResult:
    """Accelerate a classifier of raw rows."""
    # In the paper the sigmoid of a pair is fitted with the true labels, as LIBSVM does it.
    labels = problem.y_train if options else None
    start = time.process_time()
    fast = accelerate(source, problem.X_train, labels, random_state=trial.seed, **options)
    seconds = time.process_time() - start
    return MethodResult(
        fast.predict,
        problem.X_test.astype(np.float32),
        seconds,
        len(problem.y_train),
        source_labels=source_labels,
        n_borders=fast.n_borders_,
        model=_model_words(fast),
    )


def _model_words(fast: BordersClassifier) -> str:
    """Return the scheme of a fast model and its cost."""
    return f"{fast.scheme_.name}, {fast.cost_:.0f} multiply-adds per row"


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
