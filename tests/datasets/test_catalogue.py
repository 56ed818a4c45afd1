"""Facts about the datasets are those of the paper, but for its misprints."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest

from limes.datasets import load, parameters
from limes.datasets.catalogue import NAMES, find_entry
from limes.datasets.download import ORIGINS

PAPER = Path(os.environ.get("LIMES_DATA", "")).parent / "paper"
HAS_TABLES = (PAPER / "table1_datasets.csv").is_file()
TABLES = pytest.mark.skipif(not HAS_TABLES, reason="the paper's tables are not available")
KINDS = {"cat": "categorical"}
# Misprints of table 1: classes of splice and seismic, test rows of usps, rows of humidity.
MISPRINTS = {("splice", "classes"), ("seismic", "classes"), ("usps", "test"), ("humidity", "train")}


def test_the_papers_seventeen_have_an_origin_and_settings_each():
    assert len(NAMES) == 17
    assert list(ORIGINS) == list(NAMES)
    assert all(parameters(name).gamma > 0 for name in NAMES)


def test_an_unknown_name_gets_a_suggestion_or_the_list():
    with pytest.raises(ValueError, match=r"'satt'.*did you mean 'sat'"):
        load("satt")
    with pytest.raises(ValueError, match="there are heart, shuttle"):
        parameters("iris")


def test_mnist_keeps_665_pixels():
    columns = find_entry("mnist").columns
    assert len(columns) == len(np.unique(columns)) == 665
    assert columns.max() < 784


@pytest.mark.parametrize(
    ("name", "field", "printed", "corrected"),
    [
        ("letter", "C", 1.0, 50.0),
        ("splice", "gamma", 0.00167, 0.0167),
        ("phishing", "gamma", 0.00147, 0.0147),
    ],
)
def test_misprints_in_table_2_are_corrected_and_recorded(name, field, printed, corrected):
    assert getattr(parameters(name), field) == corrected
    assert parameters(name).printed == {field: printed}


def test_nothing_else_in_table_2_is_corrected():
    changed = [name for name in NAMES if parameters(name).printed]
    assert changed == ["splice", "letter", "phishing"]


def table(name):
    """Return the rows of one of the paper's tables."""
    with open(PAPER / name) as file:
        return list(csv.DictReader(file))


@TABLES
def test_shapes_are_those_of_table_1_but_for_its_misprints():
    differences = set()
    for row in table("table1_datasets.csv"):
        entry = find_entry(row["dataset"])
        ours = {
            "features": len(entry.columns),
            "type": entry.kind,
            "classes": entry.n_classes,
            "train": entry.n_train,
            "test": entry.n_test or "-",
        }
        theirs = row | {"type": KINDS.get(row["type"], row["type"])}
        differences |= {
            (entry.name, key) for key, value in ours.items() if str(value) != theirs[key]
        }
    assert differences == MISPRINTS


@TABLES
def test_settings_are_those_of_table_2_but_for_its_misprints():
    rows = table("table2_parameters.csv")
    assert [row["dataset"] for row in rows] == list(NAMES)
    for row in rows:
        ours = parameters(row["dataset"])
        used = {"gamma": ours.gamma, "C": ours.C, "linear_type": ours.linear_type}
        assert ours.n_trials == int(row["trials"])
        assert ours.has_single_trials == (row["some_single_trial"] == "yes")
        assert ours.test_fraction == float(row["test_fraction"])
        assert ours.n_borders == int(row["n_borders_per_pair"])
        assert used | ours.printed == {
            "gamma": float(row["svm_gamma"]),
            "C": float(row["svm_C"]),
            "linear_type": int(row["linear_type"]),
        }
