"""The page of the fit: its goals are computed from rows alone."""

from dataclasses import replace

import pytest

from limes.research.fit_constants import UsedRow
from limes.research.fit_page import (
    AFTER,
    BEFORE,
    FitRow,
    LevelRow,
    Rows,
    TrainerRow,
    draw_growth,
    make_page,
    save_figures,
)

LISTED = ("heart", "sat", "mnist")
SEEDS = (20, 21, 22)
ROW = FitRow(
    case="sat",
    version=AFTER,
    seed=20,
    n_given=4435,
    n_test=2000,
    n_features=36,
    n_classes=6,
    n_support=1446,
    source_cost=52056,
    source_uncertainty_coefficient=0.793,
    uncertainty_coefficient=0.79,
    agreement=0.97,
    agreement_estimated=0.975,
    agreement_error=0.003,
    scheme="shared",
    n_borders=64,
    cost=4000.0,
    microseconds_per_row=0.12,
    fit_seconds=2.5,
    cpu_share=1.0,
    commit="abc",
)
LEVEL = LevelRow("sat", "avx512", 1, 1, 2000, 0.97, "same", 2.0, "abc")


def fits(case, version=AFTER, **values):
    """Return the rows of a case with all seeds."""
    return [replace(ROW, case=case, version=version, seed=seed, **values) for seed in SEEDS]


def both(case, before, **after):
    return [*fits(case, BEFORE, **before), *fits(case, **after)]


def page(**rows):
    return make_page(Rows(**rows), LISTED)


def test_a_page_without_rows_has_its_introduction_alone():
    assert "Of 0 goals" in page()
    assert "## Time" not in page()


def test_seconds_are_added_up_over_the_datasets():
    rows = [row for case in LISTED for row in both(case, {"fit_seconds": 30.0}, fit_seconds=33.0)]
    text = page(time=rows)
    assert "without mnist and humidity: at most 80 s: **yes**, 66.0 s (before: 60.0 s)." in text
    assert "with them: at most 100 s: **yes**, 99.0 s (before: 90.0 s)." in text
    rows = [replace(row, fit_seconds=40.5) for row in rows]
    assert "humidity: at most 80 s: **no**, 81.0 s" in page(time=rows)


def test_a_goal_is_open_until_all_datasets_and_seeds_are_measured():
    rows = [row for case in LISTED for row in fits(case)]
    assert "U.C. at least the source's - 0.01 on 3 of 3: **yes**, 3 of 3." in page(time=rows)
    for missing in (rows[1:], rows[3:]):
        assert "on 3 of 3: not all measured yet" in page(time=missing)


def test_skill_is_the_mean_of_the_seeds():
    lost = [replace(row, uncertainty_coefficient=0.78) for row in fits("sat")]
    rows = [*fits("heart"), *fits("mnist"), *lost]
    assert "on 3 of 3: **no**, 2 of 3 (not sat -0.0130)." in page(time=rows)
    rows[-1] = replace(ROW, seed=22, uncertainty_coefficient=0.793)
    assert "on 3 of 3: **yes**" in page(time=rows)


def test_agreement_and_cost_are_compared_with_those_before():
    rows = [
        row
        for case in LISTED
        for row in both(case, {"agreement": 0.973, "cost": 4001.0}, agreement=0.9712)
    ]
    text = page(time=rows)
    assert "that before - 0.002: **yes**, 0.9712 (before: 0.9730)." in text
    assert "no higher: **yes**, 4000 multiply-adds (before: 4001), 0.120 µs (before: 0.120)" in text
    rows = [replace(row, cost=3999.0) if row.version == BEFORE else row for row in rows]
    assert "Median prediction cost no higher: **no**" in page(time=rows)


def test_small_problems_have_their_own_limits():
    rows = [row for case in ("moons600", "heart", "wine") for row in fits(case, fit_seconds=1.4)]
    text = page(time=[*rows, *fits("digits", fit_seconds=2.6), *fits("segment")])
    assert "- moons600, heart, wine under 1.5 s: **yes**, heart 1.40 s, moons600 1.40 s" in text
    assert "- segment, digits under 2.5 s: **no**, segment 2.50 s, digits 2.60 s." in text


