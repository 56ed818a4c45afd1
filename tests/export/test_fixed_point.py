"""Headers in whole numbers: the compiled program does what the arithmetic in Python says."""

import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from limes import BorderMap, BordersClassifier
from limes.export.c import c_header, constant_bytes, to_c
from limes.export.fixed_point import LARGEST, to_fixed_point
from limes.model import Model
from limes.model.model import FeatureStatistics
from limes.model.schemes import PairwiseScheme
from tests.export import curved_cases
from tests.export.cases import (
    CASES,
    binary,
    binary_by_default,
    coupled,
    fitted,
    rows_like,
    shared,
    shared_nearest,
    shortlist_coupled,
    tree_projected,
    votes_projected,
    votes_scaled,
)
from tests.export.test_c import tables_and_reads
from tests.export.test_exact import classifier as exact_classifier
from tests.export.test_exact import made as exact_case
from tests.export.test_exact import rbf_two

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no C compiler")
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion", "-Wshadow"]
SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]
# Reads rows of floats, writes whole numbers and the class of each.
MAIN = """
#include <stdio.h>
#define LIMES_MODEL_TEST
#include "model.h"
int main(void) {
    float x[LIMES_MODEL_FEATURES];
    int16_t row[LIMES_MODEL_FEATURES];
#ifdef LIMES_MODEL_TEST_ROWS
    if (limes_model_test()) return 1;
#endif
    while (fread(x, sizeof x, 1, stdin) == 1) {
        int predicted;
        limes_model_quantize(x, row);
        predicted = limes_model_predict(row);
        fwrite(row, sizeof row, 1, stdout);
        fwrite(&predicted, sizeof predicted, 1, stdout);
    }
    return 0;
}
"""
UNCOUPLED = [case for case in CASES if "coupled" not in case.__name__]
both_types = pytest.mark.parametrize("dtype", ["int16", "int8"])


