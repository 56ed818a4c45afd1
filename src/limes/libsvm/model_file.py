"""Read and write LIBSVM model files."""

import os
import re
from array import array
from collections.abc import Iterable, Iterator
from operator import ge
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, NuSVC, OneClassSVM
from sklearn.utils.validation import check_is_fitted

from limes.atomic import atomic_write
from limes.files.batches import as_int32_labels
from limes.files.streams import NumberedLines
from limes.libsvm.classifier import LibsvmClassifier
from limes.libsvm.one_class import LibsvmOneClass
from limes.libsvm.scaling import read_scaling
from limes.model.svm import Kernel, TrainedSvm
from limes.sources.svm import one_class_from_sklearn, svm_from_sklearn

Array = NDArray[np.float64]
# Dense support vectors may take this many times the bytes of their file, which lists nonzero values
# only; the limit lies between the other two bounds.
MAX_EXPANSION = 1 << 15
MIN_BOUND_BYTES = 1 << 26
MAX_BYTES = 1 << 30
# No program writes longer numbers, or whole numbers that exceed 64 bits.
NUMBER = rb"[-+.\deE]{1,100}"
WHOLE = rb"-?\d{1,18}"
SVM_TYPES = ("c_svc", "nu_svc", "one_class")
REGRESSIONS = ("epsilon_svr", "nu_svr")
# LIBSVM's name of each kernel: our name, and the constants that the file must have.
KERNELS = {
    "linear": ("linear", ()),
    "polynomial": ("poly", ("gamma", "degree", "coef0")),
    "rbf": ("rbf", ("gamma",)),
    "sigmoid": ("sigmoid", ("gamma", "coef0")),
}
# Header lines by the type of their values; density marks of one-class models are ignored.
WORD_KEYS = ("svm_type", "kernel_type")
WHOLE_KEYS = ("degree", "nr_class", "total_sv", "label", "nr_sv")
FLOAT_KEYS = ("gamma", "coef0", "rho", "probA", "probB", "prob_density_marks")


def read_libsvm_model(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    max_bytes: int | None = None,
    range: str | os.PathLike[str] | None = None,  # noqa: A002
    widen: bool = False,
) -> Any:
    """Read a model file that ``svm-train`` wrote.

    Parameters
    ----------
    path : path-like
        Text file of a C-SVC, nu-SVC or one-class SVM with a linear, polynomial, RBF or sigmoid
        kernel.
    n_features : int, default=None
        Number of features of the rows. None means the highest in any support vector: give it
        when the last features of your rows can be 0 in all of these.
    max_bytes : int, default=None
        Largest array of support vectors to allow: a short file can contain a very high feature
        index. None allows a gigabyte, and less for a file of a few bytes.
    range : path-like, default=None
        File with the scaling of the features, which becomes part of the model, so that it takes raw
        rows: written by ``svm-scale -s``, by ``write.svm`` of R's e1071, or by Orfeo ToolBox
        (image statistics in XML).
    widen : bool, default=False
        Whether ``n_features`` may be less than the file has: then the larger number counts.

    Returns
    -------
    LibsvmClassifier, LibsvmOneClass or Pipeline
        The fitted classifier, or the outlier detector of ``svm-train -s 2``; with ``range`` a
        pipeline of the scaling and that.

    Examples
    --------
    >>> import tempfile
    >>> text = '''svm_type c_svc
    ... kernel_type linear
    ... nr_class 2
    ... total_sv 2
    ... rho -1
    ... label 7 3
    ... nr_sv 1 1
    ... SV
    ... 0.5 1:0
    ... -0.5 1:2
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "two.model")
    ...     _ = path.write_text(text)
    ...     read_libsvm_model(path).predict([[0.0], [2.0]])
    array([7, 3])
    """
    with Path(path).open("rb") as stream:
        if max_bytes is None:
            max_bytes = _allowed_bytes(os.fstat(stream.fileno()).st_size)
        lines = NumberedLines(stream, os.fspath(path), needs_newline=True)
        header = _read_header(lines)
        table = _read_table(lines, header, max_bytes)
    # LIBSVM numbers features from 1; GRASS GIS and others write models that begin with 0.
    first_index = 0 if (table.features == 0).any() else 1
    scaling = None if range is None else read_scaling(range)
    if scaling is not None or widen:
        widths = [_highest(table, first_index), n_features or 0]
        n_features = max(*widths, 0 if scaling is None else scaling.width(first_index)) or None
    vectors = _dense_vectors(table, lines.name, n_features, max_bytes, first_index)
    model = _make_model(header, table, vectors, first_index)
    if scaling is None or range is None:
        return model
    step = scaling.for_features(model.svm.n_features, first_index, os.fspath(range))
    return Pipeline([("scale", step), ("model", model)])


