"""Which of the compiled paths runs: the best for this processor, or the one that is asked for."""

import os

from limes._core import _native

VARIABLE = "LIMES_CPU"


def cpu_paths() -> list[str]:
    """List the compiled paths that this processor can run.

    Examples
    --------
    >>> cpu_paths()[-1]
    'generic'
    """
    return _native.cpu_paths()


def cpu_path() -> str:
    """Return the compiled path in use.

    The environment variable ``LIMES_CPU`` forces one of ``cpu_paths()``. It is read when the core
    is first needed, as `limes` imports its parts; anything else in it is an ``ImportError`` there.

    Examples
    --------
    >>> cpu_path() in cpu_paths()
    True
    """
    return _CHOSEN


def _choose_path(wanted: str) -> str:
    """Return the path that the environment asks for, or the best one."""
    paths = cpu_paths()
    if wanted and wanted not in paths:
        raise ImportError(
            f"{VARIABLE} must be one of {paths} on this processor, got {wanted!r}. "
            "Unset it to take the fastest."
        )
    return wanted or paths[0]


_CHOSEN = _choose_path(os.environ.get(VARIABLE, ""))
