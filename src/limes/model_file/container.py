"""The bytes of a model file: what it is, a header in JSON, arrays, a checksum."""

import json
import os
import stat
import struct
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from numpy.typing import NDArray

from limes.model_file.arrays import array_bytes, describe_array, read_array

# As PNG's: the first byte is no text, and a copy that changes line ends destroys the last two.
MAGIC = b"\x89LIMES\r\n"
VERSION = 1
# Magic, version, bytes of the header, bytes of the file.
FRONT = struct.Struct("<8sIIQ")
# Arrays begin at multiples of it, so that any of them can be mapped into memory as it is.
ALIGNMENT = 64
CHECKSUM_BYTES = 32
# A header has one line for each array, never one for each class or border point.
MAX_HEADER_BYTES = 1 << 20


@dataclass(frozen=True, eq=False)
class Container:
    """What was read: a header, arrays, and where each began."""

    # Of the file, for messages.
    name: str
    # From the JSON.
    header: dict[str, Any]
    # In the order of the file.
    arrays: list[NDArray[Any]]
    # The byte that each array begins at.
    places: list[int]

    def fail(self, expected: str, found: object, *, array: int | None = None) -> NoReturn:
        """Say what is wrong in the header, or in an array."""
        fail(self.name, FRONT.size if array is None else self.places[array], expected, found)


def fail(name: str, byte: int, expected: str, found: object) -> NoReturn:
    """Say in one line which file is wrong, where, and how."""
    text = " ".join((found if isinstance(found, str) else repr(found)).split())
    shown = text if len(text) <= 80 else f"{text[:77]}..."
    raise ValueError(f"{name}, byte {byte}: expected {expected}, found {shown}.")


def write_container(stream: BinaryIO, header: dict[str, Any], arrays: list[NDArray[Any]]) -> None:
    """Write a header and arrays, and the checksum of both."""
    text = json.dumps(
        {**header, "arrays": [describe_array(one) for one in arrays]},
        allow_nan=False,
        separators=(",", ":"),
    ).encode("ascii")
    text += b" " * (-(FRONT.size + len(text)) % ALIGNMENT)
    if len(text) > MAX_HEADER_BYTES:
        raise ValueError(
            f"the model's header must have at most {MAX_HEADER_BYTES} bytes, got {len(text)!r}: "
            "store long attributes as arrays."
        )
    blocks = [array_bytes(one, ALIGNMENT) for one in arrays]
    size = FRONT.size + len(text) + sum(map(len, blocks)) + CHECKSUM_BYTES
    checksum = sha256()
    for piece in (FRONT.pack(MAGIC, VERSION, len(text), size), text, *blocks):
        stream.write(piece)
        checksum.update(piece)
    stream.write(checksum.digest())


def read_container(path: str | os.PathLike[str], *, max_bytes: int) -> Container:
    """Read a file whose first bytes, length and checksum are right."""
    name = os.fspath(path)
    info = Path(path).stat()
    if not stat.S_ISREG(info.st_mode):
        raise ValueError(f"{name}: expected a plain file, found a folder, pipe or device.")
    if info.st_size > max_bytes:
        fail(name, max_bytes, f"the end of the file (max_bytes={max_bytes})", "more")
    with Path(path).open("rb") as stream:
        front = stream.read(FRONT.size)
        _check_front(name, front, info.st_size)
        return parse_container(front + stream.read(info.st_size), name)


def parse_container(data: bytes, name: str) -> Container:
    """Read the bytes of a file."""
    n_header = _check_front(name, data[: FRONT.size], len(data))
    end = len(data) - CHECKSUM_BYTES
    if sha256(memoryview(data)[:end]).digest() != data[end:]:
        fail(
            name,
            end,
            "the checksum of the bytes before (the file is damaged)",
            f"{data[end : end + 4].hex()}...",
        )
    header = _parse_header(data[FRONT.size : FRONT.size + n_header], name)
    arrays, places = _parse_arrays(header, data, FRONT.size + n_header, name)
    return Container(name, header, arrays, places)


def _check_front(name: str, front: bytes, size: int) -> int:
    """Check the first bytes against the size of the file; return the length of the header."""
    if len(front) < len(MAGIC) or front[: len(MAGIC)] != MAGIC:
        fail(name, 0, f"a limes model, which begins with {MAGIC!r}", front[: len(MAGIC)])
    if len(front) < FRONT.size:
        fail(name, len(front), f"{FRONT.size} bytes before the header", "the end of the file")
    _, version, n_header, stated = FRONT.unpack(front)
    if version != VERSION:
        fail(name, 8, f"format version {VERSION} (a newer limes may know it)", version)
    if size < stated:
        fail(name, size, f"a file of {stated} bytes (is it cut short?)", "the end of the file")
    if size > stated:
        fail(name, stated, f"the end of a file of {stated} bytes", f"{size - stated} bytes more")
    if n_header > MAX_HEADER_BYTES or FRONT.size + n_header + CHECKSUM_BYTES > size:
        most = max(0, min(MAX_HEADER_BYTES, size - FRONT.size - CHECKSUM_BYTES))
        fail(name, 12, f"a header of at most {most} bytes", n_header)
    return int(n_header)


def _parse_header(text: bytes, name: str) -> dict[str, Any]:
    """Read the JSON, which holds no key twice and no number beyond floats."""
    try:
        header = json.loads(
            text.decode("ascii"), object_pairs_hook=_unique_keys, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        fail(name, FRONT.size + error.pos, "a header in JSON", error.msg)
    except (ValueError, RecursionError) as error:
        fail(name, FRONT.size, "a header in JSON", str(error).splitlines()[0])
    if not isinstance(header, dict):
        fail(name, FRONT.size, "a JSON object", header)
    return header


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, unless a key is there twice."""
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a key that is there twice")
    return values


def _refuse_constant(word: str) -> NoReturn:
    """Refuse what JSON does not have."""
    raise ValueError(word)


def _parse_arrays(
    header: dict[str, Any], data: bytes, place: int, name: str
) -> tuple[list[NDArray[Any]], list[int]]:
    """Read the arrays that the header names, which fill the file to the checksum."""
    described = header.pop("arrays", None)
    if not isinstance(described, list):
        fail(name, FRONT.size, "a list of 'arrays' in the header", described)
    inner = memoryview(data)[: len(data) - CHECKSUM_BYTES]
    arrays: list[NDArray[Any]] = []
    places: list[int] = []
    for one in described:
        try:
            array, n_bytes = read_array(one, inner[place:])
        except ValueError as error:
            fail(name, place, f"array {len(arrays)} of the header", str(error))
        arrays.append(array)
        places.append(place)
        place += n_bytes + -n_bytes % ALIGNMENT
    if place != len(inner):
        fail(name, place, "the checksum after the last array", f"{len(inner) - place} bytes more")
    return arrays, places
