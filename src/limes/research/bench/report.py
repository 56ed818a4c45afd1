"""Markdown tables and figures from benchmark rows."""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from limes.plotting import new_figure
from limes.research.bench.run import BenchmarkRow, latest_runs
from limes.research.results import Cell, Column, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# U.C. that is lower by no more than this counts as equal.
SKILL_TOLERANCE = 0.001
SUMMARY_COLUMNS = (
    Column("dataset"),
    *(Column(head, ".4f") for head in ("U.C. of svc", "U.C. of limes")),
    *(Column(head, "seconds") for head in ("µs per row, limes", "svc / limes", "intelex / limes")),
    Column("fastest other of equal skill"),
    Column("its U.C.", ".4f"),
    *(Column(head, "seconds") for head in ("its µs per row", "its time / limes")),
)
# Colour and marker of each family: Okabe and Ito's colours, which colour-blind readers can
# distinguish, and different markers besides.
STYLES = {
    "svc": ("#000000", "s"),
    "intelex": ("#0072B2", "o"),
    "onnxruntime": ("#56B4E9", "v"),
    "nystroem": ("#009E73", "D"),
    "mlp": ("#CC79A7", "P"),
    "linear": ("#7F7F7F", "X"),
    "lightgbm": ("#E69F00", "^"),
    "limes": ("#D55E00", "*"),
}
OTHER_STYLE = ("#F0E442", "h")
TITLES = {
    "svc": "SVC (scikit-learn)",
    "intelex": "SVC (scikit-learn-intelex)",
    "onnxruntime": "SVC (onnxruntime)",
    "nystroem": "Nystroem + LinearSVC",
    "mlp": "MLPClassifier",
    "linear": "LinearSVC",
    "lightgbm": "LightGBM",
    "limes": "limes",
}
# Families whose sizes are written below their marks, so that labels do not overlap.
LABELLED_BELOW = ("nystroem",)
# A method whose U.C. is lower than the best one's by more than this is labelled at the edge.
MAX_SKILL_RANGE = 0.12
RowColumn = tuple[Column, Callable[[BenchmarkRow], Cell]]


def markdown(rows: Sequence[BenchmarkRow]) -> str:
    """Write a summary, and one table for each dataset, of its last run.

    Parameters
    ----------
    rows : sequence of BenchmarkRow
        Of any number of runs.

    Returns
    -------
    str
        Markdown.
    """
    ordered = sorted(latest_runs(rows), key=lambda row: row.dataset)
    parts = [_section(list(group)) for _, group in groupby(ordered, lambda row: row.dataset)]
    return "\n".join(part for part in (summary(ordered), *parts) if part)


def summary(rows: Sequence[BenchmarkRow]) -> str:
    """Write a table with a line for each dataset on which limes was measured, one thread."""
    batches = [row for row in rows if row.threads == 1 and row.microseconds_per_row is not None]
    lines = [
        _summary_line({row.method: row for row in group})
        for _, group in groupby(batches, lambda row: row.dataset)
    ]
    table = Table("summary", "At equal skill", SUMMARY_COLUMNS, [line for line in lines if line])
    if not table.lines:
        return ""
    return (
        f"## {table.title}\n\nOne thread, in a batch. Equal skill: U.C. at least that of limes, or "
        f"lower by {SKILL_TOLERANCE:g} at most.\n\n{table.markdown()}"
    )


def _summary_line(methods: dict[str, BenchmarkRow]) -> list[Cell]:
    """Return the cells of one dataset, none without limes."""
    limes = methods.get("limes")
    if limes is None:
        return []
    svc = methods.get("svc")
    least = limes.uncertainty_coefficient - SKILL_TOLERANCE
    others = [row for row in methods.values() if row is not limes]
    equal = [row for row in others if row.uncertainty_coefficient >= least]
    fastest = min(equal, key=_microseconds, default=None)
    return [
        limes.dataset,
        _skill(svc),
        _skill(limes),
        _microseconds(limes),
        _time_ratio(svc, limes),
        _time_ratio(_fastest_of_family(others, "intelex"), limes),
        "none" if fastest is None else fastest.method,
        _skill(fastest),
        None if fastest is None else _microseconds(fastest),
        _time_ratio(fastest, limes),
    ]


