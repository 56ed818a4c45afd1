"""C99 header from the template ``model.h.in``."""

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

import limes
from limes.classifier import BordersClassifier
from limes.export.flat_arrays import Packed, fitted_scheme, pack, resolve_dtype, unknown_scheme
from limes.model.schemes import WINNER_MARGIN, PairwiseScheme, Scheme, ShortlistScheme, TreeScheme

# C's names for the two types of number.
TYPES = {"float": "float32", "double": "float64"}
SCHEMES = ("one-vs-rest", "pairwise", "shared", "shortlist", "tree")
# Of a child in the table of a tree, which is a short.
CHILD_BYTES = 2
# Of int and size_t on a 32-bit processor, for the estimate of the stack.
INDEX_BYTES = 4
# Characters in a line of constants.
LINE_WIDTH = 96


def to_c(
    fast: BordersClassifier,
    *,
    name: str = "limes_model",
    dtype: str | None = None,
    max_bytes: int | None = None,
) -> str:
    """Return a fitted classifier as a C99 header.

    ``name_predict(x)`` takes a row and returns its class as an index into ``name_labels``. If the
    macro ``NAME_PROBABILITIES`` is defined before the header is included, there is also
    ``name_probabilities(x, p)``, which needs ``math.h``. The code allocates no memory, and
    constants are written with every bit. The result for a row with a NaN is undefined.

    Parameters
    ----------
    fast : BordersClassifier
        Fitted classifier.
    name : str, default='limes_model'
        Prefix of every name in the header.
    dtype : {'float', 'double', 'float32', 'float64'} or None, default=None
        Type of rows and arithmetic; None for that of the classifier.
    max_bytes : int or None, default=None
        Largest size of the constants, without labels.

    Returns
    -------
    str
        The header; its first comment states the size of the constants and of the stack.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, random_state=0)
    >>> fast = BordersClassifier(n_borders=20, random_state=0).fit(X, y)
    >>> print(to_c(fast, name="moons", max_bytes=2048).splitlines()[3])
     * Constants: 490 bytes. Stack of a prediction: about 80 bytes of arrays.
    """
    scheme, name = fitted_scheme(fast), _check_name(name)
    if scheme.name not in SCHEMES:
        raise unknown_scheme(scheme, SCHEMES, "C")
    packed = pack(scheme, resolve_dtype(scheme, TYPES.get(dtype or "", dtype)))
    n_bytes = _constant_bytes(scheme, packed)
    if max_bytes is not None and n_bytes > max_bytes:
        raise _too_large(packed, n_bytes, max_bytes)
    fields = {
        "name": name,
        "NAME": name.upper(),
        "version": limes.__version__,
        **_sizes(scheme, packed),
        **_descriptions(fast, scheme, packed),
        **_literals(scheme, packed),
        **_arrays(scheme, packed),
        **_labels(fast.classes_),
    }
    template = files("limes.export").joinpath("model.h.in").read_text(encoding="utf-8")
    return render(template, _flags(fast, scheme, packed), fields)


def constant_bytes(fast: BordersClassifier, *, dtype: str | None = None) -> int:
    """Return how many bytes the constants of a header take, without labels.

    Parameters
    ----------
    fast : BordersClassifier
        Fitted classifier.
    dtype : {'float', 'double', 'float32', 'float64'} or None, default=None
        As for ``to_c``.

    Returns
    -------
    int
        Bytes.
    """
    scheme = fitted_scheme(fast)
    packed = pack(scheme, resolve_dtype(scheme, TYPES.get(dtype or "", dtype)))
    return _constant_bytes(scheme, packed)


def render(template: str, flags: Mapping[str, bool], fields: Mapping[str, object]) -> str:
    r"""Return a template with its conditional sections selected and its fields filled in.

    Lines between ``@if flag@`` or ``@if not flag@`` and ``@end@`` belong to a section, which can
    have an ``@else@`` and other sections inside.

    Examples
    --------
    >>> template = "@if small@\nint @name@;\n@else@\nlong @name@;\n@end@\n"
    >>> render(template, {"small": False}, {"name": "a"})
    'long a;\n'
    """
    lines: list[str] = []
    # Whether each section around the line is used.
    used: list[bool] = []
    for line in template.splitlines(keepends=True):
        if condition := re.fullmatch(r"@if (not )?(\w+)@\n", line):
            used.append(flags[condition[2]] != bool(condition[1]))
        elif line == "@else@\n":
            used[-1] = not used[-1]
        elif line == "@end@\n":
            used.pop()
        elif all(used):
            lines.append(line)
    return re.sub(r"@(\w+)@", lambda field: str(fields[field[1]]), "".join(lines))


