"""Every task of the core once on every SIMD level, on small maps: what `make valgrind` runs."""

import itertools

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from limes._core import Classifier, ExactSums, simd_levels
from tests._core import reference as definition
from tests._core.reference import factored_spec, normal, random_spec, small_integers


def check(level, double, blend, n_points, projection):
    rng = np.random.default_rng(n_points)
    spec = random_spec(
        rng, n_points, 11, draw=small_integers, n_maps=2, blend=blend, projection=projection
    )
    maps = spec.build(level=level, double=double, pairs=[[0, 1], [1, 2]])
    map_numbers = rng.integers(-1, 2, size=(31, 2)).astype(np.int32)
    for dtype in (np.float32, np.float64):
        X = small_integers(rng, (31, 11)).astype(dtype)
        assert_array_equal(maps.nearest(X, index=1), definition.nearest(spec, X, 1))
        expected = definition.decide(spec, X)
        assert_allclose(maps.decide(X[:, ::-1].copy()[:, ::-1]), expected, rtol=1e-4, atol=1e-4)
        some = maps.decide_selected(X, map_numbers)[..., 0]
        assert_array_equal(np.isnan(some), map_numbers < 0)
        check_rule(Classifier(maps), X)


def check_rule(classifier, X):
    """Rows alone, together and in threads, some of them beyond the range."""
    X = X.copy()
    X[::5] *= 3e37
    predict_one, class_index = classifier.predictor(), classifier.classify(X).tolist()
    assert predict_one(X) == [predict_one(row) for row in X] == class_index
    assert classifier.classify(X, n_threads=2).tolist() == class_index
    if classifier.has_probabilities:
        probabilities = classifier.probabilities(X)[0]
        assert probabilities.argmax(axis=1).tolist() == class_index
        assert_array_equal(classifier.probabilities(X, n_threads=2)[0], probabilities)
    X[3, 1] = np.nan
    assert classifier.label(X, np.array(["a", "b", "c"]))[1] == 3


def check_rules(level, double, projection):
    rng = np.random.default_rng(5)
    options = {"level": level, "double": double, "projection": projection, "blend": 2}
    shared, pairs, forks = (
        random_spec(rng, 20, 11, draw=small_integers, n_maps=n, n_values=m, projection=projection)
        for n, m in ((1, 3), (3, 1), (2, 1))
    )
    some = {"pairs": pairs.build(**options), "shortlist": (3, 4.0, 0.5)}
    X = small_integers(rng, (61, 11))
    check_rule(Classifier(pairs.build(**options), "highest"), X)
    check_rule(Classifier(pairs.build(**options), "coupled", tie_breaker=lambda values: 1), X)
    check_rule(Classifier(forks.build(**options), "descend", children=[[-2, 1], [-1, -3]]), X)
    for rule in ("shortlist", "coupled shortlist"):
        check_rule(Classifier(shared.build(**options), rule, **some), X)


def check_groups(level, double):
    rng = np.random.default_rng(0)
    spec = random_spec(rng, 1100, 2, draw=small_integers)
    X = small_integers(rng, (60, 2))
    chosen = spec.build(level=level, double=double).nearest(X)
    assert_array_equal(chosen, definition.nearest(spec, X))


def check_factors(level, double):
    """Wide maps that share a part of their functions, dense and not."""
    rng = np.random.default_rng(7)
    for n_points, n_values in ((20, 2), (110, 1)):
        spec = factored_spec(rng, n_points, 30, 4, n_values=n_values)
        maps, X = spec.build(level=level, double=double), normal(rng, (31, 30))
        assert_allclose(maps.decide(X), definition.decide(spec, X), rtol=1e-2, atol=1e-3)
        assert_array_equal(maps.decide(X[:1]), maps.decide(X)[:1])


def check_threads(level, double):
    """Enough work for a second thread."""
    rng = np.random.default_rng(6)
    maps = random_spec(rng, 500, 30, draw=small_integers, blend=3).build(level=level, double=double)
    X = small_integers(rng, (900, 30))
    assert_array_equal(maps.decide(X, n_threads=2), maps.decide(X))
    classifier = Classifier(maps)
    assert_array_equal(classifier.classify(X, n_threads=2), classifier.classify(X))


def check_exact(level, kernel, rule):
    """Sums of every kernel and rule, behind every kind of preprocessing, and as a fallback."""
    rng = np.random.default_rng(8)
    vectors, coefficients = normal(rng, (30, 5)), normal(rng, (2, 30))
    steps = [None, (np.zeros(5), np.arange(5), np.ones(5)), (np.zeros(5), np.eye(5))]
    results = []
    for preprocessing in steps:
        sums = ExactSums(
            vectors,
            [9, 0, 21],
            coefficients,
            [0.1, 0.2, 0.3],
            kernel=kernel,
            gamma=0.2,
            rule=rule,
            preprocessing=preprocessing,
            level=level,
        )
        X = small_integers(rng, (61, 5))
        check_rule(Classifier(sums), X)
        maps = random_spec(rng, 20, 5, draw=small_integers, n_values=3).build(level=level)
        check_rule(Classifier(maps, exact=sums, fallback_margin=1.0), X)
        results.append(sums.values(np.ones((3, 5))))
    assert_allclose(results[1:], [results[0]] * 2, rtol=1e-12)


if __name__ == "__main__":
    projections = [None, np.eye(11)[:, :5]]
    for case in itertools.product(simd_levels(), [False, True], [1, 3], [1, 37], projections):
        check(*case)
    for case in itertools.product(simd_levels(), [False, True], projections):
        check_rules(*case)
    for case in itertools.product(simd_levels(), [False, True]):
        check_groups(*case)
        check_factors(*case)
        check_threads(*case)
    for level in simd_levels():
        for kernel in ("rbf", "poly", "sigmoid", "linear"):
            check_exact(level, kernel, "votes")
        for rule in ("ties broken", "density"):
            check_exact(level, "rbf", rule)
    print("all tasks agree with their definition")
