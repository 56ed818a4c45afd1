"""The fit measured: time, skill, growth, curved borders, many classes, wide rows, constants.

Each measurement is one row of a file in ``docs/fit``; an interrupted run continues where it
stopped. ``docs/fit.md`` and the figures are written from the rows alone.

    python -m limes.research.fit --before OLD --jobs 2     # everything, with the version OLD
    python -m limes.research.fit --only time curved        # these parts, this version alone
    python -m limes.research.fit --only time --cases sat --seeds 20
    python -m limes.research.fit --only curved --anew after  # drop rows of this version first
    python -m limes.research.fit --draw                    # write the page, measure nothing

OLD is a clone of the repository (with a ``.venv``, or with the compiled module in its ``src``
folder) or the Python of another environment. The datasets come from LIMES_DATA; trained SVMs are
stored in the folder of ``--cache``.
"""

import argparse
import json
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache
from inspect import getsource
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from limes._core import simd_levels
from limes._typing import Array
from limes.datasets import list_datasets, parameters
from limes.fit import config
from limes.research.accuracy import limit_rows
from limes.research.cases import Case, FitResult, FitTask, Installation, fit_apart, fit_process
from limes.research.fit_constants import (
    CHANGES,
    Constant,
    ConstantRow,
    UsedRow,
    design_constants,
    idle_constants,
    read_constants,
)
from limes.research.fit_page import (
    AFTER,
    BEFORE,
    CURVED_FEATURES,
    GROWTH_CLASSES,
    GROWTH_ROWS,
    MAX_SMALL_SECONDS,
    SEEDS,
    FitRow,
    LevelRow,
    Rows,
    TrainerRow,
    make_page,
    save_figures,
)
from limes.research.problems import (
    CURVED_KINDS,
    FURTHER_PROBLEMS,
    Problem,
    classes_problem,
    clusters_problem,
    curved_problem,
    growth_problem,
    load_problem,
    quantiles_problem,
    slow_problem,
    small_moons_problem,
    wide_problem,
)
from limes.research.processor_time import limit_threads
from limes.research.results import append_rows, read_rows, write_rows
from limes.scores import uncertainty_coefficient

# Maps alone.
OPTIONS = {"scheme": "shared", "fallback": False, "n_jobs": 1}
# Turns of the versions while the time of a prediction is measured.
N_TURNS = 7
# More classes than these did not finish before.
MAX_CLASSES_BEFORE = 50
# Constants: few rows, wide, categories, many classes, curved. None is in another table with these
# seeds. Defaults are fitted with all seeds, whose differences are the noise.
CONSTANT_CASES = ("breast_cancer", "digits", "terrain", "twenty", "quantiles")
CONSTANT_SEEDS = (30, 31, 32, 33, 34)
# Problems for constants that none of these reaches: few rows, many classes, many rows, a slow
# source, gaps between the rows, several sizes that are equally good.
LIMIT_CASES = ("wine", "classes30", "rows60000", "slow400", "clusters", "codrna")
# Training rows of these cases at most, so that a constant takes seconds.
MAX_CONSTANT_ROWS = 3000
LEVEL_CASES = ("moons600", "segment", "sat", "splice", "ellipsoid8")
# `n_jobs`, and threads of the linear algebra.
LEVEL_THREADS = ((1, 1), (2, 1), (2, 2))
TRAINER_SCRIPT = Path("benchmarks/trainer.py")
# Turns of the trainers, the least of which counts.
TRAINER_TURNS = 5

Key = tuple[Any, ...]


