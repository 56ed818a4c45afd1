"""Markdown tables and pictures."""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from limes.plotting import new_figure
from limes.research.bench.results import Row, latest

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Colour and shape of each family: Okabe and Ito's colours, which colour-blind readers can tell
# apart, and shapes besides.
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
# Where the sizes of a family are written: not all on the same side of the marks.
BELOW = ("nystroem",)
# A method that explains so much less than the best one is no substitute: it is named at the edge.
SPAN = 0.12
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
# U.C. that is lower by no more than this is as good.
AS_GOOD = 0.001
HEADS = (
    *("dataset", "U.C. of svc", "limes", "µs a row, limes", "svc / limes", "intelex / limes"),
    *("quickest other that is as good", "U.C.", "µs a row", "/ limes"),
)
Column = tuple[str, Callable[[Row], str]]


def save_pictures(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draw one picture for each dataset, a panel for each number of threads."""
    ordered = sorted(latest(rows), key=lambda row: row.dataset)
    paths = []
    for dataset, group in groupby(ordered, lambda row: row.dataset):
        paths.append(folder / f"{dataset}.png")
        draw_dataset(list(group)).savefig(paths[-1], dpi=150)
    return paths


def draw_dataset(rows: Sequence[Row]) -> Any:
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


def draw_skill_over_time(rows: Sequence[Row], ax: "Axes") -> None:
    """Draw one mark a method; those of one family are joined and told by their sizes."""
    shown = [row for row in rows if row.microseconds_a_row is not None]
    for family, group in groupby(shown, _family):
        _draw_family(family, list(group), ax)
    ax.set(xscale="log", xlabel="microseconds a row, in a batch (logarithmic)")
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.margins(x=0.08)
    _set_floor(shown, ax)


def _family(row: Row) -> str:
    """Return the name of a method without its size."""
    return row.method.partition("-")[0]


def _draw_family(family: str, rows: list[Row], ax: "Axes") -> None:
    """Draw the marks of one family."""
    colour, shape = STYLES.get(family, OTHER_STYLE)
    ax.plot(
        [row.microseconds_a_row or np.nan for row in rows],
        [row.uncertainty_coefficient for row in rows],
        color=colour,
        marker=shape,
        markersize=15 if family == "limes" else 8,
        markeredgecolor="white",
        markeredgewidth=0.6,
        linewidth=1 if len(rows) > 1 else 0,
        label=TITLES.get(family, family),
        zorder=4 if family == "limes" else 3,
    )
    if len(rows) > 1:
        _write_sizes(rows, colour, ax)


def _write_sizes(rows: list[Row], colour: str, ax: "Axes") -> None:
    """Write the size of each mark beside it."""
    for row in rows:
        ax.annotate(
            row.method.partition("-")[2].replace("float", "f"),
            (row.microseconds_a_row or np.nan, row.uncertainty_coefficient),
            (0, -14 if _family(row) in BELOW else 8),
            textcoords="offset points",
            ha="center",
            fontsize=7,
            color=colour,
        )


def _set_floor(rows: list[Row], ax: "Axes") -> None:
    """End the axis below the methods near the best, and name at its foot what lies deeper."""
    best = max(row.uncertainty_coefficient for row in rows)
    near = [row.uncertainty_coefficient for row in rows if _is_near(row, best)]
    room = max(0.15 * (best - min(near)), 0.005)
    floor = min(near) - 2 * room
    ax.set_ylim(floor, best + room)
    for row in rows:
        if row.uncertainty_coefficient < floor:
            _name_at_foot(row, floor, ax)


def _is_near(row: Row, best: float) -> bool:
    """Tell whether a method could stand in for the best one."""
    return row.uncertainty_coefficient >= best - SPAN


def _name_at_foot(row: Row, floor: float, ax: "Axes") -> None:
    """Write the skill of a method that lies below the axis, with an arrow down."""
    ax.annotate(
        f"{row.uncertainty_coefficient:.2f}",
        (row.microseconds_a_row or np.nan, floor),
        (0, 22),
        textcoords="offset points",
        ha="center",
        fontsize=7,
        color=STYLES.get(_family(row), OTHER_STYLE)[0],
        arrowprops={"arrowstyle": "-|>", "color": STYLES.get(_family(row), OTHER_STYLE)[0]},
    )


def summary(rows: Sequence[Row]) -> str:
    """Write a table with a line for each dataset where limes took part, with one thread."""
    batches = [row for row in rows if row.threads == 1 and row.microseconds_a_row is not None]
    lines = [
        _of_dataset({row.method: row for row in group})
        for _, group in groupby(batches, lambda row: row.dataset)
    ]
    told = [words for words in lines if words]
    if not told:
        return ""
    heads = [line(HEADS), line(["---"] + ["---:"] * (len(HEADS) - 1))]
    return "\n".join(
        [
            "## At equal skill",
            "",
            "One thread, in a batch. As good: U.C. at least that of limes, or "
            f"{AS_GOOD:g} below it at most.",
            "",
            *heads,
            *map(line, told),
            "",
        ]
    )


def _of_dataset(methods: dict[str, Row]) -> list[str]:
    """Return the words of one line, none without limes."""
    ours = methods.get("limes")
    if ours is None:
        return []
    svc = methods.get("svc")
    least = ours.uncertainty_coefficient - AS_GOOD
    others = [row for row in methods.values() if row is not ours]
    good = [row for row in others if row.uncertainty_coefficient >= least]
    best = min(good, key=_taken, default=None)
    return [
        ours.dataset,
        _skill(svc),
        _skill(ours),
        number(_taken(ours)),
        _times(svc, ours),
        _times(_quickest(others, "intelex"), ours),
        "none" if best is None else best.method,
        _skill(best),
        number(None if best is None else _taken(best)),
        _times(best, ours),
    ]


def _quickest(rows: list[Row], name: str) -> Row | None:
    """Return the quickest of the methods whose names begin alike."""
    return min((row for row in rows if row.method.startswith(name)), key=_taken, default=None)


def _taken(row: Row) -> float:
    """Return microseconds a row in a batch."""
    return row.microseconds_a_row or 0.0


def _skill(row: Row | None) -> str:
    """Write the U.C. of a method that took part."""
    return "-" if row is None else f"{row.uncertainty_coefficient:.4f}"


def _times(row: Row | None, ours: Row) -> str:
    """Write how many times as long a method took."""
    return number(None if row is None else _taken(row) / _taken(ours))


def markdown(rows: Sequence[Row]) -> str:
    """Write a summary, and one table for each dataset, of its last run.

    Parameters
    ----------
    rows : sequence of Row
        Of any number of runs.

    Returns
    -------
    str
        Markdown.
    """
    ordered = sorted(latest(rows), key=lambda row: row.dataset)
    parts = [_section(list(group)) for _, group in groupby(ordered, lambda row: row.dataset)]
    return "\n".join(part for part in (summary(ordered), *parts) if part)


def _section(rows: list[Row]) -> str:
    """Write the table of one dataset: a line a method, a column a number of threads."""
    threads = sorted({row.threads for row in rows})
    columns = [*_skill_columns(), *_time_columns(rows, threads), *_size_columns()]
    methods = [row for row in rows if row.threads == threads[0]]
    lines = [[name for name, _ in columns], ["---"] + ["---:"] * (len(columns) - 1)]
    lines += [[form(row) for _, form in columns] for row in methods]
    return "\n".join([_heading(rows[0]), "", *map(line, lines), "", _footing(rows), ""])


def _skill_columns() -> list[Column]:
    """Return the columns that tell how good a method is."""
    return [
        ("method", lambda row: row.method),
        ("accuracy", lambda row: f"{row.accuracy:.4f}"),
        ("U.C.", lambda row: f"{row.uncertainty_coefficient:.4f}"),
        ("as the SVC", lambda row: f"{row.agreement:.2%}"),
    ]


def _time_columns(rows: list[Row], threads: list[int]) -> list[Column]:
    """Return the columns of times, for each number of threads."""
    found = {(row.method, row.threads): row for row in rows}

    def column(value: Callable[[Row], float | None], n: int) -> Callable[[Row], str]:
        def form(row: Row) -> str:
            same = found.get((row.method, n))
            return number(None if same is None else value(same))

        return form

    many = [(f"µs a row, {_told(n)}", column(lambda r: r.microseconds_a_row, n)) for n in threads]
    one = (f"µs one row, {_told(threads[0])}", column(lambda r: r.microseconds_one_row, threads[0]))
    return [*many, one]


def _size_columns() -> list[Column]:
    """Return the columns that tell what a model costs besides."""
    return [
        ("kB", lambda row: number(row.model_bytes / 1e3)),
        ("fit, s, 1 thread", lambda row: number(row.whole_fit_seconds)),
        ("model", lambda row: row.detail),
    ]


def _heading(row: Row) -> str:
    """Name the dataset and its sizes."""
    return (
        f"## {row.dataset}\n\n{row.n_train} training rows, {row.n_test} test rows, "
        f"{row.n_features} features, {row.n_classes} classes."
    )


def _footing(rows: list[Row]) -> str:
    """Tell what was measured with, and when other programs were in the way."""
    row = rows[0]
    shares = [one.cpu_share for one in rows if one.threads == 1 and one.cpu_share is not None]
    busy = (
        f" The machine was busy: a one-thread batch had {min(shares):.0%} to {max(shares):.0%} of "
        "a processor in its quickest turn."
        if shares and min(shares) < 0.9
        else ""
    )
    return f"{row.machine}; least of {row.turns} turns; {_all_versions(rows)}.{busy}"


def _all_versions(rows: Iterable[Row]) -> str:
    """Join the versions of all packages."""
    return ", ".join(dict.fromkeys(one for row in rows for one in row.versions.split(", ")))


def _told(n_threads: int) -> str:
    """Write a number of threads."""
    return "1 thread" if n_threads == 1 else f"{n_threads} threads"


def line(words: Iterable[str]) -> str:
    """Write one line of a Markdown table.

    Examples
    --------
    >>> line(["sat", "0.5"])
    '| sat | 0.5 |'
    """
    return f"| {' | '.join(words)} |"


def number(value: float | None) -> str:
    """Write three digits that count, or that there is none.

    Examples
    --------
    >>> number(0.12345), number(1234.5), number(None)
    ('0.123', '1234', '-')
    """
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:#.3g}"
