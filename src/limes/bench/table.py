"""Results as Markdown, from rows alone."""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from limes.bench.results import Row, latest
from limes.bench.summary import summary
from limes.bench.words import line, number

Column = tuple[str, Callable[[Row], str]]


def markdown(rows: Sequence[Row]) -> str:
    """Write a summary, and one table for each dataset, of its last run.

    Parameters
    ----------
    rows : sequence of Row
        Of any number of runs.

    Returns
    -------
    str
        Markdown.
    """
    ordered = sorted(latest(rows), key=lambda row: row.dataset)
    parts = [_section(list(group)) for _, group in groupby(ordered, lambda row: row.dataset)]
    return "\n".join(part for part in (summary(ordered), *parts) if part)


def _section(rows: list[Row]) -> str:
    """Write the table of one dataset: a line a method, a column a number of threads."""
    threads = sorted({row.threads for row in rows})
    columns = [*_skill_columns(), *_time_columns(rows, threads), *_size_columns()]
    methods = [row for row in rows if row.threads == threads[0]]
    lines = [[name for name, _ in columns], ["---"] + ["---:"] * (len(columns) - 1)]
    lines += [[form(row) for _, form in columns] for row in methods]
    return "\n".join([_heading(rows[0]), "", *map(line, lines), "", _footing(rows), ""])


def _skill_columns() -> list[Column]:
    """Return the columns that tell how good a method is."""
    return [
        ("method", lambda row: row.method),
        ("accuracy", lambda row: f"{row.accuracy:.4f}"),
        ("U.C.", lambda row: f"{row.uncertainty_coefficient:.4f}"),
        ("as the SVC", lambda row: f"{row.agreement:.2%}"),
    ]


def _time_columns(rows: list[Row], threads: list[int]) -> list[Column]:
    """Return the columns of times, for each number of threads."""
    found = {(row.method, row.threads): row for row in rows}

    def column(value: Callable[[Row], float | None], n: int) -> Callable[[Row], str]:
        def form(row: Row) -> str:
            same = found.get((row.method, n))
            return number(None if same is None else value(same))

        return form

    many = [(f"µs a row, {_told(n)}", column(lambda r: r.microseconds_a_row, n)) for n in threads]
    one = (f"µs one row, {_told(threads[0])}", column(lambda r: r.microseconds_one_row, threads[0]))
    return [*many, one]


def _size_columns() -> list[Column]:
    """Return the columns that tell what a model costs besides."""
    return [
        ("kB", lambda row: number(row.model_bytes / 1e3)),
        ("fit, s, 1 thread", lambda row: number(row.whole_fit_seconds)),
        ("model", lambda row: row.detail),
    ]


def _heading(row: Row) -> str:
    """Name the dataset and its sizes."""
    return (
        f"## {row.dataset}\n\n{row.n_train} training rows, {row.n_test} test rows, "
        f"{row.n_features} features, {row.n_classes} classes."
    )


def _footing(rows: list[Row]) -> str:
    """Tell what was measured with, and when other programs were in the way."""
    row = rows[0]
    shares = [one.cpu_share for one in rows if one.threads == 1 and one.cpu_share is not None]
    busy = (
        f" The machine was busy: a one-thread batch had {min(shares):.0%} to {max(shares):.0%} of "
        "a processor in its quickest turn."
        if shares and min(shares) < 0.9
        else ""
    )
    return f"{row.machine}; least of {row.turns} turns; {_all_versions(rows)}.{busy}"


def _all_versions(rows: Iterable[Row]) -> str:
    """Join the versions of all packages."""
    return ", ".join(dict.fromkeys(one for row in rows for one in row.versions.split(", ")))


def _told(n_threads: int) -> str:
    """Write a number of threads."""
    return "1 thread" if n_threads == 1 else f"{n_threads} threads"
