"""What was measured with: versions and processor."""

import platform
from functools import cache
from importlib.metadata import packages_distributions, version
from pathlib import Path

from joblib import cpu_count

from limes._core import cpu_path
from limes.bench.peers.peer import top_packages
from limes.versions import versions as limes_versions

# What every result depends on.
COMMON = ("python", "limes", "numpy", "scikit-learn")


def machine() -> str:
    """Describe the processor.

    Examples
    --------
    >>> machine()  # doctest: +SKIP
    'AMD EPYC, 2 processors, avx2'
    """
    return f"{_processor()}, {cpu_count()} processors, {cpu_path()}"


@cache
def versions(package: str) -> str:
    """Tell the versions of Python, limes and what a peer needs.

    Examples
    --------
    >>> versions("sklearn")  # doctest: +SKIP
    'python 3.11.7, limes 0.1.0, numpy 2.4.6, scikit-learn 1.9.1'
    """
    common = limes_versions()
    owners = packages_distributions()
    extra = [owners[name][0] for name in top_packages(package) if name in owners]
    told = {name: common[name] for name in COMMON} | {name: version(name) for name in extra}
    return ", ".join(f"{name} {number}" for name, number in told.items())


def _processor() -> str:
    """Return the name of the processor, as far as the system tells."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
