"""Compare outlier detectors with the one-class SVMs that they replace.

`python benchmarks/novelty.py [PROBLEM ...]` writes `docs/novelty/rows.csv` and prints the tables of
`docs/novelty.md`. Half of the test rows are outliers: of other kinds than those that a map is
trained on for the synthetic problems, rows of other classes for the datasets (LIMES_DATA). Recalls
are the shares of the source's inliers and outliers with its label; times are processor time of one
thread on the same float64 rows, interleaved, the least of several calls.
"""

import csv
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr
from sklearn.datasets import make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM
from threadpoolctl import threadpool_limits

import limes
from limes.research.problems import load_problem

FOLDER = Path(__file__).parents[1] / "docs" / "novelty"
N_TEST, N_TURNS, SEEDS = 2000, 5, (0, 1, 2)
METHODS = {
    "default": {},
    "map": {"scheme": "shared"},
    "map, no fallback": {"scheme": "shared", "fallback": False},
}


def mixture(n_rows, n_features, rng, *, n_parts=3, seed=0):
    """Return rows of Gaussians with correlated features; the seed chooses the Gaussians."""
    parts = np.random.default_rng(seed)
    centres = 2.0 * parts.normal(size=(n_parts, n_features))
    factors = parts.normal(size=(n_parts, n_features, n_features)) / np.sqrt(n_features)
    chosen = rng.integers(n_parts, size=n_rows)
    noise = rng.normal(size=(n_rows, n_features))
    return centres[chosen] + np.einsum("nij,nj->ni", factors[chosen], noise)


def ring(n_rows, rng):
    """Return rows around a circle."""
    angle, radius = rng.uniform(0, 2 * np.pi, n_rows), rng.normal(1.0, 0.1, n_rows)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def heavy_tails(rows, rng):
    """Return rows of Student's distribution with two degrees of freedom, as wide as given ones."""
    return np.median(rows, axis=0) + rows.std(axis=0) * rng.standard_t(2, size=rows.shape)


def sphere(rows, rng):
    """Return rows in all directions from the mean, one to three times as far as given ones."""
    centre, direction = rows.mean(axis=0), rng.normal(size=rows.shape)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    length = np.linalg.norm(rows - centre, axis=1, keepdims=True)
    return centre + direction * length * rng.uniform(1.0, 3.0, (len(rows), 1))


def synthetic(n_train, make, outliers, nu, gamma):
    """Return a function from a seed to training rows, test rows and an unfitted source."""

    def problem(seed):
        rng = np.random.default_rng(seed)
        rows = make(n_train + N_TEST, rng, seed)
        test = rows[n_train:]
        return rows[:n_train], np.concatenate([test, outliers(test, rng)]), (nu, gamma)

    return problem


def real(name, nu=0.05, gamma="scale"):
    """Return such a function of a dataset, whose most frequent class are the inliers."""

    def problem(seed):
        data, rng = load_problem(name), np.random.default_rng(seed)
        classes, counts = np.unique(data.y_train, return_counts=True)
        inlier = classes[counts.argmax()]
        train = data.X_train[data.y_train == inlier]
        train = train[rng.permutation(len(train))[:20_000]]
        parts = data.X_test[data.y_test == inlier], data.X_test[data.y_test != inlier]
        n_each = min(N_TEST, *map(len, parts))
        test = [part[rng.permutation(len(part))[:n_each]] for part in parts]
        return train.astype(float), np.concatenate(test).astype(float), (nu, gamma)

    return problem


PROBLEMS = {
    "moons, 1000 rows": synthetic(
        1000, lambda n, rng, seed: make_moons(n, noise=0.1, random_state=seed)[0], sphere, 0.1, 2.0
    ),
    "ring, 5000 rows": synthetic(5000, lambda n, rng, seed: ring(n, rng), heavy_tails, 0.05, 5.0),
    "ring, 20000 rows": synthetic(20_000, lambda n, rng, seed: ring(n, rng), sphere, 0.1, 2.0),
    "mixture, 10 features, 3000 rows": synthetic(
        3000, lambda n, rng, seed: mixture(n, 10, rng, seed=seed), heavy_tails, 0.05, "scale"
    ),
    "mixture, 10 features, 20000 rows": synthetic(
        20_000, lambda n, rng, seed: mixture(n, 10, rng, seed=seed), heavy_tails, 0.1, "scale"
    ),
    "mixture, 20 features, 5000 rows": synthetic(
        5000, lambda n, rng, seed: mixture(n, 20, rng, seed=seed), sphere, 0.1, 0.05
    ),
    "mixture, 30 features, 15000 rows": synthetic(
        15_000, lambda n, rng, seed: mixture(n, 30, rng, seed=seed), sphere, 0.1, "scale"
    ),
    "segment": real("segment"),
    "sat": real("sat"),
    "letter": real("letter"),
    "pendigits": real("pendigits"),
    "shuttle": real("shuttle"),
}


