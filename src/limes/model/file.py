"""Model files: a ``Model`` to and from the header and the arrays of a container.

``docs/format.md`` describes the format. Version 2 is written; version 1, whose names were others,
is read as well.
"""

import math
import os
from collections.abc import Callable
from dataclasses import MISSING, asdict, fields, replace
from typing import Any, BinaryIO, get_type_hints

import numpy as np
from numpy.typing import NDArray

import limes
from limes._typing import Array, Labels
from limes.atomic import atomic_write
from limes.model.affine import AffineMap
from limes.model.border_map import BorderMap
from limes.model.curved_base import CurvedBase
from limes.model.exact import (
    Calibrators,
    ClassDensities,
    ExactScheme,
    FallbackScheme,
    PairSigmoids,
)
from limes.model.file_entries import EntryReader, EntryWriter
from limes.model.file_layout import Container, parse_container, read_container, write_container
from limes.model.model import Candidate, FeatureStatistics, FitInfo, Model
from limes.model.outlier_scores import OutlierScores
from limes.model.schemes import (
    MapScheme,
    OneVsRestScheme,
    PairwiseScheme,
    Scheme,
    SharedScheme,
    ShortlistScheme,
    TreeScheme,
)
from limes.model.svm import Kernel, TrainedSvm

VERSION = 2
# Larger files than this are not model files.
MAX_BYTES = 1 << 32
# The schemes of maps that a file can hold, each with the number of values of its maps by the number
# of classes. What is stored of a scheme are the fields of its dataclass.
SCHEMES: dict[str, tuple[type[MapScheme], Callable[[int], int]]] = {
    "pairwise": (PairwiseScheme, lambda n_classes: n_classes * (n_classes - 1) // 2),
    "one-vs-rest": (OneVsRestScheme, lambda n_classes: n_classes),
    "shared": (SharedScheme, lambda n_classes: n_classes),
    "shortlist": (ShortlistScheme, lambda n_classes: n_classes * (n_classes + 1) // 2),
    "tree": (TreeScheme, lambda n_classes: n_classes - 1),
}
# Optional sections that this version can read. A section changes predictions, so that a reader
# that does not know it must refuse the file.
SECTIONS = ("curved_base", "exact_source", "outlier_scores")
# Fields that every scheme has; the others are stored by their names.
COMMON_FIELDS = {"maps", "n_classes", "double"}
PLAIN_TYPES = (bool, int, float, str)
# Columns of the table of maps: points, outputs, number of the preprocessing (-1: none), blend.
N_COLUMNS = 4
# Entries of the section of an exact source, and those of its sums.
EXACT_ENTRIES = {"sums", "preprocessing", "rule", "class_order", "decision_shape", "probabilities"}
SVM_ENTRIES = {"kernel", "gamma", "degree", "coef0", "vectors", "dual_coef", "intercepts"}
DENSITY_ENTRIES = {"gamma", "vectors", "log_priors"}
# Entries of the section of a curved base.
CURVE_ENTRIES = {"preprocessing", "constants", "slopes", "squares", "decay", "n_listed"}
# Rows of the array of statistics of the features.
STATISTICS = ("minimum", "maximum", "mean", "std")
# Entries of the section of the scores of an outlier detector.
SCORE_ENTRIES = {"offset", "is_gaussian"}
# Larger exponents of a polynomial kernel are an error in the file.
MAX_DEGREE = 1 << 20


def save_model(model: Model, path: str | os.PathLike[str], *, fallback: bool = True) -> None:
    """Write a model file; an old file stays until the new one is complete.

    Parameters
    ----------
    model : Model
        What to write.
    path : path-like
        File, by convention with the ending ``.limes``.
    fallback : bool, default=True
        Whether to write the exact sums that a map falls back to, which hold training rows; without
        them the map decides every row.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from limes.model import BorderMap, Model, PairwiseScheme, load_model, save_model
    >>> line = BorderMap.from_borders(points=[[0.0, 1.0]], normals=[[0.0, 2.0]])
    >>> model = Model(PairwiseScheme((line,), 2), np.array(["low", "high"]), 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/line.limes")
    ...     again = load_model(f"{folder}/line.limes")
    >>> again.classes.tolist()
    ['low', 'high']
    """
    if isinstance(model.scheme, FallbackScheme) and not fallback:
        model = replace(model, scheme=model.scheme.without_fallback())
    with atomic_write(path) as stream:
        write_model(model, stream)


def write_model(model: Model, stream: BinaryIO) -> None:
    """Write the bytes of a model file."""
    writer = _Writer()
    header = writer.header(model)
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

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from limes.model import BorderMap, Model, PairwiseScheme, load_model, save_model
    >>> line = BorderMap.from_borders(points=[[0.0, 1.0]], normals=[[0.0, 2.0]])
    >>> model = Model(PairwiseScheme((line,), 2), np.array(["low", "high"]), 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/line.limes")
    ...     again = load_model(f"{folder}/line.limes")
    >>> again.predict([[5.0, 0.0], [5.0, 2.0]]).tolist()
    ['low', 'high']
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


class _Writer(EntryWriter):
    """Turns a model into a header in JSON, collecting its arrays on the way."""

    def header(self, model: Model) -> dict[str, Any]:
        """Return the header of a model file."""
        names, scheme = model.feature_names, model.scheme
        return {
            "limes": limes.__version__,
            "n_features": int(model.n_features),
            "classes": self.add(np.asarray(model.classes)),
            "feature_names": None if names is None else self.add(np.asarray(names)),
            "scheme": self._scheme(scheme),
            "info": {**_encode_info(model.info), "features": self._features(model.info.features)},
            "sections": {**self._sections(scheme), **_encode_scores(model.outlier_scores)},
        }

    def _features(self, features: FeatureStatistics | None) -> int | None:
        """Return the number of the array of statistics of the features, a row for each."""
        if features is None:
            return None
        return self.add(np.array([getattr(features, name) for name in STATISTICS]))

    def _scheme(self, scheme: Scheme) -> dict[str, Any]:
        """Return a scheme's name and fields; those of exact sums are a section."""
        if isinstance(scheme, ExactScheme):
            return {"name": scheme.name, "n_classes": int(scheme.n_classes)}
        if isinstance(scheme, FallbackScheme):
            scheme = scheme.base
        if not isinstance(scheme, MapScheme) or SCHEMES.get(scheme.name, (None,))[0] is not type(
            scheme
        ):
            raise TypeError(
                f"a model file holds the schemes {sorted([*SCHEMES, ExactScheme.name])}, got "
                f"{type(scheme).__name__}."
            )
        own = [field.name for field in fields(scheme) if field.name not in COMMON_FIELDS]
        return {
            "name": scheme.name,
            "n_classes": int(scheme.n_classes),
            "dtype": "float64" if scheme.double else "float32",
            "maps": self._maps(scheme.maps),
            **{name: self.field(getattr(scheme, name)) for name in own},
        }

    def _sections(self, scheme: Scheme) -> dict[str, Any]:
        """Return the sections of a curved base and of exact sums, where a scheme has them."""
        sections: dict[str, Any] = {}
        curve = scheme.maps[0].curve if scheme.maps else None
        if curve is not None:
            sections["curved_base"] = self._curve(curve)
        if isinstance(scheme, ExactScheme):
            sections["exact_source"] = {**self._exact(scheme), "fallback": None}
        if isinstance(scheme, FallbackScheme):
            fallback = {"margin": float(scheme.margin), "share": float(scheme.share)}
            sections["exact_source"] = {**self._exact(scheme.exact), "fallback": fallback}
        return sections

    def _curve(self, curve: CurvedBase) -> dict[str, Any]:
        """Return the curved base of a single map."""
        return {
            "preprocessing": self.step(curve.preprocessing),
            "constants": self.add(curve.constants),
            "slopes": self.add(curve.slopes),
            "squares": None if curve.squares is None else self.add(curve.squares),
            "decay": float(curve.decay),
            "n_listed": None if curve.n_listed is None else int(curve.n_listed),
        }

    def _exact(self, scheme: ExactScheme) -> dict[str, Any]:
        """Return exact sums with their class rule and probabilities."""
        step = scheme.preprocessing
        return {
            "sums": self._sums(scheme.sums),
            "preprocessing": None if step is None else self.step(step),
            "rule": scheme.rule,
            "class_order": self.add(scheme.class_order.astype(np.int64)),
            "decision_shape": scheme.decision_shape,
            "probabilities": self._probabilities(scheme.probabilities),
        }

    def _sums(self, sums: TrainedSvm | ClassDensities) -> dict[str, Any]:
        """Return the vectors and weights of an SVM or of densities."""
        common = {
            "vectors": self.add(sums.vectors),
            "n_support": self.add(sums.n_support.astype(np.int64)),
        }
        if isinstance(sums, ClassDensities):
            return {
                **common,
                "gamma": float(sums.gamma),
                "log_priors": self.add(sums.log_priors),
            }
        return {
            **common,
            "kernel": sums.kernel.name,
            "gamma": float(sums.kernel.gamma),
            "degree": int(sums.kernel.degree),
            "coef0": float(sums.kernel.coef0),
            "dual_coef": self.add(sums.dual_coef),
            "intercepts": self.add(sums.intercepts),
        }

    def _probabilities(self, found: PairSigmoids | Calibrators | None) -> dict[str, Any] | None:
        """Return the functions that make probabilities, in one of three forms."""
        if found is None:
            return None
        if isinstance(found, PairSigmoids):
            return {
                "slopes": self.add(found.slopes),
                "shifts": self.add(found.shifts),
                "like_libsvm": bool(found.like_libsvm),
                "inverse_temperature": float(found.inverse_temperature),
                "iterate_two_classes": bool(found.iterate_two_classes),
            }
        if found.sigmoids is not None:
            return {"sigmoids": self.add(found.sigmoids)}
        return {
            "sizes": self.add(np.array([len(x) for x, _ in found.isotonic], dtype=np.int64)),
            "thresholds": self.add(_join([x for x, _ in found.isotonic])),
            "values": self.add(_join([y for _, y in found.isotonic])),
        }

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
            "table": self.add(np.array(table, dtype=np.int64)),
            "points": self.add(_join([map_.points for map_ in maps])),
            "slopes": self.add(_join([map_.slopes for map_ in maps])),
            "offsets": self.add(_join([map_.offsets for map_ in maps])),
            "preprocessing": [self.step(step) for _, step in steps.values()],
        }


class _Reader(EntryReader):
    """Turns a header and arrays back into a model, trusting neither."""

    def model(self) -> Model:
        """Return the model."""
        header = self.container.header
        sections = self._sections(header)
        scheme = self._any_scheme(self.entry(header, "scheme", dict), sections)
        names = None if header.get("feature_names") is None else self._names(header)
        info = self._info_1(header) if self.is_version_1 else self._info(header)
        scores = self._outlier_scores(sections, scheme)
        return Model(scheme, self._classes(header, scheme), self.n_features, names, info, scores)

    def _outlier_scores(self, sections: dict[str, Any], scheme: Scheme) -> OutlierScores | None:
        """Return the scores of an outlier detector; None for a classifier."""
        if "outlier_scores" not in sections:
            return None
        section = self.entry(sections, "outlier_scores", dict)
        self._check_keys(section, SCORE_ENTRIES, "outlier_scores")
        offset = self.finite(self.entry(section, "offset", float))
        is_gaussian = self.entry(section, "is_gaussian", bool)
        if scheme.n_classes != 2 or len(scheme.maps) > 1:
            self.container.fail("two classes and at most one map of a detector", scheme.n_classes)
        try:
            return OutlierScores(offset, is_gaussian)
        except ValueError as error:
            self.container.fail("scores of an outlier detector", str(error))

    def _sections(self, header: dict[str, Any]) -> dict[str, Any]:
        """Return the optional sections, or raise for one that this version does not know."""
        sections: dict[str, Any] = {}
        if not self.is_version_1:
            sections = self.entry(header, "sections", dict)
        for name in sections:
            if name not in SECTIONS:
                self.container.fail(
                    f"no section but {list(SECTIONS)} (a newer limes may know it)", name
                )
        return sections

    def _any_scheme(self, entry: dict[str, Any], sections: dict[str, Any]) -> Scheme:
        """Return exact sums, maps, or maps that fall back to exact sums."""
        is_exact = self.entry(entry, "name", str) == ExactScheme.name
        if is_exact and "curved_base" in sections:
            self.container.fail("no section 'curved_base' without a map", sorted(sections))
        if "exact_source" not in sections:
            if is_exact:
                self.container.fail("the section 'exact_source' of the scheme 'exact'", sections)
            return self._scheme(entry, sections)
        section = self.entry(sections, "exact_source", dict)
        self._check_keys(section, {*EXACT_ENTRIES, "fallback"}, "exact_source")
        try:
            exact = self._exact(section)
            if not is_exact:
                return self._with_fallback(self._scheme(entry, sections), exact, section)
        except ValueError as error:
            if str(error).startswith(self.container.name):
                raise
            self.container.fail("the parts of an exact source", str(error))
        self._check_keys(entry, {"name", "n_classes"}, "scheme")
        if self.entry(entry, "n_classes", int) != exact.n_classes or section["fallback"]:
            self.container.fail(f"exact sums of {exact.n_classes} classes alone", entry)
        return exact

    def _with_fallback(
        self, base: MapScheme, exact: ExactScheme, section: dict[str, Any]
    ) -> FallbackScheme:
        """Return a map that falls back to exact sums."""
        fallback = self.entry(section, "fallback", dict)
        self._check_keys(fallback, {"margin", "share"}, "fallback")
        margin, share = (
            self.finite(self.entry(fallback, key, float)) for key in ("margin", "share")
        )
        return FallbackScheme(base, exact, margin, share)

    def _exact(self, section: dict[str, Any]) -> ExactScheme:
        """Return exact sums; what does not fit raises a ValueError."""
        step = section["preprocessing"]
        preprocessing = None if step is None else self.step(step)
        n_features = self.n_features if preprocessing is None else preprocessing.n_outputs
        sums = self._sums(self.entry(section, "sums", dict), n_features)
        return ExactScheme(
            sums,
            preprocessing,
            self.entry(section, "rule", str),
            self.typed_array(section, "class_order", 1, "i"),
            self.entry(section, "decision_shape", str),
            self._probabilities(section["probabilities"]),
        )

    def _sums(self, entry: dict[str, Any], n_features: int) -> TrainedSvm | ClassDensities:
        """Return the vectors and weights of an SVM or of densities."""
        is_density = "log_priors" in entry
        names = DENSITY_ENTRIES if is_density else SVM_ENTRIES
        self._check_keys(entry, {*names, "n_support"}, "sums")
        vectors = self._finite_array(entry, "vectors", 2)
        n_support = self.typed_array(entry, "n_support", 1, "i")
        if vectors.shape[1] != n_features:
            self.container.fail(f"vectors of {n_features} features", vectors.shape)
        if len(n_support) and not 0 <= n_support.min() <= n_support.max() <= len(vectors):
            self.container.fail(f"at most {len(vectors)} vectors of a class", n_support.tolist())
        gamma = self.finite(self.entry(entry, "gamma", float))
        if is_density:
            priors = self._finite_array(entry, "log_priors", 1)
            return ClassDensities(vectors, gamma, n_support.astype(np.intp), priors)
        degree = self.entry(entry, "degree", int)
        if not 0 <= degree <= MAX_DEGREE:
            self.container.fail(f"a degree from 0 to {MAX_DEGREE}", degree)
        coef0 = self.finite(self.entry(entry, "coef0", float))
        return TrainedSvm(
            Kernel(self.entry(entry, "kernel", str), gamma, degree, coef0),
            vectors,
            self._finite_array(entry, "dual_coef", 2),
            self._finite_array(entry, "intercepts", 1),
            n_support.astype(np.intp),
        )

    def _probabilities(self, entry: Any) -> PairSigmoids | Calibrators | None:
        """Return the functions that make probabilities, in the form whose entries are there."""
        if entry is None:
            return None
        if not isinstance(entry, dict):
            self.container.fail("functions that make probabilities", entry)
        if "slopes" in entry:
            kinds = {"like_libsvm": bool, "inverse_temperature": float, "iterate_two_classes": bool}
            self._check_keys(entry, {"slopes", "shifts", *kinds}, "probabilities")
            slopes, shifts = (self._finite_array(entry, key, 1) for key in ("slopes", "shifts"))
            plain = {key: self.finite(self.entry(entry, key, kinds[key])) for key in kinds}
            return PairSigmoids(slopes, shifts, **plain)
        if "sigmoids" in entry:
            self._check_keys(entry, {"sigmoids"}, "probabilities")
            return Calibrators(self._finite_array(entry, "sigmoids", 2))
        self._check_keys(entry, {"sizes", "thresholds", "values"}, "probabilities")
        parts = [_Slices(self._finite_array(entry, key, 1)) for key in ("thresholds", "values")]
        sizes = self.typed_array(entry, "sizes", 1, "i")
        if len(sizes) and sizes.min() < 1:
            self.container.fail("functions of one point or more", sizes.tolist())
        functions = [(parts[0].take(n), parts[1].take(n)) for n in sizes.tolist()]
        if parts[0].n_left or parts[1].n_left:
            self.container.fail("the end of 'thresholds' and 'values'", parts[0].n_left)
        return Calibrators(isotonic=tuple(functions))

    def _check_keys(self, entry: dict[str, Any], expected: set[str], name: str) -> None:
        """Raise unless all entries of an object are there and no others."""
        if set(entry) != expected:
            self.container.fail(f"the entries {sorted(expected)} of {name!r}", sorted(entry))

    def _finite_array(self, entry: dict[str, Any], key: str, n_dimensions: int) -> Array:
        """Return an array of floats without NaN and infinity."""
        array = self.typed_array(entry, key, n_dimensions)
        if not np.isfinite(array).all():
            self.container.fail(f"finite numbers in {key!r}", "others", array=entry[key])
        return array

    def _scheme(self, entry: dict[str, Any], sections: dict[str, Any]) -> MapScheme:
        """Return a scheme of maps of a known name with all its fields and no others."""
        name = self.entry(entry, "name", str)
        if name not in SCHEMES:
            writer = self.container.header.get("limes")
            self.container.fail(
                f"a scheme of {sorted([*SCHEMES, ExactScheme.name])} (the file is from limes "
                f"{writer!r:.20})",
                name,
            )
        kind, n_values = SCHEMES[name]
        stored = self.entry(entry, "fields", dict) if self.is_version_1 else entry
        self._check_field_names(kind, name, stored)
        maps = self._maps(self.entry(stored, "maps", dict))
        if "curved_base" in sections:
            maps = self._with_curve(maps, self.entry(sections, "curved_base", dict))
        n_classes = self.entry(stored, "n_classes", int)
        self._check_classes(n_classes, sum(map_.n_outputs for map_ in maps), n_values)
        own = {
            field.name: self._scheme_field(stored, field.name, get_type_hints(kind)[field.name])
            for field in fields(kind)
            if field.name not in COMMON_FIELDS
        }
        is_double = self._is_double(stored)
        try:
            return kind(maps, n_classes, is_double, **own)
        except ValueError as error:
            self.container.fail(f"the parts of {name!r}", str(error))

    def _with_curve(
        self, maps: tuple[BorderMap, ...], section: dict[str, Any]
    ) -> tuple[BorderMap, ...]:
        """Return the single map of a scheme with its curved base."""
        self._check_keys(section, CURVE_ENTRIES, "curved_base")
        if len(maps) != 1:
            self.container.fail("one map with the section 'curved_base'", f"{len(maps)} maps")
        step, squares = self.step(section["preprocessing"]), section["squares"]
        parts = (step.shift, step.scale if step.matrix is None else step.matrix)
        if not all(np.isfinite(part).all() for part in parts):
            self.container.fail("finite numbers before a curved base", "others")
        n_listed = section["n_listed"]
        try:
            curve = CurvedBase(
                step,
                self._finite_array(section, "constants", 1),
                self._finite_array(section, "slopes", 2),
                None if squares is None else self._finite_array(section, "squares", 2),
                self.finite(self.entry(section, "decay", float)),
                None if n_listed is None else self.entry(section, "n_listed", int),
            )
            return (replace(maps[0], curve=curve),)
        except ValueError as error:
            if str(error).startswith(self.container.name):
                raise
            self.container.fail("the parts of a curved base", str(error))

    def _check_field_names(self, kind: type[MapScheme], name: str, stored: dict[str, Any]) -> None:
        """Raise unless all fields of a scheme are there and no others."""
        if self.is_version_1:
            expected = {self.name_in_version(field.name) for field in fields(kind)}
        else:
            expected = {field.name for field in fields(kind)} - {"double"} | {"name", "dtype"}
        if set(stored) != expected:
            self.container.fail(f"the fields {sorted(expected)} of {name!r}", sorted(stored))

    def _is_double(self, stored: dict[str, Any]) -> bool:
        """Return whether a scheme computes in float64."""
        if self.is_version_1:
            return bool(self.entry(stored, "double", bool))
        dtype = self.entry(stored, "dtype", str)
        if dtype not in ("float32", "float64"):
            self.container.fail("the dtype 'float32' or 'float64'", dtype)
        return bool(dtype == "float64")

    def _scheme_field(self, stored: dict[str, Any], name: str, kind: Any) -> Any:
        """Return a field of a scheme, of the type that its dataclass has."""
        if kind in PLAIN_TYPES:
            return self.finite(self.entry(stored, self.name_in_version(name), kind))
        return self.array(stored, name)

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
        table = self.typed_array(entry, "table", 2, "i")
        entries = self.entry(entry, self.name_in_version("preprocessing"), list)
        steps = [None, *(self.step(step) for step in entries)]
        if table.shape[1] != N_COLUMNS or not len(table):
            self.container.fail(
                f"a table of {N_COLUMNS} columns", table.shape, array=entry["table"]
            )
        parts = {
            name: _Slices(self.typed_array(entry, name, 1))
            for name in ("points", "slopes", "offsets")
        }
        maps = []
        for row in table.tolist():
            if min(row[0], row[1], row[3]) < 1 or not -1 <= row[2] < len(entries):
                self.container.fail("sizes of maps", row, array=entry["table"])
            maps.append(self._map(row, steps[row[2] + 1], parts))
        for name, slices in parts.items():
            if slices.n_left:
                key = self.name_in_version(name)
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

    def _classes(self, header: dict[str, Any], scheme: Scheme) -> Labels:
        """Return the labels, as many as the scheme has and no two alike."""
        classes = self.array(header, "classes")
        if classes.shape != (scheme.n_classes,) or scheme.n_classes < 2:
            self.container.fail(f"{scheme.n_classes} labels, at least two", classes.shape)
        is_number = classes.dtype.kind != "f" or bool(np.isfinite(classes).all())
        if len(np.unique(classes)) < len(classes) or not is_number:
            self.container.fail("labels that differ", classes.tolist())
        return classes.copy()

    def _names(self, header: dict[str, Any]) -> NDArray[Any]:
        """Return the names of the features, as scikit-learn keeps them."""
        names = self.array(header, "feature_names")
        if names.shape != (self.n_features,) or names.dtype.kind not in "UO":
            self.container.fail(f"{self.n_features} names of features", names.shape)
        return names.astype(object)

    def _info(self, header: dict[str, Any]) -> FitInfo:
        """Return what the fit found out."""
        entry = self.entry(header, "info", dict)
        # Older files lack these; classifiers have no correlation of scores.
        newer = ("coverage_agreement", "fit_seconds", "features", "score_correlation")
        entry = {**dict.fromkeys(newer), "agreement_rows": "", "warnings": [], **entry}
        self._check_keys(entry, {field.name for field in fields(FitInfo)}, "info")
        return self._make_info(entry, entry)

    def _info_1(self, header: dict[str, Any]) -> FitInfo:
        """Return what the fit found out, from the attributes of a file of version 1."""
        attributes = self.entry(header, "attributes", dict)
        for name in attributes:
            if not (name.isidentifier() and name.endswith("_") and not name.startswith("_")):
                self.container.fail("names of attributes", name)
        names = ("agreement", "agreement_error", "placement")
        entry = {name: attributes.get(f"{name}_") for name in names}
        return self._make_info({**entry, "candidates": header.get("tradeoff", [])}, header)

    def _make_info(self, entry: dict[str, Any], header: dict[str, Any]) -> FitInfo:
        """Return what the fit found out, each value of its type."""
        candidates = self.entry(entry, "candidates", list)
        placement = entry["placement"]
        if placement is not None and type(placement) is not str:
            self.container.fail("a placement in words, or none", placement)
        return FitInfo(
            self.number(entry["agreement"], "agreement"),
            self.number(entry["agreement_error"], "agreement_error"),
            placement,
            [self._candidate(candidate) for candidate in candidates],
            self._parameters(self.entry(header, "parameters", dict)),
            self.number(entry.get("coverage_agreement"), "coverage_agreement"),
            self.number(entry.get("fit_seconds"), "fit_seconds"),
            self._features(entry),
            self.number(entry.get("score_correlation"), "score_correlation"),
            self.entry({"agreement_rows": "", **entry}, "agreement_rows", str),
            self._sentences(self.entry({"warnings": [], **entry}, "warnings", list)),
        )

    def _sentences(self, entries: list[Any]) -> list[str]:
        """Return texts."""
        for entry in entries:
            if type(entry) is not str:
                self.container.fail("warnings in words", entry)
        return entries

    def _features(self, entry: dict[str, Any]) -> FeatureStatistics | None:
        """Return the statistics of the features, None where the file has none."""
        if entry.get("features") is None:
            return None
        stored = self._finite_array(entry, "features", 2)
        expected = (len(STATISTICS), self.n_features)
        if stored.shape != expected:
            self.container.fail(f"statistics of the features of shape {expected}", stored.shape)
        features = FeatureStatistics(*stored)
        is_inside = (features.minimum <= features.mean) & (features.mean <= features.maximum)
        if not (is_inside & (features.std >= 0)).all():
            self.container.fail("each mean between its minimum and maximum", "others")
        return features

    def _candidate(self, entry: Any) -> Candidate:
        """Return a candidate, all of it of the right types."""
        hints = get_type_hints(Candidate)
        needed = [
            self.name_in_version(field.name)
            for field in fields(Candidate)
            if field.default is MISSING
        ]
        if not isinstance(entry, dict) or not set(needed) <= entry.keys():
            self.container.fail(f"a candidate with {', '.join(needed)}", entry)
        values: dict[str, Any] = {}
        for name, kind in hints.items():
            key = self.name_in_version(name)
            if key in entry:
                values[name] = (
                    self.number(entry[key], key)
                    if kind is float
                    else self.finite(self.entry(entry, key, kind))
                )
        return Candidate(**values)

    def _parameters(self, entries: dict[str, Any]) -> dict[str, Any]:
        """Return parameters of the estimator, by names that can be those of parameters."""
        for name in entries:
            if not name.isidentifier() or name.startswith("_") or name == "estimator":
                self.container.fail("names of parameters", name)
        decoded = {name: self.plain(value) for name, value in entries.items()}
        for name, value in decoded.items():
            if not _is_plain(value):
                self.container.fail(f"a plain value of {name!r}", value)
        return decoded


def _encode_info(info: FitInfo) -> dict[str, Any]:
    """Return what a fit found out as JSON, with null for nan."""
    kinds = get_type_hints(Candidate)
    correlation = _or_null(info.score_correlation)
    return {
        **({} if correlation is None else {"score_correlation": correlation}),
        "agreement": _or_null(info.agreement),
        "agreement_error": _or_null(info.agreement_error),
        "coverage_agreement": _or_null(info.coverage_agreement),
        "fit_seconds": _or_null(info.fit_seconds),
        "agreement_rows": info.agreement_rows,
        "warnings": list(info.warnings),
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


def _encode_scores(scores: OutlierScores | None) -> dict[str, Any]:
    """Return the section of an outlier detector; nothing for a classifier."""
    if scores is None:
        return {}
    section = {"offset": float(scores.offset), "is_gaussian": bool(scores.is_gaussian)}
    return {"outlier_scores": section}


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
    """Raise unless the model predicts a row: its parts fit each other and the classes."""
    scheme, n_classes = model.scheme, len(model.classes)
    try:
        with np.errstate(all="ignore"):
            row = _middle_row(scheme)
            class_index, found = scheme.classify(row), scheme.decision(row)
            found = scheme.predict_proba(row) if scheme.has_probabilities else found
    # Whatever goes wrong with numbers from a file, it is the file that is wrong.
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".split("\n")[0]
        container.fail("maps that predict a row", reason)
    is_right = found.shape == (1, n_classes) or not scheme.has_probabilities
    if not is_right or not 0 <= int(class_index[0]) < n_classes:
        container.fail(f"a prediction of {n_classes} classes", found.shape)


def _middle_row(scheme: Scheme) -> NDArray[np.float64]:
    """Return a row amid the points or vectors, in range whatever the model was fitted on."""
    if isinstance(scheme, ExactScheme):
        step, points = scheme.preprocessing, scheme.sums.vectors
    else:
        step, points = scheme.maps[0].preprocessing, scheme.maps[0].points
    if step is not None:
        return np.array(step.shift[None])
    return np.array(points[:1]) if len(points) else np.zeros((1, scheme.n_features))


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
