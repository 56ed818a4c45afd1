"""`limes train`: models of LIBSVM, and all classifiers."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import limes
from limes.files import create_rows, read_rows
from tests.cli.commands import QUICK, error_of, output_of, run

pytest.importorskip("pyarrow")


def test_a_trained_svm_is_a_libsvm_model(folder):
    svmutil = pytest.importorskip("libsvm.svmutil")
    X, y, _ = read_rows(folder / "test.csv")
    model = svmutil.svm_load_model(str(folder / "svm.model"))
    labels, _, values = svmutil.svm_predict(y.tolist(), X.tolist(), model, "-q -b 1")
    ours = limes.read_libsvm_model(folder / "svm.model")
    assert_array_equal(ours.predict_likeliest(X), labels)
    columns = np.argsort(model.get_labels())
    assert_allclose(ours.predict_proba(X), np.array(values)[:, columns], atol=1e-9)


def test_probabilities_of_a_trained_svm_are_calibrated(folder):
    X, y, _ = read_rows(folder / "test.csv")
    model = limes.read_libsvm_model(folder / "svm.model")
    probabilities = model.predict_proba(X)
    assert np.mean(model.classes_[probabilities.argmax(axis=1)] == y) > 0.7
    assert abs(probabilities.max(axis=1).mean() - np.mean(model.predict(X) == y)) < 0.1


@pytest.mark.parametrize("options", [("-t", "0"), ("-t", "1", "-r", "1"), ("-s", "1", "-n", "0.2")])
def test_options_of_libsvm_train_other_svms(options, folder, tmp_path):
    run("train", *options, folder / "train.svm", "-o", tmp_path / "m", "-q")
    X, y, _ = read_rows(folder / "test.csv")
    assert np.mean(limes.read_libsvm_model(tmp_path / "m").predict(X) == y) > 0.6


def test_weights_are_given_as_for_svm_train(folder, tmp_path, capsys):
    for name, words in {"a": ("-w1", "9"), "b": ("--weight", "1=9"), "c": ()}.items():
        run("train", *words, folder / "train.svm", "-o", tmp_path / name, "-q")
    a, b, c = ((tmp_path / name).read_text() for name in "abc")
    assert a == b
    assert a != c
    assert "LABEL=NUMBER, got '1=x'" in error_of(capsys, "train", "-w1", "x", folder / "train.svm")


def test_cross_validation_prints_what_svm_train_prints(folder, capsys):
    text = output_of(capsys, "train", "-v", "5", "-g", "0.1", folder / "train.svm")
    assert text.startswith("Cross Validation Accuracy = ")
    assert 70 < float(text.split("=")[1].rstrip("%\n")) <= 100
    result = json.loads(output_of(capsys, "train", "-v", "5", folder / "train.svm", "--json"))
    assert result["folds"] == 5


def test_without_an_output_the_model_is_named_as_by_svm_train(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("train", folder / "train.svm", "-q")
    assert (tmp_path / "train.svm.model").read_text().startswith("svm_type c_svc\n")


@pytest.mark.parametrize(
    "options",
    [
        ("--model", "agf", "-k", "50"),
        ("--model", "kde"),
        ("--model", "linear"),
        ("--model", "linear", "--solver", "0", "--bias"),
        ("--scale", "-c", "2"),
    ],
)
def test_every_classifier_is_trained_accelerated_and_scored(options, folder, tmp_path, capsys):
    run("train", *options, folder / "train.svm", "-o", tmp_path / "slow", "-q")
    run("accelerate", tmp_path / "slow", folder / "train.svm", "-o", tmp_path / "fast", *QUICK)
    words = ("--source", tmp_path / "slow", "--json")
    result = json.loads(output_of(capsys, "score", tmp_path / "fast", folder / "test.csv", *words))
    assert result["source"]["accuracy"] > 0.6
    assert result["agreement"] > 0.8


def test_labels_may_be_text(blobs, tmp_path, capsys):
    X, y = blobs
    with create_rows(tmp_path / "rows.csv") as writer:
        writer.write(X, y)
    run("train", tmp_path / "rows.csv", "-o", tmp_path / "slow", "-q", "-b", "1")
    run("accelerate", tmp_path / "slow", tmp_path / "rows.csv", "-o", tmp_path / "fast", *QUICK)
    run("predict", tmp_path / "fast", tmp_path / "rows.csv", "-o", tmp_path / "out.csv")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "label"
    assert {line.strip('"') for line in lines[1:]} <= set(y)
    assert len(lines) == 1 + len(y)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 1:2\n1 1:3\n", "expected two classes or more, found only 1."),
        ("1 1:2\n0.5 1:3\n", "whole numbers or text, found 0.5"),
    ],
)
def test_labels_that_are_not_classes_are_refused(text, expected, tmp_path, capsys):
    (tmp_path / "rows.svm").write_text(text)
    message = error_of(capsys, "train", tmp_path / "rows.svm", "-o", tmp_path / "m")
    assert f"{tmp_path / 'rows.svm'}: expected" in message
    assert expected in message
