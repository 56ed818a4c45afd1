"""What is drawn, not how it looks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from limes import accelerate
from limes.plotting import border_points, draw_borders, new_figure


@pytest.fixture(scope="module")
def fast(moons):
    X, y = moons
    model = make_pipeline(StandardScaler(), SVC(gamma=2)).fit(100 * X, y)
    return accelerate(model, 100 * X, scheme="pairwise", n_borders=30, random_state=0)


def test_border_points_are_raw_rows_on_the_border(fast):
    points, directions = border_points(fast)
    assert np.abs(fast.estimator_.decision_function(points)).max() < 1e-4
    assert_allclose(np.linalg.norm(directions, axis=1), 1)


def test_all_rows_and_border_points_are_drawn(fast, moons):
    X, y = moons
    axes = new_figure().subplots()
    draw_borders(fast, 100 * X, y, axes)
    drawn = [len(part.get_offsets()) for part in axes.collections if part.get_label()[:1] != "_"]
    assert drawn == [np.sum(y == 0), np.sum(y == 1), 30]
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["rows of class 0", "rows of class 1", "30 border points"]


def test_more_than_two_features_cannot_be_drawn(fast):
    with pytest.raises(ValueError, match=r"2 features.*\(4, 3\)"):
        draw_borders(fast, np.zeros((4, 3)), np.zeros(4), new_figure().subplots())
