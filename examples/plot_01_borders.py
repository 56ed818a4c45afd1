"""
Two classes and their borders
=============================

You want to see what a fast model is made of: this example draws the border of an SVM as the
points and directions that replace it.

An SVM with hundreds of support vectors is replaced by a few points on its decision border. Each
has a direction across the border; a row is classified by the side of the nearest point on which
it lies.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.svm import SVC

import limes
from limes.plotting import draw_borders

X, y = make_moons(2000, noise=0.2, random_state=0)
svc = SVC(gamma=1.0, C=10).fit(X, y)

# %%
# The paper's method places points on the border, 16 here. ``accelerate`` without these options
# trains the points, and chooses their number by itself.
fast = limes.accelerate(svc, X, scheme="pairwise", n_borders=16, placement="dense", refine=False)
print(fast.report(X, y))

# %%
# Shaded regions are the classes of the fast model, diamonds its border points.
figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
draw_borders(fast, X[:600], y[:600], ax)
ax.set(xlabel="feature 1", ylabel="feature 2", title="An SVM as 16 border points")
plt.show()
