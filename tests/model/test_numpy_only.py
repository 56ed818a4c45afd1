"""Prediction needs NumPy alone: other packages cannot even be imported here."""

import subprocess
import sys
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data"
REFUSE_OTHERS = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("scipy", "sklearn", "joblib", "pandas", "pyarrow", "matplotlib"):
            raise ImportError(f"{name} is not needed to predict")

sys.meta_path.insert(0, Refuse())
"""
PREDICT = """
import numpy as np
from limes.model import load_model, save_model

model = load_model(sys.argv[1])
X = np.random.default_rng(0).normal(size=(20, model.n_features))
labels = model.predict(X)
assert set(labels) <= set(model.classes)
assert model.predict_proba(X).argmax(axis=1).tolist() == np.searchsorted(
    model.classes, labels
).tolist()
assert model.predictor()(X[0]) == labels[0]
save_model(model, sys.argv[2])
assert (load_model(sys.argv[2]).predict(X) == labels).all()
"""


@pytest.mark.parametrize("name", ["version_1.limes", "version_2.limes"])
def test_a_model_loads_predicts_and_saves_with_numpy_alone(name, tmp_path):
    command = [sys.executable, "-c", REFUSE_OTHERS + PREDICT]
    run = subprocess.run(
        [*command, str(DATA / name), str(tmp_path / "again.limes")], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
