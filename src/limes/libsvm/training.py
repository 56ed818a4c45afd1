"""Linear classifiers by LIBLINEAR's solver types, and the standardiser."""

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.feature_selection import VarianceThreshold
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

# LIBLINEAR's solver types, with the tolerance and the step limit of its `train` program.
LOGISTIC: dict[str, Any] = {"solver": "liblinear", "tol": 0.01}
SVC: dict[int, dict[str, Any]] = {
    1: {"penalty": "l2", "loss": "squared_hinge", "dual": True, "tol": 0.1},
    2: {"penalty": "l2", "loss": "squared_hinge", "dual": False, "tol": 0.01},
    3: {"penalty": "l2", "loss": "hinge", "dual": True, "tol": 0.1},
    4: {"multi_class": "crammer_singer", "tol": 0.1, "max_iter": 100_000},
    5: {"penalty": "l1", "loss": "squared_hinge", "dual": False, "tol": 0.01},
}


def liblinear_classifier(
    solver_type: int,
    C: float = 1.0,
    *,
    fit_intercept: bool = False,
    random_state: int | np.random.RandomState | None = None,
) -> ClassifierMixin:
    """Return the scikit-learn classifier that solves the problem of a LIBLINEAR solver type.

    It is the linear baseline for kernel classifiers: one linear function per class.

    Examples
    --------
    >>> model = liblinear_classifier(2).fit([[-1.0], [1.0], [2.0]], ["low", "high", "high"])
    >>> model.predict([[-3.0], [3.0]]).tolist()
    ['low', 'high']
    """
    if solver_type == 0:
        # scikit-learn's own supports two classes only with this solver.
        logistic = LogisticRegression(
            C=C, fit_intercept=fit_intercept, random_state=random_state, **LOGISTIC
        )
        return OneVsRestClassifier(logistic)
    if solver_type not in SVC:
        raise ValueError(f"solver_type must be one of LIBLINEAR's 0 to 5, got {solver_type!r}.")
    return LinearSVC(
        C=C, fit_intercept=fit_intercept, random_state=random_state, **SVC[solver_type]
    )


def standardizer() -> Pipeline:
    """Return the step that drops constant features and standardises the others.

    Mean and deviation are those of the training rows. Both parts are linear, so a border map
    contains them, and new rows need not be scaled.

    Examples
    --------
    >>> standardizer().fit_transform([[1.0, 7.0], [3.0, 7.0]]).tolist()
    [[-1.0], [1.0]]
    """
    return Pipeline([("vary", VarianceThreshold()), ("scale", StandardScaler())])
