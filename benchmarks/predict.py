"""Time and memory of whole predictions, of threads and of single rows, as ratios.

    python benchmarks/predict.py            # a million rows, ten million for the memory
    python benchmarks/predict.py --rows 100000 --memory-rows 1000000

Both sides of a ratio are timed in turns in one run, so that it does not depend on the computer; the
column "CPU" has the processor time over wall-clock time of each in its fastest turn, which is less
than its number of threads if other programs were running. The sources are SVMs after a scaler,
trained on synthetic classes; nothing is downloaded.
"""

import argparse
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import limes
from limes._core import Classifier, simd_level, thread_count
from limes.timing import Timing, time_in_turns

N_FEATURES = 8
N_SINGLE = 50
# Bytes of the unit that the system reports memory in: kilobytes, but bytes on macOS.
RSS_UNIT = 1 if sys.platform == "darwin" else 1024
HEAD = "| what | ours | other | ratio | at most | met | CPU |\n|---|---:|---:|---:|---:|---|---|"


@dataclass(frozen=True, eq=False)
class Model:
    """A source and the fast model of it."""

    name: str
    source: Pipeline
    fast: limes.BordersClassifier

    @property
    def title(self) -> str:
        """Name in the table."""
        return f"{self.name} ({self.fast.scheme_.name}, {self.fast.n_borders_} points)"


