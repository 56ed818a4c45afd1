"""Exact sums as ONNX operators."""

from dataclasses import replace
from typing import Any

import numpy as np

from limes._typing import Array
from limes.export.onnx_graph import (
    INT64,
    Graph,
    count_votes,
    couple_pairs,
    couple_pairs_like_libsvm,
    highest,
    largest,
)
from limes.export.rounding import bound_lines, rounding_bound
from limes.model.coupling import LIBSVM_MIN_PROBABILITY, class_pairs
from limes.model.exact import MIN_PROBABILITY, ExactScheme, PairSigmoids
from limes.model.packed import (
    PackedCalibration,
    PackedSums,
    Real,
    pack_calibration,
    pack_sums,
)


def add_exact_sums(graph: Graph, scheme: ExactScheme, rows: str) -> tuple[str, str | None]:
    """Add exact sums; return the names of class indices and of probabilities, if there are any."""
    packed = _without_empty_classes(pack_sums(scheme, graph.dtype))
    calibration = pack_calibration(scheme, packed.weight_unit, graph.dtype)
    values = _values(graph, packed, _prepared(graph, packed, rows))
    probabilities = None
    if packed.is_density:
        probabilities = _density_probabilities(graph, values, packed.n_classes)
    elif calibration is not None:
        probabilities = _probabilities(graph, scheme, packed, calibration, values)
    winner = _winner(graph, scheme, values, probabilities)
    order = scheme.class_order
    if np.array_equal(order, np.arange(len(order))):
        return winner, probabilities
    class_index = graph.add("Gather", graph.integers(order), winner, axis=0)
    if probabilities is not None:
        columns = graph.integers(np.argsort(order))
        probabilities = graph.add("Gather", probabilities, columns, axis=1)
    return class_index, probabilities


def exact_notes(scheme: ExactScheme, dtype: np.dtype[Any]) -> list[str]:
    """Return what a model of exact sums states about itself, as lines."""
    packed = pack_sums(scheme, dtype)
    bound = rounding_bound(packed, dtype, expands_squares=True)
    return bound_lines(packed, bound, scheme.rule, dtype)


def _without_empty_classes(packed: PackedSums) -> PackedSums:
    """Return the same sums with a vector of weight 0 for each class without vectors."""
    if packed.slopes is not None or (packed.n_support > 0).all():
        return packed
    if packed.is_density:
        # A vector of no class, so that no array is empty.
        vectors = np.vstack([packed.vectors, 0 * packed.vectors.sum(axis=0)])
        return replace(packed, vectors=vectors)
    places = np.cumsum(packed.n_support)[packed.n_support == 0]
    return replace(
        packed,
        vectors=np.insert(packed.vectors, places, 0.0, axis=0),
        weights=np.insert(packed.weights, places, 0.0, axis=0),
        n_support=np.maximum(packed.n_support, 1),
    )


def _prepared(graph: Graph, packed: PackedSums, rows: str) -> str:
    """Add the rows after centering and linear steps."""
    if packed.center is not None:
        rows = graph.add("Sub", rows, graph.number(packed.center))
    if packed.projection is not None:
        rows = graph.add("MatMul", rows, graph.number(packed.projection))
    if packed.columns is not None:
        rows = graph.add("Gather", rows, graph.integers(packed.columns), axis=1)
    if packed.scale is not None:
        rows = graph.add("Mul", rows, graph.number(packed.scale))
    if packed.offsets is not None:
        rows = graph.add("Add", rows, graph.number(packed.offsets))
    return rows


def _values(graph: Graph, packed: PackedSums, rows: str) -> str:
    """Add the decision values of all pairs, or densities relative to the largest term of a row."""
    if packed.is_density:
        return _densities(graph, packed, rows)
    if packed.slopes is not None:
        sums = graph.add("MatMul", rows, graph.number(packed.slopes.T))
    elif packed.n_classes == 2:
        sums = graph.add("MatMul", _kernels(graph, packed, rows), graph.number(packed.weights))
    else:
        sums = _pair_sums(graph, packed, _kernels(graph, packed, rows))
    return graph.add("Add", sums, graph.number(packed.intercepts))


def _kernels(graph: Graph, packed: PackedSums, rows: str) -> str:
    """Add the kernels of all rows with all vectors."""
    kernel = packed.kernel
    if kernel.name == "rbf":
        return graph.add("Exp", _exponents(graph, packed, rows))
    products = graph.add("MatMul", rows, graph.number(packed.vectors.T))
    if kernel.name == "linear":
        return products
    base = graph.add("Add", products, graph.number(kernel.coef0))
    return graph.add("Tanh", base) if kernel.name == "sigmoid" else _power(graph, base, kernel)


