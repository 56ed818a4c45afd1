"""LIBSVM model files: predictions as by LIBSVM itself, and inconsistent files."""

import contextlib
import os
import pickle
import tracemalloc
from ctypes import c_double
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from libsvm.svm import gen_svm_nodearray, libsvm
from libsvm.svmutil import svm_load_model, svm_save_model, svm_train
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVC
from threadpoolctl import threadpool_limits

from limes.libsvm import LibsvmClassifier, read_libsvm_model, write_libsvm_model

KERNELS = {
    "linear": "-t 0",
    "poly": "-t 1 -d 3 -g 0.3 -r 0.5",
    "rbf": "-t 2 -g 0.4",
    "sigmoid": "-t 3 -g 0.05 -r 0.1",
}
# A smaller nu is hardly feasible here: coefficients of 1e4 cancel, and LIBSVM itself loses digits.
TYPES = {"c_svc": "-s 0 -c 2", "nu_svc": "-s 1 -n 0.7"}
LABELS = np.array([5, -3, 11, 2, 7, 0, 4])
SMALL = b"""svm_type c_svc
kernel_type polynomial
degree 2
gamma 0.5
coef0 1
nr_class 3
total_sv 4
rho 0.1 -0.2 0.3
label 3 1 2
probA -1 -2 -3
probB 0.1 0.2 0.3
nr_sv 1 2 1
SV
1 0.5 1:0.25 3:-1
-1 1e-1 2:1
-0.5 0
0.5 -1 1:2 2:3 3:4
"""


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Run LIBSVM in one thread: several would wait for each other on a busy computer."""
    with threadpool_limits(1):
        yield


def overlapping_rows(n_classes, seed=0, n_rows=175):
    """Return classes that overlap, so that votes tie, in an order that is not sorted."""
    rng = np.random.default_rng(seed)
    class_index = np.arange(n_rows) % n_classes
    centres = np.random.default_rng(1).normal(size=(n_classes, 4))
    X = centres[class_index] + rng.normal(scale=1.0, size=(n_rows, 4))
    X[rng.uniform(size=X.shape) < 0.1] = 0.0
    return X, LABELS[class_index]


def saved_model(folder, n_classes, options):
    """Train by LIBSVM, and return the file and LIBSVM's own reading of it."""
    X, y = overlapping_rows(n_classes)
    path = folder / "test.model"
    svm_save_model(str(path), svm_train(y, X, f"-q {options}"))
    return path, svm_load_model(str(path))


def libsvm_predictions(model, X, *, probabilities=False):
    """Return LIBSVM's labels, and its decision values or probabilities.

    ``svm_predict`` of the package allocates one decision value for a nu-SVC with any number of
    pairs, and so writes past its end; hence the calls of the library itself.
    """
    n_classes = model.get_nr_class()
    n_numbers = n_classes if probabilities else n_classes * (n_classes - 1) // 2
    call = libsvm.svm_predict_probability if probabilities else libsvm.svm_predict_values
    numbers = (c_double * n_numbers)()
    labels, rows = [], []
    for row in X:
        nodes, _ = gen_svm_nodearray(row)
        labels.append(call(model, nodes, numbers))
        rows.append(list(numbers))
    return np.array(labels), np.array(rows)


def libsvm_decisions(model, X):
    """Return our decision values with LIBSVM's sign, positive for the first class of a pair."""
    return -model.svm.pair_decisions(X)


def test_rows_exactly_on_a_border_are_labelled_as_by_libsvm(tmp_path):
    """All decision values are sums of whole numbers and halves, and zero on many rows."""
    head = b"svm_type c_svc\nkernel_type linear\nnr_class 3\ntotal_sv 3\nrho 1 0 -1\n"
    table = b"label 5 2 9\nnr_sv 1 1 1\nSV\n1 1 1:1 2:0\n-1 2 1:0 2:1\n-1 -1 1:-1 2:1\n"
    path = tmp_path / "zero.model"
    path.write_bytes(head + table)
    X = np.array([[i, j] for i in range(-4, 5) for j in range(-4, 5)], dtype=float)
    model = read_libsvm_model(path)
    assert np.sum(libsvm_decisions(model, X) == 0) > 20
    labels, _ = libsvm_predictions(svm_load_model(str(path)), X)
    assert_array_equal(model.predict(X), labels)


