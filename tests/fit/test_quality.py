"""What a fit warns of, and that it does not warn otherwise."""

import json
import math
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier

import limes
from limes.cli.main import main
from limes.datasets import list_datasets
from limes.html_report import html_report
from limes.libsvm.training import standardizer
from limes.research.accuracy import limit_rows
from limes.research.bench.methods import svc
from limes.research.problems import CURVED_KINDS, curved_problem, load_problem


@pytest.fixture(scope="module")
def problem():
    """Rows of six features, and their classes."""
    X, y = make_classification(600, 6, n_informative=4, class_sep=2.0, random_state=0)
    return X * [1, 2, 3, 4, 5, 6] + [9, 8, 7, 6, 5, 4], y


@pytest.fixture(scope="module")
def source(problem):
    return SVC(gamma="scale").fit(*problem)


def warnings_of(fit):
    """Return the fitted model, and the sentences that it warned with."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fast = fit()
    assert all(each.category is limes.QualityWarning for each in caught)
    return fast, [str(each.message) for each in caught]


def map_of(model, X, y=None, **options):
    """Fit a map without the exact sums of the source."""
    return limes.accelerate(model, X, y, scheme="shared", fallback=False, **options)


class TestRowsUnlikeTheTrainingRows:
    @pytest.mark.parametrize("factor", [1000.0, 10.0, 0.1, 0.001])
    @pytest.mark.parametrize("fit", [limes.accelerate, map_of])
    def test_another_scale_is_seen_by_support_vectors(self, problem, factor, fit):
        X = problem[0] - problem[0].mean(axis=0)
        source = SVC(gamma="scale").fit(X, problem[1])
        fast, found = warnings_of(lambda: fit(source, factor * X))
        assert len(found) == 1
        # Small rows may lie in the middle of the others, where the source predicts one class.
        starts = ("the rows given ", *(["the source predicts the class "] if factor < 1 else []))
        assert found[0].startswith(starts)
        assert fast.model_.info.warnings == found

    @pytest.mark.parametrize(
        "model",
        [
            make_pipeline(StandardScaler(), LogisticRegression()),
            make_pipeline(StandardScaler(), SVC()),
            KNeighborsClassifier(),
            RandomForestClassifier(20, random_state=0),
            SVC(kernel="linear"),
        ],
        ids=lambda model: type(model[-1] if hasattr(model, "steps") else model).__name__,
    )
    @pytest.mark.usefixtures("quick_fit")
    def test_another_scale_is_seen_by_what_a_source_keeps(self, problem, model):
        X, y = problem
        model.fit(X, y)
        _, found = warnings_of(lambda: limes.accelerate(model, 1000 * X))
        assert len(found) == 1
        assert "standard deviations from the mean" in found[0] or "support vectors" in found[0]
        _, found = warnings_of(lambda: limes.accelerate(model, X))
        assert not [sentence for sentence in found if sentence.startswith("the rows given")]

    def test_another_order_of_columns_is_seen_by_a_scaler(self, problem):
        X, y = problem
        model = make_pipeline(StandardScaler(), SVC()).fit(X, y)
        _, found = warnings_of(lambda: limes.accelerate(model, X[:, ::-1]))
        assert len(found) == 1
        assert "columns in another order" in found[0] or "standard deviations" in found[0]

    def test_another_order_of_columns_is_seen_in_training_rows_of_one_distribution(self):
        X = np.random.default_rng(0).normal(size=(300, 4))
        source = SVC().fit(X, X[:, 0] * X[:, 1] > 0)
        _, found = warnings_of(lambda: limes.accelerate(source, X[:, [1, 2, 3, 0]]))
        assert ["columns in another order" in sentence for sentence in found] == [True]

    def test_rows_beyond_spiky_support_vectors_are_told(self, problem):
        X, y = problem
        spiky = SVC(gamma=1e4).fit(X[:300], y[:300])
        _, found = warnings_of(lambda: limes.accelerate(spiky, X[300:]))
        assert "the kernel of the nearest is below 0.001 for 100% of the rows" in found[0]

    def test_a_source_without_skill_on_the_labels_given_is_told(self, problem):
        X, y = problem
        rng = np.random.default_rng(0)
        model = LogisticRegression().fit(X, y)
        assert not warnings_of(lambda: limes.accelerate(model, X, y))[1]
        _, found = warnings_of(lambda: limes.accelerate(model, X, rng.permutation(y)))
        assert ["where chance finds 50.0%" in sentence for sentence in found] == [True]

    @pytest.mark.usefixtures("quick_fit")
    def test_rare_categories_and_long_tails_are_usual(self):
        rng = np.random.default_rng(0)
        rare = np.eye(24)[rng.choice(24, 800, p=np.r_[0.08, np.full(23, 0.04)])]
        tails = rng.lognormal(0, 3, (800, 3))
        for X in (np.column_stack([rare, rng.normal(size=800)]), tails):
            y = X[:, -1] > np.median(X[:, -1])
            for model in (SVC(), make_pipeline(StandardScaler(), SVC())):
                model.fit(X, y)
                _, found = warnings_of(lambda model=model, X=X: limes.accelerate(model, X))
                assert not [sentence for sentence in found if "the rows given" in sentence]


class TestConstantSource:
    def test_a_constant_model_is_returned(self, problem, source):
        X = problem[0][source.predict(problem[0]) == 1]
        fast, found = warnings_of(lambda: map_of(source, X))
        assert found == [
            f"the source predicts the class 1 for all {len(X)} rows that it was asked for, and the "
            "model everywhere: give rows of every class that occurs in use."
        ]
        assert fast.scheme_.maps[0].is_constant
        assert set(fast.predict(problem[0])) == {1}
        assert (fast.predict_proba(X).argmax(axis=1) == 1).all()
        assert list(fast.classes_) == [0, 1]

    def test_of_three_classes(self, problem):
        def constant(rows):
            return np.tile([1.0, 3.0, 2.0], (len(rows), 1))

        fast, found = warnings_of(lambda: limes.accelerate(constant, problem[0]))
        assert len(found) == 1
        assert set(fast.predict(problem[0])) == {1}
        assert fast.predict_proba(problem[0])[0].argsort().tolist() == [0, 2, 1]

    def test_exact_sums_of_a_class_whose_labels_are_others_are_told(self, problem):
        class Cautious(SVC):
            def predict(self, X):
                return (self.decision_function(X) > 1).astype(int)

        model = Cautious().fit(*problem)
        fast, found = warnings_of(lambda: limes.accelerate(model, problem[0]))
        assert found[0].startswith("the model is the sums of the source, which predicts other ")
        assert fast.model_.info.warnings == found

    def test_exact_sums_are_kept_with_a_warning(self, problem, source):
        X = problem[0][source.predict(problem[0]) == 0]
        fast, found = warnings_of(lambda: limes.accelerate(source, X))
        assert ["and the model is its exact sums" in sentence for sentence in found] == [True]
        assert np.array_equal(fast.predict(problem[0]), source.predict(problem[0]))


class TestShortOfItsSource:
    def test_a_large_loss_is_told(self, problem):
        X = np.random.default_rng(0).uniform(-3, 3, (1500, 2))

        def checkers(rows):
            return 5 * np.sin(3 * rows[:, 0]) * np.sin(3 * rows[:, 1])

        fast, found = warnings_of(lambda: limes.accelerate(checkers, X, n_borders=2))
        (selected,) = [each for each in fast.candidates_ if each.is_selected]
        assert selected.skill_loss > 0.1
        assert found[0].startswith(f"the model is expected to lose {selected.skill_loss:.3f} ± ")

    @pytest.mark.usefixtures("quick_fit")
    def test_labels_that_contradict_probabilities_are_told(self, problem):
        class Swapped(GaussianNB):
            def predict(self, X):
                return self.classes_[1 - super().predict_proba(X).argmax(axis=1)]

        fast, found = warnings_of(lambda: limes.accelerate(Swapped().fit(*problem), problem[0]))
        assert fast.agreement_ < 0.1
        assert found[0].startswith("the model agrees with the source on ")
        assert "% of its most frequent class: see whether" in found[0]

    @pytest.mark.usefixtures("quick_fit")
    def test_a_missed_agreement_is_told(self, problem, source):
        _, found = warnings_of(lambda: map_of(source, problem[0], min_agreement=0.99999))
        assert found[0].startswith("min_agreement=0.99999 is not reached: the model agrees")

    @pytest.mark.usefixtures("quick_fit")
    def test_few_deciding_rows_are_told(self, problem, source):
        _, found = warnings_of(lambda: map_of(source, problem[0][:60]))
        assert found[0].startswith("only 12 held-out rows decide on the model, whose agreement")
        assert "give 120 rows or more" in found[0]

    @pytest.mark.usefixtures("quick_fit")
    def test_a_model_that_is_not_faster_is_told(self, problem):
        X = problem[0]
        _, found = warnings_of(
            lambda: limes.accelerate(lambda rows: rows[:, 0] - 9.0, X, scheme="pairwise")
        )
        assert found[-1].startswith("the model takes ")
        assert found[-1].endswith("use the source, or limit max_time_us.")

    @pytest.mark.usefixtures("quick_fit")
    def test_a_spiky_source_is_told(self, problem):
        X, y = problem
        _, found = warnings_of(lambda: map_of(SVC(gamma=1e3).fit(X, y), X))
        assert found


@pytest.fixture(scope="module")
def inliers():
    return np.random.default_rng(0).normal(size=(600, 4)) * [1, 2, 3, 4] + [4, 3, 2, 1]


@pytest.fixture(scope="module")
def detector(inliers):
    return make_pipeline(StandardScaler(), OneClassSVM(nu=0.1)).fit(inliers)


class TestOutlierDetector:
    @pytest.mark.parametrize("factor", [1000.0, 10.0, 0.1, 0.001])
    @pytest.mark.parametrize("fit", [limes.accelerate, map_of])
    def test_another_scale_is_told(self, inliers, detector, factor, fit):
        for model in (detector, OneClassSVM(nu=0.1).fit(inliers - inliers.mean(axis=0))):
            rows = factor * (inliers if model is detector else inliers - inliers.mean(axis=0))
            fast, found = warnings_of(lambda model=model, rows=rows: fit(model, rows))
            assert len(found) == 1
            assert found[0].startswith("the rows given ") or "rows given as outliers" in found[0]
            assert fast.model_.info.warnings == found

    def test_another_order_of_columns_is_told(self, inliers, detector):
        for model in (detector, OneClassSVM(nu=0.1).fit(inliers)):
            _, found = warnings_of(lambda model=model: limes.accelerate(model, inliers[:, ::-1]))
            assert [sentence.startswith("the rows given ") for sentence in found] == [True]

    def test_rows_that_are_all_outliers_are_told(self, inliers, detector):
        rows = inliers[detector.predict(inliers) == -1]
        _, found = warnings_of(lambda: limes.accelerate(detector, rows))
        assert found[0].startswith("the source predicts 100.0% of the rows given as outliers: ")

    def test_rows_that_are_all_inliers_are_usual(self, inliers, detector):
        rows = inliers[detector.predict(inliers) == 1]
        assert not warnings_of(lambda: limes.accelerate(detector, rows))[1]
        assert not warnings_of(lambda: limes.BordersOutlierDetector().fit(inliers))[1]

    def test_few_deciding_rows_are_told(self, inliers, detector):
        _, found = warnings_of(lambda: map_of(detector, inliers[:110]))
        assert found[0].startswith("only 22 held-out rows decide on the map, whose scores have a")

    def test_as_an_error_it_leaves_the_detector_as_it_was(self, inliers):
        fast = limes.BordersOutlierDetector(scheme="shared", n_borders=2)
        with warnings.catch_warnings():
            warnings.simplefilter("error", limes.QualityWarning)
            with pytest.raises(limes.QualityWarning, match="only 12 held-out rows"):
                fast.fit(inliers[:60])
        assert not [name for name in vars(fast) if name.endswith("_")]

    def test_a_source_cannot_change_the_rows(self, inliers):
        class Writer(OneClassSVM):
            def fit(self, X, y=None, sample_weight=None):
                super().fit(np.array(X))
                X[:] = 0.0
                return self

        X = inliers.copy()
        with pytest.raises(ValueError, match="Writer changes the rows that it is given"):
            limes.BordersOutlierDetector(Writer()).fit(X)
        assert X.tobytes() == inliers.tobytes()

    def test_weights_reach_the_detector_at_the_end_of_a_pipeline(self, inliers):
        weight = np.linspace(0.1, 2.0, len(inliers))
        model = make_pipeline(StandardScaler(), OneClassSVM(nu=0.1))
        fast = limes.BordersOutlierDetector(model).fit(inliers, sample_weight=weight)
        expected = model.fit(inliers, oneclasssvm__sample_weight=weight)
        assert fast.offset_ == expected[-1].offset_[0]


class TestHowItWarns:
    def test_it_points_at_the_line_of_the_caller(self, problem, source):
        with pytest.warns(limes.QualityWarning) as caught:
            limes.accelerate(source, 1000 * problem[0])
        assert [each.filename for each in caught] == [__file__]
        fast = limes.BordersClassifier(lambda rows: -np.ones(len(rows)))
        with pytest.warns(limes.QualityWarning) as caught:
            fast.fit(*problem)
        assert [each.filename for each in caught] == [__file__]

    def test_as_an_error_it_leaves_a_classifier_as_it_was(self, problem, source):
        X, y = problem
        fast = limes.BordersClassifier(SVC()).fit(X, y)
        before = dict(vars(fast))
        fast.estimator = SVC(gamma=1e6)
        few = np.column_stack([X[:40], X[:40]])
        with warnings.catch_warnings():
            warnings.simplefilter("error", limes.QualityWarning)
            with pytest.raises(limes.QualityWarning):
                fast.set_params(scheme="shared", fallback=False).fit(few, y[:40])
            unfitted = limes.BordersClassifier(lambda rows: -np.ones(len(rows)))
            with pytest.raises(limes.QualityWarning):
                unfitted.fit(X, y)
        assert fast.model_ is before["model_"]
        assert fast.n_features_in_ == 6
        assert len(fast.predict(X)) == len(X)
        assert not [name for name in vars(unfitted) if name.endswith("_")]

    def test_it_stands_in_the_reports_and_in_the_file(self, problem, source, tmp_path, capsys):
        X, y = problem
        fast, (sentence,) = warnings_of(lambda: map_of(source, 1000 * X))
        report = fast.report(X, y)
        assert f"Warning of the fit: {sentence}" in str(report).splitlines()
        assert report.to_dict()["warnings"] == [sentence]
        assert f"<li>{sentence}</li>" in html_report(fast, X, y)
        fast.save(tmp_path / "m.limes")
        assert limes.load(tmp_path / "m.limes").model_.info.warnings == [sentence]
        assert main(["info", str(tmp_path / "m.limes")]) == 0
        assert sentence in capsys.readouterr().out

    @pytest.mark.parametrize("kind", ["array", "sparse"])
    def test_a_usual_fit_says_nothing(self, problem, kind):
        X, y = problem
        model = SVC(gamma="scale").fit(X, y)
        rows = sparse.csr_array(X) if kind == "sparse" else X
        assert not warnings_of(lambda: limes.accelerate(model, rows))[1]


@pytest.fixture(scope="module", params=[600, 3000])
def fitted(request):
    """A fitted model with few held-out rows, or many, and its rows and labels."""
    X, y = make_classification(request.param, 6, n_informative=4, random_state=0)
    model = DecisionTreeClassifier(max_depth=6, random_state=0).fit(X, y)
    return limes.accelerate(model, X), X, y


class TestOneNumber:
    """``agreement_`` is that of the selected candidate, wherever it is told."""

    def test_of_the_candidate(self, fitted):
        fast = fitted[0]
        (selected,) = [each for each in fast.candidates_ if each.is_selected]
        assert selected.agreement == fast.agreement_
        assert selected.agreement_error == fast.agreement_error_
        assert selected.coverage_agreement == fast.coverage_agreement_

    def test_of_the_file_and_of_the_command(self, fitted, tmp_path, capsys):
        fast = fitted[0]
        path = tmp_path / "m.limes"
        fast.save(path)
        assert limes.load(path).agreement_ == fast.agreement_
        capsys.readouterr()
        assert main(["info", str(path), "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["agreement"] == fast.agreement_
        # A fifth of each of the two classes.
        n_held_out = int(facts["agreement_rows"].split()[0])
        assert len(fitted[1]) // 5 - 1 <= n_held_out <= len(fitted[1]) // 5
        assert facts["agreement_rows"].endswith(" held-out rows like those given")

    def test_of_the_picture_and_the_reports(self, fitted):
        pyplot = pytest.importorskip("matplotlib.pyplot")
        from limes.plotting import draw_candidates

        fast, X, y = fitted
        figure, ax = pyplot.subplots()
        draw_candidates(fast, ax)
        heights = np.concatenate([line.get_ydata() for line in ax.get_lines()])
        assert np.isclose(heights, 1 - fast.agreement_).any()
        rows = fast.model_.info.agreement_rows
        assert ax.get_title() == f"Agreement of {rows}"
        pyplot.close(figure)
        sentence = fast.model_.info.agreement_sentence()
        assert f"{fast.agreement_:.2%}" in sentence
        assert rows in sentence
        assert sentence in str(fast.report(X, y))
        page = html_report(fast, X, y)
        assert sentence in page
        assert f"<td>{fast.agreement_:.4f}</td>" in page

    def test_without_held_out_rows_it_is_unknown_everywhere(self):
        X = np.random.default_rng(0).normal(size=(12, 2))
        fast = limes.accelerate(lambda rows: rows[:, 0] - np.median(X[:, 0]), X)
        assert math.isnan(fast.agreement_)
        assert all(math.isnan(each.agreement) for each in fast.candidates_)
        assert "not known" in html_report(fast, X)


CURVED = [f"{kind}{n_features}" for kind in CURVED_KINDS for n_features in (8, 15, 30)]


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("name", [*(entry.name for entry in list_datasets()), *CURVED])
def test_there_is_no_false_alarm_at_defaults(name):
    kind = name.rstrip("0123456789")
    if kind in CURVED_KINDS:
        problem = curved_problem(kind, int(name.removeprefix(kind)), 0)
    else:
        problem = limit_rows(load_problem(name, seed=0), 0)
    model = make_pipeline(standardizer(), svc(problem)).fit(problem.X_train, problem.y_train)
    assert not warnings_of(lambda: limes.accelerate(model, problem.X_train))[1]
