"""Sums of kernels in the compiled core: for any weights, and those of a trained classifier."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limes._core import _native
from limes._core.hardware import DEFAULT_LEVEL

Array = NDArray[Any]


class RbfVectors:
    """Vectors s_i, packed for sums of exp(-gamma |x - s_i|²) over many rows.

    The kernels of a few rows and vectors at a time stay in the processor: no array of rows by
    vectors is made, and the exponential is that of the core.

    Examples
    --------
    >>> ready = RbfVectors([[0.0], [2.0]], 0.5)
    >>> ready.sums(np.array([[1.0]]), [[1.0], [-1.0]])
    array([[0.]])
    """

    def __init__(self, vectors: ArrayLike, gamma: float, *, level: str | None = None) -> None:
        self._native = _native.RbfVectors(_plain(vectors), float(gamma), level or DEFAULT_LEVEL)

    def sums(self, X: Array, weights: ArrayLike, *, n_threads: int = 1) -> Array:
        """Return the weighted sums of the kernels of each row."""
        plain = _plain(weights)
        sums = np.empty((len(X), plain.shape[1] if plain.ndim == 2 else 0))
        self._native.sums(X, plain, sums, n_threads)
        return sums

    def sums_and_gradients(
        self, X: Array, weights: ArrayLike, *, n_threads: int = 1
    ) -> tuple[Array, Array]:
        """Return the weighted sum of the kernels of each row, and its gradient."""
        sums = np.empty((len(X), 1))
        gradients = np.empty((len(X), self._native.n_features))
        columns = _plain(weights)[..., None]
        self._native.sums_and_gradients(X, columns, sums, gradients, n_threads)
        return sums[:, 0], gradients


class ExactSums:
    """The sums of kernels of a trained classifier, from which its classes follow.

    An SVM has a value for each pair of classes, positive for the second class; its coefficients
    and intercepts have LIBSVM's layout and signs. With rule "density", values are
    log(sum exp(-gamma |x - s|²)) over the vectors of each class, plus `intercepts`.

    Rules: "votes", as LIBSVM counts them; "strict", the second of two classes only above 0;
    "ties broken", the highest of scikit-learn's one-vs-rest decision function; "density", the
    highest value. The lowest class among equals wins. `Classifier` applies them.

    `preprocessing` is ``(shift, columns, scale)``, for ``(x - shift)[columns] * scale``, or
    ``(shift, matrix)``, for ``(x - shift) @ matrix``; rows are given before it. Classes are
    returned as ``class_order[class]``.

    Examples
    --------
    >>> svm = ExactSums([[0.0], [2.0]], [1, 1], [[1.0, -1.0]], [0.0], gamma=0.5)
    >>> svm.values(np.array([[1.0], [2.0]])).round(4)
    array([[0.    ],
           [0.8647]])
    """

    def __init__(
        self,
        vectors: ArrayLike,
        n_support: ArrayLike,
        coefficients: ArrayLike | None,
        intercepts: ArrayLike,
        *,
        kernel: str = "rbf",
        gamma: float = 1.0,
        degree: int = 3,
        coef0: float = 0.0,
        rule: str = "votes",
        class_order: ArrayLike | None = None,
        preprocessing: tuple[ArrayLike, ...] | None = None,
        level: str | None = None,
    ) -> None:
        steps = None
        if preprocessing is not None:
            # The second of three parts are indices.
            has_columns = len(preprocessing) == 3
            steps = tuple(
                _indices(part) if has_columns and i == 1 else _plain(part)
                for i, part in enumerate(preprocessing)
            )
        self._native = _native.ExactSums(
            _plain(vectors),
            _indices(n_support),
            None if coefficients is None else _plain(coefficients),
            _plain(intercepts),
            kernel,
            float(gamma),
            int(degree),
            float(coef0),
            rule,
            None if class_order is None else _indices(class_order),
            steps,
            level or DEFAULT_LEVEL,
        )

    @property
    def n_features(self) -> int:
        """Number of features of a row, before preprocessing."""
        return self._native.n_features

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self._native.n_classes

    def values(self, X: Array, *, n_threads: int = 1) -> Array:
        """Return the values of each row, computed in float64."""
        shape = np.shape(X)
        out = np.empty((shape[0] if shape else 0, self._native.n_values))
        self._native.values(X, out, n_threads)
        return out

    def logits(
        self, X: Array, slopes: ArrayLike, shifts: ArrayLike, *, n_threads: int = 1
    ) -> NDArray[np.float32]:
        """Return one logit per class of an SVM: its least over its pairs, in float32.

        A pair gives ``slope * (value + shift)`` to its second class, and the negative to its first.
        Sums are those of float32, and of float64 where rounding could change which logit is the
        largest. Columns are ordered by ``class_order``; rows that are not finite have NaN.

        Examples
        --------
        >>> svm = ExactSums([[0.0], [2.0]], [1, 1], [[1.0, -1.0]], [0.0], gamma=0.5)
        >>> svm.logits(np.array([[2.0]]), [2.0], [0.0]).round(4)
        array([[-1.7293,  1.7293]], dtype=float32)
        """
        shape = np.shape(X)
        out = np.empty((shape[0] if shape else 0, self._native.n_classes), dtype=np.float32)
        self._native.logits(X, _plain(slopes), _plain(shifts), out, n_threads)
        return out

    def count_uncertain(self, X: Array) -> int:
        """Return the number of rows whose class needs float64, for measurements."""
        return self._native.count_uncertain(X)

    def error_ratios(self, X: Array) -> Array:
        """Return the largest float32 error of each row, in units of its bound, for measurements."""
        out = np.empty(len(X))
        self._native.error_ratios(X, out)
        return out


def _indices(values: ArrayLike) -> Array:
    """Return indices or counts as the core reads them."""
    return np.ascontiguousarray(values, dtype=np.int32)


def _plain(values: ArrayLike) -> Array:
    """Return an array as the core reads it: float64, C-ordered."""
    return np.ascontiguousarray(values, dtype=np.float64)
