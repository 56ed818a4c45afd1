"""Which candidates are trained, and which of them is selected."""

from sklearn.datasets import make_blobs
from sklearn.svm import SVC

import limes
from limes.fit.search import select, should_stop
from limes.model.model import Candidate


def candidate(cost, agreement, error=0.01):
    return Candidate("shared", cost, 4, cost, agreement, error)


def test_the_cheapest_within_two_errors_of_the_best_is_selected():
    assert (
        select([candidate(1, 0.80), candidate(8, 0.955), candidate(32, 0.96), candidate(128, 0.95)])
        == 1
    )


def test_candidates_that_cost_more_than_the_source_are_not_trained():
    X, y = make_blobs(900, 30, centers=30, cluster_std=4.0, random_state=0)
    svc = SVC(C=10, gamma=0.01).fit(X, y % 3)
    candidates = limes.accelerate(svc, X, scheme="shared", fallback=False).candidates_
    n_vectors = len(svc.support_)
    for item in candidates:
        max_cost = n_vectors * (30 + 50) if item.n_borders <= 128 else n_vectors * 30 / 10
        assert item.cost <= max(5000, max_cost)
    # The largest candidate is the one that costs a tenth of the source.
    largest = max(candidates, key=lambda item: item.n_borders)
    assert 64 < largest.n_borders < 1024
    assert 0.9 < largest.cost / max(5000, n_vectors * 30 / 10) <= 1


def test_a_costlier_candidate_must_be_better_by_two_errors():
    candidates = [candidate(8, 0.942), candidate(32, 0.96), candidate(128, 0.90)]
    assert select(candidates) == 0
    assert select([candidate(8, 0.938), *candidates[1:]]) == 1


def test_a_cheap_candidate_that_misses_a_rare_class_is_not_selected():
    candidates = [candidate(1, 0.990), candidate(8, 0.995), candidate(32, 0.996)]
    assert select(candidates) == 0
    assert select(candidates, balanced_agreements=[(0.6, 0.05), (0.93, 0.05), (0.95, 0.05)]) == 1
    # Where no candidate is near the best in both, the rare class decides.
    assert select(candidates[:2], balanced_agreements=[(0.6, 0.05), (0.93, 0.05)]) == 1
    far = [candidate(1, 0.99), candidate(8, 0.90)]
    assert select(far, balanced_agreements=[(0.6, 0.05), (0.93, 0.05)]) == 1


def test_the_search_stops_when_more_points_do_not_help():
    assert not should_stop([0.8, 0.9, 0.89])
    assert should_stop([0.8, 0.9, 0.89, 0.9])
    assert should_stop([1.0])


def test_the_cheapest_good_enough_candidate_is_selected():
    candidates = [
        candidate(1, 0.90),
        candidate(8, 0.97),
        candidate(32, 0.975),
        candidate(128, 0.999),
    ]
    assert select(candidates) == 3
    assert select(candidates, good_enough=[False, False, True, True]) == 2
    assert select(candidates, good_enough=[False] * 4) == 3
    # min_agreement takes precedence.
    assert select(candidates, min_agreement=0.97, good_enough=[False, False, True, True]) == 1
    assert select(candidates, min_agreement=0.999, good_enough=[True] * 4) == 3
