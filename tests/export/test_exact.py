"""Exact sums and fallback as C headers and ONNX models."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import SVC

from limes import BorderMap
from limes.export.c import constant_bytes, to_c
from limes.export.libagf import to_libagf
from limes.model.exact import Calibrators, ClassDensities, ExactScheme, FallbackScheme
from limes.model.schemes import PairwiseScheme, SharedScheme
from limes.model.svm import Kernel, TrainedSvm
from limes.sources.svm import svm_from_sklearn
from tests.export.cases import MAIN
from tests.export.exact_cases import (
    CASES,
    DOUBLE_CASES,
    blobs,
    calibrated_isotonic,
    classifier,
    densities,
    expected,
    is_guaranteed,
    linear,
    made,
    one_class,
    platt_like_libsvm,
    polynomial,
    rbf_far,
    rbf_projected,
    rbf_two,
    rbf_votes,
    rows_of,
    sigmoid_kernel,
    stated_bound,
    term_sizes,
)

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from limes.export.onnx import register, to_onnx  # noqa: E402

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no C compiler")
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wpedantic", "-Wconversion", "-Wshadow"]
both_types = pytest.mark.parametrize(
    ("case", "dtype"),
    [(case, "float32") for case in CASES] + [(case, "float64") for case in DOUBLE_CASES],
    ids=lambda part: getattr(part, "__name__", part),
)
# The largest difference in probability that was measured, over all cases and 10 000 rows each, is
# 6.3e-6 in float32 and 4.0e-15 in float64.
TOLERANCE = {"float32": 1e-5, "float64": 1e-12}

LABELS_ONLY = """
#include <stdio.h>
#include "model.h"
int main(void) {
    limes_model_real x[LIMES_MODEL_FEATURES], p[LIMES_MODEL_CLASSES] = {0};
    while (fread(x, sizeof x, 1, stdin) == 1) {
        int predicted = limes_model_predict(x);
        fwrite(&predicted, sizeof predicted, 1, stdout);
        fwrite(p, sizeof p, 1, stdout);
    }
    return 0;
}
"""
VALUES = """
#include <stdio.h>
#include "model.h"
int main(void) {
    limes_model_real x[LIMES_MODEL_FEATURES], values[LIMES_MODEL_VALUES];
    while (fread(x, sizeof x, 1, stdin) == 1) {
        int predicted = limes_model_predict(x);
        limes_model_values(x, values);
        fwrite(&predicted, sizeof predicted, 1, stdout);
        fwrite(values, sizeof values, 1, stdout);
    }
    return 0;
}
"""


def run_c(folder, header, rows, n_numbers, *, main=None, options=("-O1",)):
    """Compile a header, and return class indices and probabilities, zeros where there are none."""
    (folder / "model.h").write_text(header)
    (folder / "main.c").write_text(main or (MAIN if "_probabilities(" in header else LABELS_ONLY))
    command = ["gcc", *STRICT, *options, "main.c", "-lm", "-o", "main"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    output = subprocess.run([folder / "main"], input=rows.tobytes(), stdout=-1, check=True).stdout
    record = np.dtype([("class_index", np.intc), ("p", rows.dtype, (n_numbers,))])
    records = np.frombuffer(output, record)
    return records["class_index"], records["p"]


def run_onnx(model, rows):
    """Return labels and probabilities, or None where there are none."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    parts = [session.run(None, {"X": part}) for part in np.array_split(rows, 2)]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return columns[0], columns[1] if len(columns) > 1 else None


