"""Arrays as bytes: plain numbers and text, little-endian, nothing that could be executed."""

import re
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Truth values, whole numbers and floats of fixed size.
NUMBERS = {"|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"}
# Text of a fixed width, four bytes a character.
TEXT = re.compile(r"<U[1-9]\d{0,7}")
KEYS = {"dtype", "shape", "order", "object"}
MAX_DIMENSIONS = 4
MAX_SIZE = 1 << 48
# Unicode ends here.
LAST_CHARACTER = 0x10FFFF


def describe_array(array: NDArray[Any]) -> dict[str, Any]:
    """Return what a header says of an array.

    Examples
    --------
    >>> describe_array(np.array([[1.0, 2.0]]))
    {'dtype': '<f8', 'shape': [1, 2]}
    """
    plain = _plain(array)
    described: dict[str, Any] = {"dtype": plain.dtype.str, "shape": list(plain.shape)}
    if _is_fortran(plain):
        described["order"] = "F"
    if array.dtype.kind == "O":
        described["object"] = True
    return described


def array_bytes(array: NDArray[Any], alignment: int) -> bytes:
    """Return an array's bytes, with zeros up to a multiple of the alignment."""
    plain = _plain(array)
    data = plain.tobytes(order="F" if _is_fortran(plain) else "C")
    return data + bytes(-len(data) % alignment)


def read_array(described: Any, data: memoryview) -> tuple[NDArray[Any], int]:
    """Return an array and the number of its bytes; it is a view of these."""
    dtype, shape, order, is_object = _check_description(described)
    n_bytes = prod(shape) * dtype.itemsize
    if n_bytes > len(data):
        raise ValueError(f"{n_bytes} bytes for it, where there are {len(data)}")
    array: NDArray[Any] = np.ndarray(shape, dtype, buffer=data[:n_bytes], order=order)
    _check_elements(array.ravel(order="K"))
    return (array.astype(object) if is_object else array), n_bytes


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array as it is stored, if it can be."""
    if array.dtype.kind == "O":
        array = _objects_to_text(array)
    plain = array.astype(array.dtype.newbyteorder("<"), copy=False)
    if plain.dtype.str not in NUMBERS and not TEXT.fullmatch(plain.dtype.str):
        raise ValueError(
            f"an array of {array.dtype!r} cannot be stored: a model file holds truth values, whole "
            "numbers, floats of up to 64 bits, and text."
        )
    return plain


def _objects_to_text(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of ``str`` objects as text of a fixed width."""
    for element in array.ravel():
        if type(element) is not str or element.endswith("\0"):
            raise ValueError(
                f"an array of objects cannot be stored unless all are text, got {element!r}: use "
                "whole numbers, floats or text."
            )
    return array.astype(str)


def _is_fortran(array: NDArray[Any]) -> bool:
    """Tell whether the first index runs fastest: sums of products keep their bits only so."""
    return bool(array.flags.f_contiguous and not array.flags.c_contiguous)


def _check_description(described: Any) -> tuple[np.dtype[Any], list[int], Any, bool]:
    """Return type, shape, order and whether its elements are objects."""
    if not isinstance(described, dict) or not set(described) <= KEYS:
        raise ValueError(f"{described!r:.60}")
    kind, shape = described.get("dtype"), described.get("shape")
    if not isinstance(kind, str) or (kind not in NUMBERS and not TEXT.fullmatch(kind)):
        raise ValueError(f"the type {kind!r:.60}")
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS:
        raise ValueError(f"the shape {shape!r:.60}")
    if not all(type(size) is int and 0 <= size < MAX_SIZE for size in shape):
        raise ValueError(f"the shape {shape!r:.60}")
    order, is_object = described.get("order", "C"), described.get("object", False)
    is_known = order in ("C", "F") and type(is_object) is bool
    if not is_known or (is_object and not kind.startswith("<U")):
        raise ValueError(f"{described!r:.60}")
    return np.dtype(kind), shape, order, bool(is_object)


def _check_elements(flat: NDArray[Any]) -> None:
    """Refuse bytes that are no truth value or no character."""
    if flat.dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise ValueError("a truth value other than 0 and 1")
    if flat.dtype.kind == "U" and flat.view("<u4").max(initial=0) > LAST_CHARACTER:
        raise ValueError("a character beyond Unicode")
