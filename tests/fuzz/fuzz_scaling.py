"""Changed scaling files: `python tests/fuzz/fuzz_scaling.py [N] [SEED]`."""

from pathlib import Path

import numpy as np
from mutations import fuzz, main, temporary_folder

from limes.libsvm.scaling import read_scaling

STORED = Path(__file__).parents[1] / "data" / "foreign"


RANGES = b"y\n0 1\n-1 3\nx\n0 2\n1 -3.5 7\n2 -5 2\n4 0 1\n"
FILES = {
    "range": ((STORED / "libsvm.range").read_bytes(), RANGES),
    "e1071": ((STORED / "e1071.scale").read_bytes(),),
    "otb": ((STORED / "otb.xml").read_bytes(),),
    "grass": (b"100\n255.5\n1e3\n",),
}


def seeds(kind=None):
    """Return files of svm-scale, R, Orfeo ToolBox and GRASS."""
    return [data for name, files in FILES.items() for data in files if kind in (None, name)]


def read(data, name):
    """Read a file, and scale a row if it is accepted."""
    Path(name).write_bytes(data)
    try:
        scaling = read_scaling(name)
    finally:
        Path(name).unlink()
    width = max(1, scaling.width(1))
    step = scaling.for_features(width, 1, name)
    assert step.transform(np.ones((1, width))).shape == (1, width)


def run(n_files, *, seed=0, show=False, kind=None):
    with temporary_folder(), np.errstate(all="ignore"):
        return fuzz(read, seeds(kind), n_files, seed=seed, show=show)


if __name__ == "__main__":
    main(run)
