import re
import shutil
import subprocess

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.svm import SVC

from limes import BorderMap, BordersClassifier, accelerate
from limes.export.c import constant_bytes, to_c
from limes.export.c_text import c_comment, c_number, c_string, render
from limes.model import Model
from limes.model.schemes import PairwiseScheme
from tests.export.cases import (
    CASES,
    MAIN,
    binary,
    binary_blended,
    coupled,
    expected,
    fitted,
    in_dtype,
    moons,
    on_borders,
    one_vs_rest,
    rows_like,
    shared,
    shortlist,
    shortlist_coupled,
    shortlist_projected,
    tree,
    tree_projected,
    votes,
    votes_blended,
    votes_projected,
)

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no C compiler")

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion", "-Wshadow"]
TYPES = {"float32": "float", "float64": "double"}
# The largest difference in probability that was measured, over all cases and 10 000 rows each, is
# 3.4e-6 in float and 6.2e-15 in double.
TOLERANCE = {"float32": 1e-5, "float64": 1e-6}
# Of labels, none of 10 000 differed in any case: what the bounds on rounding would allow is more.
MAX_DIFFERENT = 2


def compiled(folder, header, main=MAIN, options=()):
    (folder / "model.h").write_text(header)
    (folder / "main.c").write_text(main)
    command = ["gcc", *STRICT, "-O2", *options, "main.c", "-lm", "-o", "main"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "main"


def predictions(program, rows, n_classes):
    done = subprocess.run([program], input=rows.tobytes(), capture_output=True, check=True)
    record = np.dtype([("class_index", np.intc), ("p", rows.dtype, (n_classes,))])
    records = np.frombuffer(done.stdout, record)
    return records["class_index"], records["p"]


@needs_gcc
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_compiled_c_gives_the_labels_and_probabilities_of_python(case, dtype, tmp_path):
    known = expected(case, dtype)
    program = compiled(tmp_path, to_c(known.fast, dtype=TYPES[dtype]))
    class_index, probabilities = predictions(
        program, known.rows.astype(dtype), len(known.fast.classes_)
    )
    differs = known.fast.classes_[class_index] != known.labels
    assert not differs[~known.is_open].any()
    assert differs.sum() <= MAX_DIFFERENT
    known.assert_probabilities(probabilities, TOLERANCE[dtype])
    assert_array_equal(probabilities.argmax(axis=1), class_index)


@needs_gcc
@pytest.mark.parametrize("level", ["-O0", "-Os", "-O3"])
@pytest.mark.parametrize(
    "case",
    [
        binary_blended,
        votes_blended,
        votes_projected,
        coupled,
        shared,
        shortlist,
        shortlist_coupled,
        shortlist_projected,
        tree,
        tree_projected,
    ],
)
def test_there_is_no_warning_at_any_level_of_optimisation(case, level, tmp_path):
    compiled(tmp_path, to_c(fitted(case)), options=[level])


@needs_gcc
@pytest.mark.parametrize(
    "case",
    [votes_blended, votes_projected, coupled, one_vs_rest, shortlist, shortlist_projected, tree],
)
def test_no_byte_outside_its_arrays_is_touched(case, tmp_path):
    fast = fitted(case)
    options = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]
    program = compiled(tmp_path, to_c(fast, dtype="float"), options=options)
    rows = rows_like(fast, 200)
    class_index, _ = predictions(program, rows, len(fast.classes_))
    assert_array_equal(fast.classes_[class_index], fast.predict(rows))


@needs_gcc
@pytest.mark.parametrize("blend", [1, 2, 3])
def test_equally_near_points_are_taken_in_their_order(blend, tmp_path):
    """Whole numbers, whose sums are exact, so that many rows are equally near to two points."""
    rng = np.random.default_rng(0)
    points = rng.integers(-3, 4, size=(20, 2))
    line = BorderMap(points, rng.integers(-3, 4, size=(20, 1, 2)), np.ones((20, 1)), blend=blend)
    stored = Model(PairwiseScheme((line,), 2), np.arange(2), 2)
    fast = BordersClassifier.from_model(stored)
    rows = rng.integers(-4, 5, size=(500, 2)).astype(np.float32)
    # On the border itself either class is right: thirds of whole numbers are rounded.
    rows = rows[np.abs(fast.decision_function(rows)) > 1e-5]
    distances = np.sort(np.square(rows[:, None] - points).sum(axis=2), axis=1)
    assert np.sum(distances[:, blend - 1] == distances[:, blend]) > 50
    class_index, _ = predictions(compiled(tmp_path, to_c(fast)), rows, 2)
    assert_array_equal(class_index, fast.predict(rows))


