"""Makes slow kernel classifiers fast: a piecewise-linear classifier with the same answers."""

from limes.border_map import BorderMap
from limes.classifier import BordersClassifier, accelerate

__all__ = ["BorderMap", "BordersClassifier", "accelerate"]
__version__ = "0.1.0"
