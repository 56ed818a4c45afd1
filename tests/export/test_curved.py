"""Curved bases as C headers and ONNX models, compared with their definition in NumPy."""

import argparse
import json
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import SVC

from limes import BorderMap
from limes.cli import export as export_command
from limes.cli import models
from limes.export.c import constant_bytes, to_c
from limes.export.libagf import to_libagf
from limes.model.affine import AffineMap
from limes.model.curved_base import CurvedBase
from limes.model.exact import ExactScheme, FallbackScheme
from limes.model.schemes import OneVsRestScheme
from limes.sources.svm import svm_from_sklearn
from tests.export.cases import blobs
from tests.export.curved_cases import (
    CASES,
    N_FEATURES,
    PLACE,
    SPREAD,
    Case,
    classifier,
    curved_map,
    defined_values,
    expected,
    rows_around,
    scheme_of,
)

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from limes.export.onnx import to_onnx  # noqa: E402

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no C compiler")
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wpedantic", "-Wconversion", "-Wshadow"]
SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]
MAIN = """
#include <stdio.h>
#define LIMES_MODEL_PROBABILITIES
#include "model.h"
int main(void) {
    limes_model_real x[LIMES_MODEL_FEATURES], p[LIMES_MODEL_CLASSES];
    limes_model_real values[VALUES];
    while (fread(x, sizeof x, 1, stdin) == 1) {
        int predicted = limes_model_predict(x);
        if (predicted != limes_model_probabilities(x, p)) return 1;
        VALUES_OF(x, values);
        fwrite(&predicted, sizeof predicted, 1, stdout);
        fwrite(values, sizeof values, 1, stdout);
        fwrite(p, sizeof p, 1, stdout);
    }
    return 0;
}
"""
both_types = pytest.mark.parametrize("dtype", ["float32", "float64"])
every_case = pytest.mark.parametrize("case", CASES, ids=str)
# Softmax and sigmoid, beside the rounding of values.
TOLERANCE = {"float32": 1e-6, "float64": 1e-14}


