"""Votes and coupled probabilities: known answers, the definition, LIBSVM's own numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from limes.model import coupling
from limes.model.coupling import (
    class_pairs,
    count_votes,
    count_votes_like_libsvm,
    couple,
    couple_like_libsvm,
)
from tests.export.cases import on_borders


def pairs_of(probabilities):
    """Return P(second | pair) of known class probabilities."""
    columns = [
        probabilities[:, j] / (probabilities[:, i] + probabilities[:, j])
        for i, j in class_pairs(probabilities.shape[1])
    ]
    return np.column_stack(columns)


def random_pairs(n_rows, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(n_rows, n_classes * (n_classes - 1) // 2))


def loss(p, pair):
    terms = [
        ((1 - r) * p[j] - r * p[i]) ** 2
        for r, (i, j) in zip(pair, class_pairs(len(p)), strict=True)
    ]
    return 2.0 * sum(terms)


@pytest.mark.parametrize("n_classes", [2, 3, 7, 26])
def test_consistent_pairs_give_back_their_probabilities(n_classes):
    expected = np.random.default_rng(0).dirichlet(np.ones(n_classes), size=50)
    assert_allclose(couple(pairs_of(expected)), expected, rtol=1e-9, atol=1e-13)


def test_the_answer_minimises_the_loss_of_wu_lin_and_weng():
    pair = random_pairs(1, 4)[0]
    found = couple([pair])[0]
    constraint = {"type": "eq", "fun": lambda p: p.sum() - 1.0}
    start = np.full(4, 0.25)
    best = minimize(
        loss, start, args=(pair,), constraints=[constraint], bounds=[(0, 1)] * 4, tol=1e-14
    )
    assert_allclose(found, best.x, atol=1e-6)
    assert loss(found, pair) <= best.fun + 1e-15


def test_a_class_that_surely_wins_every_pair_has_probability_one():
    assert_array_equal(couple([[1.0, 0.5, 0.0]]), [[0.0, 1.0, 0.0]])


def test_a_sure_circle_of_winners_is_a_tie():
    assert_allclose(couple([[0.0, 1.0, 0.0]]), np.full((1, 3), 1 / 3), rtol=1e-15)


probabilities = st.one_of(st.sampled_from([0.0, 1.0, 1e-300, 1.0 - 2**-53]), st.floats(0.0, 1.0))


@given(
    st.sampled_from([2, 3, 5]).flatmap(
        lambda k: arrays(float, (4, k * (k - 1) // 2), elements=probabilities)
    )
)
@settings(deadline=None)
def test_any_probabilities_give_probabilities(pairs):
    for coupled in (couple(pairs), couple_like_libsvm(pairs)):
        assert (coupled >= 0).all()
        assert_allclose(coupled.sum(axis=1), 1.0, rtol=1e-9)


@pytest.mark.parametrize("function", [couple, couple_like_libsvm])
def test_blocks_do_not_change_the_answer(function, monkeypatch):
    pairs = random_pairs(20, 5)
    whole = function(pairs)
    monkeypatch.setattr(coupling, "BLOCK_NUMBERS", 3 * 25)
    assert_array_equal(function(pairs), whole)


@pytest.mark.parametrize("function", [couple, couple_like_libsvm])
def test_no_rows_give_no_rows(function):
    assert function(np.empty((0, 3))).shape == (0, 3)
    assert function(np.empty((0, 1))).shape == (0, 2)


def test_libsvm_stops_near_the_exact_answer():
    pairs = random_pairs(200, 7)
    assert_allclose(couple_like_libsvm(pairs), couple(pairs), atol=0.01)
    assert np.abs(couple_like_libsvm(pairs) - couple(pairs)).max() > 1e-6


def libsvm_row(pair, n_classes):
    """Follow LIBSVM's iteration for one row, number by number."""
    r = np.zeros((n_classes, n_classes))
    for p, (i, j) in zip(pair, class_pairs(n_classes), strict=True):
        r[i, j], r[j, i] = 1.0 - p, p
    Q = np.diag((r**2).sum(axis=0)) - r * r.T
    p = np.full(n_classes, 1.0 / n_classes)
    for _ in range(max(100, n_classes)):
        if np.abs(Q @ p - p @ Q @ p).max() < 0.005 / n_classes:
            break
        for t in range(n_classes):
            p[t] += (p @ Q @ p - Q[t] @ p) / Q[t, t]
            p /= p.sum()
    return p


@pytest.mark.parametrize("n_classes", [3, 7])
def test_each_row_stops_on_its_own(n_classes):
    pairs = random_pairs(40, n_classes)
    expected = [libsvm_row(pair, n_classes) for pair in pairs]
    assert_allclose(couple_like_libsvm(pairs), expected, rtol=1e-10)


def test_votes_go_to_the_first_class_at_zero():
    values = [[-1.0, -2.0, -3.0], [0.0, -1.0, 1.0], [1.0, 1.0, 1.0]]
    assert_array_equal(count_votes(values), [[2, 1, 0], [2, 0, 1], [0, 1, 2]])


def test_votes_go_to_the_second_class_at_zero_by_libsvm():
    values = [[-1.0, -2.0, -3.0], [0.0, -1.0, 1.0], [1.0, 1.0, 1.0]]
    assert_array_equal(count_votes_like_libsvm(values), [[2, 1, 0], [1, 1, 1], [0, 1, 2]])


def test_a_value_of_zero_votes_alike_in_the_core_and_in_python():
    fast, rows = on_borders()
    values = fast.scheme_.values(rows)
    assert np.sum(values == 0) > 100
    assert_array_equal(fast.scheme_.classify(rows), fast.scheme_.class_index(values))
    assert_array_equal(fast.predict_proba(rows).argmax(axis=1), fast.predict(rows))


def test_pairs_come_in_the_order_of_libsvm():
    assert class_pairs(4) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


@pytest.mark.parametrize("shape", [(3,), (3, 0), (3, 2), (3, 4)])
def test_columns_that_are_not_pairs_are_refused(shape):
    for function in (couple, couple_like_libsvm, count_votes, count_votes_like_libsvm):
        with pytest.raises(ValueError, match=r"pair"):
            function(np.full(shape, 0.5))
