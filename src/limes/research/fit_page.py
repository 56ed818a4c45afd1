"""Rows of the measurements of the fit, and the page that is written from them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limes.plotting import COLOURS, new_figure
from limes.research.fit_constants import (
    ConstantRow,
    UsedRow,
    constants_goals,
    constants_part,
    constants_text,
)
from limes.research.results import Cell, Column, Goal, Table, mean_of, select, yes_or_no

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BEFORE, AFTER = "before", "after"
# Seeds that nothing was chosen by.
SEEDS = (20, 21, 22)
# Goals, in the order of the page.
LONG = ("mnist", "humidity")
MAX_TOTAL_SECONDS, MAX_TOTAL_SECONDS_WITH_LONG = 80, 100
MAX_SMALL_SECONDS = {"moons600": 1.5, "heart": 1.5, "wine": 1.5, "segment": 2.5, "digits": 2.5}
MAX_SKILL_LOSS, MAX_AGREEMENT_LOSS = 0.01, 0.002
GROWTH_ROWS, GROWTH_CLASSES = (1000, 4000, 16_000, 64_000), (2, 10, 50, 100, 150)
# Times may differ by this factor without a reason.
TIME_NOISE = 1.1
CURVED_FEATURES, N_CURVED = (8, 15, 30), 15
MIN_CURVED_CASES, MAX_CURVED_LOSS = 13, 0.02
MANY_CLASSES, MAX_CLASSES_SECONDS = (50, 100, 150), 60
MIN_WIDE_AGREEMENT = {"madelon": 0.95, "wide1000": 0.90}
TRAINER_DATASETS, MAX_TRAINER_RATIO = ("sat", "segment", "letter", "usps"), 0.5
# Standard errors that count as a difference.
N_ERRORS = 2
INTRODUCTION = """\
# The fit: time, skill, growth, constants

`limes.accelerate(svm, X_train, scheme="shared", fallback=False)`: maps alone, without the exact
sums that [exact.md](exact.md) measures. The page is written by `python -m limes.research.fit` from
the rows in `docs/fit/`; the paper's datasets come from `LIMES_DATA`. SVMs follow a scaler. *After*
is this version, *before* the version that it replaces; both fit the same SVM in turns, in processes
of their own. A version that is measured anew by itself takes no turns: the present rows of this
version ran within a quarter of an hour of those before, on the same computer. Seconds are processor
time of one thread, on a computer that may have run other programs as well. Differences of U.C. and
agreements are measured on test rows (20 000 at most), as means over the seeds. *Cost* is
multiply-adds per row, *µs* the processor time of a prediction per row, measured in turns.
"""
# On what the values that do not come from the design were chosen: to be told by who chooses them.
CHOSEN_ON = """
## Where the values of the default come from

Comments in `src/limes/fit/config.py` give the reason for each. The seeds 20 to 22 of this page
were used for no choice. Values that are not from the design were chosen on other problems, with
the seeds 50 to 52: mixtures of Gaussians, also with moved clusters or features in the test rows;
windows of oscillations and tables of lagged values, also with larger oscillations in the test rows;
images of textures; rare classes; binary motifs; shells, cones, eggs and waves; rings, ellipsoids
and saddles in 20, 22 and 26 dimensions; tables of 200 to 2000 features; and the further problems of
[accuracy.md](accuracy.md). Rings in 15 and 30 dimensions, sat, pendigits, shuttle, codrna, ijcnn1,
dna, splice, seismic, phishing, madelon, the table of 1000 features and the pixels of two scenes
were looked at with these seeds, to find the reason of a loss or to check a choice.
"""
TIME_TEXT = """
## Time and skill

{goals}

The paper's datasets with its parameters (mnist: 10 000 training rows), then small problems:
moons600 are two half moons of 600 training rows.
"""
GROWTH_TEXT = """
## Growth

{goals}

Classes: 9000 rows of 30 features (`make_classification`, 20 informative). Rows: two classes of 10
features; the SVM is trained on at most 4000 of the rows that are given.
"""
CURVED_TEXT = """
## Curved borders

{goals}

`curved_problem` of `src/limes/research/problems.py`: 5000 training rows of classes that overlap,
20 000 test rows. The version before has one seed.
"""
CLASSES_TEXT = """
## Many classes

