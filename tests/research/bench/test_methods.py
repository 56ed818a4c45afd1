"""Every compared method trains, predicts, and is skipped with a reason if it cannot."""

from dataclasses import replace

import numpy as np
import pytest

from limes.research.bench import METHODS, ModelCache, choose_methods


@pytest.fixture(scope="module")
def cache():
    return ModelCache()


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_installed_method_trains_and_predicts_one_row_as_many(method, problem, cache):
    if method.reason_to_skip(problem):
        pytest.skip(method.reason_to_skip(problem))
    source = cache.trained(problem, METHODS[0], None)
    trained = cache.trained(problem, method, source.model)
    assert np.mean(trained.labels == problem.y_test) > 0.8
    predict = method.single_row_predictor(trained.model, 1)
    rows = method.single_rows(method.rows(problem)[:20])
    alone = [np.ravel(predict(row))[0] for row in rows]
    assert alone == trained.labels[:20].tolist()


@pytest.mark.parametrize("name", ["intelex", "onnxruntime"])
def test_other_engines_give_the_predictions_of_the_source(name, problem, cache):
    source = cache.trained(problem, METHODS[0], None)
    for method in choose_methods([name]):
        if method.reason_to_skip(problem):
            pytest.skip(method.reason_to_skip(problem))
        labels = cache.trained(problem, method, source.model).labels
        assert np.mean(labels == source.labels) >= 0.99


def test_too_few_training_rows_for_a_method_are_a_reason_to_skip_it(problem):
    small = replace(problem, X_train=problem.X_train[:99], y_train=problem.y_train[:99])
    reason = choose_methods(["nystroem"])[0].reason_to_skip(small)
    assert "needs 100 training rows, there are 99" in reason


def test_an_unknown_method_is_named():
    with pytest.raises(ValueError, match="got 'perceptron'"):
        choose_methods(["perceptron"])
