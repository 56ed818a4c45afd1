"""The estimator: ``BordersClassifier``, ``accelerate`` and ``load``."""

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.svm import SVC
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from limes._typing import Array, Labels
from limes.fit.borders import PLACEMENTS
from limes.fit.config import FitOptions, Limits
from limes.fit.pipeline import fit_model
from limes.fit.synthetic import rows_from_training_rows
from limes.model.file import load_model, save_model
from limes.model.model import Candidate, FitInfo, Model, is_plain_rows, scheme_index
from limes.model.schemes import SCHEMES, Scheme
from limes.old_names import refuse_old_name
from limes.report import ComparedModel, Comparison, compare, pickled_size
from limes.sources.generic import with_feature_names
from limes.sources.pipelines import unwrap

# Parameters that a model file leaves out: they belong to the computer or to the source.
NOT_STORED = {"estimator", "n_jobs", "verbose"}
RENAMED = {"tradeoff_": "candidates_", "one_sided_": "scheme_.maps[i].is_constant"}


class BordersClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A fast piecewise-linear classifier that predicts as a slow one does.

    It places a few points near the decision border of a trained classifier, each with linear
    functions, and predicts a row by evaluating the functions of its nearest points.

    Parameters
    ----------
    estimator : classifier, default=None
        The source: the classifier that is replaced. It is fitted on the same rows first, unless it
        is frozen (``sklearn.frozen.FrozenEstimator``), a LIBSVM model or a function of rows. None
        means ``SVC()``. Linear steps of a ``Pipeline`` before the classifier are folded into the
        model and cost a prediction nothing.
    scheme : {'auto', 'shared', 'shortlist', 'tree', 'pairwise', 'one-vs-rest'}, default='auto'
        How border maps make classes. 'shared': one map with a function for each class. 'shortlist':
        such a map selects the likeliest classes, and the maps of their pairs decide. 'tree': one
        map for each node of a class hierarchy. 'pairwise': one map for each pair (the paper).
        'one-vs-rest': one for each class against the others. 'auto' is 'shared', or 'pairwise'
        where ``refine=False`` or a threshold is given; two classes have one map in every scheme.
    n_borders : int or 'auto', default='auto'
        Points of a map. 'auto' trains shared maps of growing size and selects the smallest whose
        expected loss in uncertainty coefficient is below 0.004, or 1 % of the source's if that is
        less; if none is, the cheapest within one standard error of the best agreement. In the
        other schemes it is 100, but 32 for a trained pair of a shortlist and 128 for a trained
        node.
    placement : {'auto', 'random', 'near', 'mixed', 'dense'}, default='auto'
        Between which rows borders are searched: any two across the border (the paper), near ones,
        half of each, or near ones where the border runs through many rows. 'auto' tries each on a
        few borders and takes the first within one standard error of the best on held-out rows.
    blend : int or 'auto', default='auto'
        Nearest points whose linear functions are averaged; the paper's value is 1. 'auto' is 7 or
        3 in a shared map, 4 in a shortlist and a trained tree, else 1.
    refine : bool, default=True
        Whether maps are trained to the source's probabilities. False: they are points on its
        borders, as in the paper; a shared map is always trained.
    border : {'predict', 'probability'}, default='predict'
        Where the border of an SVM lies: where its ``predict`` changes, or where its calibrated
        probabilities are equal (the paper; ``svm-predict -b 1``).
    threshold : float, default=0.0
        Difference in probability between the second class and the first at which the border lies,
        from -1 to 1; for two classes only. It corresponds to other prior probabilities, and
        ``predict_proba`` refers to those.
    tolerance : float, default=1e-5
        Largest absolute decision value of a border point.
    dtype : {'float32', 'float64'}, default='float32'
        Precision of prediction. A row so far from zero that its sums could overflow is scaled down.
    min_agreement : float or None, default=None
        Share of rows that must get the source's label: the cheapest candidate that reaches it is
        selected, with a warning if none does. This and the limits below are for the schemes 'auto'
        and 'shared' with ``n_borders='auto'``.
    max_cost : int or None, default=None
        Most multiply-adds per row.
    max_time_us : float or None, default=None
        Most microseconds per row in a batch, on one thread of this computer.
    max_bytes : int or None, default=None
        Most bytes of points and functions; a microcontroller may have 2048.
    random_state : int, RandomState instance or None, default=None
        Seed of the fit.
    n_jobs : int or None, default=None
        Pairs of classes fitted at once, and threads of a prediction. Results do not depend on it.
    verbose : int, default=0
        Above zero, the fit prints its progress.

    Attributes
    ----------
    estimator_ : classifier
        The fitted source; a classifier from a model file has none.
    model_ : Model
        All that predicts; it needs NumPy alone.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    n_features_in_ : int
        Number of features of a row.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where ``X`` had any.
    scheme_ : Scheme
        The border maps, and how they make classes.
    n_borders_ : int
        Border points in all maps.
    cost_ : int
        Multiply-adds per row.
    agreement_ : float
        Share of held-out rows with the source's label; nan where there were too few rows to hold
        any out. For SVMs it is importance-weighted to out-of-fold margins, so that it estimates
        agreement on unseen rows, unless training the SVM again would take long. Where rows are few,
        the model is trained once more with the held-out rows after that.
    agreement_error_ : float
        Standard error of ``agreement_``.
    candidates_ : list of Candidate
        The models that were compared: scheme, points, cost, agreement, expected loss of skill.
    placement_ : str or None
        Between which rows borders were searched; None for trained maps.

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
        """Fit the source, then the model that replaces it.

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
        _check_parameters(self)
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
        return self._fit_to_source(source, rows, labels)

    def decision_function(self, X: ArrayLike) -> Array:
        """Return decision values.

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
        rows = self._check_rows(X)
        return self.model_.decision_function(rows, n_jobs=self.n_jobs)

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
        rows = self._check_rows(X)
        return self.model_.predict_proba(rows, n_jobs=self.n_jobs)

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
        rows = self._check_rows(X)
        return self.model_.predict(rows, n_jobs=self.n_jobs)

    def predictor(self) -> Callable[[Any], Any]:
        """Return a function that predicts one row at a time, for real-time use.

        It leaves out scikit-learn's input checks. A row is a float32 or float64 array of one
        dimension or a sequence of numbers; anything of another shape or type raises. A row with a
        NaN or an infinity gets the first class.

        Returns
        -------
        callable
            From a row to its label, from a two-dimensional array to a list of labels.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> X, y = make_moons(500, noise=0.2, random_state=0)
        >>> fast = BordersClassifier(n_borders=16, random_state=0).fit(X, y)
        >>> predict_one = fast.predictor()
        >>> predict_one([0.0, 1.0])
        0
        """
        check_is_fitted(self)
        return self.model_.predictor()

    def report(self, X: ArrayLike, y: ArrayLike | None = None) -> Comparison:
        """Compare with the source: skill, agreement, time and size.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows, preferably ones that neither was fitted on.
        y : array-like of shape (n_rows,), default=None
            True labels; without them skill is not reported, only agreement.

        Returns
        -------
        Comparison
            Print it for a table.
        """
        rows = self._check_rows(X)
        if not hasattr(self, "estimator_"):
            raise ValueError(
                "report compares with the source, which a model file does not keep. Set "
                "estimator_ to the fitted source, or compare labels with limes.scores."
            )
        source = ComparedModel(
            type(unwrap(self.estimator_)[0]).__name__,
            self._predict_by_source,
            pickled_size(self.estimator_) or None,
        )
        fast = ComparedModel(f"borders ({self.scheme_.name})", self.predict, self.scheme_.n_bytes)
        truth = None if y is None else np.asarray(y)
        return compare(fast, source, rows, truth, classes=self.classes_)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that predicts to one file, for ``limes.load``; the source is left out.

        Parameters
        ----------
        path : path-like
            File to write, by convention with the ending ``.limes``. An old file stays as it is
            until the new one is complete.

        Examples
        --------
        >>> import tempfile
        >>> from sklearn.datasets import make_moons
        >>> import limes
        >>> X, y = make_moons(200, random_state=0)
        >>> fast = BordersClassifier(n_borders=16, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fast.save(f"{folder}/moons.limes")
        ...     again = limes.load(f"{folder}/moons.limes")
        >>> bool((again.predict_proba(X) == fast.predict_proba(X)).all())
        True
        """
        check_is_fitted(self)
        parameters = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in NOT_STORED
        }
        info = replace(self.model_.info, parameters=parameters)
        save_model(replace(self.model_, info=info), path)

    @classmethod
    def from_model(cls, model: Model) -> Self:
        """Return a fitted classifier that predicts with a model.

        Parameters
        ----------
        model : Model
            From ``limes.model.load_model``, or built from border maps.

        Returns
        -------
        BordersClassifier
            Fitted, without a source; its parameters are those in ``model.info``.
        """
        names = cls._get_param_names()
        stored = model.info.parameters.items()
        fast = cls(**{name: value for name, value in stored if name in names})
        _check_parameters(fast)
        fast._set_model(model)
        return fast

    @property
    def scheme_(self) -> Scheme:
        """The border maps, and how they make classes."""
        return self.model_.scheme

    @property
    def n_borders_(self) -> int:
        """Border points in all maps."""
        return self.model_.scheme.n_borders

    @property
    def cost_(self) -> int:
        """Multiply-adds per row."""
        return self.model_.scheme.cost

    @property
    def agreement_(self) -> float:
        """Share of held-out rows with the source's label."""
        return self.model_.info.agreement

    @property
    def agreement_error_(self) -> float:
        """Standard error of ``agreement_``."""
        return self.model_.info.agreement_error

    @property
    def candidates_(self) -> list[Candidate]:
        """The models that were compared."""
        return self.model_.info.candidates

    @property
    def placement_(self) -> str | None:
        """Between which rows borders were searched."""
        return self.model_.info.placement

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            if name not in RENAMED:  # scikit-learn looks for optional attributes
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            refuse_old_name(self, name, RENAMED)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = SVC() if self.estimator is None else self.estimator
        has_tags = hasattr(inner, "__sklearn_tags__")
        tags.input_tags.sparse = not has_tags or get_tags(inner).input_tags.sparse
        return tags

    def _fit_to_source(self, source: Any, X: Any, y: Labels | None) -> Self:
        """Fit the model to a fitted source."""
        result = fit_model(
            source,
            X,
            y,
            options=self._options(),
            scheme=self.scheme,
            refine=self.refine,
            by_probability=self.border == "probability",
            seed=_seed(self.random_state),
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        validation = result.validation
        predicted = scheme_index(result.validated_scheme, validation.rows, n_jobs=self.n_jobs)
        agreement, error = validation.agreement(predicted)
        self.estimator_ = source
        names = getattr(self, "feature_names_in_", None)
        info = FitInfo(agreement, error, result.placement, result.candidates)
        self._set_model(Model(result.scheme, result.classes, self.n_features_in_, names, info))
        return self

    def _set_model(self, model: Model) -> None:
        """Make this the fitted classifier of a model."""
        self.model_ = model
        self.classes_ = model.classes
        self.n_features_in_ = model.n_features
        if model.feature_names is not None:
            self.feature_names_in_ = model.feature_names

    def _check_rows(self, X: ArrayLike) -> Any:
        """Return rows as the core takes them; it checks itself whether they are finite."""
        if not hasattr(self, "model_"):  # check_is_fitted takes longer than predicting a row
            check_is_fitted(self, "model_")
        if self._is_plain(X):
            return X
        return validate_data(
            self,
            X,
            reset=False,
            accept_sparse="csr",
            dtype=(np.float64, np.float32),
            ensure_all_finite=False,
        )

    def _is_plain(self, X: Any) -> bool:
        """Return whether rows need no checks by scikit-learn, which take longer than one row."""
        has_names = "feature_names_in_" in self.__dict__
        return not has_names and is_plain_rows(X, self.n_features_in_) and X.shape[0] > 0

    def _predict_by_source(self, rows: Any) -> Labels:
        """Return the source's labels; it may be a function of rows."""
        if hasattr(self.estimator_, "predict"):
            return np.asarray(with_feature_names(self.estimator_, self.estimator_.predict)(rows))
        values = np.asarray(self.estimator_(rows))
        class_index = values > 0 if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[class_index.astype(np.intp)]

    def _options(self) -> FitOptions:
        """Return the parameters as the fit takes them."""
        return FitOptions(
            n_borders=None if self.n_borders == "auto" else int(self.n_borders),
            placement=self.placement,
            blend=None if self.blend == "auto" else int(self.blend),
            tolerance=self.tolerance,
            decision_offset=float(np.arctanh(self.threshold)),
            double=self.dtype == "float64",
            limits=Limits(self.min_agreement, self.max_cost, self.max_time_us, self.max_bytes),
        )


def accelerate(
    model: Any, X: ArrayLike | None = None, y: ArrayLike | None = None, **parameters: Any
) -> BordersClassifier:
    """Turn a fitted classifier into a fast one that predicts as it does.

    Parameters
    ----------
    model : classifier, or function of rows
        Fitted: an SVM, a kernel-density or Gaussian-process classifier, a LIBSVM model, anything
        with ``predict_proba`` or ``decision_function``, perhaps in a ``Pipeline``. A function
        returns decision values (n_rows,), positive for the second class, or scores
        (n_rows, n_classes).
    X : array-like or sparse matrix of shape (n_rows, n_features), default=None
        Rows like those to be predicted; the training rows are best. None: synthetic rows are made
        from the training rows that the model keeps, such as support vectors, with a warning, since
        these lie near the border only.
    y : array-like of shape (n_rows,), default=None
        True labels. Not needed, since the source labels the rows; they improve probabilities where
        the source has none of its own.
    **parameters
        Parameters of ``BordersClassifier`` by name: ``scheme``, ``n_borders``, ``placement``,
        ``blend``, ``refine``, ``border``, ``threshold``, ``tolerance``, ``dtype``,
        ``min_agreement``, ``max_cost``, ``max_time_us``, ``max_bytes``, ``random_state``,
        ``n_jobs``, ``verbose``.

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
    is_estimator = hasattr(model, "fit")
    fast = BordersClassifier(FrozenEstimator(model) if is_estimator else model, **parameters)
    _check_parameters(fast)
    if is_estimator:
        check_is_fitted(model)
    if X is None:
        X = _synthetic_rows(model, y, fast.random_state)
    _check_same_features(model, X)
    options = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}
    if y is None:
        return fast._fit_to_source(model, validate_data(fast, X, **options), None)
    rows, labels = validate_data(fast, X, y, **options)
    return fast._fit_to_source(model, rows, labels)


def load(path: str | os.PathLike[str], *, max_bytes: int = 1 << 32) -> BordersClassifier:
    """Read a classifier that ``BordersClassifier.save`` wrote.

    It predicts every row as the one that was saved, bit for bit. Loading a file never executes
    code, so that a file from anywhere can be loaded; one that is damaged, cut short or made up
    raises a ``ValueError`` that names the byte.

    Parameters
    ----------
    path : path-like
        File to read.
    max_bytes : int, default=2**32
        Largest file to read.

    Returns
    -------
    BordersClassifier
        Fitted, without its source: it has no ``estimator_``.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, random_state=0)
    >>> fast = BordersClassifier(n_borders=16, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fast.save(f"{folder}/moons.limes")
    ...     load(f"{folder}/moons.limes").predict(X[:3])
    array([0, 1, 1])
    """
    model = load_model(path, max_bytes=max_bytes)
    try:
        return BordersClassifier.from_model(model)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{os.fspath(path)}: expected parameters of a classifier: {error!s:.200}"
        ) from None


def _seed(random_state: Any) -> np.random.SeedSequence:
    """Return a seed for generators from any of scikit-learn's forms of randomness."""
    words = check_random_state(random_state).randint(2**31, size=4)
    return np.random.SeedSequence([int(word) for word in words])


def _synthetic_rows(model: Any, y: ArrayLike | None, random_state: Any) -> ArrayLike:
    """Make rows from the training rows that the model keeps, with a warning."""
    if y is not None:
        raise ValueError("y has labels, but X has no rows that they belong to: give both, or none.")
    seed = check_random_state(random_state).randint(2**31)
    rows = rows_from_training_rows(model, np.random.default_rng(seed))
    warnings.warn(
        f"no X given: fitted on {len(rows)} synthetic rows made from the model's own training "
        "rows; agreement_ refers to these, and may be lower on real ones. Give X, rows like those "
        "to be predicted.",
        stacklevel=3,
    )
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return rows
    import pandas

    return pandas.DataFrame(rows, columns=names)


def _check_same_features(model: Any, X: ArrayLike) -> None:
    """Raise unless rows have the columns that a source was fitted on."""
    n_features, shape = getattr(model, "n_features_in_", None), np.shape(X)[1:]
    if n_features is not None and len(shape) == 1 and shape[0] != n_features:
        raise ValueError(
            f"X must have {n_features} features, as the source {type(model).__name__} was fitted "
            f"with, got {shape[0]!r}."
        )
    names, columns = getattr(model, "feature_names_in_", None), getattr(X, "columns", None)
    if names is not None and columns is not None and list(names) != list(columns):
        raise ValueError(
            f"X must have the columns {list(names)!r}, in the order in which the source "
            f"{type(model).__name__} was fitted with, got {list(columns)!r}."
        )


def _check_parameters(fast: BordersClassifier) -> None:
    """Raise for a parameter that is wrong, before anything long begins."""
    for name, rule in RULES.items():
        value = getattr(fast, name)
        expected = rule(value)
        if expected:
            raise ValueError(f"{name} must be {expected}, got {value!r}.")
    if fast.scheme == "shared" and fast.threshold:
        raise ValueError(
            f"threshold must be 0 with scheme='shared', got {fast.threshold!r}: its map is trained "
            "to where labels change. Give scheme='auto' or 'pairwise'."
        )
    limits = ("min_agreement", "max_cost", "max_time_us", "max_bytes")
    given = [name for name in limits if getattr(fast, name) is not None]
    is_open = fast.scheme in ("auto", "shared") and fast.n_borders == "auto"
    if given and not (is_open and fast.refine and not fast.threshold):
        raise ValueError(
            f"{given[0]} chooses the number of points: give it with scheme='auto' or "
            f"'shared', n_borders='auto', refine=True and threshold=0, got {fast.scheme!r}, "
            f"{fast.n_borders!r}, {fast.refine!r} and {fast.threshold!r}."
        )


def _one_of(*choices: str) -> Callable[[Any], str]:
    """Return the rule of a parameter with a few values."""
    text = f"one of {sorted(choices)}"
    return lambda value: "" if isinstance(value, str) and value in choices else text


def _between(low: float, high: float) -> Callable[[Any], str]:
    """Return the rule of a number strictly between two others."""
    text = f"a number between {low} and {high}"
    return lambda value: "" if _is_number(value) and low < float(value) < high else text


def _limit(high: float) -> Callable[[Any], str]:
    """Return the rule of an optional limit."""
    text = f"None or a number from 0 to {high}"

    def rule(value: Any) -> str:
        return "" if value is None or (_is_number(value) and 0 < float(value) <= high) else text

    return rule


def _count(value: Any) -> str:
    """Return what is wrong with a number of points, or nothing."""
    is_auto = isinstance(value, str) and value == "auto"
    is_count = _is_integer(value) and int(value) >= 1
    return "" if is_auto or is_count else "'auto' or an integer of 1 or more"


def _is_number(value: Any) -> bool:
    """Return whether a value is a real number, which True is not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    """Return whether a value is a whole number, which True is not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


# What each parameter must be: a rule returns that in words where a value breaks it.
RULES: dict[str, Callable[[Any], str]] = {
    "scheme": _one_of("auto", *SCHEMES),
    "placement": _one_of("auto", *PLACEMENTS),
    "border": _one_of("predict", "probability"),
    "dtype": _one_of("float32", "float64"),
    "n_borders": _count,
    "blend": _count,
    "threshold": _between(-1.0, 1.0),
    "tolerance": _between(0.0, np.inf),
    "refine": lambda value: "" if isinstance(value, bool | np.bool_) else "True or False",
    "verbose": lambda value: "" if isinstance(value, Integral) else "an integer",
    "n_jobs": lambda value: (
        ""
        if value is None or (_is_integer(value) and value != 0)
        else "None or an integer other than 0, such as -1 for all"
    ),
    "min_agreement": _limit(1.0),
    "max_cost": _limit(np.inf),
    "max_time_us": _limit(np.inf),
    "max_bytes": _limit(np.inf),
}
