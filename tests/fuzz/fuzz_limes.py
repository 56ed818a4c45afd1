"""Changed model files: `python tests/fuzz/fuzz_limes.py [N] [SEED]`."""

import json
import tempfile
from hashlib import sha256
from pathlib import Path

import numpy as np
from mutations import NUMBERS, fuzz, main, mutate

from limes import BorderMap, BordersClassifier
from limes.model.affine import AffineMap
from limes.model.exact import (
    Calibrators,
    ClassDensities,
    ExactScheme,
    FallbackScheme,
    PairSigmoids,
)
from limes.model.file import parse_model, save_model
from limes.model.file_layout import MAGIC, PREAMBLE
from limes.model.model import Candidate, FitInfo, Model
from limes.model.schemes import (
    OneVsRestScheme,
    PairwiseScheme,
    SharedScheme,
    ShortlistScheme,
    TreeScheme,
)
from limes.model.svm import Kernel, TrainedSvm

# Bytes of integers and floats, as in arrays.
VALUES = [np.int64(value).tobytes() for value in (0, 1, -1, 2, 3, 255, 2**31, 2**62, -(2**63))]
VALUES += [
    np.float64(value).tobytes() for value in (0.0, -1.0, 1e-320, 1e30, 1e300, np.inf, np.nan)
]
VALUES += [np.int32(value).tobytes() for value in (-1, 2, 7, 2**31 - 1)]
TREE = np.array([[1, -3], [-1, 2], [-4, -2]])
ROWS = np.random.default_rng(5).normal(size=(4, 3))


def seeds():
    """Return small files with all features of the format."""
    rng = np.random.default_rng(0)
    sparse = AffineMap.scaling(np.array([1.0, 2.0, -1.0]), np.array([0.5, 2.0, 0.1]))
    dense = AffineMap(np.ones(3), rng.normal(size=(3, 2)))
    names = np.array(["height", "width", "depth"], dtype=object)
    candidates = [
        Candidate("shared", 5, 2, 40, 0.5, 0.1),
        Candidate("pairwise", 9, 1, 70, 1.0, 0.0, True),
    ]
    info = FitInfo(0.5, 0.1, "near", candidates, {"n_borders": 5, "blend": "auto"})
    models = [
        Model(PairwiseScheme(maps(rng, 3, sparse, 2), 3), np.array(list("abc")), 3, names),
        Model(PairwiseScheme(maps(rng, 3, dense, 1), 3, by_vote=False), np.arange(3), 3),
        Model(OneVsRestScheme(maps(rng, 3, None, 1), 3, True), np.arange(3.0), 3, info=info),
        Model(PairwiseScheme(maps(rng, 1, None, 3), 2), np.array([False, True]), 3),
        Model(SharedScheme(shared_map(rng, dense), 4), np.arange(4, dtype=np.int8), 3),
        Model(ShortlistScheme(shortlist(rng, dense), 4, logit_margin=2.0), np.arange(4), 3),
        Model(TreeScheme(maps(rng, 3, sparse, 2), 4, children=TREE), np.arange(4), 3),
    ]
    models += exact_models(rng, dense)
    old = (Path(__file__).parents[1] / "data" / "version_1.limes").read_bytes()
    return [*(written(model) for model in models), old]


def exact_models(rng, dense):
    """Return models with the section of an exact source, in all its forms."""
    two, three = svm(rng, "rbf", 2, 3), svm(rng, "poly", 3, 3)
    sigmoids = PairSigmoids(np.ones(3), np.zeros(3), like_libsvm=True)
    isotonic = Calibrators(isotonic=(([-1.0, 0.0, 1.0], [0.1, 0.4, 0.8]),))
    densities = ClassDensities(rng.normal(size=(4, 3)), 0.5, [3, 1], [-1.0, -2.0])
    base = SharedScheme(shared_map(rng, dense), 4)
    fallback = FallbackScheme(base, ExactScheme(svm(rng, "rbf", 4, 2), dense), 1.5, 0.1)
    schemes = [
        ExactScheme(two, rule="strict"),
        ExactScheme(three, rule="ties broken", class_order=[2, 0, 1], probabilities=sigmoids),
        ExactScheme(two, rule="likeliest", probabilities=isotonic),
        ExactScheme(two, rule="likeliest", probabilities=Calibrators([[-1.0, 0.5]])),
        ExactScheme(densities, rule="density"),
        fallback,
    ]
    return [Model(scheme, np.arange(scheme.n_classes), 3) for scheme in schemes]


