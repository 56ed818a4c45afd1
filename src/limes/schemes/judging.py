"""Who judges a map: rows like those that neither the map nor its source has seen."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from limes._typing import Array, Codes
from limes.affine import AffineMap, to_dense
from limes.queries import make_crosses, make_twins
from limes.schemes.judges import Judges
from limes.sources.protocol import MulticlassSource
from limes.sources.svm import SvmSource
from limes.svm_machine import SvmMachine

# Rows made to be judged by: as many as the source can be asked about with so many multiply-adds,
# from twice as many to choose from. Rows that they may be made with, and the
# least to make them from.
MIN_TWINS, MAX_TWINS = 4000, 8000
TWIN_BUDGET = 6e9
MAX_MATES = 8000
MIN_STARTS = 20
# Rows of fewer features than this are not crossed.
MIN_CROSSED = 8
# Training the source again may cost this many multiply-adds for each question that it answers.
REFIT_BUDGET = 1.2e10
N_FOLDS = 5
# So many rows left out tell how sure a machine is of rows unseen; more folds are not needed.
N_UNSEEN = 1500
# Rows are told apart by how sure the source is of them: so many kinds, of so many rows at least.
N_KINDS = 12
MIN_KIND_ROWS = 10


@dataclass(frozen=True, eq=False)
class Lot:
    """The rows at hand, raw and in the space of the source, that judges are drawn from."""

    # All raw rows.
    X: Any
    # Which of them are at hand.
    chosen: Codes
    # Shape (n_chosen, n_features). Those in the space of the source.
    rows: Array
    # From raw rows to that space.
    before: AffineMap | None
    # The source's class numbers of rows in its space.
    codes_of: Callable[[Array], Codes]

    def judges(self, places: Codes) -> Judges:
        """Return some of the rows as judges, one worth as much as another."""
        return Judges.evenly(self._raw(places), self.codes_of(self.rows[places]))

    def fair_judges(
        self,
        source: MulticlassSource,
        is_aside: NDArray[np.bool_],
        is_remembered: NDArray[np.bool_],
        unseen: Array | None,
        rng: np.random.Generator,
    ) -> Judges:
        """Return judges that stand for rows which the source was not trained on.

        It was trained on all the rows at hand, and has moved its border away from them: few are
        left where a map goes wrong. So rows are made beside them, and all are weighted so that the
        source is as sure of them as it is of rows unseen. Support vectors take no part: the border
        bends round them as it does nowhere else.
        """
        free = np.flatnonzero(is_aside & ~is_remembered)
        # Where nearly all are support vectors, only rows far from every one of them will do; those
        # of few features are never far.
        is_free = len(free) >= MIN_STARTS
        starts = free if is_free else np.flatnonzero(is_aside)
        is_narrow = self.rows.shape[1] < MIN_CROSSED
        if unseen is None or len(starts) < MIN_STARTS or (is_narrow and not is_free):
            return self.judges(np.flatnonzero(is_aside))
        n_real, make = (len(starts), make_twins) if is_free else (0, make_crosses)
        mates = rng.permutation(np.flatnonzero(~is_aside))[:MAX_MATES]
        places = np.concatenate([starts, mates])
        margins = margins_of(source, self.rows[starts])
        # Half of the chance is for rows that the source is in doubt about: it is in doubt about
        # few, and those are the ones that maps differ on.
        doubt = expit(-margins)
        chance = 0.5 / len(starts) + 0.5 * doubt / doubt.sum()
        n_made = int(np.clip(TWIN_BUDGET / source.row_cost, MIN_TWINS, MAX_TWINS))
        made, origins = make(
            self._raw(places),
            len(starts),
            2 * n_made,
            search=self.rows[places],
            rng=rng,
            chance=chance,
        )
        moved = made if self.before is None else self.before.apply(made)
        margins = np.concatenate([margins[:n_real], margins_of(source, moved)])
        kept = _draw_by_weight(match_kinds(margins, unseen), n_real, n_made, rng)
        picked = kept[n_real:] - n_real
        real = self.judges(starts[:n_real])
        return Judges(
            np.concatenate([real.rows, made[picked]]),
            np.concatenate([real.codes, self.codes_of(moved[picked])]),
            match_kinds(margins[kept], unseen),
            np.concatenate([np.arange(n_real), origins[picked]]),
        )

    def _raw(self, places: Codes) -> Array:
        """Return raw rows, dense."""
        if self.before is None:
            return self.rows[places]
        return np.asarray(to_dense(self.X[self.chosen[places]]), dtype=np.float64)


def _draw_by_weight(weights: Array, n_real: int, n_others: int, rng: np.random.Generator) -> Codes:
    """Return the real rows, which come first, and some of the others, the heavier the likelier."""
    others = weights[n_real:] + 1e-9
    drawn = rng.choice(len(others), n_others, replace=False, p=others / others.sum())
    return np.concatenate([np.arange(n_real), n_real + np.sort(drawn)])


def match_kinds(margins: Array, wanted: Array) -> Array:
    """Return weights that give margins the distribution of others.

    Examples
    --------
    >>> even = np.linspace(0, 1, 1000)
    >>> weights = match_kinds(even, even**3)
    >>> float(weights[even < 0.5].sum().round(1)), float(np.mean(even**3 < 0.5).round(1))
    (0.8, 0.8)
    """
    n_kinds = int(np.clip(min(len(wanted), len(margins)) // MIN_KIND_ROWS, 1, N_KINDS))
    # Finer where the source is in doubt: that is where maps differ.
    shares = np.linspace(0, 1, n_kinds + 1)[1:-1] ** 2
    edges = np.unique(np.quantile(wanted, shares))
    kinds, wanted_kinds = np.searchsorted(edges, margins), np.searchsorted(edges, wanted)
    counts = np.bincount(kinds, minlength=len(edges) + 1)
    wanted_counts = np.bincount(wanted_kinds, minlength=len(edges) + 1)
    weights = (wanted_counts / np.maximum(counts, 1))[kinds]
    # Where no kind has both, nothing can be matched.
    return weights / weights.sum() if weights.any() else np.full(len(margins), 1 / len(margins))


def margins_of(source: MulticlassSource, rows: Array) -> Array:
    """Return by how much the likeliest class leads."""
    best = np.partition(source.scores(rows), -2, axis=1)[:, -2:]
    return best[:, 1] - best[:, 0]


def unseen_margins(
    model: Any, source: MulticlassSource, rows: Array, codes: Codes, rng: np.random.Generator
) -> Array | None:
    """Return how sure a machine is of rows that it was not trained on."""
    if not isinstance(source, SvmSource):
        return None
    enough = -(-N_UNSEEN * N_FOLDS // len(rows))
    n_folds = int(min(N_FOLDS, enough, REFIT_BUDGET // (len(rows) * source.row_cost)))
    folds = rng.integers(N_FOLDS, size=len(rows))
    labels = np.asarray(source.classes)[codes]
    parts = []
    for fold in range(n_folds):
        is_out = folds == fold
        again = _train_again(model, rows[~is_out], labels[~is_out])
        if again is None or len(again.classes_) < len(source.classes) or not is_out.any():
            return None
        machine = SvmMachine.from_sklearn(again)
        parts.append(margins_of(replace(source, machine=machine), rows[is_out]))
    return np.concatenate(parts) if parts else None


def _train_again(model: Any, rows: Array, labels: Any) -> Any:
    """Train a copy; None where these rows do not allow it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FutureWarning)
        try:
            return clone(model).fit(rows, labels)
        except ValueError:
            return None
