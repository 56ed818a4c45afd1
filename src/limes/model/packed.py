"""Arrays of a scheme as programs compute with them, and how many bytes they take."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limes._typing import Array, Indices, Labels
from limes.model.affine import AffineMap, to_dense
from limes.model.border_map import BorderMap, packed_form
from limes.model.coupling import class_pairs
from limes.model.curved_base import CurvedBase
from limes.model.exact import ClassDensities, ExactScheme, FallbackScheme, PairSigmoids
from limes.model.schemes import MapScheme, Scheme, TreeScheme
from limes.model.svm import Kernel, TrainedSvm

Real = NDArray[np.floating[Any]]
# Weights beyond this power of two are scaled, which changes no sign: their sums stay in range.
MAX_WEIGHT_EXPONENT = 40
# Stands for the logarithm of a prior of 0.
MIN_LOG_PRIOR = -1e30
# Of a child in the table of a tree, which is an int16.
CHILD_BYTES = 2
# Of long, long long and double, as small processors have them.
LABEL_BYTES = {"long": 4, "long long": 8, "unsigned long long": 8, "double": 8}


@dataclass(frozen=True, eq=False)
class PackedMap:
    """One map: scores ``biases - z @ points.T``, values ``offsets + slopes @ t``."""

    # Shape (n_points, n_search). Border points in the coordinates of the search.
    points: Real
    # Shape (n_points,). The nearest point has the lowest score.
    biases: Real
    # Shape (n_points, n_values, n_features). Slopes of the linear functions.
    slopes: Real
    # Shape (n_points, n_values). Values of the linear functions at the centre.
    offsets: Real
    # Number of nearest points whose values are averaged.
    n_blended: int

    @property
    def n_points(self) -> int:
        """Number of border points."""
        return len(self.biases)

    @property
    def n_values(self) -> int:
        """Number of linear functions of each point."""
        return int(self.offsets.shape[1])


@dataclass(frozen=True, eq=False)
class PackedCurve:
    """The curved base of a map, as a polynomial of terms v of a row.

    ``v = (x - shift) @ projection + offsets``, or ``(x[columns] - shift) * scale + offsets``. With
    ``q = 1 / (1 + decay * sum(v²))``, which keeps every product in range, the value of an output is
    ``q (q (constants + slopes @ v) + sum of squares[i, j] (q v_i) v_j)``.
    """

    # Shape (n_features,), or (n_terms,) without a projection. None where it is the center of the
    # map, so that ``x - shift`` is at hand.
    shift: Real | None
    # Shape (n_features, n_terms).
    projection: Real | None
    # Shape (n_terms,), all three; None where they change nothing.
    columns: Indices | None
    scale: Real | None
    # What the rounding of the shift took from the terms.
    offsets: Real | None
    # Shape (n_outputs,).
    constants: Real
    # Shape (n_outputs, n_terms).
    slopes: Real
    # Shape (n_outputs, n_products), as in CurvedBase.
    squares: Real | None
    # One of limes.model.curved_base.SHAPES.
    shape: str
    # That of the sum of squares, not of their mean.
    decay: float
    # Number of classes with products of terms; None for all.
    n_listed: int | None

    @property
    def n_terms(self) -> int:
        """Number of terms."""
        return int(self.slopes.shape[1])

    @property
    def column_bytes(self) -> int:
        """Bytes of the number of one column, 0 where no columns are selected."""
        if self.columns is None:
            return 0
        return 2 if self.columns.max() < 2**16 else 4

    def arrays(self) -> dict[str, Real]:
        """Return the arrays of floats that a program stores, by name."""
        names = ("shift", "projection", "scale", "offsets", "constants", "slopes", "squares")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


@dataclass(frozen=True, eq=False)
class Packed:
    """Maps with what they share: ``t = x - center``, ``z = t @ projection``, or ``z = t``."""

    # Shape (n_features,). Subtracted from each row.
    center: Real
    # Shape (n_features, n_search). None if the search runs in the space of the rows.
    projection: Real | None
    maps: tuple[PackedMap, ...]
    # Added to the values of the only map; None for none.
    curve: PackedCurve | None = None

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return len(self.center)

    @property
    def is_searched(self) -> bool:
        """Whether any map has more than one point."""
        return any(part.n_points > 1 for part in self.maps)

    @property
    def n_values(self) -> int:
        """Number of values of all maps together."""
        return sum(part.n_values for part in self.maps)

    @property
    def size_bytes(self) -> int:
        """Bytes of the number of points of one map."""
        return 2 if max(part.n_points for part in self.maps) < 2**16 else 4


def pack(scheme: MapScheme, dtype: Any) -> Packed:
    """Return the maps of a scheme in the numbers that a program computes with.

    As in the core, the centre is rounded, and biases and offsets are corrected for the difference.
    """
    curve = _only_curve(scheme)
    form = packed_form(scheme.maps if curve is None else [_around_curve(scheme.maps[0], curve)])
    center = round_to(form.center, dtype)
    shift = center.astype(np.float64) - form.center
    projection = None if form.projection is None else to_dense(form.projection)
    search_shift = shift if projection is None else shift @ projection
    maps = [_pack_map(part, shift, search_shift, form.blend, dtype) for part in form.parts]
    rounded_projection = None if projection is None else round_to(projection, dtype)
    packed_curve = None if curve is None else _pack_curve(curve, center, dtype)
    return Packed(center, rounded_projection, tuple(maps), packed_curve)


def _only_curve(scheme: MapScheme) -> CurvedBase | None:
    """Return the curved base of a scheme of one map, None if it has none."""
    curves = [map_.curve for map_ in scheme.maps if map_.curve is not None]
    if curves and (len(scheme.maps) > 1 or scheme.name not in ("pairwise", "shared")):
        raise ValueError(
            "an export supports a curved base in the scheme 'shared' and in that of two classes, "
            f"got {scheme.name!r} of {len(scheme.maps)!r} maps: fit with curved=False."
        )
    return curves[0] if curves else None


def _around_curve(map_: BorderMap, curve: CurvedBase) -> BorderMap:
    """Return a map of one point, wherever that is, with its centre at that of the curved base."""
    if map_.n_borders > 1:
        return map_
    return replace(map_, points=curve.preprocessing.shift[None], preprocessing=None)


def _pack_curve(curve: CurvedBase, center: Real, dtype: Any) -> PackedCurve:
    """Return a curved base, with what the rounding of its shift takes from the terms."""
    step = curve.preprocessing
    shift = round_to(step.shift, dtype)
    moved = step.apply(shift.astype(np.float64)[None])[0]
    used = slice(None) if step.is_dense else step.columns
    is_center = np.array_equal(shift[used], center[used])
    n_listed = None if curve.squares is None else curve.n_listed
    return PackedCurve(
        None if is_center else shift[used],
        **_packed_step(step, dtype),
        offsets=round_to(moved, dtype) if np.any(moved) else None,
        constants=round_to(curve.constants, dtype),
        slopes=round_to(curve.slopes, dtype),
        squares=None if curve.squares is None else round_to(curve.squares, dtype),
        shape=curve.shape,
        decay=curve.decay / curve.n_terms,
        n_listed=None if n_listed == curve.n_outputs else n_listed,
    )


def _pack_map(
    part: tuple[Array, Array, Array, Array],
    shift: Array,
    search_shift: Array,
    blend: int,
    dtype: Any,
) -> PackedMap:
    """Return one map, corrected for the rounding of the centre."""
    points, biases, slopes, offsets = part
    return PackedMap(
        round_to(points, dtype),
        round_to(biases - points @ search_shift, dtype),
        round_to(slopes, dtype),
        round_to(offsets + slopes @ shift, dtype),
        min(blend, max(len(biases) - 1, 1)),
    )


def round_to(array: Array | Real, dtype: Any) -> Real:
    """Round to the type of a program, if that can hold the numbers."""
    with np.errstate(over="ignore"):
        rounded = np.ascontiguousarray(array, dtype=dtype)
    if not np.isfinite(rounded).all():
        raise ValueError(
            f"the model has numbers too large for {np.dtype(dtype).name}: export it as 'float64'."
        )
    return rounded


@dataclass(frozen=True, eq=False)
class PackedSums:
    """Sums of kernels of a prepared row z with vectors, or linear functions of the row.

    ``z = (x - center) @ projection + offsets``, or ``(x - center)[columns] * scale + offsets``.
    Where several are None, the row is used as it is. The value of a pair is its intercept plus the
    weighted kernels of the vectors of its two classes; a positive one means the second class.
    """

    kernel: Kernel
    n_features: int
    # Shape (n_features,).
    center: Real | None
    # Shape (n_features, n_outputs).
    projection: Real | None
    # Shape (n_outputs,), all three.
    columns: Indices | None
    scale: Real | None
    offsets: Real | None
    # Shape (n_vectors, n_outputs). Those of class 0 first; times gamma unless the kernel is rbf.
    vectors: Real
    # Shape (n_classes,). Number of vectors of each class.
    n_support: Indices
    # Shape (n_vectors, n_classes - 1): weights in the pairs with the other classes, in ascending
    # order. Densities have none.
    weights: Real
    # Shape (n_pairs,), or log priors of shape (n_classes,).
    intercepts: Real
    # Shape (n_pairs, n_features). Linear functions of ``x - center`` instead of sums, or None.
    slopes: Real | None
    # Weights, slopes and intercepts are divided by this power of two.
    weight_unit: float

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.n_support)

    @property
    def n_outputs(self) -> int:
        """Number of features of a prepared row."""
        return int(self.vectors.shape[1])

    @property
    def is_density(self) -> bool:
        """Whether the sums are densities of classes."""
        return not self.weights.shape[1]

    @property
    def one(self) -> float:
        """The number 1 in the unit of decision values, as far as their type can hold it."""
        return min(1.0 / self.weight_unit, float(np.finfo(self.weights.dtype).max) / 8)

    def arrays(self) -> dict[str, Real]:
        """Return the arrays of floats that a program stores, by name."""
        sums = ("vectors", "weights") if self.slopes is None else ("slopes",)
        names = ("center", "projection", "scale", "offsets", "intercepts", *sums)
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


def pack_sums(scheme: ExactScheme, dtype: Any) -> PackedSums:
    """Return the sums of a scheme in the numbers that a program computes with."""
    scheme = _without_gamma_zero(scheme)
    sums, step = scheme.sums, scheme.preprocessing
    kernel, weights, intercepts = _kernel_and_weights(sums)
    if abs(kernel.gamma) > np.finfo(dtype).max:
        raise ValueError(
            f"gamma={kernel.gamma!r} is too large for {np.dtype(dtype).name}: export with "
            "dtype='float64'."
        )
    unit = _weight_unit(weights, intercepts)
    weights, constants = weights / unit, intercepts / unit
    center = _round_center(scheme, kernel, dtype)
    origin = np.zeros(scheme.n_features) if center is None else center.astype(np.float64)
    moved = origin if step is None else step.apply(origin[None])[0]
    slopes = None
    if isinstance(sums, TrainedSvm) and _is_collapsed(sums):
        functions = _pair_functions(sums, weights)
        constants = constants + functions @ moved
        slopes = functions if step is None else step.pull_back(functions)
    is_distance = kernel.name == "rbf"
    vectors = sums.vectors - moved if is_distance else kernel.gamma * sums.vectors
    has_offsets = slopes is None and not is_distance and bool(np.any(moved))
    return PackedSums(
        kernel,
        scheme.n_features,
        center,
        **_packed_step(None if slopes is not None else step, dtype),
        offsets=round_to(moved, dtype) if has_offsets else None,
        vectors=round_to(vectors, dtype),
        n_support=sums.n_support,
        weights=round_to(weights, dtype),
        intercepts=round_to(constants, dtype),
        slopes=None if slopes is None else round_to(slopes, dtype),
        weight_unit=unit,
    )


def _without_gamma_zero(scheme: ExactScheme) -> ExactScheme:
    """Return the same sums with gamma 1 where gamma is 0 in a kernel of distances.

    Every kernel value is then 1, also where the distance overflows: that of zeros to zeros.
    """
    sums = scheme.sums
    is_rbf = isinstance(sums, ClassDensities) or sums.kernel.name == "rbf"
    gamma = sums.gamma if isinstance(sums, ClassDensities) else sums.kernel.gamma
    if not is_rbf or gamma > 0:
        return scheme
    first = np.zeros(1, dtype=np.intp)
    step = AffineMap(np.zeros(scheme.n_features), columns=first, scale=np.zeros(1))
    zeros = np.zeros((len(sums.vectors), 1))
    if isinstance(sums, ClassDensities):
        return replace(scheme, sums=replace(sums, vectors=zeros, gamma=1.0), preprocessing=step)
    changed = replace(sums, vectors=zeros, kernel=Kernel("rbf", 1.0))
    return replace(scheme, sums=changed, preprocessing=step)


def _kernel_and_weights(sums: TrainedSvm | ClassDensities) -> tuple[Kernel, Array, Array]:
    """Return the kernel, the weights of vectors and the constants, positive for second classes."""
    if isinstance(sums, ClassDensities):
        kernel = Kernel("rbf", sums.gamma)
        priors = np.maximum(sums.log_priors, MIN_LOG_PRIOR)
        return kernel, np.empty((len(sums.vectors), 0)), priors
    kernel = Kernel("linear") if sums.kernel.name == "linear" else sums.kernel
    return kernel, -sums.dual_coef.T, -sums.intercepts


def _weight_unit(weights: Array, intercepts: Array) -> float:
    """Return the power of two to divide by; 1 where the numbers are of usual size."""
    if not weights.size:
        return 1.0
    largest = max(np.abs(weights).max(), np.abs(intercepts).max())
    exponent = int(np.frexp(largest)[1])
    return 1.0 if abs(exponent) <= MAX_WEIGHT_EXPONENT else float(np.ldexp(1.0, exponent))


def _round_center(scheme: ExactScheme, kernel: Kernel, dtype: Any) -> Real | None:
    """Return what is subtracted from rows: for distances the middle of the vectors."""
    step, vectors = scheme.preprocessing, scheme.sums.vectors
    if kernel.name != "rbf":
        return None if step is None or not np.any(step.shift) else round_to(step.shift, dtype)
    mean = vectors.mean(axis=0) if len(vectors) else np.zeros(vectors.shape[1])
    if step is None:
        center = mean
    elif step.matrix is not None:
        center = step.undo(mean[None])[0]
    else:
        safe = np.where(step.scale == 0, 1.0, step.scale)
        center = step.shift.copy()
        center[step.columns] += np.where(step.scale == 0, 0.0, mean / safe)
    return round_to(center, dtype)


def _is_collapsed(svm: TrainedSvm) -> bool:
    """Return whether linear functions of pairs are smaller than a linear kernel's vectors."""
    if svm.kernel.name != "linear":
        return False
    n_vectors, n_features = svm.vectors.shape
    return len(svm.intercepts) * n_features <= n_vectors * (n_features + svm.n_classes - 1)


