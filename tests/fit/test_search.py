"""The last training: with all rows where they are few, and only if that is no worse."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import shuffle

import limes
from limes.fit import search
from limes.fit.config import DEFAULTS, SEARCH_BUDGET, FitOptions, Limits
from limes.fit.data import FitData
from limes.fit.search import CandidateTrainer
from limes.fit.validation import ValidationSet
from limes.sources.base import SourceContext, as_source


def seed():
    """Return the same seed each time: drawing from a seed changes it."""
    return np.random.SeedSequence(5)


def make_trainer(n_held_out=100, min_agreement=None):
    """Return the trainer of a curved border, with rows held out."""
    X, y = make_classification(500, 6, n_informative=4, random_state=0)
    rng = np.random.default_rng(0)
    source = as_source(SVC(C=10).fit(X, y), SourceContext(X, y, False, rng))
    held_out_rows = X[:n_held_out]
    data = FitData(X[n_held_out:], y[n_held_out:], None, held_out_rows)
    validation = ValidationSet.unweighted(held_out_rows, source.predict_index(held_out_rows))
    options = FitOptions(None, "auto", None, 1e-6, limits=Limits(min_agreement))
    return CandidateTrainer(source, data, validation, validation, options, rng)


def change_search(monkeypatch, **values):
    """Give the search other tuned values."""
    changed = replace(DEFAULTS, search=replace(DEFAULTS.search, **values))
    monkeypatch.setattr(search, "DEFAULTS", changed)


def with_agreement(trained, agreement, balanced_agreement=(1.0, 0.01)):
    """Return a candidate with other agreements."""
    return replace(trained, agreement=agreement, balanced_agreement=balanced_agreement)


def test_the_last_training_uses_the_held_out_rows():
    trainer = make_trainer()
    trained = trainer.train(16, 7, seed(), trainer.search_budget)
    whole = trainer.retrain_on_all_rows(trained, seed())
    assert whole is not trained
    assert (whole.candidate.n_borders, whole.candidate.cost) == (
        trained.candidate.n_borders,
        trained.candidate.cost,
    )
    assert not np.array_equal(whole.map_scheme.maps[0].points, trained.map_scheme.maps[0].points)


def test_a_small_share_of_held_out_rows_is_not_trained_on():
    trainer = make_trainer(n_held_out=30)
    trained = trainer.train(16, 7, seed(), trainer.search_budget)
    assert trainer.retrain_on_all_rows(trained, seed()) is trained


def test_held_out_rows_are_not_trained_on_where_that_takes_long(monkeypatch):
    trainer = make_trainer()
    trained = trainer.train(16, 7, seed(), trainer.search_budget)
    change_search(monkeypatch, retrain_seconds=1e-3)
    assert trainer.retrain_on_all_rows(trained, seed()) is trained


def test_a_worse_candidate_is_discarded(monkeypatch):
    trainer = make_trainer()
    trained = trainer.train(64, 7, seed(), trainer.search_budget)
    train = trainer.train
    # A single plane.
    monkeypatch.setattr(trainer, "train", lambda n, *rest: train(1, *rest))
    assert trainer.retrain_on_all_rows(trained, seed()) is trained


def test_a_candidate_below_min_agreement_is_discarded(monkeypatch):
    trained = make_trainer().train(16, 7, seed(), SEARCH_BUDGET)
    min_agreement = trained.candidate.agreement
    trainer = make_trainer(min_agreement=min_agreement)
    worse = trainer.train(4, 7, seed(), trainer.search_budget)
    assert worse.candidate.agreement < min_agreement
    # Within the errors, but below min_agreement.
    change_search(monkeypatch, worse_errors=1e9)
    monkeypatch.setattr(trainer, "train", lambda *_: worse)
    assert trainer.retrain_on_all_rows(trained, seed()) is trained
    assert trainer.retrain_with_full_budget(trained, seed()) is trained


@pytest.mark.parametrize(
    ("agreement", "balanced_agreement", "is_worse"),
    [
        ((0.93, 0.01), (1.0, 0.01), False),
        ((0.92, 0.01), (1.0, 0.01), True),
        ((0.95, 0.01), (0.97, 0.01), True),
    ],
)
def test_worse_means_an_agreement_lower_by_more_than_two_errors(
    agreement, balanced_agreement, is_worse
):
    trainer = make_trainer()
    trained = trainer.train(1, 1, seed(), trainer.search_budget)
    other = with_agreement(trained, (0.945, 0.01))
    assert with_agreement(trained, agreement, balanced_agreement).is_worse_than(other) is is_worse


def test_behind_a_projection_no_candidate_is_retrained_with_the_full_budget():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 60))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    source = as_source(SVC().fit(X, y), SourceContext(X, y, False, rng))
    validation = ValidationSet.unweighted(X, source.predict_index(X))
    trainer = CandidateTrainer(
        source,
        FitData(X, y, None, X[:0]),
        validation,
        validation,
        FitOptions(None, "auto", None, 1e-6),
        rng,
    )
    trained = trainer.train(4, 3, seed(), trainer.search_budget)
    assert trainer.is_wide
    assert trainer.retrain_with_full_budget(trained, seed()) is trained


def test_a_small_wide_source_gets_more_than_one_point():
    X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
    model = make_pipeline(StandardScaler(), SVC()).fit(X[:150], y[:150])
    fast = limes.accelerate(model, X[:150], scheme="shared", fallback=False)
    assert fast.n_borders_ > 1
    assert np.mean(fast.predict(X[150:]) == model.predict(X[150:])) > 0.93


def test_agreement_is_measured_on_rows_that_were_not_trained_on():
    """Noise is overfitted: a map that is trained on the validation rows agrees on all of them."""
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(3000, 8)), rng.integers(2, size=500)
    decide = SVC(gamma=1.0, C=100).fit(X[:500], noise).decision_function
    fast = limes.accelerate(decide, X[500:1000], random_state=0)
    measured = np.mean(fast.predict(X[1000:]) == (decide(X[1000:]) > 0))
    assert measured < 0.95
    assert abs(fast.agreement_ - measured) < 3 * fast.agreement_error_


def test_thirty_rows_of_many_features_are_not_too_few_for_points():
    X = np.random.default_rng(1).normal(size=(2030, 100))
    svc = SVC().fit(X[:30], X[:30, 0] + X[:30, 1] > 0)
    fast = limes.accelerate(svc, X[:30], scheme="shared", fallback=False, random_state=1)
    assert fast.n_borders_ > 1
    assert np.mean(fast.predict(X[30:]) == svc.predict(X[30:])) > 0.9


def test_min_agreement_may_take_a_point_for_every_row():
    X, y = make_classification(120, 6, n_informative=4, n_classes=3, random_state=1)
    svc = SVC(C=10).fit(X, y)
    with pytest.warns(UserWarning, match="min_agreement=1.0 is not reached"):
        fast = limes.accelerate(svc, X, scheme="shared", fallback=False, min_agreement=1.0)
    n_rows = len(X) - 24
    assert n_rows <= max(item.n_borders for item in fast.candidates_) <= n_rows + 10
