"""Makes slow kernel classifiers fast: a piecewise-linear classifier with nearly the same labels."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limes.agf import (
        AGFClassifier,
        AGFDensity,
        AGFRegressor,
        KernelDensityClassifier,
        NeighborsDensity,
    )
    from limes.classifier import BordersClassifier, accelerate, load
    from limes.detector import BordersOutlierDetector
    from limes.export.libagf import read_libagf_model
    from limes.fit.quality import QualityWarning
    from limes.libsvm import read_libsvm_model, write_libsvm_model
    from limes.model.border_map import BorderMap
    from limes.model.model import Candidate
    from limes.raster import predict_raster
    from limes.versions import show_versions

__all__ = [
    "AGFClassifier",
    "AGFDensity",
    "AGFRegressor",
    "BorderMap",
    "BordersClassifier",
    "BordersOutlierDetector",
    "Candidate",
    "KernelDensityClassifier",
    "NeighborsDensity",
    "QualityWarning",
    "accelerate",
    "load",
    "predict_raster",
    "read_libagf_model",
    "read_libsvm_model",
    "show_versions",
    "write_libsvm_model",
]
__version__ = "0.1.0"

# Where each public name lives. It is imported on first use: importing scikit-learn
# takes a second or more, which `limes --help` need not wait for.
PLACES = {
    "AGFClassifier": "limes.agf",
    "AGFDensity": "limes.agf",
    "AGFRegressor": "limes.agf",
    "BorderMap": "limes.model.border_map",
    "BordersClassifier": "limes.classifier",
    "BordersOutlierDetector": "limes.detector",
    "Candidate": "limes.model.model",
    "KernelDensityClassifier": "limes.agf",
    "NeighborsDensity": "limes.agf",
    "QualityWarning": "limes.fit.quality",
    "accelerate": "limes.classifier",
    "load": "limes.classifier",
    "predict_raster": "limes.raster",
    "read_libagf_model": "limes.export.libagf",
    "read_libsvm_model": "limes.libsvm",
    "show_versions": "limes.versions",
    "write_libsvm_model": "limes.libsvm",
}


def __getattr__(name: str) -> Any:
    """Import a public name from its module, and keep it."""
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, also those that are not imported yet."""
    return sorted({*globals(), *PLACES})
