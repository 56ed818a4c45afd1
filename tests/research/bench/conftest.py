"""A small problem, and one whole benchmark of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import make_moons

from limes.research.bench import (
    BenchmarkRow,
    ModelCache,
    Problem,
    TimingBudget,
    choose_methods,
    run_benchmark,
)
from limes.research.results import read_rows

QUICK = TimingBudget(n_turns=1, batch_rows=200, turn_seconds=0.0)
NAMES = ["svc", "linear", "limes"]


@dataclass(frozen=True)
class Outcome:
    """Folder, log and failed methods of a benchmark."""

    folder: Path
    log: list[str]
    failed: list[str]

    @property
    def rows(self) -> list[Any]:
        return read_rows(self.folder / "results.csv", BenchmarkRow)


@pytest.fixture(scope="session")
def problem():
    X, y = make_moons(300, noise=0.2, random_state=0)
    return Problem("moons", X[:200], y[:200], X[200:], y[200:], C=10.0, gamma=1.0)


@pytest.fixture(scope="session")
def benchmark_of():
    """Return a function that runs a quick benchmark in a folder."""

    def run(problem, methods, folder, *, threads=(1, 2)):
        log = []
        failed = run_benchmark(
            problem,
            methods,
            threads=threads,
            output=folder / "results.csv",
            cache=ModelCache(folder / "models"),
            budget=QUICK,
            log=log.append,
        )
        return Outcome(folder, log, failed)

    return run


@pytest.fixture(scope="session")
def outcome(problem, benchmark_of, tmp_path_factory):
    """Return the outcome of one whole benchmark with cached models."""
    return benchmark_of(problem, choose_methods(NAMES), tmp_path_factory.mktemp("bench"))
