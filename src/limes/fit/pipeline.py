"""`fit_model()`: the whole fit, top to bottom."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from limes._typing import Array, Indices, Labels
from limes.fit.borders import choose_placement
from limes.fit.config import FitOptions
from limes.fit.data import (
    FitData,
    class_index_of_labels,
    find_rescaling,
    hold_out,
    sample_rows,
    to_source_space,
)
from limes.fit.schemes import borders_of, fit_one_vs_rest, fit_pairwise, fit_shortlist, fit_tree
from limes.fit.search import Fitted, fit_shared
from limes.fit.validation import Lot, ValidationSet, out_of_fold_margins
from limes.model.model import Candidate
from limes.model.schemes import Scheme
from limes.sources.base import (
    MulticlassSource,
    RescaledSource,
    SourceContext,
    as_source,
    training_classes,
)
from limes.sources.pipelines import unwrap

# Schemes of several maps that can be fitted to the source, or be points on its borders.
REFINED = {"shortlist": fit_shortlist, "tree": fit_tree}


@dataclass(frozen=True, eq=False)
class FitResult:
    """What a search found, and what it left out to be judged by."""

    # The border maps.
    scheme: Scheme
    # The same, before they learnt from the rows kept aside too.
    judged: Scheme
    # What was tried on the way.
    trials: list[Candidate]
    # Shape (n_classes,). Labels.
    classes: Labels
    # Raw rows that the search did not see, with the source's classes of them.
    validation: ValidationSet
    # Between which rows borders were searched; None where none were.
    placement: str | None


def fit_model(
    model: Any,
    X: Any,
    y: Labels | None,
    *,
    options: FitOptions,
    scheme: str,
    refine: bool,
    by_probability: bool,
    seed: np.random.SeedSequence,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> FitResult:
    """Find the borders of a fitted classifier."""
    rng = np.random.default_rng(seed.spawn(1)[0])
    inner, preprocessing = unwrap(model)
    remembered = training_classes(inner, preprocessing, X)
    hint = remembered if y is None else class_index_of_labels(inner, y)
    chosen = sample_rows(*X.shape, class_index=hint, rng=rng)
    rows = to_source_space(X, chosen, preprocessing)
    context = SourceContext(rows, None if hint is None else hint[chosen], by_probability, rng)
    source = as_source(inner, context)
    _check_classes(source, y, options)
    own = _predict_index(source, options, rows)
    is_held_out = hold_out(own, rng)
    members = (
        own
        if context.class_index is None
        else np.where(context.class_index < 0, own, context.class_index)
    )
    unseen = None if remembered is None else out_of_fold_margins(source, rows, members, rng)
    rescaling = find_rescaling(rows)
    if rescaling is not None:
        source, rows = RescaledSource(source, rescaling), rescaling.apply(rows)
        preprocessing = rescaling if preprocessing is None else preprocessing.then(rescaling)
    lot = Lot(X, chosen, rows, preprocessing, partial(_predict_index, source, options))
    validation = lot.validation(np.flatnonzero(is_held_out))
    if remembered is not None:
        is_remembered = remembered[chosen] >= 0
        validation = lot.importance_weighted(source, is_held_out, is_remembered, unseen, rng)
    data = FitData(rows[~is_held_out], members[~is_held_out], preprocessing, rows[is_held_out])
    if scheme == "auto":
        scheme = "shared" if refine and not options.decision_offset else "pairwise"
    options = _choose_placement(scheme, source, data, validation, options, refine, seed, verbose)
    fitted = _fit(scheme, source, data, validation, options, refine, seed, n_jobs, verbose)
    # A function of rows has no labels of its own.
    is_nameless = y is not None and not hasattr(inner, "classes_")
    classes = np.unique(np.asarray(y)) if is_nameless else np.asarray(source.classes)
    placement = options.placement if _is_searched(scheme, options, refine) else None
    return FitResult(fitted.scheme, fitted.judged, fitted.trials, classes, validation, placement)


def _is_searched(scheme: str, options: FitOptions, refine: bool) -> bool:
    """Tell whether the maps of a scheme are points on borders, not fitted to the source."""
    is_fitted = scheme == "shared" or (scheme in REFINED and refine and not options.decision_offset)
    return not is_fitted


def _choose_placement(
    scheme: str,
    source: MulticlassSource,
    data: FitData,
    validation: ValidationSet,
    options: FitOptions,
    refine: bool,
    seed: np.random.SeedSequence,
    verbose: int,
) -> FitOptions:
    """Return the settings with a placement, chosen by measurement where that is left to us."""
    if options.placement != "auto" or not _is_searched(scheme, options, refine):
        return options
    borders = borders_of(scheme, source, data)
    found = choose_placement(borders, source, data, validation, options, seed=seed, verbose=verbose)
    return replace(options, placement=found)


def _fit(
    scheme: str,
    source: MulticlassSource,
    data: FitData,
    validation: ValidationSet,
    options: FitOptions,
    refine: bool,
    seed: np.random.SeedSequence,
    n_jobs: int | None,
    verbose: int,
) -> Fitted:
    """Find the maps of a scheme."""
    if scheme == "shared":
        return fit_shared(source, data, validation, options, seed=seed, verbose=verbose)
    if scheme in REFINED:
        fit_refined = REFINED[scheme]
        arguments: Any = {"refine": refine, "seed": seed, "n_jobs": n_jobs, "verbose": verbose}
        return Fitted(fit_refined(source, data, validation, options, **arguments))
    fit = fit_one_vs_rest if scheme == "one-vs-rest" else fit_pairwise
    return Fitted(fit(source, data, options, seed=seed, n_jobs=n_jobs, verbose=verbose))


def _predict_index(source: MulticlassSource, options: FitOptions, rows: Array) -> Indices:
    """Return the source's class numbers, by the border that is asked for."""
    if options.decision_offset:
        return (source.pair_border(0, 1).decision(rows) > options.decision_offset).astype(np.intp)
    return source.predict_index(rows)


def _check_classes(source: MulticlassSource, y: Labels | None, options: FitOptions) -> None:
    """Refuse what makes no border."""
    n_classes = len(source.classes)
    if n_classes < 2:
        raise ValueError(
            f"the source must know at least two classes, got {list(source.classes)!r}. There is "
            "no border to find."
        )
    if options.decision_offset and n_classes > 2:
        raise ValueError(
            f"threshold must be 0 with more than two classes, got one other than 0 and "
            f"{n_classes!r} classes: which of them it should favour is not said."
        )
    if y is not None and len(np.unique(y)) > n_classes:
        raise ValueError(
            f"y must have the {n_classes} classes of the source, got {len(np.unique(y))!r}."
        )
