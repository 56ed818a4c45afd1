"""Predict Dask arrays and data frames without computing them, with models that travel as bytes."""

import hashlib
import io
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from limes.model.file import parse_model, write_model
from limes.model.model import Model

# Models that a process keeps after it has loaded them from their bytes.
N_KEPT_MODELS = 8
# Models of this process as bytes.
_shipped: "WeakKeyDictionary[Model, ShippedModel]" = WeakKeyDictionary()


class ShippedModel:
    """A model as the bytes of its file, for other processes: each loads it once.

    Parameters
    ----------
    model : Model
        What predicts; its bytes are those of a ``.limes`` file.

    Examples
    --------
    >>> from limes.model import BorderMap, PairwiseScheme
    >>> line = BorderMap.from_borders(points=[[0.0, 1.0]], normals=[[0.0, 2.0]])
    >>> model = Model(PairwiseScheme((line,), 2), np.array(["low", "high"]), 2)
    >>> ShippedModel(model).predict("predict", np.array([[5.0, 0.0], [5.0, 2.0]]))
    array(['low', 'high'], dtype='<U4')
    """

    def __init__(self, model: Model) -> None:
        stream = io.BytesIO()
        write_model(model, stream)
        self._data = stream.getvalue()

    def predict(self, method: str, X: Any) -> Any:
        """Return what a method of the model predicts, on one thread.

        Parameters
        ----------
        method : {'predict', 'predict_proba', 'decision_function'}
            Its name.
        X : array-like of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray
            As from the method.
        """
        return getattr(self.load(), method)(X, n_jobs=1)

    def load(self) -> Model:
        """Return the model, which a process loads once.

        Returns
        -------
        Model
            What was given, bit for bit.
        """
        return _load(self._data)

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes of the model's file."""
        return hashlib.sha256(self._data).hexdigest()

    def __dask_tokenize__(self) -> tuple[str, str]:
        return type(self).__name__, self.digest


def ship_model(model: Model) -> ShippedModel:
    """Return a model as bytes, which are written once as long as the model lives."""
    if model not in _shipped:
        _shipped[model] = ShippedModel(model)
    return _shipped[model]


@lru_cache(maxsize=N_KEPT_MODELS)
def _load(data: bytes) -> Model:
    """Load a model, once in a process."""
    return parse_model(data, "the bytes of a model")


def predict_array(fast: Any, method: str, X: Any) -> Any:
    """Return a Dask array of what a method predicts for a Dask array or data frame.

    Rows keep their chunks; chunks along the features are joined. Each block is predicted on one
    thread, so that workers do not compete for processors.
    """
    from limes.sources.table_encoder import check_no_encoder

    meta = _empty_result(fast.model_, method)
    if fast.encoder_ is not None and hasattr(X, "map_partitions"):
        return X.map_partitions(_predict_table, fast, method, meta=meta)
    check_no_encoder(fast, "a Dask array")
    shipped = ship_model(fast.model_)
    if hasattr(X, "map_partitions"):
        _check_columns(fast.model_, list(X.columns))
        return X.map_partitions(_predict_block, shipped, method, meta=meta)
    if X.ndim != 2 or X.shape[1] != fast.n_features_in_:
        raise ValueError(f"X must have the shape (n_rows, {fast.n_features_in_}), got {X.shape!r}.")
    rows = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
    is_labels = meta.ndim == 1
    return rows.map_blocks(
        _predict_block,
        shipped,
        method,
        dtype=meta.dtype,
        meta=meta,
        drop_axis=1 if is_labels else None,
        chunks=None if is_labels else (rows.chunks[0], (meta.shape[1],)),
    )


def sample_rows(X: Any, n_rows: int, seed: np.random.SeedSequence, *, names: Any = None) -> Any:
    """Return random rows of a Dask array or data frame, computed."""
    rng = np.random.default_rng(seed)
    n_given = len(X)
    if n_given <= n_rows:
        return X.compute()
    if hasattr(X, "map_partitions"):
        state = int(rng.integers(2**31))
        return X.sample(frac=n_rows / n_given, random_state=state).compute()
    return X[np.sort(rng.choice(n_given, n_rows, replace=False))].compute()


def _predict_block(X: Any, shipped: ShippedModel, method: str) -> Any:
    """Predict one block of rows."""
    return shipped.predict(method, X)


def _predict_table(X: Any, fast: Any, method: str) -> Any:
    """Predict one part of a data frame by a model with steps of scikit-learn before its maps."""
    return getattr(fast, method)(X)


def _empty_result(model: Model, method: str) -> Any:
    """Return what a method predicts for no rows: its type and number of columns."""
    return getattr(model, method)(np.empty((0, model.n_features)))


def _check_columns(model: Model, columns: list[Any]) -> None:
    """Raise unless a data frame has the columns of the model."""
    names = None if model.feature_names is None else model.feature_names.tolist()
    if (names is not None and columns != names) or len(columns) != model.n_features:
        expected = f"{model.n_features} columns" if names is None else f"the columns {names!r:.200}"
        raise ValueError(f"X must have {expected}, got {columns!r:.200}.")
