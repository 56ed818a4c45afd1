"""Fitted classifiers of every kind, which files and exports must reproduce."""

from copy import copy
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from sklearn.datasets import make_blobs, make_moons
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from limes import BorderMap, BordersClassifier, accelerate
from limes.model import Model
from limes.model.packed import pack
from limes.model.schemes import PairwiseScheme
from tests.conftest import quick_training

# Reads rows, writes the class index and the probabilities of each.
MAIN = """
#include <stdio.h>
#define LIMES_MODEL_PROBABILITIES
#include "model.h"
int main(void) {
    limes_model_real x[LIMES_MODEL_FEATURES], p[LIMES_MODEL_CLASSES];
    while (fread(x, sizeof x, 1, stdin) == 1) {
        int predicted = limes_model_predict(x);
        if (predicted != limes_model_probabilities(x, p)) return 1;
        fwrite(&predicted, sizeof predicted, 1, stdout);
        fwrite(p, sizeof p, 1, stdout);
    }
    return 0;
}
"""


def moons():
    return make_moons(300, noise=0.2, random_state=0)


def blobs(n_features=3, n_classes=4, labels=None):
    X, y = make_blobs(
        500,
        n_features=n_features,
        centers=n_classes,
        cluster_std=2.0,
        center_box=(-4, 4),
        random_state=3,
    )
    return X, y if labels is None else np.asarray(labels)[y]


def trees(n_features=3):
    return blobs(n_features, labels=["ash", "birch", "cèdre", "doum"])


def far(rows):
    """Rows in other units, one of them far from zero."""
    X, y = rows
    return X * np.linspace(1, 50, X.shape[1]) + np.linspace(0, 2000, X.shape[1]), y


def uneven():
    """One class so rare that its borders have one side only."""
    X, y = blobs()
    keep = (y != 3) | (np.cumsum(y == 3) <= 2)
    return X[keep], y[keep]


def binary(**options):
    options = {"scheme": "pairwise", "n_borders": 100, "blend": 1, **options}
    return accelerate(SVC(gamma=2).fit(*moons()), moons()[0], random_state=0, **options)


def binary_blended():
    return binary(blend=4)


def binary_double():
    return binary(dtype="float64")


def binary_by_default():
    options = {"scheme": "shared", "fallback": False, "random_state": 0}
    return accelerate(SVC(gamma=2).fit(*moons()), moons()[0], **options)


def one_point():
    X, y = moons()
    return accelerate(LogisticRegression().fit(X, y), X, n_borders=1, random_state=0)


def votes():
    X, y = trees()
    return accelerate(
        SVC(gamma=0.1).fit(X, y), X, scheme="pairwise", n_borders=100, blend=1, random_state=0
    )


def votes_blended():
    X, y = blobs(labels=[-7, 0, 3, 2**40])
    return accelerate(
        SVC(gamma=0.1).fit(X, y), X, scheme="pairwise", n_borders=30, blend=3, random_state=0
    )


def votes_scaled():
    X, y = far(blobs(5, 3))
    source = make_pipeline(StandardScaler(), SVC(gamma=0.2)).fit(X, y)
    return accelerate(source, X, scheme="pairwise", n_borders=40, random_state=0)


def votes_projected():
    X, y = far(blobs(12, 4, labels=[1.0, 2.0, 5.0, 9.0]))
    source = make_pipeline(StandardScaler(), PCA(2), SVC(gamma=0.2)).fit(X, y)
    return accelerate(source, X, scheme="pairwise", n_borders=40, dtype="float64", random_state=0)


def votes_uneven():
    X, y = uneven()
    return accelerate(SVC(gamma=0.1).fit(X, y), X, scheme="pairwise", blend=2, random_state=0)


def coupled():
    X, y = trees()
    return accelerate(GaussianNB().fit(X, y), X, scheme="pairwise", n_borders=30, random_state=0)


def coupled_blended():
    X, y = blobs(6, 7)
    return accelerate(
        GaussianNB().fit(X, y), X, scheme="pairwise", n_borders=20, blend=2, random_state=0
    )


def one_vs_rest():
    X, y = trees()
    return accelerate(SVC(gamma=0.1).fit(X, y), X, scheme="one-vs-rest", random_state=0)


def one_vs_rest_blended():
    X, y = blobs(2, 5, labels=[3, 1, 4, 15, 9])
    return accelerate(
        GaussianNB().fit(X, y), X, scheme="one-vs-rest", n_borders=50, blend=3, random_state=0
    )


def shared():
    X, y = trees()
    return accelerate(SVC(gamma=0.1).fit(X, y), X, scheme="shared", n_borders=20, random_state=0)


def shared_nearest():
    X, y = far(blobs(4, 6))
    source = make_pipeline(StandardScaler(), SVC(gamma=0.2)).fit(X, y)
    return accelerate(source, X, scheme="shared", n_borders=30, blend=1, random_state=0)


