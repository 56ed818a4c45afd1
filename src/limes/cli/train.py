"""`limes train`: train an SVM or another slow classifier."""

import argparse
from pathlib import Path
from typing import Any

from limes.cli.main import add_command, add_rows, row_options
from limes.cli.terminal import Progress, pairs, show

SVM_TYPES = ("c_svc", "nu_svc")
KERNELS = ("linear", "poly", "rbf", "sigmoid")


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "train",
        help="train an SVM or another slow classifier",
        description="Train a classifier on a file of rows. The options of an SVM are those of "
        "svm-train, and the model is a\nLIBSVM model file. With --scale, with labels that are not "
        "whole numbers, and for other classifiers it is\na file of limes, which has only arrays: "
        "loading it never executes code.",
        example="limes train -c 50 -g 0.1 --scale sat.svm -o sat.model\n"
        "limes train --model agf -k 100 rows.csv --label class -o rows.model",
    )
    add_rows(parser, help="file of training rows")
    parser.add_argument(
        "-o",
        "--output",
        metavar="MODEL",
        type=Path,
        help="output file, default: ROWS.model in this folder, as svm-train does",
    )
    parser.add_argument("--model", choices=MAKERS, default="svm", help="default: %(default)s")
    parser.add_argument(
        "--scale", action="store_true", help="drop constant features and standardise the others"
    )
    parser.add_argument("--seed", type=int, default=0, help="of folds, default: %(default)s")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing")
    _add_svm(parser.add_argument_group("SVM (as svm-train)"))
    _add_others(parser.add_argument_group("other classifiers"))
    parser.set_defaults(run=run)


def _add_svm(group: Any) -> None:
    """Add LIBSVM's options."""
    group.add_argument(
        "-s", type=int, choices=(0, 1), default=0, help="0: C-SVC, 1: nu-SVC (default: 0)"
    )
    group.add_argument(
        "-t",
        type=int,
        choices=range(4),
        default=2,
        help="kernel, 0: linear, 1: polynomial, 2: radial basis function, 3: sigmoid (default: 2)",
    )
    group.add_argument("-d", type=int, default=3, help="degree of the polynomial (default: 3)")
    group.add_argument("-g", type=float, help="gamma (default: 1 / number of features)")
    group.add_argument("-r", type=float, default=0.0, help="coef0 (default: 0)")
    group.add_argument("-c", type=float, default=1.0, help="cost, C (default: 1)")
    group.add_argument("-n", type=float, default=0.5, help="nu (default: 0.5)")
    group.add_argument("-m", type=float, default=200.0, help="cache in MB (default: 200)")
    group.add_argument("-e", type=float, default=0.001, help="tolerance (default: 0.001)")
    group.add_argument("-b", type=int, choices=(0, 1), default=0, help="1: with probabilities")
    group.add_argument(
        "--weight",
        action="append",
        default=[],
        metavar="LABEL=W",
        help="multiply the cost of a class; svm-train's -w1 5 is accepted too",
    )
    group.add_argument("--no-shrinking", action="store_true", help="svm-train's -h 0")
    group.add_argument(
        "-v", dest="folds", type=int, metavar="N", help="cross-validate in N folds, write nothing"
    )


def _add_others(group: Any) -> None:
    """Add the options of other classifiers."""
    group.add_argument("-W", type=float, help="agf: total weight (default: chosen from the data)")
    group.add_argument("-k", type=int, help="agf: neighbours (default: all rows)")
    group.add_argument("--bandwidth", type=float, help="kde (default: chosen from the data)")
    group.add_argument(
        "--solver",
        type=int,
        choices=range(6),
        default=2,
        help="linear: LIBLINEAR's type (default: 2)",
    )
    group.add_argument("--bias", action="store_true", help="linear: add a constant, as -B 1")


def run(args: argparse.Namespace) -> int:
    """Train a classifier and write it."""
    from limes.files import read_rows

    with Progress(f"reading {args.rows}"):
        X, y, names = read_rows(args.rows, row_options(args))
    _check_labels(y, args.rows)
    if args.folds is not None:
        return _cross_validate(args, X, y)
    with Progress("training"):
        model = _fit(args, X, y)
    path = args.output or Path(f"{args.rows.name}.model")
    _write(model, path, names)
    if not args.quiet:
        result = {"model": str(path), **_describe(model, X, y)}
        show(result, pairs(result.items()), as_json=args.json)
    return 0


def _check_labels(y: Any, path: Path) -> None:
    """Raise an error unless rows have labels of two classes or more."""
    import numpy as np

    if y is None:
        raise ValueError(f"{path}: expected labels, found none: name their column with --label.")
    classes = np.unique(y)
    if len(classes) < 2:
        raise ValueError(
            f"{path}: expected two classes or more, found only {classes.tolist()[0]!r:.60}."
        )
    if y.dtype.kind == "f" and (y != np.floor(y)).any():
        first = float(y[y != np.floor(y)][0])
        raise ValueError(
            f"{path}: expected classes as labels, whole numbers or text, found {first!r}: "
            "regression is not supported."
        )


