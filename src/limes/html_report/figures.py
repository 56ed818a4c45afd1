"""Reliability, confusion, plane of borders."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from limes._typing import Array, Indices, Labels
from limes.classifier import BordersClassifier
from limes.html_report.scores import N_BINS, Comparison, ModelScores
from limes.plotting import COLOURS, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Fewer rows in a bin say nothing about a share.
MIN_BIN_ROWS = 10
# Places along each axis at which the regions are asked for.
GRID = 240
# More classes than this have no legend, and share colours.
MAX_NAMED = len(COLOURS)
# Border points that are drawn: the ones nearest to the plane; more would hide each other.
MAX_POINTS = 200


def as_image(figure: Any, alt: str) -> str:
    """Return a figure as an HTML image that needs no other file."""
    from html import escape

    stream = BytesIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    data = base64.b64encode(stream.getvalue()).decode("ascii")
    return f'<img alt="{escape(alt)}" src="data:image/svg+xml;base64,{data}">'


def draw_reliability(comparison: Comparison, ax: "Axes") -> None:
    """Draw how often a prediction of a given probability is right."""
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--", label="perfect")
    shown = [(comparison.source, COLOURS[1], "s"), (comparison.fast, COLOURS[0], "o")]
    for answers, shade, marker in shown:
        if answers is not None and answers.has_probabilities:
            forecast, observed, _ = reliability(answers, comparison)
            ax.plot(forecast, observed, color=shade, marker=marker, label=answers.name)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="forecast probability", ylabel="observed share")
    ax.set_aspect("equal")
    ax.legend(loc="upper left", frameon=False)


def draw_counts(comparison: Comparison, ax: "Axes") -> None:
    """Draw how many rows have a forecast of each size, the reliability diagram's other half."""
    edges = np.linspace(0, 1, N_BINS + 1)
    shown = [(comparison.source, COLOURS[1], "s"), (comparison.fast, COLOURS[0], "o")]
    for answers, shade, _ in shown:
        if answers is not None and answers.has_probabilities:
            counts = answers.counted.bins.sum(axis=0)
            ax.stairs(counts, edges, color=shade, linewidth=1.8, label=answers.name)
    ax.set(xlim=(0, 1), ylim=(0, None), xlabel="forecast probability", ylabel="rows")


def reliability(answers: ModelScores, comparison: Comparison) -> tuple[Array, Array, Indices]:
    """Return the points of a reliability diagram.

    Two classes: the probability of the second, and how often it is the true one. More: the
    largest probability, and how often its class is the true one.
    """
    counted, is_binary = answers.counted, len(comparison.classes) == 2
    is_right = counted.truths == (comparison.classes[1] if is_binary else counted.labels)
    counts = counted.bins.sum(axis=0)
    has_rows = counts >= MIN_BIN_ROWS
    sums = [
        one.sum(axis=0)[has_rows]
        for one in (counted.calibrated_probabilities, counted.bins[is_right])
    ]
    return sums[0] / counts[has_rows], sums[1] / counts[has_rows], counts[has_rows]


def draw_confusion(matrix: NDArray[np.int64], classes: Labels, ax: "Axes") -> None:
    """Draw shares of each true class as shades, for classes too many for a table."""
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    step = max(1, len(classes) // 26)
    places = np.arange(0, len(classes), step)
    names = [str(classes[place]) for place in places]
    ax.set_xticks(places, names, fontsize=7)
    ax.set_yticks(places, names, fontsize=7)
    ax.set(xlabel="label given", ylabel="true class")


@dataclass(frozen=True, eq=False)
class Plane:
    """A plane through the middle of the rows, with features in units of their deviation."""

    # Shape (n_features,). Of each feature.
    middle: Array
    deviation: Array
    # Shape (2, n_features). Two directions of length 1 at right angles.
    axes: Array
    # What the two directions are.
    names: tuple[str, str]
    # Share of the rows' variance that the plane shows.
    share: float

    def project(self, X: Array) -> Array:
        """Return where rows lie in the plane."""
        return ((X - self.middle) / self.deviation) @ self.axes.T

    def lift(self, places: Array) -> Array:
        """Return places in the plane as rows."""
        return self.middle + (places @ self.axes) * self.deviation

    def distances(self, X: Array) -> Array:
        """Return how far rows are from the plane."""
        return np.linalg.norm((X - self.lift(self.project(X))) / self.deviation, axis=1)

    def project_gradients(self, gradients: Array) -> Array:
        """Return the part of gradients that lies in the plane."""
        return (gradients * self.deviation) @ self.axes.T


def draw_plane(fast: BordersClassifier, plane: Plane, *, X: Array, y: Labels, ax: "Axes") -> None:
    """Draw decision regions in a plane, rows, border points and the directions across."""
    places = plane.project(X)
    low, high = np.percentile(places, [0.5, 99.5], axis=0)
    margin = 0.08 * np.maximum(high - low, 1e-12)
    low, high = low - margin, high + margin
    _draw_regions(fast, plane, (low, high), ax)
    for place, label in enumerate(fast.classes_):
        shade = COLOURS[place % len(COLOURS)]
        own = places[y == label]
        style: dict[str, Any] = {"s": 7, "alpha": 0.55, "linewidths": 0, "color": shade}
        ax.scatter(own[:, 0], own[:, 1], label=str(label), **style)
    _draw_borders(fast, plane, (low, high), ax)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    ax.set(xlabel=plane.names[0], ylabel=plane.names[1])
    if len(fast.classes_) <= MAX_NAMED:
        style = {"title": "class", "frameon": False, "markerscale": 3}
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), **style)


