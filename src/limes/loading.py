"""Fitted classifiers from model files."""

import os

from limes.checks import check_parameters
from limes.classifier import BordersClassifier
from limes.model_file import StoredModel, read_model, restore

__all__ = ["from_stored", "load"]


def load(path: str | os.PathLike[str], *, max_bytes: int = 1 << 32) -> BordersClassifier:
    """Read a classifier that ``BordersClassifier.save`` wrote.

    It answers every row as the one that was saved, bit for bit. Nothing in the file is executed: a
    file from anywhere can be loaded, and one that is damaged, cut short or made up raises a
    ``ValueError`` that names the byte.

    Parameters
    ----------
    path : path-like
        File to read.
    max_bytes : int, default=2**32
        Largest file to read.

    Returns
    -------
    BordersClassifier
        Fitted, without its source: ``estimator_`` is not there.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, random_state=0)
    >>> fast = BordersClassifier(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fast.save(f"{folder}/moons.limes")
    ...     load(f"{folder}/moons.limes").predict(X[:3])
    array([0, 1, 1])
    """
    return from_stored(read_model(path, max_bytes=max_bytes), name=os.fspath(path))


def from_stored(stored: StoredModel, *, name: str) -> BordersClassifier:
    """Return the fitted classifier that a file holds."""
    known = BordersClassifier._get_param_names()
    parameters = {key: value for key, value in stored.parameters.items() if key in known}
    empty = BordersClassifier(**parameters)
    try:
        check_parameters(empty)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected parameters of a classifier: {error!s:.200}") from None
    return restore(stored, empty)
