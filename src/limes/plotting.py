"""Draw decision regions, border points and the candidates of a fit."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from sklearn.decomposition import PCA

from limes._typing import Array, Labels
from limes.classifier import BordersClassifier
from limes.model.border_map import BorderMap
from limes.model.exact import ExactScheme
from limes.model.model import Candidate
from limes.old_names import refuse_old_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes


__all__ = ["draw_borders", "draw_candidates", "draw_plane"]

# Okabe and Ito's colours, which colour-blind readers can distinguish.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442")
# Of the candidates of each scheme; the second one marks the selected candidate.
CURVE_COLOURS = COLOURS[:1] + COLOURS[2:]
CURVE_MARKERS = ("o", "^", "D", "v", "P", "X")
# Points along each axis at which the model is evaluated for the regions.
GRID = 400
# Border points drawn by draw_plane: those nearest to the plane; more would hide each other.
MAX_POINTS = 200
# Disagreement at which exact sums are drawn, as a share of the smallest of the other candidates and
# where there are none: a logarithmic axis has no zero.
ZERO_SHARE = 0.5
ZERO_ALONE = 1e-4
# Length of an arrow, as a share of the longer axis.
ARROW_LENGTH = 0.027


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

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> import limes
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> fast = limes.accelerate(SVC(gamma=2).fit(X, y), scheme="exact")
    >>> ax = new_figure().subplots()
    >>> draw_borders(fast, X, y, ax)
    >>> [text.get_text() for text in ax.get_legend().get_texts()][:2]
    ['rows of class 0', 'rows of class 1']
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"X must have 2 features to be drawn, got the shape {X.shape!r}.")
    low, high = X.min(axis=0), X.max(axis=0)
    margin = 0.05 * (high - low)
    plane = find_plane(X)
    _draw_regions(fast, plane, (low - margin, high + margin), ax)
    _draw_rows(fast, plane.project(X), y, ax)
    _draw_points(*points_near(fast, plane), ax)
    ax.set(xlabel=plane.names[0], ylabel=plane.names[1])
    ax.legend(loc="best", fontsize="small", framealpha=0.9)


def draw_plane(fast: BordersClassifier, X: Array, y: Labels, ax: "Axes") -> "Plane":
    """Draw what ``draw_borders`` draws for any number of features, in their plane.

    Parameters
    ----------
    fast : BordersClassifier
        Fitted on two features or more.
    X : ndarray of shape (n_rows, n_features)
        Rows to show, three or more.
    y : ndarray of shape (n_rows,)
        Their labels.
    ax : matplotlib.axes.Axes
        Where to draw.

    Returns
    -------
    Plane
        That of two features, or of the first two principal components of more.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> import limes
    >>> X, y = load_iris(return_X_y=True)
    >>> fast = limes.accelerate(SVC().fit(X, y), scheme="exact")
    >>> plane = draw_plane(fast, X, y, new_figure().subplots())
    >>> plane.project(X).shape
    (150, 2)
    """
    names = getattr(fast, "feature_names_in_", None)
    plane = find_plane(X, None if names is None else tuple(map(str, names)))
    # Outliers would shrink the rest.
    low, high = np.percentile(plane.project(X), [0.5, 99.5], axis=0)
    margin = 0.08 * np.maximum(high - low, 1e-12)
    _draw_regions(fast, plane, (low - margin, high + margin), ax)
    _draw_rows(fast, plane.project(X), y, ax)
    _draw_points(*points_near(fast, plane, max_points=MAX_POINTS), ax)
    ax.set(xlabel=plane.names[0], ylabel=plane.names[1])
    if len(fast.classes_) <= len(COLOURS):
        ax.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.12),
            ncols=2,
            frameon=False,
            markerscale=2.5,
        )
    return plane


def draw_candidates(fast: BordersClassifier, ax: "Axes | None" = None) -> "Axes":
    """Draw the candidates of a fit: disagreement with the source against the cost per row.

    Disagreement is that on held-out rows, like those given to the fit. A candidate with fallback is
    named with the share of rows that the exact sums predict; where names would overlap, the less
    important ones are left out.

    Parameters
    ----------
    fast : BordersClassifier
        Fitted without ``n_borders``.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; by default the current axes of pyplot.

    Returns
    -------
    matplotlib.axes.Axes
        The same. A candidate that never differed from the source is drawn at a tenth of its
        standard error; exact sums, which have none, at half the smallest disagreement of the
        others.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> import limes
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> fast = limes.accelerate(SVC(gamma=2).fit(X, y), scheme="exact")
    >>> ax = draw_candidates(fast, new_figure().subplots())
    >>> ax.get_ylabel()
    'disagreement on held-out rows'
    """
    candidates = sorted(fast.candidates_, key=lambda candidate: candidate.cost)
    if not candidates:
        raise ValueError(
            "there is no trade-off to draw, candidates_ is []: fit with scheme='auto' or 'shared'."
        )
    if any(np.isnan(candidate.agreement) for candidate in candidates):
        raise ValueError(
            "the agreement of the candidates is nan, since there were too few rows to hold any "
            "out: fit with more rows."
        )
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.gca()
    heights = _disagreements(candidates)
    maps = [item for item in candidates if item.scheme != ExactScheme.name]
    has_schemes = len({item.scheme for item in maps}) > 1
    has_shapes = len({item.shape for item in maps}) > 1
    for place, (scheme, shape) in enumerate(sorted({(i.scheme, i.shape) for i in maps})):
        shown = [
            number
            for number, item in enumerate(candidates)
            if (item.scheme, item.shape) == (scheme, shape)
        ]
        label = "candidates" + f", {scheme}" * has_schemes + f", {shape} base" * has_shapes
        ax.errorbar(
            [candidates[number].cost for number in shown],
            [heights[number] for number in shown],
            # A bar down to zero has no end on a logarithmic axis.
            yerr=[
                min(candidates[number].agreement_error, 0.9 * heights[number]) for number in shown
            ],
            color=CURVE_COLOURS[place % len(CURVE_COLOURS)],
            marker=CURVE_MARKERS[place % len(CURVE_MARKERS)],
            capsize=3,
            label=label,
        )
    for candidate, height in zip(candidates, heights, strict=True):
        if candidate.scheme == ExactScheme.name:
            label = "exact sums, no disagreement"
            ax.plot(candidate.cost, height, "s", color="black", label=label)
    _mark_selected(candidates, heights, ax)
    _scale_candidates([candidate.cost for candidate in candidates], ax)
    if fast.model_.info.agreement_rows:
        ax.set_title(f"Agreement of {fast.model_.info.agreement_rows}", fontsize=8, wrap=True)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)
    _name_candidates(candidates, heights, ax)
    return ax


def new_figure(**options: Any) -> Any:
    """Return an empty figure that needs no screen.

    Parameters
    ----------
    **options
        For ``matplotlib.figure.Figure``.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib: install it with pip install 'limes[plot]'."
        ) from error
    return Figure(**options)


