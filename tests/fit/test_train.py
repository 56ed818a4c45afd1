"""Training a map on the source's probabilities: known answers, and refused arguments."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, log_softmax

from limes._core.train import TrainedMap, train
from limes.fit.train import calibrate, fit_base, fit_inverse_temperature, to_border_map
from limes.fit.transfer_set import TransferSet
from limes.model.border_map import BorderMap
from tests.fit.cases import make_transfer_set, train_map


def decide(map_, rows, blend):
    """Return the logits of a map by their definition, in NumPy."""
    distances = 0.5 * np.square(rows[:, None] - map_.points).sum(axis=2)
    order = np.argsort(distances, axis=1)[:, : blend + 1]
    near = np.take_along_axis(distances, order, axis=1)
    weights = near[:, blend:] - near[:, :blend]
    weights /= weights.sum(axis=1, keepdims=True)
    nearest = order[:, :blend]
    values = np.einsum("nd,nkqd->nkq", rows, map_.slopes[nearest]) + map_.offsets[nearest]
    return np.einsum("nk,nkq->nq", weights, values)


def test_one_point_learns_a_linear_source():
    _, _, transfer_set = make_transfer_set(lambda X: X @ [1.0, -2.0] + 0.5)
    map_ = to_border_map(fit_base(transfer_set, "linear")[0], 1)
    assert_allclose(map_.slopes[0, 0], [2.0, -4.0], rtol=0.02)
    assert_allclose(map_.offsets[0, 0], 1.0, rtol=0.03)


def test_columns_that_rarely_differ_get_no_large_slopes():
    """Two rows of 16 000 that a sample may leave out, in columns that are constant otherwise."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(16_000, 6))
    rows[:, 3:] = -0.01
    rows[[101, 203], 3:] = [[90, 80, 70], [60, 80, 90]]
    probabilities = expit(rows[:, 0] + 0.02 * rows[:, 3])
    transfer_set = TransferSet(
        rows.astype(np.float32),
        probabilities[:, None].astype(np.float32),
        np.ones(len(rows)),
        components=None,
        explained_share=1.0,
        directions=None,
        n_real=len(rows),
        sharpening=1.0,
    )
    base, _ = fit_base(transfer_set, "linear")
    slopes, offsets = base.linear_functions()
    assert_allclose(slopes[0, 0, :3], [1, 0, 0], atol=0.05)
    assert np.abs(slopes[0, 0, 3:]).max() < 1
    assert abs(offsets[0, 0]) < 0.05


def test_a_few_points_learn_a_circle():
    _, rows, transfer_set = make_transfer_set(lambda X: 4 * (np.hypot(*X.T) - 0.6))
    map_ = train_map(transfer_set, n_points=32, blend=4, rng=np.random.default_rng(1))
    is_outside = np.hypot(*rows.T) > 0.6
    assert np.mean((decide(map_, rows, 4)[:, 0] > 0) == is_outside) > 0.99


def test_training_the_points_lowers_the_loss():
    _, _, transfer_set = make_transfer_set(lambda X: 4 * (np.hypot(*X.T) - 0.6))
    rng = np.random.default_rng(0)
    losses = []
    for point_rate in (0.0, 0.01):
        start = TrainedMap.start(
            np.random.default_rng(5).uniform(-1, 1, (6, 2)), n_features=2, n_outputs=1, radius=1.0
        )
        losses.append(
            train(
                start,
                transfer_set.rows,
                transfer_set.probabilities,
                blend=3,
                n_samples=6 * len(transfer_set.rows),
                n_batch=256,
                rates=(0.02, point_rate, 0.005, 0.0),
                decay=0.01,
                seed=int(rng.integers(100)),
            )
        )
    assert losses[1] < losses[0]


def test_training_turns_components_to_where_the_border_bends():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4000, 6)).astype(np.float32)
    probabilities = expit(8 * (np.hypot(rows[:, 0], rows[:, 1]) - 1.2))[:, None].astype(np.float32)
    random_components = rng.normal(size=(2, 6))
    losses = []
    for component_rate in (0.0, 0.01):
        start = TrainedMap.start(
            rng.normal(size=(16, 2)),
            n_features=6,
            n_outputs=1,
            radius=1.0,
            components=random_components,
        )
        options = {"blend": 4, "n_samples": 160_000, "n_batch": 128, "decay": 0.0, "seed": 1}
        rates = (0.02, 0.01, 0.005, component_rate)
        losses.append(train(start, rows, probabilities, rates=rates, **options))
    assert losses[1] < 0.5 * losses[0]
    # Four features that the border does not depend on are left out of the search.
    assert np.square(start.components[:, 2:]).sum() < 0.1 * np.square(start.components).sum()


