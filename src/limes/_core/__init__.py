"""The compiled core: border maps packed for this processor, and how many threads to use."""

from limes._core.hardware import simd_level, simd_levels, thread_count
from limes._core.kernel_sums import ExactSums, RbfVectors
from limes._core.predict import Classifier, Curve, Maps, split_common_slopes

__all__ = [
    "Classifier",
    "Curve",
    "ExactSums",
    "Maps",
    "RbfVectors",
    "simd_level",
    "simd_levels",
    "split_common_slopes",
    "thread_count",
]
