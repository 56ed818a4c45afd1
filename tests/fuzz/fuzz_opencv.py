"""Changed models of OpenCV: `python tests/fuzz/fuzz_opencv.py [N] [SEED]`."""

from pathlib import Path

import numpy as np
from mutations import fuzz, main, temporary_folder

from limes.foreign.opencv import read_opencv_model

STORED = Path(__file__).parents[1] / "data" / "foreign"


def seeds(kind="*"):
    """Return models in XML (xml), YAML (yml) and JSON (json)."""
    return [path.read_bytes() for path in sorted(STORED.glob(f"opencv_*.{kind}"))]


def read(data, name):
    """Read a file, and predict if it is accepted as a model."""
    Path(name).write_bytes(data)
    try:
        model = read_opencv_model(name)
    finally:
        Path(name).unlink()
    with np.errstate(all="ignore"):
        labels = model.predict(np.ones((2, model.n_features_in_)))
    assert np.isin(labels, model.labels).all()


def run(n_files, *, seed=0, show=False, kind="*"):
    with temporary_folder():
        return fuzz(read, seeds(kind), n_files, seed=seed, show=show)


if __name__ == "__main__":
    main(run)
