"""Time `predict_proba` as a multiple of `predict`, for maps of several shapes.

    python benchmarks/probabilities.py
    LIMES_SIMD=avx2 python benchmarks/probabilities.py --features 2 16

One thread, float32 rows; processor time, the minimum over interleaved turns. The maps are random:
the time does not depend on their numbers. Two classes have one value and the logistic function,
more a logit each; "curved" adds a quadratic base function of at most 16 terms.
"""

import argparse
import itertools
import time
from collections.abc import Callable

import numpy as np

from limes._core import simd_level
from limes.model import BorderMap, Model
from limes.model.affine import AffineMap
from limes.model.curved_base import CurvedBase
from limes.model.schemes import PairwiseScheme, SharedScheme

# Points and blend: one linear function, and what fits of few and of many points select.
MAPS = [(1, 1), (30, 3), (100, 7)]
MAX_TERMS, MAX_RATIO = 16, 1.5
HEAD = (
    "| features | classes | points | base | predict, ns | predict_proba, ns | ratio | met |\n"
    "|---:|---:|---:|---|---:|---:|---:|---|"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--features", type=int, nargs="+", default=[2, 16, 784])
    parser.add_argument("--classes", type=int, nargs="+", default=[2, 3, 6, 10, 26, 100])
    args = parser.parse_args()
    print(f"SIMD level {simd_level()}, one thread, {args.rows} float32 rows\n\n{HEAD}")
    ratios = []
    for n_features in args.features:
        rows = np.random.default_rng(1).normal(size=(args.rows, n_features)).astype(np.float32)
        for case in itertools.product(args.classes, MAPS, ("linear", "curved")):
            ratios.append(print_line(rows, *case, n_turns=args.turns))
    print(f"\nlargest ratio {max(ratios):.2f}, at most {MAX_RATIO} wanted")


def print_line(
    rows: np.ndarray, n_classes: int, sizes: tuple[int, int], base: str, *, n_turns: int
) -> float:
    """Time one model, print a line of the table and return the ratio."""
    n_points, blend = sizes
    model = random_model(rows.shape[1], n_classes, n_points, blend, is_curved=base == "curved")
    calls = [lambda: model.predict(rows), lambda: model.predict_proba(rows)]
    predict, predict_proba = (seconds / len(rows) for seconds in shortest(calls, n_turns))
    ratio = predict_proba / predict
    met = "yes" if ratio <= MAX_RATIO else "NO"
    print(
        f"| {rows.shape[1]} | {n_classes} | {n_points} | {base} | {predict * 1e9:.1f} "
        f"| {predict_proba * 1e9:.1f} | {ratio:.2f} | {met} |",
        flush=True,
    )
    return ratio


def random_model(
    n_features: int, n_classes: int, n_points: int, blend: int, *, is_curved: bool
) -> Model:
    rng, n_outputs = np.random.default_rng(0), 1 if n_classes == 2 else n_classes
    map_ = BorderMap(
        rng.normal(size=(n_points, n_features)),
        rng.normal(size=(n_points, n_outputs, n_features)) / np.sqrt(n_features),
        rng.normal(size=(n_points, n_outputs)),
        blend=blend,
        curve=random_curve(rng, n_features, n_outputs) if is_curved else None,
    )
    scheme = PairwiseScheme((map_,), 2) if n_outputs == 1 else SharedScheme((map_,), n_classes)
    return Model(scheme, np.arange(n_classes), n_features)


def random_curve(rng: np.random.Generator, n_features: int, n_outputs: int) -> CurvedBase:
    n_terms, step = n_features, AffineMap.identity(n_features)
    if n_features > MAX_TERMS:
        n_terms = MAX_TERMS
        step = AffineMap(np.zeros(n_features), rng.normal(size=(n_features, n_terms)) / n_features)
    return CurvedBase(
        step,
        rng.normal(size=n_outputs),
        rng.normal(size=(n_outputs, n_terms)),
        rng.normal(size=(n_outputs, n_terms * (n_terms + 1) // 2)),
    )


def shortest(calls: list[Callable[[], object]], n_turns: int) -> np.ndarray:
    """Return the least processor time of each call."""
    seconds = np.empty((n_turns, len(calls)))
    for call in calls:
        call()
    for turn in seconds:
        for number, call in enumerate(calls):
            start = time.process_time()
            call()
            turn[number] = time.process_time() - start
    return seconds.min(axis=0)


if __name__ == "__main__":
    main()