{goals}

`make_classification` with 30 features, 20 informative, one cluster per class, 9000 training rows.
The version before has one seed, and did not finish with more than 50 classes.
"""
WIDE_TEXT = """
## Wide rows

{goals}

madelon has 500 features; wide1000 is `make_classification` with 1000 features, 20 informative, and
4 classes.
"""
LEVELS_TEXT = """
## SIMD levels and threads

{goals}

The same fit with each SIMD level of the computer, with `n_jobs` of 1 and of 2, and with two threads
of the linear algebra of NumPy and SciPy as well.
"""
TRAINER_TEXT = """
## Trainer

{goals}

Microseconds of processor time per sample, from `benchmarks/trainer.py`: the least of five turns.
"""


@dataclass(frozen=True)
class FitRow:
    """A fast model compared with its SVM, on one case, version and seed.

    Parameters
    ----------
    case : str
        Dataset or problem.
    version : str
        "before" or "after".
    seed : int
        Seed of the fit, and of a random split or problem.
    n_given, n_test, n_features, n_classes, n_support : int
        Rows given to the fit, rows compared, sizes of the SVM.
    source_cost : int
        Multiply-adds per row of the SVM: support vectors times features.
    source_uncertainty_coefficient, uncertainty_coefficient : float
        Skill of the SVM and of the model on the test rows.
    agreement : float
        Share of the test rows with the SVM's label.
    agreement_estimated, agreement_error : float
        ``agreement_`` and ``agreement_error_``.
    scheme : str
        Scheme of the model.
    n_borders : int
        Its border points.
    cost : float
        Its multiply-adds per row.
    microseconds_per_row : float
        Processor time of a prediction.
    fit_seconds, cpu_share : float
        Processor time of ``accelerate``, and this divided by wall-clock time.
    commit : str
        Of the version.
    """

    case: str
    version: str
    seed: int
    n_given: int
    n_test: int
    n_features: int
    n_classes: int
    n_support: int
    source_cost: int
    source_uncertainty_coefficient: float
    uncertainty_coefficient: float
    agreement: float
    agreement_estimated: float
    agreement_error: float
    scheme: str
    n_borders: int
    cost: float
    microseconds_per_row: float
    fit_seconds: float
    cpu_share: float
    commit: str

    @property
    def gain(self) -> float:
        """Skill of the model minus that of the SVM."""
        return self.uncertainty_coefficient - self.source_uncertainty_coefficient


@dataclass(frozen=True)
class LevelRow:
    """A fit with a SIMD level and a number of threads.

    Parameters
    ----------
    case : str
        Dataset or problem.
    level : str
        SIMD level.
    n_jobs, n_blas_threads : int
        Threads of limes, and of the linear algebra of NumPy and SciPy.
    n_test : int
        Rows compared.
    agreement : float
        Share of them with the SVM's label.
    digest : str
        Of the bytes of the model's file.
    fit_seconds : float
        Processor time.
    commit : str
        Of the version.
    """

    case: str
    level: str
    n_jobs: int
    n_blas_threads: int
    n_test: int
    agreement: float
    digest: str
    fit_seconds: float
    commit: str


@dataclass(frozen=True)
class TrainerRow:
    """Microseconds per sample of the trainer, before (None if it had no such problem) and after."""

    dataset: str
    level: str
    before_us: float | None
    after_us: float | None


class Rows(NamedTuple):
    """All rows of the page."""

    time: Sequence[FitRow] = ()
    growth: Sequence[FitRow] = ()
    curved: Sequence[FitRow] = ()
    classes: Sequence[FitRow] = ()
    wide: Sequence[FitRow] = ()
    used: Sequence[UsedRow] = ()
    constants: Sequence[ConstantRow] = ()
    limits: Sequence[ConstantRow] = ()
    levels: Sequence[LevelRow] = ()
    trainer: Sequence[TrainerRow] = ()


class Pair(NamedTuple):
    """The rows of one case."""

    name: str
    before: Sequence[FitRow]
    after: Sequence[FitRow]


class Section(NamedTuple):
    """A part of the page: its goals stand above the text, tables below."""

    # With a place for the goals.
    text: str
    goals: Sequence[Goal]
    lines: Iterable[str]

    def write(self) -> str:
        """Return the part."""
        goals = "\n".join(goal.line for goal in self.goals)
        return "\n".join([self.text.replace("{goals}", goals), *self.lines, ""])


def make_page(rows: Rows, listed: Sequence[str]) -> str:
    """Write the page; parts without rows are left out. ``listed`` are the paper's datasets."""
    sections = list(_sections(rows, listed))
    goals = [goal for section in sections for goal in section.goals]
    missed = [goal.asked for goal in goals if goal.is_complete and not goal.is_met]
    n_open = sum(not goal.is_complete for goal in goals)
    summary = f"\nOf {len(goals)} goals, {len(goals) - len(missed) - n_open} are met"
    summary += f", {n_open} not all measured yet" if n_open else ""
    summary += f". Missed: {'; '.join(missed)}.\n" if missed else ".\n"
    parts = [INTRODUCTION, summary, *_commits(rows), CHOSEN_ON, *_origins(rows.used)]
    return "".join([*parts, *(section.write() for section in sections)])


