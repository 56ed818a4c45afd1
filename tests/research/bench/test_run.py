"""One row for each method and number of threads; what is measured is not measured again."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from limes.research.bench import Method, ModelCache, choose_methods, latest_runs
from tests.research.bench.conftest import NAMES


@dataclass(frozen=True)
class BrokenMethod(Method):
    """A method whose fit fails."""

    def fit(self, problem, rows, source):
        raise RuntimeError("no licence")


def test_a_run_writes_one_row_for_each_method_and_number_of_threads(outcome):
    measured = [(row.threads, row.method) for row in outcome.rows]
    methods = ["svc", "linear", "limes", "limes-predictor"]
    assert measured == [(n, name) for n in (1, 2) for name in methods]
    assert not outcome.failed


def test_skill_is_that_of_the_predictions(outcome, problem):
    source = choose_methods(["svc"])[0]
    rows = problem.train_rows(np.float64)
    labels = source.fit(problem, rows, None).predict(problem.test_rows(np.float64))
    row = outcome.rows[0]
    assert row.accuracy == np.mean(labels == problem.y_test)
    assert row.agreement == 1.0


def test_every_method_has_times_and_sizes(outcome):
    for row in outcome.rows:
        assert row.microseconds_single_row > 0
        assert row.model_bytes > 0
        assert (row.microseconds_per_row is None) == (row.method == "limes-predictor")


def test_the_training_of_the_source_counts_for_methods_that_start_from_it(outcome):
    by_method = {row.method: row for row in outcome.rows}
    assert by_method["limes"].source_seconds == by_method["svc"].fit_seconds
    assert by_method["linear"].source_seconds == 0


def test_a_second_run_measures_nothing_again(outcome, problem, benchmark_of):
    before = outcome.rows
    again = benchmark_of(problem, choose_methods(NAMES), outcome.folder)
    assert again.log == ["moons: all measured already."]
    assert outcome.rows == before


def test_a_method_that_was_not_measured_makes_a_new_run(problem, benchmark_of, tmp_path):
    benchmark_of(problem, choose_methods(["svc"]), tmp_path, threads=[1])
    outcome = benchmark_of(problem, choose_methods(["svc", "linear"]), tmp_path, threads=[1])
    assert [row.method for row in outcome.rows] == ["svc", "svc", "linear"]


def test_cached_models_are_not_trained_again(outcome, problem, monkeypatch):
    source = choose_methods(["svc"])[0]
    monkeypatch.setattr(type(source), "fit", BrokenMethod.fit)
    cached = ModelCache(outcome.folder / "models").trained(problem, source, None)
    assert len(cached.labels) == len(problem.y_test)
    with pytest.raises(RuntimeError, match="no licence"):
        ModelCache().trained(problem, source, None)


def test_other_parameters_are_another_model(outcome, problem, monkeypatch):
    source = choose_methods(["svc"])[0]
    monkeypatch.setattr(type(source), "fit", BrokenMethod.fit)
    with pytest.raises(RuntimeError, match="no licence"):
        ModelCache(outcome.folder / "models").trained(replace(problem, C=1.0), source, None)


def test_a_method_that_is_not_installed_is_skipped_and_named(problem, benchmark_of, tmp_path):
    methods = [*choose_methods(["linear"]), Method("magic", "no_such_package")]
    outcome = benchmark_of(problem, methods, tmp_path, threads=[1])
    assert outcome.failed == []
    assert outcome.log[0] == (
        "moons: magic is skipped: no_such_package is not installed: pip install 'limes[bench]'"
    )
    assert [row.method for row in outcome.rows] == ["linear"]


def test_a_method_that_fails_does_not_stop_the_others(problem, benchmark_of, tmp_path):
    methods = [BrokenMethod("broken"), *choose_methods(["linear"])]
    outcome = benchmark_of(problem, methods, tmp_path, threads=[1])
    assert outcome.failed == ["broken"]
    assert "moons: broken failed: RuntimeError: no licence" in outcome.log
    assert [row.method for row in outcome.rows] == ["linear"]


def test_only_the_last_run_counts(outcome):
    newer = [replace(row, run="later", accuracy=0.5) for row in outcome.rows if row.threads == 1]
    kept = latest_runs([*outcome.rows, *newer])
    assert sorted({(row.threads, row.run == "later") for row in kept}) == [(1, True), (2, False)]
