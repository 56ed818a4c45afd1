"""ONNX models of fitted classifiers, and a converter for skl2onnx."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limes._typing import Array
from limes.classifier import BordersClassifier
from limes.export.onnx_exact import add_exact_sums, exact_notes
from limes.export.onnx_graph import (
    FLOAT32,
    INT64,
    Graph,
    compare_with_zero,
    count_votes,
    couple_pairs,
    highest,
    make_tensor,
    to_model,
)
from limes.export.rounding import (
    resolve_dtype,
    scheme_to_export,
    unknown_scheme,
)
from limes.fast_estimator import FastEstimator
from limes.model.coupling import class_pairs
from limes.model.exact import ExactScheme, FallbackScheme
from limes.model.packed import (
    Packed,
    PackedCurve,
    PackedMap,
    pack,
)
from limes.model.schemes import (
    WINNER_MARGIN,
    MapScheme,
    PairwiseScheme,
    Scheme,
    ShortlistScheme,
    TreeScheme,
    split_groups,
)

__all__ = ["register", "to_onnx"]


def to_onnx(fast: FastEstimator, *, dtype: str | None = None, fallback: bool = False) -> Any:
    """Return a fitted classifier as an ONNX model of standard operators.

    Its input ``X`` has the shape (n_rows, n_features). Its outputs are ``label``, of shape
    (n_rows,), and ``probabilities``, of shape (n_rows, n_classes). The outputs for
    a row with a NaN are undefined: ONNX cannot raise an error as Python does. Memory grows with the
    number of rows times the size of the linear functions of one row, so predict many rows in blocks
    of some thousand.

    Exact sums: ``probabilities`` is missing where the source has none, and ``doc_string`` states
    how far a decision value must be from 0 for the label to be that of exact arithmetic.

    Parameters
    ----------
    fast : BordersClassifier or BordersOutlierDetector
        Fitted classifier.
    dtype : {'float32', 'float64'} or None, default=None
        Type of ``X``, of the arithmetic and of the probabilities; None for that of the classifier.
    fallback : bool, default=False
        Include the exact sums that a map falls back to; both are computed for every row. They hold
        rows of the training set.

    Returns
    -------
    onnx.ModelProto
        ``model.SerializeToString()`` gives its bytes, ``onnx.save`` writes it.

    Examples
    --------
    >>> import onnxruntime
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, random_state=0)
    >>> fast = BordersClassifier(random_state=0).fit(X, y)
    >>> data = to_onnx(fast).SerializeToString()
    >>> session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    >>> session.run(["label"], {"X": X[:3].astype("float32")})[0].tolist()
    [0, 1, 1]
    """
    scheme = scheme_to_export(fast, fallback=fallback)
    graph = Graph(resolve_dtype(scheme, dtype), "")
    labels = onnx_labels(fast.model_.classes)
    label, probabilities = add_classifier(graph, scheme, labels, "X")
    outputs: dict[str, tuple[str, Any, list[Any]]] = {
        "label": (label, str if labels.dtype.kind == "U" else labels.dtype, ["n_rows"]),
    }
    if probabilities is not None and fast.model_.outlier_scores is None:
        outputs["probabilities"] = probabilities, graph.dtype, ["n_rows", len(labels)]
    notes = "\n".join(_notes(fast, scheme, graph.dtype))
    return to_model(graph, fast.n_features_in_, outputs, notes=notes)


def _notes(fast: FastEstimator, scheme: Scheme, dtype: np.dtype[Any]) -> list[str]:
    """Return what the model states about itself, as lines."""
    if isinstance(scheme, ExactScheme):
        return exact_notes(scheme, dtype)
    if isinstance(scheme, FallbackScheme):
        return [f"Map with fallback below the margin {scheme.margin!r} of log odds."]
    is_cut = isinstance(fast.scheme_, FallbackScheme)
    return ["Map without its fallback to exact sums."] if is_cut else []


def register() -> None:
    """Register a converter for ``BordersClassifier`` with skl2onnx, alone or in a pipeline.

    Examples
    --------
    >>> import skl2onnx
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> register()
    >>> X, y = make_moons(200, random_state=0)
    >>> pipe = make_pipeline(StandardScaler(), BordersClassifier(random_state=0)).fit(X, y)
    >>> model = skl2onnx.to_onnx(pipe, X[:1].astype("float32"), options={"zipmap": False})
    >>> [output.name for output in model.graph.output]
    ['label', 'probabilities']
    """
    try:
        from skl2onnx import update_registered_converter
        from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes
    except ImportError as error:
        raise ImportError(
            "converting pipelines needs the package skl2onnx: install limes[export]."
        ) from error
    update_registered_converter(
        BordersClassifier,
        "LimesBordersClassifier",
        calculate_linear_classifier_output_shapes,
        _convert,
        options={"zipmap": [True, False, "columns"], "nocl": [True, False]},
    )


def onnx_labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Return labels in a type of ONNX: text, 64-bit integers, booleans or floats."""
    if classes.dtype.kind in "OU":
        return classes.astype(str)
    if classes.dtype.kind == "u" and classes.max() >= 2**63:
        return classes.astype(np.uint64)
    return classes.astype(np.int64) if classes.dtype.kind in "iu" else classes


