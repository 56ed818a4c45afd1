"""Constants of the default fit: found, halved and doubled, and what that changes."""

import math
from ast import literal_eval
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import getsource
from typing import Any, NamedTuple

import numpy as np

from limes.research.cases import Installation, run_python
from limes.research.results import select
from limes.research.table import Cell, Column, Table, yes_or_no

# Stages that the default does not run with ``scheme="shared", fallback=False``: the paper's
# borders, other schemes, fallback.
OTHER_STAGES = ("borders", "fallback", "schemes")
# Words in names of shares, which are at most 1.
SHARE_WORDS = ("share", "agreement", "recall", "coverage", "quantile", "probability")
CHANGES = {"half": 0.5, "double": 2.0}
# Standard deviations between seeds that count as a difference.
N_ERRORS = 2
CONSTANTS_TEXT = """
## Constants

Each constant of the default path, halved and doubled: seconds and cost as ratios (geometric mean of
the datasets), agreement as a difference (mean). *Noise* is what two seeds differ by: {n_errors}
standard deviations of such a mean, from {n_seeds} seeds of the defaults. A constant that exceeds it
in no column is listed below the table. Whole numbers are rounded, shares are at most 1; a constant
of 1 is not halved. Datasets: {datasets}.
"""


class Constant(NamedTuple):
    """A tuned value."""

    # Field of the configuration, and name of its class.
    stage: str
    stage_class: str
    name: str
    value: Any

    @property
    def full_name(self) -> str:
        """Stage and name."""
        return f"{self.stage}.{self.name}"

    def changed(self, change: str) -> Any:
        """Return the value halved or doubled; None if that is the same or no number.

        Examples
        --------
        >>> Constant("search", "SearchConfig", "sizes", (1, 4, 16)).changed("half")
        (1, 2, 8)
        """
        is_share = any(word in self.name for word in SHARE_WORDS)
        value = _scaled(self.value, CHANGES[change], 1.0 if is_share else math.inf)
        return None if value == self.value else value


