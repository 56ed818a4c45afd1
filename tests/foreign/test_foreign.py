"""Models of OpenCV, ONNX and skops: labels and probabilities of the programs that wrote them."""

import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, NuSVC, OneClassSVM

import limes
from limes.cli.main import main
from limes.foreign import read_onnx_model, read_opencv_model, read_skops_model
from tests.cli.commands import error_of

STORED = Path(__file__).parents[1] / "data" / "foreign"


@pytest.fixture(scope="module")
def answers():
    with np.load(STORED / "foreign_answers.npz") as archive:
        return dict(archive)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(7)
    y = np.array([5, -2, 3])[np.arange(90) % 3].astype(np.int32)
    X = (2 * rng.normal(size=(90, 3)) + y[:, None]).astype(np.float32)
    return X, y, (4 * rng.normal(size=(500, 3)) + 1).astype(np.float32)


OPENCV = ("opencv_rbf.xml", "opencv_linear.yml", "opencv_poly.json", "opencv_sigmoid.yml")


@pytest.mark.parametrize("name", OPENCV)
def test_stored_models_of_opencv_give_its_labels(answers, name):
    model = read_opencv_model(STORED / name)
    assert_array_equal(model.predict(answers["rows"]), answers[name.replace(".", "_")])


def test_a_stored_one_class_model_of_opencv_gives_its_labels(answers):
    model = read_opencv_model(STORED / "opencv_one_class.xml")
    expected = np.where(answers["opencv_one_class_xml"] == 1, 1, -1)
    assert_array_equal(model.predict(answers["rows"]), expected)
    exact = limes.accelerate(model, scheme="exact")
    assert_array_equal(exact.predict(answers["rows"]), expected)


@pytest.mark.parametrize("ending", ["xml", "yml", "json"])
@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF"])
def test_one_class_models_of_opencv_give_its_values(tmp_path, rows, kernel, ending):
    cv2 = pytest.importorskip("cv2")
    X, y, new = rows
    svm = cv2.ml.SVM_create()
    svm.setType(cv2.ml.SVM_ONE_CLASS)
    svm.setKernel(getattr(cv2.ml, f"SVM_{kernel}"))
    for name, value in {"Gamma": 0.05, "Coef0": 0.1, "Degree": 2, "Nu": 0.3}.items():
        getattr(svm, f"set{name}")(value)
    svm.train(X, cv2.ml.ROW_SAMPLE, y)
    svm.save(str(tmp_path / f"model.{ending}"))
    model = read_opencv_model(tmp_path / f"model.{ending}")
    values = svm.predict(new, flags=cv2.ml.STAT_MODEL_RAW_OUTPUT)[1][:, 0]
    scale = np.abs(values).max()
    assert_allclose(model.decision_function(new), values, atol=1e-5 * scale)
    is_clear = np.abs(values) > 1e-5 * scale
    labels = np.where(svm.predict(new)[1][:, 0] == 1, 1, -1)
    assert_array_equal(model.predict(new)[is_clear], labels[is_clear])


@pytest.mark.parametrize("ending", ["xml", "yml", "json"])
@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("kind", ["C_SVC", "NU_SVC"])
def test_models_of_opencv_give_its_labels(tmp_path, rows, kind, kernel, ending):
    cv2 = pytest.importorskip("cv2")
    X, y, new = rows
    svm = cv2.ml.SVM_create()
    svm.setType(getattr(cv2.ml, f"SVM_{kind}"))
    svm.setKernel(getattr(cv2.ml, f"SVM_{kernel}"))
    for name, value in {"C": 2, "Gamma": 0.05, "Coef0": 0.1, "Degree": 2, "Nu": 0.3}.items():
        getattr(svm, f"set{name}")(value)
    svm.setTermCriteria((3, 1000, 1e-6))
    svm.train(X, cv2.ml.ROW_SAMPLE, y)
    path = tmp_path / f"model.{ending}"
    svm.save(str(path))
    model = read_opencv_model(path)
    decisions = np.abs(model._pair_decisions(new)).min(axis=1)
    # OpenCV's sums are of float32 kernels.
    is_clear = decisions > 1e-4 * (1 + np.abs(model.svm.intercepts).max())
    assert is_clear.mean() > 0.98
    expected = svm.predict(new)[1][:, 0].astype(int)
    assert_array_equal(model.predict(new)[is_clear], expected[is_clear])