def add_classifier(
    graph: Graph, scheme: Scheme, labels: NDArray[Any], rows: str
) -> tuple[str, str | None]:
    """Add a classifier to a graph; return the names of its labels and probabilities."""
    if isinstance(scheme, ExactScheme):
        class_index, probabilities = add_exact_sums(graph, scheme, rows)
    elif isinstance(scheme, FallbackScheme):
        class_index, probabilities = _add_fallback(graph, scheme, rows)
    elif isinstance(scheme, MapScheme):
        values = map_values(graph, pack(scheme, graph.dtype), rows)
        class_index, probabilities = decide(graph, scheme, values)
    else:
        raise unknown_scheme(scheme, [*DECISIONS, "exact"], "ONNX")
    return graph.add("Gather", graph.constant(labels), class_index, axis=0), probabilities


def _add_fallback(graph: Graph, scheme: FallbackScheme, rows: str) -> tuple[str, str]:
    """Add a map and exact sums, which give the class where the margin of the map is small."""
    base, packed = scheme.base, pack(scheme.base, graph.dtype)
    values = map_values(graph, packed, rows)
    own_class, probabilities = decide(graph, base, values)
    if packed.n_values == 1:
        margin = graph.add("Abs", graph.add("Mul", values, graph.number(2.0)))
    else:
        two = graph.integers([2])
        ranked, _ = graph.add_many("TopK", 2, values, two, axis=1, largest=1, sorted=1)
        first, second = graph.columns(ranked, 0, 1, 1), graph.columns(ranked, 1, 2, 1)
        margin = graph.add("Sub", first, second)
    # False where an overflow of the map gave no margin.
    is_certain = graph.add("GreaterOrEqual", margin, graph.number(scheme.margin))
    exact_class, _ = add_exact_sums(graph, scheme.exact, rows)
    class_index = graph.add("Where", graph.shaped(is_certain, -1), own_class, exact_class)
    return class_index, _make_largest(graph, probabilities, class_index, scheme.n_classes)


def map_values(graph: Graph, packed: Packed, rows: str) -> str:
    """Add the values of all maps: (n_rows, n_values).

    Maps that blend equally many points share their nodes, so that a graph of 300 pairs has no more
    nodes than that of one pair.
    """
    centered = graph.add("Sub", rows, graph.number(packed.center))
    searched = centered
    if packed.projection is not None:
        searched = graph.add("MatMul", centered, graph.number(packed.projection))
    groups: dict[tuple[bool, int, int], list[int]] = defaultdict(list)
    for place, part in enumerate(packed.maps):
        groups[part.n_points > 1, part.n_blended, part.n_values].append(place)
    values = [
        _group_values(graph, [packed.maps[place] for place in places], centered, searched)
        for places in groups.values()
    ]
    if packed.curve is not None:
        start = centered if packed.curve.shift is None else rows
        return _add_curve(graph, packed.curve, start, values[0])
    if len(values) == 1:
        return values[0]
    joined = graph.add("Concat", *values, axis=1)
    order = graph.integers(_column_order(packed, groups.values()))
    return graph.add("Gather", joined, order, axis=1)


def _column_order(packed: Packed, groups: Iterable[list[int]]) -> list[int]:
    """Return the column of each value of each map among those of the groups."""
    ends = np.cumsum([0] + [part.n_values for part in packed.maps])
    order = [
        column
        for places in groups
        for place in places
        for column in range(ends[place], ends[place + 1])
    ]
    return [int(column) for column in np.argsort(order)]


