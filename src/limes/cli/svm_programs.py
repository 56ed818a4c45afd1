"""`limes svm-scale`, `svm-train` and `svm-predict`: LIBSVM's programs, with their arguments."""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

HELP = {
    "svm-scale": "scale LIBSVM text, with the arguments and output of LIBSVM's svm-scale",
    "svm-train": "train an SVM, with the arguments and output of LIBSVM's svm-train",
    "svm-predict": "label LIBSVM text, with the arguments and output of LIBSVM's svm-predict",
}
USAGE = {
    "svm-scale": "[-l lower] [-u upper] [-y y_lower y_upper] [-s save_filename] "
    "[-r restore_filename] data_filename",
    "svm-train": "[-s 0|1|2] [-t 0..3] [-d degree] [-g gamma] [-r coef0] [-c cost] [-n nu] "
    "[-m cachesize] [-e epsilon] [-h 0|1] [-b 0|1] [-wi weight] [-v n] [-q] training_set_file "
    "[model_file]",
    "svm-predict": "[-b 0|1] [-q] test_file model_file output_file",
}
# By the letter of an option, the number of words after it.
OPTIONS = {
    "svm-scale": {"l": 1, "u": 1, "y": 2, "s": 1, "r": 1},
    "svm-train": {**dict.fromkeys("stdgrcnpmehbvw", 1), "q": 0},
    "svm-predict": {"b": 1, "q": 0},
}
N_FILES = {"svm-scale": (1, 1), "svm-train": (1, 2), "svm-predict": (3, 3)}
WHOLE = {"s", "t", "d", "h", "b", "v"}
# svm-train's -s and -t by number; the others are refused.
SVM_TYPES = ("c_svc", "nu_svc", "one_class")
REFUSED_TYPES = {3: "epsilon-SVR", 4: "nu-SVR"}
KERNELS = ("linear", "poly", "rbf", "sigmoid")


class UsageError(ValueError):
    """Arguments that LIBSVM's program does not take."""


def add_parser(commands: Any) -> None:
    """Add the commands to the list of the help; their arguments are parsed here, not there."""
    for name, text in HELP.items():
        commands.add_parser(name, help=text)


