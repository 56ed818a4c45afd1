"""What a map puts at stake: known answers, stated errors, and what `auto` makes of it."""

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.svm import SVC

import limes
from limes.fit.criterion import SkillCriterion
from limes.fit.search import choose
from limes.fit.validation import ValidationSet
from limes.model.model import Candidate
from limes.scores import brier_score, uncertainty_coefficient


def make_stakes(calibrated_probabilities, weights=None, groups=None):
    """Return the stakes of a source that names the likeliest class."""
    calibrated_probabilities = np.asarray(calibrated_probabilities, dtype=float)
    n_rows = len(calibrated_probabilities)
    weights = np.full(n_rows, 1.0 / n_rows) if weights is None else weights
    validation = ValidationSet(
        np.zeros((n_rows, 1)), calibrated_probabilities.argmax(axis=1), weights, groups
    )
    return SkillCriterion(validation, calibrated_probabilities)


def draw_forecasts(n_rows, n_classes, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(n_classes, 0.4), size=n_rows)


def disagree(criterion, share, seed=1):
    """Return the source's answers, some of them exchanged for the next likely class."""
    rng = np.random.default_rng(seed)
    second = np.argsort(criterion.calibrated_probabilities, axis=1)[:, -2]
    return np.where(rng.random(len(second)) < share, second, criterion.validation.class_index)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_what_is_lost_is_what_true_classes_drawn_from_the_forecasts_lose(n_classes):
    criterion = make_stakes(draw_forecasts(200_000, n_classes))
    class_index = disagree(criterion, 0.2)
    rng = np.random.default_rng(2)
    true = (criterion.calibrated_probabilities.cumsum(axis=1) < rng.random((200_000, 1))).sum(
        axis=1
    )
    own, other = (
        uncertainty_coefficient(true, named)
        for named in (criterion.validation.class_index, class_index)
    )
    assert criterion.skill == pytest.approx(own, abs=0.01)
    assert criterion.lost(class_index)[0] == pytest.approx(own - other, abs=0.01)
    assert criterion.lost(class_index)[0] > 0.02


def test_nothing_is_lost_by_the_sources_own_answers():
    criterion = make_stakes(draw_forecasts(500, 3))
    assert criterion.lost(criterion.validation.class_index) == (0.0, 0.0)
    assert criterion.brier_increase(criterion.calibrated_probabilities) == 0.0
    assert criterion.is_good_enough(
        criterion.validation.class_index, criterion.calibrated_probabilities
    )


def test_another_answer_where_the_source_is_in_doubt_costs_next_to_nothing():
    sure, doubtful = [[0.98, 0.02], [0.02, 0.98]], [[0.501, 0.499], [0.499, 0.501]]
    criterion = make_stakes(np.repeat(sure + doubtful, 250, axis=0))
    in_doubt, in_sureness = (
        criterion.validation.class_index.copy(),
        criterion.validation.class_index.copy(),
    )
    in_doubt[700:800] = 1 - in_doubt[700:800]
    in_sureness[200:300] = 1 - in_sureness[200:300]
    assert abs(criterion.lost(in_doubt)[0]) < 0.002
    assert criterion.lost(in_sureness)[0] > 0.1


@pytest.mark.parametrize("is_grouped", [False, True])
def test_the_error_of_a_loss_is_the_spread_of_losses_on_other_rows(is_grouped):
    losses, errors = [], []
    for seed in range(200):
        calibrated_probabilities = draw_forecasts(100 if is_grouped else 400, 3, seed)
        groups = None
        if is_grouped:
            calibrated_probabilities, groups = (
                np.repeat(calibrated_probabilities, 4, axis=0),
                np.repeat(np.arange(100), 4),
            )
        criterion = make_stakes(calibrated_probabilities, groups=groups)
        drawn = np.random.default_rng(seed).random(
            len(calibrated_probabilities) if groups is None else 100
        )
        spare = (drawn if groups is None else drawn[groups]) < 0.3
        second = np.argsort(calibrated_probabilities, axis=1)[:, -2]
        lost, error = criterion.lost(np.where(spare, second, criterion.validation.class_index))
        losses.append(lost)
        errors.append(error)
    assert np.mean(errors) == pytest.approx(np.std(losses), rel=0.2)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_blur_is_what_the_brier_score_gains(n_classes):
    criterion = make_stakes(draw_forecasts(200_000, n_classes))
    blurred = 0.8 * criterion.calibrated_probabilities + 0.2 / n_classes
    rng = np.random.default_rng(3)
    true = (criterion.calibrated_probabilities.cumsum(axis=1) < rng.random((200_000, 1))).sum(
        axis=1
    )
    names = np.arange(n_classes)
    gained = brier_score(true, blurred, classes=names) - brier_score(
        true, criterion.calibrated_probabilities, classes=names
    )
    scale = 1.0 if n_classes == 2 else 0.5
    assert criterion.brier_increase(blurred) == pytest.approx(scale * gained, rel=0.1)


