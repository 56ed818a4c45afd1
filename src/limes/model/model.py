"""A scheme with the labels of its classes: all that predicts."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limes._core import thread_count
from limes._core.hardware import check_jobs
from limes._typing import Array, Indices, Labels
from limes.model.affine import is_sparse, to_dense
from limes.model.outlier_scores import OutlierScores
from limes.model.schemes import MapScheme, Scheme
from limes.old_names import refuse_old_name

# Below so many rows, starting threads and counting processors takes longer than predicting.
MIN_THREADED_ROWS = 2000
# Rows of one pass, and numbers of one pass: 8 MB of float64 stay in the cache.
BLOCK_ROWS = 1 << 16
BLOCK_NUMBERS = 1 << 20
# Types of rows that the core reads without a copy; float32 holds the integers exactly.
CORE_TYPES = tuple(map(np.dtype, (np.float64, np.float32, np.uint8, np.int16, np.uint16)))
NO_PROBABILITIES = (
    "predict_proba needs probabilities, which the source has not: train the source with "
    "probability=True, or give rows to fit them."
)


@dataclass(frozen=True)
class Candidate:
    """A model that was trained on the way to the selected one.

    Parameters
    ----------
    scheme : str
        How its maps make classes.
    n_borders : int
        Border points in all maps.
    blend : int
        Nearest points whose functions are averaged.
    cost : int
        Multiply-adds per row.
    agreement : float
        Share of held-out rows with the source's label.
    agreement_error : float
        Standard error of the agreement.
    is_selected : bool, default=False
        Whether it is the selected one.
    skill_loss : float, default=nan
        Expected loss of the source's uncertainty coefficient; nan where it was not estimated.
    fallback_share : float, default=0.0
        Expected share of rows that go to the exact sums.
    coverage_agreement : float, default=nan
        Share of coverage rows, between and around those given, with the source's label.
    shape : str, default='linear'
        Shape of its base function: 'linear', 'envelope', 'diagonal' or 'quadratic'.
    score_correlation : float, default=nan
        Of an outlier detector: smallest rank correlation of its scores with the source's.
    skill_loss_error : float, default=nan
        Standard error of the loss.

    Examples
    --------
    >>> best = Candidate("shared", 64, 7, 1200, 0.99, 0.002, is_selected=True)
    >>> best.n_borders, best.cost, best.fallback_share
    (64, 1200, 0.0)
    """

    scheme: str
    n_borders: int
    blend: int
    cost: int
    agreement: float
    agreement_error: float
    is_selected: bool = False
    skill_loss: float = math.nan
    fallback_share: float = 0.0
    coverage_agreement: float = math.nan
    shape: str = "linear"
    score_correlation: float = math.nan
    skill_loss_error: float = math.nan

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            new_names = {"error": "agreement_error", "is_chosen": "is_selected"}
            refuse_old_name(self, name, {**new_names, "lost": "skill_loss"})


@dataclass(frozen=True, eq=False)
class FeatureStatistics:
    """What the features of the rows of a fit look like, for exports in whole numbers.

    Parameters
    ----------
    minimum, maximum, mean, std : ndarray of shape (n_features,)
        Of each feature.
    """

    minimum: Array
    maximum: Array
    mean: Array
    std: Array

    @classmethod
    def from_rows(cls, X: Any) -> "FeatureStatistics":
        """Return the statistics of rows, sparse or dense.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Rows, at least one.

        Returns
        -------
        FeatureStatistics
            Of these rows.
        """
        n_block = max(1, BLOCK_NUMBERS // max(X.shape[1], 1))
        blocks = range(0, X.shape[0], n_block)
        minimum = np.full(X.shape[1], np.inf)
        maximum, mean, squares = -minimum, np.zeros(X.shape[1]), np.zeros(X.shape[1])
        for start in blocks:
            rows = to_dense(X[start : start + n_block])
            minimum = np.minimum(minimum, rows.min(axis=0))
            maximum = np.maximum(maximum, rows.max(axis=0))
            mean += (rows / X.shape[0]).sum(axis=0)
        mean = np.clip(mean, minimum, maximum)
        # Divided before it is squared: the square of a large value is infinite.
        largest = np.maximum(maximum - mean, mean - minimum)
        unit = np.where((largest > 0) & (largest < np.inf), largest, 1.0)
        for start in blocks:
            rows = to_dense(X[start : start + n_block])
            squares += (np.square((rows - mean) / unit) / X.shape[0]).sum(axis=0)
        return cls(minimum, maximum, mean, unit * np.sqrt(squares))


@dataclass(frozen=True)
class FitInfo:
    """What a fit found out about its model.

    Parameters
    ----------
    agreement, agreement_error : float, default=nan
        Share of held-out rows with the source's label, and its standard error.
    placement : str or None, default=None
        Between which rows borders were searched; None for trained maps.
    candidates : list of Candidate
        The models that were compared.
    parameters : dict
        Parameters of the estimator, by name: numbers, text, True, False or None.
    coverage_agreement : float, default=nan
        Share of coverage rows, between and around those given, with the source's label.
    fit_seconds : float, default=nan
        Wall-clock time of the fit, without the training of the source.
    features : FeatureStatistics or None, default=None
        Ranges of the features of the rows that were given; None where they are not known.
    score_correlation : float, default=nan
        Of an outlier detector: smallest rank correlation of its scores with the source's.
    agreement_rows : str, default=''
        The rows that the agreement, also that of the candidates, was measured on, in words.
    warnings : list of str
        What the fit warned of, one sentence each.

    Examples
    --------
    >>> FitInfo(agreement=0.99, fit_seconds=1.5).agreement
    0.99
    """

    agreement: float = math.nan
    agreement_error: float = math.nan
    placement: str | None = None
    candidates: list[Candidate] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)
    coverage_agreement: float = math.nan
    fit_seconds: float = math.nan
    features: FeatureStatistics | None = field(default=None, compare=False)
    score_correlation: float = math.nan
    agreement_rows: str = ""
    warnings: list[str] = field(default_factory=list)

    def agreement_sentence(self) -> str:
        """Return the agreement with the rows that it stands for, in words.

        Returns
        -------
        str
            Empty where it is not known.

        Examples
        --------
        >>> FitInfo(agreement=0.99, agreement_error=0.002).agreement_sentence()
        'Agreement at the fit: 99.00% ± 0.20% of held-out rows like those given.'
        """
        if not math.isfinite(self.agreement):
            return ""
        share = f"{self.agreement:.2%}"
        if self.agreement_error:
            share += f" ± {self.agreement_error:.2%}"
        rows = self.agreement_rows or "held-out rows like those given"
        return f"Agreement at the fit: {share} of {rows}."

    def without_agreement(self) -> "FitInfo":
        """Return what is known after the fallback was left out: not the agreement.

        Returns
        -------
        FitInfo
            With nan for agreements, and no candidate selected.

        Examples
        --------
        >>> FitInfo(agreement=0.99, fit_seconds=1.5).without_agreement().agreement
        nan
        """
        candidates = [replace(candidate, is_selected=False) for candidate in self.candidates]
        return replace(
            self,
            agreement=math.nan,
            agreement_error=math.nan,
            coverage_agreement=math.nan,
            score_correlation=math.nan,
            candidates=candidates,
        )


@dataclass(frozen=True, eq=False)
class Model:
    """A scheme with the labels of its classes: all that predicts.

    It needs NumPy alone. ``limes.model.load_model`` reads one from a file.

    Parameters
    ----------
    scheme : Scheme
        Border maps and how they make classes, the exact sums of the source, or both.
    classes : ndarray of shape (n_classes,)
        Labels.
    n_features : int
        Number of features of a row.
    feature_names : ndarray of shape (n_features,), default=None
        Names of the columns, where the training rows had any.
    info : FitInfo
        Agreement, candidates and parameters of the fit.
    outlier_scores : OutlierScores or None, default=None
        How an outlier detector makes decision values; None for a classifier.

    Examples
    --------
    >>> from limes.model import BorderMap, PairwiseScheme
    >>> line = BorderMap.from_borders(points=[[0.0, 1.0]], normals=[[0.0, 2.0]])
    >>> model = Model(PairwiseScheme((line,), 2), np.array(["low", "high"]), 2)
    >>> model.predict([[5.0, 0.0], [5.0, 2.0]])
    array(['low', 'high'], dtype='<U4')
    """

    scheme: Scheme
    classes: Labels
    n_features: int
    feature_names: NDArray[Any] | None = None
    info: FitInfo = field(default_factory=FitInfo)
    outlier_scores: OutlierScores | None = None

    @property
    def has_probabilities(self) -> bool:
        """Whether there is a probability of each class; an outlier detector has none."""
        return self.scheme.has_probabilities and self.outlier_scores is None

    def decision_function(self, X: ArrayLike, *, n_jobs: int | None = None) -> Array:
        """Return decision values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows.
        n_jobs : int or None, default=None
            Threads: None or 1 for one, -1 for all that this process may use.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Two classes: positive for the second; its hyperbolic tangent is the difference in
            probability. More: the logarithm of each class's probability. An exact scheme has the
            decision function of its source instead, for pairs of classes where that has such.
            An outlier detector has values on the scale of its source, above 0 for inliers.

        Examples
        --------
        >>> from limes.model import BorderMap, PairwiseScheme
        >>> line = BorderMap.from_borders(points=[[0.0, 1.0]], normals=[[0.0, 2.0]])
        >>> model = Model(PairwiseScheme((line,), 2), np.array(["low", "high"]), 2)
        >>> model.decision_function([[5.0, 0.0], [5.0, 2.0]])
        array([-2.,  2.])
        """
        if is_masked(X):
            return on_valid_rows(partial(self.decision_function, n_jobs=n_jobs), X)
        scores = self.outlier_scores
        decision = self.scheme.decision if scores is None else partial(scores.decision, self.scheme)
        return self._in_blocks(decision, X, n_jobs)

    def predict_proba(self, X: ArrayLike, *, n_jobs: int | None = None) -> Array:
        """Return the probability of each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows.
        n_jobs : int or None, default=None
            Threads: None or 1 for one, -1 for all that this process may use.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            In the order of ``classes``; the largest is that of the predicted class. An exact
            scheme has the probabilities of its source, where it has any; they need not agree with
            the labels, since those of an SVM do not.

        Examples
        --------
        >>> from limes.model import BorderMap, PairwiseScheme
        >>> line = BorderMap.from_borders(points=[[0.0, 1.0]], normals=[[0.0, 2.0]])
        >>> model = Model(PairwiseScheme((line,), 2), np.array(["low", "high"]), 2)
        >>> model.predict_proba([[5.0, 0.0], [5.0, 2.0]]).round(2)
        array([[0.98, 0.02],
               [0.02, 0.98]])
        """
        if not self.has_probabilities:
            raise AttributeError(NO_PROBABILITIES)
        if is_masked(X):
            return on_valid_rows(partial(self.predict_proba, n_jobs=n_jobs), X)
        core = self.scheme.core_probabilities
        if core is None:
            return self._in_blocks(self.scheme.predict_proba, X, n_jobs)
        rows = self._as_rows(X)
        n_threads = _threads_for(rows, n_jobs)
        found = np.empty((rows.shape[0], self.scheme.n_classes))
        is_whole = not is_sparse(rows) and rows.dtype.kind == "f"
        for place, block in [(slice(None), rows)] if is_whole else _blocks(rows):
            block = block if block.dtype.kind == "f" else block.astype(np.float32)
            invalid = core.probabilities(block, found[place], n_threads=n_threads)[1]
            if invalid >= 0:
                _raise_invalid_row(block[invalid], (place.start or 0) + invalid)
        return found

    def predict(self, X: ArrayLike, *, n_jobs: int | None = None) -> Labels:
        """Predict the class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows.
        n_jobs : int or None, default=None
            Threads: None or 1 for one, -1 for all that this process may use.

        Returns
        -------
        ndarray of shape (n_rows,)
            One of ``classes`` for each row.

        Examples
        --------
        >>> from limes.model import BorderMap, PairwiseScheme
        >>> line = BorderMap.from_borders(points=[[0.0, 1.0]], normals=[[0.0, 2.0]])
        >>> model = Model(PairwiseScheme((line,), 2), np.array(["low", "high"]), 2)
        >>> model.predict([[5.0, 0.0], [5.0, 2.0]]).tolist()
        ['low', 'high']
        """
        if is_masked(X):
            return on_valid_rows(partial(self.predict, n_jobs=n_jobs), X)
        rows = self._as_rows(X)
        return scheme_labels(self.scheme, rows, self.classes, n_jobs=n_jobs)

    def predictor(self) -> Callable[[Any], Any]:
        """Return a function that predicts one row at a time, for real-time use.

        A row is a float32 or float64 array of one dimension or a sequence of numbers; anything of
        another shape or type raises. A row with a NaN or an infinity gets the first class.

        Returns
        -------
        callable
            From a row to its label, from a two-dimensional array to a list of labels.

        Examples
        --------
        >>> from limes.model import BorderMap, PairwiseScheme
        >>> line = BorderMap.from_borders(points=[[0.0, 1.0]], normals=[[0.0, 2.0]])
        >>> model = Model(PairwiseScheme((line,), 2), np.array(["low", "high"]), 2)
        >>> predict_one = model.predictor()
        >>> predict_one([5.0, 2.0])
        'high'
        """
        return self.scheme.predictor(self.classes.tolist())

    def _in_blocks(self, function: Callable[..., Array], X: Any, n_jobs: int | None) -> Array:
        """Return a function of rows, computed a block at a time."""
        rows = self._as_rows(X)
        n_threads = _threads_for(rows, n_jobs)
        if not rows.shape[0]:
            return function(np.empty((0, self.n_features)))
        found = np.empty(0)
        for place, block in _blocks(rows, _count_values(self.scheme)):
            if block.dtype.kind != "f":
                block = block.astype(np.float32)
            part = function(_valid_rows(self.scheme, block, place.start), n_threads=n_threads)
            if not place.start:
                found = np.empty((rows.shape[0], *part.shape[1:]))
            found[place] = part
        return found

    def _as_rows(self, X: Any) -> Any:
        """Return rows as the core reads them: of CORE_TYPES without a copy, or sparse."""
        if is_plain_rows(X, self.n_features):
            return X
        columns = getattr(X, "columns", None)
        if columns is not None and self.feature_names is not None:
            self._check_names(list(columns))
        rows = X if is_sparse(X) else np.asarray(X)
        if rows.dtype not in CORE_TYPES or (is_sparse(rows) and rows.dtype.kind != "f"):
            rows = rows.astype(np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise ValueError(
                f"X must have the shape (n_rows, {self.n_features}), got {rows.shape!r}."
            )
        return rows

    def _check_names(self, columns: list[Any]) -> None:
        """Raise unless columns have the names of the training rows, in their order."""
        names = [] if self.feature_names is None else self.feature_names.tolist()
        if columns != names:
            raise ValueError(f"X must have the columns {names!r:.200}, got {columns!r:.200}.")


def is_masked(X: Any) -> bool:
    """Return whether X is a masked array; quick, for single rows."""
    return type(X) is not np.ndarray and isinstance(X, np.ma.MaskedArray)


def on_valid_rows(function: Callable[[Any], Array], X: Any) -> Array:
    """Return a function of the rows without a masked feature; the results of others are masked."""
    is_valid = ~np.ma.getmaskarray(X).any(axis=tuple(range(1, X.ndim)))
    found = function(X.data[is_valid])
    filled = np.zeros((len(X), *found.shape[1:]), dtype=found.dtype)
    filled[is_valid] = found
    mask = np.empty(filled.shape, dtype=bool)
    mask.T[...] = ~is_valid
    return np.ma.MaskedArray(filled, mask=mask)


def is_plain_rows(X: Any, n_features: int) -> bool:
    """Return whether X is an array that the core reads as it is; quick, for single rows."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.shape[1] == n_features
        and X.dtype.char in "fdBhH"  # as CORE_TYPES
        and X.dtype.isnative
    )


