"""Exact sums against scikit-learn, and maps that fall back to them."""

import pickle
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_blobs
from sklearn.frozen import FrozenEstimator
from sklearn.svm import SVC, NuSVC, OneClassSVM

from limes.model import BorderMap, ExactScheme, FallbackScheme, Model, load_model, save_model
from limes.model.affine import AffineMap
from limes.model.exact import (
    EXPONENTIAL_COST,
    Calibrators,
    ClassDensities,
    PairSigmoids,
    one_vs_rest,
)
from limes.model.schemes import OneVsRestScheme, PairwiseScheme, SharedScheme, with_largest_at
from limes.model.svm import Kernel, TrainedSvm
from limes.sources.svm import svm_from_sklearn
from tests.model.test_file import change_header, refusal

KERNELS = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 3, "gamma": 0.1, "coef0": 0.7},
    "rbf": {"kernel": "rbf", "gamma": 0.15},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.01, "coef0": -0.3},
}
N_FEATURES = 4


def data(n_classes, n_rows=300):
    return make_blobs(
        n_rows, N_FEATURES, centers=n_classes, cluster_std=4.0, center_box=(-6, 6), random_state=1
    )


@cache
def svc(n_classes, kernel="rbf", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SVC(**KERNELS[kernel], **options, random_state=0).fit(*data(n_classes))


def rows(n=500, dtype=np.float64):
    return np.random.default_rng(3).normal(scale=7, size=(n, N_FEATURES)).astype(dtype)


def exact_model(source, **options):
    return Model(ExactScheme(svm_from_sklearn(source), **options), source.classes_, N_FEATURES)


def assert_same_values(found, expected):
    assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


def line_svm(intercept=1.0):
    """Return the SVM of two classes with the decision value x - intercept."""
    return TrainedSvm(Kernel("linear"), [[0.0], [2.0]], [[0.5, -0.5]], [intercept], [1, 1])


def square_densities(**changed):
    parts = {
        "vectors": [[0.0, 0.0], [0.0, 1.0], [5.0, 5.0]],
        "gamma": 0.5,
        "n_support": [2, 1],
        "log_priors": [-1.0, -0.5],
    }
    return ClassDensities(**{**parts, **changed})


class TestAgainstScikitLearn:
    @pytest.mark.parametrize("kernel", KERNELS)
    @pytest.mark.parametrize("n_classes", [2, 3, 10])
    @pytest.mark.parametrize("shape", ["ovr", "ovo"])
    def test_labels_and_decisions_are_the_sources(self, kernel, n_classes, shape):
        source = svc(n_classes, kernel, decision_function_shape=shape)
        model = exact_model(source, decision_shape=shape)
        assert_array_equal(model.predict(rows()), source.predict(rows()))
        assert_same_values(model.decision_function(rows()), source.decision_function(rows()))

    @pytest.mark.parametrize("kernel", KERNELS)
    def test_broken_ties_are_the_sources(self, kernel):
        source = svc(10, kernel, break_ties=True)
        model = exact_model(source, rule="ties broken")
        assert_array_equal(model.predict(rows()), source.predict(rows()))
        assert (svc(10, kernel).predict(rows()) != source.predict(rows())).any()

    @pytest.mark.parametrize("n_classes", [2, 3, 10])
    def test_probabilities_are_the_sources(self, n_classes):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            source = svc(n_classes, probability=True)
            sigmoids = PairSigmoids(
                -source.probA_, source.probB_, like_libsvm=True, iterate_two_classes=True
            )
            expected = source.predict_proba(rows())
        model = exact_model(source, probabilities=sigmoids)
        assert_allclose(model.predict_proba(rows()), expected, atol=1e-6)
        assert_array_equal(model.predict(rows()), source.predict(rows()))

    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
    def test_calibrated_probabilities_are_the_sources(self, n_classes, method):
        source = svc(n_classes)
        calibrated = CalibratedClassifierCV(FrozenEstimator(source), method=method)
        calibrated.fit(*data(n_classes, 400))
        functions = calibrated.calibrated_classifiers_[0].calibrators
        if method == "sigmoid":
            calibrators = Calibrators([[each.a_, each.b_] for each in functions])
        else:
            calibrators = Calibrators(
                isotonic=tuple((each.X_thresholds_, each.y_thresholds_) for each in functions)
            )
        model = exact_model(source, rule="likeliest", probabilities=calibrators)
        assert_allclose(model.predict_proba(rows()), calibrated.predict_proba(rows()), atol=1e-12)
        assert_array_equal(model.predict(rows()), calibrated.predict(rows()))
        assert_array_equal(model.predictor()(rows(20)), calibrated.predict(rows(20)))

    def test_nu_svc_is_exact(self):
        source = NuSVC(gamma=0.1, nu=0.3).fit(*data(3))
        assert_array_equal(exact_model(source).predict(rows()), source.predict(rows()))

    def test_the_sum_of_a_one_class_svm_is_the_sources(self):
        source = OneClassSVM(gamma=0.05, nu=0.2).fit(data(2)[0])
        svm = TrainedSvm(
            Kernel("rbf", gamma=0.05),
            source.support_vectors_,
            -source.dual_coef_,
            -source.intercept_,
            [len(source.support_vectors_), 0],
        )
        model = Model(ExactScheme(svm, rule="strict"), np.array([-1, 1]), N_FEATURES)
        assert_array_equal(model.predict(rows()), source.predict(rows()))
        assert_same_values(model.decision_function(rows()), source.decision_function(rows()))

    def test_log_densities_are_sums_of_gaussians(self):
        X, y = data(3)
        order, counts = np.argsort(y, kind="stable"), np.bincount(y)
        log_norm = np.log(counts) + 0.5 * N_FEATURES * np.log(2 * np.pi * 0.7**2)
        densities = ClassDensities(X[order], 0.5 / 0.7**2, counts, -log_norm)
        kernels = norm.logpdf(rows()[:, None], X, 0.7).sum(axis=2)
        expected = np.column_stack(
            [np.logaddexp.reduce(kernels[:, y == c], axis=1) - np.log(counts[c]) for c in range(3)]
        )
        assert_same_values(densities.log_densities(rows()), expected)
        scheme = ExactScheme(densities, rule="density")
        assert_array_equal(scheme.classify(rows()), expected.argmax(axis=1))
        assert_allclose(scheme.predict_proba(rows()).sum(axis=1), 1.0)
        assert_array_equal(scheme.decision(rows()).argmax(axis=1), scheme.classify(rows()))

    def test_linear_steps_before_the_source_are_folded(self):
        X, y = data(3)
        shift, scale = X.mean(axis=0), 1 / X.std(axis=0)
        source = SVC(gamma=0.4).fit((X - shift) * scale, y)
        matrix = np.random.default_rng(0).normal(size=(N_FEATURES, 3))
        projected = SVC(gamma=0.4).fit((X - shift) @ matrix, y)
        scaled = exact_model(source, preprocessing=AffineMap.scaling(shift, scale))
        dense = exact_model(projected, preprocessing=AffineMap(shift, matrix))
        wanted = source.predict((rows() - shift) * scale)
        assert_array_equal(scaled.predict(rows()), wanted)
        assert_array_equal(dense.predict(rows()), projected.predict((rows() - shift) @ matrix))

    def test_another_order_of_classes_gives_the_same_answers(self):
        source = svc(3, decision_function_shape="ovo")
        svm = svm_from_sklearn(source)
        order = np.array([2, 0, 1])
        own = ExactScheme(svm, decision_shape="ovo")
        turned = ExactScheme(svm.reordered(order), class_order=order, decision_shape="ovo")
        assert_same_values(turned.decision(rows()), own.decision(rows()))
        assert_array_equal(turned.classify(rows()), own.classify(rows()))
        swapped = svm_from_sklearn(svc(2)).reordered([1, 0])
        binary = ExactScheme(swapped, class_order=[1, 0])
        assert_same_values(binary.decision(rows()), svc(2).decision_function(rows()))
        assert_array_equal(binary.classify(rows()), svc(2).predict(rows()))


class TestRules:
    VALUES = np.array([[0.0, -1.0, 1.0], [0.0, 0.0, 0.0], [1.0, -1.0, 2.0], [1.0, -2.0, 1.0]])

    def scheme(self, rule, **options):
        svm = TrainedSvm(Kernel("linear"), np.ones((3, 1)), np.ones((2, 3)), np.zeros(3), [1, 1, 1])
        return ExactScheme(svm, rule=rule, **options)

    def test_zero_votes_for_the_second_class_as_in_libsvm(self):
        # Votes: (1, 1, 1) among which the first wins, (0, 1, 2), (1, 1, 1), (1, 1, 1).
        assert_array_equal(self.scheme("votes").class_index(self.VALUES), [0, 2, 0, 0])

    def test_ties_are_broken_by_the_sums_of_values(self):
        scheme = self.scheme("ties broken")
        assert_array_equal(scheme.class_index(self.VALUES), [0, 0, 2, 0])
        assert_array_equal(scheme.class_index(np.array([[2.0, -1.0, 1.0]])), [1])

    def test_the_order_of_the_sums_decides_ties(self):
        scheme = self.scheme("votes", class_order=np.array([1, 2, 0]))
        assert_array_equal(scheme.class_index(self.VALUES), [1, 0, 1, 1])

    @pytest.mark.parametrize(("rule", "expected"), [("votes", 1), ("strict", 0)])
    def test_zero_of_two_classes(self, rule, expected):
        scheme = ExactScheme(line_svm(), rule=rule)
        assert scheme.values(np.array([[1.0]])) == 0
        assert scheme.classify(np.array([[1.0]])) == expected

    def test_the_lowest_of_equal_densities_wins(self):
        densities = ClassDensities([[-1.0], [1.0]], 1.0, [1, 1], [0.0, 0.0])
        assert ExactScheme(densities, rule="density").classify(np.array([[0.0]])) == 0

    def test_far_away_densities_do_not_underflow(self):
        scheme = ExactScheme(square_densities(), rule="density")
        far = np.array([[-1e6, 0.0], [1e6, 1e6]])
        assert_array_equal(scheme.classify(far), [0, 1])
        assert_array_equal(scheme.decision(far) > 0, [False, True])
        assert_array_equal(scheme.predict_proba(far), [[1, 0], [0, 1]])

    def test_densities_that_overflow_are_equal(self):
        scheme = ExactScheme(square_densities(), rule="density")
        assert_array_equal(scheme.classify(np.array([[1e300, 0.0]])), [0])
        assert_array_equal(scheme.predict_proba(np.array([[1e300, 0.0]])), [[0.5, 0.5]])

    def test_a_class_without_vectors_has_no_density(self):
        scheme = ExactScheme(square_densities(n_support=[3, 0]), rule="density")
        assert_array_equal(scheme.predict_proba(np.array([[5.0, 5.0]])), [[1, 0]])

    def test_one_vs_rest_gives_zero_to_the_first_class(self):
        assert one_vs_rest(np.zeros((1, 3))).tolist() == [[2.0, 1.0, 0.0]]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"rule": "most"}, "rule must be one of"),
            ({"rule": "density"}, "rule must be one of"),
            ({"rule": "strict"}, "two classes"),
            ({"rule": "likeliest"}, "needs probabilities"),
            ({"class_order": [0, 1, 1]}, "class_order"),
            ({"class_order": [0.0, 1.0, 2.0]}, "class_order"),
            ({"decision_shape": "one"}, "decision_shape"),
            ({"preprocessing": AffineMap.identity(2)}, "1 outputs"),
            ({"probabilities": PairSigmoids([1.0], [0.0])}, "3 functions"),
            ({"probabilities": Calibrators([[1.0, 0.0]])}, "3 functions"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, options, message):
        with pytest.raises(ValueError, match=message):
            self.scheme(**{"rule": "votes", **options})

    @pytest.mark.parametrize(
        "changed",
        [
            {"n_support": [3]},
            {"n_support": [4, -1]},
            {"n_support": [1, 1]},
            {"gamma": -1.0},
            {"gamma": np.nan},
            {"log_priors": [0.0]},
        ],
    )
    def test_densities_that_do_not_fit_are_refused(self, changed):
        with pytest.raises(ValueError, match="must"):
            square_densities(**changed)


