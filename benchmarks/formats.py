"""Compare models of other programs with the same models in limes: labels and probabilities.

`python benchmarks/formats.py [FORMAT ...]` (`make formats`) trains models with the programs that
are installed, reads them, writes `docs/formats/models.csv` and the table of `docs/formats.md`.
LIMES_LIBAGF names the folder with libAGF's files. Rows are scikit-learn's wine (three classes) and
breast cancer (two): those not trained on, and others between rows of different classes, so that
many are close to a border, 1000 together. A label that differs is within rounding error if a
decision value of the program itself is: below the first-order bound of what the program's number
format does to its sum.
"""

import csv
import itertools
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, NuSVC, OneClassSVM

import limes
from limes.foreign import read_onnx_model, read_opencv_model, read_skops_model
from limes.libsvm import read_libsvm_model
from limes.model.svm import Kernel

ROOT = Path(__file__).parents[1]
TABLE, PAGE = ROOT / "docs" / "formats" / "models.csv", ROOT / "docs" / "formats.md"
N_ROWS = 1000
KERNELS = ("linear", "poly", "rbf", "sigmoid")
CONSTANTS = {"C": 2.0, "nu": 0.2, "degree": 3, "coef0": 0.1}
NAMES = (
    "format", "data", "model", "rows", "different_labels", "within_rounding",
    "reference_probabilities", "largest_probability_difference", "probability_limit",
)  # fmt: skip
# Relative error of a number: of double and single precision, of six and eight digits.
DOUBLE, SINGLE, SIX_DIGITS, EIGHT_DIGITS = 2.0**-53, 2.0**-24, 5e-6, 5e-8


def load_rows(name):
    """Return training rows and labels, and the rows to compare."""
    X, y = {"wine": load_wine, "cancer": load_breast_cancer}[name](return_X_y=True)
    X, test, y, test_y = train_test_split(X, y + 1, test_size=0.4, random_state=0, stratify=y)
    rng = np.random.default_rng(0)
    first, second = rng.integers(len(test), size=(2, 20 * N_ROWS))
    chosen = np.flatnonzero(test_y[first] != test_y[second])[: N_ROWS - len(test)]
    share = rng.uniform(size=(len(chosen), 1))
    between = share * test[first[chosen]] + (1 - share) * test[second[chosen]]
    # Numbers that every program reads as they are.
    to_single = lambda rows: rows.astype(np.float32).astype(np.float64)  # noqa: E731
    return to_single(X), y, to_single(np.vstack([test, between]))


def gamma_of(n_features):
    """Return the constant of the kernels, for scaled rows."""
    return 1.0 / n_features


def compare(data, model, labels, ours, *, decisions, bounds, probabilities=None, limit=None):
    """Return a row of the table: labels, and the probabilities of the program and ours."""
    is_other = np.asarray(labels).astype(str) != np.asarray(ours[0]).astype(str)
    is_close = (np.abs(decisions) <= bounds).any(axis=1)
    row = dict.fromkeys(NAMES, "")
    row |= {"data": data, "model": model, "rows": len(labels)}
    row |= {"different_labels": int(is_other.sum())}
    row |= {"within_rounding": int((is_other & is_close).sum())}
    if probabilities is not None:
        row["reference_probabilities"] = probabilities[0]
        difference = float(np.abs(probabilities[1] - ours[1]).max())
        row["largest_probability_difference"] = f"{difference:.1e}"
        row["probability_limit"] = limit
    return row


