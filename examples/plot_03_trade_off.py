"""
The trade-off, and how to choose on it
======================================

You need a faster model than the default, or a more faithful one: this example draws every model
that the fit compared and sets a limit.

Each candidate has a cost, in multiply-adds per row, and a disagreement with the source on
held-out rows. The default takes the cheapest whose expected loss of skill cannot be noticed.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.svm import SVC

import limes
from limes.plotting import draw_candidates

X, y = make_classification(
    4500, n_features=8, n_informative=6, n_classes=3, class_sep=0.8, random_state=1
)
svc = SVC(C=10).fit(X[:2500], y[:2500])

# %%
# Three models of one source: the default, one that may cost 400 multiply-adds, and one that must
# agree on 99.5 % of rows, for which uncertain rows are handed to the exact sums.
default = limes.accelerate(svc, X[:2500])
small = limes.accelerate(svc, X[:2500], max_cost=400)
faithful = limes.accelerate(svc, X[:2500], min_agreement=0.995)
for name, fast in {"default": default, "small": small, "faithful": faithful}.items():
    found = (fast.predict(X[2500:]) == svc.predict(X[2500:])).mean()
    print(
        f"{name:9} {fast.cost_:6} multiply-adds, agreement {found:.3f} on new rows, "
        f"{fast.fallback_share_:.0%} of rows by exact sums"
    )

# %%
# Where the curve is steep, a little more cost buys much agreement; where it is flat, it buys
# none. Choose ``max_cost`` at the bend, or ``min_agreement`` at the height that you need.
figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
draw_candidates(default, ax)
ax.axvline(small.cost_, color="0.5", linestyle=":")
ax.set_title("Every model that the default compared; dotted: max_cost=400")
plt.show()
