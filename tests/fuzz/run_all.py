"""All readers on changed files: `python tests/fuzz/run_all.py [SHARE] [JOBS] [TABLE]`.

A million files for each reader of limes, a hundred thousand for those of other packages; SHARE is
the part of these counts to run, JOBS the number of readers at a time. Each part runs in a process
of its own; build/fuzz.csv lists those that are complete, which the next run leaves out. TABLE is
written anew after each: one line a reader.
"""

import csv
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from threading import Lock

ROOT = Path(__file__).parents[2]
PARTS = ROOT / "build" / "fuzz.csv"
TABLE = ROOT / "docs" / "formats" / "changed_files.csv"
# Name of a reader: its module here, the kind of its files, how many there are, and in one part.
OWN, OTHER = (1_000_000, 50_000), (100_000, 10_000)
READERS = {
    "svm-scale range": ("fuzz_scaling", "range", *OWN),
    "e1071 scale": ("fuzz_scaling", "e1071", *OWN),
    "OTB statistics (XML)": ("fuzz_scaling", "otb", *OWN),
    "GRASS rescale": ("fuzz_scaling", "grass", *OWN),
    "OpenCV XML": ("fuzz_opencv", "xml", *OWN),
    "OpenCV YAML": ("fuzz_opencv", "yml", *OWN),
    "OpenCV JSON": ("fuzz_opencv", "json", *OWN),
    "libAGF control file": ("fuzz_libagf_files", "control", *OWN),
    "libAGF borders": ("fuzz_libagf_files", "borders", *OWN),
    "ONNX": ("fuzz_onnx", None, *OTHER),
    "skops": ("fuzz_skops", None, *OTHER),
    "limes model": ("fuzz_limes", None, *OWN),
    "limes trained classifier": ("fuzz_source", None, *OWN),
    "LIBSVM model": ("fuzz_libsvm_model", None, *OWN),
    "libAGF text model": ("fuzz_libagf", None, *OWN),
    "rows: LIBSVM": ("fuzz_rows", "libsvm", *OWN),
    "rows: CSV": ("fuzz_rows", "csv", *OWN),
    "rows: libAGF": ("fuzz_rows", "libagf", *OWN),
    "rows: npy": ("fuzz_rows", "npy", *OWN),
    "rows: npz": ("fuzz_rows", "npz", *OWN),
}
MAX_MEGABYTES = 200.0
# For a whole part; a single file may take ten seconds.
MAX_SECONDS = 3600.0
NAMES = ("reader", "files", "read", "refused", "slowest_seconds", "memory_mb")


def run_all(share=1.0, n_jobs=1, table=TABLE):
    """Run all parts that are missing and write the table; return the errors.

    A reader with an error is left, and the next one follows.
    """
    done, lock = read_parts(), Lock()

    def run_reader(reader):
        _, _, n_files, n_part = READERS[reader]
        n_part = min(n_part, round(n_files * share))
        for seed in range(1, round(n_files * share) // n_part + 1):
            if (reader, str(seed)) in done:
                continue
            try:
                part = run_part(reader, n_part, seed)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(error, flush=True)
                return [str(error)]
            with lock:
                done[reader, str(seed)] = part
                write_rows(PARTS, ("seed", *NAMES), done.values())
                write_rows(table, NAMES, totals(done))
            print(part, flush=True)
        return []

    with ThreadPoolExecutor(n_jobs) as pool:
        return [error for errors in pool.map(run_reader, READERS) for error in errors]


def read_parts():
    if not PARTS.exists():
        return {}
    with PARTS.open(newline="") as stream:
        return {(row["reader"], row["seed"]): row for row in csv.DictReader(stream)}


def run_part(reader, n_files, seed):
    """Return the counts of some files, read by another process."""
    command = [sys.executable, __file__, "--part", reader, str(n_files), str(seed)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=MAX_SECONDS)
    if found.returncode:
        raise RuntimeError(f"{reader}, seed {seed}: code {found.returncode}\n{found.stderr}")
    part = json.loads(found.stdout)
    if part["memory_mb"] > MAX_MEGABYTES:
        raise RuntimeError(f"{reader}, seed {seed}: {part['memory_mb']} MB of memory")
    return {"seed": seed, "reader": reader, **part}


def read_files(reader, n_files, seed):
    """Read changed files in this process; memory is what is added by the reading."""
    module, kind, *_ = READERS[reader]
    options = {} if kind is None else {"kind": kind}
    run = import_module(module).run
    run(100, seed=0, **options)
    # Begins the count of the largest memory again.
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    counts = run(n_files, seed=seed, **options)
    return {
        "files": n_files,
        "read": counts.n_read,
        "refused": counts.n_refused,
        "slowest_seconds": round(counts.slowest, 3),
        "memory_mb": round((memory("VmHWM") - before) / 1000, 1),
    }


def memory(key):
    """Return the kilobytes of this process that Linux lists under a name."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key))


def totals(done):
    """Yield one row a reader."""
    for reader in READERS:
        parts = [row for (name, _), row in done.items() if name == reader]
        if parts:
            sums = {key: sum(int(row[key]) for row in parts) for key in NAMES[1:4]}
            largest = {key: max(float(row[key]) for row in parts) for key in NAMES[4:]}
            yield {"reader": reader, **sums, **largest}


def write_rows(path, names, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--part"]:
        print(json.dumps(read_files(sys.argv[2], *map(int, sys.argv[3:]))))
    else:
        kinds = (float, int, Path)
        given = [kind(word) for kind, word in zip(kinds, sys.argv[1:], strict=False)]
        sys.exit("\n".join(run_all(*given)))
