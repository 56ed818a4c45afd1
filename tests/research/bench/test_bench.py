"""The comparison with other methods: rows, tables and pictures from one tiny run."""

import argparse
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_moons

from limes._core import thread_count
from limes.cli.bench import add_parser
from limes.research.bench import PEERS, Effort, Peer, Problem, Store, choose_peers, load_problem
from limes.research.bench.report import markdown, summary
from limes.research.bench.results import append_rows, latest, read_rows
from limes.research.bench.run import run_benchmark
from limes.research.measure import limit_threads, n_threads_of

QUICK = Effort(n_turns=1, batch_rows=200, turn_seconds=0.0)
NAMES = ["svc", "linear", "limes"]


@dataclass(frozen=True)
class BrokenPeer(Peer):
    """One whose fit fails."""

    def fit(self, problem, rows, source):
        raise RuntimeError("no licence")


@pytest.fixture(scope="module")
def problem():
    X, y = make_moons(300, noise=0.2, random_state=0)
    return Problem("moons", X[:200], y[:200], X[200:], y[200:], C=10.0, gamma=1.0)


@pytest.fixture(scope="module")
def outcome(problem, tmp_path_factory):
    """One whole run with kept models, and what it said."""
    folder, said = tmp_path_factory.mktemp("bench"), []
    failed = compete(problem, choose_peers(NAMES), folder, said=said)
    return folder, said, failed


def compete(problem, peers, folder, *, said=None, threads=(1, 2), is_again=False):
    return run_benchmark(
        problem,
        peers,
        threads=threads,
        output=folder / "results.csv",
        store=Store(folder / "models"),
        effort=QUICK,
        is_again=is_again,
        say=(said if said is not None else []).append,
    )


def rows_of(outcome):
    return read_rows(outcome[0] / "results.csv")


def test_a_run_writes_one_row_for_each_method_and_number_of_threads(outcome):
    found = [(row.threads, row.method) for row in rows_of(outcome)]
    methods = ["svc", "linear", "limes", "limes-predictor"]
    assert found == [(n, name) for n in (1, 2) for name in methods]
    assert not outcome[2]


def test_skill_is_that_of_the_answers(outcome, problem):
    source = choose_peers(["svc"])[0]
    rows = problem.train_rows(np.float64)
    labels = source.fit(problem, rows, None).predict(problem.test_rows(np.float64))
    row = rows_of(outcome)[0]
    assert row.accuracy == np.mean(labels == problem.y_test)
    assert row.agreement == 1.0


def test_every_method_has_times_and_sizes(outcome):
    for row in rows_of(outcome):
        assert row.microseconds_one_row > 0
        assert row.model_bytes > 0
        assert (row.microseconds_a_row is None) == (row.method == "limes-predictor")


def test_a_method_that_starts_from_the_source_pays_for_it(outcome):
    found = {row.method: row for row in rows_of(outcome)}
    assert found["limes"].source_seconds == found["svc"].fit_seconds
    assert found["linear"].source_seconds == 0


def test_a_second_run_measures_nothing_again(outcome, problem):
    before, said = rows_of(outcome), []
    compete(problem, choose_peers(NAMES), outcome[0], said=said)
    assert said == ["moons: all there already."]
    assert rows_of(outcome) == before


def test_a_method_that_is_not_there_yet_makes_a_new_run(problem, tmp_path):
    compete(problem, choose_peers(["svc"]), tmp_path, threads=[1])
    compete(problem, choose_peers(["svc", "linear"]), tmp_path, threads=[1])
    rows = read_rows(tmp_path / "results.csv")
    assert [row.method for row in rows] == ["svc", "svc", "linear"]


def test_kept_models_are_not_trained_again(outcome, problem, monkeypatch):
    source = choose_peers(["svc"])[0]
    monkeypatch.setattr(type(source), "fit", BrokenPeer.fit)
    kept = Store(outcome[0] / "models").trained(problem, source, None)
    assert len(kept.labels) == len(problem.y_test)
    with pytest.raises(RuntimeError, match="no licence"):
        Store().trained(problem, source, None)


def test_other_parameters_are_another_model(outcome, problem, monkeypatch):
    source = choose_peers(["svc"])[0]
    monkeypatch.setattr(type(source), "fit", BrokenPeer.fit)
    with pytest.raises(RuntimeError, match="no licence"):
        Store(outcome[0] / "models").trained(replace(problem, C=1.0), source, None)


