"""Adaptive Gaussian filtering (AGF) and related kernel estimators."""

from limes.agf.bandwidths import solve_bandwidths
from limes.agf.classifiers import AGFClassifier, KernelDensityClassifier
from limes.agf.density import AGFDensity, NeighborsDensity
from limes.agf.regression import AGFRegressor

__all__ = [
    "AGFClassifier",
    "AGFDensity",
    "AGFRegressor",
    "KernelDensityClassifier",
    "NeighborsDensity",
    "solve_bandwidths",
]
