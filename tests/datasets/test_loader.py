"""Datasets by name: facts, files good and bad, fetching with the network replaced, splits."""

import bz2
import csv
import email.message
import io
import os
import sys
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils import Bunch

from limes import datasets
from limes.datasets import cache_folder, download, list_datasets, load, loader, parameters
from limes.datasets.catalogue import ENTRIES, Entry, find_entry
from limes.datasets.download import ORIGINS, LibAGF, LibsvmSite, OpenML

NAMES = [entry.name for entry in ENTRIES]
TINY = Entry("tiny", "float", 3, (2, 3), (1, 1))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and no other folder to look in."""
    monkeypatch.delenv("LIMES_DATA", raising=False)
    monkeypatch.setenv("LIMES_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "datasets"


@pytest.fixture
def offline(cache, monkeypatch):
    """A machine without a network."""

    def refuse(*_, **__):
        raise URLError("no route to host")

    monkeypatch.setattr(download, "urlopen", refuse)
    monkeypatch.setattr(download, "fetch_openml", refuse)
    return cache


class Answer(io.BytesIO):
    """What an address gives: its bytes, and how many it announces."""

    def __init__(self, content, announced):
        super().__init__(content)
        self.headers = email.message.Message()
        if announced is not None:
            self.headers["Content-Length"] = str(announced)


@pytest.fixture
def serve(cache, monkeypatch):
    """Serve bytes at addresses, by the last part of their names."""
    contents = {}

    def answer(url, timeout):
        content, announced = contents[url.rsplit("/", 1)[-1]]
        return Answer(content, announced)

    def put(name, content, announced="true"):
        contents[name] = (content, len(content) if announced == "true" else announced)

    monkeypatch.setattr(download, "urlopen", answer)
    return put


def silent(what, n_bytes, total):
    """Show nothing."""


def svmlight(X, y):
    """Text as on the LIBSVM site: zeros left out, columns from 1."""
    lines = [
        f"{label} " + " ".join(f"{j + 1}:{value:g}" for j, value in enumerate(row) if value)
        for row, label in zip(X, y, strict=True)
    ]
    return "\n".join(lines).encode() + b"\n"


def heart(seed=0):
    """Rows with the shape and class counts of heart."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 9, (270, 13)).astype(np.float32), np.repeat([0, 1], [150, 120])


def save(folder, name, **arrays):
    """Write a dataset file."""
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / f"{name}.npz", **arrays)
    return folder / f"{name}.npz"


# Facts


def test_there_are_the_papers_seventeen_with_an_origin_and_settings_each():
    assert len(NAMES) == 17
    assert list(ORIGINS) == list(NAMES)
    assert all(parameters(name).gamma > 0 for name in NAMES)


def test_an_unknown_name_gets_a_suggestion_or_the_list():
    with pytest.raises(ValueError, match=r"'satt'.*did you mean 'sat'"):
        load("satt")
    with pytest.raises(ValueError, match="there are heart, shuttle"):
        parameters("iris")


def test_mnist_keeps_665_pixels():
    columns = find_entry("mnist").columns
    assert len(columns) == len(np.unique(columns)) == 665
    assert columns.max() < 784


@pytest.mark.parametrize(
    ("name", "field", "printed", "corrected"),
    [
        ("letter", "C", 1.0, 50.0),
        ("splice", "gamma", 0.00167, 0.0167),
        ("phishing", "gamma", 0.00147, 0.0147),
    ],
)
def test_slips_in_table_2_are_put_right_and_kept(name, field, printed, corrected):
    assert getattr(parameters(name), field) == corrected
    assert parameters(name).printed == {field: printed}


def test_nothing_else_in_table_2_is_changed():
    changed = [name for name in NAMES if parameters(name).printed]
    assert changed == ["splice", "letter", "phishing"]


def test_the_list_says_what_is_present(cache):
    X, y = heart()
    path = save(cache, "heart", X_train=X, y_train=y)
    lines = {line.name: line for line in list_datasets()}
    assert list(lines) == NAMES
    assert lines["heart"].is_present
    assert lines["heart"].path == path
    assert not lines["sat"].is_present
    assert (lines["mnist"].n_train, lines["mnist"].n_features) == (45000, 665)


