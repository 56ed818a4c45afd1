"""Makes slow kernel classifiers fast: a piecewise-linear classifier with the same answers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limes.border_map import BorderMap
    from limes.classifier import BordersClassifier, accelerate
    from limes.libsvm import read_libsvm_model
    from limes.loading import load

__all__ = ["BorderMap", "BordersClassifier", "accelerate", "load", "read_libsvm_model"]
__version__ = "0.1.0"

# Where each public name lives. It is imported when it is first asked for: importing scikit-learn
# takes a second or more, which `limes --help` need not wait for.
PLACES = {
    "BorderMap": "limes.border_map",
    "BordersClassifier": "limes.classifier",
    "accelerate": "limes.classifier",
    "load": "limes.loading",
    "read_libsvm_model": "limes.libsvm",
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
