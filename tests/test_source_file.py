"""Trained classifiers in a file: the same answers, and nothing but arrays."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from limes.agf import AGFClassifier, KernelDensityClassifier
from limes.libsvm import LibsvmClassifier
from limes.libsvm.training import liblinear_classifier, standardizer
from limes.model.container import write_container
from limes.source_file import is_source, read_source, write_source
from limes.sources.svm import svm_from_sklearn


def svm(X, y, **options):
    svc = SVC(**options).fit(X, y)
    sigmoids = np.array([[-1.0], [0.25]]) if len(svc.classes_) == 2 else None
    return LibsvmClassifier(svm_from_sklearn(svc), svc.classes_, sigmoids=sigmoids)


MAKERS = {
    "svm": lambda X, y: svm(X, y),
    "polynomial": lambda X, y: svm(X, y, kernel="poly", degree=2, coef0=1.0),
    "agf": lambda X, y: AGFClassifier(n_neighbors=30).fit(X, y),
    "kde": lambda X, y: KernelDensityClassifier().fit(X, y),
    "linear": lambda X, y: liblinear_classifier(2, fit_intercept=True).fit(X, y),
    "crammer": lambda X, y: liblinear_classifier(4).fit(X, y),
    "logistic": lambda X, y: liblinear_classifier(0, fit_intercept=True).fit(X, y),
}


@pytest.mark.parametrize("data", ["moons", "blobs"])
@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("scaled", [False, True])
def test_a_classifier_comes_back_with_its_answers(kind, data, scaled, request, tmp_path):
    X, y = request.getfixturevalue(data)
    model = MAKERS[kind](X, y)
    if scaled:
        steps = standardizer().fit(X)
        model = make_pipeline(steps, MAKERS[kind](steps.transform(X), y))
    write_source(model, tmp_path / "m")
    found, names = read_source(tmp_path / "m")
    assert names is None
    assert is_source(tmp_path / "m")
    assert_array_equal(found.predict(X), model.predict(X))
    assert_array_equal(found.classes_, model.classes_)
    for method in ("decision_function", "predict_proba"):
        assert hasattr(found, method) == hasattr(model, method)
        if hasattr(model, method):
            expected = getattr(model, method)(X)
            assert_allclose(getattr(found, method)(X), expected, rtol=1e-9, atol=1e-12)


def test_constant_features_are_dropped_again(moons, tmp_path):
    X, y = moons
    wide = np.column_stack([np.full(len(X), 7.0), X])
    steps = standardizer().fit(wide)
    model = make_pipeline(steps, svm(steps.transform(wide), y))
    write_source(model, tmp_path / "m", names=("c", "x", "y"))
    found, names = read_source(tmp_path / "m")
    assert names == ("c", "x", "y")
    assert found.n_features_in_ == 3
    assert_array_equal(found.predict(wide), model.predict(wide))


def test_what_a_file_cannot_hold_is_refused(moons, tmp_path):
    X, y = moons
    with pytest.raises(TypeError, match="cannot hold a SVC"):
        write_source(SVC().fit(X, y), tmp_path / "m")
    with pytest.raises(TypeError, match=r"can hold standardizer\(\) before a model"):
        write_source(make_pipeline(standardizer().fit(X)[1:], svm(X, y)), tmp_path / "m")
    assert not list(tmp_path.iterdir())


GOOD = {
    "rows": np.array([[0.0], [9.0]]),
    "labels": np.array([1, 2]),
}


@pytest.mark.parametrize(
    ("header", "arrays"),
    [
        ({"source": "pickle"}, GOOD),
        ({"source": 7}, GOOD),
        ({"plain": []}, GOOD),
        ({"plain": {}}, GOOD),
        ({"plain": {"bandwidth": "auto"}}, GOOD),
        ({"plain": {"bandwidth": -1.0}}, GOOD),
        ({"names": ["rows"]}, GOOD),
        ({"names": ["rows", 3]}, GOOD),
        ({}, {**GOOD, "labels": np.array([1, 2, 3])}),
        ({}, {**GOOD, "rows": np.array([[0.0], [np.nan]])}),
        ({}, {**GOOD, "rows": np.zeros((0, 0))}),
        ({}, {**GOOD, "names": np.array(["a", "b"])}),
        ({}, {**GOOD, "mean": np.zeros(2), "scale": np.ones(2), "is_kept": np.array([True])}),
        ({}, {**GOOD, "mean": np.zeros(1), "scale": np.zeros(1), "is_kept": np.array([True])}),
        (
            {},
            {**GOOD, "mean": np.zeros(1), "scale": np.array([1e-320]), "is_kept": np.array([True])},
        ),
        ({}, {**GOOD, "mean": np.zeros(1)}),
        ({"source": "svm"}, GOOD),
        ({"source": "linear", "plain": {}}, {"coef": np.ones(3), "intercept": np.ones(1)}),
    ],
)
def test_a_file_that_is_made_up_is_refused_in_one_line(header, arrays, tmp_path):
    full = {"source": "kde", "plain": {"bandwidth": 2.0}, "names": list(arrays), **header}
    with (tmp_path / "m").open("wb") as stream:
        write_container(stream, full, list(arrays.values()))
    with pytest.raises(ValueError, match="m, byte ") as caught:
        read_source(tmp_path / "m")
    assert "\n" not in str(caught.value)


def test_the_file_that_the_others_are_made_from_is_good(tmp_path):
    header = {"source": "kde", "plain": {"bandwidth": 2.0}, "names": list(GOOD)}
    with (tmp_path / "m").open("wb") as stream:
        write_container(stream, header, list(GOOD.values()))
    assert_array_equal(read_source(tmp_path / "m")[0].predict([[1.0], [8.0]]), [1, 2])


def test_a_file_cut_short_is_refused(moons, tmp_path):
    write_source(svm(*moons), tmp_path / "m")
    data = (tmp_path / "m").read_bytes()
    (tmp_path / "m").write_bytes(data[:-10])
    with pytest.raises(ValueError, match="is it cut short"):
        read_source(tmp_path / "m")
