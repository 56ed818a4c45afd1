"""Record what limes predicts, and check that a refactoring changes none of it.

Each case fits a small problem with fixed seeds, or calls a function, and records arrays: labels,
probabilities, candidates, and the predictions of exported models. ``FILE.json`` has a hash of each
array, ``FILE.npz`` the arrays, so that differences can be counted.

    python benchmarks/behaviour.py write FILE.json
    python benchmarks/behaviour.py compare FILE.json
    python benchmarks/behaviour.py compare FILE.json --quick
    python benchmarks/behaviour.py compare FILE.json --only 'digits*'
    python benchmarks/behaviour.py compare FILE.json --probabilities-to-ulps 1

Run ``write`` and ``compare`` on the same computer, with the same versions of NumPy, SciPy and
scikit-learn, and with the same SIMD level. ``compare`` exits with 1 if anything differs.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import cache, partial
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, make_blobs, make_classification, make_moons
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC

Arrays = dict[str, NDArray[Any]]

# Set before anything is imported, by running the script a second time.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
ENVIRONMENT = {"OPENBLAS_CORETYPE": "Haswell", "PYTHONHASHSEED": "0"}
LEVEL_VARIABLES = ("LIMES_CPU", "LIMES_SIMD")

# Names that are not public, with the modules that have held them, the oldest first.
MODULES = {
    "to_c": ("limes.export.c",),
    "to_onnx": ("limes.export.onnx",),
    "to_libagf": ("limes.export.libagf",),
    "read_rows": ("limes.files",),
    "create_rows": ("limes.files",),
    "find_borders": ("limes.roots", "limes.fit.borders"),
    "fit_sigmoid": ("limes.platt", "limes.sources.platt"),
    "couple": ("limes.coupling", "limes.model.coupling"),
    "count_votes": ("limes.coupling", "limes.model.coupling"),
    "solve_bandwidths": ("limes.agf.bandwidths",),
    "read_source": ("limes.source_file", "limes.saved_source"),
    "write_source": ("limes.source_file", "limes.saved_source"),
    "sample_classes": ("limes.datasets.sample_classes", "limes.datasets"),
    "standardizer": ("limes.preprocessing", "limes.libsvm.training"),
    "main": ("limes.cli.main",),
}
# Fields of a candidate: the old name, then the new one.
CANDIDATE_FIELDS = (
    ("scheme",),
    ("n_borders",),
    ("blend",),
    ("cost",),
    ("agreement",),
    ("error", "agreement_error"),
    ("is_chosen", "is_selected"),
    ("lost", "skill_loss"),
)
ATTRIBUTES = ("agreement_", "agreement_error_", "cost_", "n_borders_", "placement_", "classes_")

DATA = Path(__file__).parent.parent / "tests" / "data"

# Reads rows, writes the class index and the probabilities of each.
C_MAIN = """
#include <stdio.h>
#define LIMES_MODEL_PROBABILITIES
#include "model.h"
int main(void) {
    limes_model_real x[LIMES_MODEL_FEATURES], p[LIMES_MODEL_CLASSES];
    while (fread(x, sizeof x, 1, stdin) == 1) {
        int found = limes_model_predict(x);
        if (found != limes_model_probabilities(x, p)) return 1;
        fwrite(&found, sizeof found, 1, stdout);
        fwrite(p, sizeof p, 1, stdout);
    }
    return 0;
}
"""
C_OPTIONS = ("-std=c99", "-O2", "-ffp-contract=off")


def find(name: str) -> Any:
    """Import a name from the first of its modules that has it."""
    errors = []
    for module in MODULES[name]:
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            errors.append(str(error))
    raise ImportError(f"{name!r} is in none of its MODULES, add the new one: {errors}")


def read_attribute(holder: Any, *names: str) -> Any:
    """Return the first attribute that an object has."""
    for name in names:
        if hasattr(holder, name):
            return getattr(holder, name)
    raise AttributeError(f"{type(holder).__name__} has none of the attributes {names}.")


@dataclass(frozen=True)
class Problem:
    """Training rows with labels, and rows to predict."""

    X: NDArray[Any]
    y: NDArray[Any]
    queries: NDArray[Any]


def split(X: NDArray[Any], y: NDArray[Any], n_train: int) -> Problem:
    """Train on the first rows; query the others, and rows between two of them."""
    rest, rng = X[n_train:], np.random.default_rng(0)
    first, second = rng.integers(len(rest), size=(2, len(rest)))
    share = rng.uniform(size=(len(rest), 1))
    between = share * rest[first] + (1 - share) * rest[second]
    return Problem(X[:n_train], y[:n_train], np.concatenate([rest, between]))


@cache
def moons(n_train: int = 300) -> Problem:
    """Two classes with a curved border."""
    return split(*make_moons(900, noise=0.25, random_state=0), n_train)


@cache
def blobs(n_classes: int = 3, n_features: int = 3, n_train: int = 300) -> Problem:
    """Overlapping classes with whole numbers as labels, which are not 0, 1, 2 …."""
    X, y = make_blobs(
        n_train + 400,
        n_features=n_features,
        centers=n_classes,
        cluster_std=2.0,
        center_box=(-4, 4),
        random_state=3,
    )
    return split(X, 3 * y - 4, n_train)


@cache
def trees() -> Problem:
    """Three classes with text as labels."""
    problem = blobs()
    names = np.array(["ash", "birch", "cèdre"])[(problem.y + 4) // 3]
    return Problem(problem.X, names, problem.queries)


@cache
def digits() -> Problem:
    """Ten classes of 64 features, which are reduced to principal components."""
    X, y = load_digits(return_X_y=True)
    return split(X / 16, y, 350)


@cache
def letters() -> Problem:
    """Twenty-six classes in six features."""
    return blobs(26, 6, 400)


@cache
def wide() -> Problem:
    """Two classes of 60 features."""
    X, y = make_classification(
        700, n_features=60, n_informative=12, n_redundant=10, class_sep=2.0, random_state=5
    )
    return split(X, y, 300)


@cache
def categories() -> Problem:
    """Two continuous features, a binary one and one with four values."""
    rng = np.random.default_rng(7)
    moon = moons()
    X = np.concatenate([moon.X, moon.queries])
    y = np.concatenate([moon.y, np.zeros(len(moon.queries), int)])
    columns = rng.integers([2, 4], size=(len(X), 2))
    return split(np.hstack([X, columns]), y ^ (columns[:, 0] & (columns[:, 1] > 1)), len(moon.X))


@cache
def counts() -> Problem:
    """Three classes of sparse counts in thirty features."""
    rng = np.random.default_rng(9)
    y = rng.integers(3, size=600)
    rates = rng.gamma(0.25, 1.0, size=(3, 30))
    return split(rng.poisson(rates[y]).astype(float), y, 300)


@cache
def far_units() -> Problem:
    """Four classes in eight features of different units, one of them far from zero."""
    problem = blobs(4, 8)
    scale, shift = np.linspace(1, 50, 8), np.linspace(0, 2000, 8)
    return Problem(problem.X * scale + shift, problem.y, problem.queries * scale + shift)


def curve(rows: NDArray[Any]) -> NDArray[Any]:
    """Return the decision values of a source that is a plain function."""
    return np.sin(2 * rows[:, 0]) + 0.5 - rows[:, 1]


def three_scores(rows: NDArray[Any]) -> NDArray[Any]:
    """Return one score for each of three classes."""
    return np.stack([rows[:, 0], np.cos(rows[:, 1]) * rows[:, 0], rows[:, 2]], axis=1)


def keep(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function as a source that needs no training."""
    return lambda X, y: function


