"""
Calibration before and after
============================

You use probabilities, not only labels: this example checks whether those of the fast model are
as good as those of its source.

An SVM is calibrated by :class:`sklearn.calibration.CalibratedClassifierCV`; the fast model is
trained on these probabilities.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.datasets import make_classification
from sklearn.svm import SVC

import limes
from limes.scores import brier_score

X, y = make_classification(
    30_000, n_features=10, n_informative=6, class_sep=0.7, flip_y=0.1, random_state=0
)
X_train, X_test, y_train, y_test = X[:3000], X[3000:], y[:3000], y[3000:]
calibrated = CalibratedClassifierCV(SVC(C=3), ensemble=False).fit(X_train, y_train)
fast = limes.accelerate(calibrated, X_train, scheme="shared", fallback=False)

# %%
# A Brier score of both: lower is better.
models = {"calibrated SVC": calibrated, "limes": fast}
for name, model in models.items():
    score = brier_score(y_test, model.predict_proba(X_test), classes=fast.classes_)
    print(f"{name:15} Brier score {score:.4f}")

# %%
# Of the rows with a probability of 0.7, 70 % should be of the second class.
figure, (ax, histogram) = plt.subplots(
    2, 1, figsize=(6, 6), height_ratios=[3, 1], sharex=True, layout="constrained"
)
ax.plot([0, 1], [0, 1], color="0.6", linestyle=":", label="perfect")
styles = {"calibrated SVC": ("#0072B2", "o-"), "limes": ("#D55E00", "s--")}
for name, model in models.items():
    colour, style = styles[name]
    probabilities = model.predict_proba(X_test)[:, 1]
    found, predicted = calibration_curve(y_test, probabilities, n_bins=12)
    ax.plot(predicted, found, style, color=colour, label=name, markersize=5)
    histogram.hist(probabilities, 40, histtype="step", color=colour)
ax.set(ylabel="share of class 2", title="Calibration on 27 000 new rows")
ax.legend()
histogram.set(xlabel="predicted probability of class 2", ylabel="rows")
plt.show()
