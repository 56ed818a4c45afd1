"""Maps in whole numbers: their tables, and the arithmetic that a C header repeats bit for bit.

A row becomes int16. Sums of products are exact in 32 bits, or in 64 where rows are wide: tables are
scaled so that no row can make them overflow. Each linear function has a power of two of its own, by
which its sum is shifted to the unit of all values.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limes._typing import Array, Indices
from limes.model.coupling import class_pairs
from limes.model.model import FeatureStatistics
from limes.model.packed import Packed, PackedCurve, PackedMap, TableSizes, pack
from limes.model.schemes import MapScheme, PairwiseScheme, ShortlistScheme, TreeScheme

Ints = NDArray[np.int64]
# Largest number of a row, of tables of int16 and int8, and of a sum.
LARGEST = 32767
LARGEST_WEIGHT = {"int16": 32767, "int8": 127}
MAX_SUM = 2.0**30
# Values of maps stay below this, so that a curved base can be added.
MAX_VALUE = 2.0**28
# Rows with more features are summed in 64 bits: in 32 their weights would have too few digits.
MAX_NARROW_FEATURES = 64
# Half the range of a number of a row: this many standard deviations, or the range at the fit times
# the second number, whichever is larger.
MAX_DEVIATIONS = 8.0
RANGE_MARGIN = 2.0
# Half the range of a projected row, in sums of the magnitudes of its terms.
PROJECTED_DEVIATIONS = 4.0
# Lengths of terms times the envelope are at most this, below LARGEST for their rounding.
LARGEST_TERM = 32000.0
# Bits of weights of blended points and of the envelope.
SHARE_BITS = 15
MAX_SHIFT = {False: 30, True: 60}


@dataclass(frozen=True, eq=False)
class FixedMap:
    """One map: scores ``biases - round(z @ points)``, values ``round(x @ slopes) + offsets``."""

    # Shape (n_points, n_search).
    points: Ints
    # Shape (n_points,).
    biases: Ints
    # By how many bits the sum of a score is shifted; not 0 only where sums have 64 bits.
    score_shift: int
    # Shape (n_points, n_values, n_features).
    slopes: Ints
    # Shape (n_points, n_values), both.
    shifts: Ints
    offsets: Ints
    n_blended: int


@dataclass(frozen=True, eq=False)
class FixedCurve:
    """The curved base: terms v of a row, u = q v with the envelope q, and a polynomial of u."""

    # Shape (n_terms,). Features of terms; None with a projection.
    columns: Indices | None
    # Shape (n_terms,), or (n_features, n_terms).
    factors: Ints
    # Shape (n_terms,). Of sums that become terms.
    shifts: Ints
    offsets: Ints
    # Binary digits of terms after the point, and of u.
    term_bits: int
    u_bits: int
    # Bits by which squares are shifted before they are added.
    square_shift: int
    # The decay of the envelope: decay * 2**-decay_bits.
    decay: int
    decay_bits: int
    # Shape (n_outputs,), in the unit of values.
    constants: Ints
    # Shape (n_outputs, n_terms).
    slopes: Ints
    slope_shifts: Ints
    # Shape (n_outputs, n_products); None for none.
    squares: Ints | None
    # Shape (n_outputs,), both: of inner sums, and of the sum of products.
    inner_shifts: Ints
    product_shifts: Ints
    is_quadratic: bool
    n_listed: int | None

    @property
    def n_terms(self) -> int:
        """Number of terms."""
        return len(self.offsets)


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """A scheme of maps in whole numbers."""

    scheme: MapScheme
    # 'int16' or 'int8', the type of slopes and of the coefficients of a curved base.
    dtype: str
    # Shape (n_features,), both: a row is ``round((x - center) * scale)``, at most LARGEST.
    center: NDArray[np.float32]
    scale: NDArray[np.float32]
    # Shape (n_features, n_search), and (n_search,); None without a projection.
    projection: Ints | None
    projection_shifts: Ints | None
    maps: tuple[FixedMap, ...]
    curve: FixedCurve | None
    # Binary digits of values after the point; may be negative.
    value_bits: int
    # Whether sums have 64 bits.
    is_wide: bool

    def quantize(self, X: Any) -> Ints:
        """Return rows as int16, as the C function does: in float32, rounded half away from 0."""
        rows = np.asarray(X, dtype=np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.nan_to_num((rows - self.center) * self.scale, nan=-LARGEST)
        inside = np.clip(scaled, np.float32(-LARGEST), np.float32(LARGEST))
        half = np.where(inside < 0, np.float32(-0.5), np.float32(0.5))
        return np.trunc(inside + half).astype(np.int64)

    def dequantize(self, rows: Ints) -> NDArray[np.float32]:
        """Return floats that become these whole numbers, but for rounding."""
        return (rows / self.scale.astype(np.float64) + self.center).astype(np.float32)

    def class_index(self, X: Any) -> Indices:
        """Return the class index of raw rows."""
        return self.predict(self.quantize(X))

    def predict(self, rows: Ints) -> Indices:
        """Return the class index of rows of whole numbers."""
        values = self._values(rows)
        scheme = self.scheme
        if isinstance(scheme, TreeScheme):
            return scheme.class_index(values.astype(np.float64))
        if isinstance(scheme, ShortlistScheme):
            return self._shortlist(scheme, values)
        if scheme.n_classes == 2 and scheme.name == "pairwise":
            return (values[:, 0] > 0).astype(np.intp)
        if scheme.name == "pairwise":
            return _most_votes(values, scheme.n_classes)
        return np.argmax(values, axis=1)

    def integer(self, value: float) -> int:
        """Return a number in the unit of values."""
        return round(float(np.ldexp(value, self.value_bits)))

    def pair_weights(self) -> tuple[int, int]:
        """Return the weights of a pair's own map and of the shared map in a shortlist."""
        assert isinstance(self.scheme, ShortlistScheme)
        own = round(self.scheme.pair_weight * 2**SHARE_BITS)
        return own, (2**SHARE_BITS - own) // 2

    def table_sizes(self) -> TableSizes:
        """Return the bytes of each table of a header, without labels."""
        itemsize = 2 if self.dtype == "int16" else 1
        sizes = {"center": 4 * len(self.center), "scale": 4 * len(self.scale)}
        if self.projection is not None and self.projection_shifts is not None:
            sizes["projection"] = 2 * self.projection.size
            sizes["projection_shifts"] = len(self.projection_shifts)
        sizes["sizes"] = 2 * len(self.maps)
        if self.is_searched:
            sizes["score_shifts"] = len(self.maps) if self.is_wide else 0
            sizes["points"] = 2 * sum(part.points.size for part in self.maps)
            sizes["biases"] = 4 * sum(part.biases.size for part in self.maps)
        sizes["slopes"] = itemsize * sum(part.slopes.size for part in self.maps)
        sizes["shifts"] = sum(part.shifts.size for part in self.maps)
        sizes["offsets"] = 4 * sum(part.offsets.size for part in self.maps)
        if isinstance(self.scheme, TreeScheme):
            sizes["children"] = 2 * self.scheme.children.size
        if self.curve is not None:
            sizes |= _curve_table_sizes(self.curve, itemsize)
        return TableSizes(sizes)

    @property
    def is_searched(self) -> bool:
        """Whether any map has more than one point."""
        return any(len(part.biases) > 1 for part in self.maps)

    def _values(self, rows: Ints) -> Ints:
        """Return the values of all maps, side by side."""
        search = rows
        if self.projection is not None:
            search = _round_shift(rows @ self.projection, self.projection_shifts)
            search = np.clip(search, -LARGEST, LARGEST)
        values = np.hstack([_map_values(part, rows, search) for part in self.maps])
        if self.curve is not None:
            _add_curve(self.curve, rows, values)
        return values

    def _shortlist(self, scheme: ShortlistScheme, values: Ints) -> Indices:
        """Return the class that wins most pairs of the selected ones."""
        n_classes = scheme.n_classes
        numbers = {pair: place for place, pair in enumerate(class_pairs(n_classes))}
        own, shared = self.pair_weights()
        margin = self.integer(scheme.logit_margin)
        found = np.empty(len(values), dtype=np.intp)
        for row, (logits, pairs) in enumerate(
            zip(values[:, :n_classes], values[:, n_classes:], strict=True)
        ):
            order = np.argsort(-logits, kind="stable")[: scheme.max_classes]
            selected = np.sort(order[logits[order] >= logits.max() - margin])
            joined = [
                _round_shift(
                    own * pairs[numbers[a, b]] + shared * (logits[b] - logits[a]), SHARE_BITS
                )
                for place, a in enumerate(selected.tolist())
                for b in selected[place + 1 :].tolist()
            ]
            winner = _most_votes(np.array([joined]), len(selected))[0] if joined else 0
            found[row] = selected[winner]
        return found


