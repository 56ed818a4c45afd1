"""The scaling law: what is needed, exponents, and their errors."""

import numpy as np
import pytest

from limes.research.paper import scaling
from limes.research.paper.scaling import (
    GOOD,
    Curve,
    ScalingRow,
    WavySheet,
    check_law,
    measure_curve,
    read_scaling,
    rows_per_point,
    run_scaling,
    size_needed,
)


def curve_rows(method, gamma, dimension, side, seed, needed):
    """Return a curve that reaches the good accuracy at this size."""
    return [
        ScalingRow(dimension, side, seed, method, gamma, size, accuracy, None, "", "", "")
        for size, accuracy in ((round(needed / 2), GOOD - 0.1), (round(needed * 2), GOOD + 0.1))
    ]


def lawful_rows(points_exponent, n_seeds=4):
    """Return numbers that grow as powers of the volume, with some noise."""
    rng = np.random.default_rng(0)
    rows = []
    for seed in range(n_seeds):
        for side in (10.0, 20.0, 40.0):
            volume = side**2
            noise = rng.normal(scale=0.02, size=2)
            rows += curve_rows("svm", 0.3, 2, side, seed, 200 * volume * np.exp(noise[0]))
            points = 200 * volume**points_exponent * np.exp(noise[1])
            rows += curve_rows("borders", None, 2, side, seed, points)
    return rows


@pytest.mark.parametrize(("exponent", "holds"), [(0.5, True), (0.8, False)])
def test_the_law_holds_where_the_numbers_follow_it(exponent, holds):
    check = check_law(lawful_rows(exponent), 2, 0.3)
    assert check.exponent.mean == pytest.approx(exponent, abs=0.03)
    assert check.rows_exponent.mean == pytest.approx(1.0, abs=0.03)
    assert check.holds == holds
    assert check_law(lawful_rows(exponent), 3, 0.3) is None


def test_one_seed_alone_is_no_evidence_against_a_law():
    assert check_law(lawful_rows(0.8, n_seeds=1), 2, 0.3).holds


def test_rows_per_point_are_those_between_two_boxes():
    rows = lawful_rows(0.5)
    ratio = rows_per_point(rows, 2, 0.3, n_rows=80_000)
    assert ratio == pytest.approx(80_000 / (200 * 400**0.5), rel=0.05)
    assert rows_per_point(rows, 2, 0.3, n_rows=10) is None


def test_an_accuracy_that_is_not_reached_needs_no_known_size():
    rows = curve_rows("svm", 0.3, 2, 6.0, 0, 100)
    assert size_needed(rows, 0.999999) == pytest.approx(200, rel=0.01)
    assert size_needed(rows, 1.1) is None
    assert size_needed(rows, 0.5) is None
    assert size_needed([], 0.9) is None


def test_a_setback_in_between_is_averaged():
    rows = [
        ScalingRow(2, 6.0, 0, "svm", 0.3, size, accuracy, None, "", "", "")
        for size, accuracy in ((10, 0.7), (100, 0.92), (200, 0.84), (400, 0.94))
    ]
    assert 200 < size_needed(rows, 0.9) < 400


def test_rows_near_the_border_are_of_both_classes_and_near():
    sheet = WavySheet(4, 6.0, np.zeros(3))
    X = sheet.rows_near_border(500, np.random.default_rng(0))
    distance = sheet.decision(X)
    assert np.abs(distance).max() <= scaling.STRIP
    assert 200 < np.sum(distance > 0) < 300


@pytest.mark.parametrize(("method", "gamma"), [("borders", None), ("svm", 0.3)])
def test_larger_models_are_more_accurate_near_the_border(method, gamma, monkeypatch):
    monkeypatch.setattr(scaling, "N_TEST", 500)
    rows = measure_curve(Curve(2, 6.0, 0, method, gamma))
    assert rows[0].accuracy < 0.85
    assert rows[-1].accuracy > GOOD


def test_curves_with_rows_are_not_measured_again(tmp_path, monkeypatch):
    monkeypatch.setattr(scaling, "SIDES", {2: (6.0,)})
    monkeypatch.setattr(scaling, "N_TEST", 200)
    lines = []
    for n_seeds in (1, 1, 2):
        run_scaling(tmp_path / "scaling.csv", n_seeds=n_seeds, log=lines.append)
    assert len(lines) == 6
    assert {row.seed for row in read_scaling(tmp_path / "scaling.csv")} == {0, 1}
