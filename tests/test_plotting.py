"""The drawn data."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from limes import accelerate
from limes.model.model import Candidate
from limes.plotting import (
    border_points,
    draw_borders,
    draw_candidates,
    find_plane,
    new_figure,
    points_near,
)


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


def test_border_points_lie_where_the_prediction_changes(fast, moons):
    points, directions = points_near(fast, find_plane(100 * moons[0]))
    assert len(points) == fast.n_borders_
    assert_allclose(np.linalg.norm(directions, axis=1), 1)
    sides = [fast.predict(points + step * directions) for step in (0.1, -0.1)]
    assert np.mean(sides[0] != sides[1]) == 1.0


def test_the_direction_at_a_point_of_a_shared_map_is_that_of_the_two_highest_functions(blobs):
    X, y = blobs
    shared = accelerate(SVC(gamma=0.1).fit(X, y), X, scheme="shared", n_borders=8, random_state=0)
    points, directions = border_points(shared)
    border_map = shared.scheme_.maps[0]
    values = np.einsum("ikj,ij->ik", border_map.slopes, points) + border_map.offsets
    moved = np.einsum("ikj,ij->ik", border_map.slopes, points + 1e-3 * directions)
    moved += border_map.offsets
    second, first = np.argsort(values, axis=1)[:, -2:].T
    at = np.arange(len(points))
    gaps = [scores[at, first] - scores[at, second] for scores in (values, moved)]
    assert np.all(gaps[1] > gaps[0])


def test_a_plane_keeps_rows_in_it_in_place():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5)) * [9, 5, 1, 1, 1e-3] + 7
    plane = find_plane(X)
    positions = rng.normal(size=(10, 2))
    assert_allclose(plane.project(plane.lift(positions)), positions, atol=1e-12)
    assert_allclose(plane.distances(plane.lift(positions)), 0, atol=1e-9)
    assert 0.35 < plane.share < 0.6


def test_every_scheme_of_the_candidates_has_a_line_and_the_selected_one_a_ring(fast):
    drawn = copy(fast)
    candidates = [
        Candidate("shared", 4, 1, 10, 0.9, 0.01),
        Candidate("shared", 16, 1, 100, 0.99, 0.01, True),
        Candidate("pairwise", 64, 1, 1000, 0.98, 0.01),
    ]
    drawn.model_ = replace(fast.model_, info=replace(fast.model_.info, candidates=candidates))
    axes = draw_candidates(drawn, new_figure().subplots())
    assert [list(bars[0].get_xdata()) for bars in axes.containers] == [[1000], [10, 100]]
    (ring,) = [line for line in axes.lines if line.get_label() == "selected"]
    assert list(ring.get_xdata()) == [100]


def draw(fast, *candidates):
    drawn = copy(fast)
    info = replace(fast.model_.info, candidates=list(candidates))
    drawn.model_ = replace(fast.model_, info=info)
    return draw_candidates(drawn, new_figure().subplots())


def drawn_at(axes, label):
    (line,) = [line for line in axes.lines if line.get_label() == label]
    return float(line.get_xdata()[0]), float(line.get_ydata()[0])


def test_exact_sums_are_drawn_below_every_other_candidate(fast):
    axes = draw(
        fast,
        Candidate("shared", 4, 1, 10, 0.9, 0.01),
        Candidate("shared", 16, 1, 100, 1.0, 0.002, fallback_share=0.25),
        Candidate("exact", 0, 0, 1000, 1.0, 0.0, is_selected=True),
    )
    # The candidate without a wrong row is drawn at a tenth of its standard error.
    (bars,) = axes.containers
    assert_allclose(np.array(bars[0].get_ydata(), dtype=float), [0.1, 0.0002])
    assert drawn_at(axes, "exact sums, no disagreement") == pytest.approx((1000, 0.0001))
    assert drawn_at(axes, "selected") == pytest.approx((1000, 0.0001))


def test_exact_sums_alone_can_be_drawn(fast):
    axes = draw(fast, Candidate("exact", 0, 0, 1000, 1.0, 0.0, is_selected=True))
    assert drawn_at(axes, "selected")[1] > 0
    axes.figure.draw_without_rendering()


def test_a_candidate_is_named_with_its_fallback_share(fast):
    axes = draw(
        fast,
        Candidate("shared", 4, 1, 10, 0.9, 0.01),
        Candidate("shared", 16, 1, 100, 0.99, 0.01, True, fallback_share=0.052),
        Candidate("exact", 0, 0, 1000, 1.0, 0.0),
    )
    # The most important first.
    assert [text.get_text() for text in axes.texts] == [
        "16 points, 5.2% exact",
        "exact",
        "4 points",
    ]


def test_names_of_candidates_do_not_overlap(fast):
    crowd = [Candidate("shared", 4 + i, 1, 1000 + 20 * i, 0.95 + 1e-4 * i, 0.01) for i in range(20)]
    axes = draw(fast, *crowd, Candidate("shared", 64, 1, 1500, 0.99, 0.01, True))
    boxes = [text.get_window_extent() for text in axes.texts]
    assert 1 < len(boxes) < 21
    assert axes.texts[0].get_text() == "64 points"
    assert not [(a, b) for a in boxes for b in boxes if a is not b and a.overlaps(b)]


def test_exact_sums_have_regions_and_no_border_points(moons):
    X, y = moons
    exact = accelerate(SVC(gamma=2).fit(X, y), scheme="exact")
    assert [part.shape for part in border_points(exact)] == [(0, 2), (0, 2)]
    axes = new_figure().subplots()
    draw_borders(exact, X, y, axes)
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["rows of class 0", "rows of class 1"]