def _sections(rows: Rows, listed: Sequence[str]) -> Iterator[Section]:
    """Return the parts that have rows."""
    paper = _pairs(rows.time, listed)
    timed = _pairs(rows.time, dict.fromkeys([*listed, *MAX_SMALL_SECONDS]))
    curved = _pairs(rows.curved, dict.fromkeys(row.case for row in rows.curved))
    classes = _pairs(rows.classes, [f"classes{n_classes}" for n_classes in MANY_CLASSES])
    wide = _pairs([*rows.time, *rows.wide], MIN_WIDE_AGREEMENT)
    growth = [*rows.classes, *rows.growth]
    parts: list[tuple[Any, str, Iterator[Goal], Callable[[], Iterable[str]]]] = [
        (timed, TIME_TEXT, _time_goals(timed, paper, listed), lambda: [_fit_table(timed)]),
        (growth, GROWTH_TEXT, _growth_goals(rows), lambda: _growth_part(growth)),
        (curved, CURVED_TEXT, _curved_goals(curved), lambda: [_fit_table(curved)]),
        (classes, CLASSES_TEXT, _classes_goals(classes), lambda: [_fit_table(classes)]),
        (wide, WIDE_TEXT, _wide_goals(wide), lambda: [_fit_table(wide)]),
        (
            rows.constants,
            constants_text(rows.constants, rows.limits),
            constants_goals([*rows.constants, *rows.limits], rows.used),
            lambda: constants_part([*rows.constants, *rows.limits]),
        ),
        (rows.levels, LEVELS_TEXT, _level_goals(rows.levels), lambda: _levels_part(rows.levels)),
        (
            rows.trainer,
            TRAINER_TEXT,
            _trainer_goals(rows.trainer),
            lambda: [_trainer_table(rows.trainer)],
        ),
    ]
    for found, text, goals, lines in parts:
        if found:
            yield Section(text, list(goals), lines())


def _commits(rows: Rows) -> Iterator[str]:
    """Return a line with the commits of the versions, several if rows were measured later."""
    fits = [row for part in rows[:5] for row in part]
    for version in (BEFORE, AFTER):
        if commits := {row.commit for row in fits if row.version == version}:
            yield f"\nCommit {version}: {', '.join(sorted(commits))}.\n"


def _origins(rows: Sequence[UsedRow]) -> Iterator[str]:
    """Return which constants of this version come from the design."""
    found = select(rows, version=AFTER)
    for words, is_from_design in (("Taken from DESIGN", 1), ("Others", 0)):
        names = [row.constant for row in found if row.is_from_design == is_from_design]
        if names:
            yield f"\n- {words} ({len(names)}): {', '.join(names)}.\n"


