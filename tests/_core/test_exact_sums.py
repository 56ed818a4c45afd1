"""Exact sums: values, classes and bounds of the errors, against definitions in NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from limes._core import Classifier, ExactSums, Maps, simd_levels
from limes.model.coupling import class_pairs, count_votes_like_libsvm
from limes.model.svm import Kernel, TrainedSvm

LEVELS = simd_levels()
N_FEATURES = 5


def random_svm(
    n_support=(20, 9, 30), n_features=N_FEATURES, kernel="rbf", gamma=0.3, share=0.6, seed=0
):
    """Return an SVM with LIBSVM's signs, a share of whose coefficients are not 0."""
    rng = np.random.default_rng(seed)
    n_classes, n_vectors = len(n_support), sum(n_support)
    coef = rng.random((n_classes - 1, n_vectors)) * (rng.random((n_classes - 1, n_vectors)) < share)
    own = np.repeat(np.arange(n_classes), n_support)
    coef[np.arange(n_classes - 1)[:, None] < own] *= -1.0
    return TrainedSvm(
        kernel=Kernel(kernel, gamma=gamma, degree=3, coef0=0.2),
        vectors=rng.normal(size=(n_vectors, n_features)),
        dual_coef=coef,
        intercepts=0.2 * rng.normal(size=n_classes * (n_classes - 1) // 2),
        n_support=np.array(n_support),
    )


def exact_sums(svm, **options):
    kernel = svm.kernel
    return ExactSums(
        svm.vectors,
        svm.n_support,
        svm.dual_coef,
        svm.intercepts,
        kernel=kernel.name,
        gamma=kernel.gamma,
        degree=kernel.degree,
        coef0=kernel.coef0,
        **options,
    )


def random_rows(n, n_features=N_FEATURES, seed=1):
    return np.random.default_rng(seed).normal(size=(n, n_features))


def log_densities(vectors, n_support, log_priors, gamma, rows):
    """Return the logarithms of sums of Gaussians, class by class."""
    squares = np.sum((rows[:, None] - vectors) ** 2, axis=2)
    ends = np.cumsum(n_support)
    columns = []
    for end, n, log_prior in zip(ends, n_support, log_priors, strict=True):
        exponents = -gamma * squares[:, end - n : end]
        most = exponents.max(axis=1, initial=-np.inf)
        with np.errstate(invalid="ignore", divide="ignore"):
            sums = np.log(np.exp(exponents - most[:, None]).sum(axis=1)) + most
        columns.append(np.where(np.isfinite(most), sums, -np.inf) + log_prior)
    return np.column_stack(columns)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "linear"])
@pytest.mark.parametrize("n_support", [(1, 1), (40, 3), (20, 9, 30), (5, 0, 7, 300)])
def test_values_and_classes_are_those_of_the_svm(level, kernel, n_support):
    svm, rows = random_svm(n_support, kernel=kernel), random_rows(101)
    sums = exact_sums(svm, level=level)
    expected = svm.pair_decisions(rows)
    assert_allclose(sums.values(rows), expected, rtol=0, atol=1e-12 * (1 + np.abs(expected).max()))
    assert_array_equal(Classifier(sums).classify(rows), svm.predict_index(rows))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n_rows", [1, 2, 15, 16, 17, 47, 48, 49, 97])
def test_any_number_of_rows_has_the_same_classes_and_values(level, n_rows):
    svm, rows = random_svm(), random_rows(97)
    sums = exact_sums(svm, level=level)
    assert_array_equal(sums.values(rows[:n_rows]), sums.values(rows)[:n_rows])
    assert_array_equal(Classifier(sums).classify(rows[:n_rows]), svm.predict_index(rows[:n_rows]))


@pytest.mark.parametrize("n_features", [1, 2, 17, 130, 700])
def test_rows_of_any_width(n_features):
    svm = random_svm(n_features=n_features, gamma=1 / n_features)
    rows = random_rows(60, n_features)
    sums = exact_sums(svm)
    assert_allclose(sums.values(rows), svm.pair_decisions(rows), rtol=0, atol=1e-12)
    assert_array_equal(Classifier(sums).classify(rows), svm.predict_index(rows))


