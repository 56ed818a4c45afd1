"""Subsampling against the sizes in the paper."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from limes.subsample import power_law_sizes, proportional_sizes, subsample_rows

SHUTTLE = [34108, 37, 132, 6748, 2458, 6, 11]


def test_power_law_sizes_are_those_of_the_papers_shuttle():
    # Table 5: 6522 rows, which is what 15 % of 43 500 comes to, each class rounded down.
    sizes = power_law_sizes(SHUTTLE, 0.15)
    assert sizes.sum() == 6522
    assert sizes.min() == sizes[5] == 6


@pytest.mark.parametrize(
    ("class_sizes", "fraction", "expected"),
    [
        ([1072, 479, 961, 415, 470, 1038], 0.4, 1772),  # sat
        ([464, 485, 1051], 0.05, 99),  # dna
        ([483, 517], 0.17, 169),  # splice
        ([39690, 19845], 0.25, 14883),  # codrna
        ([1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644], 0.45, 3276),  # usps
    ],
)
def test_proportional_sizes_are_those_of_the_papers_table_5(class_sizes, fraction, expected):
    assert proportional_sizes(class_sizes, fraction).sum() == expected


@pytest.mark.parametrize("fraction", [0.001, 0.01, 0.15, 0.5, 0.9])
def test_power_law_sizes_follow_one_exponent(fraction):
    # log(n'_i / n_1) is proportional to log(n_i / n_1), up to the rounding of the sizes.
    sizes = np.array([10, 1000, 100_000, 10_000_000])
    reduced = power_law_sizes(sizes, fraction)
    slopes = np.log(reduced[1:] / reduced[0]) / np.log(sizes[1:] / sizes[0])
    assert np.ptp(slopes) < 0.01
    assert abs(reduced.sum() / (fraction * sizes.sum()) - 1) < 1e-3
    assert reduced[0] == 10


def test_power_law_keeps_the_order_of_the_classes():
    sizes = power_law_sizes(SHUTTLE, 0.05)
    assert_array_equal(np.argsort(sizes), np.argsort(SHUTTLE))


@pytest.mark.parametrize("fraction", [1e-9, 0.0001, 7 * 6 / sum(SHUTTLE)])
def test_power_law_never_goes_below_the_smallest_class_in_each(fraction):
    assert_array_equal(power_law_sizes(SHUTTLE, fraction), [6] * 7)


@pytest.mark.parametrize("sizes_of", [power_law_sizes, proportional_sizes])
@pytest.mark.parametrize("class_sizes", [SHUTTLE, [5], [1, 1], [3, 3, 3]])
def test_the_fraction_one_keeps_all(sizes_of, class_sizes):
    assert_array_equal(sizes_of(class_sizes, 1.0), class_sizes)


def test_a_product_just_below_a_whole_number_is_rounded_up():
    assert 0.29 * 100 < 29
    assert_array_equal(proportional_sizes([100], 0.29), [29])


def test_every_class_keeps_a_row():
    assert_array_equal(proportional_sizes([1, 3, 1000], 0.01), [1, 1, 10])


@pytest.mark.parametrize("method", ["proportional", "power"])
def test_rows_are_sorted_unique_and_of_the_right_classes(method):
    y = np.random.default_rng(0).choice(["a", "b", "c"], 500, p=[0.1, 0.3, 0.6])
    rows = subsample_rows(y, 0.4, method=method, random_state=0)
    assert_array_equal(rows, np.unique(rows))
    sizes = {"proportional": proportional_sizes, "power": power_law_sizes}[method]
    expected = sizes(np.unique(y, return_counts=True)[1], 0.4)
    assert_array_equal(np.unique(y[rows], return_counts=True)[1], expected)


def test_a_seed_gives_the_same_rows_and_another_seed_others():
    y = np.arange(200) % 3
    first = subsample_rows(y, 0.2, random_state=1)
    assert_array_equal(subsample_rows(y, 0.2, random_state=1), first)
    assert not np.array_equal(subsample_rows(y, 0.2, random_state=2), first)


@pytest.mark.parametrize("method", ["proportional", "power"])
def test_rows_of_a_smaller_fraction_are_a_subset_of_those_of_a_larger_one(method):
    y = np.repeat([0, 1], [50, 400])
    small, large = (
        subsample_rows(y, fraction, method=method, random_state=3) for fraction in (0.3, 0.6)
    )
    assert set(small) < set(large)


def test_rows_are_drawn_from_the_whole_range():
    y = np.zeros(1000, dtype=int)
    rows = subsample_rows(y, 0.1, random_state=0)
    assert len(np.unique(rows // 100)) == 10


@pytest.mark.parametrize("fraction", [0, -0.1, 1.1, np.nan])
def test_a_fraction_outside_its_range_is_refused(fraction):
    with pytest.raises(ValueError, match=r"fraction must be above 0.*got"):
        subsample_rows([0, 1], fraction)


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match=r"\['power', 'proportional'\], got 'even'"):
        subsample_rows([0, 1], 0.5, method="even")


@pytest.mark.parametrize("class_sizes", [[], [0, 3], [1.5, 2]])
def test_invalid_class_sizes_are_refused(class_sizes):
    with pytest.raises(ValueError, match="whole numbers"):
        power_law_sizes(class_sizes, 0.5)
