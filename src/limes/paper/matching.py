"""The fraction of the training rows at which a support vector machine is no better than borders."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from limes.paper.rows import Row, select

# Fractions are powers of two by eighths: the next one has 9 % fewer rows.
STEPS_A_HALVING = 8
# A machine for fewer training rows a class is none.
ROWS_A_CLASS = 10
# With more training rows one choice of them is as good as another.
MANY_ROWS = 10_000

# Where the trials at a match miss the target by more, the fraction beside it is tried as often:
# the search has fewer trials a fraction, and may have been misled by one of them.
MOST_MISSED = 0.01

# The machine with all its rows decides as the sub-sampled ones do.
WHOLE = "svm-probability"

# From a step to the skill there, None where nobody has tried it yet.
Skill = Callable[[int], float | None]


class Match(NamedTuple):
    """Where the search stands."""

    step: int
    is_final: bool

    @property
    def fraction(self) -> float:
        """The fraction of the training rows."""
        return fraction_of(self.step)


def fraction_of(step: int) -> float:
    """Return the fraction of the training rows at a step.

    Examples
    --------
    >>> fraction_of(16)
    0.25
    """
    return float(2.0 ** (-step / STEPS_A_HALVING))


def search_fraction(skill: Skill, target: float, n_steps: int) -> Match:
    """Halve the range of fractions until two neighbours have the target between them.

    Skill is taken to grow with the fraction. The nearer of the two neighbours is the match; the
    machine with all rows is, where it is no better than the target.

    Examples
    --------
    >>> search_fraction(lambda step: 1.0 - step / 100, 0.9, 40)
    Match(step=10, is_final=True)
    """
    if _known(skill, 0) <= target:
        return Match(0, True)
    low, high = 0, n_steps
    while high - low > 1:
        middle = (low + high) // 2
        found = skill(middle)
        if found is None:
            return Match(middle, False)
        low, high = (middle, high) if found >= target else (low, middle)
    if skill(high) is None:
        return Match(high, False)
    return Match(min((low, high), key=lambda step: abs(_known(skill, step) - target)), True)


@dataclass(frozen=True)
class Tried:
    """What has been tried to match a method on a dataset."""

    # The mean skill of the method, on the splits of the machines where there are several.
    target: float
    # The machine with all its rows.
    whole: list[Row]
    # Machines on fewer rows by step.
    fewer: dict[int, list[Row]]

    def trials(self, step: int) -> list[Row]:
        """Return the trials at a step."""
        return self.fewer.get(step, []) if step else self.whole

    def missed(self, step: int) -> float:
        """Return by how much a step that was tried is better than the target."""
        return mean_skill(self.trials(step)) - self.target

    def search(self) -> Match:
        """Halve the range of fractions by as many trials as a search needs."""
        seeds = {*search_seeds(self.whole)}

        def skill(step: int) -> float | None:
            found = [row for row in self.trials(step) if not step or row.seed in seeds]
            is_tried = not step or {row.seed for row in found} == seeds
            return mean_skill(found) if is_tried else None

        return search_fraction(skill, self.target, _n_steps(self.whole[0]))

    def nearest(self) -> Match:
        """Return the nearest fraction among those tried as often as the last one."""
        searched = self.search()
        if not searched.is_final or searched.step == 0:
            return searched
        n_least = len(self.trials(searched.step))
        often = {0} | {step for step, rows in self.fewer.items() if len(rows) >= n_least}
        beside = self._walk(searched.step, often)
        if beside not in often:
            return Match(beside, False)
        return Match(min(often, key=lambda step: (abs(self.missed(step)), -step)), True)

    def _walk(self, step: int, often: set[int]) -> int:
        """Go towards the target until it is near, or passed, or nothing more is tried or left."""
        way = 1 if self.missed(step) > 0 else -1
        last = _n_steps(self.whole[0]) if way > 0 else 0
        while step in often and step != last and way * self.missed(step) > MOST_MISSED:
            step += way
        return step


def find_tried(rows: Sequence[Row], dataset: str, method: str) -> Tried | None:
    """Gather what has been tried to match a method."""
    whole = select(rows, experiment="results", dataset=dataset, method=WHOLE)
    wanted = select(rows, experiment="results", dataset=dataset, method=method)
    if not whole or not wanted:
        return None
    splits = {row.split for row in whole}
    fewer: dict[int, list[Row]] = {}
    for row in select(rows, dataset=dataset, method="subsampled"):
        fewer.setdefault(_step_of(row), []).append(row)
    return Tried(mean_skill([row for row in wanted if row.split in splits]), whole, fewer)


def match_method(rows: Sequence[Row], dataset: str, method: str) -> Match | None:
    """Find the machine that matches a method best of those tried, as far as the rows tell."""
    tried = find_tried(rows, dataset, method)
    return None if tried is None else tried.nearest()


def search_seeds(whole: Sequence[Row]) -> Sequence[int]:
    """Return the trials that a fraction is judged by."""
    seeds = sorted(row.seed for row in whole)
    if len(seeds) > 1:
        return seeds
    return range(5 if whole[0].n_train < MANY_ROWS else 1)


def mean_skill(rows: Sequence[Row]) -> float:
    """Return the mean uncertainty coefficient."""
    return float(np.mean([row.uncertainty_coefficient for row in rows]))


def _known(skill: Skill, step: int) -> float:
    """Return a skill that must be there."""
    value = skill(step)
    assert value is not None
    return value


def _step_of(row: Row) -> int:
    """Return the step of a machine on fewer rows."""
    return round(-STEPS_A_HALVING * math.log2(row.setting or 1.0))


def _n_steps(whole: Row) -> int:
    """Return the step below which too few rows are left."""
    halvings = math.log2(whole.n_train / (ROWS_A_CLASS * whole.n_classes))
    return max(2, int(STEPS_A_HALVING * halvings))
