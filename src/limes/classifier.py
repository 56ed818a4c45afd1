"""The estimator: ``BordersClassifier``, ``accelerate`` and ``load``."""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.svm import SVC
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from limes._typing import Array, Labels
from limes.detector import BordersOutlierDetector, accelerate_detector
from limes.fast_estimator import SAMPLED_ROWS, FastEstimator, array_module
from limes.fit.input import (
    FitInput,
    check_input,
    make_rows,
    seed_of,
    take_columns,
    unchanged_on_error,
)
from limes.fit.parameters import check_parameters, fit_options
from limes.fit.pipeline import FitResult, fit_exact, fit_model
from limes.fit.quality import other_labels_finding, warn_of_quality
from limes.model.exact import ExactScheme
from limes.model.file import load_model
from limes.model.model import FeatureStatistics, Model
from limes.old_names import refuse_old_name
from limes.report import measure_break_even, slower_finding
from limes.sources.answers import fit_protected
from limes.sources.base import SourceContext
from limes.sources.exact import exact_predict, is_detector
from limes.sources.generic import check_same_features, label_by
from limes.sources.table_encoder import (
    TableEncoder,
    has_encoder,
    in_source_order,
    split_without_rows,
    takes_table,
)

RENAMED = {"tradeoff_": "candidates_", "one_sided_": "scheme_.maps[i].is_constant"}


def _has_probabilities(fast: "BordersClassifier") -> bool:
    """Return whether there are probabilities; any model but some exact sums has them."""
    return not hasattr(fast, "model_") or fast.model_.scheme.has_probabilities


