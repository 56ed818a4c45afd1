"""SVMs that OpenCV's `cv2.ml.SVM.save` wrote, in XML, YAML or JSON."""

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limes._typing import Array
from limes.files.batches import MAX_FEATURES
from limes.files.xml import MAX_DEPTH, Element, read_xml
from limes.libsvm import LibsvmClassifier
from limes.libsvm.one_class import LibsvmOneClass
from limes.model.coupling import class_pairs
from limes.model.svm import Kernel, TrainedSvm

MAX_FILE_BYTES = 1 << 30
MAX_DEGREE = 1000
# OpenCV's name of each kernel: our name, and the constants that the file must have.
KERNELS = {
    "LINEAR": ("linear", ()),
    "POLY": ("poly", ("gamma", "degree", "coef0")),
    "RBF": ("rbf", ("gamma",)),
    "SIGMOID": ("sigmoid", ("gamma", "coef0")),
}
SVM_TYPES = {"C_SVC": "c_svc", "NU_SVC": "nu_svc"}
ONE_CLASS = "ONE_CLASS"
# Possessive quantifiers: there is no backtracking, so long text fails in linear time.
NUMBER = re.compile(r"[-+]?(?:\d++\.?+\d*+|\.\d++)(?:[eE][-+]?\d{1,5}+)?+")
YAML_PAIR = re.compile(r"([A-Za-z_]\w*)\s*:\s*(.*)", re.DOTALL)


def read_opencv_model(path: str | os.PathLike[str]) -> LibsvmClassifier | LibsvmOneClass:
    """Read a model file that ``cv2.ml.SVM.save`` wrote.

    Its labels are those of ``SVM.predict``: the class with most votes of pairs, the first of equal
    ones. A one-class SVM is an outlier detector, whose labels are 1 and -1, where OpenCV's are 1
    and 0. OpenCV sums in float32, so rows within its rounding error of a border may differ.

    Parameters
    ----------
    path : path-like
        XML, YAML or JSON file of a C-SVC, nu-SVC or one-class SVM; the kernel is linear,
        polynomial, RBF or sigmoid.

    Returns
    -------
    LibsvmClassifier or LibsvmOneClass
        The fitted classifier, or the outlier detector.

    Examples
    --------
    >>> import tempfile
    >>> text = '''%YAML:1.0
    ... ---
    ... opencv_ml_svm:
    ...    svmType: C_SVC
    ...    kernel: { type:LINEAR }
    ...    var_count: 1
    ...    class_count: 2
    ...    class_labels: !!opencv-matrix
    ...       data: [ 3, 7 ]
    ...    support_vectors:
    ...       - [ -1. ]
    ...    decision_functions:
    ...       -
    ...          rho: -1.
    ...          alpha: [ 1. ]
    ...          index: [ 0 ]
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "two.yml")
    ...     _ = path.write_text(text)
    ...     read_opencv_model(path).predict([[0.0], [2.0]])
    array([3, 7])
    """
    name = os.fspath(path)
    if os.stat(path).st_size > MAX_FILE_BYTES:
        raise ValueError(f"{name}: expected a file of at most {MAX_FILE_BYTES} bytes.")
    fields = _Fields(_find_model(_parse(Path(path).read_bytes(), name), name), name)
    kind = fields.word("svmType", "svm_type")
    if kind == ONE_CLASS:
        return _read_one_class(fields, name)
    if kind not in SVM_TYPES:
        _refuse_kind(kind, name)
    labels = fields.part("class_labels").whole_numbers("data")
    n_classes = len(labels)
    if n_classes < 2 or len(set(labels)) < n_classes:
        raise ValueError(f"{name}: expected two labels or more that differ, found {labels[:10]}.")
    kernel = _make_kernel(fields.part("kernel"), name)
    vectors = _read_vectors(fields, name)
    n_pairs = n_classes * (n_classes - 1) // 2
    functions = _read_functions(fields, n_pairs, len(vectors), name)
    svm = _join_functions(kernel, vectors, functions, n_classes)
    return LibsvmClassifier(svm, np.array(labels), svm_type=SVM_TYPES[kind])


