"""What a user is told about a fit: rows that do not suit the source, losses, few rows."""

import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from limes._typing import Indices, Labels
from limes.fit.config import DEFAULTS, FitOptions
from limes.fit.data import FitData
from limes.model.border_map import BorderMap
from limes.model.model import FitInfo
from limes.model.schemes import PairwiseScheme, Scheme, SharedScheme
from limes.report import Predict
from limes.sources.base import MIN_PROBABILITY, MulticlassSource

# The rows that the agreement of exact sums stands for.
EXACT_ROWS = "all rows, since the sums are those of the source"
SAME_ROWS = "give rows with the scale and the order of columns that it was trained with"
# Rows whose labels are compared with those of exact sums, and the share that rounding explains.
LABELLED_ROWS, MAX_OTHER_LABELS = 200, 0.02
ADVICE = "give rows as they occur in use (labels are not needed)"
# Standard errors of a bound that holds in 95 % of cases.
ONE_SIDED_ERRORS = 1.645


class QualityWarning(UserWarning):
    """A fit went wrong, or its model falls short of its source.

    The rows given are not like those that the source was trained on, or all of one class; the model
    is expected to lose more than 0.01 of the source's uncertainty coefficient, misses
    ``min_agreement``, or agrees much less between and around the rows given; few rows decide on it;
    or it is not faster than the source. Of outlier detectors: nearly all rows given are outliers,
    or the scores of a map that was asked for have another order.

    The message is one sentence with the number and what to do; it also stands in the report and in
    the model's file. Turn it into an error with
    ``warnings.simplefilter("error", limes.QualityWarning)``: a classifier that is being fitted then
    stays as it was.

    Examples
    --------
    >>> import warnings
    >>> import limes
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", limes.QualityWarning)  # in production
    """


def warn_of_quality(sentences: Sequence[str]) -> None:
    """Warn with each sentence, at the line that called limes."""
    frame, level = sys._getframe(1), 2
    folder = str(Path(__file__).parents[1]) + os.sep
    while frame.f_back is not None and frame.f_code.co_filename.startswith(folder):
        frame, level = frame.f_back, level + 1
    for sentence in sentences:
        warnings.warn(sentence, QualityWarning, stacklevel=level)


def constant_scheme(
    source: MulticlassSource, data: FitData, label: int, options: FitOptions
) -> Scheme:
    """Return a model that predicts one class everywhere, with the source's mean probabilities."""
    rows = data.rows[: DEFAULTS.quality.labelled_rows]
    shares = np.maximum(source.calibrated_probabilities(rows).mean(axis=0), MIN_PROBABILITY)
    # The predicted class has the largest.
    likeliest = int(shares.argmax())
    shares[[label, likeliest]] = shares[[likeliest, label]]
    logits = np.log(shares)
    n_classes, is_binary = len(shares), len(shares) == 2
    offsets = np.array([0.5 * (logits[1] - logits[0])]) if is_binary else logits
    if is_binary and offsets[0] == 0:
        offsets[0] = MIN_PROBABILITY if label else -MIN_PROBABILITY
    elif not is_binary:
        # Above those that are equal to it.
        offsets[label] += 1e-6 * max(1.0, float(np.abs(offsets).max()))
    n_features = data.rows.shape[1] if data.preprocessing is None else data.preprocessing.n_features
    point = np.zeros((1, n_features))
    map_ = BorderMap(point, np.zeros((1, len(offsets), n_features)), offsets[None])
    scheme_class = PairwiseScheme if is_binary else SharedScheme
    return scheme_class((map_,), n_classes=n_classes, double=options.double)


def only_class(class_index: Indices) -> int | None:
    """Return the class index that all rows have; None where they have several."""
    return (
        int(class_index[0]) if len(class_index) and (class_index == class_index[0]).all() else None
    )


def find_causes(
    outside: str,
    class_index: Indices,
    true_class: Indices | None,
    classes: Labels,
    *,
    is_exact: bool = False,
) -> tuple[str, ...]:
    """Return why the rows given do not suit the source, in one sentence, or nothing."""
    if outside:
        return (f"the rows given {outside}: {SAME_ROWS}.",)
    label = only_class(class_index)
    if label is not None:
        everywhere = "and the model is its exact sums" if is_exact else "and the model everywhere"
        return (
            f"the source predicts the class {_plain(classes[label])!r:.60} for all "
            f"{len(class_index):,} rows that it was asked for, {everywhere}: give rows of every "
            "class that occurs in use.",
        )
    return _skill_findings(class_index, true_class)


def _skill_findings(class_index: Indices, true_class: Indices | None) -> tuple[str, ...]:
    """Return that the source has no skill on rows whose labels are known."""
    if true_class is None or (true_class < 0).any():
        return ()
    counts = np.bincount(true_class)
    present = counts > 0
    hits = np.bincount(true_class[class_index == true_class], minlength=len(counts))
    recall = hits[present] / counts[present]
    chance = 1.0 / len(recall)
    # Of a mean over classes, each with the variance of chance.
    error = np.sqrt(np.sum(chance * (1 - chance) / counts[present])) / len(recall)
    mean = float(recall.mean())
    if len(recall) < 2 or mean > chance + ONE_SIDED_ERRORS * error:
        return ()
    return (
        f"the source finds {mean:.1%} of each class of y on average, where chance finds "
        f"{chance:.1%}: {SAME_ROWS}.",
    )


