"""
Other sources than SVMs
=======================

Your slow classifier is no SVM: this example accelerates kernel densities, adaptive Gaussian
filtering and nearest neighbours.

All of them sum or search over their training rows for every prediction. The fast model
evaluates the linear functions of a few nearby points.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsClassifier

import limes
from limes.datasets import sample_classes

SOURCES = {
    "adaptive Gaussian filtering": limes.AGFClassifier(),
    "kernel density": limes.KernelDensityClassifier(),
    "51 nearest neighbours": KNeighborsClassifier(51),
}
X, y = sample_classes(4000, random_state=0)
X_train, X_test, y_train, y_test = X[:2000], X[2000:], y[:2000], y[2000:]

# %%
# Each is trained, accelerated and compared.
reports = {}
for name, source in SOURCES.items():
    fast = limes.accelerate(source.fit(X_train, y_train), X_train)
    reports[name] = fast.report(X_test, y_test)
    print(f"{name}\n\n{reports[name]}\n")

# %%
# Time per row, on a logarithmic axis.
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
places = np.arange(len(reports))
for offset, part, colour in ((-0.2, "source", "#0072B2"), (0.2, "fast", "#D55E00")):
    times = [getattr(report, part).microseconds_per_row for report in reports.values()]
    bars = ax.barh(places + offset, times, 0.38, color=colour, label=part)
    ax.bar_label(bars, fmt="%.2g", padding=3)
ax.set(xscale="log", xlabel="microseconds per row", yticks=places, yticklabels=list(reports))
ax.set_title("Sources and their fast models")
ax.margins(x=0.15)
ax.invert_yaxis()
ax.legend(loc="lower right")
plt.show()