def check(case, dtype, text, labels, probabilities):
    """Compare labels and probabilities with the source's, outside the stated bound."""
    scheme, rows = made(case)[0], rows_of(case)
    values, source_labels = expected(case)
    is_sure = is_guaranteed(scheme, rows, values, dtype, text)
    # The second half of the rows is not next to a border: nearly all of them are guaranteed.
    assert is_sure[len(rows) // 2 :].mean() > 0.97
    assert_array_equal(labels[is_sure], source_labels[is_sure])
    if scheme.has_probabilities:
        rows, probabilities = rows[is_sure], probabilities[is_sure]
        error = np.abs(probabilities - scheme.predict_proba(rows)).max(axis=1)
        # LIBSVM's iteration may stop one step earlier or later by rounding.
        n_allowed = 5 if case is platt_like_libsvm else 0
        assert np.sum(error > TOLERANCE[dtype]) <= n_allowed


@needs_gcc
@both_types
def test_c_gives_the_labels_of_the_source_outside_its_stated_bound(case, dtype, tmp_path):
    scheme, rows = made(case)[0], rows_of(case)
    header = to_c(classifier(scheme), dtype=dtype)
    labels, probabilities = run_c(tmp_path, header, rows.astype(dtype), scheme.n_classes)
    assert ("_probabilities(" in header) == scheme.has_probabilities
    assert "@" not in header
    assert "malloc" not in header
    check(case, dtype, header.replace("\n * ", " "), labels, probabilities)


@both_types
def test_onnx_gives_the_labels_of_the_source_outside_its_stated_bound(case, dtype):
    scheme, rows = made(case)[0], rows_of(case)
    model = to_onnx(classifier(scheme), dtype=dtype)
    labels, probabilities = run_onnx(model, rows.astype(dtype))
    assert (probabilities is not None) == scheme.has_probabilities
    assert {node.domain for node in model.graph.node} == {""}
    assert [(opset.domain, opset.version) for opset in model.opset_import] == [("", 17)]
    check(case, dtype, model.doc_string.replace("\n", " "), labels, probabilities)


@needs_gcc
@pytest.mark.parametrize(
    "case", [rbf_votes, rbf_projected, polynomial, sigmoid_kernel, linear, one_class]
)
def test_decision_values_of_c_are_within_the_stated_bound(case, tmp_path):
    scheme, rows = made(case)[0], rows_of(case)[5000:]
    middle = rows.mean(axis=0)
    # From far inside to where every kernel value underflows.
    rows = middle + (rows - middle) * np.geomspace(0.1, 30, len(rows), dtype=np.float32)[:, None]
    header = to_c(classifier(scheme))
    values = run_c(tmp_path, header, rows, len(scheme.sums.intercepts), main=VALUES)[1]
    text = header.replace("\n * ", " ")
    bound = stated_bound(scheme, rows, "float32", text)
    sizes = term_sizes(scheme, rows, "float32", text)
    errors = np.abs(values - scheme.values(rows)) / sizes
    assert np.all(errors <= bound[:, None])
    # Not wider than it must be: the largest error is at least a thousandth of it.
    assert errors.max() > 1e-3 * np.median(bound)


@needs_gcc
def test_labels_within_the_bound_may_differ(tmp_path):
    """Otherwise the rows next to a border would not test it."""
    rows = rows_of(rbf_two)
    labels, _ = run_c(tmp_path, to_c(classifier(made(rbf_two)[0])), rows, 2)
    assert 0 < np.sum(labels != expected(rbf_two)[1]) < 300


def test_a_bound_that_guarantees_nothing_says_so():
    svm = TrainedSvm(Kernel("rbf", 1e9), [[0.0], [2.0]], [[1.0, -1.0]], [0.0], [1, 1])
    fast = classifier(ExactScheme(svm))
    assert "Rounding in float32: no label is guaranteed" in to_c(fast)
    assert "a decision value f has the sign" in to_c(fast, dtype="double")


class TestSize:
    @needs_gcc
    @pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "linear"])
    @pytest.mark.parametrize("n_classes", [2, 5])
    def test_a_header_holds_little_more_than_vectors_and_weights(self, kernel, n_classes, tmp_path):
        fast = classifier(ExactScheme(sixty_vectors(kernel, n_classes)))
        allowed = 4 * 60 * (24 + n_classes - 1) + 2048
        header = to_c(fast)
        assert constant_bytes(fast) <= allowed
        assert f"#define LIMES_MODEL_BYTES {constant_bytes(fast)}\n" in header
        main = '#include "model.h"\nint classify(const float *x) { return limes_model_predict(x); }'
        (tmp_path / "model.h").write_text(header)
        (tmp_path / "main.c").write_text(main)
        subprocess.run(["gcc", *STRICT, "-Os", "-c", "main.c"], cwd=tmp_path, check=True)
        done = subprocess.run(["size", "-A", "main.o"], cwd=tmp_path, stdout=-1, check=True)
        sections = [line.split()[:2] for line in done.stdout.decode().splitlines()]
        stored = sum(int(line[1]) for line in sections if line and line[0].startswith(".rodata"))
        # The labels are not used.
        assert constant_bytes(fast) - 4 * n_classes <= stored <= allowed

    def test_a_model_too_large_raises_an_error(self):
        with pytest.raises(ValueError, match=r"max_bytes=100, got \d+ bytes: fit a map instead"):
            to_c(classifier(made(rbf_two)[0]), max_bytes=100)

    @needs_gcc
    def test_only_the_standard_library_is_needed(self, tmp_path):
        header = to_c(classifier(made(rbf_votes)[0]))
        assert set(re.findall(r"#include <(.*)>", header)) == {
            "math.h",
            "stddef.h",
            "stdint.h",
            # On AVR alone.
            "avr/pgmspace.h",
        }
        run_c(tmp_path, header, rows_of(rbf_votes)[:5], 4)
        done = subprocess.run(["nm", "-u", "main"], cwd=tmp_path, stdout=-1, check=True)
        wanted = set(re.findall(r"U (\w+)", done.stdout.decode()))
        assert {name for name in wanted if not name.startswith("_")} <= {"expf", "fread", "fwrite"}