@pytest.mark.parametrize("name", ["scaled", "two"])
def test_stored_onnx_models_give_the_answers_of_onnxruntime(answers, name):
    pytest.importorskip("onnx")
    model = read_onnx_model(STORED / f"onnx_{name}.onnx")
    assert_array_equal(model.predict(answers["rows"]), answers[f"onnx_{name}_onnx"])
    expected = answers[f"onnx_{name}_probabilities"]
    assert_allclose(model.predict_proba(answers["rows"]), expected, atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "source",
    [
        SVC(gamma=0.1),
        SVC(kernel="linear"),
        SVC(kernel="poly", degree=2, coef0=1.0),
        NuSVC(nu=0.3, kernel="sigmoid", gamma=0.01),
        make_pipeline(StandardScaler(), SVC()),
    ],
    ids=["rbf", "linear", "poly", "nu-sigmoid", "scaled"],
)
def test_onnx_models_give_the_labels_of_onnxruntime(tmp_path, rows, source, n_classes):
    onnxruntime = pytest.importorskip("onnxruntime")
    skl2onnx = pytest.importorskip("skl2onnx")
    X, y, new = rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = source.fit(X, y if n_classes == 3 else np.where(y > 0, "up", "down"))
        data = skl2onnx.to_onnx(fitted, X[:1], options={"zipmap": False}).SerializeToString()
    (tmp_path / "model.onnx").write_bytes(data)
    session = onnxruntime.InferenceSession(data)
    expected = session.run(None, {session.get_inputs()[0].name: new})[0]
    assert_array_equal(read_onnx_model(tmp_path / "model.onnx").predict(new), expected)


def test_a_name_in_an_onnx_model_that_is_no_text_is_refused(tmp_path):
    pytest.importorskip("onnx")
    data = (STORED / "onnx_scaled.onnx").read_bytes()
    path = tmp_path / "model.onnx"
    path.write_bytes(data.replace(b"SVMClassifier", b"SVMClassif\xe9er"))
    with pytest.raises(ValueError, match="expected an ONNX model with one SVMClassifier, found 0"):
        read_onnx_model(path)


def test_a_signalling_nan_in_an_onnx_model_is_refused_without_a_warning(tmp_path):
    onnx = pytest.importorskip("onnx")
    model = onnx.load(STORED / "onnx_scaled.onnx")
    node = next(node for node in model.graph.node if node.op_type == "SVMClassifier")
    rho = next(item for item in node.attribute if item.name == "rho")
    rho.floats[0] = 123.25
    data, path = model.SerializeToString(), tmp_path / "model.onnx"
    signalling = np.uint32(0x7F800001).tobytes()
    path.write_bytes(data.replace(np.float32(123.25).tobytes(), signalling))
    with pytest.raises(ValueError, match=r"model\.onnx"):
        read_onnx_model(path)


def test_an_onnx_model_with_other_steps_is_refused(tmp_path, rows):
    skl2onnx = pytest.importorskip("skl2onnx")
    X, y, _ = rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = make_pipeline(MinMaxScaler(clip=True), SVC()).fit(X, y)
        for name, model in (("steps", fitted), ("ridge", Ridge().fit(X, y))):
            data = skl2onnx.to_onnx(model, X[:1]).SerializeToString()
            (tmp_path / f"{name}.onnx").write_bytes(data)
    with pytest.raises(ValueError, match="expected nothing but a Scaler"):
        read_onnx_model(tmp_path / "steps.onnx")
    with pytest.raises(ValueError, match="expected an ONNX model with one SVMClassifier, found 0"):
        read_onnx_model(tmp_path / "ridge.onnx")


