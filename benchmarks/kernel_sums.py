"""Time sums of Gaussian kernels, and their gradients, against NumPy: a product, exp, a product.

Both run on one thread, interleaved in one run; the processor time of the thread is measured and
the minimum counts, since computers are shared and timings noisy.
"""

import time

import numpy as np
from threadpoolctl import threadpool_limits

from limes._core import RbfVectors, simd_level
from limes.model.svm import Kernel, KernelVectors

# (rows, features, vectors)
SHAPES = [
    (2000, 2, 500),
    (2000, 8, 2000),
    (2000, 16, 500),
    (2000, 36, 1500),
    (1000, 100, 1500),
    (500, 256, 1000),
    (200, 784, 2000),
]


def minimum_seconds(calls, n_repeats=9):
    seconds = np.empty((n_repeats, len(calls)))
    for row in seconds:
        for i, call in enumerate(calls):
            start = time.thread_time()
            call()
            row[i] = time.thread_time() - start
    return seconds.min(axis=0)


def time_shape(shape):
    """Return nanoseconds per kernel value: NumPy, core, and both with the gradient."""
    n_rows, n_features, n_vectors = shape
    rng = np.random.default_rng(0)
    X, vectors = rng.normal(size=(n_rows, n_features)), rng.normal(size=(n_vectors, n_features))
    weights = rng.normal(size=n_vectors)
    plain = KernelVectors(Kernel("rbf", gamma=1 / n_features), vectors)
    core = RbfVectors(vectors, 1 / n_features)
    calls = [
        lambda: plain.sums(X, weights[:, None]),
        lambda: core.sums(X, weights[:, None]),
        lambda: plain.sums_and_gradients(X, weights),
        lambda: core.sums_and_gradients(X, weights),
    ]
    with threadpool_limits(1):
        return minimum_seconds(calls) * 1e9 / (n_rows * n_vectors)


def main() -> None:
    print(f"SIMD level {simd_level()}; ns per kernel value")
    print("| rows, features, vectors | NumPy | core | ratio | and gradient: NumPy | core | ratio |")
    print("|---|---|---|---|---|---|---|")
    for shape in SHAPES:
        a, b, c, d = time_shape(shape)
        print(f"| {shape} | {a:.2f} | {b:.2f} | {a / b:.1f} | {c:.2f} | {d:.2f} | {c / d:.1f} |")


if __name__ == "__main__":
    main()
