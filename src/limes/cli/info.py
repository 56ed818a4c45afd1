"""`limes info`: describe a model or a file of rows."""

import argparse
import math
from pathlib import Path
from typing import Any

from limes.cli.main import add_command, add_rows, row_options
from limes.cli.terminal import Progress, pairs, show

# What a number of a fast classifier is about, after the number in text.
MEANINGS = {
    "agreement": "of rows like those given to the fit",
    "agreement_error": "its standard error",
    "coverage_agreement": "of rows between and around those",
    "score_correlation": "rank correlation with the source's scores",
    "cost": "multiply-adds per row",
    "fit_seconds": "wall-clock time, without the training of the source",
    "fallback_margin": "log odds, below which a row is predicted by the exact sums",
    "fallback_share": "of rows like those given, predicted by the exact sums",
}
# Facts that are the same for all exact sums.
EXACT_FACTS = ("agreement_error", "coverage_agreement", "score_correlation")
# Most labels that are listed; more are only counted.
MAX_LISTED = 30


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "info",
        help="describe a model or a file of rows",
        description="Print facts about a model (classes, features, border points or support "
        "vectors, cost per row,\nagreement with its source, whether the file holds training rows) "
        "or about a file of rows (format,\nshape, rows of each class).",
        example="limes info sat.limes\nlimes info rows.csv --label class --json",
    )
    add_rows(parser, help="model or file of rows", metavar="FILE")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Describe a file."""
    facts = _describe_model(args.rows) if _is_model(args.rows) else _describe_rows(args)
    show({"file": str(args.rows), **facts}, facts_text(facts), as_json=args.json)
    return 0


def describe_agreement(fast: Any) -> dict[str, Any]:
    """Return how a fast classifier agrees with its source, and how it uses the source's sums."""
    from limes.model.exact import ExactScheme, FallbackScheme

    names = ["agreement_", "agreement_error_", "coverage_agreement_", "score_correlation_"]
    exact = fast.scheme_ if isinstance(fast.scheme_, ExactScheme) else None
    if isinstance(fast.scheme_, FallbackScheme):
        exact = fast.scheme_.exact
        names += ["fallback_margin_", "fallback_share_"]
    # Not known of a libAGF model, nor of one that was fitted without held-out rows.
    values = {name.rstrip("_"): float(getattr(fast, name, math.nan)) for name in names}
    known: dict[str, Any] = {name: value for name, value in values.items() if math.isfinite(value)}
    info = getattr(getattr(fast, "model_", None), "info", None)
    if info is not None and info.agreement_rows:
        known["agreement_rows"] = info.agreement_rows
    if info is not None and info.warnings:
        known["warnings"] = list(info.warnings)
    return {**known, "n_training_rows": 0 if exact is None else len(exact.sums.vectors)}


def facts_text(facts: dict[str, Any]) -> str:
    """Return the names and values of facts for readers, one line for each."""
    lines = []
    is_exact = facts.get("scheme") == "exact"
    for name, value in facts.items():
        if name == "n_training_rows":
            text = f"yes, {value:,} vectors of the exact sums" if value else "no"
            lines.append(("holds training rows", text))
        elif name == "warnings":
            lines.extend(("warning", sentence) for sentence in value)
        elif name == "agreement_rows":
            continue
        elif is_exact and name == "agreement":
            lines.append((name, "1, since the sums are those of the source"))
        elif not (is_exact and name in EXACT_FACTS):
            meaning = MEANINGS.get(name, "")
            if name == "agreement" and facts.get("agreement_rows"):
                meaning = f"of {facts['agreement_rows']}"
            words = [_text(value), meaning]
            lines.append((name.replace("_", " "), " ".join(filter(None, words))))
    return pairs(lines)


def _is_model(path: Path) -> bool:
    """Return whether a file is a model, by its first bytes."""
    from limes.cli.models import recognise_model

    return str(path) != "-" and recognise_model(path) is not None


