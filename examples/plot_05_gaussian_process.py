"""
A Gaussian-process classifier
=============================

You like the probabilities of a Gaussian process and cannot wait for them: this example replaces
one.

A prediction of a Gaussian process sums over all training rows. The fast model has nearly the
same probabilities.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF

import limes

X, y = make_moons(2600, noise=0.3, random_state=0)
process = GaussianProcessClassifier(10.0 * RBF(0.7), optimizer=None).fit(X[:300], y[:300])
fast = limes.accelerate(process, X[300:1600], scheme="shared", fallback=False)
print(fast.report(X[1600:], y[1600:]))

# %%
# Probabilities of the second class, on a grid.
low, high = X.min(axis=0), X.max(axis=0)
x1, x2 = np.meshgrid(np.linspace(low[0], high[0], 60), np.linspace(low[1], high[1], 60))
grid = np.column_stack([x1.ravel(), x2.ravel()])
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
for ax, model, title in zip(axes, (process, fast), ("Gaussian process", "limes"), strict=True):
    probabilities = model.predict_proba(grid)[:, 1].reshape(x1.shape)
    levels = np.linspace(0, 1, 11)
    drawn = ax.contourf(x1, x2, probabilities, levels, cmap="cividis")
    ax.contour(x1, x2, probabilities, [0.5], colors="white", linewidths=1.5)
    ax.set(title=title, xlabel="feature 1")
axes[0].set(ylabel="feature 2")
figure.colorbar(drawn, ax=axes, label="probability of class 2")
plt.show()
