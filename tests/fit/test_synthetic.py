"""Synthetic rows: where they lie, and what they keep of real ones."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from limes.fit.synthetic import (
    crossover,
    find_categories,
    interpolate,
    jitter,
    mix_components,
    sample_near_border,
)


def test_categories_stay_categories():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(3, size=500), rng.normal(size=500)]).astype(float)
    assert_array_equal(find_categories(rows), [True, False])
    synthetic = sample_near_border(rows, np.ones(500), 1000, search_rows=rows, rng=rng)
    assert set(np.unique(synthetic[:, 0])) <= {0.0, 1.0, 2.0}
    assert len(np.unique(synthetic[:, 1])) > 900


def test_synthetic_rows_are_where_the_source_is_ambiguous():
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (2000, 2))
    ambiguity = (np.abs(rows[:, 0]) < 0.1).astype(float)
    synthetic = sample_near_border(rows, ambiguity, 4000, search_rows=rows, rng=rng)
    assert np.mean(np.abs(synthetic[:, 0]) < 0.2) > 0.6


@pytest.mark.parametrize(("n_rows", "share"), [(4000, 0.3), (6000, 0.0)])
def test_crossover_is_used_for_few_rows_and_not_for_many(n_rows, share):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n_rows, 6)).astype(np.float32).astype(float)
    synthetic = sample_near_border(rows, np.ones(n_rows), 2000, search_rows=rows, rng=rng)
    is_mixed = np.all([np.isin(synthetic[:, j], rows[:, j]) for j in range(6)], axis=0)
    # A step along the difference of a neighbour and itself gives a real row.
    real = {row.tobytes() for row in rows.astype(np.float32)}
    is_crossed = is_mixed & [row.tobytes() not in real for row in synthetic]
    assert_allclose(is_crossed.mean(), share, atol=0.005)


def test_synthetic_rows_start_from_the_rows_with_an_ambiguity():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(0, 1, (50, 3)), rng.normal(40, 1, (500, 3))])
    synthetic = sample_near_border(rows, np.ones(50), 1000, search_rows=rows, rng=rng)
    assert np.abs(synthetic).max() < 20


def test_mixed_rows_keep_the_correlation_of_the_features():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 1)) @ [[1.0, -2.0, 0.5]] + [5.0, 0.0, 100.0]
    mixed = mix_components(rows, 1000, rng)
    centred = (mixed - [5.0, 0.0, 100.0]) / [1.0, -2.0, 0.5]
    assert_allclose(centred, np.repeat(centred[:, :1], 3, axis=1), atol=1e-9)


def test_mixed_rows_reach_where_no_line_between_two_rows_does():
    """Between three clusters, where lines cover the sides of a triangle."""
    rng = np.random.default_rng(0)
    centres = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    rows = centres[rng.integers(3, size=600)] + 0.01 * rng.normal(size=(600, 2))
    lines, others = (interpolate(rows, 2000, rng, extrapolation=0.3) for _ in range(2))
    mixed = mix_components(rows, 2000, rng)
    assert np.mean(nearest(lines, others, 0) > 0.1) < 0.01
    assert np.mean(nearest(lines, mixed, 0) > 0.1) > 0.2


@pytest.mark.parametrize("n_rows", [1, 2, 5])
def test_few_and_constant_rows_can_be_mixed(n_rows):
    rng = np.random.default_rng(0)
    rows = np.column_stack([np.arange(n_rows) + 0.5, np.full(n_rows, 7.0)])
    mixed = mix_components(rows, 50, rng)
    assert_allclose(mixed[:, 1], 7.0)
    assert np.all((mixed[:, 0] > -2) & (mixed[:, 0] < n_rows + 2))


def test_crossover_leaves_the_real_rows_and_jitter_stays_near_them():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 30))
    rows[:, 0] = rng.integers(2, size=400)
    others = {"search_rows": rows, "rng": rng}
    crossed, starts = crossover(rows, 100, 300, **others)
    assert crossed.shape == (300, 30)
    assert starts.max() < 100
    for column, values in zip(crossed.T, rows.T, strict=True):
        assert np.isin(column, values).all()
    real = nearest(rows, rows[:100], 1)
    assert nearest(rows, crossed, 0).mean() > 0.8 * real.mean()
    jittered, _ = jitter(rows, 100, 300, **others)
    assert nearest(rows, jittered, 0).mean() < 0.8 * real.mean()


def nearest(rows, queries, rank):
    """Return the distance of each query to its nearest row, or to the next."""
    return np.sort(np.linalg.norm(queries[:, None] - rows, axis=2), axis=1)[:, rank]


def make_rows(kind, rows, groups, rng):
    """Make 600 rows by one of the ways, with the groups of columns."""
    near = {"search_rows": rows, "rng": rng, "groups": groups}
    if kind == "interpolate":
        return interpolate(rows, 600, rng, groups=groups, extrapolation=0.3)
    if kind == "mix":
        return mix_components(rows, 600, rng, groups=groups)
    if kind == "near-border":
        return sample_near_border(rows, np.ones(len(rows)), 600, **near)
    return {"jitter": jitter, "crossover": crossover}[kind](rows, len(rows), 600, **near)[0]


@pytest.mark.parametrize("kind", ["interpolate", "mix", "jitter", "crossover", "near-border"])
def test_columns_of_a_group_come_from_one_row(kind):
    rng = np.random.default_rng(0)
    one_hot = np.eye(5)[rng.integers(5, size=300)]
    codes = rng.integers(40, size=(300, 1)) * [[1.0, -3.0]]
    rows = np.hstack([rng.normal(size=(300, 2)), one_hot, codes])
    groups = np.array([-1, -1, 0, 0, 0, 0, 0, 1, 1])
    made = make_rows(kind, rows, groups, rng)
    assert_array_equal(made[:, 2:7].sum(axis=1), 1.0)
    assert set(np.unique(made[:, 2:7])) == {0.0, 1.0}
    assert_array_equal(made[:, 8], -3.0 * made[:, 7])
    assert set(made[:, 7]) <= set(codes[:, 0])
    # The group of a row is not always that of the row with its first numbers.
    real = {row.tobytes() for row in rows.astype(np.float32)}
    assert sum(row.tobytes() not in real for row in made.astype(np.float32)) > 500