def rounding_bounds(svm, rows, epsilon):
    """Return for each row and pair what a relative error of all numbers does to the sum."""
    kernel: Kernel = svm.kernel
    products = np.abs(rows) @ np.abs(svm.vectors).T
    inner = rows @ svm.vectors.T
    if kernel.name == "rbf":
        squares = np.square(rows).sum(1)[:, None] + np.square(svm.vectors).sum(1)
        values = np.exp(-kernel.gamma * np.maximum(squares - 2 * inner, 0))
        changes = values * kernel.gamma * 2 * (squares + 2 * products)
    else:
        gamma = 1.0 if kernel.name == "linear" else kernel.gamma
        sums = gamma * products + (0.0 if kernel.name == "linear" else abs(kernel.coef0))
        argument = gamma * inner + (0.0 if kernel.name == "linear" else kernel.coef0)
        slopes = {
            "linear": np.ones_like,
            "poly": lambda u: kernel.degree * np.abs(u) ** (kernel.degree - 1),
            "sigmoid": lambda u: 1 / np.cosh(np.clip(u, -300, 300)) ** 2,
        }[kernel.name](argument)
        values = {
            "linear": np.abs,
            "poly": lambda u: np.abs(u) ** kernel.degree,
            "sigmoid": lambda u: np.abs(np.tanh(u)),
        }[kernel.name](argument)
        changes = slopes * 2 * sums
    # The sum adds the errors of its terms and one for each addition, which is far less in practice.
    per_vector = values * np.sqrt(len(svm.vectors)) + changes
    starts = np.concatenate([[0], np.cumsum(svm.n_support)])
    bounds = []
    for pair, (i, j) in enumerate(itertools.combinations(range(len(svm.n_support)), 2)):
        total = np.full(len(rows), abs(svm.intercepts[pair]))
        for own, other in ((i, j), (j, i)):
            part = slice(starts[own], starts[own + 1])
            total += per_vector[:, part] @ np.abs(svm.dual_coef[other - (other > own), part])
        bounds.append(epsilon * total)
    return np.column_stack(bounds)


def exact_answers(model, rows, *, probability):
    """Return labels and probabilities of the exact sums that limes makes of a model."""
    exact = limes.accelerate(model, scheme="exact")
    return exact.predict(rows), exact.predict_proba(rows) if probability else None


# LIBSVM


def compare_libsvm(data, folder):
    """Yield the models of svm-train: on scaled rows, and with the file of ranges on raw rows."""
    from libsvm.svmutil import svm_load_model, svm_predict

    X, y, rows = load_rows(data)
    write_libsvm(folder / "train", X, y)
    write_libsvm(folder / "test", rows, np.ones(len(rows)))
    run(f"svm-scale -s {folder}/range {folder}/train", output=folder / "train.scaled")
    run(f"svm-scale -r {folder}/range {folder}/test", output=folder / "test.scaled")
    gamma = gamma_of(X.shape[1])
    for kernel, kind, probability in itertools.product(range(4), (0, 1), (0, 1)):
        run(
            f"svm-train -q -s {kind} -t {kernel} -b {probability} -c {CONSTANTS['C']} -n "
            f"{CONSTANTS['nu']} -g {gamma} -r {CONSTANTS['coef0']} {folder}/train.scaled {folder}/m"
        )
        run(f"svm-predict -b {probability} {folder}/test.scaled {folder}/m {folder}/out")
        lines = (folder / "out").read_text().splitlines()[probability:]
        printed = np.array([line.split() for line in lines], dtype=float)
        # The package crashes on nu-SVCs that it loads; a C-SVC has the same sums.
        text = (folder / "m").read_text().replace("nu_svc", "c_svc", 1)
        (folder / "c").write_text(text)
        theirs = svm_load_model(str(folder / "c"))
        plain = read_libsvm_model(folder / "m")
        scaled = read_libsvm(folder / "test.scaled", X.shape[1])
        whole = read_libsvm_model(folder / "m", range=folder / "range")
        inner = whole[0].transform(rows)
        order = np.argsort(plain.labels)
        name = f"{KERNELS[kernel]} {('C-SVC', 'nu-SVC')[kind]}"
        for suffix, model, given, seen, epsilon in (
            ("", plain, scaled, scaled, DOUBLE),
            (", range file", whole, rows, inner, SIX_DIGITS),
        ):
            decisions = np.array(svm_predict([], scaled.tolist(), theirs, "-q")[2])
            proba = None
            if probability and not suffix:
                proba = ("svm-predict, six digits", printed[:, 1:][:, order])
            elif probability:
                values = np.array(svm_predict([], seen.tolist(), theirs, "-b 1 -q")[2])
                proba = ("LIBSVM's library", values[:, order])
            # With -b 1 the label is the likeliest class, and the probabilities decide.
            ours = exact_answers(model, given, probability=bool(probability))
            if probability:
                last = model[-1] if suffix else model
                ours = last.predict_likeliest(seen), ours[1]
            yield compare(
                data, f"{name}{', probabilities' * probability}{suffix}", printed[:, 0].astype(int),
                ours, decisions=deciding(decisions, proba), probabilities=proba, limit=1e-6,
                bounds=deciding_bounds(plain.svm, seen, epsilon, proba),
            )  # fmt: skip


