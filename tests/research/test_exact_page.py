"""The page of exact sums: written from rows alone, and honest about goals that are missed."""

from dataclasses import replace
from pathlib import Path

import pytest

from limes.research.exact import FILES
from limes.research.exact_page import (
    AgreementRow,
    DefaultRow,
    FitRow,
    Rows,
    SumsRow,
    make_page,
)
from limes.research.results import read_rows

DOCS = Path(__file__).parents[2] / "docs"
SUMS = SumsRow(
    dataset="sat",
    n_test=2000,
    n_features=36,
    n_classes=6,
    n_support=1446,
    n_near=0,
    near_rows="",
    n_different=0,
    probability_difference=1e-9,
    calibrated_difference=1e-12,
    uncertain_share=0.01,
    svc=60.0,
    intelex=10.0,
    limes=2.5,
    limes_float64=2.6,
    product=1.5,
    product_and_exponentials=2.0,
    cpu_share=0.99,
)
AGREEMENT = AgreementRow(
    case="sat",
    svm="C=50, gamma=0.1",
    required=0.99,
    n_given=4435,
    n_test=9900,
    n_features=36,
    n_support=1446,
    scheme="shared",
    cost=4000.0,
    fallback_share=0.05,
    agreement_estimated=0.991,
    coverage_agreement=0.985,
    agreement=0.9905,
    n_different=94,
    svc=60.0,
    intelex=10.0,
    limes=0.5,
    fit_seconds=12.0,
    cpu_share=0.99,
)
DEFAULT = DefaultRow(
    dataset="sat",
    seed=0,
    n_test=2000,
    n_support=1446,
    source_skill=0.793,
    skill_before=0.79,
    skill=0.791,
    agreement_before=0.971,
    agreement=0.98,
    scheme="shared",
    cost=4000.0,
    fallback_share=0.02,
    svc=60.0,
    limes_before=0.5,
    limes=0.55,
    fit_seconds_before=18.0,
    fit_seconds=19.0,
    cpu_share=0.99,
)
FIT = FitRow("wine", 55, "exact", 0.05)


def test_the_page_of_this_repository_is_that_of_its_rows():
    rows = (read_rows(DOCS / "exact" / file, row_type) for file, row_type in FILES.items())
    assert (DOCS / "exact.md").read_text() == make_page(Rows(*rows))


def test_parts_without_rows_are_left_out():
    assert make_page(Rows()).count("\n## ") == 0
    assert make_page(Rows(fit=[FIT])).count("\n## ") == 1


@pytest.mark.parametrize(
    ("change", "goal"),
    [
        ({"n_different": 1}, "Labels of `predict` on all rows that are not near"),
        ({"probability_difference": 2e-6}, "Probabilities within 1e-06, where measured"),
        ({"calibrated_difference": 2e-6}, "Probabilities within 1e-06, where measured"),
        ({"uncertain_share": 0.051}, "At most 5% of rows summed again"),
        ({"svc": 24.0}, "At least 10 times as fast as SVC"),
        (
            {"intelex": 4.9, "product": 1.4},
            "At least 2 times as fast as scikit-learn-intelex, or at least 60% of the speed of the "
            "product",
        ),
        (
            {"product_and_exponentials": 1.2},
            "At most 2 times the product with exponentials on sat, usps, letter",
        ),
    ],
)
def test_a_goal_of_the_sums_that_is_missed_names_the_dataset(change, goal):
    assert f"- {goal}: 1 of 1." in make_page(Rows(sums=[SUMS]))
    assert f"- {goal}: 0 of 1; not sat." in make_page(Rows(sums=[replace(SUMS, **change)]))


@pytest.mark.parametrize("change", [{"intelex": 4.9}, {"product": 1.4}])
def test_one_of_two_comparisons_is_enough(change):
    page = make_page(Rows(sums=[replace(SUMS, **change)]))
    assert "of the speed of the product: 1 of 1." in page


def test_the_median_over_datasets_is_compared():
    line = "- At least 4 times as fast as scikit-learn-intelex on the median"
    others = [replace(SUMS, intelex=intelex) for intelex in (5.0, 20.0)]
    assert f"{line}: yes, 4.0 times." in make_page(Rows(sums=[SUMS, *others]))
    assert f"{line}: no, 2.0 times." in make_page(Rows(sums=others[:1]))


