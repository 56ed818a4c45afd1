"""Model files: a ``Model`` to and from the header and the arrays of a container.

``docs/format.md`` describes the format. Version 2 is written; version 1, whose names were others,
is read as well.
"""

import math
import os
from collections.abc import Callable
from dataclasses import MISSING, asdict, fields
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

import limes
from limes._typing import Array, Labels
from limes.atomic import atomic_write
from limes.model.affine import AffineMap
from limes.model.border_map import BorderMap
from limes.model.file_layout import Container, parse_container, read_container, write_container
from limes.model.model import Candidate, FitInfo, Model
from limes.model.schemes import (
    OneVsRestScheme,
    PairwiseScheme,
    Scheme,
    SharedScheme,
    ShortlistScheme,
    TreeScheme,
)

VERSION = 2
# Larger files than this are not model files.
MAX_BYTES = 1 << 32
MAX_FEATURES = 1 << 31
# Numbers of a matrix that version 1 stored as a sparse one: 1 GB.
MAX_MATRIX_NUMBERS = 1 << 27
# The schemes that a file can hold, each with the number of values of its maps by the number of
# classes. What is stored of a scheme are the fields of its dataclass.
SCHEMES: dict[str, tuple[type[Scheme], Callable[[int], int]]] = {
    "pairwise": (PairwiseScheme, lambda n_classes: n_classes * (n_classes - 1) // 2),
    "one-vs-rest": (OneVsRestScheme, lambda n_classes: n_classes),
    "shared": (SharedScheme, lambda n_classes: n_classes),
    "shortlist": (ShortlistScheme, lambda n_classes: n_classes * (n_classes + 1) // 2),
    "tree": (TreeScheme, lambda n_classes: n_classes - 1),
}
# Optional sections that this version can read. A section changes predictions, so that a reader
# that does not know it must refuse the file.
SECTIONS: tuple[str, ...] = ()
# Fields that every scheme has; the others are stored by their names.
COMMON_FIELDS = {"maps", "n_classes", "double"}
PLAIN_TYPES = (bool, int, float, str)
# Columns of the table of maps: points, outputs, number of the preprocessing (-1: none), blend.
N_COLUMNS = 4
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


def save_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model file; an old file stays until the new one is complete.

    Parameters
    ----------
    model : Model
        What to write.
    path : path-like
        File, by convention with the ending ``.limes``.
    """
    writer = _Writer()
    header = writer.header(model)
    with atomic_write(path) as stream:
        write_container(stream, header, writer.arrays, version=VERSION)


def load_model(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Model:
    """Read a model file. Nothing in it is executed, and nothing is trusted.

    Parameters
    ----------
    path : path-like
        File that ``save_model`` or ``BordersClassifier.save`` wrote.
    max_bytes : int, default=2**32
        Largest file to read.

    Returns
    -------
    Model
        It predicts every row as the one that was saved, bit for bit.
    """
    return decode_model(read_container(path, max_bytes=max_bytes, versions=(1, VERSION)))


def parse_model(data: bytes, name: str) -> Model:
    """Read the bytes of a model file."""
    return decode_model(parse_container(data, name, versions=(1, VERSION)))


def decode_model(container: Container) -> Model:
    """Return the model that a header and arrays describe, or raise."""
    try:
        model = _Reader(container).model()
    except RecursionError:
        container.fail("a header of a few levels", "one nested too deeply")
    _try_a_row(container, model)
    return model


class _Writer:
    """Turns a model into a header in JSON, collecting its arrays on the way."""

    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []

    def header(self, model: Model) -> dict[str, Any]:
        """Return the header of a model file."""
        names = model.feature_names
        return {
            "limes": limes.__version__,
            "n_features": int(model.n_features),
            "classes": self._add(np.asarray(model.classes)),
            "feature_names": None if names is None else self._add(np.asarray(names)),
            "scheme": self._scheme(model.scheme),
            "info": _encode_info(model.info),
            "sections": {},
        }

    def _add(self, array: NDArray[Any]) -> int:
        """Keep an array; return its number."""
        self.arrays.append(array)
        return len(self.arrays) - 1

    def _scheme(self, scheme: Scheme) -> dict[str, Any]:
        """Return a scheme's name and fields."""
        if scheme.name not in SCHEMES or SCHEMES[scheme.name][0] is not type(scheme):
            raise TypeError(
                f"a model file holds the schemes {sorted(SCHEMES)}, got {type(scheme).__name__}."
            )
        own = [field.name for field in fields(scheme) if field.name not in COMMON_FIELDS]
        return {
            "name": scheme.name,
            "n_classes": int(scheme.n_classes),
            "dtype": "float64" if scheme.double else "float32",
            "maps": self._maps(scheme.maps),
            **{name: self._field(getattr(scheme, name)) for name in own},
        }

    def _field(self, value: Any) -> Any:
        """Return a field of a scheme: an array by its number, anything else as it is."""
        if isinstance(value, np.ndarray):
            return self._add(value)
        return value.item() if isinstance(value, np.generic) else value

    def _maps(self, maps: tuple[BorderMap, ...]) -> dict[str, Any]:
        """Return maps as one table and three long arrays, each preprocessing once."""
        steps: dict[Any, tuple[int, AffineMap]] = {}
        numbers = []
        for map_ in maps:
            step = map_.preprocessing
            if step is not None:
                steps.setdefault(_step_key(step), (len(steps), step))
            numbers.append(-1 if step is None else steps[_step_key(step)][0])
        table = [
            (map_.n_borders, map_.n_outputs, number, int(map_.blend))
            for map_, number in zip(maps, numbers, strict=True)
        ]
        return {
            "table": self._add(np.array(table, dtype=np.int64)),
            "points": self._add(_join([map_.points for map_ in maps])),
            "slopes": self._add(_join([map_.slopes for map_ in maps])),
            "offsets": self._add(_join([map_.offsets for map_ in maps])),
            "preprocessing": [self._step(step) for _, step in steps.values()],
        }

    def _step(self, step: AffineMap) -> dict[str, Any]:
        """Return an affine map in the form that it has."""
        shift = self._add(np.asarray(step.shift, dtype=np.float64))
        if step.matrix is not None:
            return {"shift": shift, "matrix": self._add(np.asarray(step.matrix, dtype=np.float64))}
        return {
            "shift": shift,
            "columns": self._add(np.asarray(step.columns, dtype=np.int64)),
            "scale": self._add(np.asarray(step.scale, dtype=np.float64)),
        }


class _Reader:
    """Turns a header and arrays back into a model, trusting neither."""

    def __init__(self, container: Container) -> None:
        self.container = container
        self.is_version_1 = container.version == 1
        n_features = container.header.get("n_features")
        if type(n_features) is not int or not 0 < n_features < MAX_FEATURES:
            container.fail("a number of features of at least 1", n_features)
        self.n_features = n_features

    def model(self) -> Model:
        """Return the model."""
        header = self.container.header
        self._check_sections(header)
        scheme = self._scheme(self._entry(header, "scheme", dict))
        names = None if header.get("feature_names") is None else self._names(header)
        info = self._info_1(header) if self.is_version_1 else self._info(header)
        return Model(scheme, self._classes(header, scheme), self.n_features, names, info)

    def _check_sections(self, header: dict[str, Any]) -> None:
        """Raise for an optional section that this version does not know."""
        sections = {} if self.is_version_1 else self._entry(header, "sections", dict)
        for name in sections:
            if name not in SECTIONS:
                self.container.fail(
                    f"no section but {list(SECTIONS)} (a newer limes may know it)", name
                )

    def _name(self, name: str) -> str:
        """Return the name of an entry in the version that is read."""
        return VERSION_1_NAMES.get(name, name) if self.is_version_1 else name

    def _entry(self, values: dict[str, Any], key: str, kind: type) -> Any:
        """Return an entry of the header, which must be of one type."""
        value = values.get(key)
        if type(value) is not kind:
            self.container.fail(f"{kind.__name__} {key!r} in the header", value)
        return value

    def _array(self, values: dict[str, Any], key: str) -> NDArray[Any]:
        """Return the array whose number is an entry of the header."""
        if self.is_version_1 and isinstance(values.get(key), dict):
            values, key = values[key], "array"
        number = self._entry(values, key, int)
        if not 0 <= number < len(self.container.arrays):
            n_arrays = len(self.container.arrays)
            self.container.fail(f"{key!r} to be one of {n_arrays} arrays", number)
        return self.container.arrays[number]

    def _typed_array(
        self, values: dict[str, Any], key: str, n_dimensions: int, kinds: str = "f"
    ) -> NDArray[Any]:
        """Return an array of so many dimensions and of one kind of number."""
        key = self._name(key)
        array = self._array(values, key)
        if array.ndim != n_dimensions or array.dtype.kind not in kinds or array.itemsize < 4:
            expected = f"{key!r} of {n_dimensions} dimensions and kind {kinds!r}"
            shape = f"{array.dtype.str} of shape {array.shape!r}"
            self.container.fail(expected, shape, array=values[key])
        return array

    def _scheme(self, entry: dict[str, Any]) -> Scheme:
        """Return a scheme of a known name with all its fields and no others."""
        name = self._entry(entry, "name", str)
        if name not in SCHEMES:
            writer = self.container.header.get("limes")
            self.container.fail(
                f"a scheme of {sorted(SCHEMES)} (the file is from limes {writer!r:.20})", name
            )
        kind, n_values = SCHEMES[name]
        stored = self._entry(entry, "fields", dict) if self.is_version_1 else entry
        self._check_field_names(kind, name, stored)
        maps = self._maps(self._entry(stored, "maps", dict))
        n_classes = self._entry(stored, "n_classes", int)
        self._check_classes(n_classes, sum(map_.n_outputs for map_ in maps), n_values)
        own = {
            field.name: self._field(stored, field.name, get_type_hints(kind)[field.name])
            for field in fields(kind)
            if field.name not in COMMON_FIELDS
        }
        is_double = self._is_double(stored)
        try:
            return kind(maps, n_classes, is_double, **own)
        except ValueError as error:
            self.container.fail(f"the parts of {name!r}", str(error))

    def _check_field_names(self, kind: type[Scheme], name: str, stored: dict[str, Any]) -> None:
        """Raise unless all fields of a scheme are there and no others."""
        if self.is_version_1:
            expected = {self._name(field.name) for field in fields(kind)}
        else:
            expected = {field.name for field in fields(kind)} - {"double"} | {"name", "dtype"}
        if set(stored) != expected:
            self.container.fail(f"the fields {sorted(expected)} of {name!r}", sorted(stored))

    def _is_double(self, stored: dict[str, Any]) -> bool:
        """Return whether a scheme computes in float64."""
        if self.is_version_1:
            return bool(self._entry(stored, "double", bool))
        dtype = self._entry(stored, "dtype", str)
        if dtype not in ("float32", "float64"):
            self.container.fail("the dtype 'float32' or 'float64'", dtype)
        return bool(dtype == "float64")

    def _field(self, stored: dict[str, Any], name: str, kind: Any) -> Any:
        """Return a field of a scheme, of the type that its dataclass has."""
        if kind in PLAIN_TYPES:
            return self._finite(self._entry(stored, self._name(name), kind))
        return self._array(stored, name)

    def _check_classes(self, n_classes: int, n_found: int, n_values: Callable[[int], int]) -> None:
        """Raise unless the maps have as many values as the classes of a scheme need."""
        # Each value separates at most one class from the others. Also keeps n_values small.
        if not 2 <= n_classes <= n_found + 1:
            self.container.fail(f"a number of classes for {n_found} values", n_classes)
        if n_found != n_values(n_classes):
            expected = f"{n_values(n_classes)} values for {n_classes} classes"
            self.container.fail(expected, n_found)

    def _maps(self, entry: dict[str, Any]) -> tuple[BorderMap, ...]:
        """Return border maps, cut from three long arrays by the sizes in a table."""
        table = self._typed_array(entry, "table", 2, "i")
        entries = self._entry(entry, self._name("preprocessing"), list)
        steps = [None, *(self._step(step) for step in entries)]
        if table.shape[1] != N_COLUMNS or not len(table):
            self.container.fail(
                f"a table of {N_COLUMNS} columns", table.shape, array=entry["table"]
            )
        parts = {
            name: _Slices(self._typed_array(entry, name, 1))
            for name in ("points", "slopes", "offsets")
        }
        maps = []
        for row in table.tolist():
            if min(row[0], row[1], row[3]) < 1 or not -1 <= row[2] < len(entries):
                self.container.fail("sizes of maps", row, array=entry["table"])
            maps.append(self._map(row, steps[row[2] + 1], parts))
        for name, slices in parts.items():
            if slices.n_left:
                key = self._name(name)
                self.container.fail(
                    f"the end of {key!r}", f"{slices.n_left} numbers more", array=entry[key]
                )
        return tuple(maps)

    def _map(
        self, row: list[int], step: AffineMap | None, parts: dict[str, "_Slices"]
    ) -> BorderMap:
        """Return the next map."""
        n_points, n_outputs, _, blend = row
        n_search = self.n_features if step is None else step.n_outputs
        try:
            points = parts["points"].take(n_points, n_search)
            if self.is_version_1:
                slopes = parts["slopes"].take(n_points, self.n_features, n_outputs)
                slopes = slopes.transpose(0, 2, 1)
            else:
                slopes = parts["slopes"].take(n_points, n_outputs, self.n_features)
            offsets = parts["offsets"].take(n_points, n_outputs)
            return BorderMap(points, slopes, offsets, step, blend)
        except ValueError as error:
            self.container.fail("the numbers of a border map", str(error))

    def _step(self, entry: Any) -> AffineMap:
        """Return an affine map from as many features as a row has."""
        if not isinstance(entry, dict):
            self.container.fail("an affine map", entry)
        shift = self._typed_array(entry, "shift", 1)
        if len(shift) != self.n_features:
            self.container.fail(f"an affine map of {self.n_features} features", len(shift))
        if self._name("matrix") in entry:
            matrix = self._typed_array(entry, "matrix", 2)
            if matrix.shape[0] != self.n_features:
                self.container.fail(f"a matrix of {self.n_features} rows", matrix.shape)
            return AffineMap(shift, matrix)
        if self.is_version_1:
            return self._sparse_step(entry, shift)
        columns = self._typed_array(entry, "columns", 1, "i")
        scale = self._typed_array(entry, "scale", 1)
        self._check_columns(columns, self.n_features, entry["columns"])
        if len(columns) != len(scale) or not len(columns):
            self.container.fail("as many columns as factors", (len(columns), len(scale)))
        return AffineMap(shift, columns=columns.astype(np.intp), scale=scale)

    def _sparse_step(self, entry: dict[str, Any], shift: Array) -> AffineMap:
        """Return an affine map of version 1, whose matrix was stored in compressed rows."""
        n_outputs = self._entry(entry, "n_outputs", int)
        data = self._typed_array(entry, "data", 1)
        indices = self._typed_array(entry, "indices", 1, "i")
        starts = self._typed_array(entry, "indptr", 1, "i")
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

    def _classes(self, header: dict[str, Any], scheme: Scheme) -> Labels:
        """Return the labels, as many as the scheme has and no two alike."""
        classes = self._array(header, "classes")
        if classes.shape != (scheme.n_classes,) or scheme.n_classes < 2:
            self.container.fail(f"{scheme.n_classes} labels, at least two", classes.shape)
        is_number = classes.dtype.kind != "f" or bool(np.isfinite(classes).all())
        if len(np.unique(classes)) < len(classes) or not is_number:
            self.container.fail("labels that differ", classes.tolist())
        return classes.copy()

    def _names(self, header: dict[str, Any]) -> NDArray[Any]:
        """Return the names of the features, as scikit-learn keeps them."""
        names = self._array(header, "feature_names")
        if names.shape != (self.n_features,) or names.dtype.kind not in "UO":
            self.container.fail(f"{self.n_features} names of features", names.shape)
        return names.astype(object)

    def _info(self, header: dict[str, Any]) -> FitInfo:
        """Return what the fit found out."""
        entry = self._entry(header, "info", dict)
        expected = {field.name for field in fields(FitInfo)}
        if set(entry) != expected:
            self.container.fail(f"the entries {sorted(expected)} of 'info'", sorted(entry))
        return self._make_info(entry, entry)

    def _info_1(self, header: dict[str, Any]) -> FitInfo:
        """Return what the fit found out, from the attributes of a file of version 1."""
        attributes = self._entry(header, "attributes", dict)
        for name in attributes:
            if not (name.isidentifier() and name.endswith("_") and not name.startswith("_")):
                self.container.fail("names of attributes", name)
        names = ("agreement", "agreement_error", "placement")
        entry = {name: attributes.get(f"{name}_") for name in names}
        return self._make_info({**entry, "candidates": header.get("tradeoff", [])}, header)

    def _make_info(self, entry: dict[str, Any], header: dict[str, Any]) -> FitInfo:
        """Return what the fit found out, each value of its type."""
        candidates = self._entry(entry, "candidates", list)
        placement = entry["placement"]
        if placement is not None and type(placement) is not str:
            self.container.fail("a placement in words, or none", placement)
        return FitInfo(
            self._number(entry["agreement"], "agreement"),
            self._number(entry["agreement_error"], "agreement_error"),
            placement,
            [self._candidate(candidate) for candidate in candidates],
            self._parameters(self._entry(header, "parameters", dict)),
        )

    def _candidate(self, entry: Any) -> Candidate:
        """Return a candidate, all of it of the right types."""
        hints = get_type_hints(Candidate)
        needed = [self._name(field.name) for field in fields(Candidate) if field.default is MISSING]
        if not isinstance(entry, dict) or not set(needed) <= entry.keys():
            self.container.fail(f"a candidate with {', '.join(needed)}", entry)
        values: dict[str, Any] = {}
        for name, kind in hints.items():
            key = self._name(name)
            if key in entry:
                values[name] = (
                    self._number(entry[key], key)
                    if kind is float
                    else self._finite(self._entry(entry, key, kind))
                )
        return Candidate(**values)

    def _parameters(self, entries: dict[str, Any]) -> dict[str, Any]:
        """Return parameters of the estimator, by names that can be those of parameters."""
        for name in entries:
            if not name.isidentifier() or name.startswith("_") or name == "estimator":
                self.container.fail("names of parameters", name)
        decoded = {name: self._plain(value) for name, value in entries.items()}
        for name, value in decoded.items():
            if not _is_plain(value):
                self.container.fail(f"a plain value of {name!r}", value)
        return decoded

    def _number(self, value: Any, name: str) -> float:
        """Return a float; null stands for one that is not known."""
        value = self._plain(value)
        if value is None:
            return float("nan")
        if type(value) is not float:
            self.container.fail(f"float {name!r}", value)
        return float(value)

    def _plain(self, value: Any) -> Any:
        """Return a value of the header; version 1 wrote some floats as objects."""
        if self.is_version_1 and isinstance(value, dict) and value.get("kind") == "float":
            text = self._entry(value, "text", str)
            if text not in ("nan", "inf", "-inf"):
                self.container.fail("'nan', 'inf' or '-inf'", text)
            return float(text)
        return self._finite(value)

    def _finite(self, value: Any) -> Any:
        """Return a plain value, unless JSON wrote a number beyond floats."""
        if isinstance(value, float) and not math.isfinite(value):
            self.container.fail("numbers within the range of float64", value)
        return value


def _encode_info(info: FitInfo) -> dict[str, Any]:
    """Return what a fit found out as JSON, with null for nan."""
    kinds = get_type_hints(Candidate)
    return {
        "agreement": _or_null(info.agreement),
        "agreement_error": _or_null(info.agreement_error),
        "placement": info.placement,
        "candidates": [
            {name: _or_null(kinds[name](value)) for name, value in asdict(candidate).items()}
            for candidate in info.candidates
        ],
        "parameters": {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in info.parameters.items()
            if _is_plain(value)
        },
    }


def _or_null(value: Any) -> Any:
    """Return a value as JSON has it: a float that is not finite becomes null."""
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value


def _is_plain(value: Any) -> bool:
    """Return whether a value is a finite number, a text, True, False or None."""
    if isinstance(value, float | np.floating):
        return math.isfinite(value)
    return value is None or isinstance(value, (*PLAIN_TYPES, np.generic))


def _try_a_row(container: Container, model: Model) -> None:
    """Raise unless the model predicts a row: its maps fit each other and the classes."""
    scheme = model.scheme
    try:
        with np.errstate(all="ignore"):
            values = scheme.values(_middle_row(scheme))
            class_index, probabilities = scheme.class_index(values), scheme.probabilities(values)
    # Whatever goes wrong with numbers from a file, it is the file that is wrong.
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".split("\n")[0]
        container.fail("maps that predict a row", reason)
    n_classes = len(model.classes)
    if probabilities.shape != (1, n_classes) or not 0 <= int(class_index[0]) < n_classes:
        container.fail(f"a prediction of {n_classes} classes", probabilities.shape)


def _middle_row(scheme: Scheme) -> NDArray[np.float64]:
    """Return a row amid the border points, which is in range whatever the model was fitted on."""
    first = scheme.maps[0]
    step = first.preprocessing
    return np.array(first.points[:1] if step is None else step.shift[None])


class _Slices:
    """Parts of a long array, one after the other."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.place = 0

    @property
    def n_left(self) -> int:
        """How many numbers have not been taken."""
        return len(self.array) - self.place

    def take(self, *shape: int) -> Array:
        """Return the next numbers in a shape, if there are so many."""
        size = math.prod(shape)
        if size > self.n_left:
            raise ValueError(f"{self.n_left} numbers where there should be {size}")
        part = self.array[self.place : self.place + size].reshape(shape)
        self.place += size
        return part


def _join(arrays: list[Array]) -> Array:
    """Return the numbers of arrays, one after the other."""
    return np.concatenate([array.ravel() for array in arrays])


def _step_key(step: AffineMap) -> tuple[Any, ...]:
    """Return a key that is equal for equal affine maps."""
    parts = (step.shift, step.matrix, step.columns, step.scale)
    return tuple(None if part is None else (part.shape, part.tobytes()) for part in parts)
