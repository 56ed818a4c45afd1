"""From the values of maps to classes and probabilities, as ONNX nodes."""

from collections.abc import Callable

import numpy as np

from limes._typing import Array
from limes.coupling import class_pairs
from limes.export.fitted import unknown_scheme
from limes.export.graph import Graph
from limes.schemes.grouping import split_groups
from limes.schemes.pairwise import PairwiseScheme
from limes.schemes.protocol import MARGIN, Scheme
from limes.schemes.shortlist import ShortlistScheme
from limes.schemes.tree import TreeScheme


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
    codes = _highest(graph, _count_votes(graph, values, scheme.n_classes))
    return codes, _put_first(graph, own, codes, scheme.n_classes)


def _join_one_vs_rest(graph: Graph, scheme: Scheme, values: str) -> tuple[str, str]:
    """Add the class furthest inside its border, and what the values say of the others."""
    codes = _highest(graph, values)
    below = graph.add("Min", values, graph.number(0.0))
    own = graph.add("Softmax", graph.add("Mul", below, graph.number(2.0)), axis=1)
    return codes, _put_first(graph, own, codes, scheme.n_classes)


def _join_shared(graph: Graph, scheme: Scheme, values: str) -> tuple[str, str]:
    """Add the class of the largest value; the values are logits."""
    codes = _highest(graph, values)
    own = graph.add("Softmax", values, axis=1)
    return codes, _put_first(graph, own, codes, scheme.n_classes)


def _join_shortlist(graph: Graph, scheme: Scheme, values: str) -> tuple[str, str]:
    """Add the answers for 2, 3 ... named classes, and take that of as many as a row has."""
    assert isinstance(scheme, ShortlistScheme)
    n_classes, n_named = scheme.n_classes, min(scheme.n_named, scheme.n_classes)
    scores = graph.columns(values, 0, n_classes, 1)
    pairs = graph.columns(values, n_classes, n_classes * (n_classes + 1) // 2, 1)
    count, named = _name_classes(graph, scheme, scores)
    codes, probabilities = _highest(graph, scores), graph.add("Softmax", scores, axis=1)
    start = probabilities
    for size in range(2, n_named + 1):
        own = graph.columns(named, 0, size, 1)
        decisions = _named_pairs(graph, scheme, scores, pairs, own, size)
        winner, shared = _decide_named(graph, scheme, decisions, own, start, size)
        is_size = graph.add("Equal", count, graph.integers([[size]]))
        probabilities = graph.add("Where", is_size, shared, probabilities)
        codes = graph.add("Where", graph.shaped(is_size, -1), winner, codes)
    return codes, _put_first(graph, probabilities, codes, n_classes)


def _join_tree(graph: Graph, scheme: Scheme, values: str) -> tuple[str, str]:
    """Add the class whose way all forks agree to, and the products of branches on each way."""
    assert isinstance(scheme, TreeScheme)
    ways = _ways(scheme)
    won = _won(graph, values)
    agreed = graph.add("MatMul", won, graph.number(ways[1] - ways[0]))
    # As many steps as agree, less those that the way has: zero for one class alone.
    codes = _highest(graph, graph.add("Sub", agreed, graph.number(ways[1].sum(axis=0))))
    doubled = graph.add("Mul", values, graph.number(2.0))
    costs = [
        graph.add("MatMul", _softplus(graph, side), graph.number(steps))
        for side, steps in zip((doubled, graph.add("Neg", doubled)), ways, strict=True)
    ]
    own = graph.add("Exp", graph.add("Neg", graph.add("Add", *costs)))
    return codes, _put_first(graph, own, codes, scheme.n_classes)


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
    codes = graph.shaped(graph.add("Cast", is_second, to=INT64), -1)
    plain = graph.add("Sigmoid", graph.add("Mul", values, graph.number(2.0)))
    # A value that is only just above zero leaves a half in these few digits: its class is first.
    least = graph.number(0.5 + 4 * np.finfo(graph.dtype).eps)
    second = graph.add("Max", plain, graph.add("Where", is_second, least, graph.number(0.0)))
    first = graph.add("Sub", graph.number(1.0), second)
    return codes, graph.add("Concat", first, second, axis=1)


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
    n_named = min(scheme.n_named, scheme.n_classes)
    size, last = graph.integers([n_named]), graph.integers(scheme.n_classes - 1)
    ranked, places = graph.add_many("TopK", 2, scores, size, axis=1, largest=1, sorted=1)
    least = graph.add("Sub", graph.columns(ranked, 0, 1, 1), graph.number(scheme.reach))
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
        graph.add("Mul", asked, graph.number(scheme.trust)),
        graph.add("Mul", rough, graph.number(0.5 * (1.0 - scheme.trust))),
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


def _put_first(graph: Graph, probabilities: str, codes: str, n_classes: int) -> str:
    """Add ``limes.schemes.protocol.put_first``.

    The level that the winner and those above it share is the highest of the averages of the winner
    and the 0, 1, 2 ... largest others.
    """
    numbers = graph.integers(np.arange(n_classes))
    is_winner = graph.add("Equal", graph.shaped(codes, -1, 1), numbers)
    others = graph.add("Where", is_winner, graph.number(-1.0), probabilities)
    own = graph.total(graph.add("Where", is_winner, probabilities, graph.number(0.0)), 1)
    size = graph.integers([n_classes - 1])
    ranked, _ = graph.add_many("TopK", 2, others, size, axis=1, largest=1, sorted=1)
    sums = graph.add("CumSum", graph.add("Concat", own, ranked, axis=1), graph.integers(1))
    levels = graph.add("Div", sums, graph.number(np.arange(1, n_classes + 1)))
    level, _ = graph.add_many("TopK", 2, levels, graph.integers([1]), axis=1, largest=1, sorted=1)
    # Not a product with 1 + margin: runtimes drop factors that they take for 1.
    margin = graph.number(max(MARGIN, 4 * np.finfo(graph.dtype).eps))
    above = graph.add("Add", level, graph.add("Mul", level, margin))
    moved = graph.add("Where", is_winner, above, graph.add("Min", probabilities, level))
    shared = graph.add("Div", moved, graph.total(moved, 1))
    largest = graph.shaped(_highest(graph, probabilities), -1, 1)
    is_first = graph.add("Equal", largest, graph.shaped(codes, -1, 1))
    return graph.add("Where", is_first, probabilities, shared)


# ONNX's number for 64-bit whole numbers.
INT64 = 7
