"""A model by itself: rows of any kind, and errors that say what was expected."""

import numpy as np
import pandas
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from limes import BordersClassifier
from limes.model import BorderMap, Model, PairwiseScheme


@pytest.fixture
def model():
    line = BorderMap.from_borders(points=[[0.0, 1.0]], normals=[[0.0, 2.0]])
    return Model(PairwiseScheme((line,), 2), np.array(["low", "high"]), 2)


@pytest.fixture
def named(model):
    names = np.array(["width", "height"], dtype=object)
    return Model(model.scheme, model.classes, 2, names)


ROWS = [[5, 0], [5, 2], [1, 1]]


@pytest.mark.parametrize(
    "make",
    [
        np.array,
        list,
        lambda rows: np.array(rows, dtype=np.float32),
        lambda rows: np.array(rows, dtype=np.int8),
        lambda rows: np.array(rows, dtype=">f8"),
        lambda rows: np.asfortranarray(np.array(rows, dtype=float)),
        sparse.csr_array,
        pandas.DataFrame,
    ],
)
def test_rows_of_any_kind_are_predicted_alike(model, make):
    rows = make(ROWS)
    assert_array_equal(model.predict(rows), ["low", "high", "low"])
    assert_array_equal(model.decision_function(rows), [-2.0, 2.0, 0.0])
    assert_array_equal(model.predict_proba(rows).argmax(axis=1), [0, 1, 0])


def test_columns_have_the_names_of_the_training_rows(named):
    frame = pandas.DataFrame(ROWS, columns=["width", "height"])
    assert_array_equal(named.predict(frame), ["low", "high", "low"])
    with pytest.raises(
        ValueError, match=r"columns \['width', 'height'\], got \['height', 'width'\]"
    ):
        named.predict(frame[["height", "width"]])


@pytest.mark.parametrize("rows", [[1.0, 2.0], [[1.0]], [[[1.0, 2.0]]]])
def test_rows_of_another_shape_are_refused(model, rows):
    with pytest.raises(ValueError, match=r"X must have the shape \(n_rows, 2\), got"):
        model.predict(rows)


def test_a_classifier_of_a_model_predicts_as_the_model(model):
    fast = BordersClassifier.from_model(model)
    rows = np.array(ROWS, dtype=float)
    assert_array_equal(fast.predict(rows), model.predict(rows))
    assert fast.n_features_in_ == 2
    assert np.isnan(fast.agreement_)
    assert fast.candidates_ == []