def _group_values(graph: Graph, maps: list[PackedMap], centered: str, searched: str) -> str:
    """Add the values of maps of one kind: (n_rows, n_maps * n_values)."""
    if maps[0].n_points == 1:
        return _constant_values(graph, maps, centered)
    n_points = max(part.n_points for part in maps)
    scores = _scores(graph, maps, n_points, searched)
    if maps[0].n_blended == 1:
        nearest = graph.add("ArgMin", scores, axis=2, keepdims=1)
        values = _point_values(graph, maps, n_points, nearest, centered)
    else:
        nearest, weights = _blend(graph, scores, maps[0].n_blended)
        each = _point_values(graph, maps, n_points, nearest, centered)
        values = graph.total(graph.add("Mul", each, weights), 2)
    return graph.shaped(values, 0, len(maps) * maps[0].n_values)


def _constant_values(graph: Graph, maps: list[PackedMap], centered: str) -> str:
    """Add the values of maps with a single point, which is always the nearest."""
    slopes = np.concatenate([part.slopes[0] for part in maps])
    offsets = np.concatenate([part.offsets[0] for part in maps])
    products = graph.add("MatMul", centered, graph.number(slopes.T))
    return graph.add("Add", products, graph.number(offsets))


def _scores(graph: Graph, maps: list[PackedMap], n_points: int, searched: str) -> str:
    """Add the scores of all points: (n_rows, n_maps, n_points)."""
    shape = len(maps), n_points
    points = np.zeros((*shape, maps[0].points.shape[1]))
    # Places without a point have a score that is never the lowest.
    biases = np.full(shape, np.finfo(graph.dtype).max)
    for place, part in enumerate(maps):
        points[place, : part.n_points] = part.points
        biases[place, : part.n_points] = part.biases
    products = graph.add("MatMul", searched, graph.number(points.reshape(-1, points.shape[2]).T))
    scores = graph.add("Sub", graph.number(biases.ravel()), products)
    return graph.shaped(scores, 0, *shape)


def _blend(graph: Graph, scores: str, n_blended: int) -> tuple[str, str]:
    """Add the nearest points, and weights that fall to 0 at the score of the next point."""
    size = graph.integers([n_blended + 1])
    ranked, nearest = graph.add_many("TopK", 2, scores, size, axis=2, largest=0, sorted=1)
    radius = graph.columns(ranked, n_blended, n_blended + 1, 2)
    margins = graph.add("Sub", radius, graph.columns(ranked, 0, n_blended, 2))
    total = graph.total(margins, 2)
    is_zero = graph.add("Equal", total, graph.number(0.0))
    divisor = graph.add("Where", is_zero, graph.number(1.0), total)
    shares = graph.add("Div", margins, divisor)
    weights = graph.add("Where", is_zero, graph.number(1.0 / n_blended), shares)
    return (
        graph.columns(nearest, 0, n_blended, 2),
        graph.add("Unsqueeze", weights, graph.integers([3])),
    )


def _point_values(
    graph: Graph, maps: list[PackedMap], n_points: int, nearest: str, centered: str
) -> str:
    """Add the values of the nearest points: (n_rows, n_maps, n_nearest, n_values)."""
    n_values, n_features = maps[0].slopes.shape[1:]
    slopes = np.zeros((len(maps), n_points, n_values, n_features))
    offsets = np.zeros((len(maps), n_points, n_values))
    for place, part in enumerate(maps):
        slopes[place, : part.n_points] = part.slopes
        offsets[place, : part.n_points] = part.offsets
    firsts = n_points * np.arange(len(maps)).reshape(-1, 1)
    places = graph.add("Add", nearest, graph.integers(firsts))
    nearest_slopes = graph.add(
        "Gather", graph.number(slopes.reshape(-1, n_values, n_features)), places, axis=0
    )
    shape = len(maps), maps[0].n_blended, n_values
    flat = graph.shaped(nearest_slopes, 0, math.prod(shape), n_features)
    products = graph.add("MatMul", flat, graph.shaped(centered, 0, n_features, 1))
    nearest_offsets = graph.add(
        "Gather", graph.number(offsets.reshape(-1, n_values)), places, axis=0
    )
    return graph.add("Add", graph.shaped(products, 0, *shape), nearest_offsets)


