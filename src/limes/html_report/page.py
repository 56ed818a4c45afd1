"""The page."""

from collections.abc import Callable, Sequence
from html import escape
from string import Template
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

import limes
from limes._typing import Labels
from limes.classifier import BordersClassifier
from limes.html_report.figures import (
    MIN_BIN_ROWS,
    as_image,
    draw_candidates,
    draw_confusion,
    draw_counts,
    draw_plane,
    draw_reliability,
    find_plane,
    small_figure,
)
from limes.html_report.scores import (
    Comparison,
    ModelScores,
    PredictionCounter,
    PredictionCounts,
    ask,
    name_of,
    score,
    time_models,
)

# More classes than this are a picture instead of a table of numbers.
MAX_TABLE_CLASSES = 12
# Rows that are drawn, and that the plane is found from.
MAX_DRAWN = 1500
# Numbers of a dense copy of the rows drawn; wider rows have no picture.
MAX_NUMBERS = 1 << 26
UNKNOWN = "n/a"
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
  body { margin: 0; background: #f4f5f8; color: #1a1a2e;
         font: 16px/1.5 system-ui, "Segoe UI", "Liberation Sans", sans-serif; }
  main { max-width: 62rem; margin: 0 auto; padding: 2rem 1.25rem 3rem; }
  h1 { font-size: 1.9rem; margin: 0 0 .25rem; }
  h2 { font-size: 1.15rem; margin: 0 0 .9rem; }
  .lead { margin: 0 0 1.5rem; color: #4a4a60; }
  section { background: #fff; border-radius: 10px; padding: 1.3rem 1.5rem; margin: 0 0 1.25rem;
            box-shadow: 0 1px 3px rgba(20, 20, 50, .12); overflow-x: auto; }
  .cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: 1rem;
           background: none; box-shadow: none; padding: 0; }
  .card { background: #fff; border-radius: 10px; padding: 1rem 1.2rem;
          box-shadow: 0 1px 3px rgba(20, 20, 50, .12); }
  .card strong { display: block; font-size: 1.8rem; line-height: 1.2; color: #005aa0; }
  .card span { color: #4a4a60; font-size: .9rem; }
  table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
  th, td { padding: .4rem .9rem; text-align: right; }
  thead th { border-bottom: 2px solid #d5d8e2; }
  tbody th { text-align: left; font-weight: 500; }
  .confusion th, .confusion td { padding: .35rem .55rem; }
  .confusion tbody th { font-weight: 700; text-align: right; }
  .confusion td { min-width: 2rem; border: 1px solid #e6e8ef; }
  .confusion thead td { border: none; }
  .pair { display: flex; flex-wrap: wrap; gap: 2rem; }
  .pair img { max-width: min(100%, 27rem); }
  figure { margin: 0; }
  figcaption { font-weight: 600; margin-bottom: .5rem; }
  img { max-width: 100%; height: auto; display: block; }
  .note { color: #4a4a60; font-size: .9rem; margin: .9rem 0 0; max-width: 48rem; }
  footer { color: #4a4a60; font-size: .85rem; }
</style>
</head>
<body>
<main>
<h1>$title</h1>
<p class="lead">$lead</p>
$sections
<footer>Made by limes $version. This page needs no network.</footer>
</main>
</body>
</html>
"""


def html_report(
    fast: BordersClassifier,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    source: Any = None,
    title: str = "What the borders are worth",
) -> str:
    """Write one page about a fast classifier: skill, agreement, probabilities, time, pictures.

    Parameters
    ----------
    fast : BordersClassifier
        Fitted.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Rows, best those that neither model was fitted on.
    y : array-like of shape (n_rows,), default=None
        True labels; without them there is no skill to tell, only agreement.
    source : classifier, default=None
        What was replaced; None takes the model's own source, where it still has one.
    title : str, default="What the borders are worth"
        Of the page.

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
    source = _find_source(fast) if source is None else source
    rows = _as_rows(X)
    times = time_models(fast, source, rows)
    models = [(fast, name_of(fast)), *([(source, name_of(source))] if source is not None else [])]
    truth = None if y is None else np.asarray(y)
    given = [ask(model, rows) for model, _ in models]
    answers = [
        ModelScores(name, _count(fast.classes_, truth, *own), *measured)
        for (_, name), own, measured in zip(models, given, times, strict=True)
    ]
    n_same = int(np.sum(given[0][0] == given[-1][0]))
    comparison = Comparison(
        answers[0], answers[1] if source is not None else None, fast.classes_, n_same
    )
    shown = given[0][0] if truth is None else truth
    return render(fast, comparison, rows, shown, title=title)


def render(fast: Any, comparison: Comparison, X: Any, y: Labels, *, title: str) -> str:
    """Write the page from results.

    Parameters
    ----------
    fast : classifier
        The model that is shown; borders are drawn of a ``BordersClassifier`` only.
    comparison : Comparison
        All answers.
    X : ndarray or sparse matrix of shape (n_drawn, n_features)
        The first rows, for the picture.
    y : ndarray of shape (n_drawn,)
        Their labels: the true ones, where they are known.
    title : str
        Of the page.

    Returns
    -------
    str
        HTML.
    """
    sections = [
        _cards(comparison),
        _scores(comparison),
        _confusions(comparison),
        _reliability(comparison),
        _tradeoff(fast),
        _borders(fast, X, y),
    ]
    return Template(PAGE).substitute(
        title=escape(title),
        lead=_lead(comparison),
        sections="\n".join(filter(None, sections)),
        version=escape(limes.__version__),
    )


def _as_rows(X: Any) -> Any:
    """Return rows, dense where that is not large: some models take no others."""
    if not sparse.issparse(X):
        return np.asarray(X)
    is_small = X.shape[0] * X.shape[1] <= MAX_NUMBERS
    return X.toarray() if is_small else sparse.csr_matrix(X)


def _count(
    classes: Labels, y: Labels | None, labels: Labels, probabilities: Any
) -> PredictionCounts:
    """Count the answers to all rows."""
    tally = PredictionCounter(classes)
    tally.add(y, labels, probabilities)
    return tally.sum_up()


def _find_source(fast: BordersClassifier) -> Any:
    """Return the source that a model still has, if it can be asked for labels."""
    source = getattr(fast, "estimator_", None)
    return source if hasattr(source, "predict") else None


def _lead(comparison: Comparison) -> str:
    """Return the first sentence."""
    classes = f"{len(comparison.classes)} classes, {comparison.n_rows:,} rows"
    if comparison.source is None:
        return f"{escape(comparison.fast.name)}: {classes}."
    names = [escape(one.name) for one in (comparison.fast, comparison.source)]
    return f"{names[0]} in place of {names[1]}: {classes}."


def _cards(comparison: Comparison) -> str:
    """Return the few numbers that matter most."""
    own = score(comparison.fast, comparison)
    speed_up, agreement = comparison.speed_up, comparison.agreement
    cards = [
        ("times as fast as the source", None if speed_up is None else f"{speed_up:.3g}"),
        ("same label as the source", None if agreement is None else f"{agreement:.2%}"),
        ("accuracy", _share(own["accuracy"])),
        ("microseconds a row", f"{own['microseconds_a_row']:.3g}"),
    ]
    shown = [
        f'<div class="card"><strong>{value}</strong><span>{name}</span></div>'
        for name, value in cards
        if value not in (None, UNKNOWN)
    ]
    return f'<section class="cards">{"".join(shown)}</section>'


def _scores(comparison: Comparison) -> str:
    """Return the table of scores, source beside fast model."""
    models = [one for one in (comparison.source, comparison.fast) if one is not None]
    found = [score(one, comparison) for one in models]
    lines: Sequence[tuple[str, str, Callable[[Any], str]]] = (
        ("accuracy", "accuracy", _share),
        ("uncertainty_coefficient", "uncertainty coefficient", _share),
        ("brier_score", "Brier score (lower is better)", _share),
        ("microseconds_a_row", "microseconds a row", lambda value: f"{value:.3g}"),
        (
            "n_bytes",
            "size in kB",
            _kilobytes,
        ),
    )
    head = "".join(f'<th scope="col">{escape(one.name)}</th>' for one in models)
    body = "".join(
        f'<tr><th scope="row">{label}</th>'
        + "".join(f"<td>{form(one[key])}</td>" for one in found)
        + "</tr>"
        for key, label, form in lines
    )
    table = f"<table><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table>"
    return _section("Skill, time and size", table, "Times are the quickest of several turns.")


def _confusions(comparison: Comparison) -> str:
    """Return the confusion matrices side by side."""
    if not comparison.has_truth:
        return ""
    models = [one for one in (comparison.source, comparison.fast) if one is not None]
    is_small = len(comparison.all_classes) <= MAX_TABLE_CLASSES
    draw = _confusion_table if is_small else _confusion_image
    parts = [
        f"<figure><figcaption>{escape(one.name)}</figcaption>{draw(comparison, one)}</figure>"
        for one in models
    ]
    note = "True classes down, labels given across; shades are shares of the true class."
    return _section("Confusion", f'<div class="pair">{"".join(parts)}</div>', note)


def _confusion_table(comparison: Comparison, answers: ModelScores) -> str:
    """Return a confusion matrix as a table of shaded numbers."""
    matrix, classes = comparison.confusion(answers), comparison.all_classes
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    head = "".join(f'<th scope="col">{escape(str(label))}</th>' for label in classes)
    lines = [
        f'<tr><th scope="row">{escape(str(label))}</th>'
        + "".join(_shaded(count, share) for count, share in zip(counts, own, strict=True))
        + "</tr>"
        for label, counts, own in zip(classes, matrix.tolist(), shares.tolist(), strict=True)
    ]
    return (
        f'<table class="confusion"><thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def _shaded(count: int, share: float) -> str:
    """Return a cell, the darker the larger its share, its number readable on it."""
    text = "#fff" if share > 0.6 else "#1a1a2e"
    style = f"background:rgba(0,90,160,{0.9 * share:.3f});color:{text}"
    return f'<td style="{style}">{count:,}</td>'


def _confusion_image(comparison: Comparison, answers: ModelScores) -> str:
    """Return a confusion matrix as a picture."""
    figure, axes = small_figure()
    draw_confusion(comparison.confusion(answers), comparison.all_classes, axes)
    return as_image(figure, f"Confusion matrix of {answers.name}, shares of each true class.")


def _reliability(comparison: Comparison) -> str:
    """Return the reliability diagram."""
    if not comparison.has_truth or not comparison.fast.has_probabilities:
        return ""
    figure, axes = small_figure()
    draw_reliability(comparison, axes)
    alt = "Reliability diagram: observed share against forecast probability; the diagonal is best."
    what = (
        f"Probability of class {comparison.classes[1]}, and how often it is the true one."
        if len(comparison.classes) == 2
        else "Largest probability of each row, and how often its class is the true one."
    )
    counted, axes = small_figure()
    draw_counts(comparison, axes)
    number = "Number of rows with a forecast in each tenth."
    images = f'<div class="pair">{as_image(figure, alt)}{as_image(counted, number)}</div>'
    note = f"{escape(what)} Tenths with fewer than {MIN_BIN_ROWS} rows are left out on the left."
    return _section("Can the probabilities be trusted?", images, note)


def _tradeoff(fast: Any) -> str:
    """Return the curve of agreement against cost, where a fit tried several models."""
    rows = [row for row in map(_as_row, getattr(fast, "tradeoff_", None) or ()) if row is not None]
    if not rows:
        return ""
    figure, axes = small_figure(6.4, 3.8)
    draw_candidates(rows, axes)
    alt = f"Agreement with the source against cost of a row, {len(rows)} models that were tried."
    note = (
        "Every model that the fit tried, measured on rows kept aside; the ring is the one chosen: "
        "the cheapest that keeps the source's skill, or else agrees as well as any."
    )
    return _section("Agreement against cost", as_image(figure, alt), note)


def _as_row(entry: Any) -> dict[str, Any] | None:
    """Return one model that was tried as a dict, if it says what it cost and reached."""
    keys = ("scheme", "cost", "agreement", "is_chosen")
    if isinstance(entry, dict):
        row = {key: entry[key] for key in keys if key in entry}
    else:
        row = {key: getattr(entry, key) for key in keys if hasattr(entry, key)}
    return row if {"cost", "agreement"} <= set(row) else None


def _borders(fast: Any, X: Any, y: Labels) -> str:
    """Return the picture of the borders."""
    is_drawable = isinstance(fast, BordersClassifier) and X.shape[1] >= 2
    n_drawn = min(MAX_DRAWN, X.shape[0])
    if not is_drawable or n_drawn < 3 or n_drawn * X.shape[1] > MAX_NUMBERS:
        return ""
    rows = X[:n_drawn]
    dense = np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)
    names = getattr(fast, "feature_names_in_", None)
    plane = find_plane(dense, None if names is None else tuple(map(str, names)))
    figure, axes = small_figure(8.4, 5.6)
    draw_plane(fast, plane, X=dense, y=y[:n_drawn], ax=axes)
    alt = (
        f"Decision regions of {len(fast.classes_)} classes in a plane, with rows, border points "
        "and an arrow across the border at each."
    )
    is_shared = any(one.n_outputs > 1 for one in fast.scheme_.maps)
    return _section(
        "Borders", as_image(figure, alt), _plane_note(plane.share, X.shape[1], is_shared)
    )


def _plane_note(share: float, n_features: int, is_shared: bool) -> str:
    """Say what the plane is."""
    black = (
        "points of the map, which may lie anywhere, and the direction in which the likeliest class "
        "at each gains most on the next"
        if is_shared
        else "border points and the direction across the border at each"
    )
    common = (
        "Shades: the answer of the fast model. Dots: rows, in the colour of their class. Black: "
        f"{black}."
    )
    if n_features == 2:
        return common
    return (
        f"{common} The plane of the first two principal components shows {share:.0%} of the "
        f"variance of {n_features} features: shades are a cut through the middle of the rows, and "
        "rows and the points nearest to it are seen from above."
    )


def _section(title: str, content: str, note: str) -> str:
    """Return a part of the page."""
    return f'<section><h2>{title}</h2>{content}<p class="note">{note}</p></section>'


def _kilobytes(value: int | None) -> str:
    """Write a size, or that it is not known."""
    return UNKNOWN if value is None else f"{value / 1e3:,.1f}"


def _share(value: float | None) -> str:
    """Write a share, or that it is not known."""
    return UNKNOWN if value is None else f"{value:.4f}"