def _check_name(name: str) -> str:
    """Return a name if it is an identifier of C."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,62}", name):
        raise ValueError(
            "name must be letters, digits and underscores after a letter, at most 63 in all, got "
            f"{name!r}."
        )
    return name


def _constant_bytes(scheme: Scheme, packed: Packed) -> int:
    """Return the bytes of floats, of the sizes of maps and of the children of a tree."""
    floats = packed.center.nbytes
    floats += 0 if packed.projection is None else packed.projection.nbytes
    for part in packed.maps:
        floats += part.points.nbytes + part.biases.nbytes + part.slopes.nbytes + part.offsets.nbytes
    n_children = 2 * len(packed.maps) if isinstance(scheme, TreeScheme) else 0
    return int(floats) + _size_bytes(packed) * len(packed.maps) + CHILD_BYTES * n_children


def _size_bytes(packed: Packed) -> int:
    """Return the bytes of the number of points of one map."""
    return 2 if max(part.n_points for part in packed.maps) < 2**16 else 4


def _too_large(packed: Packed, n_bytes: int, max_bytes: int) -> ValueError:
    """Return the error that states how many border points would fit."""
    # n_borders is a number per map, except for the map of a shortlist that selects classes.
    maps = [part for part in packed.maps if part.n_values == packed.maps[-1].n_values]
    numbers = maps[0].points[0].size + 1 + maps[0].slopes[0].size + maps[0].n_values
    point_bytes = numbers * maps[0].points.itemsize
    fixed_bytes = n_bytes - point_bytes * sum(part.n_points for part in maps)
    n_fitting = max(0, (max_bytes - fixed_bytes) // point_bytes // len(maps))
    return ValueError(
        f"the constants must fit max_bytes={max_bytes!r}, got {n_bytes} bytes: fit with "
        f"n_borders={n_fitting} or fewer."
        if n_fitting
        else f"the constants must fit max_bytes={max_bytes!r}, got {n_bytes} bytes: fit with fewer "
        "features or another scheme, since not one border point per map fits."
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
        "n_bytes": _constant_bytes(scheme, packed),
    }
    sizes["row_size"] = sizes["n_features"]
    if packed.projection is not None:
        sizes["row_size"] += sizes["n_search"]
    if isinstance(scheme, ShortlistScheme):
        sizes["max_classes"] = min(scheme.max_classes, scheme.n_classes)
        sizes["max_pairs"] = scheme.max_pairs
        sizes["n_values"] = scheme.n_classes + scheme.max_pairs
    return sizes


def _descriptions(fast: BordersClassifier, scheme: Scheme, packed: Packed) -> dict[str, object]:
    """Return what the first comment of the header states."""
    n_points, n_maps = sum(part.n_points for part in packed.maps), len(packed.maps)
    names = getattr(fast, "feature_names_in_", ())
    return {
        "summary": f"{scheme.n_classes} classes, {packed.n_features} features, scheme "
        f"{scheme.name}, {n_points} border point{'s' * (n_points > 1)} in {n_maps} "
        f"map{'s' * (n_maps > 1)}",
        "stack_bytes": _stack_bytes(scheme, packed),
        "feature_names": "\n".join(
            f" * {place} {c_comment(str(name))}" for place, name in enumerate(names)
        ),
    }


def _stack_bytes(scheme: Scheme, packed: Packed) -> int:
    """Return the bytes of the arrays that are alive at once during a prediction, at most."""
    sizes, itemsize = _sizes(scheme, packed), packed.center.itemsize
    evaluation = itemsize * sizes["row_size"]
    if sizes["blend"] > 1:
        evaluation += itemsize * (sizes["blend"] + 1 + sizes["n_functions"])
        evaluation += INDEX_BYTES * (sizes["blend"] + 1)
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
        "real": "double" if is_double else "float",
        "exp": "exp" if is_double else "expf",
        "size_type": "unsigned short" if _size_bytes(packed) == 2 else "unsigned long",
        "winner_margin": c_number(real(margin)),
    }
    if isinstance(scheme, ShortlistScheme):
        literals["logit_margin"] = c_number(real(scheme.logit_margin))
        literals["pair_weight"] = c_number(real(scheme.pair_weight))
        literals["map_weight"] = c_number(real(0.5 * (1.0 - scheme.pair_weight)))
    return literals


def _arrays(scheme: Scheme, packed: Packed) -> dict[str, str]:
    """Return the elements of all arrays but the labels, those of all maps in turn."""
    arrays = {"center": _elements(packed.center)}
    if packed.projection is not None:
        arrays["projection"] = _elements(packed.projection)
    arrays["sizes"] = _lines(str(part.n_points) for part in packed.maps)
    for field in ("points", "biases", "slopes", "offsets"):
        arrays[field] = _elements(
            np.concatenate([getattr(part, field).ravel() for part in packed.maps])
        )
    if isinstance(scheme, TreeScheme):
        arrays["children"] = _lines(map(str, scheme.children.ravel()))
    return arrays


def _elements(values: NDArray[Any]) -> str:
    """Return floats as lines of literals."""
    return _lines(c_number(value) for value in values.ravel())


def _lines(literals: Iterable[str]) -> str:
    """Return literals as the indented lines of an array."""
    lines, line = [], "   "
    for literal in literals:
        if len(line) + len(literal) + 2 > LINE_WIDTH:
            lines.append(line)
            line = "   "
        line += f" {literal},"
    return "\n".join([*lines, line])


def _labels(classes: NDArray[Any]) -> dict[str, str]:
    """Return the type and the elements of the labels: text, whole numbers or floats."""
    if classes.dtype.kind in "OU":
        kind, literals = "char *const", [c_string(str(label)) for label in classes]
    elif classes.dtype.kind == "f":
        kind, literals = "double", [repr(float(label)) for label in classes]
    else:
        kind, literals = _whole_labels([int(label) for label in classes])
    return {"label_type": kind, "labels": _lines(literals)}


def _whole_labels(labels: list[int]) -> tuple[str, list[str]]:
    """Return the smallest type that C guarantees to hold the labels, and their literals."""
    if all(abs(label) < 2**31 for label in labels):
        return "long", [str(label) for label in labels]
    if max(labels) >= 2**63:
        return "unsigned long long", [f"{label}ULL" for label in labels]
    # C has no literal for the lowest number: the minus sign is an operator.
    lowest = -(2**63)
    return "long long", [
        f"{label}LL" if label > lowest else f"({label + 1}LL - 1)" for label in labels
    ]


def _flags(fast: BordersClassifier, scheme: Scheme, packed: Packed) -> dict[str, bool]:
    """Return which sections of the template a header has."""
    is_pairwise = scheme.name == "pairwise"
    is_binary = is_pairwise and scheme.n_classes == 2
    return {
        "named_features": hasattr(fast, "feature_names_in_"),
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


def c_number(value: Any) -> str:
    """Return the shortest decimal that C reads as the same bits.

    Examples
    --------
    >>> c_number(np.float32(0.1)), c_number(np.float64(2.0))
    ('0.1f', '2.0')
    """
    return f"{value!s}f" if value.dtype == np.float32 else str(value)


def c_string(value: str) -> str:
    r"""Return a text as a string literal: UTF-8, all but plain characters as octal numbers.

    Examples
    --------
    >>> print(c_string('a"b\n?é'))
    "a\042b\012\077\303\251"
    """
    plain = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 _-+.,:;()[]/*=<>"
    data = value.encode("utf-8", "surrogatepass")
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in data) + '"'


def c_comment(value: str) -> str:
    """Return a text that cannot end a comment: ASCII, other characters by their numbers."""
    return ascii(re.sub("[@*/?]", lambda match: f"\\x{ord(match[0]):02x}", value))
