"""Pairwise, one-vs-rest, shortlist and tree from the stages above; class hierarchy."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage
from threadpoolctl import threadpool_limits

from limes._typing import Array, Indices
from limes.fit.borders import Border, map_border
from limes.fit.config import DEFAULTS, FitOptions
from limes.fit.data import FitData
from limes.fit.train import (
    PairMapTrainer,
    calibrate,
    continue_training,
    fit_base,
    fit_inverse_temperature,
    to_border_map,
    with_points,
    with_projection,
)
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

Item = TypeVar("Item")
Groups = tuple[list[int], list[int]]


def borders_of(scheme: str, source: MulticlassSource, data: FitData) -> list[Border]:
    """Return the borders that the maps of a scheme are of."""
    n_classes = len(source.classes)
    if scheme == "one-vs-rest" and n_classes > 2:
        return [
            Border(
                source.one_vs_rest(index),
                [other for other in range(n_classes) if other != index],
                [index],
            )
            for index in range(n_classes)
        ]
    if scheme == "tree" and n_classes > 2:
        nodes = split_groups(group_classes(data.rows, data.class_index, n_classes))
        return [Border(GroupBorder(source, *groups), *groups) for groups in nodes]
    return [
        Border(source.pair_border(*pair), [pair[0]], [pair[1]]) for pair in class_pairs(n_classes)
    ]


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
    borders = [(source.pair_border(*pair), list(pair)) for pair in pairs]
    maps = _map_borders(borders, data, options, seed, n_jobs, verbose)
    return PairwiseScheme(
        tuple(maps), len(source.classes), options.double, by_vote=source.decides_by_vote
    )


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
    all_classes = list(range(n_classes))
    borders = [(source.one_vs_rest(index), all_classes) for index in all_classes]
    maps = _map_borders(borders, data, options, seed, n_jobs, verbose)
    return OneVsRestScheme(tuple(maps), n_classes, options.double)


def _map_borders(
    borders: Sequence[tuple[Source, list[int]]],
    data: FitData,
    options: FitOptions,
    seed: np.random.SeedSequence,
    n_jobs: int | None,
    verbose: int,
) -> list[BorderMap]:
    """Find points on several borders, each between the rows of its own classes."""

    def map_one(border: tuple[Source, list[int]], rng: np.random.Generator) -> BorderMap:
        return map_border(*border, data, options, rng)

    return _in_parallel(map_one, borders, seed.spawn(len(borders)), n_jobs, verbose)


def _in_parallel(
    function: Callable[[Item, np.random.Generator], BorderMap],
    items: Sequence[Item],
    seeds: Sequence[np.random.SeedSequence],
    n_jobs: int | None,
    verbose: int,
) -> list[BorderMap]:
    """Call a function with each item and random numbers of its own, on several threads."""
    # One thread of BLAS per call, or the calls would compete for the same processors.
    with threadpool_limits(limits=1, user_api="blas"):
        return list(
            Parallel(n_jobs=n_jobs, prefer="threads", verbose=verbose)(
                delayed(function)(item, np.random.default_rng(seed))
                for item, seed in zip(items, seeds, strict=True)
            )
        )


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
    """Fit one map for all classes, and one for each pair; two classes have one border."""
    if len(source.classes) == 2 and (not refine or options.decision_offset):
        return fit_pairwise(source, data, options, seed=seed, n_jobs=n_jobs, verbose=verbose)
    transfer_seed, shared_seed, pair_seed = seed.spawn(3)
    options = replace(options, blend=options.blend or DEFAULTS.schemes.blend)
    rng = np.random.default_rng(transfer_seed)
    transfer_set = build_transfer_set(source, data.rows, rng=rng, encoded=data.encoded)
    shared = _fit_shared_map(
        source, data, validation, transfer_set, options, np.random.default_rng(shared_seed)
    )
    if len(source.classes) == 2:
        return PairwiseScheme((shared.with_preprocessing(data.preprocessing),), 2, options.double)
    if refine:
        pairs = _train_pairs(source, transfer_set, shared, options, pair_seed, n_jobs, verbose)
    else:
        inner = replace(data, preprocessing=None)
        pairwise = fit_pairwise(
            source, inner, options, seed=pair_seed, n_jobs=n_jobs, verbose=verbose
        )
        pairs = [with_projection(map_, shared.preprocessing) for map_ in pairwise.maps]
    return _as_shortlist(source, data, transfer_set, (shared, *pairs), options)


def _fit_shared_map(
    source: MulticlassSource,
    data: FitData,
    validation: ValidationSet,
    transfer_set: TransferSet,
    options: FitOptions,
    rng: np.random.Generator,
) -> BorderMap:
    """Train one map for all classes, with calibrated probabilities."""
    n_points = DEFAULTS.schemes.shortlist_points
    if transfer_set.probabilities.shape[1] == 1 and options.n_borders:
        n_points = options.n_borders
    base, _ = fit_base(transfer_set, "linear")
    blend = options.blend or DEFAULTS.schemes.blend
    trained = continue_training(
        with_points(base, transfer_set, min(n_points, len(data.rows)), rng),
        transfer_set,
        blend=blend,
        n_samples=options.effort * DEFAULTS.schemes.shortlist_samples,
        rng=rng,
    )
    map_ = to_border_map(trained, blend)
    validation, rows = augmented_validation_set(source, data, validation)
    return calibrate(map_, rows, source.calibrated_probabilities(rows), validation.weights)


def _train_pairs(
    source: MulticlassSource,
    transfer_set: TransferSet,
    shared: BorderMap,
    options: FitOptions,
    seed: np.random.SeedSequence,
    n_jobs: int | None,
    verbose: int,
) -> list[BorderMap]:
    """Train a map for each pair, on the rows whose likeliest classes are nearest to the pair."""
    trainer = PairMapTrainer(
        transfer_set.rows,
        None if shared.preprocessing is None else shared.preprocessing.to_matrix(),
        options.n_borders or DEFAULTS.schemes.pair_points,
        options.blend or DEFAULTS.schemes.blend,
    )
    logits = shared.decide(transfer_set.rows).astype(np.float64)
    deficit = logits.max(axis=1, keepdims=True) - logits

    def train_one(pair: tuple[int, int], rng: np.random.Generator) -> BorderMap:
        row_index = _smallest(np.maximum(deficit[:, pair[0]], deficit[:, pair[1]]))
        rows = transfer_set.rows[row_index].astype(np.float64)
        decisions = source.pair_decision(pair, rows, transfer_set.probabilities[row_index])
        return trainer.train(row_index, decisions, DEFAULTS.schemes.min_pair_samples, rng)

    pairs = class_pairs(len(source.classes))
    return _in_parallel(train_one, pairs, seed.spawn(len(pairs)), n_jobs, verbose)


def _smallest(deficit: Array) -> Indices:
    """Return the places of the smallest values, as many as a pair has rows, ascending."""
    n_rows = DEFAULTS.schemes.pair_rows
    if len(deficit) <= n_rows:
        return np.arange(len(deficit))
    return np.sort(np.argpartition(deficit, n_rows)[:n_rows])


def _as_shortlist(
    source: MulticlassSource,
    data: FitData,
    transfer_set: TransferSet,
    maps: tuple[BorderMap, ...],
    options: FitOptions,
) -> ShortlistScheme:
    """Return the scheme, its shortlists as long as the transfer set needs them."""
    logits = maps[0].decide(transfer_set.rows)
    source_logit = logits[np.arange(len(logits)), transfer_set.probabilities.argmax(axis=1)]
    deficit = logits.max(axis=1) - source_logit
    logit_margin = max(
        DEFAULTS.schemes.min_logit_margin,
        float(np.quantile(deficit, DEFAULTS.schemes.shortlist_coverage)),
    )
    scheme = ShortlistScheme(
        _with_common_preprocessing(maps, data),
        len(source.classes),
        options.double,
        logit_margin=logit_margin,
        by_vote=source.decides_by_vote,
    )
    mean_pairs = float(np.sum(scheme.find_pairs(logits)[1] >= 0) / len(logits))
    return replace(scheme, mean_pairs=mean_pairs)


def _with_common_preprocessing(maps: tuple[BorderMap, ...], data: FitData) -> tuple[BorderMap, ...]:
    """Return maps of raw rows that share one preprocessing object, not equal copies of it."""
    first = maps[0].with_preprocessing(data.preprocessing)
    return (
        first,
        *(
            replace(map_.with_preprocessing(data.preprocessing), preprocessing=first.preprocessing)
            for map_ in maps[1:]
        ),
    )


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
    """Group the classes, and fit the border between the two groups at each node."""
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
    nodes = split_groups(children)
    if refine:
        maps = _train_nodes(source, data, options, nodes, seed, n_jobs, verbose)
    else:
        inner = replace(data, preprocessing=None)
        borders = [(GroupBorder(source, *groups), groups[0] + groups[1]) for groups in nodes]
        maps = _map_borders(borders, inner, options, seed, n_jobs, verbose)
    scheme = TreeScheme(tuple(maps), n_classes, options.double, children)
    if refine:
        scheme = _calibrate_tree(source, data, validation, scheme)
    return replace(scheme, maps=_with_common_preprocessing(scheme.maps, data))


def _train_nodes(
    source: MulticlassSource,
    data: FitData,
    options: FitOptions,
    nodes: Sequence[Groups],
    seed: np.random.SeedSequence,
    n_jobs: int | None,
    verbose: int,
) -> list[BorderMap]:
    """Train a map for each node, on the rows that reach it."""
    transfer_seed, *seeds = seed.spawn(1 + len(nodes))
    rng = np.random.default_rng(transfer_seed)
    transfer_set = build_transfer_set(source, data.rows, rng=rng, encoded=data.encoded)
    config = DEFAULTS.schemes
    trainer = PairMapTrainer(
        transfer_set.rows,
        transfer_set.components,
        options.n_borders or config.node_points,
        options.blend or config.blend,
    )

    def train_one(groups: Groups, rng: np.random.Generator) -> BorderMap:
        row_index, decisions = _rows_of_node(transfer_set, *groups)
        n_samples = max(config.min_node_samples, config.node_epochs * len(row_index))
        return trainer.train(row_index, decisions, n_samples, rng)

    return _in_parallel(train_one, nodes, seeds, n_jobs, verbose)


def _rows_of_node(
    transfer_set: TransferSet, first: list[int], second: list[int]
) -> tuple[Indices, Array]:
    """Return the rows that reach a node, and half the log-odds of its two groups."""
    likeliest = transfer_set.probabilities.argmax(axis=1)
    row_index = np.flatnonzero(np.isin(likeliest, first + second))
    if not len(row_index):
        row_index = np.arange(len(likeliest))
    probabilities = np.maximum(
        transfer_set.probabilities[row_index].astype(np.float64), MIN_PROBABILITY
    )
    odds = probabilities[:, second].max(axis=1) / probabilities[:, first].max(axis=1)
    return row_index, 0.5 * np.log(odds)


def _calibrate_tree(
    source: MulticlassSource, data: FitData, validation: ValidationSet, scheme: TreeScheme
) -> TreeScheme:
    """Scale all decision values by the factor with probabilities nearest to the source's."""
    validation, rows = augmented_validation_set(source, data, validation)
    target, values = source.calibrated_probabilities(rows), scheme.values(rows)

    def cross_entropy(factor: float) -> float:
        predicted = np.log(np.maximum(scheme.raw_probabilities(factor * values), MIN_PROBABILITY))
        return float(-validation.weights @ np.sum(target * predicted, axis=1))

    factor = fit_inverse_temperature(cross_entropy)
    return replace(scheme, maps=tuple(map_.scaled(factor) for map_ in scheme.maps))