# Where files are looked for


def test_the_given_folder_comes_before_the_cache(cache, tmp_path, monkeypatch):
    (X, y), (other, _) = heart(0), heart(1)
    save(cache, "heart", X_train=other, y_train=y)
    save(tmp_path / "given", "heart", X_train=X, y_train=y)
    monkeypatch.setenv("LIMES_DATA", str(tmp_path / "given"))
    assert np.isin(load("heart").X_train.sum(axis=1), X.sum(axis=1)).all()
    assert load("heart").X_train.sum() + load("heart").X_test.sum() == X.sum()


def test_the_cache_serves_what_the_given_folder_lacks(cache, tmp_path, monkeypatch):
    X, y = heart()
    save(cache, "heart", X_train=X, y_train=y)
    (tmp_path / "given").mkdir()
    monkeypatch.setenv("LIMES_DATA", str(tmp_path / "given"))
    assert load("heart", can_download=False).X_train.shape == (162, 13)


def test_a_given_folder_that_does_not_exist_is_an_error(monkeypatch):
    monkeypatch.setenv("LIMES_DATA", "/no/such/folder")
    with pytest.raises(FileNotFoundError, match="LIMES_DATA names the folder '/no/such/folder'"):
        load("heart")


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "home/.cache/limes/datasets"),
        ("linux", {"XDG_CACHE_HOME": "xdg"}, "xdg/limes/datasets"),
        ("darwin", {}, "home/Library/Caches/limes/datasets"),
        ("win32", {"LOCALAPPDATA": "local"}, "local/limes/Cache/datasets"),
        ("linux", {"XDG_CACHE_HOME": "xdg", "LIMES_CACHE": "own"}, "own/datasets"),
    ],
)
def test_the_cache_follows_the_platform(monkeypatch, platform, variables, expected):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "LIMES_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: Path("home"))
    assert cache_folder() == Path(expected)


# Bad files


@pytest.mark.parametrize(
    "content", [b"", b"not an archive", b"PK\x03\x04 cut off", b"\x93NUMPY\x01\x00"]
)
def test_a_file_that_is_no_archive_is_named(cache, content):
    cache.mkdir(parents=True)
    (cache / "heart.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"heart\.npz is not a readable dataset file"):
        load("heart")


def test_a_bare_array_in_place_of_an_archive_is_named(cache):
    cache.mkdir(parents=True)
    with open(cache / "heart.npz", "wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match=r"heart\.npz is not a readable dataset file"):
        load("heart")


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_file_is_named_or_still_right(cache, seed):
    X, y = heart()
    path = save(cache, "heart", X_train=X, y_train=y)
    content = bytearray(path.read_bytes())
    rng = np.random.default_rng(seed)
    for place in rng.integers(0, len(content), 3):
        content[place] ^= 1 << rng.integers(8)
    path.write_bytes(content)
    try:
        data = load("heart")
    except ValueError as error:
        assert "heart.npz" in str(error)  # noqa: PT017 - a harmless place may have been hit
    else:
        assert data.X_train.sum() + data.X_test.sum() == X.sum()


def test_pickled_objects_are_not_loaded(cache):
    X, y = heart()
    save(cache, "heart", X_train=X.astype(object), y_train=y)
    with pytest.raises(ValueError, match="it is no archive of plain arrays"):
        load("heart")


def test_a_text_file_gets_no_advice_to_unpickle_it(cache):
    cache.mkdir(parents=True, exist_ok=True)
    (cache / "heart.npz").write_text("13 features\n")
    with pytest.raises(ValueError, match=r"heart\.npz is not a readable dataset file") as caught:
        load("heart")
    assert "pickle" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X_train": None}, "'X_train' is missing"),
        ({"X_train": np.zeros((270, 12))}, r"shape \(270, 13\), got \(270, 12\)"),
        ({"X_train": np.zeros((271, 13))}, r"shape \(270, 13\), got \(271, 13\)"),
        ({"X_train": np.full((270, 13), np.nan)}, "finite"),
        ({"X_train": np.full((270, 13), "a")}, "finite numbers"),
        ({"y_train": np.zeros(269, int)}, "270 integers, got"),
        ({"y_train": np.repeat([0.0, 1.0], 135)}, "270 integers, got .* float64"),
        ({"y_train": np.repeat([1, 2], [150, 120])}, "0 to 1, got 1 to 2"),
        ({"y_train": np.repeat([0, 1], [120, 150])}, r"\(150, 120\) rows, got \(120, 150\)"),
    ],
)
def test_a_file_with_other_content_is_named(cache, change, message):
    X, y = heart()
    arrays = {"X_train": X, "y_train": y} | change
    save(cache, "heart", **{key: array for key, array in arrays.items() if array is not None})
    with pytest.raises(ValueError, match=rf"heart\.npz is not the dataset 'heart': .*{message}"):
        load("heart")


