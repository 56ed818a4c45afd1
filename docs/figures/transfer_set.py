"""Draw given rows beside synthetic ones, coloured by the source's probability."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from limes.plotting import COLOURS

X, y = make_moons(300, noise=0.15, random_state=0)
svc = SVC(gamma=1.5, C=5).fit(X, y)
rng = np.random.default_rng(0)
# As src/limes/fit/synthetic.py does it, in short: between and around pairs of rows, each feature by
# itself, then near the border.
first, second = X[rng.integers(300, size=4000)], X[rng.integers(300, size=4000)]
between = first + rng.uniform(-0.3, 1.3, size=(4000, 2)) * (second - first)
near = between[np.argsort(np.abs(svc.decision_function(between)))[:1200]]
synthetic = np.vstack([between[:400], near + rng.normal(scale=0.05, size=near.shape)])
probability = 1 / (1 + np.exp(-2 * svc.decision_function(synthetic)))

low, high = X.min(axis=0) - 0.5, X.max(axis=0) + 0.5
grid = np.stack(np.meshgrid(*np.linspace(low, high, 300).T), axis=-1)
values = svc.decision_function(grid.reshape(-1, 2)).reshape(300, 300)
figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.4), sharex=True, sharey=True, layout="constrained"
)
for label, marker in enumerate("os"):
    left.plot(*X[y == label].T, marker, color=COLOURS[label], markersize=3)
drawn = right.scatter(*synthetic.T, c=probability, s=4, cmap="cividis")
figure.colorbar(drawn, ax=right, label="probability of class 2")
for ax, title in ((left, "given rows"), (right, "synthetic rows")):
    ax.contour(*grid.T.swapaxes(1, 2), values, [0], colors="black", linewidths=1)
    ax.set(xlabel="feature 1", title=title, xlim=(low[0], high[0]), ylim=(low[1], high[1]))
left.set(ylabel="feature 2")
