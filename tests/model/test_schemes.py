"""From the values of maps to labels and probabilities, which never disagree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from limes.model.border_map import BorderMap
from limes.model.schemes import OneVsRestScheme, PairwiseScheme, with_largest_at

ANY_MAP = (BorderMap.from_borders(points=[[0.0]], normals=[[1.0]]),)
SCHEMES = {
    "vote": PairwiseScheme(ANY_MAP, 4),
    "couple": PairwiseScheme(ANY_MAP, 4, by_vote=False),
    "one-vs-rest": OneVsRestScheme(ANY_MAP, 4),
}
SCHEMES["two"] = PairwiseScheme(ANY_MAP, 2)
N_VALUES = {"vote": 6, "couple": 6, "one-vs-rest": 4, "two": 1}


@pytest.mark.parametrize("name", SCHEMES)
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_labels_and_probabilities_never_disagree(name, data):
    shape = (8, N_VALUES[name])
    values = data.draw(arrays(np.float32, shape, elements=st.floats(-60, 60, width=32)))
    probabilities = SCHEMES[name].probabilities(values)
    assert_array_equal(probabilities.argmax(axis=1), SCHEMES[name].class_index(values))
    assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-9)
    assert probabilities.min() >= 0


def test_two_classes_have_the_probabilities_of_the_paper():
    scheme = PairwiseScheme(ANY_MAP, 2)
    values = np.array([[-0.7], [0.0], [1.2]])
    expected = (1 + np.tanh(values)) / 2
    assert_allclose(scheme.probabilities(values), np.hstack([1 - expected, expected]))
    assert_array_equal(scheme.class_index(values), [0, 0, 1])


def test_votes_decide_and_the_lowest_of_equals_wins():
    scheme = PairwiseScheme(ANY_MAP, 3)
    cycle = [[-1.0, 1.0, -1.0]]  # 0 beats 1, 2 beats 0, 1 beats 2
    assert_array_equal(scheme.class_index(np.array(cycle)), [0])
    assert_array_equal(scheme.class_index(np.array([[1.0, 1.0, 1.0]])), [2])


@settings(max_examples=200, deadline=None)
@given(weights=arrays(float, (5, 6), elements=st.floats(0.01, 1)), winner=st.integers(0, 5))
def test_putting_a_class_first_moves_as_little_as_it_takes(weights, winner):
    probabilities = weights / weights.sum(axis=1, keepdims=True)
    winners = np.full(5, winner)
    moved = with_largest_at(probabilities, winners)
    assert_array_equal(moved.argmax(axis=1), winners)
    assert_allclose(moved.sum(axis=1), 1)
    for row, new in zip(probabilities, moved, strict=True):
        # Every class is either left alone or at the winner's level, and none that lost was raised.
        is_level = np.isclose(new, new[winner], rtol=1e-6)
        assert_allclose(new[~is_level], row[~is_level], rtol=1e-6)
        others = np.arange(6) != winner
        assert (new[others] <= row[others] + 1e-7).all()
