"""`Model` to and from a container; old format versions."""

import math
import os
from collections.abc import Callable
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import limes
from limes._typing import Array, Labels
from limes.atomic import atomic_write
from limes.model.affine import AffineMap
from limes.model.border_map import BorderMap
from limes.model.container import Container, parse_container, read_container, write_container
from limes.model.model import Candidate
from limes.model.schemes import (
    OneVsRestScheme,
    PairwiseScheme,
    Scheme,
    SharedScheme,
    ShortlistScheme,
    TreeScheme,
)

# Attributes of a fitted classifier that have an entry of their own, or none.
NOT_ATTRIBUTES = {
    "estimator_",
    "classes_",
    "scheme_",
    "n_features_in_",
    "feature_names_in_",
    "tradeoff_",
}
# Parameters that say nothing about the model: they belong to the machine or to the source.
NOT_PARAMETERS = {"estimator", "n_jobs", "verbose"}
# Larger files than this are not what they seem to be.
MAX_BYTES = 1 << 32
MAX_FEATURES = 1 << 31
Estimator = TypeVar("Estimator")
# A new scheme is stored by being named here, with the number of values that its maps give for so
# many classes. Its fields are those of its dataclass.
SCHEMES: dict[str, tuple[type[Scheme], Callable[[int], int]]] = {
    "pairwise": (PairwiseScheme, lambda n_classes: n_classes * (n_classes - 1) // 2),
    "one-vs-rest": (OneVsRestScheme, lambda n_classes: n_classes),
    "shared": (SharedScheme, lambda n_classes: n_classes),
    "shortlist": (ShortlistScheme, lambda n_classes: n_classes * (n_classes + 1) // 2),
    "tree": (TreeScheme, lambda n_classes: n_classes - 1),
}
# Fields of these types are checked before a scheme is built.
PLAIN_TYPES = (bool, int, float, str)
# Columns of the table of maps: points, outputs, number of the step before (-1: none), blend.
N_COLUMNS = 4


@dataclass(frozen=True, eq=False)
class StoredModel:
    """A fitted classifier without its source."""

    # The border maps, and how they are joined.
    scheme: Scheme
    # Shape (n_classes,). Labels.
    classes: Labels
    # Number of features of a row.
    n_features: int
    # Shape (n_features,). Names of the columns.
    feature_names: NDArray[Any] | None = None
    # Of the estimator.
    parameters: dict[str, Any] = field(default_factory=dict)
    # What else its fit found: agreement, cost.
    attributes: dict[str, Any] = field(default_factory=dict)
    # What the fit tried.
    tradeoff: list[Candidate] = field(default_factory=list)


def describe(fitted: Any) -> StoredModel:
    """Return what a file keeps of a fitted classifier."""
    parameters = {
        name: value
        for name, value in fitted.get_params(deep=False).items()
        if name not in NOT_PARAMETERS and _is_plain(value)
    }
    attributes = {
        name: value
        for name, value in vars(fitted).items()
        if name.endswith("_") and not name.startswith("_") and name not in NOT_ATTRIBUTES
    }
    return StoredModel(
        fitted.scheme_,
        fitted.classes_,
        int(fitted.n_features_in_),
        getattr(fitted, "feature_names_in_", None),
        parameters,
        {name: value for name, value in attributes.items() if _is_storable(value)},
        list(getattr(fitted, "tradeoff_", [])),
    )


def restore(stored: StoredModel, estimator: Estimator) -> Estimator:
    """Make an unfitted classifier the fitted one that was stored."""
    for name, value in stored.attributes.items():
        setattr(estimator, name, value)
    own = {
        "scheme_": stored.scheme,
        "classes_": stored.classes,
        "n_features_in_": stored.n_features,
        "feature_names_in_": stored.feature_names,
        "tradeoff_": stored.tradeoff,
    }
    for name, value in own.items():
        if value is not None:
            setattr(estimator, name, value)
    return estimator


def write_model(path: str | os.PathLike[str], stored: StoredModel) -> None:
    """Write a model file: the old one stays until the new one is complete."""
    encoder = Encoder()
    header = {
        "limes": limes.__version__,
        "n_features": stored.n_features,
        "classes": encoder.encode(np.asarray(stored.classes)),
        "feature_names": encoder.encode(stored.feature_names),
        "parameters": {name: encoder.encode(one) for name, one in stored.parameters.items()},
        "attributes": {name: encoder.encode(one) for name, one in stored.attributes.items()},
        "scheme": encoder.encode(stored.scheme),
        "tradeoff": [_encode_trial(encoder, trial) for trial in stored.tradeoff],
    }
    with atomic_write(path) as stream:
        write_container(stream, header, encoder.arrays)


def read_model(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> StoredModel:
    """Read a model file, trusting nothing in it."""
    return decode_model(read_container(path, max_bytes=max_bytes))


def parse_model(data: bytes, name: str) -> StoredModel:
    """Read the bytes of a model file."""
    return decode_model(parse_container(data, name))


def decode_model(container: Container) -> StoredModel:
    """Return the model that a header and arrays describe, if they make one."""
    try:
        stored = _decode(container)
    except RecursionError:
        container.fail("a header of a few levels", "one nested too deeply")
    _try_a_row(container, stored)
    return stored


def _decode(container: Container) -> StoredModel:
    """Return the parts of a model."""
    header = container.header
    n_features = header.get("n_features")
    if type(n_features) is not int or not 0 < n_features < MAX_FEATURES:
        container.fail("a number of features of at least 1", n_features)
    decoder = Decoder(container, n_features)
    scheme = decoder.scheme(decoder.entry(header, "scheme", dict))
    names = None if header.get("feature_names") is None else _names(decoder, header)
    return StoredModel(
        scheme,
        _classes(decoder, header, scheme),
        n_features,
        names,
        _entries(decoder, header, "parameters", suffix=""),
        _entries(decoder, header, "attributes", suffix="_"),
        _trials(decoder, header),
    )


def _is_plain(value: Any) -> bool:
    """Tell whether a value is a number, a text or None."""
    return value is None or isinstance(value, (*PLAIN_TYPES, np.generic))


def _is_storable(value: Any) -> bool:
    """Tell whether an attribute can be kept: plain, a list of plain values, or numbers."""
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return _is_plain(value) or (isinstance(value, np.ndarray) and value.dtype.kind in "biuf")


class Decoder:
    """Turns JSON and arrays back into values, trusting neither."""

    def __init__(self, container: Container, n_features: int) -> None:
        self.container = container
        self.n_features = n_features

    def decode(self, value: Any) -> Any:
        """Return the value that was encoded."""
        if isinstance(value, list):
            return [self.decode(one) for one in value]
        if not isinstance(value, dict):
            return self._finite(value)
        kinds: dict[str, Callable[[dict[str, Any]], Any]] = {
            "float": self._float,
            "array": lambda entry: self.array(entry, "array"),
            "tuple": lambda entry: tuple(self.decode(self.entry(entry, "items", list))),
            "map": lambda entry: self._single(self._maps(entry)),
            "maps": self._maps,
            "scheme": self.scheme,
        }
        kind = value.get("kind")
        if not isinstance(kind, str) or kind not in kinds:
            self.container.fail(f"a value of one of the kinds {sorted(kinds)}", value)
        return kinds[kind](value)

    def entry(self, values: dict[str, Any], key: str, kind: type) -> Any:
        """Return an entry of the header, which must be there and of one type."""
        value = values.get(key)
        if type(value) is not kind:
            self.container.fail(f"{kind.__name__} {key!r} in the header", value)
        return value

    def array(self, values: dict[str, Any], key: str) -> NDArray[Any]:
        """Return the array that an entry of the header names."""
        number = self.entry(values, key, int)
        if not 0 <= number < len(self.container.arrays):
            n_arrays = len(self.container.arrays)
            self.container.fail(f"{key!r} to be one of {n_arrays} arrays", number)
        return self.container.arrays[number]

    def typed_array(
        self, values: dict[str, Any], key: str, n_dimensions: int, kinds: str = "f"
    ) -> NDArray[Any]:
        """Return an array that an entry names, of so many dimensions and of one kind of number."""
        array = self.array(values, key)
        if array.ndim != n_dimensions or array.dtype.kind not in kinds or array.itemsize < 4:
            expected = f"{key!r} of {n_dimensions} dimensions and kind {kinds!r}"
            found = f"{array.dtype.str} of shape {array.shape!r}"
            self.container.fail(expected, found, array=values[key])
        return array

    def scheme(self, values: dict[str, Any]) -> Scheme:
        """Return a scheme of a known name with all its fields and no others."""
        name = self.entry(values, "name", str)
        if name not in SCHEMES:
            writer = self.container.header.get("limes")
            self.container.fail(
                f"a scheme of {sorted(SCHEMES)} (the file is from limes {writer!r:.20})", name
            )
        (kind, n_values), stored = SCHEMES[name], self.entry(values, "fields", dict)
        wanted = {one.name for one in fields(kind)}
        if set(stored) != wanted:
            self.container.fail(f"the fields {sorted(wanted)} of {name!r}", sorted(stored))
        decoded = {key: self.decode(value) for key, value in stored.items()}
        self._check_fields(kind, decoded)
        self._check_classes(decoded, n_values)
        try:
            return kind(**decoded)
        except ValueError as error:
            self.container.fail(f"the parts of {name!r}", str(error))

    def _check_classes(self, decoded: dict[str, Any], n_values: Callable[[int], int]) -> None:
        """See that maps give as many values as the classes of a scheme take."""
        n_classes, found = decoded["n_classes"], sum(one.n_outputs for one in decoded["maps"])
        # No scheme tells more than one class from the others by each value.
        if not 2 <= n_classes <= found + 1:
            self.container.fail(f"as many classes as {found} values tell", n_classes)
        if found != n_values(n_classes):
            expected = f"{n_values(n_classes)} values for {n_classes} classes"
            self.container.fail(expected, found)

    def _check_fields(self, kind: type[Scheme], decoded: dict[str, Any]) -> None:
        """Check the types of a scheme's fields, before anything is done with them."""
        hints = get_type_hints(kind)
        for key, value in decoded.items():
            if hints[key] in PLAIN_TYPES and type(value) is not hints[key]:
                self.container.fail(f"{hints[key].__name__} {key!r}", value)
        if not _are_maps(decoded["maps"]):
            self.container.fail("border maps", decoded["maps"])

    def _finite(self, value: Any) -> Any:
        """Return a plain value, unless JSON wrote a number beyond floats."""
        if isinstance(value, float) and not math.isfinite(value):
            self.container.fail("numbers within the range of float64", value)
        return value

    def _float(self, entry: dict[str, Any]) -> float:
        """Return one of the floats that JSON does not have."""
        text = self.entry(entry, "text", str)
        if text not in ("nan", "inf", "-inf"):
            self.container.fail("'nan', 'inf' or '-inf'", text)
        return float(text)

    def _single(self, maps: tuple[BorderMap, ...]) -> BorderMap:
        """Return the only map."""
        if len(maps) != 1:
            self.container.fail("one border map", f"{len(maps)} of them")
        return maps[0]

    def _maps(self, entry: dict[str, Any]) -> tuple[BorderMap, ...]:
        """Return border maps, cut from three long arrays by the sizes in a table."""
        table = self.typed_array(entry, "table", 2, "i")
        steps = [self._step(one) for one in self.entry(entry, "before", list)]
        if table.shape[1] != N_COLUMNS or not len(table):
            self.container.fail(
                f"a table of {N_COLUMNS} columns", table.shape, array=entry["table"]
            )
        parts = {
            key: _Slices(self.typed_array(entry, key, 1))
            for key in ("points", "normals", "offsets")
        }
        maps = []
        for row in table.tolist():
            if min(row[0], row[1], row[3]) < 1 or not -1 <= row[2] < len(steps):
                self.container.fail("sizes of maps", row, array=entry["table"])
            maps.append(self._map(row, [None, *steps][row[2] + 1], parts))
        for key, slices in parts.items():
            if slices.n_left:
                found = f"{slices.n_left} numbers more"
                self.container.fail(f"the end of {key!r}", found, array=entry[key])
        return tuple(maps)

    def _map(
        self, row: list[int], before: AffineMap | None, parts: dict[str, "_Slices"]
    ) -> BorderMap:
        """Return the next map."""
        n_points, n_outputs, _, blend = row
        n_search = self.n_features if before is None else before.n_outputs
        try:
            return BorderMap(
                parts["points"].take(n_points, n_search),
                parts["normals"].take(n_points, self.n_features, n_outputs),
                parts["offsets"].take(n_points, n_outputs),
                before,
                blend,
            )
        except ValueError as error:
            self.container.fail("the numbers of a border map", str(error))

    def _step(self, entry: Any) -> AffineMap:
        """Return an affine map from as many features as a row has."""
        if not isinstance(entry, dict):
            self.container.fail("an affine map", entry)
        shift = self.typed_array(entry, "shift", 1)
        matrix = self.typed_array(entry, "dense", 2) if "dense" in entry else self._rows(entry)
        if len(shift) != self.n_features or matrix.shape[0] != self.n_features:
            found = f"{len(shift)} and {matrix.shape[0]}"
            self.container.fail(f"an affine map of {self.n_features} features", found)
        return AffineMap(shift, matrix)

    def _rows(self, entry: dict[str, Any]) -> Any:
        """Return a sparse matrix, every index of which is in its place."""
        n_outputs = self.entry(entry, "n_outputs", int)
        data = self.typed_array(entry, "data", 1)
        indices = self.typed_array(entry, "indices", 1, "i")
        starts = self.typed_array(entry, "indptr", 1, "i")
        if not 0 < n_outputs < 2**31 or len(starts) != self.n_features + 1:
            self.container.fail(f"a matrix of {self.n_features} rows", (len(starts) - 1, n_outputs))
        # SciPy's own check passes over some of these, and then reads beyond the arrays.
        ends = (int(starts[0]), int(starts[-1]))
        if ends != (0, len(data)) or len(indices) != len(data) or (starts[1:] < starts[:-1]).any():
            self.container.fail("rows that follow each other", ends, array=entry["indptr"])
        if len(indices) and not 0 <= indices.min() <= indices.max() < n_outputs:
            found = f"{indices.min()} to {indices.max()}"
            self.container.fail(f"columns below {n_outputs}", found, array=entry["indices"])
        return sparse.csr_array((data, indices, starts), shape=(self.n_features, n_outputs))


def _classes(decoder: Decoder, header: dict[str, Any], scheme: Scheme) -> Labels:
    """Return the labels, as many as the scheme has and no two alike."""
    classes = decoder.array(decoder.entry(header, "classes", dict), "array")
    if classes.shape != (scheme.n_classes,) or scheme.n_classes < 2:
        decoder.container.fail(f"{scheme.n_classes} labels, at least two", classes.shape)
    is_number = classes.dtype.kind != "f" or bool(np.isfinite(classes).all())
    if len(np.unique(classes)) < len(classes) or not is_number:
        decoder.container.fail("labels that differ", classes.tolist())
    return classes.copy()


def _names(decoder: Decoder, header: dict[str, Any]) -> NDArray[Any]:
    """Return the names of the features, as scikit-learn keeps them."""
    names = decoder.array(decoder.entry(header, "feature_names", dict), "array")
    if names.shape != (decoder.n_features,) or names.dtype.kind not in "UO":
        decoder.container.fail(f"{decoder.n_features} names of features", names.shape)
    return names.astype(object)


def _entries(decoder: Decoder, header: dict[str, Any], key: str, *, suffix: str) -> dict[str, Any]:
    """Return named values, whose names can be those of parameters or attributes."""
    entries = decoder.entry(header, key, dict)
    # Files of the first days have an empty one; it is an entry of its own now.
    entries = {name: value for name, value in entries.items() if name != "tradeoff_"}
    for name in entries:
        is_name = name.isidentifier() and not name.startswith("_") and name.endswith(suffix)
        if not is_name or name in NOT_ATTRIBUTES | NOT_PARAMETERS:
            decoder.container.fail(f"names of {key}", name)
    decoded = {name: decoder.decode(value) for name, value in entries.items()}
    for name, value in decoded.items():
        if not _is_storable(value):
            decoder.container.fail(f"a plain value of {name!r}", value)
    return decoded


class Encoder:
    """Turns values into JSON, collecting their arrays on the way.

    Examples
    --------
    >>> encoder = Encoder()
    >>> encoder.encode([1, np.array([2.5])])
    [1, {'kind': 'array', 'array': 0}]
    >>> encoder.arrays
    [array([2.5])]
    """

    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []

    def encode(self, value: Any) -> Any:
        """Return a value as JSON."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            return {"kind": "float", "text": repr(value)}
        if value is None or isinstance(value, PLAIN_TYPES):
            return value
        if isinstance(value, list):
            return [self.encode(one) for one in value]
        if isinstance(value, np.ndarray):
            return {"kind": "array", "array": self._add(value)}
        if isinstance(value, Scheme):
            return self._encode_scheme(value)
        if isinstance(value, BorderMap):
            return {"kind": "map", **self._encode_maps((value,))}
        if _are_maps(value):
            return {"kind": "maps", **self._encode_maps(value)}
        if isinstance(value, tuple):
            return {"kind": "tuple", "items": [self.encode(one) for one in value]}
        raise TypeError(f"a model file cannot hold {value!r:.100} of type {type(value).__name__}.")

    def _add(self, array: NDArray[Any]) -> int:
        """Keep an array; return its number."""
        self.arrays.append(array)
        return len(self.arrays) - 1

    def _encode_scheme(self, scheme: Scheme) -> dict[str, Any]:
        """Return a scheme's name and the fields of its dataclass."""
        if scheme.name not in SCHEMES or SCHEMES[scheme.name][0] is not type(scheme):
            raise TypeError(
                f"a model file holds the schemes {sorted(SCHEMES)}, got {type(scheme).__name__}."
            )
        values = {one.name: self.encode(getattr(scheme, one.name)) for one in fields(scheme)}
        return {"kind": "scheme", "name": scheme.name, "fields": values}

    def _encode_maps(self, maps: tuple[BorderMap, ...]) -> dict[str, Any]:
        """Return maps as one table and three long arrays, each step before them once."""
        steps: dict[Any, tuple[int, AffineMap]] = {}
        for one in maps:
            if one.before is not None:
                steps.setdefault(_step_key(one.before), (len(steps), one.before))
        numbers = [-1 if one.before is None else steps[_step_key(one.before)][0] for one in maps]
        table = [
            (one.n_borders, one.n_outputs, number, int(one.blend))
            for one, number in zip(maps, numbers, strict=True)
        ]
        return {
            "table": self._add(np.array(table, dtype=np.int64)),
            "points": self._add(_join([one.points for one in maps])),
            "normals": self._add(_join([one.normals for one in maps])),
            "offsets": self._add(_join([one.offsets for one in maps])),
            "before": [self._encode_step(step) for _, step in steps.values()],
        }

    def _encode_step(self, step: AffineMap) -> dict[str, Any]:
        """Return an affine map, its matrix dense or in compressed rows."""
        shift = self._add(np.asarray(step.shift, dtype=np.float64))
        if step.is_dense:
            return {"shift": shift, "dense": self._add(np.asarray(step.matrix, dtype=np.float64))}
        rows = step.matrix.tocsr()
        parts = {name: self._add(getattr(rows, name)) for name in ("data", "indices", "indptr")}
        return {"shift": shift, "n_outputs": int(rows.shape[1]), **parts}


def _encode_trial(encoder: Encoder, trial: Candidate) -> dict[str, Any]:
    """Return one line of the trade-off as JSON, each value of the type that is read again."""
    kinds = get_type_hints(Candidate)
    return {name: encoder.encode(kinds[name](value)) for name, value in asdict(trial).items()}


def _trials(decoder: Decoder, header: dict[str, Any]) -> list[Candidate]:
    """Return the trade-off, which a file may be without."""
    entries = decoder.entry(header, "tradeoff", list) if "tradeoff" in header else []
    return [_decode_trial(decoder, entry) for entry in entries]


def _decode_trial(decoder: Decoder, entry: Any) -> Candidate:
    """Return one line of the trade-off, all of it of the right types; what is unknown is left."""
    hints = get_type_hints(Candidate)
    needed = [one.name for one in fields(Candidate) if one.default is MISSING]
    if not isinstance(entry, dict) or not set(needed) <= entry.keys():
        decoder.container.fail(f"one of 'tradeoff' with {', '.join(needed)}", entry)
    values = {name: decoder.decode(entry[name]) for name in hints if name in entry}
    for name, value in values.items():
        if type(value) is not hints[name]:
            decoder.container.fail(f"{hints[name].__name__} {name!r}", value)
    return Candidate(**values)


def _try_a_row(container: Container, stored: StoredModel) -> None:
    """See that a scheme can answer: its maps fit each other and the number of classes."""
    scheme = stored.scheme
    try:
        with np.errstate(all="ignore"):
            values = scheme.values(_middle_row(scheme))
            class_index, probabilities = scheme.class_index(values), scheme.probabilities(values)
    # Whatever goes wrong with numbers from a file, it is the file that is wrong.
    except Exception as error:
        container.fail("maps that answer a row", f"{type(error).__name__}: {error}".split("\n")[0])
    n_classes = len(stored.classes)
    if probabilities.shape != (1, n_classes) or not 0 <= int(class_index[0]) < n_classes:
        container.fail(f"an answer of {n_classes} classes", probabilities.shape)


def _middle_row(scheme: Scheme) -> NDArray[np.float64]:
    """Return a row amid the border points, which is in range whatever the model was fitted on."""
    first = scheme.maps[0]
    return np.array(first.points[:1] if first.before is None else first.before.shift[None])


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


def _are_maps(value: Any) -> bool:
    """Tell whether a value is a tuple of border maps, at least one."""
    is_tuple = isinstance(value, tuple) and bool(value)
    return is_tuple and all(isinstance(one, BorderMap) for one in value)


def _join(arrays: list[Array]) -> Array:
    """Return the numbers of arrays, one after the other."""
    return np.concatenate([one.ravel() for one in arrays])


def _step_key(step: AffineMap) -> tuple[Any, ...]:
    """Return what tells affine maps apart."""
    if step.is_dense:
        return step.shift.tobytes(), step.matrix.shape, step.matrix.tobytes()
    rows = step.matrix.tocsr()
    return (
        step.shift.tobytes(),
        rows.shape,
        rows.data.tobytes(),
        rows.indices.tobytes(),
        rows.indptr.tobytes(),
    )
