"""The paper's methods on a dataset."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
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
from limes.model.coupling import count_votes_like_libsvm
from limes.research.bench.methods import svc
from limes.research.paper.plan import SAMPLE_CLASSES, SAMPLE_TEST, SAMPLE_TRAIN, UNFINISHED
from limes.research.paper.rows import Candidate
from limes.research.problems import Problem, load_problem
from limes.sources.base import SourceContext, as_source
from limes.sources.svm import svm_from_sklearn
from limes.subsample import subsample_rows

# The paper does not print how its machine for the sample classes was trained. With these, on
# standardised rows, it has the printed number of support vectors.
SAMPLE_C, SAMPLE_GAMMA = 20.0, 0.2
# Test rows are drawn with seeds that no training rows have.
TEST_SEED = 1_000_000
# Of the nearest training rows that have a say in AGF: all of them take minutes on humidity, and
# give the same labels but for a few.
AGF_NEIGHBORS = 100
# Everything as in the paper: a map for each pair of classes, points between random rows of the
# two, the nearest one decides, the border where the probabilities are equal.
PAPER_MODE: dict[str, Any] = {
    "scheme": "pairwise",
    "placement": "random",
    "blend": 1,
    "refine": False,
    "border": "probability",
}
SAMPLE_BORDERS = 100
SAMPLE_LINEAR_TYPE = 2
# Of these the smallest class would vanish from a small fraction.
UNEVEN = ("shuttle",)


@dataclass(frozen=True, eq=False)
class Case:
    """Rows and labels, and what is trained on them once for several methods."""

    # The rows.
    problem: Problem
    # Whether only some rows of the dataset are at hand.
    is_partial: bool = False

    @cached_property
    def svm(self) -> "Trained":
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
    svm = svm_from_sklearn(model)

    def ask(X: NDArray[np.float64]) -> Labels:
        return model.classes_[np.argmax(count_votes_like_libsvm(svm.pair_decisions(X)), axis=1)]

    return ask


def label_by_probability(
    model: SVC, problem: Problem, kept: NDArray[np.intp], *, seed: int
) -> Labels:
    """Give each test row the most probable class, as ``svm-predict -b 1`` does.

    The sigmoids are fitted on five folds of the machine's own training rows.
    """
    class_index = np.searchsorted(model.classes_, problem.y_train[kept])
    rows = problem.train_rows(np.float64)[kept]
    source = as_source(model, SourceContext(rows, class_index, True, np.random.default_rng(seed)))
    return model.classes_[source.predict_index(problem.test_rows(np.float64))]


@cache
def _is_partial(dataset: str) -> bool:
    """Tell whether only a part of a dataset is on this machine."""
    return any(one.is_partial for one in list_datasets() if one.name == dataset)


@dataclass(frozen=True, eq=False)
class Answer:
    """What a method gives back."""

    # From rows to labels: what is timed.
    ask: Callable[[Any], Any]
    # Shape (n_test, n_features). The test rows as it likes them.
    rows: NDArray[Any]
    # Time of the fit.
    train_seconds: float
    # Training rows.
    n_train: int
    # Shape (n_test,). Its answers, where they have been asked for already.
    labels: Labels | None = None
    # Shape (n_test,). Those of the source, where there is one.
    source_labels: Labels | None = None
    # The same machine summed in limes' core.
    ask_exactly: Callable[[Any], Any] | None = None
    # Its size.
    n_support: int | None = None
    n_borders: int | None = None
    # More about it.
    model: str = ""


Method = Callable[[Case, Candidate], Answer]


def linear(case: Case, trial: Candidate) -> Answer:
    """Train the linear classifier of the paper's table 2."""
    problem = case.problem
    kind = SAMPLE_LINEAR_TYPE
    if problem.name != SAMPLE_CLASSES:
        kind = parameters(problem.name).linear_type
    rows = problem.train_rows(np.float64)
    model = liblinear_classifier(kind, random_state=trial.seed)
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(rows, problem.y_train)
    seconds = time.process_time() - start
    # LIBLINEAR's own program stops there too: the row says so.
    about = f"LIBLINEAR type {kind}{UNFINISHED if caught else ''}"
    return Answer(model.predict, problem.test_rows(np.float64), seconds, len(rows), model=about)


def svm(case: Case, trial: Candidate) -> Answer:
    """Give the support vector machine on all training rows."""
    return _answer_of_machine(case, case.svm, len(case.problem.y_train))


def svm_probability(case: Case, trial: Candidate) -> Answer:
    """Let the same machine decide by its probabilities, as the paper seems to have done."""
    kept = np.arange(len(case.problem.y_train))
    model = case.svm.model
    labels = label_by_probability(model, case.problem, kept, seed=trial.seed)
    return replace(svm(case, trial), labels=labels, source_labels=case.svm.labels)