class Part(NamedTuple):
    """A part of the page: what it measures, on what, and where the rows are."""

    file: str
    row_type: type[Any]
    # From the arguments to the keys of its rows, the first item of which is a case.
    plan: Callable[[argparse.Namespace], list[Key]]
    # From the arguments and the keys of a group to rows.
    measure: Callable[[argparse.Namespace, list[Key]], list[Any]]
    # From a row to its key.
    key: Callable[[Any], Key]
    # From a key to what it has in common with the others that are measured in one go.
    group: Callable[[Key], Hashable] = lambda key: key


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, then write the page and the figures."""
    args = _parser().parse_args(arguments)
    folder, failed = args.output / "fit", []
    if args.anew == BEFORE and args.before is None:
        raise SystemExit("--anew before needs --before, got none.")
    names = [] if args.draw else [name for name in PARTS if name in (args.only or PARTS)]
    for part in (PARTS[name] for name in names if args.anew):
        path = folder / part.file
        rows = read_rows(path, part.row_type)
        write_rows(path, part.row_type, [row for row in rows if not is_dropped(args, part, row)])
    for name in names:
        failed += measure_missing(args, name)
    all_rows = Rows(*(read_rows(folder / part.file, part.row_type) for part in PARTS.values()))
    save_figures(all_rows, folder)
    args.output.mkdir(parents=True, exist_ok=True)
    page = make_page(all_rows, [entry.name for entry in list_datasets()])
    (args.output / "fit.md").write_text(page, "utf-8")
    if failed:
        raise SystemExit(f"failed, and measured by the next run: {'; '.join(failed)}")


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m limes.research.fit", description=str(__doc__).partition("\n")[0]
    )
    add = parser.add_argument
    add("--only", nargs="+", choices=list(PARTS), metavar="PART", help=f"of {', '.join(PARTS)}")
    add("--cases", nargs="+", default=[], metavar="CASE", help="only these cases or constants")
    add("--seeds", nargs="+", type=int, default=SEEDS, help="default: %(default)s")
    add("--draw", action="store_true", help="write the page, measure nothing")
    add("--before", type=Path, metavar="OLD", help="Python or clone of the version before")
    add(
        "--anew",
        nargs="?",
        choices=(BEFORE, AFTER, "both"),
        const="both",
        help="drop rows of these versions first, of the chosen parts and cases; default: both",
    )
    add(
        "--jobs",
        type=int,
        default=1,
        help="fits at the same time, each on one processor, default: %(default)s",
    )
    add("--cache", type=Path, default=Path("build/fit"), metavar="FOLDER", help="for trained SVMs")
    add(
        "-o",
        "--output",
        type=Path,
        default=Path("docs"),
        metavar="FOLDER",
        help="for fit.md and the folder fit, default: %(default)s",
    )
    return parser


def is_dropped(args: argparse.Namespace, part: Part, row: Any) -> bool:
    """Return whether a row is to be measured anew; those without a version are of this one."""
    if args.cases and part.key(row)[0] not in args.cases:
        return False
    if isinstance(row, TrainerRow):
        # Both versions are in one row.
        return args.before is not None
    if isinstance(row, FitRow) and row.seed not in args.seeds:
        return False
    version = getattr(row, "version", AFTER)
    return version in _given_versions(args) and args.anew in (version, "both")


def measure_missing(args: argparse.Namespace, name: str) -> list[str]:
    """Measure and store what the file of a part does not have; return what failed."""
    part = PARTS[name]
    path, failed = args.output / "fit" / part.file, []
    groups = _missing_groups(args, part)
    start = time.monotonic()
    pool = ThreadPoolExecutor(max_workers=args.jobs)
    with limit_threads(1):
        try:
            futures = {pool.submit(part.measure, args, keys): keys for keys in groups}
            for n_done, future in enumerate(as_completed(futures), start=1):
                words = f"{name} {' '.join(map(str, futures[future][0]))}"
                if error := future.exception():
                    failed.append(f"{words} ({error})")
                    summary = f"failed: {error}"
                else:
                    append_rows(path, future.result())
                    summary = _summary(future.result())
                minutes = (time.monotonic() - start) / 60
                print(f"[{n_done}/{len(groups)}, {minutes:.1f} min] {words}: {summary}", flush=True)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    return failed


def _missing_groups(args: argparse.Namespace, part: Part) -> list[list[Key]]:
    """Return the keys that have no row yet, those that are measured in one go together."""
    path = args.output / "fit" / part.file
    done = {part.key(row) for row in read_rows(path, part.row_type)}
    groups: dict[Hashable, list[Key]] = defaultdict(list)
    for key in part.plan(args):
        if key not in done and (not args.cases or key[0] in args.cases):
            groups[part.group(key)].append(key)
    return list(groups.values())


def _summary(rows: Sequence[Any]) -> str:
    """Return the main numbers of a measurement."""
    if rows and isinstance(rows[0], FitRow):
        return "; ".join(
            f"{row.version} {row.fit_seconds:.2f} s, agreement {row.agreement:.4f}, "
            f"{row.gain:+.4f} U.C., cost {row.cost:.0f}, {row.microseconds_per_row:.3f} µs"
            for row in rows
        )
    if rows and isinstance(rows[0], ConstantRow):
        seconds = sum(row.fit_seconds or 0 for row in rows)
        errors = {row.error for row in rows if row.error}
        return f"{rows[0].value} {seconds:.2f} s{''.join(f', {error}' for error in errors)}"
    return f"{len(rows)} rows"


def load_rows(name: str, seed: int) -> tuple[Problem, Array]:
    """Return a problem by its name, and the rows to be given to the fit."""
    kind, number = name.rstrip("0123456789"), name.lstrip("abcdefghijklmnopqrstuvwxyz_")
    if name == "moons600":
        problem = small_moons_problem(seed)
    elif name == "quantiles":
        problem = quantiles_problem(seed)
    elif name == "wide1000":
        problem = wide_problem(seed)
    elif name == "slow400":
        problem = slow_problem(seed)
    elif name == "clusters":
        problem = clusters_problem(seed)
    elif kind == "classes":
        problem = classes_problem(int(number), seed)
    elif kind == "rows":
        return growth_problem(int(number), seed)
    elif kind in CURVED_KINDS:
        problem = curved_problem(kind, int(number), seed)
    elif name in FURTHER_PROBLEMS:
        problem = FURTHER_PROBLEMS[name](seed)
    else:
        seed = 0 if parameters(name).has_single_trials else seed
        problem = limit_rows(load_problem(name, seed=seed), seed)
    return problem, problem.X_train


_LOCKS: dict[str, Lock] = defaultdict(Lock)


def load_case(name: str, seed: int, cache: Path) -> tuple[Case, Array]:
    """Return a case by its name, with its SVM trained, and the rows to be given to the fit."""
    problem, given = load_rows(name, seed)
    case = Case(problem, cache)
    # Seeds that share an SVM train it once.
    with _LOCKS[name]:
        assert len(case.labels) == len(problem.y_test)
    return case, given


def _versions(args: argparse.Namespace, keys: Sequence[tuple[str, int]]) -> list[Key]:
    """Return keys of rows: each case and seed before, if there is such a version, and after."""
    return [(case, version, seed) for case, seed in keys for version in _given_versions(args)]


def _given_versions(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the versions that can be measured."""
    return (AFTER,) if args.before is None else (BEFORE, AFTER)


