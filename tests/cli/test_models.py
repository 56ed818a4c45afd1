"""Model files of any kind are recognised, and misuse is reported."""

import pytest

from tests.cli.commands import error_of, run

pytest.importorskip("pyarrow")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "found an empty file"),
        (b"\x80\x04K\x01.", "found a pickle, which is not read because it could execute code"),
        (b"hello", "expected a model"),
        (b"\x89LIMES\r\n", "the end of the file"),
        (b"svm_type one_class\n", "line 2"),
        (b"1v1\n2\n", "expected"),
    ],
)
def test_a_file_that_is_no_model_is_refused(data, expected, folder, tmp_path, capsys):
    (tmp_path / "bad").write_bytes(data)
    words = ("predict", tmp_path / "bad", folder / "test.csv", "-o", tmp_path / "out.csv")
    error = error_of(capsys, *words)
    assert expected in error
    assert str(tmp_path / "bad") in error
    assert not (tmp_path / "out.csv").exists()


def test_misuse_of_a_model_is_an_error(folder, tmp_path, capsys):
    words = (folder / "fast.limes", folder / "train.svm", "-o", tmp_path / "o")
    assert "expected a slow classifier, found a fast one" in error_of(capsys, "accelerate", *words)
    assert "--keep needs rows and output in csv" in error_of(capsys, "predict", *words, "--keep")
    run("train", folder / "train.svm", "-o", tmp_path / "m", "-q")
    words = (tmp_path / "m", folder / "train.svm", "-o", tmp_path / "o", "--proba")
    assert "has no probabilities: train it with -b 1" in error_of(capsys, "predict", *words)
    (tmp_path / "words.csv").write_text("a,b,c,label\n1,2,3,x\n")
    words = ("score", folder / "fast.limes", tmp_path / "words.csv")
    assert "expected labels such as" in error_of(capsys, *words)