@needs_gcc
def test_a_value_of_zero_votes_as_in_python(tmp_path):
    fast, rows = on_borders()
    assert np.sum(fast.scheme_.values(rows) == 0) > 100
    class_index, _ = predictions(compiled(tmp_path, to_c(fast)), rows, 3)
    assert_array_equal(class_index, fast.predict(rows))


@needs_gcc
def test_every_constant_keeps_every_bit(tmp_path):
    fast = in_dtype(fitted(votes), "float64")
    main = """
    #include <stdio.h>
    #include "model.h"
    int main(void) {
        fwrite(limes_model_slopes, sizeof limes_model_slopes, 1, stdout);
        return limes_model_predict(limes_model_slopes) < 0;
    }
    """
    program = compiled(tmp_path, to_c(fast), main=main)
    done = subprocess.run([program], capture_output=True, check=True)
    expected = np.concatenate([border_map.slopes.ravel() for border_map in fast.scheme_.maps])
    assert_array_equal(np.frombuffer(done.stdout), expected)


@needs_gcc
def test_labels_need_no_probabilities_and_no_mathematics(tmp_path):
    main = '#include "model.h"\nint main(void) { return limes_model_predict(limes_model_center); }'
    header = to_c(fitted(votes))
    (tmp_path / "model.h").write_text(header)
    (tmp_path / "main.c").write_text(main)
    command = ["gcc", *STRICT, "-O0", "-c", "main.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(["nm", "-u", "main.o"], cwd=tmp_path, capture_output=True, text=True)
    assert not set(re.findall(r"U (\w+)", done.stdout)) - {"_GLOBAL_OFFSET_TABLE_"}


@needs_gcc
def test_a_model_of_two_kilobytes_is_possible(tmp_path):
    X, y = moons()
    source = SVC(gamma=2).fit(X, y)
    fast = accelerate(source, X, scheme="pairwise", n_borders=50, blend=1, random_state=0)
    header = to_c(fast, name="tiny", max_bytes=1400)
    main = '#include "model.h"\nint classify(const float *x) { return tiny_predict(x); }\n'
    (tmp_path / "model.h").write_text(header)
    (tmp_path / "main.c").write_text(main)
    subprocess.run(["gcc", *STRICT, "-Os", "-c", "main.c"], cwd=tmp_path, check=True)
    done = subprocess.run(["size", "main.o"], cwd=tmp_path, capture_output=True, text=True)
    code_and_constants = int(done.stdout.splitlines()[1].split()[0])
    assert code_and_constants <= 2048
    assert np.mean(fast.predict(X) == source.predict(X)) > 0.95


@needs_gcc
@pytest.mark.parametrize(
    ("classes", "form", "expected"),
    [
        (np.array([False, True]), "%ld", "0 1"),
        (np.array([-(2**63), 5]), "%lld", "-9223372036854775808 5"),
        (np.array([0, 2**64 - 1], dtype=np.uint64), "%llu", "0 18446744073709551615"),
        (np.array([0.1, 2.0]), "%.17g", "0.10000000000000001 2"),
        (np.array(['"; }\n??/', "naïve*/"]), "%s", '"; }\n??/ naïve*/'),
    ],
    ids=["truth", "int64", "uint64", "float", "text"],
)
def test_labels_keep_their_values(classes, form, expected, tmp_path):
    line = BorderMap.from_borders(points=[[0.0]], normals=[[2.0]])
    fast = BordersClassifier.from_model(Model(PairwiseScheme((line,), 2), classes, 1))
    main = f"""
    #include <stdio.h>
    #include "model.h"
    int main(void) {{
        printf("{form} {form}", limes_model_labels[0], limes_model_labels[1]);
        return limes_model_predict(limes_model_center);
    }}
    """
    program = compiled(tmp_path, to_c(fast), main=main)
    done = subprocess.run([program], capture_output=True, check=False)
    assert done.stdout.decode() == expected


@needs_gcc
def test_names_of_features_cannot_leave_their_comment(tmp_path):
    line = BorderMap.from_borders(points=[[0.0]], normals=[[2.0]])
    names = np.array(["*/ #error\n#error @name@ é"], dtype=object)
    stored = Model(PairwiseScheme((line,), 2), np.arange(2), 1, names)
    header = to_c(BordersClassifier.from_model(stored))
    assert header.isascii()
    compiled(tmp_path, header)


def test_two_models_have_different_names(tmp_path):
    header = to_c(fitted(binary), name="first")
    assert "limes_model" not in header
    assert "#ifndef FIRST_H" in header


def test_the_header_states_the_size_of_its_constants():
    fast = fitted(votes)
    n_bytes = constant_bytes(fast, dtype="double")
    assert n_bytes == 8 * (3 + 600 * (3 + 1 + 3 + 1)) + 2 * 6 + 4 * 7
    header = to_c(fast, dtype="double")
    assert f"Tables: {n_bytes} bytes" in header
    assert f"#define LIMES_MODEL_BYTES {n_bytes}\n" in header


def test_a_model_too_large_raises_an_error_that_states_what_would_fit():
    with pytest.raises(
        ValueError, match=r"max_bytes=2048, got 19252 bytes.*n_borders=10"
    ) as raised:
        to_c(fitted(votes), max_bytes=2048)
    assert "\n" not in str(raised.value)
    X, y = moons()
    smaller = accelerate(SVC().fit(X, y), X, n_borders=10, random_state=0)
    to_c(smaller, max_bytes=2048)
    with pytest.raises(ValueError, match="not one border point"):
        to_c(fitted(votes), max_bytes=10)


@pytest.mark.parametrize("name", ["", "2fast", "a-b", "a b", "x" * 99, "_a", 3])
def test_a_name_that_c_cannot_have_is_refused(name):
    with pytest.raises(ValueError, match="name must be letters"):
        to_c(fitted(binary), name=name)


def test_an_unknown_type_is_refused():
    with pytest.raises(ValueError, match=r"dtype must be .* got 'half'"):
        to_c(fitted(binary), dtype="half")


def test_numbers_are_read_as_the_same_bits():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, size=2000, dtype=np.uint32).view(np.float32)
    for value in bits[np.isfinite(bits)]:
        assert np.float32(c_number(value).removesuffix("f")) == value
    for value in (0.0, -0.0, 1.0, 1e9, 123456789.5, 1e-320, 1.7976931348623157e308):
        assert float(c_number(np.float64(value))) == value
        assert re.fullmatch(r"-?\d+(\.\d+|(\.\d+)?e[+-]?\d+)", c_number(np.float64(value)))


