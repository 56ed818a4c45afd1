"""Changed files of trained classifiers: `python tests/fuzz/fuzz_source.py [N] [SEED]`."""

from pathlib import Path

import numpy as np
from fuzz_limes import change
from mutations import fuzz, main, temporary_folder
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from limes.agf import AGFClassifier, KernelDensityClassifier
from limes.libsvm import LibsvmClassifier
from limes.libsvm.training import standardizer
from limes.saved_source import read_source, write_source
from limes.sources.svm import svm_from_sklearn


def seeds():
    """Return small files of every kind of classifier."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 3)), np.array(list("abc") * 4)
    models = [
        svm(X, y),
        AGFClassifier(total_weight=2.0).fit(X, y),
        make_pipeline(standardizer(), KernelDensityClassifier(bandwidth=0.7)).fit(X, y),
        LinearSVC(random_state=0).fit(X, y),
        OneVsRestClassifier(LogisticRegression()).fit(X, y),
    ]
    return [written(model) for model in models]


def svm(X, y):
    svc = SVC(gamma=0.5).fit(X, y)
    return LibsvmClassifier(svm_from_sklearn(svc), svc.classes_, sigmoids=np.ones((2, 3)))


def written(model):
    with temporary_folder():
        write_source(model, "source", names=("height", "width", "depth"))
        return Path("source").read_bytes()


def read(data, name):
    """Read a file, and predict if it is accepted as a classifier."""
    Path(name).write_bytes(data)
    try:
        with np.errstate(all="ignore"):
            model, _ = read_source(name)
    finally:
        Path(name).unlink()
    with np.errstate(all="ignore"):
        labels = model.predict(np.ones((2, model.n_features_in_)))
    assert np.isin(labels, model.classes_).all()


def run(n_files, *, seed=0, show=False):
    with temporary_folder():
        return fuzz(read, seeds(), n_files, seed=seed, change=change, show=show)


if __name__ == "__main__":
    main(run)