def scheme_labels(
    scheme: Scheme, rows: Any, labels: Labels, *, n_jobs: int | None = None
) -> Labels:
    """Return the label of each row, in one call of the core unless rows are sparse."""
    n_threads = _threads_for(rows, n_jobs)
    is_object = labels.dtype.hasobject
    if not (is_object or is_sparse(rows)):
        return _label_block(scheme, rows, labels, n_threads)
    predicted = np.empty(rows.shape[0], dtype=labels.dtype)
    numbers = np.arange(len(labels), dtype=np.int32) if is_object else labels
    for place, block in _blocks(rows):
        part = _label_block(scheme, block, numbers, n_threads, place.start)
        predicted[place] = labels[part] if is_object else part
    return predicted


def scheme_index(scheme: Scheme, rows: Any, *, n_jobs: int | None = None) -> Indices:
    """Return the class index of each row."""
    return scheme_labels(scheme, rows, np.arange(scheme.n_classes), n_jobs=n_jobs)


def scheme_values(
    scheme: MapScheme, rows: Any, *, n_jobs: int | None = None
) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Yield the values of the maps, a block of rows at a time."""
    n_threads = _threads_for(rows, n_jobs)
    for place, block in _blocks(rows, len(scheme.maps)):
        yield place, scheme.values(_valid_rows(scheme, block, place.start), n_threads=n_threads)


def _threads_for(rows: Any, n_jobs: int | None) -> int:
    """Return the number of threads for rows."""
    check_jobs(n_jobs)
    return thread_count(n_jobs) if rows.shape[0] >= MIN_THREADED_ROWS else 1


def _blocks(X: Any, n_values: int = 1) -> Iterator[tuple[slice, NDArray[np.floating[Any]]]]:
    """Yield rows a block at a time, sparse ones made dense."""
    size = max(1, min(BLOCK_ROWS, BLOCK_NUMBERS // max(X.shape[1], n_values, 1)))
    for start in range(0, X.shape[0], size):
        place = slice(start, min(start + size, X.shape[0]))
        yield place, X[place].toarray() if is_sparse(X) else X[place]


def _count_values(scheme: Scheme) -> int:
    """Return the number of values of a row: those of maps, or of all pairs of classes."""
    return len(scheme.maps) or scheme.n_classes * (scheme.n_classes - 1) // 2


def _label_block(
    scheme: Scheme, block: NDArray[Any], labels: Labels, n_threads: int, start: int = 0
) -> Labels:
    """Label dense rows, of which the first has the number ``start``."""
    predicted, invalid = scheme.label(block, labels, n_threads=n_threads)
    if invalid >= 0:
        _raise_invalid_row(block[invalid], start + invalid)
    return predicted


def _valid_rows(scheme: Scheme, block: NDArray[Any], start: int) -> NDArray[Any]:
    """Return rows as a scheme takes them, or raise where one has no value."""
    rows, invalid = scheme.into_range(block)
    if invalid >= 0:
        _raise_invalid_row(block[invalid], start + invalid)
    return rows


def _raise_invalid_row(row: NDArray[Any], number: int) -> NoReturn:
    """Raise the reason why a row has no label."""
    if np.isnan(row).any():
        raise ValueError(f"Input X contains NaN, in row {number}: fill in or leave out such rows.")
    largest = row[np.abs(row).argmax()]
    if np.isinf(largest):
        raise ValueError(f"Input X contains infinity, in row {number}: leave out such rows.")
    raise ValueError(
        f"X has a value too large for float32 in row {number}, {float(largest)!r}: scale the rows, "
        "or fit with dtype='float64'."
    )