def svm(rng, kernel, n_classes, n_features):
    n_vectors, n_pairs = 2 * n_classes, n_classes * (n_classes - 1) // 2
    return TrainedSvm(
        Kernel(kernel, 0.5, 2, 1.0),
        rng.normal(size=(n_vectors, n_features)),
        rng.normal(size=(n_classes - 1, n_vectors)),
        rng.normal(size=n_pairs),
        np.full(n_classes, 2),
    )


def maps(rng, n_maps, preprocessing, blend):
    width = 3 if preprocessing is None else preprocessing.n_outputs
    return tuple(
        BorderMap.from_borders(
            points=rng.normal(size=(n, width)),
            normals=rng.normal(size=(n, width)),
            preprocessing=preprocessing,
            blend=blend,
        )
        for n in range(2, 2 + n_maps)
    )


def shared_map(rng, preprocessing):
    shapes = (5, preprocessing.n_outputs), (5, 4, 3), (5, 4)
    return (BorderMap(*(rng.normal(size=shape) for shape in shapes), preprocessing, 2),)


def shortlist(rng, preprocessing):
    return (*shared_map(rng, preprocessing), *maps(rng, 6, preprocessing, 2))


def written(model):
    with tempfile.TemporaryDirectory() as folder:
        save_model(model, Path(folder, "m"))
        return Path(folder, "m").read_bytes()


def read(data, name):
    """Read a file, and predict if it is accepted as a model."""
    model = parse_model(data, name)
    try:
        fast = BordersClassifier.from_model(model)
    except (TypeError, ValueError) as error:
        # As ``limes.load`` names the file.
        raise ValueError(f"{name}: expected parameters of a classifier: {error!s:.200}") from None
    if fast.n_features_in_ != ROWS.shape[1] or hasattr(fast, "feature_names_in_"):
        return
    try:
        labels, values = fast.predict(ROWS), fast.decision_function(ROWS)
        has_probabilities = fast.scheme_.has_probabilities
        probabilities = fast.predict_proba(ROWS) if has_probabilities else None
    except ValueError as error:
        if "float32" not in str(error):
            raise
        return
    assert np.isin(labels, fast.classes_).all()
    assert len(values) == len(ROWS)
    assert probabilities is None or probabilities.shape == (len(ROWS), len(fast.classes_))


def change(data, seeds, rng):
    """Change bytes of the whole file, of the header or of the arrays, or values in the header."""
    method = rng.integers(8)
    if method == 0:
        return mutate(data, seeds, rng)
    n_header = PREAMBLE.unpack(data[: PREAMBLE.size])[2]
    text = data[PREAMBLE.size : PREAMBLE.size + n_header].rstrip()
    arrays = data[PREAMBLE.size + n_header : -32]
    if method == 1:
        text = mutate(text, seeds, rng)
    elif method <= 3:
        arrays = change_arrays(arrays, rng)
    else:
        for _ in range(rng.integers(1, 4)):
            text = change_header(text, rng)
    return sealed(text, arrays, data[8])


def sealed(text, arrays, version):
    """Correct lengths and checksum, so that changes reach the code after their checks."""
    padded = text + b" " * (-(PREAMBLE.size + len(text)) % 64)
    size = PREAMBLE.size + len(padded) + len(arrays) + 32
    whole = PREAMBLE.pack(MAGIC, version, len(padded), size) + padded + arrays
    return whole + sha256(whole).digest()


def change_arrays(arrays, rng):
    """Replace numbers of four or eight bytes in arrays."""
    changed = bytearray(arrays)
    for _ in range(rng.integers(1, 5)):
        at = int(rng.integers(len(arrays) // 8)) * 8
        number = VALUES[rng.integers(len(VALUES))]
        changed[at : at + len(number)] = number
    return bytes(changed)


def change_header(text, rng):
    """Change one value of the header, which stays JSON."""
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        return text
    positions = list(all_positions(header))
    container, key = positions[rng.integers(len(positions))]
    other = positions[rng.integers(len(positions))]
    choices = [None, True, 0, -1, 3, 2**31, 2**63, 2**70, 1e300, "", "nan", [], {}, [0], [[2, 2]]]
    choices += [other[0][other[1]], NUMBERS[rng.integers(len(NUMBERS))].decode()]
    container[key] = choices[rng.integers(len(choices))]
    try:
        return json.dumps(header).encode()
    except (ValueError, RecursionError):
        return text


def all_positions(value):
    """Yield each position in nested lists and objects, as a container and a key."""
    keys = value.keys() if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from all_positions(value[key])


def run(n_files, *, seed=0, show=False):
    return fuzz(read, seeds(), n_files, seed=seed, change=change, show=show)


if __name__ == "__main__":
    main(run)