def trained(model: Any) -> Callable[..., Any]:
    """Return what trains a classifier."""
    return model.fit


def libsvm_file(X: NDArray[Any], y: NDArray[Any], *, sigmoids: bool = False) -> Any:
    """Return a source read from a LIBSVM model file, with or without probabilities."""
    limes = import_module("limes")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "source.model")
        limes.write_libsvm_model(SVC(C=5, gamma=0.1).fit(X, y), path)
        if sigmoids:
            n_pairs = len(np.unique(y)) * (len(np.unique(y)) - 1) // 2
            slopes = " ".join(str(-1.5 - 0.25 * pair) for pair in range(n_pairs))
            offsets = " ".join(str(0.125 * pair - 0.1) for pair in range(n_pairs))
            text = path.read_text()
            path.write_text(text.replace("nr_sv", f"probA {slopes}\nprobB {offsets}\nnr_sv"))
        return limes.read_libsvm_model(path)


def estimator(name: str, **options: Any) -> Callable[..., Any]:
    """Return what trains one of limes' own estimators."""
    return lambda X, y: getattr(import_module("limes"), name)(**options).fit(X, y)


def accelerate(source: Callable[..., Any], problem: Problem, options: dict[str, Any]) -> Any:
    """Replace a trained source, without labels."""
    model = source(problem.X, problem.y)
    return import_module("limes").accelerate(model, problem.X, **options)


def accelerate_labelled(
    source: Callable[..., Any], problem: Problem, options: dict[str, Any]
) -> Any:
    """Replace a trained source, with the labels of the rows."""
    model = source(problem.X, problem.y)
    return import_module("limes").accelerate(model, problem.X, problem.y, **options)


def accelerate_without_rows(
    source: Callable[..., Any], problem: Problem, options: dict[str, Any]
) -> Any:
    """Replace a trained source by what it keeps of its training rows."""
    return import_module("limes").accelerate(source(problem.X, problem.y), **options)


def accelerate_sparse(source: Callable[..., Any], problem: Problem, options: dict[str, Any]) -> Any:
    """Replace a source that was trained on sparse rows."""
    X = sparse.csr_matrix(problem.X)
    return import_module("limes").accelerate(source(X, problem.y), X, **options)


