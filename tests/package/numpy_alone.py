"""Predict with NumPy alone, and compare with the labels that the full installation gave."""

import importlib.util
import sys
from pathlib import Path

import numpy as np

import limes.model

if not Path(limes.model.__file__).is_relative_to(sys.prefix):
    sys.exit(f"limes must be the installed one, got {limes.model.__file__}.")
for name in ("scipy", "sklearn"):
    if importlib.util.find_spec(name):
        sys.exit(f"{name} must not be installed here.")
kept = np.load("kept.npz")
model = limes.model.load_model("kept.limes")
if not np.array_equal(model.predict(kept["rows"]), kept["labels"]):
    sys.exit("limes.model predicts other labels than the full installation.")
if not np.array_equal(model.predict_proba(kept["rows"]), kept["p"]):
    sys.exit("limes.model predicts other probabilities than the full installation.")
print(f"{len(kept['labels'])} labels predicted with NumPy {np.__version__} alone")
