"""Datasets as training and test rows, standardised; further problems that nothing was tuned on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from joblib import hash as digest
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import issparse
from sklearn import datasets as sklearn_datasets
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

from limes._typing import Array, Labels
from limes.datasets import load, parameters
from limes.files import RowOptions, read_rows
from limes.libsvm.training import standardizer

# Share of the rows that is tested on: of a file without a split, and of a further problem.
TEST_SHARE = 0.4
FURTHER_TEST_SHARE = 1 / 3
PARTS = ("train", "test")


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows to train on and rows to test on.

    Parameters
    ----------
    name : str
        Name in the results.
    X_train, X_test : ndarray of shape (n_rows, n_features)
        Raw rows.
    y_train, y_test : ndarray of shape (n_rows,)
        Labels.
    C : float, default=1.0
        Penalty of the SVM.
    gamma : float or 'scale', default='scale'
        Width of its kernel, for standardised rows.
    seed : int, default=0
        Seed of the split and of every random choice of a fit.

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
        """Hash of everything that a trained model depends on."""
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
        ``limes.files`` reads. A random part is held out for testing, unless it is an ``.npz`` file
        with ``X_train``, ``y_train``, ``X_test`` and ``y_test``.
    seed : int, default=0
        Seed of a random split.
    C, gamma : float or None, default=None
        Parameters of the SVM. None takes the paper's for its datasets, and scikit-learn's defaults
        for a file.

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
    problem = _read_file(Path(name), seed) if _is_path(name) else _load_dataset(name, seed)
    given: dict[str, Any] = {"C": C, "gamma": gamma}
    return replace(problem, **{key: value for key, value in given.items() if value is not None})


def check_name(name: str) -> None:
    """Raise an error for what is neither a dataset nor a file, before anything long begins."""
    if not _is_path(name):
        parameters(name)
    elif not Path(name).is_file():
        raise FileNotFoundError(f"There is no file {name!r}.")


def _is_path(name: str) -> bool:
    """Return whether a name is meant as a file: datasets have neither suffixes nor folders."""
    path = Path(name)
    return bool(path.suffix) or len(path.parts) > 1 or path.is_file()


def _load_dataset(name: str, seed: int) -> Problem:
    """Load one of the paper's datasets with its parameters."""
    data, paper = load(name, random_state=seed), parameters(name)
    arrays = (data.X_train, data.y_train, data.X_test, data.y_test)
    return Problem(name, *arrays, paper.C, paper.gamma, seed)


def _read_file(path: Path, seed: int) -> Problem:
    """Read the rows of a file, and split them if the file has no test rows."""
    if path.suffix == ".npz" and _has_parts(path):
        (X_train, y_train), (X_test, y_test) = (_read_part(path, part) for part in PARTS)
    else:
        parts = train_test_split(*_read_part(path, None), test_size=TEST_SHARE, random_state=seed)
        X_train, X_test, y_train, y_test = parts
    return Problem(path.stem, X_train, y_train, X_test, y_test, seed=seed)


def _has_parts(path: Path) -> bool:
    """Return whether an archive has both training and test rows."""
    with np.load(path, allow_pickle=False) as archive:
        return all(f"X_{part}" in archive.files for part in PARTS)