def _describe_model(path: Path) -> dict[str, Any]:
    """Return facts about a model."""
    from limes.cli.models import open_model

    opened = open_model(path)
    model = opened.model[-1] if hasattr(opened.model, "steps") else opened.model
    fast_kind = "fast outlier detector" if opened.is_detector else "fast classifier"
    facts: dict[str, Any] = {
        "kind": {"borders": fast_kind, "libsvm": "LIBSVM model"}.get(
            opened.kind, "trained classifier"
        ),
        "classifier": type(model).__name__,
        "n_classes": len(opened.classes),
        "classes": opened.classes.tolist()[:MAX_LISTED],
        "n_features": opened.n_features,
        "has_probabilities": opened.has_probabilities,
        "n_bytes": path.stat().st_size,
    }
    if opened.names is not None:
        facts["features"] = list(opened.names)[:MAX_LISTED]
    return {
        **facts,
        **(_describe_borders(model) if opened.kind == "borders" else {}),
        **_describe_svm(model),
    }


def _describe_borders(fast: Any) -> dict[str, Any]:
    """Return facts about a fast classifier."""
    facts: dict[str, Any] = {"scheme": fast.scheme_.name}
    if fast.scheme_.maps:
        facts["n_maps"] = len(fast.scheme_.maps)
        facts["n_borders"] = int(fast.scheme_.n_borders)
    facts["cost"] = int(fast.scheme_.cost)
    if getattr(fast, "placement_", None):
        facts["placement"] = fast.placement_
    fit_seconds = getattr(fast, "fit_seconds_", math.nan)
    if math.isfinite(fit_seconds):
        facts["fit_seconds"] = fit_seconds
    return {**facts, **describe_agreement(fast)}


def _describe_svm(model: Any) -> dict[str, Any]:
    """Return facts about an SVM, nothing for another classifier."""
    svm = getattr(model, "svm", None)
    if svm is None:
        return {}
    kernel = svm.kernel
    facts = {
        "svm_type": model.svm_type,
        "kernel": kernel.name,
        "gamma": kernel.gamma,
        "degree": kernel.degree,
        "coef0": kernel.coef0,
        "n_support_vectors": len(svm.vectors),
    }
    used = {"linear": (), "rbf": ("gamma",), "sigmoid": ("gamma", "coef0")}.get(
        kernel.name, ("gamma", "degree", "coef0")
    )
    return {
        name: value
        for name, value in facts.items()
        if name not in ("gamma", "degree", "coef0") or name in used
    }


def _describe_rows(args: argparse.Namespace) -> dict[str, Any]:
    """Return facts about a file of rows, after reading all of it."""
    from limes.files import LabelCollector, open_rows

    n_rows = n_features = n_values = 0
    labels = LabelCollector()
    with (
        open_rows(args.rows, row_options(args)) as rows,
        Progress(f"reading {args.rows}", rows.n_rows) as progress,
    ):
        for batch in rows:
            n_rows += batch.n_rows
            n_features = max(n_features, batch.X.shape[1])
            n_values += batch.X.nnz if hasattr(batch.X, "nnz") else batch.X.size
            labels.add(batch.y)
            progress.advance(batch.n_rows)
        n_features = max(n_features, rows.n_features or 0)
        facts: dict[str, Any] = {"kind": "rows", "format": rows.format}
        names = rows.names
    facts |= {"n_rows": n_rows, "n_features": n_features}
    if facts["format"] == "libsvm":
        facts["share_of_values"] = n_values / max(1, n_rows * n_features)
    if names is not None:
        facts["features"] = list(names)[:MAX_LISTED]
    return {**facts, **_describe_labels(labels.join())}


def _describe_labels(labels: Any) -> dict[str, Any]:
    """Return the number of rows of each class."""
    import numpy as np

    if labels is None:
        return {"labels": None}
    classes, counts = np.unique(labels, return_counts=True)
    facts: dict[str, Any] = {"n_classes": len(classes)}
    if len(classes) <= MAX_LISTED:
        names = map(str, classes.tolist())
        facts["rows_of_each_class"] = dict(zip(names, counts.tolist(), strict=True))
    return facts


def _text(value: Any) -> str:
    """Return a value as text."""
    if isinstance(value, dict):
        return ", ".join(f"{key}: {item}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
