"""Rows in arrays of other libraries, masked, of few bits, or none at all."""

import pickle
import warnings

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.frozen import FrozenEstimator
from sklearn.svm import SVC

from limes import BordersClassifier, accelerate
from limes.dask_arrays import ShippedModel, _load
from limes.model import BorderMap, Model, PairwiseScheme
from limes.model.schemes import SharedScheme
from tests.conftest import quick_training

METHODS = ["predict", "predict_proba", "decision_function"]


def fail_on_compute(*args, **options):
    raise AssertionError("computed")


@pytest.fixture(scope="module")
def fast():
    """Three classes of four features; labels are text."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 200, (300, 4)).astype(float)
    y = np.array(["crop", "tree", "water"])[(X[:, 0] > 90).astype(int) + (X[:, 1] > 120)]
    with quick_training():
        return accelerate(SVC(gamma=1e-4, C=10).fit(X, y), X, scheme="shared", n_borders=16)


@pytest.fixture
def rows():
    return np.random.default_rng(1).integers(0, 200, (1000, 4)).astype(np.float32)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16])
@pytest.mark.parametrize("order", ["C", "F"])
def test_integers_are_predicted_as_the_same_float32_rows(fast, rows, method, dtype, order):
    integers = np.asarray(rows, dtype=dtype, order=order)
    assert_array_equal(getattr(fast, method)(integers), getattr(fast, method)(rows))
    every_other = np.repeat(integers, 2, axis=0)[::2, ::-1]
    expected = getattr(fast, method)(rows[:, ::-1])
    assert_array_equal(getattr(fast, method)(every_other), expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16])
def test_exact_sums_read_integers(rows, dtype):
    X = rows[:100]
    exact = accelerate(SVC(gamma=1e-4, C=10).fit(X, X[:, 0] > 90), X, scheme="exact")
    assert_array_equal(exact.predict(rows.astype(dtype)), exact.predict(rows))


def test_the_core_reads_integers_without_a_copy_of_all(fast):
    import tracemalloc

    rows = np.zeros((500_000, 4), dtype=np.uint16)
    fast.predict(rows[:10])
    tracemalloc.start()
    fast.model_.predict(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500_000 * fast.classes_.itemsize + 100_000


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rows", [np.empty((0, 4)), np.ma.empty((0, 4))])
def test_no_rows_give_no_labels(fast, method, rows):
    found = getattr(fast, method)(rows)
    one = getattr(fast, method)(np.zeros((1, 4)))
    assert found.shape == (0, *one.shape[1:])
    assert found.dtype == one.dtype


@pytest.mark.parametrize("method", METHODS)
def test_a_masked_array_gives_a_masked_array(fast, rows, method):
    mask = np.zeros(rows.shape, dtype=bool)
    mask[::7, 2] = True
    masked = np.ma.MaskedArray(np.where(mask, -99999, rows), mask=mask)
    found = getattr(fast, method)(masked)
    expected = getattr(fast, method)(rows)
    is_valid = ~mask.any(axis=1)
    assert_array_equal(found.data[is_valid], expected[is_valid])
    assert found.mask[~is_valid].all()
    assert not found.mask[is_valid].any()


def test_an_array_without_any_mask_set_is_masked_nowhere(fast, rows):
    found = fast.predict(np.ma.MaskedArray(rows))
    assert isinstance(found, np.ma.MaskedArray)
    assert not found.mask.any()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("chunks", [(100, 4), (333, 2), ((0, 1, 999), 1)])
def test_a_dask_array_stays_lazy(fast, rows, method, chunks):
    lazy = da.from_array(rows, chunks=chunks)
    with dask.config.set(scheduler=fail_on_compute):
        found = getattr(fast, method)(lazy)
    expected = getattr(fast, method)(rows)
    assert found.chunks[0] == lazy.chunks[0]
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype == found._meta.dtype
    assert found._meta.shape == (0,) * expected.ndim
    assert_array_equal(found.compute(scheduler="threads"), expected)


@pytest.mark.parametrize("method", METHODS)
def test_a_dask_data_frame_stays_lazy(fast, rows, method):
    frame = dd.from_pandas(pd.DataFrame(rows, columns=list("abcd")), npartitions=3)
    with dask.config.set(scheduler=fail_on_compute):
        found = getattr(fast, method)(frame)
    expected = getattr(fast, method)(rows)
    assert found.dtype == expected.dtype
    assert found.npartitions == 3
    assert_array_equal(found.compute(scheduler="threads"), expected)


def test_a_dask_array_of_another_width_is_refused_before_it_is_computed(fast):
    with pytest.raises(ValueError, match=r"shape \(n_rows, 4\), got \(10, 3\)"):
        fast.predict(da.zeros((10, 3)))


def test_a_dask_data_frame_with_other_columns_is_refused(rows):
    line = BorderMap.from_borders(points=[[0.0, 1.0]], normals=[[0.0, 2.0]])
    model = Model(PairwiseScheme((line,), 2), np.array([0, 1]), 2, np.array(["red", "nir"]))
    frame = dd.from_pandas(pd.DataFrame(rows[:, :2], columns=["nir", "red"]), npartitions=1)
    with pytest.raises(ValueError, match=r"columns \['red', 'nir'\], got \['nir', 'red'\]"):
        BordersClassifier.from_model(model).predict(frame)


def test_a_process_loads_a_shipped_model_once(fast, rows):
    _load.cache_clear()
    for _ in range(3):
        shipped = pickle.loads(pickle.dumps(ShippedModel(fast.model_)))
        assert_array_equal(shipped.predict("predict", rows), fast.predict(rows))
    assert _load.cache_info().misses == 1


def test_equal_models_have_equal_names_in_a_graph(fast, rows):
    lazy = da.from_array(rows, chunks=100)
    assert fast.predict(lazy).name == fast.predict(lazy).name


@pytest.mark.cluster
def test_dask_ml_predicts_in_parallel(fast, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from dask_ml.wrappers import ParallelPostFit

        lazy = ParallelPostFit(fast).predict(da.from_array(rows, chunks=(300, 4)))
        assert isinstance(lazy, da.Array)
        assert_array_equal(lazy.compute(), fast.predict(rows))


def test_accelerate_samples_a_dask_array(rows):
    X = rows[:200]
    svc = SVC(gamma=1e-4, C=10).fit(X, X[:, 0] > 90)
    with quick_training():
        fast = accelerate(svc, da.from_array(rows, chunks=100), scheme="shared", n_borders=4)
    assert np.mean(fast.predict(rows) == svc.predict(rows)) > 0.9


def test_a_frozen_fast_classifier_predicts(fast, rows):
    frozen = FrozenEstimator(fast).fit(rows, fast.predict(rows))
    assert_array_equal(frozen.predict(rows), fast.predict(rows))
    assert_array_equal(
        frozen.predict(da.from_array(rows, chunks=100)).compute(), fast.predict(rows)
    )
    assert isinstance(frozen.estimator.scheme_, SharedScheme)
