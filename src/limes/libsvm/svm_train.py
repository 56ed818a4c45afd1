"""Train as LIBSVM's `svm-train` does: order of the classes, folds, sigmoids and what it prints."""

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.svm import SVC, NuSVC, OneClassSVM

from limes._typing import Array, Indices
from limes.libsvm.classifier import LibsvmClassifier
from limes.libsvm.one_class import LibsvmOneClass
from limes.model.coupling import class_pairs
from limes.model.svm import TrainedSvm
from limes.sources.svm import one_class_from_sklearn, svm_from_sklearn

KERNELS = ("linear", "poly", "rbf", "sigmoid")
# LIBSVM's constants of the fit of a sigmoid: Lin, Lin & Weng (2007).
N_FOLDS, MAX_STEPS = 5, 100
MIN_STEP, RIDGE, GRADIENT_TOLERANCE = 1e-10, 1e-12, 1e-5
# What the optimisation of a pair prints.
BLOCK = re.compile(r"(.*?optimization finished, #iter = \d+\n)(.*?)nBSV = \d+\n", re.DOTALL)
# The C library's generator, which svm-train shuffles with and never seeds.
RAND_DEGREE, RAND_SEPARATION, RAND_DISCARDED = 31, 3, 310


@dataclass
class SvmTrainer:
    """The options of ``svm-train``, with what it prints about the optimisation.

    Examples
    --------
    >>> trainer = SvmTrainer(kernel="linear")
    >>> model = trainer.train(sparse.csr_matrix([[2.0], [0.0]]), np.array([7.0, 3.0]))
    >>> model.labels, trainer.output.splitlines()[-1]
    (array([7, 3]), 'Total nSV = 2')
    """

    svm_type: str = "c_svc"
    kernel: str = "rbf"
    degree: int = 3
    # None means 1 / the highest index of a feature.
    gamma: float | None = None
    coef0: float = 0.0
    cost: float = 1.0
    nu: float = 0.5
    cache_mb: float = 100.0
    tolerance: float = 0.001
    shrinking: bool = True
    probability: bool = False
    # Factor of the cost, by label.
    weights: dict[int, float] = field(default_factory=dict)
    first_index: int = 1
    output: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self._random = CRandom()

    def train(self, X: Any, y: NDArray[Any]) -> LibsvmClassifier | LibsvmOneClass:
        """Return the model, its classes in LIBSVM's order; a one-class SVM takes all rows."""
        X = as_int32_csr(X)
        if self.svm_type == "one_class":
            with _captured_output() as text:
                detector = OneClassSVM(nu=self.nu, **self._common_options(X)).fit(X)
            self.output += text[0]
            return LibsvmOneClass(one_class_from_sklearn(detector), first_index=self.first_index)
        labels = order_labels(y)
        class_index = _class_index(y, labels)
        weights = np.array([self.weights.get(int(label), 1.0) for label in labels])
        svm, blocks = self._fit(X, class_index, weights * self.cost)
        sigmoids = np.empty((2, len(blocks))) if self.probability else None
        for place, (pair, block) in enumerate(zip(class_pairs(len(labels)), blocks, strict=True)):
            if sigmoids is not None:
                sigmoids[:, place] = self._cross_validate_sigmoid(X, class_index, pair, weights)
            self.output += block
        self.output += f"Total nSV = {len(svm.vectors)}\n"
        return LibsvmClassifier(
            svm,
            labels,
            svm_type=self.svm_type,
            sigmoids=sigmoids,
            first_index=self.first_index,
        )

    def cross_validate(self, X: Any, y: NDArray[Any], n_folds: int) -> Array:
        """Return the labels that models predict which were trained without the rows."""
        X = as_int32_csr(X)
        predicted = np.empty(len(y))
        for test, train in self._folds(y, n_folds):
            model = self.train(X[train], y[train])
            predict = model.predict
            if isinstance(model, LibsvmClassifier) and self.probability:
                predict = model.predict if self.svm_type != "c_svc" else model.predict_likeliest
            predicted[test] = predict(X[test])
        return predicted

    def _fit(self, X: Any, class_index: Indices, costs: Array) -> tuple[TrainedSvm, list[str]]:
        """Train an SVM whose classes are numbered in LIBSVM's order; return it and its output.

        The output is that of each pair of classes.
        """
        common = self._common_options(X)
        if self.svm_type == "nu_svc":
            svc = NuSVC(nu=self.nu, **common)
        else:
            svc = SVC(C=1.0, class_weight=dict(enumerate(costs)), **common)
        with _captured_output() as text:
            try:
                svm = svm_from_sklearn(svc.fit(X, class_index))
            except ValueError as error:
                # scikit-learn gives LIBSVM's own message as bytes.
                if isinstance(reason := error.args[0], bytes):
                    raise ValueError(f"{reason.decode()}: -n {self.nu:g}") from None
                raise
        if self.svm_type == "nu_svc":
            return svm, [match[0] for match in BLOCK.finditer(text[0])]
        return svm, _like_libsvm(text[0], svm, np.bincount(class_index), costs)

    def _common_options(self, X: Any) -> dict[str, Any]:
        """Return the options that all kinds of SVMs have."""
        highest = max(1, X.shape[1] - 1 + self.first_index)
        return {
            "kernel": self.kernel,
            "degree": self.degree,
            "gamma": 1 / highest if self.gamma is None else self.gamma,
            "coef0": self.coef0,
            "tol": self.tolerance,
            "cache_size": self.cache_mb,
            "shrinking": self.shrinking,
            "verbose": True,
        }

    def _cross_validate_sigmoid(
        self, X: Any, class_index: Indices, pair: tuple[int, int], weights: Array
    ) -> tuple[float, float]:
        """Return LIBSVM's ``probA`` and ``probB`` of a pair, by its five folds."""
        rows = np.concatenate([np.flatnonzero(class_index == one) for one in pair])
        is_second = class_index[rows] == pair[1]
        n_rows = len(rows)
        order = self._random.shuffle(np.arange(n_rows))
        decisions = np.zeros(n_rows)
        costs = weights[list(pair)] * self.cost
        for number in range(N_FOLDS):
            start, end = number * n_rows // N_FOLDS, (number + 1) * n_rows // N_FOLDS
            test, train = order[start:end], np.concatenate([order[:start], order[end:]])
            found = np.unique(is_second[train])
            if len(found) < 2:
                decisions[test] = 0.0 if not len(found) else -1.0 if found[0] else 1.0
                continue
            svm, blocks = self._fit(X[rows[train]], is_second[train].astype(np.intp), costs)
            self.output += f"{blocks[0]}Total nSV = {len(svm.vectors)}\n"
            # LIBSVM's are positive for the first class.
            decisions[test] = -svm.pair_decisions(X[rows[test]])[:, 0]
        return fit_sigmoid_like_libsvm(decisions, ~is_second)

    def _folds(self, y: NDArray[Any], n_folds: int) -> Iterator[tuple[Indices, Indices]]:
        """Yield the rows of each fold and the others, as LIBSVM chooses them."""
        n_folds = min(n_folds, len(y))
        if n_folds == len(y) or self.svm_type == "one_class":
            order = self._random.shuffle(np.arange(len(y)))
            starts = [number * len(y) // n_folds for number in range(n_folds + 1)]
        else:
            class_index = _class_index(y, order_labels(y))
            parts: list[list[Indices]] = [[] for _ in range(n_folds)]
            for one in range(class_index.max() + 1):
                rows = self._random.shuffle(np.flatnonzero(class_index == one))
                for number, part in enumerate(parts):
                    part.append(
                        rows[number * len(rows) // n_folds : (number + 1) * len(rows) // n_folds]
                    )
            folds = [np.concatenate(part) for part in parts]
            order = np.concatenate(folds)
            starts = [0, *np.cumsum([len(fold) for fold in folds]).tolist()]
        for start, end in pairwise(starts):
            yield order[start:end], np.concatenate([order[:start], order[end:]])


class CRandom:
    """The numbers of ``rand()`` in the GNU C library without a seed.

    Examples
    --------
    >>> random = CRandom()
    >>> [random.draw() for _ in range(3)]
    [1804289383, 846930886, 1681692777]
    """

    def __init__(self) -> None:
        state = [1]
        for _ in range(RAND_DEGREE - 1):
            state.append(16807 * state[-1] % (2**31 - 1))
        # A ring: entry i is added to the one three places behind it.
        self._state = state
        self._place = 0
        for _ in range(RAND_DISCARDED):
            self.draw()

    def draw(self) -> int:
        """Return the next number."""
        state, place = self._state, self._place
        front = (place + RAND_SEPARATION) % RAND_DEGREE
        state[front] = (state[front] + state[place]) % 2**32
        self._place = (place + 1) % RAND_DEGREE
        return state[front] >> 1

    def shuffle(self, items: Indices) -> Indices:
        """Return items in another order, as LIBSVM shuffles."""
        listed = items.tolist()
        for i in range(len(listed)):
            j = i + self.draw() % (len(listed) - i)
            listed[i], listed[j] = listed[j], listed[i]
        return np.array(listed, dtype=np.intp)


def order_labels(y: NDArray[Any]) -> NDArray[np.int64]:
    """Return the labels in the order of LIBSVM: by first appearance, but 1 before -1.

    Examples
    --------
    >>> order_labels(np.array([3, -1, 3, 2])), order_labels(np.array([-1, 1]))
    (array([ 3, -1,  2]), array([ 1, -1]))
    """
    classes, first = np.unique(y.astype(np.int64), return_index=True)
    labels = classes[np.argsort(first)]
    return labels[::-1].copy() if labels.tolist() == [-1, 1] else labels


def _class_index(y: NDArray[Any], labels: NDArray[np.int64]) -> Indices:
    """Return the place of each label."""
    order = np.argsort(labels)
    return order[np.searchsorted(labels[order], y.astype(np.int64))]


def as_int32_csr(X: Any) -> Any:
    """Return rows as scikit-learn's LIBSVM takes them, whose sums have LIBSVM's order."""
    rows = sparse.csr_matrix(X)
    rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return rows


@contextmanager
def _captured_output() -> Iterator[list[str]]:
    """Capture what the compiled LIBSVM prints, and drop what scikit-learn adds to it."""
    text = [""]
    sys.stdout.flush()
    with tempfile.TemporaryFile() as file, redirect_stdout(StringIO()):
        original = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            yield text
        finally:
            os.dup2(original, 1)
            os.close(original)
            file.seek(0)
            # In LIBSVM's own words.
            text[0] = file.read().decode("ascii", "replace").replace("Warning: ", "WARNING: ")


def _like_libsvm(text: str, svm: TrainedSvm, sizes: Indices, costs: Array) -> list[str]:
    """Return the output of each pair with the numbers that scikit-learn's LIBSVM leaves out.

    It does not print nu, and counts bounded vectors otherwise where costs differ.
    """
    ends = np.cumsum(svm.n_support)
    starts = ends - svm.n_support
    blocks = []
    for (i, j), match in zip(class_pairs(svm.n_classes), BLOCK.finditer(text), strict=True):
        alphas = [
            np.abs(svm.dual_coef[j - 1, starts[i] : ends[i]]),
            np.abs(svm.dual_coef[i, starts[j] : ends[j]]),
        ]
        nu = f"nu = {sum(map(np.sum, alphas)) / (costs[i] * (sizes[i] + sizes[j])):f}\n"
        n_bounded = int((alphas[0] >= costs[i]).sum() + (alphas[1] >= costs[j]).sum())
        start = match[1] + (nu if costs[i] == costs[j] else "")
        blocks.append(f"{start}{match[2]}nBSV = {n_bounded}\n")
    return blocks


def fit_sigmoid_like_libsvm(decisions: Array, is_first: NDArray[np.bool_]) -> tuple[float, float]:
    """Return A and B of P(first) = 1 / (1 + exp(A f + B)), by the steps of LIBSVM's own fit."""
    n_first = float(is_first.sum())
    n_other = len(is_first) - n_first
    targets = np.where(is_first, (n_first + 1) / (n_first + 2), 1 / (n_other + 2))
    a, b = 0.0, float(np.log((n_other + 1) / (n_first + 1)))

    def loss(a: float, b: float) -> float:
        exponents = a * decisions + b
        return float(np.sum(np.logaddexp(0.0, exponents) - (1 - targets) * exponents))

    value = loss(a, b)
    for _ in range(MAX_STEPS):
        p = 1 / (1 + np.exp(np.clip(a * decisions + b, -700, 700)))
        curvature = p * (1 - p)
        h11 = RIDGE + np.sum(decisions**2 * curvature)
        h22, h21 = RIDGE + np.sum(curvature), np.sum(decisions * curvature)
        slope_a, slope_b = np.sum(decisions * (targets - p)), np.sum(targets - p)
        if abs(slope_a) < GRADIENT_TOLERANCE and abs(slope_b) < GRADIENT_TOLERANCE:
            break
        determinant = h11 * h22 - h21 * h21
        step_a = -(h22 * slope_a - h21 * slope_b) / determinant
        step_b = -(-h21 * slope_a + h11 * slope_b) / determinant
        descent = slope_a * step_a + slope_b * step_b
        size = 1.0
        while size >= MIN_STEP:
            new = loss(a + size * step_a, b + size * step_b)
            if new < value + 0.0001 * size * descent:
                a, b, value = a + size * step_a, b + size * step_b, new
                break
            size /= 2
        else:
            break
    return float(a), float(b)