def _read_one_class(fields: "_Fields", name: str) -> LibsvmOneClass:
    """Return the outlier detector of the only decision function."""
    kernel = _make_kernel(fields.part("kernel"), name)
    vectors = _read_vectors(fields, name)
    ((rho, index, alpha),) = _read_functions(fields, 1, len(vectors), name)
    # OpenCV's value is positive for inliers, ours for the first of two classes.
    svm = TrainedSvm(
        kernel=kernel,
        vectors=vectors[index],
        dual_coef=-alpha[None],
        intercepts=np.array([rho]),
        n_support=np.array([0, len(index)]),
    )
    return LibsvmOneClass(svm)


def _refuse_kind(kind: str, name: str) -> None:
    """Raise the error for an SVM that is neither a classifier nor a one-class SVM."""
    if kind in ("EPS_SVR", "NU_SVR"):
        raise ValueError(
            f"{name}: expected a classifier, found the regression model {kind!r}: limes replaces "
            "classifiers and one-class SVMs only."
        )
    wanted = f"{', '.join(SVM_TYPES)} or {ONE_CLASS}"
    raise ValueError(f"{name}: expected the svmType {wanted}, found {kind[:60]!r}.")


def _make_kernel(fields: "_Fields", name: str) -> Kernel:
    """Return the kernel with its constants."""
    word = fields.word("type")
    if word not in KERNELS:
        raise ValueError(
            f"{name}: expected one of the kernels {', '.join(KERNELS)}, found {word[:60]!r}: train "
            "with one of these."
        )
    kernel, keys = KERNELS[word]
    constants = {key: fields.number(key) for key in keys}
    degree = constants.pop("degree", 3.0)
    try:
        if not 0 <= degree <= MAX_DEGREE:
            raise ValueError(f"degree must be from 0 to {MAX_DEGREE}, got {degree!r}.")
        return Kernel(kernel, degree=degree, **constants)  # type: ignore[arg-type]
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _read_vectors(fields: "_Fields", name: str) -> Array:
    """Return the support vectors, as many numbers in each as there are features."""
    n_features = int(fields.number("var_count"))
    if not 0 < n_features <= MAX_FEATURES:
        raise ValueError(f"{name}: expected 1 to {MAX_FEATURES} features, found {n_features}.")
    rows = [_numbers(one, "support_vectors", name) for one in fields.list("support_vectors")]
    if not rows or any(len(row) != n_features for row in rows):
        raise ValueError(f"{name}: expected support vectors of {n_features} numbers, as var_count.")
    return np.array(rows)


# The offset of a pair, its vectors and their coefficients.
Function = tuple[float, NDArray[np.intp], Array]


def _read_functions(fields: "_Fields", n_wanted: int, n_vectors: int, name: str) -> list[Function]:
    """Return the decision functions, one a pair of classes."""
    listed = fields.list("decision_functions")
    if len(listed) != n_wanted:
        raise ValueError(f"{name}: expected {n_wanted} decision functions, found {len(listed)}.")
    functions = []
    for one in listed:
        part = _Fields(one, name)
        alpha = part.numbers("alpha")
        # All vectors in their order, if there is no index.
        index = part.whole_numbers("index") if "index" in part.values else list(range(n_vectors))
        if len(index) != len(alpha) or not all(0 <= place < n_vectors for place in index):
            raise ValueError(
                f"{name}: expected an index below {n_vectors} for each alpha, found {index[:10]}."
            )
        functions.append((part.number("rho"), np.array(index, dtype=np.intp), np.array(alpha)))
    return functions


