"""`limes convert`: rows to another format and back."""

import pytest
from numpy.testing import assert_allclose, assert_array_equal

from limes.files import read_rows
from tests.cli.commands import run

pytest.importorskip("pyarrow")


@pytest.mark.parametrize("name", ["o.csv", "o.parquet", "o.npz", "o.vec", "o.svm.bz2", "o.arrow"])
def test_rows_are_converted_and_back(name, folder, tmp_path):
    run("convert", folder / "train.svm", tmp_path / name)
    run("convert", tmp_path / name, tmp_path / "back.svm")
    X, y, _ = read_rows(folder / "train.svm")
    X_read, labels, _ = read_rows(tmp_path / "back.svm")
    assert_allclose(X_read, X, rtol=1e-6)
    assert_array_equal(labels, y)


def test_a_csv_label_keeps_its_type_in_parquet(tmp_path, folder):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    run("convert", folder / "test.csv", tmp_path / "o.parquet")
    assert str(pyarrow.read_schema(tmp_path / "o.parquet").field("label").type) == "int64"