def _time_goals(
    timed: Sequence[Pair], pairs: Sequence[Pair], listed: Sequence[str]
) -> Iterator[Goal]:
    """Return the goals of time, and of skill, agreement and cost of the paper's datasets."""
    short = [name for name in listed if name not in LONG]
    for what, limit, names in (
        (f"the seventeen without {' and '.join(LONG)}", MAX_TOTAL_SECONDS, short),
        ("with them", MAX_TOTAL_SECONDS_WITH_LONG, listed),
    ):
        found = [pair for pair in pairs if pair.name in names]
        before, after = (_totals(found, version) for version in (BEFORE, AFTER))
        compared = f" (before: {sum(before):.1f} s)" if len(before) == len(after) else ""
        yield Goal(
            f"Processor time of `accelerate`, one thread, {what}: at most {limit} s",
            sum(after) <= limit,
            f"{sum(after):.1f} s{compared}",
            is_complete=_is_complete(found, len(names)),
        )
    yield from _small_goals(timed)
    yield _skill_goal(pairs, len(listed), len(listed))
    both = [pair for pair in pairs if pair.before and pair.after]
    is_complete = _is_complete(both, len(listed))
    old, new = (_over_cases(both, version, "agreement", np.mean) for version in (BEFORE, AFTER))
    yield Goal(
        f"Mean agreement at least that before - {MAX_AGREEMENT_LOSS:g}",
        new >= old - MAX_AGREEMENT_LOSS,
        f"{new:.4f} (before: {old:.4f})",
        is_complete=is_complete,
    )
    old, new = (_over_cases(both, version, "cost", np.median) for version in (BEFORE, AFTER))
    times = [
        _over_cases(both, version, "microseconds_per_row", np.median) for version in (BEFORE, AFTER)
    ]
    yield Goal(
        "Median prediction cost no higher",
        new <= old,
        f"{new:.0f} multiply-adds (before: {old:.0f}), {times[1]:.3f} µs (before: {times[0]:.3f})",
        is_complete=is_complete,
    )


def _totals(pairs: Sequence[Pair], version: str) -> list[float]:
    """Return the mean seconds of each case that a version has."""
    groups = [getattr(pair, version) for pair in pairs]
    return [mean_of(rows, "fit_seconds") for rows in groups if rows]


def _over_cases(
    pairs: Sequence[Pair], version: str, column: str, average: Callable[[Any], Any]
) -> float:
    """Return the average over the cases of the means over the seeds; not a number without cases."""
    means = [mean_of(getattr(pair, version), column) for pair in pairs]
    return float(average(means)) if means else float("nan")


def _fit_table(pairs: Sequence[Pair]) -> str:
    """Return the table of time and skill; the version before may have fewer seeds."""
    return _table(FIT_COLUMNS, (_fit_line(pair) for pair in pairs))


FIT_COLUMNS = (
    Column("problem"),
    Column("seeds", "count"),
    Column("U.C., SVM", "skill"),
    *(Column(f"difference, {head}", "change") for head in (BEFORE, AFTER)),
    *(Column(f"agreement, {head}", ".4f") for head in (BEFORE, AFTER, "estimated")),
    *(Column(f"cost, {head}", "count") for head in ("SVM", BEFORE, AFTER)),
    *(Column(f"µs, {head}", ".3f") for head in (BEFORE, AFTER)),
    Column("points"),
    *(Column(f"s, {head}", ".2f") for head in (BEFORE, AFTER)),
    Column("s, ratio", ".2f"),
)


def _fit_line(pair: Pair) -> list[Cell]:
    """Return the cells of one case."""
    either = pair.after or pair.before
    return [
        *(pair.name, len(either), mean_of(either, "source_uncertainty_coefficient")),
        *_both(pair, "gain"),
        *_both(pair, "agreement"),
        _mean_or_none(pair.after, "agreement_estimated"),
        mean_of(either, "source_cost"),
        *_both(pair, "cost"),
        *_both(pair, "microseconds_per_row"),
        _points(pair.after),
        *_seconds(pair),
    ]


def _small_goals(pairs: Sequence[Pair]) -> Iterator[Goal]:
    """Return the goals of small problems."""
    for limit in dict.fromkeys(MAX_SMALL_SECONDS.values()):
        names = [name for name, seconds in MAX_SMALL_SECONDS.items() if seconds == limit]
        found = [pair for pair in pairs if pair.name in names]
        means = _after_means(found, "fit_seconds")
        yield Goal(
            f"{', '.join(names)} under {limit:g} s",
            all(seconds < limit for seconds in means.values()),
            ", ".join(f"{name} {seconds:.2f} s" for name, seconds in means.items()),
            is_complete=_is_complete(found, len(names)),
        )