def to_fixed_point(scheme: MapScheme, dtype: str, features: FeatureStatistics) -> FixedPoint:
    """Return a scheme in whole numbers, for rows whose features look like those of the fit."""
    is_coupled = isinstance(scheme, PairwiseScheme | ShortlistScheme) and not scheme.by_vote
    if is_coupled and scheme.n_classes > 2:
        raise ValueError(
            f"dtype={dtype!r} has no exponentials, which the coupled probabilities of the scheme "
            f"{scheme.name!r} need: export as 'float32', or fit with scheme='shared'."
        )
    packed = pack(scheme, np.float64)
    unit, center = _row_units(features)
    is_wide = packed.n_features > MAX_NARROW_FEATURES
    moved = center - packed.center
    projection = _fix_projection(packed, unit, moved, features, is_wide)
    prepared = [
        _prepare_map(part, unit, moved, projection, is_common=_is_common(scheme, place))
        for place, part in enumerate(packed.maps)
    ]
    anchors = [_anchors(scheme, place, features, unit, center) for place in range(len(prepared))]
    weights = [_quantize_slopes(part, dtype, is_wide) for part in prepared]
    curve = None if packed.curve is None else _prepare_curve(packed, unit, center)
    fixed_curve = None if curve is None else _quantize_curve(curve, dtype, scheme)
    value_bits = _value_bits(prepared, weights, fixed_curve)
    maps = tuple(
        _fix_map(part, found, anchor, value_bits, projection, is_wide)
        for part, found, anchor in zip(prepared, weights, anchors, strict=True)
    )
    return FixedPoint(
        scheme,
        dtype,
        center.astype(np.float32),
        (1.0 / unit).astype(np.float32),
        None if projection is None else projection.matrix,
        None if projection is None else projection.shifts,
        maps,
        None if fixed_curve is None else fixed_curve.with_values(value_bits),
        value_bits,
        is_wide,
    )


