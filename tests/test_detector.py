"""The outlier detector predicts and scores as a one-class SVM does."""

import pickle
import shutil
import subprocess

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import spearmanr
from sklearn.base import clone, is_outlier_detector
from sklearn.datasets import make_moons
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, StandardScaler
from sklearn.svm import OneClassSVM
from sklearn.utils.estimator_checks import parametrize_with_checks

import limes
import limes.export.libagf
from limes.model import load_model
from limes.model.exact import ExactScheme, FallbackScheme

KERNELS = {
    "rbf": {"gamma": 2.0},
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 3, "gamma": 0.5, "coef0": 1.0},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.2},
}


def inliers_and_outliers(seed=1, n_rows=1000):
    """Return rows half of which are new rows of two moons, half evenly distributed."""
    rows, _ = make_moons(n_rows, noise=0.1, random_state=seed)
    rng = np.random.default_rng(seed)
    return np.concatenate([rows, rng.uniform([-2.5, -2], [3.5, 2.5], (n_rows, 2))])


@pytest.fixture(scope="module")
def rows():
    return make_moons(2500, noise=0.1, random_state=0)[0]


@pytest.fixture(scope="module")
def source(rows):
    return OneClassSVM(nu=0.1, gamma=2.0).fit(rows)


@pytest.fixture(scope="module")
def exact(source, rows):
    return limes.accelerate(source, rows)


@pytest.fixture(scope="module")
def map_(source, rows):
    return limes.accelerate(source, rows, scheme="shared")