def test_very_wide_rows():
    svm = random_svm((2, 2), n_features=20_000, gamma=1e-5)
    rows = random_rows(3, 20_000)
    assert_array_equal(Classifier(exact_sums(svm)).classify(rows), svm.predict_index(rows))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_any_strides_and_precision(dtype):
    svm, sums = random_svm(), exact_sums(random_svm())
    wide = random_rows(80, 2 * N_FEATURES).astype(dtype)
    for rows in (wide[:, ::2], wide[::-1, 1::2], np.asfortranarray(wide[:, :N_FEATURES])):
        expected = svm.pair_decisions(rows)
        assert_allclose(sums.values(rows), expected, rtol=0, atol=1e-12)
        assert_array_equal(Classifier(sums).classify(rows), svm.predict_index(rows))


@pytest.mark.parametrize("n_threads", [2, 3, 32])
def test_threads_change_nothing(n_threads):
    svm, rows = random_svm((300, 200, 300)), random_rows(3000)
    sums = exact_sums(svm)
    assert_array_equal(sums.values(rows, n_threads=n_threads), sums.values(rows))
    classes = Classifier(sums).classify(rows, n_threads=n_threads)
    assert_array_equal(classes, svm.predict_index(rows))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", ["scaled", "selected", "dense"])
def test_preprocessing_comes_before_the_sums(level, kind):
    svm, rows = random_svm(), 3.0 + random_rows(70, 2 * N_FEATURES)
    rng = np.random.default_rng(2)
    shift, matrix = rng.normal(size=2 * N_FEATURES), rng.normal(size=(2 * N_FEATURES, N_FEATURES))
    columns, scale = rng.permutation(2 * N_FEATURES)[:N_FEATURES], rng.normal(size=N_FEATURES)
    if kind == "scaled":
        rows, shift, columns = rows[:, :N_FEATURES], shift[:N_FEATURES], np.arange(N_FEATURES)
    steps = (shift, matrix) if kind == "dense" else (shift, columns, scale)
    mapped = rows - shift
    mapped = mapped @ matrix if kind == "dense" else mapped[:, columns] * scale
    sums = exact_sums(svm, preprocessing=steps, level=level)
    assert sums.n_features == rows.shape[1]
    assert_allclose(sums.values(rows), svm.pair_decisions(mapped), rtol=0, atol=1e-12)
    assert_array_equal(Classifier(sums).classify(rows), svm.predict_index(mapped))


@pytest.mark.parametrize("level", LEVELS)
def test_densities_are_logarithms_of_sums_of_gaussians(level):
    n_support, log_priors = (40, 0, 300), np.log([0.2, 0.5, 0.3])
    vectors, rows = random_rows(340, seed=3), random_rows(90)
    sums = ExactSums(vectors, n_support, None, log_priors, gamma=0.7, rule="density", level=level)
    for factor in (1.0, 100.0):  # far away every density underflows
        expected = log_densities(vectors, n_support, log_priors, 0.7, factor * rows)
        values = sums.values(factor * rows)
        assert_array_equal(values[:, 1], -np.inf)
        assert_allclose(values[:, [0, 2]], expected[:, [0, 2]], rtol=1e-12)
        assert_array_equal(Classifier(sums).classify(factor * rows), expected.argmax(axis=1))


def test_a_value_of_zero_is_a_vote_for_the_second_class_unless_strict():
    svm = TrainedSvm(Kernel("rbf"), [[-1.0], [1.0]], [[1.0, -1.0]], [0.0], [1, 1])
    row = np.zeros((1, 1))
    assert svm.pair_decisions(row)[0, 0] == 0
    assert Classifier(exact_sums(svm)).classify(row) == [1]
    assert Classifier(exact_sums(svm, rule="strict")).classify(row) == [0]
    assert Classifier(exact_sums(svm, rule="ties broken")).classify(row) == [0]


