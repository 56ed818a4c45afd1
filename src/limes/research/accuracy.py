"""Skill, cost and time of limes' default settings compared with the SVM that they replace.

Each dataset and seed is one row of ``docs/accuracy/rows.csv``; an interrupted run continues where
it stopped. ``docs/accuracy.md`` is written from the rows alone.

    python -m limes.research.accuracy --all --jobs 2 # the whole page, from LIMES_DATA
    python -m limes.research.accuracy --all --anew   # once more, dropping the rows that are there
    python -m limes.research.accuracy                # the paper's datasets
    python -m limes.research.accuracy sat letter     # only these
    python -m limes.research.accuracy --guard        # problems that the paper does not have
    python -m limes.research.accuracy --mixed        # random splits in place of published ones
    python -m limes.research.accuracy --fresh sat    # seeds that nothing was tuned on
    python -m limes.research.accuracy --draw         # write the page, measure nothing
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline
from threadpoolctl import threadpool_limits

from limes.classifier import accelerate
from limes.datasets import list_datasets, parameters
from limes.libsvm.training import standardizer
from limes.research.bench.methods import svc
from limes.research.problems import FURTHER_PROBLEMS, Problem, load_problem, split_at_random
from limes.research.results import (
    Cell,
    Column,
    Table,
    append_rows,
    goal_line,
    mean_of,
    read_rows,
    write_rows,
)
from limes.scores import brier_score, uncertainty_coefficient
from limes.sources.base import SourceContext, as_source

# Seeds that the default settings were tuned on, and others.
TUNING_SEEDS, FRESH_SEEDS = range(3), range(6, 9)
# With so few test rows that one of them changes U.C. by 0.02 to 0.06, three seeds are too few.
MORE_SEEDS = {"breast_cancer": range(24), "wine": range(24), "rare": range(12)}
# Suffix of a dataset whose published split is replaced by a random one.
MIXED = "-mixed"
# Enough rows for a standard error of U.C. well below 0.01, the difference of interest.
MAX_TEST = 20_000
# Datasets that take too long for further seeds, and seconds that a fit may take.
LONG = ("mnist", "humidity")
MAX_SECONDS, MAX_LONG_SECONDS = 30, 120
# Training rows where the paper's are more.
MAX_TRAIN = {"mnist": 10_000}
INTRODUCTION = """\
# Accuracy of the default settings

`limes.accelerate(svm, X_train)` compared with the SVM that it replaces. The page is written by
`python -m limes.research.accuracy --all` from the rows in `docs/accuracy/rows.csv`; each line is
the mean over its seeds. [exact.md](exact.md) compares the default with maps alone, and
[fit.md](fit.md) this version of the fit with the one before.

- *Cost* is multiply-adds per row; for the SVM, support vectors times features.
- *Estimated* is `agreement_` with its standard error; *measured* is the agreement on the test rows.
  They count as consistent if their mean difference over the seeds is below two standard errors (of
  both, combined; that of the test rows is binomial).
- Where training and test rows are published separately, all seeds share one SVM and those test
  rows (20 000 at most).
- Seconds are processor time of one thread, on a computer that ran other programs as well.
"""
FURTHER_TEXT = """
## Further problems

Problems that the paper does not have. Constants of the default settings (the loss that counts as
none, the length of the training, when longer training is rejected, the synthetic rows of small
datasets) were chosen by this table and the one above, on the same seeds, and on parts of 150 to 500
rows of digits and of some of the paper's datasets.
"""
FRESH_TEXT = """
## Other seeds

Seeds that the present default settings were not tuned on (`--fresh`): these results are free of
selection by seed.
"""
MIXED_TEXT = """
## Random splits

