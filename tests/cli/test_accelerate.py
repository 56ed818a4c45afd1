"""`limes accelerate`: options become parameters of the fit."""

import json
import warnings

import pytest
from numpy.testing import assert_array_equal

import limes
from limes.classifier import BordersClassifier
from limes.cli.accelerate import LIMIT_OPTIONS, MODEL_OPTIONS, parameters
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


def test_the_rows_that_earn_back_the_fit_are_printed(svm, tmp_path, capsys):
    words = ("accelerate", svm / "svm.model", svm / "rows.svm", "-o", tmp_path / "fast.limes")
    text = output_of(capsys, *words, *QUICK)
    assert [line for line in text.splitlines() if line.startswith("The fit took ")]
    assert "the source" in text
    result = json.loads(output_of(capsys, *words, *QUICK, "--json"))
    assert result["fit_seconds"] == limes.load(tmp_path / "fast.limes").fit_seconds_ > 0
    # The source is so small that a disturbed measurement can find it as fast.
    assert result["break_even_rows"] is None or result["break_even_rows"] > 0
    assert "exact_break_even_rows" in result
    assert "fit seconds" in output_of(capsys, "info", tmp_path / "fast.limes")


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


def test_exact_sums_need_no_rows_and_have_the_labels_of_the_model(svm, moons, tmp_path, capsys):
    path = tmp_path / "exact.limes"
    text = output_of(capsys, "accelerate", svm / "svm.model", "--scheme", "exact", "-o", path)
    fast, source = limes.load(path), limes.read_libsvm_model(svm / "svm.model")
    assert_array_equal(fast.predict(moons[0]), source.predict(moons[0]))
    lines = dict(line.split("  ", 1) for line in text.splitlines())
    assert lines["scheme"].strip() == "exact"
    assert "those of the source" in lines["agreement"]
    n_vectors = len(source.svm.vectors)
    expected = f"yes, {n_vectors} vectors of the exact sums"
    assert lines["holds training rows"].strip() == expected


def test_other_schemes_need_rows(svm, tmp_path, capsys):
    words = ("accelerate", svm / "svm.model", "-o", tmp_path / "fast.limes")
    assert "ROWS are needed" in error_of(capsys, *words)
    assert "ROWS are needed" in error_of(capsys, *words, "--scheme", "shared")
    assert not (tmp_path / "fast.limes").exists()


def test_exact_sums_of_rows_have_probabilities(svm, tmp_path, capsys):
    words = ("accelerate", svm / "svm.model", "--scheme", "exact", "-o", tmp_path / "fast.limes")
    run(*words)
    proba = ("predict", tmp_path / "fast.limes", svm / "rows.svm", "-o", tmp_path / "o", "--proba")
    message = error_of(capsys, *proba)
    assert "has no probabilities: accelerate its source with rows" in message
    run(*words, svm / "rows.svm")
    run(*proba)


def test_the_rows_may_follow_options(svm, tmp_path, capsys):
    words = ("accelerate", svm / "svm.model", *QUICK, svm / "rows.svm")
    run(*words, "-o", tmp_path / "fast.limes")
    assert limes.load(tmp_path / "fast.limes").n_borders_ == 20
    words = (svm / "svm.model", svm / "rows.svm", "surplus", "-o", tmp_path / "other.limes")
    assert "rows.svm: expected the first raster of a stack, found rows" in error_of(
        capsys, "accelerate", *words
    )


@pytest.mark.parametrize(
    ("words", "expected"), [((), None), (("auto",), "auto"), (("yes",), True), (("no",), False)]
)
def test_fallback_is_auto_yes_or_no(words, expected):
    flags = ("--fallback", *words) if words else ()
    args = make_parser().parse_args(["accelerate", "m", "r", "-o", "o", *flags])
    assert parameters(args).get("fallback") is expected


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), "shared"),
        (("--scheme", "auto"), "shared"),
        (("--no-refine",), "pairwise"),
        (("--threshold", "0.5"), "pairwise"),
        (("--scheme", "tree"), "tree"),
    ],
)
def test_a_model_without_training_rows_has_neither_exact_sums_nor_fallback(flags, expected):
    words = ["accelerate", "m", "r", "-o", "o", "--no-training-rows", *flags]
    given = parameters(make_parser().parse_args(words))
    assert (given["scheme"], given["fallback"]) == (expected, False)


def test_exact_sums_without_training_rows_are_an_error(svm, tmp_path, capsys):
    words = ("accelerate", svm / "svm.model", svm / "rows.svm", "-o", tmp_path / "fast.limes")
    for flags in (("--scheme", "exact"), ("--fallback", "yes")):
        message = error_of(capsys, *words, "--no-training-rows", *flags)
        assert "--no-training-rows excludes" in message


def test_fallback_is_described_in_text_and_json(svm, tmp_path, capsys, quick_fit):
    path = tmp_path / "fast.limes"
    words = ("accelerate", svm / "svm.model", svm / "rows.svm", "-o", path, "--scheme", "shared")
    text = output_of(capsys, *words, "--fallback", "yes")
    fast = limes.load(path)
    assert f"of {fast.model_.info.agreement_rows}" in text
    assert "of rows between and around those" in text
    assert "coverage agreement  fallback share" in text
    facts = json.loads(output_of(capsys, "info", path, "--json"))
    for name in ("agreement", "coverage_agreement", "fallback_margin", "fallback_share"):
        assert facts[name] == getattr(fast, f"{name}_")
    assert facts["n_training_rows"] == len(fast.scheme_.exact.sums.vectors)
    # Without fallback the same fit holds none.
    run(*words, "--fallback", "no")
    assert "holds training rows  no" in output_of(capsys, "info", path)


def test_a_warning_on_quality_is_one_line_and_stands_in_the_file(svm, moons, tmp_path, capsys):
    path, X = tmp_path / "fast.limes", moons[0]
    with create_rows(tmp_path / "far.svm") as writer:
        writer.write(1000 * X, moons[1])
    capsys.readouterr()
    with warnings.catch_warnings():
        warnings.simplefilter("default", limes.QualityWarning)
        run("accelerate", svm / "svm.model", tmp_path / "far.svm", "-o", path)
    error = capsys.readouterr().err
    assert error.startswith("limes: warning: the rows given lie beyond the support vectors")
    assert error.count("\n") == 1
    sentence = error.removeprefix("limes: warning: ").strip()
    assert sentence in output_of(capsys, "info", path)
    assert json.loads(output_of(capsys, "info", path, "--json"))["warnings"] == [sentence]


def test_labels_that_miss_a_class_are_ignored(folder, tmp_path):
    lines = (folder / "train.svm").read_text().splitlines()
    rows = tmp_path / "some.svm"
    rows.write_text("\n".join(line for line in lines if not line.startswith("3 ")) + "\n")
    run("accelerate", folder / "svm.model", rows, "-o", tmp_path / "fast.limes", *QUICK)


def test_the_file_has_the_names_of_the_columns_and_the_parameters(moons, tmp_path):
    with create_rows(tmp_path / "rows.csv", names=["a", "b"]) as writer:
        writer.write(*moons)
    run("train", tmp_path / "rows.csv", "-o", tmp_path / "svm.model", "-q")
    words = (tmp_path / "svm.model", tmp_path / "rows.csv", "-o", tmp_path / "fast.limes", *QUICK)
    run("accelerate", *words)
    fast = limes.load(tmp_path / "fast.limes")
    assert fast.feature_names_in_.tolist() == ["a", "b"]
    assert fast.get_params()["n_borders"] == 20