def test_arrays_that_a_dataset_does_not_have_are_ignored(cache):
    X, y = heart()
    save(cache, "heart", X_train=X, y_train=y, X_test=X, y_test=y)
    assert load("heart").X_train.shape == (162, 13)


# Fetching


@pytest.mark.parametrize("name", NAMES)
def test_offline_the_error_says_where_to_put_the_file(offline, name):
    with pytest.raises(FileNotFoundError) as caught:
        load(name)
    message = str(caught.value)
    assert f"put {name}.npz into {offline}" in message
    assert "LIMES_DATA" in message
    assert "no route to host" in message
    assert "\n" not in message


def test_without_leave_nothing_is_fetched(cache, monkeypatch):
    monkeypatch.setattr(download, "urlopen", None)
    with pytest.raises(FileNotFoundError, match=r"put heart\.npz into"):
        load("heart", can_download=False)


def test_what_is_fetched_is_kept(serve, cache, monkeypatch):
    X, y = heart()
    serve("heart", svmlight(X, np.where(y == 1, "+1", "-1")))
    first = load("heart")
    monkeypatch.setattr(download, "urlopen", None)
    second = load("heart")
    assert_array_equal(first.X_train, second.X_train)
    assert_array_equal(first.y_test, second.y_test)
    assert [path.name for path in cache.iterdir()] == ["heart.npz"]


def test_fetched_rows_are_the_published_ones(serve, cache):
    X, y = heart()
    serve("heart", svmlight(X, np.where(y == 1, "+1", "-1")))
    load("heart")
    with np.load(cache / "heart.npz") as archive:
        assert_array_equal(archive["X_train"], X)
        assert_array_equal(archive["y_train"], y)


def test_packed_files_with_a_test_part_are_read(serve):
    X = np.array([[1, 0, 2], [0, 0, 0], [3, 4, 0], [0.5, 0, 0], [0, 7, 0], [1, 1, 0], [0, 2, 0]])
    y = np.array([5, 9, 5, 9, 9, 9, 5])
    serve("t.bz2", bz2.compress(svmlight(X[:5], y[:5])))
    serve("t.t.bz2", bz2.compress(svmlight(X[5:], y[5:])))
    arrays = LibsvmSite("some/t.bz2", "some/t.t.bz2").fetch(TINY, silent)
    assert_array_equal(arrays["X_train"], X[:5])
    assert_array_equal(arrays["X_test"], X[5:])  # its last column is all zero, yet there
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
    asked = {}

    def answer(**options):
        asked.update(options)
        return Bunch(data=rng.normal(size=(2310, 19)), target=names[class_index])

    monkeypatch.setattr(download, "fetch_openml", answer)
    load("segment")
    assert asked["data_id"] == 36
    with np.load(cache / "segment.npz") as archive:
        assert_array_equal(archive["y_train"], class_index)


def test_openml_classes_of_another_name_are_refused(monkeypatch):
    bunch = Bunch(data=np.zeros((2, 3)), target=np.array(["a", "x"], dtype=object))
    monkeypatch.setattr(download, "fetch_openml", lambda **_: bunch)
    with pytest.raises(ValueError, match=r"\['a', 'b'\], got \['x'\]"):
        OpenML(6, ("a", "b")).fetch(TINY, silent)


def test_a_quantity_is_cut_at_geometric_thresholds(serve):
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


