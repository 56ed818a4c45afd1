"""The page, from the template ``page.html``, and its figures."""

import base64
import math
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from io import BytesIO
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

import limes
from limes._typing import Array, Indices, Labels
from limes.classifier import BordersClassifier
from limes.model.border_map import BorderMap
from limes.model.exact import ExactScheme
from limes.model.model import Candidate
from limes.plotting import COLOURS, Plane, draw_candidates, draw_plane, new_figure
from limes.report import N_BINS, ComparedModel, Comparison, ModelScores, compare, with_fit_notes
from limes.sources.answers import read_only
from limes.sources.exact import exact_predict
from limes.sources.table_encoder import check_no_encoder

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# More classes than this are a picture instead of a table of numbers.
MAX_TABLE_CLASSES = 12
# Rows in the picture of the borders.
MAX_DRAWN_ROWS = 1500
# Numbers in a dense copy of rows; wider rows have no picture.
MAX_NUMBERS = 1 << 26
UNKNOWN = "n/a"


def html_report(
    fast: BordersClassifier,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    source: Any = None,
    title: str = "Fast classifier and its source",
) -> str:
    """Return a page about a fast classifier: skill, agreement, probabilities, time, pictures.

    Parameters
    ----------
    fast : BordersClassifier
        Fitted classifier.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Rows, preferably rows that neither model was fitted on.
    y : array-like of shape (n_rows,), default=None
        True labels; without them there is agreement but no skill.
    source : classifier, default=None
        What was replaced; None for ``fast.estimator_``, if there is one.
    title : str, default="Fast classifier and its source"
        Title of the page.

    Returns
    -------
    str
        HTML, with style and pictures inside.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> fast = BordersClassifier(SVC(gamma=2), random_state=0).fit(X, y)
    >>> html_report(fast, X, y).splitlines()[0]
    '<!doctype html>'
    """
    check_no_encoder(fast, "an HTML page")
    source = _source_of(fast) if source is None else source
    rows, truth = read_only(_as_rows(X)), None if y is None else np.asarray(y)
    comparison = compare(
        ComparedModel.from_estimator(fast),
        None if source is None else ComparedModel.from_estimator(source),
        rows,
        truth,
        classes=fast.classes_,
        fit_seconds=fast.fit_seconds_,
        exact=exact_predict(fast, source),
    )
    labels = fast.predict(rows[:MAX_DRAWN_ROWS]) if truth is None else truth
    comparison = with_fit_notes(comparison, fast)
    return render(fast, comparison, rows, labels, title=title)


def render(fast: Any, comparison: Comparison, X: Any, y: Labels, *, title: str) -> str:
    """Return the page of a comparison.

    Parameters
    ----------
    fast : classifier
        The model that is shown; borders are drawn for a ``BordersClassifier`` only.
    comparison : Comparison
        Its scores, and those of the source.
    X : ndarray or sparse matrix of shape (n_drawn, n_features)
        Rows for the picture.
    y : ndarray of shape (n_drawn,)
        Their labels: the true ones, if they are known.
    title : str
        Title of the page.

    Returns
    -------
    str
        HTML.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> import limes
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> fast = limes.accelerate(SVC(gamma=2).fit(X, y), scheme="exact")
    >>> render(fast, fast.report(X, y), X, y, title="Moons").splitlines()[0]
    '<!doctype html>'
    """
    sections = [
        _cards(comparison),
        _warnings(comparison),
        _scores(comparison),
        _confusions(comparison),
        _roc(comparison),
        _reliability(comparison),
        _candidates(fast),
        _borders(fast, X, y),
    ]
    template = files("limes.html_report").joinpath("page.html").read_text(encoding="utf-8")
    return Template(template).substitute(
        title=escape(title),
        lead=_lead(comparison),
        sections="\n".join(filter(None, sections)),
        version=escape(limes.__version__),
    )


