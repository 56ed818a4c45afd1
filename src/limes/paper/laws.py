"""The laws that the figures of the sample classes show, beside what the paper says of them."""

from collections.abc import Sequence
from typing import NamedTuple

from limes.paper.figures import LEAST_TRAINING, support_law
from limes.paper.rows import Row, select
from limes.paper.statistics import Spread, by_setting, saturation

EXPONENT, EXPONENT_MARGIN = 0.94, 0.05
# "Between 200 and 300 samples", and "only 20 border samples": where skill saturates.
TRAINING_ROWS = (200, 300)
BORDER_POINTS = (10, 40)


class Finding(NamedTuple):
    """A sentence about a law, and whether that is what the paper says."""

    text: str
    agrees: bool


def describe_laws(rows: Sequence[Row]) -> list[Finding]:
    """Tell the laws that the figures of the sample classes show."""
    findings = []
    if growth := select(rows, experiment="training"):
        findings += [_growth(growth), _training(growth)]
    for method, source in (("borders", "the SVM"), ("true-borders", "the class definitions")):
        if found := select(rows, experiment="borders", method=method):
            findings.append(_borders(found, source))
    return findings


def _growth(rows: Sequence[Row]) -> Finding:
    """Tell how the number of support vectors grows."""
    law = support_law(rows)
    text = (
        f"Support vectors grow as {law.factor:.2f} · rows^{law.exponent:.2f}, fitted from "
        f"{LEAST_TRAINING} training rows on (paper: 0.38 · rows^0.94)."
    )
    return Finding(text, abs(law.exponent - EXPONENT) <= EXPONENT_MARGIN)


def _training(rows: Sequence[Row]) -> Finding:
    """Tell from how many training rows on the machine is as good as ever."""
    skills = by_setting(rows, "uncertainty_coefficient")
    first = saturation(skills)
    text = (
        f"The SVM's U.C. stays within 2 % of its best from {first:.0f} training rows on (paper: it "
        f"starts to saturate between 200 and 300)."
    )
    low, high = TRAINING_ROWS
    if low <= first <= high:
        return Finding(text, True)
    return Finding(f"{text}{_explain_saturation(skills, high)}", False)


def _explain_saturation(skills: dict[float, Spread], setting: float) -> str:
    """Say how near its best the skill is where the paper sees it saturate."""
    if setting not in skills:
        return ""
    there, best = skills[setting], max(one.mean for one in skills.values())
    return (
        f" The paper has no rule for it and reads it off a figure: at {setting:.0f} rows ours has "
        f"{there.mean / best:.0%} of its best, {best - there.mean:.3f} below it, where one trial "
        f"differs from another by {there.std or 0.0:.3f}."
    )


def _borders(rows: Sequence[Row], source: str) -> Finding:
    """Tell from how many border points on the borders are as good as ever."""
    first = saturation(by_setting(rows, "uncertainty_coefficient"))
    text = (
        f"With borders of {source}, U.C. stays within 2 % of its best from {first:.0f} points on "
        "(paper: about 20)."
    )
    return Finding(text, BORDER_POINTS[0] <= first <= BORDER_POINTS[1])
