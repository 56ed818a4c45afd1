"""The estimator and ``accelerate``: the labels of the source, for any kind of row."""

import tracemalloc
from copy import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification, make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.utils.estimator_checks import (
    check_classifiers_train,
    check_estimators_pickle,
    parametrize_with_checks,
)

from limes import BordersClassifier
from limes import accelerate as accelerate_by_default
from limes.agf import AGFClassifier, KernelDensityClassifier
from tests.conftest import quick_training

SCHEMES = ["pairwise", "one-vs-rest", "shared", "shortlist", "tree"]


def accelerate(model, X, y=None, *, scheme="pairwise", **options):
    """Accelerate by the paper's scheme, which is the quickest to fit."""
    return accelerate_by_default(model, X, y, scheme=scheme, **options)


TWO_CLASS = {
    "svc": SVC(gamma=2),
    "nusvc": NuSVC(nu=0.2, gamma=2),
    "pipeline": make_pipeline(StandardScaler(), SVC(gamma=1)),
    "calibrated": CalibratedClassifierCV(SVC(gamma=2), cv=3),
    "gaussian-process": GaussianProcessClassifier(),
    "agf": AGFClassifier(),
    "kernel-density": KernelDensityClassifier(bandwidth=0.3),
    "linear": LinearSVC(),
    "logistic": LogisticRegression(),
    "neighbors": KNeighborsClassifier(15),
    "forest": RandomForestClassifier(20, max_depth=4, random_state=0),
}


@pytest.mark.parametrize("scheme", ["pairwise", "auto"])
@pytest.mark.parametrize("name", TWO_CLASS)
def test_the_fast_model_agrees_with_its_source(name, scheme, moons):
    X, y = moons
    model = clone(TWO_CLASS[name]).fit(X, y)
    fast = accelerate(model, X, scheme=scheme, random_state=0)
    new, _ = make_moons(500, noise=0.2, random_state=1)
    assert np.mean(fast.predict(new) == model.predict(new)) > 0.93


@pytest.fixture(scope="module", params=["svc", "agf", "logistic", "gaussian-process"])
def four_class_source(request, blobs):
    """A classifier of four classes, and its rows."""
    X, y = blobs
    if request.param == "gaussian-process":
        # The time of its fit grows with the cube of the rows.
        X, y = X[:200], y[:200]
    model = clone(TWO_CLASS[request.param])
    if request.param == "svc":
        model.set_params(gamma=0.1)
    return model.fit(X, y), X, y


@pytest.mark.parametrize("scheme", SCHEMES)
def test_many_classes_agree_with_the_source(four_class_source, scheme):
    model, X, y = four_class_source
    fast = accelerate(model, X, y, scheme=scheme, random_state=0)
    assert np.mean(fast.predict(X) == model.predict(X)) > 0.9
    probabilities = fast.predict_proba(X)
    assert_array_equal(fast.classes_[probabilities.argmax(axis=1)], fast.predict(X))
    assert set(fast.classes_) == set(y)


def test_a_linear_source_is_reproduced_exactly(moons):
    X, y = moons
    model = LogisticRegression().fit(X, y)
    fast = accelerate(model, X, n_borders=5, dtype="float64", random_state=0)
    assert_allclose(2 * fast.decision_function(X), model.decision_function(X), rtol=1e-4, atol=1e-4)
    assert_allclose(fast.predict_proba(X), model.predict_proba(X), atol=1e-4)


def test_an_svm_is_calibrated_without_labels_as_with_them(moons):
    X, y = moons
    model = make_pipeline(StandardScaler(), SVC(gamma=1)).fit(X, y)
    with_labels = accelerate(model, X, y, random_state=0).predict_proba(X)
    without = accelerate(model, X, random_state=0).predict_proba(X)
    assert_allclose(without, with_labels)


