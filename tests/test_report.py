"""Source beside borders, as numbers and as a table."""

import numpy as np
import pytest
from sklearn.svm import SVC

from limes import accelerate


@pytest.fixture(scope="module")
def fast(moons):
    X, y = moons
    return accelerate(SVC(gamma=2).fit(X, y), X, scheme="pairwise", random_state=0)


def test_a_report_has_the_skill_of_both(fast, moons):
    X, y = moons
    report = fast.report(X, y)
    assert report.source.accuracy == fast.estimator_.score(X, y)
    assert report.borders.accuracy == fast.score(X, y)
    assert report.agreement == np.mean(fast.predict(X) == fast.estimator_.predict(X))
    assert report.speed_up > 1
    assert report.borders.n_bytes == 4 * fast.n_borders_ * (2 + 2 + 1)


def test_a_report_without_labels_tells_agreement_alone(fast, moons):
    report = fast.report(moons[0])
    assert report.source.accuracy is None
    assert "Same label on" in str(report)
    assert str(report).splitlines()[2].split() == ["accuracy", "-", "-"]


def test_a_report_is_plain_numbers_for_machines(fast, moons):
    found = fast.report(*moons).to_dict()
    assert set(found) == {"source", "borders", "agreement", "n_rows", "speed_up"}
    assert found["n_rows"] == len(moons[0])


def test_a_function_of_rows_is_compared_too(moons):
    X, _ = moons
    fast = accelerate(lambda rows: rows[:, 1] - 0.2, X, random_state=0)
    assert fast.report(X).agreement > 0.99
