"""One-class SVMs of LIBSVM: predictions as by LIBSVM itself, files, commands."""

import json

import numpy as np
import pytest
from libsvm.svmutil import svm_predict, svm_save_model, svm_train
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.svm import OneClassSVM
from threadpoolctl import threadpool_limits

import limes
from limes.files import create_rows
from limes.libsvm import LibsvmOneClass, read_libsvm_model, write_libsvm_model
from tests.cli.commands import error_of, output_of, run

KERNELS = {
    "linear": "-t 0",
    "poly": "-t 1 -d 3 -g 0.3 -r 0.5",
    "rbf": "-t 2 -g 0.4",
    "sigmoid": "-t 3 -g 0.05 -r 0.1",
}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(1.0, 1.0, (300, 3)).round(3)


def train(rows, path, options):
    """Train and save a one-class SVM by LIBSVM, and return it."""
    model = svm_train([1] * len(rows), rows.tolist(), f"-s 2 -n 0.2 -q {options}")
    svm_save_model(str(path), model)
    return model


@pytest.mark.parametrize("kernel", KERNELS)
def test_predictions_are_those_of_libsvm(kernel, rows, tmp_path):
    model = train(rows, tmp_path / "one.model", KERNELS[kernel])
    X = np.random.default_rng(1).normal(1.0, 2.0, (500, 3)).round(3)
    labels, _, values = svm_predict([], X.tolist(), model, "-q")
    read = read_libsvm_model(tmp_path / "one.model", n_features=3)
    assert isinstance(read, LibsvmOneClass)
    fast = limes.accelerate(read, rows)
    assert isinstance(fast, limes.BordersOutlierDetector)
    for detector in (read, fast):
        assert_array_equal(detector.predict(X), labels)
        decision = detector.decision_function(X)
        assert_allclose(decision, np.ravel(values), rtol=1e-9, atol=1e-9)
        assert_array_equal(detector.score_samples(X), decision + detector.offset_)
    assert_array_equal(read.predict(sparse.csr_matrix(X)), labels)


@pytest.mark.parametrize("kind", ["sklearn", "libsvm"])
def test_a_written_model_is_read_as_it_was(kind, rows, tmp_path):
    source = OneClassSVM(nu=0.2, gamma=0.4).fit(rows)
    if kind == "libsvm":
        train(rows, tmp_path / "first.model", KERNELS["rbf"])
        source = read_libsvm_model(tmp_path / "first.model")
    write_libsvm_model(source, tmp_path / "again.model")
    again = read_libsvm_model(tmp_path / "again.model")
    assert_allclose(again.decision_function(rows), source.decision_function(rows), atol=1e-12)
    lines = (tmp_path / "again.model").read_text().splitlines()
    assert lines[0] == "svm_type one_class"
    assert not [line for line in lines if line.startswith(("label", "nr_sv"))]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("total_sv 1", "total_sv -1", "expected 0 support vectors or more, found -1"),
        ("total_sv 1", "total_sv 2", "support vector 2 of 2"),
        ("rho 0.5", "rho 0.5 0.5", "expected 1 values after 'rho', found 2"),
    ],
)
def test_an_inconsistent_file_is_refused(old, new, message, tmp_path):
    text = "svm_type one_class\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho 0.5\nSV\n1 1:2\n"
    (tmp_path / "bad.model").write_text(text)
    assert read_libsvm_model(tmp_path / "bad.model").predict([[0.1], [1.0]]).tolist() == [-1, 1]
    (tmp_path / "bad.model").write_text(text.replace(old, new))
    with pytest.raises(ValueError, match=message):
        read_libsvm_model(tmp_path / "bad.model")


def test_commands_take_a_one_class_model(rows, tmp_path, capsys):
    train(rows, tmp_path / "one.model", KERNELS["rbf"])
    with create_rows(tmp_path / "rows.svm") as writer:
        writer.write(rows, np.ones(len(rows), dtype=int))
    fast = tmp_path / "fast.limes"
    words = ("accelerate", tmp_path / "one.model", tmp_path / "rows.svm", "-o", fast)
    assert "exact" in output_of(capsys, *words)
    for model in (fast, tmp_path / "one.model"):
        run("predict", model, tmp_path / "rows.svm", "-o", tmp_path / "out.txt")
        expected = read_libsvm_model(tmp_path / "one.model").predict(rows)
        assert_array_equal(np.loadtxt(tmp_path / "out.txt"), expected)
    facts = json.loads(output_of(capsys, "info", fast, "--json"))
    assert facts["kind"] == "fast outlier detector"
    assert facts["classes"] == [-1, 1]
    assert facts["score_correlation"] == 1.0
    assert "one_class" in output_of(capsys, "info", tmp_path / "one.model")
    proba = ("predict", fast, tmp_path / "rows.svm", "-o", tmp_path / "out.txt", "--proba")
    assert "an outlier detector has labels and scores only" in error_of(capsys, *proba)
    error = error_of(capsys, *words, "--max-cost", "10")
    assert "'max_cost' is not a parameter of BordersOutlierDetector" in error
    run("export", fast, "--to", "c", "-o", tmp_path / "fast.h")
    assert "-1, 1" in (tmp_path / "fast.h").read_text()
