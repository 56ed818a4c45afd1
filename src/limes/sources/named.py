"""Classifiers that were fitted on a data frame, asked about plain rows."""

from collections.abc import Callable
from typing import Any

from limes._typing import Array


def with_feature_names(model: Any, method: Callable[[Any], Any]) -> Callable[[Array], Any]:
    """Return a method that takes plain rows, of a model that may expect named columns.

    A pipeline may pick columns by name, so the names are given back rather than the warning
    silenced. Only pandas' frames have names that scikit-learn remembers, so pandas is there.
    """
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return method

    def named(X: Array) -> Any:
        from pandas import DataFrame

        return method(DataFrame(X, columns=names))

    return named
