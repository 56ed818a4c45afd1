"""Fitted classifiers as ONNX models."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from limes.classifier import BordersClassifier
from limes.export.fitted import fitted_scheme
from limes.export.graph import Graph, to_model
from limes.export.onnx_joining import join
from limes.export.onnx_maps import map_values
from limes.export.packed import pack, resolve_dtype

__all__ = ["to_onnx"]


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
    codes, probabilities = join(graph, scheme, values)
    return graph.add("Gather", graph.constant(labels), codes, axis=0), probabilities


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
