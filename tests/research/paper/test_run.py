"""Plans are run, interrupted and continued."""

import pytest

from limes.research.paper import run as running
from limes.research.paper.plan import Step, Trial, TrialRow
from limes.research.paper.run import load_paper_problem, pending_steps, run_plan, run_trial
from limes.research.results import read_rows

LINEAR = [Trial("results", "sample_classes", "linear", None, seed, seed) for seed in range(3)]


def step(trials):
    return Step("test", lambda rows: trials, 1)


@pytest.fixture
def ran(monkeypatch):
    """Return the trials that were run, in order."""
    trials = []

    def count(problem, trial):
        trials.append(trial)
        return run_trial(problem, trial)

    monkeypatch.setattr(running, "run_trial", count)
    return trials


def test_a_run_continues_where_it_stopped(tmp_path, ran):
    path = tmp_path / "rows.csv"
    run_plan([step(LINEAR[:2])], path, log=lambda line: None)
    path.write_bytes(path.read_bytes()[:-9])
    run_plan([step(LINEAR)], path, log=lambda line: None)
    assert ran == [LINEAR[0], LINEAR[1], LINEAR[1], LINEAR[2]]
    assert [row.trial for row in read_rows(path, TrialRow)] == LINEAR


def test_existing_rows_are_measured_again_only_on_request(tmp_path, ran):
    path = tmp_path / "rows.csv"
    for is_again in (False, False, True):
        run_plan([step(LINEAR[:1])], path, is_again=is_again, log=lambda line: None)
    assert len(ran) == 2


def test_progress_adds_up_to_the_seconds_of_all_steps(tmp_path):
    progress = []
    steps = [Step("three", lambda rows: LINEAR, 10), Step("none", lambda rows: [], 5)]
    run_plan(steps, tmp_path / "rows.csv", log=lambda line: None, advance=progress.append)
    assert progress == [3, 3, 4, 0, 5]


def test_steps_that_are_done_are_left_out(tmp_path):
    path = tmp_path / "rows.csv"
    run_plan([step(LINEAR[:1])], path, log=lambda line: None)
    done, half, unknown = step(LINEAR[:1]), step(LINEAR[:2]), step([])
    assert pending_steps([done, half, unknown], path) == [half, unknown]


def test_a_step_that_fails_does_not_stop_the_others(tmp_path):
    missing = LINEAR[0]._replace(dataset="nowhere")
    log = []
    failed = run_plan([step([missing]), step(LINEAR[:1])], tmp_path / "rows.csv", log=log.append)
    assert failed == ["test"]
    assert "nowhere" in log[0]
    assert [row.trial for row in read_rows(tmp_path / "rows.csv", TrialRow)] == LINEAR[:1]


def test_a_row_that_cannot_be_written_ends_the_run(tmp_path, ran, monkeypatch):
    def fail(path, rows):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(running, "append_rows", fail)
    with pytest.raises(OSError, match="No space left"):
        run_plan([step(LINEAR[:2]), step(LINEAR[2:])], tmp_path / "rows.csv", log=print)
    assert ran == LINEAR[:1]


def test_the_cost_of_a_trial_is_more_than_that_of_its_fit(tmp_path):
    run_plan([step(LINEAR[:1])], tmp_path / "rows.csv", log=lambda line: None)
    (row,) = read_rows(tmp_path / "rows.csv", TrialRow)
    assert row.trial_seconds > row.train_seconds


def test_a_repeated_trial_has_the_same_skill():
    trial = Trial("borders", "sample_classes", "borders", 20.0, 3, 3)
    first, second = (
        run_trial(load_paper_problem("sample_classes", split=3), trial) for _ in range(2)
    )
    assert first.uncertainty_coefficient == second.uncertainty_coefficient
    assert first.n_borders == 20


@pytest.mark.parametrize(
    "method", ["svm", "svm-probability", "borders", "true-borders", "agf", "agf-borders"]
)
def test_all_methods_beat_a_linear_classifier_on_the_sample_classes(method):
    problem = load_paper_problem("sample_classes", n_train=200)
    trial = Trial("results", "sample_classes", method, None, 0, 0)
    assert run_trial(problem, trial).uncertainty_coefficient > 0.4
    linear = run_trial(problem, trial._replace(method="linear"))
    assert linear.uncertainty_coefficient < 0.3


def test_an_svm_on_fewer_rows_has_fewer_support_vectors():
    problem = load_paper_problem("sample_classes")
    trials = [
        Trial("results", "sample_classes", "svm", None, 0, 0),
        Trial("subsampled", "sample_classes", "subsampled", 0.25, 0, 0),
    ]
    whole, fewer = (run_trial(problem, trial) for trial in trials)
    assert fewer.n_train == pytest.approx(250, abs=1)
    assert fewer.n_support < whole.n_support


def test_support_vectors_are_left_out_or_rows():
    problem = load_paper_problem("sample_classes")
    half, rescaled, rows, every = (
        run_trial(problem, Trial("vectors", "sample_classes", method, fraction, 0, 0))
        for method, fraction in (
            *(("kept-vectors", 0.5), ("rescaled-vectors", 0.5)),
            *(("fewer-rows", 0.5), ("kept-vectors", 1.0)),
        )
    )
    assert every.agreement == 1.0
    assert half.n_support == rescaled.n_support == pytest.approx(every.n_support / 2, abs=1)
    assert rows.n_train == pytest.approx(500, abs=1)
    assert rows.uncertainty_coefficient > half.uncertainty_coefficient + 0.05
