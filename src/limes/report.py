"""Comparison of a fast model with its source: skill, agreement, time, size."""

import math
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from limes._typing import Array, Labels
from limes.old_names import refuse_old_name
from limes.scores import RocCounter, RocCurves, uncertainty_of_counts
from limes.timing import affordable_rows, time_in_turns

__all__ = ["BreakEven", "Comparison", "ModelScores"]

# Rows that times are measured on; the time per row hardly changes with more.
MAX_TIMED_ROWS = 2000
# Models are timed in turns, this often and at least this long; the quickest call counts.
N_TURNS = 5
MIN_SECONDS = 0.002
# Seconds of one call where a break-even is measured, in so many turns; a slow model gets fewer rows
# than MAX_TIMED_ROWS, but at least these.
BREAK_EVEN_SECONDS = 0.03
BREAK_EVEN_TURNS = 3
MIN_TIMED_ROWS = 8
# Rows and seconds of one call where a model is compared with its source after every fit, and the
# factor by which it must be faster not to be timed for longer.
COMPARED_ROWS, MAX_COMPARED_VALUES = 1000, 1 << 22
QUICK_SECONDS = 0.001
CLEARLY_FASTER = 2.0
# Bins of probability, of the reliability diagram.
N_BINS = 10

Predict = Callable[[Any], Labels]


@dataclass(frozen=True)
class BreakEven:
    """After how many predicted rows the time of a fit is earned back; printing it gives a sentence.

    The time that a row saves is the difference of the times per row. Times are None where they are
    not known, and where there is nothing to compare with.

    Parameters
    ----------
    fit_seconds : float
        Wall-clock time of the fit.
    microseconds_per_row : float
        Time of the fast model.
    source_microseconds : float or None, default=None
        Time per row of the source.
    exact_microseconds : float or None, default=None
        Time per row of the source's exact sums.

    Examples
    --------
    >>> print(BreakEven(3.0, 0.5, source_microseconds=20.5))
    The fit took 3 s, earned back after about 150,000 rows against the source.
    >>> print(BreakEven(3.0, 0.5, source_microseconds=0.4))
    The fit took 3 s, which are not earned back. The model is not faster than the source.
    """

    fit_seconds: float
    microseconds_per_row: float
    source_microseconds: float | None = None
    exact_microseconds: float | None = None

    @property
    def rows(self) -> int | None:
        """Rows after which the fit is earned back against the source; None for never."""
        return self._rows_against(self.source_microseconds)

    @property
    def exact_rows(self) -> int | None:
        """Rows after which the fit is earned back against the exact sums; None for never."""
        return self._rows_against(self.exact_microseconds)

    def to_dict(self) -> dict[str, float | int | None]:
        """Return the numbers, for JSON.

        Returns
        -------
        dict
            None stands for what is not known, and for never.

        Examples
        --------
        >>> BreakEven(3.0, 0.5, source_microseconds=20.5).to_dict()["break_even_rows"]
        150000
        """
        return {
            "fit_seconds": self.fit_seconds,
            "break_even_rows": self.rows,
            "exact_break_even_rows": self.exact_rows,
        }

    def __str__(self) -> str:
        times = {
            "the source": (self.source_microseconds, self.rows),
            "the source's exact sums": (self.exact_microseconds, self.exact_rows),
        }
        earned = [f"{_rounded(rows)} against {name}" for name, (_, rows) in times.items() if rows]
        slower = [name for name, (slow, rows) in times.items() if slow is not None and not rows]
        text = f"The fit took {_seconds(self.fit_seconds)} s"
        if earned:
            text += f", earned back after about {', '.join(earned)}"
        elif slower:
            text += ", which are not earned back"
        if slower:
            text += f". The model is not faster than {' or '.join(slower)}"
        return f"{text}."

    def _rows_against(self, slow: float | None) -> int | None:
        """Return the rows that take the time of the fit longer by another model."""
        if slow is None or slow <= self.microseconds_per_row:
            return None
        return max(1, math.ceil(1e6 * self.fit_seconds / (slow - self.microseconds_per_row)))


