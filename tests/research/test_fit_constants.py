"""Constants of the default fit: what half and double change."""

from dataclasses import replace

import pytest

from limes.fit.config import DEFAULTS
from limes.research.fit_constants import (
    CHANGES,
    Constant,
    ConstantRow,
    UsedRow,
    constants_goals,
    constants_part,
    constants_text,
    design_constants,
    effect_of,
)

ROW = ConstantRow("default", "none", "", "wine", 30, 1.0, 0.98, 1000.0, "a", "", "abc")
DEFAULT_ROWS = [
    ROW,
    replace(ROW, seed=31, fit_seconds=1.02, agreement=0.981, cost=1010.0),
    replace(ROW, case="twenty"),
    replace(ROW, case="twenty", seed=31, fit_seconds=1.02, agreement=0.981, cost=1010.0),
]


def changed(name, **values):
    """Return the rows of a constant, halved and doubled, on both datasets."""
    return [
        replace(ROW, constant=name, change=change, value="2", case=case, **values)
        for change in CHANGES
        for case in ("wine", "twenty")
    ]


def goals(rows, used=()):
    return [goal.line for goal in constants_goals(rows, used)]


@pytest.mark.parametrize(
    ("name", "value", "half", "double"),
    [
        ("batch_size", 256, 128, 512),
        ("patience", 1, None, 2),
        ("held_out_share", 0.7, 0.35, 1.0),
        ("weight_decay", 0.01, 0.005, 0.02),
        ("is_on", True, None, None),
        ("sizes", (1, 5), (1, 3), (2, 10)),
    ],
)
def test_numbers_are_halved_and_doubled(name, value, half, double):
    constant = Constant("TrainConfig", name, value)
    assert [constant.changed(change) for change in CHANGES] == [half, double]


def test_a_constant_has_the_value_of_the_defaults():
    constant = Constant.of("train.batch_size")
    assert constant == ("TrainConfig", "batch_size", DEFAULTS.train.batch_size)


def test_a_comment_is_about_the_constants_below_it():
    source = """
class DataConfig:
    # Rows. Settled,
    # with the tables in view.
    max_rows: int = 3


class TrainConfig:
    # Steps (DESIGN 5.3),
    # and penalty.
    base_steps: int = 40
    base_penalty: float = 1e-4
    # Not measured.
    tolerance: float = 1e-5
"""
    assert design_constants(source) == {"train.base_steps", "train.base_penalty"}


def test_an_effect_is_relative_to_the_default_with_the_same_seed():
    rows = [*DEFAULT_ROWS, *changed("train.a", fit_seconds=2.0, agreement=0.99, digest="b")]
    effect = effect_of(rows, "train.a", "half")
    assert effect == pytest.approx((2.0, 0.01, 1.0, 0, 2))


def test_a_constant_that_changes_no_bit_is_named():
    rows = [*DEFAULT_ROWS, *changed("train.a"), *changed("train.b", digest="b")]
    assert goals(rows)[1].endswith("1 of 2: train.a.")
    assert "no mean beyond noise: train.b." in "\n".join(constants_part(rows))


def test_a_constant_that_changes_the_time_alone_does_something():
    rows = [*DEFAULT_ROWS, *changed("train.a", fit_seconds=1.5)]
    assert goals(rows)[1].endswith("0 of 1.")


def test_constants_are_counted_in_both_versions():
    used = [UsedRow("before", name, 0, "old") for name in ("train.a", "train.b")]
    rows = [*DEFAULT_ROWS, *changed("train.b", digest="b")]
    used.append(UsedRow("after", "train.b", 0, "new"))
    assert goals(rows, used) == [
        "- The default path has fewer constants than before: **yes**, 1 (before: 2).",
        "- None whose halving and doubling both change nothing: **yes**, 0 of 1.",
    ]
    used.append(UsedRow("after", "train.c", 0, "new"))
    few, idle = goals(rows, used)
    assert "**no**, 2 (before: 2)" in few
    assert "not all measured yet" in idle


def test_a_fit_that_fails_is_told():
    failed = changed("train.a", fit_seconds=None, agreement=None, cost=None, error="ValueError: 2")
    text = "\n".join(constants_part([*DEFAULT_ROWS, *failed]))
    assert "- train.a = 2 fails on wine: ValueError: 2" in text
    assert "0 of 1" in goals([*DEFAULT_ROWS, *failed])[1]


def test_the_text_names_datasets_and_noise():
    text = constants_text(DEFAULT_ROWS)
    assert "wine, twenty" in text
    assert "from 2" in text
