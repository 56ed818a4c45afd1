"""Which rows a fit uses, which are held out, and which classes it refuses."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from limes.fit import data
from limes.fit.config import DEFAULTS
from limes.fit.data import class_index_of_labels, hold_out, rescale, sample_rows
from limes.model.affine import AffineMap


def change_data(monkeypatch, **values):
    """Give the sampling other tuned values."""
    changed = replace(DEFAULTS, data=replace(DEFAULTS.data, **values))
    monkeypatch.setattr(data, "DEFAULTS", changed)


def test_few_rows_are_all_used():
    X = np.arange(6.0).reshape(3, 2)
    for given in (X, sparse.csr_array(X)):
        sampled = sample_rows(given, None, class_index=None, rng=np.random.default_rng(0))
        assert_array_equal(sampled.index, [0, 1, 2])
        assert_array_equal(sampled.rows, X)


def test_a_rare_class_keeps_a_share_of_many_rows(monkeypatch):
    change_data(monkeypatch, max_rows=100)
    class_index = np.repeat([0, 1], [9900, 100])
    X = class_index[:, None].astype(float)
    sampled = sample_rows(X, None, class_index=class_index, rng=np.random.default_rng(0))
    # A quarter of an equal part; in proportion it would be one row.
    assert_array_equal(np.bincount(class_index[sampled.index]), [99, 12])
    assert_array_equal(sampled.rows, X[sampled.index])


def test_a_fifth_of_each_class_is_held_out_and_none_of_a_rare_one():
    class_index = np.repeat([0, 1, 2], [1000, 50, 9])
    is_held_out = hold_out(class_index, np.random.default_rng(0))
    assert_array_equal(np.bincount(class_index[is_held_out], minlength=3), [200, 10, 0])


def test_rescaled_rows_keep_their_map_from_raw_rows():
    X = np.random.default_rng(0).normal(500.0, 100.0, size=(200, 3))
    steps = AffineMap.scaling(np.zeros(3), np.array([1.0, 2.0, 3.0]))
    sampled = sample_rows(X, steps, class_index=None, rng=np.random.default_rng(0))
    rescaled, rescaling = rescale(sampled)
    assert_allclose(rescaled.rows.mean(axis=0), 0.0, atol=1e-9)
    assert_allclose(np.sqrt(np.square(rescaled.rows).mean()), 1.0)
    assert_allclose(rescaled.rows, rescaling.apply(sampled.rows))
    assert_allclose(rescaled.preprocessing.apply(X), rescaled.rows, atol=1e-9)


def test_labels_that_the_source_does_not_have_are_refused():
    class Model:
        classes_ = np.array(["b", "a"])

    assert_array_equal(class_index_of_labels(Model(), np.array(["a", "b"])), [1, 0])
    with pytest.raises(ValueError, match="y has the label 'c'"):
        class_index_of_labels(Model(), np.array(["a", "b", "c"]))
    with pytest.raises(ValueError, match="y has no row of the class 'b'"):
        class_index_of_labels(Model(), np.array(["a", "a"]))