def test_the_trainer_refuses_components_that_do_not_fit():
    start = TrainedMap.start(
        np.zeros((4, 2)), n_features=3, n_outputs=1, radius=1.0, components=np.zeros((2, 4))
    )
    rows, probabilities = np.zeros((10, 3), np.float32), np.zeros((10, 1), np.float32)
    options = {"blend": 2, "n_samples": 10, "n_batch": 4, "decay": 0.0, "seed": 0}
    with pytest.raises(ValueError, match="components"):
        train(start, rows, probabilities, rates=(0.1,) * 4, **options)


@pytest.mark.parametrize(
    "wrong",
    [
        {"targets": np.zeros((9, 1), np.float32)},
        {"targets": np.zeros((10, 1))},
        {"rows": np.zeros((10, 3), np.float32)},
        {"n_batch": 0},
        {"n_samples": 0},
    ],
)
def test_the_trainer_refuses_arrays_that_do_not_fit(wrong):
    start = TrainedMap.start(np.zeros((4, 2)), n_features=2, n_outputs=1, radius=1.0)
    good = {
        "rows": np.zeros((10, 2), np.float32),
        "targets": np.zeros((10, 1), np.float32),
        "blend": 2,
        "n_samples": 10,
        "n_batch": 4,
        "rates": (0.1, 0.1, 0.1, 0.1),
        "decay": 0.0,
        "seed": 0,
    }
    arguments = {**good, **wrong}
    with pytest.raises((ValueError, TypeError)):
        train(start, arguments.pop("rows"), arguments.pop("targets"), **arguments)


def test_inverse_temperature_turns_logits_into_the_sources_probabilities():
    logits = np.random.default_rng(0).normal(size=(500, 1))
    second = expit(3.0 * logits)
    probabilities, both = np.hstack([1 - second, second]), np.hstack([0 * logits, logits])

    def loss(factor):
        return -np.sum(probabilities * log_softmax(factor * both, axis=1))

    assert_allclose(fit_inverse_temperature(loss), 3.0, rtol=1e-3)


def test_a_calibrated_map_has_the_sources_probabilities():
    rows = np.random.default_rng(0).normal(size=(500, 1))
    probability = expit(3.0 * rows[:, 0])
    line = BorderMap(np.zeros((1, 1)), np.ones((1, 1, 1)), np.zeros((1, 1)))
    calibrated = calibrate(
        line, rows, np.column_stack([1 - probability, probability]), np.full(500, 1 / 500)
    )
    # A decision value is half a logit.
    assert_allclose(calibrated.decide(rows)[:, 0], 1.5 * rows[:, 0], rtol=1e-3)


@pytest.mark.parametrize("shape", ["envelope", "diagonal", "quadratic"])
def test_a_curved_base_alone_learns_a_sphere(shape):
    radius = 1.2
    _, rows, transfer_set = make_transfer_set(
        lambda X: 4 * (np.linalg.norm(X, axis=1) - radius), n_features=5
    )
    losses = {name: fit_base(transfer_set, name)[1] for name in ("linear", shape)}
    assert losses[shape] < 0.8 * losses["linear"]
    map_ = to_border_map(fit_base(transfer_set, shape)[0], 1)
    is_outside = np.linalg.norm(rows, axis=1) > radius
    assert np.mean((map_.decide(rows)[:, 0] > 0) == is_outside) > 0.97


def test_only_the_quadratic_base_learns_a_rotated_saddle():
    _, rows, transfer_set = make_transfer_set(lambda X: 5 * X[:, 0] * X[:, 1], n_features=4)
    agreements = [
        np.mean(
            (to_border_map(fit_base(transfer_set, shape)[0], 1).decide(rows)[:, 0] > 0)
            == (rows[:, 0] * rows[:, 1] > 0)
        )
        for shape in ("linear", "diagonal", "quadratic")
    ]
    assert max(agreements[:2]) < 0.7
    assert agreements[2] > 0.97


def test_the_search_behind_components_of_a_curved_base_predicts_raw_rows():
    _, rows, transfer_set = make_transfer_set(lambda X: X[:, 0] * X[:, 1], 60, n_rows=500)
    map_ = train_map(
        transfer_set,
        n_points=4,
        blend=2,
        rng=np.random.default_rng(0),
        shape="quadratic",
        n_samples=20_000,
    )
    assert map_.curve.n_terms == 16
    assert np.mean((map_.decide(rows)[:, 0] > 0) == (rows[:, 0] * rows[:, 1] > 0)) > 0.8