@pytest.mark.usefixtures("quick_fit")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_model_does_not_depend_on_the_number_of_jobs(scheme, blobs):
    X, y = blobs
    model = SVC(gamma=0.1).fit(X, y)
    one, two = (
        accelerate(model, X, scheme=scheme, random_state=7, n_jobs=n_jobs) for n_jobs in (1, 2)
    )
    for left, right in zip(one.scheme_.maps, two.scheme_.maps, strict=True):
        assert_array_equal(left.points, right.points)
        assert_array_equal(left.slopes, right.slopes)
    assert_array_equal(one.predict_proba(X), two.predict_proba(X))


@pytest.mark.usefixtures("quick_fit")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_same_seed_gives_the_same_model_and_another_seed_another(scheme, moons):
    X, y = moons
    first, again, other = (
        BordersClassifier(SVC(gamma=2), scheme=scheme, random_state=seed).fit(X, y)
        for seed in (3, 3, 4)
    )
    slopes, slopes_again, slopes_of_other = (
        model.scheme_.maps[0].slopes for model in (first, again, other)
    )
    assert_array_equal(slopes, slopes_again)
    assert not np.array_equal(slopes, slopes_of_other)


def test_agreement_is_measured_on_rows_that_the_fit_has_not_seen():
    X, y = make_moons(3000, noise=0.25, random_state=0)
    model = SVC(gamma=2).fit(X, y)
    fast = accelerate(model, X, n_borders=10, placement="random", random_state=0)
    new, _ = make_moons(20_000, noise=0.25, random_state=1)
    agreement = np.mean(fast.predict(new) == model.predict(new))
    assert abs(agreement - fast.agreement_) < 4 * fast.agreement_error_


def test_the_fast_model_takes_raw_rows_of_a_scaled_source(moons):
    X, y = moons
    raw = X * [1000.0, 0.001] + [50_000.0, 3.0]
    model = make_pipeline(StandardScaler(), SVC(gamma=1)).fit(raw, y)
    fast = accelerate(model, raw, random_state=0)
    assert np.mean(fast.predict(raw) == model.predict(raw)) > 0.97
    assert fast.scheme_.maps[0].slopes.shape == (100, 1, 2)


@pytest.mark.usefixtures("quick_fit")
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_rows_of_any_numbers_are_taken(dtype, moons):
    X, y = moons
    rows = (X * 100).astype(dtype)
    fast = BordersClassifier(SVC(), random_state=0).fit(rows, y)
    assert_array_equal(fast.predict(rows), fast.predict(rows.tolist()))


@pytest.mark.usefixtures("quick_fit")
@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
def test_sparse_rows_give_the_predictions_of_dense_ones(form, moons):
    X, y = moons
    fast = BordersClassifier(SVC(gamma=2), random_state=0).fit(form(X), y)
    dense = BordersClassifier(SVC(gamma=2), random_state=0).fit(X, y)
    assert_allclose(fast.predict_proba(form(X)), dense.predict_proba(X), atol=1e-6)


def test_a_threshold_moves_the_border(moons):
    X, y = moons
    model = CalibratedClassifierCV(SVC(gamma=2), cv=3).fit(X, y)
    fast = accelerate(model, X, threshold=0.8, random_state=0)
    expected = np.diff(model.predict_proba(X))[:, 0] > 0.8
    assert np.mean(fast.predict(X) == expected) > 0.97
    points = fast.scheme_.maps[0].points
    assert_allclose(np.diff(model.predict_proba(points))[:, 0], 0.8, atol=1e-5)


def test_a_probability_border_differs_from_the_predict_border(moons):
    X, y = moons
    model = SVC(gamma=1, class_weight={0: 10, 1: 1}).fit(X, y)
    by_predict = accelerate(model, X, y, random_state=0)
    by_probability = accelerate(model, X, y, border="probability", random_state=0)
    assert np.abs(model.decision_function(by_predict.scheme_.maps[0].points)).max() < 1e-4
    assert np.abs(model.decision_function(by_probability.scheme_.maps[0].points)).min() > 1e-2


