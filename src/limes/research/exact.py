"""Exact sums, fallback to them, and the default settings that choose between them, measured.

Each case is one row of a file in ``docs/exact``; an interrupted run continues where it stopped.
``docs/exact.md`` is written from the rows alone.

    python -m limes.research.exact                          # everything but the comparison below
    python -m limes.research.exact --before OLD             # also default settings of version OLD
    python -m limes.research.exact sums --cases sat letter  # one part, only these cases
    python -m limes.research.exact --draw                   # write the page, measure nothing

OLD is the Python of another environment, or a clone of the repository with the compiled module in
its ``src`` folder. The datasets come from LIMES_DATA, the scenes from LIMES_SCENES (rasterio reads
them); trained SVMs are stored in the folder of ``--cache``.
"""

import argparse
import math
import os
import sqlite3
import struct
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from limes._core import ExactSums
from limes._typing import Array
from limes.classifier import BordersClassifier, accelerate
from limes.datasets import list_datasets
from limes.model.coupling import class_pairs, count_votes_like_libsvm
from limes.model.svm import TrainedSvm
from limes.research.accuracy import MAX_TRAIN
from limes.research.bench.methods import svc
from limes.research.cases import TURN_SECONDS, Case, FitProcess, FitTask, Installation, fit_process
from limes.research.exact_page import (
    NEAR,
    AgreementRow,
    DefaultRow,
    FitRow,
    Rows,
    SumsRow,
    make_page,
)
from limes.research.problems import FURTHER_PROBLEMS, Problem, load_problem
from limes.research.processor_time import limit_threads
from limes.research.results import append_rows, read_rows
from limes.scores import uncertainty_coefficient
from limes.sources.svm import svm_from_sklearn
from limes.timing import affordable_rows, time_in_turns

# Test rows of datasets whose SVM takes long.
MAX_TEST = {"mnist": 5000, "humidity": 5000}
# Probabilities are compared where the trainings that they need are short: two classes and more.
WITH_PROBABILITIES = ("heart", "splice", "phishing", "segment", "sat", "dna", "pendigits")
# Required agreements, and the datasets on which they are measured, in addition to the scenes.
REQUIRED = (0.99, 0.995, 0.999, 1.0)
AGREEMENT_DATASETS = (
    *("sat", "segment", "letter", "pendigits", "shuttle"),
    *("ijcnn1", "codrna", "usps", "phishing", "splice"),
)
# Valid pixels that are given as rows where an agreement is required.
N_GIVEN_PIXELS = 2000
FIT_CASES = ("landsat8", "wine")
N_FITS = 5
# Timing: turns of each call, and seconds of a batch.
N_TURNS, BATCH_SECONDS = 7, 0.3
# Products in a block of the bare product: 256 kB or 1 MB of float32, whichever is faster.
BLOCK_PRODUCTS = (1 << 16, 1 << 18)