def shortlist(**options):
    X, y = trees()
    options = {"n_borders": 10, "random_state": 0, **options}
    return selecting_three(accelerate(SVC(gamma=0.1).fit(X, y), X, scheme="shortlist", **options))


def shortlist_nearest():
    return shortlist(blend=1, refine=False)


def shortlist_coupled():
    X, y = far(blobs(6, 7))
    source = make_pipeline(StandardScaler(), GaussianNB()).fit(X, y)
    return selecting_three(accelerate(source, X, scheme="shortlist", n_borders=8, random_state=0))


def shortlist_projected():
    X, y = far(blobs(12, 5, labels=[1.0, 2.0, 5.0, 9.0, 11.0]))
    source = make_pipeline(StandardScaler(), PCA(2), SVC(gamma=0.2)).fit(X, y)
    return selecting_three(accelerate(source, X, scheme="shortlist", n_borders=12, random_state=0))


def selecting_three(fast):
    """A shortlist that selects up to three classes far behind, so that many pairs are evaluated."""
    scheme = replace(fast.scheme_, max_classes=3, logit_margin=5.0)
    fast.model_ = replace(fast.model_, scheme=scheme)
    return fast


def tree():
    X, y = far(blobs(4, 7))
    source = make_pipeline(StandardScaler(), SVC(gamma=0.2)).fit(X, y)
    return accelerate(source, X, scheme="tree", n_borders=20, random_state=0)


def tree_of_points():
    X, y = trees()
    source = SVC(gamma=0.1).fit(X, y)
    return accelerate(source, X, scheme="tree", n_borders=20, refine=False, random_state=0)


def tree_projected():
    X, y = far(blobs(12, 5))
    source = make_pipeline(StandardScaler(), PCA(2), SVC(gamma=0.2)).fit(X, y)
    return accelerate(source, X, scheme="tree", n_borders=30, dtype="float64", random_state=0)


def truth_labels():
    X, y = moons()
    return accelerate(SVC(gamma=2).fit(X, y == 1), X, n_borders=20, random_state=0)


def one_sided_first():
    """Its first map has one point and blends nothing, the others blend three."""
    rng = np.random.default_rng(0)
    maps = [BorderMap.constant(np.zeros(2), -0.5)]
    for _ in range(2):
        points, normals = rng.normal(size=(2, 9, 2))
        maps.append(BorderMap.from_borders(points=points, normals=normals, blend=3))
    return with_maps(*maps, n_classes=3)


def on_borders():
    """Whole numbers, whose sums are exact, so that many rows lie on a border."""
    rng = np.random.default_rng(0)
    maps = [
        BorderMap(
            rng.integers(-3, 4, size=(9, 2)), rng.integers(-2, 3, (9, 1, 2)), np.zeros((9, 1))
        )
        for _ in range(3)
    ]
    return with_maps(*maps, n_classes=3), rng.integers(-4, 5, size=(500, 2)).astype(np.float32)


def with_maps(*maps, n_classes):
    """Return a classifier of the votes of given maps."""
    stored = Model(PairwiseScheme(maps, n_classes), np.arange(n_classes), maps[0].n_features)
    return BordersClassifier.from_model(stored)


CASES = (
    binary,
    binary_blended,
    binary_double,
    binary_by_default,
    one_point,
    votes,
    votes_blended,
    votes_scaled,
    votes_projected,
    votes_uneven,
    one_sided_first,
    coupled,
    coupled_blended,
    one_vs_rest,
    one_vs_rest_blended,
    shared,
    shared_nearest,
    shortlist,
    shortlist_nearest,
    shortlist_coupled,
    shortlist_projected,
    tree,
    tree_of_points,
    tree_projected,
    truth_labels,
)


@cache
def fitted(case):
    """Fit once for all tests."""
    with quick_training():
        return case()


@dataclass(frozen=True)
class Expected:
    """Rows, the predictions of Python, and which of them rounding may change."""

    fast: BordersClassifier
    rows: np.ndarray
    labels: np.ndarray
    probabilities: np.ndarray
    is_open: np.ndarray
    is_tie: np.ndarray
    rounding: np.ndarray

    def assert_probabilities(self, probabilities, tolerance):
        """Check rows without a tie: all within their own rounding, all but a few closer."""
        is_unambiguous = ~self.is_tie
        assert is_unambiguous.mean() > 0.8
        error = np.abs(probabilities - self.probabilities).max(axis=1)[is_unambiguous]
        assert np.all(error <= np.maximum(tolerance, self.rounding[is_unambiguous]))
        assert np.mean(error > tolerance) <= 0.001


@cache
def expected(case, dtype):
    """Predict in Python once for all exports, in the type of the export."""
    fast = in_dtype(fitted(case), dtype)
    rows = rows_like(fast, 10_000)
    is_open, is_tie, bound = is_uncertain(fast, rows, dtype)
    # With two classes the slope of a probability is at most half that of the value.
    rounding = 0.5 * bound.max(axis=1) if fast.scheme_.n_classes == 2 else np.zeros(len(rows))
    labels, probabilities = fast.predict(rows), fast.predict_proba(rows)
    return Expected(fast, rows, labels, probabilities, is_open, is_tie, rounding)


