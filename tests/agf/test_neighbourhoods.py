"""Neighbours from a tree give the weights of all rows up to rounding, in bounded memory."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

from limes.agf import AGFClassifier, AGFDensity, KernelDensityClassifier, neighbours

LINE = np.linspace(0, 1, 3000)[:, None]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def without_a_tree(model, X, y, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(neighbours, "MIN_TREE_ROWS", 10**9)
        return model.fit(X, y)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (AGFClassifier, {"total_weight": 1.5}),
        (AGFClassifier, {"total_weight": 0.5}),
        (KernelDensityClassifier, {"bandwidth": 0.001}),
    ],
)
@pytest.mark.parametrize("n_features", [1, 2])
def test_a_tree_gives_the_same_as_all_rows(rng, monkeypatch, kind, parameters, n_features):
    X, y = rng.random((4000, n_features)), rng.integers(3, size=4000)
    rows = np.vstack([rng.uniform(-0.2, 1.2, size=(200, n_features)), [[9.0] * n_features]])
    fast = kind(**parameters).fit(X, y)
    slow = without_a_tree(kind(**parameters), X, y, monkeypatch)
    assert fast._scope.n_nearest is not None
    assert slow._scope.n_nearest is None
    assert_allclose(fast.predict_proba(rows), slow.predict_proba(rows), atol=1e-11)
    scale = np.abs(slow.proba_gradient(rows)).max()
    assert_allclose(fast.proba_gradient(rows), slow.proba_gradient(rows), atol=1e-9 * scale)


def test_all_rows_are_used_where_the_nearest_are_too_few():
    model = AGFDensity(total_weight=3).fit(LINE)
    assert model._scope.n_nearest < 200
    far = np.array([[1000.0]])
    # All 3000 rows weigh 1/1000 each; the bandwidth would be far off with the nearest only.
    bandwidth = 1000 / np.sqrt(2 * np.log(1000))
    expected = np.log(3 / 3000) - np.log(np.sqrt(2 * np.pi) * bandwidth)
    assert_allclose(model.score_samples(far), expected, rtol=1e-3)


@pytest.mark.parametrize("n_neighbors", [None, 20])
@pytest.mark.parametrize("n_features", [2, 20])
def test_memory_stays_within_a_few_blocks(rng, n_neighbors, n_features):
    X, y = rng.normal(size=(4000, n_features)), rng.integers(2, size=4000)
    model = AGFClassifier(total_weight=2, n_neighbors=n_neighbors).fit(X, y)
    model.predict_proba(X[:10])
    tracemalloc.start()
    try:
        model.predict_proba(X[::2])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 0.3 * 8 * 4000 * 2000
