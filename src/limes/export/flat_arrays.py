"""Arrays of a scheme as programs compute with them; the rounding error of exact sums."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from limes._typing import Array, Indices
from limes.classifier import BordersClassifier
from limes.model.affine import AffineMap, to_dense
from limes.model.border_map import BorderMap, packed_form
from limes.model.coupling import class_pairs
from limes.model.curved_base import CurvedBase
from limes.model.exact import ClassDensities, ExactScheme, FallbackScheme, PairSigmoids
from limes.model.schemes import MapScheme, Scheme
from limes.model.svm import Kernel, TrainedSvm

Real = NDArray[np.floating[Any]]
# Weights beyond this power of two are scaled, which changes no sign: their sums stay in range.
MAX_WEIGHT_EXPONENT = 40
# Stands for the logarithm of a prior of 0.
MIN_LOG_PRIOR = -1e30
# Kernels count as at least this much in the bound of squared differences: it is narrower for all
# others, since the relative error of an exponential grows with its exponent.
LEAST_KERNEL = 1e-4
# A bound is of first order: it holds, with this factor, where it is below the second number.
SECOND_ORDER = 1.02
MAX_BOUND = 0.01


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

    def arrays(self) -> list[NDArray[Any]]:
        """Return the arrays of numbers that a program stores, but the columns."""
        before = [self.shift, self.projection, self.scale, self.offsets]
        arrays = [*before, self.constants, self.slopes, self.squares]
        return [array for array in arrays if array is not None]


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


def fitted_scheme(fast: BordersClassifier) -> Scheme:
    """Return the scheme of a fitted classifier."""
    if not isinstance(fast, BordersClassifier):
        raise TypeError(
            f"an export takes a fitted BordersClassifier, got {type(fast).__name__}: give what "
            "limes.accelerate or limes.load returned."
        )
    check_is_fitted(fast)
    return fast.scheme_


def scheme_to_export(fast: BordersClassifier, *, fallback: bool) -> Scheme:
    """Return the scheme to write: without its fallback, unless that is asked for."""
    scheme = fitted_scheme(fast)
    if isinstance(scheme, FallbackScheme):
        return scheme if fallback else scheme.without_fallback()
    if fallback:
        raise ValueError(
            f"fallback=True needs a map with fallback to exact sums, got the scheme "
            f"{scheme.name!r} without one: export it without fallback."
        )
    return scheme


def resolve_dtype(scheme: Scheme, dtype: str | None) -> np.dtype[Any]:
    """Return the type to compute with, by default that of the classifier; exact sums: float32."""
    if dtype is None:
        is_double = isinstance(scheme, MapScheme | FallbackScheme) and scheme.double
        return np.dtype(np.float64 if is_double else np.float32)
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be 'float32', 'float64' or None, got {dtype!r}.")
    return np.dtype(dtype)


def unknown_scheme(scheme: Scheme, known: Iterable[str], form: str) -> ValueError:
    """Return the error for a scheme that an export does not support."""
    return ValueError(
        f"an export to {form} supports the schemes {sorted(known)}, got {scheme.name!r}: fit with "
        "one of these."
    )


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

    def arrays(self) -> list[NDArray[Any]]:
        """Return the arrays of numbers that a program stores."""
        own = [self.center, self.projection, self.scale, self.offsets, self.intercepts]
        sums = [self.vectors, self.weights] if self.slopes is None else [self.slopes]
        return [array for array in [*own, *sums] if array is not None]


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

    def arrays(self) -> list[NDArray[Any]]:
        """Return the arrays of numbers that a program stores."""
        return [self.slopes, self.shifts, *(part for pair in self.isotonic for part in pair)]


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


@dataclass(frozen=True)
class RoundingBound:
    """How far a decision value must be from 0, relative to the size of its terms.

    It is ``constant + linear * q + square * (q + radius)**2``, where q is the length of the
    prepared row, every term of its sums taken positive.
    """

    constant: float
    linear: float
    square: float
    radius: float
    # Kernel values count as at least this much: smaller ones may be rounded to 0.
    least_kernel: float

    def at(self, q: Array) -> Array:
        """Return the bound for rows of these lengths; infinite where it does not hold."""
        found = self.constant + self.linear * q + self.square * (q + self.radius) ** 2
        return np.where(found <= MAX_BOUND, found, np.inf)

    def formula(self) -> str:
        """Return the bound in words."""
        terms = [f"{_upwards(self.constant)}"]
        if self.linear:
            terms.append(f"{_upwards(self.linear)} q")
        if self.square:
            terms.append(f"{_upwards(self.square)} (q + {_upwards(self.radius)})^2")
        return " + ".join(terms)


def rounding_bound(
    packed: PackedSums, dtype: np.dtype[Any], *, expands_squares: bool
) -> RoundingBound:
    """Return the bound of a program, which may expand squared distances to products.

    With u half the distance of 1 from the next number, a sum of n products in any order is off by
    at most (n + 1) u times the sum of their magnitudes. Exponential and hyperbolic tangent are
    taken to be within two units in the last place.
    """
    info = np.finfo(dtype)
    unit, n_outputs = float(info.eps) / 2, packed.n_outputs
    # What underflows is at most `tiny`, which is 2 u times this.
    least = float(info.tiny) / (2 * unit)
    n_largest = int(np.sort(packed.n_support)[-2:].sum())
    # Weight, product and exponential; all additions, the intercept, and what underflows.
    common = n_largest + packed.n_classes + 9.0
    row = _row_error(packed)
    kernel, constant, linear, square, radius = packed.kernel, common, 0.0, 0.0, 0.0
    if packed.slopes is not None:
        constant = packed.n_features + 5.0
    elif kernel.name == "rbf":
        radius = float(
            np.sqrt(np.square(packed.vectors.astype(np.float64)).sum(axis=1).max(initial=0.0))
        )
        if packed.is_density:
            constant = 4 * common + 2 * float(np.abs(packed.intercepts).max())
            square = kernel.gamma * (n_outputs + 12 + 2 * row)
        elif expands_squares:
            square = kernel.gamma * (n_outputs + 8 + 2 * row)
        else:
            # The error of exp(-e) is exp(-e) (c e + d sqrt(e)) u, which falls for e above 1.
            least = LEAST_KERNEL
            exponent = -np.log(least)
            root = 2 * np.sqrt(exponent * kernel.gamma)
            if packed.projection is None:
                constant += exponent * (n_outputs + 4 + 2 * row) + root * (row + 1) * radius
            else:
                constant += exponent * (n_outputs + 4) + root * radius
                linear = root * row
    else:
        base = n_outputs + row + 3
        constant += base if kernel.name != "poly" else kernel.degree * (base + 1)
    scale = SECOND_ORDER * unit
    return RoundingBound(
        float(scale * constant), float(scale * linear), float(scale * square), radius, least
    )


def _row_error(packed: PackedSums) -> float:
    """Return the error of a prepared row, in units of rounding of the magnitudes of its terms."""
    error = 0.0 if packed.center is None else 1.0
    error += 0.0 if packed.scale is None else 2.0
    error += 0.0 if packed.projection is None else packed.n_features + 2.0
    return error + (0.0 if packed.offsets is None else 2.0)


def bound_lines(packed: PackedSums, bound: RoundingBound, rule: str, dtype: Any) -> list[str]:
    """Return what a header or a graph states about rounding, as lines."""
    name = np.dtype(dtype).name
    if bound.constant > MAX_BOUND:
        return [f"Rounding in {name}: no label is guaranteed, the bound is {bound.constant:.1e}."]
    where = [f"B = {bound.formula()}"]
    if bound.linear or bound.square:
        where.append(f"q = |z|; nothing is guaranteed where B > {MAX_BOUND}")
    if bound.linear or bound.square or packed.kernel.name in ("poly", "sigmoid"):
        where.append(f"z = {_row_text(packed)}")
    if packed.is_density:
        lines = [
            f"Rounding in {name}: the label is that of exact arithmetic where the two largest log",
            "densities differ by more than 2 B, with",
            *(f"  {line}" for line in where),
        ]
    else:
        lines = [
            f"Rounding in {name}: a decision value f has the sign of exact arithmetic where",
            "|f| > B S, with",
            f"  S = |b| + {_size_text(packed, bound)}",
            *(f"  {line}" for line in where),
            "alpha the weights, b the intercept of the pair. A label is that of exact arithmetic",
            "where other signs of the values nearer to 0 could not change it.",
        ]
    if rule == "ties broken":
        lines += [
            "Classes with equal votes must also differ in their sums of f by more than the sum of",
            "the bounds B S of their pairs.",
        ]
    if rule == "likeliest":
        lines += ["The two largest probabilities must also differ by 1e-4 (measured, not proven)."]
    if packed.weight_unit != 1.0:
        lines += [f"Weights and intercepts are divided by {packed.weight_unit:.4g}."]
    return [*lines, "Exponential and tangent are taken to be within 2 units in the last place."]


def _row_text(packed: PackedSums) -> str:
    """Return what a prepared row is in words."""
    row = "x" if packed.center is None else "(x - center)"
    if packed.projection is not None:
        row = f"|{row.strip('()')}| |projection|, magnitudes of all terms"
        return row if packed.offsets is None else f"{row}, plus |offsets|"
    row = row if packed.scale is None else f"{row} scale"
    return row if packed.offsets is None else f"{row} + offsets, magnitudes of both terms"


def _size_text(packed: PackedSums, bound: RoundingBound) -> str:
    """Return the size of the terms of a decision value in words."""
    kernel, product = packed.kernel, "sum_k |z_k s_k|"
    if packed.slopes is not None:
        row = "x" if packed.center is None else "(x - center)"
        return f"sum_k |{row}_k w_k|, w the slopes of the pair"
    over = "over the vectors s of the pair"
    if kernel.name == "rbf":
        return f"sum |alpha| max(K, {_upwards(bound.least_kernel)}) {over}"
    if kernel.name == "linear":
        return f"sum |alpha| {product} {over}"
    inner = f"({kernel.gamma!r} {product} + {abs(kernel.coef0)!r})"
    if kernel.name == "poly":
        return f"sum |alpha| {inner}^{kernel.degree} {over}"
    return f"sum |alpha| (1 + {inner}) {over}"


def _upwards(value: float) -> str:
    """Return a positive number with three digits, rounded up."""
    shown = float(f"{value:.2e}")
    return f"{shown if shown >= value else shown + 10.0 ** (np.floor(np.log10(value)) - 2):.2e}"