def _row_units(features: FeatureStatistics) -> tuple[Array, Array]:
    """Return what 1 of an int16 stands for, and what 0 stands for, in each feature."""
    center = features.mean.astype(np.float32).astype(np.float64)
    reach = np.maximum(features.maximum - center, center - features.minimum)
    half = np.maximum(RANGE_MARGIN * reach, MAX_DEVIATIONS * features.std)
    # A constant feature has no range: one part in a thousand of itself.
    half = np.where(half > 0, half, np.maximum(np.abs(center) * 1e-3, 1e-3))
    scale = (LARGEST / half).astype(np.float32).astype(np.float64)
    return 1.0 / scale, center


def _is_common(scheme: MapScheme, place: int) -> bool:
    """Return whether a function that is added to all values of a map changes no class."""
    return scheme.name == "shared" or (scheme.name == "shortlist" and place == 0)


@dataclass(frozen=True, eq=False)
class _Projection:
    """A projection in whole numbers: a number 1 of column j stands for unit[j] around origin[j]."""

    matrix: Ints
    shifts: Ints
    unit: Array
    origin: Array


def _fix_projection(
    packed: Packed, unit: Array, moved: Array, features: FeatureStatistics, is_wide: bool
) -> _Projection | None:
    """Return the projection before the search; it keeps 16 bits, since everything uses it."""
    if packed.projection is None:
        return None
    matrix = unit[:, None] * packed.projection
    weights, bits = _quantize(matrix.T, LARGEST_WEIGHT["int16"], _max_weights(is_wide))
    spread = PROJECTED_DEVIATIONS * (features.std / unit) @ np.abs(matrix)
    half = np.minimum(np.abs(matrix).sum(axis=0) * LARGEST, np.maximum(spread, 1e-30))
    unit_bits = np.minimum(np.floor(np.log2(LARGEST / np.maximum(half, 1e-30))), bits)
    unit_bits = np.maximum(unit_bits, bits - MAX_SHIFT[is_wide]).astype(np.int64)
    return _Projection(
        weights.T, bits - unit_bits, np.ldexp(1.0, -unit_bits), moved @ packed.projection
    )


