"""Versions of packages, processor and SIMD level, for bug reports and result rows."""

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path

from joblib import cpu_count

from limes._core import simd_level, simd_levels, thread_count

PACKAGES = ("limes", "numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl")
# Packages that every result depends on.
COMMON = ("python", "limes", "numpy", "scikit-learn")


def versions() -> dict[str, str]:
    """Return versions and platform as text, for a bug report.

    Examples
    --------
    >>> sorted(versions())[:2]
    ['SIMD level', 'SIMD levels']
    """
    return {
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
        "platform": platform.platform(),
        "SIMD level": simd_level(),
        "SIMD levels": ", ".join(simd_levels()),
        "threads": str(thread_count(-1)),
    }


def show_versions() -> None:
    """Print versions, platform and SIMD level, for a bug report.

    Examples
    --------
    >>> show_versions()  # doctest: +SKIP
            python: 3.11.7
             limes: 0.1.0
    ...
    """
    for name, value in versions().items():
        print(f"{name:>14}: {value}")


def _version(name: str) -> str:
    """Return the version of a package, or "not installed"."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def computer() -> str:
    """Return the processor, the number of its cores, and the SIMD level.

    Examples
    --------
    >>> computer()  # doctest: +SKIP
    'AMD EPYC, 2 processors, avx2'
    """
    return f"{_processor()}, {cpu_count()} processors, {simd_level()}"


def _processor() -> str:
    """Return the name of the processor, as far as the system knows it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


@cache
def package_versions(modules: str) -> str:
    """Return the versions of Python, limes and the packages of some modules.

    Examples
    --------
    >>> package_versions("sklearn")  # doctest: +SKIP
    'python 3.11.7, limes 0.1.0, numpy 2.4.6, scikit-learn 1.9.1'
    """
    common = versions()
    distributions = packages_distributions()
    extra = [distributions[name][0] for name in top_packages(modules) if name in distributions]
    numbers = {name: common[name] for name in COMMON} | {name: version(name) for name in extra}
    return ", ".join(f"{name} {number}" for name, number in numbers.items())


def top_packages(modules: str) -> list[str]:
    """Return the top-level packages of modules in a text.

    Examples
    --------
    >>> top_packages("sklearnex.svm numpy")
    ['sklearnex', 'numpy']
    """
    return [name.partition(".")[0] for name in modules.split()]