def fit_estimator(source: Callable[..., Any], problem: Problem, options: dict[str, Any]) -> Any:
    """Fit as a scikit-learn classifier, which trains the source too."""
    model = source.__self__  # type: ignore[attr-defined]
    fast = import_module("limes").BordersClassifier(model, **options)
    return fast.fit(problem.X, problem.y)


@dataclass(frozen=True)
class FitCase:
    """A problem, a source, and the options of its replacement."""

    name: str
    problem: Callable[[], Problem]
    source: Callable[..., Any]
    options: dict[str, Any] = field(default_factory=dict)
    exports: tuple[str, ...] = ()
    is_quick: bool = False
    fit: Callable[..., Any] = accelerate

    def run(self) -> Arrays:
        """Fit, and return everything that can be observed."""
        problem = self.problem()
        fast = self.fit(self.source, problem, {"random_state": 0, "n_jobs": 1} | self.options)
        found = describe_fit(fast) | predict_all(fast, problem.queries)
        for export in self.exports:
            found |= EXPORTS[export](fast, problem.queries)
        return found


SVC_MOONS = trained(SVC(C=5, gamma=2))
SVC_BLOBS = trained(SVC(C=5, gamma=0.1))
SVC_DIGITS = trained(SVC(C=5, gamma=0.3))
SVC_LETTERS = trained(SVC(C=5, gamma=0.05))
SCALED = trained(make_pipeline(StandardScaler(), SVC(C=5, gamma=0.2)))
PROJECTED = trained(make_pipeline(StandardScaler(), PCA(3), SVC(C=5, gamma=0.3)))
ALL = ("c", "onnx", "file")
PAPER = {
    "scheme": "pairwise",
    "n_borders": 100,
    "placement": "random",
    "blend": 1,
    "refine": False,
    "border": "probability",
}

