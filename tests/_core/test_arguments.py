"""Bad input ends in an exception that says what to do, never in an invalid memory access."""

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest

from limes._core import Classifier, Maps, simd_level, simd_levels
from tests._core.reference import random_spec


@pytest.fixture
def maps():
    return random_spec(np.random.default_rng(0), 10, 3, n_values=2).build()


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((4, 3), dtype=np.float16),
        np.zeros((4, 3), dtype=np.int64),
        np.zeros((4, 3), dtype=complex),
        np.zeros((4, 3), dtype=">f4"),
        np.zeros((4, 3), dtype=object),
        np.zeros((4, 3), dtype="f4,f4"),
        [[0.0, 0.0, 0.0]],
        "text",
        None,
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["nearest", "decide"])
def test_rows_of_another_type_raise_a_type_error(maps, method, X):
    with pytest.raises(TypeError, match="X must be"):
        getattr(maps, method)(X)


def test_arrays_that_leave_out_their_strides_are_read_in_c_order(maps):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4, 3))
    bare = ((ctypes.c_double * 3) * 4)(*map(tuple, X))
    np.testing.assert_array_equal(maps.decide(bare), maps.decide(X))
    out = (ctypes.c_int32 * 4)()
    maps.nearest(X, out)
    np.testing.assert_array_equal(list(out), maps.nearest(X))


def test_arrays_that_python_cannot_hand_over_raise_with_the_reason(maps):
    with pytest.raises(TypeError, match=r"X must be an array of numbers, got ndarray .*dtype 'M'"):
        maps.decide(np.zeros((4, 3), dtype="datetime64[s]"))
    closed = np.zeros(4, dtype=np.int32)
    closed.flags.writeable = False
    with pytest.raises(TypeError, match=r"out must be a writable array, got ndarray .*read-only"):
        maps.nearest(np.zeros((4, 3)), closed)


@pytest.mark.parametrize("shape", [(3,), (4, 2), (4, 4), (0, 2), (1, 4, 3), ()], ids=str)
@pytest.mark.parametrize("method", ["nearest", "decide"])
def test_rows_of_another_shape_raise_a_value_error(maps, method, shape):
    with pytest.raises(ValueError, match=r"X must have shape \(n_rows, 3\)"):
        getattr(maps, method)(np.zeros(shape))


@pytest.mark.parametrize(
    ("out", "error"),
    [
        (np.zeros(4, dtype=np.int64), TypeError),
        (np.zeros(5, dtype=np.int32), ValueError),
        (np.zeros((4, 1), dtype=np.int32), ValueError),
        (np.zeros(8, dtype=np.int32)[::2], ValueError),
        (np.zeros(4, dtype=np.int32)[::-1], ValueError),
        (np.frombuffer(bytes(16), dtype=np.int32), TypeError),
        (np.zeros(4, dtype="datetime64[s]"), TypeError),
        ([0, 0, 0, 0], TypeError),
    ],
)
def test_a_wrong_place_for_indices_raises(maps, out, error):
    with pytest.raises(error, match="out must"):
        maps.nearest(np.zeros((4, 3)), out)


@pytest.mark.parametrize(
    ("out", "error"),
    [
        (np.zeros((4, 2)), TypeError),
        (np.zeros((4, 3), dtype=np.float32), ValueError),
        (np.zeros((3, 2), dtype=np.float32), ValueError),
        (np.zeros((2, 4), dtype=np.float32).T, ValueError),
    ],
)
def test_a_wrong_place_for_values_raises(maps, out, error):
    with pytest.raises(error, match="out must"):
        maps.decide(np.zeros((4, 3)), out)


@pytest.mark.parametrize(
    ("map_numbers", "error"),
    [
        (np.zeros((4, 2)), TypeError),
        (np.zeros((4, 2), dtype=np.int64), TypeError),
        (np.zeros((3, 2), dtype=np.int32), ValueError),
        (np.full((4, 2), 1, dtype=np.int32), ValueError),
        (np.full((4, 2), -2, dtype=np.int32), ValueError),
    ],
)
def test_wrong_map_numbers_raise(maps, map_numbers, error):
    with pytest.raises(error, match="map_numbers must"):
        maps.decide_selected(np.zeros((4, 3)), map_numbers)


def test_maps_of_unequal_width_cannot_be_chosen_from():
    spec = random_spec(np.random.default_rng(0), 10, 3, n_values=2)
    spec.maps += random_spec(np.random.default_rng(0), 10, 3, n_maps=2).maps
    with pytest.raises(ValueError, match="equally many"):
        spec.build().decide_selected(np.zeros((4, 3)), np.zeros((4, 1), dtype=np.int32))


@pytest.mark.parametrize("number", [-1, 1, 10**6])
def test_a_map_that_is_not_there_raises(maps, number):
    with pytest.raises(ValueError, match="index must be"):
        maps.nearest(np.zeros((4, 3)), index=number)


@pytest.mark.parametrize("n_threads", [0, -1])
def test_no_threads_at_all_raise(maps, n_threads):
    with pytest.raises(ValueError, match="n_threads must be at least 1"):
        maps.nearest(np.zeros((4, 3)), n_threads=n_threads)