@pytest.mark.usefixtures("quick_fit")
def test_it_is_a_meta_estimator(moons):
    X, y = moons
    search = GridSearchCV(
        BordersClassifier(SVC(), random_state=0), {"estimator__gamma": [0.5, 2.0]}, cv=2
    ).fit(X, y)
    assert search.best_score_ > 0.9


@pytest.mark.usefixtures("quick_fit")
def test_a_frozen_source_is_not_fitted_again(moons):
    X, y = moons
    model = SVC(gamma=2).fit(X, y)
    fast = BordersClassifier(FrozenEstimator(model), random_state=0).fit(X, y)
    assert fast.estimator_.estimator is model


def test_a_function_of_rows_can_be_accelerated():
    X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    fast = accelerate(lambda rows: 4 * (np.hypot(*rows.T) - 0.6), X, random_state=0)
    assert_array_equal(fast.predict([[0.0, 0.0], [0.9, 0.1]]), [0, 1])
    assert np.mean(fast.predict(X) == (np.hypot(*X.T) > 0.6)) > 0.97


def test_a_function_takes_its_labels_from_y():
    X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    y = np.where(X[:, 0] > 0.2, "right", "left")
    fast = accelerate(lambda rows: rows[:, 0] - 0.2, X, y, random_state=0)
    assert_array_equal(fast.predict([[-0.9, 0.0], [0.9, 0.0]]), ["left", "right"])


def test_a_data_frame_gives_its_names_to_the_source_and_to_the_model(moons):
    pandas = pytest.importorskip("pandas")
    X, y = moons
    frame = pandas.DataFrame(X, columns=["east", "north"])
    model = KNeighborsClassifier(15).fit(frame, y)
    fast = accelerate(model, frame, random_state=0)
    assert_array_equal(fast.feature_names_in_, ["east", "north"])
    assert np.mean(fast.predict(frame) == model.predict(frame)) > 0.93


@pytest.mark.parametrize("n_bands", [6, 10])
def test_the_bands_of_a_stepped_source_are_not_swapped(n_bands):
    X = np.random.default_rng(0).uniform(0, n_bands, (2000, 1))
    model = KNeighborsClassifier(3).fit(X, np.floor(X[:, 0]).astype(int) % 2)
    fast = accelerate(model, X, random_state=0)
    assert np.mean(fast.predict(X) == model.predict(X)) > 0.9


def test_a_function_that_saturates_keeps_its_slope():
    X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    fast = accelerate(lambda rows: np.tanh(80 * (np.hypot(*rows.T) - 0.6)), X, random_state=0)
    slopes = np.linalg.norm(fast.scheme_.maps[0].slopes[:, 0], axis=1)
    assert_allclose(slopes, 80, rtol=0.01)


def test_agreement_is_measured_at_the_threshold():
    X, y = make_moons(2000, noise=0.25, random_state=0)
    model = LogisticRegression().fit(X, y)
    assert accelerate(model, X, threshold=0.9, random_state=0).agreement_ > 0.99


def test_columns_that_are_scaled_apart_are_folded_too(blobs):
    X, y = blobs
    columns = ColumnTransformer(
        [("a", StandardScaler(), [2]), ("b", MinMaxScaler(), [0]), ("c", "passthrough", [1])]
    )
    model = make_pipeline(columns, SVC(gamma=1)).fit(X, y)
    fast = accelerate(model, X, random_state=0)
    assert fast.scheme_.maps[0].preprocessing is not None
    assert np.mean(fast.predict(X) == model.predict(X)) > 0.93


class Unsorted:
    """The least that a classifier needs, with labels that are not sorted."""

    classes_ = np.array(["z", "a"])

    def decision_function(self, X):
        return X[:, 0] - 0.2

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


