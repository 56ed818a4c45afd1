"""`limes predict`: formats of the output, pipes, columns, invalid rows."""

import io
import subprocess

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import limes
from limes.cli.predict import prefetch
from limes.files import RowOptions, create_rows, read_rows
from tests.cli.commands import PROGRAM, QUICK, error_of, run

pytest.importorskip("pyarrow")


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.npz", "out.txt", "out.cls"])
def test_predictions_are_those_of_python(name, folder, tmp_path):
    X, _, _ = read_rows(folder / "test.csv")
    fast = limes.load(folder / "fast.limes")
    run("predict", folder / "fast.limes", folder / "test.csv", "-o", tmp_path / name)
    if name == "out.txt":
        labels = np.loadtxt(tmp_path / name)
    elif name == "out.cls":
        labels = np.fromfile(tmp_path / name, "<i4")
    elif name == "out.npz":
        labels = np.load(tmp_path / name)["labels"]
    else:
        labels = column(tmp_path / name, "label")
    assert_array_equal(labels, fast.predict(X))


def column(path, name):
    """Return one column of a table, as numbers."""
    return read_rows(path, RowOptions(columns=(name,), label=None))[0][:, 0]


def test_probabilities_are_those_of_python(folder, tmp_path):
    X, _, _ = read_rows(folder / "test.csv")
    run("predict", folder / "fast.limes", folder / "test.csv", "-o", tmp_path / "o.npy", "--proba")
    expected = limes.load(folder / "fast.limes").predict_proba(X)
    assert_allclose(np.load(tmp_path / "o.npy"), expected, rtol=1e-6)


def test_columns_of_the_rows_are_copied_to_the_output(folder, tmp_path):
    words = (folder / "fast.limes", folder / "test.csv", "-o", tmp_path / "o.parquet", "--keep")
    run("predict", *words, "--proba")
    X, y, names = read_rows(tmp_path / "o.parquet")
    assert names == ("a", "b", "c", "predicted_label", "p_0", "p_1", "p_2", "p_3")
    assert_array_equal(X[:, :3], read_rows(folder / "test.csv")[0])
    assert_array_equal(y, read_rows(folder / "test.csv")[1])


def test_a_libsvm_model_can_predict_too(folder, tmp_path):
    run("predict", folder / "svm.model", folder / "test.csv", "-o", tmp_path / "o", "--proba")
    lines = (tmp_path / "o").read_text().splitlines()
    assert lines[0] == "labels 0 1 2 3"
    assert len(lines) == 101


def test_a_libsvm_model_accepts_features_that_are_zero_in_its_vectors(folder, tmp_path):
    (tmp_path / "wide.svm").write_text("0 1:1 2:1\n0 1:1 2:1 9:0.5\n0 1:1\n")
    run("predict", folder / "svm.model", tmp_path / "wide.svm", "-o", tmp_path / "out")
    assert len((tmp_path / "out").read_text().splitlines()) == 3


def test_a_pipe_is_read_and_written(folder):
    text = (folder / "test.csv").read_bytes()
    words = ("predict", folder / "fast.limes", "-", "--format", "csv", "-o", "-")
    result = subprocess.run(
        [*PROGRAM, *map(str, words)], input=text, capture_output=True, check=True
    )
    X, _, _ = read_rows(folder / "test.csv")
    expected = limes.load(folder / "fast.limes").predict(X)
    assert_array_equal(np.loadtxt(io.BytesIO(result.stdout)), expected)


def test_a_closed_reader_of_the_output_is_no_error(folder):
    words = ("predict", folder / "fast.limes", folder / "train.svm", "-o", "-")
    command = " ".join(map(str, (*PROGRAM, *words)))
    result = subprocess.run(["sh", "-c", f"{command} | head -n 1"], capture_output=True, check=True)
    assert result.stdout.count(b"\n") == 1
    assert result.stderr == b""


def test_a_model_selects_its_features_by_name(blobs, tmp_path, capsys):
    X, y = blobs
    with create_rows(tmp_path / "rows.csv", names=["a", "b", "c"]) as writer:
        writer.write(X, y)
    with create_rows(tmp_path / "turned.csv", names=["c", "b", "a"]) as writer:
        writer.write(X[:, ::-1], y)
    run("train", tmp_path / "rows.csv", "--scale", "-o", tmp_path / "slow", "-q")
    run("accelerate", tmp_path / "slow", tmp_path / "rows.csv", "-o", tmp_path / "fast", *QUICK)
    for model in ("slow", "fast"):
        for rows in ("rows", "turned"):
            words = (tmp_path / model, tmp_path / f"{rows}.csv", "-o", tmp_path / f"{rows}.txt")
            run("predict", *words)
        assert (tmp_path / "rows.txt").read_text() == (tmp_path / "turned.txt").read_text()
    (tmp_path / "other.csv").write_text("a,b,d\n1,2,3\n")
    words = ("predict", tmp_path / "fast", tmp_path / "other.csv", "-o", tmp_path / "o")
    assert "expected a column 'c', found a, b, d" in error_of(capsys, *words)


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.txt", "out.npz", "out.cls"])
def test_an_invalid_row_in_a_late_batch_leaves_no_output(
    name, folder, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("limes.files.libsvm.CHUNK_BYTES", 1000)
    text = (folder / "train.svm").read_text()
    (tmp_path / "rows.svm").write_text(text + "1 1:x\n")
    words = ("predict", folder / "fast.limes", tmp_path / "rows.svm", "-o", tmp_path / name)
    assert "rows.svm, line 401: expected index:value pairs" in error_of(capsys, *words)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.svm"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n", "expected rows of 3 features, as in"),
        ("a,b,c,d\n1,2,3,4\n", "name the label's column with --label"),
        ("a,b,c\n1,2,nan\n", "row 1, feature 'c': expected a finite number"),
        ("a,b,c\n1,2,1e300\n", "float32"),
    ],
)
def test_rows_that_do_not_fit_the_model_are_refused(text, expected, folder, tmp_path, capsys):
    (tmp_path / "rows.csv").write_text(text)
    words = ("predict", folder / "fast.limes", tmp_path / "rows.csv", "-o", tmp_path / "out.csv")
    assert expected in error_of(capsys, *words)
    assert not (tmp_path / "out.csv").exists()


def test_prefetched_items_keep_their_order_and_errors_are_raised():
    def items():
        yield from range(5)
        raise OSError("gone")

    fetched = []
    with pytest.raises(OSError, match="gone"), prefetch(items()) as prefetched:
        fetched.extend(prefetched)
    assert fetched == list(range(5))
    with prefetch(iter(range(1000))) as prefetched:
        assert next(prefetched) == 0


def test_prefetching_stops_with_its_block():
    fetched = []

    def items():
        for number in range(1000):
            fetched.append(number)
            yield number

    with prefetch(items()) as prefetched:
        assert next(prefetched) == 0
    assert len(fetched) < 10


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "npy", "npz", "svm"])
@pytest.mark.parametrize("proba", [(), ("--proba",)])
def test_no_rows_give_no_labels(kind, proba, folder, tmp_path):
    np.save(tmp_path / "none.npy", np.empty((0, 3)))
    output = tmp_path / f"out.{kind}"
    run("predict", folder / "fast.limes", tmp_path / "none.npy", "-o", output, *proba)
    if kind == "csv":
        assert output.read_text().split(",")[0].strip() == "label"
    elif kind == "parquet":
        import pyarrow.parquet as pq

        assert pq.read_table(output).num_rows == 0
    elif kind == "npy":
        assert len(np.load(output)) == 0
