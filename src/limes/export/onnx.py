"""ONNX nodes of maps and schemes; skl2onnx converter."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limes._typing import Array
from limes.classifier import BordersClassifier
from limes.export.onnx_graph import Graph, make_tensor, to_model
from limes.export.packed import (
    Packed,
    PackedMap,
    fitted_scheme,
    pack,
    resolve_dtype,
    unknown_scheme,
)
from limes.model.coupling import class_pairs
from limes.model.schemes import (
    WINNER_MARGIN,
    PairwiseScheme,
    Scheme,
    ShortlistScheme,
    TreeScheme,
    split_groups,
)

# ONNX's number for float32.
FLOAT32 = 1
# ONNX's number for 64-bit whole numbers.
INT64 = 7


def to_onnx(fast: BordersClassifier, *, dtype: str | None = None) -> Any:
    """Return a fitted classifier as an ONNX model of standard operators.

    Its input ``X`` has the shape (n_rows, n_features). Its outputs are ``label``, of shape
    (n_rows,), and ``probabilities``, of shape (n_rows, n_classes). Rows with a NaN have no answer
    that means anything: ONNX cannot refuse them as Python does. A row takes room for the linear
    functions that answer it, so feed many rows in blocks of some thousand.

    Parameters
    ----------
    fast : BordersClassifier
        Fitted.
    dtype : {'float32', 'float64'} or None, default=None
        Of ``X``, of the arithmetic and of the probabilities; None for that of the classifier.

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
    scheme = fitted_scheme(fast)
    graph = Graph(resolve_dtype(scheme, dtype), "")
    labels = onnx_labels(fast.classes_)
    label, probabilities = add_classifier(graph, fast, labels, "X")
    outputs: dict[str, tuple[str, Any, list[Any]]] = {
        "label": (label, str if labels.dtype.kind == "U" else labels.dtype, ["n_rows"]),
        "probabilities": (probabilities, graph.dtype, ["n_rows", len(labels)]),
    }
    return to_model(graph, fast.n_features_in_, outputs)


def add_classifier(
    graph: Graph, fast: BordersClassifier, labels: NDArray[Any], rows: str
) -> tuple[str, str]:
    """Add a classifier to a graph.

    Parameters
    ----------
    graph : Graph
        Changed.
    fast : BordersClassifier
        Fitted.
    labels : ndarray of shape (n_classes,)
        As ONNX has them.
    rows : str
        Name of the tensor of rows, of the graph's type.

    Returns
    -------
    label, probabilities : str
        Names of tensors.
    """
    scheme = fitted_scheme(fast)
    values = map_values(graph, pack(scheme, graph.dtype), rows)
    class_index, probabilities = join(graph, scheme, values)
    return graph.add("Gather", graph.constant(labels), class_index, axis=0), probabilities