def run_program(name: str, words: Sequence[str]) -> int:
    """Run one of the programs, and return its exit status, 1 after an error as theirs."""
    from limes.cli.main import USER_ERRORS, explain

    if list(words) in (["--help"], ["-help"]):
        print(f"usage: limes {name} {USAGE[name]}\n\n{HELP[name]}.")
        return 0
    try:
        options, files = parse_words(name, words)
        PROGRAMS[name](options, files)
    except UsageError as error:
        print(f"limes {name}: {error}\nUsage: {name} {USAGE[name]}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        raise
    except USER_ERRORS as error:
        print(f"limes {name}: {explain(error)}", file=sys.stderr)
        return 1
    return 0


def parse_words(name: str, words: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Return options and files, parsed as LIBSVM does: options first, by their first letter."""
    known = OPTIONS[name]
    options: dict[str, Any] = {}
    place = 0
    while place < len(words) and words[place][:1] == "-":
        word = words[place]
        letter = word[1:2]
        if letter not in known or (len(word) > 2 and letter != "w"):
            raise UsageError(f"unknown option: {word}")
        values = list(words[place + 1 : place + 1 + known[letter]])
        if len(values) < known[letter]:
            raise UsageError(f"expected a value after {word}")
        place += 1 + known[letter]
        if name == "svm-scale" and letter in "sr":
            options[letter] = values[0]
        elif letter == "w":
            options.setdefault("w", {})[int(_number(word[2:], "-w", is_whole=True))] = _number(
                values[0], word
            )
        else:
            numbers = [_number(one, word, is_whole=letter in WHOLE) for one in values]
            options[letter] = numbers if len(numbers) > 1 else numbers[0] if numbers else True
    files = list(words[place:])
    low, high = N_FILES[name]
    if not low <= len(files) <= high:
        raise UsageError(f"expected {low if low == high else f'{low} or {high}'} files")
    return options, files


def _number(word: str, option: str, *, is_whole: bool = False) -> float:
    """Return a number after an option."""
    try:
        number = float(word)
    except ValueError:
        number = float("nan")
    if (
        number != number
        or number in (float("inf"), -float("inf"))
        or (is_whole and number != int(number))
    ):
        kind = "a whole number" if is_whole else "a number"
        raise UsageError(f"expected {kind} after {option}, got {word!r}")
    return number


def _g(value: float, digits: int = 6) -> str:
    """Return a number as C's ``%g``."""
    return f"{value:.{digits}g}"


class _Table(NamedTuple):
    """LIBSVM text: rows, labels, and the number of the first feature."""

    X: Any
    y: Any
    first_index: int


def _read(path: str) -> _Table:
    """Read LIBSVM text, and note whether it has a feature 0."""
    from limes.files import RowOptions, read_rows
    from limes.files.libsvm import begins_with_zero

    _check_exists(path)
    first_index = 0 if begins_with_zero(Path(path)) else 1
    X, y, _ = read_rows(Path(path), RowOptions(format="libsvm", first_index=first_index))
    return _Table(X, y, first_index)


def _check_exists(path: str) -> None:
    """Raise LIBSVM's error of a missing file."""
    if not Path(path).is_file():
        raise FileNotFoundError(2, "can't open input file", path)


def run_svm_scale(options: dict[str, Any], files: Sequence[str]) -> None:
    """Scale a file to standard output."""
    from limes.atomic import refuse_inputs_as_outputs
    from limes.libsvm.svm_scale import SvmScale

    lower, upper = options.get("l", -1.0), options.get("u", 1.0)
    if not upper > lower:
        raise ValueError("inconsistent lower/upper specification")
    if "y" in options and not options["y"][1] > options["y"][0]:
        raise ValueError("inconsistent lower/upper specification")
    if "s" in options and "r" in options:
        raise ValueError("cannot use -r and -s simultaneously")
    refuse_inputs_as_outputs(["-", *([options["s"]] if "s" in options else [])], files)
    scale = SvmScale(lower, upper, tuple(options["y"]) if "y" in options else None)
    warnings = scale.run(files[0], save=options.get("s"), restore=options.get("r"))
    for line in warnings:
        print(line, file=sys.stderr)


def run_svm_train(options: dict[str, Any], files: Sequence[str]) -> None:
    """Train an SVM, or cross-validate."""
    import numpy as np

    from limes.atomic import atomic_write, refuse_inputs_as_outputs
    from limes.libsvm.svm_train import order_labels

    trainer = _make_trainer(options)
    model_path = files[1] if len(files) > 1 else f"{Path(files[0]).name}.model"
    refuse_inputs_as_outputs([model_path], files[:1])
    X, y, trainer.first_index = _read(files[0])
    is_classifier = trainer.svm_type != "one_class"
    if is_classifier and (y != np.floor(y)).any():
        first = float(y[y != np.floor(y)][0])
        raise ValueError(f"{files[0]}: expected whole numbers as labels, found {first!r}.")
    if is_classifier and len(np.unique(y)) < 2:
        raise ValueError(f"{files[0]}: expected two classes or more, found {_g(y[0])} only.")
    labels = order_labels(y).tolist() if is_classifier else list(trainer.weights)
    for label in sorted(set(trainer.weights) - set(labels)):
        print(f"WARNING: class label {label} specified in weight is not found", file=sys.stderr)
    if "v" in options:
        predicted = trainer.cross_validate(X, y, int(options["v"]))
        _print_unless_quiet(options, trainer.output)
        print(f"Cross Validation Accuracy = {_g(100 * float((predicted == y).mean()))}%")
        return
    model = trainer.train(X, y)
    _print_unless_quiet(options, trainer.output)
    with atomic_write(model_path) as stream:
        stream.writelines(line.encode("ascii") for line in _model_lines(model))


def _make_trainer(options: dict[str, Any]) -> Any:
    """Return the trainer with options checked as LIBSVM does."""
    from limes.libsvm.svm_train import SvmTrainer

    kind, kernel = int(options.get("s", 0)), int(options.get("t", 2))
    if kind in REFUSED_TYPES:
        raise ValueError(
            f"-s {kind} ({REFUSED_TYPES[kind]}) predicts no classes: use -s 0, -s 1 or -s 2."
        )
    if kind not in range(len(SVM_TYPES)):
        raise ValueError(f"unknown svm type {kind}: use -s 0, -s 1 or -s 2.")
    if kind == 2 and options.get("b", 0) == 1:
        raise ValueError("one-class SVM probability output not supported yet")
    if kernel not in range(4):
        raise ValueError(f"unknown kernel type {kernel}: use -t 0 to -t 3.")
    checks: list[tuple[str, float, Callable[[float], bool], str]] = [
        ("g", 0.0, lambda value: value >= 0, "gamma < 0"),
        ("d", 3, lambda value: value >= 0, "degree of polynomial kernel < 0"),
        ("m", 100.0, lambda value: value > 0, "cache_size <= 0"),
        ("e", 0.001, lambda value: value > 0, "eps <= 0"),
        ("c", 1.0, lambda value: value > 0, "C <= 0"),
        ("n", 0.5, lambda value: 0 < value <= 1, "nu <= 0 or nu > 1"),
        ("h", 1, lambda value: value in (0, 1), "shrinking != 0 and shrinking != 1"),
        ("b", 0, lambda value: value in (0, 1), "probability != 0 and probability != 1"),
        ("v", 2, lambda value: value >= 2, "n-fold cross validation: n must >= 2"),
    ]
    for letter, default, is_valid, message in checks:
        if not is_valid(options.get(letter, default)):
            raise ValueError(message)
    return SvmTrainer(
        svm_type=SVM_TYPES[kind],
        kernel=KERNELS[kernel],
        degree=int(options.get("d", 3)),
        # LIBSVM takes 0 for the default.
        gamma=_single(options.get("g", 0.0)) or None,
        coef0=_single(options.get("r", 0.0)),
        cost=_single(options.get("c", 1.0)),
        nu=_single(options.get("n", 0.5)),
        cache_mb=options.get("m", 100.0),
        tolerance=_single(options.get("e", 0.001)) if "e" in options else 0.001,
        shrinking=options.get("h", 1) == 1,
        probability=options.get("b", 0) == 1,
        weights={label: _single(weight) for label, weight in options.get("w", {}).items()},
    )


def _single(number: float) -> float:
    """Return a number in single precision, in which Debian's svm-train 3.24 reads its options."""
    import numpy as np

    return float(np.float32(number))


def _print_unless_quiet(options: dict[str, Any], text: str) -> None:
    """Print what LIBSVM says of its steps, which -q leaves out."""
    if "q" not in options:
        sys.stdout.write(text)
        sys.stdout.flush()


def _model_lines(model: Any) -> Iterator[str]:
    """Yield the lines of a model file with the digits that LIBSVM writes."""
    import numpy as np

    svm, kernel = model.svm, model.svm.kernel
    yield f"svm_type {model.svm_type}\n"
    yield f"kernel_type {'polynomial' if kernel.name == 'poly' else kernel.name}\n"
    if kernel.name == "poly":
        yield f"degree {int(kernel.degree)}\n"
    if kernel.name != "linear":
        yield f"gamma {_g(kernel.gamma, 17)}\n"
    if kernel.name in ("poly", "sigmoid"):
        yield f"coef0 {_g(kernel.coef0, 17)}\n"
    yield f"nr_class {svm.n_classes}\ntotal_sv {len(svm.vectors)}\n"
    # A one-class SVM is kept as that of two classes, with the signs of the second.
    is_one_class = model.svm_type == "one_class"
    numbers = [("rho", svm.intercepts if is_one_class else -svm.intercepts)]
    if not is_one_class:
        numbers.append(("label", model.labels))
        if model.sigmoids is not None:
            numbers += [("probA", model.sigmoids[0]), ("probB", model.sigmoids[1])]
        numbers.append(("nr_sv", svm.n_support))
    for key, values in numbers:
        # Adding zero turns -0.0 into 0.0.
        yield " ".join([key, *(_g(value + 0.0, 17) for value in values.tolist())]) + "\n"
    yield "SV\n"
    class_index = np.repeat(np.arange(svm.n_classes), svm.n_support)
    # LIBSVM writes -0 for a vector of the second class of a pair that does not use it.
    is_second = np.arange(svm.n_classes - 1)[:, None] < class_index
    coefs_of_vectors = np.where((svm.dual_coef == 0) & is_second, -0.0, svm.dual_coef).T
    if is_one_class:
        coefs_of_vectors = -coefs_of_vectors
    for coefs, vector in zip(coefs_of_vectors, svm.vectors, strict=True):
        places = np.flatnonzero(vector)
        words = [_g(coef, 17) for coef in coefs.tolist()]
        pairs = zip((places + model.first_index).tolist(), vector[places].tolist(), strict=True)
        yield " ".join([*words, *(f"{place}:{_g(value, 8)}" for place, value in pairs), "\n"])


def run_svm_predict(options: dict[str, Any], files: Sequence[str]) -> None:
    """Write the labels of a file, and print the accuracy."""
    from limes.atomic import atomic_write, refuse_inputs_as_outputs
    from limes.cli.models import open_model

    rows_path, model_path, output = files
    if options.get("b", 0) not in (0, 1):
        raise UsageError(f"expected 0 or 1 after -b, got {_g(options['b'])}")
    refuse_inputs_as_outputs([output], [rows_path, model_path])
    _check_exists(rows_path)
    opened = open_model(Path(model_path))
    has_probabilities = bool(options.get("b", 0))
    if has_probabilities and not opened.has_probabilities:
        raise ValueError(f"{model_path}: model does not support probability estimates")
    if opened.has_probabilities and opened.kind == "libsvm" and not has_probabilities:
        _print_unless_quiet(
            options, "Model supports probability estimates, but disabled in prediction.\n"
        )
    n_right = n_rows = 0
    with atomic_write(output) as stream:
        if has_probabilities:
            labels = " ".join(map(str, opened.label_order.tolist()))
            stream.write(f"labels {labels}\n".encode())
        for lines, is_right in _predict_batches(opened, rows_path, has_probabilities):
            stream.write(lines)
            n_right, n_rows = n_right + int(is_right.sum()), n_rows + len(is_right)
    accuracy = 100 * n_right / n_rows if n_rows else float("nan")
    _print_unless_quiet(
        options, f"Accuracy = {_g(accuracy)}% ({n_right}/{n_rows}) (classification)\n"
    )


def _predict_batches(
    opened: Any, path: str, has_probabilities: bool
) -> Iterator[tuple[bytes, Any]]:
    """Yield the lines of each batch of rows, and which labels are right."""
    from limes.cli.predict import predict_rows
    from limes.files import RowOptions, open_rows

    options = RowOptions(
        format="libsvm",
        n_features=opened.n_features_of_text(None),
        first_index=opened.first_index,
    )
    with open_rows(Path(path), options) as rows:
        for batch in rows:
            opened, X = opened.align(batch.X, Path(path))
            labels, probabilities = predict_rows(opened, X, with_proba=has_probabilities)
            lines = list(map(str, labels.tolist()))
            if has_probabilities:
                lines = [
                    " ".join([line, *map(_g, row)])
                    for line, row in zip(lines, probabilities.tolist(), strict=True)
                ]
            yield "".join(f"{line}\n" for line in lines).encode(), labels == batch.y


PROGRAMS: dict[str, Callable[[dict[str, Any], Sequence[str]], None]] = {
    "svm-scale": run_svm_scale,
    "svm-train": run_svm_train,
    "svm-predict": run_svm_predict,
}
