"""What every C header has: names, labels, limits of AVR and rows with their expected classes."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import limes
from limes._typing import Array, Indices, Labels
from limes.export.c_text import c_comment, c_string, elements, lines
from limes.fast_estimator import FastEstimator
from limes.model.exact import FallbackScheme
from limes.model.model import FeatureStatistics
from limes.model.packed import TableSizes, label_type

# Largest table of avr-gcc, and what pgm_read_* can address, less some for vectors of interrupts
# and other constants.
AVR_MAX_TABLE = 32767
AVR_MAX_TABLES = 60000
# LIMES_READ's names of the types of labels.
READ_NAMES = {"long long": "int64_t", "unsigned long long": "uint64_t"}
# Rows of a test vector, and synthetic rows to choose them from.
N_TEST_ROWS = 20
MAX_TEST_ROWS = 64
N_SYNTHETIC_ROWS = 2000
# Share of a standard deviation by which a test row may be moved without another label.
TEST_MARGIN = 1e-3


@dataclass(frozen=True, eq=False)
class CHeader:
    """A C header, and what is known about it."""

    text: str
    name: str
    # 'float32', 'float64', 'int16' or 'int8'.
    dtype: str
    sizes: TableSizes
    # Of the arrays that are alive at once during a prediction, at most.
    stack_bytes: int
    # C's type of a label.
    label_type: str
    # Share of given rows with the label of the float model; None where it was not measured.
    agreement: float | None = None

    @property
    def avr_reason(self) -> str:
        """Why AVR refuses it, in one sentence; empty where it does not."""
        return avr_reason(self.sizes, np.dtype(self.dtype))


def check_name(name: str) -> str:
    """Return a name if it is an identifier of C."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,62}", name):
        raise ValueError(
            "name must be letters, digits and underscores after a letter, at most 63 in all, got "
            f"{name!r}."
        )
    return name


def common_parts(
    fast: FastEstimator,
    name: str,
    sizes: TableSizes,
    dtype: np.dtype[Any],
    *,
    labels_name: str | None = None,
) -> tuple[dict[str, bool], dict[str, object]]:
    """Return the flags and fields of every header; one whose labels are elsewhere is a part."""
    is_part, reason = labels_name is not None, avr_reason(sizes, dtype)
    kind, width = label_type(fast.model_.classes)
    flags = {
        "labelled": not is_part,
        "text_labels": width > 0,
        "named_features": hasattr(fast, "feature_names_in_"),
        "without_fallback": isinstance(fast.scheme_, FallbackScheme) and not is_part,
        "for_avr": not reason,
    }
    fields: dict[str, object] = {
        "name": name,
        "NAME": name.upper(),
        "version": limes.__version__,
        "n_bytes": sizes.total,
        "but_labels": " without labels" if is_part else "",
        "labels_name": labels_name or f"{name}_labels",
        "label_type": kind,
        "label_read": READ_NAMES.get(kind, kind),
        "label_width": f"[{width}]" if width else "",
        "labels": lines(_label_literals(fast.model_.classes, kind)),
        "feature_names": _feature_names(fast),
        "avr_reason": f"{name}: {reason}",
    }
    return flags, fields


def avr_reason(sizes: Mapping[str, int], dtype: np.dtype[Any]) -> str:
    """Return why AVR cannot have a header, in one sentence; empty where it can."""
    name, largest = max(sizes.items(), key=lambda item: item[1])
    if dtype == np.float64:
        return "AVR has no float64: export with dtype float32, int16 or int8."
    smaller = "a smaller dtype, or fit with a lower max_bytes"
    if largest > AVR_MAX_TABLE:
        return f"AVR takes tables of {AVR_MAX_TABLE} bytes, {name} has {largest}: use {smaller}."
    total = sum(sizes.values())
    if total > AVR_MAX_TABLES:
        return f"AVR takes {AVR_MAX_TABLES} bytes of tables, found {total}: use {smaller}."
    return ""


def _feature_names(fast: FastEstimator) -> str:
    """Return the lines of the first comment that name the features."""
    names = getattr(fast, "feature_names_in_", ())
    return "\n".join(f" * {place} {c_comment(str(name))}" for place, name in enumerate(names))


def _label_literals(classes: Labels, kind: str) -> list[str]:
    """Return labels as C writes them: text, whole numbers or floats."""
    if kind == "char":
        return [c_string(str(label)) for label in classes]
    if kind == "double":
        return [repr(float(label)) for label in classes]
    if kind == "unsigned long long":
        return [f"{int(label)}ULL" for label in classes]
    if kind == "long":
        return [str(int(label)) for label in classes]
    # C has no literal for the lowest number: the minus sign is an operator.
    return [
        f"{label}LL" if label > -(2**63) else f"({label + 1}LL - 1)" for label in map(int, classes)
    ]


def test_parts(
    rows: NDArray[Any], class_index: Indices, *, is_quantized: bool
) -> tuple[dict[str, bool], dict[str, object]]:
    """Return the flags and fields of rows with their expected classes; none without rows."""
    flags = {"tested": len(rows) > 0, "quantized": is_quantized}
    fields: dict[str, object] = {
        "n_test_rows": len(rows),
        "row_type": "double" if rows.dtype == np.float64 else "float",
        "test_rows": elements(rows),
        "test_classes": lines(map(str, class_index)),
    }
    return flags, fields


def choose_test_rows(
    features: FeatureStatistics | None,
    classify: Callable[[NDArray[Any]], Indices],
    n_classes: int,
    dtype: Any,
) -> tuple[NDArray[Any], Indices]:
    """Return synthetic rows and their classes, in turn one of each class; none without statistics.

    Rows that another class is near to are left out, since its processor may round otherwise.
    """
    n_features = 0 if features is None else len(features.mean)
    if features is None or n_classes >= 2**16:
        return np.empty((0, n_features), dtype), np.empty(0, dtype=np.intp)
    rng = np.random.default_rng(0)
    rows = synthetic_rows(features, rng).astype(dtype)
    class_index = classify(rows)
    is_stable = np.ones(len(rows), dtype=bool)
    for _ in range(4):
        moved = rows + TEST_MARGIN * features.std * rng.choice([-1.0, 1.0], size=rows.shape)
        is_stable &= classify(moved.astype(dtype)) == class_index
    stable = np.flatnonzero(is_stable)
    # The place of each row among those of its class: first rows of all classes come first.
    order = np.argsort(class_index[stable], kind="stable")
    ranked = class_index[stable][order]
    rank = np.arange(len(order)) - np.searchsorted(ranked, ranked)
    n_rows = min(max(N_TEST_ROWS, n_classes), MAX_TEST_ROWS)
    chosen = stable[order[np.argsort(rank, kind="stable")[:n_rows]]]
    return rows[chosen], class_index[chosen]


def synthetic_rows(features: FeatureStatistics, rng: np.random.Generator) -> Array:
    """Return rows with independent features: half of them normal, half uniform in the range."""
    shape = (N_SYNTHETIC_ROWS // 2, len(features.mean))
    normal = features.mean + features.std * rng.normal(size=shape)
    uniform = features.minimum + (features.maximum - features.minimum) * rng.random(shape)
    return np.clip(np.concatenate([normal, uniform]), features.minimum, features.maximum)
