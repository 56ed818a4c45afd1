"""Which column of a table is the label, and which are the features."""

from collections.abc import Sequence
from dataclasses import dataclass

# The name that a label's column has where the user does not say, and that we give it.
LABEL = "label"
# Characters of a name that a message shows.
MAX_SHOWN = 40


@dataclass(frozen=True)
class Columns:
    """The columns of a table that are used."""

    # In the order of the model's features.
    features: tuple[str, ...]
    # None where there is none.
    label: str | None


def choose_columns(
    names: Sequence[str],
    *,
    file: str,
    label: str | None = None,
    features: Sequence[str] | None = None,
) -> Columns:
    """Tell the label from the features.

    Examples
    --------
    >>> choose_columns(["a", "b", "kind"], file="rows.csv", label="-1")
    Columns(features=('a', 'b'), label='kind')
    """
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise ValueError(f"{file}: expected columns that differ, found {quote(twice[0])} twice.")
    found = _find_label(names, file, label)
    if features is None:
        return Columns(tuple(name for name in names if name != found), found)
    missing = [name for name in features if name not in names]
    if missing:
        raise ValueError(
            f"{file}: expected a column {quote(missing[0])}, found {some_names(names)} "
            f"({len(names)} in all)."
        )
    return Columns(tuple(features), found)


def find_place(label: str, n_columns: int) -> int | None:
    """Return the place of a column, from 0, or None where the words are no place."""
    digits = label.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or not 1 <= int(digits[:12]) <= n_columns:
        return None
    return n_columns - int(digits) if label.startswith("-") else int(digits) - 1


def _find_label(names: Sequence[str], file: str, label: str | None) -> str | None:
    """Return the name of the label's column."""
    if label is None:
        return LABEL if LABEL in names else None
    if label in names:
        return label
    place = find_place(label, len(names))
    if place is None:
        raise ValueError(
            f"{file}: expected the label in a column {quote(label)}, found {some_names(names)}: "
            f"give a name, or a place from 1 to {len(names)} (-1 is the last)."
        )
    return names[place]


def quote(name: str) -> str:
    """Return a name for a message, cut where it is very long."""
    return repr(name if len(name) <= MAX_SHOWN else f"{name[: MAX_SHOWN - 3]}...")


def some_names(names: Sequence[str]) -> str:
    """Write a few names."""
    shown = ", ".join(quote(name)[1:-1] for name in names[:8])
    return f"{shown} ..." if len(names) > 8 else shown
