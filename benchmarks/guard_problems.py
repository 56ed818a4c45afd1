"""Problems that are not in the paper, to see that nothing was made to fit its datasets."""

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split

from limes.research.problems import Problem


def split(name, X, y, seed, **options):
    """Return a problem with a third of its rows to test on."""
    parts = train_test_split(X, y, test_size=1 / 3, random_state=seed, stratify=y)
    return Problem(name, parts[0], parts[2], parts[1], parts[3], seed=seed, **options)


def checkerboard(seed):
    """Sixteen squares of two colours."""
    X = np.random.default_rng(seed).uniform(0, 4, (9000, 2))
    return split("checkerboard", X, np.floor(X).sum(axis=1).astype(int) % 2, seed, C=10, gamma=5)


def terrain(seed):
    """Seven uneven classes over numbers and indicators, as in maps of forest cover."""
    rng = np.random.default_rng(seed)
    X, y = datasets.make_classification(
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
    return split("terrain", np.hstack([X, zones]), y, seed, C=5)


def rare(seed):
    """One row in a hundred belongs to the second class."""
    X, y = datasets.make_classification(
        15_000, 8, n_informative=6, weights=[0.99], flip_y=0.001, class_sep=1.2, random_state=seed
    )
    return split("rare", X, y, seed, C=5)


def twenty(seed):
    """Twenty classes that overlap."""
    X, y = datasets.make_blobs(8000, 6, centers=20, cluster_std=3.0, random_state=seed)
    return split("twenty", X, y, seed)


def moons(seed):
    """Two half moons."""
    X, y = datasets.make_moons(3000, noise=0.25, random_state=seed)
    return split("moons", X, y, seed, C=10, gamma=1)


def toy(name, load):
    """Return a maker of one of scikit-learn's own datasets."""
    return lambda seed: split(name, *load(return_X_y=True), seed)


GUARDS = {
    "digits": toy("digits", datasets.load_digits),
    "breast_cancer": toy("breast_cancer", datasets.load_breast_cancer),
    "wine": toy("wine", datasets.load_wine),
    "terrain": terrain,
    "moons": moons,
    "checkerboard": checkerboard,
    "twenty": twenty,
    "rare": rare,
}
