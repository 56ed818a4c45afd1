"""The paper's figures."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limes.plotting import COLOURS, new_figure
from limes.research.paper.plan import DATASETS, WHOLE, FigurePoint, TrialRow
from limes.research.paper.scaling import (
    GAMMAS,
    MAX_ERRORS,
    SIDES,
    ScalingRow,
    check_law,
    mean_needed,
    standard_error,
)
from limes.research.paper.times import (
    TimeRow,
    Times,
    break_even_line,
    measured_break_even,
    shortest_times,
)
from limes.research.results import Spread, select, spread_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


BLUE, ORANGE, GREEN, PURPLE = COLOURS[:4]
DPI = 150
# With fewer training rows almost all are support vectors, and the number grows more slowly.
MIN_TRAINING = 100
SKILLS = (("accuracy", "accuracy", "-"), ("uncertainty_coefficient", "U.C.", "--"))
PLURALS = {
    "class 1": "rows of class 1",
    "class 2": "rows of class 2",
    "support vector": "support vectors",
}
N_COLUMNS = 3
# Columns of the times on the left and on the right of a figure.
TIME_COLUMNS = ("single_microseconds", "batch_microseconds")
FITTED: dict[str, Any] = {"color": "black", "linewidth": 1}
# From few to many dimensions.
SCALING_COLOURS = ("#440154", "#3B528B", "#21918C", "#5EC962", "#E6A700")
# Okabe and Ito's colours, which colour-blind readers can distinguish, and different markers.
STYLES: dict[str, dict[str, Any]] = {
    "linear": {"color": "#7F7F7F", "marker": "X", "label": "linear"},
    "svm": {"color": "#000000", "marker": "s", "label": "SVM (LIBSVM)"},
    "core": {"color": "#000000", "marker": "D", "label": "SVM, summed in limes' core"},
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
# Methods with less than this share of the best skill are labelled at the edge of their panel.
MIN_SKILL_SHARE = 0.6


class PowerLaw(NamedTuple):
    """y = factor x^exponent."""

    exponent: float
    factor: float


def save_figures(
    rows: Sequence[TrialRow],
    points: Sequence[FigurePoint],
    folder: Path,
    *,
    times: Sequence[TimeRow] = (),
    scaling: Sequence[ScalingRow] = (),
) -> list[Path]:
    """Draw all figures that there are rows or points for."""
    folder.mkdir(parents=True, exist_ok=True)
    growth = select(rows, experiment="training")
    borders = select(rows, experiment="borders")
    drawings: list[tuple[str, Callable[..., None], tuple[Any, ...], int]] = [
        ("support_vectors", draw_support_vectors, (points,), 1),
        ("borders", draw_borders, (points,), 1),
        ("skill_borders", draw_skill_by_borders, (borders,), 1),
        ("support_growth", draw_support_growth, (growth,), 1),
        ("skill_training", draw_skill_by_training, (growth,), 1),
        ("svm_time", draw_svm_time, (times,), 2),
        ("borders_time", draw_border_time, (times,), 2),
        ("break_even", draw_break_even, (times,), 2),
        ("scaling", draw_scaling, (scaling,), 2),
    ]
    paths = []
    for name, draw, data, n_panels in drawings:
        if all(data):
            width = 6.4 if n_panels == 1 else 11.0
            figure = new_figure(figsize=(width, 4.6), layout="constrained")
            draw(*data, figure.subplots(1, n_panels))
            paths.append(_save(figure, folder / f"{name}.png"))
    if overview := draw_overview(rows):
        paths.append(_save(overview, folder / "skill_time.png"))
    return paths


def draw_support_vectors(points: Sequence[FigurePoint], ax: "Axes") -> None:
    """Draw rows of the sample classes, support vectors, and the true border."""
    _draw_classes(points, ax)
    _scatter(points, "support vector", ax, s=34, facecolors="none", edgecolors="black", lw=0.8)
    _scatter(points, "true border", ax, s=3, color=GREEN)
    _frame_plane(ax)


def draw_borders(points: Sequence[FigurePoint], ax: "Axes") -> None:
    """Draw the border from the class definitions and that of the SVM."""
    _draw_classes(points, ax)
    _scatter(points, "true border", ax, s=6, color=GREEN, marker="o")
    _scatter(points, "SVM border", ax, s=14, color="black", marker="x", lw=0.8)
    _frame_plane(ax)


def draw_skill_by_borders(rows: Sequence[TrialRow], ax: "Axes") -> None:
    """Draw skill against the number of border points, from both sources."""
    styles = {"true-borders": (BLUE, "o", "class definitions"), "borders": (ORANGE, "s", "SVM")}
    for column, name, line in SKILLS:
        for method, (colour, marker, source) in styles.items():
            skills = by_setting(select(rows, method=method), column)
            style = {"color": colour, "marker": marker, "linestyle": line}
            _draw_spread(skills, ax, f"{name}, from the {source}", **style)
    ax.axvline(20, color="0.6", linewidth=0.8, linestyle=":")
    ax.annotate(" 20 points", (20, 0.02), color="0.35", fontsize="small")
    ax.set(xscale="log", xlabel="border points (logarithmic)", ylabel="skill", ylim=(0, 1))
    _finish(ax, f"Skill against border points, {_trials(rows)}", loc="lower right")


def draw_support_growth(rows: Sequence[TrialRow], ax: "Axes") -> None:
    """Draw the number of support vectors against training rows, with the fitted power law."""
    n_support = by_setting(rows, "n_support")
    law = support_law(rows)
    _draw_spread(n_support, ax, "SVM", color=BLUE, marker="o", linestyle="none")
    x = np.array([MIN_TRAINING, max(n_support)])
    label = f"fit: {law.factor:.2f} · rows^{law.exponent:.2f}  (paper: 0.38 · rows^0.94)"
    ax.plot(x, law.factor * x**law.exponent, color="black", linewidth=1, label=label)
    ax.set(xscale="log", yscale="log", xlabel="training rows", ylabel="support vectors")
    _finish(ax, f"Support vectors grow with the training rows, {_trials(rows)}", loc="upper left")


def draw_skill_by_training(rows: Sequence[TrialRow], ax: "Axes") -> None:
    """Draw the skill of the SVM against training rows."""
    for (column, name, line), colour in zip(SKILLS, (BLUE, ORANGE), strict=True):
        style = {"color": colour, "marker": "o", "linestyle": line}
        _draw_spread(by_setting(rows, column), ax, name, **style)
    ax.set(xscale="log", xlabel="training rows (logarithmic)", ylabel="skill", ylim=(0, 1))
    _finish(ax, f"Skill of the SVM against training rows, {_trials(rows)}", loc="lower right")


def draw_svm_time(rows: Sequence[TimeRow], axes: "Sequence[Axes]") -> None:
    """Draw the time of the SVM against support vectors: a call with one row, then a batch."""
    _draw_times(rows, "svm", axes, BLUE, "support vectors")
    axes[1].set_title("Ours: SVM (LIBSVM through scikit-learn), batch", fontsize="medium")


def draw_border_time(rows: Sequence[TimeRow], axes: "Sequence[Axes]") -> None:
    """Draw the time of borders against their points: a call with one row, then a batch."""
    _draw_times(rows, "borders", axes, ORANGE, "border points")
    axes[1].set_title("Ours: borders in the paper's mode, batch", fontsize="medium")


def _draw_times(
    rows: Sequence[TimeRow], method: str, axes: "Sequence[Axes]", colour: str, what: str
) -> None:
    """Draw the paper's axes on the left, logarithmic ones on the right."""
    single, batch = (shortest_times(rows, method, column) for column in TIME_COLUMNS)
    _draw_time(single, axes[0], colour, what)
    ends = [0.0, max(single.sizes)]
    y = [single.line.intercept + single.line.slope * x for x in ends]
    axes[0].plot(ends, y, label="straight line", **FITTED)
    axes[0].xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes[0].set(xlim=(0, None), ylim=(0, None), ylabel="microseconds for a single test point")
    numbers = f"slope {1e3 * single.line.slope:.3g} ns, intercept {single.line.intercept:.3g} µs"
    axes[0].set_title(f"The paper's axes: single test point\n{numbers}", fontsize="medium")
    _draw_time(batch, axes[1], colour, what)
    x = np.geomspace(min(batch.sizes), max(batch.sizes), 50)
    law = f"{batch.line.intercept:.2g} µs + {1e3 * batch.line.slope:.2g} ns · {what}"
    axes[1].plot(x, batch.line.intercept + batch.line.slope * x, label=f"fit: {law}", **FITTED)
    axes[1].set(xscale="log", yscale="log", ylabel="microseconds per row, batch of 2000")
    for ax in axes:
        ax.grid(alpha=0.25, linewidth=0.6)
        ax.legend(loc="upper left", fontsize="small", framealpha=0.9)


