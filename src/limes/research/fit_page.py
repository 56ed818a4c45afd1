"""Rows of the measurements of the fit, and the page that is written from them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limes.plotting import COLOURS, new_figure
from limes.research.fit_constants import ConstantRow, CountRow, constants_part, constants_text
from limes.research.results import select
from limes.research.table import Cell, Column, Table, goal_line, mean_of, yes_or_no

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BEFORE, AFTER = "before", "after"
# Goals, in the order of the page.
LONG = ("mnist", "humidity")
MAX_TOTAL_SECONDS, MAX_TOTAL_SECONDS_WITH_LONG = 80, 100
MAX_SMALL_SECONDS = {"moons600": 1.5, "heart": 1.5, "wine": 1.5, "segment": 2.5, "digits": 2.5}
MAX_SKILL_LOSS, MAX_AGREEMENT_LOSS = 0.01, 0.002
MIN_CURVED_CASES, MAX_CURVED_LOSS = 13, 0.02
MANY_CLASSES, MAX_CLASSES_SECONDS = (50, 100, 150), 60
MIN_WIDE_AGREEMENT = {"madelon": 0.95, "wide1000": 0.90}
MAX_TRAINER_RATIO = 0.5
# Standard errors that count as a difference.
N_ERRORS = 2
INTRODUCTION = """\
# The fit: time, skill, growth, constants

`limes.accelerate(svm, X_train, scheme="shared", fallback=False)`: maps alone, without the exact
sums that [exact.md](exact.md) measures. The page is written by `python -m limes.research.fit` from
the rows in `docs/fit/`; the paper's datasets come from `LIMES_DATA`. SVMs follow a scaler. *After*
is this version, *before* the version that it replaces; both fit in turns, in processes of their
own. Seconds are processor time of one thread, on a computer that may have run other programs as
well. Differences of U.C. and agreements are measured on test rows (20 000 at most), as means over
the seeds.
"""
# Which values of the default come from the prototypes, and on what the others were chosen.
CHOSEN_ON = """\
Values that the prototypes had settled and values that were chosen later are marked in
`src/limes/fit/config.py`. The seeds 20 to 22 of this page were used for no choice.
"""
TIME_TEXT = """
## Time and skill

The paper's datasets with its parameters (mnist: 10 000 training rows).
"""
SMALL_TEXT = """
Small problems; moons600 are two half moons of 600 training rows.
"""
GROWTH_TEXT = """
## Growth

Classes: 9000 rows of 30 features (`make_classification`, 20 informative). Rows: two classes of 10
features; the SVM is trained on at most 4000 of the rows that are given.
"""
CURVED_TEXT = """
## Curved borders

`curved_problem` of `src/limes/research/problems.py`, with 8, 15 and 30 features: 5000 training rows
of classes that overlap. The version before has one seed.
"""
CLASSES_TEXT = """
## Many classes

`make_classification` with 30 features, 20 informative, one cluster per class, 9000 training rows.
"""
WIDE_TEXT = """
## Wide rows

madelon has 500 features; wide1000 is `make_classification` with 1000 features, 20 informative, and
4 classes.
"""
LEVELS_TEXT = """
## SIMD levels and threads

The same fit with the widest SIMD level of the computer ({widest}), with AVX2, and with two threads.
"""
TRAINER_TEXT = """
## Trainer

Microseconds of processor time per sample, from `benchmarks/trainer.py`.
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
    setting : str
        "widest", "avx2" or "two threads".
    level : str
        SIMD level.
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
    setting: str
    level: str
    n_test: int
    agreement: float
    digest: str
    fit_seconds: float
    commit: str


@dataclass(frozen=True)
class TrainerRow:
    """Microseconds per sample of the trainer, before and after."""

    dataset: str
    level: str
    before_us: float
    after_us: float


class Rows(NamedTuple):
    """All rows of the page."""

    time: Sequence[FitRow] = ()
    growth: Sequence[FitRow] = ()
    curved: Sequence[FitRow] = ()
    classes: Sequence[FitRow] = ()
    wide: Sequence[FitRow] = ()
    constants: Sequence[ConstantRow] = ()
    counts: Sequence[CountRow] = ()
    levels: Sequence[LevelRow] = ()
    trainer: Sequence[TrainerRow] = ()


class Pair(NamedTuple):
    """The rows of one case."""

    name: str
    before: Sequence[FitRow]
    after: Sequence[FitRow]