def _fastest_of_family(rows: list[BenchmarkRow], family: str) -> BenchmarkRow | None:
    """Return the fastest method of a family."""
    members = (row for row in rows if row.method.startswith(family))
    return min(members, key=_microseconds, default=None)


def _microseconds(row: BenchmarkRow) -> float:
    """Return microseconds per row in a batch."""
    return row.microseconds_per_row or 0.0


def _skill(row: BenchmarkRow | None) -> float | None:
    """Return the U.C. of a method, None if it was not measured."""
    return None if row is None else row.uncertainty_coefficient


def _time_ratio(row: BenchmarkRow | None, limes: BenchmarkRow) -> float | None:
    """Return how many times as long as limes a method takes."""
    return None if row is None else _microseconds(row) / _microseconds(limes)


def _section(rows: list[BenchmarkRow]) -> str:
    """Write the table of one dataset: a line for each method."""
    threads = sorted({row.threads for row in rows})
    columns = [*_skill_columns(), *_time_columns(rows, threads), *_size_columns()]
    lines = [[cell(row) for _, cell in columns] for row in rows if row.threads == threads[0]]
    table = Table(rows[0].dataset, rows[0].dataset, [head for head, _ in columns], lines)
    return f"{_heading(rows[0])}\n\n{table.markdown()}\n{_provenance(rows)}\n"


def _skill_columns() -> list[RowColumn]:
    """Return the columns of a method's skill."""
    return [
        (Column("method"), lambda row: row.method),
        (Column("accuracy", ".4f"), lambda row: row.accuracy),
        (Column("U.C.", ".4f"), lambda row: row.uncertainty_coefficient),
        (Column("agreement with svc", ".2%"), lambda row: row.agreement),
    ]


def _time_columns(rows: list[BenchmarkRow], threads: list[int]) -> list[RowColumn]:
    """Return the columns of times: batches for each number of threads, single rows for one."""
    by_threads = {(row.method, row.threads): row for row in rows}

    def batch_time(n_threads: int) -> Callable[[BenchmarkRow], Cell]:
        def cell(row: BenchmarkRow) -> Cell:
            same_method = by_threads.get((row.method, n_threads))
            return None if same_method is None else same_method.microseconds_per_row

        return cell

    batches = [
        (Column(f"µs per row, {_count_threads(n)}", "seconds"), batch_time(n)) for n in threads
    ]
    single_head = Column(f"µs for a single row, {_count_threads(threads[0])}", "seconds")
    return [*batches, (single_head, lambda row: row.microseconds_single_row)]


def _size_columns() -> list[RowColumn]:
    """Return the columns of size and training time."""
    return [
        (Column("kB", "seconds"), lambda row: row.model_bytes / 1e3),
        (Column("fit, s, 1 thread", "seconds"), lambda row: row.whole_fit_seconds),
        (Column("model"), lambda row: row.detail),
    ]


def _heading(row: BenchmarkRow) -> str:
    """Write the name of the dataset and its sizes."""
    return (
        f"## {row.dataset}\n\n{row.n_train} training rows, {row.n_test} test rows, "
        f"{row.n_features} features, {row.n_classes} classes."
    )


def _provenance(rows: list[BenchmarkRow]) -> str:
    """Write computer, versions, and whether other programs were running."""
    row = rows[0]
    shares = [row.cpu_share for row in rows if row.threads == 1 and row.cpu_share is not None]
    busy = (
        f" The computer was busy: a one-thread batch had {min(shares):.0%} to {max(shares):.0%} of "
        "a processor in its fastest turn."
        if shares and min(shares) < 0.9
        else ""
    )
    return f"{row.computer}; shortest time of {row.turns} turns; {_all_versions(rows)}.{busy}"


def _all_versions(rows: Iterable[BenchmarkRow]) -> str:
    """Join the versions of all packages."""
    versions = (version for row in rows for version in row.versions.split(", "))
    return ", ".join(dict.fromkeys(versions))


def _count_threads(n_threads: int) -> str:
    """Write a number of threads."""
    return "1 thread" if n_threads == 1 else f"{n_threads} threads"