def subsampled(case: Case, trial: Candidate) -> Answer:
    """Train a support vector machine on a fraction of the rows, the trial's setting.

    It decides by its probabilities: on few rows of uneven classes that is far better. What is timed
    are LIBSVM's votes, which are less work.
    """
    fraction, problem = trial.setting, case.problem
    assert fraction is not None
    method = "power" if problem.name in UNEVEN else "proportional"
    kept = subsample_rows(problem.y_train, fraction, method=method, random_state=trial.seed)
    trained = train_machine(problem, kept)
    labels = label_by_probability(trained.model, problem, kept, seed=trial.seed)
    return replace(_answer_of_machine(case, trained, len(kept)), labels=labels)


def borders(case: Case, trial: Candidate) -> Answer:
    """Find the borders of the support vector machine as the paper does."""
    return _accelerated(case, case.svm, trial, **_paper_mode(case, trial))


def limes(case: Case, trial: Candidate) -> Answer:
    """Accelerate the support vector machine with limes' default settings."""
    return _accelerated(case, case.svm, trial)


def true_borders(case: Case, trial: Candidate) -> Answer:
    """Find the borders of the sample classes from their definition, as the paper does."""
    problem = case.problem
    model = SampleClassesClassifier()
    return _borders_of(
        case, trial, model, model.predict(problem.X_test), **_paper_mode(case, trial)
    )


def agf(case: Case, trial: Candidate) -> Answer:
    """Give the AGF classifier."""
    trained, problem = case.agf, case.problem
    return Answer(
        trained.model.predict,
        problem.test_rows(np.float64),
        trained.seconds,
        len(problem.y_train),
        trained.labels,
        model=f"W = {trained.model.total_weight_:g}, {trained.model.n_neighbors} neighbours",
    )


def agf_borders(case: Case, trial: Candidate) -> Answer:
    """Find the borders of the AGF classifier as the paper does."""
    return _accelerated(case, case.agf, trial, **_paper_mode(case, trial))


def agf_limes(case: Case, trial: Candidate) -> Answer:
    """Accelerate the AGF classifier with limes' default settings."""
    return _accelerated(case, case.agf, trial)


METHODS: dict[str, Method] = {
    "linear": linear,
    "svm": svm,
    "svm-probability": svm_probability,
    "borders": borders,
    "limes": limes,
    "subsampled": subsampled,
    "true-borders": true_borders,
    "agf": agf,
    "agf-borders": agf_borders,
    "agf-limes": agf_limes,
}


def _paper_mode(case: Case, trial: Candidate) -> dict[str, Any]:
    """Return the paper's settings, with its number of points unless the trial varies it."""
    if trial.setting is not None:
        return {**PAPER_MODE, "n_borders": int(trial.setting)}
    if case.problem.name == SAMPLE_CLASSES:
        return {**PAPER_MODE, "n_borders": SAMPLE_BORDERS}
    return {**PAPER_MODE, "n_borders": parameters(case.problem.name).n_borders}


def _answer_of_machine(case: Case, trained: Trained, n_train: int) -> Answer:
    """Return what a support vector machine gives back: LIBSVM's own predictions are timed."""
    return Answer(
        trained.model.predict,
        case.problem.test_rows(np.float64),
        trained.seconds,
        n_train,
        trained.labels,
        ask_exactly=ask_exactly(trained.model),
        n_support=len(trained.model.support_),
    )


def _accelerated(case: Case, source: Trained, trial: Candidate, **options: Any) -> Answer:
    """Accelerate a trained source."""
    return _borders_of(case, trial, source.pipeline, source.labels, **options)


def _borders_of(
    case: Case, trial: Candidate, source: Any, source_labels: Labels, **options: Any
) -> Answer:
    """Accelerate a classifier of raw rows."""
    problem = case.problem
    # In the paper the sigmoid of a pair is fitted with the true labels, as LIBSVM does it.
    labels = problem.y_train if options else None
    start = time.process_time()
    fast = accelerate(source, problem.X_train, labels, random_state=trial.seed, **options)
    seconds = time.process_time() - start
    return Answer(
        fast.predict,
        problem.X_test.astype(np.float32),
        seconds,
        len(problem.y_train),
        source_labels=source_labels,
        n_borders=fast.n_borders_,
        model=_describe(fast),
    )


def _describe(fast: BordersClassifier) -> str:
    """Name the scheme of a fast model and what a row costs."""
    return f"{fast.scheme_.name}, {fast.cost_:.0f} multiply-adds a row"
