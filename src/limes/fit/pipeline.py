"""`fit_model()`: the whole fit, top to bottom."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limes._typing import Labels
from limes.fit.borders import choose_placement
from limes.fit.config import FitOptions
from limes.fit.data import (
    FitData,
    check_classes,
    class_index_of_labels,
    hold_out,
    predict_index,
    rescale,
    sample_rows,
)
from limes.fit.schemes import borders_of, fit_one_vs_rest, fit_pairwise, fit_shortlist, fit_tree
from limes.fit.search import FittedScheme, fit_shared
from limes.fit.validation import (
    ValidationSet,
    held_out_validation_set,
    importance_weighted_validation_set,
    out_of_fold_margins,
)
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


@dataclass(frozen=True, eq=False)
class FitResult:
    """A fitted scheme, and the validation set that its agreement is measured on."""

    # The border maps.
    scheme: Scheme
    # The maps that the validation set measures: those before a last training that also uses the
    # held-out rows.
    validated_scheme: Scheme
    # What was compared to select the number of points.
    candidates: list[Candidate]
    # Between which rows borders were searched; None where maps were trained.
    placement: str | None
    # Shape (n_classes,). Labels.
    classes: Labels
    # Raw rows that no map of the validated scheme was trained on, with the source's labels.
    validation: ValidationSet


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
    """Fit border maps to a trained classifier."""
    rng = np.random.default_rng(seed.spawn(1)[0])
    # Choose rows, and move them to the space of the source.
    inner, preprocessing = unwrap(model)
    training_class = training_classes(inner, preprocessing, X)
    true_class = training_class if y is None else class_index_of_labels(inner, y)
    sampled = sample_rows(X, preprocessing, class_index=true_class, rng=rng)
    rescaled, rescaling = rescale(sampled)
    # Wrap the classifier as a source, and predict the class of each row.
    known_class = None if true_class is None else true_class[sampled.index]
    inner_source = as_source(inner, SourceContext(sampled.rows, known_class, by_probability, rng))
    check_classes(inner_source, y, options)
    class_index = predict_index(inner_source, sampled.rows, options)
    source = inner_source if rescaling is None else RescaledSource(inner_source, rescaling)
    # Hold out rows, and build the validation set.
    is_held_out = hold_out(class_index, rng)
    if known_class is not None:
        class_index = np.where(known_class < 0, class_index, known_class)
    if training_class is None:
        validation = held_out_validation_set(source, rescaled, np.flatnonzero(is_held_out), options)
    else:
        is_training_row = training_class[sampled.index] >= 0
        margins = out_of_fold_margins(inner_source, sampled.rows, class_index, rng)
        validation = importance_weighted_validation_set(
            source, rescaled, is_held_out, is_training_row, margins, options, rng
        )
    data = FitData(
        rescaled.rows[~is_held_out],
        class_index[~is_held_out],
        rescaled.preprocessing,
        rescaled.rows[is_held_out],
    )
    # Fit the maps of the scheme.
    if scheme == "auto":
        scheme = "shared" if refine and not options.decision_offset else "pairwise"
    if scheme == "shared":
        fitted = fit_shared(source, data, validation, options, seed=seed, verbose=verbose)
    else:
        fitted = _fit_several_maps(
            scheme, source, data, validation, options, refine, seed, n_jobs, verbose
        )
    # A function of rows has no labels of its own.
    is_unlabelled = y is not None and not hasattr(inner, "classes_")
    classes = np.unique(np.asarray(y)) if is_unlabelled else np.asarray(source.classes)
    return FitResult(**vars(fitted), classes=classes, validation=validation)


def _fit_several_maps(
    scheme: str,
    source: MulticlassSource,
    data: FitData,
    validation: ValidationSet,
    options: FitOptions,
    refine: bool,
    seed: np.random.SeedSequence,
    n_jobs: int | None,
    verbose: int,
) -> FittedScheme:
    """Fit a scheme of several maps.

    Shortlist and tree are trained unless the user wants points on borders; the others have points
    on borders.
    """
    run: Any = {"seed": seed, "n_jobs": n_jobs, "verbose": verbose}
    can_train = scheme in ("shortlist", "tree")
    is_trained = can_train and refine and not options.decision_offset
    if options.placement == "auto" and not is_trained:
        placement = choose_placement(
            borders_of(scheme, source, data),
            source,
            data,
            validation,
            options,
            seed=seed,
            verbose=verbose,
        )
        options = replace(options, placement=placement)
    fitted: Scheme
    if can_train:
        fit_trainable = fit_shortlist if scheme == "shortlist" else fit_tree
        fitted = fit_trainable(source, data, validation, options, refine=refine, **run)
    else:
        fit_borders = fit_one_vs_rest if scheme == "one-vs-rest" else fit_pairwise
        fitted = fit_borders(source, data, options, **run)
    return FittedScheme(fitted, fitted, placement=None if is_trained else options.placement)