def _make_model(
    header: "_Header", table: "_Table", vectors: Array, first_index: int
) -> LibsvmClassifier | LibsvmOneClass:
    """Return the model of a header and its support vectors."""
    is_one_class = header.svm_type == "one_class"
    # LIBSVM's value is positive for inliers, ours for the second class.
    sign = -1.0 if is_one_class else 1.0
    svm = TrainedSvm(
        kernel=header.kernel,
        vectors=vectors,
        dual_coef=sign * table.coefs.T,
        intercepts=-sign * header.rho,
        n_support=header.nr_sv,
    )
    if is_one_class:
        return LibsvmOneClass(svm, first_index=first_index)
    return LibsvmClassifier(
        svm,
        header.labels,
        svm_type=header.svm_type,
        sigmoids=header.sigmoids,
        first_index=first_index,
    )


def _allowed_bytes(n_bytes: int) -> int:
    """Return the memory limit of the support vectors of a file of this size."""
    return min(MAX_BYTES, max(MIN_BOUND_BYTES, MAX_EXPANSION * n_bytes))


class _Fields:
    """Header lines by key, each with its line number for messages."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: dict[str, list[Any]] = {}
        self.lines: dict[str, int] = {}

    def take(self, key: str, n_values: int = 1) -> list[Any]:
        """Return the values after a key, which must exist and have this number of values."""
        if key not in self.values:
            raise ValueError(f"{self.name}: expected a line {key!r} before 'SV', found none.")
        if len(self.values[key]) != n_values:
            raise self.error(key, f"{n_values} values after {key!r}", len(self.values[key]))
        return self.values[key]

    def error(self, key: str, expected: str, found: object) -> ValueError:
        """Return the error for a line that is not what was expected."""
        place = f"{self.name}, line {self.lines[key]}"
        return ValueError(f"{place}: expected {expected}, found {found!r}.")


class _Header(NamedTuple):
    """The checked header of a file."""

    svm_type: str
    kernel: Kernel
    total_sv: int
    rho: Array
    labels: NDArray[np.int64]
    nr_sv: NDArray[np.int64]
    sigmoids: Array | None


class _Table(NamedTuple):
    """Support vectors in sparse form: coefficients, number of features, feature indices, values."""

    coefs: Array
    counts: NDArray[np.int64]
    features: Array
    values: Array


def _read_header(lines: NumberedLines) -> _Header:
    """Read up to the line 'SV' and check that the header is consistent."""
    fields = _read_fields(lines)
    (svm_type,) = fields.take("svm_type")
    if svm_type not in SVM_TYPES:
        if svm_type in REGRESSIONS:
            raise ValueError(
                f"{lines.name}: expected a classifier, found the regression model {svm_type!r}: "
                "limes replaces classifiers and one-class SVMs only."
            )
        raise fields.error("svm_type", f"svm_type {', '.join(SVM_TYPES)}", svm_type)
    (n_classes,) = fields.take("nr_class")
    if n_classes < 2:
        raise fields.error("nr_class", "2 classes or more", n_classes)
    if svm_type == "one_class":
        return _one_class_header(fields)
    n_pairs = n_classes * (n_classes - 1) // 2
    labels, nr_sv = fields.take("label", n_classes), fields.take("nr_sv", n_classes)
    if len(set(labels)) < n_classes:
        raise fields.error("label", "labels that differ", labels[:10])
    (total_sv,) = fields.take("total_sv")
    if min(nr_sv) < 0 or sum(nr_sv) != total_sv:
        raise fields.error("nr_sv", f"counts that sum to total_sv {total_sv}", sum(nr_sv))
    has_sigmoids = "probA" in fields.values or "probB" in fields.values
    sigmoids = [fields.take(key, n_pairs) for key in ("probA", "probB") if has_sigmoids]
    return _Header(
        svm_type=svm_type,
        kernel=_make_kernel(fields),
        total_sv=total_sv,
        rho=np.array(fields.take("rho", n_pairs)),
        labels=np.array(labels),
        nr_sv=np.array(nr_sv),
        sigmoids=np.array(sigmoids) if has_sigmoids else None,
    )


def _one_class_header(fields: _Fields) -> _Header:
    """Return the header of a one-class SVM, which has neither labels nor counts."""
    (total_sv,) = fields.take("total_sv")
    if total_sv < 0:
        raise fields.error("total_sv", "0 support vectors or more", total_sv)
    return _Header(
        svm_type="one_class",
        kernel=_make_kernel(fields),
        total_sv=total_sv,
        rho=np.array(fields.take("rho", 1)),
        labels=np.array([-1, 1]),
        nr_sv=np.array([0, total_sv]),
        sigmoids=None,
    )


def _read_fields(lines: NumberedLines) -> _Fields:
    """Read the lines of the header, each key once, as words or finite numbers."""
    fields = _Fields(lines.name)
    known = WORD_KEYS + WHOLE_KEYS + FLOAT_KEYS
    while (words := lines.next().split()) != [b"SV"]:
        key = words[0].decode("ascii", "replace") if words else ""
        if key not in known or key in fields.values:
            raise lines.error(f"'SV' or one of {', '.join(known)}, each once")
        fields.values[key] = _parse_words(key, words[1:], lines)
        fields.lines[key] = lines.number
    return fields


def _parse_words(key: str, words: list[bytes], lines: NumberedLines) -> list[Any]:
    """Return the values after a key of the header."""
    if key in WORD_KEYS:
        return [word.decode("ascii", "replace")[:60] for word in words]
    pattern = re.compile(WHOLE if key in WHOLE_KEYS else NUMBER)
    if not all(map(pattern.fullmatch, words)):
        raise lines.error(f"numbers after {key!r}")
    return [int(word) for word in words] if key in WHOLE_KEYS else lines.as_floats(words)


def _make_kernel(fields: _Fields) -> Kernel:
    """Return the kernel with its constants."""
    (word,) = fields.take("kernel_type")
    if word not in KERNELS:
        raise fields.error("kernel_type", f"one of {', '.join(KERNELS)}", word)
    name, keys = KERNELS[word]
    constants = {key: fields.take(key)[0] for key in keys}
    try:
        return Kernel(name, **constants)
    except ValueError as error:
        raise ValueError(f"{fields.name}: {error}") from None


def _read_table(lines: NumberedLines, header: _Header, max_bytes: int) -> _Table:
    """Read the support vectors; memory grows with the lines read, not with the header's counts."""
    n_coefs = len(header.labels) - 1
    pattern = _vector_pattern(n_coefs)
    coefs, pairs, counts = array("d"), array("d"), array("q")
    for place in range(header.total_sv):
        match = pattern.fullmatch(lines.next())
        if match is None:
            raise lines.error(
                f"{n_coefs} coefficients and then index:value pairs "
                f"(support vector {place + 1} of {header.total_sv})"
            )
        coefs.extend(lines.as_floats(match[1].split()))
        features = lines.as_floats(match[2].replace(b":", b" ").split())
        _check_features(features[::2], lines)
        pairs.extend(features)
        counts.append(len(features) // 2)
        if 4 * len(pairs) > max_bytes:
            raise lines.error(f"support vectors of at most max_bytes={max_bytes}")
    while text := lines.next():
        if text.strip():
            raise lines.error(f"the end of the file after {header.total_sv} support vectors")
    numbers = np.array(pairs)
    return _Table(
        np.array(coefs).reshape(-1, n_coefs), np.array(counts), numbers[::2], numbers[1::2]
    )


def _vector_pattern(n_coefs: int) -> re.Pattern[bytes]:
    """Return the pattern of a support vector: coefficients, then index:value pairs."""
    more = rb"{%d}" % (n_coefs - 1)
    coefs = rb"\s*(" + NUMBER + rb"(?:[ \t]+" + NUMBER + rb")" + more + rb")"
    return re.compile(coefs + rb"((?:[ \t]+\d{1,15}:" + NUMBER + rb")*+)\s*")


def _check_features(features: list[float], lines: NumberedLines) -> None:
    """Check that the feature indices of a vector rise, as LIBSVM requires."""
    if any(map(ge, features, features[1:])):
        raise lines.error("feature indices, each above the one before")


def _highest(table: _Table, first_index: int) -> int:
    """Return the number of features up to the highest of any vector."""
    return int(table.features.max(initial=first_index - 1)) - first_index + 1


def _dense_vectors(
    table: _Table, name: str, n_features: int | None, max_bytes: int, first_index: int
) -> NDArray[np.float64]:
    """Return the support vectors as a dense array, if it is not too large."""
    highest = _highest(table, first_index)
    if n_features is not None and n_features < highest:
        raise ValueError(f"{name}: n_features must be {highest} or more, got {n_features!r}.")
    width = highest if n_features is None else n_features
    if width == 0:
        raise ValueError(f"{name}: expected a feature in some support vector; give n_features.")
    n_bytes = 8 * len(table.counts) * width
    if n_bytes > max_bytes:
        raise ValueError(
            f"{name}: expected support vectors of at most max_bytes={max_bytes}, found "
            f"{len(table.counts)} with {width} features ({n_bytes} bytes)."
        )
    vectors = np.zeros((len(table.counts), width))
    rows = np.repeat(np.arange(len(vectors)), table.counts)
    vectors[rows, table.features.astype(np.int64) - first_index] = table.values
    return vectors


def write_libsvm_model(
    model: SVC | NuSVC | OneClassSVM | LibsvmClassifier | LibsvmOneClass,
    path: str | os.PathLike[str],
) -> None:
    """Write an SVM as a model file for ``svm-predict``.

    Numbers are written with every bit. The file is written under another name beside ``path`` and
    then renamed: if writing fails, ``path`` is unchanged.

    Parameters
    ----------
    model : SVC, NuSVC, OneClassSVM, LibsvmClassifier or LibsvmOneClass
        Fitted, with whole numbers as labels: LIBSVM has no others. Sigmoids are written for a
        ``LibsvmClassifier`` that has them.
    path : path-like
        File to write.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> svc = SVC(kernel="linear").fit([[0.0], [2.0]], [3, 7])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_libsvm_model(svc, Path(folder, "two.model"))
    ...     lines = Path(folder, "two.model").read_text().splitlines()
    >>> lines[:3], lines[-1]
    (['svm_type c_svc', 'kernel_type linear', 'nr_class 2'], '-0.5 1:2.0 ')
    """
    lines = _model_lines(_as_libsvm(model))
    with atomic_write(path) as stream:
        stream.writelines(line.encode("ascii") for line in lines)


def _as_libsvm(model: Any) -> LibsvmClassifier | LibsvmOneClass:
    """Return any of the accepted models as a ``LibsvmClassifier``."""
    if isinstance(model, LibsvmClassifier | LibsvmOneClass):
        return model
    if isinstance(model, OneClassSVM):
        return LibsvmOneClass(one_class_from_sklearn(model))
    if not isinstance(model, SVC | NuSVC):
        raise TypeError(f"expected an SVC, NuSVC, OneClassSVM or LibsvmClassifier, got {model!r}.")
    check_is_fitted(model)
    svm_type = "nu_svc" if isinstance(model, NuSVC) else "c_svc"
    labels = as_int32_labels(model.classes_, program="LIBSVM").astype(np.int64)
    return LibsvmClassifier(svm_from_sklearn(model), labels, svm_type=svm_type)


def _model_lines(model: LibsvmClassifier | LibsvmOneClass) -> Iterator[str]:
    """Yield the lines of the file, one support vector at a time."""
    svm = model.svm
    yield f"svm_type {model.svm_type}\n"
    yield from _kernel_lines(svm.kernel)
    yield f"nr_class {svm.n_classes}\ntotal_sv {len(svm.vectors)}\n"
    sign = 1.0
    if isinstance(model, LibsvmOneClass):
        sign = -1.0
        yield f"rho {_join(svm.intercepts)}\nSV\n"
    else:
        yield f"rho {_join(-svm.intercepts)}\nlabel {_join(model.labels)}\n"
        if model.sigmoids is not None:
            yield f"probA {_join(model.sigmoids[0])}\nprobB {_join(model.sigmoids[1])}\n"
        yield f"nr_sv {_join(svm.n_support)}\nSV\n"
    for coefs, vector in zip(sign * svm.dual_coef.T, svm.vectors, strict=True):
        places = np.flatnonzero(vector)
        pairs = zip((places + model.first_index).tolist(), vector[places].tolist(), strict=True)
        # LIBSVM ends each line with a space, and its reader expects one after the coefficients.
        yield " ".join([_join(coefs), *(f"{place}:{value!r}" for place, value in pairs), "\n"])


def _kernel_lines(kernel: Kernel) -> Iterator[str]:
    """Yield the name of the kernel and the constants that it uses."""
    yield f"kernel_type {'polynomial' if kernel.name == 'poly' else kernel.name}\n"
    if kernel.name == "poly":
        yield f"degree {int(kernel.degree)}\n"
    if kernel.name != "linear":
        yield f"gamma {kernel.gamma!r}\n"
    if kernel.name in ("poly", "sigmoid"):
        yield f"coef0 {kernel.coef0!r}\n"


def _join(numbers: NDArray[Any]) -> str:
    """Return numbers with every bit, separated by spaces."""
    values: Iterable[float] = numbers.tolist()
    return " ".join(map(repr, values))