def random_svm(kernel, n_classes, *, n_each=7, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    n_vectors, n_pairs = n_each * n_classes, n_classes * (n_classes - 1) // 2
    return TrainedSvm(
        kernel,
        rng.normal(size=(n_vectors, N_FEATURES)),
        scale * rng.normal(size=(n_classes - 1, n_vectors)),
        scale * 0.1 * rng.normal(size=n_pairs),
        np.full(n_classes, n_each),
    )


class TestCore:
    """The core computes what NumPy defines."""

    @pytest.mark.parametrize("rule", ["votes", "ties broken"])
    @pytest.mark.parametrize("kernel", KERNELS)
    @pytest.mark.parametrize("n_classes", [2, 3, 10])
    def test_values_and_classes_are_those_of_the_definition(self, rule, kernel, n_classes):
        svm = random_svm(Kernel(kernel, 0.2, 3, 0.5), n_classes)
        scheme = ExactScheme(svm, rule=rule, class_order=np.roll(np.arange(n_classes), 1))
        for X in (rows(3000) / 5, rows(3000, np.float32) / 5):
            expected = svm.pair_decisions(X)
            scale = np.abs(svm.dual_coef).sum() * np.abs(svm.kernel.values(X, svm.vectors)).max()
            assert_allclose(scheme.values(X, n_threads=2), expected, rtol=0, atol=1e-13 * scale)
            is_clear = np.abs(expected).min(axis=1) > 1e-12 * scale
            assert is_clear.mean() > 0.99
            found = scheme.classify(X, n_threads=2)
            assert_array_equal(found[is_clear], scheme.class_index(expected)[is_clear])

    @pytest.mark.parametrize("rule", ["votes", "strict"])
    def test_rows_on_a_border_follow_the_rule(self, rule):
        vectors, X = [[-1.0, 0.0], [1.0, 0.0]], np.array([[0.0, y] for y in np.arange(40.0)])
        svm = TrainedSvm(Kernel("rbf", 0.5), vectors, [[1.0, -1.0]], [0.0], [1, 1])
        scheme = ExactScheme(svm, rule=rule)
        assert_array_equal(scheme.values(X), 0.0)
        assert_array_equal(scheme.classify(X), np.full(40, 1 if rule == "votes" else 0))

    def test_equal_votes_follow_the_rules(self):
        # Three classes at the corners of a triangle, each ahead of the next one everywhere.
        svm = TrainedSvm(
            Kernel("rbf", 0.1), np.eye(3), np.zeros((2, 3)), [1.0, -0.5, 2.0], [1, 1, 1]
        )
        X = np.random.default_rng(0).normal(size=(50, 3))
        values = np.tile([-1.0, 0.5, -2.0], (50, 1))
        for rule in ("votes", "ties broken"):
            scheme = ExactScheme(svm, rule=rule)
            assert_array_equal(scheme.values(X), values)
            assert_array_equal(scheme.classify(X), scheme.class_index(values))

    @pytest.mark.parametrize("gamma", [0.0, 1e-300, 1e30, 1e300])
    @pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30, 1e300])
    @pytest.mark.parametrize("kernel", KERNELS)
    def test_extreme_numbers_have_defined_answers(self, gamma, scale, kernel):
        svm = random_svm(Kernel(kernel, gamma, 3, 0.5), 3, scale=scale)
        scheme = ExactScheme(svm, probabilities=PairSigmoids(np.ones(3), np.zeros(3)))
        X = np.vstack([rows(20), 1e30 * rows(2), 1e300 * rows(2), svm.vectors[:3]])
        found = scheme.classify(X)
        assert np.isin(found, [0, 1, 2]).all()
        values = scheme.values(X)
        # Where a sum overflows, its sign depends on the order of the terms.
        is_finite = np.isfinite(values).all(axis=1)
        assert is_finite[:20].all() or scale == 1e300 or kernel == "poly"
        assert_array_equal(found[is_finite], scheme.class_index(values[is_finite]))
        assert scheme.predict_proba(X).shape == (len(X), 3)
        assert scheme.decision(X).shape == (len(X), 3)

    @pytest.mark.parametrize("gamma", [0.0, 0.05, 3.0])
    def test_densities_are_those_of_the_definition(self, gamma):
        X, y = data(3)
        order, counts = np.argsort(y, kind="stable"), np.bincount(y)
        step = AffineMap.scaling(np.ones(N_FEATURES), np.full(N_FEATURES, 0.5))
        densities = ClassDensities(step.apply(X[order]), gamma, counts, [-1.0, -0.5, -0.7])
        scheme = ExactScheme(densities, step, "density", np.array([1, 2, 0]))
        tests = np.vstack([rows(2000), 100 * rows(10)])
        expected = densities.log_densities(step.apply(tests))
        assert_allclose(scheme.values(tests, n_threads=2), expected, rtol=1e-11, atol=1e-11)
        assert_array_equal(scheme.classify(tests), scheme.class_index(expected))
        exact = FallbackScheme(SharedScheme((shared_map(3),), 3), scheme, margin=1e30)
        assert_array_equal(exact.classify(tests), scheme.class_index(expected))

    def test_one_vector_and_classes_without_any(self):
        svm = TrainedSvm(Kernel("rbf", 1.0), [[1.0, 0.0]], [[0.0], [2.0]], np.ones(3), [0, 1, 0])
        scheme = ExactScheme(svm)
        X = np.random.default_rng(0).normal(size=(100, 2))
        assert_allclose(scheme.values(X), svm.pair_decisions(X), atol=1e-14)
        assert_array_equal(scheme.classify(X), scheme.class_index(svm.pair_decisions(X)))

    def test_the_answer_does_not_depend_on_threads_or_strides(self):
        scheme, X = ExactScheme(svm_from_sklearn(svc(10))), rows(4000)
        expected = scheme.classify(X)
        assert_array_equal(scheme.classify(X, n_threads=32), expected)
        assert_array_equal(scheme.classify(np.asfortranarray(X)), expected)
        wide = np.repeat(X, 2, axis=0)[::2]
        assert_array_equal(scheme.values(wide), scheme.values(X))


