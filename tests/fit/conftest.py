"""Fixtures of the tests of the fit."""

import pytest
from sklearn.datasets import make_blobs
from sklearn.svm import SVC


@pytest.fixture(scope="session")
def eight_blobs():
    """Eight overlapping classes in three features."""
    return make_blobs(600, centers=8, n_features=3, cluster_std=1.8, random_state=0)


@pytest.fixture(scope="session")
def eight_blobs_svm(eight_blobs):
    return SVC(C=10).fit(*eight_blobs)
