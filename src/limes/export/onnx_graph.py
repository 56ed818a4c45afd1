"""A graph of ONNX operators, and parts of graphs that several schemes share."""

from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limes.model.coupling import LIBSVM_TOLERANCE, class_pairs

# All operators that are used have their present form since this version.
OPSET = 17
IR_VERSION = 8
# ONNX's numbers for types.
FLOAT32 = 1
INT64 = 7
BOOL = 9


@dataclass(frozen=True)
class Node:
    """One operator."""

    # Its name in ONNX.
    operator: str
    # Names of tensors.
    inputs: list[str]
    outputs: list[str]
    # Its settings.
    attributes: dict[str, Any]


@dataclass
class Graph:
    """Nodes and constants, in the order in which they were added.

    Examples
    --------
    >>> graph = Graph(np.dtype("float32"), "")
    >>> graph.add("Mul", "X", graph.number(2.0))
    'Mul_1'
    >>> graph.constants["c0"]
    array(2., dtype=float32)
    """

    # Type of the numbers: float32 or float64.
    dtype: np.dtype[Any]
    # Prefix of every name, so that the graph can be part of a larger one.
    prefix: str
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, NDArray[Any]] = field(default_factory=dict)

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output; return its name."""
        return self.add_many(operator, 1, *inputs, **attributes)[0]

    def add_many(self, operator: str, n_outputs: int, *inputs: str, **attributes: Any) -> list[str]:
        """Add a node; return the names of its outputs."""
        number = len(self.nodes) + len(self.constants)
        base = f"{self.prefix}{operator}_{number}"
        outputs = [base if place == 0 else f"{base}_{place}" for place in range(n_outputs)]
        self.nodes.append(Node(operator, list(inputs), outputs, attributes))
        return outputs

    def number(self, values: ArrayLike) -> str:
        """Add constants of the graph's type; return their name."""
        return self.constant(np.asarray(values, dtype=self.dtype))

    def integers(self, values: ArrayLike) -> str:
        """Add integers, such as axes and indices; return their name."""
        return self.constant(np.asarray(values, dtype=np.int64))

    def constant(self, array: NDArray[Any]) -> str:
        """Add an array as it is; return its name."""
        name = f"{self.prefix}c{len(self.constants)}"
        self.constants[name] = array
        return name

    def columns(self, tensor: str, first: int, last: int, axis: int) -> str:
        """Add the elements from first to before last along an axis; return their name."""
        return self.add(
            "Slice", tensor, self.integers([first]), self.integers([last]), self.integers([axis])
        )

    def total(self, tensor: str, axis: int, *, keep: bool = True) -> str:
        """Add sums along an axis; return their name."""
        return self.add("ReduceSum", tensor, self.integers([axis]), keepdims=int(keep))

    def shaped(self, tensor: str, *shape: int) -> str:
        """Add a reshaped tensor; return its name. 0 stands for the former length of that axis."""
        return self.add("Reshape", tensor, self.integers(shape))


def highest(graph: Graph, scores: str) -> str:
    """Add the index of the highest score, the first of equals."""
    return graph.add("ArgMax", scores, axis=1, keepdims=0)


def largest(graph: Graph, scores: str) -> str:
    """Add the highest score of each row, (n_rows, 1): ``ReduceMax`` depends on the opset."""
    one = graph.integers([1])
    return graph.add_many("TopK", 2, scores, one, axis=1, largest=1, sorted=1)[0]


def count_votes(graph: Graph, values: str, n_classes: int, *, is_second: str = "Greater") -> str:
    """Add the number of pairs that each class wins; the comparison with 0 finds second classes."""
    pairs = np.array(class_pairs(n_classes))
    seconds, firsts = np.eye(n_classes)[pairs[:, 1]], np.eye(n_classes)[pairs[:, 0]]
    gained = graph.add(
        "MatMul", compare_with_zero(graph, values, is_second), graph.number(seconds - firsts)
    )
    return graph.add("Add", gained, graph.number(firsts.sum(axis=0)))


def compare_with_zero(graph: Graph, values: str, operator: str) -> str:
    """Add 1 where a comparison of a value with zero is true, else 0."""
    is_true = graph.add(operator, values, graph.number(0.0))
    return graph.add("Where", is_true, graph.number(1.0), graph.number(0.0))