def main() -> None:
    args = parse()
    if args.peak_of:
        print(peak_bytes(args.peak_of, args.labels))
        return
    print(f"SIMD level {simd_level()}, {thread_count(-1)} threads at most, float32")
    print(f"{N_FEATURES} features, minimum of {args.turns} turns\n\n{HEAD}")
    for line in lines(args):
        print(line, flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--memory-rows", type=int, default=10_000_000)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--peak-of", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--labels", default="int64", help=argparse.SUPPRESS)
    return parser.parse_args()


def lines(args: argparse.Namespace) -> Iterator[str]:
    models = [
        train_model("2 classes", 2),
        train_model("6 classes", 6),
        train_model("4 classes of 6 clusters each", 4, n_clusters=6),
    ]
    for model in models:
        yield whole_against_kernel(model, args.rows, args.turns)
    for model in models:
        yield two_threads_against_one(model, args.rows, args.turns)
    for model in models:
        yield from single_rows(model, args.turns)
    for scheme in ("one-vs-rest", "pairwise", "shortlist", "tree"):
        yield from single_rows(with_scheme(models[1], scheme), args.turns)
    for labels in ("int16", "int64"):
        yield memory(args.memory_rows, labels)


def train_model(name: str, n_classes: int, labels: str = "int64", n_clusters: int = 1) -> Model:
    """Train an SVM on round clusters; several per class give borders that need many points."""
    X, clusters = make_blobs(
        4000,
        N_FEATURES,
        centers=n_classes * n_clusters,
        cluster_std=3.0 if n_clusters == 1 else 1.5,
        center_box=(-4, 4),
        random_state=0,
    )
    X, y = X.astype(np.float32), (clusters % n_classes).astype(labels)
    source = make_pipeline(StandardScaler(), SVC(C=10, gamma=0.5)).fit(X, y)
    return Model(name, source, limes.accelerate(source, X, random_state=0))


def with_scheme(model: Model, scheme: str) -> Model:
    """Return a fast model of the same source with another scheme."""
    rows = uniform_rows(2000)
    fast = limes.accelerate(model.source, rows, scheme=scheme, random_state=0)
    return Model(model.name, model.source, fast)


def uniform_rows(n_rows: int) -> np.ndarray:
    """Return rows over the whole range of the classes, without another array of that size."""
    rows = np.random.default_rng(0).random((n_rows, N_FEATURES), dtype=np.float32)
    rows *= 16
    rows -= 8
    return rows


def whole_against_kernel(model: Model, n_rows: int, n_turns: int) -> str:
    """Compare ``predict`` with the compiled core writing into an existing array."""
    rows = uniform_rows(n_rows)
    with threadpool_limits(1):
        both = timings([lambda: model.fast.predict(rows), bare_kernel(model, rows)], n_turns)
    return times_line(f"predict against its bare kernel, {n_rows} rows, {model.title}", both, 1.3)


def bare_kernel(model: Model, rows: np.ndarray) -> Callable[[], object]:
    """Return the fastest call of the core that gives the class of each row."""
    maps = model.fast.scheme_.compiled
    try:
        classifier = Classifier(maps)
    except ValueError:  # several maps without pairs have no rule of their own
        values = np.empty((len(rows), maps.n_values), dtype=maps.dtype)
        return lambda: maps.decide(rows, values)
    return lambda: classifier.classify(rows)


def two_threads_against_one(model: Model, n_rows: int, n_turns: int) -> str:
    rows = uniform_rows(n_rows)
    on_two, on_one = (copy(model.fast).set_params(n_jobs=n_jobs) for n_jobs in (2, 1))
    with threadpool_limits(2):
        both = timings([lambda: on_two.predict(rows), lambda: on_one.predict(rows)], n_turns)
    return times_line(f"predict, two threads against one, {n_rows} rows, {model.title}", both, 0.6)


def single_rows(model: Model, n_turns: int) -> Iterator[str]:
    rows = uniform_rows(N_SINGLE)
    predict_one = model.fast.predictor()
    calls = [
        lambda: [predict_one(row) for row in rows],
        lambda: [model.fast.predict(row[None]) for row in rows],
        lambda: [model.source.predict(row[None]) for row in rows],
    ]
    with threadpool_limits(1):
        predictor, predict, source = timings(calls, n_turns)
    for name, taken, limit in (("predictor()", predictor, 5e-6), ("predict", predict, 100e-6)):
        alone, other = taken.seconds / N_SINGLE, source.seconds / N_SINGLE
        numbers = f"{alone * 1e6:.2f} µs | {other * 1e6:.0f} µs | {alone / other:.3g}"
        target = f"{limit * 1e6:.0f} µs | {met(alone <= limit)}"
        cpu = f"{taken.cpu_share:.2f}, {source.cpu_share:.2f}"
        what = f"one row, {name} against the source, {model.title}"
        yield f"| {what} | {numbers} | {target} | {cpu} |"


def memory(n_rows: int, labels: str) -> str:
    """Measure in a separate process, since a peak never decreases."""
    words = [sys.executable, __file__, "--peak-of", str(n_rows), "--labels", labels]
    output = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    growth, result = int(output) / 1e6, n_rows * np.dtype(labels).itemsize / 1e6
    numbers = f"{growth:.0f} MB | labels: {result:.0f} MB | {growth / result:.3g}"
    name = f"peak memory of predict over its input, {n_rows} rows, {labels} labels"
    return f"| {name} | {numbers} | labels + 50 MB | {met(growth < result + 50)} | - |"


def peak_bytes(n_rows: int, labels: str) -> int:
    """Return by how much ``predict`` raises the peak memory of this process."""
    fast = train_model("2 classes", 2, labels).fast
    rows = uniform_rows(n_rows)
    fast.predict(rows[:1])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fast.predict(rows)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * RSS_UNIT


def timings(calls: list[Callable[[], object]], n_turns: int) -> list[Timing]:
    for call in calls:
        call()
    return time_in_turns(calls, n_turns=n_turns)


def times_line(name: str, both: list[Timing], limit: float) -> str:
    ours, other = both
    ratio = ours.seconds / other.seconds
    numbers = f"{ours.seconds * 1e3:.1f} ms | {other.seconds * 1e3:.1f} ms | {ratio:.3g}"
    cpu = f"{ours.cpu_share:.2f}, {other.cpu_share:.2f}"
    return f"| {name} | {numbers} | {limit:g} | {met(ratio <= limit)} | {cpu} |"


def met(is_met: bool) -> str:
    return "yes" if is_met else "NO"


if __name__ == "__main__":
    main()