def _growth_goals(rows: Rows) -> Iterator[Goal]:
    """Return whether the time grows at most linearly from each size to the next."""
    parts = (("rows", rows.growth, GROWTH_ROWS), ("classes", rows.classes, GROWTH_CLASSES))
    for what, found, sizes in parts:
        seconds = {
            size: mean_of(group, "fit_seconds")
            for size in sizes
            if (group := select(found, case=f"{what}{size}", version=AFTER))
        }
        steps = list(zip(seconds, list(seconds)[1:], strict=False))
        yield Goal(
            f"The time grows at most linearly with {what}, from each size to the next "
            f"(within {TIME_NOISE - 1:.0%})",
            all(seconds[b] / seconds[a] <= TIME_NOISE * b / a for a, b in steps),
            ", ".join(f"{number:.2f} s with {size} {what}" for size, number in seconds.items()),
            is_complete=len(seconds) == len(sizes),
        )


def _growth_part(rows: Sequence[FitRow]) -> Iterator[str]:
    """Return the figure of the growth and its table."""
    yield "![Seconds of a fit by classes and by rows](fit/growth.png)\n"
    names = sorted({row.case for row in rows}, key=lambda name: (name[:4], int(_digits(name))))
    yield _fit_table(_pairs(rows, names))


def _curved_goals(pairs: Sequence[Pair]) -> Iterator[Goal]:
    """Return the goals of curved borders."""
    yield _skill_goal(pairs, MIN_CURVED_CASES, N_CURVED)
    gains = _after_means(pairs, "gain")
    lowest = min(gains, key=lambda name: gains[name], default="")
    yield Goal(
        f"None below -{MAX_CURVED_LOSS:g}",
        all(gain >= -MAX_CURVED_LOSS for gain in gains.values()),
        f"lowest {gains[lowest]:+.4f} ({lowest})" if gains else "none measured",
        is_complete=_is_complete(pairs, N_CURVED),
    )


def _classes_goals(pairs: Sequence[Pair]) -> Iterator[Goal]:
    """Return the goals of many classes."""
    yield _skill_goal(pairs, len(MANY_CLASSES), len(MANY_CLASSES))
    seconds = _after_means(pairs, "fit_seconds")
    yield Goal(
        f"Within {MAX_CLASSES_SECONDS} s of one processor",
        all(number <= MAX_CLASSES_SECONDS for number in seconds.values()),
        ", ".join(f"{name} {number:.1f} s" for name, number in seconds.items()),
        is_complete=_is_complete(pairs, len(MANY_CLASSES)),
    )


def _wide_goals(pairs: Sequence[Pair]) -> Iterator[Goal]:
    """Return the goals of wide rows."""
    for name, limit in MIN_WIDE_AGREEMENT.items():
        found = [pair for pair in pairs if pair.name == name]
        agreement = _after_means(found, "agreement").get(name, float("nan"))
        is_met, is_complete = agreement >= limit, _is_complete(found, 1)
        yield Goal(
            f"Agreement of {name} at least {limit:g}", is_met, f"{agreement:.4f}", is_complete
        )


def _level_goals(rows: Sequence[LevelRow]) -> Iterator[Goal]:
    """Return whether threads change nothing, and SIMD levels no more than chance does."""
    single = select(rows, n_jobs=1, n_blas_threads=1)
    is_complete = len(rows) == len(single) * (1 + len(MORE_THREADS))
    for words, threads in MORE_THREADS.items():
        pairs = [(row, two) for row in single if (two := _same_fit(rows, row, threads))]
        differing = [f"{one.case} ({one.level})" for one, two in pairs if one.digest != two.digest]
        yield Goal(
            f"Bit-identical models on each SIMD level, {words}",
            not differing,
            f"{len(pairs) - len(differing)} of {len(pairs)}{_except(differing)}",
            is_complete=is_complete,
        )
    apart = {
        f"{row.case} ({row.level})": _errors_apart(widest, row)
        for row in single
        for widest in select(single, case=row.case, level=rows[0].level)
        if row is not widest
    }
    differing = [name for name, errors in apart.items() if errors > N_ERRORS]
    yield Goal(
        f"Across SIMD levels, agreement within {N_ERRORS} standard errors",
        not differing,
        f"{len(apart) - len(differing)} of {len(apart)}{_except(differing)}, at most "
        f"{max(apart.values(), default=0):.1f} standard errors",
        is_complete=is_complete and bool(apart),
    )