@pytest.mark.parametrize("level", LEVELS)
def test_kernels_of_equal_distances_cancel_exactly(level):
    svm = TrainedSvm(
        Kernel("rbf", gamma=0.7), [[0.7, 0.2, 0.4], [0.2, 0.7, 0.4]], [[1.3, -1.3]], [0.0], [1, 1]
    )
    rows = np.array([[0.7, 0.7, 0.1], [0.31, 0.31, 7.0], [1e3, 1e3, 0.4]])
    sums = exact_sums(svm, level=level)
    assert_array_equal(sums.values(rows), np.zeros((3, 1)))
    assert_array_equal(Classifier(sums).classify(rows), [1, 1, 1])


@pytest.mark.parametrize("level", LEVELS)
def test_ties_are_broken_by_the_decision_function(level):
    svm, rows = random_svm((12, 15, 9, 20)), random_rows(2000)
    values = svm.pair_decisions(rows)
    votes = count_votes_like_libsvm(values).astype(float)
    sums = np.zeros_like(votes)
    for place, (first, second) in enumerate(class_pairs(4)):
        sums[:, first] -= values[:, place]
        sums[:, second] += values[:, place]
    is_tied = np.sum(votes == votes.max(axis=1, keepdims=True), axis=1) > 1
    assert is_tied.sum() > 5
    expected = np.argmax(votes + sums / (3 * (np.abs(sums) + 1)), axis=1)
    broken = Classifier(exact_sums(svm, rule="ties broken", level=level)).classify(rows)
    assert_array_equal(broken, expected)
    assert (broken != Classifier(exact_sums(svm, level=level)).classify(rows)).any()


def test_classes_are_returned_in_the_order_asked_for():
    svm, rows, order = random_svm(), random_rows(50), np.array([2, 0, 1])
    classes = Classifier(exact_sums(svm, class_order=order)).classify(rows)
    assert_array_equal(classes, order[svm.predict_index(rows)])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n_features", [2, 30, 300])
def test_errors_of_float32_stay_within_their_bound(level, n_features):
    rows = random_rows(300, n_features)
    for n_support in ((30, 20), (3000, 2000)):
        svm = random_svm(n_support, n_features=n_features, gamma=1 / n_features)
        ratios = exact_sums(svm, level=level).error_ratios(rows)
        assert 0 < ratios.max() < 0.7


def test_errors_stay_within_their_bound_where_features_take_few_values():
    # Many vectors share most of their terms, so that their rounding errors are alike.
    rng = np.random.default_rng(4)
    svm = random_svm((400, 500), n_features=60, gamma=0.02)
    binary = (rng.random((900, 60)) < 0.1) * 3.3 - 0.37
    binary[450:] = binary[:450]
    svm = TrainedSvm(svm.kernel, binary, svm.dual_coef, svm.intercepts, svm.n_support)
    rows = (rng.random((500, 60)) < 0.1) * 3.3 - 0.37
    assert exact_sums(svm).error_ratios(rows).max() < 0.7


def test_rows_within_rounding_of_the_border_are_summed_again():
    svm = TrainedSvm(Kernel("rbf"), [[-1.0], [1.0]], [[1.0, -1.0]], [0.0], [1, 1])
    tiny = np.array([[-1e-300], [-1e-17], [-1e-9], [-1e-8], [1e-9], [1e-17]])
    sums = exact_sums(svm)
    assert sums.count_uncertain(tiny) == len(tiny)
    # exp(-(1 - x)²) - exp(-(1 + x)²) is 0 in float64 for the smallest rows.
    assert_array_equal(Classifier(sums).classify(tiny), [1, 1, 0, 0, 1, 1])
    assert sums.count_uncertain(np.array([[0.5], [-0.5]])) == 0


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("gamma", [0.0, 1e-30, 1e30, 1e300])
def test_extreme_widths_have_defined_classes(level, gamma):
    svm = random_svm(gamma=gamma)
    sums = exact_sums(svm, level=level)
    # Only at a vector itself is a kernel of no width more than 0.
    rows = np.vstack([svm.vectors, random_rows(40)])
    expected = np.empty((len(rows), 3))
    kernels = np.exp(-gamma * np.sum((rows[:, None] - svm.vectors) ** 2, axis=2))
    ends = np.cumsum(svm.n_support)
    parts = [slice(end - n, end) for end, n in zip(ends, svm.n_support, strict=True)]
    for place, (i, j) in enumerate(class_pairs(3)):
        expected[:, place] = -svm.intercepts[place]
        expected[:, place] -= kernels[:, parts[i]] @ svm.dual_coef[j - 1, parts[i]]
        expected[:, place] -= kernels[:, parts[j]] @ svm.dual_coef[i, parts[j]]
    assert_allclose(sums.values(rows), expected, rtol=0, atol=1e-12)
    votes = count_votes_like_libsvm(expected)
    assert_array_equal(Classifier(sums).classify(rows), votes.argmax(axis=1))


