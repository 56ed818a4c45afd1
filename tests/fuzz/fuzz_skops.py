"""Changed models of skops: `python tests/fuzz/fuzz_skops.py [N] [SEED]`.

Half of the files have a changed member in a valid archive, whose sums of control would otherwise
hide the readers of the members.
"""

import io
import warnings
import zipfile
from pathlib import Path

import numpy as np
import skops.io
from mutations import fuzz, main, mutate, temporary_folder
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, OneClassSVM

from limes.foreign.skops import read_skops_model
from limes.sources.exact import labels_of


def seeds():
    """Return a scaled SVM of three classes, one of two, and one of one class."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 2)), np.arange(12) % 3
    models = [
        make_pipeline(StandardScaler(), SVC()).fit(X, y),
        SVC(kernel="linear").fit(X, y > 0),
        OneClassSVM().fit(X),
    ]
    return [skops.io.dumps(model) for model in models]


def change(data, seeds, rng):
    """Change the bytes of an archive, or those of a member."""
    if rng.integers(2):
        return mutate(data, seeds, rng)
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(changed, "w") as copy:
        names = archive.namelist()
        chosen = names[rng.integers(len(names))]
        for name in names:
            member = archive.read(name)
            copy.writestr(name, mutate(member, [member], rng) if name == chosen else member)
    return changed.getvalue()


def read(data, name):
    """Read a file, and predict if it is accepted as a model."""
    Path(name).write_bytes(data)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", InconsistentVersionWarning)
            warnings.simplefilter("ignore", RuntimeWarning)
            model = read_skops_model(name)
            labels = model.predict(np.ones((2, model.n_features_in_)))
    finally:
        Path(name).unlink()
    assert np.isin(labels, labels_of(model)).all()


def run(n_files, *, seed=0, show=False):
    with temporary_folder():
        return fuzz(read, seeds(), n_files, seed=seed, change=change, show=show)


if __name__ == "__main__":
    main(run)