def _add_curve(graph: Graph, curve: PackedCurve, rows: str, values: str) -> str:
    """Add the curved base to the values of a map: (n_rows, n_values)."""
    terms = _curve_terms(graph, curve, rows)
    square = graph.total(graph.add("Mul", terms, terms), 1)
    decayed = graph.add("Mul", square, graph.number(curve.decay))
    q = graph.add("Div", graph.number(1.0), graph.add("Add", decayed, graph.number(1.0)))
    linear = graph.add("MatMul", terms, graph.number(curve.slopes.T))
    plain = graph.add("Mul", q, graph.add("Add", linear, graph.number(curve.constants)))
    start = graph.add("Add", values, graph.add("Mul", q, plain))
    if curve.squares is None:
        return start
    small = graph.add("Mul", terms, q)
    if curve.shape == "quadratic":
        firsts, seconds = (graph.integers(index) for index in np.triu_indices(curve.n_terms))
        small = graph.add("Gather", small, firsts, axis=1)
        terms = graph.add("Gather", terms, seconds, axis=1)
    products = graph.add("Mul", small, terms)
    sums = graph.add("MatMul", products, graph.number(curve.squares.T))
    curved = graph.add("Add", start, graph.add("Mul", q, sums))
    return curved if curve.n_listed is None else _list_curved(graph, start, curved, curve.n_listed)


def _curve_terms(graph: Graph, curve: PackedCurve, rows: str) -> str:
    """Add the terms of the curved base, with rows limited so that squares do not overflow."""
    if curve.columns is not None:
        rows = graph.add("Gather", rows, graph.integers(curve.columns), axis=1)
    if curve.shift is not None:
        rows = graph.add("Sub", rows, graph.number(curve.shift))
    limits = _curve_limits(curve, graph.dtype)
    rows = graph.add("Max", graph.add("Min", rows, graph.number(limits)), graph.number(-limits))
    if curve.projection is not None:
        rows = graph.add("MatMul", rows, graph.number(curve.projection))
    if curve.scale is not None:
        rows = graph.add("Mul", rows, graph.number(curve.scale))
    return rows if curve.offsets is None else graph.add("Add", rows, graph.number(curve.offsets))


def _curve_limits(curve: PackedCurve, dtype: np.dtype[Any]) -> Array:
    """Return how large each shifted feature may be: beyond it the curved base is practically 0."""
    largest = float(np.finfo(dtype).max)
    root = np.sqrt(largest / (8.0 * curve.n_terms))
    if curve.projection is not None:
        weights = len(curve.projection) * np.abs(curve.projection).max(axis=1).astype(np.float64)
    elif curve.scale is not None:
        weights = np.abs(curve.scale).astype(np.float64)
    else:
        weights = np.ones(curve.n_terms)
    return np.asarray(root / np.maximum(weights, root / largest))


def _list_curved(graph: Graph, plain: str, curved: str, n_listed: int) -> str:
    """Add the curved values of the classes with the largest plain ones; no other is above them."""
    size, one = graph.integers([n_listed]), graph.integers([1])
    _, places = graph.add_many("TopK", 2, plain, size, axis=1, largest=1, sorted=1)
    listed = graph.add("GatherElements", curved, places, axis=1)
    lowest, _ = graph.add_many("TopK", 2, listed, one, axis=1, largest=0, sorted=1)
    bounded = graph.add("Min", plain, lowest)
    return graph.add("ScatterElements", bounded, places, listed, axis=1)


def decide(graph: Graph, scheme: Scheme, values: str) -> tuple[str, str]:
    """Add the class index and the probabilities of each row."""
    if scheme.name not in DECISIONS:
        raise unknown_scheme(scheme, [*DECISIONS, "exact"], "ONNX")
    return DECISIONS[scheme.name](graph, scheme, values)


def _decide_pairwise(graph: Graph, scheme: Scheme, values: str) -> tuple[str, str]:
    """Add votes or coupled probabilities; two classes have one value."""
    if scheme.n_classes == 2:
        return _decide_two(graph, values)
    raw = _couple(graph, values, scheme.n_classes)
    if isinstance(scheme, PairwiseScheme) and not scheme.by_vote:
        return highest(graph, raw), raw
    class_index = highest(graph, count_votes(graph, values, scheme.n_classes))
    return class_index, _make_largest(graph, raw, class_index, scheme.n_classes)


