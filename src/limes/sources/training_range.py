"""Whether rows lie where a source was trained, as far as the source shows it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from limes._typing import Array
from limes.model.affine import AffineMap, to_dense
from limes.model.svm import TrainedSvm
from limes.sources.base import training_rows
from limes.sources.exact import exact_scheme_of
from limes.sources.pipelines import as_affine, unwrap

# Rows that are compared, and training rows.
MAX_ROWS, MAX_TRAINING_ROWS = 500, 5000
# Distance from the mean of the training rows, in their standard deviations, root mean square over
# features and median over rows: 0.7 to 1.1 for training and test rows of 17 datasets, 5 to 1000 for
# rows that were not standardised, 0.1 to 0.24 for rows divided by ten.
MAX_DISTANCE, MIN_DISTANCE = 5.0, 0.2
# Deviation of the widest feature, in that of the training rows, from which rows are not small.
MAX_SMALL_RATIO = 0.3
# Kernel below which a support vector does not matter, and the share of rows with no larger one from
# which rows are beyond the support vectors: a class may be predicted where there are none.
MIN_KERNEL, BEYOND_SHARE = 1e-3, 0.99
# Support vectors lie near borders: their spread shows that of the training rows with so many
# features and vectors only.
MIN_FEATURES, MIN_VECTORS = 3, 10
# Columns are in another order where features differ by this much from their own training rows, on
# average, and another order makes that so many times smaller. Test rows differ by 0.02 to 0.2.
MIN_DIFFERENCE, MIN_IMPROVEMENT = 0.5, 5.0
OTHER_ORDER = "have their columns in another order than the source was trained with"
# Decision trees whose thresholds are looked at, and support vectors that are compared with rows.
MAX_TREES, MAX_VECTORS = 100, 50


@dataclass(frozen=True, eq=False)
class TrainingStatistics:
    """Mean and standard deviation of each feature of the rows that a source was trained on."""

    mean: Array
    deviation: Array
    # Whether all training rows count, not only those near a border.
    is_complete: bool = True

    def distance(self, rows: Array) -> float:
        """Return how far rows typically are from the mean, in standard deviations.

        Of all training rows the root mean square over features, of support vectors the median,
        since these are narrow across a border.
        """
        is_used = self.deviation > 0
        if not is_used.any():
            return 1.0
        scaled = np.abs(rows - self.mean)[:, is_used] / self.deviation[is_used]
        if not self.is_complete:
            return float(np.median(scaled))
        return float(np.median(np.sqrt(np.mean(np.square(scaled), axis=1))))

    def largest_ratio(self, rows: Array) -> float:
        """Return the largest ratio of a feature's deviation to that of the training rows."""
        is_used = self.deviation > 0
        return float(np.max(rows.std(axis=0)[is_used] / self.deviation[is_used], initial=0.0))

    def has_other_order(self, rows: Array) -> bool:
        """Return whether the columns of rows fit the statistics in another order, and only there.

        A column fits by the difference of its mean, in standard deviations, and the logarithm of
        the ratio of both deviations.
        """
        used = np.flatnonzero(self.deviation > 0)
        mean, deviation = rows[:, used].mean(axis=0), rows[:, used].std(axis=0)
        smallest = 1e-6 * self.deviation[used].min()
        shift = np.abs(mean[:, None] - self.mean[used]) / self.deviation[used]
        ratio = np.maximum(deviation, smallest)[:, None] / self.deviation[used]
        # Bounded, so that one column does not decide.
        cost = np.minimum(shift + np.abs(np.log(ratio)), 10.0)
        own, best = np.trace(cost), cost[linear_sum_assignment(cost)].sum()
        is_different = own >= MIN_DIFFERENCE * len(used)
        return bool(len(used) > 1 and is_different and own >= MIN_IMPROVEMENT * best)


