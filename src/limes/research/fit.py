"""The fit measured: time, skill, growth, curved borders, many classes, wide rows, constants.

Each measurement is one row of a file in ``docs/fit``; an interrupted run continues where it
stopped. ``docs/fit.md`` and the figures are written from the rows alone.

    python -m limes.research.fit --before OLD              # everything, with the version OLD
    python -m limes.research.fit --part time curved        # these parts, this version alone
    python -m limes.research.fit --part time --cases sat --seeds 20
    python -m limes.research.fit --part curved --anew after  # drop rows of this version first
    python -m limes.research.fit --draw                    # write the page, measure nothing

OLD is the Python of another environment, or a clone of the repository with the compiled module in
its ``src`` folder. The datasets come from LIMES_DATA; trained SVMs are stored in the folder of
``--cache``. ``docs/fit/trainer.csv`` is written by ``benchmarks/trainer.py``.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from limes._typing import Array
from limes.datasets import list_datasets, parameters
from limes.research.accuracy import limit_rows
from limes.research.cases import Case, FitResult, FitTask, Installation, fit_apart, run_python
from limes.research.fit_constants import (
    CHANGES,
    Constant,
    ConstantRow,
    CountRow,
    find_constants,
)
from limes.research.fit_page import (
    AFTER,
    BEFORE,
    MAX_SMALL_SECONDS,
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
    curved_problem,
    growth_problem,
    load_problem,
    small_moons_problem,
    wide_problem,
)
from limes.research.processor_time import limit_threads
from limes.research.results import append_rows, read_rows, write_rows
from limes.scores import uncertainty_coefficient

# Seeds that nothing was chosen by, and those of which a slow part of the version before gets one.
SEEDS = (20, 21, 22)
# Maps alone.
OPTIONS = {"scheme": "shared", "fallback": False, "n_jobs": 1}
CURVED_FEATURES = (8, 15, 30)
N_CLASSES = (2, 10, 50, 100, 150)
# More classes than these did not finish before.
MAX_CLASSES_BEFORE = 50
GROWTH_ROWS = (1000, 4000, 16_000, 64_000)
# Constants: narrow, wide, many rows, curved, many classes. Defaults are fitted with several seeds,
# whose differences are the noise.
CONSTANT_CASES = ("segment", "splice", "ijcnn1", "ellipsoid8", "classes50")
CONSTANT_SEEDS = (30, 31, 32, 33, 34)
# Rows of these cases at most, so that a constant takes seconds.
MAX_CONSTANT_TRAIN, MAX_CONSTANT_TEST = 4000, 10_000
LEVEL_CASES = ("moons600", "segment", "sat", "splice", "ellipsoid8")
LEVEL_SETTINGS: dict[str, tuple[dict[str, str], int]] = {
    "widest": ({}, 1),
    "avx2": ({"LIMES_SIMD": "avx2"}, 1),
    "two threads": ({}, 2),
}


class Part(NamedTuple):
    """A part of the page: what it measures, on what, and where the rows are."""

    file: str
    # From the arguments to the keys of its rows, the first of which is a case.
    plan: Callable[[argparse.Namespace], list[tuple[Any, ...]]]
    # From the arguments and a key to rows.
    measure: Callable[..., list[Any]]
    # From a row to its key.
    key: Callable[[Any], tuple[Any, ...]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, then write the page and the figures."""
    args = _parser().parse_args(arguments)
    folder = args.output / "fit"
    for name in () if args.draw else args.part or PARTS:
        part = PARTS[name]
        if args.anew:
            _drop_rows(args, part)
        for measured in measure_missing(args, name):
            append_rows(folder / part.file, measured)
    rows = Rows(*(read_rows(folder / file, row_type) for file, row_type in FILES.items()))
    save_figures(rows, folder)
    page = make_page(rows, [entry.name for entry in list_datasets()])
    args.output.mkdir(parents=True, exist_ok=True)
    (args.output / "fit.md").write_text(page, "utf-8")


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m limes.research.fit", description=str(__doc__).partition("\n")[0]
    )
    add = parser.add_argument
    add("--part", nargs="+", choices=list(PARTS), metavar="PART", help=f"of {', '.join(PARTS)}")
    add("--cases", nargs="+", default=[], metavar="CASE", help="only these cases or constants")
    add("--seeds", nargs="+", type=int, default=SEEDS, help="default: %(default)s")
    add("--draw", action="store_true", help="write the page, measure nothing")
    add("--before", type=Path, metavar="OLD", help="Python or clone of the version before")
    add(
        "--anew",
        choices=("before", "after", "both"),
        help="drop rows of these versions first, of the chosen parts and cases",
    )
    add(
        "--jobs",
        type=int,
        default=1,
        help="fits at the same time, default: %(default)s; times are best measured one by one",
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


def _drop_rows(args: argparse.Namespace, part: Part) -> None:
    """Drop the rows that are to be measured anew; those without a version are of this one."""
    path = args.output / "fit" / part.file
    row_type = FILES[part.file]
    versions = (BEFORE, AFTER) if args.anew == "both" else (args.anew,)
    kept = [
        row
        for row in read_rows(path, row_type)
        if getattr(row, "version", AFTER) not in versions
        or (args.cases and part.key(row)[0] not in args.cases)
    ]
    write_rows(path, row_type, kept)


def measure_missing(args: argparse.Namespace, name: str) -> Iterator[list[Any]]:
    """Yield the rows of each key of a part that the file does not have."""
    part = PARTS[name]
    path = args.output / "fit" / part.file
    done = {part.key(row) for row in read_rows(path, FILES[part.file])}
    missing = [
        key
        for key in part.plan(args)
        if key not in done and (not args.cases or key[0] in args.cases)
    ]
    pool = ThreadPoolExecutor(max_workers=args.jobs)
    with limit_threads(1):
        try:
            futures = {pool.submit(_timed, part.measure, args, key): key for key in missing}
            for future in as_completed(futures):
                rows, seconds = future.result()
                words = " ".join(map(str, futures[future]))
                print(f"{name}: {words}, {_summary(rows)} ({seconds:.0f} s)", flush=True)
                yield rows
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _timed(measure: Callable[..., list[Any]], args: Any, key: Any) -> tuple[list[Any], float]:
    """Return the rows of a key, and the seconds that they took."""
    start = time.monotonic()
    return measure(args, *key), time.monotonic() - start


def _summary(rows: Sequence[Any]) -> str:
    """Return the main numbers of a measurement."""
    if any(getattr(row, "error", "") for row in rows):
        return "failed"
    if not all(hasattr(row, "fit_seconds") for row in rows):
        return str(rows[-1])
    seconds = sum(row.fit_seconds for row in rows)
    agreement = float(np.mean([row.agreement for row in rows]))
    gain = f", {rows[0].gain:+.4f} U.C., cost {rows[0].cost:.0f}" if _has_gain(rows) else ""
    return f"{seconds:.2f} s, agreement {agreement:.4f}{gain}"


def _has_gain(rows: Sequence[Any]) -> bool:
    """Return whether rows compare the skill with the SVM's."""
    return len(rows) == 1 and hasattr(rows[0], "gain")


def load_rows(name: str, seed: int) -> tuple[Problem, Array]:
    """Return a problem by its name, and the rows to be given to the fit."""
    kind, number = name.rstrip("0123456789"), name.lstrip("abcdefghijklmnopqrstuvwxyz_")
    if name == "moons600":
        problem = small_moons_problem(seed)
    elif name == "wide1000":
        problem = wide_problem(seed)
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


@lru_cache(maxsize=4)
def load_case(name: str, seed: int, cache: Path) -> tuple[Case, Array]:
    """Return a case by its name, and the rows to be given to the fit."""
    problem, given = load_rows(name, seed)
    return Case(problem, cache), given


def _versions(args: argparse.Namespace, keys: Sequence[tuple[str, int]]) -> list[tuple[Any, ...]]:
    """Return keys of rows: each case and seed before, if there is such a version, and after."""
    versions = (AFTER,) if args.before is None else (BEFORE, AFTER)
    return [(case, version, seed) for case, seed in keys for version in versions]


def _plan_time(args: argparse.Namespace) -> list[tuple[Any, ...]]:
    """Return the paper's datasets and small problems with all seeds."""
    names = dict.fromkeys([*(entry.name for entry in list_datasets()), *MAX_SMALL_SECONDS])
    return _versions(args, [(name, seed) for name in names for seed in args.seeds])


def _plan_one_seed_before(
    args: argparse.Namespace, names: Sequence[str], skipped: Sequence[str] = ()
) -> list[tuple[Any, ...]]:
    """Return cases with all seeds, of which the version before gets the first, or none."""
    keys = _versions(args, [(name, seed) for name in names for seed in args.seeds])
    return [
        (name, version, seed)
        for name, version, seed in keys
        if version == AFTER or (seed == args.seeds[0] and name not in skipped)
    ]


def _plan_growth(args: argparse.Namespace) -> list[tuple[Any, ...]]:
    """Return numbers of rows."""
    return _plan_one_seed_before(args, [f"rows{n_rows}" for n_rows in GROWTH_ROWS])


def _plan_curved(args: argparse.Namespace) -> list[tuple[Any, ...]]:
    """Return the kinds of curved borders in each number of features."""
    names = [f"{kind}{n_features}" for kind in CURVED_KINDS for n_features in CURVED_FEATURES]
    return _plan_one_seed_before(args, names)


def _plan_classes(args: argparse.Namespace) -> list[tuple[Any, ...]]:
    """Return numbers of classes."""
    skipped = [f"classes{n}" for n in N_CLASSES if n > MAX_CLASSES_BEFORE]
    return _plan_one_seed_before(args, [f"classes{n}" for n in N_CLASSES], skipped)


def _plan_wide(args: argparse.Namespace) -> list[tuple[Any, ...]]:
    """Return wide problems; madelon is one of the paper's datasets."""
    return _plan_one_seed_before(args, ["wide1000"])


def measure_fit(args: argparse.Namespace, name: str, version: str, seed: int) -> list[FitRow]:
    """Fit a model with one version, and compare it with its SVM."""
    case, given = load_case(name, seed, args.cache)
    installation = Installation(args.before) if version == BEFORE else Installation()
    (result,) = fit_apart(installation, [_task(case, given, seed)])
    truth = case.problem.y_test
    return [
        FitRow(
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
            fit_seconds=result.fit_seconds,
            cpu_share=result.cpu_share,
            commit=result.commit,
        )
    ]


def _task(case: Case, given: Array, seed: int, **options: Any) -> FitTask:
    """Return the fit of maps alone."""
    given_options = {**OPTIONS, "random_state": seed, **options}
    return FitTask(case.model, given, case.problem.X_test, given_options)


def _agreement(case: Case, result: FitResult) -> float:
    """Return the share of the test rows with the SVM's label."""
    return float(np.mean(result.labels == case.labels))


@lru_cache(maxsize=1)
def _constants() -> dict[str, Constant]:
    """Return the constants of this version by their full names."""
    return {constant.full_name: constant for constant in find_constants(Installation())}


def _plan_constants(args: argparse.Namespace) -> list[tuple[Any, ...]]:
    """Return each constant halved and doubled, and the defaults with all seeds between them.

    The defaults are spread over the run, so that their noise includes that of the computer.
    """
    changed: list[tuple[Any, ...]] = [
        (name, change, CONSTANT_SEEDS[0])
        for name, constant in _constants().items()
        for change in CHANGES
        if constant.changed(change) is not None
    ]
    step = max(1, len(changed) // len(CONSTANT_SEEDS))
    for index, seed in enumerate(CONSTANT_SEEDS):
        changed.insert(index * (step + 1), ("default", "none", seed))
    return changed


def measure_constant(
    args: argparse.Namespace, name: str, change: str, seed: int
) -> list[ConstantRow]:
    """Fit all cases with one constant changed; the data have the same seed throughout."""
    changes, value = [], ""
    if name != "default":
        constant = _constants()[name]
        new = constant.changed(change)
        changes, value = [(constant.stage_class, constant.name, new)], str(new)
    cases = [_constant_case(case, args.cache) for case in CONSTANT_CASES]
    tasks = [_task(case, case.problem.X_train, seed) for case in cases]
    results = fit_apart(Installation(changes=changes), tasks, may_fail=name != "default")
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
            error=result.error,
            commit=result.commit,
        )
        for case, result in zip(cases, results, strict=True)
    ]