CASES = pytest.mark.parametrize(
    ("svm_type", "kernel", "n_classes"),
    [(s, k, n) for s in TYPES for k in KERNELS for n in (2, 7)],
)


@CASES
def test_decision_values_and_labels_are_those_of_libsvm(tmp_path, svm_type, kernel, n_classes):
    path, reference = saved_model(tmp_path, n_classes, f"{TYPES[svm_type]} {KERNELS[kernel]}")
    rows, _ = overlapping_rows(n_classes, seed=2)
    labels, values = libsvm_predictions(reference, rows)
    model = read_libsvm_model(path)
    assert_allclose(libsvm_decisions(model, rows), values, rtol=1e-9)
    assert_array_equal(model.predict(rows), labels)
    assert_array_equal(model.labels, LABELS[:n_classes])
    assert model.svm_type == svm_type


@CASES
def test_probabilities_are_those_of_libsvm(tmp_path, svm_type, kernel, n_classes):
    options = f"{TYPES[svm_type]} {KERNELS[kernel]} -b 1"
    path, reference = saved_model(tmp_path, n_classes, options)
    rows, _ = overlapping_rows(n_classes, seed=2)
    labels, probabilities = libsvm_predictions(reference, rows, probabilities=True)
    model = read_libsvm_model(path)
    in_order = np.argsort(LABELS[:n_classes])
    assert_allclose(model.predict_proba(rows), probabilities[:, in_order], rtol=1e-9)
    assert_array_equal(model.predict_likeliest(rows), labels)


@CASES
def test_a_written_svc_is_predicted_alike_by_libsvm(tmp_path, svm_type, kernel, n_classes):
    X, y = overlapping_rows(n_classes)
    svc = SVC(C=2.0) if svm_type == "c_svc" else NuSVC(nu=0.7)
    svc.set_params(kernel=kernel, coef0=0.1, decision_function_shape="ovo").fit(X, y)
    write_libsvm_model(svc, tmp_path / "written.model")
    rows, _ = overlapping_rows(n_classes, seed=2)
    labels, values = libsvm_predictions(svm_load_model(str(tmp_path / "written.model")), rows)
    expected = svc.decision_function(rows).reshape(len(rows), -1)
    expected = -expected if n_classes == 2 else expected
    assert_allclose(values, expected, rtol=1e-9)
    assert_array_equal(labels, svc.predict(rows))


@pytest.mark.parametrize("n_classes", [2, 7])
def test_a_model_passes_through_reading_and_writing_unchanged(tmp_path, n_classes):
    path, _ = saved_model(tmp_path, n_classes, "-g 0.4 -b 1")
    model = read_libsvm_model(path)
    write_libsvm_model(model, tmp_path / "again.model")
    again = read_libsvm_model(tmp_path / "again.model")
    for name in ("vectors", "dual_coef", "intercepts", "n_support"):
        assert_array_equal(getattr(again.svm, name), getattr(model.svm, name))
    assert_array_equal(again.sigmoids, model.sigmoids)
    assert_array_equal(again.labels, model.labels)
    assert again.svm.kernel == model.svm.kernel
    rows, _ = overlapping_rows(n_classes, seed=2)
    _, expected = libsvm_predictions(svm_load_model(str(path)), rows, probabilities=True)
    _, found = libsvm_predictions(
        svm_load_model(str(tmp_path / "again.model")), rows, probabilities=True
    )
    assert_array_equal(found, expected)


@pytest.mark.parametrize("n_classes", [2, 7])
def test_decision_function_is_that_of_an_svc(tmp_path, n_classes):
    X, y = overlapping_rows(n_classes)
    svc = SVC(gamma=0.4).fit(X, y)
    write_libsvm_model(svc, tmp_path / "svc.model")
    model = read_libsvm_model(tmp_path / "svc.model")
    assert_allclose(model.decision_function(X), svc.decision_function(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 7])
def test_decision_function_does_not_depend_on_the_order_of_labels(tmp_path, n_classes):
    X, y = overlapping_rows(n_classes)
    svc = SVC(gamma=0.4, C=2.0, tol=1e-9).fit(X, y)
    svm_save_model(str(tmp_path / "m"), svm_train(y, X, "-q -g 0.4 -c 2 -e 1e-9"))
    model = read_libsvm_model(tmp_path / "m")
    assert_array_equal(model.classes_, svc.classes_)
    assert not np.array_equal(model.labels, svc.classes_)
    assert_allclose(model.decision_function(X), svc.decision_function(X), rtol=1e-4, atol=1e-5)