def test_a_download_that_breaks_off_is_not_kept(serve, cache):
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
def test_other_content_is_refused_and_not_kept(serve, cache, content):
    serve("heart", content)
    with pytest.raises(ValueError, match=r"LIBSVM site gave.*heart"):
        load("heart")
    assert not cache.exists()


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    def fill_the_disk(file, **_):
        file.write(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez_compressed", fill_the_disk)
    with pytest.raises(OSError, match="No space"):
        loader.write_file({}, tmp_path / "heart.npz")
    assert not list(tmp_path.iterdir())


# Progress


@pytest.mark.parametrize("announced", ["true", None])
def test_progress_is_told_from_the_first_bytes_to_the_last(serve, announced):
    X, y = heart()
    content = svmlight(X, y) + b"#" + b" " * 200_000 + b"\n"
    serve("heart", content, announced=announced)
    told = []
    load("heart", progress=lambda *news: told.append(news))
    addresses, counts, totals = zip(*told, strict=True)
    assert addresses[0].endswith("datasets/binary/heart")
    assert list(counts) == sorted(counts)
    assert len(counts) > 3
    assert counts[-1] == totals[-1] == len(content)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_bar_is_drawn_on_a_terminal_only(serve, monkeypatch, is_terminal):
    X, y = heart()
    serve("heart", svmlight(X, y))
    screen = io.StringIO()
    screen.isatty = lambda: is_terminal
    monkeypatch.setattr(sys, "stderr", screen)
    load("heart")
    if is_terminal:
        assert "heart" in screen.getvalue()
        assert "#" * 30 in screen.getvalue()
        assert screen.getvalue().endswith("\n")
    else:
        assert screen.getvalue() == ""


# Splits


def test_a_random_split_follows_the_seed(cache):
    X, y = heart()
    save(cache, "heart", X_train=X, y_train=y)
    first, again, other = (load("heart", random_state=seed) for seed in (0, 0, 1))
    assert_array_equal(first.X_train, again.X_train)
    assert not np.array_equal(first.y_test, other.y_test)


def test_a_split_loses_no_row(cache):
    _, y = heart()
    X = np.arange(270 * 13, dtype=np.float32).reshape(270, 13)
    save(cache, "heart", X_train=X, y_train=y)
    data = load("heart", test_fraction=0.25)
    assert data.X_test.shape == (68, 13)
    both, labels = np.vstack([data.X_train, data.X_test]), np.append(data.y_train, data.y_test)
    order = np.argsort(both[:, 0])
    assert_array_equal(both[order], X)
    assert_array_equal(labels[order], y)


@pytest.mark.parametrize("fraction", [0, 1, -0.2, 7])
def test_a_fraction_outside_its_range_is_refused(fraction):
    with pytest.raises(ValueError, match=f"between 0 and 1, got {fraction}"):
        load("heart", test_fraction=fraction)


@pytest.mark.parametrize("dtype", [np.float32, "float64"])
def test_rows_have_the_type_asked_for(cache, dtype):
    X, y = heart()
    save(cache, "heart", X_train=X.astype(np.uint8), y_train=y.astype(np.int16))
    data = load("heart", dtype=dtype)
    assert data.X_train.dtype == data.X_test.dtype == np.dtype(dtype)
    assert data.X_train.flags.c_contiguous


def test_rows_as_integers_are_refused():
    with pytest.raises(ValueError, match="float32 or float64, got 'int8'"):
        load("heart", dtype="int8")


def test_a_partial_file_says_so(cache):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [953, 1063, 1984])
    save(cache, "seismic_partial", X_train=rng.normal(size=(4000, 50)), y_train=y)
    data = load("seismic")
    assert data.is_partial
    assert "Only 4000 of 98528 rows" in data.note
    assert data.X_train.shape == (3200, 50)
    line = next(line for line in list_datasets() if line.name == "seismic")
    assert line.is_partial
    assert (line.n_train, line.n_test) == (4000, 0)


