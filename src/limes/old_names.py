"""Names that have changed: using an old one raises an error that gives the new one."""

from collections.abc import Mapping
from typing import Any, NoReturn


def refuse_old_name(owner: Any, name: str, new_names: Mapping[str, str]) -> NoReturn:
    """Raise AttributeError for a missing attribute, giving its new name if it was renamed.

    Examples
    --------
    >>> refuse_old_name(1, "tradeoff_", {"tradeoff_": "candidates_"})
    Traceback (most recent call last):
    AttributeError: 'int' object has no attribute 'tradeoff_': it is now called 'candidates_'.
    """
    message = f"{type(owner).__name__!r} object has no attribute {name!r}"
    if name in new_names:
        message += f": it is now called {new_names[name]!r}."
    raise AttributeError(message)
