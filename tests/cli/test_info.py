"""`limes info`: facts about models and rows."""

import json

import pytest

from tests.cli.commands import error_of, output_of, run


def test_models_and_rows_are_described(folder, capsys):
    fast = json.loads(output_of(capsys, "info", folder / "fast.limes", "--json"))
    assert (fast["kind"], fast["n_classes"], fast["n_features"]) == ("fast classifier", 4, 3)
    slow = json.loads(output_of(capsys, "info", folder / "svm.model", "--json"))
    assert (slow["kernel"], slow["gamma"]) == ("rbf", 0.1)
    rows = json.loads(output_of(capsys, "info", folder / "test.csv", "--json"))
    assert (rows["n_rows"], rows["n_features"], rows["format"]) == (100, 3, "csv")
    assert sum(rows["rows_of_each_class"].values()) == 100
    assert "n support vectors" in output_of(capsys, "info", folder / "svm.model")


def test_unknown_facts_are_omitted(folder, tmp_path, capsys):
    words = ("export", folder / "fast.limes", "--to", "libagf", "-o", tmp_path / "fast.agf")
    run(*words)
    assert "agreement" not in output_of(capsys, "info", tmp_path / "fast.agf")
    assert "agreement" in output_of(capsys, "info", folder / "fast.limes")
    (tmp_path / "head.csv").write_text("a,b,label\n")
    result = json.loads(output_of(capsys, "info", tmp_path / "head.csv", "--json"))
    assert (result["n_rows"], result["n_features"]) == (0, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"<!DOCTYPE a SYSTEM '{'b' * 100}'>\n<opencv_storage/>", "without a document type"),
        (f"<!--{'b' * 100}-->\n<opencv_storage/>", "expected an SVM of OpenCV"),
        ("<FeatureStatistics/>", "expected rows, found XML without a model of OpenCV"),
    ],
)
def test_xml_without_a_model_is_named(text, message, tmp_path, capsys):
    path = tmp_path / "a.xml"
    path.write_text(f"<?xml version='1.0'?>\n{text}\n")
    assert message in error_of(capsys, "info", path)
