"""Draw borders, regions, the candidates of a fit."""

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from limes.classifier import BordersClassifier

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Okabe and Ito's colours, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442")
# Places along each axis at which the regions are asked for.
GRID = 400


def new_figure(**options: Any) -> Any:
    """Return an empty figure, or say what to install.

    Parameters
    ----------
    **options
        For ``matplotlib.figure.Figure``.

    Returns
    -------
    matplotlib.figure.Figure
        One that needs no screen.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib: install it with pip install 'limes[plot]'."
        ) from error
    return Figure(**options)


def draw_borders(fast: BordersClassifier, X: ArrayLike, y: ArrayLike, ax: "Axes") -> None:
    """Draw the decision regions, the border points and the direction across the border at each.

    Parameters
    ----------
    fast : BordersClassifier
        Fitted on two features.
    X : array-like of shape (n_rows, 2)
        Rows to show.
    y : array-like of shape (n_rows,)
        Their labels.
    ax : matplotlib.axes.Axes
        Where to draw.
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"X must have 2 features to be drawn, got the shape {X.shape!r}.")
    _draw_regions(fast, X, ax)
    for place, label in enumerate(fast.classes_):
        ax.scatter(
            X[y == label, 0],
            X[y == label, 1],
            s=6,
            alpha=0.5,
            linewidths=0,
            color=COLOURS[place % len(COLOURS)],
            label=f"rows of class {label}",
        )
    points, directions = border_points(fast)
    ax.scatter(
        points[:, 0],
        points[:, 1],
        s=14,
        color="black",
        zorder=3,
        label=f"{len(points)} border points",
    )
    length = 0.04 * np.ptp(X, axis=0).max()
    ax.quiver(
        *points.T,
        *(length * directions).T,
        angles="xy",
        scale_units="xy",
        scale=1,
        width=0.003,
        zorder=3,
    )
    ax.set(xlabel="first feature", ylabel="second feature")
    ax.legend(loc="best", fontsize="small", framealpha=0.9)


def draw_candidates(fast: BordersClassifier, ax: "Axes | None" = None) -> "Axes":
    """Draw what was tried: disagreement with the source over the cost of a row.

    Parameters
    ----------
    fast : BordersClassifier
        Fitted with the number of points left open.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; by default the current axes of pyplot.

    Returns
    -------
    matplotlib.axes.Axes
        The same. What was never seen to differ from the source is drawn at its error.
    """
    trials = sorted(fast.candidates_, key=lambda trial: trial.cost)
    if not trials:
        raise ValueError(
            "there is no trade-off to draw, tradeoff_ is []: fit with scheme='auto' or 'shared'."
        )
    from matplotlib.ticker import LogLocator, NullFormatter

    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.gca()
    costs = [trial.cost for trial in trials]
    # A logarithmic axis has no zero: what was never seen to differ is drawn at its error.
    missed = [max(1 - trial.agreement, trial.agreement_error) for trial in trials]
    ax.errorbar(
        costs,
        missed,
        yerr=[
            min(trial.agreement_error, 0.9 * miss)
            for trial, miss in zip(trials, missed, strict=True)
        ],
        color=COLOURS[0],
        marker="o",
        capsize=3,
        label="tried",
    )
    counts = Counter(trial.n_borders for trial in trials)
    for place, (trial, miss) in enumerate(zip(trials, missed, strict=True)):
        name = f"{trial.n_borders} point" + "s" * (trial.n_borders > 1)
        name += f", blend {trial.blend}" * (counts[trial.n_borders] > 1)
        # Above and below in turn, so that neighbours do not overlap.
        shift = (6, -12 if place % 2 else 6)
        ax.annotate(name, (trial.cost, miss), xytext=shift, textcoords="offset points", fontsize=8)
    for trial, cost, miss in zip(trials, costs, missed, strict=True):
        if trial.is_selected:
            ax.plot(cost, miss, "o", ms=13, mfc="none", mec=COLOURS[1], mew=2, label="chosen")
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="multiply-adds a row",
        ylabel="share of rows not as the source",
    )
    # A few round numbers, however narrow the range: names of all that lie between would overlap.
    is_narrow = max(costs) < 100 * min(costs)
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if is_narrow else (1,)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())
    # Room for the last name.
    ax.margins(x=0.3, y=0.1)
    ax.legend(loc="best", framealpha=0.9)
    return ax


def border_points(fast: BordersClassifier) -> tuple[Any, Any]:
    """Return border points as raw rows, and the unit direction across the border at each.

    Parameters
    ----------
    fast : BordersClassifier
        Fitted.

    Returns
    -------
    points, directions : ndarray of shape (n_borders, n_features)
        Of all maps.
    """
    maps = fast.scheme_.maps
    points = np.concatenate(
        [
            one.points if one.preprocessing is None else one.preprocessing.undo(one.points)
            for one in maps
        ]
    )
    normals = np.concatenate([one.slopes[:, 0] for one in maps])
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    return points, normals / np.where(lengths > 0, lengths, 1.0)


def _draw_regions(fast: BordersClassifier, X: Any, ax: "Axes") -> None:
    """Shade what the fast model answers, all over the rows."""
    from matplotlib.colors import ListedColormap

    low, high = X.min(axis=0), X.max(axis=0)
    margin = 0.05 * (high - low)
    axes = [np.linspace(low[j] - margin[j], high[j] + margin[j], GRID) for j in range(2)]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    class_index = np.searchsorted(fast.classes_, fast.predict(grid)).reshape(GRID, GRID)
    n_classes = len(fast.classes_)
    shades = ListedColormap([COLOURS[place % len(COLOURS)] for place in range(n_classes)])
    ax.pcolormesh(
        *axes,
        class_index,
        cmap=shades,
        vmin=-0.5,
        vmax=n_classes - 0.5,
        alpha=0.15,
        rasterized=True,
    )