The published test rows of some datasets are shifted: written by other people, or recorded later.
The training rows do not determine the agreement there. Here training and test rows are joined and
split at random, so that *estimated* and *measured* are comparable.
"""
COLUMNS = (
    Column("dataset"),
    Column("seeds", "count"),
    *(Column(f"U.C. of {what}", "skill") for what in ("SVM", "limes")),
    Column("difference", "change"),
    Column("points", "count"),
    *(Column(f"cost of {what}", "count") for what in ("SVM", "limes")),
    Column("cost ratio", ".1f"),
    *(Column(f"agreement, {what}", ".4f") for what in ("estimated", "measured")),
    *(Column(f"Brier score of {what}", ".4f") for what in ("SVM", "limes")),
    Column("seconds, limes", "count"),
    Column("seconds, SVM", ".1f"),
)


@dataclass(frozen=True)
class AccuracyRow:
    """The default settings compared with their source, on one dataset and seed.

    Parameters
    ----------
    dataset : str
        Name; with the suffix "-mixed" for a random split in place of the published one.
    seed : int
        Seed of the split and of the fit.
    n_train, n_test, n_features, n_classes, n_support : int
        Sizes of the dataset and of the SVM.
    source_cost : int
        Multiply-adds per row of the SVM: support vectors times features.
    source_uncertainty_coefficient, source_accuracy, source_brier_score : float
        Skill of the SVM on the test rows.
    source_seconds : float
        Processor time of its training.
    scheme : str
        Scheme of the fast model.
    n_borders, blend : int
        Its border points, and how many of them are blended.
    cost : float
        Its multiply-adds per row.
    uncertainty_coefficient, accuracy, brier_score : float
        Its skill on the test rows.
    agreement : float
        Share of the test rows with the SVM's label.
    agreement_estimated, agreement_error : float
        ``agreement_`` and ``agreement_error_``.
    fit_seconds : float
        Processor time of ``accelerate``.
    """

    dataset: str
    seed: int
    n_train: int
    n_test: int
    n_features: int
    n_classes: int
    n_support: int
    source_cost: int
    source_uncertainty_coefficient: float
    source_accuracy: float
    source_brier_score: float
    source_seconds: float
    scheme: str
    n_borders: int
    blend: int
    cost: float
    uncertainty_coefficient: float
    accuracy: float
    brier_score: float
    agreement: float
    agreement_estimated: float
    agreement_error: float
    fit_seconds: float


Groups = dict[str, list[AccuracyRow]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, then write the page."""
    args = _parser().parse_args(arguments)
    path = args.output / "accuracy" / "rows.csv"
    planned = [] if args.draw else plan(args)
    if args.anew:
        kept = [row for row in read_rows(path, AccuracyRow) if _key(row) not in planned]
        write_rows(path, AccuracyRow, kept)
    done = {_key(row) for row in read_rows(path, AccuracyRow)}
    missing = [pair for pair in planned if pair not in done]
    start = time.monotonic()
    for n_done, row in enumerate(_measure_all(missing, args.jobs), start=1):
        append_rows(path, [row])
        gain = row.uncertainty_coefficient - row.source_uncertainty_coefficient
        minutes = (time.monotonic() - start) / 60
        print(
            f"[{n_done}/{len(missing)}, {minutes:.1f} min] {row.dataset} {row.seed}: "
            f"{gain:+.4f} U.C., 1/{row.source_cost / row.cost:.0f} of the cost, "
            f"{row.fit_seconds:.1f} s",
            flush=True,
        )
    (args.output / "accuracy.md").write_text(make_page(read_rows(path, AccuracyRow)), "utf-8")


def _key(row: AccuracyRow) -> tuple[str, int]:
    """Return what identifies a row."""
    return row.dataset, row.seed


def _measure_all(pairs: Sequence[tuple[str, int]], n_jobs: int) -> Iterator[AccuracyRow]:
    """Yield the rows of datasets and seeds, each measured with one thread."""
    if n_jobs == 1:
        for name, seed in pairs:
            yield _measure_alone(name, seed)
        return
    # Processes, since processor time is counted for all threads of one.
    with ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(_measure_alone, name, seed) for name, seed in pairs]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _measure_alone(name: str, seed: int) -> AccuracyRow:
    """Return a row that was measured with one thread."""
    with threadpool_limits(1):
        return measure(name, seed)


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m limes.research.accuracy", description=str(__doc__).partition("\n")[0]
    )
    known = [*(entry.name for entry in list_datasets()), *FURTHER_PROBLEMS]
    parser.add_argument(
        "datasets",
        nargs="*",
        metavar="DATASET",
        help=f"default: all of the paper's; known: {', '.join(known)}",
    )
    parser.add_argument("--all", action="store_true", help="everything on the page")
    parser.add_argument(
        "--guard", action="store_true", help="problems that the paper does not have"
    )
    parser.add_argument(
        "--mixed", action="store_true", help="random splits in place of published ones"
    )
    parser.add_argument("--fresh", action="store_true", help="seeds that nothing was tuned on")
    parser.add_argument("--anew", action="store_true", help="drop the rows that are chosen first")
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="processes, default: %(default)s"
    )
    parser.add_argument("--draw", action="store_true", help="write the page, measure nothing")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("docs"),
        metavar="FOLDER",
        help="for accuracy.md and accuracy/rows.csv, default: %(default)s",
    )
    return parser


