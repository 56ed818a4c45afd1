"""Trained classifiers as sources: decision values with gradients, probabilities, predictions.

Importing a module registers the classifiers that it handles: a new source is one more module here.
"""

from limes.sources import (  # noqa: F401
    calibrated_classifier,
    gaussian_process,
    generic,
    logit_source,
    svm,
)
from limes.sources.base import MulticlassSource, Source, SourceContext, as_source

__all__ = ["MulticlassSource", "Source", "SourceContext", "as_source"]
