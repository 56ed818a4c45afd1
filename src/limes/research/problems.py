"""Datasets as training and test rows, standardised; further problems that nothing was tuned on."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from joblib import hash as digest
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import issparse
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

from limes.datasets import load, parameters
from limes.files import RowOptions, read_rows
from limes.libsvm.training import standardizer

# The share of the rows of a file without a split of its own that is tested on.
TEST_SHARE = 0.4
PARTS = ("train", "test")


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows to train on and rows to be asked about.

    Parameters
    ----------
    name : str
        What it is called in the results.
    X_train, X_test : ndarray of shape (n_rows, n_features)
        Raw rows.
    y_train, y_test : ndarray of shape (n_rows,)
        Labels.
    C : float, default=1.0
        Penalty of the support vector machine.
    gamma : float or 'scale', default='scale'
        Width of its kernel, for standardised rows.
    seed : int, default=0
        Of the split and of all that is random in a fit.

    Examples
    --------
    >>> X, y = np.array([[0.0, 7.0], [2.0, 7.0]]), np.array([0, 1])
    >>> Problem("two rows", X, y, X, y).test_rows(np.float32).tolist()
    [[-1.0], [1.0]]
    """

    name: str
    X_train: NDArray[Any]
    y_train: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]
    C: float = 1.0
    gamma: float | str = "scale"
    seed: int = 0

    @cached_property
    def scaler(self) -> Pipeline:
        """The standardising step, fitted on the training rows."""
        return standardizer().fit(self.X_train)

    @cached_property
    def fingerprint(self) -> str:
        """Tell this problem from every other one."""
        arrays = (self.X_train, self.y_train, self.X_test, self.y_test)
        return str(digest((*arrays, self.C, self.gamma, self.seed)))

    @property
    def sizes(self) -> dict[str, int]:
        """Numbers of rows, features and classes."""
        return {
            "n_train": len(self.X_train),
            "n_test": len(self.X_test),
            "n_features": self.X_train.shape[1],
            "n_classes": len(np.unique(self.y_train)),
        }

    def train_rows(self, dtype: DTypeLike) -> NDArray[Any]:
        """Return the training rows, standardised."""
        return np.ascontiguousarray(self.scaler.transform(self.X_train), dtype)

    def test_rows(self, dtype: DTypeLike) -> NDArray[Any]:
        """Return the test rows, standardised."""
        return np.ascontiguousarray(self.scaler.transform(self.X_test), dtype)


def load_problem(
    name: str, *, seed: int = 0, C: float | None = None, gamma: float | None = None
) -> Problem:
    """Load one of the paper's datasets by name, or rows and labels from a file.

    Parameters
    ----------
    name : str
        Such as "sat"; or the path of a file of rows with labels, in any format that
        ``limes.files`` reads. A part is kept for testing at random, unless it is an ``.npz`` file
        with ``X_train``, ``y_train``, ``X_test`` and ``y_test``.
    seed : int, default=0
        Of a random split.
    C, gamma : float or None, default=None
        Of the support vector machine. None takes the paper's for its datasets, and
        scikit-learn's defaults for a file.

    Returns
    -------
    Problem
        Rows, labels and parameters.

    Examples
    --------
    >>> load_problem("sat").X_test.shape  # doctest: +SKIP
    (2000, 36)
    """
    check_name(name)
    problem = _read(Path(name), seed) if _is_path(name) else _load(name, seed)
    asked: dict[str, Any] = {"C": C, "gamma": gamma}
    return replace(problem, **{key: value for key, value in asked.items() if value is not None})


def check_name(name: str) -> None:
    """Refuse what is neither a dataset nor a file, before anything long begins."""
    if not _is_path(name):
        parameters(name)
    elif not Path(name).is_file():
        raise FileNotFoundError(f"There is no file {name!r}.")


def _is_path(name: str) -> bool:
    """Tell whether a name is meant as a file: datasets have neither endings nor folders."""
    path = Path(name)
    return bool(path.suffix) or len(path.parts) > 1 or path.is_file()


def _load(name: str, seed: int) -> Problem:
    """Load one of the paper's datasets with its parameters."""
    data, paper = load(name, random_state=seed), parameters(name)
    arrays = (data.X_train, data.y_train, data.X_test, data.y_test)
    return Problem(name, *arrays, paper.C, paper.gamma, seed)


def _read(path: Path, seed: int) -> Problem:
    """Read the rows of a file, split if they are not."""
    if path.suffix == ".npz" and _has_parts(path):
        (X_train, y_train), (X_test, y_test) = (_read_part(path, part) for part in PARTS)
    else:
        parts = train_test_split(*_read_part(path, None), test_size=TEST_SHARE, random_state=seed)
        X_train, X_test, y_train, y_test = parts
    return Problem(path.stem, X_train, y_train, X_test, y_test, seed=seed)


def _has_parts(path: Path) -> bool:
    """Tell whether an archive has training and test rows of its own."""
    with np.load(path, allow_pickle=False) as archive:
        return all(f"X_{part}" in archive.files for part in PARTS)


def _read_part(path: Path, part: str | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read rows with their labels; sparse ones become dense, as not every peer takes them."""
    X, y, _ = read_rows(path, RowOptions(part=part))
    if y is None:
        raise ValueError(f"{path} must have labels to learn from, got rows alone.")
    return np.asarray(X.toarray() if issparse(X) else X, dtype=np.float64), y