class BordersClassifier(ClassifierMixin, FastEstimator):
    """A fast piecewise-linear classifier that predicts as a slow one does.

    It places a few points near the decision border of a trained classifier, each with linear
    functions, and predicts a row by evaluating the functions of its nearest points.

    Parameters
    ----------
    estimator : classifier, default=None
        The source: the classifier that is replaced. It is fitted on the same rows first, unless it
        is frozen (``sklearn.frozen.FrozenEstimator``), a LIBSVM model or a function of rows. None
        means ``SVC()``. Linear steps of a ``Pipeline`` before the classifier are folded into the
        model and cost a prediction nothing; steps that encode categories, text or missing values
        stay before it.
    scheme : {'auto', 'exact', 'shared', 'shortlist', 'tree', 'pairwise', 'one-vs-rest'}, \
            default='auto'
        How classes are predicted. 'exact': by the sums of the source itself, in the compiled core,
        with the source's labels. 'shared': one map with a function for each class. 'shortlist':
        such a map selects the likeliest classes, and the maps of their pairs decide. 'tree': one
        map for each node of a class hierarchy. 'pairwise': one map for each pair (the paper).
        'one-vs-rest': one for each class against the others. 'auto' is 'exact' where that is fast
        or no map is twice as fast, else 'shared'; it is 'pairwise' where ``refine=False`` or a
        threshold is given. Two classes have one map in every scheme.
    n_borders : int or 'auto', default='auto'
        Points of a map. 'auto' trains shared maps of growing size and selects the smallest whose
        expected loss in uncertainty coefficient is below 0.004, or 1 % of the source's if that is
        less; if none is, the cheapest within two standard errors of the best agreement. In the
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
    fallback : 'auto' or bool, default='auto'
        Whether a map may carry the exact sums, which then predict the rows whose two likeliest
        classes are close in the map. 'auto': where that reaches ``min_agreement``; else where the
        map then keeps the source's skill and agrees with it on 99 % of the rows between and around
        those given, within twice the time of the model that would be selected without fallback;
        not where ``n_borders`` is given. True: always. False: never. For the schemes 'auto' and
        'shared', and sources with exact sums: SVMs, kernel densities and binary Gaussian-process
        classifiers.
    curved : bool, default=True
        Whether a shared map may have a curved function, of second degree with an envelope, added to
        its linear ones, where that agrees better. False: it is piecewise linear.
    effort : float, default=1.0
        Factor on the number of training samples of trained maps, and so on the time of the fit.
    min_agreement : float or None, default=None
        Share of rows that must get the source's label, both of rows like those given and of rows
        between and around them: the cheapest candidate that reaches it is selected, with a warning
        if none does. With exact sums it is always reached. This and the limits below are for the
        schemes 'auto' and 'shared' with ``n_borders='auto'``.
    max_cost : int or None, default=None
        Most multiply-adds per row that are expected, an exponential counted as several.
    max_time_us : float or None, default=None
        Most microseconds per row in a batch, on one thread of this computer.
    max_bytes : int or None, default=None
        Most bytes of the tables of the float32 C export, labels included; a microcontroller may
        have 2048.
    random_state : int, RandomState instance or None, default=0
        Seed of the fit: the same call gives the same model. None for another one each time.
    n_jobs : int or None, default=None
        Pairs of classes fitted at once, and threads of a prediction. Results do not depend on it.
    verbose : int, default=0
        Above zero, the fit prints its progress, and after how many rows its time is earned back.

    Attributes
    ----------
    estimator_ : classifier
        The fitted source; a classifier from a model file has none.
    model_ : Model
        All that predicts; it needs NumPy alone.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    encoder_ : TableEncoder or None
        The first steps of the source that stay before the maps, where rows have categories, text or
        missing values. ``model_`` predicts what ``encoder_.transform(X)`` returns.
    n_features_in_ : int
        Number of features of a row.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where ``X`` had any.
    scheme_ : Scheme
        The border maps, and how they make classes.
    n_borders_ : int
        Border points in all maps.
    cost_ : int
        Multiply-adds per row that are expected, an exponential counted as several.
    agreement_ : float
        Share of held-out rows with the source's label, that of the selected one of ``candidates_``:
        for rows like those given, and for no others. 1 for exact sums; nan with too few rows.
        For SVMs it is importance-weighted to out-of-fold margins, so that it estimates
        agreement on unseen rows, unless training the SVM again would take long. Where rows are few,
        the model is trained once more with the held-out rows after that.
    agreement_error_ : float
        Standard error of ``agreement_``.
    coverage_agreement_ : float
        Share of rows between and around the held-out rows with the source's label: rows
        a + t (b - a) of two random rows, t from -0.3 to 1.3. Where it is far below ``agreement_``,
        the rows given do not cover where the model may be used.
    fallback_margin_ : float
        Log odds between the two likeliest classes of the map below which a row is predicted by the
        exact sums; 0 without fallback.
    fallback_share_ : float
        Share of rows like those given that is expected to be predicted by them.
    candidates_ : list of Candidate
        The models that were compared: scheme, points, cost, agreement, expected loss of skill.
    placement_ : str or None
        Between which rows borders were searched; None for trained maps.
    fit_seconds_ : float
        Wall-clock time of the fit, without the training of the source; nan in older model files.

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
        fallback: str | bool = "auto",
        curved: bool = True,
        effort: float = 1.0,
        min_agreement: float | None = None,
        max_cost: int | None = None,
        max_time_us: float | None = None,
        max_bytes: int | None = None,
        random_state: Any = 0,
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
        self.fallback = fallback
        self.curved = curved
        self.effort = effort
        self.min_agreement = min_agreement
        self.max_cost = max_cost
        self.max_time_us = max_time_us
        self.max_bytes = max_bytes
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the source, then the model that replaces it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or data frame
            Training rows. A ``Pipeline`` that encodes text, categories or missing values takes them
            as they are.
        y : array-like of shape (n_rows,)
            Labels.
        sample_weight : array-like of shape (n_rows,), default=None
            How much each row counts where the source is trained, also again on parts of the rows.
            A ``Pipeline`` hands them to its last step. ``agreement_`` counts rows, not weights.

        Returns
        -------
        BordersClassifier
            Itself.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from sklearn.svm import SVC
        >>> X, y = make_moons(200, noise=0.1, random_state=0)
        >>> fast = BordersClassifier(SVC(gamma=2), n_borders=16).fit(X, y)
        >>> fast.n_borders_
        16
        """
        check_parameters(self)
        with unchanged_on_error(self):
            source = SVC() if self.estimator is None else self.estimator
            if is_detector(source):
                raise ValueError(
                    f"{type(source).__name__} is an outlier detector, which ignores y: "
                    "give it to BordersOutlierDetector, or give a classifier here."
                )
            given = check_input(self, source, X, y, sample_weight)
            check_classification_targets(given.labels)
            if hasattr(source, "fit") and not isinstance(source, FrozenEstimator):
                source = fit_protected(source, X, y, given.sample_weight)
            return self._fit_to_source(source, given, start=time.perf_counter())

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
            probability. More: the logarithm of each class's probability. With exact sums, the
            source's own decision function.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from sklearn.svm import SVC
        >>> import limes
        >>> X, y = make_moons(200, noise=0.1, random_state=0)
        >>> fast = limes.accelerate(SVC(gamma=2).fit(X, y), scheme="exact")
        >>> bool((fast.decision_function([[0.0, 1.0], [1.0, -0.5]]) > 0)[1])
        True
        """
        return self._apply("decision_function", X)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of each class.

        Not available for exact sums of a source without probabilities, unless they were fitted to
        rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            In the order of ``classes_``; the largest is that of the predicted class. With exact
            sums they are the source's, and an SVM's own labels and probabilities may disagree.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from sklearn.svm import SVC
        >>> import limes
        >>> X, y = make_moons(200, noise=0.1, random_state=0)
        >>> fast = limes.BordersClassifier(SVC(gamma=2), n_borders=16).fit(X, y)
        >>> fast.predict_proba([[0.0, 1.0], [1.0, -0.5]]).round(1)
        array([[1., 0.],
               [0., 1.]])
        """
        return self._apply("predict_proba", X)

    def predict(self, X: ArrayLike) -> Labels:
        """Predict the class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows. A Dask array or data frame, an xarray object with the dimension "band" and a
            masked array give an array of their own kind, the first two without computing it.

        Returns
        -------
        ndarray of shape (n_rows,)
            One of ``classes_`` for each row; masked where a feature is masked.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from sklearn.svm import SVC
        >>> import limes
        >>> X, y = make_moons(200, noise=0.1, random_state=0)
        >>> fast = limes.accelerate(SVC(gamma=2).fit(X, y), scheme="exact")
        >>> fast.predict([[0.0, 1.0], [1.0, -0.5]])
        array([0, 1])
        """
        return self._apply("predict", X)

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

    def _fit_to_source(self, source: Any, given: FitInput, *, start: float) -> Self:
        """Fit the model to a fitted source; the time of the fit counts from a clock's `start`."""
        if given.table is not None:
            take_columns(self, source)
        inner, rows, encoder, groups = given.encode(source, self.random_state)
        result = fit_model(
            inner,
            rows,
            given.labels,
            options=fit_options(self),
            scheme=self.scheme,
            refine=self.refine,
            by_probability=self.border == "probability",
            seed=seed_of(self.random_state),
            groups=groups,
            sample_weight=given.sample_weight,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        result = replace(result, features=FeatureStatistics.from_rows(rows))
        self._set_result(source, result, encoder, start=start)
        if self.verbose:
            timed = (rows, self.model_.predict) if encoder is None else (given.table, self.predict)
            others = label_by(source, self.classes_), exact_predict(self, source)
            print(measure_break_even(self.fit_seconds_, *timed, *others))
        self._warn(label_by(inner, self.classes_), rows, suits=not result.causes)
        return self

    def _warn(self, source: Callable[[Any], Labels], rows: Any, *, suits: bool) -> None:
        """Warn of what the fit found, and of what the source shows on rows that suit it."""
        info, slower = self.model_.info, list[str]()
        if suits and isinstance(self.scheme_, ExactScheme) and self.border == "predict":
            found = other_labels_finding(self.model_.predict, source, rows)
            info = replace(info, warnings=found)
            self.model_ = replace(self.model_, info=info)
        if suits:
            slower = slower_finding(self.model_.predict, source, rows)
        # Times are left out of the model, which is the same when a fit is repeated.
        warn_of_quality([*info.warnings, *slower])

    def _take_exact_sums(self, source: Any, *, start: float) -> Self:
        """Take the sums of a fitted source, without any row."""
        by_probability = self.border == "probability"
        no_rows = SourceContext(np.empty((0, 0)), None, by_probability, np.random.default_rng(0))
        inner, encoder = split_without_rows(source)
        result = fit_exact(inner, no_rows if by_probability else None)
        self.n_features_in_ = result.scheme.n_features
        take_columns(self, source)
        return self._set_result(source, result, encoder, start=start)

    def _set_model(self, model: Model, encoder: TableEncoder | None = None) -> None:
        """Make this the fitted classifier of a model, with the steps that stay before it."""
        super()._set_model(model, encoder)
        self.classes_ = model.classes

    def _set_result(
        self, source: Any, result: FitResult, encoder: TableEncoder | None, *, start: float
    ) -> Self:
        """Make this the fitted classifier of a fit."""
        info = result.info(self.n_jobs, self.min_agreement)
        info = replace(info, fit_seconds=time.perf_counter() - start)
        self.estimator_ = source
        if encoder is None:
            n_features, names = self.n_features_in_, getattr(self, "feature_names_in_", None)
        else:
            n_features, names = encoder.n_outputs, encoder.get_feature_names_out()
        self._set_model(Model(result.scheme, result.classes, n_features, names, info), encoder)
        return self


def accelerate(
    model: Any,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    **parameters: Any,
) -> BordersClassifier | BordersOutlierDetector:
    """Turn a fitted classifier into a fast one that predicts as it does.

    Parameters
    ----------
    model : classifier, or function of rows
        Fitted: an SVM, a kernel-density or Gaussian-process classifier, a LIBSVM model, anything
        with ``predict_proba`` or ``decision_function``, perhaps in a ``Pipeline``. A
        ``OneClassSVM`` or a one-class LIBSVM model gives a ``BordersOutlierDetector``. A function
        returns decision values (n_rows,), positive for the second class, or scores
        (n_rows, n_classes).
    X : array-like or sparse matrix of shape (n_rows, n_features), scene or path, default=None
        Rows as they occur in use; labels are not needed. The training rows do where they are like
        those. Of a Dask array or data frame and of a scene (an xarray object with the dimension
        "band", a Dataset, or the path of a raster), 50 000 rows or valid pixels are drawn. None:
        with ``scheme='exact'`` none are needed; else synthetic rows are made from the training
        rows that the model keeps, such as support vectors, with a warning, since these lie near
        the border only.
    y : array-like of shape (n_rows,), default=None
        True labels. Not needed, since the source labels the rows; they improve probabilities where
        the source has none of its own. Ignored for an outlier detector, as are weights.
    sample_weight : array-like of shape (n_rows,), default=None
        The weights that the source was fitted with, where the rows are its training rows: parts of
        them train it again, to calibrate its decision values and to estimate ``agreement_``.
    **parameters
        Parameters of ``BordersClassifier`` by name: ``scheme``, ``n_borders``, ``placement``,
        ``blend``, ``refine``, ``border``, ``threshold``, ``tolerance``, ``dtype``, ``fallback``,
        ``curved``, ``effort``, ``min_agreement``, ``max_cost``, ``max_time_us``, ``max_bytes``,
        ``random_state``, ``n_jobs``, ``verbose``.

    Returns
    -------
    BordersClassifier or BordersOutlierDetector
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
    if is_detector(model):
        return accelerate_detector(model, X, parameters)
    start = time.perf_counter()
    is_estimator = hasattr(model, "fit")
    fast = BordersClassifier(FrozenEstimator(model) if is_estimator else model, **parameters)
    check_parameters(fast)
    if is_estimator:
        check_is_fitted(model)
    if X is None and y is None and fast.scheme == ExactScheme.name:
        return fast._take_exact_sums(model, start=start)
    if X is None:
        X = make_rows(model, y, fast.random_state)
    if (module := array_module(X, is_encoded=has_encoder(model))) is not None:
        if y is not None:
            raise ValueError("y has labels, but X is a scene or a lazy array, which is sampled.")
        names = getattr(model, "feature_names_in_", None)
        X = module.sample_rows(X, SAMPLED_ROWS, seed_of(fast.random_state), names=names)
    if not takes_table(model, X):
        X = in_source_order(model, X)
        check_same_features(model, X)
    given = check_input(fast, model, X, y, sample_weight)
    return fast._fit_to_source(model, given, start=start)


def load(
    path: str | os.PathLike[str], *, max_bytes: int = 1 << 32
) -> BordersClassifier | BordersOutlierDetector:
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
    BordersClassifier or BordersOutlierDetector
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
    kind = BordersClassifier if model.outlier_scores is None else BordersOutlierDetector
    try:
        return kind.from_model(model)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{os.fspath(path)}: expected parameters of a {kind.__name__}: {error!s:.200}"
        ) from None