def draw_break_even(rows: Sequence[TimeRow], axes: "Sequence[Axes]") -> None:
    """Draw how many border points take as long as a number of support vectors."""
    for column, ax in zip(TIME_COLUMNS, axes, strict=True):
        svm, borders = (shortest_times(rows, method, column) for method in ("svm", "borders"))
        points = measured_break_even(svm, borders)
        ax.plot(*zip(*points, strict=True), "o", color=BLUE, label="measured")
        ax.set(xlabel="support vectors", ylabel="border points that take as long")
        ax.grid(alpha=0.25, linewidth=0.6)
    svm, borders = (shortest_times(rows, method, TIME_COLUMNS[0]) for method in ("svm", "borders"))
    line = break_even_line(svm, borders)
    ends = [0.0, max(svm.sizes)]
    y = [line.intercept + line.slope * x for x in ends]
    axes[0].plot(ends, y, label="from both straight lines, as in the paper", **FITTED)
    axes[0].set(xlim=(0, None), ylim=(0, None))
    axes[0].yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    numbers = f"slope {line.slope:.3g}, intercept {line.intercept:,.0f}"
    axes[0].set_title(f"The paper's axes: single test point\n{numbers}", fontsize="medium")
    shown = [point.n_support for point in points]
    x = np.array([min(shown), max(shown)])
    axes[1].plot(x, 3 * x, color="black", linestyle=":", label="the paper's rule: 3 points each")
    axes[1].set(xscale="log", yscale="log")
    axes[1].set_title("Ours: batch, range of both measurements", fontsize="medium")
    for ax in axes:
        ax.legend(loc="upper left", fontsize="small", framealpha=0.9)


