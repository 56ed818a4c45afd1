"""`fit_model()`: the whole fit, top to bottom; `fit_exact()`: the source's own sums."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin

from limes._typing import Array, Indices, Labels
from limes.fit.borders import choose_placement
from limes.fit.config import DEFAULTS, FitOptions
from limes.fit.data import (
    FitData,
    SampledRows,
    check_classes,
    class_index_of_labels,
    hold_out,
    predict_index,
    rescale,
    sample_rows,
)
from limes.fit.evaluation import SkillCriterion, exceeded_limit
from limes.fit.quality import (
    EXACT_ROWS,
    MeasuredLoss,
    constant_scheme,
    find_causes,
    only_class,
    result_findings,
)
from limes.fit.schemes import borders_of, fit_one_vs_rest, fit_pairwise, fit_shortlist, fit_tree
from limes.fit.search import FittedScheme, exact_candidate, fit_shared
from limes.fit.validation import (
    ValidationSet,
    coverage_validation_set,
    held_out_validation_set,
    importance_weighted_validation_set,
)
from limes.model.affine import to_dense
from limes.model.exact import ExactScheme
from limes.model.model import Candidate, FeatureStatistics, FitInfo, scheme_index
from limes.model.packed import label_bytes
from limes.model.schemes import Scheme
from limes.sources.answers import check_repeatable, name_of
from limes.sources.base import (
    MulticlassSource,
    RescaledSource,
    SourceContext,
    as_source,
    training_classes,
)
from limes.sources.exact import exact_scheme_of, labels_of, no_exact_sums_reason
from limes.sources.pipelines import unwrap
from limes.sources.training_range import outside_reason

# Rows that a limit of time is measured with.
TIMED_ROWS = 1000


@dataclass(frozen=True, eq=False)
class FitResult:
    """A fitted scheme, and the rows that its agreement is measured on."""

    # All that predicts, but for the labels.
    scheme: Scheme
    # The scheme that the validation sets measure: before a last training that also uses the
    # held-out rows.
    validated_scheme: Scheme
    # What was compared to select the number of points.
    candidates: list[Candidate]
    # Between which rows borders were searched; None where maps were trained.
    placement: str | None
    # Shape (n_classes,). Labels.
    classes: Labels
    # Raw rows that no map of the validated scheme was trained on, with the source's labels; None
    # for exact sums, whose labels are the source's.
    validation: ValidationSet | None = None
    # Rows between and around them.
    coverage: ValidationSet | None = None
    # Of the raw rows that were given; None without rows.
    features: FeatureStatistics | None = None
    # The source's probabilities of the validation rows; None where there are candidates, whose loss
    # is known.
    probabilities: Array | None = None
    # Why the rows given do not suit the source, one sentence or none.
    causes: tuple[str, ...] = ()

    def info(self, n_jobs: int | None = None, min_agreement: float | None = None) -> FitInfo:
        """Return what is known about the scheme, and what the user should be told.

        The agreement is that of the selected candidate; where there is none, it is measured.
        """
        if self.validation is None or self.coverage is None:
            info = FitInfo(
                1.0,
                0.0,
                candidates=self.candidates,
                coverage_agreement=1.0,
                features=self.features,
                agreement_rows=EXACT_ROWS,
            )
            return replace(info, warnings=list(self.causes))
        labels = scheme_index(self.validated_scheme, self.validation.rows, n_jobs=n_jobs)
        selected = next((item for item in self.candidates if item.is_selected), None)
        if selected is None:
            assert self.probabilities is not None
            agreement = self.validation.agreement(labels)
            coverage_labels = scheme_index(self.validated_scheme, self.coverage.rows, n_jobs=n_jobs)
            coverage_agreement = self.coverage.agreement(coverage_labels)[0]
            loss = SkillCriterion(self.validation, self.probabilities).skill_loss(labels)
        else:
            agreement = selected.agreement, selected.agreement_error
            coverage_agreement = selected.coverage_agreement
            loss = selected.skill_loss, selected.skill_loss_error
        info = FitInfo(
            *agreement,
            placement=self.placement,
            candidates=self.candidates,
            features=self.features,
            coverage_agreement=coverage_agreement,
            agreement_rows=self.validation.description,
        )
        validation = self.validation
        measured = MeasuredLoss(
            *loss, validation.balanced_agreement(labels), validation.largest_class_share
        )
        return replace(info, warnings=self._warnings(info, measured, min_agreement))

    def _warnings(
        self, info: FitInfo, loss: MeasuredLoss, min_agreement: float | None
    ) -> list[str]:
        """Return what the user should be told; no consequence where there is a cause."""
        assert self.validation is not None
        if self.causes:
            return list(self.causes)
        n_deciding, n_features = self.validation.n_real_rows, self.scheme.n_features
        return result_findings(info, loss, n_deciding, n_features, min_agreement)


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
    groups: Indices | None = None,
    sample_weight: Array | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> FitResult:
    """Fit border maps to a trained classifier, or take its own sums where these are fast enough.

    Columns of one group, by its number, are taken together from a real row wherever synthetic rows
    are made. Weights are those that the classifier was trained with.
    """
    rng = np.random.default_rng(seed.spawn(1)[0])
    # Choose rows, and move them to the space of the source.
    inner, preprocessing = unwrap(model)
    options = _with_label_bytes(options, model, inner, y)
    training_class = training_classes(inner, preprocessing, X)
    true_class = training_class if y is None else class_index_of_labels(inner, y)
    sampled = sample_rows(X, preprocessing, class_index=true_class, rng=rng)
    sampled = sampled.with_table(groups, sample_weight)
    known_class = None if true_class is None else true_class[sampled.index]
    labelled = None if y is None else known_class
    context = SourceContext(
        sampled.rows, known_class, by_probability, rng, sample_weight=sampled.sample_weight
    )
    # Take the exact sums, where they are wanted or cost little.
    if scheme == "auto" and (not refine or options.decision_offset):
        scheme = "pairwise"
    exact = _exact_sums(model, scheme, options, context if by_probability else None)
    if scheme == "exact" or (exact is not None and _needs_no_map(exact, scheme, options, sampled)):
        return _with_causes(fit_exact(model, context), model, sampled, labelled)
    # Wrap the classifier as a source, and fit the maps of the scheme.
    source, data, validation, coverage, class_index = _prepare(
        inner, sampled, context, training_class, y, options
    )
    classes = _class_labels(inner, source, y)
    causes = find_causes(outside_reason(model, X), class_index, labelled, classes)
    label = only_class(class_index)
    if label is not None and options.fallback is not True:
        fitted = FittedScheme(one := constant_scheme(source, data, label, options), one)
    elif scheme in ("auto", "shared"):
        fitted = fit_shared(
            source,
            data,
            validation,
            coverage,
            options,
            exact=exact,
            can_be_exact=scheme == "auto" and _is_within_limits(exact, options, sampled),
            seed=seed,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        if fitted.scheme is exact:
            inner_source = source.source if isinstance(source, RescaledSource) else source
            result = fit_exact(model, replace(context, source=inner_source))
            return replace(result, candidates=fitted.candidates, causes=causes)
    else:
        fitted = _fit_several_maps(
            scheme, source, data, validation, options, refine, seed, n_jobs, verbose
        )
    validation_rows = data.to_source_space(validation.rows)
    return FitResult(
        **vars(fitted),
        classes=classes,
        validation=validation,
        coverage=coverage,
        probabilities=None
        if fitted.candidates
        else source.calibrated_probabilities(validation_rows),
        causes=causes,
    )


def _class_labels(inner: Any, source: MulticlassSource, y: Labels | None) -> Labels:
    """Return the labels of the classes; a function of rows has none of its own."""
    is_unlabelled = y is not None and not hasattr(inner, "classes_")
    return np.unique(np.asarray(y)) if is_unlabelled else np.asarray(source.classes)


def _with_causes(
    result: FitResult, model: Any, sampled: SampledRows, true_class: Indices | None
) -> FitResult:
    """Return exact sums that were taken without a search, with what does not suit the source."""
    n_rows = len(sampled.index)
    places = np.arange(0, n_rows, max(1, -(-n_rows // DEFAULTS.quality.labelled_rows)))
    class_index = scheme_index(result.scheme, sampled.X[sampled.index[places]])
    if true_class is not None:
        true_class = true_class[places]
    outside = outside_reason(model, sampled.X)
    causes = find_causes(outside, class_index, true_class, result.classes, is_exact=True)
    return replace(result, causes=causes)


def fit_exact(model: Any, context: SourceContext | None = None) -> FitResult:
    """Return a classifier's own sums; with rows, probabilities are fitted where it has none."""
    exact = exact_scheme_of(model, context)
    if exact is None:
        raise ValueError(
            "scheme='exact' needs a source with sums of kernels: "
            f"{no_exact_sums_reason(model, context)}. Give another scheme."
        )
    candidates = [exact_candidate(exact, is_selected=True)]
    return FitResult(exact, exact, candidates, None, labels_of(model))


