"""`limes accelerate`: options become parameters of the fit."""

import json

import pytest

import limes
from limes.classifier import BordersClassifier
from limes.cli.accelerate import LIMIT_OPTIONS, MODEL_OPTIONS
from limes.cli.main import make_parser
from limes.files import create_rows
from tests.cli.commands import QUICK, error_of, output_of, run

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def svm(tmp_path_factory, moons):
    """Return a folder with rows of two classes and an SVM trained on them."""
    path = tmp_path_factory.mktemp("svm")
    with create_rows(path / "rows.svm") as writer:
        writer.write(*moons)
    run("train", "-g", "2", path / "rows.svm", "-o", path / "svm.model", "-q")
    return path


def test_a_limit_of_the_cost_is_observed_and_the_candidates_are_printed(svm, tmp_path, capsys):
    words = ("accelerate", svm / "svm.model", svm / "rows.svm", "-o", tmp_path / "fast.limes")
    text = output_of(capsys, *words, "--max-cost", "12")
    assert limes.load(tmp_path / "fast.limes").cost_ <= 12
    assert "skill loss" in text
    assert text.count("selected") == 1


def test_a_limit_that_no_model_meets_is_an_error(svm, tmp_path, capsys):
    words = ("accelerate", svm / "svm.model", svm / "rows.svm", "-o", tmp_path / "fast.limes")
    assert "max_cost=1" in error_of(capsys, *words, "--max-cost", "1")


def test_each_option_sets_a_parameter_of_the_classifier():
    parameters = BordersClassifier().get_params()
    assert {*MODEL_OPTIONS, *LIMIT_OPTIONS} <= set(parameters)
    args = make_parser().parse_args(["accelerate", "m", "r", "-o", "o"])
    assert all(getattr(args, name) is None for name in (*MODEL_OPTIONS, *LIMIT_OPTIONS))


def test_given_options_are_used(svm, tmp_path, capsys):
    words = (svm / "svm.model", svm / "rows.svm", "-o", tmp_path / "fast.limes", *QUICK)
    result = json.loads(output_of(capsys, "accelerate", *words, "--json"))
    assert (result["scheme"], result["n_borders"]) == ("pairwise", 20)
    assert limes.load(tmp_path / "fast.limes").get_params()["n_borders"] == 20


def test_the_file_has_the_names_of_the_columns_and_the_parameters(moons, tmp_path):
    with create_rows(tmp_path / "rows.csv", names=["a", "b"]) as writer:
        writer.write(*moons)
    run("train", tmp_path / "rows.csv", "-o", tmp_path / "svm.model", "-q")
    words = (tmp_path / "svm.model", tmp_path / "rows.csv", "-o", tmp_path / "fast.limes", *QUICK)
    run("accelerate", *words)
    fast = limes.load(tmp_path / "fast.limes")
    assert fast.feature_names_in_.tolist() == ["a", "b"]
    assert fast.get_params()["n_borders"] == 20
