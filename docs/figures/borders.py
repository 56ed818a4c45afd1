"""Draw how the paper finds border points, and how they divide the plane."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.svm import SVC

import limes
from limes.plotting import COLOURS, border_points

X, y = make_moons(300, noise=0.15, random_state=0)
svc = SVC(gamma=1.5, C=5).fit(X, y)
fast = limes.accelerate(
    svc, X, scheme="pairwise", n_borders=12, placement="near", blend=1, refine=False
)
points, directions = border_points(fast)

low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
grid = np.stack(np.meshgrid(*np.linspace(low, high, 300).T), axis=-1)
values = svc.decision_function(grid.reshape(-1, 2)).reshape(300, 300)

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.6), sharex=True, sharey=True, layout="tight"
)
for ax in (left, right):
    ax.contour(*grid.T.swapaxes(1, 2), values, [0], colors="black", linewidths=1)
    ax.set(xlabel="feature 1", aspect="equal", xlim=(low[0], high[0]), ylim=(low[1], high[1]))
left.set(title="pairs of rows, and the roots between them", ylabel="feature 2")
right.set(title="nearest point and its direction")

rng = np.random.default_rng(3)
for label, marker in enumerate("os"):
    rows = X[y == label]
    left.plot(*rows.T, marker, color=COLOURS[label], markersize=3, alpha=0.5)
for _ in range(7):
    first, second = X[y == 0][rng.integers(150)], X[y == 1][rng.integers(150)]
    steps = np.linspace(0, 1, 2001)[:, None]
    line = first + steps * (second - first)
    crossing = line[np.argmax(svc.decision_function(line) > 0)]
    left.plot(*np.array([first, second]).T, color="0.4", linewidth=0.8)
    left.plot(*crossing, "D", color="black", markersize=5)

nearest = np.argmin(((grid[:, :, None] - points) ** 2).sum(axis=-1), axis=-1)
right.contour(
    *grid.T.swapaxes(1, 2), nearest, np.arange(len(points)) + 0.5, colors="0.75", linewidths=0.5
)
right.plot(*points.T, "D", color="black", markersize=5)
right.quiver(*points.T, *directions.T, color=COLOURS[1], angles="xy", scale=14, width=0.007)
