"""Maps of one source, each made in a given time and judged on the same rows."""

from dataclasses import dataclass

import numpy as np

from limes._typing import Array, Codes
from limes.affine import AffineMap
from limes.border_map import BorderMap
from limes.refine import (
    ASKED_A_SECOND,
    LAST_SECONDS,
    TRIAL_EPOCHS,
    TRIAL_LOOKS,
    TRIAL_SECONDS,
    Lessons,
    add_lessons,
    count_looks,
    fit_map,
    fit_sharpness,
    look_seconds,
    prepare_lessons,
)
from limes.schemes.choosing import Trial
from limes.schemes.fitting import MIN_JUDGES, Ground, Settings, enough_judges
from limes.schemes.pairwise import PairwiseScheme
from limes.schemes.protocol import Scheme
from limes.schemes.shared import SharedScheme
from limes.schemes.small_maps import to_map
from limes.schemes.stakes import Stakes
from limes.sources.protocol import MulticlassSource

# Points that answer for a row together while numbers of points are tried: one less than a power of
# two is quickest.
RICH_BLEND = 7
# Where rows are projected before the search, a map learns slowly.
WIDE_SECONDS = 2 * TRIAL_SECONDS
# A map is made once more with the rows kept aside where they are missed, being such a share of the
# others, if that takes no longer than this.
MISSED_SHARE, SPARE_SECONDS = 0.1, 6.0
# A map that agrees less by so many errors than one that was easier to make is no better.
WORSE_ERRORS = 2.0


@dataclass(frozen=True)
class Effort:
    """How long a map is trained: at most so many seconds, looks at rows, and looks at each row."""

    seconds: float
    most_looks: float = np.inf
    most_epochs: float = np.inf


TRIAL = Effort(TRIAL_SECONDS, TRIAL_LOOKS, TRIAL_EPOCHS)
WIDE_TRIAL = Effort(WIDE_SECONDS, TRIAL_LOOKS, TRIAL_EPOCHS)
LAST = Effort(LAST_SECONDS)


@dataclass(frozen=True, eq=False)
class Made:
    """A scheme with its line of the trade-off, and what to choose it by."""

    scheme: Scheme
    trial: Trial
    effort: Effort
    # As if all rows were independent, and where all classes count alike.
    plain: tuple[float, float]
    balance: tuple[float, float]
    # Whether it keeps the source's skill, or agrees as well as is asked for.
    is_enough: bool

    def is_worse_than(self, other: "Made") -> bool:
        """Tell whether it agrees less by more than chance."""
        both = (self.plain, other.plain), (self.balance, other.balance)
        return any(own[0] < its[0] - WORSE_ERRORS * its[1] for own, its in both)