def onnx_labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Return labels as ONNX has them: text, 64-bit whole numbers, truth values or floats.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Labels.

    Returns
    -------
    ndarray of shape (n_classes,)
        The same.
    """
    if classes.dtype.kind in "OU":
        return classes.astype(str)
    if classes.dtype.kind == "u" and classes.max() >= 2**63:
        return classes.astype(np.uint64)
    return classes.astype(np.int64) if classes.dtype.kind in "iu" else classes


def register() -> None:
    """Teach skl2onnx to convert a ``BordersClassifier``, alone or in a pipeline.

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


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Write the nodes of a classifier into a graph of skl2onnx."""
    fast: BordersClassifier = operator.raw_operator
    rows = operator.inputs[0]
    is_double = type(rows.type).__name__ == "DoubleTensorType"
    dtype = np.dtype(np.float64 if is_double else np.float32)
    graph = Graph(dtype, scope.get_unique_variable_name("limes_"))
    names = _add_rows(graph, rows)
    label, probabilities = add_classifier(graph, fast, _labels(fast), names)
    for name, array in graph.constants.items():
        container.initializers.append(make_tensor(name, array))
    for one in graph.nodes:
        _add_node(container, one.operator, one.inputs, one.outputs, one.attributes)
    outputs = [output.full_name for output in operator.outputs]
    for tensor, name in zip((label, probabilities), outputs, strict=True):
        _add_node(container, "Identity", [tensor], [name], {})


def _add_rows(graph: Graph, rows: Any) -> str:
    """Return the name of the rows, whole numbers turned into floats first."""
    if type(rows.type).__name__ in ("FloatTensorType", "DoubleTensorType"):
        return str(rows.full_name)
    return graph.add("Cast", rows.full_name, to=FLOAT32)


def _labels(fast: BordersClassifier) -> Any:
    """Return labels as skl2onnx declares them: text or 64-bit whole numbers."""
    labels = onnx_labels(fast.classes_)
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
    logit_margin = graph.add("Sub", radius, graph.columns(ranked, 0, n_blended, 2))
    total = graph.total(logit_margin, 2)
    is_zero = graph.add("Equal", total, graph.number(0.0))
    divisor = graph.add("Where", is_zero, graph.number(1.0), total)
    shares = graph.add("Div", logit_margin, divisor)
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


def join(graph: Graph, scheme: Scheme, values: str) -> tuple[str, str]:
    """Add the class number and the probabilities of each row."""
    if scheme.name not in JOINS:
        raise unknown_scheme(scheme, JOINS, "ONNX")
    return JOINS[scheme.name](graph, scheme, values)


def _join_pairwise(graph: Graph, scheme: Scheme, values: str) -> tuple[str, str]:
    """Add votes or coupled probabilities; two classes have one value."""
    if scheme.n_classes == 2:
        return _join_two(graph, values)
    own = _couple(graph, values, scheme.n_classes)
    if isinstance(scheme, PairwiseScheme) and not scheme.by_vote:
        return _highest(graph, own), own
    class_index = _highest(graph, _count_votes(graph, values, scheme.n_classes))
    return class_index, _put_first(graph, own, class_index, scheme.n_classes)


def _join_one_vs_rest(graph: Graph, scheme: Scheme, values: str) -> tuple[str, str]:
    """Add the class furthest inside its border, and what the values say of the others."""
    class_index = _highest(graph, values)
    below = graph.add("Min", values, graph.number(0.0))
    own = graph.add("Softmax", graph.add("Mul", below, graph.number(2.0)), axis=1)
    return class_index, _put_first(graph, own, class_index, scheme.n_classes)


def _join_shared(graph: Graph, scheme: Scheme, values: str) -> tuple[str, str]:
    """Add the class of the largest value; the values are logits."""
    class_index = _highest(graph, values)
    own = graph.add("Softmax", values, axis=1)
    return class_index, _put_first(graph, own, class_index, scheme.n_classes)


def _join_shortlist(graph: Graph, scheme: Scheme, values: str) -> tuple[str, str]:
    """Add the answers for 2, 3 ... named classes, and take that of as many as a row has."""
    assert isinstance(scheme, ShortlistScheme)
    n_classes, max_classes = scheme.n_classes, min(scheme.max_classes, scheme.n_classes)
    scores = graph.columns(values, 0, n_classes, 1)
    pairs = graph.columns(values, n_classes, n_classes * (n_classes + 1) // 2, 1)
    count, named = _name_classes(graph, scheme, scores)
    class_index, probabilities = _highest(graph, scores), graph.add("Softmax", scores, axis=1)
    start = probabilities
    for size in range(2, max_classes + 1):
        own = graph.columns(named, 0, size, 1)
        decisions = _named_pairs(graph, scheme, scores, pairs, own, size)
        winner, shared = _decide_named(graph, scheme, decisions, own, start, size)
        is_size = graph.add("Equal", count, graph.integers([[size]]))
        probabilities = graph.add("Where", is_size, shared, probabilities)
        class_index = graph.add("Where", graph.shaped(is_size, -1), winner, class_index)
    return class_index, _put_first(graph, probabilities, class_index, n_classes)


def _join_tree(graph: Graph, scheme: Scheme, values: str) -> tuple[str, str]:
    """Add the class whose way all forks agree to, and the products of branches on each way."""
    assert isinstance(scheme, TreeScheme)
    ways = _ways(scheme)
    won = _won(graph, values)
    agreed = graph.add("MatMul", won, graph.number(ways[1] - ways[0]))
    # As many steps as agree, less those that the way has: zero for one class alone.
    class_index = _highest(graph, graph.add("Sub", agreed, graph.number(ways[1].sum(axis=0))))
    doubled = graph.add("Mul", values, graph.number(2.0))
    costs = [
        graph.add("MatMul", _softplus(graph, side), graph.number(steps))
        for side, steps in zip((doubled, graph.add("Neg", doubled)), ways, strict=True)
    ]
    own = graph.add("Exp", graph.add("Neg", graph.add("Add", *costs)))
    return class_index, _put_first(graph, own, class_index, scheme.n_classes)


JOINS: dict[str, Callable[[Graph, Scheme, str], tuple[str, str]]] = {
    "pairwise": _join_pairwise,
    "one-vs-rest": _join_one_vs_rest,
    "shared": _join_shared,
    "shortlist": _join_shortlist,
    "tree": _join_tree,
}


def _join_two(graph: Graph, values: str) -> tuple[str, str]:
    """Add the classes of one border: the second one where the value is above zero."""
    is_second = graph.add("Greater", values, graph.number(0.0))
    class_index = graph.shaped(graph.add("Cast", is_second, to=INT64), -1)
    plain = graph.add("Sigmoid", graph.add("Mul", values, graph.number(2.0)))
    # A value that is only just above zero leaves a half in these few digits: its class is first.
    least = graph.number(0.5 + 4 * np.finfo(graph.dtype).eps)
    second = graph.add("Max", plain, graph.add("Where", is_second, least, graph.number(0.0)))
    first = graph.add("Sub", graph.number(1.0), second)
    return class_index, graph.add("Concat", first, second, axis=1)


def _highest(graph: Graph, scores: str) -> str:
    """Add the place of the highest score, the lowest of equals."""
    return graph.add("ArgMax", scores, axis=1, keepdims=0)


def _count_votes(graph: Graph, values: str, n_classes: int) -> str:
    """Add the number of pairs that each class wins."""
    pairs = np.array(class_pairs(n_classes))
    seconds, firsts = np.eye(n_classes)[pairs[:, 1]], np.eye(n_classes)[pairs[:, 0]]
    moved = graph.add("MatMul", _won(graph, values), graph.number(seconds - firsts))
    return graph.add("Add", moved, graph.number(firsts.sum(axis=0)))


def _won(graph: Graph, values: str) -> str:
    """Add 1 where a value is above zero, else 0."""
    is_second = graph.add("Greater", values, graph.number(0.0))
    return graph.add("Where", is_second, graph.number(1.0), graph.number(0.0))


def _name_classes(graph: Graph, scheme: ShortlistScheme, scores: str) -> tuple[str, str]:
    """Add how many classes are named, (n_rows, 1), and which, ascending, the last one repeated."""
    max_classes = min(scheme.max_classes, scheme.n_classes)
    size, last = graph.integers([max_classes]), graph.integers(scheme.n_classes - 1)
    ranked, places = graph.add_many("TopK", 2, scores, size, axis=1, largest=1, sorted=1)
    least = graph.add("Sub", graph.columns(ranked, 0, 1, 1), graph.number(scheme.logit_margin))
    is_near = graph.add("GreaterOrEqual", ranked, least)
    count = graph.total(graph.add("Cast", is_near, to=INT64), 1)
    # Beyond all classes, so that they come last.
    open_places = graph.add("Where", is_near, places, graph.integers(scheme.n_classes))
    named, _ = graph.add_many("TopK", 2, open_places, size, axis=1, largest=0, sorted=1)
    return count, graph.add("Min", named, last)


def _named_pairs(
    graph: Graph, scheme: ShortlistScheme, scores: str, pairs: str, named: str, size: int
) -> str:
    """Add the values of the pairs of named classes, in which the shared map has its share."""
    places = np.array(class_pairs(size))
    numbers = np.zeros((scheme.n_classes, scheme.n_classes), dtype=np.int64)
    for number, (i, j) in enumerate(class_pairs(scheme.n_classes)):
        numbers[i, j] = number
    firsts, seconds = (
        graph.add("Gather", named, graph.integers(places[:, side]), axis=1) for side in (0, 1)
    )
    rows = graph.add("Mul", firsts, graph.integers(scheme.n_classes))
    which = graph.add(
        "Gather", graph.integers(numbers.ravel()), graph.add("Add", rows, seconds), axis=0
    )
    asked = graph.add("GatherElements", pairs, which, axis=1)
    second, first = (
        graph.add("GatherElements", scores, side, axis=1) for side in (seconds, firsts)
    )
    rough = graph.add("Sub", second, first)
    return graph.add(
        "Add",
        graph.add("Mul", asked, graph.number(scheme.pair_weight)),
        graph.add("Mul", rough, graph.number(0.5 * (1.0 - scheme.pair_weight))),
    )


def _decide_named(
    graph: Graph, scheme: ShortlistScheme, decisions: str, named: str, start: str, size: int
) -> tuple[str, str]:
    """Add the winner among named classes, and probabilities in which these share what they had."""
    coupled = _couple_two(graph, decisions) if size == 2 else _couple(graph, decisions, size)
    votes = _count_votes(graph, decisions, size) if scheme.by_vote else coupled
    slot = graph.add("ArgMax", votes, axis=1, keepdims=1)
    winner = graph.shaped(graph.add("GatherElements", named, slot, axis=1), -1)
    own = graph.total(graph.add("GatherElements", start, named, axis=1), 1)
    shared = graph.add("Mul", coupled, own)
    return winner, graph.add("ScatterElements", start, named, shared, axis=1)


def _couple_two(graph: Graph, values: str) -> str:
    """Add the probabilities of the two classes of one pair."""
    doubled = graph.add("Mul", values, graph.number(2.0))
    first = graph.add("Sigmoid", graph.add("Neg", doubled))
    return graph.add("Concat", first, graph.add("Sigmoid", doubled), axis=1)


def _softplus(graph: Graph, values: str) -> str:
    """Add log(1 + exp(value)), which runtimes have for float32 only."""
    small = graph.add("Exp", graph.add("Neg", graph.add("Abs", values)))
    rest = graph.add("Log", graph.add("Add", small, graph.number(1.0)))
    return graph.add("Add", graph.add("Max", values, graph.number(0.0)), rest)


def _ways(scheme: TreeScheme) -> tuple[Array, Array]:
    """Return which forks are left by their first and by their second branch on each class's way."""
    ways = np.zeros((2, len(scheme.children), scheme.n_classes))
    for fork, both in enumerate(split_groups(scheme.children)):
        for side, classes in enumerate(both):
            ways[side, fork, classes] = 1.0
    return ways[0], ways[1]


