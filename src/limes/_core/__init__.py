"""The compiled core: border maps packed for this processor, and how many threads to use."""

from limes._core.classifier import Classifier
from limes._core.factors import factor_functions
from limes._core.maps import Maps
from limes._core.paths import cpu_path, cpu_paths
from limes._core.sums import RbfVectors
from limes._core.threads import thread_count

__all__ = [
    "Classifier",
    "Maps",
    "RbfVectors",
    "cpu_path",
    "cpu_paths",
    "factor_functions",
    "thread_count",
]
