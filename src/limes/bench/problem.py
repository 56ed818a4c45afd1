"""What the peers compete on: training and test rows, raw and standardised."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from joblib import hash as digest  # type: ignore[import-untyped]
from numpy.typing import DTypeLike, NDArray
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

from limes.datasets import load, parameters
from limes.preprocessing import standardizer

# The share of the rows of a file without a split of its own that is tested on.
TEST_SHARE = 0.4


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
        Such as "sat"; or the path of an ``.npz`` file with the arrays ``X_train``, ``y_train``,
        ``X_test`` and ``y_test``, or with ``X`` and ``y``, which are split at random.
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
    problem = _read(Path(name), seed) if name.endswith(".npz") else _load(name, seed)
    asked: dict[str, Any] = {"C": C, "gamma": gamma}
    return replace(problem, **{key: value for key, value in asked.items() if value is not None})


def _load(name: str, seed: int) -> Problem:
    """Load one of the paper's datasets with its parameters."""
    data, paper = load(name, random_state=seed), parameters(name)
    arrays = (data.X_train, data.y_train, data.X_test, data.y_test)
    return Problem(name, *arrays, paper.C, paper.gamma, seed)


def _read(path: Path, seed: int) -> Problem:
    """Read the arrays of a file, split if they are not."""
    with np.load(path, allow_pickle=False) as archive:
        arrays = {key: archive[key] for key in archive.files}
    if {"X", "y"} <= arrays.keys():
        parts = train_test_split(
            arrays["X"], arrays["y"], test_size=TEST_SHARE, random_state=seed, stratify=arrays["y"]
        )
        arrays = dict(zip(("X_train", "X_test", "y_train", "y_test"), parts, strict=True))
    wanted = ("X_train", "y_train", "X_test", "y_test")
    if not set(wanted) <= arrays.keys():
        raise ValueError(
            f"{path} must hold the arrays X and y, or {', '.join(wanted)}; it holds "
            f"{sorted(arrays)!r}."
        )
    X_train, y_train, X_test, y_test = (arrays[key] for key in wanted)
    rows = (X_train.astype(float), y_train, X_test.astype(float), y_test)
    return Problem(path.stem, *rows, seed=seed)