@dataclass(frozen=True, eq=False)
class _PreparedMap:
    """A map as functions of rows of whole numbers, in floats."""

    points: Array
    biases: Array
    slopes: Array
    offsets: Array
    n_blended: int


def _prepare_map(
    part: PackedMap, unit: Array, moved: Array, projection: _Projection | None, *, is_common: bool
) -> _PreparedMap:
    """Return a map as functions of rows of whole numbers; what all share is taken away."""
    slopes, offsets = part.slopes * unit, part.offsets + part.slopes @ moved
    if is_common:
        slopes = slopes - slopes.mean(axis=1, keepdims=True)
        offsets = offsets - offsets.mean(axis=1, keepdims=True)
    if projection is None:
        points, biases = part.points * unit, part.biases - part.points @ moved
    else:
        points = part.points * projection.unit
        biases = part.biases - part.points @ projection.origin
    # Scores are compared with each other only.
    points = points - 0.5 * (points.max(axis=0) + points.min(axis=0))
    return _PreparedMap(points, biases - biases.mean(), slopes, offsets, part.n_blended)


def _anchors(
    scheme: MapScheme, place: int, features: FeatureStatistics, unit: Array, center: Array
) -> Array:
    """Return the border points as rows of whole numbers, not beyond the range of the features.

    Around them the rounding of slopes and points matters: there it is made up for.
    """
    map_ = scheme.maps[place]
    if map_.n_borders == 1:
        return np.zeros((1, len(center)))
    step = map_.preprocessing
    raw = map_.points if step is None else step.undo(map_.points)
    return (np.clip(raw, features.minimum, features.maximum) - center) / unit


def _max_weights(is_wide: bool) -> float:
    """Return the largest sum of magnitudes of weights: its products stay below MAX_SUM."""
    return np.inf if is_wide else MAX_SUM / LARGEST


def _quantize(
    rows: Array, largest: int, max_weights: float, *, is_squared: bool = False
) -> tuple[Ints, Ints]:
    """Return rows of weights as whole numbers, and the power of two of each row.

    The magnitudes of a row, or the root of their squares, add up to at most ``max_weights``.
    """
    size = np.sqrt(np.square(rows).sum(axis=1)) if is_squared else np.abs(rows).sum(axis=1)
    # Rounding may add half to each.
    reserve = 0.5 * (np.sqrt(rows.shape[1]) if is_squared else rows.shape[1])
    limit = np.maximum(size, 1e-300) / max(max_weights - reserve, 1.0)
    needed = np.maximum(np.abs(rows).max(axis=1) / (largest + 0.49), limit)
    bits = np.floor(-np.log2(np.maximum(needed, 1e-300))).astype(np.int64)
    bits = np.where(size > 0, bits, 0)
    return np.rint(np.ldexp(rows, bits[:, None])).astype(np.int64), bits


def _quantize_slopes(part: _PreparedMap, dtype: str, is_wide: bool) -> tuple[Ints, Ints]:
    """Return the slopes of a map in whole numbers, and the power of two of each function."""
    n_points, n_values, n_features = part.slopes.shape
    flat = part.slopes.reshape(-1, n_features)
    weights, bits = _quantize(flat, LARGEST_WEIGHT[dtype], _max_weights(is_wide))
    return weights.reshape(part.slopes.shape), bits.reshape(n_points, n_values)


