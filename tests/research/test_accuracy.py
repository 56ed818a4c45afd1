"""The accuracy page: rows are measured once, and the page is written from rows alone."""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from limes.libsvm.training import standardizer
from limes.research import accuracy
from limes.research.accuracy import AccuracyRow, errors_apart, main, make_page, plan
from limes.research.problems import Problem
from limes.research.results import read_rows

DOCS = Path(__file__).parents[2] / "docs"
ROW = AccuracyRow(
    dataset="sat",
    seed=0,
    n_train=4435,
    n_test=2000,
    n_features=36,
    n_classes=6,
    n_support=1446,
    source_cost=52056,
    source_uncertainty_coefficient=0.793,
    source_accuracy=0.912,
    source_brier_score=0.13,
    source_seconds=0.2,
    scheme="shared",
    n_borders=64,
    blend=7,
    cost=4000.0,
    uncertainty_coefficient=0.79,
    accuracy=0.91,
    brier_score=0.131,
    agreement=0.97,
    agreement_estimated=0.975,
    agreement_error=0.003,
    fit_seconds=18.0,
)


def small_moons(seed):
    X, y = make_moons(300, noise=0.2, random_state=seed)
    return Problem("moons", X[:200], y[:200], X[200:], y[200:], C=10.0, gamma=1.0, seed=seed)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Return the folder of one measurement of a small problem."""
    folder = tmp_path_factory.mktemp("docs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(accuracy.FURTHER_PROBLEMS, "moons", small_moons)
        patch.setitem(accuracy.MORE_SEEDS, "moons", range(1))
        main(["moons", "-o", str(folder)])
    accuracy._trained.cache_clear()
    return folder


def test_a_row_compares_the_default_settings_with_the_svm(measured):
    (row,) = read_rows(measured / "accuracy" / "rows.csv", AccuracyRow)
    problem = small_moons(0)
    svm = make_pipeline(standardizer(), SVC(C=10.0, gamma=1.0))
    svm.fit(problem.X_train, problem.y_train)
    labels = svm.predict(problem.X_test)
    assert row.source_accuracy == np.mean(labels == problem.y_test)
    assert row.n_support == len(svm[-1].support_)
    assert row.source_cost == 2 * row.n_support
    assert row.agreement >= 0.95
    assert abs(row.accuracy - row.source_accuracy) <= 1 - row.agreement


def test_what_is_measured_is_not_measured_again(measured, monkeypatch):
    monkeypatch.setitem(accuracy.MORE_SEEDS, "moons", range(1))
    monkeypatch.setattr(accuracy, "measure", None)
    main(["moons", "-o", str(measured)])
    assert "| moons | 1 | " in (measured / "accuracy.md").read_text()


def test_rows_are_measured_anew_on_demand(tmp_path, monkeypatch):
    calls = []

    def measure(name, seed):
        calls.append((name, seed))
        return replace(ROW, dataset=name, seed=seed)

    monkeypatch.setattr(accuracy, "measure", measure)
    main(["sat", "heart", "-o", str(tmp_path)])
    main(["sat", "-o", str(tmp_path)])
    assert len(calls) == 6
    main(["sat", "--anew", "-o", str(tmp_path)])
    assert calls[6:] == [("sat", seed) for seed in range(3)]
    assert len(read_rows(tmp_path / "accuracy" / "rows.csv", AccuracyRow)) == 6


def test_several_processes_measure_the_same_rows(tmp_path, monkeypatch):
    monkeypatch.setitem(accuracy.MORE_SEEDS, "wine", range(2))
    rows = {}
    for jobs in ("1", "2"):
        main(["wine", "--jobs", jobs, "-o", str(tmp_path / jobs)])
        found = read_rows(tmp_path / jobs / "accuracy" / "rows.csv", AccuracyRow)
        without_times = [replace(row, source_seconds=0.0, fit_seconds=0.0) for row in found]
        rows[jobs] = sorted(without_times, key=lambda row: row.seed)
    assert rows["1"] == rows["2"]


def test_the_page_of_this_repository_is_that_of_its_rows():
    rows = read_rows(DOCS / "accuracy" / "rows.csv", AccuracyRow)
    assert (DOCS / "accuracy.md").read_text() == make_page(rows)


def test_seeds_that_nothing_was_tuned_on_have_a_table_of_their_own():
    page = make_page([ROW, replace(ROW, seed=6, n_borders=128), replace(ROW, seed=99)])
    tuned, fresh = page.split("## Other seeds")
    assert "| sat | 1 | 0.793 | 0.790 | -0.003 | 64 | 52056 | 4000 | 13.0 | 0.9750 ± " in tuned
    assert "| sat | 1 | 0.793 | 0.790 | -0.003 | 128 | " in fresh


def test_a_line_is_the_mean_of_its_seeds():
    page = make_page([ROW, replace(ROW, seed=1, cost=5000.0, n_borders=128)])
    assert "| sat | 2 | 0.793 | 0.790 | -0.003 | 64 to 128 | 52056 | 4500 | 11.6 |" in page


@pytest.mark.parametrize(
    ("change", "goal"),
    [
        ({"uncertainty_coefficient": 0.78}, "U.C. at most 0.01 below the SVM's"),
        ({"cost": 6000.0}, "Cost at most a tenth of the SVM's"),
        ({"brier_score": 0.136}, "Brier score at most 0.005 above the SVM's"),
        (
            {"agreement_estimated": 0.99},
            "Estimated agreement within two standard errors of the measured one",
        ),
        ({"fit_seconds": 31.0}, r"At most 30 s (120 s on mnist and humidity)"),
    ],
)
def test_a_goal_that_is_missed_names_the_dataset(change, goal):
    assert f"- {goal}: 1 of 1." in make_page([ROW])
    assert f"- {goal}: 0 of 1; not sat." in make_page([replace(ROW, **change)])


def test_long_datasets_may_take_longer():
    assert "humidity): 1 of 1." in make_page([replace(ROW, dataset="mnist", fit_seconds=119.0)])
    assert "humidity): 0 of 1; not mnist." in make_page(
        [replace(ROW, dataset="mnist", fit_seconds=121.0)]
    )


def test_the_training_time_counts_where_it_is_long():
    line = "- Faster than the SVM's training, where that takes over 30 s"
    assert line not in make_page([ROW])
    assert f"{line}: 1 of 1." in make_page([replace(ROW, source_seconds=40.0)])
    assert f"{line}: 0 of 1." in make_page([replace(ROW, source_seconds=40.0, fit_seconds=50.0)])


def test_the_error_of_the_difference_has_both_parts():
    rows = [replace(ROW, agreement=0.5, agreement_estimated=0.6, agreement_error=0.03, n_test=156)]
    assert errors_apart(rows) == pytest.approx(0.1 / np.hypot(0.03, np.sqrt(0.25 / 156)))


def test_full_agreement_has_an_error_too():
    rows = [replace(ROW, agreement=1.0, agreement_estimated=1.0, agreement_error=0.0)]
    assert errors_apart(rows) == 0.0


def options(**given):
    defaults = {"datasets": [], "all": False, "guard": False, "mixed": False, "fresh": False}
    return argparse.Namespace(**(defaults | given))


def test_by_default_all_datasets_of_the_paper_are_planned():
    names = {name for name, _ in plan(options())}
    assert len(names) == 17
    assert plan(options(datasets=["sat"])) == [("sat", 0), ("sat", 1), ("sat", 2)]


def test_options_add_seeds_splits_and_problems():
    assert plan(options(datasets=["sat"], fresh=True)) == [("sat", 6), ("sat", 7), ("sat", 8)]
    assert plan(options(datasets=["sat", "heart"], mixed=True)) == [
        ("sat-mixed", seed) for seed in range(3)
    ]
    assert len(plan(options(datasets=["wine"]))) == 24
    assert {name for name, _ in plan(options(guard=True))} == set(accuracy.FURTHER_PROBLEMS)


def test_everything_on_the_page_is_planned_by_all():
    rows = read_rows(DOCS / "accuracy" / "rows.csv", AccuracyRow)
    planned = set(plan(options(all=True)))
    assert planned == {(row.dataset, row.seed) for row in rows}


def test_an_unknown_dataset_is_named():
    with pytest.raises(SystemExit, match=r"dataset must be one of .*, got 'stat'"):
        plan(options(datasets=["stat"]))
