"""Skill over time, from rows alone; needs matplotlib, the extra ``bench`` or ``plot``."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from limes.bench.results import Row, latest
from limes.plotting import new_figure

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
