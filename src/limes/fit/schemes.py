"""Pairwise, one-vs-rest, shortlist and tree from the stages above; class hierarchy."""

from dataclasses import replace

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage
from scipy.optimize import minimize_scalar
from threadpoolctl import threadpool_limits

from limes._typing import Array, Indices
from limes.fit.borders import Border, map_border
from limes.fit.config import DEFAULTS, FitOptions
from limes.fit.data import FitData
from limes.fit.train import PairMapTrainer, fit_inverse_temperature, fit_map, projected, to_map
from limes.fit.transfer_set import TransferSet, build_transfer_set
from limes.fit.validation import ValidationSet, augmented_validation_set
from limes.model.border_map import BorderMap
from limes.model.coupling import class_pairs
from limes.model.schemes import (
    OneVsRestScheme,
    PairwiseScheme,
    Scheme,
    ShortlistScheme,
    TreeScheme,
    split_groups,
)
from limes.sources.base import MIN_PROBABILITY, MulticlassSource, Source


def fit_pairwise(
    source: MulticlassSource,
    data: FitData,
    options: FitOptions,
    *,
    seed: np.random.SeedSequence,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> PairwiseScheme:
    """Map the border of each pair of classes."""
    pairs = class_pairs(len(source.classes))
    borders = [source.pair_border(*pair) for pair in pairs]
    members = [list(pair) for pair in pairs]
    maps = _map_all(borders, members, data, options, seed, n_jobs, verbose)
    return PairwiseScheme(maps, len(source.classes), options.double, by_vote=source.decides_by_vote)


def fit_one_vs_rest(
    source: MulticlassSource,
    data: FitData,
    options: FitOptions,
    *,
    seed: np.random.SeedSequence,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Scheme:
    """Map the border of each class against the rest; two classes have but one border."""
    n_classes = len(source.classes)
    if n_classes == 2:
        return fit_pairwise(source, data, options, seed=seed, n_jobs=n_jobs, verbose=verbose)
    borders = [source.one_vs_rest(one) for one in range(n_classes)]
    members = [list(range(n_classes)) for _ in range(n_classes)]
    maps = _map_all(borders, members, data, options, seed, n_jobs, verbose)
    return OneVsRestScheme(maps, n_classes, options.double)


def _map_all(
    borders: list[Source],
    members: list[list[int]],
    data: FitData,
    options: FitOptions,
    seed: np.random.SeedSequence,
    n_jobs: int | None,
    verbose: int,
) -> tuple[BorderMap, ...]:
    """Map several borders, each between the rows of its own classes."""
    seeds = seed.spawn(len(borders))
    # One thread of BLAS a border: they would fight over the same processors.
    with threadpool_limits(limits=1, user_api="blas"):
        maps = Parallel(n_jobs=n_jobs, prefer="threads", verbose=verbose)(
            delayed(map_border)(border, own, data, options, np.random.default_rng(child))
            for border, own, child in zip(borders, members, seeds, strict=True)
        )
    return tuple(maps)


def fit_shortlist(
    source: MulticlassSource,
    data: FitData,
    validation: ValidationSet,
    options: FitOptions,
    *,
    refine: bool = True,
    seed: np.random.SeedSequence,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Scheme:
    """Fit one map for all classes, and map the border of each pair; two classes have one border."""
    if len(source.classes) == 2 and (not refine or options.decision_offset):
        return fit_pairwise(source, data, options, seed=seed, n_jobs=n_jobs, verbose=verbose)
    lesson_seed, shared_seed, pair_seed = seed.spawn(3)
    options = replace(options, blend=options.blend or DEFAULTS.schemes.blend)
    transfer_set = build_transfer_set(source, data.rows, rng=np.random.default_rng(lesson_seed))
    shared = _fit_shared(
        source, data, validation, transfer_set, options, np.random.default_rng(shared_seed)
    )
    if len(source.classes) == 2:
        return PairwiseScheme((shared.with_preprocessing(data.preprocessing),), 2, options.double)
    if refine:
        pairs = _fit_pairs(source, transfer_set, shared, options, pair_seed, n_jobs, verbose)
    else:
        inner = replace(data, preprocessing=None)
        found = fit_pairwise(source, inner, options, seed=pair_seed, n_jobs=n_jobs, verbose=verbose)
        pairs = [projected(one, shared.preprocessing) for one in found.maps]
    return _join(source, data, transfer_set, (shared, *pairs), options)


def _fit_shared(
    source: MulticlassSource,
    data: FitData,
    validation: ValidationSet,
    transfer_set: TransferSet,
    options: FitOptions,
    rng: np.random.Generator,
) -> BorderMap:
    """Fit one map to all classes, and make its probabilities the source's."""
    n_points = (
        options.n_borders
        if transfer_set.probabilities.shape[1] == 1
        else DEFAULTS.schemes.shortlist_points
    )
    n_points = min(n_points or DEFAULTS.schemes.shortlist_points, len(data.rows))
    blend = options.blend or DEFAULTS.schemes.blend
    fitted = to_map(fit_map(transfer_set, n_points=n_points, blend=blend, rng=rng), blend)
    validation, rows = augmented_validation_set(source, data, validation)
    logits = fitted.decide(rows).astype(np.float64)
    inverse_temperature = fit_inverse_temperature(
        logits, source.calibrated_probabilities(rows), validation.weights
    )
    # The value of a single border is half a logit.
    return fitted.scaled(
        0.5 * inverse_temperature if fitted.n_outputs == 1 else inverse_temperature
    )


def _fit_pairs(
    source: MulticlassSource,
    transfer_set: TransferSet,
    shared: BorderMap,
    options: FitOptions,
    seed: np.random.SeedSequence,
    n_jobs: int | None,
    verbose: int,
) -> list[BorderMap]:
    """Fit a map to each pair, on the rows that are nearest to asking it."""
    trainer = PairMapTrainer(
        transfer_set.rows,
        None if shared.preprocessing is None else shared.preprocessing.to_matrix(),
        options.n_borders or DEFAULTS.schemes.pair_points,
        options.blend or DEFAULTS.schemes.blend,
        DEFAULTS.schemes.min_pair_samples,
    )
    scores = shared.decide(transfer_set.rows).astype(np.float64)
    behind = scores.max(axis=1, keepdims=True) - scores

    def fit_one(pair: tuple[int, int], child: np.random.SeedSequence) -> BorderMap:
        some = _nearest_rows(np.maximum(behind[:, pair[0]], behind[:, pair[1]]))
        own, chances = transfer_set.rows[some].astype(np.float64), transfer_set.probabilities[some]
        decisions = source.pair_decision(pair, own, chances)
        return trainer.fit(some, decisions, np.random.default_rng(child))

    pairs = class_pairs(len(source.classes))
    # One thread of BLAS a pair: they would fight over the same processors.
    with threadpool_limits(limits=1, user_api="blas"):
        return list(
            Parallel(n_jobs=n_jobs, prefer="threads", verbose=verbose)(
                delayed(fit_one)(pair, child)
                for pair, child in zip(pairs, seed.spawn(len(pairs)), strict=True)
            )
        )


def _nearest_rows(behind: Array) -> Indices:
    """Return the rows of which both classes of a pair are least behind the best."""
    if len(behind) <= DEFAULTS.schemes.pair_rows:
        return np.arange(len(behind))
    return np.sort(
        np.argpartition(behind, DEFAULTS.schemes.pair_rows)[: DEFAULTS.schemes.pair_rows]
    )


def _join(
    source: MulticlassSource,
    data: FitData,
    transfer_set: TransferSet,
    maps: tuple[BorderMap, ...],
    options: FitOptions,
) -> ShortlistScheme:
    """Return the scheme, with as many classes named as the rows asked about say."""
    scores = maps[0].decide(transfer_set.rows)
    own = scores[np.arange(len(scores)), transfer_set.probabilities.argmax(axis=1)]
    logit_margin = max(
        DEFAULTS.schemes.min_logit_margin,
        float(np.quantile(scores.max(axis=1) - own, DEFAULTS.schemes.shortlist_coverage)),
    )
    first = maps[0].with_preprocessing(data.preprocessing)
    # The same step for all maps, not one that is equal.
    moved = [
        replace(one.with_preprocessing(data.preprocessing), preprocessing=first.preprocessing)
        for one in maps[1:]
    ]
    scheme = ShortlistScheme(
        (first, *moved),
        len(source.classes),
        options.double,
        logit_margin=logit_margin,
        by_vote=source.decides_by_vote,
    )
    return replace(scheme, mean_pairs=_count_asked(scheme, scores))


def _count_asked(scheme: ShortlistScheme, scores: NDArray[np.floating]) -> float:
    """Return how many pairs rows ask on average."""
    return float(np.sum(scheme.find_pairs(scores)[1] >= 0) / len(scores))


def fit_tree(
    source: MulticlassSource,
    data: FitData,
    validation: ValidationSet,
    options: FitOptions,
    *,
    refine: bool = True,
    seed: np.random.SeedSequence,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Scheme:
    """Group the classes, and map the border between the two groups at each fork."""
    n_classes = len(source.classes)
    if n_classes == 2:
        return fit_shortlist(
            source,
            data,
            validation,
            options,
            refine=refine,
            seed=seed,
            n_jobs=n_jobs,
            verbose=verbose,
        )
    children = group_classes(data.rows, data.class_index, n_classes)
    find = _fit_forks if refine else _map_forks
    maps = find(source, data, options, children, seed, n_jobs, verbose)
    scheme = TreeScheme(tuple(maps), n_classes, options.double, children)
    if refine:
        scheme = _sharpen(source, data, validation, scheme)
    first = scheme.maps[0].with_preprocessing(data.preprocessing)
    # The same step for all maps, not one that is equal.
    moved = [
        replace(one.with_preprocessing(data.preprocessing), preprocessing=first.preprocessing)
        for one in scheme.maps
    ]
    return replace(scheme, maps=tuple(moved))


def _map_forks(
    source: MulticlassSource,
    data: FitData,
    options: FitOptions,
    children: NDArray[np.int64],
    seed: np.random.SeedSequence,
    n_jobs: int | None,
    verbose: int,
) -> list[BorderMap]:
    """Search for points on the border of each fork, in the space of the source."""
    groups, inner = split_groups(children), replace(data, preprocessing=None)
    with threadpool_limits(limits=1, user_api="blas"):
        found = Parallel(n_jobs=n_jobs, prefer="threads", verbose=verbose)(
            delayed(map_border)(
                GroupBorder(source, *both),
                both[0] + both[1],
                inner,
                options,
                np.random.default_rng(child),
            )
            for both, child in zip(groups, seed.spawn(len(groups)), strict=True)
        )
    return list(found)


def _fit_forks(
    source: MulticlassSource,
    data: FitData,
    options: FitOptions,
    children: NDArray[np.int64],
    seed: np.random.SeedSequence,
    n_jobs: int | None,
    verbose: int,
) -> list[BorderMap]:
    """Fit a map to each fork, on the rows that come there."""
    lesson_seed, *seeds = seed.spawn(1 + len(children))
    transfer_set = build_transfer_set(source, data.rows, rng=np.random.default_rng(lesson_seed))
    n_points = options.n_borders or DEFAULTS.schemes.node_points
    blend = options.blend or DEFAULTS.schemes.blend
    trainer = PairMapTrainer(
        transfer_set.rows,
        transfer_set.components,
        n_points,
        blend,
        DEFAULTS.schemes.min_node_samples,
    )

    def fit_one(both: tuple[list[int], list[int]], child: np.random.SeedSequence) -> BorderMap:
        some, decisions = _lesson_of(transfer_set, *both)
        own = replace(
            trainer,
            n_samples=max(
                DEFAULTS.schemes.min_node_samples, DEFAULTS.schemes.node_epochs * len(some)
            ),
        )
        return own.fit(some, decisions, np.random.default_rng(child))

    # One thread of BLAS a fork: they would fight over the same processors.
    with threadpool_limits(limits=1, user_api="blas"):
        fitted = Parallel(n_jobs=n_jobs, prefer="threads", verbose=verbose)(
            delayed(fit_one)(both, child)
            for both, child in zip(split_groups(children), seeds, strict=True)
        )
    return list(fitted)


def _lesson_of(
    transfer_set: TransferSet, first: list[int], second: list[int]
) -> tuple[Indices, Array]:
    """Return the rows that come to a fork, and half the logarithm of the odds of its branches."""
    some = np.flatnonzero(np.isin(transfer_set.probabilities.argmax(axis=1), first + second))
    if not len(some):
        some = np.arange(len(transfer_set.probabilities))
    probabilities = np.maximum(transfer_set.probabilities[some].astype(np.float64), MIN_PROBABILITY)
    odds = probabilities[:, second].max(axis=1) / probabilities[:, first].max(axis=1)
    return some, 0.5 * np.log(odds)


def _sharpen(
    source: MulticlassSource, data: FitData, validation: ValidationSet, scheme: TreeScheme
) -> TreeScheme:
    """Scale all values by the factor that brings probabilities nearest to the source's."""
    validation, rows = augmented_validation_set(source, data, validation)
    wanted, values = source.calibrated_probabilities(rows), scheme.values(rows)

    def loss(log_factor: float) -> float:
        found = scheme.raw_probabilities(np.exp(log_factor) * values)
        return float(
            -validation.weights
            @ np.sum(wanted * np.log(np.maximum(found, MIN_PROBABILITY)), axis=1)
        )

    found = minimize_scalar(loss, bounds=(np.log(0.02), np.log(50)), method="bounded")
    factor = float(np.exp(found.x))
    return replace(scheme, maps=tuple(one.scaled(factor) for one in scheme.maps))


def borders_of(scheme: str, source: MulticlassSource, data: FitData) -> list[Border]:
    """Return the borders that the maps of a scheme are of."""
    n_classes = len(source.classes)
    if scheme == "one-vs-rest" and n_classes > 2:
        everyone = range(n_classes)
        return [
            Border(source.one_vs_rest(one), [other for other in everyone if other != one], [one])
            for one in everyone
        ]
    if scheme == "tree" and n_classes > 2:
        groups = split_groups(group_classes(data.rows, data.class_index, n_classes))
        return [Border(GroupBorder(source, *both), *both) for both in groups]
    return [
        Border(source.pair_border(*pair), [pair[0]], [pair[1]]) for pair in class_pairs(n_classes)
    ]


def group_classes(rows: Array, class_index: Indices, n_classes: int) -> NDArray[np.int64]:
    """Build a tree of classes, those whose means are nearest being parted last.

    Two groups are joined where that adds least to the squared distances from their mean (Ward),
    which makes groups of similar size, and so short ways.

    Examples
    --------
    >>> group_classes(np.array([[0.0], [5.0], [1.0]]), np.array([0, 1, 2]), 3)
    array([[-2,  1],
           [-1, -3]])
    """
    means = np.tile(rows.mean(axis=0), (n_classes, 1))
    for one in np.unique(class_index):
        means[one] = rows[class_index == one].mean(axis=0)
    merged = linkage(means, method="ward")[:, :2].astype(np.int64)
    # The last merge is the root; merge k makes the group n_classes + k.
    forks = np.where(merged < n_classes, -1 - merged, 2 * n_classes - 2 - merged)
    return np.ascontiguousarray(forks[::-1])


class GroupBorder(Source):
    """The border between two groups: that of the best class of the one and of the other."""

    def __init__(self, source: MulticlassSource, first: list[int], second: list[int]) -> None:
        self.source, self.first, self.second = source, np.array(first), np.array(second)

    def decision(self, X: Array) -> Array:
        """Return the decision value of the two best classes."""
        values = np.empty(len(X))
        for some, pair, sign in self._pairs(X):
            values[some] = sign * self.source.pair_border(*pair).decision(X[some])
        return values

    def decision_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the same with gradients."""
        values, gradients = np.empty(len(X)), np.empty(X.shape)
        for some, pair, sign in self._pairs(X):
            value, gradient = self.source.pair_border(*pair).decision_and_gradient(X[some])
            values[some], gradients[some] = sign * value, sign * gradient
        return values, gradients

    def _pairs(self, X: Array) -> list[tuple[Indices, tuple[int, int], float]]:
        """Return the rows of each pair of best classes, the pair ascending, and its sign."""
        if not len(X):
            return []
        scores = self.source.logits(X)
        best = np.column_stack(
            [group[scores[:, group].argmax(axis=1)] for group in (self.first, self.second)]
        )
        return [
            (
                np.flatnonzero((best == pair).all(axis=1)),
                (int(pair.min()), int(pair.max())),
                1.0 if pair[0] < pair[1] else -1.0,
            )
            for pair in np.unique(best, axis=0)
        ]
