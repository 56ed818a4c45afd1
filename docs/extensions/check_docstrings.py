"""Check the docstrings of all public names by numpydoc, as ``make lint`` does.

A page has the first sentence, all parameters and what is returned, and an example, which the tests
run. Properties are shown with the class and need no example of their own.
"""

import sys
from collections.abc import Iterator

from numpydoc.validate import validate
from public_names import PublicName, public_names

# A longer explanation, links to other pages and a first line of its own are not always useful.
LEFT_OUT = {"ES01", "SA01", "GL01"}
OF_PROPERTIES = LEFT_OUT | {"EX01"}


def findings(public: PublicName) -> Iterator[str]:
    """Yield what is missing in the docstrings of a name and of its methods."""
    if not callable(public.value):
        return
    yield from _check(public.path, LEFT_OUT)
    for member in public.members():
        is_property = isinstance(getattr(public.value, member), property)
        yield from _check(f"{public.path}.{member}", OF_PROPERTIES if is_property else LEFT_OUT)


def _check(path: str, left_out: set[str]) -> Iterator[str]:
    """Yield what numpydoc finds at one name."""
    result = validate(path)
    for code, message in result["errors"]:
        if code not in left_out:
            yield f"{result['file']}:{result['file_line']}: {path}: {code} {message}"


def main() -> int:
    """Print all findings; return 1 if there are any."""
    names = list(public_names())
    found = [line for public in names for line in findings(public)]
    print(*found, sep="\n", end="\n" * bool(found))
    print(f"{len(found)} findings in the docstrings of {len(names)} public names.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
