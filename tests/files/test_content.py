"""Files are recognised by their first bytes, whatever their names."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.svm import SVC

from limes.cli.models import open_model
from limes.files import RowOptions, create_rows, read_rows
from limes.files.streams import recognise_file

ROWS = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "npy", "npz"])
def test_rows_with_a_wrong_ending_are_read(tmp_path, kind):
    path = tmp_path / "rows.txt"
    with create_rows(path, kind=kind) as writer:
        writer.write(ROWS, None)
    found = read_rows(
        path, RowOptions(columns=("x1", "x2", "x3") if kind in ("parquet", "arrow") else None)
    )
    assert_array_equal(found[0], ROWS)


def write_pickle(path):
    path.write_bytes(pickle.dumps(SVC()))


def write_skops(path):
    import skops.io

    skops.io.dump(SVC(), path)


def write_tiff(path):
    path.write_bytes(b"II*\0" + bytes(20))


def write_zip(path):
    import zipfile

    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "text")


@pytest.mark.parametrize(
    ("write", "name", "remedy"),
    [
        (write_pickle, "a pickle", "load it in Python"),
        (write_skops, "a model of skops", "use it as the model"),
        (write_tiff, "a TIFF raster", "use limes map"),
        (write_zip, "a zip archive", "unpack it first"),
    ],
)
@pytest.mark.parametrize("ending", [".svm", ".csv", ".limes", ".tif"])
def test_what_holds_no_rows_is_named(tmp_path, write, name, remedy, ending):
    path = tmp_path / f"file{ending}"
    write(path)
    with pytest.raises(ValueError, match=f"expected rows, found {name}.*{remedy}"):
        read_rows(path)
    # An untrained classifier is no model either.
    found = "expected a fitted classifier" if write is write_skops else f"expected a model.*{name}"
    with pytest.raises(ValueError, match=found):
        open_model(path)


@pytest.mark.parametrize("kind", ["parquet", "npy"])
def test_rows_are_no_model(tmp_path, kind):
    path = tmp_path / "m.limes"
    with create_rows(path, kind=kind) as writer:
        writer.write(ROWS, None)
    with pytest.raises(ValueError, match=r"expected a model.*found a (Parquet table|NumPy array)"):
        open_model(path)


@pytest.mark.parametrize("data", [b"", b"+1 1:2\n", b"a,b\n1,2\n", b"PK", b"PAR"])
def test_text_is_recognised_as_nothing(tmp_path, data):
    path = tmp_path / "rows"
    path.write_bytes(data)
    assert recognise_file(path) is None


def test_a_format_that_is_given_is_used(tmp_path):
    path = tmp_path / "rows.csv"
    np.save(tmp_path / "rows.npy", ROWS)
    (tmp_path / "rows.npy").rename(path)
    with pytest.raises(ValueError, match=r"rows\.csv"):
        read_rows(path, RowOptions(format="csv"))