@lru_cache(maxsize=len(CONSTANT_CASES))
def _constant_case(name: str, cache: Path) -> Case:
    """Return a case with fewer rows."""
    problem = load_rows(name, CONSTANT_SEEDS[0])[0]
    train, test = slice(MAX_CONSTANT_TRAIN), slice(MAX_CONSTANT_TEST)
    problem = replace(
        problem,
        X_train=problem.X_train[train],
        y_train=problem.y_train[train],
        X_test=problem.X_test[test],
        y_test=problem.y_test[test],
    )
    return Case(problem, cache)


def _plan_counts(args: argparse.Namespace) -> list[tuple[Any, ...]]:
    """Return the versions."""
    return [(AFTER,)] if args.before is None else [(BEFORE,), (AFTER,)]


def measure_count(args: argparse.Namespace, version: str) -> list[CountRow]:
    """Count the constants of the default path of a version."""
    installation = Installation(args.before) if version == BEFORE else Installation()
    return [CountRow(version, len(find_constants(installation)))]


def _plan_levels(args: argparse.Namespace) -> list[tuple[Any, ...]]:
    """Return cases with each setting."""
    return [(case, setting) for case in LEVEL_CASES for setting in LEVEL_SETTINGS]


def measure_level(args: argparse.Namespace, name: str, setting: str) -> list[LevelRow]:
    """Fit a model with a SIMD level and a number of threads."""
    case, given = load_case(name, SEEDS[0], args.cache)
    environment, n_threads = LEVEL_SETTINGS[setting]
    if "LIMES_SIMD" not in environment and "LIMES_SIMD" in os.environ:
        raise SystemExit("LIMES_SIMD must not be set: the part 'levels' sets it.")
    version = Installation(environment=environment, n_threads=n_threads)
    (result,) = fit_apart(version, [_task(case, given, SEEDS[0], n_jobs=n_threads)])
    return [
        LevelRow(
            case=name,
            setting=setting,
            level=run_python(version, "from limes._core import simd_level; print(simd_level())"),
            n_test=len(case.labels),
            agreement=_agreement(case, result),
            digest=result.digest,
            fit_seconds=result.fit_seconds,
            commit=result.commit,
        )
    ]


