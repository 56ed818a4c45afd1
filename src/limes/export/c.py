"""C99 header from the template ``model.h.in``."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from limes._typing import Array, Labels
from limes.export.c_fixed import DTYPES, fixed_header
from limes.export.c_header import CHeader, check_name, choose_test_rows, common_parts, test_parts
from limes.export.c_text import c_number, elements, lines, render, template
from limes.export.rounding import (
    bound_lines,
    resolve_dtype,
    rounding_bound,
    scheme_to_export,
    unknown_scheme,
)
from limes.fast_estimator import FastEstimator
from limes.model.affine import to_dense
from limes.model.coupling import LIBSVM_MIN_PROBABILITY, LIBSVM_TOLERANCE
from limes.model.exact import (
    MIN_PROBABILITY,
    Calibrators,
    ExactScheme,
    FallbackScheme,
    PairSigmoids,
)
from limes.model.model import FeatureStatistics, scheme_index
from limes.model.packed import (
    Packed,
    PackedCurve,
    TableSizes,
    exact_indices,
    index_bytes,
    label_type,
    pack,
    pack_calibration,
    pack_sums,
    table_sizes,
)
from limes.model.schemes import (
    WINNER_MARGIN,
    MapScheme,
    PairwiseScheme,
    Scheme,
    ShortlistScheme,
    TreeScheme,
)

__all__ = ["constant_bytes", "to_c"]

# C's names for the two types of number.
TYPES = {"float": "float32", "double": "float64"}
SCHEMES = ("one-vs-rest", "pairwise", "shared", "shortlist", "tree")
# Of int and size_t on a 32-bit processor, for the estimate of the stack.
INDEX_BYTES = 4


def to_c(
    fast: FastEstimator,
    *,
    name: str = "limes_model",
    dtype: str | None = None,
    max_bytes: int | None = None,
    fallback: bool = False,
    rows: ArrayLike | None = None,
) -> str:
    """Return a fitted classifier as a header for C99 and C++11.

    ``name_predict(x)`` takes a row and returns its class as an index into ``name_labels``. If the
    macro ``NAME_PROBABILITIES`` is defined before the header is included, there is also
    ``name_probabilities(x, p)``, which needs ``math.h``. The code allocates no memory, and
    constants are written with every bit. The result for a row with a NaN is undefined.

    Exact sums need ``math.h``. Their first comment states how far a decision value must be from 0
    for the label to be that of exact arithmetic. Without probabilities of the source there is no
    ``name_probabilities``. Of an outlier detector the
    header has the labels -1 and 1; probabilities of its map mean nothing.

    Parameters
    ----------
    fast : BordersClassifier or BordersOutlierDetector
        Fitted classifier.
    name : str, default='limes_model'
        Prefix of every name in the header.
    dtype : {'float', 'double', 'float32', 'float64', 'int16', 'int8'} or None, default=None
        Type of rows and arithmetic; None for that of the classifier. With 'int16' and 'int8',
        the type of the slopes, ``name_predict`` computes in whole numbers alone, with rows of int16
        that ``name_quantize`` makes. Maps can have these, exact sums cannot.
    max_bytes : int or None, default=None
        Largest size of the tables, labels included.
    fallback : bool, default=False
        Include the exact sums that a map falls back to. They hold rows of the training set.
    rows : array-like of shape (n_rows, n_features) or None, default=None
        Rows as they occur in use, whose ranges replace those of the fit. With 'int16' and 'int8',
        the header states the share of them that gets the label of the float model.

    Returns
    -------
    str
        The header; its first comment states the size of the tables and of the stack.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> import limes
    >>> X, y = make_moons(200, random_state=0)
    >>> fast = limes.BordersClassifier(n_borders=20, random_state=0).fit(X, y)
    >>> print(to_c(fast, name="moons", max_bytes=2048).splitlines()[3])
     * Tables: 498 bytes. Stack of a prediction: about 80 bytes of arrays.
    """
    options: dict[str, Any] = {"dtype": dtype, "fallback": fallback, "rows": rows}
    return c_header(fast, name=name, max_bytes=max_bytes, **options).text


def c_header(
    fast: FastEstimator,
    *,
    name: str,
    dtype: str | None = None,
    max_bytes: int | None = None,
    fallback: bool = False,
    rows: ArrayLike | None = None,
) -> CHeader:
    """Return a header with its sizes and agreement; the arguments are those of ``to_c``."""
    scheme, name = scheme_to_export(fast, fallback=fallback), check_name(name)
    given = None if rows is None else _check_rows(rows, scheme.n_features)
    if dtype in DTYPES:
        if isinstance(scheme, FallbackScheme):
            raise ValueError(
                f"dtype={dtype!r} is for border maps, got fallback=True: exact sums need floats, "
                "export with fallback=False or as 'float32'."
            )
        header = fixed_header(fast, scheme, name, str(dtype), given)
        if max_bytes is not None and header.sizes.total > max_bytes:
            raise ValueError(
                f"the tables must fit max_bytes={max_bytes!r}, got {header.sizes.total} bytes: "
                "fit with a lower max_bytes or n_borders, or use a smaller dtype."
            )
        return header
    real = resolve_dtype(scheme, TYPES.get(dtype or "", dtype))
    sizes = _sizes_of(scheme, fast.model_.classes, real)
    if max_bytes is not None and sizes.total > max_bytes:
        raise _too_large(scheme, real, sizes.total, max_bytes)
    features = fast.model_.info.features
    if given is not None:
        features = FeatureStatistics.from_rows(given)
    if isinstance(scheme, FallbackScheme):
        text, stack = _fallback_header(fast, scheme, name, real, features)
    else:
        text, stack = _header(fast, scheme, name, real, features)
    return CHeader(text, name, real.name, sizes, stack, label_type(fast.model_.classes)[0])


def _check_rows(rows: Any, n_features: int) -> Array:
    """Return rows as floats, or raise for another number of features."""
    array = to_dense(rows)
    if array.ndim != 2 or array.shape[1] != n_features or not len(array):
        raise ValueError(
            f"rows must have the shape (n_rows, {n_features}) with at least one row, got "
            f"{array.shape!r}."
        )
    if not np.isfinite(array).all():
        raise ValueError("rows must be finite, got a NaN or an infinity: leave such rows out.")
    return array


def constant_bytes(fast: FastEstimator, *, dtype: str | None = None, fallback: bool = False) -> int:
    """Return how many bytes the tables of a header take, labels included.

    Parameters
    ----------
    fast : BordersClassifier or BordersOutlierDetector
        Fitted classifier.
    dtype : {'float', 'double', 'float32', 'float64', 'int16', 'int8'} or None, default=None
        As for ``to_c``.
    fallback : bool, default=False
        As for ``to_c``.

    Returns
    -------
    int
        Bytes.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> import limes
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> fast = limes.BordersClassifier(SVC(gamma=2), n_borders=16).fit(X, y)
    >>> constant_bytes(fast) > constant_bytes(fast, dtype="int8")
    True
    """
    scheme = scheme_to_export(fast, fallback=fallback)
    if dtype in DTYPES:
        return c_header(fast, name="model", dtype=dtype, fallback=fallback).sizes.total
    real = resolve_dtype(scheme, TYPES.get(dtype or "", dtype))
    return _sizes_of(scheme, fast.model_.classes, real).total


def _sizes_of(scheme: Scheme, classes: Labels | None, real: np.dtype[Any]) -> TableSizes:
    """Return the bytes of each table of a header, or raise for a scheme that none supports."""
    is_exact = isinstance(scheme, ExactScheme | FallbackScheme)
    if not is_exact and (scheme.name not in SCHEMES or not isinstance(scheme, MapScheme)):
        raise unknown_scheme(scheme, [*SCHEMES, "exact"], "C")
    return table_sizes(scheme, classes, real)


def c_real(dtype: np.dtype[Any]) -> str:
    """Return the C type of floats."""
    return "double" if dtype == np.float64 else "float"


def _header(
    fast: FastEstimator,
    scheme: Scheme,
    name: str,
    real: np.dtype[Any],
    features: FeatureStatistics | None,
    *,
    labels_name: str | None = None,
) -> tuple[str, int]:
    """Return the header of maps or of exact sums, and the bytes of its stack.

    It has labels unless another header has them.
    """
    if isinstance(scheme, ExactScheme):
        exact = _Exact(scheme, real)
        form, flags = "exact.h.in", _exact_flags(exact)
        fields = {
            **_exact_descriptions(exact),
            **_exact_literals(name, exact),
            **_exact_arrays(exact),
        }
    else:
        assert isinstance(scheme, MapScheme)
        packed = pack(scheme, real)
        form, flags = "model.h.in", _flags(scheme, packed)
        fields = {
            **_sizes(scheme, packed),
            **_descriptions(scheme, packed),
            **_literals(scheme, packed),
            **_arrays(scheme, packed),
            **_curve_fields(name, packed),
        }
    is_part = labels_name is not None
    sizes = table_sizes(scheme, None if is_part else fast.model_.classes, real)
    common = common_parts(fast, name, sizes, real, labels_name=labels_name)
    tested = _test_rows(None if is_part else features, scheme, real)
    text = render(
        template(form), {**flags, **common[0], **tested[0]}, {**fields, **common[1], **tested[1]}
    )
    return text, int(str(fields["stack_bytes"]))


def _test_rows(
    features: FeatureStatistics | None, scheme: Scheme, real: np.dtype[Any]
) -> tuple[dict[str, bool], dict[str, object]]:
    """Return the test vector of a header."""
    return test_parts(
        *choose_test_rows(
            features, lambda rows: scheme_index(scheme, rows), scheme.n_classes, real
        ),
        is_quantized=False,
    )


def _fallback_header(
    fast: FastEstimator,
    scheme: FallbackScheme,
    name: str,
    real: np.dtype[Any],
    features: FeatureStatistics | None,
) -> tuple[str, int]:
    """Return the header of a map followed by that of the exact sums, and what selects between."""
    names = {"map": scheme.base, "exact": scheme.exact}
    headers = {
        f"{part}_header": _header(
            fast, one, f"{name}_{part}", real, None, labels_name=f"{name}_labels"
        )[0]
        for part, one in names.items()
    }
    packed = pack(scheme.base, real)
    common = common_parts(fast, name, table_sizes(scheme, fast.model_.classes, real), real)
    tested = _test_rows(features, scheme, real)
    fields = {
        **common[1],
        **tested[1],
        **headers,
        "n_features": scheme.n_features,
        "n_classes": scheme.n_classes,
        "stack_bytes": real.itemsize * packed.n_values
        + max(_stack_bytes(scheme.base, packed), _Exact(scheme.exact, real).stack_bytes),
        "real": c_real(real),
        "margin": c_number(real.type(scheme.margin)),
        "percent": f"{100 * scheme.share:.3g}",
    }
    flags = {"one_value": packed.n_values == 1, **common[0], **tested[0]}
    return render(template("fallback.h.in"), flags, fields), int(str(fields["stack_bytes"]))


def _too_large(scheme: Scheme, real: np.dtype[Any], n_bytes: int, max_bytes: int) -> ValueError:
    """Return the error that states how many border points would fit."""
    if not isinstance(scheme, MapScheme):
        advice = (
            "export it without" if isinstance(scheme, FallbackScheme) else "fit a map instead of"
        )
        return ValueError(
            f"the tables must fit max_bytes={max_bytes!r}, got {n_bytes} bytes: {advice} exact "
            "sums."
        )
    packed = pack(scheme, real)
    # n_borders is a number per map, except for the map of a shortlist that selects classes.
    maps = [part for part in packed.maps if part.n_values == packed.maps[-1].n_values]
    numbers = maps[0].points[0].size + 1 + maps[0].slopes[0].size + maps[0].n_values
    point_bytes = numbers * maps[0].points.itemsize
    fixed_bytes = n_bytes - point_bytes * sum(part.n_points for part in maps)
    linear = "" if packed.curve is None else "curved=False, "
    n_fitting = max(0, (max_bytes - fixed_bytes) // point_bytes // len(maps))
    return ValueError(
        f"the tables must fit max_bytes={max_bytes!r}, got {n_bytes} bytes: fit with "
        f"n_borders={n_fitting} or fewer."
        if n_fitting
        else f"the tables must fit max_bytes={max_bytes!r}, got {n_bytes} bytes: fit with "
        f"{linear}fewer features or another scheme, since not one border point per map fits."
    )


def _sizes(scheme: Scheme, packed: Packed) -> dict[str, int]:
    """Return the lengths of arrays."""
    sizes = {
        "n_features": packed.n_features,
        "n_classes": scheme.n_classes,
        "n_values": packed.n_values,
        "n_maps": len(packed.maps),
        "n_points": sum(part.n_points for part in packed.maps),
        "n_functions": packed.maps[0].n_values,
        "n_all_functions": sum(part.n_points * part.n_values for part in packed.maps),
        "n_search": packed.maps[0].points.shape[1],
        "blend": max(part.n_blended for part in packed.maps),
        "max_classes": scheme.n_classes,
        **_curve_sizes(packed.curve),
    }
    sizes["row_size"] = sizes["n_features"]
    if packed.projection is not None:
        sizes["row_size"] += sizes["n_search"]
    if isinstance(scheme, ShortlistScheme):
        sizes["max_classes"] = min(scheme.max_classes, scheme.n_classes)
        sizes["max_pairs"] = scheme.max_pairs
        sizes["n_values"] = scheme.n_classes + scheme.max_pairs
    return sizes


def _curve_sizes(curve: PackedCurve | None) -> dict[str, int]:
    """Return the lengths of the arrays of a curved base."""
    if curve is None:
        return {"n_terms": 0, "n_listed": 0, "n_products": 0}
    return {
        "n_terms": curve.n_terms,
        "n_listed": curve.n_listed or 0,
        "n_products": 0 if curve.squares is None else int(curve.squares.shape[1]),
    }


def _descriptions(scheme: Scheme, packed: Packed) -> dict[str, object]:
    """Return what the first comment of the header states."""
    n_points, n_maps = sum(part.n_points for part in packed.maps), len(packed.maps)
    base = "" if packed.curve is None else f", {packed.curve.shape} base"
    return {
        "summary": f"{scheme.n_classes} classes, {packed.n_features} features, scheme "
        f"{scheme.name}, {n_points} border point{'s' * (n_points > 1)} in {n_maps} "
        f"map{'s' * (n_maps > 1)}{base}",
        "stack_bytes": _stack_bytes(scheme, packed),
    }


def _stack_bytes(scheme: Scheme, packed: Packed) -> int:
    """Return the bytes of the arrays that are alive at once during a prediction, at most."""
    sizes, itemsize = _sizes(scheme, packed), packed.center.itemsize
    evaluation, blending = itemsize * sizes["row_size"], 0
    if sizes["blend"] > 1:
        blending = itemsize * (sizes["blend"] + 1 + sizes["n_functions"])
        blending += INDEX_BYTES * (sizes["blend"] + 1)
    bending = itemsize * sizes["n_terms"] + (itemsize + INDEX_BYTES) * sizes["n_listed"]
    evaluation += max(blending, bending)
    if isinstance(scheme, TreeScheme):
        return evaluation + itemsize
    decision, n_compared = 0, sizes["max_classes"]
    if _is_coupled(scheme):
        decision += itemsize * n_compared * (n_compared + 1)
    elif _has_pairs(scheme):
        decision += INDEX_BYTES * n_compared
    if isinstance(scheme, ShortlistScheme):
        evaluation += INDEX_BYTES * n_compared
        decision += itemsize * (scheme.max_pairs + 1) + INDEX_BYTES * n_compared
    return itemsize * sizes["n_values"] + max(evaluation, decision)


def _is_coupled(scheme: Scheme) -> bool:
    """Tell whether the class is that of the largest coupled probability, which needs math.h."""
    by_vote = isinstance(scheme, PairwiseScheme | ShortlistScheme) and scheme.by_vote
    return _has_pairs(scheme) and not by_vote


def _has_pairs(scheme: Scheme) -> bool:
    """Tell whether three or more classes are compared in pairs."""
    is_pairwise = isinstance(scheme, PairwiseScheme) and scheme.n_classes > 2
    return is_pairwise or isinstance(scheme, ShortlistScheme)


def _literals(scheme: Scheme, packed: Packed) -> dict[str, str]:
    """Return types, and numbers that stand in expressions."""
    real, is_double = packed.center.dtype.type, packed.center.dtype == np.float64
    margin = max(WINNER_MARGIN, 4 * float(np.finfo(real).eps))
    literals = {
        "real": c_real(packed.center.dtype),
        "exp": "exp" if is_double else "expf",
        "size_type": "uint16_t" if packed.size_bytes == 2 else "uint32_t",
        "winner_margin": c_number(real(margin)),
    }
    if isinstance(scheme, ShortlistScheme):
        literals["logit_margin"] = c_number(real(scheme.logit_margin))
        literals["pair_weight"] = c_number(real(scheme.pair_weight))
        literals["map_weight"] = c_number(real(0.5 * (1.0 - scheme.pair_weight)))
    return literals


def _arrays(scheme: Scheme, packed: Packed) -> dict[str, str]:
    """Return the elements of all arrays but the labels, those of all maps in turn."""
    arrays = {"center": elements(packed.center)}
    if packed.projection is not None:
        arrays["projection"] = elements(packed.projection)
    arrays["sizes"] = lines(str(part.n_points) for part in packed.maps)
    for field in ("points", "biases", "slopes", "offsets"):
        arrays[field] = elements(
            np.concatenate([getattr(part, field).ravel() for part in packed.maps])
        )
    if isinstance(scheme, TreeScheme):
        arrays["children"] = lines(map(str, scheme.children.ravel()))
    return arrays


def _flags(scheme: MapScheme, packed: Packed) -> dict[str, bool]:
    """Return which sections of the template a header has."""
    is_pairwise = scheme.name == "pairwise"
    is_binary = is_pairwise and scheme.n_classes == 2
    return {
        **_curve_flags(packed.curve),
        "searched": packed.is_searched,
        "projected": packed.projection is not None,
        "blended": max(part.n_blended for part in packed.maps) > 1,
        "two_classes": is_binary,
        "pairwise": is_pairwise and not is_binary,
        "one_vs_rest": scheme.name == "one-vs-rest",
        "shortlist": scheme.name == "shortlist",
        "tree": scheme.name == "tree",
        # Schemes that do not evaluate every map, and need to find one.
        "some_maps": scheme.name in ("shortlist", "tree"),
        "pairs": _has_pairs(scheme),
        "coupled": _is_coupled(scheme),
        "highest_value": scheme.name in ("one-vs-rest", "shared"),
        "logits": scheme.name in ("shared", "shortlist"),
        "sigmoid": is_pairwise or scheme.name in ("shortlist", "tree"),
    }


def _curve_fields(name: str, packed: Packed) -> dict[str, str]:
    """Return numbers, parts of expressions and arrays of the curved base; none without one."""
    curve, real = packed.curve, packed.center.dtype.type
    if curve is None:
        return {}
    place = "i" if curve.projection is None else "k"
    column_type = "uint16_t" if curve.column_bytes == 2 else "uint32_t"

    def read(array: str, index: str) -> str:
        kind = column_type if array == "columns" else c_real(packed.center.dtype)
        return f"LIMES_READ({kind}, {name}_curve_{array}[{index}])"

    feature = f"x[{read('columns', 'i')}]" if curve.columns is not None else f"x[{place}]"
    if curve.shift is not None:
        feature = f"({feature} - {read('shift', place)})"
    scaled = "" if curve.scale is None else f" * {read('scale', 'i')}"
    moved = "" if curve.offsets is None else f" + {read('offsets', 'i')}"
    fields = {
        "curve_row": "t" if curve.shift is None else "x",
        "curve_feature": feature,
        "curve_term": f"{feature}{scaled}{moved}",
        "curve_start": "0" if curve.offsets is None else read("offsets", "i"),
        "curve_shift_length": "TERMS" if curve.projection is None else "FEATURES",
        "curve_decay": c_number(real(curve.decay)),
        "largest_real": c_number(np.finfo(real).max),
        "column_type": column_type,
        "curve_columns": "" if curve.columns is None else lines(map(str, curve.columns)),
    }
    for part in ("shift", "projection", "scale", "offsets", "constants", "slopes", "squares"):
        array = getattr(curve, part)
        fields[f"curve_{part}"] = "" if array is None else elements(array)
    return fields


def _curve_flags(curve: PackedCurve | None) -> dict[str, bool]:
    """Return which sections of the template the curved base has."""
    arrays = ("shift", "projection", "columns", "scale", "offsets", "squares")
    return {
        "curved": curve is not None,
        **{f"curve_{name}": getattr(curve, name, None) is not None for name in arrays},
        "quadratic": curve is not None and curve.shape == "quadratic",
        "listed": curve is not None and curve.n_listed is not None,
    }


class _Exact:
    """Exact sums with their calibration, as a header stores them."""

    def __init__(self, scheme: ExactScheme, real: np.dtype[Any]) -> None:
        self.scheme, self.real = scheme, real
        self.packed = pack_sums(scheme, real)
        self.calibration = pack_calibration(scheme, self.packed.weight_unit, real)
        indices = exact_indices(scheme, self.packed, self.calibration)
        self.is_reordered = "order" in indices
        self.index_bytes = index_bytes(indices)

    @property
    def stack_bytes(self) -> int:
        """Bytes of the arrays that are alive at once during a prediction, at most."""
        n_classes, n_values = self.packed.n_classes, len(self.packed.intercepts)
        decision = 0
        if self.scheme.rule == "likeliest":
            decision = self.real.itemsize * (n_classes * (n_classes + 2) + n_values)
        elif n_classes > 2 and not self.packed.is_density:
            decision = n_classes * (self.real.itemsize + INDEX_BYTES)
        return self.real.itemsize * n_values + max(self.real.itemsize * self.n_row, decision)

    @property
    def n_row(self) -> int:
        """Numbers of a prepared row."""
        return self.packed.n_outputs if self.packed.slopes is None else self.packed.n_features


def _exact_descriptions(exact: _Exact) -> dict[str, object]:
    """Return sizes, and what the first comment of the header states."""
    packed, scheme = exact.packed, exact.scheme
    bound = rounding_bound(packed, exact.real, expands_squares=False)
    rounding = bound_lines(packed, bound, scheme.rule, exact.real)
    n_vectors = len(packed.vectors)
    what = f"{n_vectors} vector{'s' * (n_vectors != 1)}, kernel {packed.kernel.name}"
    return {
        "summary": f"{packed.n_classes} classes, {packed.n_features} features, scheme exact, "
        + what,
        "n_features": packed.n_features,
        "n_classes": packed.n_classes,
        "n_outputs": packed.n_outputs,
        "n_values": len(packed.intercepts),
        "n_stored": max(n_vectors, 1),
        "stack_bytes": exact.stack_bytes,
        "rounding": "\n".join(f" * {line}" for line in rounding),
    }


def _exact_literals(name: str, exact: _Exact) -> dict[str, str]:
    """Return types, numbers and parts of expressions."""
    packed, real, source = exact.packed, exact.real.type, exact.scheme.probabilities
    suffix = "" if exact.real == np.float64 else "f"
    is_selected, kernel = packed.columns is not None, packed.kernel
    real_type = c_real(exact.real)
    index_type = "uint16_t" if exact.index_bytes == 2 else "uint32_t"

    def read(array: str, index: str, kind: str = real_type) -> str:
        return f"LIMES_READ({kind}, {name}_{array}[{index}])"

    place = read("columns", "k", index_type) if is_selected else "k"
    feature = f"x[{place}]" if packed.center is None else f"(x[{place}] - {read('center', place)})"
    scaled = "" if packed.scale is None else f" * {read('scale', 'k')}"
    moved = "" if packed.offsets is None else f" + {read('offsets', 'k')}"
    gamma, coef0 = (c_number(real(number)) for number in (kernel.gamma, kernel.coef0))
    exponent, infinity = f"-{gamma} * sum", "INFINITY"
    far = f"sum < {infinity} ? "
    kernels = {
        "rbf": far
        + (f"{exponent} : -{infinity}" if packed.is_density else f"exp{suffix}({exponent}) : 0"),
        "poly": f"{name}_power(sum)",
        "sigmoid": f"tanh{suffix}(sum)",
        "linear": "sum",
    }
    temperature = source.inverse_temperature if isinstance(source, PairSigmoids) else 1.0
    is_isotonic = exact.calibration is not None and bool(exact.calibration.isotonic)
    calibrate = f"{name}_sigmoid({read('calibration', '2 * {c}')} * {{value}} + "
    calibrate += f"{read('calibration', '2 * {c} + 1')})"
    if is_isotonic:
        calibrate = f"{name}_calibrate({{c}}, {{value}})"
    return {
        "real": real_type,
        "index_type": index_type,
        **{function: f"{function}{suffix}" for function in ("exp", "log", "pow")},
        "infinity": infinity,
        "feature": feature,
        "scaled_and_moved": scaled + moved,
        "first_term": coef0 if kernel.name in ("poly", "sigmoid") else "0",
        "kernel": kernels[kernel.name],
        "degree": str(int(kernel.degree)),
        "is_second": ">=" if exact.scheme.rule == "votes" else ">",
        "tolerance": c_number(real(LIBSVM_TOLERANCE)),
        "least_pair": c_number(real(LIBSVM_MIN_PROBABILITY)),
        "least_probability": c_number(real(MIN_PROBABILITY)),
        "inverse_temperature": c_number(real(temperature)),
        "weight_one": c_number(real(packed.one)),
        "calibrated_two": calibrate.format(c=0, value="values[0]"),
        "calibrated_value": calibrate.format(c="c", value="value"),
    }


def _exact_arrays(exact: _Exact) -> dict[str, object]:
    """Return the elements of all arrays but the labels."""
    packed, calibration = exact.packed, exact.calibration
    fields: dict[str, object] = {}
    for name in ("center", "scale", "projection", "offsets", "slopes", "intercepts"):
        array = getattr(packed, name)
        fields[name] = "" if array is None else elements(array)
    for name in ("vectors", "weights"):
        array = getattr(packed, name)
        # C has no empty arrays.
        fields[name] = elements(array if array.size else np.zeros(1, array.dtype))
    fields["columns"] = "" if packed.columns is None else lines(map(str, packed.columns))
    fields["sizes"] = lines(map(str, packed.n_support))
    fields["order"] = lines(map(str, exact.scheme.class_order))
    if calibration is None:
        return fields
    # Half the log odds of pairs, as the coupling takes them.
    pairs = np.column_stack([calibration.slopes, calibration.shifts])
    isotonic = calibration.isotonic
    return {
        **fields,
        "sigmoids": elements(0.5 * pairs),
        "calibration": elements(pairs),
        "n_columns": len(isotonic) or len(pairs),
        "steps": lines(str(len(x)) for x, _ in isotonic),
        "n_steps": sum(len(x) for x, _ in isotonic),
        "thresholds": elements(
            np.concatenate([np.empty(0, exact.real), *(x for x, _ in isotonic)])
        ),
        "levels": elements(np.concatenate([np.empty(0, exact.real), *(y for _, y in isotonic)])),
    }


def _exact_flags(exact: _Exact) -> dict[str, bool]:
    """Return which sections of the template a header has."""
    scheme, packed, source = exact.scheme, exact.packed, exact.scheme.probabilities
    is_two, is_density, rule = packed.n_classes == 2, packed.is_density, scheme.rule
    has_sigmoids, is_calibrated = isinstance(source, PairSigmoids), isinstance(source, Calibrators)
    is_isotonic = exact.calibration is not None and bool(exact.calibration.isotonic)
    return {
        "probabilities": scheme.has_probabilities,
        # Whether the largest probability is that of the predicted class.
        "agreeing": is_density or rule == "likeliest",
        "sums": packed.slopes is None,
        "centered": packed.center is not None,
        "selected": packed.columns is not None,
        "scaled": packed.scale is not None,
        "projected": packed.projection is not None,
        "moved": packed.offsets is not None,
        "density": is_density,
        "distance": packed.kernel.name == "rbf",
        "power": packed.kernel.name == "poly",
        "sigmoids": has_sigmoids,
        "calibrated": is_calibrated,
        "isotonic": is_isotonic,
        "sigmoid": has_sigmoids or (is_calibrated and not is_isotonic),
        "coupled": has_sigmoids and not is_two,
        "like_libsvm": isinstance(source, PairSigmoids) and source.like_libsvm,
        "tempered": isinstance(source, PairSigmoids) and source.inverse_temperature != 1.0,
        "two_classes": is_two,
        "reordered": exact.is_reordered,
        "highest": is_density or rule == "likeliest",
        "counted": not is_two and (rule in ("votes", "ties broken") or is_calibrated),
        # Functions that only probabilities need.
        "guarded": scheme.has_probabilities and rule != "likeliest",
        "likeliest": rule == "likeliest",
        "one_value": is_two and rule in ("votes", "strict"),
        "most_votes": not is_two and rule in ("votes", "ties broken"),
        "ties_broken": rule == "ties broken",
    }
