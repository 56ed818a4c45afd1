"""What fast estimators share: prediction of any rows, files, reports, facts about the fit."""

import os
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from limes.fit.parameters import check_parameters
from limes.model.exact import ExactScheme, FallbackScheme
from limes.model.file import save_model
from limes.model.model import CORE_TYPES, Candidate, Model, is_plain_rows
from limes.model.schemes import Scheme
from limes.report import (
    ComparedModel,
    Comparison,
    compare,
    pickled_size,
    scheme_name,
    with_fit_notes,
)
from limes.sources.exact import exact_predict
from limes.sources.generic import label_by
from limes.sources.pipelines import unwrap
from limes.sources.table_encoder import (
    TableEncoder,
    check_no_encoder,
    in_source_order,
    source_after,
)

# Parameters that a model file leaves out: they belong to the computer or to the source.
NOT_STORED = {"estimator", "n_jobs", "verbose"}
# Arrays of other libraries, by the package of their type, and the module that has ``predict_array``
# and ``sample_rows`` for them. It is imported on first use: the only reference to a higher layer.
SCENES = "limes.raster"
ARRAY_MODULES = {"dask": "limes.dask_arrays", "dask_expr": "limes.dask_arrays", "xarray": SCENES}
# Rows that a fit draws from a scene or a lazy array: the synthetic rows of a transfer set are made
# from at most as many.
SAMPLED_ROWS = 50_000


