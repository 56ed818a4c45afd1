"""The data of the reliability diagram."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from limes.html_report.figures import reliability
from limes.report import ModelScores
from tests.test_report import NAMES, count, make_predictions


def test_the_reliability_of_true_probabilities_is_the_diagonal():
    rng = np.random.default_rng(0)
    shares = rng.random(200_000)
    y = (rng.random(200_000) < shares).astype(int)
    probabilities = np.column_stack([1 - shares, shares])
    counts = count(np.arange(2), y, (shares > 0.5).astype(int), probabilities)
    predicted, observed, n_rows = reliability(ModelScores("m", counts, 1, 1))
    assert len(predicted) == 10
    assert n_rows.sum() == 200_000
    assert_allclose(observed, predicted, atol=0.01)


@pytest.mark.parametrize("name", ["numbers", "two"])
def test_the_reliability_of_blocks_is_that_of_the_whole(name):
    classes = NAMES[name]
    y, labels, probabilities = make_predictions(classes, n_rows=5000)
    counts = count(classes, y, labels, probabilities)
    predicted, observed, n_rows = reliability(ModelScores("m", counts, 1.0, 1))
    is_two = name == "two"
    binned = probabilities[:, 1] if is_two else probabilities.max(axis=1)
    is_right = y == classes[1] if is_two else y == labels
    row_bins = np.minimum((10 * binned).astype(int), 9)
    bins = [tenth for tenth in range(10) if np.sum(row_bins == tenth) >= 10]
    assert_array_equal(n_rows, [np.sum(row_bins == tenth) for tenth in bins])
    assert_allclose(predicted, [binned[row_bins == tenth].mean() for tenth in bins])
    assert_allclose(observed, [is_right[row_bins == tenth].mean() for tenth in bins])
