"""Invalid files are refused with an error of one line that names the position."""

import gzip
import io
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from limes.files import RowOptions, create_predictions, create_rows, open_rows, read_rows

pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")

LIBSVM = {
    "1 1:2\nx 1:2\n": "line 2: expected a number as the label, found 'x 1:2'",
    "1 1:2\n1 2\n": "line 2: expected index:value pairs",
    "1 1:2\n\n# note\n1 a:2\n": "line 4: expected index:value pairs",
    "1 2:3:4\n": "line 1: expected index:value pairs",
    "1 2:\n": "line 1: expected index:value pairs",
    "1 :2\n": "line 1: expected index:value pairs",
    "1 1: 2\n": "line 1: expected index:value pairs",
    "1:1 2:2\n": "line 1: expected a number as the label",
    "1,2 1:2\n": "line 1: expected a number as the label",
    "nan 1:2\n": "line 1: expected a number as the label",
    "1 -1:2\n": "line 1: expected index:value pairs",
    "1 2:1 1:1\n": "line 1: expected feature indices, each above",
    "1 1:1 1:1\n": "line 1: expected feature indices, each above",
    "1 1.5:1\n": "line 1: expected index:value pairs",
    "1 1:nan\n": "line 1: expected index:value pairs",
    "1 1:1e999\n": "line 1: expected finite numbers",
    "1 1:0x10\n": "line 1: expected index:value pairs",
    "1 99999999999:1\n": "line 1: expected features up to",
    "1 99999999999999999999999999:1\n": "line 1: expected index:value pairs",
    "\x00\x01\x02": "line 1: expected a number as the label",
    "a,b,c\n1,2,3\n": "line 1: expected a number as the label",
    "": "expected rows, found none",
    "# only a comment\n": "expected rows, found none",
}
CSV = {
    "a,b\n1,2\n1,x\n": "line 3, column 'b': expected a number, found 'x'",
    "a,b\n1,2\n1,\n": "line 3, column 'b': expected a number, found ''",
    "a,b\n1,2\n1\n": "line 3: expected 2 fields, as in the first line, found 1",
    "a,b\n1,2\n1,2,3\n": "line 3: expected 2 fields, as in the first line, found 3",
    "a,a\n1,2\n": "expected columns that differ, found 'a' twice",
    "a,b\n1,nan\n": "row 1, feature 'b': expected a finite number, found nan",
    "a,b\n1,2\n3,inf\n": "row 2, feature 'b': expected a finite number, found inf",
    "": "expected CSV, found an empty file",
    "\n\n": "expected CSV, found an empty file or line",
    "a,b\n": "expected rows, found none",
}


def refusal(path, options=None):
    """Return the error message of one line for an invalid file."""
    with pytest.raises(ValueError, match=path.name) as caught:
        read_rows(path, options)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    assert len(message) < 500
    return message


@pytest.mark.parametrize("text", LIBSVM)
def test_an_invalid_line_of_libsvm_text_is_named(text, tmp_path):
    (tmp_path / "rows.svm").write_text(text)
    assert LIBSVM[text] in refusal(tmp_path / "rows.svm")


@pytest.mark.parametrize("text", LIBSVM)
def test_an_invalid_line_is_named_without_pyarrow_too(text, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "limes.files.tables", None)
    (tmp_path / "rows.svm").write_text(text)
    assert LIBSVM[text] in refusal(tmp_path / "rows.svm")


@pytest.mark.parametrize("text", CSV)
def test_an_invalid_line_of_csv_is_named(text, tmp_path):
    (tmp_path / "rows.csv").write_text(text)
    assert CSV[text] in refusal(tmp_path / "rows.csv")


def test_the_number_of_a_line_is_right_in_a_later_batch(tmp_path, monkeypatch):
    monkeypatch.setattr("limes.files.libsvm.CHUNK_BYTES", 100)
    monkeypatch.setattr("limes.files.tables.BLOCK_BYTES", 100)
    (tmp_path / "rows.svm").write_text("1 1:2\n" * 76 + "1 x\n" + "1 1:2\n" * 30)
    (tmp_path / "rows.csv").write_text("a,b\n" + "1,2\n" * 75 + "1,x\n" + "1,2\n" * 30)
    assert "line 77:" in refusal(tmp_path / "rows.svm")
    assert "line 77," in refusal(tmp_path / "rows.csv")