def _exponents(graph: Graph, packed: PackedSums, rows: str) -> str:
    """Add -gamma |z - s|², from products: no array of rows times vectors times features."""
    vectors = packed.vectors.astype(np.float64)
    # Beyond this a row is far from all vectors, and the terms of its distances could overflow.
    limit = float(np.sqrt(np.finfo(graph.dtype).max / (8.0 * packed.n_outputs)))
    rows = graph.add("Clip", rows, graph.number(-limit), graph.number(limit))
    products = graph.add("MatMul", rows, graph.number(-2.0 * vectors.T))
    shifted = graph.add("Add", products, graph.number(np.square(vectors).sum(axis=1)))
    squares = graph.total(graph.add("Mul", rows, rows), 1)
    # A squared distance below 0 is a rounding error.
    distances = graph.add("Max", graph.add("Add", shifted, squares), graph.number(0.0))
    return graph.add("Mul", distances, graph.number(-packed.kernel.gamma))


def _power(graph: Graph, base: str, kernel: Any) -> str:
    """Add an integer power by repeated squaring, which rounds less than logarithms do."""
    exponent, result, square = int(kernel.degree), None, base
    while exponent:
        if exponent % 2:
            result = square if result is None else graph.add("Mul", result, square)
        exponent //= 2
        if exponent:
            square = graph.add("Mul", square, square)
    if result is not None:
        return result
    return graph.add("Add", graph.add("Mul", base, graph.number(0.0)), graph.number(1.0))


def _pair_sums(graph: Graph, packed: PackedSums, kernels: str) -> str:
    """Add the sums of pairs, each class with its own weights: those of other pairs are 0."""
    n_classes, sizes = packed.n_classes, packed.n_support
    parts = graph.add_many("Split", n_classes, kernels, graph.integers(sizes), axis=1)
    ends = np.cumsum(sizes)
    sums = [
        graph.add("MatMul", part, graph.number(packed.weights[end - size : end]))
        for part, end, size in zip(parts, ends, sizes, strict=True)
    ]
    joined = graph.add("Concat", *sums, axis=1)
    pairs = np.array(class_pairs(n_classes))
    firsts = pairs[:, 0] * (n_classes - 1) + pairs[:, 1] - 1
    seconds = pairs[:, 1] * (n_classes - 1) + pairs[:, 0]
    sides = [
        graph.add("Gather", joined, graph.integers(side), axis=1) for side in (firsts, seconds)
    ]
    return graph.add("Add", *sides)


def _densities(graph: Graph, packed: PackedSums, rows: str) -> str:
    """Add the densities of classes, divided by the largest term of each row."""
    classes, n_vectors = (
        np.repeat(np.arange(packed.n_classes), packed.n_support),
        len(packed.vectors),
    )
    is_class = np.zeros((n_vectors, packed.n_classes))
    is_class[np.arange(len(classes)), classes] = 1.0
    # The term of a vector of no class is never the largest.
    priors = np.full(n_vectors, np.finfo(graph.dtype).min / 4)
    priors[: len(classes)] = packed.intercepts[classes]
    exponents = graph.add("Add", _exponents(graph, packed, rows), graph.number(priors))
    # Finite, so that the difference of two infinities does not appear.
    finite = graph.add("Max", largest(graph, exponents), graph.number(np.finfo(graph.dtype).min))
    terms = graph.add("Exp", graph.add("Sub", exponents, finite))
    return graph.add("MatMul", terms, graph.number(is_class))


def _density_probabilities(graph: Graph, densities: str, n_classes: int) -> str:
    """Add the shares of densities; equal ones where all are 0."""
    total = graph.total(densities, 1)
    is_zero = graph.add("Equal", total, graph.number(0.0))
    shares = graph.add("Div", densities, graph.add("Where", is_zero, graph.number(1.0), total))
    return graph.add("Where", is_zero, graph.number(1.0 / n_classes), shares)


