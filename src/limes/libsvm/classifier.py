"""A LIBSVM model as a scikit-learn classifier and as a source."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from limes._typing import Array
from limes.model.coupling import (
    count_votes_like_libsvm,
    couple_like_libsvm,
)
from limes.model.exact import ExactScheme, PairSigmoids, one_vs_rest
from limes.model.svm import TrainedSvm
from limes.sources.base import SourceContext, as_source, exact_scheme, training_rows
from limes.sources.exact import decided_by_probability
from limes.sources.platt import DEFAULT_SLOPE, fit_pair_sigmoids
from limes.sources.svm import SvmSource, reordered_pairs

# Numbers of sparse rows that are converted to dense ones at once: 32 MB of float64.
BLOCK_NUMBERS = 1 << 22


class LibsvmClassifier(ClassifierMixin, BaseEstimator):
    """A LIBSVM model as a fitted scikit-learn classifier.

    ``read_libsvm_model`` returns one. Its predictions are those of LIBSVM's programs: ``predict``
    gives the labels of ``svm-predict``, ``predict_proba`` and ``predict_likeliest`` the
    probabilities and labels of ``svm-predict -b 1``. The classes of ``svm`` have the order of the
    file, which is that of ``labels`` and decides ties; ``classes_`` and the columns of all results
    are sorted, as everywhere in scikit-learn.

    Parameters
    ----------
    svm : TrainedSvm
        Support vectors, coefficients and kernel.
    labels : ndarray of int of shape (n_classes,)
        Label of each class of ``svm``.
    svm_type : {"c_svc", "nu_svc"}, default="c_svc"
        How the SVM was trained; only written files depend on it.
    sigmoids : ndarray of shape (2, n_pairs), default=None
        LIBSVM's ``probA`` and ``probB``; None for a model without probabilities.
    first_index : {0, 1}, default=1
        Number of the first feature in files. LIBSVM's begin with 1, some programs' with 0.
    iterate_two_classes : bool, default=False
        Whether probabilities of two classes come from the iteration that more classes need, as in
        scikit-learn and ONNX Runtime.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    n_features_in_ : int
        Number of features of a row.

    Examples
    --------
    >>> from limes.model.svm import Kernel
    >>> svm = TrainedSvm(Kernel("linear"), [[0.0], [2.0]], [[0.5, -0.5]], [1.0], [1, 1])
    >>> model = LibsvmClassifier(svm, np.array([7, 3]))
    >>> model.predict([[0.0], [2.0]])
    array([7, 3])
    >>> model.classes_, model.decision_function([[0.0], [2.0]])
    (array([3, 7]), array([ 1., -1.]))
    """

    def __init__(
        self,
        svm: TrainedSvm,
        labels: NDArray[np.int64],
        *,
        svm_type: str = "c_svc",
        sigmoids: Array | None = None,
        first_index: int = 1,
        iterate_two_classes: bool = False,
    ) -> None:
        self.svm = svm
        self.labels = labels
        self.svm_type = svm_type
        self.sigmoids = sigmoids
        self.first_index = first_index
        self.iterate_two_classes = iterate_two_classes

    def fit(self, X: Any, y: Any = None) -> Self:
        """Return the model unchanged: LIBSVM has fitted it.

        Parameters
        ----------
        X, y : object
            Ignored. They make the model usable as the last step of a ``Pipeline``.

        Returns
        -------
        LibsvmClassifier
            The same object.

        Examples
        --------
        >>> from limes.model.svm import Kernel
        >>> svm = TrainedSvm(Kernel("linear"), [[0.0], [2.0]], [[0.5, -0.5]], [1.0], [1, 1])
        >>> model = LibsvmClassifier(svm, np.array([7, 3]))
        >>> model.fit(None) is model
        True
        """
        return self

    @property
    def classes_(self) -> NDArray[np.int64]:
        """The labels, sorted."""
        return np.sort(self.labels)

    @property
    def n_features_in_(self) -> int:
        """Number of features of a row."""
        return self.svm.n_features

    def decision_function(self, X: Any) -> Array:
        """Return the same as ``SVC.decision_function`` by default.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Two classes: positive for ``classes_[1]``. More: the votes of each of ``classes_``,
            plus its summed decision values mapped into (-1/3, 1/3) to order equal votes
            (``predict`` takes the first in ``labels`` instead).

        Examples
        --------
        >>> from limes.model.svm import Kernel
        >>> svm = TrainedSvm(Kernel("linear"), [[0.0], [2.0]], [[0.5, -0.5]], [1.0], [1, 1])
        >>> model = LibsvmClassifier(svm, np.array([7, 3]))
        >>> model.decision_function([[0.0], [2.0]])
        array([ 1., -1.])
        """
        values = self._pair_decisions(X)
        if self.svm.n_classes == 2:
            return values[:, 0] if self.labels[0] < self.labels[1] else -values[:, 0]
        return one_vs_rest(values)[:, np.argsort(self.labels)]

    @available_if(lambda self: self.sigmoids is not None)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of ``svm-predict -b 1``, from the same iteration as LIBSVM's.

        Available for models trained with ``-b 1``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            One column for each of ``classes_``.
        """
        return self._probabilities(X)[:, np.argsort(self.labels)]

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Predict the class with most votes, as ``svm-predict`` does without ``-b 1``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels; for equal votes the first in ``labels``.

        Examples
        --------
        >>> from limes.model.svm import Kernel
        >>> svm = TrainedSvm(Kernel("linear"), [[0.0], [2.0]], [[0.5, -0.5]], [1.0], [1, 1])
        >>> model = LibsvmClassifier(svm, np.array([7, 3]))
        >>> model.predict([[0.0], [2.0]])
        array([7, 3])
        """
        return self.labels[count_votes_like_libsvm(self._pair_decisions(X)).argmax(axis=1)]

    @available_if(lambda self: self.sigmoids is not None)  # type: ignore[untyped-decorator]
    def predict_likeliest(self, X: Any) -> NDArray[np.int64]:
        """Predict the class of highest probability, as ``svm-predict -b 1`` does.

        These labels can differ from those of ``predict``, which counts votes. Available for models
        trained with ``-b 1``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels; for equal probabilities the first in ``labels``.
        """
        return self.labels[self._probabilities(X).argmax(axis=1)]

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _pair_decisions(self, X: Any) -> Array:
        """Check rows and return the decision values of all pairs."""
        rows = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        n_each = max(1, BLOCK_NUMBERS // rows.shape[1])
        if not sparse.issparse(rows) or rows.shape[0] <= n_each:
            return self.svm.pair_decisions(rows)
        starts = range(0, rows.shape[0], n_each)
        return np.vstack(
            [self.svm.pair_decisions(rows[start : start + n_each]) for start in starts]
        )

    def _probabilities(self, X: Any) -> Array:
        """Return the probabilities in the order of ``labels``."""
        assert self.sigmoids is not None
        exponents = self.sigmoids[1] - self._pair_decisions(X) * self.sigmoids[0]
        return couple_like_libsvm(
            expit(exponents),
            complements=expit(-exponents),
            iterate_two_classes=self.iterate_two_classes,
        )


@as_source.register
def _(model: LibsvmClassifier, context: SourceContext) -> SvmSource:
    order = np.argsort(model.labels)
    svm = model.svm.reordered(order)
    sigmoids = _libsvm_sigmoids(model, context)
    # Swapping the classes of a pair negates its decision value, and so the shift.
    old_places, signs = reordered_pairs(order)
    return SvmSource(
        svm,
        model.classes_,
        sigmoids.slopes[old_places],
        signs * sigmoids.shifts[old_places],
        not context.by_probability,
        tie_order=np.argsort(order),
    )


@exact_scheme.register
def _(model: LibsvmClassifier, context: SourceContext | None) -> ExactScheme:
    sigmoids = None
    if model.sigmoids is not None or (context is not None and len(context.X)):
        sigmoids = _libsvm_sigmoids(model, context)
    is_by_probability = context is not None and context.by_probability
    if sigmoids is not None and model.sigmoids is None and not is_by_probability:
        # As `SvmSource` has them: equal probabilities where the vote of the pair changes.
        sigmoids = replace(sigmoids, shifts=np.zeros_like(sigmoids.shifts))
    scheme = ExactScheme(
        sums=model.svm,
        rule="votes",
        class_order=np.searchsorted(model.classes_, model.labels),
        probabilities=sigmoids,
    )
    return decided_by_probability(scheme) if is_by_probability else scheme


def _libsvm_sigmoids(model: LibsvmClassifier, context: SourceContext | None) -> PairSigmoids:
    """Return the file's sigmoids, else fit them to the rows if their classes are known.

    Pairs have the order of the file.
    """
    if model.sigmoids is not None:
        return PairSigmoids(
            -model.sigmoids[0],
            model.sigmoids[1],
            like_libsvm=True,
            iterate_two_classes=model.iterate_two_classes,
        )
    if context is None or context.class_index is None:
        n_pairs = len(model.svm.intercepts)
        return PairSigmoids(np.full(n_pairs, DEFAULT_SLOPE), np.zeros(n_pairs))
    old_index = np.argsort(model.labels)[context.class_index]
    old_index[context.class_index < 0] = -1
    return PairSigmoids(*fit_pair_sigmoids(model.svm.pair_decisions(context.X), old_index))


@training_rows.register
def _(model: LibsvmClassifier) -> Array:
    return np.array(model.svm.vectors)