def run_c(folder, header, rows, n_values, *, options=("-O1",), part=""):
    """Compile a header; return class indices, values and probabilities."""
    (folder / "model.h").write_text(header)
    (folder / "main.c").write_text(MAIN)
    prefix = f"limes_model{part}"
    names = [f"-DVALUES={prefix.upper()}_VALUES", f"-DVALUES_OF={prefix}_values"]
    command = ["gcc", *STRICT, *options, *names, "main.c", "-lm", "-o", "main"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([folder / "main"], input=rows.tobytes(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    shapes = ("values", rows.dtype, (n_values,)), ("p", rows.dtype, (max(n_values, 2),))
    records = np.frombuffer(done.stdout, np.dtype([("class_index", np.intc), *shapes]))
    return records["class_index"], records["values"], records["p"]


def run_onnx(model, rows):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"X": rows})


def check(scheme, known, labels, probabilities, dtype):
    """Compare with the definition: all labels but those that rounding may change."""
    is_certain = known.is_certain
    assert is_certain.mean() > 0.97
    assert_array_equal(labels[is_certain], scheme.class_index(known.values)[is_certain])
    error = np.abs(probabilities - scheme.probabilities(known.values)).max(axis=1)
    assert np.all(error[is_certain] <= TOLERANCE[dtype] + known.bound.max(axis=1)[is_certain])
    assert_array_equal(probabilities.argmax(axis=1), labels)


@needs_gcc
@both_types
@every_case
def test_compiled_c_gives_the_values_of_the_definition(case, dtype, tmp_path):
    map_, rows = curved_map(case), rows_around()
    known, scheme = expected(map_, rows, dtype), scheme_of(map_)
    header = to_c(classifier(scheme), dtype=dtype)
    labels, values, probabilities = run_c(tmp_path, header, rows.astype(dtype), case.n_outputs)
    is_within = np.abs(values - known.values) <= known.bound
    assert is_within[~known.is_tie].all()
    check(scheme, known, labels, probabilities, dtype)


@both_types
@every_case
def test_onnxruntime_gives_the_labels_of_the_definition(case, dtype):
    map_, rows = curved_map(case), rows_around()
    known, scheme = expected(map_, rows, dtype), scheme_of(map_)
    labels, probabilities = run_onnx(to_onnx(classifier(scheme), dtype=dtype), rows.astype(dtype))
    check(scheme, known, labels, probabilities, dtype)


@every_case
def test_the_curved_base_decides_many_rows(case):
    """So that the tests above would notice if it were missing."""
    map_, rows = curved_map(case), rows_around()
    scheme, plain = scheme_of(map_), replace(map_, curve=None)
    without = scheme.class_index(plain.decide(rows))
    assert np.mean(scheme.class_index(defined_values(map_, rows)) != without) > 0.1


@needs_gcc
@pytest.mark.parametrize("case", CASES[-10:], ids=str)
def test_no_byte_outside_its_arrays_is_touched(case, tmp_path):
    rows = np.concatenate([rows_around(200), huge_rows()])
    header = to_c(classifier(scheme_of(curved_map(case))), dtype="float")
    labels, values, _ = run_c(tmp_path, header, rows, case.n_outputs, options=SANITIZED)
    assert np.isfinite(values).all()
    assert_array_equal(labels[:200], run_c(tmp_path, header, rows, case.n_outputs)[0][:200])


def huge_rows():
    rows = np.array([1e10, -1e18, 1e19, 3e19, -1e20, 1e30, 1e36], np.float32)
    signs = np.array([1, -1, 1, 1, -1], np.float32)
    return np.concatenate([rows[:, None] * signs, np.diag([1e20, 1e25, 1e36, -1e19, 1e30])]).astype(
        np.float32
    )


@needs_gcc
@pytest.mark.parametrize("case", CASES, ids=str)
def test_huge_rows_have_the_finite_values_of_the_definition(case, tmp_path):
    map_, rows = curved_map(case), huge_rows()
    scheme = scheme_of(map_)
    known = defined_values(map_, rows)
    fast = classifier(scheme)
    _, values, probabilities = run_c(tmp_path, to_c(fast), rows, case.n_outputs)
    # At most the nearest point differs by rounding, which moves a value by a few times the row.
    is_far = np.abs(known) > 1e3
    assert_allclose(values[is_far] / known[is_far], 1.0, atol=1e-3)
    assert np.abs(values[~is_far]).max(initial=0.0) < 1e4
    assert np.isfinite(probabilities).all()
    _, by_onnx = run_onnx(to_onnx(fast), rows)
    assert_allclose(by_onnx, probabilities, atol=1e-3)


@needs_gcc
@pytest.mark.parametrize("step", ["scaling", "selecting", "dense"])
def test_rows_far_from_zero_keep_their_digits_in_float32(step, tmp_path):
    """A shift of 1e6 is off by 0.03 in float32: terms are corrected for it."""
    far = 1e6 * np.array([1.0, -2.0, 0.5, 3.0, 1.0]) + 0.3
    case = Case("quadratic", step, 4, n_points=1)
    map_ = curved_map(case)
    moved = replace(map_.curve.preprocessing, shift=far)
    # Whole numbers, which float32 holds.
    rows = (np.round(far) + np.round(4 * np.random.default_rng(0).normal(size=(500, 5)))).astype(
        np.float32
    )
    slopes = map_.slopes * SPREAD
    map_ = replace(
        map_,
        slopes=slopes,
        offsets=-slopes @ far,
        preprocessing=AffineMap.scaling(far, np.ones(N_FEATURES)),
        curve=replace(map_.curve, preprocessing=moved),
    )
    known, fast = defined_values(map_, rows), classifier(scheme_of(map_))
    assert np.abs(known).max() > 1.0
    _, values, probabilities = run_c(tmp_path, to_c(fast, dtype="float"), rows, 4)
    assert_allclose(values, known, atol=2e-4)
    assert_allclose(run_onnx(to_onnx(fast, dtype="float32"), rows)[1], probabilities, atol=1e-4)


@needs_gcc
@both_types
def test_classes_that_tie_are_listed_in_their_order(dtype, tmp_path):
    """Whole numbers, whose sums are exact: classes 1, 2 and 3 tie for the second place."""
    curve = CurvedBase(
        AffineMap.identity(2),
        [8.0, 4.0, 4.0, 4.0, 0.0],
        np.zeros((5, 2)),
        [[0.0, 0.0], [8.0, 0.0], [16.0, 0.0], [32.0, 0.0], [64.0, 0.0]],
        decay=1.0,
        n_listed=2,
    )
    map_ = BorderMap(np.zeros((1, 2)), np.zeros((1, 5, 2)), np.zeros((1, 5)), curve=curve)
    rows = np.array([[1.0, 1.0], [-1.0, 1.0], [0.0, 0.0]], dtype)
    known = defined_values(map_, rows)
    assert_array_equal(known[0], [2.0, 3.0, 1.0, 1.0, 0.0])
    fast = classifier(scheme_of(map_))
    labels, values, probabilities = run_c(tmp_path, to_c(fast, dtype=dtype), rows, 5)
    assert_array_equal(values, known)
    assert_array_equal(labels, [1, 1, 0])
    by_onnx = run_onnx(to_onnx(fast, dtype=dtype), rows)
    assert_array_equal(by_onnx[0], labels)
    assert_allclose(by_onnx[1], probabilities, rtol=1e-5)


def test_a_list_of_all_classes_is_none():
    case = Case("diagonal", "scaling", 4, 4)
    header = to_c(classifier(scheme_of(curved_map(case))))
    assert "LISTED" not in header


class TestHeader:
    def test_a_map_of_one_point_has_no_search(self):
        header = to_c(classifier(scheme_of(curved_map(Case("diagonal", "scaling", 4, n_points=1)))))
        for word in ("_score", "_points[", "_biases[", "_SEARCH", "_curve_shift"):
            assert word not in header
        assert "1 border point in 1 map, diagonal base." in header

    @needs_gcc
    @both_types
    @pytest.mark.parametrize("case", CASES[-16:], ids=str)
    def test_it_states_the_bytes_of_all_its_tables(self, case, dtype, tmp_path):
        fast = classifier(scheme_of(curved_map(case)))
        header = to_c(fast, dtype=dtype)
        tables = set(re.findall(r"LIMES_TABLE [\w ]+ (\w+)\[", header)) - {"limes_model_labels"}
        # A long of a small processor has 4 bytes.
        sizes = " + ".join([*(f"sizeof {table}" for table in sorted(tables)), "4ul * CLASSES"])
        (tmp_path / "model.h").write_text(header)
        (tmp_path / "main.c").write_text(
            f'#include <stdio.h>\n#include "model.h"\nint main(void) {{ printf("%zu", {sizes}); '
            "return limes_model_predict(limes_model_center) < 0; }"
        )
        command = ["gcc", f"-DCLASSES={len(fast.classes_)}", "main.c", "-lm", "-o", "main"]
        subprocess.run(command, cwd=tmp_path, check=True)
        done = subprocess.run([tmp_path / "main"], capture_output=True, check=True)
        assert int(done.stdout) == constant_bytes(fast, dtype=dtype)
        assert f"#define LIMES_MODEL_BYTES {int(done.stdout)}\n" in header

    def test_every_coefficient_keeps_every_bit(self):
        map_ = curved_map(Case("quadratic", "dense", 4))
        header = to_c(classifier(scheme_of(map_)), dtype="double")
        table = re.search(r"_curve_squares\[[^]]*\] = {([^}]*)}", header)[1]
        numbers = [float(text) for text in table.replace(",", " ").split()]
        assert_array_equal(numbers, map_.curve.squares.ravel())

    def test_a_base_too_large_raises_an_error_that_says_what_to_do(self):
        fast = classifier(scheme_of(curved_map(Case("quadratic", "dense", 4))))
        with pytest.raises(ValueError, match=r"fit with n_borders=\d or fewer"):
            to_c(fast, max_bytes=constant_bytes(fast) - 10)
        with pytest.raises(ValueError, match="fit with curved=False, fewer features or another"):
            to_c(fast, max_bytes=100)

    def test_numbers_beyond_float32_are_refused(self):
        map_ = curved_map(Case("diagonal", "scaling", 4))
        fast = classifier(scheme_of(replace(map_, curve=map_.curve.scaled(1e39))))
        for export in (to_c, to_onnx):
            with pytest.raises(ValueError, match="too large for float32"):
                export(fast)
            export(fast, dtype="float64")


def test_only_standard_operators_are_used():
    model = to_onnx(classifier(scheme_of(curved_map(Case("quadratic", "dense", 4, 2)))))
    assert {node.domain for node in model.graph.node} == {""}


def test_no_rows_give_no_predictions():
    model = to_onnx(classifier(scheme_of(curved_map(Case("quadratic", "dense", 4, 2)))))
    labels, probabilities = run_onnx(model, np.empty((0, N_FEATURES), np.float32))
    assert labels.shape == (0,)
    assert probabilities.shape == (0, 4)


@pytest.mark.parametrize("n_outputs", [1, 4])
def test_libagf_refuses_a_curved_base_and_says_what_to_do(n_outputs):
    fast = classifier(scheme_of(curved_map(Case("diagonal", "scaling", n_outputs))))
    with pytest.raises(ValueError, match="got a curved base: fit with curved=False") as raised:
        to_libagf(fast)
    assert ("scheme='pairwise'" in str(raised.value)) == (n_outputs > 1)


def test_several_maps_with_a_curved_base_are_refused():
    map_ = curved_map(Case("diagonal", "scaling", 1))
    with pytest.raises(ValueError, match="only a single map may have a curve, got 3 maps"):
        OneVsRestScheme((map_,) * 3, 3).classifier  # noqa: B018


class TestFallback:
    @needs_gcc
    @pytest.mark.parametrize("n_classes", [2, 4])
    def test_uncertain_rows_go_to_the_exact_sums_if_asked(self, n_classes, tmp_path):
        scheme, map_, rows = with_fallback(n_classes)
        fast = classifier(scheme)
        values = defined_values(map_, rows)
        own = scheme.base.class_index(values)
        is_exact = scheme.base.margins(values) < scheme.margin
        mixed = np.where(is_exact, scheme.exact.classify(rows), own)
        assert 0.1 < is_exact.mean() < 0.9
        assert np.mean(mixed != own) > 0.05
        n_values = map_.n_outputs
        for fallback, known in ((False, own), (True, mixed)):
            header, model = to_c(fast, fallback=fallback), to_onnx(fast, fallback=fallback)
            part = "_map" if fallback else ""
            labels = run_c(tmp_path, header, rows, n_values, part=part)[0]
            # The margin of a row can be that of the fallback up to rounding.
            assert np.mean(labels != known) < 0.002
            assert np.mean(run_onnx(model, rows)[0] != known) < 0.002
        assert "Without the fallback to exact sums" in to_c(fast)


def with_fallback(n_classes):
    """Return a rough map of one point with fallback, the map, and rows around it."""
    X, y = blobs(N_FEATURES, n_classes)
    exact = ExactScheme(svm_from_sklearn(SVC(gamma=0.1).fit(X * SPREAD + PLACE, y)))
    map_ = curved_map(Case("quadratic", "scaling", 1 if n_classes == 2 else n_classes, n_points=1))
    rows = rows_around()
    base = scheme_of(map_)
    margin = float(np.median(base.margins(defined_values(map_, rows))))
    return FallbackScheme(base, exact, margin, 0.5), map_, rows


@pytest.mark.parametrize("dtype", ["float32", "float64", None])
def test_the_command_prints_the_bytes_of_all_tables(dtype, tmp_path, monkeypatch, capsys):
    fast = classifier(scheme_of(curved_map(Case("quadratic", "dense", 4))))
    opened = argparse.Namespace(kind="borders", model=fast)
    monkeypatch.setattr(models, "open_model", lambda path: opened)
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    export_command.add_parser(parser.add_subparsers())
    target = tmp_path / "curved.h"
    options = [] if dtype is None else ["--dtype", dtype]
    arguments = ["export", "curved.limes", "--to", "c", "-o", str(target), *options]
    args = parser.parse_args(arguments)
    args.json = True
    assert export_command.run(args) == 0
    shown = json.loads(capsys.readouterr().out)
    n_bytes = constant_bytes(fast, dtype=dtype)
    assert shown["n_constant_bytes"] == n_bytes
    assert f"Tables: {n_bytes} bytes" in target.read_text()
    n_curve = 5 * 3 + 4 * (1 + 3 + 6)
    assert n_bytes > (8 if dtype == "float64" else 4) * n_curve