class TestModel:
    def test_without_probabilities_the_error_says_what_to_do(self):
        model = exact_model(svc(3))
        assert not model.scheme.has_probabilities
        with pytest.raises(AttributeError, match="probability=True"):
            model.predict_proba(rows())

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_rows_that_are_not_finite_are_refused(self, bad):
        model, X = exact_model(svc(3)), rows(20)
        X[7, 2] = bad
        for method in (model.predict, model.decision_function):
            with pytest.raises(ValueError, match="in row 7"):
                method(X)
        assert model.predictor()(X[7]) == model.classes[0]

    @pytest.mark.parametrize("kernel", KERNELS)
    def test_huge_rows_have_a_label(self, kernel):
        X = np.array([[1e300, -1e300, 1e300, 0.0], [1e154, 0, 0, 0], [1e-300, 0, 0, 0]])
        assert np.isin(exact_model(svc(3, kernel)).predict(X), [0, 1, 2]).all()

    def test_float32_rows_are_taken_as_they_are(self):
        model, X = exact_model(svc(3)), rows(dtype=np.float32)
        assert_array_equal(model.predict(X), model.predict(X.astype(np.float64)))

    def test_no_rows_give_no_answers(self):
        model = exact_model(svc(3))
        assert model.predict(rows(0)).shape == (0,)
        assert model.decision_function(rows(0)).shape == (0, 3)

    def test_the_predictor_gives_the_same_labels(self):
        model = exact_model(svc(10))
        predict = model.predictor()
        assert [predict(row) for row in rows(50)] == model.predict(rows(50)).tolist()
        assert predict(rows(50)) == model.predict(rows(50)).tolist()

    def test_a_pickle_gives_the_same_answers(self):
        model = exact_model(svc(3))
        model.predict(rows())
        again = pickle.loads(pickle.dumps(model))
        assert_array_equal(again.predict(rows()), model.predict(rows()))
        assert_array_equal(again.decision_function(rows()), model.decision_function(rows()))

    def test_cost_counts_vectors_weights_and_exponentials(self):
        scheme = exact_model(svc(3)).scheme
        n_vectors = len(scheme.sums.vectors)
        assert scheme.cost == n_vectors * (N_FEATURES + 2 + EXPONENTIAL_COST)
        step = AffineMap(np.zeros(7), np.zeros((7, N_FEATURES)))
        assert replace(scheme, preprocessing=step).cost == scheme.cost + 7 * N_FEATURES
        assert replace(scheme, preprocessing=AffineMap.identity(N_FEATURES)).cost == scheme.cost
        assert exact_model(svc(3, "linear")).scheme.cost == 3 * N_FEATURES
        assert ExactScheme(square_densities(), rule="density").cost == 3 * (3 + EXPONENTIAL_COST)