def test_a_feature_that_the_model_does_not_have_is_named(tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:2\n\n1 1:1 5:2 6:3\n")
    message = refusal(tmp_path / "rows.svm", RowOptions(n_features=4))
    assert "line 3: expected features up to 4, found 6" in message


def test_csv_that_is_not_utf8_is_refused(tmp_path):
    (tmp_path / "rows.csv").write_bytes(b"a,label\n1,\xff\n")
    assert "line 2, column 'label': expected text in UTF-8" in refusal(tmp_path / "rows.csv")


def test_a_line_without_end_takes_little_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("limes.files.libsvm.CHUNK_BYTES", 1 << 12)
    monkeypatch.setattr("limes.files.libsvm.MAX_LINE_BYTES", 1 << 14)
    monkeypatch.setattr("limes.files.tables.BLOCK_BYTES", 1 << 12)
    (tmp_path / "rows.svm").write_text("1 " * (1 << 20))
    (tmp_path / "rows.csv").write_text("a,b\n1," + "2" * (1 << 20))
    tracemalloc.start()
    assert "expected lines of at most 16384 bytes" in refusal(tmp_path / "rows.svm")
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert "expected lines of at most 4096 bytes" in refusal(tmp_path / "rows.csv")


@pytest.mark.parametrize("name", ["rows.svm.gz", "rows.svm.bz2", "rows.svm.xz", "rows.csv.gz"])
def test_a_truncated_compressed_file_is_refused(name, tmp_path):
    with create_rows(tmp_path / name) as writer:
        writer.write(np.random.default_rng(0).normal(size=(500, 3)), None)
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(data[: len(data) // 2])
    assert "damaged or truncated" in refusal(tmp_path / name)


@pytest.mark.parametrize("name", ["rows.svm.gz", "rows.svm.bz2", "rows.svm.xz"])
def test_the_error_for_a_truncated_compressed_file_has_its_position(name, tmp_path):
    with create_rows(tmp_path / name) as writer:
        # 1.6 MB, more than one block of bz2: nothing can be read of a truncated block.
        writer.write(np.random.default_rng(0).normal(size=(25_000, 3)), None)
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(data[: 3 * len(data) // 4])
    message = refusal(tmp_path / name)
    n_read = int(message.split(", after ")[1].split(" bytes of what it holds")[0])
    assert 500_000 < n_read < 1_600_000


@pytest.mark.parametrize("name", ["rows.svm.gz", "rows.svm.bz2", "rows.svm.xz"])
def test_a_file_that_is_not_compressed_is_refused(name, tmp_path):
    (tmp_path / name).write_text("1 1:2\n")
    assert "damaged or truncated" in refusal(tmp_path / name)


def test_a_decompression_bomb_is_refused_before_it_fills_memory(tmp_path):
    with gzip.open(tmp_path / "rows.svm.gz", "wb") as stream:
        for _ in range(100):
            stream.write(b"1 1:2\n" * 100_000)
    assert (tmp_path / "rows.svm.gz").stat().st_size < 300_000
    with pytest.raises(ValueError, match="expected rows of at most"):
        read_rows(tmp_path / "rows.svm.gz", max_bytes=10_000_000)


def vec(n_features, n_bytes):
    return struct.pack("<i", n_features) + bytes(n_bytes)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "byte 0: expected the number of features, from 1 to"),
        (b"\x01\x00", "byte 0: expected the number of features"),
        (vec(0, 8), "found 0"),
        (vec(-3, 8), "found -3"),
        (vec(2**31 - 1, 8), "found 2147483647"),
        (vec(3, 20), "byte 16: expected rows of 3 float32, found 8 bytes over"),
        (vec(2**25, 8), "found 8 bytes over"),
        (vec(3, 0), "expected rows, found none"),
    ],
)
def test_an_invalid_vec_file_is_refused(data, expected, tmp_path):
    (tmp_path / "rows.vec").write_bytes(data)
    assert expected in refusal(tmp_path / "rows.vec")


def test_a_cls_file_of_another_length_is_refused(tmp_path):
    (tmp_path / "rows.vec").write_bytes(vec(2, 16))
    (tmp_path / "rows.cls").write_bytes(bytes(12))
    with pytest.raises(ValueError, match=r"rows\.cls: expected 8 bytes, a label for each"):
        read_rows(tmp_path / "rows.vec")


def test_infinity_in_a_vec_file_is_named(tmp_path):
    rows = np.array([[1, 2], [3, np.inf]], "<f4")
    (tmp_path / "rows.vec").write_bytes(struct.pack("<i", 2) + rows.tobytes())
    assert "row 2, feature 2: expected a finite number, found inf" in refusal(tmp_path / "rows.vec")


def npy(shape, dtype="<f8", data=b"", order="False"):
    header = f"{{'descr': '{dtype}', 'fortran_order': {order}, 'shape': {shape}, }}".ljust(117)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.encode() + b"\n" + data


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "byte 0: expected a NumPy array"),
        (b"not an array", "byte 0: expected a NumPy array"),
        (npy("(2, 2)", data=bytes(16)), "expected 2 rows, found the end of the file"),
        (npy("(2, 2)", data=bytes(40)), "expected the end after 2 rows"),
        (npy("(1000000000000, 8)", data=bytes(640)), "found the end of the file"),
        (npy("(2, 1000000000000)"), "expected at most 33554432 features"),
        (npy("(4,)", data=bytes(32)), "expected rows of features, found the shape (4,)"),
        (npy("(2, 2, 2)", data=bytes(64)), "expected rows, found the shape (2, 2, 2)"),
        (npy("(2, 2)", "|O", bytes(32)), "expected numbers or text, found object"),
        (npy("(2, 2)", "<c16", bytes(64)), "expected numbers or text, found complex128"),
        (npy("(1000000000, 8)", order="True"), "save np.ascontiguousarray(X) instead"),
        (npy("(-1, 2)"), "expected rows, found the shape (-1, 2)"),
        (npy("(18446744073709551616, 0)"), "expected rows, found the shape (184"),
        (npy("__import__('os')"), "byte 0: expected a NumPy array"),
    ],
)
def test_an_invalid_array_is_refused(data, expected, tmp_path):
    (tmp_path / "rows.npy").write_bytes(data)
    assert expected in refusal(tmp_path / "rows.npy")