def plan(args: argparse.Namespace) -> list[tuple[str, int]]:
    """Return the datasets and seeds to measure."""
    listed = [entry.name for entry in list_datasets()]
    names = args.datasets or [*listed, *FURTHER_PROBLEMS]
    for name in names:
        if name not in (*listed, *FURTHER_PROBLEMS):
            raise SystemExit(
                f"dataset must be one of {', '.join([*listed, *FURTHER_PROBLEMS])}, got {name!r}."
            )
    usual = [name for name in names if name not in FURTHER_PROBLEMS]
    further = [name for name in names if name in FURTHER_PROBLEMS]
    kinds: dict[str, list[tuple[str, range]]] = {
        "usual": [(name, MORE_SEEDS.get(name, TUNING_SEEDS)) for name in usual],
        "guard": [(name, MORE_SEEDS.get(name, TUNING_SEEDS)) for name in further],
        "fresh": [(name, FRESH_SEEDS) for name in usual if name not in LONG],
        "mixed": [(name + MIXED, TUNING_SEEDS) for name in filter(_has_published_split, usual)],
    }
    chosen = [kind for kind in kinds if args.all or getattr(args, kind, False)]
    if not chosen:
        chosen = ["usual", "guard"] if args.datasets else ["usual"]
    pairs = [(name, seed) for kind in chosen for name, seeds in kinds[kind] for seed in seeds]
    return list(dict.fromkeys(pairs))


def _has_published_split(name: str) -> bool:
    """Return whether the test rows are published: one SVM then serves all seeds."""
    is_random = name in FURTHER_PROBLEMS or name.endswith(MIXED)
    return not is_random and parameters(name).has_single_trials


def measure(name: str, seed: int) -> AccuracyRow:
    """Accelerate the SVM of a dataset with the default settings, and compare the two."""
    problem, model, source_seconds = _trained(name, 0 if _has_published_split(name) else seed)
    start = time.process_time()
    fast = accelerate(model, problem.X_train, random_state=seed)
    fit_seconds = time.process_time() - start
    labels, truth = fast.predict(problem.X_test), problem.y_test
    source_labels, source_probabilities = _predict_in_core(model, problem, seed)
    svm = model[-1]
    selected = next(candidate for candidate in fast.candidates_ if candidate.is_selected)

    def brier(probabilities: Any) -> float:
        return float(brier_score(truth, probabilities, classes=svm.classes_))

    return AccuracyRow(
        dataset=name,
        seed=seed,
        **problem.sizes,
        n_support=len(svm.support_),
        source_cost=svm.support_vectors_.size,
        source_uncertainty_coefficient=uncertainty_coefficient(truth, source_labels),
        source_accuracy=float(np.mean(truth == source_labels)),
        source_brier_score=brier(source_probabilities),
        source_seconds=source_seconds,
        scheme=fast.scheme_.name,
        n_borders=fast.n_borders_,
        blend=selected.blend,
        cost=fast.cost_,
        uncertainty_coefficient=uncertainty_coefficient(truth, labels),
        accuracy=float(np.mean(truth == labels)),
        brier_score=brier(fast.predict_proba(problem.X_test)),
        agreement=float(np.mean(labels == source_labels)),
        agreement_estimated=fast.agreement_,
        agreement_error=fast.agreement_error_,
        fit_seconds=fit_seconds,
    )


@lru_cache(maxsize=1)
def _trained(name: str, seed: int) -> tuple[Problem, Pipeline, float]:
    """Return a problem, its trained SVM, and the processor time of the training."""
    problem = limit_rows(_load(name, seed), seed)
    start = time.process_time()
    model = make_pipeline(standardizer(), svc(problem)).fit(problem.X_train, problem.y_train)
    return problem, model, time.process_time() - start


def limit_rows(problem: Problem, seed: int) -> Problem:
    """Return the first training rows and random test rows, where there are many."""
    n_train = MAX_TRAIN.get(problem.name, len(problem.X_train))
    tested = np.random.default_rng(seed).permutation(len(problem.X_test))[:MAX_TEST]
    return replace(
        problem,
        X_train=problem.X_train[:n_train],
        y_train=problem.y_train[:n_train],
        X_test=problem.X_test[tested],
        y_test=problem.y_test[tested],
    )


def _load(name: str, seed: int) -> Problem:
    """Return a problem by its name in the rows."""
    if name in FURTHER_PROBLEMS:
        return FURTHER_PROBLEMS[name](seed)
    problem = load_problem(name.removesuffix(MIXED), seed=seed)
    return split_at_random(problem, seed) if name.endswith(MIXED) else problem


def _predict_in_core(model: Pipeline, problem: Problem, seed: int) -> tuple[Any, Any]:
    """Return labels and probabilities of the SVM, summed in limes' core, which is faster."""
    scaler, svm = model[:-1], model[-1]
    class_index = np.searchsorted(svm.classes_, problem.y_train)
    rows = scaler.transform(problem.X_train)
    context = SourceContext(rows, class_index, False, np.random.default_rng(seed))
    source = as_source(svm, context)
    test_rows = scaler.transform(problem.X_test)
    return svm.classes_[source.predict_index(test_rows)], source.probabilities(test_rows)


