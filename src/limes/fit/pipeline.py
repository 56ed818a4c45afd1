"""`fit_model()`: the whole fit, top to bottom."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from limes._typing import Array, Codes, Labels
from limes.fit.borders import choose_placement
from limes.fit.config import Settings
from limes.fit.data import (
    Ground,
    _codes_of_labels,
    _in_source_space,
    choose_rows,
    find_units,
    keep_aside,
)
from limes.fit.schemes import borders_of, fit_one_vs_rest, fit_pairwise, fit_shortlist, fit_tree
from limes.fit.search import Fitted, fit_shared
from limes.fit.validation import Judges, Lot, unseen_margins
from limes.model.model import Trial
from limes.model.schemes import Scheme
from limes.sources.base import InUnits, Known, MulticlassSource, as_source, training_classes
from limes.sources.pipelines import unwrap

# Schemes of several maps that can be fitted to the source, or be points on its borders.
REFINED = {"shortlist": fit_shortlist, "tree": fit_tree}


@dataclass(frozen=True, eq=False)
class Survey:
    """What a search found, and what it left out to be judged by."""

    # The border maps.
    scheme: Scheme
    # The same, before they learnt from the rows kept aside too.
    judged: Scheme
    # What was tried on the way.
    trials: list[Trial]
    # Shape (n_classes,). Labels.
    classes: Labels
    # Raw rows that the search did not see, with the source's classes of them.
    judges: Judges
    # Between which rows borders were searched; None where none were.
    placement: str | None


def survey(
    model: Any,
    X: Any,
    y: Labels | None,
    *,
    settings: Settings,
    scheme: str,
    refine: bool,
    by_probability: bool,
    seed: np.random.SeedSequence,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Survey:
    """Find the borders of a fitted classifier."""
    rng = np.random.default_rng(seed.spawn(1)[0])
    inner, before = unwrap(model)
    remembered = training_classes(inner, before, X)
    hint = remembered if y is None else _codes_of_labels(inner, y)
    chosen = choose_rows(*X.shape, codes=hint, rng=rng)
    rows = _in_source_space(X, chosen, before)
    known = Known(rows, None if hint is None else hint[chosen], by_probability, rng)
    source = as_source(inner, known)
    _check_classes(source, y, settings)
    own = _codes(source, settings, rows)
    is_aside = keep_aside(own, rng)
    members = own if known.codes is None else np.where(known.codes < 0, own, known.codes)
    unseen = None if remembered is None else unseen_margins(source, rows, members, rng)
    units = find_units(rows)
    if units is not None:
        source, rows = InUnits(source, units), units.apply(rows)
        before = units if before is None else before.then(units)
    lot = Lot(X, chosen, rows, before, partial(_codes, source, settings))
    judges = lot.judges(np.flatnonzero(is_aside))
    if remembered is not None:
        is_remembered = remembered[chosen] >= 0
        judges = lot.fair_judges(source, is_aside, is_remembered, unseen, rng)
    ground = Ground(rows[~is_aside], members[~is_aside], before, rows[is_aside])
    if scheme == "auto":
        scheme = "shared" if refine and not settings.level else "pairwise"
    settings = _choose_placement(scheme, source, ground, judges, settings, refine, seed, verbose)
    fitted = _fit(scheme, source, ground, judges, settings, refine, seed, n_jobs, verbose)
    # A function of rows has no labels of its own.
    is_nameless = y is not None and not hasattr(inner, "classes_")
    classes = np.unique(np.asarray(y)) if is_nameless else np.asarray(source.classes)
    placement = settings.placement if _is_searched(scheme, settings, refine) else None
    return Survey(fitted.scheme, fitted.judged, fitted.trials, classes, judges, placement)


def _is_searched(scheme: str, settings: Settings, refine: bool) -> bool:
    """Tell whether the maps of a scheme are points on borders, not fitted to the source."""
    is_fitted = scheme == "shared" or (scheme in REFINED and refine and not settings.level)
    return not is_fitted


def _choose_placement(
    scheme: str,
    source: MulticlassSource,
    ground: Ground,
    judges: Judges,
    settings: Settings,
    refine: bool,
    seed: np.random.SeedSequence,
    verbose: int,
) -> Settings:
    """Return the settings with a placement, chosen by measurement where that is left to us."""
    if settings.placement != "auto" or not _is_searched(scheme, settings, refine):
        return settings
    borders = borders_of(scheme, source, ground)
    found = choose_placement(borders, source, ground, judges, settings, seed=seed, verbose=verbose)
    return replace(settings, placement=found)


def _fit(
    scheme: str,
    source: MulticlassSource,
    ground: Ground,
    judges: Judges,
    settings: Settings,
    refine: bool,
    seed: np.random.SeedSequence,
    n_jobs: int | None,
    verbose: int,
) -> Fitted:
    """Find the maps of a scheme."""
    if scheme == "shared":
        return fit_shared(source, ground, judges, settings, seed=seed, verbose=verbose)
    if scheme in REFINED:
        fit_refined = REFINED[scheme]
        options: Any = {"refine": refine, "seed": seed, "n_jobs": n_jobs, "verbose": verbose}
        return Fitted(fit_refined(source, ground, judges, settings, **options))
    fit = fit_one_vs_rest if scheme == "one-vs-rest" else fit_pairwise
    return Fitted(fit(source, ground, settings, seed=seed, n_jobs=n_jobs, verbose=verbose))


def _codes(source: MulticlassSource, settings: Settings, rows: Array) -> Codes:
    """Return the source's class numbers, by the border that is asked for."""
    if settings.level:
        return (source.pair(0, 1).decision(rows) > settings.level).astype(np.intp)
    return source.codes(rows)


def _check_classes(source: MulticlassSource, y: Labels | None, settings: Settings) -> None:
    """Refuse what makes no border."""
    n_classes = len(source.classes)
    if n_classes < 2:
        raise ValueError(
            f"the source must know at least two classes, got {list(source.classes)!r}. There is "
            "no border to find."
        )
    if settings.level and n_classes > 2:
        raise ValueError(
            f"threshold must be 0 with more than two classes, got one other than 0 and "
            f"{n_classes!r} classes: which of them it should favour is not said."
        )
    if y is not None and len(np.unique(y)) > n_classes:
        raise ValueError(
            f"y must have the {n_classes} classes of the source, got {len(np.unique(y))!r}."
        )