def _pair_functions(svm: TrainedSvm, weights: Array) -> Array:
    """Return the slopes of the pairs of a linear kernel."""
    ends = np.cumsum(svm.n_support)
    parts = [slice(end - n, end) for end, n in zip(ends, svm.n_support, strict=True)]
    return np.array(
        [
            weights[parts[first], second - 1] @ svm.vectors[parts[first]]
            + weights[parts[second], first] @ svm.vectors[parts[second]]
            for first, second in class_pairs(svm.n_classes)
        ]
    )


def _packed_step(step: AffineMap | None, dtype: Any) -> dict[str, Any]:
    """Return the arrays of the linear steps before the source."""
    if step is None:
        return {"projection": None, "columns": None, "scale": None}
    if step.matrix is not None:
        return {"projection": round_to(step.matrix, dtype), "columns": None, "scale": None}
    is_whole = np.array_equal(step.columns, np.arange(step.n_features))
    is_scaled = bool(np.any(step.scale != 1.0))
    return {
        "projection": None,
        "columns": None if is_whole else step.columns,
        "scale": round_to(step.scale, dtype) if is_scaled else None,
    }


@dataclass(frozen=True, eq=False)
class PackedCalibration:
    """Functions from decision values to probabilities, for the classes in the order of the sums.

    Those of pairs, or those of one-vs-rest decision values; of two classes that of the second.
    """

    # Shape (n_functions,), both: log odds are ``slopes * f + shifts``. Empty for isotonic ones.
    slopes: Real
    shifts: Real
    # Thresholds and probabilities of each function.
    isotonic: tuple[tuple[Real, Real], ...]

    def arrays(self) -> dict[str, Real]:
        """Return the arrays of floats that a program stores, by name."""
        if not self.isotonic:
            return {"calibration": np.column_stack([self.slopes, self.shifts])}
        thresholds, levels = (np.concatenate(parts) for parts in zip(*self.isotonic, strict=True))
        return {"thresholds": thresholds, "levels": levels}