FITS = (
    FitCase("moons", moons, SVC_MOONS, {}, ALL),
    FitCase("moons_fixed", moons, SVC_MOONS, {"n_borders": 20}, ALL, True),
    FitCase("moons_one_point", moons, SVC_MOONS, {"n_borders": 1}, ("c",), True),
    FitCase("moons_paper", moons, SVC_MOONS, PAPER, ("c", "libagf"), True),
    FitCase("moons_double", moons, SVC_MOONS, {"n_borders": 20, "dtype": "float64"}, ALL, True),
    FitCase("moons_threshold", moons, SVC_MOONS, {"n_borders": 20, "threshold": 0.4}),
    FitCase("moons_threshold_points", moons, SVC_MOONS, PAPER | {"threshold": -0.3}, (), True),
    FitCase("moons_probability", moons, SVC_MOONS, {"n_borders": 20, "border": "probability"}),
    FitCase("moons_estimator", moons, SVC_MOONS, {"n_borders": 12}, (), True, fit_estimator),
    FitCase("moons_points", moons, SVC_MOONS, {"refine": False}, ("libagf",), True),
    FitCase("moons_rows_unknown", moons, SVC_MOONS, {}, (), fit=accelerate_without_rows),
    FitCase("moons_60_rows", partial(moons, 60), SVC_MOONS, {}, ("file",)),
    FitCase("trees", trees, SVC_BLOBS, {}, ALL),
    FitCase("trees_max_cost", trees, SVC_BLOBS, {"max_cost": 200}, ("c",), True),
    FitCase("trees_max_bytes", trees, SVC_BLOBS, {"max_bytes": 1024}, ("c",)),
    FitCase("trees_min_agreement", trees, SVC_BLOBS, {"min_agreement": 0.98}),
    FitCase("trees_labelled", trees, SVC_BLOBS, {"n_borders": 20}, fit=accelerate_labelled),
    FitCase("blobs_60_rows", partial(blobs, 3, 3, 60), SVC_BLOBS, {"n_borders": 16}),
    FitCase("blobs_paper", blobs, SVC_BLOBS, PAPER, ("c", "onnx", "file", "libagf"), True),
    FitCase("blobs_pairwise", blobs, SVC_BLOBS, {"scheme": "pairwise"}, ALL),
    FitCase(
        "blobs_pairwise_near",
        blobs,
        SVC_BLOBS,
        {"scheme": "pairwise", "placement": "near", "n_borders": 30, "blend": 3},
        ("onnx",),
    ),
    FitCase("blobs_mixed", blobs, SVC_BLOBS, PAPER | {"placement": "mixed"}),
    FitCase("blobs_dense", blobs, SVC_BLOBS, PAPER | {"placement": "dense", "blend": 2}),
    FitCase("blobs_one_vs_rest", blobs, SVC_BLOBS, {"scheme": "one-vs-rest"}, ALL, True),
    FitCase(
        "blobs_one_vs_rest_blended",
        blobs,
        SVC_BLOBS,
        {"scheme": "one-vs-rest", "blend": 3, "n_borders": 40, "refine": False},
        ("c",),
    ),
    FitCase("blobs_shared_nearest", blobs, SVC_BLOBS, {"n_borders": 30, "blend": 1}, ALL),
    FitCase("blobs_shared_blend_2", blobs, SVC_BLOBS, {"scheme": "shared", "blend": 2}),
    FitCase("units_shortlist", far_units, SCALED, {"scheme": "shortlist"}, ALL),
    FitCase(
        "blobs_shortlist_points",
        partial(blobs, 5),
        SVC_BLOBS,
        {"scheme": "shortlist", "refine": False, "n_borders": 20},
        ALL,
    ),
    FitCase("units_tree", far_units, SCALED, {"scheme": "tree"}, ALL, True),
    FitCase("blobs_tree_points", blobs, SVC_BLOBS, {"scheme": "tree", "refine": False}, ALL),
    FitCase("pipeline", far_units, PROJECTED, {}, ALL),
    FitCase("pipeline_paper", far_units, PROJECTED, PAPER, ("c", "libagf_scaled")),
    FitCase("pipeline_scaler", far_units, SCALED, {"n_borders": 24, "dtype": "float64"}, ALL),
    FitCase("digits", digits, SVC_DIGITS, {}, ALL),
    FitCase("digits_paper", digits, SVC_DIGITS, PAPER | {"n_borders": 20}),
    FitCase("wide", wide, trained(SVC(C=5, gamma=0.01)), {"n_borders": 32}, ("c", "onnx")),
    FitCase("letters", letters, SVC_LETTERS, {}, ALL),
    FitCase("letters_fixed", letters, SVC_LETTERS, {"n_borders": 128}),
    FitCase("letters_max_cost", letters, SVC_LETTERS, {"max_cost": 1200}),
    FitCase("letters_shortlist", letters, SVC_LETTERS, {"scheme": "shortlist", "n_borders": 4}),
    FitCase("letters_tree", letters, SVC_LETTERS, {"scheme": "tree", "n_borders": 6}, ("c",)),
    FitCase("letters_pairwise", letters, SVC_LETTERS, PAPER | {"n_borders": 5}, ("libagf",)),
    FitCase("categories", categories, trained(SVC(C=5, gamma=1)), {"n_borders": 48}, (), True),
    FitCase("sparse", counts, SVC_BLOBS, {"n_borders": 24}, (), True, accelerate_sparse),
    FitCase("sparse_paper", counts, SVC_BLOBS, PAPER, fit=accelerate_sparse),
    FitCase("poly", blobs, trained(SVC(kernel="poly", degree=2, coef0=1.0)), {"n_borders": 20}),
    FitCase("sigmoid", moons, trained(SVC(kernel="sigmoid", gamma=0.2, C=10)), PAPER),
    FitCase("libsvm", blobs, libsvm_file, {"n_borders": 24}, ("c",), True),
    FitCase("libsvm_sigmoids", blobs, partial(libsvm_file, sigmoids=True), PAPER, (), True),
    FitCase("nu_svc", blobs, trained(NuSVC(nu=0.2, gamma=0.1)), {"n_borders": 24}),
    FitCase("linear_svc", blobs, trained(LinearSVC(random_state=0)), {"n_borders": 8}),
    FitCase("logistic", trees, trained(LogisticRegression()), {}, ("c", "onnx"), True),
    FitCase("neighbours", blobs, trained(KNeighborsClassifier(15)), {"n_borders": 24}),
    FitCase("neighbours_points", moons, trained(KNeighborsClassifier(15)), PAPER),
    FitCase(
        "naive_bayes",
        partial(blobs, 4),
        trained(GaussianNB()),
        {"scheme": "pairwise", "n_borders": 20, "blend": 2},
        ALL,
        True,
    ),
    FitCase("function", moons, keep(curve), {"n_borders": 24}, ("file",), True),
    FitCase("function_scores", blobs, keep(three_scores), {"n_borders": 24}),
    FitCase(
        "calibrated",
        moons,
        trained(CalibratedClassifierCV(SVC(gamma=2), cv=3)),
        {"n_borders": 24},
    ),
    FitCase(
        "calibrated_three",
        blobs,
        trained(CalibratedClassifierCV(SVC(gamma=0.1), cv=2, ensemble=False)),
        {"n_borders": 16},
    ),
    FitCase(
        "gaussian_process",
        partial(moons, 80),
        trained(GaussianProcessClassifier(1.0 * RBF(0.7), optimizer=None)),
        {"n_borders": 24},
        (),
        True,
    ),
    FitCase(
        "gaussian_process_three",
        partial(blobs, 3, 3, 80),
        trained(GaussianProcessClassifier(2.0 * RBF(2.0), optimizer=None)),
        PAPER | {"n_borders": 30},
    ),
    FitCase("agf", moons, estimator("AGFClassifier"), {"n_borders": 24}),
    FitCase("agf_three", blobs, estimator("AGFClassifier", n_neighbors=40), PAPER),
    FitCase("kernel_density", blobs, estimator("KernelDensityClassifier"), {"n_borders": 16}),
)