def test_a_stored_model_of_skops_gives_its_labels_and_probabilities(answers):
    pytest.importorskip("skops")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # another version of scikit-learn
        model = read_skops_model(STORED / "skops_svc.skops")
    exact = limes.accelerate(model, scheme="exact")
    assert_array_equal(exact.predict(answers["rows"]), answers["skops_svc_skops"])
    probabilities = exact.predict_proba(answers["rows"])
    assert_allclose(probabilities, answers["skops_probabilities"], atol=1e-6)


def test_an_outlier_detector_of_skops_gives_its_labels(tmp_path, rows):
    skops = pytest.importorskip("skops.io")
    X, _, new = rows
    detector = make_pipeline(StandardScaler(), OneClassSVM(nu=0.2)).fit(X)
    skops.dump(detector, tmp_path / "model.skops")
    exact = limes.accelerate(read_skops_model(tmp_path / "model.skops"), scheme="exact")
    assert_array_equal(exact.predict(new), detector.predict(new))


class Untrusted(TransformerMixin, BaseEstimator):
    """A step that skops does not know."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X


def test_types_that_skops_does_not_trust_are_named(tmp_path, rows):
    skops = pytest.importorskip("skops.io")
    X, y, _ = rows
    path = tmp_path / "model.skops"
    skops.dump(make_pipeline(Untrusted(), SVC()).fit(X, y), path)
    with pytest.raises(ValueError, match=r"types that skops trusts, found .*Untrusted: load it"):
        read_skops_model(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "opencv_inter.yml",
            "expected one of the kernels LINEAR, POLY, RBF, SIGMOID, found 'INTER'",
        ),
        ("skops_regression.skops", "expected a classifier, found a SVR"),
        ("otb.xml", "expected a model"),
    ],
)
def test_other_models_are_refused_in_one_line(capsys, tmp_path, name, message):
    words = ["accelerate", STORED / name, "--scheme", "exact", "-o", tmp_path / "fast.limes"]
    assert message in error_of(capsys, *words)


BAD_OPENCV = {
    "C_SVC": ("EPS_SVR", "found the regression model 'EPS_SVR'"),
    ">RBF<": (">CHI2<", "found 'CHI2'"),
    "-2 3 5": ("-2 3 3", "two labels or more that differ"),
    "<var_count>2": ("<var_count>3", "support vectors of 3 numbers"),
    "<rho>": ("<!-- <rho>", "expected XML, found an error"),
    '<?xml version="1.0"?>': ('<!DOCTYPE a [<!ENTITY b "c">]>', "without a document type"),
    "<gamma>0.1": ("<gamma>nan", "expected numbers as 'gamma', found 'nan"),
}


@pytest.mark.parametrize("old", BAD_OPENCV, ids=range(len(BAD_OPENCV)))
def test_damaged_models_of_opencv_are_refused(tmp_path, old):
    new, message = BAD_OPENCV[old]
    text = (STORED / "opencv_rbf.xml").read_text()
    assert old in text
    path = tmp_path / "model.xml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ValueError, match=message) as caught:
        read_opencv_model(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("opencv_rbf.xml", "opencv_rbf_xml"),
        ("onnx_scaled.onnx", "onnx_scaled_onnx"),
        ("onnx_two.onnx", "onnx_two_onnx"),
        ("skops_svc.skops", "skops_svc_skops"),
    ],
)
def test_the_command_accelerates_models_of_other_programs(
    tmp_path, monkeypatch, answers, name, answer
):
    monkeypatch.chdir(tmp_path)
    shutil.copy(STORED / name, tmp_path / "model.any")
    np.save("rows.npy", answers["rows"])
    assert main(["info", "model.any"]) == 0
    assert main(["accelerate", "model.any", "--scheme", "exact", "-o", "fast.limes"]) == 0
    for model in ("fast.limes", "model.any"):
        assert main(["predict", model, "rows.npy", "-o", "out.csv"]) == 0
        labels = np.array(Path("out.csv").read_text().replace('"', "").split()[1:])
        assert_array_equal(labels, answers[answer].astype(str))