def run_c(folder, header, rows, command=("gcc", "-std=c99"), options=("-O1",)):
    """Compile a header; return whole numbers and class indices of rows."""
    name = "main.cpp" if command[0] == "g++" else "main.c"
    (folder / "model.h").write_text(header)
    (folder / name).write_text(MAIN)
    words = [*command, *STRICT, *options, "-ffp-contract=off", name, "-o", "main"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    data = np.ascontiguousarray(rows, dtype=np.float32).tobytes()
    done = subprocess.run([folder / "main"], input=data, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    record = np.dtype([("row", np.int16, (rows.shape[1],)), ("class_index", np.intc)])
    records = np.frombuffer(done.stdout, record)
    return records["row"], records["class_index"]


def hostile_rows(rows):
    """Rows as they are, far away, and with numbers that are none."""
    far = rows[:200] * np.float32(1e4)
    wild = np.array(rows[:60])
    for place, value in enumerate([np.inf, -np.inf, np.nan, 3e38, -3e38, 0.0]):
        wild[10 * place : 10 * place + 10, place % rows.shape[1]] = value
    return np.concatenate([rows, far, wild, np.full_like(rows[:1], 3e38)])


def emulated(fast, dtype):
    return to_fixed_point(fast.scheme_, dtype, fast.model_.info.features)


def curved(case):
    """A curved map of random numbers, with the statistics of rows around it."""
    map_, rows = curved_cases.curved_map(case), curved_cases.rows_around().astype(np.float32)
    fast = curved_cases.classifier(curved_cases.scheme_of(map_))
    info = replace(fast.model_.info, features=FeatureStatistics.from_rows(rows))
    fast.model_ = replace(fast.model_, info=info)
    return fast, rows


@needs_gcc
@both_types
@pytest.mark.parametrize(
    "case",
    [case for case in UNCOUPLED if case.__name__ != "one_sided_first"],
    ids=lambda c: c.__name__,
)
def test_the_program_repeats_the_arithmetic_bit_for_bit(case, dtype, tmp_path):
    fast = fitted(case)
    rows = hostile_rows(rows_like(fast, 1500))
    whole, class_index = run_c(tmp_path, to_c(fast, dtype=dtype), rows, options=SANITIZED)
    fixed = emulated(fast, dtype)
    assert_array_equal(whole, fixed.quantize(rows))
    assert_array_equal(class_index, fixed.predict(whole.astype(np.int64)))


@needs_gcc
@both_types
@pytest.mark.parametrize("case", curved_cases.CASES, ids=str)
def test_a_curved_base_repeats_the_arithmetic_bit_for_bit(case, dtype, tmp_path):
    fast, rows = curved(case)
    rows = hostile_rows(rows)
    whole, class_index = run_c(tmp_path, to_c(fast, dtype=dtype), rows, options=SANITIZED)
    fixed = emulated(fast, dtype)
    assert_array_equal(whole, fixed.quantize(rows))
    assert_array_equal(class_index, fixed.predict(whole.astype(np.int64)))


@both_types
@pytest.mark.parametrize("case", curved_cases.CASES, ids=str)
def test_a_curved_base_agrees_with_floats(case, dtype):
    fast, rows = curved(case)
    agreement = np.mean(emulated(fast, dtype).class_index(rows) == fast.scheme_.classify(rows))
    assert agreement >= {"int16": 0.995, "int8": 0.96}[dtype]


@both_types
@pytest.mark.parametrize("case", UNCOUPLED, ids=lambda case: case.__name__)
def test_maps_agree_with_floats(case, dtype):
    fast = fitted(case)
    rows = rows_like(fast, 3000)
    info = replace(fast.model_.info, features=FeatureStatistics.from_rows(rows))
    fixed = to_fixed_point(fast.scheme_, dtype, info.features)
    agreement = np.mean(fixed.class_index(rows) == fast.scheme_.classify(rows))
    assert agreement >= {"int16": 0.995, "int8": 0.96}[dtype]


@needs_gcc
@both_types
def test_rows_of_many_features_are_summed_in_64_bits(dtype, tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1000, 300)).astype(np.float32)
    points, normals = rng.normal(size=(2, 20, 300))
    line = BorderMap.from_borders(points=0.3 * points, normals=normals, blend=3)
    stored = Model(PairwiseScheme((line,), 2), np.arange(2), 300)
    fast = BordersClassifier.from_model(stored)
    header = to_c(fast, dtype=dtype, rows=rows)
    assert "typedef int64_t limes_model_sum;" in header
    _, class_index = run_c(tmp_path, header, hostile_rows(rows), options=SANITIZED)
    agreement = np.mean(class_index[:1000] == fast.scheme_.classify(rows))
    assert agreement >= {"int16": 0.995, "int8": 0.98}[dtype]


@needs_gcc
@pytest.mark.parametrize("case", [binary, shared, tree_projected, votes_scaled])
def test_the_header_is_also_cpp(case, tmp_path):
    fast = fitted(case)
    rows = rows_like(fast, 500)
    command = ("g++", "-std=c++11")
    whole, class_index = run_c(tmp_path, to_c(fast, dtype="int16"), rows, command=command)
    assert_array_equal(class_index, emulated(fast, "int16").predict(whole.astype(np.int64)))


@needs_gcc
def test_a_prediction_has_no_float_and_no_variable(tmp_path):
    header = to_c(fitted(shared), dtype="int16")
    code = header[header.index("limes_model_round(") :]
    assert "float" not in code[: code.index("#ifdef LIMES_MODEL_TEST")]
    main = '#include "model.h"\nint classify(const int16_t *x) { return limes_model_predict(x); }\n'
    (tmp_path / "model.h").write_text(header)
    (tmp_path / "main.c").write_text(main)
    command = ["gcc", "-std=c99", *STRICT, "-O0", "-c", "main.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(["size", "main.o"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.splitlines()[1].split()[1:3] == ["0", "0"]


@pytest.mark.parametrize("case", [shared_nearest, votes_projected, binary_by_default])
def test_all_tables_are_read_through_one_macro(case):
    tables, bare = tables_and_reads(to_c(fitted(case), dtype="int16"))
    assert "limes_model_slopes" in tables
    assert set(bare) <= {"limes_model_labels"}


@both_types
def test_the_header_states_its_bytes_and_its_agreement(dtype):
    fast = fitted(shared)
    rows = rows_like(fast, 400)
    header = c_header(fast, name="m", dtype=dtype, rows=rows)
    agreement = np.mean(
        to_fixed_point(fast.scheme_, dtype, FeatureStatistics.from_rows(rows)).class_index(rows)
        == fast.scheme_.classify(rows)
    )
    assert header.agreement == agreement
    assert f"Labels as those of the float model: {agreement:.2%} of 400 rows." in header.text
    assert f"#define M_BYTES {header.sizes.total}\n" in header.text
    assert "not measured" in to_c(fast, dtype=dtype)
    tables = re.findall(
        r"^LIMES_TABLE (\w+) \w+\[[^]]*\](?:\[\d+\])? = {(.*?)};", header.text, re.M | re.S
    )
    itemsize = {"int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4, "float": 4}
    body = header.text[: header.text.index("#ifdef M_TEST")]
    found = sum(
        itemsize[kind] * table.count(",")
        for kind, table in tables
        if kind != "char" and table in body
    )
    assert found + header.sizes["labels"] == header.sizes.total


def test_smaller_types_take_fewer_bytes():
    fast = fitted(votes_scaled)
    sizes = [constant_bytes(fast, dtype=dtype) for dtype in ("float32", "int16", "int8")]
    assert sizes[0] > sizes[1] > sizes[2]
    with pytest.raises(ValueError, match=r"tables must fit max_bytes=100, got \d+ bytes"):
        to_c(fast, dtype="int8", max_bytes=100)
    assert to_c(fast, dtype="int8", max_bytes=sizes[2])


def test_rows_out_of_range_are_moved_to_its_end():
    fast = fitted(binary)
    fixed = emulated(fast, "int16")
    ends = fixed.quantize(np.array([[1e30, -1e30], [np.inf, -np.inf]]))
    assert_array_equal(ends, [[LARGEST, -LARGEST]] * 2)
    features = fast.model_.info.features
    inside = fixed.quantize(np.array([features.minimum, features.maximum]))
    assert np.abs(inside).max() <= LARGEST // 2 + 1


def test_what_has_no_whole_numbers_is_refused_in_one_sentence():
    for case in (coupled, shortlist_coupled):
        with pytest.raises(ValueError, match=r"coupled probabilities .* fit with scheme='shared'"):
            to_c(fitted(case), dtype="int16")
    with pytest.raises(ValueError, match="dtype='int8' is for border maps, got the scheme 'exact'"):
        to_c(exact_classifier(exact_case(rbf_two)[0]), dtype="int8")
    line = BorderMap.from_borders(points=[[0.0]], normals=[[2.0]])
    fast = BordersClassifier.from_model(Model(PairwiseScheme((line,), 2), np.arange(2), 1))
    with pytest.raises(ValueError, match=r"needs the ranges of the features.*--rows FILE"):
        to_c(fast, dtype="int16")
    with pytest.raises(ValueError, match=r"rows must have the shape \(n_rows, 1\)"):
        to_c(fast, dtype="int16", rows=np.zeros((2, 3)))


def test_constant_and_huge_features_have_a_form():
    rows = np.column_stack(
        [np.full(50, 7.0), np.linspace(-1e20, 1e20, 50), np.linspace(0, 1e-20, 50)]
    )
    slopes = np.array([[[1.0, 1e-20, 1e20]]])
    line = BorderMap(np.zeros((1, 3)), slopes, np.array([[-7.5]]))
    fast = BordersClassifier.from_model(Model(PairwiseScheme((line,), 2), np.arange(2), 3))
    fixed = to_fixed_point(fast.scheme_, "int16", FeatureStatistics.from_rows(rows))
    assert_array_equal(fixed.class_index(rows), rows @ slopes[0, 0] > 7.5)


def test_near_points_keep_their_order_in_int8():
    """Many near points with functions of opposite signs: the nearest one decides the class."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, size=(4000, 2)).astype(np.float32)
    points = rng.uniform(-1, 1, size=(250, 2))
    offsets = rng.choice([-1.0, 1.0], size=(250, 1))
    line = BorderMap(points, np.zeros((250, 1, 2)), offsets)
    fast = BordersClassifier.from_model(Model(PairwiseScheme((line,), 2), np.arange(2), 2))
    fixed = to_fixed_point(fast.scheme_, "int8", FeatureStatistics.from_rows(rows))
    assert np.mean(fixed.class_index(rows) == fast.scheme_.classify(rows)) >= 0.999
