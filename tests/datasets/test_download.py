"""Downloads with the network replaced: origins, errors, progress."""

import bz2

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils import Bunch

from limes.datasets import download, load, loader
from limes.datasets.catalogue import NAMES, Entry
from limes.datasets.download import ORIGINS, LibAGF, LibsvmSite, OpenML
from tests.datasets.files import heart, silent, svmlight

TINY = Entry("tiny", "float", 3, (2, 3), (1, 1))


@pytest.mark.parametrize("name", NAMES)
def test_without_a_network_the_error_names_the_folder_for_the_file(offline, name):
    with pytest.raises(FileNotFoundError) as caught:
        load(name)
    message = str(caught.value)
    assert f"put {name}.npz into {offline}" in message
    assert "LIMES_DATA" in message
    assert "no route to host" in message
    assert "\n" not in message


def test_nothing_is_downloaded_without_permission(cache, monkeypatch):
    monkeypatch.setattr(download, "urlopen", None)
    with pytest.raises(FileNotFoundError, match=r"put heart\.npz into"):
        load("heart", can_download=False)


def test_a_download_is_stored_in_the_cache(serve, cache, monkeypatch):
    X, y = heart()
    serve("heart", svmlight(X, np.where(y == 1, "+1", "-1")))
    first = load("heart")
    monkeypatch.setattr(download, "urlopen", None)
    second = load("heart")
    assert_array_equal(first.X_train, second.X_train)
    assert_array_equal(first.y_test, second.y_test)
    assert [path.name for path in cache.iterdir()] == ["heart.npz"]


def test_downloaded_rows_are_the_published_ones(serve, cache):
    X, y = heart()
    serve("heart", svmlight(X, np.where(y == 1, "+1", "-1")))
    load("heart")
    with np.load(cache / "heart.npz") as archive:
        assert_array_equal(archive["X_train"], X)
        assert_array_equal(archive["y_train"], y)


def test_compressed_files_with_a_test_part_are_read(serve):
    X = np.array([[1, 0, 2], [0, 0, 0], [3, 4, 0], [0.5, 0, 0], [0, 7, 0], [1, 1, 0], [0, 2, 0]])
    y = np.array([5, 9, 5, 9, 9, 9, 5])
    serve("t.bz2", bz2.compress(svmlight(X[:5], y[:5])))
    serve("t.t.bz2", bz2.compress(svmlight(X[5:], y[5:])))
    arrays = LibsvmSite("some/t.bz2", "some/t.t.bz2").fetch(TINY, silent)
    assert_array_equal(arrays["X_train"], X[:5])
    assert_array_equal(arrays["X_test"], X[5:])  # with the last column, which is zero
    assert_array_equal(arrays["y_train"], [0, 1, 0, 1, 1])
    assert_array_equal(arrays["y_test"], [1, 0])
    loader.check_arrays(TINY, arrays, "the test")


def test_binary_features_become_zero_and_one(serve):
    X = np.array([[0.1826, 0, 0.1826], [0, 0.1826, 0]])
    serve("phishing", svmlight(X, [1, 0]))
    arrays = LibsvmSite("binary/phishing").fetch(Entry("tiny", "binary", 3, (1, 1)), silent)
    assert_array_equal(arrays["X_train"], X != 0)


def test_a_test_label_unknown_in_training_is_refused(serve):
    serve("t", svmlight(np.eye(3), [1, 2, 2]))
    serve("t.t", svmlight(np.eye(3), [1, 3, 2]))
    with pytest.raises(ValueError, match=r"among \[1.0, 2.0\], got \[3.0\]"):
        LibsvmSite("some/t", "some/t.t").fetch(TINY, silent)


def test_openml_classes_are_numbered_in_the_papers_order(cache, monkeypatch):
    rng = np.random.default_rng(0)
    class_index = rng.permutation(np.repeat(np.arange(7), 330))
    names = np.array(ORIGINS["segment"].names, dtype=object)
    requested = {}

    def respond(**options):
        requested.update(options)
        return Bunch(data=rng.normal(size=(2310, 19)), target=names[class_index])

    monkeypatch.setattr(download, "fetch_openml", respond)
    load("segment")
    assert requested["data_id"] == 36
    with np.load(cache / "segment.npz") as archive:
        assert_array_equal(archive["y_train"], class_index)


def test_openml_classes_of_another_name_are_refused(monkeypatch):
    bunch = Bunch(data=np.zeros((2, 3)), target=np.array(["a", "x"], dtype=object))
    monkeypatch.setattr(download, "fetch_openml", lambda **_: bunch)
    with pytest.raises(ValueError, match=r"\['a', 'b'\], got \['x'\]"):
        OpenML(6, ("a", "b")).fetch(TINY, silent)


def test_geometric_thresholds_turn_a_quantity_into_classes(serve):
    rows = np.arange(15, dtype="<f4").reshape(5, 3)
    serve("rows.vec", np.array(3, "<i4").tobytes() + rows.tobytes())
    serve("value.dat", np.array([-1, 1, 9, 10, 1e6], "<f4").tobytes())
    # Three classes: below 1, from 1 to below 10, from 10 on.
    arrays = LibAGF("rows.vec", "value.dat", 1.0, 10.0, 3).fetch(TINY, silent)
    assert_array_equal(arrays["X_train"], rows)
    assert_array_equal(arrays["y_train"], [0, 1, 1, 2, 2])


def test_humidity_thresholds_are_the_authors():
    agf = ORIGINS["humidity"]
    thresholds = np.geomspace(agf.lowest, agf.highest, agf.n_classes - 1)
    expected = [7e-5, 1.0904e-4, 1.6985e-4, 2.6458e-4, 4.1213e-4, 6.4197e-4, 1e-3]
    assert_allclose(thresholds, expected, rtol=1e-4)


def test_an_incomplete_download_is_not_stored(serve, cache):
    X, y = heart()
    content = svmlight(X, y)
    serve("heart", content[:-100], announced=len(content))
    with pytest.raises(FileNotFoundError, match="broke off after"):
        load("heart")
    assert not cache.exists()


@pytest.mark.parametrize(
    "content",
    [b"<html>log in first</html>", svmlight(*heart())[:5000], svmlight(np.eye(20), [1] * 20)],
)
def test_other_content_is_refused_and_not_stored(serve, cache, content):
    serve("heart", content)
    with pytest.raises(ValueError, match=r"download from LIBSVM site is not.*heart"):
        load("heart")
    assert not cache.exists()


def test_a_full_disk_leaves_no_file_in_the_cache(serve, cache, monkeypatch):
    X, y = heart()
    serve("heart", svmlight(X, y))

    def fill_the_disk(file, **_):
        file.write(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez_compressed", fill_the_disk)
    with pytest.raises(OSError, match="No space"):
        load("heart")
    assert not list(cache.iterdir())


@pytest.mark.parametrize("announced", ["true", None])
def test_progress_is_reported_from_the_first_bytes_to_the_last(serve, announced):
    X, y = heart()
    content = svmlight(X, y) + b"#" + b" " * 200_000 + b"\n"
    serve("heart", content, announced=announced)
    reports = []
    load("heart", progress=lambda *report: reports.append(report))
    addresses, counts, totals = zip(*reports, strict=True)
    assert addresses[0].endswith("datasets/binary/heart")
    assert list(counts) == sorted(counts)
    assert len(counts) > 3
    assert counts[-1] == totals[-1] == len(content)
