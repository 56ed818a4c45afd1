"""The fraction of the training rows at which a support vector machine is no better than borders."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from limes.paper.rows import Row, select

# Fractions are powers of two by eighths: the next one has 9 % fewer rows.
STEPS_A_HALVING = 8
# A machine for fewer training rows a class is none.
ROWS_A_CLASS = 10
# With more training rows one choice of them is as good as another.
MANY_ROWS = 10_000

# The machine with all its rows decides as the sub-sampled ones do.
WHOLE = "svm-probability"

# From a step to the skill there, None where nobody has tried it yet.
Skill = Callable[[int], float | None]


class Match(NamedTuple):
    """Where the search stands.

    Parameters
    ----------
    step : int
        The fraction is 2^(-step / 8); 0 is the machine with all its rows.
    is_final : bool
        False where the skill at that step must be known before the search can go on.
    """

    step: int
    is_final: bool

    @property
    def fraction(self) -> float:
        """The fraction of the training rows."""
        return fraction_of(self.step)


def fraction_of(step: int) -> float:
    """Return the fraction of the training rows at a step.

    Parameters
    ----------
    step : int
        0 or more.

    Returns
    -------
    float
        From 1 down.

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

    Parameters
    ----------
    skill : callable
        From a step to its skill, or to None where that is not known yet.
    target : float
        The skill to match.
    n_steps : int
        The step with the smallest fraction.

    Returns
    -------
    Match
        The fraction, or the next one to try.

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


def match_method(rows: Sequence[Row], dataset: str, method: str) -> Match | None:
    """Search for the machine that matches a method, as far as the rows tell.

    Parameters
    ----------
    rows : sequence of Row
        All trials.
    dataset, method : str
        Whose uncertainty coefficient is to be matched.

    Returns
    -------
    Match or None
        None where there are no trials of the method or of the whole machine.
    """
    whole = select(rows, experiment="results", dataset=dataset, method=WHOLE)
    wanted = select(rows, experiment="results", dataset=dataset, method=method)
    if not whole or not wanted:
        return None
    seeds = search_seeds(whole)
    tried = [row for row in select(rows, dataset=dataset, method="subsampled") if row.seed in seeds]
    # On the same splits, where there are several.
    splits = {row.split for row in whole}
    compared = [row for row in wanted if row.split in splits]

    def skill(step: int) -> float | None:
        if step == 0:
            return mean_skill(whole)
        found = select(tried, setting=fraction_of(step))
        return mean_skill(found) if len({row.seed for row in found}) == len(seeds) else None

    return search_fraction(skill, mean_skill(compared), _n_steps(whole[0]))


def search_seeds(whole: Sequence[Row]) -> Sequence[int]:
    """Return the trials that a fraction is judged by.

    Parameters
    ----------
    whole : sequence of Row
        Of the machine with all rows.

    Returns
    -------
    sequence of int
        The seeds of all splits, where there are several; else of some choices of rows, a single
        one where there are so many rows that chance counts little.
    """
    seeds = sorted(row.seed for row in whole)
    if len(seeds) > 1:
        return seeds
    return range(5 if whole[0].n_train < MANY_ROWS else 1)


def mean_skill(rows: Sequence[Row]) -> float:
    """Return the mean uncertainty coefficient.

    Parameters
    ----------
    rows : sequence of Row
        At least one.

    Returns
    -------
    float
        From 0 to 1.
    """
    return float(np.mean([row.uncertainty_coefficient for row in rows]))


def _known(skill: Skill, step: int) -> float:
    """Return a skill that must be there."""
    value = skill(step)
    assert value is not None
    return value


def _n_steps(whole: Row) -> int:
    """Return the step below which too few rows are left."""
    halvings = math.log2(whole.n_train / (ROWS_A_CLASS * whole.n_classes))
    return max(2, int(STEPS_A_HALVING * halvings))
