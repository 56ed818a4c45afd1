"""Fitted classifiers as C99: one header, no memory of its own, no dependency."""

from typing import Any

import numpy as np

import limes
from limes.classifier import BordersClassifier
from limes.export import c_code, c_many, c_text
from limes.export.fitted import fitted_scheme, unknown_scheme
from limes.export.packed import Packed, pack, resolve_dtype
from limes.schemes.pairwise import PairwiseScheme
from limes.schemes.protocol import MARGIN, Scheme
from limes.schemes.shortlist import ShortlistScheme
from limes.schemes.tree import TreeScheme

__all__ = ["constant_bytes", "to_c"]

# C's names for the two types of number.
TYPES = {"float": "float32", "double": "float64"}
# Of a number in the list of branches of a tree.
BRANCH_BYTES = 2
SCHEMES = ("one-vs-rest", "pairwise", "shared", "shortlist", "tree")


def to_c(
    fast: BordersClassifier,
    *,
    name: str = "limes_model",
    dtype: str | None = None,
    max_bytes: int | None = None,
) -> str:
    """Return a fitted classifier as a C99 header.

    ``name_predict(x)`` takes a row and returns the number of its class, ``name_labels`` has the
    labels. With the macro ``NAME_PROBABILITIES`` defined before the header is included there is
    also ``name_probabilities(x, p)``, which needs ``math.h``. Nothing is allocated, and all
    constants have every bit. Rows with a NaN have no answer that means anything.

    Parameters
    ----------
    fast : BordersClassifier
        Fitted.
    name : str, default='limes_model'
        First part of every name in the header.
    dtype : {'float', 'double', 'float32', 'float64'} or None, default=None
        Of rows and arithmetic; None for that of the classifier.
    max_bytes : int or None, default=None
        The most that the constants may take.

    Returns
    -------
    str
        The header; its first lines tell its size.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, random_state=0)
    >>> fast = BordersClassifier(n_borders=20, random_state=0).fit(X, y)
    >>> print(to_c(fast, name="moons", max_bytes=2048).splitlines()[3])
     * Constants: 490 bytes. Stack of a prediction: about 12 bytes and the compiler's own.
    """
    scheme, name = fitted_scheme(fast), c_text.check_name(name)
    if scheme.name not in SCHEMES:
        raise unknown_scheme(scheme, SCHEMES, "C")
    packed = pack(scheme, resolve_dtype(scheme, TYPES.get(dtype or "", dtype)))
    n_bytes = _constant_bytes(scheme, packed)
    if max_bytes is not None and n_bytes > max_bytes:
        raise _too_large(packed, n_bytes, max_bytes)
    parts = [_describe(fast, packed, name), c_code.FRONT, *_arrays(scheme, packed)]
    parts += [c_text.labels("@name@_labels", fast.classes_), "\n", *_functions(scheme, packed)]
    return _put_in("".join(parts), _words(fast, scheme, packed, name))


