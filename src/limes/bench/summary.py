"""Who else is as good, and how much longer that takes: one line a dataset, from rows alone."""

from collections.abc import Sequence
from itertools import groupby

from limes.bench.results import Row
from limes.bench.words import line, number

# U.C. that is lower by no more than this is as good.
AS_GOOD = 0.001
HEADS = (
    *("dataset", "U.C. of svc", "limes", "µs a row, limes", "svc / limes", "intelex / limes"),
    *("quickest other that is as good", "U.C.", "µs a row", "/ limes"),
)


def summary(rows: Sequence[Row]) -> str:
    """Write a table with a line for each dataset where limes took part, with one thread."""
    batches = [row for row in rows if row.threads == 1 and row.microseconds_a_row is not None]
    lines = [
        _of_dataset({row.method: row for row in group})
        for _, group in groupby(batches, lambda row: row.dataset)
    ]
    told = [words for words in lines if words]
    if not told:
        return ""
    heads = [line(HEADS), line(["---"] + ["---:"] * (len(HEADS) - 1))]
    return "\n".join(
        [
            "## At equal skill",
            "",
            "One thread, in a batch. As good: U.C. at least that of limes, or "
            f"{AS_GOOD:g} below it at most.",
            "",
            *heads,
            *map(line, told),
            "",
        ]
    )


def _of_dataset(methods: dict[str, Row]) -> list[str]:
    """Return the words of one line, none without limes."""
    ours = methods.get("limes")
    if ours is None:
        return []
    svc = methods.get("svc")
    least = ours.uncertainty_coefficient - AS_GOOD
    others = [row for row in methods.values() if row is not ours]
    good = [row for row in others if row.uncertainty_coefficient >= least]
    best = min(good, key=_taken, default=None)
    return [
        ours.dataset,
        _skill(svc),
        _skill(ours),
        number(_taken(ours)),
        _times(svc, ours),
        _times(_quickest(others, "intelex"), ours),
        "none" if best is None else best.method,
        _skill(best),
        number(None if best is None else _taken(best)),
        _times(best, ours),
    ]


def _quickest(rows: list[Row], name: str) -> Row | None:
    """Return the quickest of the methods whose names begin alike."""
    return min((row for row in rows if row.method.startswith(name)), key=_taken, default=None)


def _taken(row: Row) -> float:
    """Return microseconds a row in a batch."""
    return row.microseconds_a_row or 0.0


def _skill(row: Row | None) -> str:
    """Write the U.C. of a method that took part."""
    return "-" if row is None else f"{row.uncertainty_coefficient:.4f}"


def _times(row: Row | None, ours: Row) -> str:
    """Write how many times as long a method took."""
    return number(None if row is None else _taken(row) / _taken(ours))