def _value_bits(
    prepared: list[_PreparedMap], weights: list[tuple[Ints, Ints]], curve: "_CurveWeights | None"
) -> int:
    """Return the digits of values: as many as all sums have, and no value may overflow."""
    largest = max(
        float((np.abs(part.slopes).sum(axis=2) * LARGEST + np.abs(part.offsets)).max())
        for part in prepared
    )
    bits = [int(found[1][found[0].any(axis=2)].min(initial=MAX_SHIFT[True])) for found in weights]
    if curve is not None:
        largest = max(largest, curve.largest)
        bits.append(curve.most_bits)
    return min(*bits, int(np.floor(np.log2(MAX_VALUE / max(largest, 1e-300)))), 60)


def _fix_map(
    part: _PreparedMap,
    found: tuple[Ints, Ints],
    anchors: Array,
    value_bits: int,
    projection: _Projection | None,
    is_wide: bool,
) -> FixedMap:
    """Return a map in whole numbers, with the rounding of its tables made up for at its points."""
    weights, bits = found
    # A function far smaller than the others loses digits that no value has.
    shifts = np.clip(bits - value_bits, 0, MAX_SHIFT[is_wide])
    lost = bits - value_bits - shifts
    slopes = np.rint(np.ldexp(weights.astype(np.float64), -np.maximum(lost, 0)[:, :, None]))
    used = np.ldexp(slopes, -(value_bits + shifts)[:, :, None])
    correction = np.einsum("mqd,md->mq", part.slopes - used, anchors)
    offsets = np.rint(np.ldexp(part.offsets + correction, value_bits))
    search_anchors = anchors
    if projection is not None:
        projected = anchors @ projection.matrix.astype(np.float64)
        search_anchors = np.ldexp(projected, -projection.shifts)
    points, biases, score_shift = _fix_points(part, search_anchors, is_wide)
    return FixedMap(
        points,
        biases,
        score_shift,
        slopes.astype(np.int64),
        shifts,
        offsets.astype(np.int64),
        part.n_blended,
    )


def _fix_points(part: _PreparedMap, anchors: Array, is_wide: bool) -> tuple[Ints, Ints, int]:
    """Return points and biases in whole numbers of one unit, and the shift of sums.

    Points keep 16 bits: 8 would be coarser than the distances between near ones.
    """
    largest = float(np.abs(part.points).max(initial=0.0))
    if len(part.points) == 1 or largest == 0:
        return np.zeros(part.points.shape, np.int64), np.zeros(len(part.points), np.int64), 0
    size = float((np.abs(part.points).sum(axis=1) * LARGEST + np.abs(part.biases)).max())
    scale = LARGEST_WEIGHT["int16"] / largest
    reserve = 0.5 * part.points.shape[1] * LARGEST
    shift = 0
    if is_wide:
        shift = max(0, int(np.ceil(np.log2((size * scale + reserve) / MAX_SUM))))
    else:
        scale = min(scale, (MAX_SUM - reserve - LARGEST) / size)
    points = np.rint(part.points * scale)
    correction = np.einsum("ij,ij->i", points - part.points * scale, anchors)
    biases = np.rint(np.ldexp(part.biases * scale + correction, -shift))
    return points.astype(np.int64), np.clip(biases, -MAX_SUM, MAX_SUM).astype(np.int64), shift


@dataclass(frozen=True, eq=False)
class _PreparedCurve:
    """A curved base whose terms are functions of rows of whole numbers, in floats."""

    curve: PackedCurve
    # Shape (n_terms,) with columns, or (n_features, n_terms).
    factors: Array
    columns: Indices | None
    offsets: Array


def _prepare_curve(packed: Packed, unit: Array, center: Array) -> _PreparedCurve:
    """Return the terms of a curved base as functions of rows of whole numbers."""
    curve = packed.curve
    assert curve is not None
    if curve.projection is not None:
        shift = packed.center if curve.shift is None else curve.shift
        factors = unit[:, None] * curve.projection
        columns, offsets = None, (center - shift) @ curve.projection
    else:
        columns = np.arange(curve.n_terms) if curve.columns is None else curve.columns
        shift = packed.center[columns] if curve.shift is None else curve.shift
        scale = np.ones(curve.n_terms) if curve.scale is None else curve.scale
        factors, offsets = unit[columns] * scale, (center[columns] - shift) * scale
    if curve.offsets is not None:
        offsets = offsets + curve.offsets
    return _PreparedCurve(curve, factors, columns, offsets)


