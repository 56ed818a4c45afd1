"""The methods that are compared: each trains on a case and can then be asked."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from limes._typing import Labels
from limes.accelerating import accelerate
from limes.classifier import BordersClassifier
from limes.datasets import SampleClassesClassifier, parameters
from limes.linear import liblinear_classifier
from limes.paper.cases import (
    SAMPLE_CLASSES,
    Case,
    Trained,
    ask_exactly,
    label_by_probability,
    train_machine,
)
from limes.paper.rows import Trial
from limes.subsample import subsample_rows

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
UNFINISHED = ", stopped before it converged"
# Of these the smallest class would vanish from a small fraction.
UNEVEN = ("shuttle",)


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


Method = Callable[[Case, Trial], Answer]


def linear(case: Case, trial: Trial) -> Answer:
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


def svm(case: Case, trial: Trial) -> Answer:
    """Give the support vector machine on all training rows."""
    return _answer_of_machine(case, case.machine, len(case.problem.y_train))


def svm_probability(case: Case, trial: Trial) -> Answer:
    """Let the same machine decide by its probabilities, as the paper seems to have done."""
    kept = np.arange(len(case.problem.y_train))
    model = case.machine.model
    labels = label_by_probability(model, case.problem, kept, seed=trial.seed)
    return replace(svm(case, trial), labels=labels, source_labels=case.machine.labels)


def subsampled(case: Case, trial: Trial) -> Answer:
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


def borders(case: Case, trial: Trial) -> Answer:
    """Find the borders of the support vector machine as the paper does."""
    return _accelerated(case, case.machine, trial, **_paper_mode(case, trial))


def limes(case: Case, trial: Trial) -> Answer:
    """Accelerate the support vector machine with limes' default settings."""
    return _accelerated(case, case.machine, trial)


def true_borders(case: Case, trial: Trial) -> Answer:
    """Find the borders of the sample classes from their definition, as the paper does."""
    problem = case.problem
    model = SampleClassesClassifier()
    return _borders_of(
        case, trial, model, model.predict(problem.X_test), **_paper_mode(case, trial)
    )


def agf(case: Case, trial: Trial) -> Answer:
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


def agf_borders(case: Case, trial: Trial) -> Answer:
    """Find the borders of the AGF classifier as the paper does."""
    return _accelerated(case, case.agf, trial, **_paper_mode(case, trial))


def agf_limes(case: Case, trial: Trial) -> Answer:
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


def _paper_mode(case: Case, trial: Trial) -> dict[str, Any]:
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


def _accelerated(case: Case, source: Trained, trial: Trial, **options: Any) -> Answer:
    """Accelerate a trained source."""
    return _borders_of(case, trial, source.pipeline, source.labels, **options)


def _borders_of(
    case: Case, trial: Trial, source: Any, source_labels: Labels, **options: Any
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