def _draw_regions(
    fast: BordersClassifier, plane: Plane, box: tuple[Array, Array], ax: "Axes"
) -> None:
    """Shade what the fast model answers in the plane."""
    from matplotlib.colors import ListedColormap

    low, high = box
    axes = [np.linspace(low[j], high[j], GRID) for j in range(2)]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    class_index = np.searchsorted(fast.classes_, fast.predict(plane.lift(grid)))
    n_classes = len(fast.classes_)
    shades = ListedColormap([COLOURS[place % len(COLOURS)] for place in range(n_classes)])
    ax.imshow(
        class_index.reshape(GRID, GRID),
        extent=(low[0], high[0], low[1], high[1]),
        origin="lower",
        aspect="auto",
        cmap=shades,
        vmin=-0.5,
        vmax=n_classes - 0.5,
        alpha=0.22,
        interpolation="nearest",
    )


def _draw_borders(
    fast: BordersClassifier, plane: Plane, box: tuple[Array, Array], ax: "Axes"
) -> None:
    """Draw border points and the direction across the border at each."""
    points, directions = borders_near(fast, plane)
    is_inside = ((points >= box[0]) & (points <= box[1])).all(axis=1)
    points, directions = points[is_inside], directions[is_inside]
    ax.scatter(points[:, 0], points[:, 1], s=6, color="black", zorder=3)
    ax.quiver(
        points[:, 0],
        points[:, 1],
        directions[:, 0],
        directions[:, 1],
        scale=45,
        width=0.0015,
        headwidth=4,
        color="black",
        zorder=3,
    )


def draw_candidates(rows: Sequence[dict[str, Any]], ax: "Axes") -> None:
    """Draw agreement with the source against the cost of a row, for every model that was tried."""
    schemes = sorted({str(row.get("scheme", "")) for row in rows})
    for number, scheme in enumerate(schemes):
        own = sorted(
            (row["cost"], row["agreement"]) for row in rows if str(row.get("scheme", "")) == scheme
        )
        ax.plot(
            *zip(*own, strict=True),
            marker="o",
            color=COLOURS[number % len(COLOURS)],
            label=scheme or None,
        )
    for row in rows:
        if row.get("is_chosen"):
            place = [row["cost"]], [row["agreement"]]
            ax.plot(*place, marker="o", markersize=14, fillstyle="none", color="black")
    ax.set(xscale="log", xlabel="multiply-adds a row", ylabel="agreement with the source")
    if schemes != [""]:
        ax.legend(frameon=False)


def small_figure(width: float = 4.6, height: float = 4.2) -> Any:
    """Return an empty figure in the report's style, and its axes."""
    figure = new_figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def find_plane(X: Array, names: tuple[str, ...] | None = None) -> Plane:
    """Return the plane of two features, or the one that shows most of the rows' variance.

    Examples
    --------
    >>> plane = find_plane(np.array([[0.0, 0.0], [2.0, 1.0]]))
    >>> plane.project(np.array([[3.0, 4.0]]))
    array([[3., 4.]])
    """
    if X.shape[1] == 2:
        given = names or ("first feature", "second feature")
        return Plane(np.zeros(2), np.ones(2), np.eye(2), (given[0], given[1]), 1.0)
    middle, deviation = X.mean(axis=0), X.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    found = PCA(2, random_state=0).fit((X - middle) / deviation)
    titles = ("first principal component", "second principal component")
    share = float(np.nan_to_num(found.explained_variance_ratio_.sum()))
    return Plane(middle, deviation, found.components_, titles, share)


def borders_near(fast: BordersClassifier, plane: Plane) -> tuple[Array, Array]:
    """Return border points near a plane, and the direction across the border at each."""
    points, normals = _border_points(fast)
    nearest = np.argsort(plane.distances(points), kind="stable")[:MAX_POINTS]
    directions = plane.project_gradients(normals[nearest])
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    return plane.project(points[nearest]), directions / np.where(lengths > 0, lengths, 1.0)


def _border_points(fast: BordersClassifier) -> tuple[Array, Array]:
    """Return the points of all maps as raw rows, and the gradient across the border at each."""
    points, normals = [], []
    for one in fast.scheme_.maps:
        rows = one.points if one.preprocessing is None else one.preprocessing.undo(one.points)
        points.append(rows)
        normals.append(_gradients(one.slopes, one.offsets, rows))
    return np.concatenate(points), np.concatenate(normals)


def _gradients(slopes: Array, offsets: Array, rows: Array) -> Array:
    """Return the gradient across the border: between the two highest of several functions."""
    if slopes.shape[1] == 1:
        return slopes[:, 0]
    values = np.einsum("ikj,ij->ik", slopes, rows) + offsets
    order = np.argsort(values, axis=1)
    at = np.arange(len(rows))
    return slopes[at, order[:, -1]] - slopes[at, order[:, -2]]