def test_text_in_code_and_comments_is_plain():
    assert c_string("??=") == '"\\077\\077="'
    assert "*/" not in c_comment("a*/b")
    assert "\n" not in c_comment("a\nb")


def test_sections_of_a_template_can_be_nested_and_negated():
    lines = ["@if a@", "1", "@if not b@", "2", "@else@", "3", "@end@", "@else@", "4", "@end@", "5"]
    template = "\n".join(lines) + "\n"
    for a, b, shown in ((1, 1, "135"), (1, 0, "125"), (0, 1, "45"), (0, 0, "45")):
        assert render(template, {"a": bool(a), "b": bool(b)}, {}) == "\n".join(shown) + "\n"


def test_fields_of_a_template_are_not_replaced_twice():
    assert render("@a@ @b@\n", {}, {"a": "@b@", "b": 1}) == "@b@ 1\n"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_every_field_and_section_of_the_template_is_filled(case):
    header = to_c(fitted(case))
    assert "@" not in header
    assert "malloc" not in header


CPP = ["-std=c++11", *STRICT[1:], "-x", "c++"]
# Reports how many rows of the header's own test vector get another class.
TEST_MAIN = """
#include <stdio.h>
#define LIMES_MODEL_TEST
#include "model.h"
int main(void) {
    printf("%d %d", LIMES_MODEL_TEST_ROWS, limes_model_test());
    return 0;
}
"""


