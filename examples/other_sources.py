"""Accelerate classifiers other than SVMs.

    python examples/other_sources.py

AGF, kernel density and Gaussian process sum over their training rows for every prediction. The
fast model evaluates the linear functions of a few nearby border points.
"""

from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline

import limes
from limes.datasets import sample_classes
from limes.libsvm.training import standardizer

# The training time of a Gaussian process grows with the cube of its rows: it gets fewer.
SOURCES = {
    "adaptive Gaussian filtering": (limes.AGFClassifier(), 2000),
    "kernel density": (limes.KernelDensityClassifier(), 2000),
    "Gaussian process": (GaussianProcessClassifier(10.0 * RBF(1.0), optimizer=None), 400),
}


def main() -> None:
    """Train, accelerate and compare each."""
    X, y = sample_classes(6000, random_state=0)
    X_test, y_test = X[4000:], y[4000:]
    for name, (classifier, n_rows) in SOURCES.items():
        model = make_pipeline(standardizer(), classifier).fit(X[:n_rows], y[:n_rows])
        fast = limes.accelerate(model, X[:4000], random_state=0)
        print(f"{name}, {n_rows} training rows\n\n{fast.report(X_test, y_test)}\n")


if __name__ == "__main__":
    main()