@pytest.mark.parametrize("factor", [1e-300, 1e-30, 1e30, 1e300])
def test_coefficients_of_any_size(factor):
    svm, rows = random_svm(), random_rows(60)
    scaled = TrainedSvm(
        svm.kernel, svm.vectors, factor * svm.dual_coef, factor * svm.intercepts, svm.n_support
    )
    assert_array_equal(Classifier(exact_sums(scaled)).classify(rows), svm.predict_index(rows))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("size", [1e10, 1e30, 1e300, np.finfo(float).max])
def test_far_from_all_vectors_the_intercepts_decide(level, size):
    svm = random_svm()
    rows = size * np.sign(random_rows(60))
    sums = exact_sums(svm, level=level)
    assert_array_equal(sums.values(rows), np.tile(-svm.intercepts, (60, 1)))
    expected = count_votes_like_libsvm(-svm.intercepts[None]).argmax()
    assert_array_equal(Classifier(sums).classify(rows), np.full(60, expected))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("preprocessing", [None, (np.zeros(5), np.arange(4), np.ones(4))])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_class_0_and_reported(level, preprocessing, value):
    n_features = 5 if preprocessing is None else 4
    svm = random_svm(n_features=n_features, kernel="rbf")
    sums = exact_sums(svm, preprocessing=preprocessing, level=level, class_order=[1, 2, 0])
    rows = random_rows(100)
    clean = Classifier(sums).classify(rows)
    rows[60, 2] = rows[37, 4] = value
    classes, first = Classifier(sums).label(rows, np.arange(3))
    assert first == 37
    clean[[37, 60]] = 0
    assert_array_equal(classes, clean)


def test_rows_that_are_not_finite_are_reported_with_a_single_class():
    sums = ExactSums(random_rows(9), [9], None, [0.0], gamma=0.5, rule="density")
    rows = random_rows(60)
    rows[[20, 40], 1] = np.nan, np.inf
    assert Classifier(sums).label(rows, np.arange(1))[1] == 20
    assert Classifier(sums).label(rows[21:], np.arange(1))[1] == 19


def test_no_rows_and_no_vectors():
    sums = exact_sums(random_svm())
    assert sums.values(np.empty((0, N_FEATURES))).shape == (0, 3)
    assert Classifier(sums).classify(np.empty((0, N_FEATURES))).shape == (0,)
    empty = ExactSums(np.empty((0, 2)), [0, 0], np.empty((1, 0)), [-0.5])
    assert_array_equal(empty.values(np.ones((3, 2))), [[0.5]] * 3)
    assert_array_equal(Classifier(empty).classify(np.ones((3, 2))), [1, 1, 1])


def test_weights_of_both_signs_in_one_class():
    rng = np.random.default_rng(5)
    svm = random_svm()
    mixed = TrainedSvm(
        svm.kernel, svm.vectors, rng.normal(size=svm.dual_coef.shape), svm.intercepts, svm.n_support
    )
    rows = random_rows(200)
    assert_allclose(exact_sums(mixed).values(rows), mixed.pair_decisions(rows), atol=1e-12)
    assert_array_equal(Classifier(exact_sums(mixed)).classify(rows), mixed.predict_index(rows))


