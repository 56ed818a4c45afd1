"""C header of maps in whole numbers, from the template ``fixed.h.in``."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from limes.export.c_header import CHeader, choose_test_rows, common_parts, test_parts
from limes.export.c_text import elements, lines, render, template
from limes.export.fixed_point import FixedCurve, FixedPoint, to_fixed_point
from limes.export.rounding import unknown_scheme
from limes.fast_estimator import FastEstimator
from limes.model.exact import ExactScheme
from limes.model.model import FeatureStatistics
from limes.model.packed import TableSizes, label_bytes, label_type
from limes.model.schemes import MapScheme, Scheme, ShortlistScheme, TreeScheme

DTYPES = ("int16", "int8")


def fixed_header(fast: FastEstimator, scheme: Scheme, name: str, dtype: str, rows: Any) -> CHeader:
    """Return the header of a scheme in whole numbers; rows measure agreement and give ranges."""
    fixed = fixed_scheme(fast, scheme, dtype, rows)
    sizes = TableSizes({**fixed.table_sizes(), "labels": label_bytes(fast.model_.classes)})
    agreement = None if rows is None else agreement_with_float(fixed, rows)
    shown = "not measured (give rows)."
    if agreement is not None:
        shown = f"{agreement:.2%} of {rows.shape[0]} rows."
    flags, fields = common_parts(fast, name, sizes, np.dtype(dtype))
    features = _features(fast, dtype, rows)
    made, classes = choose_test_rows(
        features, lambda made: fixed.class_index(made), scheme.n_classes, np.float32
    )
    # Numbers in the middle between two whole ones may be rounded otherwise elsewhere.
    snapped = fixed.dequantize(fixed.quantize(made)) if len(made) else made
    tested = test_parts(
        snapped, fixed.class_index(snapped) if len(made) else classes, is_quantized=True
    )
    fields |= {
        **_sizes(fixed),
        **_arrays(fixed),
        **_curve_fields(fixed.curve),
        "dtype": dtype,
        "table": f"{dtype}_t",
        "sum": "int64_t" if fixed.is_wide else "int32_t",
        "agreement": f"Labels as those of the float model: {shown}",
        "stack_bytes": stack_bytes(fixed),
        **tested[1],
    }
    text = render(template("fixed.h.in"), {**flags, **_flags(fixed), **tested[0]}, fields)
    kind = label_type(fast.model_.classes)[0]
    return CHeader(text, name, dtype, sizes, stack_bytes(fixed), kind, agreement)


def fixed_scheme(fast: FastEstimator, scheme: Scheme, dtype: str, rows: Any) -> FixedPoint:
    """Return a scheme in whole numbers, or raise for one that has no such form."""
    if isinstance(scheme, ExactScheme) or not isinstance(scheme, MapScheme):
        raise ValueError(
            f"dtype={dtype!r} is for border maps, got the scheme {scheme.name!r}: export it as "
            "'float32', or fit with scheme='shared' and fallback=False."
        )
    if scheme.name not in ("one-vs-rest", "pairwise", "shared", "shortlist", "tree"):
        raise unknown_scheme(scheme, ["pairwise", "shared"], "C")
    return to_fixed_point(scheme, dtype, _features(fast, dtype, rows))


def agreement_with_float(fixed: FixedPoint, rows: Any) -> float:
    """Return the share of rows that get the label of the float model."""
    floats = np.ascontiguousarray(rows, dtype=np.float32)
    return float(np.mean(fixed.class_index(floats) == fixed.scheme.classify(floats)))


def _features(fast: FastEstimator, dtype: str, rows: Any) -> FeatureStatistics:
    """Return what the features look like: in given rows, else at the fit."""
    if rows is not None:
        if not rows.shape[0]:
            raise ValueError("rows must have at least one row, got none.")
        return FeatureStatistics.from_rows(rows)
    if fast.model_.info.features is None:
        raise ValueError(
            f"dtype={dtype!r} needs the ranges of the features, which this model does not store: "
            "give rows (--rows FILE)."
        )
    return fast.model_.info.features


def _sizes(fixed: FixedPoint) -> dict[str, object]:
    """Return the lengths of arrays, and what the first comment states."""
    scheme, curve, first = fixed.scheme, fixed.curve, fixed.maps[0]
    n_points = sum(len(part.biases) for part in fixed.maps)
    n_values = sum(part.shifts.shape[1] for part in fixed.maps)
    shape = "" if curve is None else ", curved base"
    is_shortlist = isinstance(scheme, ShortlistScheme)
    own, shared = fixed.pair_weights() if is_shortlist else (0, 0)
    return {
        "n_features": scheme.n_features,
        "n_classes": scheme.n_classes,
        "n_maps": len(fixed.maps),
        "n_points": n_points,
        "n_functions": first.shifts.shape[1],
        "n_all_functions": sum(part.shifts.size for part in fixed.maps),
        "n_search": first.points.shape[1],
        "blend": max(part.n_blended for part in fixed.maps),
        "n_values": n_values,
        "max_classes": min(scheme.max_classes, scheme.n_classes)
        if isinstance(scheme, ShortlistScheme)
        else scheme.n_classes,
        "max_pairs": scheme.max_pairs if isinstance(scheme, ShortlistScheme) else 0,
        "pair_weight": own,
        "map_weight": shared,
        "logit_margin": fixed.integer(scheme.logit_margin)
        if isinstance(scheme, ShortlistScheme)
        else 0,
        "summary": f"{scheme.n_classes} classes, {scheme.n_features} features, scheme "
        f"{scheme.name}, {n_points} border point{'s' * (n_points > 1)} in {len(fixed.maps)} "
        f"map{'s' * (len(fixed.maps) > 1)}{shape}",
    }


def stack_bytes(fixed: FixedPoint) -> int:
    """Return the bytes of the arrays that are alive at once during a prediction, at most."""
    sizes = _sizes(fixed)
    n_functions, n_search = int(str(sizes["n_functions"])), int(str(sizes["n_search"]))
    blend, n_values = int(str(sizes["blend"])), int(str(sizes["n_values"]))
    row = 0 if fixed.projection is None else 2 * n_search
    blending = 12 * n_functions + 8 * (blend + 1) if blend > 1 else 0
    curve = fixed.curve
    bending = 0 if curve is None else 6 * curve.n_terms + 8 * (curve.n_listed or 0)
    scheme = fixed.scheme
    if isinstance(scheme, TreeScheme):
        return row + blending + 4
    if isinstance(scheme, ShortlistScheme):
        n_values = scheme.n_classes + scheme.max_pairs + 2 * scheme.max_classes
    votes = 4 * scheme.n_classes if scheme.name == "pairwise" and scheme.n_classes > 2 else 0
    return row + 4 * n_values + max(blending, bending, votes)


def _whole(arrays: list[NDArray[Any]]) -> str:
    """Return whole numbers of several arrays, one after the other, as lines of literals."""
    return lines(str(value) for array in arrays for value in array.ravel().tolist())


def _arrays(fixed: FixedPoint) -> dict[str, object]:
    """Return the elements of all arrays but the labels and those of the curved base."""
    arrays: dict[str, object] = {
        "center": elements(fixed.center),
        "scale": elements(fixed.scale),
        "sizes": lines(str(len(part.biases)) for part in fixed.maps),
        "score_shifts": lines(str(part.score_shift) for part in fixed.maps),
    }
    if fixed.projection is not None and fixed.projection_shifts is not None:
        arrays["projection"] = _whole([fixed.projection])
        arrays["projection_shifts"] = _whole([fixed.projection_shifts])
    for field in ("points", "biases", "slopes", "shifts", "offsets"):
        arrays[field] = _whole([getattr(part, field) for part in fixed.maps])
    if isinstance(fixed.scheme, TreeScheme):
        arrays["children"] = _whole([fixed.scheme.children])
    return arrays


def _curve_fields(curve: FixedCurve | None) -> dict[str, object]:
    """Return numbers and arrays of the curved base; none without one."""
    if curve is None:
        return {}
    fields: dict[str, object] = {
        name: getattr(curve, name)
        for name in ("n_terms", "n_listed", "term_bits", "u_bits", "square_shift", "decay")
    }
    fields |= {
        "decay_bits": curve.decay_bits,
        "n_products": 0 if curve.squares is None else curve.squares.shape[1],
        "last_factor": curve.n_terms if curve.is_quadratic else "i + 1",
        "curve_columns": "" if curve.columns is None else _whole([curve.columns]),
    }
    names = ("factors", "shifts", "offsets", "constants", "slopes", "slope_shifts")
    squared = () if curve.squares is None else ("squares", "inner_shifts", "product_shifts")
    return fields | {f"curve_{name}": _whole([getattr(curve, name)]) for name in (*names, *squared)}


def _flags(fixed: FixedPoint) -> dict[str, bool]:
    """Return which sections of the template a header has."""
    scheme, curve = fixed.scheme, fixed.curve
    is_two = scheme.name == "pairwise" and scheme.n_classes == 2
    is_blended = max(part.n_blended for part in fixed.maps) > 1
    is_shortlist = scheme.name == "shortlist"
    highest = scheme.name in ("one-vs-rest", "shared")
    return {
        "searched": fixed.is_searched,
        "wide": fixed.is_wide,
        "projected": fixed.projection is not None,
        "blended": is_blended,
        "two_classes": is_two,
        "pairwise": scheme.name == "pairwise" and not is_two,
        "shortlist": is_shortlist,
        "tree": scheme.name == "tree",
        "some_maps": scheme.name in ("shortlist", "tree"),
        "pairs": is_shortlist or (scheme.name == "pairwise" and not is_two),
        "highest_value": highest,
        "highest": highest or is_shortlist,
        "shared_out": is_blended or is_shortlist or curve is not None,
        "curved": curve is not None,
        "curve_projection": curve is not None and curve.columns is None,
        "curve_squares": curve is not None and curve.squares is not None,
        "listed": curve is not None and curve.squares is not None and curve.n_listed is not None,
    }
