"""Reliability diagrams and confusion matrices of the page."""

import base64
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from limes._typing import Array, Indices, Labels
from limes.plotting import COLOURS, new_figure
from limes.report import N_BINS, Comparison, ModelScores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A bin with fewer rows has no point in the reliability diagram.
MIN_BIN_ROWS = 10
# Labels along an axis of a confusion matrix, at most.
MAX_TICKS = 26


def small_figure(width: float = 4.6, height: float = 4.2) -> Any:
    """Return an empty figure in the style of the page, and its axes."""
    figure = new_figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def as_image(figure: Any, alt: str) -> str:
    """Return a figure as an HTML image that needs no other file."""
    stream = BytesIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    data = base64.b64encode(stream.getvalue()).decode("ascii")
    return f'<img alt="{escape(alt)}" src="data:image/svg+xml;base64,{data}">'


def draw_confusion(matrix: NDArray[np.int64], classes: Labels, ax: "Axes") -> None:
    """Draw shares of each true class as shades, for classes too many for a table."""
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    places = np.arange(0, len(classes), max(1, len(classes) // MAX_TICKS))
    names = [str(classes[place]) for place in places]
    ax.set_xticks(places, names, fontsize=7)
    ax.set_yticks(places, names, fontsize=7)
    ax.set(xlabel="predicted class", ylabel="true class")


def draw_reliability(comparison: Comparison, ax: "Axes") -> None:
    """Draw how often predictions of a given probability are right."""
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--", label="perfect")
    for model, colour, marker in _models_with_probabilities(comparison):
        predicted, observed, _ = reliability(model)
        ax.plot(predicted, observed, color=colour, marker=marker, label=model.name)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="predicted probability", ylabel="observed share")
    ax.set_aspect("equal")
    ax.legend(loc="upper left", frameon=False)


def draw_counts(comparison: Comparison, ax: "Axes") -> None:
    """Draw the number of rows in each bin of the reliability diagram."""
    edges = np.linspace(0, 1, N_BINS + 1)
    for model, colour, _ in _models_with_probabilities(comparison):
        counts = model.counts.bins.sum(axis=0)
        ax.stairs(counts, edges, color=colour, linewidth=1.8, label=model.name)
    ax.set(xlim=(0, 1), ylim=(0, None), xlabel="predicted probability", ylabel="rows")


def reliability(model: ModelScores) -> tuple[Array, Array, Indices]:
    """Return the points of a reliability diagram, and the number of rows of each.

    Two classes: the probability of the second, and how often it is the true one. More: the
    largest probability, and how often its class is the true one.
    """
    counts = model.counts
    is_binary = len(counts.classes) == 2
    is_right = counts.truths == (counts.classes[1] if is_binary else counts.labels)
    n_rows = counts.bins.sum(axis=0)
    is_shown = n_rows >= MIN_BIN_ROWS
    predicted = counts.bin_probabilities.sum(axis=0)[is_shown]
    observed = counts.bins[is_right].sum(axis=0)[is_shown]
    return predicted / n_rows[is_shown], observed / n_rows[is_shown], n_rows[is_shown]


def _models_with_probabilities(comparison: Comparison) -> list[tuple[ModelScores, str, str]]:
    """Return the models that predict probabilities, with their colours and markers."""
    styled = [(comparison.source, COLOURS[1], "s"), (comparison.fast, COLOURS[0], "o")]
    return [
        (model, colour, marker)
        for model, colour, marker in styled
        if model is not None and model.has_probabilities
    ]
