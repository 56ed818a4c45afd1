"""Fitting border maps takes less time than training the SVM that they replace."""

import time

import numpy as np
import pytest
from libsvm.svmutil import svm_train
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from limes import accelerate, datasets
from limes.libsvm.training import standardizer


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


@pytest.mark.data
@pytest.mark.slow
def test_borders_of_sat_take_less_time_than_its_svm_with_probabilities():
    options, data = datasets.parameters("sat"), datasets.load("sat")
    model = make_pipeline(standardizer(), SVC(C=options.C, gamma=options.gamma))
    model.fit(data.X_train, data.y_train)
    rows = model[:-1].transform(data.X_train)
    options = f"-c {options.C} -g {options.gamma} -b 1 -q"
    best = np.full(2, np.inf)
    with threadpool_limits(1):
        for _ in range(3):
            svm = seconds(lambda: svm_train(data.y_train.tolist(), rows.tolist(), options))
            borders = seconds(
                lambda: accelerate(
                    model, data.X_train, scheme="pairwise", n_borders=200, random_state=0
                )
            )
            best = np.minimum(best, [svm, borders])
    print(f"SVM with probabilities {best[0]:.2f} s, borders {best[1]:.2f} s")
    assert best[1] < best[0]
