"""
A pipeline with text columns
============================

Your SVM works on a table with text, categories and missing values: this example accelerates the
pipeline as it is.

Steps that encode text and categories stay before the map, linear steps after them are folded
into it.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import limes

# %%
# Messages to a help desk: which need an answer today?
rng = np.random.default_rng(0)
n_rows = 3000
urgent = rng.random(n_rows) < 0.4
calm_words = np.array(
    ["invoice", "address", "question", "thanks", "newsletter", "copy", "update", "please"]
)
urgent_words = np.array(
    ["down", "error", "urgent", "lost", "broken", "stopped", "immediately", "please"]
)
texts = [
    " ".join(rng.choice(urgent_words if rng.random() < 0.25 + 0.5 * u else calm_words, 5))
    for u in urgent
]
frame = pd.DataFrame(
    {
        "text": texts,
        "plan": rng.choice(["free", "team", "company"], n_rows),
        "hours waiting": rng.gamma(2 + 2 * urgent),
    }
)
frame.loc[rng.random(n_rows) < 0.1, "hours waiting"] = np.nan

# %%
# The pipeline is trained and accelerated in one step; a data frame goes in.
columns = make_column_transformer(
    (TfidfVectorizer(), "text"),
    (OneHotEncoder(), ["plan"]),
    (make_pipeline(SimpleImputer(), StandardScaler()), ["hours waiting"]),
)
model = limes.BordersClassifier(make_pipeline(columns, SVC(C=2)))
model.fit(frame[:2000], urgent[:2000])
report = model.report(frame[2000:], urgent[2000:])
print(report)
print("Steps before the map:", model.encoder_)

# %%
# Time of a prediction: the steps before the map are the same for both.
times = [report.source.microseconds_per_row, report.fast.microseconds_per_row]
figure, ax = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
bars = ax.barh(["SVC", "limes"], times, color=["#0072B2", "#D55E00"])
ax.bar_label(bars, fmt="%.0f", padding=3)
ax.set(xlabel="microseconds per row, encoding included", title="A table with text", xmargin=0.1)
plt.show()
