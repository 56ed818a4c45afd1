"""Predict columns of Spark data frames."""

import os
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from limes.dask_arrays import ShippedModel
from limes.model.file import load_model
from limes.model.model import NO_PROBABILITIES, Model

if TYPE_CHECKING:
    from limes.classifier import BordersClassifier

__all__ = ["predict_udf"]

# Rows of a call of the model: Spark sends batches of 10 000 by default.
BATCH_ROWS = 1 << 16


def predict_udf(
    model: "BordersClassifier | Model | str | os.PathLike[str]", *, proba: bool = False
) -> Any:
    """Return a Spark function of columns that predicts their rows.

    It is a ``pyspark.ml.functions.predict_batch_udf``. The model travels with the function, as the
    bytes of its file, and each Python worker loads it once.

    Parameters
    ----------
    model : BordersClassifier, Model or path
        Fitted, or a file that ``save`` wrote.
    proba : bool, default=False
        Whether it returns an array of the probabilities of the classes instead of the label.

    Returns
    -------
    callable
        From the columns of the features, or from one column of arrays, to a column of labels.

    Examples
    --------
    >>> predict = predict_udf("sat.limes")                               # doctest: +SKIP
    >>> frame.withColumn("label", predict("b1", "b2", "b3"))             # doctest: +SKIP
    """
    try:
        from pyspark.ml.functions import predict_batch_udf
        from pyspark.sql import types
    except ImportError as error:
        raise ImportError(
            "predict_udf needs the package pyspark: pip install limes[cluster]."
        ) from error
    if isinstance(model, str | os.PathLike):
        plain = load_model(model)
    else:
        from limes.sources.table_encoder import check_no_encoder

        check_no_encoder(model, "predict_udf")
        plain = model if isinstance(model, Model) else model.model_
    if proba and not plain.has_probabilities:
        raise ValueError(NO_PROBABILITIES)
    shipped, method = ShippedModel(plain), "predict_proba" if proba else "predict"
    return_type = types.ArrayType(types.DoubleType()) if proba else _label_type(plain.classes)
    options: dict[str, Any] = {"return_type": return_type, "batch_size": BATCH_ROWS}
    of_array = predict_batch_udf(
        _Loader(shipped, method, 1), input_tensor_shapes=[[plain.n_features]], **options
    )
    of_columns = predict_batch_udf(_Loader(shipped, method, plain.n_features), **options)

    def predict(*columns: Any) -> Any:
        if len(columns) not in (1, plain.n_features):
            raise ValueError(
                f"expected {plain.n_features} columns, as the model has features, or one column of "
                f"arrays, got {len(columns)}."
            )
        found = of_array(*columns) if len(columns) == 1 else of_columns(*columns)
        is_bool = plain.classes.dtype.kind == "b" and not proba
        return found.cast("boolean") if is_bool else found

    return predict


class _Loader:
    """Loads the model in a Python worker, and returns the function that Spark calls."""

    def __init__(self, shipped: ShippedModel, method: str, n_columns: int) -> None:
        self._shipped = shipped
        self._method = method
        self._n_columns = n_columns

    def __call__(self) -> Callable[..., NDArray[Any]]:
        """Return a function of one array of rows, or of the columns of rows."""
        model = self._shipped.load()

        def predict(*columns: NDArray[Any]) -> NDArray[Any]:
            rows = columns[0] if len(columns) == 1 else np.array(columns).T
            found = np.asarray(getattr(model, self._method)(rows, n_jobs=1))
            return found.astype(np.int64) if found.dtype == bool else found

        # Spark counts the parameters.
        kind = Parameter.POSITIONAL_OR_KEYWORD
        parameters = [Parameter(f"x{k}", kind) for k in range(self._n_columns)]
        predict.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return predict


def _label_type(classes: NDArray[Any]) -> Any:
    """Return the type of a column of labels; Spark has no such function of booleans."""
    from pyspark.sql import types

    integer, number = types.LongType(), types.DoubleType()
    kinds = {"i": integer, "u": integer, "f": number, "b": integer}
    return kinds.get(classes.dtype.kind, types.StringType())