class Part(NamedTuple):
    """A part of the page: what it measures, on what, and where the rows are."""

    file: str
    # From the arguments to the keys of its rows, the first of which is a case.
    plan: Callable[[argparse.Namespace], list[tuple[Any, ...]]]
    # From the arguments and a key to a row.
    measure: Callable[..., Any]
    # From a row to its key.
    key: Callable[[Any], tuple[Any, ...]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, then write the page."""
    args = _parser().parse_args(arguments)
    check_names(args)
    folder = args.output / "exact"
    for name in () if args.draw else args.parts or PARTS:
        part = PARTS[name]
        path = folder / part.file
        done = {part.key(row) for row in read_rows(path, FILES[part.file])}
        for key in part.plan(args):
            if key in done or (args.cases and key[0] not in args.cases):
                continue
            start = time.monotonic()
            with limit_threads(1):
                append_rows(path, [part.measure(args, *key)])
            words = " ".join("default" if word is None else f"{word}" for word in key)
            print(f"{name}: {words}, {time.monotonic() - start:.0f} s", flush=True)
    rows = Rows(*(read_rows(folder / file, row_type) for file, row_type in FILES.items()))
    (args.output / "exact.md").write_text(make_page(rows), "utf-8")


def check_names(args: argparse.Namespace) -> None:
    """Raise an error for unknown parts and cases, before anything long begins."""
    cases = [*(entry.name for entry in list_datasets()), *SCENES, *FURTHER_PROBLEMS]
    for kind, names, known in (("part", args.parts, [*PARTS]), ("case", args.cases, cases)):
        for name in names:
            if name not in known:
                raise SystemExit(f"{kind} must be one of {', '.join(known)}, got {name!r}.")


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m limes.research.exact", description=str(__doc__).partition("\n")[0]
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"default: all of {', '.join(PARTS)}"
    )
    parser.add_argument(
        "--cases", nargs="+", default=[], metavar="CASE", help="only these datasets or scenes"
    )
    parser.add_argument("--draw", action="store_true", help="write the page, measure nothing")
    parser.add_argument(
        "--before", type=Path, metavar="OLD", help="Python or clone of the version to compare with"
    )
    parser.add_argument(
        "--seeds", type=int, default=1, help="seeds of that comparison, default: %(default)s"
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path("build/exact"),
        metavar="FOLDER",
        help="for trained SVMs, default: %(default)s",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("docs"),
        metavar="FOLDER",
        help="for exact.md and the folder exact, default: %(default)s",
    )
    return parser


@lru_cache(maxsize=1)
def load_case(name: str, cache: Path) -> Case:
    """Return a dataset, a further problem or a scene by its name."""
    if name in SCENES:
        return Case(SCENES[name](), cache)
    if name in FURTHER_PROBLEMS:
        return Case(FURTHER_PROBLEMS[name](0), cache)
    problem = load_problem(name)
    n_train, n_test = MAX_TRAIN.get(name), MAX_TEST.get(name)
    order = np.random.default_rng(0).permutation(len(problem.X_test))
    tested = np.sort(order[:n_test])
    problem = replace(
        problem,
        X_train=problem.X_train[:n_train],
        y_train=problem.y_train[:n_train],
        X_test=problem.X_test[tested],
        y_test=problem.y_test[tested],
    )
    return Case(problem, cache)


def load_landsat7() -> Problem:
    """Return the scene of six bands: training pixels, and all pixels valid in all bands.

    Trained on 70 % of the labelled pixels, the SVM has 678 support vectors.
    """
    import rasterio

    def read(file: str) -> Any:
        with rasterio.open(_scenes_folder() / "landsat7" / file) as stream:
            return stream.read(1, masked=True)

    bands = np.ma.stack([read(f"lsat7_2000_{band}.tif") for band in (10, 20, 30, 40, 50, 70)])
    is_valid = ~np.ma.getmaskarray(bands).any(axis=0)
    pixels = bands.data[:, is_valid].T.astype(np.float64)
    labels = read("landsat96_labelled_pixels.tif").filled(0).astype(np.intp)[is_valid]
    X, y = pixels[labels > 0], labels[labels > 0]
    X, _, y, _ = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    return Problem("landsat7", X, y, pixels, labels, C=100.0, gamma=0.5)


def load_landsat8() -> Problem:
    """Return the scene of three bands: pixels of the polygons, and all pixels that are not 0.

    Trained on all labelled pixels, the SVM has 32 support vectors.
    """
    import rasterio
    from rasterio.features import rasterize

    folder = _scenes_folder() / "landsat8"
    with rasterio.open(folder / "scene.tif") as stream:
        bands, transform = stream.read(), stream.transform
    polygons = [(_polygon(blob), number) for blob, number in _read_polygons(folder)]
    raster = rasterize(polygons, out_shape=bands.shape[1:], transform=transform, dtype="uint8")
    is_valid = (bands != 0).any(axis=0)
    pixels = bands[:, is_valid].T.astype(np.float64)
    labels = raster[is_valid].astype(np.intp)
    is_labelled = labels > 0
    return Problem(
        "landsat8", pixels[is_labelled], labels[is_labelled], pixels, labels, C=10.0, gamma=1.0
    )


SCENES: dict[str, Callable[[], Problem]] = {"landsat7": load_landsat7, "landsat8": load_landsat8}


def _scenes_folder() -> Path:
    """Return the folder of the scenes."""
    folder = os.environ.get("LIMES_SCENES", "")
    if not Path(folder, "landsat8").is_dir():
        raise SystemExit(
            f"LIMES_SCENES must be the folder of the scenes landsat7 and landsat8, got {folder!r}."
        )
    return Path(folder)


def _read_polygons(folder: Path) -> list[tuple[bytes, int]]:
    """Return the geometry of each polygon and the number of its class, in alphabetical order."""
    address = (folder / "polygons.gpkg").resolve().as_uri()
    connection = sqlite3.connect(f"{address}?mode=ro&immutable=1", uri=True)
    try:
        rows = connection.execute("SELECT geometry, name FROM land_cover").fetchall()
    finally:
        connection.close()
    names = sorted({name for _, name in rows})
    return [(blob, names.index(name) + 1) for blob, name in rows]


def _polygon(blob: bytes) -> dict[str, Any]:
    """Return a polygon of a GeoPackage as GeoJSON: a header with an envelope, then WKB."""
    envelope_numbers = (0, 4, 6, 6, 8)[blob[3] >> 1 & 7]
    place = 8 + 8 * envelope_numbers
    order = "<" if blob[place] else ">"
    kind, n_rings = struct.unpack_from(f"{order}II", blob, place + 1)
    if kind != 3:
        raise ValueError(f"a geometry must be a polygon, WKB type 3, got type {kind!r}.")
    place, rings = place + 9, []
    for _ in range(n_rings):
        (n_points,) = struct.unpack_from(f"{order}I", blob, place)
        numbers = np.frombuffer(blob, f"{order}f8", 2 * n_points, place + 4)
        rings.append(numbers.reshape(-1, 2).tolist())
        place += 4 + 16 * n_points
    return {"type": "Polygon", "coordinates": rings}


class Times(NamedTuple):
    """Processor time per row of several calls in microseconds, and its least share."""

    microseconds: dict[str, float]
    cpu_share: float


def time_per_row(calls: dict[str, tuple[Callable[[Any], Any], NDArray[Any]]]) -> Times:
    """Time functions of rows in turns, each on as many of its rows as it can take.

    With one thread, processor time is what an idle computer takes.
    """
    sizes, timed = [], []
    for predict, rows in calls.values():
        part = rows[: affordable_rows(predict, rows, seconds=BATCH_SECONDS)]
        sizes.append(len(part))
        timed.append(lambda predict=predict, part=part: predict(part))
    runs = time_in_turns(timed, n_turns=N_TURNS, turn_seconds=TURN_SECONDS)
    seconds = [run.seconds * run.cpu_share / n for run, n in zip(runs, sizes, strict=True)]
    microseconds = dict(zip(calls, (1e6 * value for value in seconds), strict=True))
    return Times(microseconds, min(run.cpu_share for run in runs))


def bare_product(
    vectors: Array, rows: Array, *, block_products: int, has_exponentials: bool
) -> Callable[[NDArray[Any]], None]:
    """Return a function that multiplies rows with vectors in float32, block by block.

    The vectors are scaled so that no exponential overflows, which would take other times.
    """
    largest = float(np.abs(rows @ vectors.T).max(initial=1.0))
    columns = np.ascontiguousarray((vectors / largest).T, np.float32)
    n_rows = max(16, block_products // len(vectors))
    block = np.empty((n_rows, len(vectors)), np.float32)

    def multiply(rows: NDArray[Any]) -> None:
        for start in range(0, len(rows), n_rows):
            part = rows[start : start + n_rows]
            products = np.dot(part, columns, out=block[: len(part)])
            if has_exponentials:
                np.exp(products, out=products)

    return multiply


def _plan_sums(args: argparse.Namespace) -> list[tuple[Any, ...]]:
    """Return the paper's datasets."""
    return [(entry.name,) for entry in list_datasets()]


def measure_sums(args: argparse.Namespace, name: str) -> SumsRow:
    """Compare the exact sums of an SVM with its labels, and with other programs' times."""
    case = load_case(name, args.cache)
    problem, rows = case.problem, case.test_rows
    fast = accelerate(case.model, scheme="exact")
    svm = svm_from_sklearn(case.svm)
    is_near = deciding_margins(svm, rows) <= NEAR
    is_different = fast.predict(problem.X_test) != case.labels
    calls = {
        "svc": (case.svm.predict, case.batch(np.float64, is_raw=False)),
        "intelex": (case.intelex.predict, case.batch(np.float32, is_raw=False)),
        "limes": (fast.predict, case.batch(np.float32)),
        "limes_float64": (fast.predict, case.batch(np.float64)),
    }
    for size in BLOCK_PRODUCTS:
        for kind in ("product", "product_and_exponentials"):
            multiply = bare_product(
                case.svm.support_vectors_,
                rows[:1000],
                block_products=size,
                has_exponentials=kind != "product",
            )
            calls[f"{kind} {size}"] = (multiply, calls["intelex"][1])
    times = time_per_row(calls)
    return SumsRow(
        dataset=name,
        n_test=len(rows),
        n_features=problem.X_test.shape[1],
        n_classes=len(case.svm.classes_),
        n_support=len(case.svm.support_),
        n_near=int(is_near.sum()),
        near_rows=" ".join(map(str, np.flatnonzero(is_near))),
        n_different=int((is_different & ~is_near).sum()),
        probability_difference=probability_difference(case, is_calibrated=False),
        calibrated_difference=probability_difference(case, is_calibrated=True),
        uncertain_share=uncertain_share(svm, rows),
        **{name: times.microseconds[name] for name in list(calls)[:4]},
        **{
            kind: min(times.microseconds[f"{kind} {size}"] for size in BLOCK_PRODUCTS)
            for kind in ("product", "product_and_exponentials")
        },
        cpu_share=times.cpu_share,
    )


def deciding_margins(svm: TrainedSvm, X: Array) -> Array:
    """Return the least |f| / sum |alpha| K among the pairs of each row's winner, in float64."""
    values = np.abs(decisions := svm.pair_decisions(X))
    winner = np.argmax(count_votes_like_libsvm(decisions), axis=1)
    absolute = replace(
        svm, dual_coef=-np.abs(svm.dual_coef), intercepts=np.zeros_like(svm.intercepts)
    )
    sizes = absolute.pair_decisions(X)
    # Far from all vectors the sum is 0 and the intercept decides, without any rounding.
    margins = np.divide(values, sizes, out=np.full_like(values, np.inf), where=sizes > 0)
    pairs = np.array(class_pairs(svm.n_classes))
    has_winner = (pairs[None] == winner[:, None, None]).any(axis=2)
    return np.where(has_winner, margins, np.inf).min(axis=1)


def probability_difference(case: Case, *, is_calibrated: bool) -> float | None:
    """Return the largest difference of a probability from those of an SVC that has them."""
    if case.problem.name not in WITH_PROBABILITIES:
        return None

    def train() -> Any:
        svm = svc(case.problem)
        source = (
            CalibratedClassifierCV(svm, ensemble=False)
            if is_calibrated
            else svm.set_params(probability=True, random_state=0)
        )
        with warnings.catch_warnings():
            # scikit-learn 1.9 deprecates ``probability=True``.
            warnings.simplefilter("ignore", FutureWarning)
            return source.fit(case.problem.train_rows(np.float64), case.problem.y_train)

    source = case.stored("calibrated" if is_calibrated else "probability", train)
    fast = accelerate(make_pipeline(case.problem.scaler, source), scheme="exact")
    differences = fast.predict_proba(case.problem.X_test) - source.predict_proba(case.test_rows)
    return float(np.abs(differences).max())


def uncertain_share(svm: TrainedSvm, X: Array) -> float:
    """Return the share of rows that the float32 sums do not decide."""
    sums = ExactSums(
        svm.vectors,
        svm.n_support,
        svm.dual_coef,
        svm.intercepts,
        kernel=svm.kernel.name,
        gamma=svm.kernel.gamma,
        degree=svm.kernel.degree,
        coef0=svm.kernel.coef0,
    )
    return float(sums.count_uncertain(X) / len(X))


def _plan_agreement(args: argparse.Namespace) -> list[tuple[Any, ...]]:
    """Return datasets and scenes with each required agreement."""
    return [(name, required) for name in (*AGREEMENT_DATASETS, *SCENES) for required in REQUIRED]


def _plan_scenes(args: argparse.Namespace) -> list[tuple[Any, ...]]:
    """Return the scenes without a required agreement."""
    return [(name, None) for name in SCENES]


def measure_agreement(args: argparse.Namespace, name: str, required: float | None) -> AgreementRow:
    """Accelerate an SVM, and compare labels on rows that the fit did not get."""
    case = load_case(name, args.cache)
    problem = case.problem
    given = problem.X_train
    if name in SCENES and required is not None:
        places = np.random.default_rng(0).permutation(len(problem.X_test))[:N_GIVEN_PIXELS]
        given = problem.X_test[places]
    start = time.process_time()
    fast = accelerate(case.model, given, min_agreement=required, random_state=0)
    fit_seconds = time.process_time() - start
    n_different = int(np.sum(fast.predict(problem.X_test) != case.labels))
    times = time_per_row(
        {
            "svc": (case.svm.predict, case.batch(np.float64, is_raw=False)),
            "intelex": (case.intelex.predict, case.batch(np.float32, is_raw=False)),
            "limes": (fast.predict, case.batch(np.float32)),
        }
    )
    return AgreementRow(
        case=name,
        svm=case.parameters,
        required=required,
        n_given=len(given),
        n_test=len(problem.X_test),
        n_features=problem.X_test.shape[1],
        n_support=len(case.svm.support_),
        scheme=fast.scheme_.name,
        cost=fast.cost_,
        fallback_share=fast.fallback_share_,
        agreement_estimated=fast.agreement_,
        coverage_agreement=_finite(fast.coverage_agreement_),
        agreement=1 - n_different / len(problem.X_test),
        n_different=n_different,
        **times.microseconds,
        fit_seconds=fit_seconds,
        cpu_share=times.cpu_share,
    )


def _finite(value: float) -> float | None:
    """Return None for a number that was not measured."""
    return float(value) if math.isfinite(value) else None


def _plan_default(args: argparse.Namespace) -> list[tuple[Any, ...]]:
    """Return the paper's datasets and seeds, if there is a version to compare with."""
    if args.before is None:
        print("default: left out, --before names the version to compare with", flush=True)
        return []
    return [(entry.name, seed) for entry in list_datasets() for seed in range(args.seeds)]


def measure_default(args: argparse.Namespace, name: str, seed: int) -> DefaultRow:
    """Accelerate an SVM with the default settings of two versions, and predict in turns."""
    case = load_case(name, args.cache)
    problem, batch = case.problem, case.batch(np.float32)
    start = time.process_time()
    fast = accelerate(case.model, problem.X_train, random_state=seed)
    fit_seconds = time.process_time() - start
    task = FitTask(case.model, problem.X_train, problem.X_test, {"random_state": seed})
    with fit_process(Installation(args.before), [task], batch=batch) as process:
        times = _time_with_earlier(case, fast, batch, process)
        (before,) = process.results
    labels = {"source": case.labels, "before": before.labels, "": fast.predict(problem.X_test)}
    skill = {key: uncertainty_coefficient(problem.y_test, value) for key, value in labels.items()}
    return DefaultRow(
        dataset=name,
        seed=seed,
        n_test=len(problem.X_test),
        n_support=len(case.svm.support_),
        source_skill=skill["source"],
        skill_before=skill["before"],
        skill=skill[""],
        agreement_before=float(np.mean(before.labels == case.labels)),
        agreement=float(np.mean(labels[""] == case.labels)),
        scheme=fast.scheme_.name,
        cost=fast.cost_,
        fallback_share=fast.fallback_share_,
        **times.microseconds,
        fit_seconds_before=before.fit_seconds,
        fit_seconds=fit_seconds,
        cpu_share=times.cpu_share,
    )


def _time_with_earlier(
    case: Case, fast: BordersClassifier, batch: NDArray[Any], before: FitProcess
) -> Times:
    """Time SVC, the other version's model and this one's in turns."""
    rows = case.batch(np.float64, is_raw=False)
    rows = rows[: affordable_rows(case.svm.predict, rows, seconds=BATCH_SECONDS)]
    calls = {
        "svc": (lambda: case.svm.predict(rows), len(rows)),
        "limes": (lambda: fast.predict(batch), len(batch)),
    }
    best: dict[str, tuple[float, float]] = {}
    for _ in range(N_TURNS):
        runs = {"limes_before": before.run()}
        for name, (call, size) in calls.items():
            (run,) = time_in_turns([call], n_turns=1, turn_seconds=TURN_SECONDS)
            runs[name] = (run.seconds * run.cpu_share / size * 1e6, run.cpu_share)
        best = {name: min(run, best.get(name, run)) for name, run in runs.items()}
    microseconds = {name: run[0] for name, run in best.items()}
    return Times(microseconds, min(run[1] for run in best.values()))


def _plan_fit(args: argparse.Namespace) -> list[tuple[Any, ...]]:
    """Return the small SVMs."""
    return [(name,) for name in FIT_CASES]


def measure_fit(args: argparse.Namespace, name: str) -> FitRow:
    """Measure the processor time of ``accelerate`` for a small SVM."""
    case = load_case(name, args.cache)
    seconds = []
    for _ in range(N_FITS):
        start = time.process_time()
        fast = accelerate(case.model, case.problem.X_train)
        seconds.append(time.process_time() - start)
    return FitRow(name, len(case.svm.support_), fast.scheme_.name, max(seconds))


# Files of rows, in the order of `Rows`.
FILES: dict[str, type[Any]] = {
    "sums.csv": SumsRow,
    "agreement.csv": AgreementRow,
    "default.csv": DefaultRow,
    "fit.csv": FitRow,
}


def _agreement_key(row: AgreementRow) -> tuple[Any, ...]:
    """Return what identifies a comparison of labels."""
    return row.case, row.required


PARTS = {
    "sums": Part("sums.csv", _plan_sums, measure_sums, lambda row: (row.dataset,)),
    "agreement": Part("agreement.csv", _plan_agreement, measure_agreement, _agreement_key),
    "scenes": Part("agreement.csv", _plan_scenes, measure_agreement, _agreement_key),
    "default": Part(
        "default.csv", _plan_default, measure_default, lambda row: (row.dataset, row.seed)
    ),
    "fit": Part("fit.csv", _plan_fit, measure_fit, lambda row: (row.case,)),
}


if __name__ == "__main__":
    main()