# Files of rows, in the order of `Rows`.
FILES: dict[str, type[Any]] = {
    "time.csv": FitRow,
    "growth.csv": FitRow,
    "curved.csv": FitRow,
    "classes.csv": FitRow,
    "wide.csv": FitRow,
    "constants.csv": ConstantRow,
    "counts.csv": CountRow,
    "levels.csv": LevelRow,
    "trainer.csv": TrainerRow,
}


def _fit_key(row: FitRow) -> tuple[Any, ...]:
    """Return what identifies a fit."""
    return row.case, row.version, row.seed


PARTS = {
    "time": Part("time.csv", _plan_time, measure_fit, _fit_key),
    "growth": Part("growth.csv", _plan_growth, measure_fit, _fit_key),
    "curved": Part("curved.csv", _plan_curved, measure_fit, _fit_key),
    "classes": Part("classes.csv", _plan_classes, measure_fit, _fit_key),
    "wide": Part("wide.csv", _plan_wide, measure_fit, _fit_key),
    "constants": Part(
        "constants.csv",
        _plan_constants,
        measure_constant,
        lambda row: (row.constant, row.change, row.seed),
    ),
    "counts": Part("counts.csv", _plan_counts, measure_count, lambda row: (row.version,)),
    "levels": Part("levels.csv", _plan_levels, measure_level, lambda row: (row.case, row.setting)),
}


if __name__ == "__main__":
    main()
