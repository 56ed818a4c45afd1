"""Changed text models: `python tests/fuzz/fuzz_libagf.py [N] [SEED]`."""

import io

import numpy as np
from mutations import fuzz, main

from limes.export.libagf import parse_libagf_model


def seeds():
    """Return small models of two to four classes."""
    rng = np.random.default_rng(0)
    return [text(rng, "3 7", 1, 2), text(rng, "4 2 9 -1", 6, 1), text(rng, "1 2 3", 3, 3)]


def text(rng, labels, n_pairs, n_features):
    lines = ["1v1", str(len(labels.split())), labels, " ".join(["-1"] * n_pairs)]
    for _ in range(n_pairs):
        for _ in range(2):
            rows = rng.normal(size=(3, n_features))
            lines += [f"3 {n_features}", *(" ".join(map(repr, row.tolist())) for row in rows)]
    return ("\n".join(lines) + "\n").encode()


def read(data, name):
    """Read a file, and predict if it is accepted as a model."""
    fast = parse_libagf_model(io.BytesIO(data), name)
    rows = np.zeros((2, fast.n_features_in_))
    try:
        labels = fast.predict(rows)
    except ValueError as error:
        if "float32" not in str(error):
            raise
        return
    assert np.isin(labels, fast.classes_).all()


def run(n_files, *, seed=0, show=False):
    return fuzz(read, seeds(), n_files, seed=seed, show=show)


if __name__ == "__main__":
    main(run)