def make_page(rows: Rows, listed: Sequence[str]) -> str:
    """Write the page; parts without rows are left out. ``listed`` are the paper's datasets."""
    paper = [row for row in rows.time if row.case in listed]
    small = [row for row in rows.time if row.case in MAX_SMALL_SECONDS]
    growth = [row for part in (rows.classes, rows.growth) for row in part]
    constants = constants_text(rows.constants)
    numbers = {row.version: row.n_constants for row in rows.counts}
    widest = {row.level for row in rows.levels if row.setting == "widest"}
    levels = LEVELS_TEXT.format(widest=", ".join(sorted(widest)))
    parts: list[tuple[str, Sequence[Any], Callable[[Any], Iterator[str]]]] = [
        (TIME_TEXT, paper, lambda part: _time_part(part, listed)),
        (SMALL_TEXT, small, _small_part),
        (GROWTH_TEXT, growth, _growth_part),
        (CURVED_TEXT, rows.curved, _curved_part),
        (CLASSES_TEXT, [row for row in rows.classes if _size(row) >= 50], _classes_part),
        (WIDE_TEXT, _wide_rows(rows), _wide_part),
        (
            constants,
            rows.constants,
            lambda part: constants_part(part, numbers),
        ),
        (levels, rows.levels, _levels_part),
        (TRAINER_TEXT, rows.trainer, _trainer_part),
    ]
    sections = ["\n".join([text, *lines(part), ""]) for text, part, lines in parts if part]
    return "".join([INTRODUCTION, "\n", CHOSEN_ON, *_commits(rows), *sections])


def _commits(rows: Rows) -> Iterator[str]:
    """Return a line with the commits of the versions, several if rows were measured later."""
    fits = [row for part in rows[:5] for row in part]
    for version in (BEFORE, AFTER):
        if commits := {row.commit for row in fits if row.version == version}:
            yield f"\nCommit {version}: {', '.join(sorted(commits))}.\n"


def _time_part(rows: Sequence[FitRow], listed: Sequence[str]) -> Iterator[str]:
    """Return the table of time and skill, and its goals."""
    pairs = _pairs(rows, listed)
    yield _table(TIME_COLUMNS, (_time_line(pair) for pair in pairs))
    short = [name for name in listed if name not in LONG]
    limits = (
        (f"Seconds without {' and '.join(LONG)}", MAX_TOTAL_SECONDS, short),
        ("Seconds of all", MAX_TOTAL_SECONDS_WITH_LONG, listed),
    )
    for goal, limit, names in limits:
        yield _total_line(goal, limit, [pair for pair in pairs if pair.name in names], len(names))
    yield _skill_goal(pairs)
    both = [pair for pair in pairs if pair.before and pair.after]
    if not both:
        return
    old, new = (
        float(np.mean([mean_of(getattr(pair, version), "agreement") for pair in both]))
        for version in (BEFORE, AFTER)
    )
    yield (
        f"- Mean agreement at most {MAX_AGREEMENT_LOSS:g} below that before: "
        f"{yes_or_no(new >= old - MAX_AGREEMENT_LOSS)}, {new:.4f} (before: "
        f"{old:.4f}; {_of(both, listed)})."
    )
    old, new = (
        float(np.median([mean_of(getattr(pair, version), "cost") for pair in both]))
        for version in (BEFORE, AFTER)
    )
    yield (
        f"- Median cost at most that before: {yes_or_no(new <= old)}, {new:.0f} (before: "
        f"{old:.0f}; {_of(both, listed)})."
    )


TIME_COLUMNS = (
    Column("dataset"),
    Column("seeds", "count"),
    *(Column(f"U.C., {head}", "skill") for head in ("SVM", BEFORE, AFTER)),
    Column("difference", "change"),
    *(Column(f"agreement, {head}", ".4f") for head in (BEFORE, AFTER, "estimated")),
    *(Column(f"cost, {head}", "count") for head in ("SVM", BEFORE, AFTER)),
    Column("points"),
    *(Column(f"s, {head}", ".2f") for head in (BEFORE, AFTER)),
    Column("s, ratio", ".2f"),
)


def _time_line(pair: Pair) -> list[Cell]:
    """Return the cells of one case in tables of time and skill."""
    either = pair.after or pair.before
    return [
        *(pair.name, len(either), mean_of(either, "source_uncertainty_coefficient")),
        *_both(pair, "uncertainty_coefficient"),
        _mean_or_none(pair.after, "gain"),
        *_both(pair, "agreement"),
        _mean_or_none(pair.after, "agreement_estimated"),
        mean_of(either, "source_cost"),
        *_both(pair, "cost"),
        _points(pair.after),
        *_seconds(pair),
    ]


