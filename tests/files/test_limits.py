"""Memory does not grow with the size of a file, and reading is fast."""

import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file
from sklearn.svm import SVC

import limes
from limes.files import create_rows, read_rows

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

N_FEATURES = 36
# Buffers grow with the row groups, which are small so that a small file shows what is held.
GROUP_ROWS = 1 << 14
N_ROWS = 500_000
MIN_BYTES = 95_000_000
# Memory beyond that of the same command on few rows: less than the file, and more than the 49 MB
# that were measured. With groups of 131072 rows it is 126 MB for a file of 435 MB.
MAX_GROWTH = 75_000_000
# Memory of the whole command, for a file of any size.
MAX_MEMORY = 500_000_000


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Return the file of a fast classifier of two classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, N_FEATURES))
    y = (X[:, :4].sum(axis=1) > 0).astype(int)
    fast = limes.accelerate(
        SVC().fit(X, y), X, scheme="pairwise", n_borders=50, refine=False, random_state=0
    )
    path = tmp_path_factory.mktemp("model") / "fast.limes"
    fast.save(path)
    return path


def write_parquet(path, n_rows):
    """Write random rows in small row groups."""
    rng = np.random.default_rng(1)
    names = [f"x{number + 1}" for number in range(N_FEATURES)]
    schema = pyarrow.schema([(name, pyarrow.float32()) for name in names])
    with parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, n_rows, GROUP_ROWS):
            size = min(GROUP_ROWS, n_rows - start)
            columns = [rng.random(size, dtype=np.float32) for _ in names]
            writer.write_table(pyarrow.table(columns, names=names), row_group_size=GROUP_ROWS)
    return path


def peak_of(*words):
    """Run the command; return its largest memory in bytes and its processor time in seconds."""
    code = (
        "import re, sys, time\n"
        "from limes.cli.main import main\n"
        "status = main(sys.argv[1:])\n"
        # Not getrusage, whose peak includes that of the parent process.
        "peak = re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1]\n"
        "print(1024 * int(peak), time.process_time())\n"
        "sys.exit(status)"
    )
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    peak, seconds = done.stdout.splitlines()[-1].split()
    return int(peak), float(seconds)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured by /proc")
def test_predict_takes_little_memory_and_at_most_twice_the_time_of_copying(model, tmp_path):
    small = write_parquet(tmp_path / "small.parquet", 1000)
    large = write_parquet(tmp_path / "large.parquet", N_ROWS)
    assert large.stat().st_size > MIN_BYTES
    base, start = peak_of("predict", model, small, "-o", tmp_path / "out.parquet")
    peak, seconds = peak_of("predict", model, large, "-o", tmp_path / "out.parquet")
    assert parquet.read_metadata(tmp_path / "out.parquet").num_rows == N_ROWS
    assert peak - base < MAX_GROWTH
    assert peak < MAX_MEMORY
    assert seconds - start < 2 * copying_seconds(large, tmp_path / "copy.parquet")


def copying_seconds(path, copy):
    """Return the processor time of reading a file and writing a copy."""
    start = time.process_time()
    table = parquet.ParquetFile(path, buffer_size=1 << 18, pre_buffer=False)
    with parquet.ParquetWriter(copy, table.schema_arrow) as writer:
        for batch in table.iter_batches(use_threads=False):
            writer.write_table(pyarrow.Table.from_batches([batch]))
    return time.process_time() - start


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured by /proc")
@pytest.mark.parametrize("name", ["rows.svm", "rows.csv", "rows.npz", "rows.vec"])
def test_every_format_is_read_in_batches(name, tmp_path):
    path = tmp_path / name
    write_copies(path, 8)
    base, _ = peak_of("info", path)
    write_copies(path, 24)
    peak, _ = peak_of("info", path)
    # The rows of the larger file have 46 MB more in float32, 92 MB in float64; those of LIBSVM text
    # have 52 MB more as a sparse matrix.
    assert peak - base < 30_000_000


def write_copies(path, n_copies):
    """Write the same rows several times, as slow LIBSVM text a third as often."""
    rng = np.random.default_rng(0)
    block = (rng.random((20_000, N_FEATURES)) * 100).round() / 4
    is_text = path.suffix in (".svm", ".csv")
    with create_rows(path) as writer:
        for _ in range(1 if is_text else n_copies):
            writer.write(block, np.zeros(len(block), int))
    if is_text:
        text = path.read_bytes()
        n_header = text.index(b"\n") + 1 if path.suffix == ".csv" else 0
        n_texts = n_copies // 3 if path.suffix == ".svm" else n_copies
        path.write_bytes(text + text[n_header:] * (n_texts - 1))


def test_libsvm_text_is_read_at_least_as_fast_as_by_scikit_learn(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 30)) * (rng.random((8000, 30)) < 0.6)
    with create_rows(tmp_path / "rows.svm") as writer:
        writer.write(X, rng.integers(5, size=8000))
    best = {"limes": np.inf, "scikit-learn": np.inf}
    for _ in range(5):
        for name, read in (("limes", read_rows), ("scikit-learn", load_svmlight_file)):
            start = time.process_time()
            read(str(tmp_path / "rows.svm"))
            best[name] = min(best[name], time.process_time() - start)
    assert best["limes"] <= best["scikit-learn"]
