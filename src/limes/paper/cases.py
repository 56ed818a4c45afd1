"""One dataset with one split: its rows, and the sources that several methods share."""

import time
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC

from limes._typing import Labels
from limes.agf import AGFClassifier
from limes.bench.peers.scikit_learn import svc
from limes.bench.problem import Problem, load_problem
from limes.coupling import count_votes_like_libsvm
from limes.datasets import list_datasets, sample_classes
from limes.sources.recognize import Known, as_source
from limes.svm_machine import SvmMachine

SAMPLE_CLASSES = "sample_classes"
# The paper does not print how its machine for the sample classes was trained. With these, on
# standardised rows, it has the printed number of support vectors.
SAMPLE_C, SAMPLE_GAMMA = 20.0, 0.2
SAMPLE_TRAIN, SAMPLE_TEST = 1000, 10_000
# Test rows are drawn with seeds that no training rows have.
TEST_SEED = 1_000_000
# Of the nearest training rows that have a say in AGF: all of them take minutes on humidity, and
# give the same labels but for a few.
AGF_NEIGHBORS = 100


@dataclass(frozen=True, eq=False)
class Case:
    """Rows and labels, and what is trained on them once for several methods."""

    # The rows.
    problem: Problem
    # Whether only some rows of the dataset are at hand.
    is_partial: bool = False

    @cached_property
    def machine(self) -> "Trained":
        """The support vector machine on all training rows."""
        return train_machine(self.problem, np.arange(len(self.problem.y_train)))

    @cached_property
    def agf(self) -> "Trained":
        """The AGF classifier; raw rows are scaled by it."""
        start = time.process_time()
        model = AGFClassifier(n_neighbors=min(AGF_NEIGHBORS, len(self.problem.y_train)))
        model.fit(self.problem.train_rows(np.float64), self.problem.y_train)
        seconds = time.process_time() - start
        labels = model.predict(self.problem.test_rows(np.float64))
        return Trained(model, labels, seconds, self.problem.scaler)


@dataclass(frozen=True, eq=False)
class Trained:
    """A source, its answers to the test rows, and how long it took to train."""

    model: Any
    labels: Labels
    seconds: float
    scaler: Pipeline

    @property
    def pipeline(self) -> Pipeline:
        """The same for raw rows."""
        return make_pipeline(self.scaler, self.model)


def load_case(dataset: str, *, split: int = 0, n_train: int = SAMPLE_TRAIN) -> Case:
    """Load a dataset, or draw the sample classes.

    Examples
    --------
    >>> load_case("sample_classes", n_train=300).problem.X_train.shape
    (300, 2)
    """
    if dataset != SAMPLE_CLASSES:
        return Case(load_problem(dataset, seed=split), _is_partial(dataset))
    X, y = sample_classes(n_train, random_state=split)
    X_test, y_test = sample_classes(SAMPLE_TEST, random_state=split + TEST_SEED)
    return Case(Problem(dataset, X, y, X_test, y_test, SAMPLE_C, SAMPLE_GAMMA, split))


def train_machine(problem: Problem, kept: NDArray[np.intp]) -> Trained:
    """Train a support vector machine on some of the training rows."""
    rows, labels = problem.train_rows(np.float64)[kept], problem.y_train[kept]
    start = time.process_time()
    model = svc(problem).fit(rows, labels)
    seconds = time.process_time() - start
    # Summed in the core, LIBSVM's machine gives the same labels in a fraction of the time.
    return Trained(
        model, ask_exactly(model)(problem.test_rows(np.float64)), seconds, problem.scaler
    )


def ask_exactly(model: SVC) -> Any:
    """Return a function that gives the labels of a machine, summed in limes' core."""
    machine = SvmMachine.from_sklearn(model)

    def ask(X: NDArray[np.float64]) -> Labels:
        return model.classes_[np.argmax(count_votes_like_libsvm(machine.values(X)), axis=1)]

    return ask


def label_by_probability(
    model: SVC, problem: Problem, kept: NDArray[np.intp], *, seed: int
) -> Labels:
    """Give each test row the most probable class, as ``svm-predict -b 1`` does.

    The sigmoids are fitted on five folds of the machine's own training rows.
    """
    codes = np.searchsorted(model.classes_, problem.y_train[kept])
    rows = problem.train_rows(np.float64)[kept]
    source = as_source(model, Known(rows, codes, True, np.random.default_rng(seed)))
    return model.classes_[source.codes(problem.test_rows(np.float64))]


@cache
def _is_partial(dataset: str) -> bool:
    """Tell whether only a part of a dataset is on this machine."""
    return any(one.is_partial for one in list_datasets() if one.name == dataset)