def rows_like(fast, n_rows, *, seed=0):
    """Rows around the border points, in float32, which every program takes."""
    rng = np.random.default_rng(seed)
    points = np.concatenate([_raw_points(border_map) for border_map in fast.scheme_.maps])
    spread = points.std(axis=0) + 1e-3 * np.abs(points).max()
    centers = points[rng.integers(len(points), size=n_rows)]
    return (centers + rng.normal(size=centers.shape) * spread).astype(np.float32)


def _raw_points(border_map):
    preprocessing, points = border_map.preprocessing, border_map.points
    return points if preprocessing is None else preprocessing.undo(points)


def in_dtype(fast, dtype):
    """The same classifier, computing in another type."""
    again = copy(fast)
    scheme = replace(fast.scheme_, double=dtype == "float64")
    again.model_ = replace(fast.model_, scheme=scheme)
    return again


def is_uncertain(fast, X, dtype):
    """Rows whose label, and rows whose nearest point, may depend on how numbers are rounded.

    Returned with how far the values may be off. The bounds are those of sums of products: one unit
    in the last place for each term.
    """
    scheme, eps = fast.scheme_, np.finfo(dtype).eps
    packed = pack(scheme, np.float64)
    t = X.astype(float) - packed.center
    size = np.abs(t) + 2 * eps * np.abs(packed.center)
    z, z_size = t, size
    if packed.projection is not None:
        z, z_size = t @ packed.projection, size @ np.abs(packed.projection)
    unit = (2 * packed.n_features + 8) * eps
    is_tie, bounds = np.zeros(len(X), bool), []
    for part in packed.maps:
        scores = part.biases - z @ part.points.T
        error = unit * (np.abs(part.biases) + z_size @ np.abs(part.points).T)
        order = np.argsort(scores, axis=1, kind="stable")[:, : part.n_blended + 1]
        gaps = np.take_along_axis(scores, order, 1)
        rounding = 2 * np.take_along_axis(error, order, 1).max(axis=1)
        if part.n_points > 1 and part.n_blended == 1:
            is_tie |= gaps[:, 1] - gaps[:, 0] <= rounding
        near = order[:, : part.n_blended]
        slopes, offsets = part.slopes[near], part.offsets[near]
        each = np.einsum("nk,nick->nic", t, slopes) + offsets
        each_size = np.einsum("nk,nick->nic", size, np.abs(slopes)) + np.abs(offsets)
        bound = unit * each_size.max(axis=1)
        if part.n_blended > 1:
            margin = (gaps[:, -1:] - gaps[:, :-1]).sum(axis=1)
            share = np.minimum(1.0, part.n_blended * rounding / np.maximum(margin, 1e-300))
            bound += share[:, None] * np.ptp(each, axis=1) * 2
        bounds.append(bound)
    values = in_dtype(fast, "float64").scheme_.values(X.astype(float))
    bound = np.hstack(bounds)
    if scheme.name == "shortlist":
        is_tie |= _is_selection_close(scheme, values, bound)
        bound = bound.max(axis=1, keepdims=True)
    return is_tie | _is_close(scheme, values, bound), is_tie, bound


def _is_selection_close(scheme, values, bound):
    """Rows of a shortlist that may select other classes, which changes all their probabilities."""
    scores, rounding = values[:, : scheme.n_classes], 2 * bound[:, : scheme.n_classes].max(axis=1)
    behind = np.sort(scores.max(axis=1, keepdims=True) - scores, axis=1)
    is_close = (np.abs(behind - scheme.logit_margin) <= rounding[:, None]).any(axis=1)
    max_classes = scheme.max_classes
    is_last = behind[:, max_classes - 1] <= scheme.logit_margin + rounding
    return is_close | (is_last & (behind[:, max_classes] - behind[:, max_classes - 1] <= rounding))


def _is_close(scheme, values, bound):
    """Rows where values that near to each other, or to zero, decide."""
    if scheme.name == "pairwise" and (scheme.n_classes == 2 or scheme.by_vote):
        return (np.abs(values) <= bound).any(axis=1)
    if scheme.name == "tree":
        return (np.abs(values) <= bound).any(axis=1)
    if scheme.name == "shortlist" and scheme.by_vote:
        joined = np.full((len(values), scheme.max_pairs), np.inf)
        for rows, _, pairs in scheme._pair_decisions(values):
            joined[rows, : pairs.shape[1]] = pairs
        return (np.abs(joined) <= 2 * bound).any(axis=1)
    if scheme.name in ("pairwise", "shortlist"):
        values = scheme.raw_probabilities(values)
        bound = 4 * scheme.n_classes * bound + 100 * np.finfo(np.float32).eps
    best = np.sort(values, axis=1)[:, -2:]
    return best[:, 1] - best[:, 0] <= 2 * bound.max(axis=1)
