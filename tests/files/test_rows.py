"""Rows are read from every format as they were written, in batches or at once."""

import bz2
import gzip
import io
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import limes.files.batches
from limes.files import (
    LabelCollector,
    RowOptions,
    create_predictions,
    create_rows,
    find_format,
    join_labels,
    open_rows,
    read_rows,
)
from limes.files.batches import choose_columns

pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")

NAMES = (
    *("rows.svm", "rows.svm.gz", "rows.svm.bz2", "rows.svm.xz", "rows.csv", "rows.csv.gz"),
    *("rows.tsv", "rows.parquet", "rows.arrow", "rows.feather", "rows.npz", "rows.vec"),
)
TABLES = ("rows.csv", "rows.parquet", "rows.arrow")


@pytest.fixture
def numbers():
    """Return rows that float32 represents exactly, some of them zero, and unsorted labels."""
    rng = np.random.default_rng(0)
    X = rng.integers(-8, 8, size=(50, 4)) / 4.0
    return X, rng.integers(-1, 3, size=50)


def written(path, X, y, **options):
    with create_rows(path, **options) as writer:
        writer.write(X, y)
    return path


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


@pytest.mark.parametrize("name", NAMES)
def test_rows_and_labels_are_read_as_written(name, numbers, tmp_path):
    X, y = numbers
    X_read, labels, _ = read_rows(written(tmp_path / name, X, y))
    assert_array_equal(dense(X_read), X)
    assert_array_equal(labels, y)
    assert labels.dtype == np.int64


@pytest.mark.parametrize("name", NAMES)
def test_batches_are_written_to_one_file(name, numbers, tmp_path):
    X, y = numbers
    with create_rows(tmp_path / name) as writer:
        for start in range(0, 50, 20):
            writer.write(X[start : start + 20], y[start : start + 20])
    X_read, labels, _ = read_rows(tmp_path / name)
    assert_array_equal(dense(X_read), X)
    assert_array_equal(labels, y)


@pytest.mark.parametrize("name", NAMES)
def test_a_long_file_is_read_in_batches(name, numbers, tmp_path, monkeypatch):
    X, y = numbers
    monkeypatch.setattr(limes.files.batches, "BATCH_BYTES", 400)
    monkeypatch.setattr("limes.files.libsvm.CHUNK_BYTES", 200)
    path = written(tmp_path / name, np.tile(X, (4, 1)), np.tile(y, 4))
    options = RowOptions(n_features=4 if ".svm" in name else None)
    with open_rows(path, options) as rows:
        batches = list(rows)
    assert len(batches) > 3 or ".csv" in name or name == "rows.tsv"
    assert_array_equal(np.concatenate([dense(batch.X) for batch in batches]), np.tile(X, (4, 1)))
    assert_array_equal(np.concatenate([batch.y for batch in batches]).astype(float), np.tile(y, 4))


def test_a_long_csv_is_read_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("limes.files.tables.BLOCK_BYTES", 1000)
    X = np.arange(4000.0).reshape(-1, 2)
    path = written(tmp_path / "rows.csv", X, None)
    with open_rows(path) as rows:
        batches = [batch.X for batch in rows]
    assert len(batches) > 10
    assert_array_equal(np.concatenate(batches), X)


@pytest.mark.parametrize("name", [*TABLES, "rows.npz", "rows.vec"])
def test_rows_without_labels_have_none(name, numbers, tmp_path):
    X, _ = numbers
    assert read_rows(written(tmp_path / name, X, None))[1] is None


@pytest.mark.parametrize("name", [*TABLES, "rows.npz"])
def test_labels_may_be_text(name, numbers, tmp_path):
    X, y = numbers
    words = np.array(["elm", "a, b", 'say "c"', "d"])[y + 1]
    assert_array_equal(read_rows(written(tmp_path / name, X, words))[1], words)


@pytest.mark.parametrize("name", ["rows.svm", "rows.csv", "rows.parquet", "rows.npz"])
def test_every_bit_of_a_number_is_kept(name, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) * 10.0 ** rng.integers(-300, 300, size=(40, 3))
    X[0] = [np.nextafter(0, 1), np.finfo(float).max, 0.1]
    assert_array_equal(dense(read_rows(written(tmp_path / name, X, None))[0]), X)