def build(folder, header, main, command):
    (folder / "model.h").write_text(header)
    (folder / "main.c").write_text(main)
    done = subprocess.run(
        [*command, "main.c", "-lm", "-o", "main"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "main"


needs_gpp = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler")


@needs_gpp
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_header_is_also_cpp(case, tmp_path):
    known = expected(case, "float32")
    program = build(tmp_path, to_c(known.fast, dtype="float"), MAIN, ["g++", *CPP, "-O1"])
    class_index, _ = predictions(program, known.rows[:2000], len(known.fast.classes_))
    is_certain = ~known.is_open[:2000]
    labels = known.fast.classes_[class_index]
    assert_array_equal(labels[is_certain], known.labels[:2000][is_certain])


@needs_gcc
@pytest.mark.parametrize("dtype", ["float", "double"])
@pytest.mark.parametrize("case", [binary, votes_projected, shared, shortlist, tree, coupled])
def test_the_test_vector_has_rows_of_several_classes_and_finds_no_error(case, dtype, tmp_path):
    fast = fitted(case)
    header = to_c(fast, dtype=dtype)
    program = build(tmp_path, header, TEST_MAIN, ["gcc", *STRICT, "-O1"])
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    n_rows, n_wrong = map(int, done.stdout.split())
    assert n_rows >= len(fast.classes_)
    assert n_wrong == 0
    table = re.search(r"_test_classes\[[^]]*\] = {([^}]*)}", header)[1]
    assert len(set(table.replace(",", " ").split())) > 1


@needs_gcc
def test_the_test_vector_finds_a_changed_table(tmp_path):
    header = to_c(fitted(binary))
    table = re.search(r"limes_model_offsets\[[^]]*\] = {([^}]*)}", header)[1]
    turned = header.replace(table, re.sub(r"(-?)(\d[\d.e-]*f)", r"9.0f", table))
    program = build(tmp_path, turned, TEST_MAIN, ["gcc", *STRICT, "-O1"])
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[1]) > 0


def test_a_model_without_statistics_of_its_features_has_no_test_vector():
    line = BorderMap.from_borders(points=[[0.0]], normals=[[2.0]])
    fast = BordersClassifier.from_model(Model(PairwiseScheme((line,), 2), np.arange(2), 1))
    assert "_TEST" not in to_c(fast)


@needs_gcc
@pytest.mark.parametrize("case", [votes, shortlist_coupled, tree])
def test_there_is_no_variable_outside_functions(case, tmp_path):
    header = to_c(fitted(case))
    main = '#include "model.h"\nint classify(const float *x) { return limes_model_predict(x); }\n'
    (tmp_path / "model.h").write_text(header)
    (tmp_path / "main.c").write_text(main)
    subprocess.run(["gcc", *STRICT, "-O0", "-c", "main.c"], cwd=tmp_path, check=True)
    done = subprocess.run(["size", "main.o"], cwd=tmp_path, capture_output=True, text=True)
    data_and_bss = done.stdout.splitlines()[1].split()[1:3]
    assert data_and_bss == ["0", "0"]


def tables_and_reads(header):
    """Return the names of all tables, and the places where they are used outside LIMES_READ."""
    tables = set(re.findall(r"^LIMES_TABLE [\w ]+ (\w+)\[", header, re.M))
    code = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    code = re.sub(r"^LIMES_TABLE .*? = {.*?};", "", code, flags=re.S | re.M)
    code = re.sub(r"LIMES_READ\(\w+, \w+\[", "[", code)
    return tables, [name for name in tables if re.search(rf"\b{name}\b", code)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_all_tables_are_read_through_one_macro(case):
    tables, bare = tables_and_reads(to_c(fitted(case)))
    assert "limes_model_slopes" in tables
    # A text is not read here: its place is returned.
    assert set(bare) <= {"limes_model_labels"}


def test_avr_refuses_float64_and_large_tables_in_one_sentence():
    assert "#error" not in to_c(fitted(binary), dtype="float")
    double = to_c(fitted(binary), dtype="double")
    assert '#error "limes_model: AVR has no float64: export with dtype float32' in double
    points = np.random.default_rng(0).normal(size=(1100, 8))
    line = BorderMap.from_borders(points=points, normals=points)
    fast = BordersClassifier.from_model(Model(PairwiseScheme((line,), 2), np.arange(2), 8))
    (message,) = re.findall(r'#error "(.*)"', to_c(fast))
    assert "AVR takes tables of 32767 bytes, points has 35200: use a smaller dtype" in message
