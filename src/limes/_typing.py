"""Types of arrays and functions."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]  # class indices, or row numbers
Labels: TypeAlias = NDArray[Any]
Decision: TypeAlias = Callable[[Array], Array]
