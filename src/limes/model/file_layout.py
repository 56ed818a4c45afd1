"""Bytes of a model file: magic, JSON header, arrays, checksum."""

import json
import os
import re
import stat
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

# As in PNG: the first byte is not text, and a copy that changes line ends changes the last two.
MAGIC = b"\x89LIMES\r\n"
# Magic, version, bytes of the header, bytes of the file.
PREAMBLE = struct.Struct("<8sIIQ")
# Arrays begin at multiples of it, so that they can be mapped into memory.
ALIGNMENT = 64
CHECKSUM_BYTES = 32
# A header grows with the number of arrays, not with classes or border points.
MAX_HEADER_BYTES = 1 << 20
# Booleans, integers and floats of fixed size.
NUMBERS = {"|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"}
# Text of a fixed width, four bytes a character.
TEXT = re.compile(r"<U[1-9]\d{0,7}")
KEYS = {"dtype", "shape", "order", "object"}
MAX_DIMENSIONS = 4
MAX_SIZE = 1 << 48
# The last code point of Unicode.
LAST_CHARACTER = 0x10FFFF


@dataclass(frozen=True, eq=False)
class Container:
    """A header and arrays that were read, with the position of each array."""

    # Of the file, for messages.
    name: str
    # Of the format.
    version: int
    # From the JSON.
    header: dict[str, Any]
    # In the order of the file.
    arrays: list[NDArray[Any]]
    # The byte that each array begins at.
    positions: list[int]

    def fail(self, expected: str, found: object, *, array: object = None) -> NoReturn:
        """Raise for what is wrong in the header, or in an array, named as in the header."""
        # Version 1 has some numbers of arrays in an entry of their own.
        number = array.get("array") if isinstance(array, dict) else array
        is_known = type(number) is int and 0 <= number < len(self.positions)
        byte = self.positions[number] if is_known else PREAMBLE.size  # type: ignore[index]
        fail(self.name, byte, expected, found)


def fail(name: str, byte: int, expected: str, found: object) -> NoReturn:
    """Raise one line with the file, the byte, what was expected and what was found."""
    text = " ".join((found if isinstance(found, str) else repr(found)).split())
    shown = text if len(text) <= 80 else f"{text[:77]}..."
    raise ValueError(f"{name}, byte {byte}: expected {expected}, found {shown}.")


def write_container(
    stream: BinaryIO, header: dict[str, Any], arrays: list[NDArray[Any]], *, version: int
) -> None:
    """Write a header and arrays, and the checksum of both."""
    text = json.dumps(
        {**header, "arrays": [describe_array(array) for array in arrays]},
        allow_nan=False,
        separators=(",", ":"),
    ).encode("ascii")
    text += b" " * (-(PREAMBLE.size + len(text)) % ALIGNMENT)
    if len(text) > MAX_HEADER_BYTES:
        raise ValueError(
            f"the model's header must have at most {MAX_HEADER_BYTES} bytes, got {len(text)!r}: "
            "store long attributes as arrays."
        )
    blocks = [array_bytes(array, ALIGNMENT) for array in arrays]
    size = PREAMBLE.size + len(text) + sum(map(len, blocks)) + CHECKSUM_BYTES
    checksum = sha256()
    for piece in (PREAMBLE.pack(MAGIC, version, len(text), size), text, *blocks):
        stream.write(piece)
        checksum.update(piece)
    stream.write(checksum.digest())


def read_container(
    path: str | os.PathLike[str], *, max_bytes: int, versions: Sequence[int]
) -> Container:
    """Read a file whose first bytes, length and checksum are right."""
    name = os.fspath(path)
    info = Path(path).stat()
    if not stat.S_ISREG(info.st_mode):
        raise ValueError(f"{name}: expected a plain file, found a folder, pipe or device.")
    if info.st_size > max_bytes:
        fail(name, max_bytes, f"the end of the file (max_bytes={max_bytes})", "more")
    with Path(path).open("rb") as stream:
        preamble = stream.read(PREAMBLE.size)
        _check_preamble(name, preamble, info.st_size, versions)
        return parse_container(preamble + stream.read(info.st_size), name, versions=versions)


