"""Measurements of exact sums: cases are measured once, and comparisons are what they claim."""

import os
import struct

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs, make_moons
from sklearn.svm import SVC

from limes.model.svm import Kernel, TrainedSvm
from limes.research import exact
from limes.research.exact import (
    NEAR,
    Case,
    Part,
    _polygon,
    bare_product,
    deciding_margins,
    main,
    time_per_row,
)
from limes.research.exact_page import FitRow
from limes.research.problems import Problem
from limes.sources.svm import svm_from_sklearn

needs_scenes = pytest.mark.skipif(
    not os.environ.get("LIMES_SCENES"), reason="LIMES_SCENES is not set"
)


@pytest.fixture
def moons(tmp_path):
    X, y = make_moons(300, noise=0.2, random_state=0)
    return Case(Problem("moons", X[:200], y[:200], X[200:], y[200:], C=10.0, gamma=1.0), tmp_path)


def measure_once(calls):
    """Return a part whose measurements are counted, in place of the time of fits."""

    def measure(args, name):
        calls.append(name)
        return FitRow(name, 55, "exact", 0.01)

    return Part(
        "fit.csv", lambda args: [("wine",), ("landsat8",)], measure, lambda row: (row.case,)
    )


def test_what_is_measured_is_not_measured_again(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setitem(exact.PARTS, "fit", measure_once(calls))
    main(["fit", "--cases", "wine", "-o", str(tmp_path)])
    main(["fit", "-o", str(tmp_path)])
    main(["fit", "-o", str(tmp_path)])
    assert calls == ["wine", "landsat8"]
    assert "- Below 0.2 s, and exact: 2 of 2." in (tmp_path / "exact.md").read_text()


def test_drawing_measures_nothing(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setitem(exact.PARTS, "fit", measure_once(calls))
    main(["fit", "--draw", "-o", str(tmp_path)])
    assert not calls


@pytest.mark.parametrize("words", [["sum"], ["sums", "--cases", "stat"]])
def test_unknown_parts_and_cases_are_named(words, tmp_path):
    with pytest.raises(SystemExit, match=f"must be one of .*, got '{words[-1]}'"):
        main([*words, "-o", str(tmp_path)])


def test_a_margin_is_relative_to_the_sum_of_absolute_terms():
    svm = TrainedSvm(
        kernel=Kernel("linear"),
        vectors=[[1.0], [3.0]],
        dual_coef=[[2.0, -1.0]],
        intercepts=[0.5],
        n_support=[1, 1],
    )
    # At x = 1: f = -(2 * 1 - 1 * 3) - 0.5 = 0.5, and sum |alpha| K = 2 * 1 + 1 * 3.
    assert_allclose(deciding_margins(svm, np.array([[1.0]])), [0.5 / 5.0])


def test_only_pairs_of_the_winner_decide():
    X, y = make_blobs(150, 2, centers=4, random_state=0)
    svc = SVC(gamma=0.3, decision_function_shape="ovo").fit(X, y)
    rows = X[:20]
    winner = svc.predict(rows)
    kernels = np.exp(-0.3 * np.square(rows[:, None] - svc.support_vectors_).sum(axis=2))
    ends = np.cumsum(svc.n_support_)
    of_class = [slice(end - n, end) for end, n in zip(ends, svc.n_support_, strict=True)]
    expected = np.full(len(rows), np.inf)
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    for pair, (i, j) in enumerate(pairs):
        size = kernels[:, of_class[i]] @ np.abs(svc.dual_coef_[j - 1, of_class[i]])
        size += kernels[:, of_class[j]] @ np.abs(svc.dual_coef_[i, of_class[j]])
        margin = np.abs(svc.decision_function(rows)[:, pair]) / size
        is_deciding = (winner == i) | (winner == j)
        expected[is_deciding] = np.minimum(expected, margin)[is_deciding]
    assert_allclose(deciding_margins(svm_from_sklearn(svc), rows), expected, rtol=1e-9)


def test_a_row_on_the_border_is_near():
    vectors = [[-1.0], [1.0]]
    svm = TrainedSvm(Kernel("rbf", gamma=0.5), vectors, [[1.0, -1.0]], [0.0], [1, 1])
    margins = deciding_margins(svm, np.array([[0.0], [0.1], [1e200]]))
    assert_array_equal(margins <= NEAR, [True, False, False])


@pytest.mark.parametrize("has_exponentials", [False, True])
def test_the_bare_product_takes_all_rows_and_blocks(has_exponentials, monkeypatch):
    rng = np.random.default_rng(0)
    vectors, rows = rng.normal(size=(5, 3)), rng.normal(size=(40, 3)).astype(np.float32)
    seen = []
    dot = np.dot

    def remember(part, columns, out):
        seen.append(len(part))
        return dot(part, columns, out=out)

    multiply = bare_product(vectors, rows, block_products=1, has_exponentials=has_exponentials)
    monkeypatch.setattr(np, "dot", remember)
    multiply(rows)
    assert seen == [16, 16, 8]


def test_times_are_per_row():
    def slow(rows):
        return [sum(range(200)) for _ in rows]

    rows = np.zeros((400, 1))
    times = time_per_row({"once": (slow, rows), "on half": (slow, rows[:200])})
    once, half = times.microseconds.values()
    assert once == pytest.approx(half, rel=0.5)


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_polygon_is_read_after_its_header(order):
    ring = [[0.0, 0.0], [2.0, 0.0], [0.0, 3.0], [0.0, 0.0]]
    # Flags: an envelope of four numbers.
    header = b"GP\x00\x02" + bytes(4) + bytes(32)
    numbers = np.array(ring).astype(f"{order}f8").tobytes()
    body = struct.pack(f"{order}BIII", order == "<", 3, 1, len(ring)) + numbers
    assert _polygon(header + body) == {"type": "Polygon", "coordinates": [ring]}


def test_other_geometries_are_refused():
    blob = b"GP\x00\x00" + bytes(4) + struct.pack("<BII", 1, 6, 1)
    with pytest.raises(ValueError, match=r"must be a polygon, WKB type 3, got type 6"):
        _polygon(blob)


def test_a_missing_folder_of_scenes_is_named(monkeypatch):
    monkeypatch.setenv("LIMES_SCENES", "/nowhere")
    with pytest.raises(SystemExit, match=r"LIMES_SCENES must be the folder .*, got '/nowhere'"):
        exact._scenes_folder()


@needs_scenes
@pytest.mark.parametrize(
    ("name", "n_valid", "counts", "n_support"),
    [
        ("landsat7", 135_092, [427, 516, 290, 894, 200, 109], 678),
        ("landsat8", 3_169_229, [192, 81, 198, 212], 32),
    ],
)
def test_scenes_have_their_known_pixels(name, n_valid, counts, n_support, tmp_path):
    pytest.importorskip("rasterio")
    problem = exact.SCENES[name]()
    labels = problem.y_test[problem.y_test > 0]
    assert len(problem.X_test) == n_valid
    assert_array_equal(np.unique(labels, return_counts=True)[1], counts)
    assert len(Case(problem, tmp_path).svm.support_) == n_support