def _plan_time(args: argparse.Namespace) -> list[Key]:
    """Return the paper's datasets and small problems with all seeds."""
    names = dict.fromkeys([*(entry.name for entry in list_datasets()), *MAX_SMALL_SECONDS])
    return _versions(args, [(name, seed) for name in names for seed in args.seeds])


def _plan_one_seed_before(
    args: argparse.Namespace, names: Sequence[str], skipped: Sequence[str] = ()
) -> list[Key]:
    """Return cases with all seeds, of which the version before gets the first, or none."""
    keys = _versions(args, [(name, seed) for name in names for seed in args.seeds])
    return [
        (name, version, seed)
        for name, version, seed in keys
        if version == AFTER or (seed == args.seeds[0] and name not in skipped)
    ]


def _plan_growth(args: argparse.Namespace) -> list[Key]:
    """Return numbers of rows."""
    return _plan_one_seed_before(args, [f"rows{n_rows}" for n_rows in GROWTH_ROWS])


def _plan_curved(args: argparse.Namespace) -> list[Key]:
    """Return the kinds of curved borders in each number of features."""
    names = [f"{kind}{n_features}" for kind in CURVED_KINDS for n_features in CURVED_FEATURES]
    return _plan_one_seed_before(args, names)


def _plan_classes(args: argparse.Namespace) -> list[Key]:
    """Return numbers of classes."""
    skipped = [f"classes{n}" for n in GROWTH_CLASSES if n > MAX_CLASSES_BEFORE]
    return _plan_one_seed_before(args, [f"classes{n}" for n in GROWTH_CLASSES], skipped)


