"""Memory and time of `limes predict` on a large Parquet file, compared with copying that file.

`python benchmarks/large_file.py MODEL [GIGABYTES]` writes random rows as wide as the model takes
into a temporary folder, and removes them afterwards. Times are processor times of all threads.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow
from pyarrow import parquet

import limes

GROUP_ROWS = 1 << 17


def main() -> None:
    """Print one line per command."""
    model = Path(sys.argv[1])
    n_bytes = float(sys.argv[2]) * 1e9 if len(sys.argv) > 2 else 2e9
    n_features = limes.load(model).n_features_in_
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = write_rows(folder / "rows.parquet", n_features, n_bytes)
        n_rows = parquet.read_metadata(rows).num_rows
        print(f"{n_rows:,} rows of {n_features} features, {rows.stat().st_size / 1e9:.2f} GB")
        copy = (sys.executable, __file__, "--copy", rows, folder / "copy.parquet")
        label = (sys.executable, "-m", "limes", "predict", model, rows, "-o")
        measure("read and write the file", *copy)
        measure("limes predict", *label, folder / "labels.parquet")
        measure("limes predict --keep", *label, folder / "all.parquet", "--keep")


def write_rows(path: Path, n_features: int, n_bytes: float) -> Path:
    """Write random rows, in row groups of the usual size, until the file is large enough."""
    rng = np.random.default_rng(0)
    names = [f"x{number}" for number in range(1, n_features + 1)]
    schema = pyarrow.schema([(name, pyarrow.float32()) for name in names])
    with path.open("wb") as stream, parquet.ParquetWriter(stream, schema) as writer:
        while stream.tell() < n_bytes:
            columns = [rng.standard_normal(GROUP_ROWS, dtype=np.float32) for _ in names]
            writer.write_table(pyarrow.table(columns, names=names), row_group_size=GROUP_ROWS)
    return path


def copy_rows(path: str, copy: str) -> None:
    """Read a file and write it again with the same settings as limes, nothing else."""
    table = parquet.ParquetFile(path, buffer_size=1 << 18, pre_buffer=False)
    with parquet.ParquetWriter(copy, table.schema_arrow) as writer:
        for batch in table.iter_batches(use_threads=False):
            writer.write_table(pyarrow.Table.from_batches([batch]))


def measure(title: str, *words: object) -> None:
    """Run a command; print its processor time, wall-clock time and peak memory."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with subprocess.Popen([*map(str, words)], stdout=subprocess.DEVNULL) as process:
        peak = watch(process)
    taken, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert process.returncode == 0
    print(
        f"{title:25} {worked:6.1f} s of processor time, {taken:6.1f} s in all, {peak / 1e6:5.0f} MB"
    )


def watch(process: "subprocess.Popen[bytes]") -> int:
    """Return the peak memory of a process, which the system reports while it runs."""
    peak = 0
    while process.poll() is None:
        try:
            text = Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            break
        kilobytes = [line.split()[1] for line in text.splitlines() if line.startswith("VmHWM")]
        peak = max([peak, *(1024 * int(word) for word in kilobytes)])
        time.sleep(0.05)
    return peak


if __name__ == "__main__":
    copy_rows(*sys.argv[2:]) if sys.argv[1:2] == ["--copy"] else main()
