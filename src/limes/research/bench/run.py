"""Train every method, time them in turns, cache trained models."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import joblib

from limes._typing import Labels
from limes.atomic import atomic_write
from limes.research.bench.methods import SVC_METHOD, Method
from limes.research.problems import Problem
from limes.research.processor_time import BATCH_SECONDS, TimingBudget, limit_threads, repeat_rows
from limes.research.results import append_rows, read_rows
from limes.scores import accuracy_score, agreement, uncertainty_coefficient
from limes.timing import Timing, affordable_rows, time_in_turns
from limes.versions import computer, package_versions

# Single rows of one turn: all different, as in real use.
N_SINGLE = 20
# Changes with the contents of cached files: older ones are then ignored.
CACHE_FORMAT = 3


@dataclass(frozen=True)
class BenchmarkRow:
    """Result of one method on one dataset with one number of threads.

    Parameters
    ----------
    dataset, method : str
        What was measured.
    threads : int
        Most threads of a prediction.
    n_train, n_test, n_features, n_classes : int
        Sizes of the dataset.
    seed : int
        Seed of splits and fits.
    accuracy, uncertainty_coefficient : float
        Skill on the test rows.
    agreement : float
        Share of the test rows with the label that the SVM gives.
    microseconds_per_row : float or None
        Shortest time of a batch over its rows; None for a method that takes single rows only.
    batch_rows : int or None
        Rows of that batch.
    cpu_share : float or None
        Processor time of that batch over wall-clock time: well below the number of threads if
        other programs were running.
    microseconds_single_row : float
        Shortest mean time of a row that is predicted alone.
    model_bytes : int
        Size of the trained model.
    fit_seconds : float
        Time of the fit, with one thread.
    source_seconds : float
        Time of the SVM's fit before it, if the method starts from the SVM.
    detail : str
        Size of the model in words.
    turns : int
        Number of turns of each method.
    versions, computer : str
        Versions of the packages; processor and SIMD level.
    run : str
        Time at which this round of turns began: times of one run may be compared.
    """

    dataset: str
    method: str
    threads: int
    n_train: int
    n_test: int
    n_features: int
    n_classes: int
    seed: int
    accuracy: float
    uncertainty_coefficient: float
    agreement: float
    microseconds_per_row: float | None
    batch_rows: int | None
    cpu_share: float | None
    microseconds_single_row: float
    model_bytes: int
    fit_seconds: float
    source_seconds: float
    detail: str
    turns: int
    versions: str
    computer: str
    run: str

    @property
    def whole_fit_seconds(self) -> float:
        """Time from the training rows to the model."""
        return self.fit_seconds + self.source_seconds


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A trained model with its predictions."""

    # Whatever the method predicts with.
    model: Any
    # Shape (n_test,). Its predictions for the test rows.
    labels: Labels
    fit_seconds: float
    # Size of the model. It is measured after training, since arrays that a trained model shares
    # are duplicated when it is read from a file.
    n_bytes: int


@dataclass(frozen=True, eq=False)
class TrainedMethod:
    """A method with its trained model, and that of the SVM."""

    method: Method
    own_model: TrainedModel
    source_model: TrainedModel


@dataclass(frozen=True, eq=False)
class ModelCache:
    """Models by problem, method and versions: in memory and, if there is a folder, on disk.

    The files are pickles: use a folder that only you write to.

    Parameters
    ----------
    folder : Path or None, default=None
        Folder of the files; None caches models in memory only.
    """

    folder: Path | None = None
    recent: dict[tuple[str, str], TrainedModel] = field(default_factory=dict)

    def trained(self, problem: Problem, method: Method, source: Any) -> TrainedModel:
        """Return the trained model of a method, from the cache if it is there.

        Parameters
        ----------
        problem : Problem
            Training and test rows.
        method : Method
            The method.
        source : object or None
            The trained SVM, for a method that starts from it.

        Returns
        -------
        TrainedModel
            Model, predictions and time.
        """
        key = (problem.fingerprint, method.model_name)
        if key not in self.recent:
            path = self._path(problem, method)
            self.recent[key] = _load_or_train(path, lambda: train(problem, method, source))
        return self.recent[key]

    def clear_memory(self) -> None:
        """Drop the models in memory: another problem does not need them."""
        self.recent.clear()

    def _path(self, problem: Problem, method: Method) -> Path | None:
        """Return the file of a model, None where it is not stored."""
        if self.folder is None or not method.is_cacheable:
            return None
        digest = joblib.hash((CACHE_FORMAT, problem.fingerprint, package_versions(method.package)))
        return self.folder / f"{problem.name}-{method.model_name}-{digest[:12]}.joblib"


