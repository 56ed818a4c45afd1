"""Every method a user would pick instead, side by side: skill, time, size."""

from limes.bench.peers import PEERS, Peer, choose_peers
from limes.bench.problem import Problem, load_problem
from limes.bench.results import Row, append_rows, latest, read_rows
from limes.bench.run import Effort, measure, run_benchmark
from limes.bench.store import Store
from limes.bench.table import markdown
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