def deciding(decisions, probabilities):
    """Return the values that decide the label: of pairs, or between the likeliest classes."""
    if probabilities is None:
        return decisions
    top = np.sort(probabilities[1], axis=1)
    return np.column_stack([top[:, -1] - top[:, -2]])


def deciding_bounds(svm, rows, epsilon, probabilities):
    """Return the rounding error of these values: of printed probabilities half a digit each."""
    if probabilities is None:
        return rounding_bounds(svm, rows, epsilon)
    return np.full((len(rows), 1), max(1e-6, 10 * epsilon))


def write_libsvm(path, rows, labels):
    """Write rows with all their digits."""
    lines = [
        " ".join([str(int(label)), *(f"{i}:{value!r}" for i, value in enumerate(row, 1))])
        for row, label in zip(rows.tolist(), labels, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")


def read_libsvm(path, n_features):
    """Return the rows of a file as the programs read them."""
    rows = np.zeros((len(lines := path.read_text().splitlines()), n_features))
    for row, line in zip(rows, lines, strict=True):
        for word in line.split()[1:]:
            index, value = word.split(":")
            row[int(index) - 1] = float(value)
    return rows


# e1071

R_SCRIPT = """
library(e1071)
train <- as.matrix(read.csv("train.csv")); rows <- as.matrix(read.csv("rows.csv"))
y <- factor(scan("labels.txt", quiet = TRUE))
m <- svm(train, y, type = "{type}", kernel = "{kernel}", gamma = {gamma}, coef0 = {coef0},
         cost = {C}, nu = {nu}, degree = {degree}, probability = {probability})
write.svm(m, svm.file = "m.svm", scale.file = "m.scale")
p <- predict(m, rows, decision.values = TRUE, probability = {probability})
out <- data.frame(label = as.integer(p), attr(p, "decision.values"))
if ({probability}) out <- cbind(out, attr(p, "probabilities")[, levels(y)])
write.table(format(out, digits = 17), "out.csv", sep = ",", row.names = FALSE, quote = FALSE)
"""


def compare_e1071(data, folder):
    """Yield the models of R's e1071, with the file of its scaling."""
    X, y, rows = load_rows(data)
    header = ",".join(f"f{i}" for i in range(X.shape[1]))
    np.savetxt(folder / "train.csv", X, "%.17g", ",", header=header, comments="")
    np.savetxt(folder / "rows.csv", rows, "%.17g", ",", header=header, comments="")
    np.savetxt(folder / "labels.txt", y, "%d")
    n_classes = len(np.unique(y))
    names = {"linear": "linear", "poly": "polynomial", "rbf": "radial", "sigmoid": "sigmoid"}
    for kernel, kind, probability in itertools.product(KERNELS, ("C", "nu"), (False, True)):
        script = R_SCRIPT.format(
            type=f"{kind}-classification", kernel=names[kernel], gamma=gamma_of(X.shape[1]),
            probability=str(probability).upper(), **CONSTANTS,
        )  # fmt: skip
        (folder / "m.R").write_text(script)
        run(f"Rscript {folder}/m.R", folder=folder)
        out = np.genfromtxt(folder / "out.csv", delimiter=",", skip_header=1)
        model = read_libsvm_model(folder / "m.svm", range=folder / "m.scale")
        inner = model[0].transform(rows)
        n_pairs = n_classes * (n_classes - 1) // 2
        proba = ("R, all digits", out[:, 1 + n_pairs :]) if probability else None
        ours = exact_answers(model, rows, probability=probability)
        # e1071's label is that of svm_predict, with and without probabilities.
        if probability:
            ours = model[-1].predict_likeliest(inner), ours[1]
        yield compare(
            data, f"{kernel} {kind}-SVC{', probabilities' * probability}", out[:, 0].astype(int),
            ours, decisions=deciding(out[:, 1 : 1 + n_pairs], proba), probabilities=proba,
            limit=1e-6, bounds=deciding_bounds(model[-1].svm, inner, EIGHT_DIGITS, proba),
        )  # fmt: skip


# Orfeo ToolBox


def compare_otb(data, folder):
    """Yield the LIBSVM models of Orfeo ToolBox, with its file of statistics."""
    X, y, rows = load_rows(data)
    names = [f"f{i}" for i in range(X.shape[1])]
    write_geojson(folder / "train.geojson", names, X, y)
    write_geojson(folder / "rows.geojson", names, rows, np.ones(len(rows)))
    feat = " ".join(names)
    run(
        f"otbcli_ComputeOGRLayersFeaturesStatistics -inshp {folder}/train.geojson -outstats "
        f"{folder}/stats.xml -feat {feat}"
    )
    kinds = {"C-SVC": "csvc", "nu-SVC": "nusvc"}
    for kernel, kind, probability in itertools.product(KERNELS, kinds, (False, True)):
        (folder / "out.sqlite").unlink(missing_ok=True)
        options = {
            "k": kernel, "m": kinds[kind], "c": CONSTANTS["C"], "nu": CONSTANTS["nu"],
            "gamma": gamma_of(X.shape[1]), "coef0": CONSTANTS["coef0"], "degree": 3,
            "prob": str(probability).lower(),
        }  # fmt: skip
        words = " ".join(f"-classifier.libsvm.{key} {value}" for key, value in options.items())
        run(
            f"otbcli_TrainVectorClassifier -io.vd {folder}/train.geojson -io.stats "
            f"{folder}/stats.xml -io.out {folder}/m.svm -cfield label -feat {feat} "
            f"-classifier libsvm {words}"
        )
        confidence = " -confmap true" * probability
        run(
            f"otbcli_VectorClassifier -in {folder}/rows.geojson -instat {folder}/stats.xml -model "
            f"{folder}/m.svm -cfield predicted -feat {feat} -out {folder}/out.sqlite{confidence}"
        )
        found = read_sqlite(folder / "out.sqlite")
        model = read_libsvm_model(folder / "m.svm", range=folder / "stats.xml")
        inner = model[0].transform(rows)
        labels = np.array([int(one["predicted"]) for one in found])
        proba = None
        ours = exact_answers(model, rows, probability=probability)
        decisions, bounds = model[-1]._pair_decisions(inner), None
        if probability:
            # OTB's confidence is the difference of the two largest probabilities.
            theirs = np.array([one["confidence"] for one in found])[:, None]
            top = np.sort(ours[1], axis=1)
            ours = model[-1].predict_likeliest(inner), (top[:, -1] - top[:, -2])[:, None]
            proba = ("OTB's confidence, float32", theirs)
            decisions, bounds = theirs, np.full(theirs.shape, 1e-5)
        else:
            bounds = rounding_bounds(model[-1].svm, inner, SINGLE)
        yield compare(
            data, f"{kernel} {kind}{', probabilities' * probability}", labels, ours,
            decisions=decisions, bounds=bounds, probabilities=proba, limit=1e-4,
        )  # fmt: skip


def read_sqlite(path):
    """Return the attributes of each point, in their order."""
    with sqlite3.connect(path) as database:
        database.row_factory = sqlite3.Row
        ((table,),) = database.execute("SELECT f_table_name FROM geometry_columns")
        return list(database.execute(f'SELECT * FROM "{table}" ORDER BY rowid'))


def write_geojson(path, names, rows, labels):
    """Write rows as points with attributes, in the order of the rows."""
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": [number, 0]},
            "properties": {"label": int(label), **dict(zip(names, row, strict=True))},
        }
        for number, (row, label) in enumerate(zip(rows.tolist(), labels, strict=True))
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))