@dataclass(frozen=True, eq=False)
class _CurveWeights:
    """A curved base in whole numbers, but for the unit of values."""

    prepared: _PreparedCurve
    factors: Ints
    shifts: Ints
    offsets: Ints
    term_bits: int
    u_bits: int
    constants: Array
    slopes: Ints
    slope_bits: Ints
    squares: Ints | None
    square_bits: Ints
    inner_shifts: Ints
    # Largest magnitude of its value.
    largest: float

    @property
    def most_bits(self) -> int:
        """Digits of values that all sums have."""
        has_slopes = self.slopes.any(axis=1)
        bits = int((self.slope_bits + self.u_bits)[has_slopes].min(initial=60))
        if self.squares is None:
            return bits
        own = self.square_bits + 2 * self.u_bits - self.inner_shifts
        return min(bits, int(own[self.squares.any(axis=1)].min(initial=60)))

    def with_values(self, value_bits: int) -> FixedCurve:
        """Return the curved base for values with so many digits."""
        curve = self.prepared.curve
        decay_bits = 14 - int(np.floor(np.log2(curve.decay)))
        slope_shifts = self.slope_bits + self.u_bits - value_bits
        product_shifts = self.square_bits + 2 * self.u_bits - self.inner_shifts - value_bits
        return FixedCurve(
            self.prepared.columns,
            self.factors,
            self.shifts,
            self.offsets,
            self.term_bits,
            self.u_bits,
            int(np.ceil(np.log2(curve.n_terms))),
            min(round(float(np.ldexp(curve.decay, decay_bits))), LARGEST),
            decay_bits,
            np.rint(np.ldexp(self.constants, value_bits)).astype(np.int64),
            self.slopes,
            np.clip(slope_shifts, 0, 30),
            self.squares,
            self.inner_shifts,
            np.clip(product_shifts, 0, 30),
            curve.shape == "quadratic",
            curve.n_listed,
        )


def _quantize_curve(prepared: _PreparedCurve, dtype: str, scheme: MapScheme) -> _CurveWeights:
    """Return the tables of a curved base; functions that all classes share are taken away."""
    curve, largest = prepared.curve, LARGEST_WEIGHT[dtype]
    constants, slopes = (np.asarray(part, float) for part in (curve.constants, curve.slopes))
    squares = curve.squares
    if _is_common(scheme, 0):
        constants, slopes = constants - constants.mean(), slopes - slopes.mean(axis=0)
        # The list is made from values without squares.
        if squares is not None and curve.n_listed is None:
            squares = np.asarray(squares, float) - squares.mean(axis=0)
    is_dense = prepared.columns is None
    rows = prepared.factors.T if is_dense else prepared.factors[:, None]
    is_wide = is_dense and rows.shape[1] > MAX_NARROW_FEATURES
    factors, bits = _quantize(rows, LARGEST_WEIGHT["int16"], _max_weights(is_wide))
    reach = np.abs(rows).sum(axis=1) * LARGEST + np.abs(prepared.offsets)
    term_bits = int(np.floor(np.log2(0.5 * MAX_SUM / max(float(reach.max()), 1e-300))))
    term_bits = min(term_bits, int(bits.min()), 28)
    shifts = np.clip(bits - term_bits, 0, MAX_SHIFT[is_wide])
    used = np.rint(
        np.ldexp(factors.astype(float), -np.maximum(bits - term_bits - shifts, 0)[:, None])
    )
    largest_u = 0.5 / np.sqrt(curve.decay)
    u_bits = min(int(np.floor(np.log2(LARGEST_TERM / largest_u))), term_bits + 14)
    max_weights = MAX_SUM / LARGEST
    slope_weights, slope_bits = _quantize(slopes, largest, max_weights, is_squared=True)
    reach_of = np.abs(constants) + largest_u * np.sqrt(np.square(slopes).sum(axis=1))
    square_weights, square_bits = None, np.zeros(len(constants), np.int64)
    inner_shifts = square_bits
    if squares is not None:
        square_weights, square_bits = _quantize(
            np.asarray(squares, float), largest, max_weights, is_squared=True
        )
        # Inner sums of a row have this length: by Cauchy and Schwarz, or one product each.
        length = np.sqrt(np.square(square_weights).sum(axis=1, dtype=float))
        if curve.shape != "quadratic":
            length = np.abs(square_weights).max(axis=1).astype(float)
        inner_shifts = np.maximum(0, np.ceil(np.log2(np.maximum(length, 1.0) * 1.03))).astype(int)
        reach_of = reach_of + np.square(largest_u) * np.sqrt(np.square(squares).sum(axis=1))
    return _CurveWeights(
        prepared,
        used.astype(np.int64).T if is_dense else used[:, 0].astype(np.int64),
        shifts,
        np.rint(np.ldexp(prepared.offsets, term_bits)).astype(np.int64),
        term_bits,
        u_bits,
        constants,
        slope_weights,
        slope_bits,
        square_weights,
        square_bits,
        inner_shifts,
        float(reach_of.max()),
    )


