"""Numbers, text and arrays as C source, with every bit."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDTH = 96


def check_name(name: str) -> str:
    """Return a name that C can have."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,62}", name):
        raise ValueError(
            f"name must be letters, digits and underscores after a letter, got {name!r}."
        )
    return name


def number(value: Any) -> str:
    """Return the shortest decimal that C reads as the same bits.

    Examples
    --------
    >>> number(np.float32(0.1)), number(np.float64(2.0))
    ('0.1f', '2.0')
    """
    return f"{value!s}f" if value.dtype == np.float32 else str(value)


def array(kind: str, name: str, values: list[str]) -> str:
    """Return the definition of an array of constants."""
    lines, line = [], "   "
    for value in values:
        if len(line) + len(value) + 2 > WIDTH:
            lines.append(line)
            line = "   "
        line += f" {value},"
    return "\n".join([f"{kind} {name}[{len(values)}] = {{", *lines, line, "};"]) + "\n"


def numbers(kind: str, name: str, values: NDArray[Any]) -> str:
    """Return the definition of an array of floats."""
    return array(kind, name, [number(value) for value in values.ravel()])


def labels(name: str, classes: NDArray[Any]) -> str:
    """Return the definition of the labels: text, whole numbers or floats."""
    if classes.dtype.kind in "OU":
        return array("static const char *const", name, [text(str(one)) for one in classes])
    if classes.dtype.kind == "f":
        return array("static const double", name, [repr(float(one)) for one in classes])
    whole = [int(one) for one in classes]
    if all(abs(one) < 2**31 for one in whole):
        return array("static const long", name, [str(one) for one in whole])
    if max(whole) >= 2**63:
        return array("static const unsigned long long", name, [f"{one}ULL" for one in whole])
    # The lowest number has no literal of its own in C.
    shown = [f"{one}LL" if one > -(2**63) else f"({one + 1}LL - 1)" for one in whole]
    return array("static const long long", name, shown)


def text(value: str) -> str:
    r"""Return a text as a C literal: UTF-8, all but plain characters as octal numbers.

    Examples
    --------
    >>> print(text('a"b\n?é'))
    "a\042b\012\077\303\251"
    """
    plain = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 _-+.,:;()[]/*=<>"
    data = value.encode("utf-8", "surrogatepass")
    return '"' + "".join(chr(one) if one in plain else f"\\{one:03o}" for one in data) + '"'


def comment(value: str) -> str:
    """Return a text that can stand in a comment: plain characters, the others by their numbers."""
    return ascii(re.sub("[@*/?]", lambda one: f"\\x{ord(one[0]):02x}", value))
