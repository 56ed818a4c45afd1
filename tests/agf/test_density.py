"""Adaptive densities: known densities, volumes, scales, coincident rows, bad parameters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from limes.agf import AGFDensity, NeighborsDensity


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def lattice(n_side, n_features):
    axes = np.meshgrid(*[np.arange(n_side)] * n_features)
    return np.stack(axes, axis=-1).reshape(-1, n_features).astype(float)


@pytest.mark.parametrize(("n_side", "n_features"), [(400, 1), (50, 2), (16, 3)])
@pytest.mark.parametrize("total_weight", [3.0, 7.5])
def test_agf_density_of_a_lattice_is_one_row_a_cell(n_side, n_features, total_weight):
    X = lattice(n_side, n_features)
    model = AGFDensity(total_weight=total_weight).fit(X)
    middle = np.full((1, n_features), n_side / 2 - 0.2)
    tolerance = 1e-9 if n_features == 1 else 2e-2
    assert_allclose(np.exp(model.score_samples(middle)) * len(X), 1, rtol=tolerance)


def test_neighbours_density_of_a_line_is_that_of_the_interval():
    model = NeighborsDensity(n_neighbors=3).fit([[0.0], [1.0], [2.0], [10.0]])
    # Half-lengths to the third row: from 1 to 0 or 2; from 6 to 1; from 10 to 1.
    expected = 3 / (4 * 2 * np.array([1.0, 5.0, 9.0]))
    assert_allclose(np.exp(model.score_samples([[1.0], [6.0], [10.0]])), expected)


@pytest.mark.parametrize(
    ("n_features", "volume"),
    [(1, 2), (2, np.pi), (3, 4 * np.pi / 3), (4, np.pi**2 / 2), (20, np.pi**10 / 3628800)],
)
def test_neighbours_density_divides_by_the_volume_of_a_ball(n_features, volume):
    X = np.vstack([np.zeros(n_features), 9 * np.ones(n_features)])
    row = np.zeros((1, n_features))
    row[0, 0] = 0.5
    density = np.exp(NeighborsDensity(n_neighbors=1).fit(X).score_samples(row))
    assert_allclose(density, 1 / (2 * volume * 0.5**n_features))


@pytest.mark.parametrize("kind", [AGFDensity, NeighborsDensity])
def test_the_density_of_a_normal_sample_is_normal(rng, kind):
    X = rng.normal(size=(20_000, 1))
    rows = np.linspace(-1.5, 1.5, 13)
    density = np.exp(kind().fit(X).score_samples(rows[:, None]))
    assert_allclose(density, norm.pdf(rows), rtol=0.25)
    assert_allclose(np.mean(density / norm.pdf(rows)), 1, rtol=0.05)


@pytest.mark.parametrize("kind", [AGFDensity, NeighborsDensity])
@pytest.mark.parametrize("power", [-600, -3, 200])
def test_densities_scale_with_the_units(rng, kind, power):
    X, rows = rng.normal(size=(60, 3)), rng.normal(size=(9, 3))
    plain = kind().fit(X).score_samples(rows)
    scaled = kind().fit(X * 2.0**power).score_samples(rows * 2.0**power)
    assert_allclose(scaled + 3 * power * np.log(2), plain, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("model", [AGFDensity(total_weight=3), NeighborsDensity(n_neighbors=3)])
def test_enough_coincident_rows_have_infinite_density(model):
    model.fit([[0.0], [0.0], [0.0], [1.0], [2.0]])
    log_densities = model.score_samples([[0.0], [0.5]])
    assert log_densities[0] == np.inf
    assert np.isfinite(log_densities[1])


def test_neighbours_restrict_the_adaptive_density(rng):
    X, rows = rng.normal(size=(80, 2)), rng.normal(size=(20, 2))
    all_rows = AGFDensity(total_weight=4).fit(X).score_samples(rows)
    same = AGFDensity(total_weight=4, n_neighbors=80).fit(X).score_samples(rows)
    fewer = AGFDensity(total_weight=4, n_neighbors=8).fit(X).score_samples(rows)
    assert_allclose(same, all_rows, rtol=1e-9)
    # Fewer rows need a wider kernel for the same sum.
    assert np.all(fewer < all_rows)


@pytest.mark.parametrize("kind", [AGFDensity, NeighborsDensity])
def test_far_away_densities_fall_and_stay_finite(rng, kind):
    model = kind().fit(rng.normal(size=(50, 2)))
    log_densities = model.score_samples([[0, 0], [1e2, 0], [1e6, 0], [1e100, 0]])
    assert np.all(np.isfinite(log_densities))
    assert np.all(np.diff(log_densities) < 0)


def test_the_score_is_the_log_likelihood(rng):
    X = rng.normal(size=(40, 2))
    model = AGFDensity().fit(X)
    assert_allclose(model.score(X), model.score_samples(X).sum())


@pytest.mark.parametrize("kind", [AGFDensity, NeighborsDensity])
def test_far_away_densities_fall_as_the_inverse_volume(rng, kind):
    model = kind().fit(rng.normal(size=(50, 3)))
    near, far = model.score_samples([[1e6, 0, 0], [2e6, 0, 0]])
    assert_allclose(near - far, 3 * np.log(2), rtol=1e-5)


def test_automatic_parameters_follow_from_the_rows():
    line, wide = np.arange(400.0)[:, None], np.random.default_rng(0).normal(size=(400, 36))
    assert AGFDensity().fit(line).total_weight_ == pytest.approx(20)
    assert NeighborsDensity().fit(line).n_neighbors_ == 20
    assert AGFDensity().fit(wide).total_weight_ == pytest.approx(400**0.1)
    assert AGFDensity(n_neighbors=6).fit(line).total_weight_ == 3


def test_float32_rows_give_what_float64_rows_give(rng):
    X = rng.normal(size=(50, 3)).astype(np.float32)
    for kind in (AGFDensity, NeighborsDensity):
        single, double = kind().fit(X), kind().fit(X.astype(float))
        assert_allclose(single.score_samples(X), double.score_samples(X.astype(float)))


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (AGFDensity(total_weight=4), ValueError, r"number of neighbours, which is 4, got 4"),
        (AGFDensity(total_weight=-1), ValueError, r"total_weight must be positive .* got -1"),
        (AGFDensity(n_neighbors=7), ValueError, r"n_neighbors must be from 1 .* got 7"),
        (NeighborsDensity(n_neighbors=7), ValueError, r"n_neighbors must be from 1 .* got 7"),
        (NeighborsDensity(n_neighbors=1.5), TypeError, r"whole number or 'auto', got 1.5"),
        (NeighborsDensity(n_neighbors=None), TypeError, r"whole number or 'auto', got None"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(model, error, message):
    with pytest.raises(error, match=message):
        model.fit([[0], [1], [2], [3]])
