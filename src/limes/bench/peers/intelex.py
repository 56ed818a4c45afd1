"""scikit-learn-intelex: the same support vector machine, compiled for the processor."""

from typing import Any

import numpy as np

from limes.bench.peers.scikit_learn import CACHE_SIZE, EstimatorPeer
from limes.bench.problem import Problem


def intelex_svc(problem: Problem) -> Any:
    """Make its support vector machine; nothing in scikit-learn itself is replaced."""
    from sklearnex.svm import SVC

    return SVC(C=problem.C, gamma=problem.gamma, cache_size=CACHE_SIZE)


INTELEX_PEERS = tuple(
    EstimatorPeer(f"intelex-{dtype.__name__}", "sklearnex.svm", dtype, make=intelex_svc)
    for dtype in (np.float32, np.float64)
)