def outside_reason(model: Any, X: Any) -> str:
    """Return in words how rows lie outside of those that a model was trained on; empty if inside.

    By the scaler of a pipeline, by the training rows or support vectors that a classifier keeps, or
    by its sums of kernels. Of other sources nothing is known.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> outside_reason(SVC().fit(X, y), X)
    ''
    >>> outside_reason(SVC().fit(X, y), 1000 * X)[:46]
    'lie beyond the support vectors of the source: '
    """
    index = np.arange(0, X.shape[0], max(1, -(-X.shape[0] // MAX_ROWS)))
    raw = np.asarray(to_dense(X[index]), dtype=np.float64)
    if reason := _scaler_reason(model, raw):
        return reason
    exact = exact_scheme_of(model)
    if exact is not None and isinstance(exact.sums, TrainedSvm) and len(exact.sums.vectors):
        rows = raw if exact.preprocessing is None else exact.preprocessing.apply(raw)
        if reason := _beyond_reason(exact.sums, rows):
            return reason
    inner, preprocessing = unwrap(model)
    if preprocessing is None and _has_reordered_vectors(inner, X):
        return OTHER_ORDER
    statistics = _statistics(inner)
    rows = raw if preprocessing is None else preprocessing.apply(raw)
    return "" if statistics is None else _reason(statistics, rows)


def _statistics(model: Any) -> TrainingStatistics | None:
    """Return the statistics of the training rows or thresholds that a classifier keeps."""
    thresholds = _thresholds(model)
    if thresholds is not None:
        return thresholds
    stored = training_rows(model)
    if stored is None or not len(stored):
        return None
    sample = stored[:: max(1, -(-len(stored) // MAX_TRAINING_ROWS))]
    # Support vectors, which have coefficients, are some of the rows.
    is_complete = not hasattr(model, "dual_coef_") and not hasattr(model, "svm")
    has_enough = sample.shape[1] >= MIN_FEATURES and len(sample) >= MIN_VECTORS
    if not (is_complete or has_enough):
        return None
    return TrainingStatistics(sample.mean(axis=0), sample.std(axis=0), is_complete)


def _thresholds(model: Any) -> TrainingStatistics | None:
    """Return the statistics of the thresholds of decision trees; None for other classifiers."""
    found = [model] if hasattr(model, "tree_") else np.ravel(getattr(model, "estimators_", []))
    trees = [each.tree_ for each in found if hasattr(each, "tree_")][:MAX_TREES]
    if not trees or len(trees) < min(len(found), MAX_TREES):
        return None
    feature, threshold = (
        np.concatenate([getattr(tree, name) for tree in trees]) for name in ("feature", "threshold")
    )
    is_split = feature >= 0
    feature, threshold = feature[is_split], threshold[is_split]
    counts = np.bincount(feature, minlength=trees[0].n_features)
    is_used = counts >= MIN_VECTORS
    if np.count_nonzero(is_used) < MIN_FEATURES:
        return None
    n_each = np.maximum(counts, 1)
    mean = np.bincount(feature, threshold, len(counts)) / n_each
    squares = np.bincount(feature, np.square(threshold - mean[feature]), len(counts)) / n_each
    return TrainingStatistics(mean, np.where(is_used, np.sqrt(squares), 0.0), is_complete=False)


def _has_reordered_vectors(model: Any, X: Any) -> bool:
    """Return whether rows are the training rows of an SVM with their columns in another order."""
    support, vectors = getattr(model, "support_", None), training_rows(model)
    if support is None or vectors is None or not len(support) or support.max() >= X.shape[0]:
        return False
    rows = np.asarray(to_dense(X[support[:MAX_VECTORS]]), dtype=np.float64)
    expected = vectors[:MAX_VECTORS]
    if len(expected) < MIN_VECTORS or rows.shape != expected.shape or (rows == expected).all():
        return False
    order = [np.lexsort(columns) for columns in (rows, expected)]
    return bool(np.array_equal(rows[:, order[0]], expected[:, order[1]]))


def _reason(statistics: TrainingStatistics, rows: Array) -> str:
    """Return how rows differ from the statistics, in words."""
    distance = statistics.distance(rows)
    # Rows of rare categories and of long tails are near the mean too, but as wide as the others.
    is_small = distance < MIN_DISTANCE and statistics.largest_ratio(rows) < MAX_SMALL_RATIO
    if is_small or distance > MAX_DISTANCE:
        return (
            f"are not like those that the source was trained on: their features are "
            f"{distance:.2g} standard deviations from the mean of these, where 1 is usual"
        )
    return OTHER_ORDER if statistics.has_other_order(rows) else ""


def _beyond_reason(svm: TrainedSvm, rows: Array) -> str:
    """Return that rows are out of reach of all vectors of a Gaussian kernel, in words."""
    if svm.kernel.name != "rbf":
        return ""
    nearest = _nearest_squares(rows, svm.vectors)
    share = float(np.mean(np.exp(-svm.kernel.gamma * nearest) < MIN_KERNEL))
    if share < BEYOND_SHARE:
        return ""
    return (
        f"lie beyond the support vectors of the source: the kernel of the nearest is below "
        f"{MIN_KERNEL:g} for {share:.0%} of the rows"
    )


def _nearest_squares(rows: Array, vectors: Array) -> Array:
    """Return the squared distance of each row from the nearest vector, block by block."""
    center = vectors.mean(axis=0)
    rows, nearest = rows - center, np.full(len(rows), np.inf)
    for start in range(0, len(vectors), MAX_TRAINING_ROWS):
        block = vectors[start : start + MAX_TRAINING_ROWS] - center
        squares = np.einsum("ij,ij->i", block, block) - 2 * rows @ block.T
        np.minimum(nearest, squares.min(axis=1), out=nearest)
    return np.maximum(nearest + np.einsum("ij,ij->i", rows, rows), 0.0)


def _scaler_reason(model: Any, raw: Array) -> str:
    """Return how rows differ from those that a scaler at the start of a pipeline has seen."""
    before: AffineMap | None = None
    for step in _steps(model):
        rows = raw if before is None else before.apply(raw)
        if isinstance(step, StandardScaler) and step.mean_ is not None and step.var_ is not None:
            return _reason(TrainingStatistics(step.mean_, np.sqrt(step.var_)), rows)
        if isinstance(step, MinMaxScaler):
            # The deviation of a feature that is uniform between its limits.
            middle = 0.5 * (step.data_min_ + step.data_max_)
            return _reason(TrainingStatistics(middle, step.data_range_ / np.sqrt(12)), rows)
        affine = as_affine(step)
        if affine is None:
            break
        before = affine if before is None else before.then(affine)
    return ""


def _steps(model: Any) -> Iterator[Any]:
    """Yield the steps of a pipeline, also of pipelines and searches inside it."""
    if isinstance(model, FrozenEstimator):
        yield from _steps(model.estimator)
    elif isinstance(model, BaseSearchCV) and hasattr(model, "best_estimator_"):
        yield from _steps(model.best_estimator_)
    elif isinstance(model, Pipeline):
        for _, step in model.steps:
            if step not in (None, "passthrough"):
                yield from _steps(step)
    else:
        yield model