def draw_scaling(rows: Sequence[ScalingRow], axes: "Sequence[Axes]") -> None:
    """Draw the numbers needed for good accuracy, and the exponents of the law."""
    gamma = GAMMAS[0]
    for dimension, colour in zip(SIDES, SCALING_COLOURS, strict=True):
        needed = mean_needed(rows, dimension, gamma)
        if needed:
            label = f"{dimension} dimensions"
            axes[0].plot(*zip(*needed, strict=True), "o-", color=colour, markersize=4, label=label)
    axes[0].set(xscale="log", yscale="log", ylabel="border points needed")
    axes[0].set_xlabel(f"training rows needed by the SVM (gamma = {gamma:g})")
    _finish(axes[0], "Same accuracy near the border, larger and larger boxes", loc="upper left")
    for value, colour, marker, shift in zip(GAMMAS, COLOURS, "os", (-0.05, 0.05), strict=False):
        checks = [check for n in SIDES if (check := check_law(rows, n, value)) is not None]
        x = [check.dimension + shift for check in checks]
        errors = [MAX_ERRORS * standard_error(check.exponent) for check in checks]
        style: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": "none"}
        means = [check.exponent.mean for check in checks]
        axes[1].errorbar(x, means, errors, capsize=3, label=f"measured, gamma = {value:g}", **style)
    dimensions = list(SIDES)
    law = [(n - 1) / n for n in dimensions]
    axes[1].plot(dimensions, law, color="black", linestyle=":", label="the paper: (D - 1)/D")
    axes[1].set(xlabel="dimension D", ylabel="exponent", ylim=(0, None), xticks=dimensions)
    _finish(axes[1], "Border points as a power of training rows, ± 2 s.e.", loc="upper left")