def other_labels_finding(exact: Predict, source: Predict, X: Any) -> list[str]:
    """Return that a source has other labels than its own sums, in one sentence, or nothing."""
    rows = X[np.arange(0, X.shape[0], max(1, -(-X.shape[0] // LABELLED_ROWS)))]
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    try:
        is_other = np.asarray(exact(rows) != source(rows))
    except (ValueError, TypeError, RuntimeError):
        return []
    if is_other.mean() <= MAX_OTHER_LABELS:
        return []
    return [
        "the model is the sums of the source, which predicts other labels for "
        f"{int(is_other.sum())} of {len(is_other)} rows: give a function that returns the decision "
        "values by which it predicts."
    ]


def detector_causes(outside: str, class_index: Indices) -> tuple[str, ...]:
    """Return why rows do not suit an outlier detector; they may be inliers without exception."""
    if outside:
        return (f"the rows given {outside}: {SAME_ROWS}.",)
    share = float(np.mean(class_index == 0))
    if share < DEFAULTS.quality.max_outlier_share:
        return ()
    return (
        f"the source predicts {share:.1%} of the rows given as outliers: {SAME_ROWS}, some of "
        "them inliers.",
    )


def few_rows_finding(n_deciding: int, what: str) -> tuple[str, ...]:
    """Return that few held-out rows decide on a model, in one sentence, or nothing."""
    least = DEFAULTS.quality.min_deciding_rows
    if n_deciding >= least:
        return ()
    n_needed = f"{least / DEFAULTS.data.held_out_share:.0f}"
    return (
        f"only {n_deciding} held-out rows decide on {what}: give {n_needed} rows or more, as they "
        "occur in use (labels are not needed).",
    )


@dataclass(frozen=True)
class MeasuredLoss:
    """The expected loss of uncertainty coefficient, and how well labels agree over the classes."""

    loss: float
    error: float
    # Mean agreement over the classes of the source, with its standard error.
    balanced_agreement: tuple[float, float]
    # Share of rows that the source predicts as its most frequent class.
    largest_share: float

    @property
    def is_large(self) -> bool:
        """Whether the loss exceeds its limit by the bound, and labels differ enough to show it.

        The loss is expected under the source's own probabilities, by which no label is better than
        the source's: where few labels differ, it overestimates.
        """
        config, (agreement, error) = DEFAULTS.quality, self.balanced_agreement
        has_bound = self.loss - ONE_SIDED_ERRORS * self.error > config.max_skill_loss
        return has_bound and agreement + ONE_SIDED_ERRORS * error < config.min_balanced_agreement


def result_findings(
    info: FitInfo,
    loss: MeasuredLoss,
    n_deciding: int,
    n_features: int,
    min_agreement: float | None,
) -> list[str]:
    """Return how a model falls short, one sentence for each reason."""
    config = DEFAULTS.quality
    lowest = min(info.agreement, info.coverage_agreement)
    agreement = f"{info.agreement:.3f} ± {info.agreement_error:.3f}"
    what = f"the model, whose agreement with the source is {agreement}"
    findings = list(few_rows_finding(n_deciding, what))
    if min_agreement is not None and lowest < min_agreement:
        where = "of rows like those given"
        if info.agreement >= min_agreement:
            where = "of rows between and around those given"
        findings.append(
            f"min_agreement={min_agreement!r} is not reached: the model agrees with the source on "
            f"{lowest:.2%} {where}. Give more rows, or a source with exact sums and "
            "fallback='auto'."
        )
    elif info.agreement + ONE_SIDED_ERRORS * info.agreement_error < loss.largest_share:
        findings.append(
            f"the model agrees with the source on {info.agreement:.1%} of rows, fewer than the "
            f"{loss.largest_share:.1%} of its most frequent class: see whether the source's labels "
            "are those of its probabilities, and give more rows."
        )
    elif loss.is_large and not findings:
        findings.append(
            f"the model is expected to lose {loss.loss:.3f} ± {loss.error:.3f} of the source's "
            f"uncertainty coefficient, agreeing with it on {info.agreement:.2%} of rows: give more "
            "rows, a larger n_borders, or min_agreement."
        )
    is_wide = n_features >= DEFAULTS.transfer.wide_features
    if (
        min_agreement is None
        and not is_wide
        and info.coverage_agreement < info.agreement - config.max_coverage_loss
    ):
        findings.append(
            f"the model agrees with its source on {info.agreement:.1%} of rows like those given "
            f"but on {info.coverage_agreement:.1%} of rows between and around them: {ADVICE}, or "
            "min_agreement."
        )
    return findings


def _plain(label: object) -> object:
    """Return a label as Python writes it."""
    return label.item() if hasattr(label, "item") else label
