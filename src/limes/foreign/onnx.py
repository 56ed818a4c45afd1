"""SVMs inside ONNX files, as skl2onnx writes them."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from limes._typing import Array
from limes.libsvm import LibsvmClassifier
from limes.libsvm.scaling import FeatureScaling
from limes.model.svm import Kernel, TrainedSvm

MAX_FILE_BYTES = 1 << 30
KERNELS = {"LINEAR": "linear", "POLY": "poly", "RBF": "rbf", "SIGMOID": "sigmoid"}
# Operators before the SVM that change no value but its type.
PLAIN_OPERATORS = ("Cast", "Identity")


def read_onnx_model(path: str | os.PathLike[str]) -> Any:
    """Read the ``SVMClassifier`` of an ONNX file, with the scaler before it.

    Parameters
    ----------
    path : path-like
        ONNX file whose input goes to an ``SVMClassifier``, directly or through a ``Scaler``: what
        skl2onnx makes of an ``SVC`` or ``NuSVC``, alone or after a ``StandardScaler``.

    Returns
    -------
    LibsvmClassifier or Pipeline
        The fitted classifier, after its scaling if the file has one.

    Examples
    --------
    >>> import pathlib, tempfile, warnings
    >>> from skl2onnx import to_onnx
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> X, y = make_moons(100, noise=0.1, random_state=0)
    >>> path = pathlib.Path(tempfile.mkdtemp(), "moons.onnx")
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # skl2onnx reads an attribute that will be removed
    ...     graph = to_onnx(SVC().fit(X, y), X[:1])
    >>> _ = path.write_bytes(graph.SerializeToString())
    >>> read_onnx_model(path).predict([[0.0, 1.0], [1.0, -0.5]])
    array([0, 1])
    """
    name = os.fspath(path)
    graph = _load(path, name)
    nodes = [node for node in graph.node if node.op_type == "SVMClassifier"]
    if len(nodes) != 1:
        # A name that is no UTF-8 comes as bytes.
        found = sorted({str(node.op_type) for node in graph.node})[:10]
        raise ValueError(
            f"{name}: expected an ONNX model with one SVMClassifier, found {len(nodes)} among "
            f"{str(found)[:200]}."
        )
    model = _read_svm(_attributes(nodes[0], name), name)
    scaling = _read_steps(graph, nodes[0], model.n_features_in_, name)
    return model if scaling is None else Pipeline([("scale", scaling), ("model", model)])


def _load(path: str | os.PathLike[str], name: str) -> Any:
    """Return the graph of an ONNX file."""
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError as error:
        raise ImportError(
            f"{name}: an ONNX model needs the package onnx: pip install limes[export]."
        ) from error
    if os.stat(path).st_size > MAX_FILE_BYTES:
        raise ValueError(f"{name}: expected a file of at most {MAX_FILE_BYTES} bytes.")
    try:
        return onnx.ModelProto.FromString(Path(path).read_bytes()).graph
    except (DecodeError, UnicodeError, ValueError):
        raise ValueError(f"{name}: expected an ONNX model, found other bytes.") from None


def _attributes(node: Any, name: str) -> dict[str, Any]:
    """Return the attributes of an operator: words, and lists of numbers or words."""
    found: dict[str, Any] = {}
    for attribute in node.attribute:
        key = attribute.name
        if attribute.floats:
            # A signalling NaN warns when it is converted; it is refused below as any other.
            with np.errstate(invalid="ignore"):
                found[key] = np.array(attribute.floats, dtype=np.float64)
        elif attribute.ints:
            found[key] = np.array(attribute.ints, dtype=np.int64)
        elif attribute.strings:
            found[key] = np.array([_text(one, name) for one in attribute.strings])
        elif attribute.s:
            found[key] = _text(attribute.s, name)
    return found


def _text(data: bytes, name: str) -> str:
    """Return bytes as text."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{name}: expected text in UTF-8, found other bytes.") from None