def test_a_whole_file_is_preferred_to_a_partial_one(cache, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    save(tmp_path / "given", "seismic_partial", X_train=np.zeros(0))
    save(
        cache,
        "seismic",
        X_train=rng.normal(size=(78823, 50)).astype(np.float16),
        y_train=np.arange(78823) % 3,
        X_test=np.zeros((19705, 50), np.uint8),
        y_test=np.arange(19705) % 3,
    )
    monkeypatch.setenv("LIMES_DATA", str(tmp_path / "given"))
    data = load("seismic", dtype=np.float32)
    assert not data.is_partial
    assert data.X_test.shape == (19705, 50)


def test_public_names_are_all_there():
    assert all(hasattr(datasets, name) for name in datasets.__all__)


# The files themselves

WITHOUT_SPLIT = {
    "heart": (162, 108),
    "segment": (1386, 924),
    "letter": (12000, 8000),
    "mushrooms": (4874, 3250),
    "phishing": (6633, 4422),
    "humidity": (51600, 34400),
    "seismic": (3200, 800),  # of the part at hand
}


@pytest.mark.data
@pytest.mark.parametrize("name", NAMES)
def test_every_dataset_loads_with_the_papers_split(name):
    data = load(name, can_download=False, dtype=np.float32)
    entry = find_entry(name)
    expected = WITHOUT_SPLIT.get(name) or (
        entry.n_train_used or sum(entry.train_counts),
        sum(entry.test_counts),
    )
    assert (len(data.X_train), len(data.X_test)) == expected
    assert_array_equal(np.unique(data.y_train), data.classes)
    assert data.X_train.shape[1] == len(entry.columns)
    assert data.is_partial == (name == "seismic")


@pytest.mark.data
def test_mnist_gives_the_first_rows_and_the_authors_pixels(data_folder):
    pixels = np.load(data_folder / "mnist_pixels.npy")
    assert_array_equal(find_entry("mnist").columns, pixels)
    with np.load(data_folder / "mnist.npz") as archive:
        expected, labels = archive["X_train"][:45000, pixels], archive["y_train"]
    data = load("mnist", dtype=np.float32)
    assert_array_equal(data.X_train, expected)
    assert_array_equal(data.y_train, labels[:45000])
    assert load("mnist", all_rows=True, dtype=np.float32).X_train.shape == (60000, 665)


@pytest.mark.data
def test_a_fraction_pools_a_published_split():
    data = load("sat", test_fraction=0.5)
    assert len(data.X_train) + len(data.X_test) == 6435
    assert len(data.X_test) == 3218


PAPER = Path(os.environ.get("LIMES_DATA", "")).parent / "paper"
TABLES = pytest.mark.skipif(not PAPER.is_dir(), reason="the paper's tables are not at hand")
KINDS = {"cat": "categorical"}
# By table 1: classes of splice and seismic, test rows of usps, rows of humidity.
SLIPS = {("splice", "classes"), ("seismic", "classes"), ("usps", "test"), ("humidity", "train")}


def table(name):
    """Rows of one of the paper's tables."""
    with open(PAPER / name) as file:
        return list(csv.DictReader(file))


@TABLES
def test_shapes_are_those_of_table_1_but_for_its_slips():
    found = set()
    for row in table("table1_datasets.csv"):
        entry = find_entry(row["dataset"])
        ours = {
            "features": len(entry.columns),
            "type": entry.kind,
            "classes": entry.n_classes,
            "train": entry.n_train,
            "test": entry.n_test or "-",
        }
        theirs = row | {"type": KINDS.get(row["type"], row["type"])}
        found |= {(entry.name, key) for key, value in ours.items() if str(value) != theirs[key]}
    assert found == SLIPS


@TABLES
def test_settings_are_those_of_table_2_but_for_its_slips():
    rows = table("table2_parameters.csv")
    assert [row["dataset"] for row in rows] == NAMES
    for row in rows:
        ours = parameters(row["dataset"])
        used = {"gamma": ours.gamma, "C": ours.C, "linear_type": ours.linear_type}
        assert ours.n_trials == int(row["trials"])
        assert ours.has_single_trials == (row["some_single_trial"] == "yes")
        assert ours.test_fraction == float(row["test_fraction"])
        assert ours.n_borders == int(row["n_borders_per_pair"])
        assert used | ours.printed == {
            "gamma": float(row["svm_gamma"]),
            "C": float(row["svm_C"]),
            "linear_type": int(row["linear_type"]),
        }