def constant_bytes(fast: BordersClassifier, *, dtype: str | None = None) -> int:
    """Return how many bytes the constants of a header take, labels left out.

    Parameters
    ----------
    fast : BordersClassifier
        Fitted.
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


def _constant_bytes(scheme: Scheme, packed: Packed) -> int:
    """Return the bytes of floats, of the sizes of maps and of the branches of a tree."""
    floats = packed.center.nbytes
    floats += 0 if packed.projection is None else packed.projection.nbytes
    for one in packed.maps:
        floats += one.weights.nbytes + one.biases.nbytes + one.functions.nbytes + one.offsets.nbytes
    n_branches = 2 * len(packed.maps) if isinstance(scheme, TreeScheme) else 0
    return int(floats) + _size_bytes(packed) * len(packed.maps) + BRANCH_BYTES * n_branches


def _size_bytes(packed: Packed) -> int:
    """Return the bytes of the number of points of one map."""
    return 2 if max(one.n_points for one in packed.maps) < 2**16 else 4


def _too_large(packed: Packed, n_bytes: int, max_bytes: int) -> ValueError:
    """Say how many border points would fit."""
    # Points are counted a map, but for the map of a shortlist that names classes.
    maps = [one for one in packed.maps if one.n_values == packed.maps[-1].n_values]
    one = maps[0]
    each = (one.weights[0].size + 1 + one.functions[0].size + one.n_values) * one.weights.itemsize
    fixed = n_bytes - each * sum(one.n_points for one in maps)
    fitting = max(0, (max_bytes - fixed) // each // len(maps))
    return ValueError(
        f"the constants must fit max_bytes={max_bytes!r}, got {n_bytes} bytes: fit with "
        f"n_borders={fitting}, which is what has room."
        if fitting
        else f"the constants must fit max_bytes={max_bytes!r}, got {n_bytes} bytes: fit with fewer "
        "features or another scheme, since not one border point a map has room."
    )


def _describe(fast: BordersClassifier, packed: Packed, name: str) -> str:
    """Return the first comment: what this is, its size, and how to use it."""
    n_points = sum(one.n_points for one in packed.maps)
    itemsize = packed.center.itemsize
    stack = itemsize * (packed.n_features + _count_values(fast.scheme_, packed))
    stack += 0 if packed.projection is None else itemsize * packed.projection.shape[1]
    names = getattr(fast, "feature_names_in_", None)
    lines = [
        f"/* {name}: {len(fast.classes_)} classes, {packed.n_features} features, scheme "
        f"{fast.scheme_.name}, {n_points} border points in",
        f" * {len(packed.maps)} maps; by limes {limes.__version__}.",
        " *",
        f" * Constants: {_constant_bytes(fast.scheme_, packed)} bytes. Stack of a prediction: "
        f"about {stack} bytes and the compiler's own.",
        " *",
        f" * int {name}_predict(const {name}_real *x) returns the place of a row's class in "
        f"{name}_labels.",
        f" * With {name.upper()}_PROBABILITIES defined before this is included:",
        f" * int {name}_probabilities(const {name}_real *x, {name}_real *p) also fills the "
        "probabilities.",
    ]
    if names is not None:
        lines += [" *", " * Features, in this order:"]
        lines += [f" * {place} {c_text.comment(str(one))}" for place, one in enumerate(names)]
    return "\n".join([*lines, " */"]) + "\n"


def _count_values(scheme: Scheme, packed: Packed) -> int:
    """Return how many values a prediction keeps."""
    if isinstance(scheme, ShortlistScheme):
        return scheme.n_classes + scheme.n_slots
    return packed.n_values


def _arrays(scheme: Scheme, packed: Packed) -> list[str]:
    """Return the constants, those of all maps one after the other."""
    kind, maps = "@NAME@_CONST @name@_real", packed.maps
    size = "unsigned short" if _size_bytes(packed) == 2 else "unsigned long"
    parts = [
        c_text.numbers(kind, "@name@_center", packed.center),
        c_text.array(f"@NAME@_CONST {size}", "@name@_sizes", [str(one.n_points) for one in maps]),
    ]
    if packed.projection is not None:
        parts.append(c_text.numbers(kind, "@name@_projection", packed.projection))
    for field in ("weights", "biases", "functions", "offsets"):
        joined = np.concatenate([getattr(one, field).ravel() for one in maps])
        parts.append(c_text.numbers(kind, f"@name@_{field}", joined))
    if isinstance(scheme, TreeScheme):
        branches = [str(child) for child in scheme.children.ravel()]
        parts.append(c_text.array("@NAME@_CONST short", "@name@_children", branches))
    return parts


def _functions(scheme: Scheme, packed: Packed) -> list[str]:
    """Return the functions, each after those that it calls."""
    is_blended = max(one.n_blended for one in packed.maps) > 1
    code = [c_code.BLENDED if is_blended else c_code.NEAREST]
    values = c_code.VALUES if packed.projection is None else c_code.PROJECTED_VALUES
    if isinstance(scheme, ShortlistScheme):
        code = [c_many.SHORTLIST_FUNCTIONS, *code, *_shortlist_functions(scheme, packed)]
    elif isinstance(scheme, TreeScheme):
        code = [c_code.FUNCTIONS, *code, values, c_code.HIGHEST, *_tree_functions(packed)]
    else:
        code = [c_code.FUNCTIONS, *code, values, c_code.HIGHEST, *_joining_functions(scheme)]
    code += [c_code.PUT_FIRST, c_code.PROBABILITIES, c_code.END_IF_ASKED, c_code.END]
    return code


def _shortlist_functions(scheme: ShortlistScheme, packed: Packed) -> list[str]:
    """Return those that name classes and ask their pairs."""
    coupling = [c_code.SIGMOID, c_many.COUPLE]
    code = [c_many.FIRST, _prepare_code(packed), c_code.HIGHEST, c_many.NAME]
    code += [c_many.SHORTLIST_VALUES]
    if scheme.by_vote:
        code += [c_many.SHORTLIST_VOTED, c_code.PREDICT, c_code.IF_ASKED, *coupling]
    else:
        code += [*coupling, c_many.SHORTLIST_COUPLED, c_code.PREDICT, c_code.IF_ASKED]
    return [*code, c_many.SHORTLIST_OWN]


def _tree_functions(packed: Packed) -> list[str]:
    """Return those that walk down a tree."""
    code = [c_many.FIRST, _prepare_code(packed), c_many.TREE_PREDICT, c_code.IF_ASKED]
    return [*code, c_code.SIGMOID, c_many.TREE_CLASS, c_many.TREE_OWN]


def _prepare_code(packed: Packed) -> str:
    """Return the function that makes a row ready for the search."""
    return c_many.PREPARE if packed.projection is None else c_many.PROJECTED_PREPARE


def _joining_functions(scheme: Scheme) -> list[str]:
    """Return those from the values of all maps to classes and probabilities."""
    own = _own_probabilities(scheme)
    if _is_coupled(scheme):
        return [*own, c_code.COUPLED_CLASS, c_code.PREDICT, c_code.IF_ASKED]
    return [_class_code(scheme), c_code.PREDICT, c_code.IF_ASKED, *own]


def _is_coupled(scheme: Scheme) -> bool:
    """Tell whether the class is that of the largest probability, which needs exponentials."""
    if isinstance(scheme, ShortlistScheme):
        return not scheme.by_vote
    return isinstance(scheme, PairwiseScheme) and scheme.n_classes > 2 and not scheme.by_vote


def _class_code(scheme: Scheme) -> str:
    """Return the function from values to a class."""
    if scheme.name == "pairwise":
        return c_code.TWO_CLASS if scheme.n_classes == 2 else c_code.VOTED_CLASS
    return c_code.HIGHEST_CLASS


def _own_probabilities(scheme: Scheme) -> list[str]:
    """Return the functions from values to probabilities."""
    if scheme.name == "pairwise":
        return [c_code.SIGMOID, c_code.TWO_OWN if scheme.n_classes == 2 else c_code.COUPLED_OWN]
    return [c_code.SHARED_OWN if scheme.name == "shared" else c_code.REST_OWN]


def _words(
    fast: BordersClassifier, scheme: Scheme, packed: Packed, name: str
) -> dict[str, str | int]:
    """Return what stands for the words between @ in the code."""
    first, is_double = packed.maps[0], packed.center.dtype == np.float64
    margin = max(MARGIN, 4 * float(np.finfo(packed.center.dtype).eps))
    return {
        **_asking_words(scheme, packed),
        "math": c_code.MATH if _is_coupled(scheme) else c_code.MATH_IF_ASKED,
        "n_features": packed.n_features,
        "n_classes": len(fast.classes_),
        "n_values": _count_values(scheme, packed),
        "n_maps": len(packed.maps),
        "n_search": first.weights.shape[1],
        "n_each": first.n_values,
        "blend": max(one.n_blended for one in packed.maps),
        "n_bytes": _constant_bytes(scheme, packed),
        "margin": c_text.number(packed.center.dtype.type(margin)),
        "exp": "exp" if is_double else "expf",
        "real": "double" if is_double else "float",
        "name": name,
        "NAME": name.upper(),
    }


def _asking_words(scheme: Scheme, packed: Packed) -> dict[str, str | int]:
    """Return the words of the schemes that ask some of their maps."""
    is_plain, real = packed.projection is None, packed.center.dtype.type
    words: dict[str, str | int] = {
        "each": "@NAME@_EACH",
        "room": "@NAME@_FEATURES" if is_plain else "@NAME@_FEATURES + @NAME@_SEARCH",
        "z": "t" if is_plain else "t + @NAME@_FEATURES",
    }
    if isinstance(scheme, ShortlistScheme):
        words |= {
            "each": "(first < @name@_sizes[0] ? (size_t)@NAME@_EACH : (size_t)1)",
            "n_named": min(scheme.n_named, scheme.n_classes),
            "n_slots": scheme.n_slots,
            "reach": c_text.number(real(scheme.reach)),
            "trust": c_text.number(real(scheme.trust)),
            "rest": c_text.number(real(0.5 * (1.0 - scheme.trust))),
        }
    return words


def _put_in(text: str, words: dict[str, Any]) -> str:
    """Replace the words between @."""
    for word, value in words.items():
        text = text.replace(f"@{word}@", str(value))
    return text