@pytest.mark.parametrize("has_labels", [False, True])
def test_labels_that_are_not_sorted_keep_their_order(has_labels, moons):
    X, _ = moons
    model = Unsorted()
    fast = accelerate(model, X, model.predict(X) if has_labels else None, random_state=0)
    assert_array_equal(fast.predict(X), model.predict(X))
    assert fast.agreement_ == 1.0


class TestOddCases:
    """Degenerate input has a defined result."""

    def test_all_rows_on_one_side_give_that_side_everywhere(self, moons):
        X, _ = moons
        fast = accelerate(lambda rows: np.full(len(rows), 2.0), X, random_state=0)
        assert_array_equal(np.unique(fast.predict(X)), [1])
        assert fast.scheme_.maps[0].is_constant
        assert fast.n_borders_ == 1

    def test_a_pair_of_classes_without_a_border_leaves_the_others_alone(self, blobs):
        X, _ = blobs

        def scores(rows):
            return np.column_stack([rows[:, 0], -rows[:, 0], np.full(len(rows), -100.0)])

        fast = accelerate(scores, X, random_state=0)
        assert [one.is_constant for one in fast.scheme_.maps] == [False, True, True]
        assert_array_equal(fast.predict(X), np.where(X[:, 0] > 0, 0, 1))

    @pytest.mark.usefixtures("quick_fit")
    def test_duplicate_rows_are_no_harm(self, moons):
        X, y = moons
        fast = BordersClassifier(SVC(gamma=2), random_state=0).fit(
            np.repeat(X[:40], 50, axis=0), np.repeat(y[:40], 50)
        )
        assert fast.score(X, y) > 0.8

    def test_one_feature_is_enough(self):
        X = np.linspace(-1, 1, 101)[:, None]
        fast = BordersClassifier(SVC(), random_state=0).fit(X, X[:, 0] > 0.3)
        assert_array_equal(fast.predict([[-0.5], [0.2], [0.5]]), [False, False, True])

    def test_a_class_of_one_row_is_kept(self):
        rng = np.random.default_rng(0)
        X = np.vstack([rng.normal(0, 0.5, (60, 2)), rng.normal(4, 0.5, (60, 2)), [[0.0, 8.0]]])
        y = np.repeat(["many", "more", "one"], [60, 60, 1])
        model = SVC(C=100).fit(X, y)
        fast = accelerate(model, X, y, random_state=0)
        assert_array_equal(fast.predict(X[[0, 70, 120]]), ["many", "more", "one"])
        assert_array_equal(model.predict(X[[0, 70, 120]]), ["many", "more", "one"])

    def test_three_classes_of_equal_size(self):
        rng = np.random.default_rng(0)
        centres = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
        X = np.vstack([rng.normal(centre, 1.0, (100, 2)) for centre in centres])
        y = np.repeat([10, 20, 30], 100)
        model = SVC().fit(X, y)
        fast = accelerate(model, X, random_state=0)
        assert np.mean(fast.predict(X) == model.predict(X)) > 0.95

    def test_fewer_pairs_than_border_points_give_fewer_points(self):
        X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        fast = BordersClassifier(SVC(C=100), scheme="pairwise", n_borders=100, random_state=0).fit(
            X, [0, 0, 1, 1]
        )
        assert fast.n_borders_ == 4
        assert_array_equal(fast.predict(X), [0, 0, 1, 1])

    def test_of_few_rows_none_is_held_out_and_agreement_is_nan(self):
        X = np.array([[0.0], [1.0], [2.0], [3.0]])
        fast = BordersClassifier(SVC(), n_borders=4).fit(X, [0, 0, 1, 1])
        assert np.isnan(fast.agreement_)


@pytest.fixture(scope="module")
def fast(moons):
    """A fitted model; change copies of it only."""
    with quick_training():
        return BordersClassifier(SVC(), random_state=0).fit(*moons)