def shared_map(n_classes, *, seed=0, blend=2):
    rng = np.random.default_rng(seed)
    shapes = (12, N_FEATURES), (12, n_classes, N_FEATURES), (12, n_classes)
    return BorderMap(*(rng.normal(size=shape) for shape in shapes), None, blend)


def fallback_scheme(n_classes=3, *, margin=5.0, double=False, share=0.25):
    exact = ExactScheme(svm_from_sklearn(svc(n_classes)))
    kind = SharedScheme if n_classes > 2 else PairwiseScheme
    map_ = shared_map(n_classes if n_classes > 2 else 1)
    return FallbackScheme(kind((map_,), n_classes, double), exact, margin, share)


class TestFallback:
    @pytest.mark.parametrize("double", [False, True])
    @pytest.mark.parametrize("n_classes", [2, 3, 10])
    @pytest.mark.parametrize("n_threads", [1, 3])
    def test_rows_below_the_margin_get_the_exact_label(self, n_classes, double, n_threads):
        scheme, X = fallback_scheme(n_classes, double=double), rows(3000)
        values = scheme.base.values(X)
        is_exact = scheme.base.margins(values) < scheme.margin
        assert 0.01 < is_exact.mean() < 0.99
        expected = np.where(is_exact, scheme.exact.classify(X), scheme.base.classify(X))
        assert (expected != scheme.base.classify(X)).any()
        assert_array_equal(scheme.classify(X, n_threads=n_threads), expected)
        assert_array_equal(scheme.falls_back(X), is_exact)
        predict = scheme.predictor(list(range(n_classes)))
        assert [predict(row) for row in X[:200]] == expected[:200].tolist()

    def test_the_margin_is_the_difference_of_log_odds(self):
        for n_classes in (2, 4):
            scheme, X = fallback_scheme(n_classes, double=True), rows()
            ordered = np.sort(scheme.base.predict_proba(X), axis=1)
            is_known = ordered[:, -2] > 1e-10
            expected = np.log(ordered[is_known, -1] / ordered[is_known, -2])
            found = scheme.base.margins(scheme.base.values(X))
            assert_allclose(found[is_known], expected, rtol=1e-5, atol=1e-5)

    def test_a_margin_of_zero_never_falls_back(self):
        scheme = fallback_scheme(margin=0.0)
        assert not scheme.falls_back(rows()).any()
        assert_array_equal(scheme.predict_proba(rows()), scheme.base.predict_proba(rows()))

    def test_a_large_margin_always_falls_back(self):
        scheme = fallback_scheme(margin=1e30)
        assert_array_equal(scheme.classify(rows()), scheme.exact.classify(rows()))

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_probabilities_and_decisions_agree_with_the_labels(self, n_classes):
        scheme, X = fallback_scheme(n_classes), rows()
        labels, probabilities = scheme.classify(X), scheme.predict_proba(X)
        assert_array_equal(probabilities.argmax(axis=1), labels)
        assert_allclose(probabilities.sum(axis=1), 1.0)
        decision = scheme.decision(X)
        found = (decision > 0).astype(int) if n_classes == 2 else decision.argmax(axis=1)
        assert_array_equal(found, labels)
        is_kept = labels == scheme.base.classify(X)
        assert_array_equal(decision[is_kept], scheme.base.decision(X)[is_kept])

    @pytest.mark.parametrize("double", [False, True])
    @pytest.mark.parametrize("n_classes", [2, 3, 10])
    def test_probabilities_are_those_of_the_definition(self, n_classes, double):
        scheme, X = fallback_scheme(n_classes, double=double), rows(3000)
        X[::50] *= 1e36
        values = scheme.base.values(scheme.base.classifier.scale_into_range(X))
        expected = with_largest_at(scheme.base.raw_probabilities(values), scheme.classify(X))
        assert (expected != scheme.base.probabilities(values)).any()
        for n_threads in (1, 3):
            found = scheme.predict_proba(X, n_threads=n_threads)
            assert_allclose(found, expected, atol=1e-12)

    def test_rows_out_of_the_maps_range_go_to_the_exact_sums(self):
        scheme = fallback_scheme(margin=0.0)
        X = rows(20)
        X[3] *= 1e300
        X[5] *= 1e100
        model = Model(scheme, np.arange(3), N_FEATURES)
        assert_array_equal(scheme.falls_back(X).nonzero()[0], [3, 5])
        assert_array_equal(model.predict(X)[[3, 5]], scheme.exact.classify(X[[3, 5]]))
        assert_array_equal(model.predict_proba(X).argmax(axis=1), model.predict(X))

    def test_rows_that_are_not_finite_are_refused(self):
        model, X = Model(fallback_scheme(), np.arange(3), N_FEATURES), rows(20)
        X[4, 1] = np.nan
        for method in (model.predict, model.predict_proba, model.decision_function):
            with pytest.raises(ValueError, match="NaN, in row 4"):
                method(X)
        assert model.predictor()(X[4]) == 0

    def test_cost_is_that_of_the_expected_share(self):
        scheme = fallback_scheme(share=0.25)
        assert scheme.cost == scheme.base.cost + round(0.25 * scheme.exact.cost)
        assert scheme.name == "shared"
        assert scheme.without_fallback() is scheme.base
        assert scheme.maps == scheme.base.maps

    def test_a_pickle_gives_the_same_answers(self):
        scheme = fallback_scheme()
        scheme.classify(rows())
        again = pickle.loads(pickle.dumps(scheme))
        assert_array_equal(again.classify(rows()), scheme.classify(rows()))

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"margin": -1.0}, "margin must be from 0"),
            ({"margin": np.nan}, "margin must be from 0"),
            ({"margin": np.inf}, "margin must be from 0"),
            ({"share": 1.5}, "share must be from 0 to 1"),
            ({"base": SharedScheme((shared_map(4),), 4)}, "the same classes"),
            ({"base": OneVsRestScheme((shared_map(1),) * 3, 3)}, "shared scheme"),
            ({"base": PairwiseScheme((shared_map(1),) * 3, 3)}, "shared scheme"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, changed, message):
        with pytest.raises(ValueError, match=message):
            replace(fallback_scheme(), **changed)

    def test_the_largest_probability_is_no_rule_to_fall_back_to(self):
        sigmoids = PairSigmoids(np.ones(3), np.zeros(3))
        exact = ExactScheme(svm_from_sklearn(svc(3)), rule="likeliest", probabilities=sigmoids)
        with pytest.raises(ValueError, match="likeliest"):
            replace(fallback_scheme(), exact=exact)