# Numbers of threads that are compared with one of each kind.
MORE_THREADS = {
    "n_jobs 1 and 2": (2, 1),
    "n_jobs 2 and two threads of the linear algebra": (2, 2),
}


def _same_fit(rows: Sequence[LevelRow], row: LevelRow, threads: tuple[int, int]) -> LevelRow | None:
    """Return the same fit with other numbers of threads, if it was measured."""
    n_jobs, n_blas_threads = threads
    values = {"case": row.case, "level": row.level, "n_jobs": n_jobs}
    return next(iter(select(rows, **values, n_blas_threads=n_blas_threads)), None)


def _errors_apart(first: LevelRow, second: LevelRow) -> float:
    """Return the difference of two agreements in standard errors."""
    return abs(first.agreement - second.agreement) / difference_error(first, second)


def difference_error(first: LevelRow, second: LevelRow) -> float:
    """Return the standard error of a difference of agreements, that of half a row at least."""
    variances = (max(r.agreement * (1 - r.agreement), 0.5 / r.n_test) for r in (first, second))
    return float(np.sqrt(sum(variances) / first.n_test))


def _levels_part(rows: Sequence[LevelRow]) -> Iterator[str]:
    """Return the table of SIMD levels and threads."""
    lines: list[list[Cell]] = []
    for row in select(rows, n_jobs=1, n_blas_threads=1):
        others = [_same_fit(rows, row, threads) for threads in MORE_THREADS.values()]
        same = [
            None if other is None else yes_or_no(row.digest == other.digest) for other in others
        ]
        error = difference_error(row, row)
        lines.append(
            [row.case, row.level, row.n_test, row.agreement, error, row.fit_seconds, *same]
        )
    yield _table(LEVEL_COLUMNS, lines)


LEVEL_COLUMNS = (
    Column("dataset"),
    Column("SIMD level"),
    Column("test rows", "count"),
    *(Column(head, ".4f") for head in ("agreement", "standard error of a difference")),
    Column("s", ".2f"),
    Column("same model, n_jobs=2"),
    Column("and two threads of the linear algebra"),
)


def _trainer_goals(rows: Sequence[TrainerRow]) -> Iterator[Goal]:
    """Return the goal of the trainer at the widest SIMD level and with AVX2."""
    for level in dict.fromkeys([*(row.level for row in rows[:1]), "avx2"]):
        ratios = {
            row.dataset: row.after_us / row.before_us
            for row in select(rows, level=level)
            if row.dataset in TRAINER_DATASETS and row.before_us and row.after_us
        }
        yield Goal(
            f"µs a sample at most {MAX_TRAINER_RATIO:g} times that before ({level})",
            all(ratio <= MAX_TRAINER_RATIO for ratio in ratios.values()),
            ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()),
            is_complete=len(ratios) == len(TRAINER_DATASETS),
        )


def _trainer_table(rows: Sequence[TrainerRow]) -> str:
    """Return the table of the trainer."""
    lines = []
    for row in rows:
        ratio = row.after_us / row.before_us if row.after_us and row.before_us else None
        lines.append([row.dataset, row.level, row.before_us, row.after_us, ratio])
    return _table(TRAINER_COLUMNS, lines)


TRAINER_COLUMNS = (
    Column("dataset"),
    Column("SIMD level"),
    *(Column(head, ".2f") for head in ("µs before", "µs after", "ratio")),
)