def border_points(fast: BordersClassifier) -> tuple[Array, Array]:
    """Return border points as raw rows, and the unit direction across the border at each.

    Parameters
    ----------
    fast : BordersClassifier
        Fitted classifier.

    Returns
    -------
    points, directions : ndarray of shape (n_borders, n_features)
        Of all maps; none for exact sums. Where a point has several functions, the direction is
        that in which the highest of them gains most on the second highest.
    """
    if not fast.scheme_.maps:
        return np.empty((0, fast.n_features_in_)), np.empty((0, fast.n_features_in_))
    points, gradients = zip(*map(_points_and_gradients, fast.scheme_.maps), strict=True)
    return np.concatenate(points), _unit(np.concatenate(gradients))


@dataclass(frozen=True, eq=False)
class Plane:
    """A plane through the mean of the rows, with features in units of their deviation."""

    # Shape (n_features,). Of each feature.
    mean: Array
    deviation: Array
    # Shape (2, n_features). Two orthogonal unit vectors.
    axes: Array
    # Names of the two directions.
    names: tuple[str, str]
    # Share of the rows' variance that the plane shows.
    share: float

    def project(self, X: Array) -> Array:
        """Return the positions of rows in the plane."""
        return ((X - self.mean) / self.deviation) @ self.axes.T

    def lift(self, positions: Array) -> Array:
        """Return positions in the plane as rows."""
        return self.mean + (positions @ self.axes) * self.deviation

    def distances(self, X: Array) -> Array:
        """Return the distances of rows from the plane."""
        return np.linalg.norm((X - self.lift(self.project(X))) / self.deviation, axis=1)

    def project_gradients(self, gradients: Array) -> Array:
        """Return the part of gradients that lies in the plane."""
        return (gradients * self.deviation) @ self.axes.T