def _join_functions(
    kernel: Kernel, vectors: Array, functions: list[Function], n_classes: int
) -> TrainedSvm:
    """Return the SVM, each vector in one class, which all functions that use it have.

    A vector without such a class is repeated for each function.
    """
    pairs = class_pairs(n_classes)
    used: list[set[int]] = [set(range(n_classes)) for _ in vectors]
    for pair, (_, index, _) in zip(pairs, functions, strict=True):
        for place in index.tolist():
            used[place] &= set(pair)
    places: dict[tuple[int, int], int] = {}
    rows: list[list[tuple[int, Array]]] = [[] for _ in range(n_classes)]
    for number, (pair, (_, index, alpha)) in enumerate(zip(pairs, functions, strict=True)):
        for place, coef in zip(index.tolist(), alpha.tolist(), strict=True):
            home = min(used[place], default=pair[0])
            partner = pair[1] if home == pair[0] else pair[0]
            key = (place, -1 if used[place] else number)
            if key not in places:
                places[key] = len(rows[home])
                rows[home].append((place, np.zeros(n_classes - 1)))
            rows[home][places[key]][1][partner - (partner > home)] += coef
    listed = [entry for part in rows for entry in part]
    return TrainedSvm(
        kernel=kernel,
        vectors=vectors[[place for place, _ in listed]],
        dual_coef=np.array([coefs for _, coefs in listed]).reshape(-1, n_classes - 1).T,
        intercepts=np.array([-rho for rho, _, _ in functions]),
        n_support=np.array([len(part) for part in rows]),
    )


class _Fields:
    """The values of a mapping in the file, checked when they are taken."""

    def __init__(self, values: Any, name: str) -> None:
        if not isinstance(values, dict):
            raise ValueError(f"{name}: expected named values, found {_shown(values)}.")
        self.values = values
        self.name = name

    def _take(self, *keys: str) -> Any:
        for key in keys:
            if key in self.values:
                return self.values[key]
        raise ValueError(f"{self.name}: expected {keys[0]!r} in a model of OpenCV, found none.")

    def part(self, key: str) -> "_Fields":
        """Return a mapping inside."""
        return _Fields(self._take(key), self.name)

    def list(self, key: str) -> list[Any]:
        """Return a list."""
        value = self._take(key)
        if not isinstance(value, list):
            raise ValueError(f"{self.name}: expected a list of {key!r}, found {_shown(value)}.")
        return value

    def word(self, *keys: str) -> str:
        """Return a word."""
        value = self._take(*keys)
        if not isinstance(value, str):
            raise ValueError(f"{self.name}: expected a word as {keys[0]!r}, found {_shown(value)}.")
        return value.strip().strip('"')

    def numbers(self, key: str) -> Any:
        """Return numbers."""
        return _numbers(self._take(key), key, self.name)

    def number(self, key: str) -> float:
        """Return a number."""
        numbers = self.numbers(key)
        if len(numbers) != 1:
            raise ValueError(f"{self.name}: expected a number as {key!r}, found {len(numbers)}.")
        return float(numbers[0])

    def whole_numbers(self, key: str) -> Any:
        """Return whole numbers."""
        numbers = self.numbers(key)
        if not all(number == int(number) and abs(number) < 2**31 for number in numbers):
            raise ValueError(f"{self.name}: expected whole numbers as {key!r}.")
        return [int(number) for number in numbers]


def _numbers(value: Any, key: str, name: str) -> Any:
    """Return numbers: a text of them, or a list, finite."""
    words = value.split() if isinstance(value, str) else value
    if isinstance(words, int | float) and not isinstance(words, bool):
        words = [words]
    if not isinstance(words, list):
        raise ValueError(f"{name}: expected numbers as {key!r}, found {_shown(value)}.")
    for word in words:
        is_number = isinstance(word, int | float) and not isinstance(word, bool)
        if not is_number and not (isinstance(word, str) and NUMBER.fullmatch(word)):
            raise ValueError(f"{name}: expected numbers as {key!r}, found {_shown(word)}.")
    try:
        numbers = [float(word) for word in words]
    except OverflowError:
        numbers = [float("inf")]
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name}: expected finite numbers as {key!r}.")
    return numbers


def _shown(value: Any) -> str:
    """Return a value for a message, shortened and on one line."""
    return " ".join(repr(value)[:60].split())


def _parse(data: bytes, name: str) -> Any:
    """Return the content of a file: mappings, lists and text."""
    text = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"<"):
        return {"": _from_xml(read_xml(data, name))}
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{name}: expected text in UTF-8, found other bytes.") from None
    if text.startswith(b"{"):
        try:
            return json.loads(decoded)
        except (ValueError, RecursionError) as error:
            reason = " ".join(str(error).split())[:120]
            raise ValueError(f"{name}: expected JSON, found an error: {reason}.") from None
    return _YamlReader(decoded, name).read()


