"""Exact sums and fallback as C headers and ONNX models."""

import shutil
import subprocess

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from limes.export.c import to_c
from tests.export.exact_cases import (
    CASES,
    classifier,
    is_guaranteed,
    made,
    rows_of,
)

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no C compiler")
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wpedantic", "-Wconversion", "-Wshadow"]
by_name = pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
# The largest difference in probability that was measured.
TOLERANCE = {"float32": 1e-4, "float64": 1e-9}

MAIN = """
#include <stdio.h>
#define LIMES_MODEL_PROBABILITIES
#include "model.h"
int main(void) {
    limes_model_real x[LIMES_MODEL_FEATURES], p[LIMES_MODEL_CLASSES];
    while (fread(x, sizeof x, 1, stdin) == 1) {
        int predicted = limes_model_predict(x);
        if (predicted != limes_model_probabilities(x, p)) return 1;
        fwrite(&predicted, sizeof predicted, 1, stdout);
        fwrite(p, sizeof p, 1, stdout);
    }
    return 0;
}
"""
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


def run_c(folder, header, rows, n_classes, options=("-O2",)):
    """Compile a header, and return class indices and probabilities, zeros where there are none."""
    (folder / "model.h").write_text(header)
    (folder / "main.c").write_text(MAIN if "_probabilities(" in header else LABELS_ONLY)
    command = ["gcc", *STRICT, *options, "main.c", "-lm", "-o", "main"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    output = subprocess.run([folder / "main"], input=rows.tobytes(), stdout=-1, check=True).stdout
    record = np.dtype([("class_index", np.intc), ("p", rows.dtype, (n_classes,))])
    records = np.frombuffer(output, record)
    return records["class_index"], records["p"]


def run_onnx(model, rows):
    """Return labels and probabilities, or None where there are none."""
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    parts = [session.run(None, {"X": part}) for part in np.array_split(rows, 3)]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return columns[0], columns[1] if len(columns) > 1 else None


def check_labels(case, dtype, text, labels):
    """Compare labels with those of the source, outside the stated bound."""
    scheme, _, predict = made(case)
    rows = rows_of(case)
    expected = scheme.classify(rows) if predict is None else predict(rows)
    is_sure = is_guaranteed(scheme, rows, dtype, text)
    # A bound that left out most rows would say nothing: half of the others are next to a border.
    assert is_sure[len(rows) // 2 :].mean() > 0.97
    assert_array_equal(labels[is_sure], expected[is_sure])
    return is_sure


@needs_gcc
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@by_name
def test_c_gives_the_labels_of_the_source_outside_its_stated_bound(case, dtype, tmp_path):
    scheme, rows = made(case)[0], rows_of(case)
    header = to_c(classifier(scheme), dtype=dtype)
    labels, probabilities = run_c(tmp_path, header, rows.astype(dtype), scheme.n_classes)
    is_sure = check_labels(case, dtype, header.replace("\n * ", " "), labels)
    assert ("_probabilities(" in header) == scheme.has_probabilities
    if scheme.has_probabilities:
        check_probabilities(scheme, rows[is_sure], probabilities[is_sure], dtype)


def check_probabilities(scheme, rows, probabilities, dtype):
    error = np.abs(probabilities - scheme.predict_proba(rows)).max(axis=1)
    assert error.max() <= TOLERANCE[dtype], np.sort(error)[-5:]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@by_name
def test_onnx_gives_the_labels_of_the_source_outside_its_stated_bound(case, dtype):
    pytest.importorskip("onnx")
    from limes.export.onnx import to_onnx

    scheme, rows = made(case)[0], rows_of(case)
    model = to_onnx(classifier(scheme), dtype=dtype)
    labels, probabilities = run_onnx(model, rows.astype(dtype))
    is_sure = check_labels(case, dtype, model.doc_string.replace("\n", " "), labels)
    assert {node.domain for node in model.graph.node} == {""}
    assert (probabilities is None) == (not scheme.has_probabilities)
    if probabilities is not None:
        check_probabilities(scheme, rows[is_sure], probabilities[is_sure], dtype)
