"""Constants of the default fit: found, halved and doubled, and what that changes."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from limes.fit.config import DEFAULTS
from limes.research.results import Cell, Column, Goal, Table, select

# Words in names of shares, which are at most 1.
SHARE_WORDS = ("share", "agreement", "recall", "coverage", "quantile", "probability")
CHANGES = {"half": 0.5, "double": 2.0}
# Standard deviations between seeds that count as a difference.
N_ERRORS = 2
CONSTANTS_TEXT = """
## Constants

{goals}

A constant is on the default path if a fit of one of the datasets below reads it. Each was halved
and doubled: seconds and cost as ratios (geometric mean of the datasets), agreement as a difference
(mean). *Same* is the number of datasets on which the model is the same, bit for bit. Whole numbers
are rounded, shares are at most 1; a constant of 1 is not halved.

- Datasets: {datasets}.
- Limits that these do not reach, measured on further problems as well: {further}. They have few
  rows (wine), many classes, 60 000 rows, a slow source of many features, gaps between the rows
  (clusters), and several sizes that are equally good (codrna). A model's warnings are part of it.
- Measured at {commits}; half and double are those of the values at these commits. The column
  `commit` of the files in `docs/fit/` has that of each row.
- Noise, {n_errors} standard deviations of such a mean from {n_seeds} seeds: {noise}.
"""


class Constant(NamedTuple):
    """A tuned value."""

    # Name of its class.
    stage_class: str
    name: str
    value: Any

    @classmethod
    def of(cls, full_name: str) -> "Constant":
        """Return a constant of this version by stage and name."""
        stage, name = full_name.split(".")
        values = getattr(DEFAULTS, stage)
        return cls(type(values).__name__, name, getattr(values, name))

    def changed(self, change: str) -> Any:
        """Return the value halved or doubled; None if that is the same or no number.

        Examples
        --------
        >>> Constant("SearchConfig", "sizes", (1, 4, 16)).changed("half")
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


def read_constants(used: Iterable[tuple[str, str]]) -> list[str]:
    """Return stage and name of the constants among the attributes that a process read.

    Examples
    --------
    >>> read_constants([("FitConfig", "train"), ("TrainConfig", "batch_size")])
    ['train.batch_size']
    """
    return [
        f"{stage_class.removesuffix('Config').lower()}.{name}"
        for stage_class, name in used
        if stage_class != "FitConfig" and not name.startswith("__")
    ]


def design_constants(source: str) -> set[str]:
    """Return the constants whose comment names the design as their origin.

    A comment is about all constants between it and the next one.

    Examples
    --------
    >>> first = ["class TrainConfig:", "    # Rows. DESIGN 5.4.", "    batch_size: int = 256"]
    >>> design_constants(chr(10).join([*first, "    # Settled.", "    decay: float = 0.1"]))
    {'train.batch_size'}
    """
    found, comment, stage, is_open = set(), "", "", False
    for line in source.splitlines():
        words = line.strip()
        if words.startswith("#"):
            comment = f"{comment} {words}" if is_open else words
        elif words.startswith("class "):
            stage, comment = words[6:].partition("Config")[0].lower(), ""
        elif ": " in words and " = " in words and "DESIGN" in comment:
            found.add(f"{stage}.{words.partition(':')[0]}")
        is_open = words.startswith("#")
    return found


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
    digest : str
        Of the bytes of the model's file.
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
    digest: str
    error: str
    commit: str


@dataclass(frozen=True)
class UsedRow:
    """A constant that a version reads.

    Parameters
    ----------
    version : str
        "before" or "after".
    constant : str
        Stage and name.
    is_from_design : int
        1 if the comment above it names the design as its origin, else 0.
    commit : str
        Of the version.
    """

    version: str
    constant: str
    is_from_design: int
    commit: str


class Effect(NamedTuple):
    """What a change of a constant does: None where a fit failed."""

    seconds: float | None = None
    agreement: float | None = None
    cost: float | None = None
    # Datasets on which the model is the same, and number of datasets.
    n_same: int = 0
    n_cases: int = 0


def constants_goals(rows: Sequence[ConstantRow], used: Sequence[UsedRow]) -> Iterator[Goal]:
    """Return whether there are fewer constants than before, and none that changes nothing."""
    before, after = (len(select(used, version=version)) for version in ("before", "after"))
    yield Goal(
        "The default path has fewer constants than before",
        after < before,
        f"{after} (before: {before})",
        is_complete=bool(before and after),
    )
    effects, idle = all_effects(rows), idle_constants(rows)
    names = dict.fromkeys(row.constant for row in select(used, version="after"))
    listed = f": {', '.join(idle)}" if idle else ""
    yield Goal(
        "None whose halving and doubling both change nothing",
        not idle,
        f"{len(idle)} of {len(effects)}{listed}",
        is_complete=bool(names) and set(effects) >= set(filter(_is_changeable, names)),
    )