def group_classes(rows: Array, class_index: Indices, n_classes: int) -> NDArray[np.int64]:
    """Build a tree of classes by agglomerative clustering of their means (Ward's criterion).

    It joins the two groups that increase the squared distances to the mean least, which keeps
    groups of similar size, and so the tree shallow.

    Examples
    --------
    >>> group_classes(np.array([[0.0], [5.0], [1.0]]), np.array([0, 1, 2]), 3)
    array([[-2,  1],
           [-1, -3]])
    """
    means = np.tile(rows.mean(axis=0), (n_classes, 1))
    for index in np.unique(class_index):
        means[index] = rows[class_index == index].mean(axis=0)
    merged = linkage(means, method="ward")[:, :2].astype(np.int64)
    # The last merge is the root; merge k makes the group n_classes + k.
    nodes = np.where(merged < n_classes, -1 - merged, 2 * n_classes - 2 - merged)
    return np.ascontiguousarray(nodes[::-1])


class GroupBorder(Source):
    """The border between two groups of classes: between the likeliest class of each."""

    def __init__(self, source: MulticlassSource, first: list[int], second: list[int]) -> None:
        self.source, self.first, self.second = source, np.array(first), np.array(second)

    def decision(self, X: Array) -> Array:
        """Return the decision value of the pair of likeliest classes."""
        values = np.empty(len(X))
        for places, pair, sign in self._pairs(X):
            values[places] = sign * self.source.pair_border(*pair).decision(X[places])
        return values

    def decision_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return decision values and gradients."""
        values, gradients = np.empty(len(X)), np.empty(X.shape)
        for places, pair, sign in self._pairs(X):
            value, gradient = self.source.pair_border(*pair).decision_and_gradient(X[places])
            values[places], gradients[places] = sign * value, sign * gradient
        return values, gradients

    def _pairs(self, X: Array) -> list[tuple[Indices, tuple[int, int], float]]:
        """Return the rows of each pair of likeliest classes, the pair ascending, and its sign."""
        if not len(X):
            return []
        logits = self.source.logits(X)
        likeliest = np.column_stack(
            [group[logits[:, group].argmax(axis=1)] for group in (self.first, self.second)]
        )
        return [
            (
                np.flatnonzero((likeliest == pair).all(axis=1)),
                (int(pair.min()), int(pair.max())),
                1.0 if pair[0] < pair[1] else -1.0,
            )
            for pair in np.unique(likeliest, axis=0)
        ]
