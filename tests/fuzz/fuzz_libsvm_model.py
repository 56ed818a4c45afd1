"""Changed LIBSVM models: `python tests/fuzz/fuzz_libsvm_model.py [N] [SEED]`."""

from pathlib import Path

import numpy as np
from mutations import fuzz, main, temporary_folder

from limes.libsvm import LibsvmClassifier, read_libsvm_model, write_libsvm_model
from limes.model.svm import Kernel, TrainedSvm

# A short file may have a very high feature; a small limit is tested as well as a large one.
MAX_BYTES = 1 << 20
KERNELS = (
    Kernel("rbf", gamma=0.5),
    Kernel("poly", gamma=0.1, degree=3, coef0=1.0),
    Kernel("sigmoid", gamma=0.01, coef0=-1.0),
    Kernel("linear"),
)


def seeds():
    """Return models of all kernels, of two to four classes, with and without probabilities."""
    rng = np.random.default_rng(0)
    return [written(rng, kernel, 2 + number % 3) for number, kernel in enumerate(KERNELS)]


def written(rng, kernel, n_classes):
    n_pairs = n_classes * (n_classes - 1) // 2
    svm = TrainedSvm(
        kernel=kernel,
        vectors=rng.normal(size=(2 * n_classes, 3)).round(2),
        dual_coef=rng.normal(size=(n_classes - 1, 2 * n_classes)),
        intercepts=rng.normal(size=n_pairs),
        n_support=np.full(n_classes, 2),
    )
    sigmoids = rng.normal(size=(2, n_pairs)) if n_classes != 3 else None
    labels = rng.permutation([7, -1, 3, 0])[:n_classes]
    with temporary_folder():
        write_libsvm_model(LibsvmClassifier(svm, labels, sigmoids=sigmoids), "model")
        return Path("model").read_bytes()


def read(data, name):
    """Read a file, and predict if it is accepted as a model."""
    Path(name).write_bytes(data)
    try:
        model = read_libsvm_model(name, max_bytes=MAX_BYTES)
    finally:
        Path(name).unlink()
    rows = np.ones((2, model.n_features_in_))
    # Constants of any size are valid: their sums may overflow.
    with np.errstate(all="ignore"):
        labels = model.predict(rows)
    assert np.isin(labels, model.classes_).all()


def run(n_files, *, seed=0, show=False):
    with temporary_folder():
        return fuzz(read, seeds(), n_files, seed=seed, show=show)


if __name__ == "__main__":
    main(run)
