"""The outlier detector: ``BordersOutlierDetector``, and ``accelerate`` of one-class SVMs."""

import time
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OutlierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.svm import OneClassSVM
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from limes._typing import Array
from limes.fast_estimator import SAMPLED_ROWS, FastEstimator, array_module
from limes.fit.input import FitInput, check_input, seed_of, take_columns, unchanged_on_error
from limes.fit.outliers import DETECTOR_SCHEMES, fit_detector
from limes.fit.parameters import RULES, check_values, one_of
from limes.fit.quality import warn_of_quality
from limes.model.model import FeatureStatistics, Model
from limes.report import measure_break_even, slower_finding
from limes.sources.answers import fit_protected
from limes.sources.exact import exact_predict
from limes.sources.generic import check_same_features, label_by
from limes.sources.table_encoder import (
    has_encoder,
    in_source_order,
    split_without_rows,
    takes_table,
)

DETECTOR_RULES = {
    name: RULES[name] for name in ("n_borders", "fallback", "effort", "n_jobs", "verbose")
} | {"scheme": one_of(*DETECTOR_SCHEMES)}


class BordersOutlierDetector(OutlierMixin, FastEstimator):
    """A fast outlier detector that predicts and scores as a one-class SVM does.

    By default it computes the sums of the SVM itself in the compiled core, or replaces a large SVM
    by a border map where the scores of this have nearly the same order.

    Parameters
    ----------
    estimator : OneClassSVM, Pipeline or LibsvmOneClass, default=None
        The source: the detector that is replaced. It is fitted on the same rows first, unless it
        is frozen (``sklearn.frozen.FrozenEstimator``) or a LIBSVM model. None means
        ``OneClassSVM()``. Linear steps of a ``Pipeline`` before it become part of the model.
    scheme : {'auto', 'exact', 'shared'}, default='auto'
        'exact': the sums of the source, with its labels and scores. 'shared': one border map.
        'auto' is 'exact', unless the sums cost more than 15 000 multiply-adds per row and a map
        costs at most half as much, has a rank correlation of at least 0.997 with the source's
        scores and finds at least 98 % of its inliers and outliers, on each kind of synthetic
        outlier that it is validated on.
    n_borders : int or 'auto', default='auto'
        Points of the map. 'auto' compares several numbers.
    fallback : 'auto' or bool, default='auto'
        Whether the map hands the rows next to the border to the exact sums, which then give label
        and score: those within the range of scores that has nine tenths of its wrong labels.
        'auto' and True: where a map has wrong labels. False: never, so that a map holds no
        training rows.
    effort : float, default=1.0
        Factor on the number of training samples of a map.
    random_state : int, RandomState instance or None, default=0
        Seed of the fit: the same call gives the same model. None for another one each time.
    n_jobs : int or None, default=None
        Threads of a prediction. Results do not depend on it.
    verbose : int, default=0
        Above zero, the fit prints its progress.

    Attributes
    ----------
    estimator_ : detector
        The fitted source; a detector from a model file has none.
    model_ : Model
        All that predicts; it needs NumPy alone.
    offset_ : float
        ``score_samples`` less ``decision_function``; the source's.
    n_features_in_ : int
        Number of features of a row.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where ``X`` had any.
    agreement_ : float
        Share of validation rows with the source's label: half of them held-out rows, half synthetic
        outliers. 1 for exact sums.
    score_correlation_ : float
        Smallest rank correlation (Spearman) of the scores with the source's over the kinds of
        validation rows; 1 for exact sums, nan after the fallback was left out.
    candidates_ : list of Candidate
        The models that were compared.

    See Also
    --------
    accelerate : The same for a detector that is fitted already.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import OneClassSVM
    >>> X, _ = make_moons(500, noise=0.1, random_state=0)
    >>> fast = BordersOutlierDetector(OneClassSVM(nu=0.1, gamma=2)).fit(X)
    >>> fast.predict([[0.0, 1.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        scheme: str = "auto",
        n_borders: int | str = "auto",
        fallback: str | bool = "auto",
        effort: float = 1.0,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.scheme = scheme
        self.n_borders = n_borders
        self.fallback = fallback
        self.effort = effort
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: Any = None, **fit_parameters: Any) -> Self:
        """Fit the source, then the model that replaces it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Training rows.
        y : object
            Ignored.
        **fit_parameters
            Passed on to ``fit`` of the source, such as ``sample_weight``.

        Returns
        -------
        BordersOutlierDetector
            Itself.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from sklearn.svm import OneClassSVM
        >>> X, _ = make_moons(200, noise=0.1, random_state=0)
        >>> one_class = OneClassSVM(nu=0.1, gamma=2)
        >>> fast = BordersOutlierDetector(one_class).fit(X)
        >>> fast.n_features_in_, fast.agreement_
        (2, 1.0)
        """
        self._check_parameters()
        with unchanged_on_error(self):
            source = OneClassSVM() if self.estimator is None else self.estimator
            given = check_input(self, source, X, None, None)
            if not isinstance(source, FrozenEstimator):
                weight = fit_parameters.pop("sample_weight", None)
                source = fit_protected(source, X, None, weight, **fit_parameters)
            return self._fit_to_source(source, given, start=time.perf_counter())

    def decision_function(self, X: ArrayLike) -> Array:
        """Return the score of each row less ``offset_``: above 0 for inliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            On the scale of the source's; the same with exact sums.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from sklearn.svm import OneClassSVM
        >>> X, _ = make_moons(200, noise=0.1, random_state=0)
        >>> one_class = OneClassSVM(nu=0.1, gamma=2)
        >>> fast = BordersOutlierDetector(one_class).fit(X)
        >>> fast.decision_function([[0.0, 1.0], [5.0, 5.0]]) > 0
        array([ True, False])
        """
        return self._apply("decision_function", X)

    def score_samples(self, X: ArrayLike) -> Array:
        """Return the score of each row, ``decision_function`` plus ``offset_``: low for outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Scores.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from sklearn.svm import OneClassSVM
        >>> X, _ = make_moons(200, noise=0.1, random_state=0)
        >>> one_class = OneClassSVM(nu=0.1, gamma=2)
        >>> fast = BordersOutlierDetector(one_class).fit(X)
        >>> scores = fast.score_samples([[0.0, 1.0], [5.0, 5.0]])
        >>> bool((scores - fast.offset_ == fast.decision_function([[0.0, 1.0], [5.0, 5.0]])).all())
        True
        """
        return self.decision_function(X) + self.offset_

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict whether each row is an inlier.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows; as ``BordersClassifier.predict`` takes them.

        Returns
        -------
        ndarray of shape (n_rows,)
            1 for inliers, -1 for outliers.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from sklearn.svm import OneClassSVM
        >>> X, _ = make_moons(200, noise=0.1, random_state=0)
        >>> one_class = OneClassSVM(nu=0.1, gamma=2)
        >>> fast = BordersOutlierDetector(one_class).fit(X)
        >>> fast.predict([[0.0, 1.0], [5.0, 5.0]])
        array([ 1, -1])
        """
        return self._apply("predict", X)

    @property
    def offset_(self) -> float:
        """The score of a row less its decision value."""
        scores = self.model_.outlier_scores
        assert scores is not None
        return scores.offset

    @property
    def score_correlation_(self) -> float:
        """Smallest rank correlation of the scores with the source's."""
        return self.model_.info.score_correlation

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = OneClassSVM() if self.estimator is None else self.estimator
        tags.input_tags.sparse = get_tags(inner).input_tags.sparse
        return tags

    def _check_parameters(self) -> None:
        """Raise for a parameter that is wrong."""
        check_values(self, DETECTOR_RULES)

    def _fit_to_source(self, source: Any, given: FitInput | None, *, start: float) -> Self:
        """Fit the model to a fitted source; without rows, take its exact sums."""
        if given is None:
            (inner, encoder), rows, groups = split_without_rows(source), None, None
        else:
            inner, rows, encoder, groups = given.encode(source, self.random_state)
        # Synthetic rows of a map would mix categories.
        is_auto = self.scheme == "auto" and self.n_borders == "auto"
        fitted = fit_detector(
            inner,
            rows,
            scheme="exact" if groups is not None and is_auto else self.scheme,
            n_borders=None if self.n_borders == "auto" else int(self.n_borders),
            fallback=self.fallback is not False,
            effort=float(self.effort),
            seed=seed_of(self.random_state),
            verbose=self.verbose,
        )
        if given is None:
            self.n_features_in_ = fitted.scheme.n_features
        if given is None or encoder is not None:
            take_columns(self, source)
        info = replace(
            fitted.info,
            fit_seconds=time.perf_counter() - start,
            features=None if rows is None else FeatureStatistics.from_rows(rows),
        )
        n_features, names = self.n_features_in_, getattr(self, "feature_names_in_", None)
        if encoder is not None:
            n_features, names = encoder.n_outputs, encoder.get_feature_names_out()
        classes = np.array([-1, 1])
        self.estimator_ = source
        model = Model(fitted.scheme, classes, n_features, names, info, fitted.scores)
        self._set_model(model, encoder)
        slower: list[str] = []
        if given is not None and self.verbose:
            shown, predict = (
                (rows, model.predict) if encoder is None else (given.table, self.predict)
            )
            others = label_by(source, classes), exact_predict(self, source)
            print(measure_break_even(self.fit_seconds_, shown, predict, *others))
        if rows is not None and not info.warnings:
            slower = slower_finding(model.predict, label_by(inner, classes), rows)
        warn_of_quality([*info.warnings, *slower])
        return self


def accelerate_detector(
    model: Any, X: ArrayLike | None, parameters: dict[str, Any]
) -> BordersOutlierDetector:
    """Turn a fitted outlier detector into a fast one that predicts and scores as it does."""
    start = time.perf_counter()
    unknown = sorted(set(parameters) - set(BordersOutlierDetector._get_param_names()))
    if unknown:
        raise TypeError(
            f"{unknown[0]!r} is not a parameter of BordersOutlierDetector, which replaces "
            f"{type(model).__name__}: it has {BordersOutlierDetector._get_param_names()}."
        )
    fast = BordersOutlierDetector(FrozenEstimator(model), **parameters)
    fast._check_parameters()
    check_is_fitted(model)
    if X is None:
        return fast._fit_to_source(model, None, start=start)
    if (module := array_module(X, is_encoded=has_encoder(model))) is not None:
        names = getattr(model, "feature_names_in_", None)
        X = module.sample_rows(X, SAMPLED_ROWS, seed_of(fast.random_state), names=names)
    if not takes_table(model, X):
        X = in_source_order(model, X)
        check_same_features(model, X)
    given = check_input(fast, model, X, None, None)
    return fast._fit_to_source(model, given, start=start)
