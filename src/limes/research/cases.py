"""Problems with stored SVMs, and fits of them by any version of limes in processes of their own."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from inspect import getsource
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC

from limes._typing import Array, Labels
from limes.atomic import atomic_write
from limes.research.bench.methods import SVC_METHOD, Method, choose_methods
from limes.research.problems import Problem
from limes.research.processor_time import repeat_rows

# Rows of a batch whose prediction is timed, and the most values that it holds.
BATCH_ROWS, BATCH_VALUES = 50_000, 1 << 23
# Shortest turn of a timed prediction.
TURN_SECONDS = 0.05
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, eq=False)
class Case:
    """A problem with its trained SVMs, which are stored between runs."""

    problem: Problem
    cache: Path

    @cached_property
    def svm(self) -> SVC:
        """The SVM that limes replaces, for standardised rows."""
        return self._trained(SVC_METHOD)

    @cached_property
    def intelex(self) -> Any:
        """The SVM of scikit-learn-intelex, trained on standardised float32 rows."""
        return self._trained(*choose_methods(["intelex-float32"]))

    @cached_property
    def labels(self) -> Labels:
        """The SVM's labels of the test rows."""
        key = joblib.hash(self.problem.X_test)
        return self.stored(f"labels-{key[:8]}", lambda: self.svm.predict(self.test_rows))

    @cached_property
    def test_rows(self) -> Array:
        """The test rows, standardised."""
        return self.problem.test_rows(np.float64)

    @property
    def model(self) -> Pipeline:
        """The SVM after its scaler, for raw rows."""
        return make_pipeline(self.problem.scaler, self.svm)

    @property
    def parameters(self) -> str:
        """The SVM's parameters in words."""
        gamma = self.problem.gamma
        return f"C={self.problem.C:g}, gamma={gamma if isinstance(gamma, str) else f'{gamma:g}'}"

    def batch(self, dtype: Any, *, is_raw: bool = True) -> NDArray[Any]:
        """Return the rows to predict in one timed call, raw or standardised."""
        n_rows = min(BATCH_ROWS, BATCH_VALUES // self.problem.X_test.shape[1])
        rows = repeat_rows(self.problem.X_test[:n_rows], n_rows)
        return np.ascontiguousarray(rows if is_raw else self.problem.scaler.transform(rows), dtype)

    def stored(self, kind: str, make: Callable[[], Any]) -> Any:
        """Return what an earlier run stored, else make and store it."""
        problem = self.problem
        data = (problem.X_train, problem.y_train, problem.C, problem.gamma)
        path = self.cache / f"{problem.name}-{kind}-{joblib.hash(data)[:12]}.joblib"
        if path.is_file():
            return joblib.load(path)
        result = make()
        self.cache.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as stream:
            joblib.dump(result, stream)
        return result

    def _trained(self, method: Method) -> Any:
        """Return the model of a method of the benchmarks."""
        rows = method.training_rows(self.problem)
        return self.stored(method.name, lambda: method.fit(self.problem, rows, None))


class FitTask(NamedTuple):
    """A call of ``accelerate``, and the rows that the fast model labels."""

    model: Any
    X: Array
    X_test: Array
    options: dict[str, Any]


class FitResult(NamedTuple):
    """What a process reports of a fit; numbers are 0 and labels empty if it failed."""

    # Processor time, and this divided by wall-clock time.
    fit_seconds: float
    cpu_share: float
    labels: Labels
    scheme: str
    n_borders: int
    # Multiply-adds per row.
    cost: float
    # ``agreement_`` and ``agreement_error_``.
    agreement_estimated: float
    agreement_error: float
    # Of the bytes of the model's file, without the time that the fit took.
    digest: str
    # Of the installation: what git says of its folder, else the version.
    commit: str
    # Empty if the fit succeeded.
    error: str
    # Tuned values read so far by the process, as class and name, if it was asked for them.
    used: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Installation:
    """A version of limes, and the settings that it runs with."""

    # A Python, or a clone of the repository: with a ``.venv``, or with the compiled module in its
    # ``src`` folder.
    path: Path = Path(sys.executable)
    # Tuned values that differ from the defaults: class of the stage, name, value.
    changes: Sequence[tuple[str, str, Any]] = ()
    # Variables of the environment.
    environment: Mapping[str, str] = field(default_factory=dict)
    n_threads: int = 1
    # Whether results list the tuned values that were read.
    is_recording: bool = False

    @property
    def python(self) -> Path:
        """The Python that runs it."""
        own = self.path / ".venv" / "bin" / "python"
        if own.is_file():
            return own.absolute()
        # Not resolved: the Python of a virtual environment is a link.
        return Path(sys.executable) if self.path.is_dir() else self.path.absolute()

    @property
    def variables(self) -> dict[str, str]:
        """The environment of its processes."""
        threads = dict.fromkeys(THREAD_VARIABLES, str(self.n_threads))
        variables = {**os.environ, **threads, **self.environment}
        variables.pop("PYTHONPATH", None)
        if self.path.is_dir() and self.python == Path(sys.executable):
            variables["PYTHONPATH"] = str(self.path.resolve() / "src")
        return variables


@dataclass(frozen=True, eq=False)
class FitProcess:
    """Fast models of a version of limes, in a process of its own."""

    process: "subprocess.Popen[str]"
    results: Sequence[FitResult]

    def run(self) -> tuple[float, float]:
        """Predict for one turn, and return microseconds per row and share of the processor."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        microseconds, cpu_share = _read_numbers(self.process)
        return microseconds, cpu_share


@contextmanager
def fit_process(
    version: Installation,
    tasks: Sequence[FitTask],
    *,
    batch: NDArray[Any] | None = None,
    may_fail: bool = False,
) -> Iterator[FitProcess]:
    """Fit models; the last predicts the batch, one turn for each ``run``, until the context ends.

    A fit that raises an error is an error here, or, if it may fail, a result that says so.
    """
    settings = {
        "changes": version.changes,
        "is_recording": version.is_recording,
        "n_threads": version.n_threads,
        "turn": TURN_SECONDS,
    }
    with TemporaryDirectory() as folder:
        # Plain dictionaries: the other version does not know these classes.
        work = {"tasks": [task._asdict() for task in tasks], "batch": batch}
        joblib.dump(work, Path(folder, "work.joblib"))
        with subprocess.Popen(
            [version.python, "-c", WORKER, folder, repr(settings)],
            env=version.variables,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            results = []
            for index in range(len(tasks)):
                _read_numbers(process)
                results.append(FitResult(**joblib.load(Path(folder, f"{index}.joblib"))))
                if results[-1].error and not may_fail:
                    raise RuntimeError(f"a fit of {version.path} failed: {results[-1].error}")
            yield FitProcess(process, results)
            process.communicate()


def fit_apart(
    version: Installation, tasks: Sequence[FitTask], *, may_fail: bool = False
) -> list[FitResult]:
    """Return the results of fits in a process of their own."""
    with fit_process(version, tasks, may_fail=may_fail) as process:
        return list(process.results)


def run_python(version: Installation, code: str) -> str:
    """Return what code prints in a process of a version."""
    with TemporaryDirectory() as folder:
        done = subprocess.run(
            [version.python, "-c", code],
            env=version.variables,
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return done.stdout.strip()


def _read_numbers(process: "subprocess.Popen[str]") -> list[float]:
    """Return the numbers of the next line of a process."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError("the other version of limes ended early; its message is above.")
    return [float(word) for word in line.split()]


# What follows runs in the other process, whose version of limes may be another: it uses nothing of
# this module.


def _change_defaults(
    changes: "Sequence[tuple[str, str, Any]]", is_recording: bool
) -> "dict[tuple[str, str], None]":
    """Let ``limes.fit.config`` be imported as if its file had other values.

    What other modules and the file itself derive from a value on import then follows the change.
    Return where the values that are read are recorded, in the order of their first use.
    """
    import ast
    import sys
    from importlib.machinery import SourceFileLoader
    from importlib.util import spec_from_file_location

    values = {(stage, name): value for stage, name, value in changes}
    used: dict[tuple[str, str], None] = {}

    def record(config: "Any", name: str) -> "Any":
        used[type(config).__name__, name] = None
        return object.__getattribute__(config, name)

    class Loader(SourceFileLoader):
        def get_code(self, fullname: str) -> "Any":
            path = self.get_filename(fullname)
            tree = ast.parse(self.get_data(path))
            stages = [node for node in tree.body if isinstance(node, ast.ClassDef)]
            for stage in stages:
                for line in stage.body:
                    if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                        key = (stage.name, line.target.id)
                        if key in values:
                            line.value = ast.parse(repr(values.pop(key)), mode="eval").body
            if values:
                raise ValueError(f"no such values: {sorted(values)!r}")
            return compile(ast.fix_missing_locations(tree), path, "exec")

        def exec_module(self, module: "Any") -> None:
            super().exec_module(module)
            for name, stage in vars(module).items():
                if is_recording and name.endswith("Config"):
                    stage.__getattribute__ = record

    class Finder:
        def find_spec(self, fullname: str, path: "Any" = None, target: "Any" = None) -> "Any":
            if fullname != "limes.fit.config":
                return None
            others = (other for other in sys.meta_path if not isinstance(other, Finder))
            specs = (other.find_spec(fullname, path, target) for other in others)
            found = next(spec for spec in specs if spec is not None)
            origin = str(found.origin)
            return spec_from_file_location(fullname, origin, loader=Loader(fullname, origin))

    if changes or is_recording:
        finder: Any = Finder()
        sys.meta_path.insert(0, finder)
    return used


def _fit(task: "dict[str, Any]", folder: str) -> "tuple[dict[str, Any], Any]":
    """Return the fields of a result."""
    import hashlib
    import math
    import time
    from dataclasses import replace
    from pathlib import Path

    import limes

    result: dict[str, Any] = dict.fromkeys(("fit_seconds", "cpu_share", "cost"), 0.0)
    result |= dict.fromkeys(("agreement_estimated", "agreement_error"), 0.0)
    result |= {"labels": [], "scheme": "", "n_borders": 0, "digest": "", "error": ""}
    try:
        start, start_wall = time.process_time(), time.perf_counter()
        fast = limes.accelerate(task["model"], task["X"], **task["options"])
        result["fit_seconds"] = time.process_time() - start
        result["cpu_share"] = result["fit_seconds"] / (time.perf_counter() - start_wall)
        result["labels"] = fast.predict(task["X_test"])
        result["scheme"], result["n_borders"] = fast.scheme_.name, int(fast.n_borders_)
        result["cost"] = float(fast.cost_)
        result["agreement_estimated"] = float(fast.agreement_)
        result["agreement_error"] = float(fast.agreement_error_)
        file = Path(folder, "model.limes")
        if hasattr(fast.model_.info, "fit_seconds"):
            info = replace(fast.model_.info, fit_seconds=math.nan)
            fast.model_ = replace(fast.model_, info=info)
        fast.save(file)
        result["digest"] = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    except Exception as error:
        return result | {"error": f"{type(error).__name__}: {error}"}, None
    return result, fast


def _commit() -> str:
    """Return what git says of the folder of this installation, else the version."""
    import subprocess
    from pathlib import Path

    import limes

    command = ["git", "-C", str(Path(limes.__file__).parent), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return limes.__version__


def _work() -> None:
    """Run the fits of a folder, then predict for one turn per line of input."""
    import sys
    import warnings
    from ast import literal_eval
    from pathlib import Path

    folder, settings = sys.argv[1], literal_eval(sys.argv[2])
    used = _change_defaults(settings["changes"], settings["is_recording"])
    warnings.simplefilter("ignore")

    import joblib
    from threadpoolctl import threadpool_limits

    import limes.classifier  # noqa: F401 (imported before the clock starts)
    from limes.timing import time_in_turns

    work, commit = joblib.load(Path(folder, "work.joblib")), _commit()
    with threadpool_limits(settings["n_threads"]):
        for index, task in enumerate(work["tasks"]):
            result, fast = _fit(task, folder)
            result |= {"commit": commit, "used": list(used)}
            joblib.dump(result, Path(folder, f"{index}.joblib"))
            print(result["fit_seconds"], flush=True)
        batch = work["batch"]
        for _ in sys.stdin if batch is not None else ():
            (run,) = time_in_turns(
                [lambda: fast.predict(batch)], n_turns=1, turn_seconds=settings["turn"]
            )
            print(run.seconds * run.cpu_share / len(batch) * 1e6, run.cpu_share, flush=True)


WORKER = (
    "\n\n".join(getsource(part) for part in (_change_defaults, _fit, _commit, _work))
    + "\n_work()\n"
)