def _winner(graph: Graph, scheme: ExactScheme, values: str, probabilities: str | None) -> str:
    """Add the class of the sums that wins, in their own order."""
    n_classes = scheme.n_classes
    if scheme.rule == "density":
        return highest(graph, values)
    if scheme.rule == "likeliest":
        assert probabilities is not None
        return highest(graph, probabilities)
    operator = "GreaterOrEqual" if scheme.rule == "votes" else "Greater"
    votes = count_votes(graph, values, n_classes, is_second=operator)
    if scheme.rule != "ties broken":
        return highest(graph, votes)
    most = largest(graph, votes)
    least = graph.number(np.finfo(graph.dtype).min)
    sums = graph.add("MatMul", values, graph.number(_signs(n_classes)))
    return highest(graph, graph.add("Where", graph.add("Equal", votes, most), sums, least))


def _signs(n_classes: int) -> Array:
    """Return for each pair and class: -1 where it is the first, 1 where it is the second."""
    pairs, unit = np.array(class_pairs(n_classes)), np.eye(n_classes)
    return np.asarray(unit[pairs[:, 1]] - unit[pairs[:, 0]])


def _probabilities(
    graph: Graph,
    scheme: ExactScheme,
    packed: PackedSums,
    calibration: PackedCalibration,
    values: str,
) -> str:
    """Add the source's probabilities, the classes in the order of the sums."""
    n_classes, source = packed.n_classes, scheme.probabilities
    if isinstance(source, PairSigmoids):
        coupled = _coupled(graph, source, calibration, values, n_classes)
        if source.inverse_temperature == 1.0:
            return coupled
        logs = graph.add("Log", graph.add("Max", coupled, graph.number(MIN_PROBABILITY)))
        scaled = graph.add("Mul", logs, graph.number(source.inverse_temperature))
        return graph.add("Softmax", scaled, axis=1)
    if n_classes == 2:
        second = _calibrated(graph, calibration, values)
        return graph.add("Concat", graph.add("Sub", graph.number(1.0), second), second, axis=1)
    votes = count_votes(graph, values, n_classes)
    sums = graph.add("MatMul", values, graph.number(_signs(n_classes)))
    size = graph.add("Add", graph.add("Abs", sums), graph.number(packed.one))
    shares = graph.add("Div", sums, graph.add("Mul", size, graph.number(3.0)))
    found = _calibrated(graph, calibration, graph.add("Add", votes, shares))
    return _density_probabilities(graph, found, n_classes)


def _coupled(
    graph: Graph, source: PairSigmoids, calibration: PackedCalibration, values: str, n_classes: int
) -> str:
    """Add the coupled probabilities of pairs."""
    scaled = graph.add("Mul", values, graph.number(calibration.slopes))
    logits = graph.add("Add", scaled, graph.number(calibration.shifts))
    first, second = graph.add("Sigmoid", graph.add("Neg", logits)), graph.add("Sigmoid", logits)
    if source.like_libsvm:
        least = LIBSVM_MIN_PROBABILITY
        low, high = graph.number(least), graph.number(1.0 - least)
        first, second = (
            graph.add("Min", graph.add("Max", side, low), high) for side in (first, second)
        )
    if n_classes == 2:
        return graph.add("Concat", first, second, axis=1)
    if source.like_libsvm:
        return couple_pairs_like_libsvm(graph, first, second, n_classes)
    return couple_pairs(graph, first, second, n_classes)


def _calibrated(graph: Graph, calibration: PackedCalibration, values: str) -> str:
    """Add the calibrated probability of each column."""
    if not calibration.isotonic:
        scaled = graph.add("Mul", values, graph.number(calibration.slopes))
        return graph.add("Sigmoid", graph.add("Add", scaled, graph.number(calibration.shifts)))
    columns = [
        _interpolated(graph, *function, graph.columns(values, place, place + 1, 1))
        for place, function in enumerate(calibration.isotonic)
    ]
    return columns[0] if len(columns) == 1 else graph.add("Concat", *columns, axis=1)


def _interpolated(graph: Graph, thresholds: Real, levels: Real, column: str) -> str:
    """Add ``numpy.interp`` of a column of values."""
    if len(thresholds) == 1:
        return graph.add("Add", graph.add("Mul", column, graph.number(0.0)), graph.number(levels))
    is_reached = graph.add("GreaterOrEqual", column, graph.number(thresholds[1:-1]))
    place = graph.total(graph.add("Cast", is_reached, to=INT64), 1)
    start, step, low, rise = (
        graph.add("Gather", graph.number(table), place, axis=0)
        for table in (thresholds[:-1], np.diff(thresholds), levels[:-1], np.diff(levels))
    )
    share = graph.add("Div", graph.add("Sub", column, start), step)
    inside = graph.add("Min", graph.add("Max", share, graph.number(0.0)), graph.number(1.0))
    return graph.add("Add", low, graph.add("Mul", rise, inside))