def save_figures(rows: Rows, folder: Path) -> list[Path]:
    """Draw the growth of the seconds, if there are rows of both kinds."""
    if not rows.classes and not rows.growth:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    figure = new_figure(figsize=(6.4, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    draw_growth(rows.classes, "classes", left)
    draw_growth(rows.growth, "rows", right)
    left.set_ylabel("seconds of a fit")
    path = folder / "growth.png"
    figure.savefig(path, dpi=150)
    return [path]


def draw_growth(rows: Sequence[FitRow], what: str, ax: "Axes") -> None:
    """Draw mean seconds by a size, a line for each version, with log axes."""
    from matplotlib.ticker import NullLocator

    styles = {BEFORE: (COLOURS[1], "s", "--"), AFTER: (COLOURS[0], "o", "-")}
    for version, (colour, marker, line) in styles.items():
        found = select(rows, version=version)
        sizes = sorted({_size(row) for row in found})
        means = [
            mean_of([row for row in found if _size(row) == size], "fit_seconds") for size in sizes
        ]
        if sizes:
            ax.plot(sizes, means, line, color=colour, marker=marker, label=version)
    ax.set(xscale="log", yscale="log", xlabel=what)
    ticks = sorted({_size(row) for row in rows})
    if len(ticks) > 4:
        # 100 classes are too near 150 for both labels.
        ticks = [tick for tick in ticks if tick != 100]
    ax.set_xticks(ticks, [f"{tick // 1000}k" if tick >= 1000 else f"{tick}" for tick in ticks])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.grid(alpha=0.3)
    if ax.get_legend_handles_labels()[0]:
        ax.legend()


def _size(row: FitRow) -> int:
    """Return the number in the name of a problem."""
    return int(_digits(row.case))


def _digits(name: str) -> str:
    """Return the digits of a name."""
    return "".join(filter(str.isdigit, name)) or "0"


def _pairs(rows: Sequence[FitRow], names: Any) -> list[Pair]:
    """Return the rows of each case that has any, in the order of the names."""
    pairs = (
        Pair(name, *(select(rows, case=name, version=version) for version in (BEFORE, AFTER)))
        for name in names
    )
    return [pair for pair in pairs if pair.before or pair.after]


def _both(pair: Pair, column: str) -> list[float | None]:
    """Return the means of a column before and after."""
    return [_mean_or_none(pair.before, column), _mean_or_none(pair.after, column)]


def _mean_or_none(rows: Sequence[FitRow], column: str) -> float | None:
    """Return the mean of a column, None without rows."""
    return mean_of(rows, column) if rows else None


def _seconds(pair: Pair) -> list[float | None]:
    """Return the seconds before and after, and their ratio."""
    before, after = _both(pair, "fit_seconds")
    return [before, after, after / before if after is not None and before else None]


def _points(rows: Sequence[FitRow]) -> str | None:
    """Return the smallest and the largest number of points."""
    numbers = sorted({row.n_borders for row in rows})
    if len(numbers) < 2:
        return f"{numbers[0]}" if numbers else None
    return f"{numbers[0]} to {numbers[-1]}"


def _skill_goal(pairs: Sequence[Pair], n_wanted: int, n_expected: int) -> Goal:
    """Return how many cases keep the skill of the SVM."""
    gains = _after_means(pairs, "gain")
    missed = [f"{name} {gain:+.4f}" for name, gain in gains.items() if gain < -MAX_SKILL_LOSS]
    n_kept = len(gains) - len(missed)
    return Goal(
        f"U.C. at least the source's - {MAX_SKILL_LOSS:g} on {n_wanted} of {n_expected}",
        n_kept >= n_wanted,
        f"{n_kept} of {len(gains)}{_except(missed)}",
        is_complete=_is_complete(pairs, n_expected),
    )


def _except(names: Sequence[str]) -> str:
    """Return which cases miss a goal."""
    return f" (not {', '.join(names)})" if names else ""


def _after_means(pairs: Sequence[Pair], column: str) -> dict[str, float]:
    """Return the mean of a column of each case that this version has."""
    return {pair.name: mean_of(pair.after, column) for pair in pairs if pair.after}


def _is_complete(pairs: Sequence[Pair], n_expected: int) -> bool:
    """Return whether this version has all cases with all seeds."""
    found = [pair for pair in pairs if {row.seed for row in pair.after} >= set(SEEDS)]
    return len(found) == n_expected


def _table(columns: Sequence[Column], lines: Any) -> str:
    """Write a table."""
    return Table("fit", "", columns, list(lines)).markdown()
