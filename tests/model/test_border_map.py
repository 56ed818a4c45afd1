"""The one data structure, against its definition in NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from limes.model.border_map import BorderMap, compile_maps, is_projected, row_cost
from limes.sources.pipelines import as_affine


def decide(one, X):
    """Return a map's values by its definition: the nearest point's functions."""
    search = X if one.preprocessing is None else one.preprocessing.apply(X)
    distances = np.square(search[:, None] - one.points).sum(axis=2)
    winner = distances.argmin(axis=1)
    return np.einsum("nd,nqd->nq", X, one.slopes[winner]) + one.offsets[winner]


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(300, 5)) * [1, 100, 0.01, 1, 1] + 50


def random_map(preprocessing, n_features, *, n_borders=20, n_outputs=3):
    rng = np.random.default_rng(1)
    n_search = n_features if preprocessing is None else preprocessing.n_outputs
    return BorderMap(
        rng.normal(size=(n_borders, n_search)),
        rng.normal(size=(n_borders, n_outputs, n_features)),
        rng.normal(size=(n_borders, n_outputs)),
        preprocessing,
    )


def test_one_flat_border_is_reproduced_exactly():
    line = BorderMap.from_borders(points=[[0.0, 1.0]], normals=[[0.0, 2.0]])
    rows = np.array([[5.0, 1.0], [5.0, 2.0], [-3.0, 0.0]])
    assert_array_equal(line.decide(rows).ravel(), [0.0, 2.0, -2.0])


def test_the_nearest_point_answers_and_ties_go_to_the_lowest():
    one = BorderMap.from_borders(points=[[0.0], [2.0], [2.0]], normals=[[1.0], [3.0], [5.0]])
    assert_array_equal(one.nearest([[-1.0], [1.0], [1.5], [9.0]]), [0, 0, 1, 1])
    assert_array_equal(one.decide([[-1.0], [3.0]]).ravel(), [-1.0, 3.0])


@pytest.mark.parametrize(
    "step",
    [None, StandardScaler(), make_pipeline(StandardScaler(), PCA(2))],
    ids=["raw", "scaled", "projected"],
)
def test_values_are_those_of_the_definition(step, rows):
    preprocessing = None if step is None else as_affine(step.fit(rows))
    one = random_map(preprocessing, 5)
    expected = decide(one, rows)
    assert_allclose(one.decide(rows), expected, rtol=1e-4, atol=1e-3 * np.abs(expected).max())


def test_a_border_found_after_scaling_takes_raw_rows(rows):
    scaler = StandardScaler().fit(rows)
    points, normals = np.zeros((1, 5)), np.ones((1, 5))
    one = BorderMap.from_borders(points=points, normals=normals, preprocessing=as_affine(scaler))
    assert_allclose(
        one.decide(rows).ravel(), scaler.transform(rows).sum(axis=1), rtol=1e-4, atol=1e-4
    )


def test_a_million_deviations_away_from_zero_the_nearest_point_is_still_right():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(50, 4)) + 1e6
    X = rng.normal(size=(2000, 4)) + 1e6
    one = BorderMap.from_borders(points=points, normals=np.ones((50, 4)))
    distances = np.square(X[:, None] - points).sum(axis=2)
    found = distances[np.arange(2000), one.nearest(X)]
    assert_allclose(found, distances.min(axis=1), rtol=1e-4)


def test_rows_are_projected_only_where_that_is_cheaper():
    X = np.random.default_rng(0).normal(size=(100, 50))
    preprocessing = as_affine(PCA(2).fit(X))
    assert is_projected([random_map(preprocessing, 50, n_borders=100)])
    assert not is_projected([random_map(preprocessing, 50, n_borders=2)])
    assert row_cost([random_map(preprocessing, 50, n_borders=100)]) == 2 * (50 + 100) + 3 * 50
    assert row_cost([random_map(None, 50, n_borders=100)]) == 100 * 50 + 3 * 50


def test_a_blend_of_two_is_continuous_where_the_nearest_changes():
    one = BorderMap.from_borders(
        points=[[0.0], [2.0], [5.0]], normals=[[1.0], [3.0], [1.0]], blend=2
    )
    left, right = one.decide([[1.0 - 1e-4], [1.0 + 1e-4]]).ravel()
    assert abs(left - right) < 1e-2
    alone = BorderMap.from_borders(points=one.points, normals=one.slopes[:, 0])
    jump = np.diff(alone.decide([[1.0 - 1e-4], [1.0 + 1e-4]]).ravel())
    assert abs(jump[0]) > 1


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"points": [1.0, 2.0]}, "points must have the shape"),
        ({"points": np.zeros((0, 2))}, "both at least 1"),
        ({"slopes": np.zeros((3, 2))}, "slopes must have the shape"),
        ({"slopes": np.zeros((2, 1, 2))}, "slopes must have the shape"),
        ({"points": np.zeros((3, 4))}, "points must have 2 features"),
        ({"offsets": np.zeros((3, 2))}, "offsets must have the shape"),
        ({"blend": 0}, "blend must be an integer of at least 1, got 0"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(parts, words):
    good = {
        "points": np.zeros((3, 2)),
        "slopes": np.zeros((3, 1, 2)),
        "offsets": np.zeros((3, 1)),
    }
    with pytest.raises(ValueError, match=words):
        BorderMap(**{**good, **parts})


def test_arrays_are_frozen():
    line = BorderMap.from_borders(points=[[0.0, 1.0]], normals=[[0.0, 2.0]])
    with pytest.raises(ValueError, match="read-only"):
        line.points[0, 0] = 1.0


def test_a_one_sided_map_does_not_end_the_blending_of_the_others():
    flat = BorderMap.constant(np.array([0.0]), 2.0)
    points, normals = [[0.0], [2.0], [5.0]], [[1.0], [3.0], [1.0]]
    blended = BorderMap.from_borders(points=points, normals=normals, blend=2)
    rows = np.array([[0.9], [1.7]])
    both = compile_maps([flat, blended]).decide(rows)
    assert_array_equal(both[:, 0], [2.0, 2.0])
    assert_allclose(both[:, 1:], blended.decide(rows), rtol=1e-5)
