"""Measurements of the fit: rows are measured once, and fits run in processes of their own."""

import argparse
from dataclasses import replace
from pathlib import Path

import pytest

from limes.research import fit
from limes.research.cases import Case, FitTask, Installation, fit_process
from limes.research.fit import Part, is_dropped, load_rows, main
from limes.research.fit_page import AFTER, BEFORE, FitRow, TrainerRow
from limes.research.problems import CURVED_KINDS, small_moons_problem
from limes.research.results import read_rows
from tests.research.test_fit_page import ROW


def fake_part(calls, *, failing=()):
    """Return a part of two cases and versions whose measurements are counted."""

    def plan(args):
        versions = (AFTER,) if args.before is None else (BEFORE, AFTER)
        return [
            (case, version, seed)
            for case in ("heart", "sat")
            for seed in args.seeds
            for version in versions
        ]

    def measure(args, keys):
        calls.append(keys)
        if keys[0][0] in failing:
            raise RuntimeError("no fit")
        return [replace(ROW, case=case, version=version, seed=seed) for case, version, seed in keys]

    return Part("time.csv", FitRow, plan, measure, fit._fit_key, lambda key: (key[0], key[2]))


@pytest.fixture
def calls(monkeypatch):
    calls = []
    monkeypatch.setitem(fit.PARTS, "time", fake_part(calls))
    return calls


def words(tmp_path, *more):
    return ["--only", "time", "-o", str(tmp_path), "--seeds", "20", *more]


def test_what_is_measured_is_not_measured_again(calls, tmp_path):
    main(words(tmp_path, "--cases", "sat"))
    main(words(tmp_path))
    main(words(tmp_path))
    assert calls == [[("sat", AFTER, 20)], [("heart", AFTER, 20)]]
    assert "| sat | 1 |" in (tmp_path / "fit.md").read_text()


def test_both_versions_of_a_case_are_measured_in_one_go(calls, tmp_path):
    main(words(tmp_path, "--before", "old", "--cases", "sat"))
    assert calls == [[("sat", BEFORE, 20), ("sat", AFTER, 20)]]


def test_only_what_is_chosen_is_measured_anew(calls, tmp_path):
    main(words(tmp_path, "--before", "old"))
    main(words(tmp_path, "--before", "old", "--cases", "sat", "--anew", "after"))
    assert calls[2:] == [[("sat", AFTER, 20)]]
    # Without the version before, its rows are kept.
    main(words(tmp_path, "--anew"))
    assert calls[3:] == [[("heart", AFTER, 20)], [("sat", AFTER, 20)]]
    assert len(read_rows(tmp_path / "fit" / "time.csv", FitRow)) == 4


def test_drawing_measures_nothing(calls, tmp_path):
    main(words(tmp_path, "--draw"))
    assert not calls


def test_a_failure_is_told_at_the_end_and_other_cases_are_measured(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setitem(fit.PARTS, "time", fake_part(calls, failing=["heart"]))
    with pytest.raises(SystemExit, match=r"failed, .*: time heart after 20 \(no fit\)"):
        main(words(tmp_path))
    assert [row.case for row in read_rows(tmp_path / "fit" / "time.csv", FitRow)] == ["sat"]


def test_the_version_before_must_be_given_to_be_measured_anew(tmp_path):
    with pytest.raises(SystemExit, match="--anew before needs --before"):
        main(words(tmp_path, "--anew", "before"))


def test_the_trainer_is_measured_anew_with_both_versions_alone():
    part, row = fit.PARTS["trainer"], TrainerRow("sat", "avx2", 1.0, 0.4)
    for before, expected in ((None, False), (Path("old"), True)):
        args = argparse.Namespace(cases=[], before=before, anew="after", seeds=[20])
        assert is_dropped(args, part, row) is expected


def test_constants_need_the_list_of_those_in_use(tmp_path):
    with pytest.raises(SystemExit, match="needs the rows of the part 'used'"):
        main(["--only", "constants", "-o", str(tmp_path)])


@pytest.mark.parametrize(
    ("name", "n_given", "n_features", "n_classes"),
    [
        ("moons600", 600, 2, 2),
        ("quantiles", 5000, 10, 3),
        ("classes10", 9000, 30, 10),
        ("rows16000", 16_000, 10, 2),
        ("spheres8", 5000, 8, 3),
    ],
)
def test_a_problem_has_the_sizes_of_its_name(name, n_given, n_features, n_classes):
    problem, given = load_rows(name, 3)
    assert given.shape == (n_given, n_features)
    assert problem.sizes["n_classes"] == n_classes
    assert problem.name == name


@pytest.mark.parametrize("kind", CURVED_KINDS)
def test_a_curved_problem_depends_on_its_seed_alone(kind):
    first, again, other = (load_rows(f"{kind}8", seed)[0] for seed in (0, 0, 1))
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert first.sizes["n_test"] == 20_000


def test_a_clone_is_run_by_its_own_python(tmp_path):
    python = tmp_path / ".venv" / "bin" / "python"
    assert "PYTHONPATH" in Installation(tmp_path).variables
    python.parent.mkdir(parents=True)
    python.touch()
    version = Installation(tmp_path, environment={"LIMES_SIMD": "avx2"}, n_threads=2)
    assert version.python == python
    assert "PYTHONPATH" not in version.variables
    assert version.variables["LIMES_SIMD"] == "avx2"
    assert version.variables["OMP_NUM_THREADS"] == "2"


def test_a_process_reports_fits_constants_and_times(tmp_path):
    case = Case(small_moons_problem(0), tmp_path)
    options = {**fit.OPTIONS, "random_state": 0}
    task = FitTask(case.model, case.problem.X_train, case.problem.X_test, options)
    changes = [("TrainConfig", "search_samples", 20_000), ("TrainConfig", "final_samples", 20_000)]
    version = Installation(changes=changes, is_recording=True)
    with fit_process(version, [task], batch=case.batch(float)) as process:
        (result,) = process.results
        microseconds, _ = process.run()
    assert result.labels.shape == case.labels.shape
    assert not result.error
    assert result.fit_seconds > 0
    assert microseconds > 0
    assert ("TrainConfig", "search_samples") in result.used
    assert ("SchemesConfig", "node_points") not in result.used