def _plan_wide(args: argparse.Namespace) -> list[Key]:
    """Return wide problems; madelon is one of the paper's datasets."""
    return _plan_one_seed_before(args, ["wide1000"])


def measure_fits(args: argparse.Namespace, keys: list[Key]) -> list[FitRow]:
    """Fit a model with each version, then let them predict in turns."""
    name, _, seed = keys[0]
    case, given = load_case(name, seed, args.cache)
    batch = case.batch(np.float64)
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                fit_process(_installation(args, version), [_task(case, given, seed)], batch=batch)
            )
            for _, version, _ in keys
        ]
        turns = [[process.run()[0] for process in processes] for _ in range(N_TURNS)]
    microseconds = np.min(turns, axis=0)
    return [
        _fit_row(case, given, key, process.results[0], float(least))
        for key, process, least in zip(keys, processes, microseconds, strict=True)
    ]


def _installation(args: argparse.Namespace, version: str) -> Installation:
    """Return the installation of a version."""
    return Installation(args.before) if version == BEFORE else Installation()


def _fit_row(case: Case, given: Array, key: Key, result: FitResult, microseconds: float) -> FitRow:
    """Compare a model with its SVM."""
    name, version, seed = key
    truth = case.problem.y_test
    return FitRow(
        case=name,
        version=version,
        seed=seed,
        n_given=len(given),
        n_test=len(truth),
        n_features=given.shape[1],
        n_classes=len(case.svm.classes_),
        n_support=len(case.svm.support_),
        source_cost=case.svm.support_vectors_.size,
        source_uncertainty_coefficient=uncertainty_coefficient(truth, case.labels),
        uncertainty_coefficient=uncertainty_coefficient(truth, result.labels),
        agreement=_agreement(case, result),
        agreement_estimated=result.agreement_estimated,
        agreement_error=result.agreement_error,
        scheme=result.scheme,
        n_borders=result.n_borders,
        cost=result.cost,
        microseconds_per_row=microseconds,
        fit_seconds=result.fit_seconds,
        cpu_share=result.cpu_share,
        commit=result.commit,
    )


def _task(case: Case, given: Array, seed: int, **options: Any) -> FitTask:
    """Return the fit of maps alone."""
    given_options = {**OPTIONS, "random_state": seed, **options}
    return FitTask(case.model, given, case.problem.X_test, given_options)


def _agreement(case: Case, result: FitResult) -> float:
    """Return the share of the test rows with the SVM's label."""
    return float(np.mean(result.labels == case.labels))


def _plan_used(args: argparse.Namespace) -> list[Key]:
    """Return the versions."""
    return [("used", version) for version in _given_versions(args)]


def measure_used(args: argparse.Namespace, keys: list[Key]) -> list[UsedRow]:
    """Record the constants that a version reads in fits of all cases."""
    ((_, version),) = keys
    tasks = [_constant_task(case, CONSTANT_SEEDS[0], args.cache) for case in CONSTANT_CASES]
    installation = replace(_installation(args, version), is_recording=True)
    results = fit_apart(installation, tasks)
    designed = design_constants(getsource(config)) if version == AFTER else set()
    return [
        UsedRow(version, name, int(name in designed), results[-1].commit)
        for name in read_constants(results[-1].used)
    ]