def _small_part(rows: Sequence[FitRow]) -> Iterator[str]:
    """Return the table of small problems and its goal."""
    pairs = _pairs(rows, MAX_SMALL_SECONDS)
    lines = ([pair.name, *_seconds(pair), MAX_SMALL_SECONDS[pair.name]] for pair in pairs)
    yield _table(SMALL_COLUMNS, lines)
    yield goal_line(
        "Seconds below the limit",
        (
            (pair.name, mean_of(pair.after, "fit_seconds") < MAX_SMALL_SECONDS[pair.name])
            for pair in pairs
            if pair.after
        ),
    )


SMALL_COLUMNS = (
    Column("problem"),
    *(Column(f"s, {head}", ".2f") for head in (BEFORE, AFTER)),
    Column("s, ratio", ".2f"),
    Column("limit", ".1f"),
)


def _growth_part(rows: Sequence[FitRow]) -> Iterator[str]:
    """Return the figure of the growth and its table."""
    yield "![Seconds of a fit by classes and by rows](fit/growth.png)\n"
    names = sorted({row.case for row in rows}, key=lambda name: (name[:4], int(_digits(name))))
    lines = (
        [
            *(pair.name, *_seconds(pair)),
            *(_mean_or_none(pair.after, column) for column in ("gain", "agreement")),
        ]
        for pair in _pairs(rows, names)
    )
    yield _table(GROWTH_COLUMNS, lines)


GROWTH_COLUMNS = (
    Column("problem"),
    *(Column(f"s, {head}", ".2f") for head in (BEFORE, AFTER)),
    Column("s, ratio", ".2f"),
    Column("difference of U.C.", "change"),
    Column("agreement", ".4f"),
)


def _curved_part(rows: Sequence[FitRow]) -> Iterator[str]:
    """Return the table of curved borders and its goals."""
    pairs = _pairs(rows, list(dict.fromkeys(row.case for row in rows)))
    yield _table(CASE_COLUMNS, map(_case_line, pairs))
    gains = {pair.name: mean_of(pair.after, "gain") for pair in pairs if pair.after}
    n_close = sum(gain >= -MAX_SKILL_LOSS for gain in gains.values())
    yield _skill_goal(pairs)
    yield (
        f"- At least {MIN_CURVED_CASES} of 15: {yes_or_no(n_close >= MIN_CURVED_CASES)}, {n_close}."
    )
    yield goal_line(
        f"None more than {MAX_CURVED_LOSS:g} below",
        ((name, gain >= -MAX_CURVED_LOSS) for name, gain in gains.items()),
    )


CASE_COLUMNS = (
    Column("problem"),
    Column("seeds", "count"),
    *(Column(f"U.C., {head}", "skill") for head in ("SVM", AFTER)),
    *(Column(f"difference, {head}", "change") for head in (BEFORE, AFTER)),
    *(Column(f"agreement, {head}", ".4f") for head in (BEFORE, AFTER, "estimated")),
    *(Column(f"cost, {head}", "count") for head in ("SVM", BEFORE, AFTER)),
    Column("points"),
    *(Column(f"s, {head}", ".2f") for head in (BEFORE, AFTER)),
)


def _case_line(pair: Pair) -> list[Cell]:
    """Return the cells of one case; the version before may have fewer seeds."""
    either = pair.after or pair.before
    return [
        *(pair.name, len(either), mean_of(either, "source_uncertainty_coefficient")),
        _mean_or_none(pair.after, "uncertainty_coefficient"),
        *_both(pair, "gain"),
        *_both(pair, "agreement"),
        _mean_or_none(pair.after, "agreement_estimated"),
        mean_of(either, "source_cost"),
        *_both(pair, "cost"),
        _points(pair.after),
        *_both(pair, "fit_seconds"),
    ]


def _classes_part(rows: Sequence[FitRow]) -> Iterator[str]:
    """Return the table of many classes and its goals."""
    pairs = _pairs(rows, [f"classes{n_classes}" for n_classes in MANY_CLASSES])
    yield _table(CASE_COLUMNS, map(_case_line, pairs))
    yield _skill_goal(pairs)
    yield goal_line(
        f"At most {MAX_CLASSES_SECONDS} s",
        (
            (pair.name, mean_of(pair.after, "fit_seconds") <= MAX_CLASSES_SECONDS)
            for pair in pairs
            if pair.after
        ),
    )


def _wide_rows(rows: Rows) -> list[FitRow]:
    """Return the rows of wide problems: of their own part, and madelon."""
    return [row for row in (*rows.time, *rows.wide) if row.case in MIN_WIDE_AGREEMENT]