def test_sparse_rows_stay_sparse(tmp_path):
    X = sparse.random(200, 5000, density=0.01, format="csr", random_state=0)
    X_read, _, _ = read_rows(written(tmp_path / "rows.svm", X, None), RowOptions(n_features=5000))
    assert sparse.issparse(X_read)
    assert (X_read != X).nnz == 0


def test_float32_rows_stay_float32_in_parquet(numbers, tmp_path):
    path = written(tmp_path / "rows.parquet", numbers[0].astype(np.float32), None)
    assert read_rows(path)[0].dtype == np.float32


def test_integers_of_parquet_become_floats_that_represent_them(tmp_path):
    table = pyarrow.table({"a": np.array([1, 2], np.uint8), "b": np.array([2**40, 1])})
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    assert_array_equal(read_rows(tmp_path / "rows.parquet")[0], [[1, 2**40], [2, 1]])


def test_names_of_columns_are_kept(numbers, tmp_path):
    path = written(tmp_path / "rows.csv", *numbers, names=["a", "b", "c", "d"])
    assert read_rows(path)[2] == ("a", "b", "c", "d")
    assert path.read_text().startswith("label,a,b,c,d\n")


@pytest.mark.parametrize("label", ["kind", "3", "-1"])
def test_the_label_is_found_by_name_or_number(label, tmp_path):
    (tmp_path / "rows.csv").write_text("a,b,kind\n1,2,x\n3,4,y\n")
    X, y, names = read_rows(tmp_path / "rows.csv", RowOptions(label=label))
    assert_array_equal(X, [[1, 2], [3, 4]])
    assert y.tolist() == ["x", "y"]
    assert names == ("a", "b")


def test_a_column_of_a_numpy_array_can_be_the_label(tmp_path):
    np.save(tmp_path / "rows.npy", [[7.0, 1.0, 2.0], [9.0, 3.0, 4.0]])
    X, y, _ = read_rows(tmp_path / "rows.npy", RowOptions(label="1"))
    assert_array_equal(X, [[1, 2], [3, 4]])
    assert_array_equal(y, [7, 9])


def test_features_can_be_chosen_by_name(tmp_path):
    (tmp_path / "rows.csv").write_text("id,a,b\nu,1,2\nv,3,4\n")
    X, _, _ = read_rows(tmp_path / "rows.csv", RowOptions(columns=("b", "a")))
    assert_array_equal(X, [[2, 1], [4, 3]])