def _plan_constants(args: argparse.Namespace) -> list[Key]:
    """Return each constant halved and doubled, and the defaults with all seeds between them.

    The defaults are spread over the run, so that their noise includes that of the computer.
    """
    used = PARTS["used"]
    names = [
        row.constant
        for row in read_rows(args.output / "fit" / used.file, used.row_type)
        if row.version == AFTER
    ]
    if not names:
        raise SystemExit("the part 'constants' needs the rows of the part 'used': measure both.")
    changed: list[Key] = [
        (name, change, CONSTANT_SEEDS[0])
        for name in names
        for change in CHANGES
        if Constant.of(name).changed(change) is not None
    ]
    step = max(1, len(changed) // len(CONSTANT_SEEDS))
    for index, seed in enumerate(CONSTANT_SEEDS):
        changed.insert(index * (step + 1), ("default", "none", seed))
    return changed


def _plan_limits(args: argparse.Namespace) -> list[Key]:
    """Return the constants that change nothing so far, halved and doubled, and the defaults."""
    part = PARTS["constants"]
    rows = read_rows(args.output / "fit" / part.file, part.row_type)
    changed = [
        (name, change, CONSTANT_SEEDS[0])
        for name in idle_constants(rows)
        for change in CHANGES
        if Constant.of(name).changed(change) is not None
    ]
    return [("default", "none", CONSTANT_SEEDS[0]), *changed] if changed else []


def measure_limit(args: argparse.Namespace, keys: list[Key]) -> list[ConstantRow]:
    """Fit the further cases with one constant changed."""
    return measure_constant(args, keys, LIMIT_CASES)


def measure_constant(
    args: argparse.Namespace, keys: list[Key], names: Sequence[str] = CONSTANT_CASES
) -> list[ConstantRow]:
    """Fit all cases with one constant changed; the data have the same seed throughout."""
    ((name, change, seed),) = keys
    changes, value = [], ""
    if name != "default":
        constant = Constant.of(name)
        new = constant.changed(change)
        changes, value = [(constant.stage_class, constant.name, new)], str(new)
    tasks = [_constant_task(case, seed, args.cache) for case in names]
    results = fit_apart(Installation(changes=changes), tasks, may_fail=name != "default")
    cases = [_constant_case(case, args.cache)[0] for case in names]
    return [
        ConstantRow(
            constant=name,
            change=change,
            value=value,
            case=case.problem.name,
            seed=seed,
            fit_seconds=None if result.error else result.fit_seconds,
            agreement=None if result.error else _agreement(case, result),
            cost=None if result.error else result.cost,
            digest=result.digest,
            error=result.error,
            commit=result.commit,
        )
        for case, result in zip(cases, results, strict=True)
    ]


def _constant_task(name: str, seed: int, cache: Path) -> FitTask:
    """Return the fit of a case with fewer rows."""
    case, given = _constant_case(name, cache)
    return _task(case, given, seed)


@lru_cache(maxsize=len(CONSTANT_CASES) + len(LIMIT_CASES))
def _constant_case(name: str, cache: Path) -> tuple[Case, Array]:
    """Return a case with fewer training rows, and the rows to be given to the fit."""
    problem, given = load_rows(name, CONSTANT_SEEDS[0])
    X, y = problem.X_train[:MAX_CONSTANT_ROWS], problem.y_train[:MAX_CONSTANT_ROWS]
    has_more = len(given) > len(problem.X_train)
    return Case(replace(problem, X_train=X, y_train=y), cache), given if has_more else X


def _plan_levels(args: argparse.Namespace) -> list[Key]:
    """Return cases with each SIMD level and numbers of threads."""
    return [
        (case, level, *threads)
        for case in LEVEL_CASES
        for level in simd_levels()
        for threads in LEVEL_THREADS
    ]


def measure_level(args: argparse.Namespace, keys: list[Key]) -> list[LevelRow]:
    """Fit a model with a SIMD level and numbers of threads."""
    ((name, level, n_jobs, n_blas_threads),) = keys
    case, given = load_case(name, SEEDS[0], args.cache)
    version = Installation(environment={"LIMES_SIMD": level}, n_threads=n_blas_threads)
    (result,) = fit_apart(version, [_task(case, given, SEEDS[0], n_jobs=n_jobs)])
    return [
        LevelRow(
            case=name,
            level=level,
            n_jobs=n_jobs,
            n_blas_threads=n_blas_threads,
            n_test=len(case.labels),
            agreement=_agreement(case, result),
            digest=result.digest,
            fit_seconds=result.fit_seconds,
            commit=result.commit,
        )
    ]


def _plan_trainer(args: argparse.Namespace) -> list[Key]:
    """Return the SIMD levels, if there is a version to compare with."""
    return [] if args.before is None else [(level,) for level in simd_levels()]


def measure_trainer(args: argparse.Namespace, keys: list[Key]) -> list[TrainerRow]:
    """Let the trainers of both versions take turns at a SIMD level."""
    ((level,),) = keys
    if not TRAINER_SCRIPT.is_file():
        raise FileNotFoundError(f"{TRAINER_SCRIPT}: run this in the folder of the repository.")
    versions = [
        replace(_installation(args, version), environment={"LIMES_SIMD": level})
        for version in (BEFORE, AFTER)
    ]
    turns = [[_time_trainer(version) for version in versions] for _ in range(TRAINER_TURNS)]
    return [
        TrainerRow(name, level, *(_least(turn[i].get(name) for turn in turns) for i in (0, 1)))
        for name in turns[0][1]
    ]


def _time_trainer(version: Installation) -> dict[str, float]:
    """Return microseconds per sample of each problem of the script."""
    command = [str(version.python), str(TRAINER_SCRIPT), "--measure"]
    done = subprocess.run(command, env=version.variables, stdout=subprocess.PIPE, check=True)
    times: dict[str, float] = json.loads(done.stdout)
    return times


def _least(times: Iterator[float | None]) -> float | None:
    """Return the least time, None if a version does not have the problem."""
    return min((number for number in times if number is not None), default=None)


def _fit_key(row: FitRow) -> Key:
    """Return what identifies a fit."""
    return row.case, row.version, row.seed


def _fit_part(file: str, plan: Callable[[argparse.Namespace], list[Key]]) -> Part:
    """Return a part whose rows are fits: both versions of a case and seed in one go."""
    return Part(file, FitRow, plan, measure_fits, _fit_key, lambda key: (key[0], key[2]))


# In the order of `Rows`.
PARTS = {
    "time": _fit_part("time.csv", _plan_time),
    "growth": _fit_part("growth.csv", _plan_growth),
    "curved": _fit_part("curved.csv", _plan_curved),
    "classes": _fit_part("classes.csv", _plan_classes),
    "wide": _fit_part("wide.csv", _plan_wide),
    "used": Part("used.csv", UsedRow, _plan_used, measure_used, lambda row: ("used", row.version)),
    "constants": Part(
        "constants.csv",
        ConstantRow,
        _plan_constants,
        measure_constant,
        lambda row: (row.constant, row.change, row.seed),
    ),
    "limits": Part(
        "limits.csv",
        ConstantRow,
        _plan_limits,
        measure_limit,
        lambda row: (row.constant, row.change, row.seed),
    ),
    "levels": Part(
        "levels.csv",
        LevelRow,
        _plan_levels,
        measure_level,
        lambda row: (row.case, row.level, row.n_jobs, row.n_blas_threads),
    ),
    "trainer": Part(
        "trainer.csv", TrainerRow, _plan_trainer, measure_trainer, lambda row: (row.level,)
    ),
}


if __name__ == "__main__":
    main()