def couple_pairs(graph: Graph, first: str, second: str, n_classes: int) -> str:
    """Add coupled probabilities: the system of ``limes.model.coupling.couple``, by elimination.

    Its matrix is symmetric and positive definite, so that no pivoting is needed.
    """
    system = _coupling_system(graph, first, second, n_classes)
    for step in range(n_classes):
        system = _eliminate(graph, system, step, n_classes)
    solved = graph.shaped(graph.columns(system, n_classes, n_classes + 1, 2), 0, n_classes)
    positive = graph.add("Max", solved, graph.number(0.0))
    return graph.add("Div", positive, graph.total(positive, 1))


def couple_pairs_like_libsvm(graph: Graph, first: str, second: str, n_classes: int) -> str:
    """Add probabilities coupled as by ``limes.model.coupling.couple_like_libsvm``: a loop."""
    form, _ = _quadratic_forms(graph, first, second, n_classes)
    zeros = graph.add("Mul", graph.columns(first, 0, 1, 1), graph.number(0.0))
    start = graph.add("Add", zeros, graph.number(np.full(n_classes, 1.0 / n_classes)))
    body = Graph(graph.dtype, f"{graph.prefix}loop_")
    state = f"{body.prefix}coupled"
    is_open, coupled = _sweep_like_libsvm(body, form, state, n_classes)
    any_open = body.add("Cast", body.add("ReduceMax", is_open, keepdims=0), to=BOOL)
    names = f"{body.prefix}step", f"{body.prefix}is_open"
    inputs: dict[str, tuple[Any, list[Any]]] = {
        names[0]: (np.int64, []),
        names[1]: (np.bool_, []),
        state: (graph.dtype, ["n_rows", n_classes]),
    }
    outputs: dict[str, tuple[str, Any, list[Any]]] = {
        f"{names[1]}_next": (any_open, np.bool_, []),
        f"{state}_next": (coupled, graph.dtype, ["n_rows", n_classes]),
    }
    n_steps, is_started = graph.integers(max(100, n_classes)), graph.constant(np.array(True))
    subgraph = _to_graph(body, f"{body.prefix}body", inputs, outputs)
    return graph.add("Loop", n_steps, is_started, start, body=subgraph)


def _sweep_like_libsvm(graph: Graph, form: str, start: str, n_classes: int) -> tuple[str, str]:
    """Add one iteration: 1 for rows above LIBSVM's error, a last 0, and coupled probabilities."""
    coupled = start
    products = graph.total(
        graph.add("Mul", form, graph.add("Unsqueeze", start, graph.integers([1]))), 2, keep=False
    )
    total = graph.total(graph.add("Mul", start, products), 1)
    distance = graph.add("Abs", graph.add("Sub", products, total))
    error = largest(graph, distance)
    is_open = graph.add("GreaterOrEqual", error, graph.number(LIBSVM_TOLERANCE / n_classes))
    for place in range(n_classes):
        row = graph.shaped(graph.columns(form, place, place + 1, 1), 0, n_classes)
        own, product = (graph.columns(tensor, place, place + 1, 1) for tensor in (row, products))
        step = graph.add("Div", graph.add("Sub", total, product), own)
        divisor = graph.add("Add", step, graph.number(1.0))
        unit = graph.number(np.eye(n_classes)[place])
        coupled = graph.add("Add", coupled, graph.add("Mul", step, unit))
        coupled = graph.add("Div", coupled, divisor)
        twice = graph.add("Mul", product, graph.number(2.0))
        gain = graph.add("Mul", step, graph.add("Add", graph.add("Mul", step, own), twice))
        total = graph.add("Div", graph.add("Add", total, gain), divisor)
        total = graph.add("Div", total, divisor)
        products = graph.add("Add", products, graph.add("Mul", step, row))
        products = graph.add("Div", products, divisor)
    # The maximum of no rows has no value.
    numbers = graph.shaped(graph.add("Cast", is_open, to=INT64), -1)
    return (
        graph.add("Concat", numbers, graph.integers([0]), axis=0),
        graph.add("Where", is_open, coupled, start),
    )


