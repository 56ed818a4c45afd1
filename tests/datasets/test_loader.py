"""Dataset files: where they are searched, invalid ones, splits, and the published ones."""

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from limes import datasets
from limes.datasets import cache_folder, list_datasets, load
from limes.datasets.catalogue import NAMES, find_entry
from tests.datasets.files import heart, save

WITHOUT_SPLIT = {
    "heart": (162, 108),
    "segment": (1386, 924),
    "letter": (12000, 8000),
    "mushrooms": (4874, 3250),
    "phishing": (6633, 4422),
    "humidity": (51600, 34400),
    "seismic": (3200, 800),  # of the available part
}


def test_the_list_shows_which_datasets_are_present(cache):
    X, y = heart()
    path = save(cache, "heart", X_train=X, y_train=y)
    listings = {listing.name: listing for listing in list_datasets()}
    assert tuple(listings) == NAMES
    assert listings["heart"].is_present
    assert listings["heart"].path == path
    assert not listings["sat"].is_present
    assert (listings["mnist"].n_train, listings["mnist"].n_features) == (45000, 665)


def test_the_users_folder_comes_before_the_cache(cache, tmp_path, monkeypatch):
    (X, y), (other, _) = heart(0), heart(1)
    save(cache, "heart", X_train=other, y_train=y)
    save(tmp_path / "given", "heart", X_train=X, y_train=y)
    monkeypatch.setenv("LIMES_DATA", str(tmp_path / "given"))
    assert np.isin(load("heart").X_train.sum(axis=1), X.sum(axis=1)).all()
    assert load("heart").X_train.sum() + load("heart").X_test.sum() == X.sum()


def test_the_cache_is_searched_after_the_users_folder(cache, tmp_path, monkeypatch):
    X, y = heart()
    save(cache, "heart", X_train=X, y_train=y)
    (tmp_path / "given").mkdir()
    monkeypatch.setenv("LIMES_DATA", str(tmp_path / "given"))
    assert load("heart", can_download=False).X_train.shape == (162, 13)


def test_a_users_folder_that_does_not_exist_is_an_error(monkeypatch):
    monkeypatch.setenv("LIMES_DATA", "/no/such/folder")
    with pytest.raises(FileNotFoundError, match="existing folder, got '/no/such/folder'"):
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
def test_a_damaged_file_is_named_or_has_the_right_rows(cache, seed):
    X, y = heart()
    path = save(cache, "heart", X_train=X, y_train=y)
    content = bytearray(path.read_bytes())
    rng = np.random.default_rng(seed)
    for position in rng.integers(0, len(content), 3):
        content[position] ^= 1 << rng.integers(8)
    path.write_bytes(content)
    try:
        data = load("heart")
    except ValueError as error:
        assert "heart.npz" in str(error)  # noqa: PT017 - the changed bytes may be harmless
    else:
        assert data.X_train.sum() + data.X_test.sum() == X.sum()


def test_pickled_objects_are_not_loaded(cache):
    X, y = heart()
    save(cache, "heart", X_train=X.astype(object), y_train=y)
    with pytest.raises(ValueError, match="it is no archive of plain arrays"):
        load("heart")


def test_the_error_for_a_text_file_does_not_advise_pickle(cache):
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
def test_rows_have_the_requested_type(cache, dtype):
    X, y = heart()
    save(cache, "heart", X_train=X.astype(np.uint8), y_train=y.astype(np.int16))
    data = load("heart", dtype=dtype)
    assert data.X_train.dtype == data.X_test.dtype == np.dtype(dtype)
    assert data.X_train.flags.c_contiguous


def test_rows_as_integers_are_refused():
    with pytest.raises(ValueError, match="float32 or float64, got 'int8'"):
        load("heart", dtype="int8")


def test_a_partial_file_is_marked_as_such(cache):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [953, 1063, 1984])
    save(cache, "seismic_partial", X_train=rng.normal(size=(4000, 50)), y_train=y)
    data = load("seismic")
    assert data.is_partial
    assert "Only 4000 of 98528 rows" in data.note
    assert data.X_train.shape == (3200, 50)
    listing = next(listing for listing in list_datasets() if listing.name == "seismic")
    assert listing.is_partial
    assert (listing.n_train, listing.n_test) == (4000, 0)


def test_a_complete_file_is_preferred_to_a_partial_one(cache, tmp_path, monkeypatch):
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


def test_all_public_names_exist():
    assert all(hasattr(datasets, name) for name in datasets.__all__)


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