def test_equal_votes_go_to_the_first_label_of_the_file(tmp_path):
    path, reference = saved_model(tmp_path, 7, "-t 3 -g 0.05")
    rows, _ = overlapping_rows(7, seed=2, n_rows=2000)
    model = read_libsvm_model(path)
    votes = np.sort(np.floor(model.decision_function(rows) + 0.5), axis=1)
    assert (votes[:, -1] == votes[:, -2]).any()
    assert_array_equal(model.predict(rows), libsvm_predictions(reference, rows)[0])


def test_a_model_without_probabilities_has_no_such_method(tmp_path):
    path, _ = saved_model(tmp_path, 2, "-g 0.4")
    model = read_libsvm_model(path)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "predict_likeliest")


def test_sparse_rows_and_float32_rows_are_taken(tmp_path):
    path, _ = saved_model(tmp_path, 7, "-g 0.4 -b 1")
    model = read_libsvm_model(path)
    rows, _ = overlapping_rows(7, seed=2)
    assert_array_equal(model.predict_proba(sparse.csr_array(rows)), model.predict_proba(rows))
    assert (model.predict(rows.astype(np.float32)) == model.predict(rows)).mean() > 0.99


def test_the_model_has_the_interface_of_scikit_learn(tmp_path):
    path, _ = saved_model(tmp_path, 7, "-g 0.4")
    model = read_libsvm_model(path)
    rows, y = overlapping_rows(7, seed=2)
    assert is_classifier(model)
    assert model.fit(rows, y) is model
    assert model.score(rows, y) == (model.predict(rows) == y).mean()
    for copy in (clone(model), pickle.loads(pickle.dumps(model))):
        assert_array_equal(copy.predict(rows), model.predict(rows))
    pipe = make_pipeline(StandardScaler(), model).fit(rows, y)
    assert_array_equal(pipe.predict(rows), model.predict(pipe[0].transform(rows)))


def test_rows_with_other_features_are_refused(tmp_path):
    path, _ = saved_model(tmp_path, 2, "-g 0.4")
    with pytest.raises(ValueError, match="expecting 4 features"):
        read_libsvm_model(path).predict(np.zeros((3, 5)))


def test_features_that_no_support_vector_has_count_in_the_distance(tmp_path):
    path, reference = saved_model(tmp_path, 2, "-g 0.4")
    model = read_libsvm_model(path, n_features=6)
    rows = np.random.default_rng(0).normal(size=(20, 6))
    _, expected = libsvm_predictions(reference, rows)
    assert_allclose(libsvm_decisions(model, rows), expected, rtol=1e-9)


def written(folder, text):
    path = folder / "some.model"
    path.write_bytes(text)
    return path