def _cross_validate(args: argparse.Namespace, X: Any, y: Any) -> int:
    """Print the accuracy of cross-validation, as svm-train does."""
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline

    from limes.libsvm.training import standardizer
    from limes.scores import accuracy_score, uncertainty_coefficient

    model = MAKERS[args.model](args)
    is_dense = args.scale or args.model in ("agf", "kde")
    model = make_pipeline(standardizer(), model) if args.scale else model
    folds = StratifiedKFold(args.folds, shuffle=True, random_state=args.seed)
    with Progress("cross-validating"):
        predicted = cross_val_predict(model, _dense(X) if is_dense else X, y, cv=folds)
    result = {
        "folds": args.folds,
        "accuracy": float(accuracy_score(y, predicted)),
        "uncertainty_coefficient": uncertainty_coefficient(y, predicted),
    }
    text = f"Cross Validation Accuracy = {100 * result['accuracy']:.4f}%"
    show(result, text, as_json=args.json)
    return 0


def _fit(args: argparse.Namespace, X: Any, y: Any) -> Any:
    """Train; an SVM is returned as a LIBSVM model."""
    from sklearn.pipeline import Pipeline

    from limes.libsvm.training import standardizer

    classifier = MAKERS[args.model](args)
    steps = standardizer().fit(_dense(X)) if args.scale else None
    rows = X if steps is None else steps.transform(_dense(X))
    if args.model in ("agf", "kde"):
        rows = _dense(rows)
    model = classifier.fit(rows, y)
    if args.model == "svm":
        model = _as_libsvm(model, rows, y, has_sigmoids=bool(args.b), seed=args.seed)
    return model if steps is None else Pipeline([("standardize", steps), ("model", model)])


def _make_svm(args: argparse.Namespace) -> Any:
    """Return an untrained SVM."""
    from sklearn.svm import SVC, NuSVC

    common = {
        "kernel": KERNELS[args.t],
        "degree": args.d,
        "gamma": "auto" if args.g is None else args.g,
        "coef0": args.r,
        "tol": args.e,
        "cache_size": args.m,
        "shrinking": not args.no_shrinking,
        "class_weight": _weights(args.weight),
    }
    return NuSVC(nu=args.n, **common) if args.s else SVC(C=args.c, **common)


def _weights(words: list[str]) -> dict[Any, float] | None:
    """Return the weight of each named class."""
    weights: dict[Any, float] = {}
    for word in words:
        label, _, weight = word.rpartition("=")
        try:
            weights[int(label) if label.removeprefix("-").isdigit() else label] = float(weight)
        except ValueError:
            raise ValueError(f"--weight must be LABEL=NUMBER, got {word!r}.") from None
    return weights or None


def _make_agf(args: argparse.Namespace) -> Any:
    """Return an untrained classifier by adaptive Gaussian filtering."""
    from limes.agf import AGFClassifier

    return AGFClassifier("auto" if args.W is None else args.W, n_neighbors=args.k)


def _make_kde(args: argparse.Namespace) -> Any:
    """Return an untrained classifier by kernel densities."""
    from limes.agf import KernelDensityClassifier

    return KernelDensityClassifier("auto" if args.bandwidth is None else args.bandwidth)


def _make_linear(args: argparse.Namespace) -> Any:
    """Return an untrained linear classifier."""
    from limes.libsvm.training import liblinear_classifier

    return liblinear_classifier(
        args.solver, args.c, fit_intercept=args.bias, random_state=args.seed
    )


MAKERS = {"svm": _make_svm, "agf": _make_agf, "kde": _make_kde, "linear": _make_linear}


def _dense(X: Any) -> Any:
    """Return rows as a dense array."""
    return X.toarray() if hasattr(X, "toarray") else X


def _as_libsvm(svc: Any, X: Any, y: Any, *, has_sigmoids: bool, seed: int) -> Any:
    """Return a trained SVM as a LIBSVM model, with Platt's sigmoids if requested."""
    import numpy as np

    from limes.libsvm import LibsvmClassifier
    from limes.sources.svm import cross_validated_sigmoids, svm_from_sklearn

    svm = svm_from_sklearn(svc)
    sigmoids = None
    if has_sigmoids:
        class_index = np.searchsorted(svc.classes_, y)
        rng = np.random.default_rng(seed)
        fitted, _ = cross_validated_sigmoids(svc, svm, X, class_index, rng=rng)
        # Ours rise with the decision value of the second class, LIBSVM's fall with the first's.
        sigmoids = np.array([-fitted.slopes, fitted.shifts])
    svm_type = SVM_TYPES[type(svc).__name__ == "NuSVC"]
    return LibsvmClassifier(svm, svc.classes_, svm_type=svm_type, sigmoids=sigmoids)


def _write(model: Any, path: Path, names: tuple[str, ...] | None) -> None:
    """Write a LIBSVM model file if the format allows it, else a file of limes."""
    from limes.libsvm import LibsvmClassifier, write_libsvm_model
    from limes.saved_source import write_source

    if isinstance(model, LibsvmClassifier) and model.labels.dtype.kind in "iu":
        write_libsvm_model(model, path)
    else:
        write_source(model, path, names=names)


def _describe(model: Any, X: Any, y: Any) -> dict[str, Any]:
    """Return facts about a trained model."""
    import numpy as np

    inner = model[-1] if hasattr(model, "steps") else model
    facts = {
        "kind": type(inner).__name__,
        "n_rows": int(X.shape[0]),
        "n_features": int(X.shape[1]),
        "n_classes": len(np.unique(y)),
    }
    if hasattr(inner, "svm"):
        facts["n_support_vectors"] = len(inner.svm.vectors)
    return facts