def find_plane(X: Array, names: tuple[str, ...] | None = None) -> Plane:
    """Return the plane of two features, or the one that shows most of the rows' variance.

    Examples
    --------
    >>> plane = find_plane(np.array([[0.0, 0.0], [2.0, 1.0]]))
    >>> plane.project(np.array([[3.0, 4.0]]))
    array([[3., 4.]])
    """
    if X.shape[1] == 2:
        first, second = names or ("first feature", "second feature")
        return Plane(np.zeros(2), np.ones(2), np.eye(2), (first, second), 1.0)
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    components = PCA(2, random_state=0).fit((X - mean) / deviation)
    titles = ("first principal component", "second principal component")
    share = float(np.nan_to_num(components.explained_variance_ratio_.sum()))
    return Plane(mean, deviation, components.components_, titles, share)


def points_near(
    fast: BordersClassifier, plane: Plane, *, max_points: int | None = None
) -> tuple[Array, Array]:
    """Return positions of the border points nearest to a plane, and their directions in it."""
    points, directions = border_points(fast)
    nearest = np.argsort(plane.distances(points), kind="stable")[:max_points]
    return plane.project(points[nearest]), _unit(plane.project_gradients(directions[nearest]))


def _draw_regions(
    fast: BordersClassifier, plane: Plane, box: tuple[Array, Array], ax: "Axes"
) -> None:
    """Shade the predictions of the model in a box of the plane, and show nothing but the box."""
    from matplotlib.colors import ListedColormap

    low, high = box
    axes = [np.linspace(low[j], high[j], GRID) for j in range(2)]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    class_index = np.searchsorted(fast.classes_, fast.predict(plane.lift(grid)))
    n_classes = len(fast.classes_)
    ax.imshow(
        class_index.reshape(GRID, GRID),
        extent=(low[0], high[0], low[1], high[1]),
        origin="lower",
        aspect="auto",
        cmap=ListedColormap([COLOURS[place % len(COLOURS)] for place in range(n_classes)]),
        vmin=-0.5,
        vmax=n_classes - 0.5,
        alpha=0.2,
        interpolation="nearest",
    )
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    ax.set_autoscale_on(False)


def _draw_rows(fast: BordersClassifier, positions: Array, y: Labels, ax: "Axes") -> None:
    """Draw rows in the colours of their classes."""
    for place, label in enumerate(fast.classes_):
        has_label = y == label
        ax.scatter(
            positions[has_label, 0],
            positions[has_label, 1],
            s=7,
            alpha=0.55,
            linewidths=0,
            color=COLOURS[place % len(COLOURS)],
            label=f"rows of class {label}",
        )


def _draw_points(points: Array, directions: Array, ax: "Axes") -> None:
    """Draw border points, and an arrow across the border at each."""
    if not len(points):
        return
    label = f"{len(points)} border point" + "s" * (len(points) > 1)
    ax.scatter(points[:, 0], points[:, 1], s=8, color="black", zorder=3, label=label)
    length = ARROW_LENGTH * max(np.ptp(ax.get_xlim()), np.ptp(ax.get_ylim()))
    ax.quiver(
        *points.T,
        *(length * directions).T,
        angles="xy",
        scale_units="xy",
        scale=1,
        width=0.002,
        zorder=3,
    )


