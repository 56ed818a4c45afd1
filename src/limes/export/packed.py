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
from limes.model.schemes import Scheme

Real = NDArray[np.floating[Any]]


def fitted_scheme(fast: BordersClassifier) -> Scheme:
    """Return the scheme of a fitted classifier."""
    if not isinstance(fast, BordersClassifier):
        raise TypeError(
            f"an export takes a fitted BordersClassifier, got {type(fast).__name__}: give what "
            "limes.accelerate or limes.load returned."
        )
    check_is_fitted(fast)
    return fast.scheme_


def unknown_scheme(scheme: Scheme, known: Iterable[str], form: str) -> ValueError:
    """Return what to raise for a scheme that a form of export does not have."""
    return ValueError(
        f"an export to {form} knows the schemes {sorted(known)}, got {scheme.name!r}: fit with one "
        "of these."
    )


@dataclass(frozen=True, eq=False)
class PackedMap:
    """One map: scores ``biases - z @ weights.T``, values ``offsets + functions @ t``."""

    # Shape (n_points, n_search). Of the search.
    weights: Real
    # Shape (n_points,). The lowest score is the nearest point.
    biases: Real
    # Shape (n_points, n_values, n_features). Slopes of the linear functions.
    functions: Real
    # Shape (n_points, n_values). Their values at the centre.
    offsets: Real
    # How many of the nearest points are averaged.
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

    # Shape (n_features,). Taken from each row.
    center: Real
    # Shape (n_features, n_search). Where the search runs in few directions.
    projection: Real | None
    # The maps.
    maps: tuple[PackedMap, ...]

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return len(self.center)

    @property
    def n_values(self) -> int:
        """Number of values of all maps together."""
        return sum(one.n_values for one in self.maps)


def pack(scheme: Scheme, dtype: Any) -> Packed:
    """Return a scheme's maps in the numbers that a program computes with.

    As in the core, rows lose a centre that is rounded; biases and offsets take up what that moves.
    """
    form = packed_form(scheme.maps)
    rounded = _narrow(form.center, dtype)
    shift = rounded.astype(np.float64) - form.center
    projection = None if form.projection is None else to_dense(form.projection)
    moved = shift if projection is None else shift @ projection
    packed = [_pack_map(part, shift, moved, form.blend, dtype) for part in form.parts]
    rounded_projection = None if projection is None else _narrow(projection, dtype)
    return Packed(rounded, rounded_projection, tuple(packed))


def resolve_dtype(scheme: Scheme, dtype: str | None) -> np.dtype[Any]:
    """Return the type to compute with, by default that of the classifier itself."""
    if dtype is None:
        return np.dtype(np.float64 if scheme.double else np.float32)
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be 'float32', 'float64' or None, got {dtype!r}.")
    return np.dtype(dtype)


def _pack_map(
    part: tuple[Array, Array, Array, Array], shift: Array, moved: Array, blend: int, dtype: Any
) -> PackedMap:
    """Return one map, moved by what the rounding of the centre moved the rows."""
    weights, biases, functions, offsets = part
    return PackedMap(
        _narrow(weights, dtype),
        _narrow(biases - weights @ moved, dtype),
        _narrow(functions, dtype),
        _narrow(offsets + functions @ shift, dtype),
        min(blend, max(len(biases) - 1, 1)),
    )


def _narrow(array: Array | Real, dtype: Any) -> Real:
    """Round to the type of a program, if that can hold the numbers."""
    with np.errstate(over="ignore"):
        narrowed = np.ascontiguousarray(array, dtype=dtype)
    if not np.isfinite(narrowed).all():
        raise ValueError(
            f"the model has numbers too large for {np.dtype(dtype).name}: export it as 'float64'."
        )
    return narrowed
