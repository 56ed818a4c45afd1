"""
A LIBSVM model with its range file
==================================

You have a model of ``svm-train`` and the range file of ``svm-scale``: this example reads both
as one classifier of raw rows and accelerates it.

The commands do the same: ``limes accelerate model rows --range range -o fast.limes``.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

import limes
from limes.plotting import draw_borders

# %%
# Files as LIBSVM's programs write them: the range of raw rows, scaled rows, and a model of
# these. Two features keep the picture flat. ``limes svm-scale`` and ``limes svm-train`` stand
# for LIBSVM's own.
X, y = load_wine(return_X_y=True)
X = X[:, [0, 9]]  # alcohol and colour
folder = Path(tempfile.mkdtemp())
lines = [f"{label} 1:{a:g} 2:{b:g}" for label, (a, b) in zip(y, X, strict=True)]
(folder / "wine").write_text("\n".join(lines) + "\n")
program = [sys.executable, "-m", "limes"]  # the command ``limes``, on the PATH or not
scaled = subprocess.run(
    [*program, "svm-scale", "-s", "wine.range", "wine"],
    cwd=folder,
    capture_output=True,
    check=True,
)
(folder / "wine.scaled").write_bytes(scaled.stdout)
subprocess.run(
    [*program, "svm-train", "-q", "-c", "10", "-g", "1", "wine.scaled", "wine.model"],
    cwd=folder,
    check=True,
)
print((folder / "wine.range").read_text())

# %%
# With the range, the model takes raw rows; the scaling costs a prediction nothing.
model = limes.read_libsvm_model(folder / "wine.model", range=folder / "wine.range")
fast = limes.accelerate(model, X, scheme="shared", fallback=False)
same = (fast.predict(X) == model.predict(X)).mean()
print(f"Same label on {same:.1%} of {len(X)} raw rows.")

# %%
# Three kinds of wine, in the units of the raw rows.
figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
draw_borders(fast, X, y, ax)
ax.set(xlabel="alcohol, %", ylabel="colour intensity", title="A model of svm-train, raw rows")
plt.show()