def _find_model(content: Any, name: str) -> Any:
    """Return the mapping with the SVM, at most three levels down."""
    level = [content]
    for _ in range(3):
        level = [value for one in level if isinstance(one, dict) for value in one.values()]
        for value in level:
            if isinstance(value, dict) and ("svmType" in value or "svm_type" in value):
                return value
    raise ValueError(f"{name}: expected an SVM of OpenCV, with 'svmType', found none.")


def _from_xml(element: Element) -> Any:
    """Return an element as a mapping, a list of its children ``_``, or text."""
    if not element.children:
        return element.text
    if all(child.tag == "_" for child in element.children):
        return [_from_xml(child) for child in element.children]
    return {child.tag: _from_xml(child) for child in element.children}


class _YamlReader:
    """The part of YAML that OpenCV writes: mappings and lists by indentation, lists in brackets."""

    def __init__(self, text: str, name: str) -> None:
        self._name = name
        # Indentation, content and number of each line; text in brackets is one line.
        self._lines: list[tuple[int, str, int]] = []
        self._place = 0
        pending = ""
        start = 0
        for number, line in enumerate(text.splitlines(), start=1):
            if not pending and (not line.strip() or line.startswith(("%", "---", "..."))):
                continue
            start = start if pending else number
            pending = f"{pending} {line.strip()}" if pending else line.rstrip()
            if pending.count("[") > pending.count("]") or pending.count("{") > pending.count("}"):
                continue
            content = pending.lstrip(" ")
            self._lines.append((len(pending) - len(content), content, start))
            pending = ""
        if pending:
            raise ValueError(f"{name}, line {start}: expected ']' or '}}', found the end.")

    def read(self) -> Any:
        """Return the content."""
        value = self._block(-1, 0)
        if self._place < len(self._lines):
            raise self._error("a line that belongs to those before")
        return value

    def _block(self, above: int, depth: int) -> Any:
        """Return the lines that are indented more than the one above."""
        if self._place == len(self._lines) or self._lines[self._place][0] <= above:
            return ""
        if depth > MAX_DEPTH:
            raise self._error(f"at most {MAX_DEPTH} levels")
        indent, content, _ = self._lines[self._place]
        found: Any = [] if content.startswith("-") and not NUMBER.match(content) else {}
        while self._place < len(self._lines) and self._lines[self._place][0] == indent:
            content = self._lines[self._place][1]
            if isinstance(found, list):
                if content != "-" and not content.startswith("- "):
                    raise self._error("'-', as in the lines before")
                found.append(self._value(content[1:].strip(), indent, depth))
                continue
            match = YAML_PAIR.fullmatch(content)
            if match is None:
                raise self._error("a name, a colon and a value")
            found[match[1]] = self._value(match[2].strip(), indent, depth)
        return found

    def _value(self, text: str, indent: int, depth: int) -> Any:
        """Return the value after a name or a dash, on the same line or below."""
        text = re.sub(r"^!!\S+\s*", "", text)
        place = self._place
        self._place += 1
        if not text:
            return self._block(indent, depth + 1)
        if text[0] == "[" and text[-1] == "]" and "[" not in text[1:] and "{" not in text:
            return [word.strip() for word in text[1:-1].split(",")] if text[1:-1].strip() else []
        if text[0] == "{" and text[-1] == "}" and "{" not in text[1:] and "[" not in text:
            pairs = [YAML_PAIR.fullmatch(word.strip()) for word in text[1:-1].split(",")]
            if all(pairs):
                return {pair[1]: pair[2].strip() for pair in pairs if pair}
        elif text[0] not in "[{":
            return text
        self._place = place
        raise self._error("a list or mapping without others inside")

    def _error(self, expected: str) -> ValueError:
        """Return the error of a line that is not what was expected."""
        _, content, number = self._lines[self._place]
        return ValueError(
            f"{self._name}, line {number}: expected {expected}, found {_shown(content)}."
        )