class CountedName(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    n_compared = 0

    def __eq__(self, other):
        CountedName.n_compared += 1
        return str(self) == str(other)

    __hash__ = str.__hash__


def test_the_columns_of_wide_tables_are_not_compared_with_each_other():
    """A table of 20 000 columns would take seconds."""
    names = [CountedName(f"x{number}") for number in range(2000)]
    features = [CountedName(f"x{number}") for number in range(1, 2000)]
    CountedName.n_compared = 0
    columns = choose_columns(names, file="wide.csv", label="x0", features=features)
    assert len(columns.features) == 1999
    assert CountedName.n_compared < 5 * len(names)


def test_a_model_selects_its_features_by_name_if_there_are_names(tmp_path):
    (tmp_path / "rows.csv").write_text("id,a,b\nu,1,2\nv,3,4\n")
    (tmp_path / "bare.csv").write_text("1,2\n3,4\n")
    options = RowOptions(expected=("b", "a"))
    assert_array_equal(read_rows(tmp_path / "rows.csv", options)[0], [[2, 1], [4, 3]])
    assert_array_equal(read_rows(tmp_path / "bare.csv", options)[0], [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("text", "n_rows"),
    [
        ("a,b\n1,2\n", 1),
        ("1,2\n3,4\n", 2),
        ("0,1,label\n1,2,5\n", 1),
        ("1,2,setosa\n3,4,setosa\n", 2),
        ("a,b,label\n1,2,setosa\n", 1),
    ],
)
def test_a_header_is_recognised(text, n_rows, tmp_path):
    (tmp_path / "rows.csv").write_text(text)
    label = "3" if text.count(",") > 2 else None
    assert len(read_rows(tmp_path / "rows.csv", RowOptions(label=label))[0]) == n_rows


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    (tmp_path / "rows.csv").write_bytes(b"\xef\xbb\xbfa,b\n1,2\n")
    X, _, names = read_rows(tmp_path / "rows.csv")
    assert names == ("a", "b")
    assert_array_equal(X, [[1, 2]])


def test_the_parts_of_an_archive_are_chosen_by_name(tmp_path):
    arrays = {"X_train": np.zeros((3, 2)), "y_train": np.arange(3), "X_test": np.ones((1, 2))}
    np.savez_compressed(tmp_path / "rows.npz", **arrays)
    X, y, _ = read_rows(tmp_path / "rows.npz", RowOptions(part="train"))
    assert X.shape == (3, 2)
    assert_array_equal(y, [0, 1, 2])
    assert_array_equal(read_rows(tmp_path / "rows.npz", RowOptions(part="test"))[0], [[1, 1]])


def test_an_array_in_fortran_order_is_read_too(tmp_path):
    X = np.asfortranarray(np.arange(12.0).reshape(4, 3))
    np.save(tmp_path / "rows.npy", X)
    assert_array_equal(read_rows(tmp_path / "rows.npy")[0], X)


def test_numpy_reads_what_is_written(numbers, tmp_path):
    X, y = numbers
    written(tmp_path / "rows.npy", X, y)
    written(tmp_path / "rows.npz", X, y)
    assert_array_equal(np.load(tmp_path / "rows.npy"), np.column_stack([X, y]))
    with np.load(tmp_path / "rows.npz") as archive:
        assert_array_equal(archive["X"], X)
        assert_array_equal(archive["y"], y)


def test_libagf_files_are_those_of_its_programs(numbers, tmp_path):
    X, y = numbers
    written(tmp_path / "rows.vec", X, y)
    data = (tmp_path / "rows.vec").read_bytes()
    assert np.frombuffer(data[:4], "<i4") == 4
    assert_array_equal(np.frombuffer(data[4:], "<f4").reshape(-1, 4), X)
    assert_array_equal(np.fromfile(tmp_path / "rows.cls", "<i4"), y)


@pytest.mark.parametrize("ending", ["", "\n"])
def test_libsvm_text_with_blanks_comments_and_queries_is_read_as_by_scikit_learn(ending, tmp_path):
    text = "# head\n+1  1:0.5 \t3:2 \r\n\n-1 qid:3 2:1e-3 # tail\n2\n0 1:1. 2:.5 3:+3" + ending
    (tmp_path / "rows.svm").write_bytes(text.encode())
    expected, labels = load_svmlight_file(io.BytesIO(text.encode()))
    X, y, _ = read_rows(tmp_path / "rows.svm")
    assert_array_equal(dense(X), expected.toarray())
    assert_array_equal(y, labels)


def test_libsvm_text_of_scikit_learn_is_read_as_by_scikit_learn(tmp_path):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 20)) * (rng.random((300, 20)) < 0.4)
    dump_svmlight_file(X, rng.integers(3, size=300), f"{tmp_path}/rows.svm", zero_based=False)
    expected, labels = load_svmlight_file(str(tmp_path / "rows.svm"))
    X_read, y, _ = read_rows(tmp_path / "rows.svm")
    assert_array_equal(dense(X_read), expected.toarray())
    assert_array_equal(y, labels)


def test_scikit_learn_reads_what_is_written(numbers, tmp_path):
    X, y = numbers
    X_read, labels = load_svmlight_file(str(written(tmp_path / "rows.svm", X, y)), n_features=4)
    assert_array_equal(X_read.toarray(), X)
    assert_array_equal(labels, y)


@pytest.mark.parametrize(("ending", "opener"), [(".gz", gzip.open), (".bz2", bz2.open)])
def test_a_compressed_file_can_be_opened_by_other_programs(ending, opener, numbers, tmp_path):
    path = written(tmp_path / f"rows.svm{ending}", *numbers)
    with opener(path, "rt") as stream:
        assert len(stream.readlines()) == 50


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("heart_scale", "libsvm"),
        ("a1a.t", "libsvm"),
        ("ROWS.CSV", "csv"),
        ("rows.csv.bz2", "csv"),
        ("rows.pq", "parquet"),
        ("rows.cls", "libagf"),
    ],
)
def test_the_format_follows_from_the_ending(name, kind, tmp_path):
    assert find_format(tmp_path / name) == kind


