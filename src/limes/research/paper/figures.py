"""The paper's figures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limes.plotting import COLOURS, new_figure
from limes.research.paper.plan import DATASETS, WHOLE, TrialRow
from limes.research.results import Spread, select, spread_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


BLUE, ORANGE, GREEN, PURPLE = COLOURS[:4]
DPI = 150
# Fits of times leave out sizes at which the call itself takes most of the time.
MIN_SUPPORT, MIN_BORDERS = 20, 50
# With fewer training rows almost all are support vectors, and the number grows more slowly.
MIN_TRAINING = 100
SKILLS = (("accuracy", "accuracy", "-"), ("uncertainty_coefficient", "U.C.", "--"))
PLURALS = {
    "class 1": "rows of class 1",
    "class 2": "rows of class 2",
    "support vector": "support vectors",
}
N_COLUMNS = 3
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


@dataclass(frozen=True)
class FigurePoint:
    """A point in the plane of the sample classes.

    Its kind is "class 1" or "class 2" for a row, "support vector", "true border" for a point of
    the border from the class definitions, or "SVM border".
    """

    kind: str
    x: float
    y: float


class PowerLaw(NamedTuple):
    """y = factor x^exponent."""

    exponent: float
    factor: float


class Line(NamedTuple):
    """y = intercept + slope x."""

    slope: float
    intercept: float


def save_figures(
    rows: Sequence[TrialRow], points: Sequence[FigurePoint], folder: Path
) -> list[Path]:
    """Draw all figures that there are rows or points for."""
    folder.mkdir(parents=True, exist_ok=True)
    growth = select(rows, experiment="training")
    borders = select(rows, experiment="borders")
    drawings: list[tuple[str, Callable[..., None], tuple[Any, ...]]] = [
        ("support_vectors", draw_support_vectors, (points,)),
        ("borders", draw_borders, (points,)),
        ("skill_borders", draw_skill_by_borders, (borders,)),
        ("support_growth", draw_support_growth, (growth,)),
        ("skill_training", draw_skill_by_training, (growth,)),
        ("svm_time", draw_svm_time, (growth,)),
        ("borders_time", draw_border_time, (borders,)),
        ("break_even", draw_break_even, (growth, borders)),
    ]
    paths = []
    for name, draw, data in drawings:
        if all(data):
            figure = new_figure(figsize=(6.4, 4.6), layout="constrained")
            draw(*data, figure.subplots())
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


def draw_svm_time(rows: Sequence[TrialRow], ax: "Axes") -> None:
    """Draw the time per row against support vectors, with a fitted line."""
    x, y = svm_times(rows)
    _draw_time(x, y, fit_line(x, y), ax, BLUE, "support vectors")
    _finish(ax, "Time of the SVM (LIBSVM through scikit-learn)", loc="upper left")


def draw_border_time(rows: Sequence[TrialRow], ax: "Axes") -> None:
    """Draw the time per row against border points, with a fitted line."""
    x, y = border_times(rows)
    _draw_time(x, y, fit_line(x, y), ax, ORANGE, "border points")
    _finish(ax, "Time of borders in the paper's mode", loc="upper left")


def draw_break_even(growth: Sequence[TrialRow], borders: Sequence[TrialRow], ax: "Axes") -> None:
    """Draw how many border points take as long as a number of support vectors."""
    svm_sizes, svm_microseconds = svm_times(growth)
    border_sizes, border_microseconds = border_times(borders)
    svm, fast = fit_line(svm_sizes, svm_microseconds), fit_line(border_sizes, border_microseconds)
    x = np.geomspace(MIN_SUPPORT, 10_000, 400)
    y = (svm.intercept - fast.intercept + svm.slope * x) / fast.slope
    limits = max(svm_sizes), max(border_sizes)
    is_timed = (x <= limits[0]) & (y <= limits[1])
    label = f"ours: about {svm.slope / fast.slope:.0f} points per support vector"
    ax.plot(x, y, "--", color=BLUE, linewidth=1.5, label=f"{label} (dashed: extrapolated)")
    ax.plot(x, np.where(is_timed, y, np.nan), color=BLUE, linewidth=3)
    ax.plot(x, 3 * x, color="black", linewidth=1, linestyle=":", label="the paper's rule: 3")
    ax.fill_between(x, x.min(), y, color=BLUE, alpha=0.1, label="borders are faster")
    timed = [[x.min(), limits[0], limits[0]], [limits[1], limits[1], x.min()]]
    words = f"timed: up to {limits[1]:.0f} points, {limits[0]:.0f} support vectors"
    ax.plot(*timed, color=ORANGE, linewidth=1.5, linestyle="-.", label=words)
    ax.set(xscale="log", yscale="log", xlabel="support vectors", ylabel="border points")
    # Leaves space for the legend above the lines.
    ax.set_ylim(x.min(), 100 * y.max())
    _finish(ax, "Equal times, two features, two classes", loc="upper left")


def support_law(rows: Sequence[TrialRow]) -> PowerLaw:
    """Fit the power law of the number of support vectors."""
    n_support = by_setting([row for row in rows if row.n_train >= MIN_TRAINING], "n_support")
    return fit_power_law(list(n_support), [value.mean for value in n_support.values()])


def svm_times(rows: Sequence[TrialRow]) -> tuple[list[float], list[float]]:
    """Return support vectors, and microseconds per row."""
    large = [row for row in rows if (row.n_support or 0) >= MIN_SUPPORT]
    return _times(large, "n_support")


def border_times(rows: Sequence[TrialRow]) -> tuple[list[float], list[float]]:
    """Return border points, and microseconds per row."""
    large = [row for row in rows if (row.n_borders or 0) >= MIN_BORDERS]
    return _times(large, "n_borders")


def _times(rows: Sequence[TrialRow], column: str) -> tuple[list[float], list[float]]:
    """Return sizes and the shortest time per row over the trials, for each setting."""
    sizes, times = [], []
    for setting, size in by_setting(rows, column).items():
        seconds = [row.test_seconds / row.n_test for row in rows if row.setting == setting]
        sizes.append(size.mean)
        times.append(1e6 * min(seconds))
    return sizes, times


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


def fit_line(x: Sequence[float], y: Sequence[float]) -> Line:
    """Fit a straight line by least squares of the relative differences.

    Otherwise the times of large models would determine the fit alone, and the intercept would be
    noise.

    Examples
    --------
    >>> line = fit_line([1, 2, 3], [5, 7, 9])
    >>> round(line.slope, 6), round(line.intercept, 6)
    (2.0, 3.0)
    """
    slope, intercept = np.polyfit(x, y, 1, w=1 / np.asarray(y, dtype=np.float64))
    return Line(float(slope), float(intercept))


def _draw_time(
    x: list[float], y: list[float], line: Line, ax: "Axes", colour: str, what: str
) -> None:
    """Draw times and the line fitted to them."""
    ax.plot(x, y, "o", color=colour, label="shortest of the trials")
    ends = np.geomspace(min(x), max(x), 50)
    law = f"{line.intercept:.3g} µs + {1e3 * line.slope:.3g} ns · {what}"
    label = f"fit from {min(x):.0f} to {max(x):.0f}, not extrapolated: {law}"
    ax.plot(ends, line.intercept + line.slope * ends, color="black", linewidth=1, label=label)
    ax.set(xscale="log", yscale="log", xlabel=what, ylabel="microseconds per row, in a batch")


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
