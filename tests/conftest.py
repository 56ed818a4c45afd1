"""Data and sources that several tests share."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons


def pytest_collection_modifyitems(items):
    """Leave out what needs the paper's data where they are not at hand."""
    if "LIMES_DATA" in os.environ:
        return
    skip = pytest.mark.skip(reason="LIMES_DATA does not name the folder of the datasets")
    for item in items:
        if "data" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(scope="session")
def data_folder():
    return Path(os.environ["LIMES_DATA"])


@pytest.fixture(scope="session")
def moons():
    """Two classes with a curved border."""
    return make_moons(300, noise=0.2, random_state=0)


@pytest.fixture(scope="session")
def blobs():
    """Four overlapping classes in three features."""
    X, y = make_blobs(
        500, n_features=3, centers=4, cluster_std=2.0, center_box=(-4, 4), random_state=3
    )
    return X, np.array(["ash", "birch", "cedar", "doum"])[y]