def _couple(graph: Graph, values: str, n_classes: int) -> str:
    """Add coupled probabilities: the system of ``limes.coupling.couple``, solved by elimination.

    Its matrix is symmetric and positive, so that no row has to be exchanged.
    """
    doubled = graph.add("Mul", values, graph.number(2.0))
    second = graph.add("Sigmoid", doubled)
    first = graph.add("Sigmoid", graph.add("Neg", doubled))
    system = _system(graph, first, second, n_classes)
    for step in range(n_classes):
        system = _eliminate(graph, system, step, n_classes)
    solved = graph.shaped(graph.columns(system, n_classes, n_classes + 1, 2), 0, n_classes)
    positive = graph.add("Max", solved, graph.number(0.0))
    return graph.add("Div", positive, graph.total(positive, 1))


def _system(graph: Graph, first: str, second: str, n_classes: int) -> str:
    """Add the matrices Q + ee' of all rows, with a last column of ones."""
    n_pairs = n_classes * (n_classes - 1) // 2
    # R_ij = P(j | i or j) off the diagonal, taken from the pairs' (first, second, nothing).
    places = np.full((n_classes, n_classes), 2 * n_pairs)
    for pair, (i, j) in enumerate(class_pairs(n_classes)):
        places[i, j], places[j, i] = n_pairs + pair, pair
    nothing = graph.add("Mul", graph.columns(first, 0, 1, 1), graph.number(0.0))
    both = graph.add("Concat", first, second, nothing, axis=1)
    against = graph.add("Gather", both, graph.integers(places), axis=1)
    mirrored = graph.add("Transpose", against, perm=[0, 2, 1])
    diagonal = graph.total(graph.add("Mul", against, against), 2)
    squares = graph.add("Mul", diagonal, graph.number(np.eye(n_classes)))
    form = graph.add("Sub", squares, graph.add("Mul", against, mirrored))
    ones = graph.add("Add", graph.add("Mul", diagonal, graph.number(0.0)), graph.number(1.0))
    return graph.add("Concat", graph.add("Add", form, graph.number(1.0)), ones, axis=2)