def test_the_format_can_be_given(numbers, tmp_path):
    path = written(tmp_path / "rows.data", *numbers, kind="csv")
    assert_array_equal(read_rows(path, RowOptions(format="csv"))[0], numbers[0])


PREDICTIONS = np.array([2, 1, 2]), np.array([[0.25, 0.75], [0.5, 0.5], [0.125, 0.875]])


def predictions_in(path, labels, probabilities, classes=(1, 2)):
    with create_predictions(path, classes=classes) as writer:
        writer.write(labels[:2], None if probabilities is None else probabilities[:2])
        writer.write(labels[2:], None if probabilities is None else probabilities[2:])
    return path


def test_predictions_as_text_are_those_of_svm_predict(tmp_path):
    assert predictions_in(tmp_path / "out", PREDICTIONS[0], None).read_text() == "2\n1\n2\n"
    lines = predictions_in(tmp_path / "out", *PREDICTIONS).read_text().splitlines()
    assert lines == ["labels 1 2", "2 0.25 0.75", "1 0.5 0.5", "2 0.125 0.875"]


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.arrow"])
def test_predictions_as_a_table_have_a_column_for_each_class(name, tmp_path):
    path = predictions_in(tmp_path / name, *PREDICTIONS)
    X, y, names = read_rows(path)
    assert names == ("p_1", "p_2")
    assert_array_equal(X, PREDICTIONS[1])
    assert_array_equal(y, PREDICTIONS[0])


def test_predictions_as_arrays(tmp_path):
    assert_array_equal(
        np.load(predictions_in(tmp_path / "out.npy", PREDICTIONS[0], None)), PREDICTIONS[0]
    )
    with np.load(predictions_in(tmp_path / "out.npz", *PREDICTIONS)) as archive:
        assert_array_equal(archive["classes"], [1, 2])
        assert_array_equal(archive["labels"], PREDICTIONS[0])
        assert_array_equal(archive["probabilities"], PREDICTIONS[1])


def test_predictions_for_libagf_are_labels_and_confidence_ratings(tmp_path):
    predictions_in(tmp_path / "out.cls", *PREDICTIONS)
    assert_array_equal(np.fromfile(tmp_path / "out.cls", "<i4"), PREDICTIONS[0])
    assert_array_equal(np.fromfile(tmp_path / "out.con", "<f4"), [0.5, 0.0, 0.75])


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([["1", "2"], ["3.0"]], [1, 2, 3]),
        ([["1", "2"], ["x"]], ["1", "2", "x"]),
        ([[1.0], [2.5]], [1.0, 2.5]),
        ([["nan", "inf"]], ["nan", "inf"]),
        ([[True, False]], [1, 0]),
        ([], []),
    ],
)
def test_labels_of_batches_become_one_type(parts, expected):
    assert join_labels([np.array(part) for part in parts]).tolist() == expected


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([["b", "a"], ["c", "b"]], ["b", "a", "c", "b"]),
        ([["2", "1"], ["3.0"]], [2, 1, 3]),
        ([["2", "x"], [1, 2]], ["2", "x", "1", "2"]),
        ([[2.0, 1.0], [7]], [2, 1, 7]),
    ],
)
def test_collected_labels_are_joined_to_one_type(parts, expected):
    labels = LabelCollector()
    for part in parts:
        labels.add(np.array(part))
    assert labels.join().tolist() == expected
    assert LabelCollector().join() is None


def test_reading_libsvm_text_agrees_with_and_without_pyarrow(numbers, tmp_path):
    path = written(tmp_path / "rows.svm", *numbers)
    X, y, _ = read_rows(path)
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from limes.files import read_rows\n"
        "X, y, _ = read_rows(sys.argv[1])\n"
        "print(X.tolist(), y.tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"{dense(X).tolist()} {y.tolist()}"


def test_without_pyarrow_the_error_names_the_extra(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from limes.cli.main import main\n"
        "sys.exit(main(['info', sys.argv[1]]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "rows.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'limes[files]'" in done.stderr
    assert done.stderr.count("\n") == 1