def parts(n_points=4, n_search=3, n_features=3, n_values=2):
    return [
        np.zeros((n_points, n_search)),
        np.zeros(n_points),
        np.zeros((n_points, n_values, n_features)),
        np.zeros((n_points, n_values)),
    ]


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("change", [-1, 1])
def test_parts_of_a_map_that_do_not_fit_together_raise(part, axis, change):
    wrong = parts()
    if axis >= wrong[part].ndim:
        pytest.skip("has no such axis")
    shape = list(wrong[part].shape)
    shape[axis] += change
    wrong[part] = np.zeros(shape)
    with pytest.raises(ValueError, match="must have shape"):
        Maps(np.zeros(3), [wrong])


@pytest.mark.parametrize("part", range(4))
def test_parts_with_too_few_dimensions_raise(part):
    wrong = parts()
    wrong[part] = np.zeros(())
    with pytest.raises(ValueError, match="must have"):
        Maps(np.zeros(3), [wrong])


@pytest.mark.parametrize(
    ("center", "maps", "options", "message"),
    [
        (np.zeros(3), [parts(n_points=0)], {}, "at least one border point"),
        (np.zeros(3), [parts(n_values=0)], {}, "linear function"),
        (np.zeros(3), [], {}, "at least one map"),
        (np.zeros(0), [parts()], {}, "at least one feature"),
        (np.zeros((3, 1)), [parts()], {}, "one dimension"),
        (np.zeros(3), [parts()[:3]], {}, "each map must be"),
        (np.zeros(3), [parts()], {"blend": 0}, "blend must be at least 1"),
        (np.zeros(3), [parts()], {"projection": np.zeros((2, 3))}, "projection must have shape"),
        (np.zeros(3), [parts()], {"projection": np.zeros((3, 0))}, "projection must have shape"),
        (np.zeros(3), [parts()], {"projection": np.zeros((3, 2))}, "points must have shape"),
        (np.zeros(3), [parts()], {"pairs": [[0, 1]]}, "one linear function"),
        (np.zeros(3), [parts(n_values=1)], {"pairs": [[0, 1, 2]]}, "pairs must have shape"),
        (np.zeros(3), [parts(n_values=1)], {"pairs": [[0, -1]]}, "pairs must hold class numbers"),
        (np.full(3, np.nan), [parts()], {}, "must be finite"),
        (np.full(3, 1e300), [parts()], {}, "double=True"),
        (np.zeros(3), [parts()], {"level": "abacus"}, "level must be one of"),
    ],
)
def test_maps_that_make_no_sense_raise(center, maps, options, message):
    with pytest.raises(ValueError, match=message):
        Maps(center, maps, **options)


def test_several_maps_without_pairs_do_not_classify():
    maps = random_spec(np.random.default_rng(0), 10, 3, n_maps=2).build()
    with pytest.raises(ValueError, match="use decide"):
        Classifier(maps).predictor()


@pytest.mark.parametrize(
    ("row", "error", "message"),
    [
        (np.zeros(2), ValueError, "row must have 3 features, got 2"),
        (np.zeros(4), ValueError, "row must have 3 features, got 4"),
        ([0.0, 0.0], ValueError, "row must have 3 features, got 2"),
        (np.zeros((1, 4)), ValueError, "must have shape"),
        (np.zeros(()), ValueError, "must have shape"),
        (np.zeros((1, 1, 3)), ValueError, "must have shape"),
        (np.zeros(3, dtype=int), TypeError, "float32 or float64"),
        (["a", "b", "c"], TypeError, "real number"),
        ("abc", TypeError, "real number"),
        (b"abc", TypeError, "float32 or float64"),
        (3.0, TypeError, "row must be an array or a sequence"),
        (None, TypeError, "row must be an array or a sequence"),
    ],
    ids=str,
)
def test_a_wrong_single_row_raises(maps, row, error, message):
    with pytest.raises(error, match=message):
        Classifier(maps).predictor()(row)


def test_too_few_labels_raise(maps):
    with pytest.raises(ValueError, match="labels must name 2 classes, got 1"):
        Classifier(maps).predictor(["one"])


def run_python(code, **variables):
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("level", simd_levels())
def test_the_environment_forces_a_level(level):
    code = "from limes import _core; print(_core.simd_level())"
    assert run_python(code, LIMES_SIMD=level).stdout.strip() == level


@pytest.mark.parametrize(
    "code", ["import limes._core", "from limes import accelerate", "import limes; limes.BorderMap"]
)
def test_an_unknown_level_in_the_environment_stops_the_import(code):
    answer = run_python(code, LIMES_SIMD="abacus")
    assert answer.returncode != 0
    assert "ImportError: LIMES_SIMD must be one of" in answer.stderr
    assert "got 'abacus'" in answer.stderr


def test_the_old_variable_is_refused_with_its_new_name():
    answer = run_python("import limes._core", LIMES_CPU="generic")
    assert "LIMES_CPU is now called LIMES_SIMD" in answer.stderr


def test_the_level_in_use_is_one_of_those_available():
    assert simd_level() in simd_levels()
