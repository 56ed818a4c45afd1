"""Prediction time of two or more installations of limes, in turns.

`OLD_PYTHON benchmarks/compare_builds.py prepare FOLDER` fits and saves models (the oldest
installation must write them, so that all can read them); `python benchmarks/compare_builds.py run
FOLDER OLD_PYTHON OLD_PYTHON NEW_PYTHON` prints microseconds per row and ratios to the first: naming
the old one twice shows the noise. `prepare` needs the paper's datasets, by LIMES_DATA.
"""

import os
import subprocess
import sys
from pathlib import Path

NAMES = ("sat", "pendigits", "letter", "ijcnn1")
N_TURNS, N_ROWS, N_REPEATS = 20, 20_000, 10
WORKER = """
import sys, time
import numpy as np
import limes
folder = sys.argv[1]
data = np.load(f"{folder}/rows.npz")
models = {name: limes.load(f"{folder}/{name}.limes") for name in data}
for line in sys.stdin:
    rows, predict = data[line.strip()], models[line.strip()].predict
    predict(rows[:100])
    start = time.process_time()
    for _ in range(int(sys.argv[2])):
        predict(rows)
    print((time.process_time() - start) / int(sys.argv[2]) / len(rows) * 1e6, flush=True)
"""


def prepare(folder: Path) -> None:
    import numpy as np
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    import limes
    from limes.datasets import load, parameters

    folder.mkdir(parents=True, exist_ok=True)
    rows = {}
    for name in NAMES:
        data, settings = load(name), parameters(name)
        X, y = data.X_train[:6000], data.y_train[:6000]
        svc = make_pipeline(StandardScaler(), SVC(C=settings.C, gamma=settings.gamma)).fit(X, y)
        limes.accelerate(svc, X, random_state=0).save(folder / f"{name}.limes")
        rows[name] = np.resize(data.X_test, (N_ROWS, X.shape[1])).astype(np.float32)
    np.savez(folder / "rows.npz", **rows)


def run(folder: Path, pythons: list[str]) -> None:
    command = ["-c", WORKER, str(folder), str(N_REPEATS)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    workers = [subprocess.Popen([one, *command], env=environment, **pipes) for one in pythons]
    for name in NAMES:
        least = [float("inf")] * len(workers)
        for turn in range(N_TURNS):
            for k in range(len(workers))[:: 1 if turn % 2 else -1]:
                workers[k].stdin.write(f"{name}\n")
                workers[k].stdin.flush()
                least[k] = min(least[k], float(workers[k].stdout.readline()))
        ratios = " ".join(f"{seconds / least[0]:.3f}" for seconds in least)
        print(f"{name}: {' '.join(f'{seconds:.4f}' for seconds in least)} µs, ratios {ratios}")
    for worker in workers:
        worker.communicate()


if __name__ == "__main__":
    task, folder, *pythons = sys.argv[1:]
    prepare(Path(folder)) if task == "prepare" else run(Path(folder), pythons)