def _with_label_bytes(options: FitOptions, model: Any, inner: Any, y: Labels | None) -> FitOptions:
    """Return the options with the size of the labels, where the size of the model is limited."""
    if options.limits.max_bytes is None:
        return options
    is_labelled = hasattr(inner, "classes_") or isinstance(inner, OutlierMixin)
    classes = labels_of(model) if is_labelled else np.unique(np.arange(2) if y is None else y)
    limits = replace(options.limits, label_bytes=label_bytes(np.asarray(classes)))
    return replace(options, limits=limits)


def _exact_sums(
    model: Any, scheme: str, options: FitOptions, context: SourceContext | None
) -> ExactScheme | None:
    """Return the exact sums that a fit may take or hand rows to; None where it may not."""
    is_selecting = options.n_borders is None or options.fallback is True
    is_possible = scheme in ("auto", "shared") and not options.decision_offset and is_selecting
    if not is_possible or (scheme == "shared" and options.fallback is False):
        return None
    exact = exact_scheme_of(model, context)
    if exact is None and options.fallback is True:
        raise ValueError(
            "fallback=True needs a source with sums of kernels: "
            f"{no_exact_sums_reason(model, context)}. Give fallback='auto' or False."
        )
    return exact


def _needs_no_map(
    exact: ExactScheme, scheme: str, options: FitOptions, sampled: SampledRows
) -> bool:
    """Return whether exact sums are taken without a search: they cost little, or must agree."""
    is_cheap = exact.cost <= DEFAULTS.search.unsearched_cost
    is_wanted = is_cheap or options.limits.min_agreement == 1.0
    return scheme == "auto" and is_wanted and _is_within_limits(exact, options, sampled)