class TestBadInput:
    """The message quotes the value and names what to do."""

    @pytest.mark.parametrize(
        ("parameter", "value"),
        [
            ("scheme", "best"),
            ("n_borders", 0),
            ("n_borders", 2.5),
            ("placement", "everywhere"),
            ("blend", -1),
            ("border", 0.5),
            ("threshold", 1.0),
            ("tolerance", 0.0),
            ("dtype", "float16"),
            ("n_borders", True),
            ("refine", "yes"),
            ("n_jobs", 1.5),
            ("n_jobs", 0),
            ("n_jobs", "a"),
            ("verbose", "much"),
        ],
    )
    def test_a_wrong_parameter_is_quoted(self, parameter, value, moons):
        with pytest.raises(ValueError, match=f"{parameter} must be .* got {value!r}"):
            BordersClassifier(SVC(), **{parameter: value}).fit(*moons)
        with pytest.raises(ValueError, match=f"{parameter} must be .* got {value!r}"):
            accelerate(SVC().fit(*moons), moons[0], **{parameter: value})

    @pytest.mark.parametrize("n_jobs", [0, 1.5, "a"])
    @pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
    def test_a_wrong_number_of_jobs_is_refused_by_a_fitted_model_too(self, fast, method, n_jobs):
        changed = copy(fast).set_params(n_jobs=n_jobs)
        with pytest.raises(ValueError, match=f"n_jobs must be None or .* got {n_jobs!r}"):
            getattr(changed, method)(np.zeros((1, 2)))

    def test_a_wrong_number_of_features_is_refused(self, fast, moons):
        with pytest.raises(ValueError, match="3 features"):
            fast.predict(np.zeros((4, 3)))
        with pytest.raises(ValueError, match=r"must have 2 features.* got 3"):
            accelerate(SVC().fit(*moons), np.zeros((4, 3)))

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
    def test_nan_and_infinity_are_refused(self, fast, method, value):
        rows = np.zeros((5, 2))
        rows[3, 1] = value
        with pytest.raises(ValueError, match=r"(NaN|infinity), in row 3"):
            getattr(fast, method)(rows)

    @pytest.mark.usefixtures("quick_fit")
    def test_a_value_too_large_for_float32_is_refused_but_not_for_float64(self, moons):
        rows = np.array([[1e300, 0.0]])
        fast = BordersClassifier(SVC(), n_borders=4).fit(*moons)
        with pytest.raises(ValueError, match="too large for float32"):
            fast.predict(rows)
        BordersClassifier(SVC(), n_borders=4, dtype="float64").fit(*moons).predict(rows)

    def test_a_precomputed_kernel_is_refused(self, moons):
        X, y = moons
        with pytest.raises(ValueError, match="precomputed"):
            accelerate(SVC(kernel="precomputed").fit(X @ X.T, y), X @ X.T)

    def test_an_unfitted_source_is_refused(self, moons):
        with pytest.raises(NotFittedError):
            accelerate(SVC(), moons[0])

    def test_an_unfitted_model_does_not_predict(self):
        with pytest.raises(NotFittedError):
            BordersClassifier().predict([[0.0, 0.0]])

    def test_labels_that_the_source_does_not_know_are_refused(self, moons):
        X, y = moons
        with pytest.raises(ValueError, match="label 7, which the source does not know"):
            accelerate(SVC().fit(X, y), X, np.where(y == 0, 7, 1))

    def test_a_class_of_the_source_that_y_lacks_is_named(self, blobs):
        X, y = blobs
        model = SVC().fit(X, y)
        is_other = y != "cedar"
        with pytest.raises(ValueError, match="no row of the class 'cedar'"):
            accelerate(model, X[is_other], y[is_other])

    def test_one_class_has_no_border(self, moons):
        with pytest.raises(ValueError, match=r"at least two classes.*one class"):
            BordersClassifier().fit(moons[0], np.zeros(len(moons[0])))

    def test_a_threshold_is_for_two_classes(self, blobs):
        X, y = blobs
        with pytest.raises(ValueError, match="threshold must be 0 with more than two classes"):
            accelerate(SVC().fit(X, y), X, threshold=0.5)

    def test_a_shared_map_has_no_threshold(self, moons):
        with pytest.raises(ValueError, match=r"threshold must be 0 .*'shared', got 0\.5"):
            accelerate(SVC().fit(*moons), moons[0], scheme="shared", threshold=0.5)

    def test_a_gaussian_process_of_pairs_is_refused(self, blobs):
        X, y = blobs
        model = GaussianProcessClassifier(multi_class="one_vs_one", optimizer=None)
        with pytest.raises(ValueError, match="one_vs_rest"):
            accelerate(model.fit(X[::5], y[::5]), X)

    def test_columns_in_another_order_are_refused(self, moons):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(moons[0], columns=["east", "north"])
        model = LogisticRegression().fit(frame, moons[1])
        with pytest.raises(ValueError, match="feature names should match"):
            accelerate(model, frame[["north", "east"]])

    def test_a_classifier_with_another_threshold_is_refused(self, moons):
        model = FixedThresholdClassifier(LogisticRegression(), threshold=0.2).fit(*moons)
        with pytest.raises(ValueError, match="accelerate the classifier inside it"):
            accelerate(model, moons[0])

    def test_a_function_without_a_value_is_refused(self, moons):
        with pytest.raises(ValueError, match="returned NaN for 1 of 1 rows"):
            accelerate(lambda rows: np.full(len(rows), np.nan), moons[0])
        with pytest.raises(ValueError, match="returned NaN for 1 of 1 rows"):
            accelerate(lambda rows: np.full(len(rows), np.nan), moons[0], scheme="shared")

    def test_what_is_no_classifier_is_refused(self, moons):
        with pytest.raises(TypeError, match="decision_function"):
            accelerate("svc", moons[0])


