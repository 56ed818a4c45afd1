"""Which map to take: the cheapest that is as good as its source, or else as the best map."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Give up after this many steps up the ladder that bring no better agreement.
PATIENCE = 2


@dataclass(frozen=True)
class Trial:
    """One line of the trade-off: what a map costs, and how well it agrees with the source."""

    # How the maps are joined.
    scheme: str
    # Points in all.
    n_borders: int
    # Number of nearest points whose functions are averaged.
    blend: int
    # Multiply-adds a row.
    cost: int
    # Share of rows kept aside that get the source's label.
    agreement: float
    # Standard error of the agreement.
    error: float
    # Whether this is the one.
    is_chosen: bool = False
    # How much of the source's uncertainty coefficient it is expected to lose, by how likely the
    # source finds every class of the rows kept aside; nan where that was not looked at.
    lost: float = float("nan")


def choose(
    trials: list[Trial],
    min_agreement: float | None = None,
    balances: Sequence[tuple[float, float]] | None = None,
    fair_cost: float = np.inf,
    same: float = 0.0,
    kept: Sequence[bool] = (),
) -> int:
    """Return the number of the cheapest trial that is good enough, or else as good as the best."""
    if min_agreement is not None:
        wanted = min(min_agreement, max(trial.agreement for trial in trials))
        good = {place for place, trial in enumerate(trials) if trial.agreement >= wanted}
        return _cheapest(trials, good)
    if any(kept):
        return _cheapest(trials, set(np.flatnonzero(kept).tolist()))
    plain = [(trial.agreement, max(trial.error, same)) for trial in trials]
    place = _cheapest(trials, _near_best(plain, balances or [], n_errors=1.0))
    if trials[place].cost <= fair_cost:
        return place
    return _cheapest(trials, _near_best(plain, balances or [], n_errors=2.0))


def _cheapest(trials: list[Trial], places: set[int]) -> int:
    """Return the place of the cheapest of some trials."""
    return min(places, key=lambda place: trials[place].cost)


def _near_best(
    plain: Sequence[tuple[float, float]],
    balances: Sequence[tuple[float, float]],
    n_errors: float,
) -> set[int]:
    """Return the places of the trials near the best."""
    good, balanced = (_within(results, n_errors) for results in (plain, balances))
    # Where no trial is good in both, the rare class decides.
    return good & balanced or balanced or good


def _within(results: Sequence[tuple[float, float]], n_errors: float) -> set[int]:
    """Return the places of the results within so many errors of the best."""
    if not results:
        return set()
    best, error = max(results)
    return {place for place, one in enumerate(results) if one[0] >= best - n_errors * error}


def is_settled(trials: list[Trial]) -> bool:
    """Tell whether more points have stopped to help."""
    if not trials:
        return False
    best = max(range(len(trials)), key=lambda place: trials[place].agreement)
    return trials[best].agreement >= 1.0 or len(trials) - 1 - best >= PATIENCE