def support_law(rows: Sequence[TrialRow]) -> PowerLaw:
    """Fit the power law of the number of support vectors."""
    n_support = by_setting([row for row in rows if row.n_train >= MIN_TRAINING], "n_support")
    return fit_power_law(list(n_support), [value.mean for value in n_support.values()])


def by_setting(rows: Sequence[TrialRow], column: str) -> dict[float, Spread]:
    """Return mean and spread of a column for each setting, in ascending order."""
    settings = sorted({row.setting for row in rows if row.setting is not None})
    values = {
        setting: spread_of([row for row in rows if row.setting == setting], column)
        for setting in settings
    }
    return {setting: value for setting, value in values.items() if value is not None}


def saturation(skills: dict[float, Spread], *, share: float = 0.98) -> float:
    """Return the first setting from which on the skill stays near its maximum.

    Examples
    --------
    >>> saturation({1.0: Spread(0.2), 10.0: Spread(0.5), 100.0: Spread(0.5)})
    10.0
    """
    limit = share * max(skill.mean for skill in skills.values())
    low = [setting for setting, skill in skills.items() if skill.mean < limit]
    return min(setting for setting in skills if setting > max(low, default=-np.inf))


def fit_power_law(x: Sequence[float], y: Sequence[float]) -> PowerLaw:
    """Fit a power law, by least squares of the logarithms.

    Examples
    --------
    >>> law = fit_power_law([1, 2, 4], [3, 12, 48])
    >>> round(law.exponent, 6), round(law.factor, 6)
    (2.0, 3.0)
    """
    exponent, logarithm = np.polyfit(np.log(x), np.log(y), 1)
    return PowerLaw(float(exponent), float(np.exp(logarithm)))


def _draw_time(times: Times, ax: "Axes", colour: str, what: str) -> None:
    """Draw times."""
    ax.plot(*times, "o", color=colour, label="shortest of the trials")
    ax.set(xlabel=what)


def _draw_spread(values: dict[float, Spread], ax: "Axes", label: str, **style: Any) -> None:
    """Draw means with their standard deviations."""
    means = [value.mean for value in values.values()]
    errors = [value.std or 0.0 for value in values.values()]
    ax.errorbar(list(values), means, errors, label=label, capsize=2, markersize=5, **style)


def _draw_classes(points: Sequence[FigurePoint], ax: "Axes") -> None:
    """Draw the rows of both classes."""
    _scatter(points, "class 1", ax, s=16, color=ORANGE, marker="^", alpha=0.7, lw=0)
    _scatter(points, "class 2", ax, s=14, color=BLUE, marker="o", alpha=0.7, lw=0)


def _scatter(points: Sequence[FigurePoint], kind: str, ax: "Axes", **style: Any) -> None:
    """Draw the points of one kind."""
    shown = [point for point in points if point.kind == kind]
    label = kind if "border" in kind else f"{len(shown)} {PLURALS[kind]}"
    ax.scatter([point.x for point in shown], [point.y for point in shown], label=label, **style)


def _frame_plane(ax: "Axes") -> None:
    """Add axes and legend to a figure of the plane of the sample classes."""
    ax.set(xlabel="first feature", ylabel="second feature", aspect="equal")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small")


def _finish(ax: Any, title: str, *, loc: str) -> None:
    """Add title, grid and legend."""
    ax.set_title(title, fontsize="medium")
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.legend(loc=loc, fontsize="small", framealpha=0.9)


def _trials(rows: Sequence[TrialRow]) -> str:
    """Return how many trials the means are of."""
    return f"{len({row.seed for row in rows})} trials"


def _save(figure: Any, path: Path) -> Path:
    """Write a figure to its file."""
    figure.savefig(path, dpi=DPI)
    return path