def test_a_predictor_gives_the_same_classes():
    svm, rows = random_svm(), random_rows(50)
    predict = Classifier(exact_sums(svm)).predictor(["a", "b", "c"])
    assert [predict(row) for row in rows] == [*np.array(["a", "b", "c"])[svm.predict_index(rows)]]
    assert predict([np.nan] * N_FEATURES) == "a"


def random_map(n_values=3, double=False, level=None):
    rng = np.random.default_rng(6)
    points = rng.normal(size=(8, N_FEATURES))
    parts = (
        points,
        0.5 * np.sum(points**2, axis=1),
        rng.normal(size=(8, n_values, N_FEATURES)),
        rng.normal(size=(8, n_values)),
    )
    return Maps(np.zeros(N_FEATURES), [parts], double=double, level=level)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("n_values", [1, 3])
def test_rows_below_the_margin_are_left_to_the_exact_sums(level, double, n_values):
    svm = random_svm((20, 9, 30) if n_values == 3 else (20, 9))
    maps, rows = random_map(n_values, double, level), random_rows(1000)
    values = maps.decide(rows)
    if n_values == 3:
        ranked = np.sort(values, axis=1)
        margins, own = ranked[:, -1] - ranked[:, -2], values.argmax(axis=1)
    else:
        margins, own = np.abs(2 * values[:, 0]), (values[:, 0] > 0).astype(int)
    for margin in (0.0, float(margins[7]), np.inf):
        expected = np.where(margins < margins.dtype.type(margin), svm.predict_index(rows), own)
        classifier = Classifier(maps, exact=exact_sums(svm, level=level), fallback_margin=margin)
        assert_array_equal(classifier.classify(rows), expected)
        assert_array_equal(classifier.classify(rows, n_threads=3), expected)
        predict = classifier.predictor()
        assert [predict(row) for row in rows[:60]] == [*expected[:60]]


def test_rows_out_of_range_of_the_map_are_left_to_the_exact_sums():
    svm, rows = random_svm(), random_rows(100)
    rows[::3] *= 1e42
    rows[50, 0] = 1e300
    classifier = Classifier(random_map(), exact=exact_sums(svm), fallback_margin=0.0)
    classes, first = classifier.label(rows, np.arange(3))
    assert first == -1
    expected = svm.predict_index(rows[50:51])[0]
    assert classes[50] == expected == classifier.predictor()(rows[50])
    assert_array_equal(classes[::3], svm.predict_index(rows[::3]))
    rows[70, 1] = np.inf
    assert classifier.label(rows, np.arange(3))[1] == 70


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "cosine"}, "kernel must be one of"),
        ({"rule": "best"}, "rule must be one of"),
        ({"rule": "strict", "n_support": [1, 1, 1]}, "coefficients must have shape|strict"),
        ({"gamma": -1.0}, "gamma must be finite and 0 or more"),
        ({"gamma": np.nan}, "gamma must be finite"),
        ({"degree": -1}, "degree must be"),
        ({"coef0": np.inf}, "coef0 must be finite"),
        ({"vectors": [[np.nan], [0.0], [1.0]]}, "vectors must be finite"),
        ({"n_support": [1, 1]}, "n_support must add up to the 3 vectors, got 2"),
        ({"n_support": [3]}, "n_support must have 2 classes or more"),
        ({"n_support": [-1, 4]}, "n_support must be indices"),
        ({"coefficients": [[1.0, 1.0]]}, "coefficients must have shape"),
        ({"intercepts": [0.0, 1.0]}, "intercepts must have shape"),
        ({"class_order": [0, 2]}, "class_order must be indices below 2, got 2"),
        ({"preprocessing": ([0.0], [1], [1.0])}, "columns must be indices below 1, got 1"),
        ({"preprocessing": ([0.0], [[1.0, 2.0]])}, "matrix must have shape"),
        ({"rule": "density", "kernel": "linear"}, "needs the kernel 'rbf'"),
    ],
)
def test_arrays_that_do_not_fit_raise(options, message):
    arguments = {
        "vectors": [[0.0], [1.0], [2.0]],
        "n_support": [1, 2],
        "coefficients": [[1.0, -1.0, -1.0]],
        "intercepts": [0.0],
    }
    given = {**arguments, **options}
    arrays = [given.pop(name) for name in arguments]
    with pytest.raises(ValueError, match=message):
        ExactSums(*arrays, **given)