def make_page(rows: Sequence[AccuracyRow]) -> str:
    """Write the page."""
    tuned: Groups = defaultdict(list)
    fresh: Groups = defaultdict(list)
    for row in rows:
        if row.seed in MORE_SEEDS.get(row.dataset, TUNING_SEEDS):
            tuned[row.dataset].append(row)
        elif row.seed in FRESH_SEEDS:
            fresh[row.dataset].append(row)
    listed = [entry.name for entry in list_datasets()]
    sections = [
        (f"{INTRODUCTION}\n## The paper's datasets\n", listed, tuned),
        (FURTHER_TEXT, FURTHER_PROBLEMS, tuned),
        (FRESH_TEXT, listed, fresh),
        (MIXED_TEXT, [name + MIXED for name in listed], tuned),
    ]
    return "".join(
        _section(text, {name: groups[name] for name in names if name in groups})
        for text, names, groups in sections
    )


def _section(text: str, groups: Groups) -> str:
    """Write a table and which goals it meets, below the text of the section."""
    table = Table("accuracy", "", COLUMNS, [_line(name, rows) for name, rows in groups.items()])
    return "\n".join([text, table.markdown(), *_goals(groups), ""])


def _line(name: str, rows: Sequence[AccuracyRow]) -> list[Cell]:
    """Return the cells of one dataset."""
    points = sorted({row.n_borders for row in rows})
    skill, source_skill = (
        mean_of(rows, column)
        for column in ("uncertainty_coefficient", "source_uncertainty_coefficient")
    )
    cost, source_cost = mean_of(rows, "cost"), mean_of(rows, "source_cost")
    return [
        name,
        len(rows),
        source_skill,
        skill,
        skill - source_skill,
        f"{points[0]}" if len(points) == 1 else f"{points[0]} to {points[-1]}",
        source_cost,
        cost,
        source_cost / cost,
        f"{mean_of(rows, 'agreement_estimated'):.4f} ± {mean_of(rows, 'agreement_error'):.4f}",
        mean_of(rows, "agreement"),
        mean_of(rows, "source_brier_score"),
        mean_of(rows, "brier_score"),
        mean_of(rows, "fit_seconds"),
        mean_of(rows, "source_seconds"),
    ]


def _goals(groups: Groups) -> Iterator[str]:
    """Return the goals of the default settings and the datasets that miss them, as lines."""
    goals: dict[str, Callable[[str, Sequence[AccuracyRow]], bool]] = {
        "U.C. at most 0.01 below the SVM's": lambda _, rows: (
            mean_of(rows, "uncertainty_coefficient")
            >= mean_of(rows, "source_uncertainty_coefficient") - 0.01
        ),
        "Cost at most a tenth of the SVM's": lambda _, rows: (
            mean_of(rows, "cost") <= mean_of(rows, "source_cost") / 10
        ),
        "Brier score at most 0.005 above the SVM's": lambda _, rows: (
            mean_of(rows, "brier_score") <= mean_of(rows, "source_brier_score") + 0.005
        ),
        "Estimated agreement within two standard errors of the measured one": lambda _, rows: (
            abs(errors_apart(rows)) <= 2
        ),
        f"At most {MAX_SECONDS} s ({MAX_LONG_SECONDS} s on {' and '.join(LONG)})": (
            lambda name, rows: mean_of(rows, "fit_seconds") <= _max_seconds(name)
        ),
    }
    for goal, is_met in goals.items():
        yield goal_line(goal, ((name, is_met(name, rows)) for name, rows in groups.items()))
    slow = [rows for rows in groups.values() if mean_of(rows, "source_seconds") > MAX_SECONDS]
    faster = [
        rows for rows in slow if mean_of(rows, "fit_seconds") < mean_of(rows, "source_seconds")
    ]
    if slow:
        yield (
            f"- Faster than the SVM's training, where that takes over {MAX_SECONDS} s: "
            f"{len(faster)} of {len(slow)}."
        )


def _max_seconds(name: str) -> float:
    """Return the seconds that a fit may take."""
    return MAX_LONG_SECONDS if name.removesuffix(MIXED) in LONG else MAX_SECONDS


def errors_apart(rows: Sequence[AccuracyRow]) -> float:
    """Return the mean difference of estimated and measured agreement in standard errors."""
    differences = []
    for row in rows:
        # At least that of half a row: a share of 0 or 1 has an error too.
        variance = max(row.agreement * (1 - row.agreement), 0.5 / row.n_test)
        error = np.hypot(row.agreement_error, np.sqrt(variance / row.n_test))
        differences.append((row.agreement_estimated - row.agreement) / error)
    return float(np.mean(differences))


if __name__ == "__main__":
    main()
