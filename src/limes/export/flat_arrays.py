"""Arrays of a scheme as programs compute with them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from limes._typing import Array
from limes.classifier import BordersClassifier
from limes.model.affine import to_dense
from limes.model.border_map import packed_form
from limes.model.exact import FallbackScheme
from limes.model.schemes import MapScheme, Scheme

Real = NDArray[np.floating[Any]]


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
class Packed:
    """Maps with what they share: ``t = x - center``, ``z = t @ projection``, or ``z = t``."""

    # Shape (n_features,). Subtracted from each row.
    center: Real
    # Shape (n_features, n_search). None if the search runs in the space of the rows.
    projection: Real | None
    maps: tuple[PackedMap, ...]

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return len(self.center)

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
    form = packed_form(scheme.maps)
    center = round_to(form.center, dtype)
    shift = center.astype(np.float64) - form.center
    projection = None if form.projection is None else to_dense(form.projection)
    search_shift = shift if projection is None else shift @ projection
    maps = [_pack_map(part, shift, search_shift, form.blend, dtype) for part in form.parts]
    rounded_projection = None if projection is None else round_to(projection, dtype)
    return Packed(center, rounded_projection, tuple(maps))


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