def _read_svm(attributes: dict[str, Any], name: str) -> LibsvmClassifier:
    """Return the SVM of the operator's attributes."""
    labels = attributes.get("classlabels_ints", attributes.get("classlabels_strings"))
    if (
        not isinstance(labels, np.ndarray)
        or len(labels) < 2
        or len(set(labels.tolist())) < len(labels)
    ):
        raise ValueError(f"{name}: expected two labels or more that differ in the SVMClassifier.")
    kernel = _make_kernel(attributes, name)
    n_classes = len(labels)
    n_pairs = n_classes * (n_classes - 1) // 2
    counts = _numbers(attributes, "vectors_per_class", name, n_classes)
    if (counts < 0).any() or counts.sum() > 2**31:
        raise ValueError(f"{name}: expected counts as vectors_per_class, found {counts[:5]}.")
    n_vectors = int(counts.sum())
    coefs = _numbers(attributes, "coefficients", name, (n_classes - 1) * n_vectors)
    flat = _numbers(attributes, "support_vectors", name)
    if not n_vectors or not len(flat) or len(flat) % n_vectors:
        raise ValueError(
            f"{name}: expected {n_vectors} support vectors, found {len(flat)} numbers."
        )
    rho = _numbers(attributes, "rho", name, n_pairs)
    sigmoids = None
    if "prob_a" in attributes or "prob_b" in attributes:
        sigmoids = np.array(
            [_numbers(attributes, key, name, n_pairs) for key in ("prob_a", "prob_b")]
        )
    svm = TrainedSvm(
        kernel=kernel,
        vectors=flat.reshape(n_vectors, -1),
        dual_coef=coefs.reshape(n_classes - 1, n_vectors),
        intercepts=rho,
        n_support=counts.astype(np.intp),
    )
    return LibsvmClassifier(svm, labels, sigmoids=sigmoids, iterate_two_classes=True)


def _make_kernel(attributes: dict[str, Any], name: str) -> Kernel:
    """Return the kernel with its constants: gamma, coef0 and degree."""
    word = attributes.get("kernel_type", "LINEAR")
    if not isinstance(word, str) or word not in KERNELS:
        raise ValueError(
            f"{name}: expected one of the kernels {', '.join(KERNELS)}, found {str(word)[:60]!r}."
        )
    if word == "LINEAR":
        return Kernel("linear")
    gamma, coef0, degree = _numbers(attributes, "kernel_params", name, 3).tolist()
    try:
        if not 0 <= degree <= 1000:
            raise ValueError(f"degree must be from 0 to 1000, got {degree!r}.")
        return Kernel(KERNELS[word], gamma=gamma, degree=degree, coef0=coef0)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _numbers(
    attributes: dict[str, Any], key: str, name: str, n_numbers: int | None = None
) -> Array:
    """Return finite numbers of an attribute, so many if that is known."""
    found = attributes.get(key)
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "if":
        raise ValueError(f"{name}: expected numbers as {key} of the operator, found none.")
    if n_numbers is not None and len(found) != n_numbers:
        raise ValueError(f"{name}: expected {n_numbers} numbers as {key}, found {len(found)}.")
    if not np.isfinite(found).all():
        raise ValueError(f"{name}: expected finite numbers as {key}.")
    return found.astype(np.float64)


def _read_steps(graph: Any, node: Any, n_features: int, name: str) -> FeatureScaling | None:
    """Return the scaling between the input and the SVM; other operators are refused."""
    makers = {output: one for one in graph.node for output in one.output}
    inputs = {one.name for one in graph.input}
    shift, scale = np.zeros(n_features), np.ones(n_features)
    has_scaling = False
    for _ in range(len(graph.node) + 1):
        if len(node.input) < 1:
            break
        source = node.input[0]
        if source in inputs:
            return FeatureScaling(shift, scale) if has_scaling else None
        if source not in makers:
            break
        node = makers[source]
        if node.op_type == "Scaler":
            attributes = _attributes(node, name)
            inner_shift = _broadcast(attributes, "offset", n_features, name)
            inner_scale = _broadcast(attributes, "scale", n_features, name)
            # (x - a) * b, then (… - shift) * scale.
            with np.errstate(all="ignore"):
                # Infinite if the shift of a feature comes after a factor of 0.
                is_used = (inner_scale != 0) | (shift != 0)
                shift = inner_shift + np.divide(
                    shift, inner_scale, out=np.zeros(n_features), where=is_used
                )
                scale = scale * inner_scale
            if not (np.isfinite(shift).all() and np.isfinite(scale).all()):
                raise ValueError(f"{name}: expected a Scaler with numbers of moderate size.")
            has_scaling = True
        elif node.op_type not in PLAIN_OPERATORS:
            raise ValueError(
                f"{name}: expected nothing but a Scaler between the input and the SVMClassifier, "
                f"found {node.op_type[:60]!r}: give the classifier of the original pipeline to "
                "limes.accelerate."
            )
    raise ValueError(f"{name}: expected an SVMClassifier that is connected to the input.")


def _broadcast(attributes: dict[str, Any], key: str, n_features: int, name: str) -> Array:
    """Return one number a feature, from as many or from one for all."""
    numbers = _numbers(attributes, key, name)
    if len(numbers) not in (1, n_features):
        raise ValueError(f"{name}: expected {n_features} numbers as {key} of the Scaler.")
    return np.broadcast_to(numbers, n_features).copy()
