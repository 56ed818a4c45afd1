"""What predicts: border maps, schemes, labels and model files. It needs NumPy alone."""

from limes.model.border_map import BorderMap
from limes.model.exact import ExactScheme as ExactScheme
from limes.model.exact import FallbackScheme as FallbackScheme
from limes.model.file import load_model, save_model
from limes.model.model import Candidate, FitInfo, Model
from limes.model.schemes import MapScheme as MapScheme
from limes.model.schemes import OneVsRestScheme as OneVsRestScheme
from limes.model.schemes import PairwiseScheme as PairwiseScheme
from limes.model.schemes import Scheme as Scheme
from limes.model.schemes import SharedScheme as SharedScheme
from limes.model.schemes import ShortlistScheme as ShortlistScheme
from limes.model.schemes import TreeScheme as TreeScheme

# Schemes are parts of a model, whose methods call theirs; they are not public.
__all__ = ["BorderMap", "Candidate", "FitInfo", "Model", "load_model", "save_model"]
