"""Shapes and sizes of candidates, and the last training."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import shuffle

import limes
from limes.export.c import constant_bytes
from limes.fit import evaluation
from limes.fit.config import DEFAULTS, FitOptions, Limits
from limes.fit.data import FitData
from limes.fit.evaluation import Evaluator
from limes.fit.search import Design, Search
from limes.fit.transfer_set import build_transfer_set
from limes.fit.validation import ValidationSet
from limes.sources.base import SourceContext, as_source


def seed():
    """Return the same seed each time: drawing from a seed changes it."""
    return np.random.SeedSequence(5)


def make_search(n_held_out=100, min_agreement=None, n_jobs=1):
    """Return the search of a curved border, with rows held out and base functions fitted."""
    X, y = make_classification(500, 6, n_informative=4, random_state=0)
    rng = np.random.default_rng(0)
    source = as_source(SVC(C=10).fit(X, y), SourceContext(X, y, False, rng))
    held_out_rows = X[:n_held_out]
    data = FitData(X[n_held_out:], y[n_held_out:], None, held_out_rows)
    validation = ValidationSet.unweighted(held_out_rows, source.predict_index(held_out_rows))
    options = FitOptions(None, "auto", None, 1e-6, limits=Limits(min_agreement))
    evaluator = Evaluator(source, data, validation, validation, options)
    transfer_set = build_transfer_set(source, data.rows, rng=rng)
    search = Search(source, data, transfer_set, evaluator, options, seed(), n_jobs)
    search._fit_bases()
    return search


def train(search, n_points, blend=7, shape="linear"):
    """Train one candidate."""
    return search._train(Design(n_points, shape, blend))


def with_agreement(trained, agreement, balanced_agreement=(1.0, 0.01)):
    """Return a candidate with other agreements."""
    return replace(trained, agreement=agreement, balanced_agreement=balanced_agreement)


def test_the_last_training_uses_the_held_out_rows():
    search = make_search()
    trained = train(search, 16)
    whole = search.train_on_all_rows(trained, seed())
    assert whole is not trained
    assert (whole.candidate.n_borders, whole.candidate.cost) == (
        trained.candidate.n_borders,
        trained.candidate.cost,
    )
    assert not np.array_equal(whole.map_scheme.maps[0].points, trained.map_scheme.maps[0].points)


def test_a_small_share_of_held_out_rows_is_not_trained_on():
    search = make_search(n_held_out=30)
    trained = train(search, 16)
    assert search.train_on_all_rows(trained, seed()) is trained


def test_the_last_training_continues_the_candidate_and_leaves_it_as_it_is():
    search = make_search()
    trained = train(search, 16)
    before = trained.trained.points.copy()
    longer = search.finish(trained, seed())
    assert longer.candidate.n_borders == 16
    np.testing.assert_array_equal(trained.trained.points, before)


def test_a_worse_candidate_is_discarded():
    search = make_search()
    good, worse = train(search, 64), train(search, 4)
    worse = with_agreement(worse, (good.agreement[0] - 0.2, 0.01))
    assert search.evaluator.keep_better(good, worse) is good


def test_a_candidate_below_min_agreement_is_discarded(monkeypatch):
    search = make_search()
    good, worse = train(search, 16), train(search, 4)
    worse = replace(
        worse, candidate=replace(worse.candidate, agreement=good.candidate.agreement - 0.01)
    )
    # Within the errors, but below min_agreement.
    changed = replace(DEFAULTS, search=replace(DEFAULTS.search, select_errors=1e9))
    monkeypatch.setattr(evaluation, "DEFAULTS", changed)
    assert search.evaluator.keep_better(good, worse) is worse
    strict = make_search(min_agreement=good.candidate.agreement)
    assert strict.evaluator.keep_better(good, worse) is good


def test_a_candidate_does_not_depend_on_those_before_it_or_on_threads():
    alone = train(make_search(), 16)
    search = make_search(n_jobs=2)
    designs = [Design(size, "linear", 7) for size in (4, 16, 64)]
    others = list(search._train_in_order(designs))
    np.testing.assert_array_equal(
        others[1].map_scheme.maps[0].slopes, alone.map_scheme.maps[0].slopes
    )


def test_the_selected_number_of_points_is_tried_on_a_linear_base_too():
    search = make_search()
    curved = search._train(Design(8, "quadratic", 7))
    (linear,) = search._without_curve([curved])
    assert (linear.candidate.n_borders, linear.candidate.shape) == (8, "linear")
    assert not list(search._without_curve([linear]))


@pytest.mark.usefixtures("quick_fit")
def test_models_are_equal_for_any_number_of_jobs():
    X, y = make_classification(600, 6, n_informative=4, n_classes=3, random_state=2)
    svc = SVC(C=10).fit(X, y)
    options = {"scheme": "shared", "fallback": False, "random_state": 0}
    first, second = (limes.accelerate(svc, X, n_jobs=n_jobs, **options) for n_jobs in (1, 2))
    for name in ("points", "slopes", "offsets"):
        np.testing.assert_array_equal(
            getattr(first.scheme_.maps[0], name), getattr(second.scheme_.maps[0], name)
        )
    assert first.candidates_ == second.candidates_


@pytest.mark.parametrize("limit", [{"max_cost": 150}, {"max_bytes": 1000}])
def test_a_limit_is_kept_and_used(limit):
    # Classes that many points are needed for, whatever the base function.
    X = np.random.default_rng(0).uniform(-1, 1, (1500, 2))
    y = np.floor(2.5 * X).sum(axis=1) % 2
    X, rows, model = X[:1000], X[1000:], SVC(gamma=10, C=10).fit(X[:1000], y[:1000])
    fast = limes.accelerate(model, X, scheme="shared", fallback=False, random_state=0, **limit)
    ((name, value),) = limit.items()
    measured = fast.cost_ if name == "max_cost" else constant_bytes(fast)
    assert 0.5 * value < measured <= value
    assert np.mean(fast.predict(rows) == model.predict(rows)) > 0.9


def test_a_sphere_in_many_dimensions_gets_a_curved_base():
    X = np.random.default_rng(0).normal(size=(4000, 10))
    y = np.square(X).sum(axis=1) > 9.3
    svc = SVC(C=10).fit(X[:2000], y[:2000])
    options = {"scheme": "shared", "fallback": False, "random_state": 0}
    fast = limes.accelerate(svc, X[:2000], **options)
    assert fast.scheme_.maps[0].curve is not None
    agreement = np.mean(fast.predict(X[2000:]) == svc.predict(X[2000:]))
    assert agreement > 0.97
    plain = limes.accelerate(svc, X[:2000], curved=False, **options)
    assert plain.scheme_.maps[0].curve is None
    assert np.mean(plain.predict(X[2000:]) == svc.predict(X[2000:])) < agreement


def test_squares_are_evaluated_for_the_likeliest_of_many_classes():
    X, y = make_classification(
        3000, 10, n_informative=8, n_classes=30, n_clusters_per_class=1, random_state=0
    )
    svc = SVC(C=10).fit(X, y)
    fast = limes.accelerate(svc, X, scheme="shared", fallback=False, random_state=0)
    curve = fast.scheme_.maps[0].curve
    assert curve.shape == "quadratic"
    assert curve.n_listed is None or curve.n_listed <= 15


def test_more_effort_trains_longer(monkeypatch):
    X, y = make_classification(300, 4, random_state=0)
    svc, samples = SVC().fit(X, y), []
    original = limes.fit.search.continue_training

    def count(*args, n_samples, **kwargs):
        samples.append(n_samples)
        return original(*args, n_samples=1000, **kwargs)

    monkeypatch.setattr(limes.fit.search, "continue_training", count)
    for effort in (1.0, 2.0):
        limes.accelerate(svc, X, scheme="shared", n_borders=8, fallback=False, effort=effort)
    half = len(samples) // 2
    assert samples[half:] == [2 * n for n in samples[:half]]


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
    trained = train(make_search(), 4)
    other = with_agreement(trained, (0.945, 0.01))
    assert with_agreement(trained, agreement, balanced_agreement).is_worse_than(other) is is_worse


def test_a_small_wide_source_is_learnt_from_crossovers():
    X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
    model = make_pipeline(StandardScaler(), SVC()).fit(X[:150], y[:150])
    fast = limes.accelerate(model, X[:150], scheme="shared", fallback=False)
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


def test_thirty_rows_of_many_features_are_not_too_few():
    X = np.random.default_rng(1).normal(size=(2030, 100))
    svc = SVC().fit(X[:30], X[:30, 0] + X[:30, 1] > 0)
    fast = limes.accelerate(svc, X[:30], scheme="shared", fallback=False, random_state=1)
    assert np.mean(fast.predict(X[30:]) == svc.predict(X[30:])) > 0.9


def test_min_agreement_may_take_more_points_than_there_are_rows():
    X, y = make_classification(120, 6, n_informative=4, n_classes=3, random_state=1)
    svc = SVC(C=10).fit(X, y)
    with pytest.warns(UserWarning, match="min_agreement=1.0 is not reached"):
        fast = limes.accelerate(svc, X, scheme="shared", fallback=False, min_agreement=1.0)
    assert max(item.n_borders for item in fast.candidates_) > len(X)