@pytest.mark.parametrize(("seconds", "verdict"), [((1, 2, 4, 5), "yes"), ((1, 5, 6, 7), "no")])
def test_growth_is_at_most_linear_from_size_to_size(seconds, verdict):
    sizes = (1000, 4000, 16_000, 64_000)
    rows = [
        row
        for size, number in zip(sizes, seconds, strict=True)
        for row in fits(f"rows{size}", fit_seconds=float(number))
    ]
    assert f"with rows, from each size to the next (within 10%): **{verdict}**" in page(growth=rows)


def curved_rows(losses):
    kinds = ("ring", "spheres", "ellipsoid", "saddle", "tails")
    names = [f"{kind}{n_features}" for kind in kinds for n_features in (8, 15, 30)]
    losses = [*losses, *[0.0] * (15 - len(losses))]
    return [
        row
        for name, loss in zip(names, losses, strict=True)
        for row in fits(name, uncertainty_coefficient=0.793 - loss)
    ]


def test_thirteen_of_fifteen_curved_problems_keep_the_skill():
    text = page(curved=curved_rows([0.015, 0.015]))
    assert "on 13 of 15: **yes**, 13 of 15 (not ring8 -0.0150, ring15 -0.0150)." in text
    assert "- None below -0.02: **yes**, lowest -0.0150 (ring8)." in text
    assert "on 13 of 15: **no**, 12 of 15" in page(curved=curved_rows([0.015] * 3))
    assert "- None below -0.02: **no**, lowest -0.0250" in page(curved=curved_rows([0.025]))


def test_many_classes_and_wide_rows_have_goals():
    classes = [row for n in (50, 100, 150) for row in fits(f"classes{n}", fit_seconds=float(n))]
    text = page(classes=classes, wide=fits("wide1000", agreement=0.91), time=fits("madelon"))
    assert "- Within 60 s of one processor: **no**, classes50 50.0 s, classes100 100.0 s" in text
    assert "- Agreement of madelon at least 0.95: **yes**, 0.9700." in text
    assert "- Agreement of wide1000 at least 0.9: **yes**, 0.9100." in text


def test_threads_and_levels_are_compared():
    others = [
        replace(LEVEL, n_jobs=2),
        replace(LEVEL, n_jobs=2, n_blas_threads=2, digest="other"),
    ]
    rows = [LEVEL, *others]
    slow = [replace(row, level="generic", agreement=0.955) for row in rows]
    text = page(levels=[*rows, *slow])
    assert "each SIMD level, n_jobs 1 and 2: **yes**, 2 of 2." in text
    assert "linear algebra: **no**, 0 of 2 (not sat (avx512), sat (generic))." in text
    assert "within 2 standard errors: **no**, 0 of 1 (not sat (generic)), at most 2.5" in text


def test_the_trainer_is_compared_at_the_widest_level_and_with_avx2():
    names = ("sat", "segment", "letter", "usps")
    rows = [TrainerRow(name, "avx512", 1.0, 0.4) for name in names]
    rows += [TrainerRow(name, "avx2", 1.0, 0.6) for name in names]
    text = page(trainer=[*rows, TrainerRow("sat, quadratic", "avx2", None, 0.3)])
    assert "before (avx512): **yes**, sat 0.40" in text
    assert "before (avx2): **no**, sat 0.60" in text
    assert "| sat, quadratic | avx2 | - | 0.30 | - |" in text
    assert "Missed: µs a sample at most 0.5 times that before (avx2)." in text


def test_the_page_says_which_constants_come_from_the_design():
    used = [UsedRow(AFTER, "train.batch_size", 1, "abc"), UsedRow(AFTER, "data.max_rows", 0, "abc")]
    text = page(used=used)
    assert "- Taken from DESIGN (1): train.batch_size." in text
    assert "- Others (1): data.max_rows." in text


def test_growth_is_drawn_by_version(tmp_path):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    rows = [row for n in (1000, 4000) for row in both(f"rows{n}", {"fit_seconds": 9.0})]
    ax = figure.subplots()
    draw_growth(rows, "rows", ax)
    before, after = ax.lines
    assert before.get_xydata().tolist() == [[1000, 9.0], [4000, 9.0]]
    assert after.get_ydata().tolist() == [2.5, 2.5]
    assert [path.name for path in save_figures(Rows(growth=rows), tmp_path)] == ["growth.png"]