class Workshop:
    """Makes maps of one source, and judges them on the same rows."""

    def __init__(
        self,
        source: MulticlassSource,
        ground: Ground,
        settings: Settings,
        rng: np.random.Generator,
    ) -> None:
        self.source, self.ground, self.settings = source, ground, settings
        self.lessons = prepare_lessons(source, ground.rows, rng=rng)
        self.judges, self.judging = enough_judges(source, ground)
        self.stakes = Stakes(self.judges, source.forecasts(self.judging))
        # Rows made from a few real ones do not tell what skill is lost.
        self.is_told = ground.judges.n_origins >= MIN_JUDGES

    @property
    def is_wide(self) -> bool:
        """Whether rows are projected before the search."""
        return self.lessons.components is not None

    @property
    def blend(self) -> int:
        """How many points answer for a row: as many as were asked for, or as many as do well."""
        return self.settings.blend or RICH_BLEND

    @property
    def least(self) -> Effort:
        """How long a map is trained to see what it is worth."""
        return WIDE_TRIAL if self.is_wide else TRIAL

    @property
    def most(self) -> Effort:
        """How long the last map is trained; behind a projection, longer is no better."""
        return WIDE_TRIAL if self.is_wide else LAST

    def make(
        self,
        n_points: int,
        blend: int,
        seed: np.random.SeedSequence,
        effort: Effort,
        lessons: Lessons | None = None,
    ) -> Made:
        """Fit a map, and measure its agreement with the source."""
        lessons = lessons or self.lessons
        fitted = fit_map(
            lessons,
            n_points=n_points,
            blend=blend,
            rng=np.random.default_rng(seed),
            seconds=effort.seconds,
            most_looks=min(effort.most_looks, effort.most_epochs * len(lessons.rows)),
        )
        one = self._sharpened(to_map(fitted, blend))
        inner = self._join(one)
        values = inner.values(self.judging)
        return self._judged(one, inner.codes(values), inner.probabilities(values), effort)

    def train_at_length(self, short: Made, seed: np.random.SeedSequence) -> Made:
        """Make the map of a trial once more, better; where it learns too much by heart, keep it."""
        if short.effort == self.most:
            return short
        trial = short.trial
        return self._unless_worse(short, self.make(trial.n_borders, trial.blend, seed, self.most))

    def make_of_all(self, made: Made, seed: np.random.SeedSequence) -> Made:
        """Make a map once more with the rows that were kept aside to judge it, if there is time."""
        if not self._can_spare(made):
            return made
        rng = np.random.default_rng(seed.spawn(1)[0])
        lessons = add_lessons(self.lessons, self.source, self.ground.aside, rng=rng)
        trial = made.trial
        whole = self.make(trial.n_borders, trial.blend, seed, made.effort, lessons)
        # Having seen the judges it should do better on them; where it does worse, it is bad luck.
        return self._unless_worse(made, whole)

    def _unless_worse(self, first: Made, second: Made) -> Made:
        """Return the second map, unless it is worse, or only the first is what is asked for."""
        wanted = self.settings.targets.min_agreement or 0.0
        is_short = second.trial.agreement < min(wanted, first.trial.agreement)
        return first if is_short or second.is_worse_than(first) else second

    def _can_spare(self, made: Made) -> bool:
        """Tell whether there is time to make a map once more, with the rows kept aside."""
        lessons, aside = self.lessons, self.ground.aside
        shape = made.trial.n_borders, self.blend
        n_looks = count_looks(lessons, *shape, made.effort.seconds)
        n_asked = len(lessons.rows) * len(aside) / lessons.n_real
        seconds = n_asked * self.source.row_cost / ASKED_A_SECOND
        seconds += n_looks * look_seconds(lessons, *shape)
        return len(aside) >= MISSED_SHARE * lessons.n_real and seconds <= SPARE_SECONDS

    def blank(self, n_points: int) -> Scheme:
        """Return a scheme of the shape of one with so many points."""
        rng = np.random.default_rng(0)
        n_features, n_search = self.lessons.rows.shape[1], self.lessons.search.shape[1]
        before = None
        if self.is_wide and n_points > 1:
            before = AffineMap(np.zeros(n_features), rng.normal(size=(n_features, n_search)))
        n_outputs = self.lessons.targets.shape[1]
        width = n_search if before else n_features
        slopes = rng.normal(size=(n_points, width, n_outputs))
        one = BorderMap(
            rng.normal(size=(n_points, width)),
            slopes if before is None else before.matrix @ slopes,
            np.zeros((n_points, n_outputs)),
            before,
            self.blend,
        )
        return self._join(one.after(self.ground.before))

    def _judged(self, one: BorderMap, codes: Codes, probabilities: Array, effort: Effort) -> Made:
        """Return a map with what its answers to the judges say of it."""
        scheme = self._join(one.after(self.ground.before))
        judges = self.judges
        trial = Trial(
            scheme.name,
            scheme.n_borders,
            min(one.blend, max(one.n_borders - 1, 1)),
            scheme.cost,
            *judges.agreement(codes),
            lost=self.stakes.lost(codes)[0],
        )
        return Made(
            scheme,
            trial,
            effort,
            judges.plain_agreement(codes),
            judges.balanced_agreement(codes),
            self._is_enough(trial, codes, probabilities),
        )

    def _is_enough(self, trial: Trial, codes: Codes, probabilities: Array) -> bool:
        """Tell whether a map is as good as is asked for, by default as good as its source."""
        wanted = self.settings.targets.min_agreement
        if wanted is not None:
            return trial.agreement >= wanted
        return self.is_told and self.stakes.is_kept(codes, probabilities)

    def _sharpened(self, one: BorderMap) -> BorderMap:
        """Return a fitted map with probabilities like the source's."""
        logits = one.decide(self.judging).astype(np.float64)
        sharpness = fit_sharpness(logits, self.stakes.forecasts, self.judges.weights)
        # The value of a single border is half a logit.
        return one.scaled(0.5 * sharpness if one.n_outputs == 1 else sharpness)

    def _join(self, one: BorderMap) -> Scheme:
        """Return the scheme of one map for all classes."""
        n_classes = len(self.source.classes)
        if n_classes == 2:
            return PairwiseScheme((one,), 2, self.settings.double)
        return SharedScheme((one,), n_classes, self.settings.double)
