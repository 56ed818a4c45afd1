"""Values of a map and decision values of a detector are the same scores on two scales."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from limes.model import BorderMap, ExactScheme, Model, PairwiseScheme, load_model, save_model
from limes.model.exact import FallbackScheme
from limes.model.file_layout import read_container, write_container
from limes.model.outlier_scores import OutlierScores
from limes.model.svm import Kernel, TrainedSvm

LINE = PairwiseScheme((BorderMap.from_borders(points=[[1.0]], normals=[[1.0]]),), 2)
SUMS = ExactScheme(TrainedSvm(Kernel("rbf", 1.0), [[0.0]], [[-1.0]], [0.5], [0, 1]), rule="strict")


@pytest.mark.parametrize("is_gaussian", [False, True])
def test_values_and_decisions_are_inverse_and_ascending(is_gaussian):
    scores = OutlierScores(0.7, is_gaussian)
    decision = np.array([-0.7 + 1e-12, -0.69, -0.1, 0.0, 0.3, 5.0])
    values = scores.to_values(decision)
    assert (np.diff(values) > 0).all()
    assert_array_equal(np.sign(values), np.sign(decision))
    assert_allclose(scores.from_values(values[:, None]), decision, rtol=1e-9, atol=1e-12)


def test_values_of_any_size_have_a_finite_decision():
    found = OutlierScores(2.0, is_gaussian=True).from_values(np.array([[-3e38], [3e38]]))
    assert found[0] == -2.0
    assert np.isfinite(found).all()


def test_the_value_of_a_gaussian_far_away_falls_with_the_distance():
    scores = OutlierScores(0.5, is_gaussian=True)
    distance = np.array([3.0, 4.0, 5.0])
    values = scores.to_values(np.exp(-np.square(distance)) - 0.5)
    assert_allclose(np.diff(values), -np.sqrt(2.0), rtol=0.05)


def test_rows_of_the_fallback_have_the_exact_decision():
    scheme = FallbackScheme(LINE, SUMS, margin=1.0)
    scores, rows = OutlierScores(0.5, is_gaussian=True), np.array([[0.0], [0.9], [3.0]])
    found = scores.decision(scheme, rows)
    assert_allclose(found[1], np.exp(-0.81) - 0.5)
    assert_allclose(found[[0, 2]], 0.5 * np.expm1([-1.5, 2.0]))


@pytest.mark.parametrize(("offset", "is_gaussian"), [(np.nan, False), (np.inf, False), (0.0, True)])
def test_an_offset_without_a_meaning_is_refused(offset, is_gaussian):
    with pytest.raises(ValueError, match="the offset must be a finite number"):
        OutlierScores(offset, is_gaussian)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"offset": 0.5}, "the entries"),
        ({"offset": "a", "is_gaussian": True}, "offset"),
        ({"offset": -1.0, "is_gaussian": True}, "scores of an outlier detector"),
    ],
)
def test_a_file_with_wrong_scores_is_refused(section, message, tmp_path):
    path = tmp_path / "fast.limes"
    model = Model(SUMS, np.array([-1, 1]), 1, outlier_scores=OutlierScores(0.5))
    save_model(model, path)
    assert load_model(path).outlier_scores == OutlierScores(0.5)
    container = read_container(path, max_bytes=1 << 20, versions=(2,))
    header = json.loads(json.dumps(container.header))
    header["sections"]["outlier_scores"] = section
    with path.open("wb") as stream:
        write_container(stream, header, container.arrays, version=2)
    with pytest.raises(ValueError, match=message):
        load_model(path)