def _read_part(path: Path, part: str | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read rows with labels; sparse rows become dense, as not every method takes them."""
    X, y, _ = read_rows(path, RowOptions(part=part))
    if y is None:
        raise ValueError(f"{path} must have labels to learn from, got rows alone.")
    return np.asarray(X.toarray() if issparse(X) else X, dtype=np.float64), y


def split_at_random(problem: Problem, seed: int) -> Problem:
    """Split training and test rows again at random, in parts of the same size."""
    X = np.concatenate([problem.X_train, problem.X_test])
    y = np.concatenate([problem.y_train, problem.y_test])
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = np.split(order, [len(problem.X_train)])
    return replace(problem, X_train=X[train], y_train=y[train], X_test=X[test], y_test=y[test])


def _checkerboard(seed: int) -> Problem:
    """Return sixteen squares of two colours."""
    X = np.random.default_rng(seed).uniform(0, 4, (9000, 2))
    y = np.floor(X).sum(axis=1).astype(int) % 2
    return _split("checkerboard", X, y, seed, C=10, gamma=5)


def _terrain(seed: int) -> Problem:
    """Return seven uneven classes over numbers and indicators, as in maps of forest cover."""
    rng = np.random.default_rng(seed)
    X, y = sklearn_datasets.make_classification(
        12_000,
        10,
        n_informative=8,
        n_redundant=1,
        n_classes=7,
        n_clusters_per_class=2,
        weights=[0.36, 0.3, 0.15, 0.08, 0.05, 0.04, 0.02],
        random_state=seed,
    )
    zones = np.eye(4)[rng.integers(4, size=len(X))]
    return _split("terrain", np.hstack([X, zones]), y, seed, C=5)


def _rare(seed: int) -> Problem:
    """Return two classes, the second of one row in a hundred."""
    X, y = sklearn_datasets.make_classification(
        15_000, 8, n_informative=6, weights=[0.99], flip_y=0.001, class_sep=1.2, random_state=seed
    )
    return _split("rare", X, y, seed, C=5)


def _twenty(seed: int) -> Problem:
    """Return twenty overlapping classes."""
    X, y = sklearn_datasets.make_blobs(8000, 6, centers=20, cluster_std=3.0, random_state=seed)
    return _split("twenty", X, y, seed)


def _moons(seed: int, *, n_rows: int = 3000, name: str = "moons") -> Problem:
    """Return two half moons."""
    X, y = sklearn_datasets.make_moons(n_rows, noise=0.25, random_state=seed)
    return _split(name, X, y, seed, C=10, gamma=1)


def _from_sklearn(name: str, load_arrays: Callable[..., Any]) -> Callable[[int], Problem]:
    """Return a function from a seed to one of scikit-learn's small datasets."""

    def make(seed: int) -> Problem:
        X, y = load_arrays(return_X_y=True)
        return _split(name, X, y, seed)

    return make


def _split(
    name: str,
    X: NDArray[Any],
    y: NDArray[Any],
    seed: int,
    *,
    C: float = 1.0,
    gamma: float | str = "scale",
) -> Problem:
    """Return a problem with a third of its rows held out for testing."""
    parts = train_test_split(X, y, test_size=FURTHER_TEST_SHARE, random_state=seed, stratify=y)
    X_train, X_test, y_train, y_test = parts
    return Problem(name, X_train, y_train, X_test, y_test, C, gamma, seed)


# Problems that the paper does not have, from a seed: they show whether the default settings were
# fitted to its datasets.
FURTHER_PROBLEMS: dict[str, Callable[[int], Problem]] = {
    "digits": _from_sklearn("digits", sklearn_datasets.load_digits),
    "breast_cancer": _from_sklearn("breast_cancer", sklearn_datasets.load_breast_cancer),
    "wine": _from_sklearn("wine", sklearn_datasets.load_wine),
    "terrain": _terrain,
    "moons": _moons,
    "checkerboard": _checkerboard,
    "twenty": _twenty,
    "rare": _rare,
}


# Rows of the problems below.
N_CURVED_TRAIN, N_CURVED_TEST = 5000, 20_000
N_CLASSES_TRAIN, N_CLASSES_TEST = 9000, 5000
N_WIDE_TRAIN, N_WIDE_TEST = 4000, 5000
N_GROWTH_TRAIN, N_GROWTH_TEST = 4000, 5000


def small_moons_problem(seed: int) -> Problem:
    """Return two half moons with 600 training rows."""
    return _moons(seed, n_rows=900, name="moons600")


def quantiles_problem(seed: int) -> Problem:
    """Return three nested shells of a normal distribution in ten dimensions."""
    X, y = sklearn_datasets.make_gaussian_quantiles(
        n_samples=N_CURVED_TRAIN + N_CURVED_TRAIN, n_features=10, n_classes=3, random_state=seed
    )
    return _first_rows("quantiles", X, y, N_CURVED_TRAIN, C=10)


def curved_problem(kind: str, n_features: int, seed: int) -> Problem:
    """Return classes with a closed or curved border between them, which overlap.

    Parameters
    ----------
    kind : str
        One of `CURVED_KINDS`. "ring": a shell between rows inside and outside of it. "spheres":
        three shells. "ellipsoid" and "saddle": a rotated quadratic form above and below its median,
        with eigenvalues from 1 to 10, or of both signs. "tails": two shells in the first half of
        the columns; the others are noise with the tails of Student's t distribution.
    n_features : int
        Number of columns.
    seed : int
        Seed of the rows.

    Returns
    -------
    Problem
        5000 training and 20 000 test rows. The parameters of the SVM were chosen for each kind and
        8, 15 and 30 columns by its skill on a seed of their own (grid: C of 1 and 10, gamma of .25,
        .5, 1 and 2 divided by the columns). U.C. is .5 to .85.

    Examples
    --------
    >>> curved_problem("spheres", 8, 0).sizes["n_classes"]
    3
    """
    rng = np.random.default_rng([n_features, seed])
    n_rows = N_CURVED_TRAIN + N_CURVED_TEST
    X, y = CURVED_KINDS[kind](rng, n_rows, n_features)
    C, factor = _curved_parameters(kind, n_features)
    return _first_rows(f"{kind}{n_features}", X, y, N_CURVED_TRAIN, C=C, gamma=factor / n_features)


def classes_problem(n_classes: int, seed: int) -> Problem:
    """Return overlapping classes of 30 features, 20 of them informative."""
    X, y = sklearn_datasets.make_classification(
        N_CLASSES_TRAIN + N_CLASSES_TEST,
        30,
        n_informative=20,
        n_classes=n_classes,
        n_clusters_per_class=1,
        random_state=seed,
    )
    return _first_rows(f"classes{n_classes}", X, y, N_CLASSES_TRAIN, C=5)


def wide_problem(seed: int) -> Problem:
    """Return four classes of 1000 features, 20 of them informative."""
    X, y = sklearn_datasets.make_classification(
        N_WIDE_TRAIN + N_WIDE_TEST,
        1000,
        n_informative=20,
        n_classes=4,
        random_state=seed,
    )
    return _first_rows("wide1000", X, y, N_WIDE_TRAIN)


def slow_problem(seed: int) -> Problem:
    """Return six overlapping classes of 400 features, most rows support vectors."""
    X, y = sklearn_datasets.make_classification(
        N_WIDE_TRAIN + N_WIDE_TEST, 400, n_informative=30, n_classes=6, random_state=seed
    )
    return _first_rows("slow400", X, y, N_WIDE_TRAIN)


def clusters_problem(seed: int) -> Problem:
    """Return four classes of twenty clusters with gaps between them, where no row tells of labels.

    A map agrees less with its SVM between the clusters than within them.
    """
    X, cluster = sklearn_datasets.make_blobs(
        N_GROWTH_TRAIN + N_GROWTH_TEST, 8, centers=20, cluster_std=0.5, random_state=seed
    )
    return _first_rows("clusters", X, cluster % 4, N_GROWTH_TRAIN, C=10, gamma=0.2)


def growth_problem(n_rows: int, seed: int) -> tuple[Problem, NDArray[Any]]:
    """Return two classes of 10 features with at most 4000 training rows, and rows to be given."""
    X, y = sklearn_datasets.make_classification(
        n_rows + N_GROWTH_TEST, 10, n_informative=8, flip_y=0.02, random_state=seed
    )
    problem = _first_rows(f"rows{n_rows}", X, y, n_rows, C=5)
    n_train = min(n_rows, N_GROWTH_TRAIN)
    trained = replace(problem, X_train=X[:n_train], y_train=y[:n_train])
    return trained, problem.X_train


def _ring(rng: np.random.Generator, n_rows: int, n_features: int) -> tuple[Array, Labels]:
    """Return a shell of radius 1, and rows around the radii .55 and 1.45."""
    y = rng.integers(2, size=n_rows)
    radii = np.where(y == 1, 1.0, rng.choice([0.55, 1.45], n_rows))
    return _shells(rng, radii, n_features, 0.12), y


def _spheres(rng: np.random.Generator, n_rows: int, n_features: int) -> tuple[Array, Labels]:
    """Return three concentric spheres."""
    y = rng.integers(3, size=n_rows)
    return _shells(rng, 1 + 0.5 * y, n_features, 0.15), y


def _ellipsoid(rng: np.random.Generator, n_rows: int, n_features: int) -> tuple[Array, Labels]:
    """Return the inside and the outside of a rotated ellipsoid."""
    return _quadratic(rng, n_rows, np.geomspace(1, 10, n_features))


def _saddle(rng: np.random.Generator, n_rows: int, n_features: int) -> tuple[Array, Labels]:
    """Return both sides of a rotated saddle."""
    return _quadratic(rng, n_rows, np.where(np.arange(n_features) < n_features // 2, 1.0, -1.0))


def _tails(rng: np.random.Generator, n_rows: int, n_features: int) -> tuple[Array, Labels]:
    """Return two concentric spheres in half of the columns, and columns of noise.

    Behind such noise an SVM does not find the shell of "ring": its U.C. is .1 with 30 columns.
    """
    n_informative = n_features // 2
    y = rng.integers(2, size=n_rows)
    X = _shells(rng, 1 + 0.5 * y, n_informative, 0.12)
    return np.hstack([X, rng.standard_t(2.5, (n_rows, n_features - n_informative))]), y


CurvedKind = Callable[[np.random.Generator, int, int], tuple[Array, Labels]]
CURVED_KINDS: dict[str, CurvedKind] = {
    "ring": _ring,
    "spheres": _spheres,
    "ellipsoid": _ellipsoid,
    "saddle": _saddle,
    "tails": _tails,
}


def _shells(
    rng: np.random.Generator, radii: NDArray[Any], n_features: int, deviation: float
) -> NDArray[Any]:
    """Return rows in random directions, with noise of this standard deviation on their radii."""
    directions = rng.normal(size=(len(radii), n_features))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return directions * (radii + rng.normal(0, deviation, len(radii)))[:, None]


def _quadratic(
    rng: np.random.Generator, n_rows: int, eigenvalues: Array
) -> tuple[NDArray[Any], Labels]:
    """Return normal rows, and whether a rotated quadratic form with noise is below its median."""
    X = rng.normal(size=(n_rows, len(eigenvalues)))
    rotation = np.linalg.qr(rng.normal(size=(len(eigenvalues), len(eigenvalues))))[0]
    values = np.square(X @ rotation) @ eigenvalues
    values += rng.normal(0, 0.15 * values.std(), n_rows)
    return X, (values < np.median(values)).astype(np.intp)


def _curved_parameters(kind: str, n_features: int) -> tuple[float, float]:
    """Return C, and gamma times the columns."""
    if kind == "ring":
        return (10, 1.0) if n_features < 12 else (1, 2.0)
    return (1, 0.5) if kind == "spheres" else (10, 0.5)


def _first_rows(
    name: str,
    X: NDArray[Any],
    y: NDArray[Any],
    n_train: int,
    *,
    C: float = 1.0,
    gamma: float | str = "scale",
) -> Problem:
    """Return a problem whose first rows are the training rows."""
    return Problem(name, X[:n_train], y[:n_train], X[n_train:], y[n_train:], C, gamma)