def draw_overview(rows: Sequence[TrialRow]) -> Any:
    """Draw a panel per dataset, a mark per method; the SVM on fewer rows is a line."""
    names = [name for name in DATASETS if select(rows, experiment="results", dataset=name)]
    if not names:
        return None
    n_lines = -(-(len(names) + 1) // N_COLUMNS)
    figure = new_figure(figsize=(3.6 * N_COLUMNS, 2.5 * n_lines), layout="constrained")
    panels = figure.subplots(n_lines, N_COLUMNS, squeeze=False).ravel()
    for name, ax in zip(names, panels, strict=False):
        dataset_rows = select(rows, dataset=name)
        draw_dataset(dataset_rows, ax)
        part = " (part)" if select(dataset_rows, part="part") else ""
        ax.set_title(f"{name}{part}", fontsize="medium")
    for ax in panels[len(names) :]:
        ax.axis("off")
    _add_legend(panels[: len(names)], panels[len(names)])
    figure.supxlabel("microseconds per row, in a batch, one thread (logarithmic)")
    figure.supylabel("uncertainty coefficient")
    return figure


def draw_dataset(rows: Sequence[TrialRow], ax: "Axes") -> None:
    """Draw all methods on one dataset."""
    marks = _marks(rows)
    least = MIN_SKILL_SHARE * max(skill for _, skill in marks.values())
    curve = [mark for mark in _subsampled_curve(rows) if mark[1] >= least]
    if len(curve) > 1:
        ax.plot(*zip(*curve, strict=True), **SUBSAMPLED, zorder=2)
    for name, (time, skill) in marks.items():
        if skill >= least:
            size = 12 if STYLES[name]["marker"] == "*" else 7
            ax.plot(time, skill, **STYLES[name], linestyle="none", markersize=size, zorder=3)
    ax.set_xscale("log")
    ax.margins(0.12)
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.tick_params(labelsize="small")
    _label_at_edge({name: mark for name, mark in marks.items() if mark[1] < least}, ax)


def _subsampled_curve(rows: Sequence[TrialRow]) -> list[tuple[float, float]]:
    """Return microseconds per row and skill of SVMs on all rows, then on fewer and fewer."""
    fewer = select(rows, method="subsampled")
    fractions = sorted({row.setting or 0.0 for row in fewer}, reverse=True)
    groups = [select(fewer, setting=fraction) for fraction in fractions]
    whole = select(rows, experiment="results", method=WHOLE)
    return [_mean_mark(group) for group in (whole, *groups) if group]


def _marks(rows: Sequence[TrialRow]) -> dict[str, tuple[float, float]]:
    """Return microseconds per row and skill of each method."""
    results = select(rows, experiment="results")
    trials = {name: select(results, method=name) for name in STYLES}
    marks = {name: _mean_mark(group) for name, group in trials.items() if group}
    core_seconds = spread_of(trials["svm"], "core_seconds")
    if core_seconds:
        marks["core"] = (1e6 * core_seconds.mean / trials["svm"][0].n_test, marks["svm"][1])
    return marks


def _mean_mark(rows: Sequence[TrialRow]) -> tuple[float, float]:
    """Return mean microseconds per row, and mean skill."""
    times = [1e6 * row.test_seconds / row.n_test for row in rows]
    skills = [row.uncertainty_coefficient for row in rows]
    return sum(times) / len(times), sum(skills) / len(skills)


def _label_at_edge(marks: dict[str, tuple[float, float]], ax: "Axes") -> None:
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


def _add_legend(panels: Sequence["Axes"], empty_panel: Any) -> None:
    """Put one legend for all panels into an empty one."""
    handles: dict[str, Any] = {}
    for ax in panels:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    order = [style["label"] for style in STYLES.values()] + [SUBSAMPLED["label"]]
    labels = [label for label in order if label in handles]
    empty_panel.legend(
        [handles[label] for label in labels], labels, loc="center", frameon=False, fontsize="small"
    )