def _curve_table_sizes(curve: FixedCurve, itemsize: int) -> dict[str, int]:
    """Return the bytes of the tables of a curved base."""
    n_outputs = len(curve.constants)
    sizes = {
        "curve_columns": 0 if curve.columns is None else 2 * curve.n_terms,
        "curve_factors": 2 * curve.factors.size,
        "curve_shifts": curve.n_terms,
        "curve_offsets": 4 * curve.n_terms,
        "curve_constants": 4 * n_outputs,
        "curve_slopes": itemsize * curve.slopes.size,
        "curve_slope_shifts": n_outputs,
    }
    if curve.squares is not None:
        sizes["curve_squares"] = itemsize * curve.squares.size
        sizes["curve_inner_shifts"] = n_outputs
        sizes["curve_product_shifts"] = n_outputs
    return sizes


def _round_shift(values: Any, shifts: Any) -> Any:
    """Divide by powers of two, rounded to the nearest whole number, halves upwards."""
    shifts = np.asarray(shifts)
    half = np.where(shifts > 0, np.int64(1) << np.maximum(shifts - 1, 0), 0)
    return (values + half) >> shifts


def _map_values(part: FixedMap, rows: Ints, search: Ints) -> Ints:
    """Return the values of one map."""
    n_points, n_values = part.shifts.shape
    nearest, shares = _blend(part, search)
    sums = np.zeros((len(rows), n_values), dtype=np.int64)
    for place in range(nearest.shape[1]):
        points = nearest[:, place]
        own = np.einsum("nqd,nd->nq", part.slopes[points], rows)
        own = _round_shift(own, part.shifts[points]) + part.offsets[points]
        sums += shares[:, place, None] * own
    return sums if n_points == 1 or part.n_blended == 1 else _round_shift(sums, SHARE_BITS)


def _blend(part: FixedMap, search: Ints) -> tuple[Indices, Ints]:
    """Return the nearest points of each row, and their weights in 2**-SHARE_BITS."""
    n_points = len(part.biases)
    if n_points == 1:
        return np.zeros((len(search), 1), np.intp), np.ones((len(search), 1), np.int64)
    scores = part.biases - _round_shift(search @ part.points.T, part.score_shift)
    n = part.n_blended
    if n == 1:
        return np.argmin(scores, axis=1)[:, None], np.ones((len(search), 1), np.int64)
    order = np.argsort(scores, axis=1, kind="stable")[:, : n + 1]
    near = np.take_along_axis(scores, order, 1)
    margins = near[:, n:] - near[:, :n]
    margins >>= np.maximum(_bit_lengths(margins[:, :1]) - SHARE_BITS, 0)
    margins = np.where(margins[:, :1] == 0, 1, margins)
    return order[:, :n], (margins << SHARE_BITS) // margins.sum(axis=1, keepdims=True)


