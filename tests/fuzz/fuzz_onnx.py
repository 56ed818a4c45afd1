"""Changed ONNX models: `python tests/fuzz/fuzz_onnx.py [N] [SEED]`."""

from pathlib import Path

import numpy as np
from mutations import fuzz, main, temporary_folder

from limes.foreign.onnx import read_onnx_model

STORED = Path(__file__).parents[1] / "data" / "foreign"


def seeds():
    """Return a model of three classes with a scaler, and one of two classes."""
    return [path.read_bytes() for path in sorted(STORED.glob("onnx_*.onnx"))]


def read(data, name):
    """Read a file, and predict if it is accepted as a model."""
    Path(name).write_bytes(data)
    try:
        model = read_onnx_model(name)
    finally:
        Path(name).unlink()
    with np.errstate(all="ignore"):
        row = np.ones((2, model.n_features_in_))
        if hasattr(model, "steps"):
            row, model = model[0].transform(row), model[-1]
        # A scaler of any numbers is valid: rows may overflow.
        labels = model.predict(np.nan_to_num(row))
    assert np.isin(labels, model.classes_).all()


def run(n_files, *, seed=0, show=False):
    with temporary_folder():
        return fuzz(read, seeds(), n_files, seed=seed, show=show)


if __name__ == "__main__":
    main(run)