def test_a_small_file_is_read(tmp_path):
    model = read_libsvm_model(written(tmp_path, SMALL))
    assert_array_equal(model.labels, [3, 1, 2])
    assert_array_equal(
        model.svm.vectors,
        [[0.25, 0.0, -1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [2.0, 3.0, 4.0]],
    )
    assert_array_equal(model.svm.dual_coef, [[1.0, -1.0, -0.5, 0.5], [0.5, 0.1, 0.0, -1.0]])
    assert_array_equal(model.svm.intercepts, [-0.1, 0.2, -0.3])
    assert_array_equal(model.sigmoids, [[-1.0, -2.0, -3.0], [0.1, 0.2, 0.3]])


@pytest.mark.parametrize(
    "harmless",
    [
        SMALL.replace(b"\n", b"\r\n"),
        SMALL + b"\n \n",
        SMALL.replace(b"nr_sv", b"prob_density_marks 0.1 0.2\nnr_sv"),
        SMALL.replace(b" 1:0.25", b"\t  1:0.25"),
    ],
    ids=["windows", "blank end", "density marks", "tabs"],
)
def test_harmless_variants_are_the_same_model(tmp_path, harmless):
    rows = np.random.default_rng(0).normal(size=(5, 3))
    expected = read_libsvm_model(written(tmp_path, SMALL)).predict_proba(rows)
    variant = read_libsvm_model(written(tmp_path, harmless)).predict_proba(rows)
    assert_array_equal(variant, expected)


INCONSISTENT = {
    "svm_type epsilon_svr": (b"c_svc", b"epsilon_svr", r"found the regression model 'epsilon_svr'"),
    "no svm_type": (b"svm_type c_svc\n", b"", r"line 'svm_type' before 'SV'"),
    "precomputed": (b"polynomial", b"precomputed", r"line 2: expected one of .*'precomputed'"),
    "unknown key": (b"degree 2", b"depth 2", r"line 3: expected 'SV' or one of .*depth"),
    "a key twice": (b"degree 2", b"degree 2\ndegree 2", r"line 4: expected .* each once"),
    "bad gamma": (b"gamma 0.5", b"gamma nan", r"line 4: expected numbers after 'gamma'"),
    "infinite gamma": (b"gamma 0.5", b"gamma 1e999", r"line 4: expected finite numbers"),
    "negative gamma": (b"gamma 0.5", b"gamma -0.5", r"gamma must be 0 or more"),
    "negative degree": (b"degree 2", b"degree -2", r"degree must be a whole number"),
    "no degree": (b"degree 2\n", b"", r"line 'degree'"),
    "odd number": (b"gamma 0.5", b"gamma 0.5.5", r"line 4: expected numbers"),
    "underscore": (b"gamma 0.5", b"gamma 1_0", r"line 4: expected numbers"),
    "one class": (b"nr_class 3", b"nr_class 1", r"line 6: expected 2 classes"),
    "too many classes": (b"nr_class 3", b"nr_class 999999999", r"expected 999999999 values"),
    "huge number": (b"nr_class 3", b"nr_class " + b"9" * 5000, r"line 6: expected numbers"),
    "short rho": (
        b"rho 0.1 -0.2 0.3",
        b"rho 0.1",
        r"line 8: expected 3 values after 'rho', found 1",
    ),
    "same label": (b"label 3 1 2", b"label 3 1 3", r"line 9: expected labels that differ"),
    "broken label": (b"label 3 1 2", b"label 3 1.5 2", r"line 9: expected numbers"),
    "no probB": (b"probB 0.1 0.2 0.3\n", b"", r"line 'probB'"),
    "wrong nr_sv": (b"nr_sv 1 2 1", b"nr_sv 1 1 1", r"line 12: expected counts .*found 3"),
    "negative nr_sv": (b"nr_sv 1 2 1", b"nr_sv -1 4 1", r"line 12: expected counts"),
    "no SV": (b"\nSV\n", b"\n", r"line 13: expected 'SV'"),
    "too few vectors": (b"0.5 -1 1:2 2:3 3:4\n", b"", r"line 17: .*4 of 4\), found the end of"),
    "no end of line": (b"3:4\n", b"3:4", r"line 17: expected a line with its end"),
    "too many vectors": (b"0.5 -1 1:2", b"1 1 1:1\n0.5 -1 1:2", r"line 18: expected the end"),
    "short coefficients": (b"-0.5 0", b"-0.5", r"line 16: expected 2 coefficients"),
    "long coefficients": (b"-0.5 0", b"-0.5 0 1", r"line 16: expected 2 coefficients"),
    "two colons": (b"1:2 2:3", b"1:2:2 3", r"line 17: expected 2 coefficients"),
    "no value": (b"2:1\n", b"2:\n", r"line 15: expected 2 coefficients"),
    "negative feature": (b"1:0.25", b"-1:0.25", r"line 14: expected 2 coefficients"),
    "falling features": (b"1:2 2:3", b"2:2 1:3", r"line 17: expected feature indices"),
    "a feature twice": (b"1:2 2:3", b"2:2 2:3", r"line 17: expected feature indices"),
    "infinite value": (b"2:1\n", b"2:1e400\n", r"line 15: expected finite numbers"),
    "not a value": (b"2:1\n", b"2:1-1\n", r"line 15: expected numbers"),
    "huge feature": (b"3:4", b"999999999999999:4", r"at most max_bytes=67108864"),
    "too large feature": (b"3:4", b"9" * 30 + b":4", r"line 17: expected 2 coefficients"),
    "empty": (SMALL, b"", r"line 1: expected 'SV' or .*found the end of the file"),
    "a zip": (SMALL, b"PK\x03\x04\x00\xff\xfe\n", r"line 1: expected 'SV'"),
}


@pytest.mark.parametrize(("old", "new", "message"), INCONSISTENT.values(), ids=INCONSISTENT)
def test_an_inconsistent_file_is_refused_with_its_line(tmp_path, old, new, message):
    assert old in SMALL
    path = written(tmp_path, SMALL.replace(old, new))
    with pytest.raises(ValueError, match=message) as caught:
        read_libsvm_model(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_every_truncated_file_is_refused(tmp_path):
    path = tmp_path / "cut.model"
    for length in range(len(SMALL)):
        path.write_bytes(SMALL[:length])
        with pytest.raises(ValueError, match="expected"):
            read_libsvm_model(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"3:4", b"3:4 99999999:1"),
        (b"total_sv 4", b"total_sv 999999999999999999"),
        (b"nr_class 3", b"nr_class 999999999999999999"),
    ],
)
def test_memory_does_not_grow_with_the_counts_of_a_header(tmp_path, old, new):
    text = SMALL.replace(old, new)
    if b"total" in new:
        text = text.replace(b"nr_sv 1 2 1", b"nr_sv 1 2 999999999999999996")
    path = written(tmp_path, text)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="expected"):
            read_libsvm_model(path)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_max_bytes_bounds_the_support_vectors(tmp_path):
    path = written(tmp_path, SMALL)
    assert read_libsvm_model(path, max_bytes=8 * 4 * 3).n_features_in_ == 3
    with pytest.raises(ValueError, match=r"found 4 with 3 features \(96 bytes\)"):
        read_libsvm_model(path, max_bytes=95)
    with pytest.raises(ValueError, match=r"line 17: expected support vectors of at most"):
        read_libsvm_model(path, max_bytes=40)


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("limes.files.streams.MAX_LINE_BYTES", 100)
    path = written(tmp_path, SMALL.replace(b"c_svc", b"c" * 100))
    with pytest.raises(ValueError, match="line 1: expected a line of fewer than 100 bytes"):
        read_libsvm_model(path)


