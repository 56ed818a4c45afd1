"""Time exact sums against SVC, scikit-learn-intelex, and a bare product with exponentials.

`python benchmarks/exact_sums.py [DATASET ...]` needs the paper's datasets, by LIMES_DATA, and for
one column scikit-learn-intelex. All run on one thread, interleaved in one run, on float32 rows
(SVC: float64); processor time is measured and the minimum counts. The product is computed in parts
that stay in the second-level cache, with NumPy's exponential in place. The share of rows whose
class needed float64, and the largest error as a share of its bound, come from the same rows.
"""

import sys
import time

import numpy as np
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from limes._core import Classifier, ExactSums, simd_level
from limes.research.problems import load_problem

NAMES = ("heart", "segment", "pendigits", "sat", "shuttle", "splice", "usps", "letter")
N_ROWS, N_REPEATS, N_SVC_ROWS = 5000, 7, 500


def minimum_seconds(calls):
    seconds = np.empty((N_REPEATS, len(calls)))
    for row in seconds:
        for i, call in enumerate(calls):
            start = time.process_time()
            call()
            row[i] = time.process_time() - start
    return seconds.min(axis=0)


def exponentials_of_products(rows, columns, part, *, exponential=True):
    """Compute what any evaluation of the kernels needs, without storing it."""
    for start in range(0, len(rows), len(part)):
        some = rows[start : start + len(part)]
        out = part[: len(some)]
        np.dot(some, columns, out=out)
        if exponential:
            np.exp(out, out=out)


def train_intelex(problem):
    """Return scikit-learn-intelex' SVC, trained in float32, or None without the package."""
    try:
        from sklearnex import svm
    except ImportError:
        return None
    svc = svm.SVC(C=problem.C, gamma=problem.gamma)
    return svc.fit(problem.train_rows(np.float32), problem.y_train)


def exact_sums(svc):
    return ExactSums(
        svc.support_vectors_,
        svc.n_support_,
        svc._dual_coef_,
        svc._intercept_,
        kernel=svc.kernel,
        gamma=svc._gamma,
    )


def time_dataset(name):
    """Return the sizes, microseconds per row, and the share of rows that needed float64."""
    problem = load_problem(name)
    svc = SVC(C=problem.C, gamma=problem.gamma)
    svc.fit(problem.train_rows(np.float64), problem.y_train)
    rows = problem.test_rows(np.float32)[:N_ROWS]
    few = rows[:N_SVC_ROWS].astype(np.float64)
    sums, intelex = exact_sums(svc), train_intelex(problem)
    classifier = Classifier(sums)
    columns = np.ascontiguousarray(-1e-3 * np.abs(svc.support_vectors_.T), dtype=np.float32)
    n_features, n_vectors = columns.shape
    part = np.empty((max(64, (1 << 18) // n_vectors), n_vectors), dtype=np.float32)
    calls = [
        lambda: classifier.classify(rows),
        lambda: exponentials_of_products(rows, columns, part),
        lambda: exponentials_of_products(rows, columns, part, exponential=False),
        lambda: svc.predict(few),
    ]
    if intelex is not None:
        calls.append(lambda: intelex.predict(rows))
    counts = np.array([len(rows)] * 3 + [len(few), len(rows)])[: len(calls)]
    times = np.full(5, np.nan)
    times[: len(calls)] = minimum_seconds(calls) * 1e6 / counts
    sizes = (n_vectors, n_features, len(svc.classes_))
    return sizes, times, sums.count_uncertain(rows) / len(rows), sums.error_ratios(rows[:500]).max()


def main() -> None:
    print(f"SIMD level {simd_level()}; microseconds per row")
    print(
        "| dataset | vectors, features, classes | exact | product + exp | product | SVC | intelex "
        "| SVC / exact | intelex / exact | float64 | error / bound |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    with threadpool_limits(1):
        for name in sys.argv[1:] or NAMES:
            sizes, times, share, ratio = time_dataset(name)
            cells = " | ".join(f"{value:.3g}" for value in (*times, *(times[3:] / times[0])))
            print(f"| {name} | {sizes} | {cells} | {share:.4f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