@cache
def stored_schemes():
    """Return schemes with every form of sums, rule, step and probabilities."""
    three, two = svm_from_sklearn(svc(3)), svm_from_sklearn(svc(2))
    scaling = AffineMap.scaling(np.arange(4.0), np.full(4, 0.5))
    dense = AffineMap(np.ones(5), np.random.default_rng(0).normal(size=(5, 4)))
    sigmoids = PairSigmoids([1.0, 2.0, 0.5], [0.0, 0.1, -0.2], inverse_temperature=0.8)
    isotonic = tuple(([-1.0, 0.0, 2.0][:n], [0.1, 0.5, 0.9][:n]) for n in (1, 2, 3))
    return {
        **{name: ExactScheme(svm_from_sklearn(svc(3, name))) for name in KERNELS},
        "scaled": ExactScheme(three, scaling, "ties broken", decision_shape="ovo"),
        "dense": ExactScheme(three, dense, "votes", np.array([2, 0, 1])),
        "strict": ExactScheme(two, rule="strict"),
        "sigmoids": ExactScheme(three, rule="likeliest", probabilities=sigmoids),
        "libsvm": ExactScheme(three, probabilities=replace(sigmoids, like_libsvm=True)),
        "calibrated": ExactScheme(two, rule="likeliest", probabilities=Calibrators([[-1.0, 0.25]])),
        "isotonic": ExactScheme(
            three, rule="likeliest", probabilities=Calibrators(isotonic=isotonic)
        ),
        "density": ExactScheme(square_densities(), rule="density"),
        "fallback": fallback_scheme(3),
        "binary fallback": fallback_scheme(2, double=True),
    }


