"""Every method a user would pick instead, side by side: skill, time, size."""

from limes.research.bench.methods import METHODS, Method, choose_methods
from limes.research.bench.report import markdown
from limes.research.bench.run import (
    BenchmarkRow,
    ModelCache,
    latest_runs,
    measure,
    run_benchmark,
)
from limes.research.problems import Problem, load_problem
from limes.research.processor_time import TimingBudget

__all__ = [
    "METHODS",
    "BenchmarkRow",
    "Method",
    "ModelCache",
    "Problem",
    "TimingBudget",
    "choose_methods",
    "latest_runs",
    "load_problem",
    "markdown",
    "measure",
    "run_benchmark",
]
