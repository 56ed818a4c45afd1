"""scikit-learn's own: the support vector machine itself and what is usually put in its place."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from limes.bench.peers.peer import Peer
from limes.bench.problem import Problem

# Megabytes of kernel values that a fit may keep: the default 200 makes large ones crawl.
CACHE_SIZE = 1000


@dataclass(frozen=True)
class EstimatorPeer(Peer):
    """A scikit-learn estimator."""

    # From a problem to an estimator.
    make: Callable[[Problem], Any] = SVC
    # Training rows that it cannot do without.
    min_rows: int = 0

    def objection(self, problem: Problem) -> str:
        """Say why it cannot take part; empty where it can."""
        if len(problem.X_train) < self.min_rows:
            return f"needs {self.min_rows} training rows, there are {len(problem.X_train)}"
        return super().objection(problem)

    def fit(self, problem: Problem, rows: NDArray[Any], source: Any) -> Any:
        """Train on standardised rows; one that has not converged yet is used as it is."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return self.make(problem).fit(rows, problem.y_train)

    def detail(self, model: Any) -> str:
        """Say how many support vectors there are."""
        return support_vectors(model)


def svc(problem: Problem) -> SVC:
    """Make the support vector machine that limes replaces."""
    return SVC(C=problem.C, gamma=problem.gamma, cache_size=CACHE_SIZE)


def nystroem(n_components: int) -> Callable[[Problem], Any]:
    """Make a linear machine on some components of the same kernel."""
    return lambda problem: make_pipeline(
        Nystroem(
            gamma=None if problem.gamma == "scale" else problem.gamma,
            n_components=n_components,
            random_state=problem.seed,
        ),
        LinearSVC(C=problem.C, random_state=problem.seed),
    )


def perceptron(n_hidden: int) -> Callable[[Problem], Any]:
    """Make a neural network with one hidden layer."""
    return lambda problem: MLPClassifier((n_hidden,), random_state=problem.seed)


def support_vectors(model: Any) -> str:
    """Say how many support vectors a model has, if it has any."""
    n_support = len(getattr(model, "support_", ()))
    return f"{n_support} support vectors" if n_support else ""


SVC_PEER = EstimatorPeer("svc", dtype=np.float64, make=svc)
SCIKIT_LEARN_PEERS = (
    *(
        EstimatorPeer(f"nystroem-{size}", make=nystroem(size), min_rows=size)
        for size in (100, 500, 1500)
    ),
    *(EstimatorPeer(f"mlp-{size}", make=perceptron(size)) for size in (32, 128)),
    EstimatorPeer(
        "linear", dtype=np.float64, make=lambda problem: LinearSVC(random_state=problem.seed)
    ),
)