@pytest.mark.parametrize("n_features", [0, 2])
def test_too_few_features_are_refused(tmp_path, n_features):
    with pytest.raises(ValueError, match="n_features must be 3 or more"):
        read_libsvm_model(written(tmp_path, SMALL), n_features=n_features)


def test_vectors_without_features_need_their_number(tmp_path):
    path = written(tmp_path, SMALL[: SMALL.index(b"SV\n")] + b"SV\n" + 4 * b"1 1 \n")
    with pytest.raises(ValueError, match="give n_features"):
        read_libsvm_model(path)
    assert read_libsvm_model(path, n_features=2).predict([[1.0, 2.0]]).shape == (1,)


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_libsvm_model(tmp_path / "none.model")


@st.composite
def mutated_files(draw):
    """Draw a file with some bytes cut out and others put in."""
    text = SMALL
    pieces = st.one_of(
        st.binary(max_size=8),
        st.text("0123456789+-.eE: \n", max_size=12).map(str.encode),
        st.sampled_from(SMALL.split(b"\n")),
        st.sampled_from([b"1e999", b"-1", b"99999999999999999999", b"nan", b"\x00", b"1_0"]),
    )
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        n_cut = draw(st.integers(0, 12))
        text = text[:start] + draw(pieces) + text[start + n_cut :]
    return text


@given(mutated_files())
@example(SMALL)
@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_mutated_file_is_a_model_or_a_value_error(tmp_path, text):
    path = written(tmp_path, text)
    model = None
    with contextlib.suppress(ValueError):
        model = read_libsvm_model(path, max_bytes=1 << 20)
    if model is None:
        return
    rows = np.ones((2, model.n_features_in_))
    with np.errstate(all="ignore"):
        assert np.isin(model.predict(rows), model.labels).all()


