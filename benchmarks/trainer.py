"""Time the trainer in µs a sample, beside another installation of limes.

    python benchmarks/trainer.py --before /path/to/other/.venv/bin/python

The other one may be older: its trainer may count epochs and take weights. Both run on one thread
at each SIMD level, in turns, and the minimum counts, since computers are shared.
"""

import argparse
import inspect
import json
import os
import subprocess
import sys
import time

import numpy as np

# Features, search components (0: none), outputs, points.
PROBLEMS = {
    "moons": (2, 0, 1, 16),
    "segment": (19, 0, 7, 64),
    "sat": (36, 0, 6, 64),
    "letter": (16, 0, 26, 256),
    "usps": (256, 32, 10, 128),
}
# Those of `sat` and of a binary problem of 30 features with a base function alone.
CURVED = {"sat, quadratic": (36, 6, "quadratic"), "30 features, quadratic": (30, 1, "quadratic")}
N_ROWS, N_SAMPLES, N_BATCH, BLEND = 20_000, 40_000, 256, 7


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", metavar="PYTHON", help="python of another installation")
    parser.add_argument("--levels", nargs="*", help="SIMD levels; all by default")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--measure", action="store_true", help="print one turn as JSON")
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure()))
        return
    from limes._core import simd_levels

    for level in args.levels or simd_levels():
        report(level, args.before, args.turns)


def measure():
    """Return the time of each problem with this installation."""
    times = {name: time_problem(*sizes) for name, sizes in PROBLEMS.items()}
    from limes._core import train

    if hasattr(train, "CurvedInputs"):
        times |= {name: time_curved(*sizes) for name, sizes in CURVED.items()}
    return times


def time_problem(n_features, n_components, n_outputs, n_points):
    rng, rows, targets = make_rows(n_features, n_outputs)
    components = rng.normal(size=(n_components, n_features)) / 16 if n_components else None
    search_rows = rows if components is None else rows @ components.T
    points = search_rows[rng.choice(N_ROWS, n_points, replace=False)]
    return time_training(rows, targets, points, components=components)


def time_curved(n_features, n_outputs, shape):
    from limes._core.train import CurvedInputs

    _, rows, targets = make_rows(n_features, n_outputs)
    curved = CurvedInputs.from_rows(shape, rows, center=rows.mean(axis=0), scale=1.0)
    return time_training(rows, targets, rows[:1], curved=curved)


def make_rows(n_features, n_outputs):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(N_ROWS, n_features)).astype(np.float32)
    powers = np.exp(rows @ rng.normal(size=(n_features, max(n_outputs, 2))))
    targets = (powers / powers.sum(axis=1, keepdims=True))[:, :n_outputs]
    return rng, rows, np.ascontiguousarray(targets, dtype=np.float32)


def time_training(rows, targets, points, **options):
    """Return the least µs a sample of a few trainings."""
    from limes._core.train import TrainedMap, train

    sizes = {"n_features": rows.shape[1], "n_outputs": targets.shape[1], "radius": 3.0}
    settings = {"blend": BLEND, "n_batch": N_BATCH, "decay": 0.01, "seed": 0}
    settings["rates"] = (0.02, 0.01, 0.005, 0.002)
    if "n_samples" in inspect.signature(train).parameters:
        settings["n_samples"] = N_SAMPLES
    else:
        settings["n_epochs"] = N_SAMPLES // N_ROWS
        settings["weights"] = np.ones(N_ROWS, np.float32)
    seconds = []
    for _ in range(3):
        start = TrainedMap.start(points, **sizes, **options)
        before = time.thread_time()
        train(start, rows, targets, **settings)
        seconds.append(time.thread_time() - before)
    return 1e6 * min(seconds) / N_SAMPLES


def report(level, before, n_turns):
    """Print a table of both installations at one SIMD level."""
    pythons = [sys.executable, *([before] if before else [])]
    turns = [[run(python, level) for python in pythons] for _ in range(n_turns)]
    print(f"\n{level:24}{'before':>8}{'now':>8}{'ratio':>8}   µs a sample")
    for name in turns[0][0]:
        now, old = (
            min(
                (turn[i][name] for turn in turns if i < len(turn) and name in turn[i]), default=None
            )
            for i in (0, 1)
        )
        ratio = f"{old:8.2f}{now:8.2f}{old / now:8.2f}" if old else f"{'':8}{now:8.2f}"
        print(f"{name:24}{ratio}")


def run(python, level):
    environment = {**os.environ, "LIMES_SIMD": level, "OMP_NUM_THREADS": "1"}
    command = [python, __file__, "--measure"]
    return json.loads(subprocess.run(command, env=environment, stdout=-1, check=True).stdout)


if __name__ == "__main__":
    main()