def _decide_one_vs_rest(graph: Graph, scheme: Scheme, values: str) -> tuple[str, str]:
    """Add the class furthest inside its border, and a softmax of the values below zero."""
    class_index = highest(graph, values)
    below = graph.add("Min", values, graph.number(0.0))
    raw = graph.add("Softmax", graph.add("Mul", below, graph.number(2.0)), axis=1)
    return class_index, _make_largest(graph, raw, class_index, scheme.n_classes)


def _decide_shared(graph: Graph, scheme: Scheme, values: str) -> tuple[str, str]:
    """Add the class of the largest value; the values are logits."""
    class_index = highest(graph, values)
    raw = graph.add("Softmax", values, axis=1)
    return class_index, _make_largest(graph, raw, class_index, scheme.n_classes)


def _decide_shortlist(graph: Graph, scheme: Scheme, values: str) -> tuple[str, str]:
    """Add the predictions for 2, 3 … selected classes; take those for the number of a row."""
    assert isinstance(scheme, ShortlistScheme)
    n_classes, max_classes = scheme.n_classes, min(scheme.max_classes, scheme.n_classes)
    scores = graph.columns(values, 0, n_classes, 1)
    pairs = graph.columns(values, n_classes, n_classes * (n_classes + 1) // 2, 1)
    count, selected = _select_classes(graph, scheme, scores)
    class_index, probabilities = highest(graph, scores), graph.add("Softmax", scores, axis=1)
    start = probabilities
    for size in range(2, max_classes + 1):
        compared = graph.columns(selected, 0, size, 1)
        decisions = _selected_pairs(graph, scheme, scores, pairs, compared, size)
        winner, shortlisted = _decide_selected(graph, scheme, decisions, compared, start, size)
        is_size = graph.add("Equal", count, graph.integers([[size]]))
        probabilities = graph.add("Where", is_size, shortlisted, probabilities)
        class_index = graph.add("Where", graph.shaped(is_size, -1), winner, class_index)
    return class_index, _make_largest(graph, probabilities, class_index, n_classes)


def _decide_tree(graph: Graph, scheme: Scheme, values: str) -> tuple[str, str]:
    """Add the class whose path all nodes agree with, and products of branch probabilities."""
    assert isinstance(scheme, TreeScheme)
    paths = _paths(scheme)
    is_second = compare_with_zero(graph, values, "Greater")
    agreed = graph.add("MatMul", is_second, graph.number(paths[1] - paths[0]))
    # Minus the number of nodes on the path that disagree: 0 for one class only.
    class_index = highest(graph, graph.add("Sub", agreed, graph.number(paths[1].sum(axis=0))))
    doubled = graph.add("Mul", values, graph.number(2.0))
    costs = [
        graph.add("MatMul", _softplus(graph, side), graph.number(steps))
        for side, steps in zip((doubled, graph.add("Neg", doubled)), paths, strict=True)
    ]
    raw = graph.add("Exp", graph.add("Neg", graph.add("Add", *costs)))
    return class_index, _make_largest(graph, raw, class_index, scheme.n_classes)


DECISIONS: dict[str, Callable[[Graph, Scheme, str], tuple[str, str]]] = {
    "pairwise": _decide_pairwise,
    "one-vs-rest": _decide_one_vs_rest,
    "shared": _decide_shared,
    "shortlist": _decide_shortlist,
    "tree": _decide_tree,
}


def _decide_two(graph: Graph, values: str) -> tuple[str, str]:
    """Add the classes of one border: the second one where the value is above zero."""
    is_second = graph.add("Greater", values, graph.number(0.0))
    class_index = graph.shaped(graph.add("Cast", is_second, to=INT64), -1)
    raw = graph.add("Sigmoid", graph.add("Mul", values, graph.number(2.0)))
    # The sigmoid of a value just above zero rounds to a half: its class must be the larger.
    least = graph.number(0.5 + 4 * np.finfo(graph.dtype).eps)
    second = graph.add("Max", raw, graph.add("Where", is_second, least, graph.number(0.0)))
    first = graph.add("Sub", graph.number(1.0), second)
    return class_index, graph.add("Concat", first, second, axis=1)


def _select_classes(graph: Graph, scheme: ShortlistScheme, scores: str) -> tuple[str, str]:
    """Add the number of selected classes, (n_rows, 1), and their indices in ascending order.

    Beyond that number, the index of the last class fills up.
    """
    max_classes = min(scheme.max_classes, scheme.n_classes)
    size, last = graph.integers([max_classes]), graph.integers(scheme.n_classes - 1)
    ranked, places = graph.add_many("TopK", 2, scores, size, axis=1, largest=1, sorted=1)
    least = graph.add("Sub", graph.columns(ranked, 0, 1, 1), graph.number(scheme.logit_margin))
    is_near = graph.add("GreaterOrEqual", ranked, least)
    count = graph.total(graph.add("Cast", is_near, to=INT64), 1)
    # An index beyond all classes sorts last.
    unsorted = graph.add("Where", is_near, places, graph.integers(scheme.n_classes))
    selected, _ = graph.add_many("TopK", 2, unsorted, size, axis=1, largest=0, sorted=1)
    return count, graph.add("Min", selected, last)


def _selected_pairs(
    graph: Graph, scheme: ShortlistScheme, scores: str, pairs: str, selected: str, size: int
) -> str:
    """Add the values of pairs of selected classes, averaged with differences of the first map."""
    places = np.array(class_pairs(size))
    numbers = np.zeros((scheme.n_classes, scheme.n_classes), dtype=np.int64)
    for number, (i, j) in enumerate(class_pairs(scheme.n_classes)):
        numbers[i, j] = number
    firsts, seconds = (
        graph.add("Gather", selected, graph.integers(places[:, side]), axis=1) for side in (0, 1)
    )
    rows = graph.add("Mul", firsts, graph.integers(scheme.n_classes))
    pair_numbers = graph.add(
        "Gather", graph.integers(numbers.ravel()), graph.add("Add", rows, seconds), axis=0
    )
    evaluated = graph.add("GatherElements", pairs, pair_numbers, axis=1)
    second, first = (
        graph.add("GatherElements", scores, side, axis=1) for side in (seconds, firsts)
    )
    differences = graph.add("Sub", second, first)
    return graph.add(
        "Add",
        graph.add("Mul", evaluated, graph.number(scheme.pair_weight)),
        graph.add("Mul", differences, graph.number(0.5 * (1.0 - scheme.pair_weight))),
    )


def _decide_selected(
    graph: Graph, scheme: ShortlistScheme, decisions: str, selected: str, start: str, size: int
) -> tuple[str, str]:
    """Add the winner among selected classes, and probabilities; their total stays the same."""
    coupled = _couple_two(graph, decisions) if size == 2 else _couple(graph, decisions, size)
    votes = count_votes(graph, decisions, size) if scheme.by_vote else coupled
    slot = graph.add("ArgMax", votes, axis=1, keepdims=1)
    winner = graph.shaped(graph.add("GatherElements", selected, slot, axis=1), -1)
    total = graph.total(graph.add("GatherElements", start, selected, axis=1), 1)
    divided = graph.add("Mul", coupled, total)
    return winner, graph.add("ScatterElements", start, selected, divided, axis=1)


def _couple(graph: Graph, values: str, n_classes: int) -> str:
    """Add the coupled probabilities of pairs whose values are half their log odds."""
    doubled = graph.add("Mul", values, graph.number(2.0))
    first = graph.add("Sigmoid", graph.add("Neg", doubled))
    return couple_pairs(graph, first, graph.add("Sigmoid", doubled), n_classes)


def _couple_two(graph: Graph, values: str) -> str:
    """Add the probabilities of the two classes of one pair."""
    doubled = graph.add("Mul", values, graph.number(2.0))
    first = graph.add("Sigmoid", graph.add("Neg", doubled))
    return graph.add("Concat", first, graph.add("Sigmoid", doubled), axis=1)


def _softplus(graph: Graph, values: str) -> str:
    """Add log(1 + exp(value)); runtimes have this operator for float32 only."""
    small = graph.add("Exp", graph.add("Neg", graph.add("Abs", values)))
    rest = graph.add("Log", graph.add("Add", small, graph.number(1.0)))
    return graph.add("Add", graph.add("Max", values, graph.number(0.0)), rest)


def _paths(scheme: TreeScheme) -> tuple[Array, Array]:
    """Return the nodes that the path to each class leaves by the first and the second branch."""
    paths = np.zeros((2, len(scheme.children), scheme.n_classes))
    for node, branches in enumerate(split_groups(scheme.children)):
        for side, classes in enumerate(branches):
            paths[side, node, classes] = 1.0
    return paths[0], paths[1]


def _make_largest(graph: Graph, probabilities: str, class_index: str, n_classes: int) -> str:
    """Add ``limes.model.schemes.with_largest_at``.

    The level of the winner and of the classes above it is the highest of the averages of the winner
    and the 0, 1, 2 … largest others.
    """
    numbers = graph.integers(np.arange(n_classes))
    is_winner = graph.add("Equal", graph.shaped(class_index, -1, 1), numbers)
    others = graph.add("Where", is_winner, graph.number(-1.0), probabilities)
    winning = graph.total(graph.add("Where", is_winner, probabilities, graph.number(0.0)), 1)
    size = graph.integers([n_classes - 1])
    ranked, _ = graph.add_many("TopK", 2, others, size, axis=1, largest=1, sorted=1)
    sums = graph.add("CumSum", graph.add("Concat", winning, ranked, axis=1), graph.integers(1))
    levels = graph.add("Div", sums, graph.number(np.arange(1, n_classes + 1)))
    level, _ = graph.add_many("TopK", 2, levels, graph.integers([1]), axis=1, largest=1, sorted=1)
    # Not a product with 1 + margin: runtimes drop factors that they take for 1.
    margin = graph.number(max(WINNER_MARGIN, 4 * np.finfo(graph.dtype).eps))
    above = graph.add("Add", level, graph.add("Mul", level, margin))
    moved = graph.add("Where", is_winner, above, graph.add("Min", probabilities, level))
    shared = graph.add("Div", moved, graph.total(moved, 1))
    largest = graph.shaped(highest(graph, probabilities), -1, 1)
    is_first = graph.add("Equal", largest, graph.shaped(class_index, -1, 1))
    return graph.add("Where", is_first, probabilities, shared)


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Write the nodes of a classifier into a graph of skl2onnx."""
    fast: BordersClassifier = operator.raw_operator
    rows = operator.inputs[0]
    is_double = type(rows.type).__name__ == "DoubleTensorType"
    dtype = np.dtype(np.float64 if is_double else np.float32)
    graph = Graph(dtype, scope.get_unique_variable_name("limes_"))
    names = _as_floats(graph, rows)
    scheme = scheme_to_export(fast, fallback=False)
    label, probabilities = add_classifier(graph, scheme, _converted_labels(fast), names)
    if probabilities is None:
        raise ValueError(
            "skl2onnx expects probabilities, and this source has none: accelerate it with rows, or "
            "use limes.export.onnx.to_onnx."
        )
    for name, array in graph.constants.items():
        container.initializers.append(make_tensor(name, array))
    for node in graph.nodes:
        _add_node(container, node.operator, node.inputs, node.outputs, node.attributes)
    outputs = [output.full_name for output in operator.outputs]
    for tensor, name in zip((label, probabilities), outputs, strict=True):
        _add_node(container, "Identity", [tensor], [name], {})


def _as_floats(graph: Graph, rows: Any) -> str:
    """Return the name of the rows, converted to floats if they are integers."""
    if type(rows.type).__name__ in ("FloatTensorType", "DoubleTensorType"):
        return str(rows.full_name)
    return graph.add("Cast", rows.full_name, to=FLOAT32)


def _converted_labels(fast: BordersClassifier) -> Any:
    """Return labels as skl2onnx declares them: text or 64-bit integers."""
    labels = onnx_labels(fast.model_.classes)
    return labels if labels.dtype.kind == "U" else labels.astype(np.int64)


def _add_node(
    container: Any, operator: str, inputs: list[str], outputs: list[str], attributes: dict[str, Any]
) -> None:
    """Write one node."""
    container.add_node(
        operator,
        inputs,
        outputs,
        op_version=container.target_opset_any_domain(""),
        name=f"{outputs[0]}_node",
        **attributes,
    )