def _source_of(fast: BordersClassifier) -> Any:
    """Return the source that a model was fitted to, if it is kept and predicts labels."""
    source = getattr(fast, "estimator_", None)
    return source if hasattr(source, "predict") else None


def _as_rows(X: Any) -> Any:
    """Return rows, dense if that is not large: not all models take sparse ones."""
    if not sparse.issparse(X):
        return np.asarray(X)
    is_small = X.shape[0] * X.shape[1] <= MAX_NUMBERS
    return X.toarray() if is_small else sparse.csr_matrix(X)


def _lead(comparison: Comparison) -> str:
    """Return the first sentence."""
    sizes = f"{len(comparison.classes)} classes, {comparison.n_rows:,} rows"
    name = escape(comparison.fast.name)
    if comparison.source is None:
        return f"{name}: {sizes}."
    return f"{name} in place of {escape(comparison.source.name)}: {sizes}."


def _cards(comparison: Comparison) -> str:
    """Return the most important numbers."""
    fast, n_rows = comparison.fast, f"of {comparison.n_rows:,} rows"
    cards = [
        ("times as fast as the source", comparison.speed_up, "{:.3g}"),
        (f"same label as the source, {n_rows}", comparison.agreement, "{:.2%}"),
        ("accuracy", fast.accuracy, "{:.4f}"),
        ("microseconds per row", fast.microseconds_per_row, "{:.3g}"),
    ]
    shown = [
        f'<div class="card"><strong>{form.format(value)}</strong><span>{name}</span></div>'
        for name, value, form in cards
        if value is not None
    ]
    return f'<section class="cards">{"".join(shown)}</section>'


def _warnings(comparison: Comparison) -> str:
    """Return what the fit warned of."""
    if not comparison.warnings:
        return ""
    lines = "".join(f"<li>{escape(sentence)}</li>" for sentence in comparison.warnings)
    return _section("Warnings of the fit", f"<ul>{lines}</ul>", "")


def _scores(comparison: Comparison) -> str:
    """Return the table of scores, the source before the fast model."""
    (_, *names), *lines = comparison.table(unknown=UNKNOWN)
    content = _table(names, lines)
    note = "Times are the quickest of several turns."
    for sentence in comparison.fit_notes:
        note += f" {sentence}"
    if comparison.break_even is not None:
        note += f" {comparison.break_even}"
    return _section("Skill, time and size", content, escape(note))


def _table(head: Iterable[object], lines: Iterable[Iterable[str]]) -> str:
    """Return a table whose first column names its lines."""
    names = "".join(f'<th scope="col">{escape(str(name))}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td>{cell}</td>" for cell in cells)
        + "</tr>"
        for first, *cells in lines
    )
    return f"<table><thead><tr><td></td>{names}</tr></thead><tbody>{body}</tbody></table>"


def _confusions(comparison: Comparison) -> str:
    """Return the confusion matrices side by side."""
    if comparison.fast.counts.truths is None:
        return ""
    is_small = len(comparison.all_classes) <= MAX_TABLE_CLASSES
    draw = _confusion_table if is_small else _confusion_image
    parts = [
        f"<figure><figcaption>{escape(model.name)}</figcaption>{draw(comparison, model)}</figure>"
        for model in comparison.models
    ]
    note = "True classes down, predicted classes across; shades are shares of the true class."
    return _section("Confusion", f'<div class="pair">{"".join(parts)}</div>', note)


