"""Pipelines with a borders classifier in them, as ONNX models by the package skl2onnx."""

from typing import Any

import numpy as np

from limes.classifier import BordersClassifier
from limes.export.graph import Graph, make_tensor
from limes.export.onnx import add_classifier, onnx_labels

__all__ = ["register"]


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


# ONNX's number for float32.
FLOAT32 = 1