def _is_changeable(name: str) -> bool:
    """Return whether a constant of this version can be halved or doubled."""
    try:
        constant = Constant.of(name)
    except AttributeError:
        return True
    return any(constant.changed(change) is not None for change in CHANGES)


def idle_constants(rows: Sequence[ConstantRow]) -> list[str]:
    """Return the constants whose halving and doubling both change nothing."""
    noise = noise_of(rows)
    return [name for name, pair in all_effects(rows).items() if _changes_nothing(pair, noise)]


def constants_part(rows: Sequence[ConstantRow]) -> Iterator[str]:
    """Return the table of constants, and those that change nothing beyond noise."""
    effects, noise = all_effects(rows), noise_of(rows)
    lines: list[list[Cell]] = []
    for name, pair in effects.items():
        cells: list[Cell] = [name]
        for change, effect in zip(CHANGES, pair, strict=True):
            same = f"{effect.n_same} of {effect.n_cases}" if effect.n_cases else None
            cells += [_value(rows, name, change), *effect[:3], same]
        lines.append(cells)
    yield Table("constants", "", CONSTANT_COLUMNS, lines).markdown()
    quiet = [
        name
        for name, pair in effects.items()
        if not _changes_nothing(pair, noise) and not any(_is_felt(e, noise) for e in pair)
    ]
    yield f"- Constants that change models, but no mean beyond noise: {', '.join(quiet) or 'none'}."
    for row in rows:
        if row.error:
            yield f"- {row.constant} = {row.value} fails on {row.case}: {row.error}"


CONSTANT_COLUMNS = (
    Column("constant"),
    *(
        column
        for change in CHANGES
        for column in (
            Column(change),
            Column(f"seconds ({change})", ".2f"),
            Column(f"agreement ({change})", "+.4f"),
            Column(f"cost ({change})", ".2f"),
            Column(f"same ({change})"),
        )
    ),
)


def constants_text(rows: Sequence[ConstantRow], further: Sequence[ConstantRow] = ()) -> str:
    """Return the text above the table, with a place for the goals."""
    noise = noise_of(rows)
    ratios = [f"{np.exp(number or 0):.2f}" for number in (noise.seconds, noise.cost)]
    return CONSTANTS_TEXT.format(
        goals="{goals}",
        n_errors=N_ERRORS,
        n_seeds=len({row.seed for row in rows}),
        datasets=", ".join(dict.fromkeys(row.case for row in rows)),
        further=", ".join(dict.fromkeys(row.case for row in further)) or "none",
        commits=", ".join(dict.fromkeys(row.commit for row in [*rows, *further])),
        noise=f"a factor of {ratios[0]} in seconds, {noise.agreement or 0:.4f} in agreement and a "
        f"factor of {ratios[1]} in cost",
    )


def all_effects(rows: Sequence[ConstantRow]) -> dict[str, list[Effect]]:
    """Return what half and double do, by constant."""
    names = [name for name in dict.fromkeys(row.constant for row in rows) if name != "default"]
    return {name: [effect_of(rows, name, change) for change in CHANGES] for name in names}


def effect_of(rows: Sequence[ConstantRow], constant: str, change: str) -> Effect:
    """Return ratio of seconds, difference of agreement and ratio of cost to the defaults."""
    changed = select(rows, constant=constant, change=change)
    pairs = [
        (row, default)
        for row in changed
        for default in select(rows, constant="default", case=row.case, seed=row.seed)
    ]
    n_same = sum(row.digest == default.digest for row, default in pairs)
    if not pairs or any(row.error for row in changed):
        return Effect(None, None, None, n_same, len(pairs))
    logs = np.array([_logs(row) - _logs(default) for row, default in pairs]).mean(axis=0)
    ratios = np.exp(logs)
    return Effect(float(ratios[0]), float(logs[1]), float(ratios[2]), n_same, len(pairs))


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


def _changes_nothing(pair: Sequence[Effect], noise: Effect) -> bool:
    """Return whether all models of both changes are the same, in about the same time."""
    is_same = all(effect.n_same == effect.n_cases for effect in pair)
    return is_same and not any(_is_felt(effect, noise) for effect in pair)


def _is_felt(effect: Effect, noise: Effect) -> bool:
    """Return whether a change exceeds the noise; a fit that fails is one, and one not made none."""
    if not effect.n_cases:
        return False
    if effect.seconds is None or effect.agreement is None or effect.cost is None:
        return True
    changes = (np.log(effect.seconds), effect.agreement, np.log(effect.cost))
    return any(abs(c) > (limit or 0) for c, limit in zip(changes, noise[:3], strict=True))


def _value(rows: Sequence[ConstantRow], constant: str, change: str) -> str | None:
    """Return a changed value as text, None if the change was not made."""
    found = select(rows, constant=constant, change=change)
    return found[0].value if found else None
