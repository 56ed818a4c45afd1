"""What is replaced: trained classifiers as decision values with gradients.

Importing a module registers its sources with ``limes.sources.base.as_source``.
"""

from limes.sources import (
    calibrated_classifier,
    gaussian_process,
    generic,
    logits,
    svm,
)
from limes.sources.base import MulticlassSource, Source, as_source

__all__ = [
    "MulticlassSource",
    "Source",
    "as_source",
    "calibrated_classifier",
    "gaussian_process",
    "generic",
    "logits",
    "svm",
]