def describe_fit(fast: Any) -> Arrays:
    """Return the attributes of a fitted model, and its candidates."""
    found = {name: as_array(getattr(fast, name)) for name in ATTRIBUTES if hasattr(fast, name)}
    lines = [
        " ".join(repr(_plain(read_attribute(one, *names))) for names in CANDIDATE_FIELDS)
        for one in read_attribute(fast, "tradeoff_", "candidates_") or ()
    ]
    return found | {"candidates": np.array(lines, dtype=str)}


def predict_all(fast: Any, queries: NDArray[Any]) -> Arrays:
    """Return labels and probabilities of rows in every form that is accepted."""
    probabilities = fast.predict_proba(queries)
    decision = fast.decision_function(queries)
    single = queries.astype(np.float32)
    predict_one = fast.predictor()
    # Up to the largest float32, where sums overflow.
    far = queries[:50] / np.abs(queries[:50]).max() * np.logspace(1, 38, 50)[:, None]
    # Above two classes the decision values are the logarithms of the probabilities.
    name = "decision" if decision.ndim == 1 else "log_probabilities"
    return {
        "labels": as_array(fast.predict(queries)),
        "probabilities": probabilities,
        name: decision,
        "labels_float32": as_array(fast.predict(single)),
        "probabilities_float32": fast.predict_proba(single),
        "labels_sparse": as_array(fast.predict(sparse.csr_matrix(queries[:100]))),
        "labels_far": as_array(fast.predict(far)),
        "probabilities_far": fast.predict_proba(far),
        "labels_one_row": as_array([predict_one(row) for row in single[:100]]),
    }


def run_c(fast: Any, queries: NDArray[Any]) -> Arrays:
    """Compile the exported C, and return its predictions."""
    dtype = np.dtype(fast.dtype)
    record = np.dtype([("index", np.intc), ("p", dtype, (len(fast.classes_),))])
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "model.h").write_text(find("to_c")(fast), encoding="utf-8")
        Path(folder, "main.c").write_text(C_MAIN)
        compiler = shutil.which("cc") or "gcc"
        command = [compiler, *C_OPTIONS, "main.c", "-lm", "-o", "main"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        rows = np.ascontiguousarray(queries, dtype).tobytes()
        done = subprocess.run([Path(folder, "main")], input=rows, capture_output=True, check=True)
    found = np.frombuffer(done.stdout, record)
    return {"c_labels": found["index"].copy(), "c_probabilities": found["p"].copy()}


def run_onnx(fast: Any, queries: NDArray[Any]) -> Arrays:
    """Return the predictions of the exported ONNX model."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        find("to_onnx")(fast).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    labels, probabilities = session.run(
        ["label", "probabilities"], {"X": np.ascontiguousarray(queries, fast.dtype)}
    )
    return {"onnx_labels": as_array(labels), "onnx_probabilities": probabilities}


def run_libagf(fast: Any, queries: NDArray[Any], *, scaled: bool = False) -> Arrays:
    """Return the predictions of the exported libAGF text, read again."""
    limes = import_module("limes")
    if scaled:
        queries = fast.estimator_[:-1].transform(queries)
    found: Arrays = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.agf")
        path.write_text(find("to_libagf")(fast, scaled=scaled))
        for by_vote in (False, True):
            again = limes.read_libagf_model(path, by_vote=by_vote)
            found[f"libagf_labels_{by_vote}"] = as_array(again.predict(queries))
            found[f"libagf_probabilities_{by_vote}"] = again.predict_proba(queries)
    return found


def run_file(fast: Any, queries: NDArray[Any]) -> Arrays:
    """Return the predictions of the model file, read again."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.limes")
        fast.save(path)
        again = import_module("limes").load(path)
    found = describe_fit(again) | {
        "labels": as_array(again.predict(queries)),
        "probabilities": again.predict_proba(queries),
    }
    return {f"file_{name}": array for name, array in found.items()}


EXPORTS: dict[str, Callable[..., Arrays]] = {
    "c": run_c,
    "onnx": run_onnx,
    "libagf": run_libagf,
    "libagf_scaled": partial(run_libagf, scaled=True),
    "file": run_file,
}


def check_version_1() -> Arrays:
    """Return the predictions of a model file of format 1."""
    fast = import_module("limes").load(DATA / "version_1.limes")
    rows = np.random.default_rng(0).normal(scale=4.0, size=(300, 3))
    found = describe_fit(fast) | {"names": as_array(fast.feature_names_in_)}
    # Computed from the maps of a loaded model since format 2, read from the file before.
    found = {name: value for name, value in found.items() if name not in ("cost_", "placement_")}
    return found | {
        "labels": as_array(fast.predict(rows)),
        "probabilities": fast.predict_proba(rows),
        "log_probabilities": fast.decision_function(rows),
    }


