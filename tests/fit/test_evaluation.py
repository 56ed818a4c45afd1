"""The margin below which a map hands rows to the exact sums, and what it costs."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs, make_classification, make_moons
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import limes
from limes.fit.evaluation import CoverageGoal, MarginCurve, margin_of_agreement
from limes.fit.validation import ValidationSet
from limes.model.exact import ExactScheme, FallbackScheme
from tests.conftest import quick_training


def make_curve(n_rows=1000, n_wrong=100):
    """Return rows with margins 0, 1, 2 ..., of which every tenth of the first is wrong."""
    true = np.zeros(n_rows, dtype=int)
    predicted = true.copy()
    predicted[: 10 * n_wrong : 10] = 1
    margins = np.arange(n_rows, dtype=np.float32)
    return MarginCurve(ValidationSet.unweighted(np.zeros((n_rows, 1)), true), predicted, margins)


def curved_svm(n_rows=1500):
    """Return an SVM of many support vectors with its training rows, and as many further rows."""
    X, y = make_classification(
        2 * n_rows, 8, n_informative=6, n_classes=3, n_clusters_per_class=2, random_state=0
    )
    svc = SVC(C=5, gamma=0.2).fit(X[:n_rows], y[:n_rows])
    return svc, X[:n_rows], X[n_rows:]


@pytest.fixture(scope="module", autouse=True)
def _quick(fit_with_fallback):
    """Train with few samples, but not the model whose share of rows is measured."""
    with quick_training():
        yield


@pytest.fixture(scope="module")
def fit_with_fallback():
    svc, X, others = curved_svm()
    return svc, others, limes.accelerate(svc, X, min_agreement=0.97, random_state=1)


class TestMarginCurve:
    def test_without_a_margin_all_labels_are_the_maps(self):
        curve = make_curve()
        assert curve.agreement(0.0) == pytest.approx(0.9)
        assert curve.share(0.0) == 0.0

    def test_rows_below_the_threshold_get_the_sources_labels(self):
        curve = make_curve()
        assert curve.agreement(500.0) == pytest.approx(0.95)
        assert curve.share(500.0) == pytest.approx(0.5)

    @pytest.mark.parametrize("agreement", [0.9, 0.95, 0.99, 1.0])
    def test_the_threshold_of_an_agreement_is_the_smallest_that_reaches_it(self, agreement):
        curve = make_curve()
        threshold = curve.threshold_of_agreement(agreement)
        assert curve.agreement(threshold) >= agreement - 1e-12
        below = curve.thresholds[curve.thresholds < threshold]
        assert not len(below) or curve.agreement(float(below[-1])) < agreement

    def test_with_standard_errors_the_threshold_is_larger(self):
        curve = make_curve()
        assert curve.threshold_of_agreement(0.97, 1.0) > curve.threshold_of_agreement(0.97)

    def test_an_agreement_that_so_few_rows_cannot_show_takes_every_row(self):
        assert make_curve(40, 4).threshold_of_agreement(0.999, 1.0) == np.inf

    def test_the_threshold_of_a_share_hands_over_no_more(self):
        curve = make_curve()
        for share in (0.0, 0.1, 0.5):
            assert curve.share(curve.threshold_of_share(share)) <= share + 1e-12
        assert 99.0 <= curve.threshold_of_share(0.1) <= 100.0
        assert curve.threshold_of_share(1.0) == np.inf

    def test_coverage_rows_raise_the_margin_of_an_agreement(self):
        curve, perfect = make_curve(), make_curve(n_wrong=0)
        alone = margin_of_agreement(perfect, perfect, 0.99)
        assert alone == 0.0
        # Half of the disagreement that is allowed is aimed at.
        assert margin_of_agreement(perfect, curve, 0.98) == curve.threshold_of_agreement(0.99)


class TestCoverageGoal:
    """A candidate with the curve above: half of the rows are handed over at a margin of 500."""

    def candidate(self, **changes):
        values = {
            "candidate": SimpleNamespace(coverage_agreement=0.99),
            "map_scheme": SimpleNamespace(cost=1000),
            "curve": make_curve(),
            "coverage": make_curve(),
            "margin": 500.0,
            "is_good_enough": True,
        }
        return SimpleNamespace(**{**values, **changes})

    def test_it_is_reached_at_a_cost(self):
        assert CoverageGoal(0.99, 1501, 1000).is_reached_by(self.candidate())
        assert not CoverageGoal(0.99, 1499, 1000).is_reached_by(self.candidate())

    def test_rows_around_those_given_count_half(self):
        candidate = self.candidate(coverage=make_curve(500, 0))
        assert not CoverageGoal(0.99, 1700, 1000).is_reached_by(candidate)
        assert CoverageGoal(0.99, 1751, 1000).is_reached_by(candidate)

    def test_it_needs_agreement_and_skill(self):
        assert not CoverageGoal(0.995, 9999, 1000).is_reached_by(self.candidate())
        candidate = self.candidate(is_good_enough=False)
        assert not CoverageGoal(0.99, 9999, 1000).is_reached_by(candidate)


class TestDefault:
    def test_a_small_svm_is_taken_as_it_is_without_a_search(self):
        X, y = make_moons(300, noise=0.2, random_state=0)
        svc = SVC().fit(X, y)
        fast = limes.accelerate(svc, X)
        assert isinstance(fast.scheme_, ExactScheme)
        assert (fast.agreement_, fast.coverage_agreement_, fast.agreement_error_) == (1.0, 1.0, 0.0)
        assert np.array_equal(fast.predict(X), svc.predict(X))
        assert [candidate.scheme for candidate in fast.candidates_] == ["exact"]

    def test_a_map_that_hands_over_rows_is_twice_as_fast_as_the_exact_sums(self, fit_with_fallback):
        _, _, fast = fit_with_fallback
        assert isinstance(fast.scheme_, FallbackScheme)
        assert 0 < fast.fallback_share_ < 0.5
        assert fast.fallback_margin_ > 0
        exact = next(item for item in fast.candidates_ if item.scheme == "exact")
        assert fast.cost_ <= exact.cost / 2

    def test_the_expected_share_of_rows_is_handed_over(self, fit_with_fallback):
        _, X, fast = fit_with_fallback
        share = np.mean(fast.scheme_.falls_back(X))
        assert share == pytest.approx(fast.fallback_share_, abs=0.05)

    def test_rows_that_are_handed_over_get_the_sources_label(self, fit_with_fallback):
        svc, X, fast = fit_with_fallback
        handed_over = X[fast.scheme_.falls_back(X)]
        assert len(handed_over)
        assert np.array_equal(fast.predict(handed_over), svc.predict(handed_over))

    def test_labels_and_probabilities_agree(self, fit_with_fallback):
        _, X, fast = fit_with_fallback
        probabilities = fast.predict_proba(X)
        assert np.array_equal(fast.classes_[probabilities.argmax(axis=1)], fast.predict(X))

    def test_the_same_call_gives_the_same_model(self):
        svc, X, others = curved_svm()
        fast, again = (
            limes.accelerate(svc, X, min_agreement=0.97, random_state=1) for _ in range(2)
        )
        assert fast.fallback_margin_ == again.fallback_margin_
        assert np.array_equal(fast.predict_proba(others), again.predict_proba(others))

    def test_random_state_none_gives_another_model(self):
        svc, X, _ = curved_svm(800)
        options = {"n_borders": 8, "random_state": None}
        first, second = (limes.accelerate(svc, X, **options).predict_proba(X) for _ in range(2))
        assert not np.array_equal(first, second)


class TestFallbackParameter:
    @pytest.mark.parametrize("scheme", ["auto", "shared"])
    def test_false_gives_no_map_with_fallback(self, scheme):
        X, y = make_classification(
            2000, n_features=8, n_informative=6, n_classes=3, class_sep=0.8, random_state=1
        )
        fast = limes.accelerate(SVC(C=10).fit(X, y), X, scheme=scheme, fallback=False)
        assert {candidate.fallback_share for candidate in fast.candidates_} == {0.0}
        assert not isinstance(fast.scheme_, FallbackScheme)
        assert (fast.fallback_share_, fast.fallback_margin_) == (0.0, 0.0)

    def test_true_carries_exact_sums_with_a_given_number_of_points(self):
        svc, X, _ = curved_svm(800)
        fast = limes.accelerate(svc, X, n_borders=8, fallback=True)
        assert isinstance(fast.scheme_, FallbackScheme)
        assert fast.n_borders_ == 8

    def test_a_given_number_of_points_is_taken_as_it_is(self):
        svc, X, _ = curved_svm(800)
        assert not isinstance(limes.accelerate(svc, X, n_borders=8).scheme_, FallbackScheme)

    def test_a_source_without_exact_sums_is_refused_with_the_reason(self):
        X, y = make_moons(200, noise=0.2, random_state=0)
        neighbours = KNeighborsClassifier().fit(X, y)
        with pytest.raises(ValueError, match=r"fallback=True needs .* KNeighborsClassifier"):
            limes.accelerate(neighbours, X, fallback=True)
        with pytest.raises(ValueError, match=r"scheme='exact' needs .* KNeighborsClassifier"):
            limes.accelerate(neighbours, X, scheme="exact")

    @pytest.mark.parametrize("value", ["yes", 1, None])
    def test_another_value_is_refused(self, value):
        X, y = make_moons(100, random_state=0)
        with pytest.raises(ValueError, match="fallback must be 'auto', True or False, got"):
            limes.accelerate(SVC().fit(X, y), X, fallback=value)

    def test_it_is_for_schemes_of_one_map(self):
        X, y = make_moons(100, random_state=0)
        with pytest.raises(ValueError, match="fallback=True is for scheme='auto' or 'shared'"):
            limes.accelerate(SVC().fit(X, y), X, scheme="pairwise", fallback=True)


class TestMinAgreement:
    @pytest.mark.parametrize("min_agreement", [0.99, 0.999])
    def test_it_is_reached_by_handing_over_rows(self, min_agreement):
        svc, X, test = curved_svm()
        fast = limes.accelerate(svc, X, min_agreement=min_agreement)
        agreement = np.mean(fast.predict(test) == svc.predict(test))
        assert agreement >= min_agreement - 3 * np.sqrt(min_agreement * (1 - min_agreement) / 1500)
        assert fast.coverage_agreement_ >= min_agreement - 1e-9

    def test_complete_agreement_takes_the_exact_sums_without_a_search(self):
        svc, X, _ = curved_svm(1000)
        fast = limes.accelerate(svc, X, min_agreement=1.0)
        assert isinstance(fast.scheme_, ExactScheme)
        assert np.array_equal(fast.predict(X), svc.predict(X))

    def test_a_map_alone_that_misses_it_warns(self):
        svc, X, _ = curved_svm(600)
        with pytest.warns(limes.QualityWarning, match="min_agreement=0.9999 is not reached"):
            limes.accelerate(svc, X, scheme="shared", fallback=False, min_agreement=0.9999)


class TestLimits:
    def test_a_map_that_may_not_be_large_carries_no_exact_sums(self):
        svc, X, _ = curved_svm(1500)
        fast = limes.accelerate(svc, X, max_bytes=4000)
        assert not isinstance(fast.scheme_, FallbackScheme | ExactScheme)
        assert fast.scheme_.n_bytes <= 4000

    def test_the_expected_cost_is_limited(self):
        svc, X, _ = curved_svm(1500)
        fast = limes.accelerate(svc, X, max_cost=900)
        assert fast.cost_ <= 900

    def test_skill_is_kept_where_a_map_alone_would_lose_much(self):
        """An SVM that predicts one class away from its training rows: no small map follows it."""
        X, y = load_digits(return_X_y=True)
        svc = SVC(gamma=0.01, C=10).fit(X[:1200], y[:1200])
        fast = limes.accelerate(svc, X[:1200])
        assert np.mean(fast.predict(X[1200:]) == svc.predict(X[1200:])) > 0.99


class TestExact:
    def test_borders_at_equal_probabilities_need_probabilities_or_rows(self):
        X, y = make_moons(200, noise=0.3, random_state=0)
        with pytest.raises(ValueError, match="borders at equal probabilities need"):
            limes.accelerate(SVC().fit(X, y), scheme="exact", border="probability")

    def test_its_file_always_holds_training_rows(self, tmp_path):
        X, y = make_moons(200, noise=0.3, random_state=0)
        fast = limes.accelerate(SVC().fit(X, y), X)
        with pytest.raises(ValueError, match="fit with scheme='shared'"):
            fast.save(tmp_path / "m.limes", fallback=False)

    def test_no_rows_are_needed(self):
        svc, X, _ = curved_svm(600)
        fast = limes.accelerate(svc, scheme="exact")
        assert np.array_equal(fast.predict(X), svc.predict(X))
        assert np.allclose(fast.decision_function(X), svc.decision_function(X), atol=1e-9)
        assert not hasattr(fast, "predict_proba")

    def test_probabilities_are_fitted_where_rows_are_given(self):
        svc, X, _ = curved_svm(600)
        probabilities = limes.accelerate(svc, X, scheme="exact").predict_proba(X)
        assert np.allclose(probabilities.sum(axis=1), 1.0)
        assert np.mean(probabilities.argmax(axis=1) == svc.predict(X)) > 0.97

    def test_the_sources_own_probabilities_are_kept(self):
        X, y = make_blobs(300, 3, centers=4, cluster_std=3.0, random_state=0)
        process = GaussianProcessClassifier(random_state=0).fit(X, y > 1)
        fast = limes.accelerate(process, scheme="exact")
        assert np.array_equal(fast.predict(X), process.predict(X))
        assert not hasattr(fast, "predict_proba")

    def test_threshold_is_refused(self):
        X, y = make_moons(100, random_state=0)
        with pytest.raises(ValueError, match="threshold must be 0 with scheme='exact'"):
            limes.accelerate(SVC().fit(X, y), scheme="exact", threshold=0.5)


def test_agreement_around_the_rows_is_told_where_it_is_low():
    """Two far groups of rows: between them the source has a border that no row shows."""
    rng = np.random.default_rng(0)

    def decide(rows):
        return np.sin(3 * rows[:, 0]) * np.cos(2 * rows[:, 1])

    centres = np.array([[0.3, 0.0], [9.0, 0.0], [0.0, 9.0], [9.0, 9.0]])
    X = centres[rng.integers(4, size=600)] + rng.normal(0, 0.3, (600, 2))
    with pytest.warns(limes.QualityWarning, match="give rows as they occur in use"):
        fast = limes.accelerate(decide, X)
    assert fast.coverage_agreement_ < fast.agreement_ - 0.02
