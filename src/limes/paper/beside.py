"""A number of ours, the paper's beside it, and how far apart they are."""

from collections.abc import Callable, Sequence

from limes.paper.printed import Line, printed_number
from limes.paper.rows import Row
from limes.paper.statistics import Spread
from limes.paper.table import Cell, Column

PARTIAL = "¹"
PARTIAL_NOTE = f"{PARTIAL} Only 4000 of 98 528 rows are at hand: not comparable with the paper."

Lines = list[list[Cell]]

# How two numbers of a kind are compared: the head of that column, its kind, and what it holds.
COMPARED: dict[str, tuple[str, str, Callable[[float, float], float]]] = {
    "skill": ("difference", "change", lambda own, their: own - their),
    "count": ("difference", "percent", lambda own, their: own / their - 1),
    "seconds": ("paper/ours", "ratio", lambda own, their: their / own),
}


def heads_beside(name: str, kind: str) -> list[Column]:
    """Return the heads of three columns: ours, the paper's, and the comparison.

    Examples
    --------
    >>> [column.head for column in heads_beside("test s", "seconds")]
    ['test s', 'test s, paper', 'test s, paper/ours']
    """
    last, last_kind, _ = COMPARED[kind]
    return [
        Column(name, kind),
        Column(f"{name}, paper", kind),
        Column(f"{name}, {last}", last_kind),
    ]


def cells_beside(own: Spread | None, their: Spread | None, kind: str) -> list[Cell]:
    """Return the cells of those three columns.

    Examples
    --------
    >>> cells_beside(Spread(2.0), Spread(3.0), "seconds")[2]
    1.5
    """
    if own is None or their is None:
        return [own, their, None]
    return [own, their, COMPARED[kind][2](own.mean, their.mean)]


def printed_spread(line: Line, column: str, std: str) -> Spread | None:
    """Return a number of the paper with its spread."""
    mean = printed_number(line, column)
    return None if mean is None else Spread(mean, printed_number(line, std))


def mark_partial(name: str, found: Sequence[Row]) -> str:
    """Mark a dataset of which rows are missing."""
    return f"{name}{PARTIAL}" if any(row.part == "part" for row in found) else name


def with_partial(note: str, lines: Lines) -> str:
    """Explain the mark of a dataset of which rows are missing, where there is one."""
    is_marked = any(str(line[0]).endswith(PARTIAL) for line in lines)
    return f"{note} {PARTIAL_NOTE}" if is_marked else note
