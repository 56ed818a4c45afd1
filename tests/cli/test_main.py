"""The command as a whole: help, errors, colours, progress, and what each job writes."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import limes
from limes.cli import terminal
from limes.cli.main import COMMANDS, main, make_parser
from limes.cli.predict import prefetch
from limes.files import RowOptions, create_rows, read_rows

pytest.importorskip("pyarrow")

COMMAND = (sys.executable, "-m", "limes")
# Borders that are found in a moment: these tests are about files and words.
QUICK = ("--scheme", "pairwise", "-n", "20", "--no-refine", "--blend", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, blobs):
    """Rows of four classes, a trained machine and its borders."""
    path = tmp_path_factory.mktemp("cli")
    X, names = blobs
    y = np.unique(names, return_inverse=True)[1]
    with create_rows(path / "train.svm") as writer:
        writer.write(X[:400], y[:400])
    with create_rows(path / "test.csv", names=["a", "b", "c"]) as writer:
        writer.write(X[400:], y[400:])
    run("train", "-c", "2", "-g", "0.1", "-b", "1", path / "train.svm", "-o", path / "svm.model")
    run("accelerate", path / "svm.model", path / "train.svm", "-o", path / "fast.limes", *QUICK)
    return path


def run(*words):
    assert main([str(word) for word in words]) == 0


def refused(capsys, *words):
    """Return the one line of an error."""
    capsys.readouterr()
    try:
        status = main([str(word) for word in words])
    except SystemExit as stop:
        status = stop.code
    captured = capsys.readouterr()
    assert status == 2
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err


def said(capsys, *words):
    capsys.readouterr()
    run(*words)
    return capsys.readouterr().out


def test_help_does_not_import_what_takes_long():
    code = (
        "import sys\nfrom limes.cli.main import make_parser\nmake_parser().format_help()\n"
        "print(sorted({'numpy', 'scipy', 'sklearn', 'pyarrow', 'matplotlib'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("job", COMMANDS)
def test_each_job_has_a_help_with_an_example(job, capsys):
    with pytest.raises(SystemExit) as stop:
        main([job, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert f"limes {job}" in text.partition("example:\n")[2]


@pytest.mark.parametrize("job", COMMANDS)
def test_the_words_of_each_example_are_understood(job, capsys):
    parser = make_parser()
    with pytest.raises(SystemExit):
        parser.parse_args([job, "--help"])
    lines = capsys.readouterr().out.partition("example:\n")[2].splitlines()
    assert lines
    for line in lines:
        words = line.split()
        assert words[0] == "limes"
        assert parser.parse_args(words[1:]).run is not None


def test_the_version_is_told(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"limes {limes.__version__}\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "the following arguments are required: JOB"),
        (("fly",), "invalid choice: 'fly'"),
        (("predict", "m"), "the following arguments are required"),
        (("predict", "m", "r", "-o", "o", "--prob"), "unrecognized arguments: --prob"),
        (("train", "no.svm"), "no.svm: No such file or directory"),
        (("train", "no.svm", "-t", "7"), "invalid choice: 7"),
        (("info", "no.limes"), "no.limes: No such file or directory"),
        (("convert", "no.csv", "o.svm"), "no.csv: No such file or directory"),
        (("datasets", "satt"), "did you mean 'sat'?"),
        (("datasets", "--train", "x.svm"), "need the NAME of a dataset"),
        (("subsample", "-", "0.5", "-o", "x"), "read twice"),
    ],
)
def test_a_mistake_is_told_in_one_line(words, expected, capsys):
    assert expected in refused(capsys, *words)


@pytest.mark.parametrize("rows", ["train.svm", "test.csv", "test.csv.gz"])
def test_an_output_without_a_folder_is_not_blamed_on_the_rows(rows, folder, tmp_path, capsys):
    if rows.endswith(".gz"):
        run("convert", folder / "test.csv", folder / rows)
    out = tmp_path / "none" / "out.txt"
    message = refused(capsys, "predict", folder / "fast.limes", folder / rows, "-o", out)
    assert message == f"limes: {out}: there is no folder '{out.parent}'.\n"


def test_a_fault_of_ours_is_one_line_too(capsys, monkeypatch, folder):
    monkeypatch.setattr("limes.cli.info._describe_model", lambda path: 1 / 0)
    assert main(["info", str(folder / "fast.limes")]) == 1
    assert capsys.readouterr().err.startswith("limes: unexpected ZeroDivisionError")
    monkeypatch.setenv("LIMES_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["info", str(folder / "fast.limes")])


def test_the_trained_machine_is_a_libsvm_model(folder):
    svmutil = pytest.importorskip("libsvm.svmutil")
    X, y, _ = read_rows(folder / "test.csv")
    model = svmutil.svm_load_model(str(folder / "svm.model"))
    labels, _, values = svmutil.svm_predict(y.tolist(), X.tolist(), model, "-q -b 1")
    ours = limes.read_libsvm_model(folder / "svm.model")
    assert_array_equal(ours.predict_likeliest(X), labels)
    columns = np.argsort(model.get_labels())
    assert_allclose(ours.predict_proba(X), np.array(values)[:, columns], atol=1e-9)


def test_probabilities_of_a_trained_machine_are_honest(folder):
    X, y, _ = read_rows(folder / "test.csv")
    model = limes.read_libsvm_model(folder / "svm.model")
    shares = model.predict_proba(X)
    assert np.mean(model.classes_[shares.argmax(axis=1)] == y) > 0.7
    assert abs(shares.max(axis=1).mean() - np.mean(model.predict(X) == y)) < 0.1


@pytest.mark.parametrize("options", [("-t", "0"), ("-t", "1", "-r", "1"), ("-s", "1", "-n", "0.2")])
def test_other_machines_are_trained_by_libsvms_options(options, folder, tmp_path):
    run("train", *options, folder / "train.svm", "-o", tmp_path / "m", "-q")
    X, y, _ = read_rows(folder / "test.csv")
    assert np.mean(limes.read_libsvm_model(tmp_path / "m").predict(X) == y) > 0.6


def test_weights_are_understood_as_svm_train_writes_them(folder, tmp_path, capsys):
    for name, words in {"a": ("-w1", "9"), "b": ("--weight", "1=9"), "c": ()}.items():
        run("train", *words, folder / "train.svm", "-o", tmp_path / name, "-q")
    a, b, c = ((tmp_path / name).read_text() for name in "abc")
    assert a == b
    assert a != c
    assert "LABEL=NUMBER, got '1=x'" in refused(capsys, "train", "-w1", "x", folder / "train.svm")


def test_cross_validation_prints_what_svm_train_prints(folder, capsys):
    text = said(capsys, "train", "-v", "5", "-g", "0.1", folder / "train.svm")
    assert text.startswith("Cross Validation Accuracy = ")
    assert 70 < float(text.split("=")[1].rstrip("%\n")) <= 100
    found = json.loads(said(capsys, "train", "-v", "5", folder / "train.svm", "--json"))
    assert found["folds"] == 5


def test_without_an_output_the_model_is_named_as_by_svm_train(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("train", folder / "train.svm", "-q")
    assert (tmp_path / "train.svm.model").read_text().startswith("svm_type c_svc\n")


@pytest.mark.parametrize(
    "options",
    [
        ("--model", "agf", "-k", "50"),
        ("--model", "kde"),
        ("--model", "linear"),
        ("--model", "linear", "--solver", "0", "--bias"),
        ("--scale", "-c", "2"),
    ],
)
def test_every_classifier_is_trained_accelerated_and_scored(options, folder, tmp_path, capsys):
    run("train", *options, folder / "train.svm", "-o", tmp_path / "slow", "-q")
    run("accelerate", tmp_path / "slow", folder / "train.svm", "-o", tmp_path / "fast", *QUICK)
    words = ("--source", tmp_path / "slow", "--json")
    found = json.loads(said(capsys, "score", tmp_path / "fast", folder / "test.csv", *words))
    assert found["source"]["accuracy"] > 0.6
    assert found["agreement"] > 0.8


def test_labels_may_be_words(blobs, tmp_path, capsys):
    X, y = blobs
    with create_rows(tmp_path / "rows.csv") as writer:
        writer.write(X, y)
    run("train", tmp_path / "rows.csv", "-o", tmp_path / "slow", "-q", "-b", "1")
    run("accelerate", tmp_path / "slow", tmp_path / "rows.csv", "-o", tmp_path / "fast", *QUICK)
    run("predict", tmp_path / "fast", tmp_path / "rows.csv", "-o", tmp_path / "out.csv")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "label"
    assert {line.strip('"') for line in lines[1:]} <= set(y)
    assert len(lines) == 1 + len(y)


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


def test_columns_are_kept_beside_predictions(folder, tmp_path):
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


def test_a_libsvm_model_learns_of_features_that_are_zero_in_its_vectors(folder, tmp_path):
    (tmp_path / "wide.svm").write_text("0 1:1 2:1\n0 1:1 2:1 9:0.5\n0 1:1\n")
    run("predict", folder / "svm.model", tmp_path / "wide.svm", "-o", tmp_path / "out")
    assert len((tmp_path / "out").read_text().splitlines()) == 3


def test_a_pipe_is_read_and_written(folder):
    text = (folder / "test.csv").read_bytes()
    words = ("predict", folder / "fast.limes", "-", "--format", "csv", "-o", "-")
    found = subprocess.run(
        [*COMMAND, *map(str, words)], input=text, capture_output=True, check=True
    )
    X, _, _ = read_rows(folder / "test.csv")
    expected = limes.load(folder / "fast.limes").predict(X)
    assert_array_equal(np.loadtxt(io.BytesIO(found.stdout)), expected)


def test_a_reader_that_goes_away_is_no_error(folder):
    words = ("predict", folder / "fast.limes", folder / "train.svm", "-o", "-")
    command = " ".join(map(str, (*COMMAND, *words)))
    found = subprocess.run(["sh", "-c", f"{command} | head -n 1"], capture_output=True, check=True)
    assert found.stdout.count(b"\n") == 1
    assert found.stderr == b""


def test_names_of_features_go_with_a_model(blobs, tmp_path, capsys):
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
    assert "expected a column 'c', found a, b, d" in refused(capsys, *words)


def test_scores_are_told_for_people_and_for_machines(folder, capsys):
    words = ("score", folder / "fast.limes", folder / "test.csv", "--source", folder / "svm.model")
    text = said(capsys, *words)
    assert "uncertainty coefficient" in text
    assert "times as fast." in text
    found = json.loads(said(capsys, *words, "--json"))
    X, y, _ = read_rows(folder / "test.csv")
    fast = limes.load(folder / "fast.limes")
    assert found["model"]["accuracy"] == np.mean(fast.predict(X) == y)
    assert np.sum(found["model"]["confusion"]) == len(y)
    assert found["classes"] == [0, 1, 2, 3]


def test_a_model_alone_is_scored_without_agreement(folder, capsys):
    found = json.loads(said(capsys, "score", folder / "svm.model", folder / "test.csv", "--json"))
    assert found["agreement"] is None
    assert "source" not in found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 1:2\n1 1:3\n", "expected two classes or more, found only 1."),
        ("1 1:2\n0.5 1:3\n", "whole numbers or words, found 0.5"),
    ],
)
def test_labels_that_are_no_classes_are_refused(text, expected, tmp_path, capsys):
    (tmp_path / "rows.svm").write_text(text)
    message = refused(capsys, "train", tmp_path / "rows.svm", "-o", tmp_path / "m")
    assert f"{tmp_path / 'rows.svm'}: expected" in message
    assert expected in message


def test_too_little_memory_says_for_what(capsys, monkeypatch, folder):
    monkeypatch.setattr("limes.cli.info._describe_model", lambda path: np.empty((1 << 40, 1 << 10)))
    message = refused(capsys, "info", folder / "fast.limes")
    assert "not enough memory (Unable to allocate" in message


def test_a_header_in_c_is_told_with_its_size_in_a_program(folder, tmp_path, capsys):
    words = ("export", folder / "fast.limes", "--to", "c", "-o", tmp_path / "fast.h")
    found = json.loads(said(capsys, *words, "--json"))
    assert f"#define FAST_BYTES {found['n_constant_bytes']}\n" in (tmp_path / "fast.h").read_text()
    assert f"{found['n_constant_bytes']:,} bytes of constants" in said(capsys, *words)


def test_info_leaves_out_what_is_not_known(folder, tmp_path, capsys):
    words = ("export", folder / "fast.limes", "--to", "libagf", "-o", tmp_path / "fast.agf")
    run(*words)
    assert "agreement" not in said(capsys, "info", tmp_path / "fast.agf")
    assert "agreement" in said(capsys, "info", folder / "fast.limes")
    (tmp_path / "head.csv").write_text("a,b,label\n")
    found = json.loads(said(capsys, "info", tmp_path / "head.csv", "--json"))
    assert (found["n_rows"], found["n_features"]) == (0, 2)


def test_info_tells_what_a_file_is(folder, capsys):
    fast = json.loads(said(capsys, "info", folder / "fast.limes", "--json"))
    assert (fast["kind"], fast["n_classes"], fast["n_features"]) == ("fast classifier", 4, 3)
    slow = json.loads(said(capsys, "info", folder / "svm.model", "--json"))
    assert (slow["kernel"], slow["gamma"]) == ("rbf", 0.1)
    rows = json.loads(said(capsys, "info", folder / "test.csv", "--json"))
    assert (rows["n_rows"], rows["n_features"], rows["format"]) == (100, 3, "csv")
    assert sum(rows["rows_of_each_class"].values()) == 100
    assert "n support vectors" in said(capsys, "info", folder / "svm.model")


@pytest.mark.parametrize("name", ["o.csv", "o.parquet", "o.npz", "o.vec", "o.svm.bz2", "o.arrow"])
def test_rows_are_converted_and_back(name, folder, tmp_path):
    run("convert", folder / "train.svm", tmp_path / name)
    run("convert", tmp_path / name, tmp_path / "back.svm")
    X, y, _ = read_rows(folder / "train.svm")
    found, labels, _ = read_rows(tmp_path / "back.svm")
    assert_allclose(found, X, rtol=1e-6)
    assert_array_equal(labels, y)


def test_a_csv_label_keeps_its_kind_in_parquet(tmp_path, folder):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    run("convert", folder / "test.csv", tmp_path / "o.parquet")
    assert str(pyarrow.read_schema(tmp_path / "o.parquet").field("label").type) == "int64"


@pytest.mark.parametrize(("method", "most"), [("proportional", 40), ("power", 400)])
def test_a_subsample_has_every_class(method, most, folder, tmp_path, capsys):
    words = ("subsample", folder / "train.svm", "0.1", "--method", method)
    found = json.loads(said(capsys, *words, "-o", tmp_path / "o.csv", "--json"))
    X, y, _ = read_rows(tmp_path / "o.csv")
    assert len(y) == found["n_rows"]
    assert 30 < len(y) <= most
    assert len(np.unique(y)) == 4
    everything = {tuple(row) for row in read_rows(folder / "train.svm")[0].tolist()}
    assert {tuple(row) for row in X.tolist()} <= everything


def test_exports_write_their_forms(folder, tmp_path, capsys):
    pytest.importorskip("limes.export.c")
    found = json.loads(
        said(capsys, "export", folder / "fast.limes", "--to", "c", "-o", tmp_path / "m.h", "--json")
    )
    assert found["n_bytes"] == (tmp_path / "m.h").stat().st_size
    assert "fast_predict" in (tmp_path / "m.h").read_text()
    words = ("export", folder / "svm.model", "--to", "c", "-o", tmp_path / "x.h")
    assert "make one with limes accelerate" in refused(capsys, *words)


def test_a_libagf_model_goes_there_and_back(folder, tmp_path, capsys):
    pytest.importorskip("limes.export.libagf")
    run("export", folder / "fast.limes", "--to", "libagf", "-o", tmp_path / "f.agf")
    assert (tmp_path / "f.agf").read_text().startswith("1v1\n4\n")
    found = json.loads(said(capsys, "score", tmp_path / "f.agf", folder / "test.csv", "--json"))
    assert found["model"]["accuracy"] > 0.6


def test_the_datasets_are_listed(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("LIMES_DATA", str(tmp_path))
    monkeypatch.setenv("LIMES_CACHE", str(tmp_path))
    assert len(said(capsys, "datasets").splitlines()) > 17
    found = json.loads(said(capsys, "datasets", "sat", "--json"))["datasets"]
    assert [one["name"] for one in found] == ["sat"]
    words = ("datasets", "sat", "--train", tmp_path / "sat.svm", "--offline")
    assert "not on this machine" in refused(capsys, *words)


def test_the_demo_draws_a_picture(tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    # The digits are the same job once more, and take the most time.
    nothing = SimpleNamespace(to_dict=dict)
    monkeypatch.setattr("limes.cli.demo._show_digits", lambda: nothing)
    found = json.loads(said(capsys, "demo", "--rows", "200", "-o", tmp_path / "demo.png", "--json"))
    assert found["sample_classes"]["n_rows"] == 20_000
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "found an empty file"),
        (b"\x80\x04K\x01.", "found a pickle, which is not read since it could run anything"),
        (b"hello", "expected a model"),
        (b"\x89LIMES\r\n", "the end of the file"),
        (b"svm_type one_class\n", "line 2"),
        (b"1v1\n2\n", "expected"),
    ],
)
def test_what_is_no_model_is_refused(data, expected, folder, tmp_path, capsys):
    (tmp_path / "bad").write_bytes(data)
    words = ("predict", tmp_path / "bad", folder / "test.csv", "-o", tmp_path / "out.csv")
    error = refused(capsys, *words)
    assert expected in error
    assert str(tmp_path / "bad") in error
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.txt", "out.npz", "out.cls"])
def test_a_bad_row_late_in_a_file_leaves_no_output(name, folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("limes.files.libsvm.CHUNK_BYTES", 1000)
    text = (folder / "train.svm").read_text()
    (tmp_path / "rows.svm").write_text(text + "1 1:x\n")
    words = ("predict", folder / "fast.limes", tmp_path / "rows.svm", "-o", tmp_path / name)
    assert "rows.svm, line 401: expected index:value pairs" in refused(capsys, *words)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.svm"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n", "expected rows of 3 features, as"),
        ("a,b,c,d\n1,2,3,4\n", "name the label's column with --label"),
        ("a,b,c\n1,2,nan\n", "row 1, feature 'c': expected a finite number"),
        ("a,b,c\n1,2,1e300\n", "float32"),
    ],
)
def test_rows_that_a_model_cannot_take_are_refused(text, expected, folder, tmp_path, capsys):
    (tmp_path / "rows.csv").write_text(text)
    words = ("predict", folder / "fast.limes", tmp_path / "rows.csv", "-o", tmp_path / "out.csv")
    assert expected in refused(capsys, *words)
    assert not (tmp_path / "out.csv").exists()


def test_rows_without_labels_cannot_be_trained_on_or_scored(folder, tmp_path, capsys):
    (tmp_path / "rows.csv").write_text("a,b,c\n1,2,3\n4,5,6\n")
    for words in (
        ("train", tmp_path / "rows.csv", "-o", tmp_path / "m"),
        ("score", folder / "fast.limes", tmp_path / "rows.csv"),
        ("subsample", tmp_path / "rows.csv", "0.5", "-o", tmp_path / "o"),
    ):
        assert "name their column with --label" in refused(capsys, *words)


def test_other_mistakes_with_models_are_told(folder, tmp_path, capsys):
    words = (folder / "fast.limes", folder / "train.svm", "-o", tmp_path / "o")
    assert "found borders already" in refused(capsys, "accelerate", *words)
    assert "--keep needs rows and output in csv" in refused(capsys, "predict", *words, "--keep")
    run("train", folder / "train.svm", "-o", tmp_path / "m", "-q")
    words = (tmp_path / "m", folder / "train.svm", "-o", tmp_path / "o", "--proba")
    assert "has no probabilities: train it with -b 1" in refused(capsys, "predict", *words)
    (tmp_path / "words.csv").write_text("a,b,c,label\n1,2,3,x\n")
    words = ("score", folder / "fast.limes", tmp_path / "words.csv")
    assert "expected labels such as" in refused(capsys, *words)


def limited(*words, limit):
    """Run the command with a limit on the size of files, as when a disk is full."""
    import resource

    return subprocess.run(
        [*COMMAND, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )


@pytest.mark.skipif(sys.platform == "win32", reason="limits on files are those of POSIX")
@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.svm.gz", "out.npz"])
def test_a_full_disk_leaves_the_old_file(name, folder, tmp_path):
    (tmp_path / name).write_bytes(b"old")
    found = limited("convert", folder / "train.svm", tmp_path / name, limit=2000)
    assert found.returncode == 2
    assert found.stderr == f"limes: {tmp_path / name}: File too large\n"
    assert (tmp_path / name).read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_process_that_is_stopped_leaves_the_old_file(number, folder, tmp_path):
    (tmp_path / "out.csv").write_bytes(b"old")
    words = ("convert", "-", tmp_path / "out.csv", "--features", "3")
    process = subprocess.Popen(
        [*COMMAND, *map(str, words)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A shell that starts tests in the background has them ignore SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    process.stdin.write((folder / "train.svm").read_bytes())
    process.stdin.flush()
    wait_for(lambda: len(list(tmp_path.iterdir())) == 2)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode != 0
    assert b"Traceback" not in error
    assert (tmp_path / "out.csv").read_bytes() == b"old"
    n_left = 2 if number == signal.SIGKILL else 1
    assert len(list(tmp_path.iterdir())) == n_left


def wait_for(is_true):
    for _ in range(600):
        if is_true():
            return
        time.sleep(0.1)
    raise AssertionError("waited for a minute")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def test_colours_are_for_terminals_and_respect_no_color(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert terminal.colour("x", "red", Terminal()) == "\033[31mx\033[0m"
    assert terminal.colour("x", "red", io.StringIO()) == "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert terminal.colour("x", "red", Terminal()) == "x"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert terminal.colour("x", "red", Terminal()) == "x"


def test_progress_is_drawn_on_a_terminal_once_it_takes_long(monkeypatch):
    monkeypatch.setattr(terminal, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(terminal, "REFRESH_SECONDS", 0.01)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with terminal.Progress("predicting", total=100) as progress:
        progress.advance(50)
        wait_for(lambda: "50%" in sys.stderr.getvalue())
    text = sys.stderr.getvalue()
    assert "[###############               ]  50%" in text
    assert text.endswith("\r\033[K")


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_progress_says_nothing_of_what_is_quick_or_unseen(stream, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream())
    with terminal.Progress("predicting"):
        pass
    assert sys.stderr.getvalue() == ""


def test_json_has_no_numbers_that_json_does_not_have(capsys):
    terminal.show({"a": np.float64("nan"), "b": [np.int64(1)], "c": os}, "", as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["a"] is None
    assert found["b"] == [1]
    assert isinstance(found["c"], str)


def test_pieces_read_ahead_come_in_order_and_errors_come_through():
    def pieces():
        yield from range(5)
        raise OSError("gone")

    found = []
    with pytest.raises(OSError, match="gone"), prefetch(pieces()) as ahead:
        found.extend(ahead)
    with prefetch(iter(range(1000))) as ahead:
        assert next(ahead) == 0


def test_reading_ahead_stops_when_the_work_stops():
    taken = []

    def pieces():
        for number in range(1000):
            taken.append(number)
            yield number

    with prefetch(pieces()) as ahead:
        assert next(ahead) == 0
    assert len(taken) < 10