def _bit_lengths(values: Ints) -> Ints:
    """Return the number of binary digits of whole numbers, 0 for 0."""
    return np.frexp(values.astype(np.float64))[1].astype(np.int64)


def _add_curve(curve: FixedCurve, rows: Ints, values: Ints) -> None:
    """Add the curved base of rows to their values."""
    q, u = _envelope(curve, rows)
    linear = _round_shift(u @ curve.slopes.T, curve.slope_shifts)
    inner = _round_shift(q[:, None] * curve.constants, SHARE_BITS) + linear
    plain = values + _round_shift(q[:, None] * inner, SHARE_BITS)
    if curve.squares is None:
        values[:] = plain
        return
    squared = plain + _products(curve, u)
    if curve.n_listed is None:
        values[:] = squared
        return
    order = np.argsort(-plain, axis=1, kind="stable")
    listed, others = order[:, : curve.n_listed], order[:, curve.n_listed :]
    lowest = np.take_along_axis(squared, listed, 1).min(axis=1, keepdims=True)
    bounded = np.minimum(np.take_along_axis(plain, others, 1), lowest)
    np.put_along_axis(squared, others, bounded, 1)
    values[:] = squared


def _envelope(curve: FixedCurve, rows: Ints) -> tuple[Ints, Ints]:
    """Return the envelope q in 2**-SHARE_BITS, and u = q v.

    Terms get a common exponent in each row; so do 1 + decay |v|², and its inverse.
    """
    columns = curve.columns
    sums = rows @ curve.factors if columns is None else rows[:, columns] * curve.factors
    terms = _round_shift(sums, curve.shifts) + curve.offsets
    exponent = np.maximum(_bit_lengths(np.abs(terms).max(axis=1) + 1) - SHARE_BITS, 0)
    v = np.minimum(_round_shift(terms, exponent[:, None]), LARGEST)
    square = (np.square(v) >> curve.square_shift).sum(axis=1)
    above = np.maximum(_bit_lengths(square) - 16, 0)
    product = (square >> above) * curve.decay
    bits = above + curve.square_shift + 2 * exponent - 2 * curve.term_bits - curve.decay_bits
    unit = np.maximum(bits, -29)
    one = np.where(unit <= 0, np.int64(1) << np.maximum(-unit, 0), 0)
    denominator = (product >> np.minimum(unit - bits, 31)) + one
    denominator = np.maximum(denominator, 1)
    normal = _bit_lengths(denominator) - 16
    mantissa = np.where(
        normal >= 0, denominator >> np.maximum(normal, 0), denominator << np.maximum(-normal, 0)
    )
    inverse = (np.int64(1) << 30) // mantissa
    shift = 30 + normal + unit + curve.term_bits - exponent - curve.u_bits
    u = np.where(
        (shift > 30)[:, None], 0, _round_shift(v * inverse[:, None], np.clip(shift, 0, 30)[:, None])
    )
    q_shift = 15 + normal + unit
    q = np.where(q_shift > 30, 0, inverse >> np.clip(q_shift, 0, 30))
    return q, u


def _products(curve: FixedCurve, u: Ints) -> Ints:
    """Return the sums of products of two terms of each output."""
    assert curve.squares is not None
    n_terms, n_outputs = curve.n_terms, len(curve.constants)
    sums = np.zeros((len(u), n_outputs), dtype=np.int64)
    place = 0
    for i in range(n_terms):
        width = n_terms - i if curve.is_quadratic else 1
        inner = u[:, i : i + width] @ curve.squares[:, place : place + width].T
        sums += _round_shift(inner, curve.inner_shifts) * u[:, i : i + 1]
        place += width
    return _round_shift(sums, curve.product_shifts)


def _most_votes(values: Ints, n_classes: int) -> Indices:
    """Return the class that wins most pairs, the first of equals."""
    votes = np.zeros((len(values), n_classes), dtype=np.int64)
    for place, (first, second) in enumerate(class_pairs(n_classes)):
        is_second = values[:, place] > 0
        votes[:, second] += is_second
        votes[:, first] += ~is_second
    return np.argmax(votes, axis=1)