@parametrize_with_checks(
    [limes.BordersOutlierDetector(), limes.BordersOutlierDetector(OneClassSVM(nu=0.2, gamma=0.3))]
)
def test_scikit_learn_accepts_the_detector(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("steps", [[], [StandardScaler()], [StandardScaler(), PCA(whiten=True)]])
def test_labels_and_scores_of_a_small_svm_are_its_own(kernel, steps, rows):
    model = make_pipeline(*steps, OneClassSVM(nu=0.2, **KERNELS[kernel])).fit(rows)
    fast = limes.accelerate(model, rows)
    X = inliers_and_outliers()
    assert isinstance(fast, limes.BordersOutlierDetector)
    assert isinstance(fast.scheme_, ExactScheme)
    assert_array_equal(fast.predict(X), model.predict(X))
    assert_allclose(fast.decision_function(X), model.decision_function(X), rtol=1e-6, atol=1e-8)
    assert_allclose(fast.score_samples(X), model.score_samples(X), rtol=1e-6, atol=1e-8)
    assert_allclose(fast.offset_, model[-1].offset_[0])
    assert fast.agreement_ == fast.score_correlation_ == 1.0


def test_a_map_follows_labels_and_scores(source, map_):
    X = inliers_and_outliers()
    expected, found = source.predict(X), map_.predict(X)
    assert isinstance(map_.scheme_, FallbackScheme)
    assert map_.cost_ < limes.accelerate(source).cost_ / 5
    for label in (-1, 1):
        assert np.mean(found[expected == label] == label) > 0.98
    scores = source.score_samples(X), map_.score_samples(X)
    assert spearmanr(*scores).statistic > 0.99
    assert map_.score_correlation_ > 0.99
    assert sum(candidate.is_selected for candidate in map_.candidates_) == 1


@pytest.mark.parametrize("kind", ["exact", "map_"])
def test_signs_and_labels_agree_and_far_rows_have_the_lowest_score(kind, request):
    fast = request.getfixturevalue(kind)
    X = np.concatenate([inliers_and_outliers(), [[1e6, -1e6]]])
    decision = fast.decision_function(X)
    assert_array_equal(fast.predict(X), np.where(decision > 0, 1, -1))
    assert_array_equal(fast.score_samples(X), decision + fast.offset_)
    assert decision[-1] == decision.min() == -fast.offset_


@pytest.mark.parametrize("kind", ["exact", "map_"])
def test_a_saved_detector_predicts_the_same(kind, request, tmp_path):
    fast, X = request.getfixturevalue(kind), inliers_and_outliers()
    fast.save(tmp_path / "fast.limes")
    again = limes.load(tmp_path / "fast.limes")
    assert isinstance(again, limes.BordersOutlierDetector)
    assert again.scheme == fast.scheme
    assert again.score_correlation_ == fast.score_correlation_
    model = load_model(tmp_path / "fast.limes")
    copies = (again, pickle.loads(pickle.dumps(fast)), model)
    for copy in copies:
        assert_array_equal(copy.predict(X), fast.predict(X))
        assert_array_equal(copy.decision_function(X), fast.decision_function(X))
    assert_array_equal(again.score_samples(X), fast.score_samples(X))
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_proba(X)


def test_a_file_without_fallback_keeps_the_scale_of_scores(map_, tmp_path):
    X = inliers_and_outliers()
    map_.save(tmp_path / "map.limes", fallback=False)
    again = limes.load(tmp_path / "map.limes")
    assert not isinstance(again.scheme_, FallbackScheme)
    assert np.isnan(again.score_correlation_)
    is_same = again.decision_function(X) == map_.decision_function(X)
    assert 0.8 < is_same.mean() < 1


def test_one_row_at_a_time(exact, map_):
    X = inliers_and_outliers(n_rows=20)
    for fast in (exact, map_):
        predict_one = fast.predictor()
        assert [predict_one(row) for row in X] == fast.predict(X).tolist()


def test_sparse_rows_and_frames(source, rows, exact):
    pandas = pytest.importorskip("pandas")
    X = inliers_and_outliers(n_rows=50)
    assert_array_equal(exact.predict(sparse.csr_matrix(X)), exact.predict(X))
    frame = pandas.DataFrame(rows, columns=["a", "b"])
    named = limes.accelerate(OneClassSVM(nu=0.1, gamma=2.0).fit(frame), frame)
    assert named.feature_names_in_.tolist() == ["a", "b"]
    assert_array_equal(named.predict(pandas.DataFrame(X, columns=["a", "b"])), source.predict(X))


def test_fit_trains_the_source_unless_it_is_frozen(source, rows):
    X = inliers_and_outliers(n_rows=50)
    fitted = limes.BordersOutlierDetector(OneClassSVM(nu=0.1, gamma=2.0)).fit(rows)
    frozen = limes.BordersOutlierDetector(FrozenEstimator(source)).fit(rows[:100])
    for fast in (fitted, frozen, clone(fitted).fit(rows)):
        assert is_outlier_detector(fast)
        assert_array_equal(fast.predict(X), source.predict(X))
    assert_array_equal(clone(fitted).fit_predict(rows), source.predict(rows))
    weights = np.linspace(0.1, 2.0, len(rows))
    weighted = clone(fitted).fit(rows, sample_weight=weights)
    expected = OneClassSVM(nu=0.1, gamma=2.0).fit(rows, sample_weight=weights)
    assert_array_equal(weighted.predict(X), expected.predict(X))


def test_a_report_compares_with_the_source(map_):
    report = map_.report(inliers_and_outliers())
    assert report.agreement > 0.98
    assert report.speed_up > 1
    assert "OneClassSVM" in str(report)


def test_no_rows_are_needed_for_exact_sums(source):
    X = inliers_and_outliers(n_rows=50)
    assert_array_equal(limes.accelerate(source).predict(X), source.predict(X))
    with pytest.raises(ValueError, match="give X, or scheme='exact'"):
        limes.accelerate(source, scheme="shared")


def test_what_cannot_be_replaced_is_refused_in_words(rows):
    precomputed = OneClassSVM(kernel="precomputed").fit(rows[:50] @ rows[:50].T)
    with pytest.raises(ValueError, match="'precomputed'"):
        limes.accelerate(precomputed, rows[:50] @ rows[:50].T)
    with pytest.raises(ValueError, match="IsolationForest is not a sum of kernels"):
        limes.accelerate(IsolationForest(n_estimators=2).fit(rows), rows)
    bent = make_pipeline(PowerTransformer(), OneClassSVM()).fit(rows[:200])
    with pytest.raises(ValueError, match="PowerTransformer before the classifier is not linear"):
        limes.accelerate(bent, rows)
    with pytest.raises(TypeError, match="'threshold' is not a parameter of BordersOutlierDetector"):
        limes.accelerate(OneClassSVM().fit(rows[:200]), rows, threshold=0.5)
    with pytest.raises(ValueError, match="scheme must be one of"):
        limes.BordersOutlierDetector(scheme="tree").fit(rows)


def test_libagf_has_no_outlier_detectors(exact):
    with pytest.raises(ValueError, match="libAGF has no outlier detectors"):
        limes.export.libagf.to_libagf(exact)


@pytest.mark.parametrize("kind", ["exact", "map_"])
def test_onnx_has_the_labels(kind, request):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    from limes.export.onnx import to_onnx

    fast, X = request.getfixturevalue(kind), inliers_and_outliers().astype(np.float32)
    data = to_onnx(fast, fallback=kind == "map_").SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    assert [output.name for output in session.get_outputs()] == ["label"]
    assert np.mean(session.run(None, {"X": X})[0] == fast.predict(X)) > 0.999


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no C compiler")
@pytest.mark.parametrize("kind", ["exact", "map_"])
def test_c_has_the_labels(kind, request, tmp_path):
    from limes.export.c import to_c

    fast, X = request.getfixturevalue(kind), inliers_and_outliers(n_rows=200)
    header = to_c(fast, name="novel", dtype="float64", fallback=kind == "map_")
    (tmp_path / "novel.h").write_text(header)
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "novel.h"\nint main(void) {\n  double x[2];\n'
        '  while (scanf("%lf %lf", x, x + 1) == 2)\n'
        '    printf("%d\\n", (int)novel_labels[novel_predict(x)]);\n  return 0;\n}\n'
    )
    subprocess.run(["gcc", "-O2", "main.c", "-lm", "-o", "main"], cwd=tmp_path, check=True)
    text = "\n".join(f"{a!r} {b!r}" for a, b in X.tolist())
    done = subprocess.run(
        [tmp_path / "main"], input=text, capture_output=True, text=True, check=True
    )
    found = np.array(done.stdout.split(), dtype=int)
    assert np.mean(found == fast.predict(X)) > 0.999


@pytest.mark.parametrize(
    "source",
    [
        OneClassSVM(),
        make_pipeline(StandardScaler(), OneClassSVM()),
        FrozenEstimator(OneClassSVM().fit(make_moons(100, random_state=0)[0])),
    ],
    ids=["alone", "pipeline", "frozen"],
)
def test_a_classifier_of_a_detector_is_refused(source):
    X, y = make_moons(100, noise=0.1, random_state=0)
    fast = limes.BordersClassifier(source)
    with pytest.raises(ValueError, match=f"{type(source).__name__} is an outlier detector"):
        fast.fit(X, np.array(["a", "b"])[y])
    assert not hasattr(fast, "model_")