def pack_calibration(scheme: ExactScheme, unit: float, dtype: Any) -> PackedCalibration | None:
    """Return how a program turns values, divided by a unit, into probabilities; None for none."""
    source, order = scheme.probabilities, scheme.class_order
    if source is None:
        return None
    if isinstance(source, PairSigmoids):
        numbers = round_to(source.slopes * unit, dtype), round_to(source.shifts, dtype)
        return PackedCalibration(*numbers, ())
    if scheme.n_classes > 2 and scheme.decision_shape == "ovo":
        raise ValueError(
            "an export of calibrated probabilities needs decision_function_shape='ovr', got 'ovo': "
            "fit the SVC with 'ovr'."
        )
    # The decision function of two classes is that of the model's second class.
    is_turned = scheme.n_classes == 2 and order[1] == 0
    scale = unit if scheme.n_classes == 2 else 1.0
    places = [0] if scheme.n_classes == 2 else order
    if source.sigmoids is not None:
        a, b = source.sigmoids[places].T
        numbers = round_to(-a * scale, dtype), round_to(b if is_turned else -b, dtype)
        return PackedCalibration(*numbers, ())
    functions = [source.isotonic[place] for place in places]
    if is_turned:
        functions = [(-x[::-1], 1.0 - y[::-1]) for x, y in functions]
    isotonic = tuple(_distinct_steps(x / scale, y, dtype) for x, y in functions)
    empty = np.empty(0, dtype)
    return PackedCalibration(empty, empty, isotonic)


