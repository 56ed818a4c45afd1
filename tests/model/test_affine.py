"""Affine maps: the selecting form does what its matrix does."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from limes.model.affine import AffineMap

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(20, 5))
MAPS = {
    "identity": AffineMap.identity(5),
    "scaling": AffineMap.scaling(RNG.normal(size=5), RNG.normal(size=5)),
    "selection": AffineMap.selection(5, [3, 0]),
    "repeated": AffineMap(
        RNG.normal(size=5), columns=np.array([1, 1, 4]), scale=np.array([2.0, -1.0, 0.5])
    ),
    "dense": AffineMap(RNG.normal(size=5), RNG.normal(size=(5, 3))),
}


def by_matrix(step):
    """Return the same map in the dense form."""
    return AffineMap(step.shift, step.to_matrix())


@pytest.mark.parametrize("step", MAPS.values(), ids=MAPS)
def test_both_forms_map_rows_alike(step):
    assert_allclose(step.apply(ROWS), by_matrix(step).apply(ROWS), rtol=1e-14)
    assert_array_equal(step.apply(sparse.csr_array(ROWS)), step.apply(ROWS))
    assert step.apply(ROWS).shape == (20, step.n_outputs)


@pytest.mark.parametrize("step", MAPS.values(), ids=MAPS)
def test_both_forms_pull_directions_back_alike(step):
    directions = RNG.normal(size=(4, 2, step.n_outputs))
    expected = by_matrix(step).pull_back(directions)
    assert_allclose(step.pull_back(directions), expected, rtol=1e-14)
    assert expected.shape == (4, 2, 5)


@pytest.mark.parametrize("first", MAPS.values(), ids=MAPS)
@pytest.mark.parametrize("kind", ["scaling", "selection", "dense"])
def test_a_map_followed_by_another_is_one_map(first, kind):
    n = first.n_outputs
    second = {
        "scaling": AffineMap.scaling(np.zeros(n), np.arange(1.0, n + 1)),
        "selection": AffineMap.selection(n, [n - 1, 0]),
        "dense": AffineMap(np.zeros(n), RNG.normal(size=(n, 2))),
    }[kind]
    both = first.then(second)
    assert_allclose(both.apply(ROWS), second.apply(first.apply(ROWS)), rtol=1e-12, atol=1e-12)
    assert both.is_dense == (first.is_dense or second.is_dense)


@pytest.mark.parametrize("name", ["identity", "scaling", "selection", "dense"])
def test_a_shift_moves_before_the_map(name):
    first = MAPS[name]
    second = AffineMap.scaling(RNG.normal(size=first.n_outputs), np.ones(first.n_outputs))
    expected = second.apply(first.apply(ROWS))
    assert_allclose(first.then(second).apply(ROWS), expected, rtol=1e-9, atol=1e-12)


def test_undoing_gives_rows_that_are_mapped_to_the_same():
    for step in (MAPS["scaling"], MAPS["selection"], MAPS["dense"]):
        mapped = step.apply(ROWS)
        assert_allclose(step.apply(step.undo(mapped)), mapped, rtol=1e-9, atol=1e-12)
