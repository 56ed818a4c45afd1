"""Every method a user would pick instead, side by side: skill, time, size."""

from limes.research.bench.methods import PEERS, Peer, choose_peers
from limes.research.bench.report import markdown
from limes.research.bench.results import Row, append_rows, latest, read_rows
from limes.research.bench.run import Store, measure, run_benchmark
from limes.research.measure import Effort
from limes.research.problems import Problem, load_problem
from limes.timing import time_in_turns

__all__ = [
    "PEERS",
    "Effort",
    "Peer",
    "Problem",
    "Row",
    "Store",
    "append_rows",
    "choose_peers",
    "latest",
    "load_problem",
    "markdown",
    "measure",
    "read_rows",
    "run_benchmark",
    "time_in_turns",
]
