"""What several trials say together: means with their spread, and fitted laws."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from limes.paper.rows import Row


class Spread(NamedTuple):
    """A mean and its standard deviation, None where there was one trial."""

    mean: float
    std: float | None = None
    n_trials: int = 1


class PowerLaw(NamedTuple):
    """y = factor x^exponent."""

    exponent: float
    factor: float


class Line(NamedTuple):
    """y = intercept + slope x."""

    slope: float
    intercept: float


def spread(values: Iterable[float]) -> Spread | None:
    """Return mean and standard deviation, None of no values.

    Examples
    --------
    >>> spread([1.0, 3.0])
    Spread(mean=2.0, std=1.4142135623730951, n_trials=2)
    """
    found = np.array(list(values), dtype=np.float64)
    if not len(found):
        return None
    std = float(found.std(ddof=1)) if len(found) > 1 else None
    return Spread(float(found.mean()), std, len(found))


def spread_of(rows: Sequence[Row], column: str) -> Spread | None:
    """Return mean and standard deviation of a column, None where no row has a value."""
    values = [getattr(row, column) for row in rows]
    return spread(value for value in values if value is not None)


def by_setting(rows: Sequence[Row], column: str) -> dict[float, Spread]:
    """Return mean and spread of a column for each setting, in rising order."""
    settings = sorted({row.setting for row in rows if row.setting is not None})
    found = {
        one: spread_of([row for row in rows if row.setting == one], column) for one in settings
    }
    return {setting: value for setting, value in found.items() if value is not None}


def fit_power_law(x: Sequence[float], y: Sequence[float]) -> PowerLaw:
    """Fit a power law, by least squares of the logarithms.

    Examples
    --------
    >>> law = fit_power_law([1, 2, 4], [3, 12, 48])
    >>> round(law.exponent, 6), round(law.factor, 6)
    (2.0, 3.0)
    """
    exponent, logarithm = np.polyfit(np.log(x), np.log(y), 1)
    return PowerLaw(float(exponent), float(np.exp(logarithm)))


def fit_line(x: Sequence[float], y: Sequence[float]) -> Line:
    """Fit a straight line by least squares.

    Each difference counts by its share of the value: times of large models would otherwise decide
    alone, and the intercept would be noise.

    Examples
    --------
    >>> line = fit_line([1, 2, 3], [5, 7, 9])
    >>> round(line.slope, 6), round(line.intercept, 6)
    (2.0, 3.0)
    """
    slope, intercept = np.polyfit(x, y, 1, w=1 / np.asarray(y, dtype=np.float64))
    return Line(float(slope), float(intercept))


def saturation(skills: dict[float, Spread], *, share: float = 0.98) -> float:
    """Return the first setting from which on the skill stays near its highest.

    Examples
    --------
    >>> saturation({1.0: Spread(0.2), 10.0: Spread(0.5), 100.0: Spread(0.5)})
    10.0
    """
    limit = share * max(one.mean for one in skills.values())
    low = [setting for setting, one in skills.items() if one.mean < limit]
    return min(setting for setting in skills if setting > max(low, default=-np.inf))
