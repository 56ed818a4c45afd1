"""Text of C: literals, arrays of them, and templates with sections."""

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Characters in a line of constants.
LINE_WIDTH = 96


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


def template(name: str) -> str:
    """Return a template, with the templates that it includes."""
    text = files("limes.export").joinpath(name).read_text(encoding="utf-8")
    return re.sub(r"@include (\S+)@\n", lambda included: template(included[1]), text)


def elements(values: NDArray[Any]) -> str:
    """Return floats as lines of literals."""
    return lines(c_number(value) for value in values.ravel())


def lines(literals: Iterable[str]) -> str:
    """Return literals as the indented lines of an array."""
    done, line = [], "   "
    for literal in literals:
        if len(line) + len(literal) + 2 > LINE_WIDTH:
            done.append(line)
            line = "   "
        line += f" {literal},"
    return "\n".join([*done, line])


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
