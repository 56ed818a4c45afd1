"""Changed files of rows: `python tests/fuzz/fuzz_rows.py [N] [SEED] [FORMAT]`."""

import sys
import tempfile
from pathlib import Path

import numpy as np
from mutations import fuzz, main, temporary_folder

from limes.files import RowOptions, create_rows, open_rows

# A small file that was changed in a few places has fewer rows.
MAX_READ = 200_000
ENDINGS = {"libsvm": ".svm", "csv": ".csv", "libagf": ".vec", "npy": ".npy", "npz": ".npz"}


def seeds(kind):
    """Return small files with all features of a format."""
    texts = {
        "libsvm": (
            b"+1 1:0.5 3:-2e-3 \n-1 2:7 # note\n0 qid:3 1:.5 2:1. 4:1e300\n2\n",
            b"1 1:1 2:2\r\n2 1:3\t2:4\r\n",
        ),
        "csv": (
            b"a,b,label\n1,2.5,x\n-3e5,4,y\n",
            b'1,2,"quoted, ""text"""\n3,4,other\n',
            b"\xef\xbb\xbfx;y\n1;2\n",
        ),
    }
    return texts.get(kind, ()) + tuple(written(kind, dtype) for dtype in ("f4", "f8"))


def written(kind, dtype):
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"rows{ENDINGS[kind]}")
        with create_rows(path) as writer:
            writer.write(rng.normal(size=(5, 3)).astype(dtype), rng.integers(3, size=5))
        return path.read_bytes()


def reader(kind):
    """Return a function that reads one format, from a file in the working directory."""
    options = RowOptions(header="auto")

    def read(data, name):
        path = Path(f"{name}{ENDINGS[kind]}")
        path.write_bytes(data)
        try:
            with open_rows(path, options) as rows:
                for batch in rows:
                    assert batch.X.shape[0] <= MAX_READ
                    assert batch.y is None or len(batch.y) == batch.X.shape[0]
        finally:
            path.unlink()

    return read


def run(n_files, *, seed=0, show=False, kind="libsvm"):
    with temporary_folder():
        return fuzz(reader(kind), seeds(kind), n_files, seed=seed, show=show)


if __name__ == "__main__":
    given = sys.argv[3:4]
    del sys.argv[3:]
    for name in given or ENDINGS:
        print(name)
        main(lambda n_files, *, kind=name, **options: run(n_files, kind=kind, **options))
