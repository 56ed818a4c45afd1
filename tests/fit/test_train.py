"""Learning a map from what the source says: known answers, and maps that are good enough."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.datasets import make_blobs
from sklearn.svm import SVC

import limes
from limes._core.train import TrainedMap, train
from limes.fit.search import choose, should_stop
from limes.fit.synthetic import crossover, find_categories, jitter, sample_near_border
from limes.fit.train import count_samples, fit_inverse_temperature, fit_map
from limes.fit.transfer_set import ambiguity_of, build_transfer_set, extend_transfer_set
from limes.fit.validation import ValidationSet, importance_weights
from limes.model.model import Candidate
from limes.sources.base import SourceContext, as_source


def make_lessons(function, n_features=2, n_rows=2000):
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (n_rows, n_features))
    source = as_source(function, SourceContext(rows, None, False, rng))
    return source, rows, build_transfer_set(source, rows, rng=rng)


def decide(fitted, rows, blend):
    """Return the logits of a map by their definition, in NumPy."""
    slopes, offsets = fitted.linear_functions()
    scores = 0.5 * np.square(rows[:, None] - fitted.points).sum(axis=2)
    order = np.argsort(scores, axis=1)[:, : blend + 1]
    near = np.take_along_axis(scores, order, axis=1)
    shares = near[:, blend:] - near[:, :blend]
    shares /= shares.sum(axis=1, keepdims=True)
    values = np.einsum("nd,nkqd->nkq", rows, slopes[order[:, :blend]]) + offsets[order[:, :blend]]
    return np.einsum("nk,nkq->nq", shares, values)


def test_one_point_learns_a_linear_source():
    _, _, transfer_set = make_lessons(lambda X: X @ [1.0, -2.0] + 0.5)
    fitted = fit_map(transfer_set, n_points=1, blend=1, rng=np.random.default_rng(1))
    slopes, offsets = fitted.linear_functions()
    assert_allclose(slopes[0, 0], [2.0, -4.0], rtol=0.02)
    assert_allclose(offsets[0, 0], 1.0, rtol=0.03)


def test_a_few_points_learn_a_circle():
    _, rows, transfer_set = make_lessons(lambda X: 4 * (np.hypot(*X.T) - 0.6))
    fitted = fit_map(transfer_set, n_points=32, blend=4, rng=np.random.default_rng(1))
    is_outside = np.hypot(*rows.T) > 0.6
    assert np.mean((decide(fitted, rows, 4)[:, 0] > 0) == is_outside) > 0.99


def test_training_moves_points_downhill():
    _, _, transfer_set = make_lessons(lambda X: 4 * (np.hypot(*X.T) - 0.6))
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
                weights=np.ones(len(transfer_set.rows), np.float32),
                blend=3,
                n_epochs=6,
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
    limits = expit(8 * (np.hypot(rows[:, 0], rows[:, 1]) - 1.2))[:, None].astype(np.float32)
    crooked = rng.normal(size=(2, 6))
    losses = []
    for component_rate in (0.0, 0.01):
        start = TrainedMap.start(
            rng.normal(size=(16, 2)), n_features=6, n_outputs=1, radius=1.0, components=crooked
        )
        options = {"blend": 4, "n_epochs": 40, "n_batch": 128, "decay": 0.0, "seed": 1}
        rates = (0.02, 0.01, 0.005, component_rate)
        weights = np.ones(len(rows), np.float32)
        losses.append(train(start, rows, limits, weights=weights, rates=rates, **options))
    assert losses[1] < 0.5 * losses[0]
    # Four features that the border does not depend on are left out of the search.
    assert np.square(start.components[:, 2:]).sum() < 0.1 * np.square(start.components).sum()


def test_the_trainer_refuses_components_that_do_not_fit():
    start = TrainedMap.start(
        np.zeros((4, 2)), n_features=3, n_outputs=1, radius=1.0, components=np.zeros((2, 4))
    )
    rows, limits = np.zeros((10, 3), np.float32), np.zeros((10, 1), np.float32)
    options = {"blend": 2, "n_epochs": 1, "n_batch": 4, "decay": 0.0, "seed": 0}
    with pytest.raises(ValueError, match="components"):
        train(start, rows, limits, weights=np.ones(10, np.float32), rates=(0.1,) * 4, **options)


@pytest.mark.parametrize(
    "wrong",
    [
        {"targets": np.zeros((9, 1), np.float32)},
        {"targets": np.zeros((10, 1))},
        {"weights": np.zeros(3, np.float32)},
        {"rows": np.zeros((10, 3), np.float32)},
        {"n_batch": 0},
    ],
)
def test_the_trainer_refuses_arrays_that_do_not_fit(wrong):
    start = TrainedMap.start(np.zeros((4, 2)), n_features=2, n_outputs=1, radius=1.0)
    good = {
        "rows": np.zeros((10, 2), np.float32),
        "targets": np.zeros((10, 1), np.float32),
        "weights": np.ones(10, np.float32),
        "blend": 2,
        "n_epochs": 1,
        "n_batch": 4,
        "rates": (0.1, 0.1, 0.1, 0.1),
        "decay": 0.0,
        "seed": 0,
    }
    arguments = {**good, **wrong}
    with pytest.raises((ValueError, TypeError)):
        train(start, arguments.pop("rows"), arguments.pop("targets"), **arguments)


def test_wide_rows_are_searched_in_few_components():
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(3, 120))

    def decision(X):
        return X @ mixing[0] / np.square(mixing[0]).sum()

    rows = rng.normal(size=(600, 3)) @ mixing
    source = as_source(decision, SourceContext(rows, None, False, rng))
    transfer_set = build_transfer_set(source, rows, rng=rng)
    assert transfer_set.components.shape == (120, 32)
    fitted = fit_map(transfer_set, n_points=4, blend=2, rng=rng)
    slopes, _ = fitted.linear_functions()
    assert slopes.shape == (4, 1, 120)


def test_categories_stay_categories():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(3, size=500), rng.normal(size=500)]).astype(float)
    assert_array_equal(find_categories(rows), [True, False])
    new = sample_near_border(rows, np.ones(500), 1000, search=rows, rng=rng)
    assert set(np.unique(new[:, 0])) <= {0.0, 1.0, 2.0}
    assert len(np.unique(new[:, 1])) > 900


def test_new_rows_are_where_the_source_is_in_doubt():
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (2000, 2))
    ambiguity = (np.abs(rows[:, 0]) < 0.1).astype(float)
    new = sample_near_border(rows, ambiguity, 4000, search=rows, rng=rng)
    assert np.mean(np.abs(new[:, 0]) < 0.2) > 0.6


@pytest.mark.parametrize(("n_rows", "share"), [(4000, 0.3), (6000, 0.0)])
def test_few_rows_are_crossed_and_many_are_not(n_rows, share):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n_rows, 6)).astype(np.float32).astype(float)
    new = sample_near_border(rows, np.ones(n_rows), 2000, search=rows, rng=rng)
    is_mixed = np.all([np.isin(new[:, j], rows[:, j]) for j in range(6)], axis=0)
    # A step between a neighbour and itself is a row that there is.
    real = {row.tobytes() for row in rows.astype(np.float32)}
    is_crossed = is_mixed & [row.tobytes() not in real for row in new]
    assert_allclose(is_crossed.mean(), share, atol=0.005)


def test_new_rows_start_from_those_whose_doubt_is_given():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(0, 1, (50, 3)), rng.normal(40, 1, (500, 3))])
    new = sample_near_border(rows, np.ones(50), 1000, search=rows, rng=rng)
    assert np.abs(new).max() < 20


@pytest.mark.parametrize("n_features", [2, 60])
def test_lessons_are_added_to_as_if_they_had_been_there(n_features):
    source, rows, transfer_set = make_lessons(lambda X: X[:, 0] - 0.2, n_features, n_rows=500)
    more = np.random.default_rng(1).uniform(-1, 1, (100, n_features))
    both = extend_transfer_set(transfer_set, source, more, rng=np.random.default_rng(2))
    assert both.n_real == 600
    assert_allclose(both.rows[:600], np.concatenate([rows, more]), atol=1e-6)
    assert_allclose(
        both.n_synthetic / both.n_real, transfer_set.n_synthetic / transfer_set.n_real, rtol=0.01
    )
    assert_allclose(both.probabilities[:, 0], expit(2 * (both.rows[:, 0] - 0.2)), atol=1e-6)
    assert_allclose(
        both.ambiguity, 1 - np.abs(2 * both.probabilities[:, 0].astype(float) - 1), atol=1e-6
    )
    if n_features == 60:
        assert_allclose(both.search, both.rows @ transfer_set.components, atol=1e-4)


def test_categories_stay_categories_when_lessons_are_added():
    rng = np.random.default_rng(0)
    rows = rng.integers(3, size=(400, 2)) / 3 + 0.1
    source = as_source(lambda X: X.sum(axis=1) - 0.9, SourceContext(rows, None, False, rng))
    transfer_set = build_transfer_set(source, rows[:300], rng=rng)
    both = extend_transfer_set(transfer_set, source, rows[300:], rng=rng)
    assert len(np.unique(both.rows)) == 3


def test_doubt_is_one_on_the_border():
    assert_allclose(ambiguity_of(np.array([[0.5, 0.5], [1.0, 0.0]])), [1.0, 0.0])


def test_sharpness_makes_logits_into_the_sources_probabilities():
    logits = np.random.default_rng(0).normal(size=(500, 1))
    second = expit(3.0 * logits)
    assert_allclose(
        fit_inverse_temperature(logits, np.hstack([1 - second, second]), np.full(500, 1 / 500)),
        3.0,
        rtol=1e-3,
    )


def trial(cost, agreement, error=0.01):
    return Candidate("shared", cost, 4, cost, agreement, error)


def test_the_cheapest_within_an_error_of_the_best_is_chosen():
    assert choose([trial(1, 0.80), trial(8, 0.955), trial(32, 0.96), trial(128, 0.95)]) == 1


def test_a_hair_of_agreement_is_worth_nothing():
    trials = [trial(8, 0.9996, 1e-4), trial(32, 1.0, 1e-4)]
    assert choose(trials) == choose(trials, same=0.0003) == 1
    assert choose(trials, same=0.0005) == 0


def test_what_is_no_cheaper_is_not_tried():
    X, y = make_blobs(900, 30, centers=30, cluster_std=4.0, random_state=0)
    svc = SVC(C=10, gamma=0.01).fit(X, y % 3)
    tried = limes.accelerate(svc, X, random_state=0).candidates_
    n_vectors = len(svc.support_)
    for one in tried:
        information = n_vectors * (30 + 50) if one.n_borders <= 128 else n_vectors * 30 / 10
        assert one.cost <= max(5000, information)
    # Where no rung is left, the last is what costs a tenth of the source.
    largest = max(tried, key=lambda one: one.n_borders)
    assert 64 < largest.n_borders < 1024
    assert 0.9 < largest.cost / max(5000, n_vectors * 30 / 10) <= 1


def test_a_dear_trial_must_be_better_by_more():
    trials = [trial(8, 0.942), trial(32, 0.96), trial(128, 0.90)]
    assert choose(trials) == choose(trials, fair_cost=32) == 1
    assert choose(trials, fair_cost=31) == 0
    assert choose([trial(8, 0.938), *trials[1:]], fair_cost=31) == 1


def test_a_cheap_trial_that_misses_a_rare_class_is_not_chosen():
    trials = [trial(1, 0.990), trial(8, 0.995), trial(32, 0.996)]
    assert choose(trials) == 0
    assert choose(trials, balances=[(0.6, 0.05), (0.93, 0.05), (0.95, 0.05)]) == 1
    # Where nothing is good in both, the rare class decides.
    assert choose(trials[:2], balances=[(0.6, 0.05), (0.93, 0.05)]) == 1
    far = [trial(1, 0.99), trial(8, 0.90)]
    assert choose(far, balances=[(0.6, 0.05), (0.93, 0.05)]) == 1


def test_agreement_is_balanced_over_classes():
    class_index = np.repeat([0, 1], [90, 10])
    validation = ValidationSet.unweighted(np.zeros((100, 2)), class_index)
    agreement, error = validation.balanced_agreement(np.zeros(100, dtype=int))
    assert agreement == pytest.approx(0.5)
    assert error > validation.agreement(np.zeros(100, dtype=int))[1]
    assert validation.balanced_agreement(class_index)[0] == 1.0


def test_trying_ends_when_more_points_do_not_help():
    assert not should_stop([trial(1, 0.8), trial(8, 0.9), trial(32, 0.89)])
    assert should_stop([trial(1, 0.8), trial(8, 0.9), trial(32, 0.89), trial(128, 0.9)])
    assert should_stop([trial(1, 1.0)])


def test_agreement_has_an_error_even_where_it_is_perfect():
    validation = ValidationSet.unweighted(np.zeros((100, 2)), np.zeros(100, dtype=int))
    agreement, error = validation.agreement(np.zeros(100, dtype=int))
    assert agreement == pytest.approx(1.0)
    assert 0 < error < 0.02
    nobody = ValidationSet.unweighted(np.zeros((0, 2)), np.zeros(0, dtype=int))
    assert np.isnan(nobody.agreement(np.zeros(0, dtype=int))[0])


def test_a_few_heavy_judges_are_worth_less_than_many():
    class_index = np.zeros(100, dtype=int)
    weights = np.where(np.arange(100) < 5, 1.0, 1e-6)
    few = ValidationSet(np.zeros((100, 2)), class_index, weights / weights.sum())
    assert (
        few.agreement(class_index)[1]
        > 3 * ValidationSet.unweighted(few.rows, class_index).agreement(class_index)[1]
    )


def test_weights_give_judges_the_margins_of_rows_unseen():
    rng = np.random.default_rng(0)
    margins, unseen = rng.uniform(1, 5, 3000), rng.uniform(0, 3, 2000)
    margins = np.concatenate([margins, rng.uniform(0, 5, 3000)])
    weights = importance_weights(margins, unseen)
    assert weights.sum() == pytest.approx(1.0)
    for edge in (0.5, 1.0, 2.0):
        assert weights @ (margins < edge) == pytest.approx(np.mean(unseen < edge), abs=0.03)


def test_margins_that_cannot_be_matched_count_alike():
    assert_array_equal(importance_weights(np.full(50, 1.01), np.full(50, 1.0)), np.full(50, 1 / 50))


def test_a_class_without_weight_does_not_count():
    validation = ValidationSet(np.zeros((3, 1)), np.array([0, 0, 1]), np.array([0.5, 0.5, 0.0]))
    assert validation.balanced_agreement(np.array([0, 1, 0]))[0] == pytest.approx(0.5)
    assert validation.recall_by_class(np.array([0, 1, 0])).tolist() == [0.5]


def test_crosses_are_beside_no_row_and_twins_beside_their_own():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 30))
    rows[:, 0] = rng.integers(2, size=400)
    others = {"search": rows, "rng": rng}
    crosses, starts = crossover(rows, 100, 300, **others)
    assert crosses.shape == (300, 30)
    assert starts.max() < 100
    for column, values in zip(crosses.T, rows.T, strict=True):
        assert np.isin(column, values).all()
    usual = nearest(rows, rows[:100], 1)
    assert nearest(rows, crosses, 0).mean() > 0.8 * usual.mean()
    synthetic, _ = jitter(rows, 100, 300, **others)
    assert nearest(rows, synthetic, 0).mean() < 0.8 * usual.mean()


def nearest(rows, asked, rank):
    """Return how far the nearest row of each is, or the next."""
    return np.sort(np.linalg.norm(asked[:, None] - rows, axis=2), axis=1)[:, rank]


def test_where_all_rows_are_support_vectors_agreement_is_that_of_other_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 40))
    y = X[:, 0] + np.abs(X[:, 1]) - 0.8 + 1.5 * rng.normal(size=20_000) > 0
    svc = SVC(C=1, gamma=0.05).fit(X[:700], y[:700])
    assert len(svc.support_) > 0.95 * 700
    fast = limes.accelerate(svc, X[:700], n_borders=16, random_state=0)
    found = np.mean(fast.predict(X[700:]) == svc.predict(X[700:]))
    # Support vectors themselves agree on far fewer: the border bends round each.
    assert fast.agreement_ == pytest.approx(found, abs=0.05)


def test_maps_with_many_rows_a_point_are_trained_longer():
    _, rows, transfer_set = make_lessons(lambda X: X @ [1.0, -2.0] + 0.5)
    many = len(rows) // 64
    few, more = (count_samples(transfer_set, n, 7, 1e9) for n in (many, many + 1))
    assert few == 3 * more