def _distinct_steps(x: Array, y: Array, dtype: Any) -> tuple[Real, Real]:
    """Return rounded thresholds and levels, the last of equal thresholds."""
    thresholds = round_to(x, dtype)
    is_last = np.append(np.diff(thresholds) > 0, True)
    return thresholds[is_last], round_to(y, dtype)[is_last]


class TableSizes(dict[str, int]):
    """Bytes of each table of a C header, by name."""

    @property
    def total(self) -> int:
        """Bytes of all tables."""
        return sum(self.values())

    @property
    def largest(self) -> int:
        """Bytes of the largest table."""
        return max(self.values())


def table_bytes(scheme: Scheme, classes: Labels) -> int:
    """Return the bytes of the tables of a float32 C header, with labels: what max_bytes limits.

    A map with fallback counts with the exact sums.
    """
    return table_sizes(scheme, classes, np.float32).total


def table_sizes(scheme: Scheme, classes: Labels | None, dtype: Any) -> TableSizes:
    """Return the bytes of each table of a C header; without classes there are no labels."""
    labels = {} if classes is None else {"labels": label_bytes(classes)}
    if isinstance(scheme, FallbackScheme):
        parts = {"map": scheme.base, "exact": scheme.exact}
        named = {
            f"{part}_{name}": size
            for part, one in parts.items()
            for name, size in table_sizes(one, None, dtype).items()
        }
        return TableSizes({**named, **labels})
    if isinstance(scheme, ExactScheme):
        return TableSizes({**_exact_sizes(scheme, dtype), **labels})
    assert isinstance(scheme, MapScheme)
    return TableSizes({**_map_sizes(scheme, pack(scheme, dtype)), **labels})


