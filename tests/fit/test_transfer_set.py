"""The transfer set: probabilities of the source, rows added later, wide rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from limes.fit.data import EncodedRows
from limes.fit.transfer_set import (
    ambiguity_of,
    build_transfer_set,
    extend_transfer_set,
    find_sharpening,
    softmax,
)
from limes.model.affine import AffineMap
from limes.sources.base import SourceContext, as_source
from tests.conftest import quick_training
from tests.fit.cases import make_transfer_set, train_map


def test_wide_rows_are_searched_in_few_components():
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(3, 120))

    def decision(X):
        return X @ mixing[0] / np.square(mixing[0]).sum()

    rows = rng.normal(size=(600, 3)) @ mixing
    source = as_source(decision, SourceContext(rows, None, False, rng))
    transfer_set = build_transfer_set(source, rows, rng=rng)
    assert transfer_set.components.shape == (120, 32)
    map_ = train_map(transfer_set, n_points=4, blend=2, rng=rng)
    assert map_.slopes.shape == (4, 1, 120)
    assert map_.points.shape == (4, 32)


def test_the_wider_the_rows_the_fewer_are_made(monkeypatch):
    monkeypatch.setattr("limes.fit.transfer_set.MAX_VALUES", 30_000)
    _, rows, transfer_set = make_transfer_set(lambda X: X[:, 0] - 0.2, 60, n_rows=200)
    assert 0 < len(transfer_set.rows) - len(rows) <= 500


@pytest.mark.parametrize("n_features", [2, 60])
def test_rows_added_later_are_labelled_like_the_first(n_features):
    source, rows, transfer_set = make_transfer_set(lambda X: X[:, 0] - 0.2, n_features, n_rows=500)
    added = np.random.default_rng(1).uniform(-1, 1, (100, n_features))
    both = extend_transfer_set(transfer_set, source, added, rng=np.random.default_rng(2))
    assert both.n_real == 600
    assert_allclose(both.rows[:600], np.concatenate([rows, added]), atol=1e-6)
    assert_allclose(len(both.rows) / both.n_real, len(transfer_set.rows) / 500, rtol=0.01)
    assert_allclose(both.probabilities[:, 0], expit(2 * (both.rows[:, 0] - 0.2)), atol=1e-6)
    assert_allclose(
        both.ambiguity, 1 - np.abs(2 * both.probabilities[:, 0].astype(float) - 1), atol=1e-6
    )
    if n_features == 60:
        assert_allclose(both.search_rows, both.rows @ transfer_set.components, atol=1e-4)


def test_categories_stay_categories_when_rows_are_added():
    rng = np.random.default_rng(0)
    rows = rng.integers(3, size=(400, 2)) / 3 + 0.1
    source = as_source(lambda X: X.sum(axis=1) - 0.9, SourceContext(rows, None, False, rng))
    transfer_set = build_transfer_set(source, rows[:300], rng=rng)
    both = extend_transfer_set(transfer_set, source, rows[300:], rng=rng)
    assert len(np.unique(both.rows)) == 3


def test_ambiguity_is_one_on_the_border():
    assert_allclose(ambiguity_of(np.array([[0.0, 0.0], [30.0, 0.0]])), [1.0, 0.0], atol=1e-6)


def test_flat_probabilities_of_many_classes_become_distinct():
    logits = np.random.default_rng(0).normal(size=(500, 50)).astype(np.float32)
    sharpening = find_sharpening(logits)
    largest = np.sort(softmax(np.float32(sharpening) * logits), axis=1)
    assert sharpening > 2
    assert_allclose(largest[:, :-2].sum(axis=1).mean(), 0.15, atol=0.01)


def test_distinct_probabilities_stay_as_they_are():
    assert find_sharpening(20 * np.eye(5, dtype=np.float32)) == 1.0


def test_the_directions_of_wide_rows_are_those_that_the_source_depends_on():
    def decision(X):
        return X[:, 0] * X[:, 1]

    _, _, transfer_set = make_transfer_set(decision, 60, n_rows=500)
    assert transfer_set.directions.shape == (16, 60)
    share = np.square(transfer_set.directions[:2, :2]).sum()
    assert share > 1.99


def test_gradients_that_take_long_give_no_directions():
    rng = np.random.default_rng(0)
    # A gradient takes two calls for each feature: sixteen of them as long as 25 600 rows.
    rows = rng.normal(size=(100, 800))
    source = as_source(lambda X: X[:, 0], SourceContext(rows, None, False, rng))
    source.query_cost = 1e9
    transfer_set = build_transfer_set(source, rows, rng=rng)
    assert 15_000 < len(transfer_set.rows) < 25_600
    assert transfer_set.directions is None


def test_synthetic_rows_of_a_table_mix_no_categories_before_dense_steps():
    rng = np.random.default_rng(0)
    raw = np.hstack([rng.normal(size=(200, 1)), np.eye(3)[rng.integers(3, size=200)]])
    matrix = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    encoded = EncodedRows(raw, np.array([-1, 0, 0, 0]), AffineMap(np.zeros(4), matrix))
    rows = raw @ matrix
    source = as_source(
        LogisticRegression().fit(rows, raw[:, 0] > 0), SourceContext(rows, None, False, rng)
    )
    with quick_training():
        transfer_set = build_transfer_set(source, rows, rng=rng, encoded=encoded)
        both = extend_transfer_set(transfer_set, source, rows[:50], rng=rng, encoded=encoded[:50])
    for made in (transfer_set, both):
        kinds = (made.rows @ matrix.T)[:, 1:]
        assert_allclose(
            np.sort(kinds, axis=1), np.tile([0.0, 0.0, 1.0], (len(kinds), 1)), atol=1e-5
        )
    assert both.n_real == 250