def least_seconds(calls):
    """Return the least processor time of each call, all called in turns."""
    seconds = np.empty((N_TURNS, len(calls)))
    for turn in seconds:
        for place, call in enumerate(calls):
            start = time.process_time()
            call()
            turn[place] = time.process_time() - start
    return seconds.min(axis=0)


def repeated(call, rows, n_rows=200_000):
    """Return a call on as many rows as a clock can time, and its share of a row."""
    many = np.resize(rows, (n_rows, rows.shape[1]))
    return lambda: call(many)


def measure(name, seed):
    """Yield one line a method."""
    train, test, (nu, gamma) = PROBLEMS[name](seed)
    source = make_pipeline(StandardScaler(), OneClassSVM(nu=nu, gamma=gamma)).fit(train)
    labels, scores = source.predict(test), source.score_samples(test)
    for method, parameters in METHODS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", limes.QualityWarning)
            start = time.process_time()
            fast = limes.accelerate(source, train, **parameters)
            fit_seconds = time.process_time() - start
        found = fast.predict(test)
        n_many = 50 * len(test)
        times = least_seconds(
            [
                lambda: source.predict(test),
                lambda: source.decision_function(test),
                repeated(fast.predict, test, n_many),
                repeated(fast.decision_function, test, n_many),
            ]
        )
        microseconds = 1e6 * times / np.array([len(test), len(test), n_many, n_many])
        yield {
            "problem": name,
            "seed": seed,
            "method": method,
            "scheme": fast.scheme_.name,
            "n_vectors": len(source[-1].support_),
            "n_borders": fast.n_borders_,
            "cost": fast.cost_,
            "n_test": len(test),
            "inlier_share": np.mean(labels > 0),
            "inlier_recall": np.mean(found[labels > 0] > 0),
            "outlier_recall": np.mean(found[labels < 0] < 0),
            "correlation": spearmanr(scores, fast.score_samples(test)).statistic,
            "estimated_correlation": fast.score_correlation_,
            "source_us": microseconds[0],
            "predict_us": microseconds[2],
            "predict_speed_up": microseconds[0] / microseconds[2],
            "score_speed_up": microseconds[1] / microseconds[3],
            "fit_seconds": fit_seconds,
        }


def table(rows, method):
    """Return the lines of a table of one method: the worst of the seeds, of times the mean."""
    lines = [
        "| problem | support vectors | points | inlier recall | outlier recall | rank correlation "
        "| estimated | µs per row | predict | scores | fit, s |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in PROBLEMS:
        group = [row for row in rows if row["problem"] == name and row["method"] == method]
        if not group:
            continue
        worst = {
            key: min(row[key] for row in group)
            for key in ("inlier_recall", "outlier_recall", "correlation", "estimated_correlation")
        }
        points = "/".join(
            dict.fromkeys(str(row["n_borders"]) if row["n_borders"] else "exact" for row in group)
        )
        lines.append(
            f"| {name} | {round(np.mean([row['n_vectors'] for row in group]))} | {points} "
            f"| {worst['inlier_recall']:.4f} | {worst['outlier_recall']:.4f} "
            f"| {worst['correlation']:.4f} | {worst['estimated_correlation']:.4f} "
            f"| {np.mean([row['predict_us'] for row in group]):.3f} "
            f"| {min(row['predict_speed_up'] for row in group):.0f} "
            f"| {min(row['score_speed_up'] for row in group):.0f} "
            f"| {np.mean([row['fit_seconds'] for row in group]):.1f} |"
        )
    return "\n".join(lines)


def main(names):
    """Measure problems, write their lines beside those of the others, and print the tables."""
    with threadpool_limits(1):
        rows = [row for name in names for seed in SEEDS for row in measure(name, seed)]
    path = FOLDER / "rows.csv"
    with path.open(newline="") as stream:
        kept = [row for row in csv.DictReader(stream) if row["problem"] not in names]
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in [*kept, *rows]:
            words = {key: f"{v:.6g}" if isinstance(v, float) else v for key, v in row.items()}
            writer.writerow(words)
    for method in METHODS:
        print(f"\n{method}\n\n{table(rows, method)}")


if __name__ == "__main__":
    main(sys.argv[1:] or list(PROBLEMS))