def _map_sizes(scheme: MapScheme, packed: Packed) -> dict[str, int]:
    """Return the bytes of the tables of maps."""
    sizes = {
        "center": packed.center.nbytes,
        "projection": 0 if packed.projection is None else packed.projection.nbytes,
        "sizes": packed.size_bytes * len(packed.maps),
        "children": CHILD_BYTES * scheme.children.size if isinstance(scheme, TreeScheme) else 0,
    }
    names = ("points", "biases", "slopes", "offsets")
    for name in names if packed.is_searched else names[2:]:
        sizes[name] = sum(getattr(part, name).nbytes for part in packed.maps)
    curve = packed.curve
    if curve is not None:
        sizes |= {f"curve_{name}": array.nbytes for name, array in curve.arrays().items()}
        sizes["curve_columns"] = curve.column_bytes * curve.n_terms
    return {name: int(size) for name, size in sizes.items()}


def _exact_sizes(scheme: ExactScheme, dtype: Any) -> dict[str, int]:
    """Return the bytes of the tables of exact sums."""
    sums = pack_sums(scheme, dtype)
    calibration = pack_calibration(scheme, sums.weight_unit, dtype)
    arrays = sums.arrays() | ({} if calibration is None else calibration.arrays())
    indices = exact_indices(scheme, sums, calibration)
    itemsize = index_bytes(indices)
    return {
        **{name: int(array.nbytes) for name, array in arrays.items()},
        **{name: itemsize * len(array) for name, array in indices.items()},
    }