def _scaled(value: Any, factor: float, largest: float) -> Any:
    """Return a number, or all numbers of a tuple, times a factor; whole ones are at least 1."""
    if isinstance(value, tuple):
        return tuple(_scaled(item, factor, largest) for item in value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value == 0:
        return value
    if isinstance(value, int):
        # 3.5 becomes 4, and -1 remains -1: a negative whole number is no size.
        return max(1, math.floor(factor * value + 0.5)) if value > 0 else value
    return min(factor * value, max(largest, value))


def find_constants(version: Installation) -> list[Constant]:
    """Return the constants of the default path of a version."""
    found = literal_eval(run_python(version, getsource(_list_defaults) + "\n_list_defaults()\n"))
    constants = [Constant(*fields) for fields in found]
    return [constant for constant in constants if constant.stage not in OTHER_STAGES]


def _list_defaults() -> None:
    """Print stage, class, name and value of each default; runs in the process of the version."""
    from dataclasses import fields, is_dataclass

    from limes.fit.config import DEFAULTS

    found: list[tuple[str, str, str, object]] = []
    for stage in fields(DEFAULTS):
        values = getattr(DEFAULTS, stage.name)
        if is_dataclass(values):
            found += [
                (stage.name, type(values).__name__, field.name, getattr(values, field.name))
                for field in fields(values)
            ]
    # Literals alone can be read again: no bound that is infinite, and no array.
    numbers = [row for row in found if isinstance(row[3], int | float | tuple)]
    print([row for row in numbers if "inf" not in repr(row[3])])


@dataclass(frozen=True)
class ConstantRow:
    """A fit with one constant changed, on one dataset.

    Parameters
    ----------
    constant : str
        Stage and name, such as "train.batch_size"; "default" if none is changed.
    change : str
        "half", "double" or "none".
    value : str
        The changed value.
    case : str
        Dataset or problem.
    seed : int
        Seed of the fit.
    fit_seconds, agreement, cost : float or None
        Processor time, share of the test rows with the SVM's label, multiply-adds per row; None if
        the fit failed.
    error : str
        Why it failed.
    commit : str
        Of the version.
    """

    constant: str
    change: str
    value: str
    case: str
    seed: int
    fit_seconds: float | None
    agreement: float | None
    cost: float | None
    error: str
    commit: str


@dataclass(frozen=True)
class CountRow:
    """The number of constants of the default path of a version."""

    version: str
    n_constants: int


class Effect(NamedTuple):
    """What a change of a constant does: None where a fit failed."""

    seconds: float | None = None
    agreement: float | None = None
    cost: float | None = None


def constants_part(rows: Sequence[ConstantRow], numbers: Mapping[str, int]) -> Iterator[str]:
    """Return the table of constants, those that change nothing, and their number."""
    noise = noise_of(rows)
    names = [name for name in dict.fromkeys(row.constant for row in rows) if name != "default"]
    effects = {
        name: [effect_of(rows, name, change) for change in ("half", "double")] for name in names
    }
    lines: list[list[Cell]] = []
    for name, (half, double) in effects.items():
        values = [_value(rows, name, change) for change in ("half", "double")]
        lines.append([name, values[0], *half, values[1], *double])
    yield Table("constants", "", CONSTANT_COLUMNS, lines).markdown()
    yield (
        f"- Noise: seconds times {np.exp(noise.seconds or 0):.2f}, "
        f"agreement ± {noise.agreement:.4f}, cost times {np.exp(noise.cost or 0):.2f}."
    )
    idle = [name for name, pair in effects.items() if not any(_is_felt(e, noise) for e in pair)]
    yield (
        "- Constants whose halving and doubling both change nothing beyond noise: "
        f"{', '.join(idle) or 'none'}."
    )
    if {"before", "after"} <= set(numbers):
        before, after = numbers["before"], numbers["after"]
        is_met = yes_or_no(after < before)
        yield f"- Fewer constants than before: {is_met}, {after} (before: {before})."
    for row in rows:
        if row.error:
            yield f"- {row.constant} = {row.value} fails on {row.case}: {row.error}"


CONSTANT_COLUMNS = (
    Column("constant"),
    *(
        column
        for change in ("half", "double")
        for column in (
            Column(change),
            Column(f"seconds ({change})", ".2f"),
            Column(f"agreement ({change})", "+.4f"),
            Column(f"cost ({change})", ".2f"),
        )
    ),
)


def constants_text(rows: Sequence[ConstantRow]) -> str:
    """Return the text above the table."""
    return CONSTANTS_TEXT.format(
        n_errors=N_ERRORS,
        n_seeds=len({row.seed for row in rows}),
        datasets=", ".join(dict.fromkeys(row.case for row in rows)),
    )


def effect_of(rows: Sequence[ConstantRow], constant: str, change: str) -> Effect:
    """Return ratio of seconds, difference of agreement and ratio of cost to the defaults."""
    changed = select(rows, constant=constant, change=change)
    pairs = [
        (row, default)
        for row in changed
        for default in select(rows, constant="default", case=row.case, seed=row.seed)
    ]
    if not pairs or any(row.error for row in changed):
        return Effect()
    logs = np.array([_logs(row) - _logs(default) for row, default in pairs]).mean(axis=0)
    return Effect(float(np.exp(logs[0])), float(logs[1]), float(np.exp(logs[2])))


def noise_of(rows: Sequence[ConstantRow]) -> Effect:
    """Return the noise of a mean difference of two fits: logarithms of seconds and of cost."""
    defaults = select(rows, constant="default")
    cases = list(dict.fromkeys(row.case for row in defaults))
    groups = [np.array([_logs(row) for row in select(defaults, case=case)]) for case in cases]
    groups = [group for group in groups if len(group) > 1]
    if not groups:
        return Effect(0.0, 0.0, 0.0)
    variances = np.array([group.var(axis=0, ddof=1) for group in groups])
    seconds, agreement, cost = N_ERRORS * np.sqrt(2 * variances.sum(axis=0)) / len(groups)
    return Effect(float(seconds), float(agreement), float(cost))


def _logs(row: ConstantRow) -> Any:
    """Return the logarithm of the seconds, the agreement, and the logarithm of the cost."""
    seconds, agreement, cost = row.fit_seconds, row.agreement, row.cost
    assert seconds is not None
    assert agreement is not None
    assert cost is not None
    return np.array([np.log(seconds), agreement, np.log(cost)])


def _is_felt(effect: Effect, noise: Effect) -> bool:
    """Return whether a change exceeds the noise; a fit that fails is a change."""
    if effect.seconds is None or effect.agreement is None or effect.cost is None:
        return True
    changes = (np.log(effect.seconds), effect.agreement, np.log(effect.cost))
    return any(abs(c) > (limit or 0) for c, limit in zip(changes, noise, strict=True))


def _value(rows: Sequence[ConstantRow], constant: str, change: str) -> str | None:
    """Return a changed value as text, None if the change was not made."""
    found = select(rows, constant=constant, change=change)
    return found[0].value if found else None