def test_the_error_for_an_archive_without_rows_lists_its_arrays(tmp_path):
    np.savez(tmp_path / "rows.npz", a=np.zeros(3))
    assert "expected an array 'X', found a" in refusal(tmp_path / "rows.npz")
    np.savez(tmp_path / "rows.npz", X_train=np.zeros((3, 2)))
    assert "found parts train: choose one of them with --part" in refusal(tmp_path / "rows.npz")


def test_labels_of_another_length_are_refused(tmp_path):
    np.savez(tmp_path / "rows.npz", X=np.zeros((3, 2)), y=np.zeros(2))
    assert "expected a label for each of 3 rows" in refusal(tmp_path / "rows.npz")


def test_a_damaged_archive_is_refused(tmp_path):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", npy("(1000, 2)", data=bytes(16000)))
    data = stream.getvalue()
    (tmp_path / "rows.npz").write_bytes(data[:-30])
    assert "not a readable .npz archive" in refusal(tmp_path / "rows.npz")
    (tmp_path / "rows.npz").write_bytes(data[:80] + b"\xff" * 10 + data[90:])
    refusal(tmp_path / "rows.npz")
    # The directory: an unknown version, and a name that is no UTF-8.
    entry = data.rfind(b"PK\x01\x02")
    for changes in ({6: 97}, {9: 8, 46: 255}):
        damaged = bytearray(data)
        for place, value in changes.items():
            damaged[entry + place] = value
        (tmp_path / "rows.npz").write_bytes(damaged)
        assert "not a readable .npz archive" in refusal(tmp_path / "rows.npz")


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow"])
def test_a_damaged_table_is_refused(name, tmp_path):
    with create_rows(tmp_path / name) as writer:
        writer.write(np.random.default_rng(0).normal(size=(500, 3)), None)
    data = (tmp_path / name).read_bytes()
    for bad in (b"", b"nothing", data[: len(data) // 2], data[:-4] + b"PARX"):
        (tmp_path / name).write_bytes(bad)
        refusal(tmp_path / name)


def test_the_error_for_a_damaged_table_has_its_position(tmp_path, monkeypatch):
    monkeypatch.setattr("limes.files.batches.MAX_BATCH_ROWS", 50)
    path = tmp_path / "rows.parquet"
    rows = np.random.default_rng(0).normal(size=500)
    pyarrow.parquet.write_table(pyarrow.table({"a": rows}), path, row_group_size=100)
    data = path.read_bytes()
    start = pyarrow.parquet.read_metadata(path).row_group(2).column(0).dictionary_page_offset
    path.write_bytes(data[:start] + b"\xff" * 60 + data[start + 60 :])
    assert "rows.parquet, after row 200 (row group 3 or later): " in refusal(path)
    path.write_bytes(data[:1000])
    assert "rows.parquet, byte 1000: " in refusal(path)


def test_the_error_for_a_damaged_archive_has_its_position(tmp_path):
    path = tmp_path / "rows.npz"
    rows = np.random.default_rng(0).integers(100, size=(200_000, 4))
    np.savez_compressed(path, X=rows, y=np.zeros(200_000, int))
    data = path.read_bytes()
    path.write_bytes(data[:1000])
    assert "rows.npz, byte 1000: not a readable .npz archive" in refusal(path)
    middle = len(data) // 2
    path.write_bytes(data[:middle] + bytes(100) + data[middle + 100 :])
    message = refusal(path)
    assert "rows.npz, X, after row " in message
    # Damage of a compressed array may be detected later, at the latest by its checksum.
    row = int(message.split("after row ")[1].split(":")[0])
    assert 50_000 < row <= 200_000
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("y.npy").header_offset
    path.write_bytes(data[:start] + b"no" + data[start + 2 :])
    assert f"rows.npz, y, byte {start}: not a readable .npz archive" in refusal(path)


def test_missing_columns_and_values_of_a_table_are_named(tmp_path):
    table = pyarrow.table({"a": [1.0, None], "b": ["x", "y"]})
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    path = tmp_path / "rows.parquet"
    assert "column 'b': expected numbers, found string" in refusal(path, RowOptions(columns=("b",)))
    message = refusal(path, RowOptions(label="b"))
    assert "column 'a', row 2: expected a value, found none" in message
    assert "expected a column 'c', found a, b" in refusal(path, RowOptions(columns=("c",)))
    assert "expected the label in a column 'kind'" in refusal(path, RowOptions(label="kind"))
    assert "from 1 to 2" in refusal(path, RowOptions(label="0"))


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"format must be one of libsvm, csv.*got 'xls'"):
        read_rows(tmp_path / "rows.svm", RowOptions(format="xls"))
    with pytest.raises(ValueError, match="only LIBSVM text and CSV are read"):
        read_rows(tmp_path / "rows.parquet.gz")
    with pytest.raises(ValueError, match="a pipe can carry libsvm or csv"):
        read_rows("-", RowOptions(format="npy"))


@pytest.mark.parametrize(
    "name", ["rows.svm", "rows.svm.gz", "rows.csv", "rows.parquet", "rows.npz", "rows.vec"]
)
def test_an_error_while_writing_leaves_the_previous_file(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(b"old")
    with pytest.raises(ValueError), create_rows(path) as writer:
        fail_after_a_batch(writer)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def fail_after_a_batch(writer):
    writer.write(np.ones((3, 2)), np.arange(3))
    raise ValueError("stop")


@pytest.mark.parametrize("name", ["rows.svm", "rows.npy", "rows.vec"])
def test_labels_that_a_format_cannot_hold_are_refused(name, tmp_path):
    labels = np.array(["a", "b"])
    with pytest.raises(ValueError, match="'a'"), create_rows(tmp_path / name) as writer:
        writer.write(np.ones((2, 2)), labels)
    assert not list(tmp_path.iterdir())


def test_a_label_beyond_32_bits_is_refused_for_libagf(tmp_path):
    with (
        pytest.raises(ValueError, match="whole numbers of 32 bits"),
        create_predictions(tmp_path / "out.cls", classes=[1, 2**40]) as writer,
    ):
        writer.write(np.array([1, 2**40]), None)
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_named(tmp_path):
    with (
        pytest.raises(FileNotFoundError, match="there is no folder"),
        create_rows(tmp_path / "no" / "rows.svm"),
    ):
        pass


def test_a_missing_file_is_an_os_error(tmp_path):
    for name in ("rows.svm", "rows.csv", "rows.parquet", "rows.arrow", "rows.npz", "rows.vec"):
        with pytest.raises(FileNotFoundError), open_rows(tmp_path / name):
            pass
