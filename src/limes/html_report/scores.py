"""Predictions counted in pieces, and all scores from the counts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limes._typing import Array, Labels
from limes.report import compare, pickled_size
from limes.scores import uncertainty_of_counts

# Rows that times are taken on.
N_TIMED = 2000
# Tenths of probability, of the reliability diagram.
N_BINS = 10


@dataclass(frozen=True, eq=False)
class PredictionCounts:
    """What a model answered, summed over the rows of one true label that got one label.

    Parameters
    ----------
    truths : ndarray of shape (n_pairs,), or None
        True labels; None where they are not known.
    labels : ndarray of shape (n_pairs,)
        Labels given.
    rows : ndarray of int of shape (n_pairs,)
        Rows with both.
    bins : ndarray of int of shape (n_pairs, N_BINS)
        Of them, those with a forecast in each tenth: the probability of the second of two classes,
        or the largest of more.
    forecasts : ndarray of shape (n_pairs, N_BINS)
        Sums of their forecasts.
    squares : ndarray of shape (n_pairs,)
        Sums of the squares of all probabilities.
    chances : ndarray of shape (n_pairs, n_classes)
        Sums of the probabilities of each class.
    has_probabilities : bool
        Whether there are any; else all of these sums are zero.
    """

    truths: Labels | None
    labels: Labels
    rows: NDArray[np.int64]
    bins: NDArray[np.int64]
    calibrated_probabilities: Array
    squares: Array
    chances: Array
    has_probabilities: bool

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.rows.sum())

    def confusion(self, classes: Labels) -> NDArray[np.int64]:
        """Return how many rows of each true class (down) got each label (across).

        Labels that are none of the classes, which are sorted, are left out.
        """
        assert self.truths is not None
        matrix = np.zeros((len(classes), len(classes)), dtype=np.int64)
        is_named = np.isin(self.truths, classes) & np.isin(self.labels, classes)
        places = [np.searchsorted(classes, both[is_named]) for both in (self.truths, self.labels)]
        np.add.at(matrix, tuple(places), self.rows[is_named])
        return matrix

    def contingency(self) -> NDArray[np.int64]:
        """Return how many rows of each true label (down) got each label (across), of any names."""
        assert self.truths is not None
        down, across = (np.unique(both, return_inverse=True) for both in (self.truths, self.labels))
        matrix = np.zeros((len(down[0]), len(across[0])), dtype=np.int64)
        np.add.at(matrix, (down[1], across[1]), self.rows)
        return matrix

    def brier_score(self, classes: Labels) -> float:
        """Return the mean squared error of probabilities, half of it for two classes.

        The true class has 1 - p for its error and the others p: in all 1 - 2 p + sum(p²).
        """
        assert self.truths is not None
        order = np.argsort(classes)
        places = order[np.searchsorted(classes, self.truths, sorter=order)]
        own = self.chances[np.arange(len(places)), places]
        total = float(np.sum(self.rows - 2 * own + self.squares))
        return max(total, 0.0) / self.n_rows / (2 if len(classes) == 2 else 1)


@dataclass(frozen=True, eq=False)
class ModelScores:
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
    counted: PredictionCounts
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

    fast: ModelScores
    source: ModelScores | None
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

    def confusion(self, answers: ModelScores) -> NDArray[np.int64]:
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


def score(answers: ModelScores, comparison: Comparison) -> dict[str, Any]:
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


class PredictionCounter:
    """Counts answers of a model, a piece of the rows at a time.

    Parameters
    ----------
    classes : array-like of shape (n_classes,)
        Of the columns of its probabilities.

    Examples
    --------
    >>> tally = PredictionCounter([0, 1])
    >>> tally.add(np.array(["1", "0"]), np.array([1, 1]), None)
    >>> tally.add(np.array(["1"]), np.array([1]), None)
    >>> found = tally.sum_up(join=lambda words: words.astype(int))
    >>> found.confusion(np.array([0, 1])).tolist()
    [[0, 1], [0, 2]]
    """

    def __init__(self, classes: ArrayLike) -> None:
        self._n_classes = len(np.asarray(classes))
        self._sums: dict[tuple[Any, Any], Array] = {}
        self._has_probabilities = False

    def add(self, y: Labels | None, labels: Labels, probabilities: Array | None) -> None:
        """Count some rows.

        Parameters
        ----------
        y : ndarray of shape (n_rows,), or None
            True labels, as the file has them.
        labels : ndarray of shape (n_rows,)
            Labels given.
        probabilities : ndarray of shape (n_rows, n_classes), or None
            None where the model gives none.
        """
        given, class_index = np.unique(labels, return_inverse=True)
        truths = [None]
        if y is not None:
            known, own = np.unique(y, return_inverse=True)
            truths, class_index = known.tolist(), own * len(given) + class_index
        names = given.tolist()
        pairs, class_index = np.unique(class_index, return_inverse=True)
        for pair, sums in zip(pairs, self._sum(class_index, probabilities), strict=True):
            key = truths[pair // len(given)], names[pair % len(given)]
            self._sums[key] = self._sums.get(key, 0.0) + sums

    def sum_up(self, join: Any = None) -> PredictionCounts:
        """Return all that was counted.

        Parameters
        ----------
        join : callable, default=None
            From the true labels as they were given, each once, to labels of one type.

        Returns
        -------
        Counted
            One line for each two labels, true and given.
        """
        sums = np.array(list(self._sums.values()))
        truths, labels = zip(*self._sums, strict=True)
        known = None
        if truths[0] is not None:
            known = np.array(truths) if join is None else join(np.array(truths))
        parts = np.split(sums, np.cumsum([1, N_BINS, N_BINS, 1]), axis=1)
        return PredictionCounts(
            known,
            np.array(labels),
            parts[0][:, 0].astype(np.int64),
            parts[1].astype(np.int64),
            parts[2],
            parts[3][:, 0],
            parts[4],
            self._has_probabilities,
        )

    def _sum(self, class_index: NDArray[np.intp], probabilities: Array | None) -> Array:
        """Return a line of sums for each code."""
        n_codes = int(class_index.max()) + 1
        sums = np.zeros((n_codes, 2 + 2 * N_BINS + self._n_classes))
        sums[:, 0] = np.bincount(class_index)
        if probabilities is None:
            return sums
        self._has_probabilities = True
        is_binary = self._n_classes == 2
        forecast = probabilities[:, 1] if is_binary else probabilities.max(axis=1)
        places = class_index * N_BINS + np.minimum((forecast * N_BINS).astype(np.intp), N_BINS - 1)
        for start, weights in ((1, None), (1 + N_BINS, forecast)):
            counts = np.bincount(places, weights, n_codes * N_BINS)
            sums[:, start : start + N_BINS] = counts.reshape(n_codes, N_BINS)
        squares = np.square(probabilities).sum(axis=1)
        for place, column in enumerate([squares, *probabilities.T], start=1 + 2 * N_BINS):
            sums[:, place] = np.bincount(class_index, column)
        return sums


def name_of(model: Any) -> str:
    """Return what a reader calls a model."""
    scheme = getattr(model, "scheme_", None)
    if scheme is not None:
        return f"borders ({scheme.name})"
    inner = model.estimator if type(model).__name__ == "FrozenEstimator" else model
    return type(inner[-1] if hasattr(inner, "steps") else inner).__name__
