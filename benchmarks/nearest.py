"""Time the search for the nearest border point against a bare sgemm of the same shape.

Both run on one thread, interleaved in one run; the processor time of the thread is measured and
the minimum counts, since computers are shared and timings noisy.

    python benchmarks/nearest.py            # shapes that are common
    python benchmarks/nearest.py --other    # also shapes that nothing was tuned on
"""

import argparse
import time

import numpy as np
from threadpoolctl import threadpool_limits

from limes import _core

# (rows, features, points): common shapes, then shapes that nothing was tuned on.
SHAPES = [
    (100_000, 8, 100),
    (100_000, 8, 500),
    (100_000, 36, 64),
    (100_000, 16, 512),
    (50_000, 50, 200),
    (20_000, 256, 100),
    (10_000, 665, 128),
]
OTHER_SHAPES = [
    (100_000, 1, 1),
    (100_000, 2, 30),
    (100_000, 2, 5000),
    (100_000, 5, 7),
    (100_000, 8, 2000),
    (50_000, 22, 333),
    (50_000, 60, 17),
    (50_000, 68, 64),
    (20_000, 100, 1000),
    (20_000, 180, 8),
    (10_000, 784, 300),
    (5_000, 1000, 1000),
]


def plain_map(points: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return a map with these points and linear functions that are zero."""
    n_points, n_features = points.shape
    biases = 0.5 * np.sum(points.astype(float) ** 2, axis=1)
    return points, biases, np.zeros((n_points, 1, n_features)), np.zeros((n_points, 1))


def time_shape(shape: tuple[int, int, int], n_repeats: int, level: str) -> tuple[float, float]:
    """Return the minimum seconds of the product alone and of the whole search."""
    n_rows, n_features, n_points = shape
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n_rows, n_features)).astype(np.float32)
    points = rng.normal(size=(n_points, n_features)).astype(np.float32)
    maps = _core.Maps(np.zeros(n_features), [plain_map(points)], level=level)
    product = np.empty((n_rows, n_points), dtype=np.float32)
    nearest = np.empty(n_rows, dtype=np.int32)
    seconds = []
    for _ in range(n_repeats):
        start = time.thread_time()
        np.matmul(rows, points.T, out=product)
        middle = time.thread_time()
        maps.nearest(rows, nearest)
        seconds.append((middle - start, time.thread_time() - middle))
    return tuple(np.min(seconds, axis=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--level", default=_core.simd_level(), help=f"one of {_core.simd_levels()}")
    parser.add_argument(
        "--other", action="store_true", help="also shapes that nothing was tuned on"
    )
    args = parser.parse_args()
    print(f"SIMD level {args.level}; ms, minimum of {args.repeats} interleaved repeats")
    print("| rows, features, points | sgemm | nearest | ratio |\n|---|---|---|---|")
    with threadpool_limits(1):
        for shape in SHAPES + OTHER_SHAPES * args.other:
            product, nearest = time_shape(shape, args.repeats, args.level)
            name = ", ".join(f"{n:,}".replace(",", " ") for n in shape)
            print(
                f"| {name} | {product * 1e3:.2f} | {nearest * 1e3:.2f} | {nearest / product:.2f} |"
            )


if __name__ == "__main__":
    main()
