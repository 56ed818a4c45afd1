"""Plans are run, interrupted and gone on with."""

import pytest

from limes.research.paper import run as running
from limes.research.paper.methods import load_case
from limes.research.paper.plan import EXPERIMENTS, Step, make_plan, n_trials_of
from limes.research.paper.printed import DATASETS, find_printed, printed
from limes.research.paper.rows import Candidate, read_rows
from limes.research.paper.run import pending_steps, run_plan, run_trial

LINEAR = [Candidate("results", "sample_classes", "linear", None, seed, seed) for seed in range(3)]


CURVED = ["svm", "svm-probability", "borders", "true-borders", "agf", "agf-borders"]


def step(trials):
    return Step("test", lambda rows: trials, 1)


def all_trials(steps):
    return {trial for one in steps for trial in one.wanted([])}


@pytest.fixture
def ran(monkeypatch):
    """Return the trials that were run, in order."""
    trials = []

    def count(case, trial):
        trials.append(trial)
        return run_trial(case, trial)

    monkeypatch.setattr(running, "run_trial", count)
    return trials


def test_a_run_goes_on_where_it_stopped(tmp_path, ran):
    path = tmp_path / "rows.csv"
    run_plan([step(LINEAR[:2])], path, say=lambda line: None)
    path.write_bytes(path.read_bytes()[:-9])
    run_plan([step(LINEAR)], path, say=lambda line: None)
    assert ran == [LINEAR[0], LINEAR[1], LINEAR[1], LINEAR[2]]
    assert [row.trial for row in read_rows(path)] == LINEAR


def test_what_is_there_is_run_again_only_when_told_to(tmp_path, ran):
    path = tmp_path / "rows.csv"
    for is_again in (False, False, True):
        run_plan([step(LINEAR[:1])], path, is_again=is_again, say=lambda line: None)
    assert len(ran) == 2


def test_progress_adds_up_to_the_seconds_of_all_steps(tmp_path):
    told = []
    steps = [Step("three", lambda rows: LINEAR, 10), Step("none", lambda rows: [], 5)]
    run_plan(steps, tmp_path / "rows.csv", say=lambda line: None, advance=told.append)
    assert told == [3, 3, 4, 0, 5]


def test_steps_that_are_done_are_left_out(tmp_path):
    path = tmp_path / "rows.csv"
    run_plan([step(LINEAR[:1])], path, say=lambda line: None)
    done, half, unknown = step(LINEAR[:1]), step(LINEAR[:2]), step([])
    assert pending_steps([done, half, unknown], path) == [half, unknown]


def test_a_step_that_fails_does_not_stop_the_others(tmp_path):
    lost = LINEAR[0]._replace(dataset="nowhere")
    told = []
    failed = run_plan([step([lost]), step(LINEAR[:1])], tmp_path / "rows.csv", say=told.append)
    assert failed == ["test"]
    assert "nowhere" in told[0]
    assert [row.trial for row in read_rows(tmp_path / "rows.csv")] == LINEAR[:1]


def test_a_row_that_cannot_be_kept_ends_the_run(tmp_path, ran, monkeypatch):
    def fill(path, row):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(running, "append_row", fill)
    with pytest.raises(OSError, match="No space left"):
        run_plan([step(LINEAR[:2]), step(LINEAR[2:])], tmp_path / "rows.csv", say=print)
    assert ran == LINEAR[:1]


def test_the_cost_of_a_trial_is_more_than_that_of_its_fit(tmp_path):
    run_plan([step(LINEAR[:1])], tmp_path / "rows.csv", say=lambda line: None)
    (row,) = read_rows(tmp_path / "rows.csv")
    assert row.trial_seconds > row.train_seconds


def test_a_trial_gives_the_same_skill_again():
    trial = Candidate("borders", "sample_classes", "borders", 20.0, 3, 3)
    first, second = (run_trial(load_case("sample_classes", split=3), trial) for _ in range(2))
    assert first.uncertainty_coefficient == second.uncertainty_coefficient
    assert first.n_borders == 20


@pytest.mark.parametrize(
    "method", ["svm", "svm-probability", "borders", "true-borders", "agf", "agf-borders"]
)
def test_all_methods_beat_a_linear_classifier_on_the_sample_classes(method):
    case = load_case("sample_classes", n_train=200)
    trial = Candidate("results", "sample_classes", method, None, 0, 0)
    assert run_trial(case, trial).uncertainty_coefficient > 0.4
    linear = run_trial(case, trial._replace(method="linear"))
    assert linear.uncertainty_coefficient < 0.3


def test_a_machine_on_fewer_rows_has_fewer_support_vectors():
    case = load_case("sample_classes")
    trials = [
        Candidate("results", "sample_classes", "svm", None, 0, 0),
        Candidate("subsampled", "sample_classes", "subsampled", 0.25, 0, 0),
    ]
    whole, fewer = (run_trial(case, trial) for trial in trials)
    assert fewer.n_train == pytest.approx(250, abs=1)
    assert fewer.n_support < whole.n_support


def test_a_quick_plan_is_a_part_of_the_whole_one():
    assert all_trials(make_plan(is_quick=True)) < all_trials(make_plan())


def test_the_whole_plan_has_all_datasets_and_methods():
    trials = all_trials(make_plan())
    assert {trial.dataset for trial in trials} == {*DATASETS, "sample_classes"}
    assert {trial.experiment for trial in trials} == {*EXPERIMENTS} - {"subsampled"}


@pytest.mark.parametrize(
    ("dataset", "method", "n_trials"),
    [("heart", "svm", 10), ("sat", "svm", 1), ("sat", "borders", 10), ("mnist", "subsampled", 1)],
)
def test_there_are_as_many_trials_as_in_the_paper(dataset, method, n_trials):
    assert n_trials_of(dataset, method) == n_trials


def test_plans_are_narrowed_by_names():
    trials = all_trials(make_plan(datasets=["sat"], methods=["svm"], experiments=["results"]))
    assert trials == {Candidate("results", "sat", "svm", None, 0, 0)}


@pytest.mark.parametrize(
    ("methods", "wanted"),
    [
        (["borders", "subsampled"], {"borders", "svm-probability"}),
        (["subsampled"], {"borders", "limes", "svm-probability"}),
    ],
)
def test_sub_sampled_machines_bring_what_they_need(methods, wanted):
    trials = all_trials(make_plan(datasets=["splice"], methods=methods))
    assert {trial.method for trial in trials} == wanted


def test_unknown_names_are_refused_with_those_there_are():
    with pytest.raises(ValueError, match=r"dataset must be one of heart.*got 'stat'"):
        make_plan(datasets=["stat"])
    with pytest.raises(ValueError, match=r"method must be one of linear.*got 'svc'"):
        make_plan(methods=["svc"])


def test_all_six_tables_of_the_paper_are_there():
    sizes = {table: len(printed(table)) for table in TABLES}
    assert sizes == TABLES
    assert find_printed("sizes", dataset="sample_classes") == {}


TABLES = {
    "datasets": 17,
    "parameters": 17,
    "results": 17 * 3 * 4,
    "sizes": 17,
    "subsampled": 14,
    "verdicts": 17,
}