def parse_container(data: bytes, name: str, *, versions: Sequence[int]) -> Container:
    """Read the bytes of a file."""
    version, n_header = _check_preamble(name, data[: PREAMBLE.size], len(data), versions)
    end = len(data) - CHECKSUM_BYTES
    if sha256(memoryview(data)[:end]).digest() != data[end:]:
        fail(
            name,
            end,
            "the checksum of the bytes before (the file is damaged)",
            f"{data[end : end + 4].hex()}...",
        )
    header = _parse_header(data[PREAMBLE.size : PREAMBLE.size + n_header], name)
    arrays, positions = _parse_arrays(header, data, PREAMBLE.size + n_header, name)
    return Container(name, version, header, arrays, positions)


def _check_preamble(
    name: str, preamble: bytes, size: int, versions: Sequence[int]
) -> tuple[int, int]:
    """Check the first bytes against the size of the file; return version and header length."""
    if len(preamble) < len(MAGIC) or preamble[: len(MAGIC)] != MAGIC:
        fail(name, 0, f"a limes model, which begins with {MAGIC!r}", preamble[: len(MAGIC)])
    if len(preamble) < PREAMBLE.size:
        fail(name, len(preamble), f"{PREAMBLE.size} bytes before the header", "the end of the file")
    _, version, n_header, stated = PREAMBLE.unpack(preamble)
    if version not in versions:
        known = " or ".join(map(str, versions))
        fail(name, 8, f"format version {known} (a newer limes may know it)", version)
    if size < stated:
        fail(name, size, f"a file of {stated} bytes (is it cut short?)", "the end of the file")
    if size > stated:
        fail(name, stated, f"the end of a file of {stated} bytes", f"{size - stated} bytes more")
    if n_header > MAX_HEADER_BYTES or PREAMBLE.size + n_header + CHECKSUM_BYTES > size:
        most = max(0, min(MAX_HEADER_BYTES, size - PREAMBLE.size - CHECKSUM_BYTES))
        fail(name, 12, f"a header of at most {most} bytes", n_header)
    return int(version), int(n_header)


def _parse_header(text: bytes, name: str) -> dict[str, Any]:
    """Read the JSON, which must have no key twice and no NaN."""
    try:
        header = json.loads(
            text.decode("ascii"), object_pairs_hook=_unique_keys, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        fail(name, PREAMBLE.size + error.pos, "a header in JSON", error.msg)
    except (ValueError, RecursionError) as error:
        fail(name, PREAMBLE.size, "a header in JSON", str(error).splitlines()[0])
    if not isinstance(header, dict):
        fail(name, PREAMBLE.size, "a JSON object", header)
    return header


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, or raise if a key is there twice."""
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a key that is there twice")
    return values


def _refuse_constant(word: str) -> NoReturn:
    """Raise for NaN and infinity, which JSON does not have."""
    raise ValueError(word)


def _parse_arrays(
    header: dict[str, Any], data: bytes, place: int, name: str
) -> tuple[list[NDArray[Any]], list[int]]:
    """Read the arrays of the header, which must fill the file up to the checksum."""
    described = header.pop("arrays", None)
    if not isinstance(described, list):
        fail(name, PREAMBLE.size, "a list of 'arrays' in the header", described)
    inner = memoryview(data)[: len(data) - CHECKSUM_BYTES]
    arrays: list[NDArray[Any]] = []
    positions: list[int] = []
    for entry in described:
        try:
            array, n_bytes = read_array(entry, inner[place:])
        except ValueError as error:
            fail(name, place, f"array {len(arrays)} of the header", str(error))
        arrays.append(array)
        positions.append(place)
        place += n_bytes + -n_bytes % ALIGNMENT
    if place != len(inner):
        fail(name, place, "the checksum after the last array", f"{len(inner) - place} bytes more")
    return arrays, positions


def describe_array(array: NDArray[Any]) -> dict[str, Any]:
    """Return the entry of an array in the header.

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
    """Return an array in the form that is stored, or raise if there is none."""
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
    """Return whether an array is in Fortran order, which is kept: sums depend on it."""
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
    """Raise for bytes that are no boolean or no character."""
    if flat.dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise ValueError("a truth value other than 0 and 1")
    if flat.dtype.kind == "U" and flat.view("<u4").max(initial=0) > LAST_CHARACTER:
        raise ValueError("a character beyond Unicode")
