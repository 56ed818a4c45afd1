"""libAGF's borders in binary files and control files, read and written.

`LIMES_LIBAGF` names a folder with models and answers of the original programs.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import SVC

from limes import accelerate
from limes.cli.main import main
from limes.export.libagf import read_libagf_model, to_libagf
from limes.export.libagf_files import read_libagf_borders, write_libagf_borders
from tests.cli.commands import error_of
from tests.export.cases import blobs, moons, rows_like

PAPER = {"blend": 1, "refine": False, "random_state": 0, "n_borders": 20}
ORIGINAL = os.environ.get("LIMES_LIBAGF", "")
needs_original = pytest.mark.skipif(not ORIGINAL, reason="LIMES_LIBAGF names no folder")


def vectors(name):
    data = Path(ORIGINAL, name).read_bytes()
    n_features = int.from_bytes(data[:4], "little")
    return np.frombuffer(data[4:], "<f4").reshape(-1, n_features)


@needs_original
@pytest.mark.parametrize(
    ("model", "rows", "name"),
    [
        ("heart_b.brd", "heart.vec", "heart_b"),
        ("heart_b.bgd", "heart.vec", "heart_b"),
        ("seg1r.txt", "segment.vec", "seg1r"),
        ("segh.txt", "segment.vec", "segh"),
    ],
)
def test_models_of_the_original_give_its_labels(model, rows, name):
    fast = read_libagf_borders(Path(ORIGINAL, model))
    X = vectors(rows)
    labels = fast.predict(X)
    expected = np.fromfile(Path(ORIGINAL, f"answers/{name}.cls"), "<i4")
    is_own = np.ones(len(X), dtype=bool)
    if name == "seg1r":
        # For 57 of 924 rows the original repeats the probabilities of the row before.
        probabilities = np.loadtxt(Path(ORIGINAL, "answers/seg1r_probabilities.txt"))
        is_own[1:] = (probabilities[1:] != probabilities[:-1]).any(axis=1)
        assert (~is_own).sum() == 57
    assert_array_equal(labels[is_own], expected[is_own])
    if name != "seg1r":
        # Those of one class against the rest come from a constrained fit in libAGF.
        n_classes = len(fast.classes_)
        raw = fast.scheme_.raw_probabilities(fast.scheme_.values(X))[np.arange(len(X)), labels]
        ratings = (n_classes * raw - 1) / (n_classes - 1)
        stored = np.fromfile(Path(ORIGINAL, f"answers/{name}.con"), "<f4")
        assert_allclose(ratings, stored, atol=1e-5)


@pytest.fixture(scope="module")
def source():
    X, y = blobs(labels=[4, 2, 9, -1])
    return SVC(gamma=0.1).fit(X, y), X


@pytest.mark.parametrize("scheme", ["pairwise", "one-vs-rest", "tree"])
def test_several_classes_come_back_with_the_same_labels(source, tmp_path, scheme):
    fast = accelerate(*source, scheme=scheme, **PAPER)
    paths = write_libagf_borders(fast, tmp_path / "four")
    assert paths[-1].name == "four.txt"
    assert len(paths) == 2 * len(fast.scheme_.maps) + 1
    again = read_libagf_borders(paths[-1], by_vote=True)
    assert again.scheme_.name == scheme
    rows = rows_like(fast, 5000).astype(np.float32)
    # The borders are float32.
    assert (again.predict(rows) == fast.predict(rows)).mean() > 0.999


def test_two_classes_are_a_pair_of_files(tmp_path):
    X, y = moons()
    fast = accelerate(SVC(gamma=2).fit(X, y), X, scheme="pairwise", **PAPER)
    paths = write_libagf_borders(fast, tmp_path / "two")
    assert [path.name for path in paths] == ["two.brd", "two.bgd"]
    again = read_libagf_borders(paths[0])
    rows = rows_like(fast, 5000).astype(np.float32)
    expected = np.searchsorted(fast.classes_, fast.predict(rows))
    assert (again.predict(rows) == expected).mean() > 0.999


def test_text_models_of_one_class_against_the_rest_come_back(source, tmp_path):
    fast = accelerate(*source, scheme="one-vs-rest", **PAPER)
    text = to_libagf(fast)
    assert text.splitlines()[:4] == ["1vR", "4", "-1 2 4 9", "-1 -1 -1 -1"]
    path = tmp_path / "model.agf"
    path.write_text(text)
    again = read_libagf_model(path)
    rows = rows_like(fast, 5000)
    assert_array_equal(again.predict(rows), fast.predict(rows))
    assert to_libagf(again) == text


def write_border(path, normal):
    for ending, row in ((".brd", [0.0, 0.0]), (".bgd", normal)):
        path.with_suffix(ending).write_bytes(
            (2).to_bytes(4, "little") + np.array([row], "<f4").tobytes()
        )


def test_numbers_on_the_sides_of_a_border_are_places_in_the_list_of_labels(tmp_path):
    for name, normal in (("a", [-1.0, 0.0]), ("b", [0.0, 1.0]), ("c", [1.0, 1.0])):
        write_border(tmp_path / name, normal)
    (tmp_path / "m.txt").write_text("a 1 2/0; b 0 2 / 1 ;\nc 2 / 0 1;{7 5\n3}")
    fast = read_libagf_borders(tmp_path / "m.txt")
    # The third border lists its class on the left.
    assert fast.predict([[-9.0, 0.5], [1.0, 9.0], [1.0, -9.0]]).tolist() == [7, 5, 3]


def test_the_commands_read_and_write_borders(source, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    fast = accelerate(*source, scheme="tree", **PAPER)
    fast.save("fast.limes")
    assert main(["export", "fast.limes", "--to", "libagf-borders", "-o", "m"]) == 0
    np.save("rows.npy", rows_like(fast, 50).astype(np.float32))
    for model in ("fast.limes", "m.txt"):
        assert main(["predict", model, "rows.npy", "-o", f"{model}.out"]) == 0
    assert Path("fast.limes.out").read_text() == Path("m.txt.out").read_text()
    message = error_of(capsys, "export", "m.txt", "--to", "libagf-borders", "-o", "m")
    assert "an input as well as an output" in message


BAD = {
    "a 0 / 1; { 0 1": "expected a whole number as a class, or '}'",
    "a 0 / x; { 0 1 }": "expected whole numbers up to ';'",
    "a 0 / 1; { 0 1 } b": "expected the end of the file",
    "a 0 / 1; { 0 0 }": "two classes or more that differ",
    "a 0 / 1; { 0 1 2 }": "expected borders between all of 3 classes",
    "a 0 / 1; a 0 1 / 2; { 0 1 2 }": "expected a border between each two classes",
    "z 0 / 1; { 0 1 }": "expected 'z'.brd and .bgd beside it: No such file",
    "a { 0 1 2 }": "expected a class, or a name and two children",
    "a { 0 a { 1 0 } }": "classes that differ",
    "a { 0 ": "expected a class, or a name",
    "": "found an empty file",
}


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_a_wrong_control_file_is_refused_in_one_sentence(tmp_path, text):
    write_border(tmp_path / "a", [1.0, 0.0])
    path = tmp_path / "m.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=BAD[text]) as caught:
        read_libagf_borders(path)
    assert str(caught.value).startswith(str(path))