class TestFiles:
    @pytest.mark.parametrize("name", stored_schemes())
    def test_a_loaded_model_predicts_bit_for_bit(self, name, tmp_path):
        scheme = stored_schemes()[name]
        model = Model(scheme, np.arange(scheme.n_classes) * 10, scheme.n_features)
        save_model(model, tmp_path / "m.limes")
        again = load_model(tmp_path / "m.limes")
        X = np.random.default_rng(3).normal(scale=7, size=(200, scheme.n_features))
        assert_array_equal(again.predict(X), model.predict(X))
        assert_array_equal(again.decision_function(X), model.decision_function(X))
        if scheme.has_probabilities:
            assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        assert again.scheme.cost == scheme.cost
        save_model(again, tmp_path / "again.limes")
        assert (tmp_path / "again.limes").read_bytes() == (tmp_path / "m.limes").read_bytes()

    def test_the_fallback_can_be_left_out(self, tmp_path):
        scheme = fallback_scheme()
        model = Model(scheme, np.arange(3), N_FEATURES)
        save_model(model, tmp_path / "m.limes", fallback=False)
        again = load_model(tmp_path / "m.limes")
        assert isinstance(again.scheme, SharedScheme)
        assert_array_equal(again.predict(rows()), scheme.base.classify(rows()))
        save_model(model, tmp_path / "large.limes")
        vectors = scheme.exact.sums.vectors.tobytes()
        assert vectors in (tmp_path / "large.limes").read_bytes()
        assert vectors not in (tmp_path / "m.limes").read_bytes()

    @pytest.mark.parametrize(
        ("name", "change", "found"),
        [
            ("rbf", lambda s: s["sections"].pop("exact_source"), "exact_source"),
            ("rbf", lambda s: s["sections"].update(exact_source=[]), "exact_source"),
            ("rbf", lambda s: s["scheme"].update(n_classes=4), "3 classes"),
            ("rbf", lambda s: s["scheme"].update(maps={}), "entries"),
            ("rbf", lambda s: exact(s).update(rule="most"), "rule"),
            ("rbf", lambda s: exact(s).update(rule="likeliest"), "likeliest"),
            ("rbf", lambda s: exact(s).update(decision_shape=None), "decision_shape"),
            ("rbf", lambda s: exact(s).update(class_order=99), "99"),
            ("rbf", lambda s: exact(s).update(more=1), "more"),
            ("rbf", lambda s: exact(s).update(fallback={"margin": 1.0, "share": 0.5}), "alone"),
            ("rbf", lambda s: exact(s)["sums"].update(kernel="other"), "kernel"),
            ("rbf", lambda s: exact(s)["sums"].update(gamma=1), "gamma"),
            ("rbf", lambda s: exact(s)["sums"].update(gamma=-1.0), "gamma"),
            ("rbf", lambda s: exact(s)["sums"].update(degree=1 << 40), "degree"),
            ("rbf", lambda s: exact(s)["sums"].update(vectors=0), "vectors"),
            ("rbf", lambda s: exact(s)["sums"].pop("coef0"), "coef0"),
            ("dense", lambda s: exact(s).update(preprocessing=None), "features"),
            ("sigmoids", lambda s: exact(s).update(probabilities=[]), "probabilities"),
            ("sigmoids", lambda s: exact(s)["probabilities"].update(like_libsvm=1), "like_libsvm"),
            (
                "sigmoids",
                lambda s: exact(s)["probabilities"].update(inverse_temperature=0.0),
                "inverse_temperature",
            ),
            ("isotonic", lambda s: exact(s)["probabilities"].pop("sizes"), "entries"),
            ("density", lambda s: exact(s)["sums"].update(kernel="rbf"), "entries"),
            ("density", lambda s: exact(s).update(rule="votes"), "rule"),
            ("fallback", lambda s: exact(s).update(fallback=None), "fallback"),
            ("fallback", lambda s: exact(s)["fallback"].update(margin=-1.0), "margin"),
            ("fallback", lambda s: exact(s)["fallback"].update(share=2.0), "share"),
        ],
    )
    def test_a_damaged_section_is_refused(self, name, change, found, tmp_path):
        scheme = stored_schemes()[name]
        model = Model(scheme, np.arange(scheme.n_classes), scheme.n_features)
        save_model(model, tmp_path / "m.limes")
        message = refusal(
            tmp_path / "m.limes", change_header((tmp_path / "m.limes").read_bytes(), change)
        )
        assert found in message

    @pytest.mark.parametrize(
        ("key", "value"), [("vectors", np.nan), ("dual_coef", np.inf), ("intercepts", -np.inf)]
    )
    def test_numbers_that_are_not_finite_are_refused(self, key, value, tmp_path):
        scheme = stored_schemes()["rbf"]
        changed = np.array(getattr(scheme.sums, key))
        changed.flat[0] = value
        scheme = replace(scheme, sums=replace(scheme.sums, **{key: changed}))
        save_model(Model(scheme, np.arange(3), N_FEATURES), tmp_path / "m.limes")
        with pytest.raises(ValueError, match=f"finite numbers in '{key}'"):
            load_model(tmp_path / "m.limes")


def exact(header):
    return header["sections"]["exact_source"]
