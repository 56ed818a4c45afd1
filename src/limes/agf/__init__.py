"""Adaptive Gaussian filtering and its relatives: kernel estimators with solved bandwidths."""

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
