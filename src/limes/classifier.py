"""`BordersClassifier`, `accelerate`, `load`, parameter checks."""

import os
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.svm import SVC
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from limes._core.hardware import check_jobs
from limes._typing import Array, Labels
from limes.fit.borders import PLACEMENTS
from limes.fit.config import FitOptions, Limits
from limes.fit.pipeline import fit_model
from limes.fit.synthetic import rows_from_training_rows
from limes.fit.validation import ValidationSet
from limes.model.file import StoredModel, describe, read_model, restore, write_model
from limes.model.model import (
    find_class_index,
    find_labels,
    find_probabilities,
    find_values,
    threads_for,
)
from limes.model.schemes import SCHEMES, Scheme
from limes.report import Report, compare, pickled_size
from limes.sources.generic import with_feature_names
from limes.sources.pipelines import unwrap

CHOICES = {
    "scheme": ("auto", *SCHEMES),
    "placement": ("auto", *PLACEMENTS),
    "border": ("predict", "probability"),
    "dtype": ("float32", "float64"),
}


class BordersClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A fast piecewise-linear classifier with the answers of a slow one.

    It finds points on the decision border of a classifier, keeps the direction across the border
    at each, and answers a new row by asking the nearest point.

    Parameters
    ----------
    estimator : classifier, default=None
        What is replaced: fitted on the same rows first, unless it is frozen
        (``sklearn.frozen.FrozenEstimator``), a LIBSVM model or a function of rows. None means
        ``SVC()``. Linear steps of a ``Pipeline`` before the classifier cost a prediction nothing.
    scheme : {'auto', 'shared', 'shortlist', 'tree', 'pairwise', 'one-vs-rest'}, default='auto'
        How borders make up more than two classes: one map for all; one for all that names the
        likeliest few, and one for each pair, of which only those of the named decide; one for each
        fork of a tree of classes; one for each pair (the paper); or one for each class against the
        rest. 'auto' is 'shared' where it may be fitted to the source, else 'pairwise'; two classes
        have one map either way, and are called a pair.
    n_borders : int or 'auto', default='auto'
        Points a map: in all, for each pair, for each fork, or for each class against the rest.
        'auto' tries several numbers in a shared map, the cheapest first, on rows kept aside. It
        stops where nobody would notice what is lost of the source's skill (0.004 of its uncertainty
        coefficient, or a hundredth if less, by its own probabilities), or else takes the cheapest
        whose agreement with the source is within its error of the best; elsewhere it is 100, but 32
        for a pair of a shortlist and 128 for a fork that are fitted.
    placement : {'auto', 'random', 'near', 'mixed', 'dense'}, default='auto'
        Between which rows to search: any two across the border (the paper), near ones, half of
        each, or near ones where the border runs through many rows. 'auto' tries each on a few
        borders, and takes the first within its error of the best on rows kept aside.
    blend : int or 'auto', default='auto'
        Number of nearest points whose linear functions are averaged; the paper's is 1. 'auto' is 7
        or 3 in a shared map, 4 in a shortlist and a fitted tree, else 1.
    refine : bool, default=True
        Whether 'auto' may choose a scheme that is fitted to the source, and whether the pairs of a
        shortlist and the forks of a tree are fitted to it, instead of being points on its borders.
    border : {'predict', 'probability'}, default='predict'
        Where a support vector machine's border lies: where its own ``predict`` changes, or where
        its calibrated probabilities are equal (the paper; ``svm-predict -b 1``).
    threshold : float, default=0.0
        Difference in probability between the second class and the first at which the border lies,
        from -1 to 1; for two classes only. It is the same as another ratio of the classes before
        anything is known, and probabilities are given for that ratio.
    tolerance : float, default=1e-5
        The largest absolute decision value of a border point.
    dtype : {'float32', 'float64'}, default='float32'
        Precision of prediction. A row so far from zero that its sums could overflow is taken
        nearer, in its direction.
    min_agreement : float or None, default=None
        Share of rows that must get the source's label: the cheapest map that reaches it is taken,
        and a warning says so where none does. It and the limits below are for the schemes 'auto'
        and 'shared' with ``n_borders='auto'``.
    max_cost : int or None, default=None
        The most multiply-adds a row.
    max_time_us : float or None, default=None
        The most microseconds a row in a batch, on one thread of this machine.
    max_bytes : int or None, default=None
        The largest size of the points and functions; a microcontroller may have 2048.
    random_state : int, RandomState instance or None, default=None
        Decides rows and pairs.
    n_jobs : int or None, default=None
        Pairs of classes searched at once, and threads of a prediction. The answers do not depend
        on it.
    verbose : int, default=0
        Above zero, the search tells how far it is.

    Attributes
    ----------
    estimator_ : classifier
        The fitted source; a classifier from a model file has none.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    n_features_in_ : int
        Number of features of a row.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where ``X`` had any.
    scheme_ : Scheme
        The border maps, and how they are joined.
    n_borders_ : int
        Border points in all.
    cost_ : int
        Multiply-adds that one row costs.
    agreement_ : float
        Share of rows, kept aside from the search, on which the labels are those of the source;
        nan where there were too few rows to keep any aside. A machine that was trained on the rows
        is surer of them than of new ones: it is trained again without some, and rows are weighted
        and made so that what is told holds for new ones (not where that would take long). Where
        rows are few, the map learns from these too once they have judged it.
    agreement_error_ : float
        Standard error of ``agreement_``.
    tradeoff_ : list of Trial
        What was tried to choose the number of points: scheme, points, cost, agreement, and how much
        of the source's uncertainty coefficient is expected to be lost.
    placement_ : str or None
        Between which rows borders were searched; None for maps that are fitted to the source.
    one_sided_ : list of int
        Numbers of the maps without a border, all rows being on one side of it.

    See Also
    --------
    accelerate : The same for a classifier that is fitted already.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> fast = BordersClassifier(SVC(gamma=2), random_state=0).fit(X, y)
    >>> bool(fast.agreement_ > 0.95)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        scheme: str = "auto",
        n_borders: int | str = "auto",
        placement: str = "auto",
        blend: int | str = "auto",
        refine: bool = True,
        border: str = "predict",
        threshold: float = 0.0,
        tolerance: float = 1e-5,
        dtype: str = "float32",
        min_agreement: float | None = None,
        max_cost: int | None = None,
        max_time_us: float | None = None,
        max_bytes: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.scheme = scheme
        self.n_borders = n_borders
        self.placement = placement
        self.blend = blend
        self.refine = refine
        self.border = border
        self.threshold = threshold
        self.tolerance = tolerance
        self.dtype = dtype
        self.min_agreement = min_agreement
        self.max_cost = max_cost
        self.max_time_us = max_time_us
        self.max_bytes = max_bytes
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the source, then find its borders.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Training rows.
        y : array-like of shape (n_rows,)
            Labels.

        Returns
        -------
        BordersClassifier
            Itself.
        """
        check_parameters(self)
        rows, labels = validate_data(
            self, X, y, accept_sparse="csr", dtype=(np.float64, np.float32)
        )
        check_classification_targets(labels)
        if len(np.unique(labels)) < 2:
            raise ValueError(
                f"y must have at least two classes, got one class only: {labels[0]!r}. There is "
                "no border to find."
            )
        source = SVC() if self.estimator is None else self.estimator
        if hasattr(source, "fit") and not isinstance(source, FrozenEstimator):
            source = clone(source).fit(X, y)
        return self._find_borders(source, rows, labels)

    def decision_function(self, X: ArrayLike) -> Array:
        """Return how far each row is on one side of the border.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Two classes: positive for the second; its hyperbolic tangent is the difference in
            probability. More: the logarithm of each class's probability.
        """
        rows = check_rows(self, X)
        n_threads = threads_for(rows, self.n_jobs)
        if len(self.classes_) == 2:
            decision = np.empty(rows.shape[0])
            for place, values in find_values(self.scheme_, rows, n_threads=n_threads):
                decision[place] = values[:, 0]
            return decision
        probabilities = find_probabilities(self.scheme_, rows, n_threads=n_threads)
        return np.log(np.maximum(probabilities, np.finfo(float).tiny))

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            In the order of ``classes_``; the largest is that of the predicted class.
        """
        rows = check_rows(self, X)
        return find_probabilities(self.scheme_, rows, n_threads=threads_for(rows, self.n_jobs))

    def predict(self, X: ArrayLike) -> Labels:
        """Predict the class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            One of ``classes_`` for each row.
        """
        rows = check_rows(self, X)
        n_threads = threads_for(rows, self.n_jobs)
        return find_labels(self.scheme_, rows, self.classes_, n_threads=n_threads)

    def predictor(self) -> Callable[[Any], Any]:
        """Return a function that predicts one row at a time, for real-time use.

        It leaves out what scikit-learn checks on every call. A row is a float32 or float64 array of
        one dimension or a sequence of numbers; anything of another shape or type raises. A row with
        a NaN or an infinity gets the first class.

        Returns
        -------
        callable
            From a row to its label, from a two-dimensional array to a list of labels.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> X, y = make_moons(500, noise=0.2, random_state=0)
        >>> predict_one = BordersClassifier(random_state=0).fit(X, y).predictor()
        >>> predict_one([0.0, 1.0])
        0
        """
        check_is_fitted(self)
        return self.scheme_.predictor(self.classes_.tolist())

    def report(self, X: ArrayLike, y: ArrayLike | None = None) -> Report:
        """Compare with the source: skill, agreement, time and size.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows, best those that neither was fitted on.
        y : array-like of shape (n_rows,), default=None
            True labels; without them there is no skill to tell, only agreement.

        Returns
        -------
        Report
            Print it to read a table.
        """
        rows = check_rows(self, X)
        if not hasattr(self, "estimator_"):
            raise ValueError(
                "report compares with the source, which a model file does not keep. Set "
                "estimator_ to the fitted source, or compare labels with limes.scores."
            )
        return compare(
            self._predict_by_source,
            self.predict,
            rows,
            None if y is None else np.asarray(y),
            names=(type(unwrap(self.estimator_)[0]).__name__, self.scheme_.name),
            sizes=(pickled_size(self.estimator_), self.scheme_.n_bytes),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that predicts to one file, for ``limes.load``; the source is left out.

        Parameters
        ----------
        path : path-like
            File to write, by custom with the ending ``.limes``. An old one stays as it is until the
            new one is complete.

        Examples
        --------
        >>> import tempfile
        >>> from sklearn.datasets import make_moons
        >>> import limes
        >>> X, y = make_moons(200, random_state=0)
        >>> fast = BordersClassifier(random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fast.save(f"{folder}/moons.limes")
        ...     again = limes.load(f"{folder}/moons.limes")
        >>> bool((again.predict_proba(X) == fast.predict_proba(X)).all())
        True
        """
        check_is_fitted(self)
        write_model(path, describe(self))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = SVC() if self.estimator is None else self.estimator
        has_tags = hasattr(inner, "__sklearn_tags__")
        tags.input_tags.sparse = not has_tags or get_tags(inner).input_tags.sparse
        return tags

    def _find_borders(self, source: Any, X: Any, y: Labels | None) -> Self:
        """Learn from a fitted source."""
        found = fit_model(
            source,
            X,
            y,
            options=self._settings(),
            scheme=self.scheme,
            refine=self.refine,
            by_probability=self.border == "probability",
            seed=_seed(self.random_state),
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        self.estimator_ = source
        self.classes_ = found.classes
        self.scheme_ = found.scheme
        self.n_borders_ = found.scheme.n_borders
        self.cost_ = found.scheme.cost
        self.one_sided_ = [
            place for place, one in enumerate(found.scheme.maps) if not one.normals.any()
        ]
        self._measure_agreement(found.validated_scheme, found.validation)
        self.tradeoff_ = found.candidates
        self.placement_ = found.placement
        return self

    def _predict_by_source(self, rows: Any) -> Labels:
        """Ask the source, which may be a function of rows."""
        if hasattr(self.estimator_, "predict"):
            return np.asarray(with_feature_names(self.estimator_, self.estimator_.predict)(rows))
        scores = np.asarray(self.estimator_(rows))
        class_index = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[class_index.astype(np.intp)]

    def _measure_agreement(self, scheme: Scheme, validation: ValidationSet) -> None:
        """Compare with the source on rows that the search had not seen then."""
        n_threads = threads_for(validation.rows, self.n_jobs)
        own = find_class_index(scheme, validation.rows, n_threads=n_threads)
        self.agreement_, self.agreement_error_ = validation.agreement(own)

    def _settings(self) -> FitOptions:
        """Return the parameters of the search, what is left to us filled in."""
        return FitOptions(
            n_borders=None if self.n_borders == "auto" else int(self.n_borders),
            placement=self.placement,
            blend=None if self.blend == "auto" else int(self.blend),
            tolerance=self.tolerance,
            decision_offset=float(np.arctanh(self.threshold)),
            double=self.dtype == "float64",
            limits=Limits(self.min_agreement, self.max_cost, self.max_time_us, self.max_bytes),
        )


def _seed(random_state: Any) -> np.random.SeedSequence:
    """Return a seed for generators from any of scikit-learn's forms of randomness."""
    words = check_random_state(random_state).randint(2**31, size=4)
    return np.random.SeedSequence([int(word) for word in words])


def accelerate(
    model: Any,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    scheme: str = "auto",
    n_borders: int | str = "auto",
    placement: str = "auto",
    blend: int | str = "auto",
    refine: bool = True,
    border: str = "predict",
    threshold: float = 0.0,
    tolerance: float = 1e-5,
    dtype: str = "float32",
    min_agreement: float | None = None,
    max_cost: int | None = None,
    max_time_us: float | None = None,
    max_bytes: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> BordersClassifier:
    """Turn a fitted classifier into a fast one with the same answers.

    Parameters
    ----------
    model : classifier, or function of rows
        Fitted: a support vector machine, a kernel-density or Gaussian-process classifier, a LIBSVM
        model, anything with ``predict_proba`` or ``decision_function``, perhaps in a ``Pipeline``.
        A function gives decision values (n_rows,), positive for the second class, or scores
        (n_rows, n_classes).
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Rows like those to be predicted; the training rows are best. Without any, rows are made
        around those that the model keeps, such as support vectors, and a warning says what that
        costs: they lie about the border, and nobody knows where other rows will be.
    y : array-like of shape (n_rows,), default=None
        True labels. Not needed: the source labels the rows. They make probabilities better where
        the source has none of its own.
    scheme, n_borders, placement, blend, refine, border, threshold, tolerance, dtype
        As for ``BordersClassifier``.
    min_agreement, max_cost, max_time_us, max_bytes, random_state, n_jobs, verbose
        As for ``BordersClassifier``.

    Returns
    -------
    BordersClassifier
        Fitted.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> import limes
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> svc = SVC(gamma=2).fit(X, y)
    >>> fast = limes.accelerate(svc, X, random_state=0)
    >>> fast.predict([[0.0, 1.0], [1.0, -0.5]])
    array([0, 1])
    """
    fast = BordersClassifier(
        FrozenEstimator(model) if hasattr(model, "fit") else model,
        scheme=scheme,
        n_borders=n_borders,
        placement=placement,
        blend=blend,
        refine=refine,
        border=border,
        threshold=threshold,
        tolerance=tolerance,
        dtype=dtype,
        min_agreement=min_agreement,
        max_cost=max_cost,
        max_time_us=max_time_us,
        max_bytes=max_bytes,
        random_state=random_state,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    check_parameters(fast)
    if hasattr(model, "fit"):
        check_is_fitted(model)
    if X is None:
        X = _synthetic_rows(model, y, random_state)
    check_same_features(model, X)
    options = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}
    if y is None:
        return fast._find_borders(model, validate_data(fast, X, **options), None)
    rows, labels = validate_data(fast, X, y, **options)
    return fast._find_borders(model, rows, labels)


def _synthetic_rows(model: Any, y: ArrayLike | None, random_state: Any) -> ArrayLike:
    """Make rows from what the model keeps, and say what that costs."""
    if y is not None:
        raise ValueError("y has labels, but X has no rows that they belong to: give both, or none.")
    seed = check_random_state(random_state).randint(2**31)
    rows = rows_from_training_rows(model, np.random.default_rng(seed))
    warnings.warn(
        f"without rows, {len(rows)} were made around those that the model keeps: agreement is "
        "measured on such rows, and may be lower on real ones. Give X, rows like those to be "
        "predicted, for a better map.",
        stacklevel=3,
    )
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return rows
    import pandas

    return pandas.DataFrame(rows, columns=names)


def load(path: str | os.PathLike[str], *, max_bytes: int = 1 << 32) -> BordersClassifier:
    """Read a classifier that ``BordersClassifier.save`` wrote.

    It answers every row as the one that was saved, bit for bit. Nothing in the file is executed: a
    file from anywhere can be loaded, and one that is damaged, cut short or made up raises a
    ``ValueError`` that names the byte.

    Parameters
    ----------
    path : path-like
        File to read.
    max_bytes : int, default=2**32
        Largest file to read.

    Returns
    -------
    BordersClassifier
        Fitted, without its source: ``estimator_`` is not there.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, random_state=0)
    >>> fast = BordersClassifier(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fast.save(f"{folder}/moons.limes")
    ...     load(f"{folder}/moons.limes").predict(X[:3])
    array([0, 1, 1])
    """
    return from_stored(read_model(path, max_bytes=max_bytes), name=os.fspath(path))


def from_stored(stored: StoredModel, *, name: str) -> BordersClassifier:
    """Return the fitted classifier that a file holds."""
    known = BordersClassifier._get_param_names()
    parameters = {key: value for key, value in stored.parameters.items() if key in known}
    empty = BordersClassifier(**parameters)
    try:
        check_parameters(empty)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected parameters of a classifier: {error!s:.200}") from None
    return restore(stored, empty)


def check_parameters(model: Any) -> None:
    """Say which parameter is wrong, before anything long begins."""
    for name, choices in CHOICES.items():
        value = getattr(model, name)
        if not isinstance(value, str) or value not in choices:
            raise ValueError(f"{name} must be one of {sorted(choices)}, got {value!r}.")
    for name in ("n_borders", "blend"):
        value = getattr(model, name)
        is_auto = isinstance(value, str) and value == "auto"
        if not is_auto and not (_is_integer(value) and int(value) >= 1):
            raise ValueError(f"{name} must be 'auto' or an integer of 1 or more, got {value!r}.")
    for name, low, high in (("threshold", -1.0, 1.0), ("tolerance", 0.0, np.inf)):
        value = getattr(model, name)
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not (is_number and low < float(value) < high):
            raise ValueError(f"{name} must be a number between {low} and {high}, got {value!r}.")
    if model.scheme == "shared" and model.threshold:
        raise ValueError(
            f"threshold must be 0 with scheme='shared', got {model.threshold!r}: its map is fitted "
            "to where labels change. Give scheme='auto' or 'pairwise'."
        )
    _check_switches(model)
    _check_targets(model)


def check_rows(model: Any, X: ArrayLike) -> Any:
    """Return rows as the core takes them; whether they are finite is seen there."""
    if not hasattr(model, "scheme_"):  # asking scikit-learn takes longer than a row
        check_is_fitted(model, "scheme_")
    if _is_plain(model, X):
        return X
    return validate_data(
        model,
        X,
        reset=False,
        accept_sparse="csr",
        dtype=(np.float64, np.float32),
        ensure_all_finite=False,
    )


def check_same_features(model: Any, X: ArrayLike) -> None:
    """Compare the columns of rows with those that a source was fitted on."""
    wanted, found = getattr(model, "n_features_in_", None), np.shape(X)[1:]
    if wanted is not None and len(found) == 1 and found[0] != wanted:
        raise ValueError(
            f"X must have {wanted} features, as the source {type(model).__name__} was fitted "
            f"with, got {found[0]!r}."
        )
    names, columns = getattr(model, "feature_names_in_", None), getattr(X, "columns", None)
    if names is not None and columns is not None and list(names) != list(columns):
        raise ValueError(
            f"X must have the columns {list(names)!r}, in the order in which the source "
            f"{type(model).__name__} was fitted with, got {list(columns)!r}."
        )


def _is_plain(model: Any, X: Any) -> bool:
    """Tell whether rows are what the core takes, so that one row need not wait for checks."""
    return (
        type(X) is np.ndarray
        and X.dtype in (np.float32, np.float64)
        and X.ndim == 2
        and X.shape[1] == model.n_features_in_
        and X.shape[0] > 0
        and not hasattr(model, "feature_names_in_")
    )


def _is_integer(value: Any) -> bool:
    """Tell whether a value is a whole number, which True is not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _check_switches(model: Any) -> None:
    """Check the parameters that say how to work rather than what to find."""
    if not isinstance(model.refine, bool | np.bool_):
        raise ValueError(f"refine must be True or False, got {model.refine!r}.")
    check_jobs(model.n_jobs)
    if not _is_integer(model.verbose) and not isinstance(model.verbose, bool):
        raise ValueError(f"verbose must be an integer, got {model.verbose!r}.")


def _check_targets(model: Any) -> None:
    """Check what is asked of a map, and that its size is left open."""
    given = {
        name: value
        for name in ("min_agreement", "max_cost", "max_time_us", "max_bytes")
        if (value := getattr(model, name)) is not None
    }
    for name, value in given.items():
        high = 1.0 if name == "min_agreement" else np.inf
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not (is_number and 0 < float(value) <= high):
            raise ValueError(f"{name} must be None or a number from 0 to {high}, got {value!r}.")
    is_open = model.scheme in ("auto", "shared") and model.n_borders == "auto"
    if given and not (is_open and model.refine and not model.threshold):
        raise ValueError(
            f"{next(iter(given))} chooses the number of points: give it with scheme='auto' or "
            f"'shared', n_borders='auto', refine=True and threshold=0, got {model.scheme!r}, "
            f"{model.n_borders!r}, {model.refine!r} and {model.threshold!r}."
        )
