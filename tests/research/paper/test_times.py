"""Times against sizes, and the sizes at which two methods take as long."""

import pytest

from limes.research.paper import times as timing
from limes.research.paper.times import (
    TimeRow,
    Times,
    break_even_line,
    measure_times,
    measured_break_even,
    read_times,
    run_times,
    shortest_times,
)


def time_row(method="svm", seed=0, n_train=100, size=40, single=60.0, batch=0.5):
    return TimeRow(method, seed, n_train, size, single, batch, "", "", "")


def test_the_shortest_time_of_each_size_counts():
    rows = [time_row(), time_row(seed=1, size=44, single=50.0), time_row(n_train=300, size=90)]
    assert shortest_times(rows, "svm", "single_microseconds") == Times([42.0, 90.0], [50.0, 60.0])


def test_break_even_is_never_extrapolated():
    borders = Times([10.0, 1000.0], [1.0, 100.0])
    assert measured_break_even(Times([5.0, 6.0], [0.5, 200.0]), borders) == []
    (point,) = measured_break_even(Times([5.0], [10.0]), borders)
    assert point == (5.0, pytest.approx(100.0))


def test_the_line_of_the_paper_is_derived_from_both_fits():
    svm, borders = Times([1, 2], [14.0, 18.0]), Times([1, 2], [4.0, 6.0])
    assert break_even_line(svm, borders) == pytest.approx((2.0, 4.0))


def test_times_grow_with_the_sizes(monkeypatch):
    monkeypatch.setattr(timing, "N_TURNS", 2)
    monkeypatch.setattr(timing, "PAIR_ROWS", 1000)
    rows = measure_times(0, training_rows=(100, 3000), border_points=(10, 2000))
    small, large, few, many = (row.batch_microseconds for row in rows)
    assert small < large
    assert few < many < large
    assert [row.size for row in rows[2:]] == [10, 2000]
    assert all(row.single_microseconds > row.batch_microseconds for row in rows)


def test_seeds_with_rows_are_not_measured_again(tmp_path, monkeypatch):
    seeds = []

    def measure(seed):
        seeds.append(seed)
        return [time_row(seed=seed)]

    monkeypatch.setattr(timing, "measure_times", measure)
    for n_seeds, is_again in ((1, False), (2, False), (2, True)):
        run_times(tmp_path / "times.csv", n_seeds=n_seeds, is_again=is_again, log=lambda line: None)
    assert seeds == [0, 1, 0, 1]
    assert len(read_times(tmp_path / "times.csv")) == 2