@pytest.mark.usefixtures("quick_fit")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_rows_beyond_what_float32_can_sum_have_finite_predictions(scheme, blobs):
    X, y = blobs
    fast = accelerate(SVC().fit(X, y), X, scheme=scheme, n_borders=20, random_state=0)
    directions = [[3.0, 1.0, -2.0], [-2.0, 3.0, 0.0], [0.1, -0.1, 0.0], [0.0, -3.4, 3.4]]
    rows = (1e38 * np.array(directions)).astype(np.float32)
    probabilities = fast.predict_proba(rows)
    assert np.isfinite(probabilities).all()
    assert np.isfinite(fast.decision_function(rows)).all()
    assert_array_equal(fast.classes_[probabilities.argmax(axis=1)], fast.predict(rows))
    assert fast.predictor()(rows) == fast.predict(rows).tolist()


@pytest.mark.usefixtures("quick_fit")
@pytest.mark.parametrize("n_features", [2, 30])
def test_a_million_rows_are_predicted_in_little_memory(n_features):
    X, y = make_classification(400, n_features=n_features, n_redundant=0, random_state=0)
    fast = BordersClassifier(SVC(), n_borders=20, random_state=0).fit(X, y)
    rows = sparse.random_array((1_000_000, n_features), density=0.01, format="csr", rng=0)
    tracemalloc.start()
    fast.predict(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6


@pytest.mark.usefixtures("quick_fit")
@parametrize_with_checks(
    [
        BordersClassifier(random_state=0),
        BordersClassifier(scheme="pairwise", random_state=0),
        BordersClassifier(SVC(), scheme="one-vs-rest", n_borders=20, random_state=0),
        BordersClassifier(LogisticRegression(), n_borders=4, dtype="float64", random_state=0),
    ],
    expected_failed_checks=lambda estimator: {
        f"check_sample_weight_equivalence_on_{kind}_data": "rows are held out at random, so that a "
        "row given twice is not one of weight 2; the source itself is the same"
        for kind in ("dense", "sparse")
    },
)
def test_it_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("check", [check_classifiers_train, check_estimators_pickle])
def test_the_default_budget_passes_checks_of_scikit_learn(check):
    check("BordersClassifier", BordersClassifier(random_state=0))