def save_figures(rows: Sequence[BenchmarkRow], folder: Path) -> list[Path]:
    """Draw one figure for each dataset, a panel for each number of threads."""
    ordered = sorted(latest_runs(rows), key=lambda row: row.dataset)
    paths = []
    for dataset, group in groupby(ordered, lambda row: row.dataset):
        paths.append(folder / f"{dataset}.png")
        draw_dataset(list(group)).savefig(paths[-1], dpi=150)
    return paths


def draw_dataset(rows: Sequence[BenchmarkRow]) -> Any:
    """Draw the results of one dataset."""
    threads = sorted({row.threads for row in rows})
    figure = new_figure(figsize=(2.2 + 4.6 * len(threads), 4.6), layout="constrained")
    panels = figure.subplots(1, len(threads), sharex=True, sharey=True, squeeze=False)[0]
    for ax, n_threads in zip(panels, threads, strict=True):
        draw_skill_over_time([row for row in rows if row.threads == n_threads], ax)
        ax.set_title("one thread" if n_threads == 1 else f"{n_threads} threads")
    panels[0].set_ylabel("uncertainty coefficient (higher is better)")
    figure.suptitle(rows[0].dataset)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize="small")
    return figure


def draw_skill_over_time(rows: Sequence[BenchmarkRow], ax: "Axes") -> None:
    """Draw one mark for each method; those of one family are joined and labelled by size."""
    timed = [row for row in rows if row.microseconds_per_row is not None]
    for family, group in groupby(timed, _family):
        _draw_family(family, list(group), ax)
    ax.set(xscale="log", xlabel="microseconds per row, in a batch (logarithmic)")
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.margins(x=0.08)
    _set_lower_limit(timed, ax)


def _family(row: BenchmarkRow) -> str:
    """Return the name of a method without its size."""
    return row.method.partition("-")[0]


def _draw_family(family: str, rows: list[BenchmarkRow], ax: "Axes") -> None:
    """Draw the marks of one family."""
    colour, marker = STYLES.get(family, OTHER_STYLE)
    ax.plot(
        [row.microseconds_per_row or np.nan for row in rows],
        [row.uncertainty_coefficient for row in rows],
        color=colour,
        marker=marker,
        markersize=15 if family == "limes" else 8,
        markeredgecolor="white",
        markeredgewidth=0.6,
        linewidth=1 if len(rows) > 1 else 0,
        label=TITLES.get(family, family),
        zorder=4 if family == "limes" else 3,
    )
    if len(rows) > 1:
        _write_sizes(rows, colour, ax)


def _write_sizes(rows: list[BenchmarkRow], colour: str, ax: "Axes") -> None:
    """Write the size of each mark beside it."""
    for row in rows:
        ax.annotate(
            row.method.partition("-")[2].replace("float", "f"),
            (row.microseconds_per_row or np.nan, row.uncertainty_coefficient),
            (0, -14 if _family(row) in LABELLED_BELOW else 8),
            textcoords="offset points",
            ha="center",
            fontsize=7,
            color=colour,
        )


def _set_lower_limit(rows: list[BenchmarkRow], ax: "Axes") -> None:
    """End the axis below the methods near the best, and label those below it at the edge."""
    best = max(row.uncertainty_coefficient for row in rows)
    skills = [row.uncertainty_coefficient for row in rows]
    lowest_shown = min(skill for skill in skills if skill >= best - MAX_SKILL_RANGE)
    margin = max(0.15 * (best - lowest_shown), 0.005)
    floor = lowest_shown - 2 * margin
    ax.set_ylim(floor, best + margin)
    for row in rows:
        if row.uncertainty_coefficient < floor:
            _label_at_edge(row, floor, ax)


def _label_at_edge(row: BenchmarkRow, floor: float, ax: "Axes") -> None:
    """Write the skill of a method that lies below the axis, with an arrow down."""
    colour = STYLES.get(_family(row), OTHER_STYLE)[0]
    ax.annotate(
        f"{row.uncertainty_coefficient:.2f}",
        (row.microseconds_per_row or np.nan, floor),
        (0, 22),
        textcoords="offset points",
        ha="center",
        fontsize=7,
        color=colour,
        arrowprops={"arrowstyle": "-|>", "color": colour},
    )
