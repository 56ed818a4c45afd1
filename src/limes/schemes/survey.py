"""The whole search: from a fitted classifier and rows to the border maps of a scheme."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from limes._typing import Array, Codes, Labels
from limes.affine import AffineMap
from limes.rows import choose_rows, keep_aside
from limes.schemes.choosing import Trial
from limes.schemes.fitting import Fitted, Ground, Settings, fit_one_vs_rest, fit_pairwise
from limes.schemes.judges import Judges
from limes.schemes.judging import Lot, unseen_margins
from limes.schemes.placing import borders_of, choose_placement
from limes.schemes.protocol import Scheme
from limes.schemes.shared_fitting import fit_shared
from limes.schemes.shortlist_fitting import fit_shortlist
from limes.schemes.tree_fitting import fit_tree
from limes.sources.protocol import MulticlassSource
from limes.sources.recognize import Known, as_source, unwrap
from limes.sources.svm import support_codes
from limes.sources.units import InUnits, find_units

# Schemes of several maps that can be fitted to the source, or be points on its borders.
REFINED = {"shortlist": fit_shortlist, "tree": fit_tree}
SCHEMES = ("pairwise", "one-vs-rest", "shared", "shortlist", "tree")


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
    remembered = support_codes(inner, before, X)
    hint = remembered if y is None else _codes_of_labels(inner, y)
    chosen = choose_rows(*X.shape, codes=hint, rng=rng)
    rows = _in_source_space(X, chosen, before)
    known = Known(rows, None if hint is None else hint[chosen], by_probability, rng)
    source = as_source(inner, known)
    _check_classes(source, y, settings)
    own = _codes(source, settings, rows)
    is_aside = keep_aside(own, rng)
    members = own if known.codes is None else np.where(known.codes < 0, own, known.codes)
    unseen = None if remembered is None else unseen_margins(inner, source, rows, members, rng)
    units = find_units(rows)
    if units is not None:
        source, rows = InUnits(source, units), units.apply(rows)
        before = units if before is None else before.then(units)
    lot = Lot(X, chosen, rows, before, partial(_codes, source, settings))
    judges = lot.judges(np.flatnonzero(is_aside))
    if remembered is not None:
        is_remembered = remembered[chosen] >= 0
        judges = lot.fair_judges(source, is_aside, is_remembered, unseen, rng)
    ground = Ground(rows[~is_aside], members[~is_aside], before, judges, rows[is_aside])
    if scheme == "auto":
        scheme = "shared" if refine and not settings.level else "pairwise"
    settings = _choose_placement(scheme, source, ground, settings, refine, seed, verbose)
    fitted = _fit(scheme, source, ground, settings, refine, seed, n_jobs, verbose)
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
    settings: Settings,
    refine: bool,
    seed: np.random.SeedSequence,
    verbose: int,
) -> Settings:
    """Return the settings with a placement, chosen by measurement where that is left to us."""
    if settings.placement != "auto" or not _is_searched(scheme, settings, refine):
        return settings
    borders = borders_of(scheme, source, ground)
    found = choose_placement(borders, source, ground, settings, seed=seed, verbose=verbose)
    return replace(settings, placement=found)


def _fit(
    scheme: str,
    source: MulticlassSource,
    ground: Ground,
    settings: Settings,
    refine: bool,
    seed: np.random.SeedSequence,
    n_jobs: int | None,
    verbose: int,
) -> Fitted:
    """Find the maps of a scheme."""
    if scheme == "shared":
        return fit_shared(source, ground, settings, seed=seed, verbose=verbose)
    if scheme in REFINED:
        fit_refined = REFINED[scheme]
        options: Any = {"refine": refine, "seed": seed, "n_jobs": n_jobs, "verbose": verbose}
        return Fitted(fit_refined(source, ground, settings, **options))
    fit = fit_one_vs_rest if scheme == "one-vs-rest" else fit_pairwise
    return Fitted(fit(source, ground, settings, seed=seed, n_jobs=n_jobs, verbose=verbose))


def _codes(source: MulticlassSource, settings: Settings, rows: Array) -> Codes:
    """Return the source's class numbers, by the border that is asked for."""
    if settings.level:
        return (source.pair(0, 1).decision(rows) > settings.level).astype(np.intp)
    return source.codes(rows)


def _in_source_space(X: Any, chosen: Codes, before: AffineMap | None) -> Array:
    """Return the chosen rows dense, in float64, after the linear steps before the source."""
    part = X if len(chosen) == X.shape[0] else X[chosen]
    if before is not None:
        return before.apply(part)
    if sparse.issparse(part):
        part = part.toarray()
    return np.ascontiguousarray(part, dtype=np.float64)


def _codes_of_labels(model: Any, y: Labels) -> Codes:
    """Return the class numbers of true labels, by the source's own order of classes."""
    classes = np.asarray(getattr(model, "classes_", np.unique(y)))
    known = np.isin(y, classes)
    if not known.all():
        raise ValueError(
            f"y has the label {y[~known][:1].tolist()[0]!r}, which the source does not know: its "
            f"classes are {classes.tolist()!r}. Give the labels that it was fitted with, or none."
        )
    absent = classes[~np.isin(classes, y)]
    if len(absent):
        raise ValueError(
            f"y has no row of the class {absent.tolist()[0]!r}, which the source knows. Give rows "
            "of every class, or leave y out."
        )
    order = np.argsort(classes)
    return order[np.searchsorted(classes, y, sorter=order)]


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
