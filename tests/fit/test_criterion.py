"""Expected loss of skill and of Brier score: known answers and their errors."""

import numpy as np
import pytest

from limes.fit.evaluation import SkillCriterion
from limes.fit.validation import ValidationSet
from limes.scores import brier_score, uncertainty_coefficient


def make_criterion(calibrated_probabilities, weights=None, origin=None):
    """Return the criterion of a source that predicts the likeliest class."""
    calibrated_probabilities = np.asarray(calibrated_probabilities, dtype=float)
    n_rows = len(calibrated_probabilities)
    weights = np.full(n_rows, 1.0 / n_rows) if weights is None else weights
    validation = ValidationSet(
        np.zeros((n_rows, 1)), calibrated_probabilities.argmax(axis=1), weights, origin
    )
    return SkillCriterion(validation, calibrated_probabilities)


def draw_probabilities(n_rows, n_classes, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(n_classes, 0.4), size=n_rows)


def disagree(criterion, share, seed=1):
    """Return the source's labels, a share of them exchanged for the second likeliest class."""
    rng = np.random.default_rng(seed)
    second = np.argsort(criterion.calibrated_probabilities, axis=1)[:, -2]
    return np.where(rng.random(len(second)) < share, second, criterion.validation.class_index)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_skill_loss_is_that_of_classes_drawn_from_the_probabilities(n_classes):
    criterion = make_criterion(draw_probabilities(200_000, n_classes))
    class_index = disagree(criterion, 0.2)
    rng = np.random.default_rng(2)
    true = (criterion.calibrated_probabilities.cumsum(axis=1) < rng.random((200_000, 1))).sum(
        axis=1
    )
    source_skill, skill = (
        uncertainty_coefficient(true, labels)
        for labels in (criterion.validation.class_index, class_index)
    )
    assert criterion.skill == pytest.approx(source_skill, abs=0.01)
    assert criterion.skill_loss(class_index)[0] == pytest.approx(source_skill - skill, abs=0.01)
    assert criterion.skill_loss(class_index)[0] > 0.02


def test_the_sources_own_labels_lose_no_skill():
    criterion = make_criterion(draw_probabilities(500, 3))
    assert criterion.skill_loss(criterion.validation.class_index) == (0.0, 0.0)
    assert criterion.brier_increase(criterion.calibrated_probabilities) == 0.0
    assert criterion.keeps_skill(criterion.validation.class_index)
    assert criterion.keeps_brier(criterion.calibrated_probabilities)


def test_another_label_where_the_source_is_ambiguous_loses_little_skill():
    unambiguous, ambiguous = [[0.98, 0.02], [0.02, 0.98]], [[0.501, 0.499], [0.499, 0.501]]
    criterion = make_criterion(np.repeat(unambiguous + ambiguous, 250, axis=0))
    changed_ambiguous, changed_unambiguous = (
        criterion.validation.class_index.copy(),
        criterion.validation.class_index.copy(),
    )
    changed_ambiguous[700:800] = 1 - changed_ambiguous[700:800]
    changed_unambiguous[200:300] = 1 - changed_unambiguous[200:300]
    assert abs(criterion.skill_loss(changed_ambiguous)[0]) < 0.002
    assert criterion.skill_loss(changed_unambiguous)[0] > 0.1


@pytest.mark.parametrize("has_origin", [False, True])
def test_the_error_of_a_skill_loss_is_its_spread_over_other_rows(has_origin):
    losses, errors = [], []
    for seed in range(200):
        calibrated_probabilities = draw_probabilities(100 if has_origin else 400, 3, seed)
        origin = None
        if has_origin:
            calibrated_probabilities, origin = (
                np.repeat(calibrated_probabilities, 4, axis=0),
                np.repeat(np.arange(100), 4),
            )
        criterion = make_criterion(calibrated_probabilities, origin=origin)
        drawn = np.random.default_rng(seed).random(
            len(calibrated_probabilities) if origin is None else 100
        )
        is_changed = (drawn if origin is None else drawn[origin]) < 0.3
        second = np.argsort(calibrated_probabilities, axis=1)[:, -2]
        loss, error = criterion.skill_loss(
            np.where(is_changed, second, criterion.validation.class_index)
        )
        losses.append(loss)
        errors.append(error)
    assert np.mean(errors) == pytest.approx(np.std(losses), rel=0.2)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_brier_increase_is_that_of_classes_drawn_from_the_probabilities(n_classes):
    criterion = make_criterion(draw_probabilities(200_000, n_classes))
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


def test_a_source_with_one_class_only_has_no_skill():
    criterion = make_criterion(np.tile([1.0, 0.0], (50, 1)))
    class_index = np.zeros(50, dtype=int)
    assert criterion.skill == 0.0
    assert criterion.skill_loss(class_index) == (0.0, 0.0)
    assert not criterion.keeps_skill(class_index)


def test_a_map_that_never_predicts_a_rare_class_is_not_good_enough():
    calibrated_probabilities = np.repeat(
        [[0.9, 0.09, 0.01], [0.1, 0.89, 0.01], [0.34, 0.32, 0.34]], 999, axis=0
    )
    calibrated_probabilities = np.concatenate(
        [calibrated_probabilities[:1998], calibrated_probabilities[-1:]]
    )
    calibrated_probabilities[-1] = [0.33, 0.33, 0.34]
    criterion = make_criterion(calibrated_probabilities)
    class_index = np.minimum(criterion.validation.class_index, 1)
    assert abs(criterion.skill_loss(class_index)[0]) < 0.001
    assert not criterion.keeps_skill(class_index)


def test_a_map_that_is_much_better_than_the_source_is_not_good_enough():
    # The source predicts the first class unless the second is nearly certain.
    second = np.concatenate([np.full(600, 0.05), np.full(300, 0.8), np.full(100, 0.95)])
    validation = ValidationSet.unweighted(np.zeros((1000, 1)), (second > 0.9).astype(int))
    criterion = SkillCriterion(validation, np.column_stack([1 - second, second]))
    class_index = (second > 0.5).astype(int)
    assert criterion.skill_loss(class_index)[0] < -0.1
    assert not criterion.keeps_skill(class_index)


def test_little_may_be_lost_where_the_source_has_little_skill():
    rng = np.random.default_rng(0)
    second = 0.5 + 0.05 * rng.choice([-1, 1], size=20_000)
    criterion = make_criterion(np.column_stack([1 - second, second]))
    class_index = disagree(criterion, 0.1)
    assert criterion.skill_loss(class_index)[0] < 0.004
    assert not criterion.keeps_skill(class_index)