def _coupling_system(graph: Graph, first: str, second: str, n_classes: int) -> str:
    """Add the matrices Q + ee' of all rows, with a last column of ones."""
    form, diagonal = _quadratic_forms(graph, first, second, n_classes)
    ones = graph.add("Add", graph.add("Mul", diagonal, graph.number(0.0)), graph.number(1.0))
    return graph.add("Concat", graph.add("Add", form, graph.number(1.0)), ones, axis=2)


def _quadratic_forms(graph: Graph, first: str, second: str, n_classes: int) -> tuple[str, str]:
    """Add the matrices Q of all rows, and their diagonals."""
    n_pairs = n_classes * (n_classes - 1) // 2
    # R_ij = P(j | i or j) off the diagonal, gathered from (first, second, zero).
    places = np.full((n_classes, n_classes), 2 * n_pairs)
    for pair, (i, j) in enumerate(class_pairs(n_classes)):
        places[i, j], places[j, i] = n_pairs + pair, pair
    zero = graph.add("Mul", graph.columns(first, 0, 1, 1), graph.number(0.0))
    both = graph.add("Concat", first, second, zero, axis=1)
    matrix = graph.add("Gather", both, graph.integers(places), axis=1)
    transposed = graph.add("Transpose", matrix, perm=[0, 2, 1])
    diagonal = graph.total(graph.add("Mul", matrix, matrix), 2)
    squares = graph.add("Mul", diagonal, graph.number(np.eye(n_classes)))
    return graph.add("Sub", squares, graph.add("Mul", matrix, transposed)), diagonal


def _eliminate(graph: Graph, system: str, step: int, n_classes: int) -> str:
    """Add one step of Gauss-Jordan elimination: a column becomes that of the unit matrix."""
    row = graph.columns(system, step, step + 1, 1)
    column = graph.columns(system, step, step + 1, 2)
    scaled = graph.add("Div", row, graph.columns(row, step, step + 1, 2))
    unit = graph.number(np.eye(n_classes)[:, step : step + 1])
    product = graph.add("Mul", graph.add("Sub", column, unit), scaled)
    return graph.add("Sub", system, product)


def import_onnx() -> ModuleType:
    """Return the package onnx."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError(
            "an export to ONNX needs the package onnx: install limes[export]."
        ) from error
    return onnx


def to_model(
    graph: Graph, n_features: int, outputs: dict[str, tuple[str, Any, list[Any]]], *, notes: str
) -> Any:
    """Return a graph, with notes for readers, as a model that ONNX has checked."""
    onnx = import_onnx()
    inputs = {"X": (graph.dtype, ["n_rows", n_features])}
    opset = onnx.helper.make_opsetid("", OPSET)
    model = onnx.helper.make_model(
        _to_graph(graph, "limes", inputs, outputs),
        opset_imports=[opset],
        ir_version=IR_VERSION,
        producer_name="limes",
    )
    model.doc_string = notes
    onnx.checker.check_model(model, full_check=True)
    return model


def _to_graph(
    graph: Graph,
    name: str,
    inputs: dict[str, tuple[Any, list[Any]]],
    outputs: dict[str, tuple[str, Any, list[Any]]],
) -> Any:
    """Return nodes and constants as a graph of ONNX with named inputs and outputs."""
    helper = import_onnx().helper
    nodes = [
        helper.make_node(
            node.operator, node.inputs, node.outputs, name=node.outputs[0], **node.attributes
        )
        for node in graph.nodes
    ]
    nodes += [
        helper.make_node("Identity", [tensor], [output]) for output, (tensor, *_) in outputs.items()
    ]

    def described(tensor: str, dtype: Any, shape: list[Any]) -> Any:
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return helper.make_tensor_value_info(tensor, kind, shape)

    return helper.make_graph(
        nodes,
        name,
        [described(tensor, *kind) for tensor, kind in inputs.items()],
        [described(tensor, *kind) for tensor, (_, *kind) in outputs.items()],
        [make_tensor(constant, array) for constant, array in graph.constants.items()],
    )


def make_tensor(name: str, array: NDArray[Any]) -> Any:
    """Return a constant as a tensor of ONNX."""
    onnx = import_onnx()
    if array.dtype.kind == "U":
        texts = [text.encode() for text in array.ravel().tolist()]
        return onnx.helper.make_tensor(name, onnx.TensorProto.STRING, array.shape, texts)
    return onnx.numpy_helper.from_array(array, name)
