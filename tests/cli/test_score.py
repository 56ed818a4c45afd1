"""`limes score`: scores as text and as JSON."""

import json

import numpy as np
from sklearn.metrics import roc_auc_score

import limes
from limes.files import read_rows
from tests.cli.commands import output_of


def test_scores_are_printed_as_text_and_as_json(folder, capsys):
    words = ("score", folder / "fast.limes", folder / "test.csv", "--source", folder / "svm.model")
    text = output_of(capsys, *words)
    assert "uncertainty coefficient" in text
    assert "times as fast." in text
    result = json.loads(output_of(capsys, *words, "--json"))
    X, y, _ = read_rows(folder / "test.csv")
    fast = limes.load(folder / "fast.limes")
    assert result["model"]["accuracy"] == np.mean(fast.predict(X) == y)
    assert np.sum(result["model"]["confusion"]) == len(y)
    expected = roc_auc_score(y, fast.predict_proba(X), multi_class="ovr", average="macro")
    assert abs(result["model"]["roc_area"] - expected) < 0.001
    assert f"{result['model']['roc_area']:.4f}" in text
    assert result["classes"] == [0, 1, 2, 3]


def test_a_model_alone_is_scored_without_agreement(folder, capsys):
    result = json.loads(
        output_of(capsys, "score", folder / "svm.model", folder / "test.csv", "--json")
    )
    assert result["agreement"] is None
    assert "source" not in result
