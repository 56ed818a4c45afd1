"""Trained classifiers in a file of arrays: the same predictions when read again."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from limes.agf import AGFClassifier, KernelDensityClassifier
from limes.libsvm import LibsvmClassifier
from limes.libsvm.training import liblinear_classifier, standardizer
from limes.model.file_layout import write_container
from limes.saved_source import is_source, read_source, write_source
from limes.sources.svm import svm_from_sklearn


def svm(X, y, **options):
    svc = SVC(**options).fit(X, y)
    sigmoids = np.array([[-1.0], [0.25]]) if len(svc.classes_) == 2 else None
    return LibsvmClassifier(svm_from_sklearn(svc), svc.classes_, sigmoids=sigmoids)


CLASSIFIERS = {
    "svm": svm,
    "polynomial": lambda X, y: svm(X, y, kernel="poly", degree=2, coef0=1.0),
    "agf": lambda X, y: AGFClassifier(n_neighbors=30).fit(X, y),
    "kde": lambda X, y: KernelDensityClassifier().fit(X, y),
    "linear": lambda X, y: liblinear_classifier(2, fit_intercept=True).fit(X, y),
    "crammer": lambda X, y: liblinear_classifier(4).fit(X, y),
    "logistic": lambda X, y: liblinear_classifier(0, fit_intercept=True).fit(X, y),
}


@pytest.mark.parametrize("data", ["moons", "blobs"])
@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("scaled", [False, True])
def test_a_classifier_read_again_has_the_same_predictions(kind, data, scaled, request, tmp_path):
    X, y = request.getfixturevalue(data)
    model = CLASSIFIERS[kind](X, y)
    if scaled:
        steps = standardizer().fit(X)
        model = make_pipeline(steps, CLASSIFIERS[kind](steps.transform(X), y))
    write_source(model, tmp_path / "m")
    read, names = read_source(tmp_path / "m")
    assert names is None
    assert is_source(tmp_path / "m")
    assert_array_equal(read.predict(X), model.predict(X))
    assert_array_equal(read.classes_, model.classes_)
    for method in ("decision_function", "predict_proba"):
        assert hasattr(read, method) == hasattr(model, method)
        if hasattr(model, method):
            expected = getattr(model, method)(X)
            assert_allclose(getattr(read, method)(X), expected, rtol=1e-9, atol=1e-12)


def test_constant_features_are_dropped_again(moons, tmp_path):
    X, y = moons
    wide = np.column_stack([np.full(len(X), 7.0), X])
    steps = standardizer().fit(wide)
    model = make_pipeline(steps, svm(steps.transform(wide), y))
    write_source(model, tmp_path / "m", names=("c", "x", "y"))
    read, names = read_source(tmp_path / "m")
    assert names == ("c", "x", "y")
    assert read.n_features_in_ == 3
    assert_array_equal(read.predict(wide), model.predict(wide))


def test_a_classifier_that_a_file_cannot_hold_is_refused(moons, tmp_path):
    X, y = moons
    with pytest.raises(TypeError, match="cannot hold a SVC"):
        write_source(SVC().fit(X, y), tmp_path / "m")
    with pytest.raises(TypeError, match=r"can hold standardizer\(\) before a model"):
        write_source(make_pipeline(standardizer().fit(X)[1:], svm(X, y)), tmp_path / "m")
    assert not list(tmp_path.iterdir())


VALID = {
    "rows": np.array([[0.0], [9.0]]),
    "labels": np.array([1, 2]),
}


@pytest.mark.parametrize(
    ("header", "arrays"),
    [
        ({"source": "pickle"}, VALID),
        ({"source": 7}, VALID),
        ({"plain": []}, VALID),
        ({"plain": {}}, VALID),
        ({"plain": {"bandwidth": "auto"}}, VALID),
        ({"plain": {"bandwidth": -1.0}}, VALID),
        ({"names": ["rows"]}, VALID),
        ({"names": ["rows", 3]}, VALID),
        ({}, {**VALID, "labels": np.array([1, 2, 3])}),
        ({}, {**VALID, "rows": np.array([[0.0], [np.nan]])}),
        ({}, {**VALID, "rows": np.zeros((0, 0))}),
        ({}, {**VALID, "names": np.array(["a", "b"])}),
        ({}, {**VALID, "mean": np.zeros(2), "scale": np.ones(2), "is_kept": np.array([True])}),
        (
            {},
            {**VALID, "mean": np.zeros(1), "scale": np.zeros(1), "is_kept": np.array([True])},
        ),
        (
            {},
            {
                **VALID,
                "mean": np.zeros(1),
                "scale": np.array([1e-320]),
                "is_kept": np.array([True]),
            },
        ),
        ({}, {**VALID, "mean": np.zeros(1)}),
        ({"source": "svm"}, VALID),
        ({"source": "linear", "plain": {}}, {"coef": np.ones(3), "intercept": np.ones(1)}),
    ],
)
def test_an_inconsistent_file_is_refused_in_one_line(header, arrays, tmp_path):
    full = {"source": "kde", "plain": {"bandwidth": 2.0}, "names": list(arrays), **header}
    with (tmp_path / "m").open("wb") as stream:
        write_container(stream, full, list(arrays.values()), version=1)
    with pytest.raises(ValueError, match="m, byte ") as caught:
        read_source(tmp_path / "m")
    assert "\n" not in str(caught.value)


def test_the_file_that_the_inconsistent_ones_derive_from_is_read(tmp_path):
    header = {"source": "kde", "plain": {"bandwidth": 2.0}, "names": list(VALID)}
    with (tmp_path / "m").open("wb") as stream:
        write_container(stream, header, list(VALID.values()), version=1)
    assert_array_equal(read_source(tmp_path / "m")[0].predict([[1.0], [8.0]]), [1, 2])


def test_a_file_cut_short_is_refused(moons, tmp_path):
    write_source(svm(*moons), tmp_path / "m")
    data = (tmp_path / "m").read_bytes()
    (tmp_path / "m").write_bytes(data[:-10])
    with pytest.raises(ValueError, match="is it cut short"):
        read_source(tmp_path / "m")