def run_benchmark(
    problem: Problem,
    methods: Sequence[Method],
    *,
    threads: Sequence[int],
    output: Path,
    cache: ModelCache,
    budget: TimingBudget,
    is_again: bool = False,
    log: Callable[[str], None] = print,
) -> list[str]:
    """Measure methods on one problem, and append the rows to a file.

    Rows that the file has, from the same versions on the same computer, are not measured again.

    Parameters
    ----------
    problem : Problem
        Training and test rows.
    methods : sequence of Method
        Methods to compare. One that cannot be measured is skipped, and the reason logged.
    threads : sequence of int
        Numbers of threads, one round of turns for each.
    output : Path
        The CSV file.
    cache : ModelCache
        Cache of trained models.
    budget : TimingBudget
        Turns and rows of the timing.
    is_again : bool, default=False
        Whether to measure again what the file has.
    log : callable, default=print
        Called with a line of progress.

    Returns
    -------
    list of str
        Names of the methods that failed, besides those that were skipped.
    """
    able = _without_skipped(problem, methods, log)
    remaining = [n for n in threads if is_again or not _is_measured(output, problem, able, n)]
    if not remaining:
        log(f"{problem.name}: all measured already.")
        return []
    with limit_threads(1):
        trained_methods = _train_all(problem, able, cache, log)
    for n_threads in remaining:
        log(f"{problem.name}: {len(trained_methods)} methods in turns, threads: {n_threads}")
        rows = measure(problem, trained_methods, n_threads=n_threads, budget=budget)
        append_rows(output, rows)
    cache.clear_memory()
    return sorted({one.name for one in able} - {one.method.name for one in trained_methods})


def measure(
    problem: Problem,
    trained_methods: Sequence[TrainedMethod],
    *,
    n_threads: int,
    budget: TimingBudget,
) -> list[BenchmarkRow]:
    """Time trained models in turns.

    Parameters
    ----------
    problem : Problem
        Training and test rows.
    trained_methods : sequence of TrainedMethod
        Methods with their models.
    n_threads : int
        Most threads of a prediction.
    budget : TimingBudget
        Turns and rows of the timing.

    Returns
    -------
    list of BenchmarkRow
        One for each method.
    """
    run = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    take_turns = partial(time_in_turns, n_turns=budget.n_turns, turn_seconds=budget.turn_seconds)
    with limit_threads(n_threads):
        batches = [_batch_call(trained, problem, n_threads, budget) for trained in trained_methods]
        batch_timings = take_turns([call for call, _ in batches])
        calls = [_single_row_call(trained, problem, n_threads) for trained in trained_methods]
        single_timings = take_turns(calls)
    return [
        BenchmarkRow(
            dataset=problem.name,
            threads=n_threads,
            turns=budget.n_turns,
            computer=computer(),
            run=run,
            **_skill_columns(trained, problem),
            **_batch_columns(batch_timing, n_rows),
            microseconds_single_row=1e6 * single_timing.seconds / N_SINGLE,
        )
        for trained, (_, n_rows), batch_timing, single_timing in zip(
            trained_methods, batches, batch_timings, single_timings, strict=True
        )
    ]


def latest_runs(rows: Sequence[BenchmarkRow]) -> list[BenchmarkRow]:
    """Keep the last run of each dataset and number of threads.

    Parameters
    ----------
    rows : sequence of BenchmarkRow
        Of any number of runs, the earliest first.

    Returns
    -------
    list of BenchmarkRow
        Rows whose times may be compared.
    """
    last_run = {(row.dataset, row.threads): row.run for row in rows}
    return [row for row in rows if row.run == last_run[row.dataset, row.threads]]


def _without_skipped(
    problem: Problem, methods: Sequence[Method], log: Callable[[str], None]
) -> list[Method]:
    """Leave out methods that cannot be measured, and log why."""
    reasons = {method.name: method.reason_to_skip(problem) for method in methods}
    for name, reason in reasons.items():
        if reason:
            log(f"{problem.name}: {name} is skipped: {reason}")
    return [method for method in methods if not reasons[method.name]]


