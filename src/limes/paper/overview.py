"""Skill over time of every method on every dataset, in one picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from limes.paper.matching import WHOLE
from limes.paper.printed import DATASETS
from limes.paper.rows import Row, select
from limes.paper.statistics import spread_of
from limes.plotting import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

N_COLUMNS = 3
# Okabe and Ito's colours, which colour-blind readers can tell apart, and shapes besides.
STYLES: dict[str, dict[str, Any]] = {
    "linear": {"color": "#7F7F7F", "marker": "X", "label": "linear"},
    "svm": {"color": "#000000", "marker": "s", "label": "SVM (LIBSVM)"},
    "exact": {"color": "#000000", "marker": "D", "label": "SVM, summed in limes' core"},
    "borders": {"color": "#0072B2", "marker": "o", "label": "borders, the paper's mode"},
    "limes": {"color": "#D55E00", "marker": "*", "label": "limes, default settings"},
    "agf": {"color": "#CC79A7", "marker": "P", "label": "AGF"},
    "agf-borders": {"color": "#009E73", "marker": "v", "label": "borders of AGF"},
    "agf-limes": {"color": "#E69F00", "marker": "h", "label": "limes of AGF"},
}
SUBSAMPLED: dict[str, Any] = {
    "color": "0.45",
    "linewidth": 1.0,
    "marker": ".",
    "label": "SVM on fewer rows",
}
# What explains less than this share of the best is named at the foot of its panel.
LEAST_SHARE = 0.6


def draw_overview(rows: Sequence[Row]) -> Any:
    """Draw one panel a dataset, a mark a method; the SVM on fewer rows is a line."""
    names = [name for name in DATASETS if select(rows, experiment="results", dataset=name)]
    if not names:
        return None
    n_lines = -(-(len(names) + 1) // N_COLUMNS)
    figure = new_figure(figsize=(3.6 * N_COLUMNS, 2.5 * n_lines), layout="constrained")
    panels = figure.subplots(n_lines, N_COLUMNS, squeeze=False).ravel()
    for name, ax in zip(names, panels, strict=False):
        found = select(rows, dataset=name)
        draw_dataset(found, ax)
        part = " (part)" if select(found, part="part") else ""
        ax.set_title(f"{name}{part}", fontsize="medium")
    for ax in panels[len(names) :]:
        ax.axis("off")
    _add_legend(panels[: len(names)], panels[len(names)])
    figure.supxlabel("microseconds a row, in a batch, one thread (logarithmic)")
    figure.supylabel("uncertainty coefficient")
    return figure


def draw_dataset(rows: Sequence[Row], ax: "Axes") -> None:
    """Draw all methods on one dataset."""
    marks = _marks(rows)
    fewer = select(rows, method="subsampled")
    fractions = sorted({row.setting or 0.0 for row in fewer}, reverse=True)
    tried = [select(fewer, setting=one) for one in fractions]
    whole = select(rows, experiment="results", method=WHOLE)
    curve = [_mean_mark(group) for group in (whole, *tried) if group]
    best = max(skill for _, skill in marks.values())
    kept = [mark for mark in curve if mark[1] >= LEAST_SHARE * best]
    ax.plot(*zip(*kept, strict=True), **SUBSAMPLED, zorder=2) if len(kept) > 1 else None
    for name, (time, skill) in marks.items():
        if skill >= LEAST_SHARE * best:
            size = 12 if STYLES[name]["marker"] == "*" else 7
            ax.plot(time, skill, **STYLES[name], linestyle="none", markersize=size, zorder=3)
    ax.set_xscale("log")
    ax.margins(0.12)
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.tick_params(labelsize="small")
    _name_at_foot({name: mark for name, mark in marks.items() if mark[1] < LEAST_SHARE * best}, ax)


def _marks(rows: Sequence[Row]) -> dict[str, tuple[float, float]]:
    """Return microseconds a row and skill of each method."""
    results = select(rows, experiment="results")
    found = {name: select(results, method=name) for name in STYLES}
    marks = {name: _mean_mark(group) for name, group in found.items() if group}
    exact = spread_of(found["svm"], "exact_seconds")
    if exact:
        marks["exact"] = (1e6 * exact.mean / found["svm"][0].n_test, marks["svm"][1])
    return marks


def _mean_mark(rows: Sequence[Row]) -> tuple[float, float]:
    """Return mean microseconds a row, and mean skill."""
    times = [1e6 * row.test_seconds / row.n_test for row in rows]
    skills = [row.uncertainty_coefficient for row in rows]
    return sum(times) / len(times), sum(skills) / len(skills)


def _name_at_foot(marks: dict[str, tuple[float, float]], ax: "Axes") -> None:
    """Write the skill of methods that lie far below the others, with an arrow down."""
    floor = ax.get_ylim()[0]
    for name, (time, skill) in marks.items():
        colour = STYLES[name]["color"]
        ax.plot(time, floor, **STYLES[name], linestyle="none", markersize=7, clip_on=False)
        ax.annotate(
            f"{skill:.2f} ↓",
            (time, floor),
            (0, 7),
            textcoords="offset points",
            ha="center",
            fontsize=7,
            color=colour,
        )
    ax.set_ylim(bottom=floor)


def _add_legend(panels: Sequence["Axes"], place: Any) -> None:
    """Put one legend for all panels into an empty one."""
    handles: dict[str, Any] = {}
    for ax in panels:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    order = [style["label"] for style in STYLES.values()] + [SUBSAMPLED["label"]]
    labels = [label for label in order if label in handles]
    place.legend(
        [handles[label] for label in labels], labels, loc="center", frameon=False, fontsize="small"
    )