def test_a_method_that_is_not_installed_is_left_out_and_named(problem, tmp_path):
    said = []
    peers = [*choose_peers(["linear"]), Peer("magic", "no_such_package")]
    assert compete(problem, peers, tmp_path, said=said, threads=[1]) == []
    assert said[0] == (
        "moons: magic is left out: no_such_package is not installed: pip install 'limes[bench]'"
    )
    assert [row.method for row in read_rows(tmp_path / "results.csv")] == ["linear"]


def test_a_method_that_fails_does_not_stop_the_others(problem, tmp_path):
    said = []
    peers = [BrokenPeer("broken"), *choose_peers(["linear"])]
    assert compete(problem, peers, tmp_path, said=said, threads=[1]) == ["broken"]
    assert "moons: broken failed: RuntimeError: no licence" in said
    assert [row.method for row in read_rows(tmp_path / "results.csv")] == ["linear"]


def test_too_few_training_rows_for_a_method_are_an_objection(problem):
    small = replace(problem, X_train=problem.X_train[:99], y_train=problem.y_train[:99])
    assert "needs 100 training rows, there are 99" in choose_peers(["nystroem"])[0].objection(small)


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_every_installed_peer_learns_and_answers_one_row_as_many(peer, problem):
    if peer.objection(problem):
        pytest.skip(peer.objection(problem))
    store = Store()
    source = store.trained(problem, PEERS[0], None)
    own = store.trained(problem, peer, source.model)
    assert np.mean(own.labels == problem.y_test) > 0.8
    ask_one = peer.ask_one(own.model, 1)
    alone = [np.ravel(ask_one(row))[0] for row in peer.single_rows(peer.rows(problem)[:20])]
    assert alone == own.labels[:20].tolist()


@pytest.mark.parametrize("name", ["intelex", "onnxruntime"])
def test_other_engines_give_the_answers_of_the_source(name, problem):
    store = Store()
    source = store.trained(problem, PEERS[0], None)
    for peer in choose_peers([name]):
        if peer.objection(problem):
            pytest.skip(peer.objection(problem))
        labels = store.trained(problem, peer, source.model).labels
        assert np.mean(labels == source.labels) >= 0.99


def test_one_thread_holds_for_limes_too():
    with limit_threads(1):
        assert thread_count(-1) == 1


def test_threads_must_be_a_number_or_all():
    assert n_threads_of("all") >= 1
    with pytest.raises(ValueError, match="got '0'"):
        n_threads_of("0")


def test_an_unknown_method_is_named():
    with pytest.raises(ValueError, match="got 'perceptron'"):
        choose_peers(["perceptron"])


def test_rows_survive_their_file(outcome, tmp_path):
    rows = rows_of(outcome)
    append_rows(tmp_path / "a.csv", rows[:3])
    append_rows(tmp_path / "a.csv", rows[3:])
    assert read_rows(tmp_path / "a.csv") == rows


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("name,age\nAda,36\n")
    with pytest.raises(ValueError, match=r"got \['name', 'age'\]"):
        read_rows(path)


def test_a_damaged_line_is_shown(outcome, tmp_path):
    path = tmp_path / "cut.csv"
    text = (outcome[0] / "results.csv").read_text()
    path.write_text(text[:-60])
    with pytest.raises(ValueError, match="has a line that is not a result"):
        read_rows(path)


def test_only_the_last_run_counts(outcome):
    rows = rows_of(outcome)
    newer = [replace(row, run="later", accuracy=0.5) for row in rows if row.threads == 1]
    kept = latest([*rows, *newer])
    assert sorted({(row.threads, row.run == "later") for row in kept}) == [(1, True), (2, False)]


def test_the_table_has_a_line_for_each_method(outcome):
    sections = markdown(rows_of(outcome)).partition("training rows")[2]
    lines = [line for line in sections.splitlines() if line.startswith("|")]
    assert [line.split("|")[1].strip() for line in lines[2:]] == [
        *("svc", "linear", "limes", "limes-predictor")
    ]
    assert "µs a row, 2 threads" in lines[0]


