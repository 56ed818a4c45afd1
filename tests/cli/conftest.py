"""Files that the tests of several commands share."""

import numpy as np
import pytest

from limes.files import create_rows
from tests.cli.commands import QUICK, run


@pytest.fixture(scope="session")
def folder(tmp_path_factory, blobs):
    """Rows of four classes, an SVM trained on them, and its fast replacement."""
    pytest.importorskip("pyarrow")
    path = tmp_path_factory.mktemp("cli")
    X, names = blobs
    y = np.unique(names, return_inverse=True)[1]
    with create_rows(path / "train.svm") as writer:
        writer.write(X[:400], y[:400])
    with create_rows(path / "test.csv", names=["a", "b", "c"]) as writer:
        writer.write(X[400:], y[400:])
    run("train", "-c", "2", "-g", "0.1", "-b", "1", path / "train.svm", "-o", path / "svm.model")
    run("accelerate", path / "svm.model", path / "train.svm", "-o", path / "fast.limes", *QUICK)
    return path