def _eliminate(graph: Graph, system: str, step: int, n_classes: int) -> str:
    """Add one step of Gauss and Jordan: a column becomes that of the unit matrix."""
    row = graph.columns(system, step, step + 1, 1)
    column = graph.columns(system, step, step + 1, 2)
    scaled = graph.add("Div", row, graph.columns(row, step, step + 1, 2))
    unit = graph.number(np.eye(n_classes)[:, step : step + 1])
    product = graph.add("Mul", graph.add("Sub", column, unit), scaled)
    return graph.add("Sub", system, product)


def _put_first(graph: Graph, probabilities: str, class_index: str, n_classes: int) -> str:
    """Add ``limes.schemes.protocol.with_largest_at``.

    The level that the winner and those above it share is the highest of the averages of the winner
    and the 0, 1, 2 ... largest others.
    """
    numbers = graph.integers(np.arange(n_classes))
    is_winner = graph.add("Equal", graph.shaped(class_index, -1, 1), numbers)
    others = graph.add("Where", is_winner, graph.number(-1.0), probabilities)
    own = graph.total(graph.add("Where", is_winner, probabilities, graph.number(0.0)), 1)
    size = graph.integers([n_classes - 1])
    ranked, _ = graph.add_many("TopK", 2, others, size, axis=1, largest=1, sorted=1)
    sums = graph.add("CumSum", graph.add("Concat", own, ranked, axis=1), graph.integers(1))
    levels = graph.add("Div", sums, graph.number(np.arange(1, n_classes + 1)))
    level, _ = graph.add_many("TopK", 2, levels, graph.integers([1]), axis=1, largest=1, sorted=1)
    # Not a product with 1 + margin: runtimes drop factors that they take for 1.
    margin = graph.number(max(WINNER_MARGIN, 4 * np.finfo(graph.dtype).eps))
    above = graph.add("Add", level, graph.add("Mul", level, margin))
    moved = graph.add("Where", is_winner, above, graph.add("Min", probabilities, level))
    shared = graph.add("Div", moved, graph.total(moved, 1))
    largest = graph.shaped(_highest(graph, probabilities), -1, 1)
    is_first = graph.add("Equal", largest, graph.shaped(class_index, -1, 1))
    return graph.add("Where", is_first, probabilities, shared)