def _is_measured(output: Path, problem: Problem, methods: Sequence[Method], n_threads: int) -> bool:
    """Return whether the last run in the file has the same measurements of all methods."""
    common = {"dataset": problem.name, "threads": n_threads, "seed": problem.seed}
    common |= {"computer": computer(), **problem.sizes}
    rows = latest_runs(read_rows(output, BenchmarkRow))
    return all(
        _has_values(rows, common | {"method": one.name, "versions": package_versions(one.package)})
        for one in methods
    )


def _has_values(rows: Iterable[BenchmarkRow], values: dict[str, Any]) -> bool:
    """Return whether a row has all these values."""
    return any(all(getattr(row, name) == value for name, value in values.items()) for row in rows)


def _train_all(
    problem: Problem, methods: Sequence[Method], cache: ModelCache, log: Callable[[str], None]
) -> list[TrainedMethod]:
    """Train all methods; one that fails is left out and logged."""
    source = cache.trained(problem, SVC_METHOD, None)
    trained_methods = []
    for method in methods:
        log(f"{problem.name}: training {method.name}")
        try:
            trained = cache.trained(problem, method, source.model)
        except Exception as error:  # whatever another library raises, the other methods go on
            log(f"{problem.name}: {method.name} failed: {type(error).__name__}: {error}")
            continue
        trained_methods.append(TrainedMethod(method, trained, source))
    return trained_methods


def train(problem: Problem, method: Method, source: Any) -> TrainedModel:
    """Train the model of a method and predict the test rows."""
    method.load()
    rows = method.training_rows(problem)
    start = time.perf_counter()
    model = method.fit(problem, rows, source)
    fit_seconds = time.perf_counter() - start
    return TrainedModel(model, method.labels(model, problem), fit_seconds, method.n_bytes(model))


def _load_or_train(path: Path | None, train_model: Callable[[], TrainedModel]) -> TrainedModel:
    """Read a model from its file; train it and write the file where there is none."""
    if path is None:
        return train_model()
    if path.is_file():
        return joblib.load(path)
    trained = train_model()
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as stream:
        joblib.dump(trained, stream)
    return trained


def _batch_call(
    trained: TrainedMethod, problem: Problem, n_threads: int, budget: TimingBudget
) -> tuple[Callable[[], Any], int | None]:
    """Return the prediction of a batch and its rows; no rows if the method takes single ones."""
    predict = trained.method.predictor(trained.own_model.model, n_threads)
    if predict is None:
        return lambda: None, None
    rows = repeat_rows(trained.method.rows(problem), budget.batch_rows)
    n_rows = affordable_rows(predict, rows, seconds=BATCH_SECONDS)
    return lambda: predict(rows[:n_rows]), n_rows


def _single_row_call(
    trained: TrainedMethod, problem: Problem, n_threads: int
) -> Callable[[], None]:
    """Return the prediction of single rows, one after the other."""
    predict = trained.method.single_row_predictor(trained.own_model.model, n_threads)
    test_rows = trained.method.rows(problem)[:N_SINGLE]
    rows = trained.method.single_rows(repeat_rows(test_rows, N_SINGLE))

    def predict_each() -> None:
        for row in rows:
            predict(row)

    predict_each()
    return predict_each


def _skill_columns(trained: TrainedMethod, problem: Problem) -> dict[str, Any]:
    """Return the columns that do not depend on time or threads."""
    truth, labels = problem.y_test, trained.own_model.labels
    return {
        **problem.sizes,
        "method": trained.method.name,
        "seed": problem.seed,
        "accuracy": float(accuracy_score(truth, labels)),
        "uncertainty_coefficient": float(uncertainty_coefficient(truth, labels)),
        "agreement": float(agreement(trained.source_model.labels, labels)),
        "model_bytes": trained.own_model.n_bytes,
        "fit_seconds": trained.own_model.fit_seconds,
        "source_seconds": trained.source_model.fit_seconds if trained.method.needs_source else 0.0,
        "detail": trained.method.detail(trained.own_model.model),
        "versions": package_versions(trained.method.package),
    }


def _batch_columns(timing: Timing, n_rows: int | None) -> dict[str, Any]:
    """Return the columns of a batch, empty for a method that takes single rows only."""
    if n_rows is None:
        return {"microseconds_per_row": None, "batch_rows": None, "cpu_share": None}
    return {
        "microseconds_per_row": 1e6 * timing.seconds / n_rows,
        "batch_rows": n_rows,
        "cpu_share": timing.cpu_share,
    }