def test_the_summary_names_the_quickest_that_is_as_good(outcome):
    skill, times = (
        {"svc": 0.9, "linear": 0.85, "limes": 0.899},
        {"svc": 50, "linear": 0.1, "limes": 2},
    )
    rows = [
        replace(
            row, uncertainty_coefficient=skill[row.method], microseconds_a_row=times[row.method]
        )
        for row in rows_of(outcome)
        if row.method in skill and row.threads == 1
    ]

    def told(rows):
        return [word.strip() for word in summary(rows).splitlines()[-1].split("|")[2:-1]]

    expected = ["0.9000", "0.8990", "2.00", "25.0", "-", "svc", "0.9000", "50.0", "25.0"]
    assert told(rows) == expected
    # The linear one is quicker than limes, and now as good.
    rows[1] = replace(rows[1], uncertainty_coefficient=0.8981)
    assert told(rows)[5:] == ["linear", "0.8981", "0.100", "0.0500"]
    assert told(rows[2:])[5:] == ["none", "-", "-", "-"]
    assert summary(rows[:2]) == ""


def test_the_table_tells_that_the_machine_was_busy(outcome):
    rows = [replace(row, cpu_share=0.5) for row in rows_of(outcome)]
    assert "The machine was busy: a one-thread batch had 50% to 50%" in markdown(rows)
    assert "busy" not in markdown([replace(row, cpu_share=1.0) for row in rows])


def test_the_picture_shows_time_and_skill_of_each_row(outcome):
    pytest.importorskip("matplotlib")
    from limes.research.bench.report import draw_dataset

    figure = draw_dataset(rows_of(outcome))
    for ax, n_threads in zip(figure.axes, (1, 2), strict=True):
        drawn = [tuple(line.get_xydata()[0]) for line in ax.lines]
        assert drawn == [
            (row.microseconds_a_row, row.uncertainty_coefficient)
            for row in rows_of(outcome)
            if row.threads == n_threads and row.microseconds_a_row is not None
        ]
        assert ax.get_xscale() == "log"


def test_a_method_far_below_the_others_is_named_at_the_foot(outcome):
    pytest.importorskip("matplotlib")
    from limes.research.bench.report import draw_dataset

    rows = [
        replace(row, uncertainty_coefficient=0.25 if row.method == "linear" else 0.9)
        for row in rows_of(outcome)
    ]
    ax = draw_dataset(rows).axes[0]
    assert [text.get_text() for text in ax.texts] == ["0.25"]
    assert 0.78 < ax.get_ylim()[0] < 0.9


def command(*words):
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    args = parser.parse_args(["bench", *map(str, words)])
    return args.run(args)


def test_the_command_measures_a_file_and_draws_it_again(problem, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    data, out = tmp_path / "mine.npz", tmp_path / "out"
    np.savez(data, X=problem.X_train, y=problem.y_train)
    words = ("--methods", "linear", "limes", "--threads", "1", "--turns", "1", "--rows", "200")
    assert command(data, "-o", out, *words) == 0
    for name in ("mine.png", "results.md"):
        (out / name).unlink()
    assert command("-o", out) == 0
    assert sorted(path.name for path in out.iterdir()) == ["mine.png", "results.csv", "results.md"]
    assert "120 training rows, 80 test rows, 2 features, 2 classes." in capsys.readouterr().out


def test_nothing_to_draw_is_said(tmp_path):
    with pytest.raises(ValueError, match="name a dataset to measure"):
        command("-o", tmp_path)


def test_a_wrong_name_is_told_before_anything_is_measured(problem, tmp_path):
    np.savez(tmp_path / "mine.npz", X=problem.X_train, y=problem.y_train)
    with pytest.raises(FileNotFoundError, match=r"There is no file '.*other\.npz'"):
        command(tmp_path / "mine.npz", tmp_path / "other.npz", "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_without_labels_is_refused(tmp_path):
    path = tmp_path / "rows.npz"
    np.savez(path, X=np.zeros((3, 2)))
    with pytest.raises(ValueError, match="must have labels to learn from"):
        load_problem(str(path))


def test_a_file_with_parts_is_not_split(problem, tmp_path):
    path = tmp_path / "parts.npz"
    names = ("X_train", "y_train", "X_test", "y_test")
    np.savez(path, **{name: getattr(problem, name) for name in names})
    found = load_problem(str(path), C=3.0)
    assert_array_equal(found.X_test, problem.X_test)
    assert_array_equal(found.y_train, problem.y_train)
    assert (found.name, found.C, found.gamma) == ("parts", 3.0, "scale")


def test_an_unknown_dataset_is_named():
    with pytest.raises(ValueError, match="'mnits'"):
        load_problem("mnits")


@pytest.mark.data
def test_a_dataset_comes_with_the_parameters_of_the_paper():
    problem = load_problem("sat", gamma=0.3)
    assert (problem.C, problem.gamma) == (50.0, 0.3)
    assert problem.sizes == {"n_train": 4435, "n_test": 2000, "n_features": 36, "n_classes": 6}