def test_a_fallback_that_does_not_fit_the_map_raises():
    sums = exact_sums(random_svm((3, 4)))
    with pytest.raises(ValueError, match="the classes of the map"):
        Classifier(random_map(3), exact=sums)
    with pytest.raises(ValueError, match="fallback_margin must be 0 or more"):
        Classifier(random_map(1), exact=sums, fallback_margin=-1.0)
    with pytest.raises(ValueError, match="exact is for the rule 'own'"):
        Classifier(random_map(1), "highest", exact=sums)
    with pytest.raises(TypeError, match="exact must be an ExactSums"):
        Classifier(random_map(1), exact=random_map(1))


def numpy_logits(svm, slopes, shifts, rows):
    """Return the least of each class over its pairs: the definition."""
    values = slopes * (svm.pair_decisions(rows) + shifts)
    logits = np.full((len(rows), svm.n_classes), np.inf)
    for place, (first, second) in enumerate(class_pairs(svm.n_classes)):
        logits[:, first] = np.minimum(logits[:, first], -values[:, place])
        logits[:, second] = np.minimum(logits[:, second], values[:, place])
    return logits


def slopes_and_shifts(svm, seed=5):
    rng = np.random.default_rng(seed)
    n_pairs = len(svm.intercepts)
    return np.exp(rng.normal(size=n_pairs)), 0.1 * rng.normal(size=n_pairs)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "linear"])
@pytest.mark.parametrize("n_support", [(1, 1), (40, 3), (20, 9, 30), (5, 0, 7, 300), (9,) * 30])
def test_logits_are_the_least_values_of_each_class_over_its_pairs(level, kernel, n_support):
    svm, rows = random_svm(n_support, kernel=kernel), random_rows(101)
    scales = slopes_and_shifts(svm)
    found = exact_sums(svm, level=level).logits(rows, *scales)
    expected = numpy_logits(svm, *scales, rows)
    assert found.dtype == np.float32
    # Within a few roundings of float32 of the largest term.
    assert_allclose(found, expected, rtol=0, atol=3e-6 * np.abs(expected).max())
    assert_array_equal(found.argmax(axis=1), expected.argmax(axis=1))


@pytest.mark.parametrize("level", LEVELS)
def test_the_largest_logit_is_that_of_float64_however_close_the_next_is(level):
    svm = random_svm((40, 50))
    scales, rows = slopes_and_shifts(svm), random_rows(4000)
    sums = exact_sums(svm, level=level)
    # Halve lines between rows of both classes until they are much closer than float32 allows.
    is_second = numpy_logits(svm, *scales, rows).argmax(axis=1) == 1
    n = min(is_second.sum(), (~is_second).sum(), 50)
    first, second = rows[~is_second][:n], rows[is_second][:n]
    for _ in range(30):
        middle = 0.5 * (first + second)
        to_second = numpy_logits(svm, *scales, middle)[:, 1:] > 0
        first, second = np.where(to_second, first, middle), np.where(to_second, middle, second)
    near = np.concatenate([first, second])
    expected = scales[0] * (sums.values(near)[:, 0] + scales[1])
    found = sums.logits(near, *scales)
    assert_allclose(found, np.column_stack([-expected, expected]), rtol=1e-6, atol=1e-14)
    assert_array_equal(found[:, 1] > 0, np.repeat([False, True], n))
    assert np.abs(found).max() < 2e-8