def _wide_part(rows: Sequence[FitRow]) -> Iterator[str]:
    """Return the table of wide rows and its goals."""
    pairs = _pairs(rows, MIN_WIDE_AGREEMENT)
    yield _table(CASE_COLUMNS, map(_case_line, pairs))
    for pair in pairs:
        if pair.after:
            agreement, limit = mean_of(pair.after, "agreement"), MIN_WIDE_AGREEMENT[pair.name]
            yield (
                f"- Agreement of {pair.name} at least {limit:g}: {yes_or_no(agreement >= limit)}, "
                f"{agreement:.4f}."
            )


def _levels_part(rows: Sequence[LevelRow]) -> Iterator[str]:
    """Return the table of SIMD levels and threads, and its goals."""
    cases = list(dict.fromkeys(row.case for row in rows))
    by_case = {case: {row.setting: row for row in select(rows, case=case)} for case in cases}
    complete = {case: found for case, found in by_case.items() if len(found) == 3}
    lines: list[list[Cell]] = []
    for case, found in complete.items():
        widest, avx2, threads = (found[name] for name in ("widest", "avx2", "two threads"))
        error = difference_error(widest, avx2)
        same = yes_or_no(widest.digest == threads.digest)
        lines.append([case, widest.n_test, widest.agreement, avx2.agreement, error, same])
    yield _table(LEVEL_COLUMNS, lines)
    yield goal_line(
        f"Agreements of both levels within {N_ERRORS} standard errors",
        (
            (
                case,
                abs(found["widest"].agreement - found["avx2"].agreement)
                <= N_ERRORS * difference_error(found["widest"], found["avx2"]),
            )
            for case, found in complete.items()
        ),
    )
    yield goal_line(
        "The same model, bit for bit, with two threads",
        (
            (case, found["widest"].digest == found["two threads"].digest)
            for case, found in complete.items()
        ),
    )


LEVEL_COLUMNS = (
    Column("dataset"),
    Column("test rows", "count"),
    *(Column(head, ".4f") for head in ("agreement, widest", "agreement, AVX2", "standard error")),
    Column("same model with two threads"),
)


def difference_error(first: LevelRow, second: LevelRow) -> float:
    """Return the standard error of a difference of agreements, that of half a row at least."""
    variances = (max(r.agreement * (1 - r.agreement), 0.5 / r.n_test) for r in (first, second))
    return float(np.sqrt(sum(variances) / first.n_test))


def _trainer_part(rows: Sequence[TrainerRow]) -> Iterator[str]:
    """Return the table of the trainer and its goal."""
    lines = (
        [row.dataset, row.level, row.before_us, row.after_us, row.after_us / row.before_us]
        for row in rows
    )
    yield _table(TRAINER_COLUMNS, lines)
    yield goal_line(
        f"At most {MAX_TRAINER_RATIO:g} times the time before",
        (
            (f"{row.dataset} ({row.level})", row.after_us <= MAX_TRAINER_RATIO * row.before_us)
            for row in rows
        ),
    )


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


def _skill_goal(pairs: Sequence[Pair]) -> str:
    """Return how many cases keep the skill of the SVM, as a line."""
    return goal_line(
        f"U.C. at most {MAX_SKILL_LOSS:g} below the SVM's",
        (
            (pair.name, mean_of(pair.after, "gain") >= -MAX_SKILL_LOSS)
            for pair in pairs
            if pair.after
        ),
    )


def _total_line(goal: str, limit: float, pairs: Sequence[Pair], n_expected: int) -> str:
    """Return the sum of the seconds, as a line; no word where some are missing."""
    after, before = (
        [mean_of(getattr(pair, version), "fit_seconds") for pair in pairs if getattr(pair, version)]
        for version in (AFTER, BEFORE)
    )
    verdict = yes_or_no(sum(after) <= limit)
    if len(after) < n_expected:
        verdict = f"only {len(after)} of {n_expected} measured"
    compared = f" (before: {sum(before):.1f} s)" if len(before) == len(after) else ""
    return f"- {goal} at most {limit:g}: {verdict}, {sum(after):.1f} s{compared}."


def _of(pairs: Sequence[Pair], listed: Sequence[str]) -> str:
    """Return on how many of the datasets a number is based."""
    return f"{len(pairs)} of {len(listed)} datasets"


def _table(columns: Sequence[Column], lines: Any) -> str:
    """Write a table."""
    return Table("fit", "", columns, list(lines)).markdown()
