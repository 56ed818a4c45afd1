"""What every export shares: the scheme to write, types, the rounding error of exact sums."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from limes._typing import Array
from limes.fast_estimator import FastEstimator
from limes.model.exact import FallbackScheme
from limes.model.packed import PackedSums
from limes.model.schemes import MapScheme, Scheme
from limes.sources.table_encoder import check_no_encoder

# Kernels count as at least this much in the bound of squared differences: it is narrower for all
# others, since the relative error of an exponential grows with its exponent.
LEAST_KERNEL = 1e-4
# A bound is of first order: it holds, with this factor, where it is below the second number.
SECOND_ORDER = 1.02
MAX_BOUND = 0.01


def fitted_scheme(fast: FastEstimator) -> Scheme:
    """Return the scheme of a fitted classifier."""
    if not isinstance(fast, FastEstimator):
        raise TypeError(
            "an export takes a fitted BordersClassifier or BordersOutlierDetector, got "
            f"{type(fast).__name__}: give what limes.accelerate or limes.load returned."
        )
    check_is_fitted(fast)
    check_no_encoder(fast, "an export")
    return fast.scheme_


def scheme_to_export(fast: FastEstimator, *, fallback: bool) -> Scheme:
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