def _confusion_table(comparison: Comparison, model: ModelScores) -> str:
    """Return a confusion matrix as a table of shaded numbers."""
    matrix, classes = comparison.confusion(model), comparison.all_classes
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    head = "".join(f'<th scope="col">{escape(str(label))}</th>' for label in classes)
    lines = [
        f'<tr><th scope="row">{escape(str(label))}</th>'
        + "".join(map(_shaded_cell, matrix[place].tolist(), shares[place].tolist()))
        + "</tr>"
        for place, label in enumerate(classes)
    ]
    return (
        f'<table class="confusion"><thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def _shaded_cell(count: int, share: float) -> str:
    """Return a cell, the darker the larger its share, with its number readable."""
    colour = "#fff" if share > 0.6 else "#1a1a2e"
    # Mixed with white, not transparent: pages may be dark.
    red, green, blue = (round(255 + 0.9 * share * (full - 255)) for full in (0, 90, 160))
    style = f"background:rgb({red},{green},{blue});color:{colour}"
    return f'<td style="{style}">{count:,}</td>'


def _confusion_image(comparison: Comparison, model: ModelScores) -> str:
    """Return a confusion matrix as a picture."""
    figure, axes = small_figure()
    draw_confusion(comparison.confusion(model), comparison.all_classes, axes)
    return as_image(figure, f"Confusion matrix of {model.name}, shares of each true class.")


def _roc(comparison: Comparison) -> str:
    """Return the ROC curves of the models, with the areas of each class in a table."""
    models = [model for model in comparison.models if model.roc_area is not None]
    if comparison.fast not in models:
        return ""
    figure, axes = small_figure()
    draw_roc(comparison, axes)
    alt = "ROC curve: share of true positives against the share of false positives."
    content = as_image(figure, alt)
    areas = [comparison.roc_areas(model) or {} for model in models]
    if len(comparison.classes) > 2:
        lines = [
            [label, *(UNKNOWN if area[label] is None else f"{area[label]:.4f}" for area in areas)]
            for label in areas[0]
        ]
        table = _table([model.name for model in models], lines)
        content = f'<div class="pair">{content}{table}</div>'
        note = (
            "Each class against the rest, by its probability; the curve is the mean over the "
            "classes. The table has the area under the curve of each class."
        )
    else:
        note = "The second class against the first, by its probability."
    error = max(model.roc.error for model in models if model.roc is not None)
    return _section("ROC", content, f"{note} Areas are exact to {error:.1g}.")


def _reliability(comparison: Comparison) -> str:
    """Return the reliability diagram, with the number of rows in each bin."""
    if comparison.fast.counts.truths is None or not comparison.fast.has_probabilities:
        return ""
    figure, axes = small_figure()
    draw_reliability(comparison, axes)
    histogram, axes = small_figure()
    draw_counts(comparison, axes)
    images = [
        as_image(
            figure,
            "Reliability diagram: observed share against predicted probability; the diagonal is "
            "perfect.",
        ),
        as_image(histogram, "Number of rows by predicted probability, in bins of a tenth."),
    ]
    shown = (
        f"Probability of class {comparison.classes[1]}, and how often it is the true one."
        if len(comparison.classes) == 2
        else "Largest probability of each row, and how often its class is the true one."
    )
    note = f"{escape(shown)} Bins with fewer than {MIN_BIN_ROWS} rows are omitted on the left."
    content = f'<div class="pair">{"".join(images)}</div>'
    return _section("Reliability of the probabilities", content, note)


def _candidates(fast: Any) -> str:
    """Return a picture and a table of the candidates, if the fit trained any."""
    candidates = getattr(fast, "candidates_", None)
    # Exact sums may be taken without a search.
    if not candidates or all(item.scheme == ExactScheme.name for item in candidates):
        return ""
    if any(math.isnan(item.agreement) for item in candidates):
        return _section(
            "Agreement against cost",
            _candidates_table(candidates),
            "All models that the fit compared. There were too few rows to hold any out, so that "
            "their agreement is not known.",
        )
    figure, axes = small_figure(5.8, 5.2)
    draw_candidates(fast, axes)
    alt = f"Disagreement with the source against the cost per row, of {len(candidates)} candidates."
    rows = escape(fast.model_.info.agreement_rows or "held-out rows like those given")
    note = (
        "All models that the fit compared. Agreement: share with the source's label, of "
        f"{rows}; the picture shows its standard "
        "error. Coverage agreement: the same of rows between and around those. Fallback: expected "
        "share of rows that the exact sums predict; they are part of the cost, in multiply-adds "
        "per row. The ring marks the selected one: the cheapest that meets the criterion, or else "
        "one that agrees as well as any."
    )
    content = as_image(figure, alt) + _candidates_table(candidates)
    return _section("Agreement against cost", content, note)


def _candidates_table(candidates: list[Candidate]) -> str:
    """Return the candidates, the selected one marked."""
    head = ("points", "blend", "cost", "agreement", "coverage agreement", "fallback", "skill loss")
    lines = [
        [
            f"{candidate.scheme}, selected" if candidate.is_selected else candidate.scheme,
            # Exact sums have neither points nor blend.
            *(str(count or "-") for count in (candidate.n_borders, candidate.blend)),
            f"{candidate.cost:,}",
            *map(_four_decimals, (candidate.agreement, candidate.coverage_agreement)),
            f"{candidate.fallback_share:.1%}" if candidate.fallback_share else "-",
            _four_decimals(candidate.skill_loss),
        ]
        for candidate in candidates
    ]
    return _table(head, lines)


def _four_decimals(value: float) -> str:
    """Return a number with four decimals, or that it is not known."""
    # Adding zero turns -0.0 into 0.0.
    return f"{round(value, 4) + 0.0:.4f}" if math.isfinite(value) else UNKNOWN


def _borders(fast: Any, X: Any, y: Labels) -> str:
    """Return the picture of the borders."""
    is_drawable = isinstance(fast, BordersClassifier) and X.shape[1] >= 2
    n_drawn = min(MAX_DRAWN_ROWS, X.shape[0])
    if not is_drawable or n_drawn < 3 or n_drawn * X.shape[1] > MAX_NUMBERS:
        return ""
    rows = X[:n_drawn]
    dense = np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)
    figure, axes = small_figure(5.6, 5.4)
    plane = draw_plane(fast, dense, y[:n_drawn], axes)
    maps = fast.scheme_.maps
    points = ", border points and an arrow across the border at each" if maps else ""
    alt = f"Decision regions of {len(fast.classes_)} classes in a plane, with rows{points}."
    note = _borders_note(plane, X.shape[1], maps)
    return _section("Borders", as_image(figure, alt), note)


