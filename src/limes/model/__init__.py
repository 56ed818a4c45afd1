"""What predicts: border maps, schemes, labels and model files. It needs NumPy alone."""

from limes.model.border_map import BorderMap
from limes.model.exact import ExactScheme, FallbackScheme
from limes.model.file import load_model, save_model
from limes.model.model import Candidate, FitInfo, Model
from limes.model.schemes import (
    MapScheme,
    OneVsRestScheme,
    PairwiseScheme,
    Scheme,
    SharedScheme,
    ShortlistScheme,
    TreeScheme,
)

__all__ = [
    "BorderMap",
    "Candidate",
    "ExactScheme",
    "FallbackScheme",
    "FitInfo",
    "MapScheme",
    "Model",
    "OneVsRestScheme",
    "PairwiseScheme",
    "Scheme",
    "SharedScheme",
    "ShortlistScheme",
    "TreeScheme",
    "load_model",
    "save_model",
]
