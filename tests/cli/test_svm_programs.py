"""LIBSVM's programs and ours, side by side where LIBSVM is installed."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from limes.cli.main import main
from limes.libsvm import read_libsvm_model

STORED = Path(__file__).parents[1] / "data" / "foreign"
HAS_LIBSVM = all(shutil.which(name) for name in ("svm-scale", "svm-train", "svm-predict"))
needs_libsvm = pytest.mark.skipif(not HAS_LIBSVM, reason="Debian's libsvm-tools is not installed")


@pytest.fixture
def files(tmp_path, monkeypatch):
    for path in STORED.glob("libsvm*"):
        shutil.copy(path, tmp_path / path.name)
    rng = np.random.default_rng(0)
    lines = [
        f"{label} 0:{a:.5g} 2:{b:.9g} 3:0"
        for label, a, b in zip(rng.choice([-1, 1], 40), *rng.normal(size=(2, 40)), strict=True)
    ]
    Path(tmp_path, "zero").write_text("\n".join(lines) + "\n")
    Path(tmp_path, "fraction").write_text("1234567.25 1:3 2:0\n-2 1:1.23456789 2:7\n")
    Path(tmp_path, "new").write_text("1 1:3 5:0.5\n2 3:1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ours(capsys, *words):
    capsys.readouterr()
    status = main(list(words))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def theirs(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@needs_libsvm
@pytest.mark.parametrize(
    "words",
    [
        "libsvm_train",
        "-l 0 -u 2 libsvm_train",
        "-y 0 1 libsvm_train",
        "-s saved libsvm_train",
        "-y -1 1 -s saved zero",
        "-r libsvm.range libsvm_test",
        "-r libsvm.range new",
        "fraction",
        "zero",
    ],
)
def test_svm_scale_prints_and_saves_the_same(files, capsys, words):
    expected = theirs("svm-scale", *words.split())
    saved = Path("saved").read_bytes() if "saved" in words else b""
    assert ours(capsys, "svm-scale", *words.split()) == expected
    assert saved == (Path("saved").read_bytes() if "saved" in words else b"")


@needs_libsvm
@pytest.mark.parametrize(
    "words",
    [
        "",
        "-c 2 -g 0.5",
        "-t 0",
        "-t 1 -r 1 -d 2",
        "-t 3 -h 0 -e 0.01",
        "-w3 5 -w2 0.3 -m 10",
        "-s 1 -n 0.3 -g 0.3",
        "-s 2",
        "-s 2 -n 0.3 -t 0",
        "-s 2 -n 0.2 -v 4",
        "-v 5",
        "-q -v 3 -b 1",
    ],
)
def test_svm_train_prints_and_writes_the_same(files, capsys, words):
    status, out, _ = theirs("svm-train", *words.split(), "libsvm_train.scaled", "theirs.model")
    found = ours(capsys, "svm-train", *words.split(), "libsvm_train.scaled", "ours.model")
    assert found == (status, out, "")
    if "-v" not in words:
        assert Path("ours.model").read_bytes() == Path("theirs.model").read_bytes()


@needs_libsvm
def test_probabilities_of_svm_train_are_those_of_libsvm(files, capsys):
    words = ("-c", "2", "-g", "0.5", "-b", "1", "libsvm_train.scaled")
    status, out, _ = theirs("svm-train", *words, "theirs.model")
    assert ours(capsys, "svm-train", *words, "ours.model") == (status, out, "")
    first, second = (read_libsvm_model(f"{name}.model") for name in ("ours", "theirs"))
    np.testing.assert_allclose(first.sigmoids, second.sigmoids, rtol=1e-9)
    assert first.labels.tolist() == second.labels.tolist()


@needs_libsvm
@pytest.mark.parametrize("words", ["", "-q", "-b 1", "-b 1 -q"])
def test_svm_predict_prints_and_writes_the_same(files, capsys, words):
    expected = theirs("svm-predict", *words.split(), "libsvm_test", "libsvm.model", "theirs")
    found = ours(capsys, "svm-predict", *words.split(), "libsvm_test", "libsvm.model", "ours")
    assert found == expected
    assert Path("ours").read_bytes() == Path("theirs").read_bytes()


@pytest.mark.data
@needs_libsvm
@pytest.mark.parametrize(
    ("name", "cost", "gamma"), [("heart", "1", "0.08"), ("segment", "8", "0.5")]
)
@pytest.mark.parametrize("proba", ["0", "1"])
def test_the_programs_agree_on_the_paper_s_datasets(
    data_folder, tmp_path, monkeypatch, capsys, name, cost, gamma, proba
):
    monkeypatch.chdir(tmp_path)
    with np.load(data_folder / f"{name}.npz") as data:
        lines = np.array(
            [
                f"{label} " + " ".join(f"{i}:{value!r}" for i, value in enumerate(row, 1) if value)
                for label, row in zip(
                    data["y_train"].tolist(), data["X_train"].tolist(), strict=True
                )
            ]
        )
    is_test = np.arange(len(lines)) % 3 == 0
    for part, chosen in (("train", lines[~is_test]), ("test", lines[is_test])):
        Path(part).write_text("\n".join(chosen) + "\n")
    printed = {}
    for who, run in (("theirs", theirs), ("ours", lambda *words: ours(capsys, *words))):
        Path(f"{who}.train").write_text(run("svm-scale", "-s", f"{who}.range", "train")[1])
        Path(f"{who}.test").write_text(run("svm-scale", "-r", f"{who}.range", "test")[1])
        options = ("-q", "-c", cost, "-g", gamma, "-b", proba)
        run("svm-train", *options, f"{who}.train", f"{who}.model")
        printed[who] = run("svm-predict", "-b", proba, f"{who}.test", f"{who}.model", who)
    assert printed["ours"] == printed["theirs"]
    assert "Accuracy = " in printed["ours"][1]
    for ending in (".range", ".train", ".test"):
        assert Path(f"ours{ending}").read_bytes() == Path(f"theirs{ending}").read_bytes()
    answers = [Path(who).read_text().splitlines() for who in ("ours", "theirs")]
    if proba == "0":
        assert answers[0] == answers[1]
        assert Path("ours.model").read_bytes() == Path("theirs.model").read_bytes()
        return
    assert answers[0][0] == answers[1][0]
    found, expected = (np.array([line.split() for line in one[1:]], float) for one in answers)
    np.testing.assert_array_equal(found[:, 0], expected[:, 0])
    np.testing.assert_allclose(found, expected, atol=2e-6)


@needs_libsvm
def test_features_are_numbered_from_0_as_well(files, capsys):
    for name, run in (("theirs", theirs), ("ours", lambda *words: ours(capsys, *words))):
        run("svm-train", "-q", "zero", f"{name}.model")
        run("svm-predict", "zero", f"{name}.model", name)
    assert Path("ours").read_bytes() == Path("theirs").read_bytes()
    assert read_libsvm_model("ours.model").first_index == 0


def test_stored_output_of_svm_train_is_repeated(files, capsys):
    words = ("-c", "2", "-g", "0.5", "-b", "1", "libsvm_train.scaled", "ours.model")
    expected = Path("libsvm_train.log").read_text()
    assert ours(capsys, "svm-train", *words) == (0, expected, "")
    model, stored = read_libsvm_model("ours.model"), read_libsvm_model("libsvm.model")
    assert model.labels.tolist() == stored.labels.tolist() == [-1, 2, 3]
    np.testing.assert_allclose(model.sigmoids, stored.sigmoids, rtol=1e-9)
    np.testing.assert_allclose(model.svm.dual_coef, stored.svm.dual_coef, rtol=1e-9)


def test_stored_output_of_svm_scale_is_repeated(files, capsys):
    expected = Path("libsvm_train.scaled").read_text()
    assert ours(capsys, "svm-scale", "-s", "saved", "libsvm_train") == (0, expected, "")
    assert Path("saved").read_bytes() == Path("libsvm.range").read_bytes()


def test_stored_output_of_svm_predict_is_repeated(files, capsys):
    Path("scaled").write_text(ours(capsys, "svm-scale", "-r", "libsvm.range", "libsvm_test")[1])
    _, out, _ = ours(capsys, "svm-predict", "-b", "1", "scaled", "libsvm.model", "out")
    expected = [line.split() for line in Path("libsvm_answers.txt").read_text().splitlines()]
    found = [line.split() for line in Path("out").read_text().splitlines()]
    assert found[0] == expected[0] == ["labels", "-1", "2", "3"]
    assert [words[0] for words in found] == [words[0] for words in expected]
    np.testing.assert_allclose(
        np.array(found[1:], dtype=float), np.array(expected[1:], dtype=float), atol=1e-6
    )
    assert out.startswith("Accuracy = ")
    assert out.endswith("/30) (classification)\n")


def test_limes_predict_names_labels_in_the_order_of_the_model(files):
    assert main(["predict", "libsvm.model", "libsvm_test", "-o", "out", "--proba"]) == 0
    assert Path("out").read_text().startswith("labels -1 2 3\n")
    main(["convert", "libsvm_train.scaled", "reversed", "--to", "libsvm"])
    lines = Path("libsvm_train.scaled").read_text().splitlines()
    Path("reversed").write_text("\n".join(sorted(lines, reverse=True)) + "\n")
    main(["svm-train", "-q", "-b", "1", "reversed"])
    assert main(["predict", "reversed.model", "libsvm_test", "-o", "out", "--proba"]) == 0
    rows = [line.split() for line in Path("out").read_text().splitlines()]
    assert rows[0] == ["labels", "3", "2", "-1"]
    for label, *numbers in rows[1:]:
        assert label == rows[0][1 + int(np.argmax(np.array(numbers, dtype=float)))]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("svm-train -s 3 libsvm_train", "epsilon-SVR) predicts no classes"),
        ("svm-train -c 0 libsvm_train", "C <= 0"),
        ("svm-train -t 4 libsvm_train", "unknown kernel type 4"),
        ("svm-train -v 1 libsvm_train", "n must >= 2"),
        ("svm-train missing", "missing: can't open input file"),
        ("svm-train fraction", "fraction: expected whole numbers as labels, found 1234567.25"),
        ("svm-train -z 1 libsvm_train", "unknown option: -z"),
        ("svm-train -c x libsvm_train", "expected a number after -c, got 'x'"),
        ("svm-train -s 1 -n 0.999 libsvm_train", "svm-train: specified nu is infeasible: -n 0.999"),
        ("svm-train", "expected 1 or 2 files"),
        ("svm-predict libsvm_test libsvm.model", "expected 3 files"),
        ("svm-predict missing libsvm.model out", "missing: can't open input file"),
        ("svm-predict libsvm_test missing out", "missing: No such file"),
        ("svm-predict libsvm_test libsvm.model libsvm_test", "an input as well as an output"),
        ("svm-scale -l 1 -u 0 libsvm_train", "inconsistent lower/upper specification"),
        ("svm-scale -s a -r b libsvm_train", "cannot use -r and -s simultaneously"),
        ("svm-scale -r libsvm.model libsvm_train", "libsvm.model, line 1: expected 'x'"),
        ("svm-scale -s libsvm_train libsvm_train", "an input as well as an output"),
        ("svm-train libsvm_train libsvm_train", "an input as well as an output"),
    ],
)
def test_mistakes_end_with_status_1_and_a_sentence(files, capsys, words, message):
    before = {name: Path(name).read_bytes() for name in os.listdir()}
    status, out, err = ours(capsys, *words.split())
    assert (status, out) == (1, "")
    assert message in err
    assert "Traceback" not in err
    assert {name: Path(name).read_bytes() for name in os.listdir()} == before


def test_the_commands_are_in_the_help(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "svm-scale" in capsys.readouterr().out
    assert ours(capsys, "svm-train", "--help")[1].startswith("usage: limes svm-train [-s 0|1|2]")