def test_a_failed_writing_leaves_the_old_file(tmp_path, monkeypatch):
    path, _ = saved_model(tmp_path, 2, "-g 0.4")
    model, old = read_libsvm_model(path), path.read_bytes()

    def full_disk(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        write_libsvm_model(model, path)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == [path.name]


def test_an_existing_file_is_replaced_as_a_whole(tmp_path):
    path = written(tmp_path, b"old\n" * 10_000)
    model = read_libsvm_model(written(tmp_path, SMALL))
    write_libsvm_model(model, path)
    assert_array_equal(read_libsvm_model(path).svm.vectors, model.svm.vectors)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("classes", [["a", "b"], [0.5, 1.0], [0, 2**31]])
def test_labels_that_libsvm_does_not_know_are_refused(tmp_path, classes):
    svc = SVC().fit([[0.0], [1.0]], [0, 1])
    svc.classes_ = np.array(classes)
    with pytest.raises(ValueError, match="whole numbers"):
        write_libsvm_model(svc, tmp_path / "m")
    assert os.listdir(tmp_path) == []


def test_whole_float_labels_are_written_as_whole_numbers(tmp_path):
    write_libsvm_model(SVC().fit([[0.0], [1.0]], [-1.0, 1.0]), tmp_path / "m")
    assert_array_equal(read_libsvm_model(tmp_path / "m").labels, [-1, 1])


def test_only_support_vector_classifiers_are_written(tmp_path):
    with pytest.raises(TypeError, match="expected an SVC"):
        write_libsvm_model(SVR().fit([[0.0], [1.0]], [0.0, 1.0]), tmp_path / "m")


@pytest.fixture(scope="module")
def sat():
    """Return sat's rows, standardised, and labels out of order."""
    if "LIMES_DATA" not in os.environ:
        pytest.skip("LIMES_DATA is not set")
    arrays = np.load(Path(os.environ["LIMES_DATA"], "sat.npz"))
    scaler = StandardScaler().fit(arrays["X_train"])
    labels = 100 - 7 * arrays["y_train"][:1500].astype(int)
    X, rows = arrays["X_train"][:1500], arrays["X_test"][:1000]
    return scaler.transform(X), labels, scaler.transform(rows)


@pytest.mark.data
def test_sat_has_the_predictions_of_libsvm(sat, tmp_path):
    X, y, rows = sat
    path = tmp_path / "sat.model"
    svm_save_model(str(path), svm_train(y, X, "-q -c 50 -g 0.1 -b 1"))
    reference, model = svm_load_model(str(path)), read_libsvm_model(path)
    labels, values = libsvm_predictions(reference, rows)
    assert_array_equal(model.predict(rows), labels)
    assert_allclose(libsvm_decisions(model, rows), values, rtol=1e-9)
    likeliest, probabilities = libsvm_predictions(reference, rows, probabilities=True)
    assert_array_equal(model.predict_likeliest(rows), likeliest)
    found = model.predict_proba(rows)
    assert_allclose(found, probabilities[:, np.argsort(model.labels)], rtol=1e-9)


@pytest.mark.data
def test_a_written_sat_is_predicted_alike_by_libsvm(sat, tmp_path):
    X, y, rows = sat
    svc = SVC(C=50, gamma=0.1).fit(X, y)
    write_libsvm_model(svc, tmp_path / "sat.model")
    labels, _ = libsvm_predictions(svm_load_model(str(tmp_path / "sat.model")), rows)
    assert_array_equal(labels, svc.predict(rows))
    assert isinstance(read_libsvm_model(tmp_path / "sat.model"), LibsvmClassifier)


def test_a_short_file_with_a_high_feature_takes_little_memory(tmp_path):
    head = b"svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 1\nlabel 5 2\n"
    path = tmp_path / "high.model"
    path.write_bytes(head + b"nr_sv 1 1\nSV\n1 60000000:1\n-1 1:1\n")
    with pytest.raises(ValueError, match="60000000 features"):
        read_libsvm_model(path)


def test_wide_sparse_rows_are_converted_in_blocks(tmp_path):
    n_features, n_rows = 1_000_000, 200
    head = b"svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 0\nlabel 5 2\n"
    path = tmp_path / "wide.model"
    path.write_bytes(head + b"nr_sv 1 1\nSV\n1 1:1\n-1 1000000:1\n")
    places = np.where(np.arange(n_rows) % 3, 0, n_features - 1)
    rows = sparse.csr_matrix((np.ones(n_rows), (np.arange(n_rows), places)), (n_rows, n_features))
    model = read_libsvm_model(path)
    tracemalloc.start()
    labels = model.predict(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert_array_equal(labels, np.where(places, 2, 5))
    assert peak < 8 * n_rows * n_features / 4
