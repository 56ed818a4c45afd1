"""Training of a map: known answers, reproducibility, odd sizes and refused arguments."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from limes._core import _native, simd_levels
from limes._core.train import CurvedInputs, TrainedMap, train
from limes.model.affine import AffineMap
from limes.model.curved_base import CurvedBase

SETTINGS = {"blend": 7, "n_batch": 256, "rates": (0.02, 0.01, 0.02, 0.004), "decay": 0.01}


def ball(n_rows=4000, n_features=5, seed=0):
    """Return rows, and the probability to be outside of a ball of half of them."""
    rows = np.random.default_rng(seed).normal(size=(n_rows, n_features)).astype(np.float32)
    logits = 3 * (np.square(rows).sum(axis=1) - n_features + 0.5)
    return rows, expit(logits)[:, None].astype(np.float32)


def curve_of(rows, shape, **options):
    return CurvedInputs.from_rows(shape, rows, center=rows.mean(axis=0), scale=1.0, **options)


def one_point(rows, n_outputs=1, curved=None):
    zero = np.zeros((1, rows.shape[1]))
    sizes = {"n_features": rows.shape[1], "n_outputs": n_outputs, "radius": 1.0}
    return TrainedMap.start(zero, **sizes, curved=curved)


def decide(trained, rows):
    """Return the values of a map of one point by what it is exported as."""
    slopes, offsets = trained.linear_functions()
    values = rows @ slopes[0].T + offsets[0]
    coefficients = trained.curve_coefficients()
    if coefficients is None:
        return values
    curved = trained.curved
    matrix = curved.scale * np.eye(len(curved.center))
    if curved.directions is not None:
        matrix = curved.directions.T.astype(float)
    preprocessing = AffineMap(curved.center.astype(float), matrix)
    return CurvedBase(preprocessing, *coefficients, decay=curved.decay).values(rows, values)


@pytest.mark.parametrize("shape", ["envelope", "diagonal", "quadratic"])
def test_a_curved_base_learns_a_ball_that_a_linear_one_cannot(shape):
    rows, targets = ball()
    is_outside = targets[:, 0] > 0.5
    agreements = []
    for curved in (None, curve_of(rows, shape)):
        trained = one_point(rows, curved=curved)
        train(trained, rows, targets, n_samples=200_000, seed=1, **SETTINGS)
        agreements.append(np.mean((decide(trained, rows)[:, 0] > 0) == is_outside))
    assert agreements[0] < 0.7
    assert agreements[1] > 0.97


@pytest.mark.parametrize("n_directions", [None, 3])
@pytest.mark.parametrize("shape", ["linear", "envelope", "diagonal", "quadratic"])
def test_coefficients_give_the_values_of_the_standardised_inputs(shape, n_directions):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 5)).astype(np.float32)
    directions = None if n_directions is None else rng.normal(size=(n_directions, 5))
    curved = curve_of(rows, shape, directions=directions)
    trained = one_point(rows, 3, curved)
    trained.base_slopes[:] = rng.normal(size=trained.base_slopes.shape)
    trained.base_offsets[:] = rng.normal(size=3)
    inputs = (curved.raw(rows) - curved.means) * curved.inverse_deviations
    expected = np.hstack([rows, inputs]) @ trained.base_slopes.T + trained.base_offsets
    assert_allclose(decide(trained, rows), expected, rtol=1e-4, atol=1e-4)


def test_inputs_are_standardised_over_the_rows_and_constant_ones_are_off():
    rows = np.random.default_rng(0).normal(size=(5000, 3)).astype(np.float32)
    rows[:, 1] = 2.0
    curved = curve_of(rows, "quadratic")
    inputs = (curved.raw(rows) - curved.means) * curved.inverse_deviations
    is_on = curved.inverse_deviations > 0
    # v_1 is zero, as are its three products.
    assert np.sum(~is_on) == 4
    assert_allclose(inputs[:, is_on].mean(axis=0), 0, atol=1e-4)
    assert_allclose(inputs[:, is_on].std(axis=0), 1, rtol=1e-3)
    assert not inputs[:, ~is_on].any()


def test_continuing_a_training_lowers_the_loss():
    rows, targets = ball()
    start = TrainedMap.start(rows[:32], n_features=5, n_outputs=1, radius=1.0)
    first = train(start, rows, targets, n_samples=8000, seed=1, **SETTINGS)
    assert train(start, rows, targets, n_samples=50_000, seed=2, **SETTINGS) < 0.8 * first


def test_the_same_seed_gives_the_same_map_to_the_last_bit():
    rows, targets = ball()
    maps = []
    for seed in (1, 1, 2):
        curved = curve_of(rows, "quadratic")
        maps.append(
            TrainedMap.start(rows[:32], n_features=5, n_outputs=1, radius=1.0, curved=curved)
        )
        train(maps[-1], rows, targets, n_samples=5000, seed=seed, **SETTINGS)
    for name in ("points", "slopes", "offsets", "base_slopes", "base_offsets"):
        assert_array_equal(getattr(maps[0], name), getattr(maps[1], name))
    assert np.any(maps[0].slopes != maps[2].slopes)


def test_every_level_trains_the_same_map():
    rows, targets = ball(300)
    points = []
    for level in simd_levels():
        start = TrainedMap.start(rows[:9], n_features=5, n_outputs=1, radius=1.0)
        arrays = (start.points, start.slopes, start.offsets, start.base_slopes, start.base_offsets)
        arguments = (rows, targets, start.anchors, None, *arrays, None, 3, 1.0, 600, 50)
        _native.train(*arguments, (0.01,) * 4, 0.0, 0, level)
        points.append(start.points)
    for others in points[1:]:
        assert_allclose(others, points[0], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("n_rows", [1, 2, 33, 257])
@pytest.mark.parametrize("n_batch", [1, 7, 100, 256, 1000])
@pytest.mark.parametrize("n_outputs", [1, 3, 40])
def test_any_number_of_rows_and_any_batch_is_trained(n_rows, n_batch, n_outputs):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n_rows, 3)).astype(np.float32)
    targets = np.full((n_rows, n_outputs), 1 / max(n_outputs, 2), np.float32)
    curved = curve_of(rows, "quadratic")
    start = TrainedMap.start(
        rng.normal(size=(8, 3)), n_features=3, n_outputs=n_outputs, radius=1.0, curved=curved
    )
    loss = train(start, rows, targets, n_samples=300, seed=0, **{**SETTINGS, "n_batch": n_batch})
    # Uniform targets are what a map predicts that is zero everywhere.
    assert_allclose(loss, np.log(max(n_outputs, 2)), rtol=1e-3)


def test_samples_are_rounded_up_to_whole_batches():
    rows, targets = ball(1000)
    maps = [one_point(rows) for _ in range(3)]
    for trained, n_samples in zip(maps, (1, 256, 257), strict=True):
        train(trained, rows, targets, n_samples=n_samples, seed=0, **SETTINGS)
    assert_array_equal(maps[0].base_slopes, maps[1].base_slopes)
    assert np.any(maps[1].base_slopes != maps[2].base_slopes)


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e38])
@pytest.mark.parametrize("name", ["rows", "targets", "points"])
def test_training_survives_any_number(name, number):
    rows, targets = ball(500)
    start = TrainedMap.start(rows[:20], n_features=5, n_outputs=1, radius=1.0)
    {"rows": rows, "targets": targets, "points": start.points}[name][::7] = number
    train(start, rows, targets, n_samples=2000, seed=0, **SETTINGS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": "cubic"}, "shape must be"),
        ({"center": np.zeros(4, np.float32)}, "center must have shape"),
        ({"means": np.zeros(3, np.float32)}, "means must have shape"),
        ({"inverse_deviations": np.zeros(7)}, "inverse_deviations must be float32"),
        ({"directions": np.zeros((2, 4), np.float32)}, "directions must have shape"),
        ({"directions": np.zeros(5, np.float32)}, "directions must have two dimensions"),
        ({"decay": -1.0}, "decay of curved inputs"),
    ],
)
def test_curved_inputs_that_do_not_fit_are_refused(change, message):
    rows, targets = ball(100)
    start = one_point(rows, curved=curve_of(rows, "envelope"))
    wrong = replace(start, curved=replace(start.curved, **change))
    with pytest.raises((ValueError, TypeError), match=message):
        train(wrong, rows, targets, n_samples=100, seed=0, **SETTINGS)


def test_base_slopes_need_a_column_for_each_curved_input():
    rows, targets = ball(100)
    wrong = replace(one_point(rows), curved=curve_of(rows, "diagonal"))
    with pytest.raises(ValueError, match="base_slopes must have shape"):
        train(wrong, rows, targets, n_samples=100, seed=0, **SETTINGS)
