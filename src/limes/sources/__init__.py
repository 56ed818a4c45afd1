"""Trained classifiers as sources: decision values with gradients, probabilities, predictions.

Importing a module registers the classifiers that it handles. All modules of this folder are
imported, so that a new source is one more file.
"""

from importlib import import_module
from pkgutil import iter_modules

from limes.sources.base import MulticlassSource, Source, SourceContext, as_source
from limes.sources.exact import exact_scheme_of as exact_scheme_of
from limes.sources.exact import labels_of as labels_of
from limes.sources.exact import no_exact_sums_reason as no_exact_sums_reason

# What a new source needs.
__all__ = ["MulticlassSource", "Source", "SourceContext", "as_source"]

for _module in iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)