def measure_break_even(
    fit_seconds: float,
    X: Any,
    fast: Predict,
    source: Predict | None = None,
    exact: Predict | None = None,
) -> BreakEven:
    """Time models on the first rows, each for a fraction of a second and on one thread."""
    with threadpool_limits(1):
        times = _time_briefly({"fast": fast, "source": source, "exact": exact}, X)
    return BreakEven(fit_seconds, times["fast"], times.get("source"), times.get("exact"))


def slower_finding(fast: Predict, source: Predict, X: Any) -> list[str]:
    """Return that a model is not faster than its source, in one sentence, or nothing.

    A quick measurement shows that most models are; where it does not, a longer one decides. Nothing
    is known of a source that does not take the rows.
    """
    n_rows = max(1, min(COMPARED_ROWS, MAX_COMPARED_VALUES // X.shape[1]))
    rows = X[np.resize(np.arange(X.shape[0]), n_rows)]
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    try:
        source(rows[:1])
    except (ValueError, TypeError, RuntimeError):
        return []
    with threadpool_limits(1):
        for seconds in (QUICK_SECONDS, BREAK_EVEN_SECONDS):
            times = _time_briefly({"fast": fast, "source": source}, rows, seconds)
            if (
                times["fast"] * (CLEARLY_FASTER if seconds == QUICK_SECONDS else 1)
                < times["source"]
            ):
                return []
    return [
        f"the model takes {times['fast']:.2g} µs per row and the source {times['source']:.2g} µs: "
        "use the source, or limit max_time_us."
    ]


def _time_briefly(
    predicts: dict[str, Predict | None], X: Any, seconds: float = BREAK_EVEN_SECONDS
) -> dict[str, float]:
    """Return the microseconds per row of each model, a slow one timed on fewer rows."""
    rows = X[:MAX_TIMED_ROWS]
    known = {name: predict for name, predict in predicts.items() if predict is not None}
    sizes = [
        affordable_rows(predict, rows, seconds=seconds, n_probe=MIN_TIMED_ROWS)
        for predict in known.values()
    ]
    calls = [partial(predict, rows[:n]) for predict, n in zip(known.values(), sizes, strict=True)]
    timings = time_in_turns(calls, n_turns=BREAK_EVEN_TURNS, turn_seconds=MIN_SECONDS)
    times = [1e6 * timing.seconds / n for timing, n in zip(timings, sizes, strict=True)]
    return dict(zip(known, times, strict=True))


@dataclass(frozen=True, eq=False)
class Comparison:
    """A model, and the source that it replaces, on the same rows; printing it gives a table.

    Parameters
    ----------
    fast : ModelScores
        Of the fast model.
    source : ModelScores or None
        Of the source; None if there is none.
    n_same : int, default=0
        Number of rows with the same label from both.
    fit_seconds : float, default=nan
        Wall-clock time of the fit of the fast model; nan where it is not known.
    exact_microseconds_per_row : float or None, default=None
        Time of the source's exact sums; None where there are none, and where they are the model.
    fit_notes : tuple of str, default=()
        Sentences on the fit: its agreement, and which rows that stands for.
    warnings : tuple of str, default=()
        What the fit warned of, one sentence each.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> import limes
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> fast = limes.accelerate(SVC(gamma=2).fit(X, y), scheme="exact")
    >>> report = fast.report(X, y)
    >>> report.agreement, report.n_rows
    (1.0, 200)
    """

    fast: "ModelScores"
    source: "ModelScores | None"
    n_same: int = 0
    fit_seconds: float = math.nan
    exact_microseconds_per_row: float | None = None
    fit_notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.fast.counts.n_rows

    @property
    def agreement(self) -> float | None:
        """Share of rows with the source's label; None without a source."""
        return None if self.source is None else self.n_same / self.n_rows

    @property
    def speed_up(self) -> float | None:
        """Time of the source divided by that of the fast model; None without a source."""
        if self.source is None:
            return None
        return self.source.microseconds_per_row / self.fast.microseconds_per_row

    @property
    def break_even(self) -> BreakEven | None:
        """When the time of the fit is earned back; None where that time is not known."""
        slow = None if self.source is None else self.source.microseconds_per_row
        if math.isnan(self.fit_seconds):
            return None
        fast = self.fast.microseconds_per_row
        return BreakEven(self.fit_seconds, fast, slow, self.exact_microseconds_per_row)

    @property
    def classes(self) -> Labels:
        """Labels of the fast model, in the order of its probabilities."""
        return self.fast.counts.classes

    @property
    def all_classes(self) -> Labels:
        """Labels of the model and of the true classes, sorted if these are known."""
        truths = self.fast.counts.truths
        return self.classes if truths is None else np.union1d(self.classes, truths)

    @property
    def models(self) -> "list[ModelScores]":
        """The source, if there is one, and the fast model."""
        return [model for model in (self.source, self.fast) if model is not None]

    def confusion(self, model: "ModelScores") -> NDArray[np.int64]:
        """Return how many rows of each true class (down) were given each label (across).

        Parameters
        ----------
        model : ModelScores
            One of the two.

        Returns
        -------
        ndarray of shape (n_classes, n_classes)
            Counts, in the order of ``all_classes``.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from sklearn.svm import SVC
        >>> import limes
        >>> X, y = make_moons(200, noise=0.1, random_state=0)
        >>> fast = limes.accelerate(SVC(gamma=2).fit(X, y), scheme="exact")
        >>> report = fast.report(X, y)
        >>> int(report.confusion(report.fast).sum())
        200
        """
        return model.counts.confusion(self.all_classes)

    def roc_areas(self, model: "ModelScores") -> dict[str, float | None] | None:
        """Return the area under the ROC curve of each class of a model against the rest.

        Parameters
        ----------
        model : ModelScores
            One of the two.

        Returns
        -------
        dict or None
            By label as text; the area is None where all rows, or none, are of the class. None
            without probabilities or true labels.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from sklearn.svm import SVC
        >>> import limes
        >>> X, y = make_moons(200, noise=0.1, random_state=0)
        >>> fast = limes.BordersClassifier(SVC(gamma=2), n_borders=16).fit(X, y)
        >>> report = fast.report(X, y)
        >>> report.roc_areas(report.fast) is None  # a report compares labels
        True
        """
        if model.roc is None:
            return None
        areas = [None if math.isnan(area) else area for area in model.roc.areas.tolist()]
        return dict(zip(map(str, self.classes.tolist()), areas, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return all scores as plain numbers, for JSON.

        Returns
        -------
        dict
            None stands for what is not known.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from sklearn.svm import SVC
        >>> import limes
        >>> X, y = make_moons(200, noise=0.1, random_state=0)
        >>> fast = limes.accelerate(SVC(gamma=2).fit(X, y), scheme="exact")
        >>> report = fast.report(X, y)
        >>> report.to_dict()["agreement"]
        1.0
        """
        result: dict[str, Any] = {
            "n_rows": self.n_rows,
            "classes": self.all_classes.tolist(),
            "agreement": self.agreement,
            "speed_up": self.speed_up,
            "exact_microseconds_per_row": self.exact_microseconds_per_row,
            **({} if self.break_even is None else self.break_even.to_dict()),
            "warnings": list(self.warnings),
        }
        for role, model in (("fast", self.fast), ("source", self.source)):
            if model is not None:
                result[role] = {"name": model.name} | {key: getattr(model, key) for key in SCORES}
                if model.counts.truths is not None:
                    result[role]["confusion"] = self.confusion(model).tolist()
                    result[role]["roc_areas"] = self.roc_areas(model)
                    result[role]["roc_curve"] = _plain_curve(model.roc)
        return result

    def table(self, *, unknown: str = "-") -> list[list[str]]:
        """Return the scores as text.

        Parameters
        ----------
        unknown : str, default="-"
            Stands for a score that is not known.

        Returns
        -------
        list of list of str
            A head with the names of the models, then one line for each score.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from sklearn.svm import SVC
        >>> import limes
        >>> X, y = make_moons(200, noise=0.1, random_state=0)
        >>> fast = limes.accelerate(SVC(gamma=2).fit(X, y), scheme="exact")
        >>> report = fast.report(X, y)
        >>> report.table()[0]
        ['', 'SVC', 'exact sums']
        """
        lines = [["", *(model.name for model in self.models)]]
        for key, (label, form) in SCORES.items():
            if key in OF_PROBABILITIES and not any(
                model.has_probabilities for model in self.models
            ):
                continue
            values = [getattr(model, key) for model in self.models]
            lines.append([label, *(unknown if value is None else form(value) for value in values)])
        return lines

    def summary(self) -> str:
        """Return agreement and speed-up in one sentence.

        Returns
        -------
        str
            Without a source only the number of rows.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from sklearn.svm import SVC
        >>> import limes
        >>> X, y = make_moons(200, noise=0.1, random_state=0)
        >>> fast = limes.accelerate(SVC(gamma=2).fit(X, y), scheme="exact")
        >>> report = fast.report(X, y)
        >>> report.summary()[:35]
        'Same label on 100.00% of 200 rows, '
        """
        if self.agreement is None or self.speed_up is None:
            return f"{self.n_rows} rows."
        times = f"{self.speed_up:.0f}" if self.speed_up >= 10 else f"{self.speed_up:.2g}"
        return f"Same label on {self.agreement:.2%} of {self.n_rows} rows, {times} times as fast."

    def __str__(self) -> str:
        lines = self.table()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [
            "  ".join(
                [first.ljust(widths[0])]
                + [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
            )
            for first, *cells in lines
        ]
        return "\n".join([*text, *self.sentences()])

    def sentences(self) -> list[str]:
        """Return what the table does not say: agreement and speed-up, and the time of the fit.

        Returns
        -------
        list of str
            Also the agreement that the fit measured, and its warnings.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from sklearn.svm import SVC
        >>> import limes
        >>> X, y = make_moons(200, noise=0.1, random_state=0)
        >>> fast = limes.accelerate(SVC(gamma=2).fit(X, y), scheme="exact")
        >>> report = fast.report(X, y)
        >>> report.sentences()[0] == report.summary()
        True
        """
        break_even = [] if self.break_even is None else [str(self.break_even)]
        warned = [f"Warning of the fit: {sentence}" for sentence in self.warnings]
        return [self.summary(), *self.fit_notes, *warned, *break_even]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            refuse_old_name(self, name, {"borders": "fast"})


@dataclass(frozen=True, eq=False)
class ModelScores:
    """Predictions of one model, counted, and its time and size.

    Parameters
    ----------
    name : str
        Name of the model for readers.
    counts : PredictionCounts
        Its predictions, with the true labels where they are known.
    microseconds_per_row : float
        Time of ``predict``, in a batch.
    n_bytes : int or None
        Size; None if it is not known.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> import limes
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> fast = limes.accelerate(SVC(gamma=2).fit(X, y), scheme="exact")
    >>> report = fast.report(X, y)
    >>> report.fast.accuracy == report.source.accuracy
    True
    """

    name: str
    counts: "PredictionCounts"
    microseconds_per_row: float
    n_bytes: int | None

    @property
    def has_probabilities(self) -> bool:
        """Whether the model predicts probabilities."""
        return self.counts.has_probabilities

    @property
    def accuracy(self) -> float | None:
        """Share of rows with the true label; None where the true labels are not known."""
        counts = self.counts
        if counts.truths is None:
            return None
        return int(counts.rows[counts.truths == counts.labels].sum()) / counts.n_rows

    @property
    def uncertainty_coefficient(self) -> float | None:
        """Share of the class entropy that is explained; None with fewer than two true classes."""
        if self.counts.truths is None or len(np.unique(self.counts.truths)) < 2:
            return None
        return uncertainty_of_counts(self.counts.contingency())

    @property
    def brier_score(self) -> float | None:
        """Error of the probabilities; None without them, or if the model lacks a true class."""
        counts = self.counts
        if counts.truths is None or not counts.has_probabilities:
            return None
        return counts.brier_score() if np.isin(counts.truths, counts.classes).all() else None

    @property
    def roc(self) -> RocCurves | None:
        """ROC curves of each class against the rest; None without probabilities or true labels."""
        return self.counts.roc

    @property
    def roc_area(self) -> float | None:
        """Mean area under these curves; None without them, or if all rows are of one class."""
        return None if self.roc is None else self.roc.area

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            refuse_old_name(self, name, {"microseconds_a_row": "microseconds_per_row"})


@dataclass(frozen=True, eq=False)
class PredictionCounts:
    """Predictions of a model, summed over the rows of each pair of a true and a given label.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Labels of the columns of probabilities.
    truths : ndarray of shape (n_pairs,), or None
        True labels; None where they are not known.
    labels : ndarray of shape (n_pairs,)
        Predicted labels.
    rows : ndarray of int of shape (n_pairs,)
        Number of rows with both.
    bins : ndarray of int of shape (n_pairs, N_BINS)
        Number of rows by a probability: that of the second of two classes, or the largest of more.
    bin_probabilities : ndarray of shape (n_pairs, N_BINS)
        Sums of these probabilities.
    squared_sum : ndarray of shape (n_pairs,)
        Sums of the squares of all probabilities.
    class_probabilities : ndarray of shape (n_pairs, n_classes)
        Sums of the probabilities of each class.
    has_probabilities : bool
        Whether the model predicts probabilities; if not, all of these sums are zero.
    roc : RocCurves or None, default=None
        One for each class; None without probabilities or true labels.
    """

    classes: Labels
    truths: Labels | None
    labels: Labels
    rows: NDArray[np.int64]
    bins: NDArray[np.int64]
    bin_probabilities: Array
    squared_sum: Array
    class_probabilities: Array
    has_probabilities: bool
    roc: RocCurves | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.rows.sum())

    def confusion(self, classes: Labels) -> NDArray[np.int64]:
        """Return how many rows of each true class (down) were given each label (across).

        Labels that are none of the classes, which are sorted, are left out.
        """
        assert self.truths is not None
        matrix = np.zeros((len(classes), len(classes)), dtype=np.int64)
        is_known = np.isin(self.truths, classes) & np.isin(self.labels, classes)
        places = [np.searchsorted(classes, part[is_known]) for part in (self.truths, self.labels)]
        np.add.at(matrix, tuple(places), self.rows[is_known])
        return matrix

    def contingency(self) -> NDArray[np.int64]:
        """Return how many rows of each true label (down) were given each label (across)."""
        assert self.truths is not None
        down, across = (np.unique(part, return_inverse=True) for part in (self.truths, self.labels))
        matrix = np.zeros((len(down[0]), len(across[0])), dtype=np.int64)
        np.add.at(matrix, (down[1], across[1]), self.rows)
        return matrix

    def true_class_probability(self) -> Array:
        """Return the sums of the probabilities of the true classes."""
        assert self.truths is not None
        order = np.argsort(self.classes)
        places = order[np.searchsorted(self.classes, self.truths, sorter=order)]
        return self.class_probabilities[np.arange(len(places)), places]

    def brier_score(self) -> float:
        """Return the mean squared error of probabilities, half of it for two classes.

        The error is 1 - p for the true class and p for the others: in all 1 - 2 p + sum(p²).
        """
        total = float(np.sum(self.rows - 2 * self.true_class_probability() + self.squared_sum))
        return max(total, 0.0) / self.n_rows / (2 if len(self.classes) == 2 else 1)


class PredictionCounter:
    """Counts the predictions of a model, block by block.

    Parameters
    ----------
    classes : array-like of shape (n_classes,)
        Labels of the columns of its probabilities.
    convert : callable, default=None
        From true labels as they are given to labels of the type of the classes.

    Examples
    --------
    >>> counter = PredictionCounter([0, 1], convert=lambda words: words.astype(int))
    >>> counter.add(np.array(["1", "0"]), np.array([1, 1]), None)
    >>> counter.add(np.array(["1"]), np.array([1]), None)
    >>> counts = counter.sum_up()
    >>> counts.confusion(np.array([0, 1])).tolist()
    [[0, 1], [0, 2]]
    """

    def __init__(self, classes: ArrayLike, convert: Callable[[Any], Labels] | None = None) -> None:
        self._classes = np.asarray(classes)
        self._convert = np.asarray if convert is None else convert
        self._sums: dict[tuple[Any, Any], Array] = {}
        self._has_probabilities = False
        self._roc = RocCounter(len(self._classes))

    def add(self, y: Labels | None, labels: Labels, probabilities: Array | None) -> None:
        """Count a block of rows.

        Parameters
        ----------
        y : ndarray of shape (n_rows,), or None
            True labels.
        labels : ndarray of shape (n_rows,)
            Predicted labels.
        probabilities : ndarray of shape (n_rows, n_classes), or None
            None if the model does not predict probabilities.
        """
        names, pair_index = np.unique(labels, return_inverse=True)
        truths = [None]
        if y is not None:
            known, truth_index = np.unique(y, return_inverse=True)
            truths, pair_index = known.tolist(), truth_index * len(names) + pair_index
            if probabilities is not None:
                self._roc.add(self._columns_of(known)[truth_index], probabilities)
        given = names.tolist()
        pairs, pair_index = np.unique(pair_index, return_inverse=True)
        for pair, sums in zip(pairs, self._sum(pair_index, probabilities), strict=True):
            key = truths[pair // len(given)], given[pair % len(given)]
            self._sums[key] = self._sums.get(key, 0.0) + sums

    def sum_up(self) -> PredictionCounts:
        """Return the counts of all blocks.

        Returns
        -------
        PredictionCounts
            One element for each pair of a true and a predicted label.
        """
        sums = np.array(list(self._sums.values()))
        truths, labels = zip(*self._sums, strict=True)
        known = None
        if truths[0] is not None:
            known = self._convert(np.array(truths))
        parts = np.split(sums, np.cumsum([1, N_BINS, N_BINS, 1]), axis=1)
        return PredictionCounts(
            self._classes,
            known,
            np.array(labels),
            parts[0][:, 0].astype(np.int64),
            parts[1].astype(np.int64),
            parts[2],
            parts[3][:, 0],
            parts[4],
            self._has_probabilities,
            None if known is None or not self._has_probabilities else self._roc.curves(),
        )

    def _columns_of(self, truths: Labels) -> NDArray[np.intp]:
        """Return the column of probabilities of each true label, -1 where there is none."""
        is_same = self._convert(truths)[:, None] == self._classes
        return np.where(is_same.any(axis=1), is_same.argmax(axis=1), -1)

    def _sum(self, pair_index: NDArray[np.intp], probabilities: Array | None) -> Array:
        """Return one line of sums for each pair of labels."""
        n_pairs, n_classes = int(pair_index.max()) + 1, len(self._classes)
        sums = np.zeros((n_pairs, 2 + 2 * N_BINS + n_classes))
        sums[:, 0] = np.bincount(pair_index)
        if probabilities is None:
            return sums
        self._has_probabilities = True
        binned = probabilities[:, 1] if n_classes == 2 else probabilities.max(axis=1)
        places = pair_index * N_BINS + np.minimum((binned * N_BINS).astype(np.intp), N_BINS - 1)
        for start, weights in ((1, None), (1 + N_BINS, binned)):
            counts = np.bincount(places, weights, n_pairs * N_BINS)
            sums[:, start : start + N_BINS] = counts.reshape(n_pairs, N_BINS)
        squares = np.square(probabilities).sum(axis=1)
        for place, column in enumerate([squares, *probabilities.T], start=1 + 2 * N_BINS):
            sums[:, place] = np.bincount(pair_index, column)
        return sums


@dataclass(frozen=True)
class ComparedModel:
    """What a comparison needs of a model."""

    name: str
    predict: Predict
    n_bytes: int | None
    predict_proba: Callable[[Any], Array] | None = None

    @classmethod
    def from_estimator(cls, model: Any) -> "ComparedModel":
        """Describe a fitted estimator."""
        return cls(
            model_name(model),
            model.predict,
            model_bytes(model),
            getattr(model, "predict_proba", None),
        )


def compare(
    fast: ComparedModel,
    source: ComparedModel | None,
    X: Any,
    y: Labels | None,
    *,
    classes: Labels,
    fit_seconds: float = math.nan,
    exact: Predict | None = None,
) -> Comparison:
    """Predict the same rows with one or two models, and time them and exact sums in turns."""
    models = [fast] if source is None else [fast, source]
    predicted = [predict_all(model, X) for model in models]
    predicts = [model.predict for model in models]
    times = time_models(predicts if exact is None else [*predicts, exact], X)
    scores = []
    for model, predictions, microseconds in zip(models, predicted, times, strict=False):
        counter = PredictionCounter(classes)
        counter.add(y, *predictions)
        scores.append(ModelScores(model.name, counter.sum_up(), microseconds, model.n_bytes))
    n_same = int(np.sum(predicted[0][0] == predicted[-1][0]))
    return Comparison(
        scores[0],
        None if source is None else scores[1],
        n_same,
        fit_seconds,
        None if exact is None else times[-1],
    )


def with_fit_notes(comparison: Comparison, fast: Any) -> Comparison:
    """Return a comparison with the agreement and the warnings of the fit, where they are known."""
    info = getattr(getattr(fast, "model_", None), "info", None)
    if info is None:
        return comparison
    sentence = info.agreement_sentence()
    return replace(
        comparison, fit_notes=(sentence,) if sentence else (), warnings=tuple(info.warnings)
    )


def predict_all(model: Any, X: Any) -> tuple[Labels, Array | None]:
    """Return labels and, if the model predicts them, probabilities."""
    predict_proba = getattr(model, "predict_proba", None)
    return model.predict(X), None if predict_proba is None else predict_proba(X)


def time_models(predicts: Sequence[Predict], X: Any) -> list[float]:
    """Return the microseconds per row of one or more models, timed in turns on the first rows."""
    rows = X[:MAX_TIMED_ROWS]
    timings = time_in_turns(
        [partial(predict, rows) for predict in predicts],
        n_turns=N_TURNS,
        turn_seconds=MIN_SECONDS,
    )
    return [1e6 * timing.seconds / rows.shape[0] for timing in timings]


def model_name(model: Any) -> str:
    """Return the name of a model for readers."""
    scheme = getattr(model, "scheme_", None)
    if scheme is not None:
        return scheme_name(scheme)
    inner = model.estimator if type(model).__name__ == "FrozenEstimator" else model
    return type(inner[-1] if hasattr(inner, "steps") else inner).__name__


def scheme_name(scheme: Any) -> str:
    """Return what predicts, in words, with the expected share of rows that exact sums predict."""
    if not scheme.maps:
        return "exact sums"
    # Of a map with fallback.
    share = getattr(scheme, "share", None)
    return f"borders ({scheme.name}" + (")" if share is None else f", {share:.1%} exact)")


def model_bytes(model: Any) -> int | None:
    """Return the size of a model: of its maps if it has any, else of its pickle, if it has one."""
    scheme = getattr(model, "scheme_", None)
    return (pickled_size(model) or None) if scheme is None else int(scheme.n_bytes)


def pickled_size(model: Any) -> int:
    """Return the size of a model in bytes, 0 where it cannot be pickled."""
    try:
        return len(pickle.dumps(model, protocol=pickle.HIGHEST_PROTOCOL))
    except (pickle.PicklingError, AttributeError, TypeError):
        return 0


def _plain_curve(roc: RocCurves | None) -> dict[str, list[float]] | None:
    """Return the mean ROC curve as lists of shares, None where there is none."""
    if roc is None or roc.area is None:
        return None
    names = ("false_positives", "true_positives")
    return {name: part.tolist() for name, part in zip(names, roc.mean_curve(), strict=True)}


def _seconds(value: float) -> str:
    """Return seconds with two digits, or as a whole number."""
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"


def _rounded(n_rows: int) -> str:
    """Return a number of rows with two digits, in words."""
    return "1 row" if n_rows == 1 else f"{float(f'{n_rows:.2g}'):,.0f} rows"


def _share(value: float) -> str:
    """Return a share with four decimals."""
    return f"{value:.4f}"


# Attributes of ModelScores in the order of tables, with their labels and formats.
SCORES: dict[str, tuple[str, Callable[[Any], str]]] = {
    "accuracy": ("accuracy", _share),
    "uncertainty_coefficient": ("uncertainty coefficient", _share),
    "roc_area": ("area under the ROC curve", _share),
    "brier_score": ("Brier score (lower is better)", _share),
    "microseconds_per_row": ("microseconds per row", lambda value: f"{value:.3g}"),
    "n_bytes": ("size in kB", lambda value: f"{value / 1e3:,.1f}"),
}
# Those that only models with probabilities have.
OF_PROBABILITIES = ("roc_area", "brier_score")
