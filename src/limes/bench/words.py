"""Lines and numbers as the tables of a benchmark write them."""

from collections.abc import Iterable


def line(words: Iterable[str]) -> str:
    """Write one line of a Markdown table.

    Examples
    --------
    >>> line(["sat", "0.5"])
    '| sat | 0.5 |'
    """
    return f"| {' | '.join(words)} |"


def number(value: float | None) -> str:
    """Write three digits that count, or that there is none.

    Examples
    --------
    >>> number(0.12345), number(1234.5), number(None)
    ('0.123', '1234', '-')
    """
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:#.3g}"