def sixty_vectors(kernel, n_classes):
    rng = np.random.default_rng(0)
    return TrainedSvm(
        Kernel(kernel, 0.05, 3, 1.0),
        rng.normal(size=(60, 24)),
        rng.normal(size=(n_classes - 1, 60)),
        rng.normal(size=n_classes * (n_classes - 1) // 2),
        np.full(n_classes, 60 // n_classes),
    )


@needs_gcc
@pytest.mark.parametrize("case", [rbf_projected, densities, platt_like_libsvm, calibrated_isotonic])
def test_no_byte_outside_its_arrays_is_touched(case, tmp_path):
    options = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    scheme, rows = made(case)[0], rows_of(case)[-100:]
    labels, _ = run_c(tmp_path, to_c(classifier(scheme)), rows, scheme.n_classes, options=options)
    assert_array_equal(labels, scheme.classify(rows))


class TestFaults:
    """Degenerate sums and rows have a defined answer, that of float64 arithmetic."""

    @needs_gcc
    @pytest.mark.parametrize("name", ["C", "ONNX"])
    @pytest.mark.parametrize(
        ("kernel", "coefficient"),
        [
            (Kernel("rbf", 0.0), 1.0),
            (Kernel("rbf", 1e30), 1.0),
            (Kernel("rbf", 0.5), 1e30),
            (Kernel("rbf", 0.5), 1e300),
            (Kernel("rbf", 0.5), 1e-300),
            (Kernel("poly", 0.5, 0), 1.0),
            (Kernel("linear"), 1.0),
        ],
        ids=str,
    )
    def test_extreme_numbers(self, kernel, coefficient, name, tmp_path):
        """One vector, a class without any, and rows far away."""
        intercepts = coefficient * np.array([-0.25, 0.5, 0.125])
        vectors, weights = [[1.0, 2.0]], coefficient * np.array([[1.0], [-1.0]])
        scheme = ExactScheme(TrainedSvm(kernel, vectors, weights, intercepts, [0, 1, 0]))
        rows = np.array([[1, 2], [1.5, 2], [-3, 5], [1e10, -1e10], [1e15, 3]], dtype=np.float32)
        fast = classifier(scheme)
        labels = (
            run_c(tmp_path, to_c(fast), rows, 3)[0]
            if name == "C"
            else run_onnx(to_onnx(fast), rows)[0]
        )
        assert_array_equal(labels, scheme.classify(rows))

    @needs_gcc
    def test_rows_that_overflow_in_float32_are_far_from_all_vectors(self, tmp_path):
        scheme = made(rbf_two)[0]
        rows = np.array([[1e38, -3e38], [3e38, 3e38], [1e25, 0]], dtype=np.float32)
        with np.errstate(over="ignore"):
            known = scheme.classify(rows.astype(np.float64))
        assert_array_equal(run_c(tmp_path, to_c(classifier(scheme)), rows, 2)[0], known)
        assert_array_equal(run_onnx(to_onnx(classifier(scheme)), rows)[0], known)

    def test_numbers_beyond_float32_are_refused(self):
        svm = TrainedSvm(Kernel("rbf", 1.0), [[1e50], [2e50]], [[1.0, -1.0]], [0.0], [1, 1])
        fast = classifier(ExactScheme(svm))
        for export in (to_c, to_onnx):
            with pytest.raises(ValueError, match="too large for float32"):
                export(fast)
            export(fast, dtype="float64")

    def test_densities_without_vectors_are_equal(self):
        sums = ClassDensities(np.empty((0, 2)), 1.0, [0, 0, 0], [0.0, 1.0, 0.0])
        model = to_onnx(classifier(ExactScheme(sums, rule="density")))
        labels, probabilities = run_onnx(model, np.zeros((3, 2), np.float32))
        assert_array_equal(labels, 0)
        assert_allclose(probabilities, 1 / 3)

    @pytest.mark.parametrize("case", [rbf_votes, densities, platt_like_libsvm, calibrated_isotonic])
    def test_no_rows_give_no_labels(self, case):
        scheme = made(case)[0]
        rows = np.empty((0, scheme.n_features), np.float32)
        labels, _ = run_onnx(to_onnx(classifier(scheme)), rows)
        assert labels.shape == (0,)

    def test_calibrated_pairs_of_three_classes_are_refused(self):
        scheme = made(rbf_far)[0]
        found = Calibrators(sigmoids=np.ones((3, 2)))
        pairs = ExactScheme(
            scheme.sums, rule="likeliest", decision_shape="ovo", probabilities=found
        )
        with pytest.raises(ValueError, match="needs decision_function_shape='ovr', got 'ovo'"):
            to_c(classifier(pairs))


class TestFallback:
    @needs_gcc
    @pytest.mark.parametrize("n_classes", [2, 4])
    def test_c_and_onnx_hand_uncertain_rows_to_the_exact_sums(self, n_classes, tmp_path):
        scheme, rows = with_fallback(n_classes)
        fast, is_exact = classifier(scheme), scheme.falls_back(rows)
        assert 0.1 < is_exact.mean() < 0.9
        known = scheme.classify(rows)
        assert np.any(known != scheme.base.classify(rows))
        for labels, probabilities in (
            run_c(tmp_path, to_c(fast, fallback=True), rows, n_classes),
            run_onnx(to_onnx(fast, fallback=True), rows),
        ):
            # The margin of a row can be that of the fallback up to rounding.
            assert np.mean(labels != known) < 0.001
            assert_array_equal(probabilities.argmax(axis=1), labels)
            is_same = labels == known
            assert_allclose(probabilities[is_same], scheme.predict_proba(rows[is_same]), atol=1e-5)

    @needs_gcc
    @pytest.mark.parametrize("n_classes", [2, 4])
    def test_without_being_asked_the_map_alone_is_written_with_a_note(self, n_classes, tmp_path):
        scheme, rows = with_fallback(n_classes)
        fast = classifier(scheme)
        header, model = to_c(fast), to_onnx(fast)
        assert "Without the fallback to exact sums" in header
        assert "without its fallback to exact sums" in model.doc_string
        assert constant_bytes(fast) < constant_bytes(fast, fallback=True)
        known = scheme.base.classify(rows)
        assert np.mean(run_c(tmp_path, header, rows, n_classes)[0] != known) < 0.001
        assert np.mean(run_onnx(model, rows)[0] != known) < 0.001

    def test_a_model_without_fallback_cannot_be_written_with_one(self):
        for export in (to_c, to_onnx):
            with pytest.raises(ValueError, match=r"fallback=True needs .* the scheme 'exact'"):
                export(classifier(made(rbf_two)[0]), fallback=True)

    def test_two_headers_have_different_names(self):
        header = to_c(classifier(with_fallback(2)[0]), name="first", fallback=True)
        assert "limes_model" not in header
        assert len(re.findall(r"^LIMES_TABLE .* first_labels\[", header, re.M)) == 1
        assert "@" not in header

    def test_libagf_gets_the_map_alone(self):
        scheme, _ = with_fallback(2)
        assert to_libagf(classifier(scheme)) == to_libagf(classifier(scheme.base))


def with_fallback(n_classes):
    """Return a rough map with fallback, and rows around it."""
    X, y = blobs(2, n_classes)
    svc = SVC(gamma=0.3).fit(X, y)
    rng = np.random.default_rng(0)
    points, n_outputs = X[:20], 1 if n_classes == 2 else n_classes
    rough = BorderMap(points, rng.normal(size=(20, n_outputs, 2)), rng.normal(size=(20, n_outputs)))
    if n_classes == 2:
        rough = BorderMap.from_borders(points=points, normals=rng.normal(size=(20, 2)))
    base = PairwiseScheme((rough,), 2) if n_classes == 2 else SharedScheme((rough,), n_classes)
    exact = ExactScheme(svm_from_sklearn(svc))
    rows = (X[rng.integers(len(X), size=3000)] + rng.normal(size=(3000, 2))).astype(np.float32)
    margin = float(np.median(base.margins(base.values(rows))))
    return FallbackScheme(base, exact, margin, 0.5), rows


def test_libagf_has_no_exact_sums():
    with pytest.raises(ValueError, match="hold border points, got exact sums"):
        to_libagf(classifier(made(rbf_two)[0]))


class TestSkl2onnx:
    skl2onnx = pytest.importorskip("skl2onnx")

    def test_exact_sums_with_probabilities_convert(self):
        register()
        fast, rows = classifier(made(platt_like_libsvm)[0]), rows_of(platt_like_libsvm)[-200:]
        model = self.skl2onnx.to_onnx(fast, rows[:1], options={"zipmap": False})
        labels, probabilities = run_onnx(model, rows)
        assert_array_equal(labels, fast.predict(rows))
        assert_allclose(probabilities, fast.model_.predict_proba(rows), atol=1e-4)

    def test_exact_sums_without_probabilities_are_refused(self):
        register()
        fast = classifier(made(rbf_two)[0])
        with pytest.raises(ValueError, match="skl2onnx expects probabilities"):
            self.skl2onnx.to_onnx(fast, np.zeros((1, 2), np.float32))
