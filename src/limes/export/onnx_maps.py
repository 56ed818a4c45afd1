"""Border maps as ONNX nodes: the nearest points, then their linear functions."""

import math
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from limes.export.graph import Graph
from limes.export.packed import Packed, PackedMap


def map_values(graph: Graph, packed: Packed, rows: str) -> str:
    """Add the values of all maps side by side.

    Maps that blend equally many points share their nodes, whatever their number: the graph of
    three hundred pairs is as short as that of one.
    """
    centered = graph.add("Sub", rows, graph.number(packed.center))
    searched = centered
    if packed.projection is not None:
        searched = graph.add("MatMul", centered, graph.number(packed.projection))
    groups: dict[tuple[bool, int, int], list[int]] = defaultdict(list)
    for place, one in enumerate(packed.maps):
        groups[one.n_points > 1, one.n_blended, one.n_values].append(place)
    parts = [
        _group_values(graph, [packed.maps[place] for place in places], centered, searched)
        for places in groups.values()
    ]
    if len(parts) == 1:
        return parts[0]
    joined = graph.add("Concat", *parts, axis=1)
    return graph.add("Gather", joined, graph.integers(_columns(packed, groups.values())), axis=1)


def _columns(packed: Packed, groups: Iterable[list[int]]) -> list[int]:
    """Return where each value of each map is among those of the groups."""
    ends = np.cumsum([0] + [one.n_values for one in packed.maps])
    order = [
        column
        for places in groups
        for place in places
        for column in range(ends[place], ends[place + 1])
    ]
    return [int(column) for column in np.argsort(order)]


def _group_values(graph: Graph, maps: list[PackedMap], centered: str, searched: str) -> str:
    """Add the values of maps that are alike: (n_rows, n_maps * n_values)."""
    if maps[0].n_points == 1:
        return _constant_values(graph, maps, centered)
    n_points = max(one.n_points for one in maps)
    scores = _scores(graph, maps, n_points, searched)
    if maps[0].n_blended == 1:
        near = graph.add("ArgMin", scores, axis=2, keepdims=1)
        values = _point_values(graph, maps, n_points, near, centered)
    else:
        near, weights = _rank(graph, scores, maps[0].n_blended)
        each = _point_values(graph, maps, n_points, near, centered)
        values = graph.total(graph.add("Mul", each, weights), 2)
    return graph.shaped(values, 0, len(maps) * maps[0].n_values)


def _constant_values(graph: Graph, maps: list[PackedMap], centered: str) -> str:
    """Add the values of maps with a single point, which is always the nearest."""
    functions = np.concatenate([one.functions[0] for one in maps])
    offsets = np.concatenate([one.offsets[0] for one in maps])
    products = graph.add("MatMul", centered, graph.number(functions.T))
    return graph.add("Add", products, graph.number(offsets))


def _scores(graph: Graph, maps: list[PackedMap], n_points: int, searched: str) -> str:
    """Add the scores of all points: (n_rows, n_maps, n_points)."""
    shape = len(maps), n_points
    weights = np.zeros((*shape, maps[0].weights.shape[1]))
    # Places without a point have a score that never is the lowest.
    biases = np.full(shape, np.finfo(graph.dtype).max)
    for place, one in enumerate(maps):
        weights[place, : one.n_points] = one.weights
        biases[place, : one.n_points] = one.biases
    products = graph.add("MatMul", searched, graph.number(weights.reshape(-1, weights.shape[2]).T))
    scores = graph.add("Sub", graph.number(biases.ravel()), products)
    return graph.shaped(scores, 0, *shape)


def _rank(graph: Graph, scores: str, n_blended: int) -> tuple[str, str]:
    """Add the nearest points and their weights, which reach to the next point after them."""
    size = graph.integers([n_blended + 1])
    ranked, near = graph.add_many("TopK", 2, scores, size, axis=2, largest=0, sorted=1)
    radius = graph.columns(ranked, n_blended, n_blended + 1, 2)
    reach = graph.add("Sub", radius, graph.columns(ranked, 0, n_blended, 2))
    total = graph.total(reach, 2)
    is_zero = graph.add("Equal", total, graph.number(0.0))
    divisor = graph.add("Where", is_zero, graph.number(1.0), total)
    shares = graph.add("Div", reach, divisor)
    weights = graph.add("Where", is_zero, graph.number(1.0 / n_blended), shares)
    return (
        graph.columns(near, 0, n_blended, 2),
        graph.add("Unsqueeze", weights, graph.integers([3])),
    )


def _point_values(
    graph: Graph, maps: list[PackedMap], n_points: int, near: str, centered: str
) -> str:
    """Add the values of some points of each map: (n_rows, n_maps, n_near, n_values)."""
    n_values, n_features = maps[0].functions.shape[1:]
    functions = np.zeros((len(maps), n_points, n_values, n_features))
    offsets = np.zeros((len(maps), n_points, n_values))
    for place, one in enumerate(maps):
        functions[place, : one.n_points] = one.functions
        offsets[place, : one.n_points] = one.offsets
    firsts = n_points * np.arange(len(maps)).reshape(-1, 1)
    places = graph.add("Add", near, graph.integers(firsts))
    taken = graph.add(
        "Gather", graph.number(functions.reshape(-1, n_values, n_features)), places, axis=0
    )
    shape = len(maps), maps[0].n_blended, n_values
    flat = graph.shaped(taken, 0, math.prod(shape), n_features)
    products = graph.add("MatMul", flat, graph.shaped(centered, 0, n_features, 1))
    moved = graph.add("Gather", graph.number(offsets.reshape(-1, n_values)), places, axis=0)
    return graph.add("Add", graph.shaped(products, 0, *shape), moved)