def exact_indices(
    scheme: ExactScheme, sums: PackedSums, calibration: PackedCalibration | None
) -> dict[str, Indices]:
    """Return the tables of whole numbers of exact sums, which have one type."""
    indices = {} if sums.slopes is not None else {"sizes": sums.n_support}
    if sums.columns is not None:
        indices["columns"] = sums.columns
    if calibration is not None and calibration.isotonic:
        indices["steps"] = np.array([len(x) for x, _ in calibration.isotonic])
    if not np.array_equal(scheme.class_order, np.arange(scheme.n_classes)):
        indices["order"] = scheme.class_order
    return indices


def index_bytes(indices: dict[str, Indices]) -> int:
    """Return the bytes of the smallest type for tables of whole numbers: 2 or 4."""
    return 2 if max((part.max() for part in indices.values()), default=0) < 2**16 else 4


def label_bytes(classes: Labels) -> int:
    """Return the bytes of the table of labels in C."""
    kind, width = label_type(classes)
    return len(classes) * LABEL_BYTES.get(kind, width)


def label_type(classes: Labels) -> tuple[str, int]:
    """Return the C type of labels, and the length of a text with its last 0 (0 for numbers).

    Examples
    --------
    >>> label_type(np.array(["ash", "birch"])), label_type(np.array([1, 2]))
    (('char', 6), ('long', 0))
    """
    if classes.dtype.kind in "OU":
        texts = [str(label).encode("utf-8", "surrogatepass") for label in classes]
        return "char", 1 + max(map(len, texts))
    if classes.dtype.kind == "f":
        return "double", 0
    # The smallest type that C guarantees to hold them.
    if all(abs(int(label)) < 2**31 for label in classes):
        return "long", 0
    return ("unsigned long long" if max(map(int, classes)) >= 2**63 else "long long"), 0