def _points_and_gradients(border_map: BorderMap) -> tuple[Array, Array]:
    """Return the points of a map as raw rows, and the gradient across the border at each."""
    preprocessing, rows, slopes = border_map.preprocessing, border_map.points, border_map.slopes
    if preprocessing is not None:
        rows = preprocessing.undo(rows)
    if border_map.n_outputs == 1:
        return rows, slopes[:, 0]
    values = np.einsum("ikj,ij->ik", slopes, rows) + border_map.offsets
    second, first = np.argsort(values, axis=1)[:, -2:].T
    numbers = np.arange(len(rows))
    return rows, slopes[numbers, first] - slopes[numbers, second]


def _unit(vectors: Array) -> Array:
    """Return vectors of length 1; those of length 0 stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)


def _disagreements(candidates: list[Candidate]) -> list[float]:
    """Return the share of rows in which each candidate differs from the source, above zero.

    At least a tenth of its standard error; exact sums lie below all others.
    """
    shares = [max(1 - item.agreement, 0.1 * item.agreement_error) for item in candidates]
    smallest = min((share for share in shares if share > 0), default=ZERO_ALONE / ZERO_SHARE)
    return [share if share > 0 else ZERO_SHARE * smallest for share in shares]


def _mark_selected(candidates: list[Candidate], heights: list[float], ax: "Axes") -> None:
    """Draw a ring around the selected candidate."""
    for candidate, height in zip(candidates, heights, strict=True):
        if candidate.is_selected:
            at = candidate.cost, height
            ax.plot(*at, "o", ms=13, mfc="none", mec=COLOURS[1], mew=2, label="selected")


def _name_candidates(candidates: list[Candidate], heights: list[float], ax: "Axes") -> None:
    """Write size and fallback beside candidates, the most important first, where there is space."""
    if hasattr(ax.figure, "draw_without_rendering"):
        ax.figure.draw_without_rendering()  # the layout decides where there is space
    best = np.minimum.accumulate(heights)
    # The selected one, the exact sums, those that no cheaper one equals, and the others.
    order = sorted(
        range(len(candidates)),
        key=lambda i: (
            not candidates[i].is_selected,
            candidates[i].scheme != ExactScheme.name,
            heights[i] > best[i],
        ),
    )
    taken = [
        ax.transData.transform((item.cost, y)) for item, y in zip(candidates, heights, strict=True)
    ]
    boxes: list[Any] = []
    for number in order:
        at = candidates[number].cost, heights[number]
        for offset, side in (((8, 6), "left"), ((8, -11), "left"), ((-8, 6), "right")):
            text = ax.annotate(
                _candidate_name(candidates[number]),
                at,
                xytext=offset,
                textcoords="offset points",
                ha=side,
                fontsize=8,
            )
            box = text.get_window_extent().padded(2)
            inside = ax.bbox.containsx(box.x1) and ax.bbox.containsx(box.x0)
            if (
                inside
                and not any(box.overlaps(other) for other in boxes)
                and not any(box.contains(*point) for point in taken)
            ):
                boxes.append(box)
                break
            text.remove()


def _candidate_name(candidate: Candidate) -> str:
    """Return what is written beside a candidate."""
    if candidate.scheme == ExactScheme.name:
        return ExactScheme.name
    name = f"{candidate.n_borders} point" + "s" * (candidate.n_borders > 1)
    if candidate.fallback_share:
        name += f", {candidate.fallback_share:.1%} exact"
    return name


def _scale_candidates(costs: list[int], ax: "Axes") -> None:
    """Set logarithmic axes with a few round numbers, and names for them."""
    from matplotlib.ticker import LogLocator, NullFormatter

    ax.set(
        xscale="log",
        yscale="log",
        xlabel="expected multiply-adds per row",
        ylabel="disagreement on held-out rows",
    )
    # Labels of all ticks between powers of ten would overlap.
    is_narrow = max(costs) < 100 * min(costs)
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if is_narrow else (1,)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())
    # Space for the names of the candidates.
    ax.margins(x=0.3, y=0.35)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        """Raise for a name that is not there, giving its new one if it was renamed."""
        refuse_old_name(sys.modules[__name__], name, {"draw_tradeoff": "draw_candidates"})
