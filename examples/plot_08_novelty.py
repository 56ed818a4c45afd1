"""
Novelty: a one-class SVM
========================

You watch a stream for rows unlike all that you know, and the one-class SVM cannot keep up: this
example replaces it and compares scores.

A detector has the labels and, in nearly the same order, the scores of its source.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import OneClassSVM

import limes

# %%
# Known rows lie on a ring.
rng = np.random.default_rng(0)
angles = rng.uniform(0, 2 * np.pi, size=12_000)
X = np.column_stack([np.cos(angles), np.sin(angles)]) + rng.normal(scale=0.15, size=(12_000, 2))
one_class = OneClassSVM(nu=0.05, gamma=2.0).fit(X)
detector = limes.accelerate(one_class, X, scheme="shared")
print(f"rank correlation of the scores, at least: {detector.score_correlation_:.4f}")

new = rng.uniform(-2, 2, size=(4000, 2))
same = detector.predict(new) == one_class.predict(new)
print(f"Same label on {same.mean():.2%} of 4000 rows anywhere in the square.")

# %%
# The border of both, and the scores of the fast detector.
x1, x2 = np.meshgrid(*[np.linspace(-2, 2, 150)] * 2)
grid = np.column_stack([x1.ravel(), x2.ravel()])
fast_values = detector.decision_function(grid).reshape(x1.shape)
values = one_class.decision_function(grid).reshape(x1.shape)
figure, ax = plt.subplots(figsize=(6, 4.8), layout="constrained")
drawn = ax.contourf(x1, x2, fast_values, 12, cmap="cividis")
figure.colorbar(drawn, label="decision value of limes")
ax.contour(x1, x2, values, [0], colors="white", linewidths=3)
ax.contour(x1, x2, fast_values, [0], colors="#D55E00", linewidths=1.5, linestyles="--")
ax.plot(*X[:400].T, ".", color="black", markersize=2)
ax.set(xlabel="feature 1", ylabel="feature 2", aspect="equal")
ax.set_title("Border of the SVM (white) and of limes (dashed)")
plt.show()
