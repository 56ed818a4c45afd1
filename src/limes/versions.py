"""What runs here: versions, and the path that the compiled core has chosen."""

import platform
from importlib.metadata import PackageNotFoundError, version

from limes._core import cpu_path, cpu_paths, thread_count

PACKAGES = ("limes", "numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl")


def versions() -> dict[str, str]:
    """Return versions and machine as words, for a result row or a bug report.

    Examples
    --------
    >>> sorted(versions())[:2]
    ['cpu path', 'cpu paths']
    """
    return {
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
        "platform": platform.platform(),
        "cpu path": cpu_path(),
        "cpu paths": ", ".join(cpu_paths()),
        "threads": str(thread_count(-1)),
    }


def show_versions() -> None:
    """Print ``versions`` for a bug report."""
    for name, value in versions().items():
        print(f"{name:>14}: {value}")


def _version(name: str) -> str:
    """Return a package's version, or that it is not there."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
