"""Draw which rows a map hands to the exact sums, and what each share of them gains."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.svm import SVC

import limes
from limes.plotting import COLOURS

X, y = make_moons(12_000, noise=0.25, random_state=0)
svc = SVC(C=10, gamma=4).fit(X[:3000], y[:3000])
fast = limes.accelerate(svc, X[:3000], scheme="shared", n_borders=4, curved=False, fallback=False)
rows = X[3000:]
same = fast.predict(rows) == svc.predict(rows)
margins = np.abs(2 * fast.decision_function(rows))

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="tight")
low, high = X.min(axis=0), X.max(axis=0)
grid = np.stack(np.meshgrid(*np.linspace(low, high, 300).T), axis=-1)
values = 2 * fast.decision_function(grid.reshape(-1, 2)).reshape(300, 300)
left.contourf(*grid.T.swapaxes(1, 2), np.abs(values), [0, 0.5], colors=[COLOURS[4]], alpha=0.6)
left.contour(*grid.T.swapaxes(1, 2), values, [0], colors="black", linewidths=1)
left.plot(*rows[:1500].T, ".", color="0.6", markersize=2, zorder=0)
left.set(title="log odds below 0.5", xlabel="feature 1", ylabel="feature 2")

shares = np.linspace(0, 0.2, 41)
limits = np.quantile(margins, shares)
agreement = [1 - np.mean(~same & (margins > limit)) for limit in limits]
right.plot(100 * shares, 100 * np.array(agreement), color=COLOURS[0])
right.set(
    title="what the exact sums gain",
    xlabel="rows handed to the exact sums, %",
    ylabel="agreement with the source, %",
)
right.grid(alpha=0.3)