class FastEstimator(MetaEstimatorMixin, BaseEstimator):
    """A fitted ``Model`` with the interface of scikit-learn; the base of both estimators."""

    estimator_: Any
    model_: Model
    encoder_: TableEncoder | None

    def predictor(self) -> Callable[[Any], Any]:
        """Return a function that predicts one row at a time, for real-time use.

        It leaves out scikit-learn's input checks. A row is a float32 or float64 array of one
        dimension or a sequence of numbers; anything of another shape or type raises. A row with a
        NaN or an infinity gets the first class. Where steps of the source stay before the maps, a
        row is a sequence of the values of all columns or a mapping from their names, and takes as
        long as these steps do.

        Returns
        -------
        callable
            From a row to its label, from a two-dimensional array to a list of labels.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> import limes
        >>> X, y = make_moons(500, noise=0.2, random_state=0)
        >>> fast = limes.BordersClassifier(n_borders=16, random_state=0).fit(X, y)
        >>> predict_one = fast.predictor()
        >>> predict_one([0.0, 1.0])
        0
        """
        check_is_fitted(self)
        predict = self.model_.predictor()
        return predict if self.encoder_ is None else self.encoder_.predictor(predict)

    def report(self, X: ArrayLike, y: ArrayLike | None = None) -> Comparison:
        """Compare with the source: skill, agreement, time, size, and rows that earn back the fit.

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

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from sklearn.svm import SVC
        >>> import limes
        >>> X, y = make_moons(200, noise=0.1, random_state=0)
        >>> fast = limes.accelerate(SVC(gamma=2).fit(X, y), scheme="exact")
        >>> report = fast.report(X, y)
        >>> report.agreement, report.source.name, report.fast.name
        (1.0, 'SVC', 'exact sums')
        """
        check_is_fitted(self)
        rows = self._check_rows(X) if self.encoder_ is None else X
        if not hasattr(self, "estimator_"):
            raise ValueError(
                "report compares with the source, which a model file does not keep. Set "
                "estimator_ to the fitted source, or compare labels with limes.scores."
            )
        source = ComparedModel(
            type(unwrap(source_after(self.encoder_, self.estimator_))[0]).__name__,
            label_by(self.estimator_, self.model_.classes),
            pickled_size(self.estimator_) or None,
        )
        fast = ComparedModel(scheme_name(self.scheme_), self.predict, self.scheme_.n_bytes)
        truth = None if y is None else np.asarray(y)
        comparison = compare(
            fast,
            source,
            rows,
            truth,
            classes=self.model_.classes,
            fit_seconds=self.fit_seconds_,
            exact=exact_predict(self, self.estimator_),
        )
        return with_fit_notes(comparison, self)

    def save(self, path: str | os.PathLike[str], *, fallback: bool = True) -> None:
        """Write all that predicts to one file, for ``limes.load``; the source is left out.

        Exact sums, and a map that falls back to them, are written with the training rows that the
        source keeps, such as support vectors.

        Parameters
        ----------
        path : path-like
            File to write, by convention with the ending ``.limes``. An old file stays as it is
            until the new one is complete.
        fallback : bool, default=True
            Whether a map is written with the exact sums that it falls back to. Without them the
            file holds no training row, some rows get other labels, and its agreement is nan.

        Examples
        --------
        >>> import tempfile
        >>> from sklearn.datasets import make_moons
        >>> import limes
        >>> X, y = make_moons(200, random_state=0)
        >>> fast = limes.BordersClassifier(n_borders=16, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fast.save(f"{folder}/moons.limes")
        ...     again = limes.load(f"{folder}/moons.limes")
        >>> bool((again.predict_proba(X) == fast.predict_proba(X)).all())
        True
        """
        check_is_fitted(self)
        check_no_encoder(self, "a .limes file")
        parameters = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in NOT_STORED
        }
        if not fallback and isinstance(self.scheme_, ExactScheme):
            raise ValueError(
                "save(fallback=False) leaves out training rows, which are all of exact sums: fit "
                "with scheme='shared' and fallback=False for a file without them."
            )
        info = replace(self.model_.info, parameters=parameters)
        if not fallback and isinstance(self.scheme_, FallbackScheme):
            info = info.without_agreement()
        save_model(replace(self.model_, info=info), path, fallback=fallback)

    @classmethod
    def from_model(cls, model: Model) -> Self:
        """Return a fitted estimator that predicts with a model.

        Parameters
        ----------
        model : Model
            From ``limes.model.load_model``, or built from border maps.

        Returns
        -------
        BordersClassifier or BordersOutlierDetector
            Fitted, without a source; its parameters are those in ``model.info``.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from sklearn.svm import SVC
        >>> import limes
        >>> X, y = make_moons(200, noise=0.1, random_state=0)
        >>> fast = limes.accelerate(SVC(gamma=2).fit(X, y), scheme="exact")
        >>> again = limes.BordersClassifier.from_model(fast.model_)
        >>> again.predict([[0.0, 1.0]])
        array([0])
        """
        names = cls._get_param_names()
        stored = model.info.parameters.items()
        fast = cls(**{name: value for name, value in stored if name in names})
        fast._check_parameters()
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
        """Multiply-adds per row that are expected, an exponential counted as several."""
        return self.model_.scheme.cost

    @property
    def agreement_(self) -> float:
        """Share of held-out rows, like those given, with the source's label."""
        return self.model_.info.agreement

    @property
    def coverage_agreement_(self) -> float:
        """Share of rows between and around the held-out rows with the source's label."""
        return self.model_.info.coverage_agreement

    @property
    def fallback_margin_(self) -> float:
        """Log odds of the map below which the exact sums predict a row."""
        scheme = self.model_.scheme
        return scheme.margin if isinstance(scheme, FallbackScheme) else 0.0

    @property
    def fallback_share_(self) -> float:
        """Expected share of rows that the exact sums predict."""
        scheme = self.model_.scheme
        return scheme.share if isinstance(scheme, FallbackScheme) else 0.0

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

    @property
    def fit_seconds_(self) -> float:
        """Wall-clock time of the fit, without the training of the source."""
        return self.model_.info.fit_seconds

    def _check_parameters(self) -> None:
        """Raise for a parameter that is wrong."""
        check_parameters(self)

    def _set_model(self, model: Model, encoder: TableEncoder | None = None) -> None:
        """Make this the fitted estimator of a model, with the steps that stay before it."""
        self.model_ = model
        self.encoder_ = encoder
        if encoder is not None:
            return
        self.n_features_in_ = model.n_features
        if model.feature_names is not None:
            self.feature_names_in_ = model.feature_names

    def _check_rows(self, X: ArrayLike) -> Any:
        """Return rows as the core takes them; it checks itself whether they are finite."""
        if not hasattr(self, "model_"):  # check_is_fitted takes longer than predicting a row
            check_is_fitted(self, "model_")
        encoder = self.__dict__.get("encoder_")
        if encoder is not None:
            return encoder.transform(X)
        if self._is_plain(X) or isinstance(X, np.ma.MaskedArray):
            return X
        return validate_data(
            self,
            in_source_order(getattr(self, "estimator_", None), X),
            reset=False,
            accept_sparse="csr",
            dtype=CORE_TYPES,
            ensure_all_finite=False,
            ensure_min_samples=0,
        )

    def _apply(self, method: str, X: Any) -> Any:
        """Return what a method of the model predicts; arrays of ARRAY_MODULES keep their kind."""
        if type(X) is not np.ndarray:
            module = array_module(X, is_encoded=self.__dict__.get("encoder_") is not None)
            if module is not None:
                check_is_fitted(self, "model_")
                return module.predict_array(self, method, X)
        rows = self._check_rows(X)
        return getattr(self.model_, method)(rows, n_jobs=self.n_jobs)

    def _is_plain(self, X: Any) -> bool:
        """Return whether rows need no checks by scikit-learn, which take longer than one row."""
        has_names = "feature_names_in_" in self.__dict__
        return not has_names and is_plain_rows(X, self.n_features_in_)


def array_module(X: Any, *, is_encoded: bool) -> Any:
    """Return the module for arrays of another library or paths of a scene, or None.

    A list of strings is encoded text, if a source encodes its rows.
    """
    name = ARRAY_MODULES.get(type(X).__module__.partition(".")[0])
    first = X[0] if isinstance(X, list | tuple) and X else X
    if isinstance(first, str | os.PathLike) and not is_encoded:
        name = SCENES
    return None if name is None else import_module(name)
