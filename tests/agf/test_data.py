"""AGF estimators on the paper's data, compared with nearest neighbours."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from limes.agf import AGFClassifier, KernelDensityClassifier

pytestmark = pytest.mark.data

CLASSIFIERS = [AGFClassifier(), KernelDensityClassifier()]


@pytest.fixture(scope="module")
def sat(data_folder):
    """Return standardised training and test rows and their classes."""
    with np.load(data_folder / "sat.npz") as file:
        scaler = StandardScaler().fit(file["X_train"])
        X, rows = scaler.transform(file["X_train"]), scaler.transform(file["X_test"])
        return X, file["y_train"], rows, file["y_test"]


@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_sat_is_classified_as_well_as_by_nearest_neighbours(sat, model):
    X, y, rows, labels = sat
    scores = [KNeighborsClassifier(k).fit(X, y).score(rows, labels) for k in (3, 5, 10)]
    assert model.fit(X, y).score(rows, labels) > max(scores) - 0.01


@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_heart_is_classified_as_well_as_by_nearest_neighbours(data_folder, model):
    with np.load(data_folder / "heart.npz") as file:
        X, y = file["X_train"], file["y_train"]
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=4, random_state=0)

    def score(classifier):
        pipeline = make_pipeline(StandardScaler(), classifier)
        return cross_val_score(pipeline, X, y, cv=folds).mean()

    scores = [score(KNeighborsClassifier(k)) for k in (5, 10, 20)]
    assert score(model) > max(scores) - 0.02


@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_gradients_on_sat_agree_with_central_differences(sat, model):
    X, y, rows, _ = sat
    rows, step = rows[:5], 1e-4
    model.fit(X, y)
    shifts = step * np.eye(X.shape[1])
    above = np.stack([model.predict_proba(rows + shift) for shift in shifts], axis=-1)
    below = np.stack([model.predict_proba(rows - shift) for shift in shifts], axis=-1)
    expected = (above - below) / (2 * step)
    gradients = model.proba_gradient(rows)
    assert_allclose(gradients, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
