"""A one-class SVM of LIBSVM as a scikit-learn outlier detector and as a source."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import validate_data

from limes._typing import Array
from limes.model.affine import to_dense
from limes.model.exact import ExactScheme
from limes.model.svm import TrainedSvm
from limes.sources.base import SourceContext, exact_scheme, training_rows


class LibsvmOneClass(OutlierMixin, BaseEstimator):
    """A one-class SVM of LIBSVM (``svm-train -s 2``) as a fitted scikit-learn outlier detector.

    ``read_libsvm_model`` returns one. Its predictions are those of ``svm-predict``.

    Parameters
    ----------
    svm : TrainedSvm
        Support vectors, coefficients and kernel, as those of two classes: outliers, which have no
        vectors, and inliers.
    first_index : {0, 1}, default=1
        Number of the first feature in the file.

    Attributes
    ----------
    offset_ : float
        LIBSVM's ``rho``: ``score_samples`` less ``decision_function``.
    n_features_in_ : int
        Number of features of a row.

    Examples
    --------
    >>> from limes.model.svm import Kernel
    >>> svm = TrainedSvm(Kernel("rbf", 1.0), [[0.0]], [[-1.0]], [0.5], [0, 1])
    >>> LibsvmOneClass(svm).predict([[0.0], [2.0]])
    array([ 1, -1])
    """

    def __init__(self, svm: TrainedSvm, *, first_index: int = 1) -> None:
        self.svm = svm
        self.first_index = first_index

    # As `LibsvmClassifier` has it; written files depend on it.
    svm_type = "one_class"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Return the model unchanged: LIBSVM has fitted it.

        Parameters
        ----------
        X, y : object
            Ignored. They make the model usable as the last step of a ``Pipeline``.

        Returns
        -------
        LibsvmOneClass
            The same object.

        Examples
        --------
        >>> from limes.model.svm import Kernel
        >>> svm = TrainedSvm(Kernel("rbf", 1.0), [[0.0]], [[-1.0]], [0.5], [0, 1])
        >>> model = LibsvmOneClass(svm)
        >>> model.fit(None) is model
        True
        """
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the sum of kernels of each row less ``offset_``: above 0 for inliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            The values of ``svm-predict``.

        Examples
        --------
        >>> from limes.model.svm import Kernel
        >>> svm = TrainedSvm(Kernel("rbf", 1.0), [[0.0]], [[-1.0]], [0.5], [0, 1])
        >>> model = LibsvmOneClass(svm)
        >>> model.decision_function([[0.0], [2.0]]) > 0
        array([ True, False])
        """
        rows = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        return self.svm.decision(to_dense(rows), 0, 1)

    def score_samples(self, X: Any) -> Array:
        """Return the sum of kernels of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            ``decision_function`` plus ``offset_``.

        Examples
        --------
        >>> from limes.model.svm import Kernel
        >>> svm = TrainedSvm(Kernel("rbf", 1.0), [[0.0]], [[-1.0]], [0.5], [0, 1])
        >>> model = LibsvmOneClass(svm)
        >>> model.score_samples([[0.0], [2.0]]).round(3)
        array([1.   , 0.018])
        """
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Predict whether each row is an inlier, as ``svm-predict`` does.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            1 for inliers, -1 for outliers.

        Examples
        --------
        >>> from limes.model.svm import Kernel
        >>> svm = TrainedSvm(Kernel("rbf", 1.0), [[0.0]], [[-1.0]], [0.5], [0, 1])
        >>> model = LibsvmOneClass(svm)
        >>> model.predict([[0.0], [2.0]])
        array([ 1, -1])
        """
        return np.where(self.decision_function(X) > 0, 1, -1)

    @property
    def labels(self) -> NDArray[np.int64]:
        """The labels -1 and 1."""
        return np.array([-1, 1])

    @property
    def offset_(self) -> float:
        """LIBSVM's ``rho``."""
        return float(self.svm.intercepts[0])

    @property
    def n_features_in_(self) -> int:
        """Number of features of a row."""
        return self.svm.n_features

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@exact_scheme.register
def _(model: LibsvmOneClass, context: SourceContext | None) -> ExactScheme:
    return ExactScheme(sums=model.svm, rule="strict", class_order=np.arange(2))


@training_rows.register
def _(model: LibsvmOneClass) -> Array:
    return np.array(model.svm.vectors)
