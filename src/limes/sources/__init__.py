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
from limes.sources.exact import exact_scheme_of, labels_of, no_exact_sums_reason

__all__ = [
    "MulticlassSource",
    "Source",
    "SourceContext",
    "as_source",
    "exact_scheme_of",
    "labels_of",
    "no_exact_sums_reason",
]
