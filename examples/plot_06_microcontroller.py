"""
A header for a microcontroller
==============================

You want an SVM on a chip with 2 kB of memory and no floating-point unit: this example writes a
C header in whole numbers, compiles it and runs it.

The header has no dependencies and allocates no memory. :doc:`/microcontrollers` has the sizes
on AVR and ARM, and the commands.
"""

import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import limes
from limes.export.c import constant_bytes, to_c

X, y = load_digits(return_X_y=True)
svc = make_pipeline(StandardScaler(), SVC(C=10)).fit(X[:1200], y[:1200])
fast = limes.accelerate(svc, X[:1200], scheme="shared", fallback=False, max_bytes=16_384)

# %%
# One header for each type of number.
header = to_c(fast, name="digits", dtype="int8")
sizes = {dtype: constant_bytes(fast, dtype=dtype) for dtype in ("float32", "int16", "int8")}
print(header[:400])

# %%
# A program that reads rows and prints their classes, as a sketch for a board would.
program = """
#include <stdio.h>
#include "digits.h"
int main(void) {
    float x[DIGITS_FEATURES];
    int16_t row[DIGITS_FEATURES];
    for (;;) {
        for (int i = 0; i < DIGITS_FEATURES; i++)
            if (scanf("%f", &x[i]) != 1) return 0;
        digits_quantize(x, row);
        printf("%d\\n", (int)digits_labels[digits_predict(row)]);
    }
}
"""
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "digits.h").write_text(header)
    Path(folder, "main.c").write_text(program)
    subprocess.run(["cc", "-std=c99", "-Os", "main.c", "-o", "digits"], cwd=folder, check=True)
    rows = "\n".join(" ".join(map(str, row)) for row in X[1200:])
    run = subprocess.run(
        [f"{folder}/digits"], input=rows, capture_output=True, text=True, check=True
    )
labels = np.array(run.stdout.split(), dtype=int)
same = (labels == svc.predict(X[1200:])).mean()
print(f"{len(labels)} digits: {same:.1%} with the label of the SVM.")

# %%
# The tables of the model, beside those that the SVM would need as floats.
svm_bytes = 4 * svc[-1].support_vectors_.size
figure, ax = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
bars = ax.barh(
    ["SVM, float32", *(f"limes, {dtype}" for dtype in sizes)],
    [svm_bytes / 1024, *(size / 1024 for size in sizes.values())],
    color=["#0072B2", *["#D55E00"] * 3],
)
ax.bar_label(bars, fmt="%.1f", padding=3)
ax.invert_yaxis()
ax.set(xlabel="kB of tables", title=f"Handwritten digits: {same:.1%} with the SVM's label (int8)")
ax.margins(x=0.12)
plt.show()
