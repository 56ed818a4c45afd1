"""Entries of the header of a model file: checked values, arrays by number, affine maps."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limes._typing import Array
from limes.model.affine import AffineMap
from limes.model.file_layout import Container

MAX_FEATURES = 1 << 31
# Numbers of a matrix that version 1 stored as a sparse one: 1 GB.
MAX_MATRIX_NUMBERS = 1 << 27
# Names of version 2 that were others in version 1.
VERSION_1_NAMES = {
    "slopes": "normals",
    "preprocessing": "before",
    "matrix": "dense",
    "max_classes": "n_named",
    "logit_margin": "reach",
    "pair_weight": "trust",
    "mean_pairs": "n_asked",
    "agreement_error": "error",
    "is_selected": "is_chosen",
    "skill_loss": "lost",
}


class EntryWriter:
    """Turns values into entries in JSON, collecting arrays on the way."""

    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []

    def add(self, array: NDArray[Any]) -> int:
        """Keep an array; return its number."""
        self.arrays.append(array)
        return len(self.arrays) - 1

    def field(self, value: Any) -> Any:
        """Return a field of a scheme: an array by its number, anything else as it is."""
        if isinstance(value, np.ndarray):
            return self.add(value)
        return value.item() if isinstance(value, np.generic) else value

    def step(self, step: AffineMap) -> dict[str, Any]:
        """Return an affine map in the form that it has."""
        shift = self.add(np.asarray(step.shift, dtype=np.float64))
        if step.matrix is not None:
            return {"shift": shift, "matrix": self.add(np.asarray(step.matrix, dtype=np.float64))}
        return {
            "shift": shift,
            "columns": self.add(np.asarray(step.columns, dtype=np.int64)),
            "scale": self.add(np.asarray(step.scale, dtype=np.float64)),
        }


class EntryReader:
    """Reads entries of a header, trusting none of them."""

    def __init__(self, container: Container) -> None:
        self.container = container
        self.is_version_1 = container.version == 1
        n_features = container.header.get("n_features")
        if type(n_features) is not int or not 0 < n_features < MAX_FEATURES:
            container.fail("a number of features of at least 1", n_features)
        self.n_features = n_features

    def name_in_version(self, name: str) -> str:
        """Return the name of an entry in the version that is read."""
        return VERSION_1_NAMES.get(name, name) if self.is_version_1 else name

    def entry(self, values: dict[str, Any], key: str, kind: type) -> Any:
        """Return an entry of the header, which must be of one type."""
        value = values.get(key)
        if type(value) is not kind:
            self.container.fail(f"{kind.__name__} {key!r} in the header", value)
        return value

    def array(self, values: dict[str, Any], key: str) -> NDArray[Any]:
        """Return the array whose number is an entry of the header."""
        if self.is_version_1 and isinstance(values.get(key), dict):
            values, key = values[key], "array"
        number = self.entry(values, key, int)
        if not 0 <= number < len(self.container.arrays):
            n_arrays = len(self.container.arrays)
            self.container.fail(f"{key!r} to be one of {n_arrays} arrays", number)
        return self.container.arrays[number]

    def typed_array(
        self, values: dict[str, Any], key: str, n_dimensions: int, kinds: str = "f"
    ) -> NDArray[Any]:
        """Return an array of so many dimensions and of one kind of number."""
        key = self.name_in_version(key)
        array = self.array(values, key)
        if array.ndim != n_dimensions or array.dtype.kind not in kinds or array.itemsize < 4:
            expected = f"{key!r} of {n_dimensions} dimensions and kind {kinds!r}"
            shape = f"{array.dtype.str} of shape {array.shape!r}"
            self.container.fail(expected, shape, array=values[key])
        return array

    def step(self, entry: Any) -> AffineMap:
        """Return an affine map from as many features as a row has."""
        if not isinstance(entry, dict):
            self.container.fail("an affine map", entry)
        shift = self.typed_array(entry, "shift", 1)
        if len(shift) != self.n_features:
            self.container.fail(f"an affine map of {self.n_features} features", len(shift))
        if self.name_in_version("matrix") in entry:
            matrix = self.typed_array(entry, "matrix", 2)
            if matrix.shape[0] != self.n_features:
                self.container.fail(f"a matrix of {self.n_features} rows", matrix.shape)
            return AffineMap(shift, matrix)
        if self.is_version_1:
            return self._sparse_step(entry, shift)
        columns = self.typed_array(entry, "columns", 1, "i")
        scale = self.typed_array(entry, "scale", 1)
        self._check_columns(columns, self.n_features, entry["columns"])
        if len(columns) != len(scale) or not len(columns):
            self.container.fail("as many columns as factors", (len(columns), len(scale)))
        return AffineMap(shift, columns=columns.astype(np.intp), scale=scale)

    def _sparse_step(self, entry: dict[str, Any], shift: Array) -> AffineMap:
        """Return an affine map of version 1, whose matrix was stored in compressed rows."""
        n_outputs = self.entry(entry, "n_outputs", int)
        data = self.typed_array(entry, "data", 1)
        indices = self.typed_array(entry, "indices", 1, "i")
        starts = self.typed_array(entry, "indptr", 1, "i")
        if not 0 < n_outputs <= len(data) or len(starts) != self.n_features + 1:
            shape = (len(starts) - 1, n_outputs)
            self.container.fail(f"a matrix of {self.n_features} rows with numbers", shape)
        ends = (int(starts[0]), int(starts[-1]))
        if ends != (0, len(data)) or len(indices) != len(data) or (starts[1:] < starts[:-1]).any():
            self.container.fail("rows that follow each other", ends, array=entry["indptr"])
        self._check_columns(indices, n_outputs, entry["indices"])
        features = np.repeat(np.arange(self.n_features), np.diff(starts))
        if len(data) == n_outputs and len(np.unique(indices)) == n_outputs:
            order = np.argsort(indices)
            return AffineMap(shift, columns=features[order], scale=data[order].astype(np.float64))
        if self.n_features * n_outputs > MAX_MATRIX_NUMBERS:
            shape = (self.n_features, n_outputs)
            self.container.fail(f"a matrix of at most {MAX_MATRIX_NUMBERS} numbers", shape)
        matrix = np.zeros((self.n_features, n_outputs))
        np.add.at(matrix, (features, indices), data)
        return AffineMap(shift, matrix)

    def _check_columns(self, columns: NDArray[Any], n_columns: int, number: Any) -> None:
        """Raise for the number of a column that does not exist."""
        if len(columns) and not 0 <= columns.min() <= columns.max() < n_columns:
            found = f"{columns.min()} to {columns.max()}"
            self.container.fail(f"columns below {n_columns}", found, array=number)

    def number(self, value: Any, name: str) -> float:
        """Return a float; null stands for one that is not known."""
        value = self.plain(value)
        if value is None:
            return math.nan
        if type(value) is not float:
            self.container.fail(f"float {name!r}", value)
        return float(value)

    def plain(self, value: Any) -> Any:
        """Return a value of the header; version 1 wrote some floats as objects."""
        if self.is_version_1 and isinstance(value, dict) and value.get("kind") == "float":
            text = self.entry(value, "text", str)
            if text not in ("nan", "inf", "-inf"):
                self.container.fail("'nan', 'inf' or '-inf'", text)
            return float(text)
        return self.finite(value)

    def finite(self, value: Any) -> Any:
        """Return a plain value, unless JSON wrote a number beyond floats."""
        if isinstance(value, float) and not math.isfinite(value):
            self.container.fail("numbers within the range of float64", value)
        return value