def _borders_note(plane: Plane, n_features: int, maps: tuple[BorderMap, ...]) -> str:
    """Explain the picture of the borders."""
    note = "Shades: the prediction of the fast model. Dots: rows, in the colour of their class."
    if any(border_map.n_outputs > 1 for border_map in maps):
        note += (
            " Black: points of the map, which may lie anywhere, and the direction in which the "
            "most probable class at each gains most on the next."
        )
    elif maps:
        note += " Black: border points and the direction across the border at each."
    if n_features == 2:
        return note
    projected = "rows and the points nearest to the plane" if maps else "rows"
    return (
        f"{note} The plane of the first two principal components shows {plane.share:.0%} of the "
        f"variance of {n_features} features: shades are predictions in the plane through the mean "
        f"of the rows; {projected} are projected onto it."
    )


def _section(title: str, content: str, note: str) -> str:
    """Return a section of the page."""
    return f'<section><h2>{title}</h2>{content}<p class="note">{note}</p></section>'


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


def draw_roc(comparison: Comparison, ax: "Axes") -> None:
    """Draw the mean ROC curve of each model."""
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--", label="chance")
    for model, colour, _ in _models_with_probabilities(comparison):
        if model.roc is not None and model.roc_area is not None:
            name = f"{model.name}, area {model.roc_area:.4f}"
            ax.plot(*model.roc.mean_curve(), color=colour, label=name)
    ax.set(xlim=(-0.02, 1), ylim=(0, 1.02))
    ax.set(xlabel="share of false positives", ylabel="share of true positives")
    ax.set_aspect("equal")
    ax.legend(loc="lower right", frameon=False, fontsize="small")


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