# OpenCV


def compare_opencv(data, folder):
    """Yield the models of OpenCV in its three formats."""
    import cv2

    X, y, rows = load_rows(data)
    step = StandardScaler().fit(X)
    X, rows = (step.transform(one).astype(np.float32) for one in (X, rows))
    kinds = {"C-SVC": "C_SVC", "nu-SVC": "NU_SVC", "one-class": "ONE_CLASS"}
    for kernel, kind in itertools.product(KERNELS, kinds):
        svm = cv2.ml.SVM_create()
        svm.setType(getattr(cv2.ml, f"SVM_{kinds[kind]}"))
        svm.setKernel(getattr(cv2.ml, f"SVM_{kernel.upper()}"))
        constants = {"Gamma": gamma_of(X.shape[1]), "Nu": CONSTANTS["nu"], "C": CONSTANTS["C"]}
        constants |= {"Coef0": CONSTANTS["coef0"], "Degree": 3}
        for name, value in constants.items():
            getattr(svm, f"set{name}")(value)
        svm.train(X, cv2.ml.ROW_SAMPLE, y.astype(np.int32))
        labels = svm.predict(rows)[1][:, 0].astype(int)
        if kind == "one-class":
            labels = np.where(labels == 1, 1, -1)
        for ending in ("xml", "yml", "json"):
            path = folder / f"m.{ending}"
            svm.save(str(path))
            model = read_opencv_model(path)
            ours = exact_answers(model, rows.astype(np.float64), probability=False)
            bounds = rounding_bounds(model.svm, rows.astype(np.float64), SINGLE)
            yield compare(
                data, f"{kernel} {kind}, {ending}", labels, ours,
                decisions=opencv_decisions(svm, rows, kernel, constants, len(np.unique(y))),
                bounds=bounds,
            )  # fmt: skip


