"""Draw the models that a fit compared."""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.svm import SVC

import limes
from limes.plotting import draw_candidates

X, y = make_classification(
    5000, n_features=8, n_informative=6, n_classes=3, class_sep=0.8, random_state=1
)
svc = SVC(C=10).fit(X, y)
fast = limes.accelerate(svc, X, fallback=False)
figure, ax = plt.subplots(figsize=(6.4, 4), layout="tight")
draw_candidates(fast, ax)