def test_near_rows_are_listed():
    page = make_page(Rows(sums=[replace(SUMS, n_near=2, near_rows="7 31")]))
    assert "- Near rows of sat: 7, 31." in page
    assert "Near rows of" not in make_page(Rows(sums=[SUMS]))


def test_probabilities_that_were_not_measured_do_not_count():
    row = replace(SUMS, probability_difference=None, calibrated_difference=None)
    assert "where measured: 1 of 1." in make_page(Rows(sums=[SUMS, replace(row, dataset="usps")]))


def test_the_mean_over_cases_is_at_least_what_was_required():
    page = make_page(Rows(agreement=[AGREEMENT, replace(AGREEMENT, case="dna", agreement=0.9897)]))
    assert "- 0.99 required: mean of 2 cases 0.9901, at least what is required: yes." in page
    page = make_page(Rows(agreement=[replace(AGREEMENT, agreement=0.9896)]))
    assert "mean of 1 cases 0.9896, at least what is required: no." in page


def test_a_case_may_be_three_standard_errors_below():
    # One standard error of 0.99 on 9900 rows is 0.001.
    goal = "- 0.99 required: not below by more than 3 standard errors"
    assert AGREEMENT.standard_error == pytest.approx(0.001)
    page = make_page(Rows(agreement=[replace(AGREEMENT, agreement=0.9871)]))
    assert f"{goal}: 1 of 1." in page
    page = make_page(Rows(agreement=[replace(AGREEMENT, agreement=0.9869)]))
    assert f"{goal}: 0 of 1; not sat." in page


def test_full_agreement_allows_no_other_label():
    row = replace(AGREEMENT, required=1.0, agreement=1.0, n_different=0)
    goal = "- 1.0 required: all labels equal"
    assert f"{goal}: 1 of 1." in make_page(Rows(agreement=[row]))
    assert f"{goal}: 0 of 1; not sat." in make_page(Rows(agreement=[replace(row, n_different=1)]))


def test_scenes_with_default_settings_have_a_table_of_their_own():
    scene = replace(AGREEMENT, case="landsat8", required=None)
    page = make_page(Rows(agreement=[AGREEMENT, scene]))
    required, scenes = page.split("## Scenes")
    assert "landsat8" not in required
    assert "- Agreement on all valid pixels at least 0.99: 1 of 1." in scenes
    page = make_page(Rows(agreement=[replace(scene, agreement=0.9899)]))
    assert "at least 0.99: 0 of 1; not landsat8." in page


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"skill": 0.78}, "- U.C. at most 0.01 below the SVM's: 0 of 1; not sat."),
        ({"limes": 0.56}, "- Median time at most 1.1 times that before: no, 1.12 times."),
        (
            {"limes": 1.1},
            "- At most 2 times the time before, or exact and at least 10 times as fast as SVC: "
            "0 of 1; not sat.",
        ),
        (
            {"limes": 7.0, "scheme": "exact"},
            "- At most 2 times the time before, or exact and at least 10 times as fast as SVC: "
            "0 of 1; not sat.",
        ),
    ],
)
def test_a_goal_of_the_default_settings_that_is_missed_is_named(change, line):
    assert line not in make_page(Rows(default=[DEFAULT]))
    assert line in make_page(Rows(default=[replace(DEFAULT, **change)]))


def test_exact_sums_may_be_slower_than_the_map_before():
    row = replace(DEFAULT, limes=2.5, scheme="exact")
    assert "times as fast as SVC: 1 of 1." in make_page(Rows(default=[row]))


def test_a_line_of_the_default_settings_is_the_mean_of_its_seeds():
    page = make_page(Rows(default=[DEFAULT, replace(DEFAULT, seed=1, skill=0.781, scheme="exact")]))
    assert "| sat | 2 | 0.793 | 0.790 | 0.786 | 0.9710 | 0.9800 | exact, shared | " in page


@pytest.mark.parametrize("change", [{"seconds": 0.2}, {"scheme": "shared"}])
def test_a_small_svm_is_exact_at_once(change):
    goal = "- Below 0.2 s, and exact"
    assert f"{goal}: 1 of 1." in make_page(Rows(fit=[FIT]))
    assert f"{goal}: 0 of 1; not wine." in make_page(Rows(fit=[replace(FIT, **change)]))
