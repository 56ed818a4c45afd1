"""What models answer about the same rows, and how good that is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limes._typing import Array, Labels
from limes.html_report.tally import Counted
from limes.report import compare, pickled_size
from limes.scores import uncertainty_of_counts

# Rows that times are taken on.
N_TIMED = 2000


@dataclass(frozen=True, eq=False)
class Answers:
    """What one model answered.

    Parameters
    ----------
    name : str
        What it is.
    counted : Counted
        Its answers, beside the truth where that is known.
    microseconds : float
        Time of a row, in a batch.
    n_bytes : int
        Its size; 0 where that is not known.
    """

    name: str
    counted: Counted
    microseconds: float
    n_bytes: int

    @property
    def has_probabilities(self) -> bool:
        """Whether it gave any."""
        return self.counted.has_probabilities


@dataclass(frozen=True, eq=False)
class Comparison:
    """Models on the same rows.

    Parameters
    ----------
    fast : Answers
        Of the model that is shown.
    source : Answers or None
        Of what it replaces, where that is at hand.
    classes : ndarray of shape (n_classes,)
        Labels that the models know, in the order of the probabilities.
    n_same : int, default=0
        Rows with the same label from both.
    """

    fast: Answers
    source: Answers | None
    classes: Labels
    n_same: int = 0

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.fast.counted.n_rows

    @property
    def has_truth(self) -> bool:
        """Whether the true labels are known."""
        return self.fast.counted.truths is not None

    @property
    def agreement(self) -> float | None:
        """Share of rows with the source's label."""
        return None if self.source is None else self.n_same / self.n_rows

    @property
    def speed_up(self) -> float | None:
        """How many times quicker than the source."""
        if self.source is None or not self.fast.microseconds:
            return None
        return self.source.microseconds / self.fast.microseconds

    @property
    def all_classes(self) -> Labels:
        """The labels of the models, and those that only the truth has."""
        truths = self.fast.counted.truths
        return self.classes if truths is None else np.union1d(self.classes, truths)

    def confusion(self, answers: Answers) -> NDArray[np.int64]:
        """Return how many rows of each true class (down) got each label (across)."""
        return answers.counted.confusion(self.all_classes)


def compare_answers(comparison: Comparison) -> dict[str, Any]:
    """Return all scores as plain numbers.

    Parameters
    ----------
    comparison : Comparison
        Models on the same rows.

    Returns
    -------
    dict
        For machines; None stands for what is not known.
    """
    models = {"model": comparison.fast, "source": comparison.source}
    result: dict[str, Any] = {
        "n_rows": comparison.n_rows,
        "classes": comparison.all_classes.tolist(),
        "agreement": comparison.agreement,
        "speed_up": comparison.speed_up,
    }
    for role, answers in models.items():
        if answers is not None:
            result[role] = score(answers, comparison)
    return result


def score(answers: Answers, comparison: Comparison) -> dict[str, Any]:
    """Return the scores of one model."""
    counted = answers.counted
    found: dict[str, Any] = {
        "name": answers.name,
        "accuracy": None,
        "uncertainty_coefficient": None,
        "brier_score": None,
        "microseconds_a_row": answers.microseconds,
        "n_bytes": answers.n_bytes or None,
    }
    if counted.truths is None:
        return found
    found["accuracy"] = int(counted.rows[counted.truths == counted.labels].sum()) / counted.n_rows
    if len(np.unique(counted.truths)) > 1:
        found["uncertainty_coefficient"] = uncertainty_of_counts(counted.contingency())
    if counted.has_probabilities and np.isin(counted.truths, comparison.classes).all():
        found["brier_score"] = counted.brier_score(comparison.classes)
    found["confusion"] = comparison.confusion(answers).tolist()
    return found


def ask(model: Any, X: Any) -> tuple[Labels, Array | None]:
    """Return what a model says of rows: labels and, where it has them, probabilities.

    Parameters
    ----------
    model : classifier
        Fitted.
    X : array-like of shape (n_rows, n_features)
        Rows.

    Returns
    -------
    labels : ndarray of shape (n_rows,)
        Labels.
    probabilities : ndarray of shape (n_rows, n_classes), or None
        In the order of ``classes_``.
    """
    has_probabilities = hasattr(model, "predict_proba")
    return model.predict(X), model.predict_proba(X) if has_probabilities else None


def time_models(fast: Any, source: Any, X: Any) -> list[tuple[float, int]]:
    """Return the microseconds a row and the bytes of one or two models.

    Parameters
    ----------
    fast : classifier
        The model that is shown.
    source : classifier or None
        What it replaces.
    X : ndarray or sparse matrix of shape (n_rows, n_features)
        Rows; the first of them are timed, both models in turns.

    Returns
    -------
    list of tuple
        Of the fast model, then of the source if there is one.
    """
    slow: Callable[[Any], Labels] = fast.predict if source is None else source.predict
    sizes = (0 if source is None else pickled_size(source), _size(fast))
    report = compare(slow, fast.predict, X[:N_TIMED], None, names=("", ""), sizes=sizes)
    found = [(one.microseconds_a_row, one.n_bytes) for one in (report.borders, report.source)]
    return found if source is not None else found[:1]


def _size(model: Any) -> int:
    """Return the bytes of a model: those of its borders where it has any."""
    scheme = getattr(model, "scheme_", None)
    return pickled_size(model) if scheme is None else int(scheme.n_bytes)