def test_a_source_that_knows_one_class_only_has_no_skill_to_keep():
    criterion = make_stakes(np.tile([1.0, 0.0], (50, 1)))
    class_index = np.zeros(50, dtype=int)
    assert criterion.skill == 0.0
    assert criterion.lost(class_index) == (0.0, 0.0)
    assert not criterion.is_good_enough(class_index, criterion.calibrated_probabilities)


def test_a_map_that_forgets_a_rare_class_does_not_keep_the_skill():
    calibrated_probabilities = np.repeat(
        [[0.9, 0.09, 0.01], [0.1, 0.89, 0.01], [0.34, 0.32, 0.34]], 999, axis=0
    )
    calibrated_probabilities = np.concatenate(
        [calibrated_probabilities[:1998], calibrated_probabilities[-1:]]
    )
    calibrated_probabilities[-1] = [0.33, 0.33, 0.34]
    criterion = make_stakes(calibrated_probabilities)
    class_index = np.minimum(criterion.validation.class_index, 1)
    assert abs(criterion.lost(class_index)[0]) < 0.001
    assert not criterion.is_good_enough(class_index, criterion.calibrated_probabilities)


def test_a_map_that_is_much_better_is_another_classifier():
    # The source names the first class wherever it is not sure of the second.
    second = np.concatenate([np.full(600, 0.05), np.full(300, 0.8), np.full(100, 0.95)])
    validation = ValidationSet.unweighted(np.zeros((1000, 1)), (second > 0.9).astype(int))
    criterion = SkillCriterion(validation, np.column_stack([1 - second, second]))
    class_index = (second > 0.5).astype(int)
    assert criterion.lost(class_index)[0] < -0.1
    assert not criterion.is_good_enough(class_index, criterion.calibrated_probabilities)


def test_where_the_source_has_little_skill_little_may_be_lost():
    rng = np.random.default_rng(0)
    second = 0.5 + 0.05 * rng.choice([-1, 1], size=20_000)
    criterion = make_stakes(np.column_stack([1 - second, second]))
    class_index = disagree(criterion, 0.1)
    assert criterion.lost(class_index)[0] < 0.004
    assert not criterion.is_good_enough(class_index, criterion.calibrated_probabilities)


def trial(cost, agreement):
    return Candidate("shared", cost, 7, cost, agreement, 0.001)


def test_the_cheapest_that_keeps_the_skill_is_chosen():
    trials = [trial(1, 0.90), trial(8, 0.97), trial(32, 0.98), trial(128, 0.999)]
    assert choose(trials) == 3
    assert choose(trials, kept=[False, False, True, True]) == 2
    assert choose(trials, kept=[False] * 4) == 3
    # An agreement that is asked for goes before.
    assert choose(trials, min_agreement=0.97, kept=[False, False, True, True]) == 1
    assert choose(trials, min_agreement=0.999, kept=[True] * 4) == 3


def test_auto_stops_where_skill_is_kept_and_tells_what_is_lost():
    X, y = make_moons(4000, noise=0.25, random_state=0)
    svc = SVC(C=10, gamma=2).fit(X, y)
    fast = limes.accelerate(svc, X, random_state=0)
    chosen = next(one for one in fast.candidates_ if one.is_selected)
    assert chosen.lost <= 0.004
    assert chosen.n_borders <= 64
    assert [one.cost for one in fast.candidates_] == sorted(one.cost for one in fast.candidates_)
    # A single linear function is not enough for two moons, and is known to lose more.
    assert fast.candidates_[0].n_borders == 1
    assert fast.candidates_[0].lost > 0.05
    unseen, true = make_moons(20_000, noise=0.25, random_state=1)
    lost = [uncertainty_coefficient(true, one.predict(unseen)) for one in (svc, fast)]
    assert lost[0] - lost[1] < 0.01