@pytest.mark.parametrize("level", LEVELS)
def test_logits_do_not_depend_on_threads_or_on_the_number_of_rows(level):
    svm, rows = random_svm((300, 200, 300)), random_rows(6000)
    sums, scales = exact_sums(svm, level=level), slopes_and_shifts(svm)
    expected = sums.logits(rows, *scales)
    for n_threads in (2, 3, 32):
        assert_array_equal(sums.logits(rows, *scales, n_threads=n_threads), expected)
    for n_rows in (0, 1, 2, 17, 49, 4097):
        assert_array_equal(sums.logits(rows[:n_rows], *scales), expected[:n_rows])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logits_of_rows_of_any_strides_and_precision(dtype):
    svm, sums = random_svm(), exact_sums(random_svm())
    scales, wide = slopes_and_shifts(svm), random_rows(80, 2 * N_FEATURES).astype(dtype)
    for rows in (wide[:, ::2], wide[::-1, 1::2], np.asfortranarray(wide[:, :N_FEATURES])):
        expected = numpy_logits(svm, *scales, rows.astype(np.float64))
        assert_allclose(sums.logits(rows, *scales), expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_logits_of_rows_that_are_not_finite_are_nan_and_others_are_not_touched(kernel):
    svm, rows = random_svm(kernel=kernel), random_rows(200)
    sums, scales = exact_sums(svm), slopes_and_shifts(svm)
    expected = sums.logits(rows, *scales)
    rows[3, 1], rows[60, 0], rows[199, 4] = np.nan, np.inf, -np.inf
    expected[[3, 60, 199]] = np.nan
    assert_array_equal(sums.logits(rows, *scales), expected)
    far = sums.logits(1e100 * random_rows(5), *scales)
    assert np.isfinite(far).all()


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_logits_of_slopes_that_float32_cannot_hold(scale):
    svm, rows = random_svm(), random_rows(50)
    slopes, shifts = slopes_and_shifts(svm)
    expected = numpy_logits(svm, slopes, shifts, rows)
    found = exact_sums(svm).logits(rows, scale * slopes, shifts)
    assert np.isfinite(found).all()
    with np.errstate(under="ignore"):
        limit = np.finfo(np.float32).max / 4
        limited = np.clip(scale * expected, -limit, limit).astype(np.float32)
    assert_allclose(found, limited, rtol=1e-6)


def test_logits_are_in_the_order_of_the_classes_that_are_returned():
    svm, rows, order = random_svm(), random_rows(100), np.array([2, 0, 1])
    scales = slopes_and_shifts(svm)
    found = exact_sums(svm, class_order=order).logits(rows, *scales)
    assert_array_equal(found[:, order], exact_sums(svm).logits(rows, *scales))


def test_logits_of_transformed_rows():
    svm, rows = random_svm(), random_rows(100, 7)
    shift, columns, scale = np.arange(7.0) / 7, [6, 0, 3, 2, 2], [1.0, -2.0, 0.5, 1.0, 3.0]
    sums = exact_sums(svm, preprocessing=(shift, columns, scale))
    mapped, scales = (rows - shift)[:, columns] * scale, slopes_and_shifts(svm)
    assert_allclose(sums.logits(rows, *scales), numpy_logits(svm, *scales, mapped), atol=2e-5)


def test_bad_arguments_of_logits_are_named():
    sums, rows = exact_sums(random_svm()), random_rows(4)
    slopes, shifts = slopes_and_shifts(random_svm())
    with pytest.raises(ValueError, match="slopes"):
        sums.logits(rows, slopes[:2], shifts)
    with pytest.raises(ValueError, match="shifts must be finite"):
        sums.logits(rows, slopes, [0.0, np.nan, 0.0])
    with pytest.raises(ValueError, match="X"):
        sums.logits(rows[:, :2], slopes, shifts)
    with pytest.raises(ValueError, match="n_threads"):
        sums.logits(rows, slopes, shifts, n_threads=0)
    density = ExactSums([[0.0], [1.0]], [1, 1], None, [0.0, 0.0], rule="density")
    with pytest.raises(ValueError, match="SVM"):
        density.logits(np.zeros((1, 1)), [1.0], [0.0])
