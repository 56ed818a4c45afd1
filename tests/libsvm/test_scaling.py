"""Scaling that other programs wrote beside a LIBSVM model becomes part of the model."""

import csv
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import limes
from limes.cli.main import main
from limes.libsvm import read_libsvm_model
from limes.libsvm.scaling import read_scaling

STORED = Path(__file__).parents[1] / "data" / "foreign"


def columns(name):
    with (STORED / name).open() as stream:
        rows = list(csv.DictReader(stream))
    return {key: np.array([row[key] for row in rows]) for key in rows[0]}


def matrix(table, names):
    return np.column_stack([table[name].astype(float) for name in names])


def test_ranges_of_svm_scale_make_the_model_take_raw_rows():
    model = read_libsvm_model(STORED / "libsvm.model", range=STORED / "libsvm.range")
    lines = [line.split() for line in (STORED / "libsvm_test").read_text().splitlines()]
    rows = np.zeros((len(lines), 4))
    for row, words in zip(rows, lines, strict=True):
        for word in words[1:]:
            index, value = word.split(":")
            row[int(index) - 1] = float(value)
    answers = [line.split() for line in (STORED / "libsvm_answers.txt").read_text().splitlines()]
    labels = np.array(answers[0][1:], dtype=int)
    expected = np.array(answers[1:], dtype=float)
    order = np.argsort(labels)
    # svm-scale writes six digits, and svm-predict too.
    assert_allclose(model.predict_proba(rows), expected[:, 1:][:, order], atol=2e-5)
    assert_array_equal(model[-1].predict_likeliest(model[0].transform(rows)), expected[:, 0])


def test_the_scale_file_of_r_makes_the_model_take_raw_rows():
    model = read_libsvm_model(STORED / "e1071.svm", range=STORED / "e1071.scale")
    rows = matrix(columns("e1071_rows.csv"), ["u", "v", "w"])
    answers = columns("e1071_answers.csv")
    # R's labels are levels of a factor, numbered from 1 in the file.
    labels = model[-1].predict_likeliest(model[0].transform(rows))
    assert_array_equal(np.array(["a", "b", "c"])[labels - 1], answers["label"])
    # The file has eight digits of each support vector.
    assert_allclose(model.predict_proba(rows), matrix(answers, ["a", "b", "c"]), atol=1e-6)


def test_statistics_of_otb_make_the_model_take_raw_rows():
    model = read_libsvm_model(STORED / "otb.svm", range=STORED / "otb.xml")
    answers = columns("otb_answers.csv")
    rows = matrix(answers, ["f1", "f2", "f3"])
    inner = model[0].transform(rows)
    assert_array_equal(model[-1].predict_likeliest(inner), answers["label"].astype(int))
    # OTB's confidence is the difference of the two largest probabilities.
    sorted_ = np.sort(model.predict_proba(rows), axis=1)
    assert_allclose(sorted_[:, -1] - sorted_[:, -2], answers["confidence"].astype(float), atol=1e-5)


def test_rescale_of_grass_divides_bands_that_are_numbered_from_0(tmp_path):
    (tmp_path / "sig").write_text(
        "svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho -1\nlabel 7 3\n"
        "nr_sv 1 1\nSV\n0.5 0:0 1:3 \n-0.5 0:2 1:3 \n"
    )
    (tmp_path / "rescale").write_text("100\n50\n")
    model = read_libsvm_model(tmp_path / "sig", range=tmp_path / "rescale")
    assert model[-1].first_index == 0
    assert model.predict([[0.0, 150.0], [200.0, 150.0]]).tolist() == [7, 3]


def test_the_scaling_is_folded_into_the_fast_model():
    model = read_libsvm_model(STORED / "libsvm.model", range=STORED / "libsvm.range")
    rows = np.random.default_rng(0).normal(size=(50, 4)) * [3, 3, 5, 1]
    exact = limes.accelerate(model, scheme="exact")
    assert_array_equal(exact.predict(rows), model.predict(rows))
    assert_allclose(exact.predict_proba(rows), model.predict_proba(rows), atol=1e-12)


@pytest.mark.parametrize("option", ["--range", "--imstat"])
def test_commands_take_the_scaling(tmp_path, monkeypatch, option):
    monkeypatch.chdir(tmp_path)
    name, scale = (
        ("libsvm.model", "libsvm.range") if option == "--range" else ("otb.svm", "otb.xml")
    )
    given = [str(STORED / name), "--scheme", "exact", option, str(STORED / scale)]
    assert main(["accelerate", *given, "-o", "fast.limes"]) == 0
    rows = np.random.default_rng(0).normal(size=(9, 4 if option == "--range" else 3))
    np.save("rows.npy", rows)
    assert main(["predict", "fast.limes", "rows.npy", "-o", "fast.txt"]) == 0
    assert (
        main(
            [
                "predict",
                str(STORED / name),
                "rows.npy",
                option,
                str(STORED / scale),
                "-o",
                "out.txt",
            ]
        )
        == 0
    )
    assert Path("fast.txt").read_text() == Path("out.txt").read_text()


BAD = {
    "x\n1 1\n1 0 1\n": "line 2: expected a lower limit and an upper one above it",
    "x\n0 1\n1 0 x\n": "line 3: expected numbers",
    "x\n0 1\n1 2 1\n": "line 3: expected each feature once, its minimum below its maximum",
    "x\n0 1\n1 0 1\n1 0 1\n": "line 4: expected each feature once",
    "x\n0 1\n99999999 0 1\n": "line 3: expected the index",
    "x\n0 1\n9999999 0 1\n": "expected features up to 1048576 in a file of 18 bytes",
    "y\n0 1\n": "line 3: expected two numbers",
    "": "expected the scaling of features, found an empty file",
    "1 2 3\n": "line 1: expected a file of scaling",
    "1 0\n": "expected deviations above 0, found 0.0 of feature 1",
    "1 2\n3\n": "line 2: expected a file of scaling",
    "<a/>": "expected statistics of Orfeo ToolBox",
    f'<a><Statistic name="{"9" * 5000}"/></a>': r"found the element 'a' with .{0,100}\.$",
    "<a>": "expected XML, found an error",
    '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>': "without a document type",
}


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_a_damaged_file_is_refused_in_one_sentence(tmp_path, text):
    path = tmp_path / "bad"
    path.write_text(text)
    with pytest.raises(ValueError, match=BAD[text]) as caught:
        read_scaling(path)
    assert str(caught.value).startswith(str(path))


def test_a_scaling_of_other_features_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"expected the scaling of 4 features.*found 3"):
        read_libsvm_model(STORED / "libsvm.model", range=STORED / "e1071.scale")
