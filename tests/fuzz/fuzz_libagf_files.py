"""Changed borders and control files: `python tests/fuzz/fuzz_libagf_files.py [N] [SEED]`."""

from functools import partial
from pathlib import Path

import numpy as np
from mutations import fuzz, main, temporary_folder

from limes.export.libagf_files import read_libagf_borders

CONTROLS = (
    b"a 1 2 / 0;\nb 0 2 / 1;\nc 0 1 / 2;\n{\n  7\n  5\n  3\n}\n",
    b"a 0 / 1;\nb 0 / 2;\nc 1 / 2;\n{ 0 1 2 }\n",
    b"a\n{\n  0\n  b\n  {\n    1\n    c\n    {\n      2\n      3\n    }\n  }\n}\n",
)


def border(rng):
    return (2).to_bytes(4, "little") + rng.normal(size=(4, 2)).astype("<f4").tobytes()


def seeds(kind=None):
    """Return control files, a binary file of border points, or both."""
    borders = [border(np.random.default_rng(1))]
    return {None: [*CONTROLS, *borders], "control": CONTROLS, "borders": borders}[kind]


def read(data, name, kind):
    """Read a control file or the points of a border, and predict if it is accepted."""
    is_text = kind == "control" or (kind is None and data[:1] not in (b"\2", b"\0", b"\3", b"\6"))
    path = Path(name if is_text else f"{name}.brd")
    path.write_bytes(data)
    try:
        fast = read_libagf_borders(path)
        labels = fast.predict(np.zeros((2, fast.n_features_in_)))
    except ValueError as error:
        if "float32" not in str(error):
            raise
        return
    finally:
        path.unlink()
    assert np.isin(labels, fast.classes_).all()


def run(n_files, *, seed=0, show=False, kind=None):
    with temporary_folder():
        rng = np.random.default_rng(0)
        for name in "abc":
            for ending in (".brd", ".bgd"):
                Path(f"{name}{ending}").write_bytes(border(rng))
        with np.errstate(all="ignore"):
            reader = _with_normals(partial(read, kind=kind), rng)
            return fuzz(reader, seeds(kind), n_files, seed=seed, show=show)


def _with_normals(reader, rng):
    """Return a reader that finds normals beside each file."""
    normals = border(rng)

    def read_with_normals(data, name):
        path = Path(f"{name}.bgd")
        path.write_bytes(normals)
        try:
            reader(data, name)
        finally:
            path.unlink()

    return read_with_normals


if __name__ == "__main__":
    main(run)