def check_scores() -> Arrays:
    """Return every score of some random labels and probabilities."""
    scores = import_module("limes.scores")
    rng = np.random.default_rng(1)
    true, predicted = rng.integers(4, size=(2, 500))
    predicted = np.where(rng.uniform(size=500) < 0.7, true, predicted)
    shares = rng.dirichlet(np.ones(4), size=500)
    counted = scores.confusion_matrix(true, predicted)
    return {
        "uncertainty": as_array(scores.uncertainty_coefficient(true, predicted)),
        "uncertainty_of_counts": as_array(scores.uncertainty_of_counts(counted)),
        "agreement": as_array(scores.agreement(true, predicted)),
        "brier": as_array(scores.brier_score(true, shares, classes=[2, 0, 3, 1])),
        "confidence": scores.confidence_rating(shares),
    }


def check_subsample() -> Arrays:
    """Return which rows are chosen, and the sizes of classes."""
    subsample = import_module("limes.subsample")
    y = np.repeat(["a", "b", "c"], [7, 60, 333])
    found: Arrays = {
        f"{method}_{fraction}": subsample.subsample_rows(y, fraction, method=method, random_state=4)
        for method in ("proportional", "power")
        for fraction in (0.1, 0.45)
    }
    found["power_sizes"] = subsample.power_law_sizes([12, 700, 9000], 0.2)
    found["proportional_sizes"] = subsample.proportional_sizes([12, 700, 9000], 0.2)
    return found


def check_row_files() -> Arrays:
    """Return rows and text of files that are written and read again."""
    create_rows, read_rows = find("create_rows"), find("read_rows")
    problem = counts()
    X, y = problem.X[:80] / 3, problem.y[:80]
    found: Arrays = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("rows.svm", "rows.csv", "rows.npz", "rows.vec"):
            path = Path(folder, name)
            with create_rows(path) as writer:
                writer.write(X[:50], y[:50])
                writer.write(X[50:], y[50:])
            rows, labels, _ = read_rows(path)
            found |= {name: _dense(rows), f"{name}_labels": as_array(labels)}
            if path.suffix in (".svm", ".csv"):
                found[f"{name}_text"] = as_array(path.read_text())
    return found


def check_libsvm_model() -> Arrays:
    """Return the predictions of LIBSVM model files, and the text of one."""
    limes = import_module("limes")
    problem = blobs()
    plain = libsvm_file(problem.X, problem.y)
    calibrated = libsvm_file(problem.X, problem.y, sigmoids=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "again.model")
        limes.write_libsvm_model(plain, path)
        text = path.read_text()
    return {
        "labels": as_array(plain.predict(problem.queries)),
        "decision": plain.decision_function(problem.queries),
        "probabilities": calibrated.predict_proba(problem.queries),
        "text": as_array(text),
    }


def check_agf() -> Arrays:
    """Return AGF densities, regression and class probabilities."""
    limes = import_module("limes")
    problem = moons()
    X, queries = problem.X, problem.queries[:200]
    target = np.sin(X[:, 0]) + X[:, 1]
    squared = np.square(np.random.default_rng(2).normal(size=(50, 30)))
    return {
        "density": limes.AGFDensity().fit(X).score_samples(queries),
        "neighbours_density": limes.NeighborsDensity().fit(X).score_samples(queries),
        "regression": limes.AGFRegressor().fit(X, target).predict(queries),
        "regression_near": limes.AGFRegressor(n_neighbors=20).fit(X, target).predict(queries),
        "probabilities": limes.AGFClassifier().fit(X, problem.y).predict_proba(queries),
        "probabilities_kernel": (
            limes.KernelDensityClassifier().fit(X, problem.y).predict_proba(queries)
        ),
        "bandwidths": find("solve_bandwidths")(squared, 4.0),
    }