def _is_within_limits(exact: ExactScheme | None, options: FitOptions, sampled: SampledRows) -> bool:
    """Return whether exact sums may be the model: the user gives no size and no lower limit."""
    if exact is None or options.n_borders is not None:
        return False
    limits, rows = options.limits, np.asarray(to_dense(sampled.X[:TIMED_ROWS]))
    return not (limits.has_any and exceeded_limit(limits, exact, rows))


def _prepare(
    inner: Any,
    sampled: SampledRows,
    context: SourceContext,
    training_class: Indices | None,
    y: Labels | None,
    options: FitOptions,
) -> tuple[MulticlassSource, FitData, ValidationSet, ValidationSet, Indices]:
    """Return the source, the rows that maps are fitted to, two validation sets, and labels.

    The labels are the source's of all sampled rows.
    """
    rescaled, rescaling = rescale(sampled)
    inner_source, known_class, rng = as_source(inner, context), context.class_index, context.rng
    check_classes(inner_source, y, options)
    check_repeatable(inner_source, sampled.rows, name_of(inner))
    predicted = class_index = predict_index(inner_source, sampled.rows, options)
    source = inner_source if rescaling is None else RescaledSource(inner_source, rescaling)
    is_held_out = hold_out(class_index, rng)
    if known_class is not None:
        class_index = np.where(known_class < 0, class_index, known_class)
    if training_class is None:
        validation = held_out_validation_set(source, rescaled, np.flatnonzero(is_held_out), options)
    else:
        is_training_row = training_class[sampled.index] >= 0
        validation = importance_weighted_validation_set(
            source, rescaled, is_held_out, is_training_row, options, rng
        )
    coverage = coverage_validation_set(source, rescaled, is_held_out, options, rng)
    encoded = rescaled.encoded
    data = FitData(
        rescaled.rows[~is_held_out],
        class_index[~is_held_out],
        rescaled.preprocessing,
        rescaled.rows[is_held_out],
        None if encoded is None else encoded[~is_held_out],
        None if encoded is None else encoded[is_held_out],
    )
    return source, data, validation, coverage, predicted


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
