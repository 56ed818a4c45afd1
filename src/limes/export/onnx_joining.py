"""From the values of maps to classes and probabilities, as ONNX nodes."""

from collections.abc import Callable

import numpy as np

from limes.coupling import class_pairs
from limes.export.fitted import unknown_scheme
from limes.export.graph import Graph
from limes.schemes.pairwise import PairwiseScheme
from limes.schemes.protocol import MARGIN, Scheme


def join(graph: Graph, scheme: Scheme, values: str) -> tuple[str, str]:
    """Add the class number and the probabilities of each row.

    Parameters
    ----------
    graph : Graph
        Changed.
    scheme : Scheme
        How the maps are joined.
    values : str
        Name of the tensor of their values, of shape (n_rows, n_values).

    Returns
    -------
    codes, probabilities : str
        Names of tensors of shapes (n_rows,) and (n_rows, n_classes).
    """
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


JOINS: dict[str, Callable[[Graph, Scheme, str], tuple[str, str]]] = {
    "pairwise": _join_pairwise,
    "one-vs-rest": _join_one_vs_rest,
    "shared": _join_shared,
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
    is_second = graph.add("Greater", values, graph.number(0.0))
    won = graph.add("Where", is_second, graph.number(1.0), graph.number(0.0))
    moved = graph.add("MatMul", won, graph.number(seconds - firsts))
    return graph.add("Add", moved, graph.number(firsts.sum(axis=0)))


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