class Ring:
    """A source whose border is the unit circle, under old and new method names."""

    def decision(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return decision values."""
        return np.square(rows).sum(axis=1) - 1.0

    def linearize(self, rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return decision values and gradients."""
        return self.decision(rows), 2.0 * rows

    decision_and_gradient = linearize


class Step(Ring):
    """A source that is piecewise constant."""

    def decision(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return decision values."""
        return np.sign(super().decision(rows))

    def linearize(self, rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return decision values and gradients, which are zero."""
        return self.decision(rows), np.zeros_like(rows)

    decision_and_gradient = linearize


def check_roots() -> Arrays:
    """Return border points and gradients of two known borders."""
    rng = np.random.default_rng(3)
    below = rng.uniform(-0.5, 0.5, size=(60, 2))
    angle = rng.uniform(0, 2 * np.pi, size=60)
    above = 2.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    found: Arrays = {}
    for source in (Ring(), Step()):
        points, gradients = find("find_borders")(source, below, above, tolerance=1e-5)
        name = type(source).__name__.lower()
        found |= {f"{name}_points": points, f"{name}_gradients": gradients}
    return found


def check_probability_rules() -> Arrays:
    """Return Platt's sigmoid, coupled probabilities and votes."""
    rng = np.random.default_rng(4)
    values = rng.normal(size=400)
    is_second = values + rng.normal(size=400) > 0.2
    pairs = 1 / (1 + np.exp(-rng.normal(size=(100, 10))))
    return {
        "sigmoid": as_array(find("fit_sigmoid")(values, is_second)),
        "probabilities": find("couple")(pairs),
        "votes": find("count_votes")(rng.normal(size=(100, 10)).round(1)),
    }


def check_border_map() -> Arrays:
    """Return decision values of a map made by hand, blended or not."""
    border_map = import_module("limes").BorderMap
    points, normals = np.random.default_rng(5).normal(size=(2, 40, 3))
    found: Arrays = {}
    for blend in (1, 2, 5):
        one = border_map.from_borders(points=points, normals=normals, blend=blend)
        decide = read_attribute(one, "decide", "decision_values")
        found[f"decision_{blend}"] = decide(blobs().queries)
    return found


def check_source_files() -> Arrays:
    """Return the predictions of trained sources that are written and read again."""
    problem = far_units()
    sources = {
        "scaled": trained(make_pipeline(find("standardizer")(), LinearSVC(random_state=0))),
        "libsvm": libsvm_file,
        "agf": estimator("AGFClassifier"),
        "kernel_density": estimator("KernelDensityClassifier"),
    }
    found: Arrays = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, source in sources.items():
            path = Path(folder, name)
            find("write_source")(source(problem.X, problem.y), path)
            model, _ = find("read_source")(path)
            found[f"{name}_labels"] = as_array(model.predict(problem.queries))
    return found


def check_command() -> Arrays:
    """Return the predictions that the command makes from files."""
    limes, problem = find("main"), blobs()
    with tempfile.TemporaryDirectory() as folder:
        rows, model, fast, output = (
            str(Path(folder, name)) for name in ("rows.svm", "svm.model", "fast.limes", "out.csv")
        )
        with find("create_rows")(rows) as writer:
            writer.write(problem.X, problem.y)
        commands = (
            ["train", "-q", "-g", "0.1", rows, "-o", model],
            ["accelerate", model, rows, "-o", fast, "-n", "12", "--seed", "3", "--jobs", "1"],
            ["predict", fast, rows, "-o", output, "--proba", "--jobs", "1"],
        )
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            statuses = [limes(command) for command in commands]
        text = Path(output).read_text().splitlines()[1:]
    table = np.array([line.split(",") for line in text], dtype=float)
    return {
        "statuses": as_array(statuses),
        "labels": table[:, 0].astype(int),
        "probabilities": table[:, 1:],
    }


def check_sample_classes() -> Arrays:
    """Return rows of the paper's two synthetic classes."""
    X, y = find("sample_classes")(300, random_state=6)
    return {"rows": X, "labels": y}


CHECKS: dict[str, Callable[[], Arrays]] = {
    "version_1": check_version_1,
    "scores": check_scores,
    "subsample": check_subsample,
    "row_files": check_row_files,
    "libsvm_model": check_libsvm_model,
    "agf_estimators": check_agf,
    "roots": check_roots,
    "probability_rules": check_probability_rules,
    "border_map": check_border_map,
    "source_files": check_source_files,
    "command": check_command,
    "sample_classes": check_sample_classes,
}


def as_array(value: Any) -> NDArray[Any]:
    """Return a value as an array that NumPy can store without pickle."""
    array = np.asarray(value)
    return array.astype(str) if array.dtype.kind == "O" else array


def _dense(rows: Any) -> NDArray[Any]:
    """Return rows as a dense array."""
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows)


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python value, whose text has every bit."""
    return value.item() if isinstance(value, np.generic) else value


def summarize(array: NDArray[Any]) -> str:
    """Return the value of a scalar, else a hash of type, shape and bytes."""
    if array.ndim == 0 and array.dtype.itemsize <= 64:
        return repr(array.item())
    head = f"{array.dtype.str} {array.shape} ".encode()
    return hashlib.sha256(head + np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def chosen_cases(only: str | None, quick: bool) -> Iterator[tuple[str, Callable[[], Arrays]]]:
    """Return the name and the function of each chosen case."""
    for case in FITS:
        if (case.is_quick or not quick) and fnmatch(case.name, only or "*"):
            yield case.name, case.run
    for name, check in CHECKS.items():
        if fnmatch(name, only or "*"):
            yield name, check


def record(only: str | None, quick: bool) -> dict[str, Arrays]:
    """Run the cases; an exception is recorded like a result."""
    found: dict[str, Arrays] = {}
    for name, run in chosen_cases(only, quick):
        start = time.process_time()
        try:
            found[name] = run()
        except (Exception, SystemExit) as error:
            found[name] = {"exception": as_array(f"{type(error).__name__}: {error}")}
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
        seconds = time.process_time() - start
        text = summarize_case(found[name])
        print(f"{name:26} {seconds:6.2f} s  {text}", file=sys.stderr, flush=True)
    return found


def summarize_case(arrays: Arrays) -> str:
    """Return one hash for all arrays of a case."""
    text = json.dumps({name: summarize(array) for name, array in sorted(arrays.items())})
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def write(path: Path, found: dict[str, Arrays], level: str) -> None:
    """Write hashes as JSON, and the arrays beside them."""
    limes = import_module("limes")
    hashes = {
        case: {name: summarize(array) for name, array in arrays.items()}
        for case, arrays in found.items()
    }
    about = {"limes": str(limes.__file__), "level": level, "numpy": np.__version__}
    path.write_text(json.dumps({"about": about, "cases": hashes}, indent=1) + "\n")
    flat = {f"{case}/{name}": one for case, arrays in found.items() for name, one in arrays.items()}
    np.savez_compressed(path.with_suffix(".npz"), **flat)


def compare(path: Path, found: dict[str, Arrays], level: str, max_ulps: int) -> list[str]:
    """Return the differences from a written file, one line each."""
    stored = json.loads(path.read_text())
    if stored["about"]["level"] != level:
        raise SystemExit(f"{path} was written with --level {stored['about']['level']}.")
    lines = []
    with np.load(path.with_suffix(".npz")) as old:
        for case, arrays in found.items():
            hashes = stored["cases"].get(case)
            if hashes is None:
                lines.append(f"{case}: not in {path}")
                continue
            for name in sorted({*hashes, *arrays}):
                if name not in arrays or name not in hashes:
                    lines.append(f"{case}/{name}: {'new' if name in arrays else 'missing'}")
                elif summarize(arrays[name]) != hashes[name]:
                    line = difference(name, old[f"{case}/{name}"], arrays[name], max_ulps)
                    lines += [f"{case}/{name}: {line}"] if line else []
    return lines


def difference(name: str, old: NDArray[Any], new: NDArray[Any], max_ulps: int) -> str:
    """Return how two arrays differ in words; nothing if it is within the tolerance."""
    if old.shape != new.shape or (old.dtype != new.dtype and old.dtype.kind != "U"):
        return f"{old.dtype}{list(old.shape)} became {new.dtype}{list(new.shape)}"
    if old.dtype.kind != "f":
        differs = np.flatnonzero(np.atleast_1d(old != new))
        first = differs[0] if len(differs) else 0
        values = [str(np.atleast_1d(one).flat[first])[:200] for one in (old, new)]
        return f"{len(differs)} of {old.size} differ, first {values[0]!r} became {values[1]!r}"
    is_logarithm = "log_probabilities" in name
    ulps = count_ulps(old, new, is_logarithm=is_logarithm)
    # Taking the logarithm rounds once more.
    allowed = max_ulps + int(is_logarithm and max_ulps > 0)
    if "probabilities" in name and ulps.max() <= allowed:
        return ""
    place = int(ulps.argmax())
    largest = f"{old.flat[place]!r} became {new.flat[place]!r}"
    return f"{np.count_nonzero(ulps)} of {old.size} differ by up to {ulps.max():g} ulps, {largest}"


def count_ulps(
    old: NDArray[Any], new: NDArray[Any], *, is_logarithm: bool = False
) -> NDArray[np.float64]:
    """Return the distance of each two numbers in units in the last place of the larger.

    A relative error of a probability is an absolute error of its logarithm, so that the unit of a
    logarithm near 0 is that of 1.
    """
    size = np.maximum(np.abs(old), np.abs(new))
    unit = np.spacing(np.maximum(size, 1.0) if is_logarithm else size)
    with np.errstate(invalid="ignore"):
        ulps = np.abs(old - new).astype(float) / unit
    is_same = (old == new) | (np.isnan(old) & np.isnan(new))
    return np.where(is_same, 0.0, np.where(np.isnan(ulps), np.inf, ulps))


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("command", choices=("write", "compare"))
    parser.add_argument("file", type=Path, help="JSON file; the arrays are in .npz beside it")
    parser.add_argument("--only", metavar="NAME", help="cases to run; * stands for anything")
    parser.add_argument("--quick", action="store_true", help="only cases that take a second or so")
    parser.add_argument("--level", default="avx2", help="SIMD level, default: avx2")
    parser.add_argument("--probabilities-to-ulps", type=int, default=0, metavar="N")
    return parser.parse_args()


def restart_with_environment(level: str) -> None:
    """Run the script again, if needed, with one thread and the given SIMD level."""
    required = ENVIRONMENT | dict.fromkeys(THREAD_VARIABLES, "1")
    required |= dict.fromkeys(LEVEL_VARIABLES, level)
    if any(os.environ.get(name) != value for name, value in required.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | required)


def main() -> int:
    """Write or compare, and return the exit status."""
    args = parse_arguments()
    restart_with_environment(args.level)
    warnings.simplefilter("ignore")
    found = record(args.only, args.quick)
    print(f"{len(found)} cases, {time.process_time():.0f} s of processor time", file=sys.stderr)
    if args.command == "write":
        write(args.file, found, args.level)
        return int(any("exception" in arrays for arrays in found.values()))
    lines = compare(args.file, found, args.level, args.probabilities_to_ulps)
    print("\n".join(lines) if lines else f"{len(found)} cases: no differences")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