def opencv_decisions(svm, rows, kernel, constants, n_classes):
    """Return the decision values of OpenCV's functions, which it gives for two classes only."""
    vectors = svm.getUncompressedSupportVectors() if kernel == "linear" else svm.getSupportVectors()
    vectors, rows = vectors.astype(np.float64), rows.astype(np.float64)
    inner = rows @ vectors.T
    gamma, coef0 = constants["Gamma"], constants["Coef0"]
    squares = np.square(rows).sum(1)[:, None] + np.square(vectors).sum(1) - 2 * inner
    values = {
        "linear": lambda: inner,
        "poly": lambda: (gamma * inner + coef0) ** 3,
        "rbf": lambda: np.exp(-gamma * squares),
        "sigmoid": lambda: np.tanh(gamma * inner + coef0),
    }[kernel]()
    if kernel == "linear":
        # One vector a function: the sums of linear kernels.
        vectors = svm.getSupportVectors().astype(np.float64)
        values = rows @ vectors.T
    decisions = []
    for number in range(n_classes * (n_classes - 1) // 2):
        try:
            rho, alpha, index = svm.getDecisionFunction(number)
        except Exception:  # a one-class SVM has one function
            break
        decisions.append(values[:, index.ravel()] @ alpha.ravel() - rho)
    return np.column_stack(decisions)


# scikit-learn, by skops and ONNX


def sklearn_models(data):
    """Yield SVMs of scikit-learn, alone on scaled rows and after a scaler on raw rows."""
    X, y, rows = load_rows(data)
    options = {"gamma": gamma_of(X.shape[1]), "coef0": CONSTANTS["coef0"]}
    step = StandardScaler().fit(X)
    for kernel, kind, probability in itertools.product(KERNELS, ("C-SVC", "nu-SVC"), (False, True)):
        base = SVC(C=CONSTANTS["C"]) if kind == "C-SVC" else NuSVC(nu=CONSTANTS["nu"])
        base.set_params(kernel=kernel, probability=probability, random_state=0, **options)
        name = f"{kernel} {kind}{', probabilities' * probability}"
        yield f"{name}, scaler", make_pipeline(StandardScaler(), base).fit(X, y), rows, probability
        if data == "wine":
            scaled = [step.transform(one).astype(np.float32).astype(float) for one in (X, rows)]
            alone = type(base)(**base.get_params()).fit(scaled[0], y)
            yield name, alone, scaled[1], probability


def pair_decisions(model, rows):
    """Return scikit-learn's decision values, of pairs."""
    last = model[-1] if hasattr(model, "steps") else model
    inner = model[:-1].transform(rows) if hasattr(model, "steps") else rows
    if isinstance(last, OneClassSVM):
        return last.decision_function(inner)[:, None], inner
    last.decision_function_shape = "ovo"
    return last.decision_function(inner).reshape(len(rows), -1), inner


def compare_skops(data, folder):
    """Yield models of scikit-learn that skops wrote."""
    import skops.io

    from limes.sources.svm import one_class_from_sklearn, svm_from_sklearn

    models = list(sklearn_models(data))
    X, _, rows = load_rows(data)
    detector = make_pipeline(StandardScaler(), OneClassSVM(nu=CONSTANTS["nu"])).fit(X)
    models.append(("rbf one-class, scaler", detector, rows, False))
    for name, model, given, probability in models:
        skops.io.dump(model, folder / "m.skops")
        ours = exact_answers(read_skops_model(folder / "m.skops"), given, probability=probability)
        proba = ("scikit-learn", model.predict_proba(given)) if probability else None
        labels = model.predict(given)
        decisions, inner = pair_decisions(model, given)
        last = model[-1] if hasattr(model, "steps") else model
        convert = one_class_from_sklearn if isinstance(last, OneClassSVM) else svm_from_sklearn
        yield compare(
            data, name, labels, ours, decisions=decisions, probabilities=proba, limit=1e-6,
            bounds=rounding_bounds(convert(last), inner, DOUBLE),
        )  # fmt: skip


def compare_onnx(data, folder):
    """Yield models of scikit-learn that skl2onnx wrote, beside onnxruntime."""
    import onnxruntime
    import skl2onnx

    for name, model, given, probability in sklearn_models(data):
        options = {"zipmap": False}
        graph = skl2onnx.to_onnx(model, given[:1].astype(np.float32), options=options)
        (folder / "m.onnx").write_bytes(graph.SerializeToString())
        session = onnxruntime.InferenceSession(graph.SerializeToString())
        labels, values = session.run(None, {"X": given.astype(np.float32)})[:2]
        ours = exact_answers(read_onnx_model(folder / "m.onnx"), given, probability=probability)
        proba = ("onnxruntime, float32", values) if probability else None
        read = read_onnx_model(folder / "m.onnx")
        decisions, inner = pair_decisions(model, given)
        last = read[-1] if hasattr(read, "steps") else read
        bounds = rounding_bounds(last.svm, inner, SINGLE)
        yield compare(
            data, name, labels, ours, decisions=decisions, bounds=bounds, probabilities=proba,
            limit=1e-4,
        )  # fmt: skip


# libAGF


def compare_libagf(data, folder):
    """Yield the borders of libAGF's programs with their answers."""
    from limes.export.libagf_files import read_libagf_borders

    original = Path(os.environ["LIMES_LIBAGF"])
    files = {
        "wine": (("seg1r.txt", "segment", "1 vs. rest"), ("segh.txt", "segment", "hierarchy")),
        "cancer": (("heart_b.brd", "heart", "two classes"),),
    }
    for name, rows_name, title in files[data]:
        stem = Path(name).stem
        bytes_ = (original / f"{rows_name}.vec").read_bytes()
        rows = np.frombuffer(bytes_[4:], "<f4").reshape(-1, int.from_bytes(bytes_[:4], "little"))
        expected = np.fromfile(original / "answers" / f"{stem}.cls", "<i4")
        fast = read_libagf_borders(original / name)
        labels = fast.predict(rows)
        n_classes = len(fast.classes_)
        is_own = np.ones(len(rows), dtype=bool)
        proba = None
        if stem == "seg1r":
            # For some rows classify_m repeats the probabilities of the row before.
            stored = np.loadtxt(original / "answers" / "seg1r_probabilities.txt")
            is_own[1:] = (stored[1:] != stored[:-1]).any(axis=1)
            title += f" ({(~is_own).sum()} rows with the answer of the row before left out)"
        raw = fast.scheme_.raw_probabilities(fast.scheme_.values(rows))[
            np.arange(len(rows)), labels
        ]
        ratings = ((n_classes * raw - 1) / (n_classes - 1))[:, None]
        if stem != "seg1r":
            theirs = np.fromfile(original / "answers" / f"{stem}.con", "<f4")[:, None]
            proba = ("confidence ratings, float32", theirs)
        margins = np.abs(fast.scheme_.values(rows).reshape(len(rows), -1))
        yield compare(
            rows_name, title, expected[is_own], (labels[is_own], ratings),
            decisions=margins[is_own], bounds=np.full(margins[is_own].shape, 1e-5),
            probabilities=proba, limit=1e-4,
        )  # fmt: skip


# The table


FORMATS = {
    "LIBSVM": (compare_libsvm, "svm-train"),
    "e1071": (compare_e1071, "Rscript"),
    "OTB": (compare_otb, "otbcli_TrainVectorClassifier"),
    "OpenCV": (compare_opencv, "cv2"),
    "ONNX": (compare_onnx, "skl2onnx"),
    "skops": (compare_skops, "skops"),
    "libAGF": (compare_libagf, "LIMES_LIBAGF"),
}


def run(command, *, output=None, folder=None):
    """Run a program; its errors end the script."""
    done = subprocess.run(command.split(), capture_output=True, text=True, cwd=folder)
    if done.returncode:
        sys.exit(f"{command}\n{done.stdout}\n{done.stderr}")
    if output is not None:
        output.write_text(done.stdout)


def is_there(needed):
    """Return whether a program, a package or a variable of the environment is there."""
    from importlib.util import find_spec

    return bool(shutil.which(needed) or os.environ.get(needed) or find_spec(needed))


def compare_all(wanted):
    """Return the rows of all formats whose programs are there."""
    rows = []
    for name, (function, needed) in FORMATS.items():
        if wanted and name not in wanted:
            continue
        if not is_there(needed):
            print(f"{name}: {needed} is not there, its rows stay as they are")
            continue
        for data in ("wine", "cancer"):
            with tempfile.TemporaryDirectory() as folder:
                for row in function(data, Path(folder)):
                    rows.append({**row, "format": name})
                    print(" | ".join(str(value) for value in rows[-1].values()), flush=True)
    return rows


def summary(rows):
    """Return the table of the page: a line for each format."""
    lines = [
        "| format | models | rows | other labels | of these within rounding error "
        "| probabilities compared with | largest difference | limit |",
        "| --- | ---: | ---: | ---: | ---: | --- | ---: | ---: |",
    ]
    keys = dict.fromkeys((row["format"], row["reference_probabilities"]) for row in rows)
    for name, reference in keys:
        chosen = [
            row
            for row in rows
            if (row["format"], row["reference_probabilities"]) == (name, reference)
        ]
        sums = [sum(int(row[key]) for row in chosen) for key in NAMES[3:6]]
        largest = max(float(row["largest_probability_difference"] or 0) for row in chosen)
        limit = chosen[0]["probability_limit"]
        lines.append(
            f"| {name} | {len(chosen)} | {sums[0]} | {sums[1]} | {sums[2]} | {reference or ''} | "
            f"{f'{largest:.1e}' if reference else ''} | {limit or ''} |"
        )
    return "\n".join(lines)


def main():
    warnings.simplefilter("ignore")
    wanted = sys.argv[1:]
    new = compare_all(wanted)
    made = {row["format"] for row in new}
    old = list(csv.DictReader(TABLE.open(newline=""))) if TABLE.exists() else []
    rows = [row for row in old if row["format"] not in made] + new
    rows.sort(key=lambda row: list(FORMATS).index(row["format"]))
    TABLE.parent.mkdir(exist_ok=True)
    with TABLE.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, NAMES, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    marks = re.compile(r"(<!-- table -->\n).*?(<!-- end -->)", re.DOTALL)
    text = marks.sub(lambda mark: f"{mark[1]}{summary(rows)}\n{mark[2]}", PAGE.read_text())
    PAGE.write_text(text)
    print(summary(rows))
    wrong = [row for row in rows if int(row["different_labels"]) > int(row["within_rounding"])]
    wrong += [
        row
        for row in rows
        if row["probability_limit"]
        and float(row["largest_probability_difference"]) > float(row["probability_limit"])
    ]
    for row in wrong:
        print("beyond the limits:", row)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
