"""The paper's figures from rows; needs matplotlib, the extra ``paper`` or ``plot``."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from limes.paper.overview import draw_overview
from limes.paper.points import Point
from limes.paper.rows import Row, select
from limes.paper.statistics import Spread, by_setting, fit_line, fit_power_law
from limes.plotting import COLOURS, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, ORANGE, GREEN, PURPLE = COLOURS[:4]
DPI = 150
# Fits of times leave out sizes at which the call itself takes most of the time.
LEAST_SUPPORT, LEAST_BORDERS = 20, 50
# With fewer training rows the number of support vectors grows more slowly: almost all are needed.
LEAST_TRAINING = 100


def save_figures(rows: Sequence[Row], points: Sequence[Point], folder: Path) -> list[Path]:
    """Draw all figures that there are rows for."""
    folder.mkdir(parents=True, exist_ok=True)
    growth = select(rows, experiment="training")
    borders = select(rows, experiment="borders")
    drawings: list[tuple[str, Callable[..., None], tuple[Any, ...]]] = [
        ("support_vectors", draw_support_vectors, (points,)),
        ("borders", draw_borders, (points,)),
        ("skill_borders", draw_skill_by_borders, (borders,)),
        ("support_growth", draw_support_growth, (growth,)),
        ("skill_training", draw_skill_by_training, (growth,)),
        ("svm_time", draw_machine_time, (growth,)),
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


def draw_support_vectors(points: Sequence[Point], ax: "Axes") -> None:
    """Draw rows of the sample classes, support vectors, and the true border."""
    _draw_classes(points, ax)
    _scatter(points, "support vector", ax, s=34, facecolors="none", edgecolors="black", lw=0.8)
    _scatter(points, "true border", ax, s=3, color=GREEN)
    _frame_plane(ax)


def draw_borders(points: Sequence[Point], ax: "Axes") -> None:
    """Draw the border from the class definitions and that from the machine."""
    _draw_classes(points, ax)
    _scatter(points, "true border", ax, s=6, color=GREEN, marker="o")
    _scatter(points, "SVM border", ax, s=14, color="black", marker="x", lw=0.8)
    _frame_plane(ax)


def draw_skill_by_borders(rows: Sequence[Row], ax: "Axes") -> None:
    """Draw skill against the number of border points, from both sources."""
    styles = {"true-borders": (BLUE, "o", "class definitions"), "borders": (ORANGE, "s", "SVM")}
    for column, name, line in SKILLS:
        for method, (colour, marker, source) in styles.items():
            found = by_setting(select(rows, method=method), column)
            style = {"color": colour, "marker": marker, "linestyle": line}
            _draw_spread(found, ax, f"{name}, from the {source}", **style)
    ax.axvline(20, color="0.6", linewidth=0.8, linestyle=":")
    ax.annotate(" 20 points", (20, 0.02), color="0.35", fontsize="small")
    ax.set(xscale="log", xlabel="border points (logarithmic)", ylabel="skill", ylim=(0, 1))
    _finish(ax, f"Skill against border points, {_trials(rows)}", loc="lower right")


def draw_support_growth(rows: Sequence[Row], ax: "Axes") -> None:
    """Draw the number of support vectors against training rows, with the fitted power law."""
    found = by_setting(rows, "n_support")
    law = support_law(rows)
    _draw_spread(found, ax, "SVM", color=BLUE, marker="o", linestyle="none")
    x = np.array([LEAST_TRAINING, max(found)])
    label = f"fit: {law.factor:.2f} · rows^{law.exponent:.2f}  (paper: 0.38 · rows^0.94)"
    ax.plot(x, law.factor * x**law.exponent, color="black", linewidth=1, label=label)
    ax.set(xscale="log", yscale="log", xlabel="training rows", ylabel="support vectors")
    _finish(ax, f"Support vectors grow with the training rows, {_trials(rows)}", loc="upper left")


def draw_skill_by_training(rows: Sequence[Row], ax: "Axes") -> None:
    """Draw skill of the machine against training rows."""
    for (column, name, line), colour in zip(SKILLS, (BLUE, ORANGE), strict=True):
        style = {"color": colour, "marker": "o", "linestyle": line}
        _draw_spread(by_setting(rows, column), ax, name, **style)
    ax.set(xscale="log", xlabel="training rows (logarithmic)", ylabel="skill", ylim=(0, 1))
    _finish(ax, f"Skill of the SVM against training rows, {_trials(rows)}", loc="lower right")


def draw_machine_time(rows: Sequence[Row], ax: "Axes") -> None:
    """Draw the time of a row against support vectors, with a fitted line."""
    x, y = machine_times(rows)
    _draw_time(x, y, fit_line(x, y), ax, BLUE, "support vectors")
    _finish(ax, "Time of the SVM (LIBSVM through scikit-learn)", loc="upper left")


def draw_border_time(rows: Sequence[Row], ax: "Axes") -> None:
    """Draw the time of a row against border points, with a fitted line."""
    x, y = border_times(rows)
    _draw_time(x, y, fit_line(x, y), ax, ORANGE, "border points")
    _finish(ax, "Time of borders in the paper's mode", loc="upper left")


def draw_break_even(growth: Sequence[Row], borders: Sequence[Row], ax: "Axes") -> None:
    """Draw how many border points take as long as so many support vectors."""
    machine_sizes, times = machine_times(growth)
    border_sizes, border_seconds = border_times(borders)
    machine, fast = fit_line(machine_sizes, times), fit_line(border_sizes, border_seconds)
    x = np.geomspace(LEAST_SUPPORT, 10_000, 400)
    y = (machine.intercept - fast.intercept + machine.slope * x) / fast.slope
    limits = max(machine_sizes), max(border_sizes)
    is_timed = (x <= limits[0]) & (y <= limits[1])
    label = f"ours: about {machine.slope / fast.slope:.0f} points a support vector"
    ax.plot(x, y, "--", color=BLUE, linewidth=1.5, label=f"{label} (dashed: extrapolated)")
    ax.plot(x, np.where(is_timed, y, np.nan), color=BLUE, linewidth=3)
    ax.plot(x, 3 * x, color="black", linewidth=1, linestyle=":", label="the paper's rule: 3")
    ax.fill_between(x, x.min(), y, color=BLUE, alpha=0.1, label="borders are faster")
    timed = [[x.min(), limits[0], limits[0]], [limits[1], limits[1], x.min()]]
    words = f"timed: up to {limits[1]:.0f} points, {limits[0]:.0f} support vectors"
    ax.plot(*timed, color=ORANGE, linewidth=1.5, linestyle="-.", label=words)
    ax.set(xscale="log", yscale="log", xlabel="support vectors", ylabel="border points")
    # The legend stands above the lines.
    ax.set_ylim(x.min(), 100 * y.max())
    _finish(ax, "Equal times, two features, two classes", loc="upper left")


def support_law(rows: Sequence[Row]) -> Any:
    """Fit the power law of the number of support vectors."""
    found = by_setting([row for row in rows if row.n_train >= LEAST_TRAINING], "n_support")
    return fit_power_law(list(found), [one.mean for one in found.values()])


def machine_times(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    """Return support vectors, and microseconds a row."""
    kept = [row for row in rows if (row.n_support or 0) >= LEAST_SUPPORT]
    return _times(kept, "n_support")


def border_times(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    """Return border points, and microseconds a row."""
    kept = [row for row in rows if (row.n_borders or 0) >= LEAST_BORDERS]
    return _times(kept, "n_borders")


SKILLS = (("accuracy", "accuracy", "-"), ("uncertainty_coefficient", "U.C.", "--"))


def _times(rows: Sequence[Row], column: str) -> tuple[list[float], list[float]]:
    """Return sizes and the least time of a row over the trials, for each setting."""
    sizes, times = [], []
    for setting, size in by_setting(rows, column).items():
        seconds = [row.test_seconds / row.n_test for row in rows if row.setting == setting]
        sizes.append(size.mean)
        times.append(1e6 * min(seconds))
    return sizes, times


def _draw_time(
    x: list[float], y: list[float], line: Any, ax: "Axes", colour: str, what: str
) -> None:
    """Draw times and the line fitted to them."""
    ax.plot(x, y, "o", color=colour, label="least of the trials")
    ends = np.geomspace(min(x), max(x), 50)
    law = f"{line.intercept:.3g} µs + {1e3 * line.slope:.3g} ns · {what}"
    label = f"fit from {min(x):.0f} to {max(x):.0f}, not extrapolated: {law}"
    ax.plot(ends, line.intercept + line.slope * ends, color="black", linewidth=1, label=label)
    ax.set(xscale="log", yscale="log", xlabel=what, ylabel="microseconds a row, in a batch")


def _draw_spread(found: dict[float, Spread], ax: "Axes", label: str, **style: Any) -> None:
    """Draw means with their standard deviations."""
    means = [one.mean for one in found.values()]
    errors = [one.std or 0.0 for one in found.values()]
    ax.errorbar(list(found), means, errors, label=label, capsize=2, markersize=5, **style)


def _draw_classes(points: Sequence[Point], ax: "Axes") -> None:
    """Draw the rows of both classes."""
    _scatter(points, "class 1", ax, s=16, color=ORANGE, marker="^", alpha=0.7, lw=0)
    _scatter(points, "class 2", ax, s=14, color=BLUE, marker="o", alpha=0.7, lw=0)


def _scatter(points: Sequence[Point], kind: str, ax: "Axes", **style: Any) -> None:
    """Draw the points of one kind."""
    found = [point for point in points if point.kind == kind]
    label = kind if "border" in kind else f"{len(found)} {PLURALS[kind]}"
    ax.scatter([one.x for one in found], [one.y for one in found], label=label, **style)


PLURALS = {
    "class 1": "rows of class 1",
    "class 2": "rows of class 2",
    "support vector": "support vectors",
}


def _frame_plane(ax: "Axes") -> None:
    """Finish a picture of the plane of the sample classes."""
    ax.set(xlabel="first feature", ylabel="second feature", aspect="equal")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small")


def _finish(ax: Any, title: str, *, loc: str) -> None:
    """Add title, grid and legend."""
    ax.set_title(title, fontsize="medium")
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.legend(loc=loc, fontsize="small", framealpha=0.9)


def _trials(rows: Sequence[Row]) -> str:
    """Say how many trials the means are of."""
    return f"{len({row.seed for row in rows})} trials"


def _save(figure: Any, path: Path) -> Path:
    """Write a figure to its file."""
    figure.savefig(path, dpi=DPI)
    return path
